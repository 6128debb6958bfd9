"""Reference of fused expressions: the program's functions one after the other, by plans of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from baracuda.choose.plan import plan
from baracuda.choose.sku import rows
from baracuda.describe.dims import Shape as Sizes
from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.memory.tensor import asarray, empty
from baracuda.ops.binary.binary import BinaryBackwardDescriptor, BinaryDescriptor
from baracuda.ops.binary.binary_kinds import KINDS as BINARY
from baracuda.ops.cast.cast import CastDescriptor
from baracuda.ops.expr.expr import MAX_OUTPUTS, ExprDescriptor
from baracuda.ops.reduce.reduce import ReduceDescriptor
from baracuda.ops.ternary.ternary import (
    ClampBackwardDescriptor,
    ClampDescriptor,
    TernaryBackwardDescriptor,
    TernaryDescriptor,
    WhereBackwardDescriptor,
    WhereDescriptor,
)
from baracuda.ops.ternary.ternary_kinds import KINDS as TERNARY
from baracuda.ops.unary.unary import (
    GeluBackwardDescriptor,
    GeluDescriptor,
    UnaryBackwardDescriptor,
    UnaryDescriptor,
)
from baracuda.ops.unary.unary_kinds import KINDS as UNARY
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

REDUCTIONS = ("sum", "mean", "amax", "amin", "prod")
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((7,), (7,)), ((5, 1), (1, 70)), ((3,), (4, 3)), ((0, 2), (1, 2)), ((1300,), (1,)), ((40, 65), (65,)),
    ((2, 1, 3, 1, 2, 1, 2, 4), (1, 2, 1, 2, 1, 2, 1, 4)),
]  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 3e38, -1e-40, np.inf, -np.inf, np.nan])
_LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}


# --- one function ---------------------------------------------------------------------------------------------------


_DEVICE: ContextVar[str] = ContextVar("device", default="cpu")  # that functions run on


def _run(desc: Any, inputs: dict[str, Array], numbers: dict[str, Any], wanted: int = 0) -> Array:
    """One output of a plan."""
    device = _DEVICE.get()
    made = plan(desc, device)
    outputs = {p.name: empty(tuple(map(largest, p.shape)), p.element, device=device) for p in made.signature.outputs}
    named = {s.name for s in made.signature.numbers}
    workspace = empty(made.workspace_size, "u8", device=device) if made.workspace_size else None
    there = {n: asarray(x).to(device) for n, x in inputs.items()}
    made.run(**there, **outputs, **{n: x for n, x in numbers.items() if n in named}, workspace=workspace)
    return list(outputs.values())[wanted].to("cpu").numpy()


def _other(x: Array, e: Element) -> Element | None:
    own = Element.coerce(x.dtype)
    return None if own is e else own


def _apply(name: str, e: Element, args: list[Array], numbers: list[Any]) -> Array:
    """A function of the program, by the plan that has its name."""
    base, _, part = name.partition("_backward")
    shape = np.broadcast_shapes(*(x.shape for x in args))
    if name != base:
        args = [np.broadcast_to(x.astype(e.numpy), shape).copy() for x in args]
        which = "_abc".index(part[-1]) - 1 if part else 0
        return _run(*_gradient(base, e, shape, args, numbers), which)
    return _run(*_function(base, e, args, numbers))


def _function(kind: str, e: Element, args: list[Array], numbers: list[Any]) -> tuple[Any, Any, Any]:
    """The descriptor of a function, its tensors, and its numbers."""
    shapes, others = [x.shape for x in args], [_other(x, e) for x in args]
    if kind in ("gelu", "gelu_tanh"):
        how: Any = "none" if kind == "gelu" else "tanh"
        return GeluDescriptor(shapes[0], how, e, others[0]), {"x": args[0]}, {}
    if kind in UNARY:
        named = dict(zip((n.name for n in UNARY[kind].numbers), numbers, strict=False))
        return UnaryDescriptor(kind, shapes[0], e, others[0]), {"x": args[0]}, named
    if kind == "clamp":
        named = dict(zip(("min", "max"), numbers, strict=True))
        return ClampDescriptor(shapes[0], e, input_element=others[0]), {"x": args[0]}, named
    if kind == "where":
        where: Any = WhereDescriptor
        tensors = {"condition": args[0].astype(bool), "a": args[1], "b": args[2]}
        return where(*shapes, e, *others[1:]), tensors, {}
    kinds: Any = TERNARY if kind in TERNARY else BINARY
    made: Any = TernaryDescriptor if kind in TERNARY else BinaryDescriptor
    kind = "add" if kind == "add_scaled" else kind
    named = dict(zip((n for n, _ in kinds[kind].numbers), numbers or [1], strict=False))
    return made(kind, *shapes, e, *others), dict(zip("abc", args, strict=False)), named


def _gradient(
    kind: str, e: Element, shape: tuple[int, ...], args: list[Array], numbers: list[Any]
) -> tuple[Any, Any, Any]:
    """The same for the gradient of a function."""
    if kind in ("gelu", "gelu_tanh"):
        how: Any = "none" if kind == "gelu" else "tanh"
        return GeluBackwardDescriptor(shape, how, e), {"dy": args[0], "x": args[1]}, {}
    if kind in UNARY:
        named = dict(zip((n.name for n in UNARY[kind].numbers), numbers, strict=False))
        return UnaryBackwardDescriptor(kind, shape, e), {"dy": args[0], UNARY[kind].saves: args[1]}, named
    if kind == "clamp":
        named = dict(zip(("min", "max"), numbers, strict=True))
        return ClampBackwardDescriptor(shape, e), {"dy": args[0], "x": args[1]}, named
    if kind == "where":
        return WhereBackwardDescriptor(shape, shape, shape, e), {"dy": args[0], "condition": args[1].astype(bool)}, {}
    kinds: Any = TERNARY if kind in TERNARY else BINARY
    made: Any = TernaryBackwardDescriptor if kind in TERNARY else BinaryBackwardDescriptor
    named = dict(zip((n for n, _ in kinds[kind].numbers), numbers or [1], strict=False))
    return made(kind, *[shape] * (len(args) - 1), e), dict(zip(("dy", "a", "b", "c"), args, strict=False)), named


def unfused(text: str, inputs: list[Array]) -> list[Array]:
    """The outputs of a program, whose functions run one after the other; halves are f32 all the way."""
    values: list[Any] = []
    out: list[Array] = []
    for words in (part.split() for part in text.rstrip(";").split(";")):
        if words[0] == "inputs":
            values = [_widened(x) for x in inputs]
        elif words[0] in REDUCTIONS:
            values.append(_reduced(words, values, np.broadcast_shapes(*(x.shape for x in inputs))))
        elif words[0] == "out":
            out.append(values[int(words[1])])
        else:
            e = Element.coerce(words[1])
            values.append(_instruction(words[0], e, words[2:], values))
    return [np.asarray(_number(x) if isinstance(x, tuple) else x) for x in out]


def _widened(x: Array) -> Array:
    """Halves as f32, also where NumPy has only their bits; anything else as it is."""
    half = x.dtype.itemsize == 2 and x.dtype.kind in "fV"
    return to_reference(x).astype(np.float32) if half else x


def _reduced(words: list[str], values: list[Any], shape: tuple[int, ...]) -> Array:
    """A reduction of the contiguous array, whose axes stay: functions take it all along the row."""
    e, axes = Element.coerce(words[1]), int(words[3])
    x = np.broadcast_to(values[int(words[2])], shape).copy()
    which = tuple(range(len(shape) - axes, len(shape)))
    return _run(ReduceDescriptor(words[0], shape, which, True, e.compute), {"x": x}, {})


def _number(x: tuple[Element, Any]) -> Array:
    e, value = x
    compute = e.compute if e.is_float else e
    return np.asarray(value).astype(np.uint64 if not e.is_float and value >= 2**63 else None).astype(compute.numpy)


def _instruction(name: str, e: Element, operands: list[str], values: list[Any]) -> Any:
    if name == "number":
        return e, (float if e.is_float else int)(operands[0])
    given = [values[int(x)] for x in operands]
    if name == "cast":
        x = _number(given[0]) if isinstance(given[0], tuple) else given[0]
        return _cast(x, e)
    tail = _numbers_of(name)
    arrays = given[: len(given) - tail]
    numbers = [value for _, value in given[len(given) - tail :]]
    return _apply(
        name, e.compute if e.is_float else e, [_number(x) if isinstance(x, tuple) else x for x in arrays], numbers
    )


def _cast(x: Array, e: Element) -> Array:
    """To an element; halves come back as f32."""
    device = _DEVICE.get()
    y = empty(x.shape, e, device=device)
    plan(CastDescriptor(x.shape, Element.coerce(x.dtype), e), device).run(asarray(x).to(device), y)
    if not e.is_half:
        return y.to("cpu").numpy()
    wide = empty(x.shape, Element.F32, device=device)
    plan(CastDescriptor(x.shape, e, Element.F32), device).run(y, wide)
    return wide.to("cpu").numpy()


def _numbers_of(name: str) -> int:
    """How many of a function's operands are numbers."""
    base = name.partition("_backward")[0]
    if base in ("add_scaled", "popcount", "clz", "ctz", "nextafter"):
        return 1
    if base in ("add", "sub", "where", "gelu", "gelu_tanh"):
        return 0
    if base == "clamp":
        return 2
    kinds: Any = UNARY if base in UNARY else TERNARY if base in TERNARY else BINARY
    return len(kinds[base].numbers)


# --- programs -------------------------------------------------------------------------------------------------------


@cache
def _table() -> dict[tuple[str, str], frozenset[int]]:
    return {(r["op"], r["direction"]): frozenset(r["elements"]) for r in rows() if r["backend"] == "cpu"}


def functions(e: Element) -> Iterator[tuple[str, int, list[str]]]:
    """Functions that compute in an element: name, how many operands vary, and the numbers besides."""
    whole = not e.is_float

    def numbers(given: Any) -> list[str]:
        return [repr(max(int(x), 0 if e < Element.I8 else -99)) if whole else repr(float(x)) for x in given]

    def has(op: str, direction: str = "forward") -> bool:
        return int(e) in _table().get((op, direction), frozenset())

    for kind, u in UNARY.items():
        if whole and e is Element.BOOL and kind == "bitwise_not":
            continue
        bits = [e.bits] if kind in ("popcount", "clz", "ctz") else []
        given = [n.default if n.default is not None else 1.0 for n in u.numbers] + bits
        if has(kind):
            yield kind, 1, numbers(given)
        if u.saves and has(kind, "backward"):
            yield f"{kind}_backward", 2, numbers(given)
    for kind, b in BINARY.items():
        if not has(kind) or (e is Element.BOOL and kind.startswith("bitwise")) or (kind == "nextafter" and e.is_half):
            continue
        given = [] if kind in ("add", "sub") else [0] if kind == "nextafter" else [x for _, x in b.numbers]
        yield kind, 2, numbers(given)
        for k in "ab" if b.da and kind not in ("add", "sub") and has(kind, "backward") else "":
            yield f"{kind}_backward_{k}", 3, numbers(given)
    yield "add_scaled", 2, numbers([3])
    for kind, t in TERNARY.items():
        if has(kind):
            yield kind, 3, numbers(x for _, x in t.numbers)
        for k in "abc" if has(kind, "backward") else "":
            yield f"{kind}_backward_{k}", 4, numbers(x for _, x in t.numbers)
    yield "where", 3, []
    if has("clamp"):
        yield "clamp", 1, numbers([0, 1])
    if e.is_float:
        yield from (("gelu", 1, []), ("gelu_tanh", 1, []), ("gelu_backward", 2, []), ("gelu_tanh_backward", 2, []))
        yield from (("where_backward_a", 2, []), ("where_backward_b", 2, []), ("clamp_backward", 2, numbers([0, 1])))


def answers(name: str) -> bool:
    """Whether a function's result is bool."""
    found: Any = UNARY.get(name) or BINARY.get(name)
    return bool(found and found.answers)


DIVISIONS = ("fmod", "remainder", "floor_divide", "trunc_divide")


def _with(name: str, e: Element, arrays: int, numbers: list[str], at: int) -> tuple[list[str], int]:
    """Instructions for a function among others, whose first value is `at`, and the number of the last value.

    It is of a sum, of the other input and of the first one again, chosen by a comparison behind it.
    """
    text: list[str] = []

    def add(line: str) -> int:
        text.append(line)
        return at + len(text) - 1

    operands = [2, 1, 0, 1][:arrays] if name not in DIVISIONS else [2, 1]
    if name == "where":
        operands = [add(f"gt {e} 2 0;"), 2, 1]
    if name in ("where_backward_a", "where_backward_b"):
        operands = [2, add(f"gt {e} 2 0;")]
    operands += [add(f"number {e} {n};") for n in numbers]
    made = add(f"{name} {e} {' '.join(map(str, operands))};")
    if answers(name):
        return text, add(f"where {e} {made} 2 0;")
    larger = add(f"maximum {e} {made} 0;")
    return text, add(f"where {e} {add(f'le {e} 0 2;')} {larger} {made};")


def _programs(e: Element) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Programs of eight functions with an output each: text, names, and whether some take four arrays."""
    for many in (False, True):
        known = [f for f in functions(e) if (f[1] > 3) is many]
        for few in range(0, len(known), MAX_OUTPUTS):
            names, text, outputs = [], ["inputs 3;"], []
            for name, arrays, numbers in known[few : few + MAX_OUTPUTS]:
                more, last = _with(name, e, arrays, numbers, len(text) + 2)
                names.append(name)
                text += more
                outputs.append(f"out {last};")
            yield " ".join([*text, *outputs]), tuple(names), many


def _values(e: Element, shape: tuple[int, ...], rng: np.random.Generator, nonzero: bool = False) -> Array:
    if e is Element.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if e.is_integer:
        low = max(np.iinfo(e.numpy).min, -100)
        found = rng.integers(low, 100, shape)
        return np.where(found == 0, 3, found) if nonzero else found
    return rng.normal(0, 2, shape)


def _case(desc: ExprDescriptor, rng: np.random.Generator, note: str = "", divides: bool = False) -> Case:
    tensors = {
        f"x{k}": _values(e, tuple(map(largest, s)), rng, divides and k == 1)
        for k, (s, e) in enumerate(zip(desc.shapes, desc.elements, strict=True))
    }
    return Case(desc, tensors, note=note)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Every function among others; broadcasting, several outputs, mixed elements, casts, special values."""
    e = element
    for text, names, many in _programs(e):
        shapes = ((9, 23),) * 3 if many else ((9, 23), (23,), (9, 1))
        desc = ExprDescriptor(text, (9, 23), shapes, (e, e, e), (e,) * len(names))
        yield _case(desc, rng, ", ".join(names), bool(set(DIVISIONS) & set(names)))
    for a, b in SHAPES:
        full: Sizes = np.broadcast_shapes(a, b)
        text = f"inputs 2; add {e} 0 1; number {e} 1; mul {e} 2 3; maximum {e} 2 1; lt {e} 1 0; out 4; out 5; out 6;"
        yield _case(ExprDescriptor(text, full, (a, b), (e, e), (e, e, Element.BOOL)), rng)
    yield from _mixed(e, rng)
    if e.is_float:
        yield from _reductions(e, rng)
        yield from _behind_reductions(e, rng)
        for text, names, _ in _programs(e):
            x, y = (np.ascontiguousarray(v) for v in np.broadcast_arrays(SPECIAL[:, None], SPECIAL))
            desc = ExprDescriptor(text, x.shape, (x.shape,) * 3, (e, e, e), (e,) * len(names))
            case = _case(desc, rng, f"{', '.join(names)}, special values")
            case.tensors |= {"x0": x, "x1": y, "x2": x[::-1].copy()}
            yield case


def _reductions(e: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Sums, with and without what is summed; rows of every length, and few of them, which are cut into strips."""
    for a, b, axes in (
        ((7,), (7,), 1), ((5, 70), (70,), 1), ((40, 3), (40, 1), 1), ((4, 3, 70), (3, 1), 2), ((2, 6, 9), (6, 9), 3), ((3, 0), (3, 1), 1),
        ((0, 3), (3,), 1), ((3, 1), (3, 1), 1), ((2, 20000), (1, 20000), 1), ((70, 9000), (9000,), 1), ((2, 3, 70001), (70001,), 1),
        ((300, 400), (1,), 2),
    ):  # fmt: skip
        full = np.broadcast_shapes(a, b)
        text = f"inputs 2; mul {e} 0 1; tanh {e} 2; sum {e} 3 {axes}; mean {e} 2 {axes}; out 4; out 3; out 5;"
        yield _case(ExprDescriptor(text, full, (a, b), (e, e), (e, e, e), (axes, 0, -axes)), rng, "sums")
        length = int(np.prod(full[len(full) - axes :]))
        if 0 < length <= 8192:
            text = f"inputs 2; sub {e} 0 1; amax {e} 2 {axes}; amin {e} 2 {axes}; abs {e} 2; prod {e} 5 {axes}; out 3; out 4; out 6;"
            desc = ExprDescriptor(text, full, (a, b), (e, e), (e, e, e), (-axes, axes, axes))
            yield _case(desc, rng, "extremes and products")


def _behind_reductions(e: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Functions of what is reduced, as in softmax and in norms: over rows of every length, also outputs that are one for a row."""
    for a, b, axes in (
        ((7,), (7,), 1), ((5, 70), (70,), 1), ((400, 3), (400, 1), 1), ((4, 3, 70), (3, 1), 2), ((2, 6, 9), (6, 9), 3), ((0, 3), (3,), 1),
        ((3, 1), (3, 1), 1), ((2, 8192), (1, 8192), 1), ((7, 8000), (8000,), 1), ((60, 1000), (1,), 1), ((30, 4, 100), (4, 1), 2),
    ):  # fmt: skip
        full = np.broadcast_shapes(a, b)
        softmax = f"inputs 2; mul {e} 0 1; amax {e} 2 {axes}; sub {e} 2 3; exp {e} 4; sum {e} 5 {axes}; div {e} 5 6; log {e} 6; "
        softmax += f"add {e} 8 3; out 7; out 9; out 3;"
        yield _case(ExprDescriptor(softmax, full, (a, b), (e, e), (e,) * 3, (0, axes, -axes)), rng, "as softmax")
        norm = (
            f"inputs 2; add {e} 0 1; mean {e} 2 {axes}; sub {e} 2 3; mul {e} 4 4; mean {e} 5 {axes}; number {e} 0.001; "
        )
        norm += f"add {e} 6 7; rsqrt {e} 8; mul {e} 4 9; mul {e} 10 1; out 11; out 9;"
        yield _case(ExprDescriptor(norm, full, (a, b), (e, e), (e, e), (0, -axes)), rng, "as a norm")
    text = f"inputs 1; sum {e} 0 1; tanh {e} 1; out 2; out 0;"  # of few rows, which are cut into strips
    yield _case(ExprDescriptor(text, (3, 70001), ((3, 70001),), (e,), (e, e), (1, 0)), rng, "of long rows")


def _mixed(e: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Elements that are converted while being read, and types that change in the middle."""
    for other in (Element.F32, Element.F64, Element.BF16, Element.I64, Element.I16, Element.U8, Element.BOOL):
        if other is e:
            continue
        text = f"inputs 2; cast {other} 0; gt {other} 2 1; where {e} 3 0 1; out 4; out 3;"
        if not e.is_float and other.is_float:
            text = f"inputs 2; cast {other} 0; gt {other} 2 1; where {e} 3 0 0; out 4; out 3;"
        desc = ExprDescriptor(text, (6, 70), ((6, 70), (70,)), (e, other), (e, Element.BOOL))
        case = _case(desc, rng, f"with {other}")
        case.tensors = {
            n: np.abs(x) if x.dtype != bool else x for n, x in case.tensors.items()
        }  # unsigned ones hold them
        yield case


def reference_on(case: Case, device: str) -> dict[str, Expected]:
    """`reference` by the functions of a device."""
    before = _DEVICE.set(device)
    try:
        return reference(case)
    finally:
        _DEVICE.reset(before)


def reference(case: Case) -> dict[str, Expected]:
    """What the functions give one after the other in the compute type, before it is stored."""
    desc: Any = case.descriptor
    inputs = [round_to(case.tensors[f"x{k}"], x) for k, x in enumerate(desc.elements)]
    with np.errstate(all="ignore"):
        found = unfused(desc.program, inputs)
    shapes = [tuple(map(largest, p.shape)) for p in desc.signature().outputs]
    reduced = desc.reduced or (0,) * len(found)
    wide = [to_reference(y) for y in found]
    whole = [y.reshape(s) if n else np.broadcast_to(y, s) for y, s, n in zip(wide, shapes, reduced, strict=True)]
    return {f"y{k}": Expected(y) for k, y in enumerate(whole)}
