"""Products of vectors, and Kronecker's product. They run the kernels of csrc/ops/matmul and csrc/ops/binary."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Shape, Value, composed
from baracuda.call.contraction import Evaluation, Labelled, Network, network
from baracuda.call.op import Arg, Call, Function, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import MAX_RANK
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import result_element
from baracuda.ops.matmul.matmul import MatmulDescriptor, scaled_gradients

OPS = ()


def _vectors(name: str, **given: Arg) -> None:
    for arg, x in given.items():
        if x.rank != 1:
            raise InvalidProblemError(f"{name}: got {arg} of shape {x.shape}, want 1 dimension.")


def _outer(call: Call, name: str, input: Arg, vec2: Arg) -> Recipe:
    from baracuda.ops.binary.binary import BinaryDescriptor

    _vectors(name, input=input, vec2=vec2)
    element = result_element((input, vec2))
    a, b = input.insert(1), vec2.insert(0)
    elements = (None if x.element is element else x.element for x in (a, b))
    return call(BinaryDescriptor("mul", a.shape, b.shape, element, *elements), a=a, b=b)


@made_of("mul")
@function(tensors="input vec2")
def outer(call: Call, input: Arg, vec2: Arg, *, out: Arg | None = None) -> Recipe:
    """The matrix of all products of an element of `input` and one of `vec2`, as torch.outer; elements are promoted."""
    return _outer(call, "outer", input, vec2)


@made_of("mul")
@function(tensors="input vec2")
def ger(call: Call, input: Arg, vec2: Arg, *, out: Arg | None = None) -> Recipe:
    """The same as outer, as torch.ger."""
    return _outer(call, "ger", input, vec2)


def _outer_rule(forward: Function) -> None:
    @forward.vjp
    def rule(input: Any, vec2: Any) -> tuple[Any, Any]:
        from baracuda.ops.matmul.einsum import einsum_backward

        return forward(input, vec2), lambda dy: einsum_backward(dy, "i,j->ij", input, vec2)


_outer_rule(outer)
_outer_rule(ger)


@made_of("matmul")
@function(tensors="input vec1 vec2", scalars="beta alpha")
def addr(
    call: Call, input: Arg, vec1: Arg, vec2: Arg, *, beta: float = 1, alpha: float = 1, out: Arg | None = None
) -> Recipe:
    """Gives beta * input + alpha * outer(vec1, vec2), as torch.addr, for one element; `input` broadcasts."""
    _vectors("addr", vec1=vec1, vec2=vec2)
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        if x.element is not input.element or x.element is Element.BOOL:
            want = "one element for all, not bool. Cast the others first"
            raise InvalidProblemError(f"addr: got input: {input.element}, {name}: {x.element}, want {want}.")
    a, b = vec1.insert(1), vec2.insert(0)
    desc = MatmulDescriptor(a.shape, b.shape, a.element, c_shape=input.shape)
    return call(desc, a=a, b=b, c=input, beta=beta, alpha=alpha)


@addr.vjp
def _addr_vjp(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> tuple[Any, Any]:
    from baracuda import functional as F

    def pull(dy: Any) -> tuple[Any, Any, Any]:
        dinput = F.sum_to(dy, tuple(input.shape))
        dvec1, dvec2 = scaled_gradients(dy, vec1.reshape(-1, 1), vec2.reshape(1, -1), alpha)
        return dinput if beta == 1 else F.mul(dinput, beta), dvec1.reshape(-1), dvec2.reshape(-1)

    return addr(input, vec1, vec2, beta=beta, alpha=alpha), pull


def _kron(a: Value, b: Value) -> Network:
    """Labels 0, 1, ... for the dimensions of a, and 100, 101, ... for those of b, counted from the last one."""
    left, right = (tuple(first + i for i in range(x.rank)[::-1]) for x, first in ((a, 0), (b, 100)))
    rank = max(a.rank, b.rank)
    result = tuple(n for i in range(rank)[::-1] for n in (i, 100 + i) if n in left or n in right)
    large = sum(n != 1 for n in (*a.shape, *b.shape))
    if large > MAX_RANK:
        raise InvalidProblemError(f"kron: got {large} dimensions larger than 1 together, want at most {MAX_RANK}.")
    return network([left, right], [a.shape, b.shape], result)


def _kron_shape(a: Value, b: Value) -> Shape:
    rank = max(a.rank, b.rank)
    longer = ((*(1,) * (rank - x.rank), *x.shape) for x in (a, b))
    return tuple(m * n for m, n in zip(*longer, strict=True))


@made_of("copy mul")
@composed(tensors="input other")
def kron(c: Composer, input: Value, other: Value, *, out: Any = None) -> Value:
    """Kronecker's product: every element of `input` times all of `other`, as torch.kron; elements are promoted."""
    made = Evaluation(c, _kron(input, other), (input, other)).result()
    return c.reshape(made, _kron_shape(input, other))


@made_of("cast copy matmul mul")
@composed(tensors="dy input other")
def kron_backward(c: Composer, dy: Value, input: Value, other: Value) -> tuple[Value, ...]:
    """Gradients (dinput, dother) of kron."""
    if dy.shape != _kron_shape(input, other):
        raise InvalidProblemError(f"dy: got shape {dy.shape}, want {_kron_shape(input, other)}.")
    net = _kron(input, other)
    seen = c.reshape(dy, tuple(net.sizes[n] for n in net.large))
    return Evaluation(c, net, (input, other)).gradients_of(Labelled(seen, net.large))


kron.pulled_by(kron_backward)
