"""Descriptors, preferences, arguments of select and serialised plans that are wrong are refused with words that help."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import directions, valid_call

import baracuda as bc
import baracuda.functional as F

OPS = pytest.mark.parametrize(("op", "direction"), directions())


def test_odd_split_and_products_past_2_63() -> None:
    with pytest.raises(bc.InvalidProblemError, match="even"):
        bc.GatedActivationDescriptor("glu", (4, 7))
    with pytest.raises(bc.InvalidProblemError, match="even"):
        bc.GatedActivationDescriptor("glu", (4, bc.Dim("n", 8)))
    with pytest.raises(bc.InvalidProblemError, match="2\\*\\*59"):
        bc.GatedActivationDescriptor("glu", (2**32, 2**32))
    with pytest.raises(bc.InvalidProblemError, match="rank 9"):
        bc.GatedActivationDescriptor("glu", (2,) * 9)
    with pytest.raises(bc.InvalidProblemError, match="at least 0"):
        bc.GatedActivationDescriptor("glu", (-2, 2))
    with pytest.raises(bc.InvalidProblemError, match=r"rank 0|dimension"):
        bc.GatedActivationDescriptor("glu", ())
    with pytest.raises(bc.InvalidProblemError, match="maximum per name"):
        bc.GatedActivationDescriptor("glu", (bc.Dim("n", 4), 2 * bc.Dim("n", 8)))
    with pytest.raises(bc.InvalidProblemError, match="at most 8"):
        bc.empty((1,) * 9)


@pytest.mark.parametrize(
    "bad", [{"max": -1}, {"max": 2.5}, {"max": True}, {"max": 8, "div": 0}, {"max": 8, "mul": -1}, {"max": 2**63}]
)
def test_dims(bad: dict[str, Any]) -> None:
    with pytest.raises(bc.InvalidProblemError):
        bc.Dim("n", **bad)
    with pytest.raises(bc.InvalidProblemError):
        bc.Dim("n", 8) // 0
    with pytest.raises(bc.InvalidProblemError):
        bc.Dim("", 8)


@OPS
def test_wrong_descriptor_class(op: str, direction: str) -> None:
    desc = valid_call(op, direction).case.descriptor
    other = bc.GatedActivationPlan if desc.family != "gated" else bc.plan(other_descriptor()).__class__
    with pytest.raises(bc.InvalidProblemError, match="select: got a"):
        other.select(desc)
    for wrong in ("nonsense", None, {"kind": op}):
        with pytest.raises(bc.InvalidProblemError):
            bc.plan(wrong)  # type: ignore[arg-type]


def other_descriptor() -> Any:
    name = next(op for op in directions() if op[0] not in ("glu", "reglu", "swiglu", "geglu"))
    return valid_call(*name).case.descriptor


@pytest.mark.parametrize(
    "bad",
    [
        {"backend": "tpu"}, {"sku": 3}, {"deterministic": 1}, {"max_error": float("nan")}, {"max_error": -1}, {"max_workspace_bytes": -1},
        {"max_workspace_bytes": 1.5}, {"threads": -1}, {"threads": True}, {"math_precision": "fast"},
    ],
)  # fmt: skip
def test_preferences(bad: dict[str, Any]) -> None:
    with pytest.raises(bc.InvalidProblemError, match=next(iter(bad))):
        bc.PlanPreference(**bad)


@pytest.mark.parametrize(
    ("kwargs", "word"),
    [
        ({"device": "tpu"}, "device"), ({"device": "cuda:x"}, "device"), ({"device": "cpu:3"}, "device"), ({"layout": "strided"}, "layout"),
        ({"layout": {"nonsense": "contiguous"}}, "layout"), ({"alignment": -1}, "alignment"), ({"alignment": 1.5}, "alignment"),
        ({"preference": "fast"}, "preference"), ({"device": "cuda:0", "preference": bc.PlanPreference(backend="cpu")}, "backend"),
    ],
)  # fmt: skip
def test_select_arguments(kwargs: dict[str, Any], word: str) -> None:
    desc = bc.GatedActivationDescriptor("glu", (4, 6))
    with pytest.raises(bc.InvalidProblemError, match=word):
        bc.GatedActivationPlan.select(desc, **kwargs)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"[]", b"{}", b'{"schema": 99}', b"\xff\xfe"])
def test_plans_from_wrong_bytes(data: bytes) -> None:
    with pytest.raises(bc.InvalidProblemError):
        bc.Plan.from_bytes(data)


def test_plans_from_tampered_bytes() -> None:
    document = json.loads(bc.plan(bc.GatedActivationDescriptor("glu", (4, 6))).to_bytes())
    for change in (
        {"class": "os"},
        {"class": "GateHalf"},
        {"class": ["x"]},
        {"class": "UnaryDescriptor"},
        {"fields": {}},
    ):
        wrong = document | {"descriptor": document["descriptor"] | change}
        with pytest.raises(bc.InvalidProblemError):
            bc.Plan.from_bytes(json.dumps(wrong).encode())
    other = json.loads(bc.plan(bc.GatedActivationDescriptor("glu", (6, 4))).to_bytes())
    with pytest.raises(bc.InvalidProblemError, match="descriptor"):
        bc.Plan.from_bytes(json.dumps(document | {"descriptor": other["descriptor"]}).encode())
    document["question"]["attributes"]["split_dim"] = 0
    with pytest.raises(bc.InvalidProblemError, match="digest"):
        bc.Plan.from_bytes(json.dumps(document).encode())
    document = other
    with pytest.raises(bc.UnsupportedError):
        bc.Plan.from_bytes(json.dumps(document | {"sku": "glu.forward.cpu.f32.nonsense"}).encode())


@OPS
def test_errors_can_be_pickled(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    with pytest.raises(bc.BaracudaError) as caught:
        call.run(stream=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)
    assert again.code == caught.value.code and again.refusals == caught.value.refusals


def test_sizes_known_only_from_a_derived_size() -> None:
    """No tensor has the bare size, so it is solved for; sizes that leave a remainder are refused."""
    n = bc.Dim("n", max=16)
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (3, 4 * n)))  # x: 4n, y: 2n
    x, y = np.ones((3, 8), np.float32), np.zeros((3, 4), np.float32)
    made.run(x, y)
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-1)), rtol=1e-6)
    assert [r.code for r in made.can_implement(np.ones((3, 6), np.float32), np.zeros((3, 3), np.float32)).refusals] == [
        "shape",
        "shape",
    ]
    pairs = bc.plan(bc.GatedActivationDescriptor("swiglu", (n // 2, 6)))
    pairs.run(np.ones((3, 6), np.float32), np.zeros((3, 3), np.float32))


def test_forced_level() -> None:
    """A level that is named is used or refused, never replaced."""
    ask = "import baracuda as bc, sys; d = bc.devices()[0]; print(d.usable, d.description)"
    folder = Path(bc.__file__).parent / "lib"
    for level in ("v2", "v3", "v4", "nonsense"):
        env = os.environ | {"BARACUDA_CPU_LEVEL": level}
        text = subprocess.run([sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True).stdout
        built = (folder / f"libbaracuda_cpu_{level}.so").exists()
        assert (f"kernels of level {level}" in text) if built and "True" in text else "BARACUDA_CPU_LEVEL" in text, text


def _wrong_calls() -> dict[str, Callable[[], object]]:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 8)))
    x, y = np.ones((4, 8), np.float32), np.zeros((4, 4), np.float32)
    frozen = y.copy()
    frozen.flags.writeable = False
    sums = bc.plan(bc.RmsNormBackwardDescriptor((64, 64), (64,)))
    shapes = {"dy": (64, 64), "x": (64, 64), "weight": (64,), "rstd": (64, 1), "dx": (64, 64), "dweight": (64,)}
    many = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    small = bc.empty(64, "u8")
    return {
        "x": lambda: made.run(x[:, :6], y),
        "x: got rank 9": lambda: made.run(np.ones((1,) * 9, np.float32), y),
        "x: got f64": lambda: made.run(x.astype(np.float64), y),
        "x: got a masked array": lambda: made.run(np.ma.masked_array(x), y),  # type: ignore[no-untyped-call]
        "x: got an array in non-native": lambda: made.run(x.astype(">f4"), y),
        "x: got an object of type list": lambda: made.run(x.tolist(), y),
        "y: got a read-only": lambda: made.run(x, frozen),
        "y: got memory that overlaps x": lambda: made.run(x, x.reshape(-1)[4:20].reshape(4, 4)),
        "y: got a view whose elements": lambda: made.run(x, np.lib.stride_tricks.as_strided(y, (4, 4), (0, 4))),
        "z: got an unknown argument": lambda: made.run(x=x, z=y),
        "stream: got int": lambda: made.run(x, y, stream=5),
        "workspace: got 64 bytes": lambda: sums.run(**many, workspace=small),
        "workspace: got an object": lambda: sums.run(**many, workspace=[64]),
    }


@pytest.mark.parametrize("start", _wrong_calls())
def test_a_message_has_four_parts(start: str) -> None:
    with pytest.raises(bc.BaracudaError) as caught:
        _wrong_calls()[start]()
    text = str(caught.value)
    (refusal,) = caught.value.refusals
    assert f": {start}" in text
    assert f"{refusal.field}: got {refusal.got}, want {refusal.want}. " in text
    todo = text.rpartition(f"want {refusal.want}. ")[2]
    assert todo.endswith(".")
    assert todo[0].isupper() or todo.startswith("baracuda ")


def test_messages_of_functions_name_the_function() -> None:
    x = np.ones((4, 8), np.float32)
    for call, start in (
        (lambda: F.add(x, x[:, :4]), "add(): "),
        (lambda: F.matmul(x, x), "matmul(): "),
        (lambda: F.sum(x, dim=5), "sum(): dim: got 5, want -2 <= axis < 2"),
        (lambda: F.exp(x, out=x[:2]), "exp(): out: got shape (2, 8), want shape (4, 8). Pass a tensor of this shape"),
    ):
        with pytest.raises(bc.InvalidProblemError) as caught:
            call()
        assert str(caught.value).startswith(start)


def test_misspelt_names_are_recognised() -> None:
    with pytest.raises(AttributeError, match="did you mean 'swiglu'"):
        _ = F.swigul
    with pytest.raises(AttributeError, match="did you mean 'RmsNormDescriptor'"):
        _ = bc.RmsnormDescriptor


def test_descriptors_are_written_as_calls() -> None:
    n = bc.Dim("n", max=8)
    for desc in (
        bc.GatedActivationDescriptor("glu", (n, n * 2), element="bf16", gate_half="first"),
        bc.RmsNormDescriptor((n // 2, 4), (4,)),
    ):
        assert eval(repr(desc), {"Dim": bc.Dim, type(desc).__name__: type(desc)}) == desc


@pytest.mark.parametrize("value", [np.zeros(0), np.zeros(2), "yes", None, 0.5], ids=repr)
def test_flags_of_functions(value: object) -> None:
    with pytest.raises(bc.InvalidProblemError, match=r"relu\(\): inplace: got .*, want a bool\. Pass True or False"):
        F.relu(np.ones(3, np.float32), value)  # type: ignore[arg-type]
