"""ztensor's optional interfaces: `isinstance(engine.ztensor, PoolResetter)` asks for one, as a type assertion does in Go.

Contexts come first where ztensor has them, and may be left out.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class FusedRMSNormer(Protocol):
    """RMS norm that also gives 1 / rms of each row."""

    def FusedRMSNormGPU(self, input: Any, weight: Any, epsilon: float) -> Any:
        """(output, scales)."""


@runtime_checkable
class FusedAddRMSNormProvider(Protocol):
    """RMS norm of a sum."""

    def GPUFusedAddRMSNorm(self, input: Any, residual: Any, weight: Any, eps: float) -> Any:
        """(normed, sum, scales)."""


@runtime_checkable
class FusedNormAddProvider(Protocol):
    """RMS norm and a sum."""

    def GPUFusedNormAdd(self, input: Any, weight: Any, residual: Any, eps: float) -> Any:
        """rms_norm(input) + residual."""


@runtime_checkable
class FusedQKNormRoPEProvider(Protocol):
    """Heads of queries and keys, normalised and rotated."""

    def GPUFusedQKNormRoPE(
        self, input: Any, weightQ: Any, weightK: Any, cosAngles: Any, sinAngles: Any, eps: float, totalHeads: int,
        headDim: int, numQHeads: int, halfRotary: int,
    ) -> Any:  # fmt: skip
        """[totalHeads, headDim]."""


@runtime_checkable
class FusedRoPEProvider(Protocol):
    """Rotary embedding by halves."""

    def GPUFusedRoPE(self, input: Any, cosAngles: Any, sinAngles: Any, rotaryDim: int) -> Any:
        """[batch, length, width]."""


@runtime_checkable
class FusedScaledSoftmaxProvider(Protocol):
    """Softmax of scaled scores."""

    def GPUScaledSoftmax(self, input: Any, scale: float, axis: int) -> Any:
        """softmax(input * scale)."""


@runtime_checkable
class FusedSoftmaxVMulProvider(Protocol):
    """Softmax of scaled scores times values."""

    def GPUFusedSoftmaxVMul(self, scores: Any, V: Any, scale: float) -> Any:
        """softmax(scores * scale) @ V."""


@runtime_checkable
class FusedSwiGLUProvider(Protocol):
    """A gated activation."""

    def GPUFusedSwiGLU(self, w1: Any, w3: Any) -> Any:
        """silu(w1) * w3."""


@runtime_checkable
class PoolResetter(Protocol):
    """An arena that is emptied at once."""

    def ResetPool(self) -> None:
        """Empties it down to its floor."""


@runtime_checkable
class WeightUploader(Protocol):
    """Weights on the device."""

    def UploadWeights(self, tensors: Any) -> Any:
        """Copies of them there."""


@runtime_checkable
class TransposeBMatMuler(Protocol):
    """Products with a transposed right operand."""

    def MatMulTransposeB(self, a: Any, b: Any, dst: Any = None) -> Any:
        """The product a @ b.mT."""


@runtime_checkable
class TransposeAMatMuler(Protocol):
    """Products with a transposed left operand."""

    def MatMulTransposeA(self, a: Any, b: Any, dst: Any = None) -> Any:
        """The product a.mT @ b."""


@runtime_checkable
class Dropouter(Protocol):
    """Dropout by a seed."""

    def Dropout(self, a: Any, p: float, seed: int, training: bool, dst: Any = None) -> Any:
        """Drops elements."""

    def DropoutBackward(self, g: Any, p: float, seed: int, training: bool, dst: Any = None) -> Any:
        """Its gradient, by the same mask."""


@runtime_checkable
class StreamProvider(Protocol):
    """A stream of the device."""

    def Stream(self) -> Any:
        """What the device calls it."""


@runtime_checkable
class GPUStreamAccessor(Protocol):
    """The same."""

    def GPUStream(self) -> Any:
        """The stream."""


@runtime_checkable
class GPUArgmaxer(Protocol):
    """Where the largest element is."""

    def GPUArgmax(self, t: Any) -> int:
        """Its index in the flat tensor."""


@runtime_checkable
class FP16ToF32Converter(Protocol):
    """From halves."""

    def ConvertFP16ToF32(self, t: Any) -> Any:
        """The same numbers as f32."""


@runtime_checkable
class PagedGQAer(Protocol):
    """Attention over pages."""

    def PagedGQA(
        self, Q: Any, blockPtrsK: Any, blockPtrsV: Any, blockIndices: Any, seqLen: int, blockSize: int, headDim: int,
        numQHeads: int, numKVHeads: int, batch: int,
    ) -> Any:  # fmt: skip
        """[batch * numQHeads, headDim]."""

    def IsPagedGQASupported(self) -> bool:
        """Whether there is a kernel."""
