"""Matrix products: out = act(alpha * a @ b + beta * c + bias). Kernels in csrc/ops/matmul, reference in matmul_ref.py.

Transposes are strides: pass the transposed view. Gradients are products too, so there is no backward descriptor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.pulls import Pull
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, Size, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar, tensor


class Activation(Enum):
    """What is applied to a product's sums before they are rounded.

    GELU is torch's gelu with approximate="none", GELU_TANH the one with "tanh".
    """

    NONE = "none"
    RELU = "relu"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    SILU = "silu"

    @property
    def code(self) -> int:
        """The number that kernels know it by."""
        return list(Activation).index(self)


@descriptor(family="matmul", op="matmul", enums={"activation": Activation})
class MatmulDescriptor(Descriptor):
    """out = act(alpha * a @ b + beta * c + bias), for a batch of matrices.

    Sums are accumulated in f32 for f16, bf16 and f32 and in f64 for f64, in an order that does not depend on the number
    of threads, and rounded once when they are stored; those of integers wrap. Products with 0 are kept, so 0 * inf is
    NaN. With beta = 0, c is not read. With K = 0 the sum is beta * c + bias. `c` may be the identical view of `out`. The
    activation sees the sum in the element that it was accumulated in; NaN stays NaN. With one, the error bound's sum of
    |terms| counts 1.13 times (no activation is steeper), and once more the size of what the activation is given.

    Args:
        a_shape: (..., M, K), rank 2-8.
        b_shape: (..., K, N); batch dimensions broadcast with those of a.
        element: f16, bf16, f32, f64 or an integer, of all tensors; alpha and beta are integers with these.
        bias: There is a `bias` of shape (N,), added to every row.
        c_shape: Shape of `c`, which broadcasts to the output's; None: there is no `c`.
        batch_shape: Batch dimensions of the output. None: a's and b's, broadcast. A dimension that is missing or 1 here
            and larger in a or b is summed over, as the gradient of a broadcast needs it.
        activation: "none", "relu", "gelu" (by erf), "gelu_tanh" or "silu", of the finished sum; "none" for integers.
    """

    a_shape: Shape
    b_shape: Shape
    element: Element = Element.F32
    bias: bool = False
    c_shape: Shape | None = None
    batch_shape: Shape | None = None
    activation: Activation = Activation.NONE

    def attributes(self) -> dict[str, int | float]:
        return {"activation": self.activation.code}

    def validate(self) -> None:
        """Inner sizes agree, batch dimensions broadcast, and c and the output's batch fit them."""
        batch = common_batch(self, self.a_shape, self.b_shape)
        if self.batch_shape is not None and not broadcasts_to(self.batch_shape, batch):
            want = f"sizes that are 1 or those of {shape_text(batch)}, aligned at the last one"
            raise self.wrong("batch_shape", self.batch_shape, want)
        if self.c_shape is not None and not broadcasts_to(self.c_shape, self.output_shape()):
            want = f"a shape that broadcasts to the output's {shape_text(self.output_shape())}"
            raise self.wrong("c_shape", self.c_shape, want)
        if self.element.is_integer and self.activation is not Activation.NONE:
            raise self.wrong("activation", self.activation.value, "none for integers")

    def output_shape(self) -> Shape:
        """(..., M, N)."""
        joined = self.batch_shape is None
        batch = common_batch(self, self.a_shape, self.b_shape) if joined else self.batch_shape
        assert batch is not None
        return (*batch, self.a_shape[-2], self.b_shape[-1])

    def signature(self) -> Signature:
        e = self.element
        kind, one = ("int", 1) if e.is_integer else ("float", 1.0)
        return Signature(
            tensor("a", self.a_shape, e),
            tensor("b", self.b_shape, e),
            tensor("c", self.c_shape or (), e, present=self.c_shape is not None),
            tensor("bias", (self.b_shape[-1],), e, present=self.bias),
            output("out", self.output_shape(), e),
            scalar("alpha", kind, one, fits=e),
            scalar("beta", kind, one, fits=e),
        )

    def backward_a(self) -> MatmulDescriptor:
        """Gradient of a: its plan takes a=dout and b=b with the last two dimensions exchanged.

        With an activation dout is the gradient of what it was given: GeluBackwardDescriptor and its kin make that from the
        output's and the sum without an activation.
        """
        b = _exchanged(self.b_shape)
        return MatmulDescriptor(self.output_shape(), b, self.element, batch_shape=self.a_shape[:-2])

    def backward_b(self) -> MatmulDescriptor:
        """Gradient of b: its plan takes a=a with the last two dimensions exchanged and b=dout, as backward_a."""
        a = _exchanged(self.a_shape)
        return MatmulDescriptor(a, self.output_shape(), self.element, batch_shape=self.b_shape[:-2])


OPS = (Op("matmul", MatmulDescriptor, MatmulDescriptor, "out = act(alpha * a @ b + beta * c + bias)"),)


_Views: TypeAlias = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]


def common_batch(desc: Descriptor, a_shape: Shape, b_shape: Shape) -> Shape:
    """The batch dimensions of a product, broadcast; raises what is wrong with the factors' shapes."""
    for field, shape in (("a_shape", a_shape), ("b_shape", b_shape)):
        if len(shape) < 2:
            raise desc.wrong(field, shape, "at least two dimensions; insert one of size 1 for a vector")
    if a_shape[-1] != b_shape[-2]:
        want = f"{a_shape[-1]} in dimension -2, as a_shape {shape_text(a_shape)} has last"
        raise desc.wrong("b_shape", b_shape, want)
    a, b = a_shape[:-2], b_shape[:-2]
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    sizes: list[Size] = []
    for x, y in zip(a, b, strict=True):
        if x != y and 1 not in (x, y):
            want = f"batch dimensions that broadcast with those of a_shape {shape_text(a_shape)}"
            raise desc.wrong("b_shape", b_shape, want)
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


def broadcasts_to(shape: Shape, to: Shape) -> bool:
    """Whether a shape broadcasts to another one."""
    return len(shape) <= len(to) and all(s in (1, t) for s, t in zip(shape[::-1], to[::-1], strict=False))


def _exchanged(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def _transposed(x: Arg) -> Arg:
    if x.rank < 2:
        raise InvalidProblemError(f"matmul: got a matrix of shape {x.shape}, want at least 2 dimensions.")
    return x.permute(*range(x.rank - 2), x.rank - 1, x.rank - 2)


def _check(name: str, ranks: dict[str, tuple[Arg, int]], *others: Arg | None) -> None:
    for arg, (x, rank) in ranks.items():
        if x.rank != rank:
            raise InvalidProblemError(f"{name}: got {arg} of shape {x.shape}, want {rank} dimensions.")
    tensors = [x for x, _ in ranks.values()] + [x for x in others if x is not None]
    if len({x.element for x in tensors}) > 1:
        got = ", ".join(f"{x.name}: {x.element}" for x in tensors)
        raise InvalidProblemError(f"{name}: got {got}, want one element for all. Cast the others first.")


def _product(call: Call, a: Arg, b: Arg, activation: str = "none") -> Recipe:
    """The product as torch.matmul understands it: vectors get a dimension that the result does not have."""
    if a.rank == 0 or b.rank == 0:
        raise InvalidProblemError(f"matmul: got shapes {a.shape} and {b.shape}, want at least one dimension each.")
    row, column = a.rank == 1, b.rank == 1
    a, b = a.insert(0) if row else a, b.insert(1) if column else b
    desc = MatmulDescriptor(a.shape, b.shape, a.element, activation=activation)  # type: ignore[arg-type]
    full = tuple(map(largest, desc.output_shape()))
    kept = [i for i in range(len(full)) if not (row and i == len(full) - 2) and not (column and i == len(full) - 1)]
    dims = tuple(kept.index(i) if i in kept else -1 for i in range(len(full)))
    return call(desc, views={"out": (tuple(full[i] for i in kept), dims)} if row or column else None, a=a, b=b)


@function(tensors="input other")
def matmul(call: Call, input: Arg, other: Arg, *, activation: str = "none", out: Arg | None = None) -> Recipe:
    """Matrix product as torch.matmul: batches broadcast; vectors are rows on the left, columns on the right.

    `activation` ("relu", "gelu", "gelu_tanh" or "silu") is applied to the sums before they are rounded.
    """
    _check("matmul", {}, input, other)
    return _product(call, input, other, activation)


@made_of("matmul")
@function(tensors="input mat2")
def mm(call: Call, input: Arg, mat2: Arg, *, out: Arg | None = None) -> Recipe:
    """The product of two matrices, as torch.mm."""
    _check("mm", {"input": (input, 2), "mat2": (mat2, 2)})
    return _product(call, input, mat2)


@made_of("matmul")
@function(tensors="input mat2")
def bmm(call: Call, input: Arg, mat2: Arg, *, out: Arg | None = None) -> Recipe:
    """Products of two batches of matrices of the same length, as torch.bmm."""
    _check("bmm", {"input": (input, 3), "mat2": (mat2, 3)})
    if input.shape[0] != mat2.shape[0]:
        got = f"bmm: got batches {input.shape[0]} and {mat2.shape[0]}"
        raise InvalidProblemError(f"{got}, want the same. matmul broadcasts.")
    return _product(call, input, mat2)


@made_of("matmul")
@function(tensors="input vec")
def mv(call: Call, input: Arg, vec: Arg, *, out: Arg | None = None) -> Recipe:
    """Matrix times vector, as torch.mv."""
    _check("mv", {"input": (input, 2), "vec": (vec, 1)})
    return _product(call, input, vec)


@made_of("matmul")
@function(tensors="input tensor")
def dot(call: Call, input: Arg, tensor: Arg, *, out: Arg | None = None) -> Recipe:
    """Sum of the products of two vectors, as torch.dot."""
    _check("dot", {"input": (input, 1), "tensor": (tensor, 1)})
    return _product(call, input, tensor)


@made_of("matmul")
@function(tensors="input other")
def vdot(call: Call, input: Arg, other: Arg, *, out: Arg | None = None) -> Recipe:
    """Sum of the products of two vectors, as torch.vdot: the same as dot for real numbers."""
    _check("vdot", {"input": (input, 1), "other": (other, 1)})
    return _product(call, input, other)


@made_of("matmul")
@function(tensors="input mat1 mat2", scalars="beta alpha")
def addmm(
    call: Call, input: Arg, mat1: Arg, mat2: Arg, *, beta: float = 1, alpha: float = 1, out: Arg | None = None
) -> Recipe:
    """Gives beta * input + alpha * mat1 @ mat2, as torch.addmm; `input` broadcasts, and is not read when beta is 0."""
    _check("addmm", {"mat1": (mat1, 2), "mat2": (mat2, 2)}, input)
    desc = MatmulDescriptor(mat1.shape, mat2.shape, mat1.element, c_shape=input.shape)
    return call(desc, a=mat1, b=mat2, c=input, beta=beta, alpha=alpha)


@made_of("matmul")
@function(tensors="input batch1 batch2", scalars="beta alpha")
def baddbmm(
    call: Call, input: Arg, batch1: Arg, batch2: Arg, *, beta: float = 1, alpha: float = 1, out: Arg | None = None
) -> Recipe:
    """Gives beta * input + alpha * batch1 @ batch2 for batches of matrices, as torch.baddbmm; `input` broadcasts."""
    _check("baddbmm", {"batch1": (batch1, 3), "batch2": (batch2, 3)}, input)
    if batch1.shape[0] != batch2.shape[0]:
        raise InvalidProblemError(f"baddbmm: got batches {batch1.shape[0]} and {batch2.shape[0]}, want the same.")
    desc = MatmulDescriptor(batch1.shape, batch2.shape, batch1.element, c_shape=input.shape)
    return call(desc, a=batch1, b=batch2, c=input, beta=beta, alpha=alpha)


@made_of("matmul")
@function(tensors="input batch1 batch2", scalars="beta alpha")
def addbmm(
    call: Call, input: Arg, batch1: Arg, batch2: Arg, *, beta: float = 1, alpha: float = 1, out: Arg | None = None
) -> Recipe:
    """Gives beta * input + alpha * (sum over the batch of batch1 @ batch2), as torch.addbmm; `input` broadcasts."""
    _check("addbmm", {"batch1": (batch1, 3), "batch2": (batch2, 3)}, input)
    if batch1.shape[0] != batch2.shape[0]:
        raise InvalidProblemError(f"addbmm: got batches {batch1.shape[0]} and {batch2.shape[0]}, want the same.")
    desc = MatmulDescriptor(batch1.shape, batch2.shape, batch1.element, c_shape=input.shape, batch_shape=())
    return call(desc, a=batch1, b=batch2, c=input, beta=beta, alpha=alpha)


@made_of("matmul")
@function(tensors="input mat vec", scalars="beta alpha")
def addmv(
    call: Call, input: Arg, mat: Arg, vec: Arg, *, beta: float = 1, alpha: float = 1, out: Arg | None = None
) -> Recipe:
    """Gives beta * input + alpha * mat @ vec, as torch.addmv; `input` broadcasts."""
    _check("addmv", {"mat": (mat, 2), "vec": (vec, 1)}, input)
    c, column = input.insert(input.rank), vec.insert(1)
    desc = MatmulDescriptor(mat.shape, column.shape, mat.element, c_shape=c.shape)
    views: _Views = {"out": ((mat.shape[0],), (0, -1))}
    return call(desc, views=views, a=mat, b=column, c=c, beta=beta, alpha=alpha)


@made_of("matmul")
@function(tensors="input weight bias")
def linear(call: Call, input: Arg, weight: Arg, bias: Arg | None = None, *, activation: str = "none") -> Recipe:
    """Gives input @ weight.T + bias over the last dimension, as torch.nn.functional.linear.

    `activation` ("relu", "gelu", "gelu_tanh" or "silu") is applied to the sums before they are rounded. Its gradient
    computes the sums once more, but for relu, whose result tells enough.
    """
    _check("linear", {"weight": (weight, 2)}, input, bias)
    if input.rank == 0 or input.shape[-1] != weight.shape[1]:
        got = f"linear: got input {input.shape} and weight {weight.shape}"
        raise InvalidProblemError(f"{got}, want input (..., {weight.shape[1]}).")
    if bias is not None and bias.shape != weight.shape[:1]:
        got = f"linear: got bias {bias.shape}"
        raise InvalidProblemError(f"{got}, want {weight.shape[:1]} as weight {weight.shape} has rows.")
    a, b = input.insert(0) if input.rank == 1 else input, weight.permute(1, 0)
    desc = MatmulDescriptor(a.shape, b.shape, a.element, bias is not None, activation=activation)  # type: ignore[arg-type]
    views: _Views | None = {"out": (weight.shape[:1], (-1, 0))} if input.rank == 1 else None
    return call(desc, views=views, a=a, b=b, bias=bias) if bias is not None else call(desc, views=views, a=a, b=b)


def _matrix_views(dy: Arg, input: Arg, other: Arg) -> tuple[Arg, Arg, Arg]:
    """Arguments of matmul's gradient with the dimensions that vectors lack put back."""
    if other.rank == 1:
        other, dy = other.insert(1), dy.insert(dy.rank)
    if input.rank == 1:
        input, dy = input.insert(0), dy.insert(dy.rank - 1)
    return dy, input, other


def _gradient(call: Call, a: Arg, b: Arg, like: Arg, vector: int | None, alpha: Any = 1) -> Recipe:
    """The product summed to the batch of `like`; `vector` is the dimension that the result does not have."""
    desc = MatmulDescriptor(a.shape, b.shape, a.element, batch_shape=like.shape[:-2])
    views: _Views | None = None
    if vector is not None:
        views = {"out": ((like.shape[1 - vector],), (-1, 0) if vector == 0 else (0, -1))}
    return call(desc, views=views, a=a, b=b, alpha=alpha)


@function(tensors="dy input other", scalars="alpha")
def _input_gradient(call: Call, dy: Arg, input: Arg, other: Arg, alpha: Any = 1) -> Recipe:
    vector = 0 if input.rank == 1 else None
    dy, input, other = _matrix_views(dy, input, other)
    return _gradient(call, dy, _transposed(other), input, vector, alpha)


@function(tensors="dy input other", scalars="alpha")
def _other_gradient(call: Call, dy: Arg, input: Arg, other: Arg, alpha: Any = 1) -> Recipe:
    vector = 1 if other.rank == 1 else None
    dy, input, other = _matrix_views(dy, input, other)
    return _gradient(call, _transposed(input), dy, other, vector, alpha)


@function(tensors="dy input weight")
def _linear_input_gradient(call: Call, dy: Arg, input: Arg, weight: Arg) -> Recipe:
    vector = 0 if input.rank == 1 else None
    dy, input = (dy.insert(0), input.insert(0)) if input.rank == 1 else (dy, input)
    return _gradient(call, dy, weight, input, vector)


@function(tensors="dy input weight")
def _linear_weight_gradient(call: Call, dy: Arg, input: Arg, weight: Arg) -> Recipe:
    dy, input = (dy.insert(0), input.insert(0)) if input.rank == 1 else (dy, input)
    return _gradient(call, _transposed(dy), input, weight, None)


@made_of("matmul")
@composed(tensors="dy input other")
def matmul_backward(c: Composer, dy: Value, input: Value, other: Value) -> tuple[Value, Value]:
    """Gradients (dinput, dother) of matmul, summed over the dimensions that it broadcast."""
    return c.of(_input_gradient, dy, input, other), c.of(_other_gradient, dy, input, other)


def scaled_gradients(dy: Any, input: Any, other: Any, alpha: Any) -> tuple[Any, Any]:
    """Those of alpha * input @ other."""
    return _input_gradient(dy, input, other, alpha), _other_gradient(dy, input, other, alpha)


@made_of("matmul sum copy")
@composed(tensors="dy input weight bias")
def linear_backward(
    c: Composer, dy: Value, input: Value, weight: Value, bias: Value | None = None
) -> tuple[Value, ...]:
    """Gradients (dinput, dweight) of linear, and dbias where there is a `bias`."""
    from baracuda import functional

    made = c.of(_linear_input_gradient, dy, input, weight), c.of(_linear_weight_gradient, dy, input, weight)
    if bias is None:
        return made
    rows = tuple(range(dy.rank - 1))
    return (*made, c.of(functional.sum, dy, rows) if rows else dy)


def _before_activation(dy: Any, activation: str, y: Any, sums: Callable[[], Any]) -> Any:
    """The gradient of what the activation was given; `sums` computes that, where the result `y` does not tell enough."""
    from baracuda import functional

    if activation == "none":
        return dy
    if activation == "relu":
        return functional.relu_backward(dy, y)
    if activation == "silu":
        return functional.silu_backward(dy, sums())
    return functional.gelu_backward(dy, sums(), "tanh" if activation == "gelu_tanh" else "none")


def _pull_of_product(input: Any, other: Any, inner: Callable[[Any], Any], second: str = "other") -> Pull:
    """How a product is pulled back.

    Args:
        input: The first factor.
        other: The second factor.
        inner: Gives the gradient of the product itself from that of the result.
        second: What the function calls the second factor.
    """
    each = {"input": _input_gradient, second: _other_gradient}

    def some(dy: Any, names: Sequence[str]) -> list[Any]:
        dy = inner(dy)
        return [each[name](dy, input, other) for name in names]

    return Pull(lambda dy: matmul_backward(inner(dy), input, other), some)


def _product_rule(forward: Any) -> None:
    second = list(forward.__signature__.parameters)[1]

    @forward.vjp  # type: ignore[untyped-decorator]
    def rule(input: Any, other: Any) -> tuple[Any, Any]:
        return forward(input, other), _pull_of_product(input, other, lambda dy: dy, second)


for _forward in (mm, bmm, mv, dot, vdot):
    _product_rule(_forward)


def _addend_rule(forward: Any) -> None:
    @forward.vjp  # type: ignore[untyped-decorator]
    def rule(input: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1) -> tuple[Any, Any]:
        from baracuda import functional as F

        def pull_input(dy: Any) -> Any:
            dinput = F.sum_to(dy, tuple(input.shape))
            return dinput if beta == 1 else F.mul(dinput, beta)

        first, second = list(forward.__signature__.parameters)[1:3]
        each: dict[str, Callable[[Any], Any]] = {
            "input": pull_input,
            first: lambda dy: _input_gradient(dy, left, right, alpha),
            second: lambda dy: _other_gradient(dy, left, right, alpha),
        }

        def some(dy: Any, names: Sequence[str]) -> list[Any]:
            return [each[name](dy) for name in names]

        return forward(input, left, right, beta=beta, alpha=alpha), Pull(lambda dy: tuple(some(dy, list(each))), some)


for _forward in (addmm, baddbmm, addbmm, addmv):
    _addend_rule(_forward)


@matmul.vjp
def _matmul_rule(input: Any, other: Any, *, activation: str = "none") -> tuple[Any, Any]:
    y = matmul(input, other, activation=activation)

    def inner(dy: Any) -> Any:
        return _before_activation(dy, activation, y, lambda: matmul(input, other))

    return y, _pull_of_product(input, other, inner)


def _sum_of_rows(dy: Any) -> Any:
    from baracuda import functional

    return functional.sum_to(dy, tuple(dy.shape)[-1:])


@linear.vjp
def _linear_rule(input: Any, weight: Any, bias: Any = None, *, activation: str = "none") -> tuple[Any, Any]:
    y = linear(input, weight, bias, activation=activation)

    def inner(dy: Any) -> Any:
        return _before_activation(dy, activation, y, lambda: linear(input, weight, bias))

    each: dict[str, Callable[[Any], Any]] = {
        "input": lambda dy: _linear_input_gradient(dy, input, weight),
        "weight": lambda dy: _linear_weight_gradient(dy, input, weight),
        "bias": _sum_of_rows,
    }

    def some(dy: Any, names: Sequence[str]) -> list[Any]:
        dy = inner(dy)
        return [each[name](dy) for name in names]

    return y, Pull(lambda dy: linear_backward(inner(dy), input, weight, bias), some)
