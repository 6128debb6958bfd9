"""Matrix products and attention on Metal by the GPU's own matrices: chosen where its family has them, in every layout."""

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
from baracuda.ops.attention.attention import AttentionDescriptor
from baracuda.ops.matmul.matmul import MatmulDescriptor
from baracuda.prove.reference import Case, round_to, to_reference
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
seen, wide = (bc.AttentionDescriptor(*[(1, 2, 70, d)] * 3) for d in (64, 264))
alone = bc.PlanPreference(batch_invariant=True)
chosen = [bc.plan(desc, "metal"), exact, bc.plan(seen, "metal"), bc.plan(seen, "metal", alone)]
chosen += [bc.plan(wide, "metal"), bc.plan(seen, "metal", bc.PlanPreference(max_error=2))]
print(json.dumps([[plan.sku.variant for plan in chosen], said]))
"""


@needs_emulator
@pytest.mark.parametrize(("family", "wanted"), [("9", "simdgroup"), ("7", "simdgroup"), ("6", "simt"), ("0", "simt")])
def test_the_family_of_the_gpu_decides(family: str, wanted: str) -> None:
    env = os.environ | {"BARACUDA_FAKE_METAL_FAMILY": family}
    done = subprocess.run([sys.executable, "-c", CHOSEN], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (chosen, exact, seen, alone, wide, near), said = json.loads(done.stdout)
    assert (chosen, exact, seen, wide, near) == (wanted, "simt", wanted, "simt", "simt")
    assert alone == ("simdgroup_alone" if wanted == "simdgroup" else "alone")
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


# Queries, keys, head size, head size of v: whole tiles and slices, edges of both, more columns than a block's.
HEADS = [(64, 128, 64, 64), (70, 130, 128, 128), (33, 65, 20, 200), (17, 70, 256, 8)]


@on_metal
@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(
    ("element", "sizes"),
    [*((Element.F32, sizes) for sizes in HEADS), (Element.F16, HEADS[1]), (Element.BF16, HEADS[1])],
)
def test_attention_of_every_size(element: Element, sizes: tuple[int, ...], causal: bool, masked: bool) -> None:
    q, k, d, dv = sizes
    rng = np.random.default_rng(sizes)
    mask = (q, k) if masked else None
    desc = AttentionDescriptor((1, 2, q, d), (1, 1, k, d), (1, 1, k, dv), causal, mask_shape=mask, element=element)
    tensors = {
        name: to_reference(round_to(rng.normal(size=shape), element))
        for name, shape in (("q", desc.q_shape), ("k", desc.k_shape), ("v", desc.v_shape))
    }
    if masked:
        tensors["mask"] = rng.random((q, k)) > 0.3
    made = bc.plan(desc, "metal", CHOICE)
    given = {  # lines lie side by side
        name: bc.asarray(np.ascontiguousarray(round_to(tensors[name], element).swapaxes(2, 3)), device="metal").mT
        for name in ("q", "k", "v")
    }
    if masked:
        given["mask"] = bc.asarray(tensors["mask"], device="metal")
    out, lse = bc.zeros((1, 2, q, dv), element, device="metal"), bc.zeros((1, 2, q), "f32", device="metal")
    made.run(**given, out=out, lse=lse)
    got = {"out": np.asarray(out.to("cpu").numpy()), "lse": np.asarray(lse.to("cpu").numpy())}
    report = Report("", "")
    compare(Case(desc, tensors), Outcome(got, {}), made, report, f"{sizes}")
    assert not report.problems, report.problems[0]


@on_metal
def test_attention_keeps_out_what_rows_may_not_use() -> None:
    """A NaN and an infinity behind the causal diagonal, and behind kv_len, reach nobody before them."""
    rng = np.random.default_rng(2)
    q, k, v = (rng.normal(size=(1, 1, 70, 64)).astype(np.float32) for _ in range(3))
    plan = bc.plan(AttentionDescriptor(q.shape, k.shape, v.shape, True), "metal", CHOICE)

    def run(k: Any, v: Any) -> Any:
        out, lse = bc.empty(q.shape, "f32", device="metal"), bc.empty((1, 1, 70), "f32", device="metal")
        given = {name: bc.asarray(x, device="metal") for name, x in (("q", q), ("k", k), ("v", v))}
        plan.run(**given, out=out, lse=lse)
        return np.asarray(out.to("cpu").numpy())

    clean = run(k, v)
    k[0, 0, 40, 3], v[0, 0, 50, 5], v[0, 0, 66] = np.nan, np.inf, np.nan
    dirty = run(k, v)
    np.testing.assert_array_equal(dirty[0, 0, :40], clean[0, 0, :40])
    assert np.isnan(dirty[0, 0, 40:]).all()
