"""ONNX's other tests of backends, as its own runner compares them: whole networks, and functions written out as nodes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install -e '.[test]'")

from onnx.backend.test.loader import load_model_tests  # noqa: E402
from onnx.backend.test.runner import Runner  # noqa: E402
from onnx_run import SUITES  # noqa: E402
from onnx_run import _value as value  # noqa: E402

from baracuda.describe.errors import BaracudaError  # noqa: E402
from baracuda.onnx import Backend  # noqa: E402

KINDS = ("simple", "pytorch-converted", "pytorch-operator")
SHARES = 8
# Compared with NumPy's sums of f16, which differ by more than a thousandth from those of f32.
APART = {"test_attention_4d_causal_fp16_expanded"}


def _proto(path: Path) -> Any:
    data = path.read_bytes()
    for kind in (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto):
        proto = kind()
        try:
            proto.ParseFromString(data)
            return value(proto)
        except Exception:
            continue
    raise AssertionError(f"{path} is no tensor")


def _sets(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Inputs and wanted outputs."""
    if case.data_sets is not None:
        yield from (([value(x) for x in i], [value(x) for x in o]) for i, o in case.data_sets)
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        found = ([_proto(folder / f"{kind}_{i}.pb") for i in range(len(list(folder.glob(f"{kind}_*.pb"))))]
                 for kind in ("input", "output"))  # fmt: skip
        inputs, outputs = found
        yield inputs, outputs


def _refused(case: Any) -> str:
    """Runs a case; why it is refused, or empty where it passes."""
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
    try:
        prepared = Backend.prepare(model)
        for inputs, wanted in _sets(case):
            Runner.assert_similar_outputs(wanted, prepared.run(inputs), rtol=case.rtol, atol=case.atol)
    except BaracudaError as error:
        if error.code in ("operator", "element", "option", "random"):
            return error.code
        raise
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_networks_give_what_onnx_wants(kind: str) -> None:
    passed, of = next(counts for name, counts in SUITES.items() if f"({kind}" in name)
    cases = load_model_tests(kind=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = {c.name: why for c in cases if (why := _refused(c))}
    assert (len(cases) - len(refused), len(cases)) == (passed, of), refused


@cache
def _expanded() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [c for c in load_model_tests(kind="node") if "expanded" in c.name]


@pytest.mark.drawn(SHARES)
@pytest.mark.parametrize("share", range(SHARES))
def test_functions_written_out_give_what_onnx_wants(share: int) -> None:
    assert len(_expanded()) == next(of for name, (_, of) in SUITES.items() if "expanded" in name)
    cases = [c for c in _expanded()[share::SHARES] if c.name not in APART]
    assert len(cases) > 40
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = {c.name: why for c in cases if (why := _refused(c))}
    assert len(refused) < len(cases) / 5, refused
    others = {name: why for name, why in refused.items() if why != "element"}
    assert all(why == "operator" and name.startswith("test_bernoulli") for name, why in others.items()), others
