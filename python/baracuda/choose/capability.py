"""What exists here: the SKU table as answers with three values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from baracuda import _core
from baracuda.choose.question import STATES, Question, asked_place, read_kind, steps_of
from baracuda.choose.sku import NO_PREFERENCE, SCHEMA, KernelSku, PlanPreference, Support, make_sku, rows
from baracuda.describe.calls import signed
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, Refusal, shown
from baracuda.describe.record import from_plain, to_plain

_RANKS = {state: rank for rank, state in enumerate(STATES)}


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
        step_of: The function of several plans that was asked about, where the row is of one of its steps.
    """

    sku: KernelSku
    elements: tuple[Element, ...]
    state: str
    verified: str
    support: Support
    reason: str = ""
    step_of: str = ""

    def standing(self) -> str:
        """The state in words, with the reason where it cannot run here."""
        words = {"declared": "not built", "built": "no device"}.get(self.state, self.state)
        return f"{words}: {self.reason}" if self.reason else words


class Capabilities(tuple[Capability, ...]):
    """Rows that answer a capability question; printed a line each, `to_markdown()` makes a table.

    Attributes:
        question: What was asked.
    """

    question: Question

    def __new__(cls, found: Iterable[Capability], question: Question | None = None) -> Capabilities:
        """Rows, and what they answer."""
        made = super().__new__(cls, found)
        made.__dict__["question"] = question or Question()
        return made

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: answers cannot be changed.")

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.question

    def __repr__(self) -> str:
        lines = [f"{len(self)} kernels"]
        for c in self:
            elements = " ".join(map(str, c.elements))
            step = f"step of {c.step_of}, " if c.step_of else ""
            lines.append(f"  {c.sku.name}  [{elements}]  {step}{c.state}, {c.verified}, {c.support.in_short()}")
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """A table for people; the state is a fact of this machine, all else of the SKU table."""
        head = ("SKU", "elements", "bound", "in place", "verified", "state", "answer")
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for c in self:
            sku = c.sku
            name = f"`{sku.op}` {sku.direction} {sku.backend} {sku.variant}"
            bound = str(sku.precision_guarantee).split(", ")[0].replace("|", "\\|")
            in_place = "yes" if sku.in_place_safe else "no"
            lines.append(
                f"| {name} | {' '.join(map(str, c.elements))} | {bound} | {in_place} | {c.verified} | {c.standing()} | "
                f"{c.support.in_short().replace('|', chr(92) + '|')} |"
            )
        return "\n".join(lines)

    def to_json(self) -> str:
        """Question and rows for other processes, such as a scheduler's; carries a schema number."""
        held = {"question": to_plain(self.question), "rows": to_plain(tuple(self))}
        return json.dumps({"schema": SCHEMA, "kind": "capabilities", "capabilities": held})

    @staticmethod
    def from_json(text: str | bytes) -> Capabilities:
        """The inverse of `to_json`: equal rows, as the machine that wrote them answered.

        Raises:
            InvalidProblemError: For anything that it did not write.
        """
        held = read_kind(text, "capabilities")
        if not isinstance(held, dict) or held.keys() != {"question", "rows"}:
            raise InvalidProblemError(f"from_json: capabilities: got {shown(held)}, want a question and rows.")
        question = from_plain(Question, held["question"], "question")
        return Capabilities(from_plain(tuple[Capability, ...], held["rows"], "rows"), question)


@signed
def capabilities(
    op: str | None = None,
    *,
    direction: str | None = None,
    element: Any = None,
    index_element: Any = None,
    device: Any = None,
    rank: int | None = None,
    alignment: int = 0,
    attributes: Mapping[str, float] | None = None,
    preference: PlanPreference | None = None,
    state: str | None = None,
) -> Capabilities:
    """Asks the SKU table; what is left out is a wildcard. Works on every machine.

    Args:
        op: Op name, such as "softmax". For a function of several plans, such as "einsum", the rows of its steps answer.
            Operators of ONNX ("LayerNormalization") and of aten ("aten::native_layer_norm") are known by these names, too.
        direction: "forward" or "backward".
        element: Primary element.
        index_element: The second element: that of indices, or what else the op has besides.
        device: "cpu", "cuda:0" or "metal". An architecture that need not be here is answered from the table alone, with
            the states "declared" or "built": "cpu:v3", "cuda:sm_90", "metal:apple9".
        rank: Rank of the tensors.
        alignment: Bytes that addresses will be multiples of; 0 where nothing is known.
        attributes: Numbers of the op's attributes by name, such as {"causal": 1}; rows that take others refuse.
        preference: Further demands.
        state: Keep rows that are at least this far: "declared", "built", "present" or "usable".

    Raises:
        InvalidProblemError: An argument is wrong; an op that is misspelt comes with what is spelt much alike.
    """
    return answer(
        Question(
            op, direction, element, index_element, device, rank, alignment,
            attributes or (),  # type: ignore[arg-type]
            NO_PREFERENCE if preference is None else preference, state,
        )
    )  # fmt: skip


def answer(question: Question) -> Capabilities:
    """The rows that answer a question."""
    _, _, arch = asked_place(question.device)
    elements = [-1 if e is None else e._value_ for e in (question.element, question.index_element)]
    elsewhere = "" if arch < 0 else question.device
    found = [
        _capability(index, verdict, refusals, depends, *elements, elsewhere, step_of)
        for op, direction, step_of in _asked_about(question)
        for index, verdict, refusals, depends, _ in _core.evaluate(question.packed(op, direction))
    ]
    if question.state is not None:
        least = _RANKS[question.state]
        found = [c for c in found if _RANKS[c.state] >= least]
    return Capabilities(found, question)


def _asked_about(question: Question) -> list[tuple[str, str | None, str]]:
    """Ops and directions, with the function that they are steps of."""
    op, direction = question.op, question.direction
    if op is None or len(steps := steps_of(op)) == 0 or steps[0][0] == op:
        return [(op or "", direction, "")]
    return [(one, way, op) for one, way in steps if direction in (None, way)]


@lru_cache(maxsize=1 << 14)
def _capability(
    index: int,
    verdict: str,
    refusals: tuple[tuple[Any, ...], ...],
    depends: tuple[str, ...],
    element: int,
    aux: int,
    elsewhere: str,
    step_of: str,
) -> Capability:
    """The answer of one row: the same questions are asked again and again. -1 is no element in particular."""
    row = rows()[index]
    sku = make_sku(row, *(None if e < 0 else Element(e) for e in (element, aux)))
    found = Support(verdict, tuple(Refusal(*r) for r in refusals), depends, sku)
    backend = _core.backend_state(row["backend"])
    state = "present" if backend["present"] and not elsewhere else "built" if backend["built"] else "declared"
    reason = "" if backend["present"] else backend["reason"]
    if elsewhere and state == "built":
        reason = f"asked about {elsewhere}, not about a device that is here"
    if state == "present" and not refusals:
        state = "usable"
    return Capability(sku, tuple(map(Element, row["elements"])), state, row["proof"], found, reason, step_of)
