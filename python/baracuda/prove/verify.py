"""Re-proves what SKUs promise on this machine: errors, bits over runs, threads and batches, untouched bytes.

The generated tests and `python -m baracuda verify` both use this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core
from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import MATH, PlanPreference, rows
from baracuda.describe.dims import Shape, largest, size_at
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.describe.spec import IN, INOUT, Param
from baracuda.memory.device import Device
from baracuda.memory.tensor import empty, from_pointer
from baracuda.prove.batches import COUNTS, batches, other_bits
from baracuda.prove.layouts import REPEATED, SENTINEL, Buffer, buffer
from baracuda.prove.magnitudes import some, stretched_cases
from baracuda.prove.narrow import is_records, storage
from baracuda.prove.reference import Case, Expected, reference_module, round_to, to_reference, worst

if TYPE_CHECKING:
    from baracuda.prove.reference import Array

# What memory holds besides, to see whether bits depend on what nobody has written: zeros, ordinary numbers, NaN.
FILLS = (0x00, 0x3F, 0xFF)
MAGNITUDE_ELEMENTS = 2000  # of the largest tensor of a case of every magnitude


@dataclass(slots=True)
class Outcome:
    """What a run left behind."""

    outputs: dict[str, Any]
    stray: dict[str, int]

    def digest(self) -> str:
        """A fingerprint of all output bits."""
        h = hashlib.sha256()
        for _, arrays in sorted(self.outputs.items()):
            for array in arrays if isinstance(arrays, list) else [arrays]:
                h.update(np.ascontiguousarray(array).tobytes())
        return h.hexdigest()


def _repeats(p: Param, direction: str) -> bool:
    """Whether an input's values may be changed alone: what was saved by a forward pass belongs to its inputs."""
    return p.role == IN and p.element.is_float and not p.variadic and (direction == "forward" or p.name[0] == "d")


def arranged(case: Case, layout: str) -> Case:
    """The case with values that a layout can hold: equal along a dimension of stride 0."""
    if layout not in REPEATED:
        return case
    tensors: dict[str, Any] = dict(case.tensors)
    for p in case.descriptor.signature().present:
        if not _repeats(p, case.descriptor.direction):
            continue
        value = tensors[p.name]
        if not np.ndim(value) or not np.size(value):
            continue
        axis = REPEATED[layout]
        tensors[p.name] = np.broadcast_to(np.take(value, [0], axis), np.shape(value))
    return replace(case, tensors=tensors)


def rounded(case: Case) -> Case:
    """The case with inputs rounded to the plan's elements, as the reference must see them."""
    signature = case.descriptor.signature()

    def fix(p: Param, values: Any) -> Any:
        if p.variadic:
            return [to_reference(round_to(v, p.element)) for v in values]
        return to_reference(round_to(values, p.element))

    tensors = {p.name: fix(p, case.tensors[p.name]) for p in signature.present if p.role in (IN, INOUT)}
    return Case(case.descriptor, tensors, case.scalars, case.note, case.exact_gradient)


def lent(part: Buffer, element: Element) -> Any:
    """A buffer's view as a tensor of an element that NumPy lacks."""
    address = part.view.__array_interface__["data"][0] if part.view.size else 0
    strides = tuple(s // element.nbytes for s in part.view.strides)
    return from_pointer(address, part.view.shape, element, strides, owner=part.raw)


class Resident:
    """A buffer's memory on a device: all of it is there and comes back, so that stray writes are seen."""

    def __init__(self, buffer: Buffer, element: Element, device: str) -> None:
        self.buffer = buffer
        self.base = empty(buffer.raw.size, "u8", device=device).copy_from(buffer.raw.reshape(-1))
        view, raw = (a.__array_interface__["data"][0] for a in (buffer.view, buffer.raw))
        address = self.base.address + (view - raw if buffer.view.size else 0)
        strides = tuple(s // element.nbytes for s in buffer.view.strides)
        self.view = from_pointer(address, buffer.view.shape, element, strides, device, owner=self.base)

    def fetch(self) -> None:
        """Brings back what the device holds."""
        self.buffer.raw.reshape(-1)[:] = self.base.to("cpu").numpy()


def execute(
    case: Case,
    made: Plan,
    layout: str = "contiguous",
    output_layout: str | None = None,
    fill: int = SENTINEL,
    sizes: Mapping[str, int] | None = None,
) -> Outcome:
    """Runs a plan on a case's inputs, arranged in memory as `layout` says, on the plan's device.

    Whatever else there is, outputs and workspace above all, is filled with a byte. `sizes` are the values of the plan's
    Dims, for which it is given no more workspace than they need; the maxima by default.
    """
    case = arranged(case, layout)
    buffers: dict[str, list[Buffer]] = {}
    residents: list[Resident] = []
    room = made.workspace_size if sizes is None else made.workspace_for(**sizes)

    def shaped(shape: Shape) -> tuple[int, ...]:
        return tuple(largest(n) if sizes is None else size_at(n, sizes) for n in shape)

    def given(part: Buffer, element: Element) -> Any:
        if made.device == "cpu":
            return lent(part, element) if is_records(part.view) else part.view
        residents.append(Resident(part, element, made.device))
        return residents[-1].view

    call: dict[str, Any] = dict(case.scalars)
    for p in made.signature.present:
        where = layout if p.role == IN else output_layout or layout
        if where in REPEATED and not _repeats(p, case.descriptor.direction):
            where = "contiguous"
        parts = [buffer(shaped(shape), storage(p.element), where, fill) for shape in p.shapes]
        if p.role in (IN, INOUT):
            values = case.tensors[p.name] if p.variadic else [case.tensors[p.name]]
            for part, v in zip(parts, values, strict=True):
                part.view[...] = round_to(v, p.element)
        buffers[p.name] = parts
        call[p.name] = [given(b, p.element) for b in parts] if p.variadic else given(parts[0], p.element)
    if room:
        # As much behind it: what is written there is seen, not somebody else's memory.
        raw = np.full((2 * room + Plan.workspace_alignment, 1), fill, np.uint8)
        scratch = Resident(Buffer(raw, raw, np.arange(len(raw)) < room, fill), Element.U8, made.device)
        call["workspace"] = scratch.base[:room]
        buffers["workspace"] = [scratch.buffer]
        residents.append(scratch)
    made.run(**call)
    Device(made.device).check()
    for resident in residents:
        resident.fetch()
    outputs = {
        p.name: [b.view for b in buffers[p.name]] if p.variadic else buffers[p.name][0].view
        for p in made.signature.outputs
    }
    return Outcome(outputs, {name: sum(b.stray_writes() for b in parts) for name, parts in buffers.items()})


@dataclass(slots=True)
class Report:
    """What was found about one SKU."""

    sku: str
    promise: str
    cases: int = 0
    worst_error: float = 0.0
    where: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every promise was kept."""
        return not self.problems


def expect(case: Case, device: str = "cpu") -> dict[str, Any]:
    """The reference's outputs, from the inputs as a plan is given them.

    `device` is asked by references that are plans themselves: those that say reference_on.
    """
    module: Any = reference_module(case.descriptor.op)
    on = getattr(module, "reference_on", None)
    with np.errstate(over="ignore"):  # sums and sizes that f64 cannot hold are infinite
        expected: dict[str, Any] = module.reference(rounded(case)) if on is None else on(rounded(case), device)
    return expected


def compare(
    case: Case, outcome: Outcome, made: Plan, report: Report, label: str, expected: dict[str, Any] | None = None
) -> None:
    """Adds to the report how far the outputs are from the reference, and stray writes."""
    expected = expect(case, made.device) if expected is None else expected
    for p in made.signature.outputs:
        if p.name not in expected:
            report.problems.append(f"{label}: the reference gives no {p.name!r}")
            continue
        pairs = (
            zip(outcome.outputs[p.name], expected[p.name], strict=True)
            if p.variadic
            else [(outcome.outputs[p.name], expected[p.name])]
        )
        for actual, want in pairs:
            assert isinstance(want, Expected)
            share, text = worst(actual, want, made.precision_guarantee, made.descriptor.primary_element(), p.element)
            if share > report.worst_error:
                report.worst_error, report.where = share, f"{label}, {p.name} {text}"
            if not share <= 1:
                report.problems.append(f"{label}, {p.name}: error is {share:.3g} times what is allowed, {text}")
    for name, count in outcome.stray.items():
        if count:
            report.problems.append(f"{label}: {count} elements beside {name} were written")


def candidates(op: str, direction: str, element: Element, device: str = "cpu") -> list[str]:
    """Variants of the op's rows for a device that take an element."""
    where = Device(device)
    found = [
        r["variant"]
        for r in rows()
        if (r["op"], r["direction"], r["backend"]) == (op, direction, where.backend)
        and int(element) in r["elements"]
        and r["min_arch"] <= where.arch
    ]
    return list(dict.fromkeys(found))


def _has_subnormals(case: Case) -> bool:
    """Whether an input is nearer to 0 than the normal numbers of f32."""
    return any(bool(((x != 0) & (np.abs(x) < 2.0**-126)).any()) for x in case.tensors.values())


def verify(
    op: str,
    direction: str,
    element: Element,
    variant: str,
    layouts: tuple[str, ...] = ("contiguous", "sliced", "transposed"),
    seed: int = 0,
    device: str = "cpu",
    *,
    most_elements: int | None = None,
    most_cases: int | None = None,
    stretched: int | None = None,
    settings: Mapping[str, Callable[[], AbstractContextManager[Any]]] | None = None,
    batched: int = 3,
) -> Report:
    """Checks one SKU: all cases of the reference in several layouts, bits over runs and threads, bytes around.

    Args:
        op: The op's name.
        direction: "forward" or "backward".
        element: The primary element.
        variant: The row's variant.
        layouts: Names of LAYOUTS.
        seed: Of the inputs.
        device: Where to run it.
        most_elements: Leaves out cases whose tensors have more elements together.
        most_cases: Ends after so many cases; then those of every magnitude follow.
        stretched: How many of the cases of every magnitude, on the cpu; all by default.
        settings: More surroundings that must not change a deterministic row's bits, by name.
        batched: How many cases, drawn by the seed, are looked at for bits that depend on the rows of a batch.
    """
    report = Report(f"{op}.{direction}.{Device(device).backend}.{element}.{variant}", "")
    rng = np.random.default_rng(seed)
    maths = {r["math"] for r in rows() if (r["op"], r["direction"], r["variant"]) == (op, direction, variant)}
    limit = PlanPreference(sku=variant, math_precision=max(maths, key=MATH.index, default=MATH[0]))
    promised: list[tuple[Case, dict[str, Any]]] = []
    for number, case in enumerate(reference_module(op).cases(op, direction, element, rng)):
        if not type(case.descriptor).plan_class.query(case.descriptor, device, limit):
            continue  # this row is for other problems of the op
        if most_elements is not None and count_elements(case) > most_elements:
            continue
        if limit.math_precision != "ieee" and _has_subnormals(case):
            continue  # reduced precision is relative to numbers with all their bits
        if report.cases == most_cases:
            break
        made = plan(case.descriptor, device, limit)
        report.promise = str(made.precision_guarantee)
        report.cases += 1
        digests, expected = {}, None
        for name in layouts:
            label = f"case {number} {case.note} {case.descriptor}, {name}"
            outcome = execute(case, made, name)
            asked = arranged(case, name)
            if asked is case and expected is None:
                expected = expect(case, device)  # the same for all layouts that hold any values
            compare(asked, outcome, made, report, label, expected if asked is case else None)
            digests[name] = outcome.digest()
        _check_bits(case, made, report, digests[layouts[0]], layouts[0], settings or {})
        if made.precision_guarantee.batch_invariant and expected is not None:
            promised.append((case, expected))
    few = min(most_elements or MAGNITUDE_ELEMENTS, MAGNITUDE_ELEMENTS)
    # Rows of GPUs promise what squares allow, which these inputs leave.
    everywhere = Device(device).backend == "cpu" and stretched != 0
    wide = list(stretched_cases(op, direction, element, seed, few)) if everywhere else []
    for case in wide if stretched is None else some(wide, stretched, rng):
        if not type(case.descriptor).plan_class.query(case.descriptor, device, limit):
            continue
        if limit.math_precision != "ieee":
            continue  # a reduced precision may have a narrower range, too
        made = plan(case.descriptor, device, limit)
        compare(case, execute(case, made, layouts[0]), made, report, f"{case.note} {case.descriptor}")
    for index in rng.permutation(len(promised))[:batched]:
        case, found = promised[int(index)]
        _check_rows(case, found, limit, report, layouts, device, rng, most_elements)
    return report


def count_elements(case: Case) -> int:
    """How many elements the tensors of a case have together."""
    shapes = [shape for p in case.descriptor.signature().present for shape in p.shapes]
    return sum(prod(map(largest, shape)) for shape in shapes)


def _check_bits(case: Case, made: Plan, report: Report, digest: str, layout: str, settings: Any) -> None:
    promise = made.precision_guarantee
    for name, setting in settings.items() if promise.deterministic else ():
        with setting():
            same = execute(case, made, layout).digest() == digest
        if not same:
            report.problems.append(f"{case.descriptor}: {name} gave other bits")
    # Other runs. Without a workspace only outputs could be read before they are written: one of the fills tells.
    fills = FILLS if made.workspace_size else (FILLS[report.cases % len(FILLS)],)
    for fill in fills if promise.deterministic else ():
        if execute(case, made, layout, fill=fill).digest() != digest:
            same = execute(case, made, layout).digest() == digest
            what = f"memory full of {fill:#04x}, which nobody wrote," if same else "another run"
            report.problems.append(f"{case.descriptor}: {what} gave other bits")
    if promise.thread_invariant and made.device == "cpu":
        single = plan(case.descriptor, preference=PlanPreference(sku=made.sku.variant, threads=1))
        if execute(case, single, layout).digest() != digest:
            report.problems.append(f"{case.descriptor}: one thread gave other bits than {_core.num_threads()}")


MOST_BATCHED = 1 << 15  # elements of a case whose rows are compared


def _check_rows(
    case: Case,
    expected: dict[str, Any],
    limit: PlanPreference,
    report: Report,
    layouts: tuple[str, ...],
    device: str,
    rng: np.random.Generator,
    most: int | None,
) -> None:
    """A row's bits are the same alone and among any number of others, whatever the number of threads."""
    if any(not x.size for x in _arrays(expected)) or count_elements(case) > MOST_BATCHED:
        return
    given = rounded(case)
    for batch in batches(given, expected):
        row = count_elements(case) / batch.count
        counts = [n for n in COUNTS if n * row <= (most or MOST_BATCHED)]
        # By this SKU, or by whichever is chosen for who asks for the promise.
        wish = (limit, PlanPreference(batch_invariant=True, math_precision=limit.math_precision))[rng.integers(2)]
        layout = str(rng.choice(layouts))

        def run(part: Case, wish: PlanPreference = wish, layout: str = layout) -> dict[str, Any]:
            made = plan(part.descriptor, device, replace(wish, threads=int(rng.integers(3)) if device == "cpu" else 0))
            return execute(part, made, layout if layout not in REPEATED else "contiguous").outputs

        try:
            for found in other_bits(given, batch, rng.choice(counts, 2) if counts else (), rng, run):
                report.problems.append(f"{case.note} {case.descriptor}, {layout}: {found}")
        except BaracudaError:
            continue  # smaller or larger, this is no problem for the row, or its data are none


def _arrays(expected: dict[str, Any]) -> Iterator[Array]:
    for found in expected.values():
        yield from (np.asarray(e.value) for e in (found if isinstance(found, list) else [found]))


def gradient_error(case: Case, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """For a backward case, how far the reference's gradients are from central differences of the forward reference.

    Yields (gradient name, relative error of a directional derivative).
    """
    module = reference_module(case.descriptor.op)
    gradients: dict[str, Expected] = module.reference(case)
    forward = module.forward_of(case)

    def objective(tensors: dict[str, Any]) -> float:
        outputs = module.reference(Case(forward.descriptor, tensors, forward.scalars))
        total = 0.0
        for name, result in outputs.items():
            cotangent = case.tensors.get("d" + name)
            if cotangent is not None:
                total += float(np.sum(np.asarray(result.value, np.longdouble) * cotangent))
        return total

    for name, found in gradients.items():
        source = name.removeprefix("d")
        if source not in forward.tensors:
            continue
        x = np.asarray(forward.tensors[source], np.float64)
        if x.size == 0:
            continue
        direction = rng.normal(size=x.shape)
        step = 1e-5
        ends = [objective({**forward.tensors, source: x + s * step * direction}) for s in (1, -1)]
        numeric = (ends[0] - ends[1]) / (2 * step)
        analytic = float(np.sum(found.value * direction))
        scale = float(np.sum(np.abs(found.value * direction))) + 1e-6
        yield name, abs(numeric - analytic) / scale
