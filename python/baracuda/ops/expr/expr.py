"""Fused expressions: functions of elements as one kernel. Kernels in csrc/ops/expr, reference in expr_ref.py.

`bc.expr.fuse` writes the programs; see docs/expr.md.
"""

from __future__ import annotations

from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor

MAX_INPUTS, MAX_OUTPUTS = 16, 8  # as in csrc/ops/expr/program.h


@descriptor(family="expr", op="expr")
class ExprDescriptor(Descriptor):
    """y0, y1, ... = the outputs of a program of elementwise functions of x0, x1, ..., which broadcast, and of sums of them.

    The results are, bit for bit, what the functions give one after the other in the compute type: halves are f32 in
    between and rounded when they are stored. Integers wrap and bool is 0 or 1 after every function.

    Args:
        program: Instructions such as "inputs 2; add f32 0 1; relu f32 2; out 3;". Values are numbered: inputs, then one
            for each instruction, which names a function of the SKU table, the element that it computes in, and its
            operands. "number f32 0.5" is a constant, "cast bf16 2" the stored element's value, "out 3" the next output. "sum
            f32 4 2" (mean, amax, amin, prod) reduces value 4 over the last 2 axes of what the inputs broadcast to, in the
            order of the function of that name; functions take what is reduced as one value all along the row.
        shape: Shape of the outputs, rank 0-8.
        shapes: Shapes of the inputs, 1 to 16 of them; each broadcasts to `shape`.
        elements: Elements of the inputs: any real ones.
        results: Elements of the outputs, 1 to 8 of them, as the program makes them.
        reduced: For each output how many of the last axes it is one value along: 0 for none of them, negative where they
            stay with size 1. Left out where there is no such output.
    """

    program: str
    shape: Shape
    shapes: tuple[Shape, ...]
    elements: tuple[Element, ...]
    results: tuple[Element, ...]
    reduced: tuple[int, ...] = ()

    def validate(self) -> None:
        if not 1 <= len(self.shapes) <= MAX_INPUTS:
            raise self.wrong("shapes", len(self.shapes), f"1 to {MAX_INPUTS} inputs: fuse parts of the expression")
        if len(self.elements) != len(self.shapes):
            raise self.wrong("elements", len(self.elements), f"as many as shapes, {len(self.shapes)}")
        if not 1 <= len(self.results) <= MAX_OUTPUTS:
            raise self.wrong("results", len(self.results), f"1 to {MAX_OUTPUTS} outputs: fuse parts of the expression")

        if self.reduced and len(self.reduced) != len(self.results):
            raise self.wrong("reduced", self.reduced, f"one number for each of {len(self.results)} results")
        if any(abs(n) > len(self.shape) for n in self.reduced):
            raise self.wrong("reduced", self.reduced, f"at most the {len(self.shape)} axes that there are")

    def primary_element(self) -> Element:
        return self.results[0]

    def signature(self) -> Signature:
        inputs = [
            tensor(f"x{k}", s, e, reads=e is not self.results[0])
            for k, (s, e) in enumerate(zip(self.shapes, self.elements, strict=True))
        ]
        reduced = self.reduced or (0,) * len(self.results)
        outputs = [
            output(f"y{k}", reduced_shape(self.shape, n), e)
            for k, (e, n) in enumerate(zip(self.results, reduced, strict=True))
        ]
        return Signature(*inputs, *_NO_INPUTS[len(inputs) :], *outputs, *_NO_OUTPUTS[len(outputs) :])


def reduced_shape(shape: Shape, axes: int) -> Shape:
    """Without the last axes, or with size 1 for them where their number is negative."""
    kept = shape[: len(shape) - abs(axes)]
    return kept if axes >= 0 else (*kept, *(1,) * -axes)


_NO_INPUTS = tuple(tensor(f"x{k}", (), Element.F32, present=False) for k in range(MAX_INPUTS))
_NO_OUTPUTS = tuple(output(f"y{k}", (), Element.F32, present=False) for k in range(MAX_OUTPUTS))

OPS = (
    Op(
        "expr",
        ExprDescriptor,
        NotDifferentiable("the gradient is another expression: bc.expr.fuse(fn).grad"),
        "y = a program of elementwise functions",
    ),
)
