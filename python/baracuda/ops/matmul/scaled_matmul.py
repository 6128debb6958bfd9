"""Products of 8-bit elements with scales. Kernels in csrc/ops/matmul, reference in scaled_matmul_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.matmul.matmul import Activation, broadcasts_to, common_batch
from baracuda.ops.matmul.scaled_parts import BYTES, blocks_product, check_parts, finished, in_blocks, whole_product

MOST_TERMS = 2**17 - 1  # products of 8-bit integers whose sum always fits 32 bits
OUTPUTS = {
    Element.I8: (Element.I32, Element.F32, Element.F16, Element.BF16),
    Element.F8E4M3: (Element.F32, Element.F16, Element.BF16),
}


@descriptor(family="matmul", op="scaled_matmul", enums={"activation": Activation})
class ScaledMatmulDescriptor(Descriptor):
    """out = act(scale_a * scale_b * (a @ b) + bias), for a batch of matrices of 8-bit elements.

    Sums of i8 are exact: modulo 2^32 in an i32 output, which is neither scaled nor activated; for other outputs they are
    rounded to f32 once, then by each scale and the bias. Sums of f8e4m3 are accumulated in f32, NaN stays NaN. One
    rounding to the output's element ends it. For an output of floats from i8 the error bound's sum of |terms| is the size
    of the scaled sum and of the bias, with K = 1. With an activation it counts 1.13 times, and with it the size of what the
    activation is given, 3 times for i8.

    Args:
        a_shape: (..., M, K), rank 2-8.
        b_shape: (..., K, N); batch dimensions broadcast with those of a.
        element: i8 or f8e4m3, of a and b.
        output_element: Of out and bias: i32 (for i8), f32, f16 or bf16.
        scale_a_shape: Shape of the f32 tensor `scale_a`, which broadcasts to (..., M, 1): () is one scale for all, (M, 1)
            one for each row. None: there is none.
        scale_b_shape: Shape of the f32 tensor `scale_b`, which broadcasts to (..., 1, N).
        bias: There is a `bias` of shape (N,), added to every row.
        activation: As in MatmulDescriptor; "none" with an i32 output.
    """

    a_shape: Shape
    b_shape: Shape
    element: Element
    output_element: Element
    scale_a_shape: Shape | None = None
    scale_b_shape: Shape | None = None
    bias: bool = False
    activation: Activation = Activation.NONE

    def attributes(self) -> dict[str, int | float]:
        return {"activation": self.activation.code}

    def aux_element(self) -> Element:
        return self.output_element

    def validate(self) -> None:
        """Shapes fit each other, elements are those that there are, and integers have neither scales nor activation."""
        batch = common_batch(self, self.a_shape, self.b_shape)
        if self.element not in OUTPUTS:
            raise self.wrong("element", self.element, "i8 or f8e4m3")
        if self.output_element not in OUTPUTS[self.element]:
            want = f"one of {', '.join(map(str, OUTPUTS[self.element]))} for {self.element}"
            raise self.wrong("output_element", self.output_element, want)
        full = {"scale_a_shape": (*batch, self.a_shape[-2], 1), "scale_b_shape": (*batch, 1, self.b_shape[-1])}
        for field, to in full.items():
            shape = getattr(self, field)
            if shape is not None and not broadcasts_to(shape, to):
                raise self.wrong(field, shape, f"a shape that broadcasts to {shape_text(to)}")
        if self.output_element is Element.I32:
            for field in full:
                if getattr(self, field) is not None:
                    raise self.wrong(field, getattr(self, field), "None with an i32 output")
            if self.activation is not Activation.NONE:
                raise self.wrong("activation", self.activation.value, "none with an i32 output")
        elif self.element is Element.I8 and largest(self.a_shape[-1]) > MOST_TERMS:
            want = f"at most {MOST_TERMS} products of i8, whose sum fits 32 bits"
            raise self.wrong("a_shape", self.a_shape, want)

    def output_shape(self) -> Shape:
        """(..., M, N)."""
        return (*common_batch(self, self.a_shape, self.b_shape), self.a_shape[-2], self.b_shape[-1])

    def signature(self) -> Signature:
        scales = {"scale_a": self.scale_a_shape, "scale_b": self.scale_b_shape}
        return Signature(
            tensor("a", self.a_shape, self.element),
            tensor("b", self.b_shape, self.element),
            *(tensor(n, s or (), Element.F32, present=s is not None) for n, s in scales.items()),
            tensor("bias", (self.b_shape[-1],), self.output_element, present=self.bias),
            output("out", self.output_shape(), self.output_element),
        )


OPS = (
    Op(
        "scaled_matmul",
        ScaledMatmulDescriptor,
        NotDifferentiable("8-bit elements are what values were rounded to: take the gradient of the values' product"),
        "out = act(scale_a * scale_b * (a @ b) + bias), of i8 or f8e4m3",
    ),
)


def _shape(scale: Arg | Value | None) -> Shape | None:
    return None if scale is None else scale.shape


def _by_blocks(c: Composer, *given: Any, made: Any) -> Value:
    """With scales for blocks."""
    left, right, scale_a, scale_b, bias, zero_a, zero_b = given
    if zero_a is not None or zero_b is not None:
        want = "none with scales for blocks of K: dequantize_linear takes both"
        raise InvalidProblemError(f"scaled_matmul: zero_a, zero_b: got zero points, want {want}.")
    return finished(c, blocks_product(c, left, right, (scale_a, scale_b)), bias, made[1], made[0] or Element.F32)


def _by_zeros(c: Composer, *given: Any, made: Any) -> Value:
    """With zero points, or of bytes."""
    from baracuda import functional

    left, right, scale_a, scale_b, bias, zero_a, zero_b = given
    check_parts("scaled_matmul", left, right, {"zero_a": zero_a, "zero_b": zero_b})
    ScaledMatmulDescriptor(  # which refuses scales that do not fit
        left.shape, right.shape, Element.I8, Element.F32, _shape(scale_a), _shape(scale_b)
    )
    product = whole_product(c, left, right, zero_a, zero_b)
    scales = [s for s in (scale_a, scale_b) if s is not None]
    element = made[0] or (Element.F32 if scales else Element.I32)
    if element is Element.I32:
        if scales or bias is not None or made[1] != "none":
            raise InvalidProblemError(
                "scaled_matmul: out_dtype: got i32, want f32, f16 or bf16 with scales, bias or activation."
            )
        return product
    y = c.cast(product, Element.F32)
    for scale in scales:
        y = c.of(functional.mul, y, scale)
    return finished(c, y, bias, made[1], element)


@made_of("scaled_matmul dequantize_linear matmul cast sub mul sum bitwise_xor add relu silu gelu")
@function(tensors="input other scale_a scale_b bias zero_a zero_b")
def scaled_matmul(
    call: Call,
    input: Arg,
    other: Arg,
    scale_a: Arg | None = None,
    scale_b: Arg | None = None,
    bias: Arg | None = None,
    zero_a: Arg | None = None,
    zero_b: Arg | None = None,
    *,
    out_dtype: Any = None,
    activation: str = "none",
    out: Arg | None = None,
) -> Recipe:
    """Gives act(scale_a * scale_b * (input @ other) + bias) for i8 or float8_e4m3fn factors, in one kernel.

    `scale_a` broadcasts to (..., M, 1) and `scale_b` to (..., 1, N); `out_dtype` is int32 for i8 without scales and float32
    otherwise, or float16 or bfloat16. `other.T` of a weight stored (N, K) is the layout that libraries multiply.

    Scales may also stand for blocks of K, as the sizes of `scale_a` (..., M, K / 128) and `scale_b` (..., K / 128, N / 128) divide those of
    the factors (i8, u8, f8e4m3 or f8e5m2): the values are then found, and multiplied, in f32. With zero points of their factor's
    element, `zero_a` of (..., M, 1) and `zero_b` of (..., 1, N), or where a factor is u8, (input - zero_a) @ (other - zero_b)
    is summed exactly (of at most 33025 products). Both are several kernels.
    """
    for scale in (scale_a, scale_b):
        if scale is not None and (not scale.is_tensor or scale.element is not Element.F32):
            got = str(scale.element) if scale.is_tensor else "a number"
            want = "an f32 tensor. np.asarray(x, np.float32) makes one of a number"
            raise InvalidProblemError(f"scaled_matmul: got {scale.name} of {got}, want {want}.")
    made = None if out_dtype is None else Element.coerce(out_dtype, "scaled_matmul: out_dtype")
    options: Any = (made, Activation(activation).value)
    if (
        in_blocks(_shape(scale_a), input.shape, -1)
        or in_blocks(_shape(scale_b), other.shape, -2)
        or Element.F8E5M2 in (input.element, other.element)
    ):
        return call.steps(_by_blocks, input, other, scale_a, scale_b, bias, zero_a, zero_b, made=options)
    if zero_a is not None or zero_b is not None or {input.element, other.element} in ({*BYTES}, {Element.U8}):
        return call.steps(_by_zeros, input, other, scale_a, scale_b, bias, zero_a, zero_b, made=options)
    if input.element is not other.element:
        got = f"got input of {input.element} and other of {other.element}"
        raise InvalidProblemError(f"scaled_matmul: {got}, want one element for both. Cast one of them first.")
    whole = input.element is Element.I8 and scale_a is None and scale_b is None
    element = Element.I32 if whole else Element.F32
    desc = ScaledMatmulDescriptor(
        input.shape,
        other.shape,
        input.element,
        element if out_dtype is None else Element.coerce(out_dtype, "scaled_matmul: out_dtype"),
        None if scale_a is None else scale_a.shape,
        None if scale_b is None else scale_b.shape,
        bias is not None,
        activation,  # type: ignore[arg-type]
    )
    given: dict[str, Any] = {"scale_a": scale_a, "scale_b": scale_b, "bias": bias}
    return call(desc, a=input, b=other, **{k: v for k, v in given.items() if v is not None})


@made_of("scaled_matmul")
@function(tensors="input mat2")
def int_mm(call: Call, input: Arg, mat2: Arg, *, out: Arg | None = None) -> Recipe:
    """The product of two matrices of int8 in int32, exact, as torch._int_mm."""
    for x in (input, mat2):
        if x.element is not Element.I8 or x.rank != 2:
            raise InvalidProblemError(f"int_mm: got {x.name} of {x.element} {x.shape}, want int8 and 2 dimensions.")
    return call(ScaledMatmulDescriptor(input.shape, mat2.shape, Element.I8, Element.I32), a=input, b=mat2)
