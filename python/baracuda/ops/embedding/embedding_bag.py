"""Sums, means and maxima of bags of rows of a table. Kernels in csrc/ops/embedding, reference in embedding_bag_ref.py."""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape, Size, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Param, Signature, descriptor, frame, output, tensor
from baracuda.ops.embedding.embedding import Table, refuse_options


class BagMode(Enum):
    """What is made of the rows of a bag."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"


@frame
class _Bag(Table):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    offsets_shape: Shape | None = None
    mode: BagMode = BagMode.MEAN
    weighted: bool = False
    include_last_offset: bool = False

    def validate(self) -> None:
        self.check_table()
        if self.offsets_shape is None and len(self.ids_shape) != 2:
            raise self.wrong("ids_shape", self.ids_shape, "(bags, size), or one dimension and offsets")
        if self.offsets_shape is not None:
            if len(self.ids_shape) != 1:
                raise self.wrong("ids_shape", self.ids_shape, "one dimension, as there are offsets")
            if len(self.offsets_shape) != 1:
                raise self.wrong("offsets_shape", self.offsets_shape, "one dimension")
            if self.include_last_offset and self.offsets_shape[0] == 0:
                raise self.wrong("offsets_shape", self.offsets_shape, "at least one offset, the last one")
        if self.weighted and self.mode is not BagMode.SUM:
            raise self.wrong("mode", self.mode.value, '"sum" for weighted rows')

    def bags_shape(self) -> Shape:
        """Shape of y, dy and max_indices."""
        bags: Size = self.ids_shape[0]
        if self.offsets_shape is not None:
            bags = self.offsets_shape[0] + (-1 if self.include_last_offset else 0)
        return (bags, self.weight_shape[1])

    def indices(self) -> tuple[Param, Param]:
        """The ids, and the offsets or that there are none."""
        ids = tensor("ids", self.ids_shape, self.index_element)
        given = self.offsets_shape is not None
        return ids, tensor("offsets", self.offsets_shape or (), self.index_element, present=given)

    def weights(self) -> Param:
        """What rows are multiplied by."""
        return tensor("per_sample_weights", self.ids_shape, self.element, present=self.weighted)

    def attributes(self) -> dict[str, int | float]:
        mode, last = list(BagMode).index(self.mode), int(self.include_last_offset)
        return {"mode": mode, "padding_idx": self.padding(), "include_last_offset": last}


@descriptor(family="embedding", op="embedding_bag", enums={"mode": BagMode})
class EmbeddingBagDescriptor(_Bag):
    """y[b, :] = sum, mean or maximum of weight[ids[i], :] over the positions i of bag b; 0 where the bag is empty.

    A bag is a row of two-dimensional ids; or with offsets, the positions from its offset to the next one, the last bag's
    to the end of ids (with include_last_offset: to the last offset; ids behind it belong to no bag). Padding counts
    nowhere, and not in a mean's divisor. As in torch a maximum keeps a NaN only where it comes first; max_indices (i64)
    are the ids of the first maxima, -1 in empty bags. Sums are kept in f64 (with Kahan's correction for f64; on GPUs in
    two numbers of the compute element) and rounded once; products with weights are rounded before.

    Every id is checked: one that is negative or too large is an IndexOutOfRangeError. So are offsets that do not begin
    with 0, that fall, or that lie behind the ids.

    Args:
        weight_shape: (V, D).
        ids_shape: (bags, size), or (n,) with offsets.
        element: f16, bf16, f32 or f64.
        index_element: Of ids and offsets: i64, i32 or u32.
        padding_idx: Row that does not count; negative counts from the end. None: there is none.
        offsets_shape: (bags,), or (bags + 1,) with include_last_offset; None: ids have two dimensions.
        mode: "sum", "mean" or "max".
        weighted: Rows are multiplied by per_sample_weights, of the shape of ids; for sums only.
        include_last_offset: The last offset is not a bag's start but the last bag's end.
    """

    def signature(self) -> Signature:
        ids, offsets = self.indices()
        return Signature(
            ids,
            tensor("weight", self.weight_shape, self.element),
            offsets,
            self.weights(),
            output("y", self.bags_shape(), self.element),
            output("max_indices", self.bags_shape(), Element.I64, present=self.mode is BagMode.MAX),
        )


@descriptor(gradient_of=EmbeddingBagDescriptor)
class EmbeddingBagBackwardDescriptor(_Bag):
    """dweight[r, :] = sum of what the bags of ids r give: dy, dy / count, dy times the weight, or dy at the maxima.

    dper_sample_weights[i] = sum of dy[b, :] weight[ids[i], :], 0 for padding. Sums are in the order of positions and
    rounded once, as embedding's. The bound's K is the number of positions of an id. Needs 40 bytes of workspace per id
    and 8 per bag, on GPUs somewhat more.

    Args:
        weight_shape: (V, D), the shape of dweight.
        ids_shape: As in EmbeddingBagDescriptor.
        element: f16, bf16, f32 or f64.
        index_element: Of ids and offsets: i64, i32 or u32.
        padding_idx: Row that gets no gradient; negative counts from the end. None: there is none.
        offsets_shape: As in EmbeddingBagDescriptor.
        mode: "sum", "mean" or "max", which needs max_indices.
        weighted: Rows were multiplied by per_sample_weights, which get a gradient, too.
        include_last_offset: As in EmbeddingBagDescriptor.
    """

    def signature(self) -> Signature:
        ids, offsets = self.indices()
        maxima = tensor("max_indices", self.bags_shape(), Element.I64, present=self.mode is BagMode.MAX)
        return Signature(
            tensor("dy", self.bags_shape(), self.element),
            ids,
            offsets,
            tensor("weight", self.weight_shape, self.element, present=self.weighted),
            self.weights(),
            maxima,
            output("dweight", self.weight_shape, self.element),
            output("dper_sample_weights", self.ids_shape, self.element, present=self.weighted),
        )


OPS = (
    Op(
        "embedding_bag",
        EmbeddingBagDescriptor,
        EmbeddingBagBackwardDescriptor,
        "y[b, :] = sum, mean or maximum of weight[ids[i], :] over the positions i of bag b",
    ),
)


def _fields(
    name: str, input: Arg, weight: Arg, offsets: Arg | None, scales: Arg | None, **options: Any
) -> dict[str, Any]:
    """Fields of both descriptors."""
    if offsets is not None and offsets.element is not input.element:
        raise InvalidProblemError(f"{name}: offsets: got {offsets.element}, want {input.element}, as input. Cast one.")
    if scales is not None and (scales.element is not weight.element or scales.shape != input.shape):
        raise InvalidProblemError(
            f"{name}: per_sample_weights: got {scales.element} of shape {shape_text(scales.shape)}, want {weight.element} "
            f"of shape {shape_text(input.shape)}, as weight and input."
        )
    options["include_last_offset"] = options["include_last_offset"] and offsets is not None
    return options | {
        "weight_shape": weight.shape,
        "ids_shape": input.shape,
        "element": weight.element,
        "index_element": input.element,
        "offsets_shape": None if offsets is None else offsets.shape,
        "weighted": scales is not None,
    }


def _tensors(input: Arg, weight: Arg, offsets: Arg | None, scales: Arg | None) -> dict[str, Any]:
    """Arguments of both plans."""
    return {"ids": input, "weight": weight, "offsets": offsets, "per_sample_weights": scales}


_TENSORS = "input weight offsets per_sample_weights"


@function(tensors=_TENSORS)
def embedding_bag(
    call: Call,
    input: Arg,
    weight: Arg,
    offsets: Arg | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Arg | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Recipe:
    """Sums, means or maxima of bags of rows of `weight`, as torch.nn.functional.embedding_bag.

    Bags are the rows of a two-dimensional `input`, or begin at `offsets`, which are of the element of `input`.
    `max_norm`, `scale_grad_by_freq` and `sparse` are refused, as by embedding.
    """
    del norm_type
    refuse_options("embedding_bag", max_norm, scale_grad_by_freq, sparse)
    fields = _fields(
        "embedding_bag", input, weight, offsets, per_sample_weights, mode=mode, padding_idx=padding_idx,
        include_last_offset=include_last_offset,
    )  # fmt: skip
    return call(
        EmbeddingBagDescriptor(**fields), returns=("y",), **_tensors(input, weight, offsets, per_sample_weights)
    )


@function(tensors=_TENSORS)
def embedding_bag_forward(
    call: Call,
    input: Arg,
    weight: Arg,
    offsets: Arg | None = None,
    mode: str = "mean",
    per_sample_weights: Arg | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Recipe:
    """embedding_bag with what its gradient needs: (y, max_indices) of maxima, else y alone."""
    fields = _fields(
        "embedding_bag", input, weight, offsets, per_sample_weights, mode=mode, padding_idx=padding_idx,
        include_last_offset=include_last_offset,
    )  # fmt: skip
    return call(EmbeddingBagDescriptor(**fields), **_tensors(input, weight, offsets, per_sample_weights))


@function(tensors="dy input weight offsets per_sample_weights max_indices")
def embedding_bag_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    offsets: Arg | None = None,
    mode: str = "mean",
    per_sample_weights: Arg | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    max_indices: Arg | None = None,
) -> Recipe:
    """Gradient of embedding_bag with respect to `weight`; with weights (dweight, dper_sample_weights).

    Maxima need `max_indices`, which embedding_bag_forward returns.
    """
    if mode == "max" and max_indices is None:
        raise InvalidProblemError("embedding_bag_backward: max_indices: got None, want those of embedding_bag_forward.")
    fields = _fields(
        "embedding_bag", input, weight, offsets, per_sample_weights, mode=mode, padding_idx=padding_idx,
        include_last_offset=include_last_offset,
    )  # fmt: skip
    tensors = _tensors(input, weight, offsets, per_sample_weights)
    return call(EmbeddingBagBackwardDescriptor(**fields), dy=dy, max_indices=max_indices, **tensors)


@embedding_bag.vjp
def _embedding_bag_vjp(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, Any]:
    del norm_type
    refuse_options("embedding_bag", max_norm, scale_grad_by_freq, sparse)
    given = (input, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    found = embedding_bag_forward(*given)
    y, chosen = found if mode == "max" else (found, None)
    return y, lambda dy: embedding_bag_backward(dy, *given, chosen)
