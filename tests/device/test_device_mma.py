"""Matrix products on tensor cores: every way that operands can lie, edges of tiles and of slices, sums over a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
from baracuda.choose.sku import rows
from baracuda.describe.elements import Element
from baracuda.memory.device import Device
from baracuda.ops.matmul.matmul import MatmulDescriptor
from baracuda.ops.matmul.matmul_ref import reference
from baracuda.prove.reference import Case, round_to
from baracuda.prove.verify import Outcome, Report, compare

Array = np.ndarray[Any, Any]
CHOICE = bc.PlanPreference(sku="simt_mma")
# M, N, K: less than a fragment, whole tiles, edges of tiles and of slices, and many tiles, which are large ones then.
SIZES = [(1, 3, 8), (64, 64, 64), (70, 129, 300), (130, 33, 37), (1400, 1412, 5)]


@pytest.fixture(autouse=True)
def usable() -> None:
    if not Device("cuda").usable:
        pytest.skip(f"cuda: {Device('cuda').reason}")


def placed(values: Array, element: Element, turned: bool) -> bc.Tensor:
    """On the device, in rows (or columns) of whole packs; what lies between them is NaN, which nothing may read."""
    stored = round_to(values, element)
    *batch, rows, columns = stored.shape
    lines, length = (columns, rows) if turned else (rows, columns)
    base = np.full((*batch, lines, (length + 7) // 8 * 8), np.nan).astype(stored.dtype)
    base[..., :length] = np.swapaxes(stored, -1, -2) if turned else stored
    at = bc.asarray(base, device="cuda")[..., :length]
    return at.transpose(*range(len(batch)), len(batch) + 1, len(batch)) if turned else at


def check(case: Case, turned: tuple[bool, bool]) -> None:
    desc: Any = case.descriptor
    made = bc.plan(desc, "cuda", CHOICE)
    out = bc.empty(desc.output_shape(), desc.element, device="cuda")
    tensors = {
        name: placed(x, desc.element, turn) for (name, x), turn in zip(case.tensors.items(), turned, strict=False)
    }
    tensors |= {
        n: bc.asarray(round_to(case.tensors[n], desc.element), device="cuda")
        for n in ("c", "bias")
        if n in case.tensors
    }
    made.run(**tensors, out=out, **case.scalars)
    report = Report("", "")
    compare(case, Outcome({"out": np.asarray(out.to("cpu").numpy())}, {}), made, report, f"{desc} {turned}")
    assert not report.problems, report.problems[0]


@pytest.mark.parametrize("element", [Element.F16, Element.BF16])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("size", SIZES)
def test_every_layout(size: tuple[int, int, int], turned: tuple[bool, bool], element: Element) -> None:
    m, n, k = size
    if m > 1000 and (element is Element.F16) == (turned[0] == turned[1]):
        pytest.skip("many tiles: once per layout")
    rng = np.random.default_rng([m, n, k])
    case = Case(MatmulDescriptor((m, k), (k, n), element), {"a": rng.normal(size=(m, k)), "b": rng.normal(size=(k, n))})
    check(case, turned)


@pytest.mark.parametrize("turned", [(False, False), (True, True)])
def test_batches_and_what_is_added(turned: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    for a, b, batch in (
        ((3, 20, 40), (3, 40, 24), None),
        ((3, 20, 40), (3, 40, 24), ()),
        ((2, 1, 9, 300), (3, 300, 10), (2, 1)),
    ):
        plain = MatmulDescriptor(a, b, Element.BF16, batch_shape=batch)
        c = plain.output_shape()
        desc = MatmulDescriptor(a, b, Element.BF16, bias=True, c_shape=c, batch_shape=batch)
        tensors = {p.name: rng.normal(size=p.shape) for p in desc.signature().inputs}
        check(Case(desc, tensors, {"alpha": 0.5, "beta": -2.0}), turned)


def test_a_library_is_preferred_and_tiles_are_not() -> None:
    ranks = {r["variant"]: r["preference"] for r in rows() if (r["op"], r["backend"]) == ("matmul", "cuda")}
    assert ranks["simt"] < ranks["simt_mma"] < ranks["cublaslt"]
    wanted = bc.PlanPreference(batch_invariant=True)
    assert bc.plan(MatmulDescriptor((64, 64), (64, 64), Element.F16), "cuda", wanted).sku.variant == "simt"


def test_sums_that_cancel() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(40, 640)), rng.normal(size=(640, 24))
    a[:, 320:], b[320:] = -a[:, :320], b[:320]
    case = Case(MatmulDescriptor(a.shape, b.shape, Element.F16), {"a": a, "b": b})
    assert np.abs(reference(case)["out"].value).max() < 1e-9
    check(case, (False, False))
