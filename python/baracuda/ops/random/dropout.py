"""Dropout by Philox4x32-10; the mask is made again in the backward pass. Kernels in csrc/ops/random, reference in dropout_ref.py.

Element i, counted in logical row-major order, is dropped where word i % 4 of block i // 4 of (seed, offset) is below
ceil(f32(p) 2**32): the same mask for every element type, layout, thread count and backend.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from baracuda import _core
from baracuda.call.op import Op, composite, run_new
from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.order import ELEMENTWISE
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import Descriptor, ScalarParam, Signature, descriptor, frame, output, scalar, tensor
from baracuda.memory.device import Place, name_of
from baracuda.memory.generator import chosen
from baracuda.ops.random.random import planned


@frame
class _Dropout(Descriptor):
    """Fields and numbers that forward and backward share."""

    __slots__ = ()
    shape: Shape
    element: Element = Element.F32

    def numbers(self) -> tuple[ScalarParam, ...]:
        """What decides which elements are dropped."""
        return scalar("p", default=0.5), scalar("seed", "unsigned"), scalar("offset", "unsigned", 0)


@descriptor(family="random", op="dropout", result_order=ELEMENTWISE)
class DropoutDescriptor(_Dropout):
    """y = x / (1 - p) where an element is kept, 0 where it is dropped, which it is with probability p.

    A dropped element is 0 whatever x holds, NaN too. p = 1 drops all. y may be the same view as x. The scalars are p in
    [0, 1], seed and offset; the same three give the gradient its mask.

    Args:
        shape: Shape of x and y, rank 0-8.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.shape, self.element),
            output("y", self.shape, self.element),
            *self.numbers(),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return product(self.shape).ceil(4)


@descriptor(gradient_of=DropoutDescriptor, result_order=ELEMENTWISE)
class DropoutBackwardDescriptor(_Dropout):
    """Dx = dy / (1 - p) where an element was kept, else 0; from the same p, seed and offset. dx may be the view dy.

    Args:
        shape: Shape of dy and dx.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dy", self.shape, self.element),
            output("dx", self.shape, self.element),
            *self.numbers(),
        )


OPS = (
    Op(
        "dropout",
        DropoutDescriptor,
        DropoutBackwardDescriptor,
        "y = x / (1 - p) where an element is kept, 0 where it is dropped, with probability p",
    ),
)


@lru_cache(maxsize=256)
def _plan(desc: Descriptor, place: Place) -> Plan:
    return plan(desc, name_of(place))


def _planned(input: Any) -> tuple[Plan, int]:
    shape, code, _, *place = _core.describe(input)
    return planned(DropoutDescriptor(shape, Element(code)), (place[0], place[1]))


def _drop(made: Plan, input: Any, p: Any, inplace: bool, seed: int, offset: int) -> Any:
    if inplace:
        made.run(input, input, p, seed, offset)
        return input
    return run_new(made, input, None, x=input, p=p, seed=seed, offset=offset)


@composite
def dropout(input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False, *, generator: Any = None) -> Any:
    """Drops elements with probability `p` and divides the others by 1 - p, as torch.nn.functional.dropout.

    Not torch's stream: the same generator state gives another mask than torch, but the same on every backend and
    layout.

    Args:
        input: An array of floats.
        p: Probability that an element becomes 0; a number.
        training: Without it `input` is returned as it is.
        inplace: Whether `input` itself is changed and returned.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    if not training:
        return input
    made, blocks = _planned(input)
    return chosen(generator).draw(blocks, lambda seed, offset: _drop(made, input, p, inplace, seed, offset))


@composite
def dropout_backward(dy: Any, p: Any, seed: int, offset: int) -> Any:
    """Gradient of dropout with respect to its input, from what its generator gave: the mask is made again.

    Args:
        dy: Gradient of the result.
        p: As in dropout.
        seed: The generator's seed.
        offset: The generator's offset before dropout took its blocks.
    """
    shape, code, _, *place = _core.describe(dy)
    made = _plan(DropoutBackwardDescriptor(shape, Element(code)), (place[0], place[1]))
    return run_new(made, dy, None, dy=dy, p=p, seed=seed, offset=offset)


def _dropout_vjp(
    input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False, *, generator: Any = None
) -> tuple[Any, Any]:
    if not training:
        return input, lambda dy: dy

    made, blocks = _planned(input)

    def drop(seed: int, offset: int) -> tuple[Any, Any]:
        return _drop(made, input, p, inplace, seed, offset), lambda dy: dropout_backward(dy, p, seed, offset)

    return chosen(generator).draw(blocks, drop)


_marks: Any = dropout
_marks.vjp_rule = _dropout_vjp
