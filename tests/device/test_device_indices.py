"""Indices that point at nothing, on GPUs: every op that takes some tells the device's status word, and touches nothing
that is not its own (the emulator's race build watches)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import emulated
import numpy as np
import pytest
from calls import call_of, cases_of

import baracuda as bc
from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.elements import Element
from baracuda.describe.spec import IN

# Ops with indices: their tensor, and the tensor and dimension that they count; "axis": the descriptor says which, "all":
# they count through the whole tensor.
INDICES: dict[str, tuple[str, str, int | str]] = {
    "embedding": ("ids", "weight", 0),
    "embedding_bag": ("ids", "weight", 0),
    "quant_matmul_ids": ("ids", "w", 0),
    "rope": ("positions", "cos", 0),
    "cross_entropy": ("target", "logits", -1),
    "cross_entropy_fused": ("target", "logits", -1),
    "nll_loss": ("target", "input", -1),
    "kv_cache_append": ("positions", "cache", 2),
    "gather": ("index", "x", "axis"),
    "index_select": ("index", "x", "axis"),
    "take": ("index", "x", "all"),
    "scatter": ("index", "x", "axis"),
    "scatter_reduce": ("index", "x", "axis"),
    "index_copy": ("index", "x", "axis"),
    "index_add": ("index", "x", "axis"),
    "index_fill": ("index", "x", "axis"),
    "one_hot": ("index", "y", -1),
}
ITEMS = sorted(
    {(r["backend"], r["op"], r["direction"]) for r in rows() if r["backend"] != "cpu" and r["op"] in INDICES}
)


def plans(backend: str, op: str, direction: str) -> Iterator[tuple[Any, Plan]]:
    """Small cases with an index tensor, and plans of every row for them."""
    for row in rows():
        if (row["backend"], row["op"], row["direction"]) != (backend, op, direction):
            continue
        limit = PlanPreference(sku=row["variant"])
        for case in cases_of(op, direction, Element.F32, 4096):
            names = [p.name for p in case.descriptor.signature().present if not p.element.is_float]
            indices = case.tensors.get(INDICES[op][0])
            if (
                INDICES[op][0] in names
                and indices is not None
                and np.size(indices)
                and type(case.descriptor).plan_class.query(case.descriptor, backend, limit)
            ):
                yield case, plan(case.descriptor, backend, limit)


def bad_values(dtype: np.dtype[Any], limit: int, wrap: bool) -> list[int]:
    info = np.iinfo(dtype)
    wanted = [limit, limit + 1, info.max, info.max // 2 + 1, (1 << 32) + 1, -1, -limit - 1, info.min]
    return [n for n in wanted if info.min <= n <= info.max and not (-limit if wrap else 0) <= n < limit]


def check(case: Any, made: Plan) -> None:
    name, counted, dim = INDICES[case.descriptor.op]
    call = call_of(case, made)
    sizes = {p.name: p.shapes[0] for p in made.signature.present}
    shape = sizes.get(counted, sizes.get(f"d{counted}"))
    dim = case.descriptor.axis if dim == "axis" else dim
    limit = prod(shape) if dim == "all" or not shape else shape[dim]
    # Some ops count negative indices from the end.
    wrap = name == "index" and case.descriptor.attributes().get("wrap") == 1
    place = {k: bc.asarray(np.array(v, order="C"), device=made.device) for k, v in call.args.items() if k in sizes}
    if made.workspace_size:
        place["workspace"] = bc.empty(made.workspace_size, "u8", device=made.device)
    good = np.array(call.args[name], order="C")
    for bad in bad_values(good.dtype, limit, wrap):
        wrong = good.copy()
        wrong.reshape(-1)[good.size // 2] = bad
        made.run(**(call.args | place | {name: bc.asarray(wrong, device=made.device)}))
        with pytest.raises(bc.IndexOutOfRangeError) as caught:
            bc.Device(made.device).check()
        assert (caught.value.refusals[0].field, caught.value.refusals[0].actual) == (name, bad)
    inputs = {p.name for p in made.signature.present if p.role == IN}
    for k in inputs:
        assert place[k].to("cpu").numpy().tobytes() == np.array(call.args[k], order="C").tobytes(), k
    made.run(**(call.args | place))
    bc.Device(made.device).check()


@pytest.mark.parametrize(("backend", "op", "direction"), ITEMS, ids=["-".join(t) for t in ITEMS])
def test_indices_out_of_range(backend: str, op: str, direction: str) -> None:
    if not emulated.module_of(backend):
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py race pytest FILE")
    ran = 0
    for case, made in plans(backend, op, direction):
        check(case, made)
        ran += 1
        if ran == 10:
            break
    assert ran


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("backend", emulated.BACKENDS)
def test_offsets_of_bags(backend: str, direction: str) -> None:
    if not emulated.module_of(backend):
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py race pytest FILE")
    for offsets, bad in (([1, 2], 1), ([0, 6], 6), ([0, -2], -2), ([0, 4, 3], 4), ([-1, 2], -1), ([0, 2**40], 2**40)):
        for mode in ("sum", "mean"):
            desc: Any = bc.EmbeddingBagDescriptor((4, 2), (5,), offsets_shape=(len(offsets),), mode=mode)
            made = plan(desc if direction == "forward" else desc.backward(), backend)
            args = {p.name: bc.zeros(p.shape, p.element, device=made.device) for p in made.signature.present}
            args["offsets"] = bc.asarray(np.array(offsets), device=made.device)
            args["workspace"] = bc.empty(made.workspace_size, "u8", device=made.device)
            made.run(**args)
            with pytest.raises(bc.IndexOutOfRangeError) as caught:
                bc.Device(made.device).check()
            assert (caught.value.refusals[0].field, caught.value.refusals[0].actual) == ("offsets", bad), offsets


def paged(desc: Any, backend: str, **changed: Any) -> None:
    """Runs a plan over a cache of 3 pages of 4 lines, of two sequences with 7 and 3 keys."""
    made = plan(desc, backend)
    args = {p.name: bc.zeros(p.shape, p.element, device=made.device) for p in made.signature.present}
    given = {"page_table": [[2, 0, 9], [1, -1, -1]], "kv_len": [7, 3]} | changed
    args |= {n: bc.asarray(np.array(v, np.int32), device=made.device) for n, v in given.items() if n in args}
    if made.workspace_size:
        args["workspace"] = bc.empty(made.workspace_size, "u8", device=made.device)
    made.run(**args)
    bc.Device(made.device).check()


@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize("backend", emulated.BACKENDS)
def test_tables_of_pages(backend: str, queries: int) -> None:
    if not emulated.module_of(backend):
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py race pytest FILE")
    cache = ((3, 4, 2, 8), (3, 4, 2, 8), (2, 3))
    desc = bc.PagedAttentionDescriptor(*cache, (2, queries, 4, 8))
    window = bc.PagedAttentionDescriptor(*cache, (2, 1, 4, 8), window_left=1)
    append = bc.PagedAppendDescriptor(*cache, (2, 1, 2, 8), (2, 1, 2, 8))
    for each in (desc, window, append):
        paged(each, backend)
    paged(window, backend, page_table=[[-1, 0, 9], [1, -1, -1]])
    for table, bad in (
        ([[2, 3, 9], [1, -1, -1]], 3),
        ([[2, -1, 9], [1, 0, 0]], -1),
        ([[2, 1 << 30, 0], [1, 0, 0]], 1 << 30),
    ):
        for each in (desc, window, append):
            with pytest.raises(bc.IndexOutOfRangeError, match=f"page_table.*{bad}"):
                paged(each, backend, page_table=table)
    for lengths, bad in (([13, 3], 13), ([7, -1], -1), ([7, 1 << 30], 1 << 30)):
        for each in (desc, append):
            with pytest.raises(bc.IndexOutOfRangeError, match=f"kv_len.*{bad}"):
                paged(each, backend, kv_len=lengths)
    with pytest.raises(bc.IndexOutOfRangeError, match=r"kv_len.*12"):
        paged(append, backend, kv_len=[12, 3], page_table=[[2, 0, 1], [1, -1, -1]])


@pytest.mark.parametrize("backend", emulated.BACKENDS)
def test_places_of_packed_tokens(backend: str) -> None:
    if not emulated.module_of(backend):
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py race pytest FILE")
    desc = bc.PagedAppendDescriptor((3, 4, 2, 8), (3, 4, 2, 8), (2, 3), (4, 2, 8), (4, 2, 8))
    paged(desc, backend, cu_seq=[0, 1, 4], kv_len=[7, 0])
    for cu in ([1, 2, 4], [0, 3, 2], [0, 2, 5], [0, 2, 3], [0, -1, 4], [0, 9, 4], [-(1 << 30), 1, 4]):
        with pytest.raises(bc.IndexOutOfRangeError, match="cu_seq"):
            paged(desc, backend, cu_seq=cu, kv_len=[0, 0])


@pytest.mark.parametrize("backend", emulated.BACKENDS)
def test_places_of_packed_queries_and_slots(backend: str) -> None:
    if not emulated.module_of(backend):
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py race pytest FILE")
    cache = ((3, 4, 2, 8), (3, 4, 2, 8))
    queries = bc.PagedAttentionDescriptor(*cache, (2, 3), (4, 4, 8), max_q=3, cache_element="i8")
    paged(queries, backend, cu_seq_q=[0, 1, 4])
    for cu in ([1, 2, 4], [0, 3, 2], [0, 2, 5], [0, 2, 3], [0, -1, 4], [0, 4, 4]):
        with pytest.raises(bc.IndexOutOfRangeError, match="cu_seq_q"):
            paged(queries, backend, cu_seq_q=cu)
    with pytest.raises(
        bc.IndexOutOfRangeError, match="got 3 as the last entry at element 2, want 4, the number of all rows"
    ):
        paged(queries, backend, cu_seq_q=[0, 2, 3])
    slots = bc.PagedAppendSlotsDescriptor(*cache, (3, 2, 8), (3, 2, 8), cache_element="f8e4m3")
    paged(slots, backend, slots=[11, -1, 0])
    for bad in (12, -2, 1 << 30):
        with pytest.raises(bc.IndexOutOfRangeError, match=f"slots: got slot {bad} at element 1, want -1 <= slot < 12"):
            paged(slots, backend, slots=[0, bad, -1])
