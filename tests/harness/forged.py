"""Documents that lie: a plan's own with one thing changed and a digest that fits, and whether a spec says the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

from emptied import places, with_sizes

from baracuda.choose.plan import Plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.describe.spec import ROLES, Descriptor

Document = dict[str, Any]
_FAR = (-(2**63), -1, 7, 255, 2**62, 2**63 - 1)  # attributes beyond what small problems have
_MOST_LISTED = 3  # of a list's tensors
_ELEMENTS = ("u8", "i64", "f16", "f64")


def _digest(*parts: Any) -> str:
    """FNV-1a, as the engine has it."""
    found = 0xCBF29CE484222325
    for part in parts:
        for byte in json.dumps(part, ensure_ascii=False).encode():
            found = ((found ^ byte) * 0x100000001B3) % 2**64
    return f"{found:016x}"


def forged(document: Document) -> bytes:
    """A plan with the digest of what it says now."""
    digest = _digest(document["question"], document["signature"])
    return json.dumps(document | {"digest": digest}, ensure_ascii=False).encode()


def forged_program(document: Document) -> bytes:
    """A program, likewise; its plans have theirs."""
    parts = [document[part] for part in ("dims", "values", "scalars", "random", "steps") if part in document]
    digest = _digest(*parts, [p["digest"] for p in document["plans"]])
    return json.dumps(document | {"digest": digest}, ensure_ascii=False).encode()


def _changed(document: Document, *path: Any, value: Any) -> Document:
    made = deepcopy(document)
    inner = made
    for part in path[:-1]:
        inner = inner[part]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def _other_shapes(shape: list[Any]) -> Iterator[list[Any]]:
    for d, n in enumerate(shape):
        for other in dict.fromkeys((n + 1, n - 1, 2 * n, 0, 1)) if isinstance(n, int) else (1,):
            if other >= 0 and other != n:
                yield [*shape[:d], other, *shape[d + 1 :]]
        yield [*shape[:d], *shape[d + 1 :]]
    if len(shape) < 8:
        yield [*shape, 1]
        yield [2, *shape]


def lies(plan: Plan) -> Iterator[tuple[str, Document]]:
    """What is changed, and the document: each dimension of each tensor, roles, elements, presence and attributes."""
    document: Document = json.loads(plan.to_bytes())
    for i, p in enumerate(document["signature"]["tensors"]):
        at = ("signature", "tensors", i)
        lists = [(*at, "shape")] if "shape" in p else [(*at, "shapes", k) for k in range(len(p.get("shapes", ())))]
        for path in lists[:_MOST_LISTED]:
            shape = p["shape"] if path[-1] == "shape" else p["shapes"][path[-1]]
            for other in _other_shapes(shape):
                yield f"{p['name']} {shape} -> {other}", _changed(document, *path, value=other)
        if not lists:
            yield f"{p['name']} is there", _changed(document, *at, "shape", value=[2])
            continue
        for role in ROLES:
            if role != p["role"]:
                yield f"{p['name']} is {role}", _changed(document, *at, "role", value=role)
        for element in _ELEMENTS:
            if element != p["element"]:
                yield f"{p['name']} is {element}", _changed(document, *at, "element", value=element)
        kind = "shape" if "shape" in p else "shapes"
        yield f"{p['name']} is gone", _changed(document, *at, kind, value=None)
        if kind == "shapes" and len(p["shapes"]) > 1:
            yield f"{p['name']} is shorter", _changed(document, *at, kind, value=p["shapes"][1:])
    for i, scalar in enumerate(document["signature"]["scalars"]):  # numbers of another kind: nothing that sizes follow
        at = ("signature", "scalars", i)
        for kind in {"float", "int", "unsigned"} - {scalar["kind"]}:
            made = _changed(document, *at, "kind", value=kind)
            made["signature"]["scalars"][i].pop("default", None)
            yield f"{scalar['name']} is {kind}", made
        if "absent" not in scalar:
            yield f"{scalar['name']} is absent", _changed(document, *at, "absent", value=True)
    for name, value in document["question"]["attributes"].items():
        for other in (*_FAR, value + 1) if isinstance(value, int) else (-1.0, 0.5, 255.0):
            if value != other < 2**63:
                yield f"{name} {value} -> {other}", _changed(document, "question", "attributes", name, value=other)


def _told(document: Document) -> list[Any]:
    """What a signature says of tensors, comparably."""
    return [
        (p["name"], p["role"], p["element"], p.get("shape"), p.get("shapes"))
        if "shape" in p or "shapes" in p
        else (p["name"], None)
        for p in document["signature"]["tensors"]
    ]


def _said(desc: Descriptor) -> list[Any]:
    return [
        (
            p.name,
            ROLES[p.role],
            str(p.element),
            None if p.variadic else list(p.shape),
            [list(s) for s in p.shapes] if p.variadic else None,
        )
        if p.present
        else (p.name, None)
        for p in desc.signature().params
    ]


def _sizes_told(document: Document) -> set[int]:
    """Every size that the signature has."""
    tensors = document["signature"]["tensors"]
    shapes = [s for p in tensors for s in [*([p["shape"]] if "shape" in p else []), *p.get("shapes", ())]]
    return {n for shape in shapes for n in shape}


def _repeats(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """How often each size of x is in that of y."""
    longer = (*(1,) * (len(y) - len(x)), *x)
    return tuple(n // max(m, 1) for m, n in zip(longer, y, strict=False))


def _siblings(desc: Descriptor, document: Document) -> Iterator[dict[str, Any]]:
    """Fields in which a descriptor of the changed document may differ, one change each."""
    tensors = document["signature"]["tensors"]
    shapes = [tuple(p["shape"]) for p in tensors if "shape" in p]
    sizes = sorted(_sizes_told(document))
    for place in places(desc):
        for size in sizes:
            yield with_sizes(desc, {place: size})
    for f in fields(desc):
        value, kind = getattr(desc, f.name), str(f.type)
        if "Shape" in kind and "tuple" not in kind:
            batches = [s[:-2] for s in shapes if len(s) >= 2]
            for shape in (*dict.fromkeys([*shapes, *batches]), *((None,) if "None" in kind else ())):
                yield {f.name: shape}
        elif kind == "tuple[Shape, ...]":
            for p in tensors:
                if "shapes" in p:
                    yield {f.name: tuple(tuple(s) for s in p["shapes"])}
            yield {f.name: tuple(tuple(p["shape"]) for p in tensors if "shape" in p and p["role"] == "in")}
        elif kind == "tuple[Element, ...]":
            for role in ("in", "out"):
                yield {f.name: tuple(p["element"] for p in tensors if "element" in p and p["role"] == role)}
        elif isinstance(value, bool):
            yield {f.name: not value}
        elif "Element" in kind:
            yield {f.name: None} if "None" in kind else {}
            for element in {p["element"] for p in tensors} | {"s4", "u4"}:
                yield {f.name: Element.coerce(element, f.name)}
        elif isinstance(value, int) or kind == "int | None":
            yield {f.name: None} if "None" in kind else {}
            for size in {0, *sizes, *document["question"]["attributes"].values()}:
                if isinstance(size, int):
                    yield {f.name: size}
        elif isinstance(value, float):
            for number in document["question"]["attributes"].values():
                yield {f.name: float(number)}
        elif f.name in desc.enums:
            for member in desc.enums[f.name]:
                yield {f.name: member}
        elif f.name == "repeats":
            yield {f.name: _repeats(*shapes if document["question"]["direction"] == "forward" else shapes[::-1])}
        elif kind.startswith("tuple[int") and value is not None:
            for i, n in enumerate(value):
                for other in {n + d for d in range(-9, 10)} | {n * d for d in (0, 2)}:
                    yield {f.name: (*value[:i], other, *value[i + 1 :])}
            for axes in range(1 << 8):  # of reductions and flips
                if f.name == "axes":
                    yield {f.name: tuple(a for a in range(8) if axes >> a & 1)}
            for number in document["question"]["attributes"].values():
                for i in range(len(value)):
                    yield {f.name: (*value[:i], number, *value[i + 1 :])}


def spec_says(desc: Descriptor, document: Document) -> bool:
    """Whether a descriptor near this one has the signature and the attributes of the changed document."""
    wanted = _told(document)
    told = document["question"]["attributes"]
    texts = {"nan", "inf", "-inf"}  # numbers that JSON has no words for
    attributes = {n: float(v) if isinstance(v, str) and v in texts else v for n, v in told.items()}

    def same(changes: dict[str, Any]) -> bool:
        try:
            other = replace(desc, **changes)
            return _said(other) == wanted and {n: other.attributes()[n] for n in attributes} == attributes
        except (BaracudaError, ValueError, TypeError, OverflowError, IndexError):
            return False

    near = [c for c in _siblings(desc, document) if c]
    return any(map(same, near)) or any(
        same(a | b) for a, b in combinations(near, 2) if a.keys() != b.keys() and len(near) < 400
    )
