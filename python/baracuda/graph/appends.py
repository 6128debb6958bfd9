"""What a decoding step does between its projections and its attention, as one kernel: rope of q and k, k and v to their caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda import _core
from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.graph.nodes import Launch, View
from baracuda.ops.attention.attention_append import KvCacheAppendDescriptor
from baracuda.ops.rope.rope import RopeDescriptor
from baracuda.ops.rope.rope_append import RopeAppendDescriptor

ELEMENTS = (Element.F32, Element.F64)  # halves' NaNs are copied by the one and converted by the other
_NOWHERE = 1 << 40  # an address; nothing is read there


def merge_appends(launches: list[Launch], results: list[Any], device: str) -> list[Launch]:
    """Has rope of queries in place, rope of keys, and the appends of keys and values run as one kernel."""
    now: list[Launch | None] = list(launches)
    for i, launch in enumerate(launches):
        if now[i] is not None and _appends(launch):
            for members in _candidates(now, i):
                merged = _merged([(at, launches[at]) for at in members], device)
                if merged is not None and _free(launches, results, members, merged):
                    for at in members:
                        now[at] = None
                    now[max(members)] = merged
                    break
    return [launch for launch in now if launch is not None]


def _appends(launch: Launch) -> bool:
    d = launch.plan.descriptor
    return isinstance(d, KvCacheAppendDescriptor) and d.positions_shape is None and d.element in ELEMENTS


def _rotates(launch: Launch) -> bool:
    d = launch.plan.descriptor
    return isinstance(d, RopeDescriptor) and d.positions_shape is None and len(d.input_shape) == 4


def _candidates(launches: list[Launch | None], i: int) -> Iterator[tuple[int, int, int, int]]:
    """Places of rope of q, rope of k, the append of k and that of v, of which the append of k is at `i`."""
    append = launches[i]
    assert append is not None
    near = [(at, x) for at, x in enumerate(launches) if x is not None and x.numbers == append.numbers]
    keys = [at for at, x in near if at < i and _rotates(x) and x.writes[0] == append.reads[0]]
    queries = [at for at, x in near if _rotates(x) and x.reads[0] == x.writes[0] and at not in keys]
    values = [at for at, x in near if at != i and _appends(x)]
    if keys and queries and values:  # those nearest to it
        yield min(queries, key=lambda at: abs(at - i)), keys[-1], i, min(values, key=lambda at: (abs(at - i), at < i))


def _merged(members: list[tuple[int, Launch]], device: str) -> Launch | None:
    """The launch of all four; None where they do not go together or there is no such kernel."""
    queries, keys, append_k, append_v = (launch for _, launch in members)
    d: Any = queries.plan.descriptor
    q, cos, sin = queries.reads[:3]
    k, v = keys.reads[0], append_v.tensors[0]
    caches = append_k.writes[0], append_v.writes[0]
    same = ("table_rows", "rotary_dim", "layout", "table_element", "element")
    if any(getattr(d, name) != getattr(keys.plan.descriptor, name) for name in same) or keys.reads[1:3] != (cos, sin):
        return None
    shapes = (*q.shape[:1], *q.shape[2:]), (*k.shape[:1], *k.shape[2:]), k.shape[:3], caches[0].shape[:3]
    if shapes[0] != shapes[1] or shapes[2] != v.shape[:3] or shapes[3] != caches[1].shape[:3]:
        return None
    if any(_meet(a, b) for a in (q, *caches) for b in (k, v)) or _meet(q, caches[0]) or _meet(*caches):
        return None
    desc = RopeAppendDescriptor(
        d.input_shape, d.table_rows, d.rotary_dim, d.layout, None, d.positions_element, d.table_element, d.element,
        kv_heads=k.shape[1], cache_rows=caches[0].shape[2], v_dim=v.shape[3],
    )  # fmt: skip
    try:
        chosen = plan(desc, device)
    except BaracudaError:
        return None
    also = tuple(n for _, launch in members[:-1] for n in launch.nodes)
    given = {"q": q, "k": k, "v": v, "cos": cos, "sin": sin, "k_cache": caches[0], "v_cache": caches[1]}
    return Launch(chosen, tuple(given[p.name] for p in chosen.signature.present), append_v.numbers, append_v.node, also)


def _free(launches: list[Launch], results: list[Any], members: tuple[int, ...], merged: Launch) -> bool:
    """Whether all of them may run where the last one does, and nothing reads the rotated keys but their append."""
    last, (_, keys, append, _) = max(members), members
    rotated = launches[keys].writes[0]
    readers = [x for at, x in enumerate(launches) if at > keys and at != append]
    outside = rotated.slot.kind != "temporary" or any(isinstance(r, View) and _meet(r, rotated) for r in results)
    if outside or any(_meet(v, rotated) for x in readers for v in x.reads):
        return False
    for at in members:
        for x in (launches[k] for k in range(at + 1, last) if k not in members):
            if any(_meet(a, b) for a in x.writes for b in (*launches[at].reads, *launches[at].writes)):
                return False
            if any(_meet(a, b) for a in launches[at].writes for b in x.reads):
                return False
    # They follow each other in any order that keeps this: what one writes, only the append of keys reads.
    four = [launches[at] for at in members]
    written = [(x, v) for x in four for v in x.writes]
    return not any(
        _meet(v, other) for x, v in written for y in four if y is not x for other in y.reads
        if not (x is four[1] and y is four[2])
    )  # fmt: skip


def _meet(a: View, b: View) -> bool:
    """Whether they may share memory."""
    if a.slot is not b.slot or 0 in (*a.shape, *b.shape):
        return False
    places = (_core.from_pointer(_NOWHERE + v.offset * v.element.nbytes, v.shape, v.element, v.strides) for v in (a, b))
    return bool(_core.overlap(*places))
