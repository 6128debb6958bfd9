"""What the SKU table is asked: a value that can be kept, compared and sent as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from baracuda import _core, _index
from baracuda.choose.sku import ARCHITECTURES, DIRECTIONS, NO_PREFERENCE, SCHEMA, PlanPreference, packed_question, rows
from baracuda.describe.calls import Signed
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.names import about, suggestion
from baracuda.describe.record import from_plain, read_object, to_plain
from baracuda.memory.device import BACKENDS, meant, place_of

if TYPE_CHECKING:
    from baracuda.choose.capability import Capabilities

STATES = ("declared", "built", "present", "usable")
Attributes = tuple[tuple[str, float], ...]

# The numbers of architectures whose devices need not be here, as the table has them.
_DIGITS = {"cuda": r"(\d{2,3})", "metal": r"(\d{1,2})"}


@lru_cache(maxsize=256)
def asked_place(device: str | None) -> tuple[int | None, int, int]:
    """Backend, number and architecture (-1: that of the device that is here) that a question's device names."""
    if device is None:
        return None, 0, -1
    backend, _, which = device.partition(":")
    levels: dict[str, int] = _core.cpu_levels  # with their numbers in the table
    if backend == "cpu" and which in levels:
        return BACKENDS.index(backend), 0, levels[which]
    found = backend in ARCHITECTURES and re.fullmatch(ARCHITECTURES[backend] + _DIGITS[backend], which)
    if found:
        return BACKENDS.index(backend), 0, int(found[1])
    try:
        return *place_of(device), -1
    except InvalidProblemError:
        raise InvalidProblemError(
            f"device: got {shown(device)}, want 'cpu', 'cuda', 'cuda:0', 'metal', or one that need not be here by its "
            f"architecture, such as 'cpu:v3' ({', '.join(levels)}), 'cuda:sm_90' or 'metal:apple9'{meant(device)}"
        ) from None


@cache
def _attributes_of(op: str) -> frozenset[str]:
    """Names of the attributes of an op's rows; those of all rows for None."""
    ops = {one for one, _ in steps_of(op)} if op else None
    return frozenset(name for r in rows() if ops is None or r["op"] in ops for _, name in r["attributes"])


@cache
def steps_of(name: str) -> tuple[tuple[str, str], ...]:
    """The ops, with their directions, that a name of the SKU table or of bc.functional is made of."""
    if name in _index.OPS:
        return tuple((name, direction) for direction in DIRECTIONS)
    return _index.STEPS[name]


@cache
def bounds_of(name: str | None, direction: str | None) -> frozenset[str]:
    """The kinds of bounds, besides exact, that kernels of an op, of a function's steps or (None) of all ops promise."""
    steps = None if name is None else {s for s in steps_of(name) if direction in (None, s[1])}
    asked = (
        r
        for r in rows()
        if (steps is None and direction in (None, r["direction"])) or (steps and (r["op"], r["direction"]) in steps)
    )
    return frozenset(r["bound"] for r in asked) - {"exact"}


def check_op(name: object) -> str:
    """The name of an op or function, also by its name in ONNX or aten.

    Raises:
        InvalidProblemError: For any other, with what is spelt much alike.
    """
    known = _index.OPS.keys() | _index.STEPS.keys()
    if not isinstance(name, str):
        raise InvalidProblemError(f"op: got {shown(name)}, want the name of an op or function.")
    if name in known:
        return name
    from baracuda.choose.operators import absence, own_name

    found = own_name(name, known)
    if found is None:
        hint = absence(name) or about(name, sorted(known))
        raise InvalidProblemError(f"op: got {shown(name)}, want the name of an op or function{hint or '.'}")
    return found


@dataclass(frozen=True, slots=True)
class Question(metaclass=Signed):
    """What the SKU table is asked; what is left out is a wildcard.

    Attributes:
        op: An op such as "softmax", or a function of several plans such as "einsum": then its steps are asked about. What
            ONNX ("LayerNormalization") or aten ("aten::native_layer_norm") calls it becomes its name here.
        direction: "forward" or "backward".
        element: Primary element.
        index_element: The second element: that of indices, or what else the op has besides.
        device: "cpu", "cuda:0" or "metal"; or an architecture that need not be here: "cpu:v3", "cuda:sm_90", "metal:apple9".
        rank: Rank of the tensors.
        alignment: Bytes that addresses will be multiples of; 0 where nothing is known.
        attributes: Numbers of the op's attributes by name, such as {"causal": 1}; rows that take others refuse.
        preference: Further demands.
        state: Keep rows that are at least this far: "declared", "built", "present" or "usable".
    """

    op: str | None = None
    direction: str | None = None
    element: Element | None = None
    index_element: Element | None = None
    device: str | None = None
    rank: int | None = None
    alignment: int = 0
    attributes: Attributes = ()
    preference: PlanPreference = NO_PREFERENCE
    state: str | None = None

    def __post_init__(self) -> None:
        if self.op is not None:
            object.__setattr__(self, "op", check_op(self.op))
        for name, value, known in (
            ("direction", self.direction, DIRECTIONS), ("state", self.state, STATES)
        ):  # fmt: skip
            if value is not None and value not in known:
                raise InvalidProblemError(f"{name}: got {shown(value)}, want None or one of {', '.join(known)}.")
        for name, given in (("element", self.element), ("index_element", self.index_element)):
            if given is not None and type(given) is not Element:
                object.__setattr__(self, name, Element.coerce(given, name))
        if self.device is not None:
            if type(self.device) is not str:
                object.__setattr__(self, "device", str(self.device))
            asked_place(self.device)
        for name, size in (("rank", 0 if self.rank is None else self.rank), ("alignment", self.alignment)):
            if type(size) is not int or not 0 <= size < 2**31:
                raise InvalidProblemError(f"{name}: got {shown(size)}, want an int of at least 0.")
        if not isinstance(self.preference, PlanPreference):
            raise InvalidProblemError(f"preference: got {shown(self.preference)}, want a bc.PlanPreference.")
        if isfinite(self.preference.max_error):
            self._check_max_error()
        if self.attributes:
            object.__setattr__(self, "attributes", self._checked(self.attributes))

    def _check_max_error(self) -> None:
        """One number is no measure of bounds of two kinds."""
        kinds = bounds_of(self.op, self.direction)
        if len(kinds) < 2:
            return
        steps = () if self.op is None else {f"{op} {way}" for op, way in steps_of(self.op)}
        whose, instead = ("all ops", "an op") if self.op is None else (self.op, f"one of {', '.join(sorted(steps))}")
        raise InvalidProblemError(
            f"preference.max_error: got {self.preference.max_error}, want none: kernels of {whose} promise in "
            f"{' and in '.join(sorted(kinds))}, whose constants are no measure of each other. Ask about {instead}."
        )

    def _checked(self, given: Attributes | Mapping[str, float]) -> Attributes:
        if not isinstance(given, (Mapping, tuple)):
            raise InvalidProblemError(f"attributes: got {shown(given)}, want numbers by name.")
        pairs = sorted(dict(given).items())
        known = _attributes_of(self.op or "")
        for name, value in pairs:
            if name not in known:
                hint = suggestion(name, known) if isinstance(name, str) else ""
                names = f"one of {', '.join(sorted(known))}" if self.op and known else "an attribute of the op"
                raise InvalidProblemError(f"attributes: got {shown(name)}, want {names}{hint or '.'}")
            if not isinstance(value, (bool, int, float)):
                raise InvalidProblemError(f"attributes.{name}: got {shown(value)}, want a number.")
        return tuple((name, float(value)) for name, value in pairs)

    def packed(self, op: str, direction: str | None) -> tuple[Any, ...]:
        """What the evaluator reads, asked about one op."""
        return packed_question(
            op, direction, *asked_place(self.device), self.element, self.index_element, self.rank,
            self.alignment, self.attributes, self.preference,
        )  # fmt: skip

    def answer(self) -> Capabilities:
        """The rows that answer it, as `bc.capabilities` gives them."""
        from baracuda.choose.capability import answer

        return answer(self)

    def to_json(self) -> str:
        """The question for other processes; carries a schema number."""
        return json.dumps({"schema": SCHEMA, "kind": "question", "question": to_plain(self)})

    @staticmethod
    def from_json(text: str | bytes) -> Question:
        """The inverse of `to_json`.

        Raises:
            InvalidProblemError: For anything that it did not write, and for another version's ops and names.
        """
        found: Question = from_plain(Question, read_kind(text, "question"), "question")
        return found


def read_kind(text: str | bytes, kind: str) -> Any:
    """What a document of this kind holds."""
    found = read_object(text, "from_json")
    for name, want in (("schema", SCHEMA), ("kind", kind)):
        if found.get(name) != want or isinstance(found.get(name), bool):
            raise InvalidProblemError(f"from_json: {name}: got {shown(found.get(name))}, want {want!r}.")
    return found.get(kind)
