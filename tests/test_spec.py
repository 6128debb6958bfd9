"""How descriptors are declared: frames, axes, gradients, and functions that are pulled back by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Kinded, Signature, descriptor, frame, output, tensor


@frame
class Rows(Kinded):
    __slots__ = ()
    shape: Shape
    axis: int = -1
    axis_of = "shape"

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, Element.F32), output("y", self.shape, Element.F32))

    def attributes(self) -> dict[str, int | float]:
        return {"axis": self.axis}


@descriptor(family="none", kinds=("a", "b"))
class OneDescriptor(Rows):
    extra: int = 3

    def attributes(self) -> dict[str, int | float]:
        return {**Rows.attributes(self), "extra": self.extra}


@descriptor(gradient_of=OneDescriptor, kinds=("a",))
class OneBackwardDescriptor(Rows):
    accumulate: bool = False


def test_fields_of_frames_come_first() -> None:
    assert [f.name for f in fields(OneDescriptor)] == ["kind", "shape", "axis", "extra"]  # type: ignore[arg-type]
    made = OneDescriptor("a", (3, 4), 0, 7)
    assert repr(made) == "OneDescriptor(kind='a', shape=(3, 4), axis=0, extra=7)"
    assert made.attributes() == {"axis": 0, "extra": 7}
    assert made == OneDescriptor.from_dict(made.to_dict())
    assert not hasattr(made, "__dict__")
    with pytest.raises(AttributeError):
        made.axis = 1  # type: ignore[misc]


def test_axes_are_checked_and_counted_from_the_start() -> None:
    assert OneDescriptor("a", (3, 4)).axis == 1
    assert OneDescriptor("a", ()).axis == 0
    with pytest.raises(bc.InvalidProblemError, match=r"OneDescriptor\.axis: got 2"):
        OneDescriptor("a", (3, 4), 2)


def test_a_gradient_has_the_fields_that_both_have() -> None:
    made: Any = OneDescriptor("a", (3, 4), 0, 7).backward()
    assert made == OneBackwardDescriptor("a", (3, 4), 0)
    assert (made.family, made.direction, made.accumulate) == ("none", "backward", False)
    with pytest.raises(bc.InvalidProblemError, match="kind"):
        OneDescriptor("b", (3, 4)).backward()
    with pytest.raises(bc.InvalidProblemError, match="no gradient"):
        made.backward()


def test_gradients_that_are_declared_are_those_of_the_ops(op_spec: Any) -> None:
    if op_spec.forward.gradient_class is not None and isinstance(op_spec.backward, type):
        assert op_spec.backward is op_spec.forward.gradient_class


def test_pulled_by_gives_what_the_gradient_names() -> None:
    x = np.array([[1.0, 5.0, 2.0]])
    (low, high), pull = bc.vjp(F.aminmax, x, dim=1)
    assert (low, high) == (1, 5)
    np.testing.assert_array_equal(pull((np.array([10.0]), np.array([20.0]))), [[10, 20, 0]])
    y, pull = bc.vjp(F.std, x, 1, keepdim=True)
    np.testing.assert_allclose(pull(np.ones_like(y)), F.std_backward(np.ones_like(y), x, y, 1, 1, True))
