"""Matrix products on Metal by the GPU's own matrices: chosen where its family has them, whatever way operands lie."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fakemetal import needs_emulator, on_metal
from metal_work import no_metal_leaks  # noqa: F401

import baracuda as bc
from baracuda.describe.elements import Element
from baracuda.ops.matmul.matmul import MatmulDescriptor
from baracuda.prove.reference import Case, round_to
from baracuda.prove.verify import Outcome, Report, compare

CHOICE = bc.PlanPreference(sku="simdgroup")
# M, N, K: less than a matrix, a tile, edges of tiles and slices, more than a block of products, no products.
SIZES = [(1, 3, 8), (64, 64, 64), (70, 65, 300), (9, 33, 515), (5, 4, 0)]

CHOSEN = """
import json
import baracuda as bc
from baracuda.ops.matmul.matmul import MatmulDescriptor
desc, said = MatmulDescriptor((64, 64), (64, 64), "f32"), ""
try:
    bc.plan(desc, "metal", bc.PlanPreference(sku="simdgroup"))
except bc.UnsupportedError as e:
    said = str(e)
exact = bc.plan(desc, "metal", bc.PlanPreference(max_error=8))
print(json.dumps([bc.plan(desc, "metal").sku.variant, exact.sku.variant, said]))
"""


@needs_emulator
@pytest.mark.parametrize(("family", "wanted"), [("9", "simdgroup"), ("7", "simdgroup"), ("6", "simt"), ("0", "simt")])
def test_the_family_of_the_gpu_decides(family: str, wanted: str) -> None:
    env = os.environ | {"BARACUDA_FAKE_METAL_FAMILY": family}
    done = subprocess.run([sys.executable, "-c", CHOSEN], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    chosen, exact, said = json.loads(done.stdout)
    assert (chosen, exact) == (wanted, "simt")
    assert (wanted == "simdgroup") == (said == "")
    assert not said or "architecture level 7 or newer" in said


def placed(values: Any, element: Element, turned: bool) -> bc.Tensor:
    """On the device, with gaps of NaN between its lines, which nothing may read."""
    stored = round_to(values, element)
    rows, columns = stored.shape
    base = np.full((columns, rows + 3) if turned else (rows, columns + 3), np.nan).astype(stored.dtype)
    base[:, : rows if turned else columns] = stored.T if turned else stored
    at = bc.asarray(base, device="metal")
    return at[:, :rows].T if turned else at[:, :columns]


@on_metal
@pytest.mark.parametrize("element", [Element.F32, Element.F16, Element.BF16])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_every_layout(turned: tuple[bool, bool], element: Element) -> None:
    for m, n, k in SIZES:
        rng = np.random.default_rng([m, n, k])
        values = {"a": rng.normal(size=(m, k)), "b": rng.normal(size=(k, n))}
        case = Case(MatmulDescriptor((m, k), (k, n), element), values)
        made = bc.plan(case.descriptor, "metal", CHOICE)
        out = bc.zeros((m, n), element, device="metal")
        tensors = {name: placed(x, element, turn) for (name, x), turn in zip(values.items(), turned, strict=True)}
        made.run(**tensors, out=out)
        report = Report("", "")
        compare(case, Outcome({"out": np.asarray(out.to("cpu").numpy())}, {}), made, report, f"{(m, n, k)} {turned}")
        assert not report.problems, report.problems[0]


@on_metal
def test_what_is_not_finite_stays_in_its_row_and_column() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(20, 24)).astype(np.float32), rng.normal(size=(24, 21)).astype(np.float32)
    a[3, 5], b[7, 2] = np.inf, np.nan
    out = bc.empty((20, 21), "f32", device="metal")
    bc.plan(MatmulDescriptor(a.shape, b.shape, "f32"), "metal", CHOICE).run(
        a=bc.asarray(a, device="metal"), b=bc.asarray(b, device="metal"), out=out
    )
    got = np.asarray(out.to("cpu").numpy())
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(a @ b))
