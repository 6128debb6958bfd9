"""The weights of a model where they lie in the file, and products with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.errors import InvalidProblemError

Array = Any  # NumPy's, or what stands for one while a graph is traced

# Of old files, or made again here from the metadata.
_IGNORED = (
    "rope_freqs.weight",
    "rope_factors_long.weight",
    "rope_factors_short.weight",
    ".attn_rot_embd.",
    ".rope_freqs.",
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight that is multiplied with, of one matrix or of one for each expert.

    Attributes:
        data: Blocks of the file; or f32 values.
        format: Of the blocks; None for values.
        shape: Of the values: (rows, depth), or (experts, rows, depth).
        exact: Whether rows that are multiplied with blocks are taken as they are, and not rounded to 8 bits.
    """

    data: Array
    format: str | None
    shape: tuple[int, ...]
    exact: bool

    def __call__(self, x: Array, bias: Array | None = None) -> Array:
        """Rows x (n, depth) times the transpose: (n, rows)."""
        if self.format is None:
            return F.linear(x, self.data, bias)
        y = F.quant_matmul(x, self.data, self.format, quantize_input=not self.exact)
        return y if bias is None else F.add(y, bias)

    def rows(self, ids: Array) -> Array:
        """The rows that ids name, in f32."""
        if self.format is None:
            return F.embedding(ids, self.data)
        return F.quant_embedding(self.data, ids, self.format)

    def of_experts(self, x: Array, ids: Array) -> Array:
        """Rows x (n, 1 or k, depth) times the transposes of the experts that ids (n, k) name: (n, k, rows)."""
        if self.format is not None:
            return F.quant_matmul_ids(x, self.data, ids, self.format, quantize_input=not self.exact)
        # Values have no product by ids: all experts are multiplied, and what is asked for is kept.
        n, k, (experts, rows, depth) = ids.shape[0], ids.shape[1], self.shape
        given = x.shape[1]
        y = F.linear(x, self.data.reshape(experts * rows, depth)).reshape(n, given, experts, rows)
        if given == 1:
            return F.take_along_dim(y.reshape(n, experts, rows), ids.reshape(n, k, 1), 1)
        return F.take_along_dim(y, ids.reshape(n, k, 1, 1), 2).reshape(n, k, rows)


class Weights:
    """The tensors of a file, taken by name; each is held against the shape that the metadata asks for.

    Attributes:
        exact: See Matrix.
    """

    def __init__(self, path: str, tensors: Mapping[Any, Any], *, exact: bool) -> None:
        self.path, self.tensors, self.exact = path, tensors, exact
        self._taken: set[Any] = set()

    def has(self, name: str) -> bool:
        """Whether the file has such a tensor."""
        return name in self.tensors

    def _take(self, name: str, shape: Sequence[int]) -> Any:
        held = self.tensors.get(name)
        want = f"a tensor of shape {tuple(shape)}, as the metadata says"
        if held is None:
            raise InvalidProblemError(
                f"{self.path!r}: tensor {name!r}: got none, want {want}; the file is incomplete, or of another kind of model."
            )
        if held.shape != tuple(shape):
            raise InvalidProblemError(f"{self.path!r}: tensor {name!r}: got shape {held.shape}, want {want}.")
        _ = held.data  # refused, where its type is none that is read
        self._taken.add(name)
        return held

    def _values(self, name: str, held: Any) -> Array:
        """Values in f32, where they lie if they are that."""
        if held.format is not None:
            return F.dequantize(held.data, held.format)
        if held.data.dtype == np.float32:
            return held.data
        if bc.asarray(held.data).element.is_float:
            return F.cast(held.data, "f32")
        raise InvalidProblemError(
            f"{self.path!r}: tensor {name!r}: got {held.data.dtype}, want numbers with a fraction."
        )

    def vector(self, name: str, size: int) -> Array:
        """The f32 values of a norm's weight, or of a bias."""
        return self._values(name, self._take(name, (size,)))

    def vector_if(self, name: str, size: int) -> Array | None:
        """The same of one that may be missing."""
        return self.vector(name, size) if self.has(name) else None

    def matrix(self, name: str, *shape: int) -> Matrix:
        """A weight to multiply with: blocks stay blocks, other elements become f32."""
        held = self._take(name, shape)
        if held.format is not None:
            return Matrix(held.data, held.format, tuple(shape), self.exact)
        return Matrix(self._values(name, held), None, tuple(shape), self.exact)

    def vocabulary(self, width: int) -> int:
        """How many tokens the embedding has rows for."""
        held = self.tensors.get("token_embd.weight")
        shape = getattr(held, "shape", (0, width))
        rows = shape[0] if len(shape) == 2 else 0
        self._take("token_embd.weight", (max(rows, 1), width))
        return int(rows)

    def refuse_others(self) -> None:
        """An error for tensors that nothing took: the model is another one than its metadata says.

        Raises:
            InvalidProblemError: There are such; the message names some.
        """
        left = [str(n) for n in self.tensors if n not in self._taken and not any(i in str(n) for i in _IGNORED)]
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise InvalidProblemError(
                f"{self.path!r}: tensors {', '.join(left[:3])}{more}: got them, want none that the decoder does not use; "
                f"this is a variant of the architecture that would give wrong numbers."
            )
