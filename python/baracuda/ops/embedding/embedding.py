"""Embedding: rows of a table, by index. Kernels in csrc/ops/embedding, reference in embedding_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, inout, output, tensor


@frame
class Table(Descriptor):
    """Fields and checks of ops with a table of rows."""

    __slots__ = ()
    weight_shape: Shape
    ids_shape: Shape
    element: Element = Element.F32
    index_element: Element = Element.I64
    padding_idx: int | None = None

    def check_table(self) -> None:
        """The table's rank and the padding, which is counted from the start."""
        if len(self.weight_shape) != 2:
            raise self.wrong("weight_shape", self.weight_shape, "(rows, columns)")
        if self.padding_idx is None:
            return
        rows = self.weight_shape[0]
        if isinstance(rows, Dim):
            if self.padding_idx < 0:
                raise self.wrong(
                    "padding_idx", self.padding_idx, "an index from the start, where the number of rows is a Dim"
                )
        elif not -rows <= self.padding_idx < rows:
            raise self.wrong("padding_idx", self.padding_idx, f"{-rows} <= padding_idx < {rows}")
        elif self.padding_idx < 0:
            object.__setattr__(self, "padding_idx", self.padding_idx + rows)

    def padding(self) -> int:
        """The padding as the kernels know it."""
        return -1 if self.padding_idx is None else self.padding_idx


class _Embedding(Table):
    """What forward and backward share."""

    __slots__ = ()

    def validate(self) -> None:
        self.check_table()
        if len(self.ids_shape) > 7:
            raise self.wrong("ids_shape", self.ids_shape, "rank 0-7: y has one dimension more")

    def rows_shape(self) -> Shape:
        """Shape of y and dy."""
        return (*self.ids_shape, self.weight_shape[1])


@descriptor(family="embedding", op="embedding")
class EmbeddingDescriptor(_Embedding):
    """y[..., :] = weight[ids[...], :].

    Every id is checked before the first write: one that is negative or too large is an IndexOutOfRangeError. Exact:
    rows are copied, NaN with its bits. As in torch, the row at `padding_idx` is returned as it is stored; only the
    gradient skips it.

    Args:
        weight_shape: (V, D).
        ids_shape: Shape of ids, rank 0-7; y has D appended.
        element: f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
        padding_idx: Row without a gradient; negative counts from the end. None: there is none.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("ids", self.ids_shape, self.index_element),
            tensor("weight", self.weight_shape, self.element),
            output("y", self.rows_shape(), self.element),
        )

    def attributes(self) -> dict[str, int | float]:
        return {"padding_idx": self.padding()}


@descriptor(gradient_of=EmbeddingDescriptor)
class EmbeddingBackwardDescriptor(_Embedding):
    """dweight[r, :] = sum of dy[i, :] over the positions i with ids[i] == r, in the order of positions.

    Sums are kept in f64 (with Kahan's correction for f64; on GPUs in two numbers of the compute element) and rounded
    once; bits do not depend on the thread count. The bound's K is the number of positions of an id. On the cpu every id is
    checked before the first write. Needs 32 bytes of workspace per id, on GPUs somewhat more.

    GPUs have a second row for f32, `simt_atomic`, which adds in any order: not deterministic, no workspace, one pass,
    for at most 2^20 ids. It is taken only where it is named, or where max_workspace_bytes leaves no other.

    Args:
        weight_shape: (V, D), the shape of dweight.
        ids_shape: Shape of ids, rank 0-7; dy has D appended.
        element: f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
        padding_idx: Row that gets no gradient; negative counts from the end. None: there is none.
        accumulate: Add into the dweight that is given instead of overwriting it. Rows without an id are then not
            touched, which for a large table costs far less than filling it with zeros.
    """

    accumulate: bool = False

    def signature(self) -> Signature:
        place = inout if self.accumulate else output
        return Signature(
            tensor("dy", self.rows_shape(), self.element),
            tensor("ids", self.ids_shape, self.index_element),
            place("dweight", self.weight_shape, self.element),
        )

    def attributes(self) -> dict[str, int | float]:
        return {"padding_idx": self.padding(), "accumulate": int(self.accumulate)}


OPS = (Op("embedding", EmbeddingDescriptor, EmbeddingBackwardDescriptor, "y[..., :] = weight[ids[...], :]"),)


def refuse_options(name: str, max_norm: float | None, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Refuses what torch's embeddings can do besides."""
    for option, value, want in (
        ("max_norm", max_norm, None),
        ("scale_grad_by_freq", scale_grad_by_freq, False),
        ("sparse", sparse, False),
    ):
        if type(value) is not type(want) or value != want:  # arrays compare in their own way
            raise InvalidProblemError(f"{name}.{option}: got {value!r}, want {want}. It is not supported.")


@function(tensors="input weight")
def embedding(
    call: Call,
    input: Arg,
    weight: Arg,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Recipe:
    """Rows of `weight` at the indices `input`, as torch.nn.functional.embedding.

    `max_norm`, `scale_grad_by_freq` and `sparse` are refused: the first changes the weight during a lookup, the others
    only concern torch's own gradients.
    """
    del norm_type
    if input.element.is_float or input.element is Element.BOOL:
        raise InvalidProblemError(f"embedding: input: got {input.element}, want i64, i32 or u32. Cast it first.")
    refuse_options("embedding", max_norm, scale_grad_by_freq, sparse)
    desc = EmbeddingDescriptor(weight.shape, input.shape, weight.element, input.element, padding_idx)
    return call(desc, ids=input, weight=weight)


@function(tensors="dy input")
def embedding_backward(call: Call, dy: Arg, input: Arg, num_weights: int, padding_idx: int | None = None) -> Recipe:
    """Gradient of embedding with respect to a weight of `num_weights` rows."""
    if not dy.shape:
        raise InvalidProblemError(
            "embedding_backward.dy: got rank 0, want the shape of input with the row size appended."
        )
    desc = EmbeddingBackwardDescriptor((num_weights, dy.shape[-1]), input.shape, dy.element, input.element, padding_idx)
    return call(desc, dy=dy, ids=input)


@embedding.vjp
def _embedding_vjp(input: Any, weight: Any, padding_idx: int | None = None) -> tuple[Any, Any]:
    return embedding(input, weight, padding_idx), lambda dy: embedding_backward(dy, input, weight.shape[0], padding_idx)
