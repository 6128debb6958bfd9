"""The quantizing epilogue: what descriptors of kernels have in common that write codes of their results.

Codes are those of dynamic_quantize (symmetric) and quantize_linear for the results in f32, before they are rounded to an element: the codes
of the rounded ones for f32, and within one of them where halves are normal numbers.
"""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer
from baracuda.call.op import Arg, Call, NotDifferentiable, Recipe
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, output, tensor
from baracuda.ops.quant.scaled import CODED, EIGHTS, laid

OPS = ()
WHOLE = NotDifferentiable("codes do not change with the input")
CODES = (Element.I8, *EIGHTS)


def check_codes(
    desc: Descriptor, shape: Shape, element: Element, code: Element, group: int | None, given: bool
) -> None:
    """Refuses elements, codes and groups that there are not."""
    if element not in CODED:
        raise desc.wrong("element", element, "f32, f16 or bf16")
    if code not in CODES:
        raise desc.wrong("code_element", code, "i8, f8e4m3 or f8e5m2")
    if not shape:
        raise desc.wrong("input_shape", shape, "at least one dimension")
    if group is None:
        return
    if given:
        raise desc.wrong("group", group, "None with a scale that is given, which is one for all")
    last = shape[-1]
    if group < 1 or not isinstance(last, int) or last % group:
        raise desc.wrong("group", group, f"a divisor of the last size, {last}, or None for one scale a row")


def coded_params(shape: Shape, code: Element, group: int | None, given: bool) -> tuple[Param, Param, Param]:
    """The arguments: a scale that is given, codes, and scales that are found."""
    last = shape[-1] if shape else 1
    groups = last // group if group is not None and isinstance(last, int) else 1
    return (
        tensor("given", (), Element.F32, present=given),
        output("y", shape, code),
        output("scale", (*shape[:-1], groups), Element.F32, present=not given),
    )


def code_of(name: str, dtype: Any) -> Element:
    """The element of codes that a function is asked for."""
    code = Element.coerce(dtype, f"{name}: dtype")
    if code not in CODES:
        raise InvalidProblemError(f"{name}: dtype: got {code}, want i8, f8e4m3 or f8e5m2.")
    return code


def coded(call: Call, desc: Descriptor, scale: Arg | None, **given: Any) -> Recipe:
    """A call of a plan with the epilogue; its scale may be a tensor of one number, or a number."""
    if scale is None or (scale.is_tensor and scale.shape == () and scale.element is Element.F32):
        return call(desc, given=scale, **given)
    if scale.is_tensor and any(n != 1 for n in scale.shape):
        raise InvalidProblemError(f"scale: got shape {scale.shape}, want one number for all values.")
    names = [n for n, x in given.items() if x is not None]

    def steps(c: Composer, one: Any, *values: Any) -> Any:
        return c(desc, given=laid(c, one, (), Element.F32), **dict(zip(names, values, strict=True)))

    return call.steps(steps, scale, *(given[n] for n in names))
