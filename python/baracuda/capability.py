"""What exists here: the SKU table as answers with three values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.device import BACKENDS, place_of
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError, Refusal
from baracuda.sku import KernelSku, PlanPreference, Support, make_sku, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATES = ("declared", "built", "present", "usable")


@dataclass(frozen=True, slots=True)
class Capability:
    """One row of the SKU table and where it stands on this machine.

    Attributes:
        sku: The kernel.
        elements: Elements that it takes.
        state: "declared" (in the table), "built" (in this wheel), "present" (its device is here) or "usable" (it accepts
            the question).
        verified: What has run the kernel: "verified on device", "emulated" (the tests' emulator; built, not run on a
            device) or "compiled".
        support: The evaluator's answer to the question: yes, no (with refusals) or depends.
        reason: Why this wheel or machine does not have it; empty from state "present" on.
    """

    sku: KernelSku
    elements: tuple[Element, ...]
    state: str
    verified: str
    support: Support
    reason: str = ""

    def standing(self) -> str:
        """The state in words, with the reason where it cannot run here."""
        words = {"declared": "not built", "built": "no device"}.get(self.state, self.state)
        return f"{words}: {self.reason}" if self.reason else words


class Capabilities(tuple[Capability, ...]):
    """Rows that answer a capability question; printed a line each, `to_markdown()` makes a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = [f"{len(self)} kernels"]
        for c in self:
            why = "" if c.support else f": {'; '.join(str(r) for r in c.support.refusals)}"
            elements = " ".join(map(str, c.elements))
            lines.append(f"  {c.sku.name}  [{elements}]  {c.state}, {c.verified}, {c.support.verdict}{why}")
        return "\n".join(lines)

    def to_markdown(self, *, state: bool = True) -> str:
        """A table for people and docs; `state` is a fact of this machine, all else of the table."""
        head = ("SKU", "elements", "bound", "layout", "in place", "verified", "state")[: 7 if state else 6]
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for c in self:
            sku = c.sku
            name = f"`{sku.op}` {sku.direction} {sku.backend} {sku.variant}"
            layout = "contiguous" if sku.needs_contiguous else "any strides"
            bound = str(sku.precision_guarantee).split(", ")[0].replace("|", "\\|")
            in_place = "yes" if sku.in_place_safe else "no"
            lines.append(
                f"| {name} | {' '.join(map(str, c.elements))} | {bound} | {layout} | {in_place} "
                f"| {c.verified} |{f' {c.standing()} |' if state else ''}"
            )
        return "\n".join(lines)


def capabilities(
    op: str | None = None,
    *,
    direction: str | None = None,
    element: Any = None,
    device: str | None = None,
    rank: int | None = None,
    layout: str | None = None,
    alignment: int = 0,
    preference: PlanPreference | None = None,
    state: str | None = None,
) -> Capabilities:
    """Asks the SKU table; what is left out is a wildcard. Works on every machine.

    Args:
        op: Op name, such as "softmax".
        direction: "forward" or "backward".
        element: Primary element.
        device: "cpu", "cuda:0" or "metal".
        rank: Rank of the tensors.
        layout: "contiguous" if the caller can promise it.
        alignment: Bytes of alignment that the caller can promise.
        preference: Further demands.
        state: Keep rows that are at least this far: "declared", "built", "present" or "usable".
    """
    if state is not None and state not in _STATES:
        raise InvalidProblemError(f"state: got {state!r}, want one of {', '.join(_STATES)}.")
    kind = None if element is None else Element.coerce(element)
    wanted = preference or PlanPreference()
    backend, index = (None, 0) if device is None else place_of(device)
    question = {
        "op": op or "", "direction": direction or "any", "backend": "any" if backend is None else BACKENDS[backend],
        "device": index, "element": -1 if kind is None else int(kind), "aux": -1, "reads": [], "rank": -1 if rank is None else rank,
        "contiguous": layout == "contiguous", "alignment": alignment, "attrs": None, "params": None,
        "preference": wanted.packed(),
    }  # fmt: skip
    table = rows()
    return Capabilities(
        c for c in _answers(question, table, kind) if state is None or _STATES.index(c.state) >= _STATES.index(state)
    )


def _answers(question: dict[str, Any], table: tuple[dict[str, Any], ...], kind: Element | None) -> Iterator[Capability]:
    for index, verdict, refusals, depends, _ in _core.evaluate(question):
        row = table[index]
        if question["backend"] not in ("any", row["backend"]):
            continue
        reasons = tuple(Refusal(*r) for r in refusals)
        sku = make_sku(row, kind)
        found = Support(("no", "depends", "yes")[verdict], reasons, tuple(depends), sku)
        backend = _core.backend_state(row["backend"])
        state = "present" if backend["present"] else "built" if backend["built"] else "declared"
        if state == "present" and not reasons:
            state = "usable"
        reason = "" if backend["present"] else backend["reason"]
        yield Capability(sku, tuple(Element(e) for e in row["elements"]), state, row["proof"], found, reason)
