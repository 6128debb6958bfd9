"""Plans: a kernel chosen for a descriptor, checked calls of it, and why it was chosen."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from baracuda import _core
from baracuda.device import BACKENDS, CPU, Device, name_of, place_of
from baracuda.elements import Element
from baracuda.errors import BackendUnavailableError, InvalidProblemError, Refusal, UnsupportedError
from baracuda.sku import (
    SCHEMA,
    Candidate,
    Explanation,
    KernelSku,
    PlanPreference,
    PrecisionGuarantee,
    Support,
    describe,
    make_sku,
    rows,
)
from baracuda.spec import IN, highest_rank, meta

if TYPE_CHECKING:
    from typing import Self

    from baracuda.spec import Descriptor, Signature


@dataclass(frozen=True, slots=True)
class Request:
    """What select was asked besides the descriptor."""

    device: str = "cpu"
    preference: PlanPreference = field(default_factory=PlanPreference)
    contiguous: bool = False
    alignment: int = 0
    strides: tuple[tuple[str, tuple[int, ...]], ...] = ()  # that the caller says tensors will have

    @classmethod
    def of(
        cls, signature: Signature, device: Any, preference: PlanPreference | None, layout: Any, alignment: int
    ) -> Request:
        """Checks select's arguments."""
        place = place_of(device)
        wanted = PlanPreference() if preference is None else preference
        if not isinstance(wanted, PlanPreference):
            raise InvalidProblemError(f"preference: got {preference!r}, want a bc.PlanPreference.")
        if wanted.backend is not None and wanted.backend != BACKENDS[place[0]]:
            if place != CPU:
                raise InvalidProblemError(
                    f"preference.backend: got {wanted.backend!r} with device={name_of(place)!r}, want the device's own backend or None."
                )
            place = place_of(wanted.backend)
        names = {p.name for p in signature.present}
        promise = layout if isinstance(layout, dict) else dict.fromkeys(names, layout)
        strides = _strides_of(signature, promise)
        if not set(promise) <= names or any(
            n not in strides and not (v is None or (isinstance(v, str) and v == "contiguous"))
            for n, v in promise.items()
        ):
            raise InvalidProblemError(
                f"layout: got {layout!r}, want None, 'contiguous' or a dict of argument names ({', '.join(sorted(names))}) to "
                "these, or to strides in elements."
            )
        if isinstance(alignment, bool) or not isinstance(alignment, int) or not 0 <= alignment < 2**31:
            raise InvalidProblemError(f"alignment: got {alignment!r}, want a number of bytes.")
        # Rows are limited as a whole: a promise about some of the tensors is no promise about all.
        whole = bool(names) and all(promise.get(n) == "contiguous" for n in names)
        return cls(name_of(place), wanted, whole, alignment, tuple(sorted(strides.items())))

    def question(self, desc: Descriptor, signature: Signature) -> dict[str, Any]:
        """What the evaluator is asked."""
        aux = desc.aux_element()
        primary = desc.primary_element()
        strides, (backend, number) = dict(self.strides), place_of(self.device)
        reads = sorted({int(p.element) for p in signature.present if p.reads and p.role == IN and p.element != primary})
        return {
            "op": desc.op,
            "direction": desc.direction,
            "backend": BACKENDS[backend],
            "device": number,
            "element": int(primary),
            "aux": -1 if aux is None else int(aux),
            "reads": reads,
            "rank": highest_rank(signature),
            "contiguous": self.contiguous,
            "alignment": self.alignment,
            "attrs": desc.packed_attributes(),
            "params": [meta(p, strides.get(p.name, ())) for p in signature.params],
            "preference": self.preference.packed(),
        }


def _strides_of(signature: Signature, promise: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The entries of a layout that name strides, one per dimension."""
    ranks = {p.name: len(p.shapes[0]) for p in signature.present if p.shapes and not p.variadic}
    return {
        name: tuple(int(s) for s in value)
        for name, value in promise.items()
        if isinstance(value, (tuple, list))
        and len(value) == ranks.get(name, -1) > 0
        and all(isinstance(s, int) and -(2**62) < s < 2**62 for s in value)
    }


def judge(desc: Descriptor, request: Request) -> list[Candidate]:
    """Asks the evaluator about every row of the descriptor's op."""
    table = rows()
    candidates = []
    for index, verdict, refusals, depends, workspace in _core.evaluate(request.question(desc, desc.signature())):
        sku = make_sku(table[index], desc.primary_element(), desc.aux_element())
        found = Support(("no", "depends", "yes")[verdict], tuple(Refusal(*r) for r in refusals), tuple(depends), sku)
        candidates.append(Candidate(sku, found, workspace, index))
    return candidates


def _nearest(request: Request, candidates: list[Candidate]) -> list[Candidate]:
    """Nearest miss first; rows of other backends, whose one reason is that they are, come last."""
    wanted = BACKENDS[place_of(request.device)[0]]
    return sorted(candidates, key=lambda c: (c.sku.backend != wanted, len(c.support.refusals)))


def _refuse(desc: Descriptor, request: Request, candidates: list[Candidate]) -> NoReturn:
    """The error for a descriptor that no row takes: every candidate, every reason, nearest miss first."""
    wanted = BACKENDS[place_of(request.device)[0]]
    nearest = _nearest(request, candidates)
    mine = [c for c in nearest if c.sku.backend == wanted]
    refusals = tuple(r for c in mine or nearest for r in c.support.refusals)
    reason = Device(request.device).reason
    if reason or (nearest and not mine):
        why = reason or f"no kernel of {desc.op} is declared for it"
        what = request.device if _core.backend_state(wanted)["present"] else f"the {wanted} backend"
        todo = "bc.devices() says what can be used here; docs/building.md how a backend is built."
        raise BackendUnavailableError(f"{desc}: {what} cannot be used here: {why}. {todo}", refusals)
    lines = [f"No kernel for {desc} on {request.device}. Candidates, nearest miss first:"]
    for c in mine:
        lines.append(f"  {c.sku.name}")
        lines += [f"    [{r.code}] {r}" for r in c.support.refusals]
    if not nearest:
        lines.append(f"  none: no row of the SKU table is for {desc.op!r}, {desc.direction}")
    hint = next((r.hint for c in mine for r in c.support.refusals if r.hint), "")
    if hint:
        lines.append(f"Hint: {hint}.")
    raise UnsupportedError("\n".join(lines), refusals)


class Plan(_core.RawPlan):
    """A kernel selected for a descriptor: immutable, shared between threads, picklable.

    `run` checks its arguments and launches; it allocates, copies and synchronises nothing. Plans are made with `select`.
    """

    __slots__ = ()
    descriptor_class: ClassVar[type[Descriptor]]
    workspace_alignment: ClassVar[int] = 64

    @classmethod
    def select(
        cls,
        desc: Descriptor,
        device: Any = "cpu",
        preference: PlanPreference | None = None,
        *,
        layout: Any = None,
        alignment: int = 0,
    ) -> Self:
        """Picks the best row of the SKU table for a problem.

        Args:
            desc: The problem.
            device: "cpu", "cuda", "cuda:0" or "metal".
            preference: What the kernel must fulfil.
            layout: "contiguous" promises that all tensors will be; makes layout-limited rows eligible. A dict promises it
                of single ones, or names the strides (in elements) that they will have: rows that a library carries out
                are made ready for these, and for contiguous tensors where nothing is said.
            alignment: Bytes that every data pointer is promised to be a multiple of.

        Raises:
            UnsupportedError: No row takes it; lists every candidate's reasons.
            BackendUnavailableError: The device's backend cannot be used here.
        """
        cls._check_class(desc)
        signature = desc.signature()
        request = Request.of(signature, device, preference, layout, alignment)
        question = request.question(desc, signature)
        made = _core.select(cls, question, signature.packed(), request.preference.threads, desc, request)
        if isinstance(made, cls):
            return made
        later = {row: Support("no", tuple(Refusal(*r) for r in reasons)) for row, reasons in made}
        _refuse(desc, request, [replace(c, support=later.get(c.row, c.support)) for c in judge(desc, request)])

    @classmethod
    def query(
        cls,
        desc: Descriptor,
        device: Any = "cpu",
        preference: PlanPreference | None = None,
        *,
        layout: Any = None,
        alignment: int = 0,
    ) -> Support:
        """What `select` would do, as an answer; never raises for a problem that no kernel takes."""
        cls._check_class(desc)
        request = Request.of(desc.signature(), device, preference, layout, alignment)
        candidates = judge(desc, request)
        best = next((c for c in candidates if c.support), None)
        if best is not None:
            return best.support
        nearest = _nearest(request, candidates)
        refusals = tuple(r for c in nearest for r in c.support.refusals)
        if not refusals:
            refusals = (Refusal("op", "op", desc.op, "an op with a row in the SKU table"),)
        return Support("no", refusals, (), nearest[0].sku if nearest else None)

    @classmethod
    def _check_class(cls, desc: Descriptor) -> None:
        from baracuda.spec import Descriptor

        wanted = getattr(cls, "descriptor_class", Descriptor)
        if not isinstance(desc, wanted):
            raise InvalidProblemError(
                f"{cls.__name__}.select: got a {type(desc).__name__}, want a {wanted.__name__}. bc.plan(desc) takes any descriptor."
            )

    @property
    def sku(self) -> KernelSku:
        """The kernel that was chosen."""
        element, _ = self._elements
        return make_sku(rows()[self._row], Element(element), self.descriptor.aux_element())

    @property
    def precision_guarantee(self) -> PrecisionGuarantee:
        """What it promises about its numbers."""
        return self.sku.precision_guarantee

    @property
    def signature(self) -> Signature:
        """The arguments of `run`."""
        found: Signature = self.descriptor.signature()
        return found

    @property
    def device(self) -> str:
        """The device the plan runs on."""
        return str(self._origin.device)

    def can_implement(self, *args: Any, **kwargs: Any) -> Support:
        """Whether `run` would accept these arguments, with every reason if not.

        Takes what `run` takes, and tensors without memory: `bc.TensorSpec`, torch meta tensors, `jax.ShapeDtypeStruct`.
        """
        from baracuda.tensor import stand_in

        device = self.device
        found = self._check(*(stand_in(v, device) for v in args), **{k: stand_in(v, device) for k, v in kwargs.items()})
        refusals = tuple(Refusal(*r) for r in found)
        return Support("no" if refusals else "yes", refusals, (), self.sku)

    def explain(self) -> Explanation:
        """Which rows were tried, in order, and why each was accepted or not."""
        candidates = judge(self.descriptor, self._origin)
        # What comes before the chosen row and has no reason yet was passed over while the plan was made.
        none = Refusal(
            "problem", "library", "", "an algorithm of its library", "it had none when the plan was selected"
        )
        for i, c in enumerate(candidates):
            if c.row == self._row:
                break
            if c.support:
                candidates[i] = replace(c, support=Support("no", (none,), (), c.sku))
        return Explanation(self.descriptor, tuple(candidates), self.sku)

    def to_bytes(self) -> bytes:
        """The plan as JSON: descriptor, device, preference and the SKU that was chosen."""
        origin = self._origin
        preference = {
            k: getattr(origin.preference, k)
            for k in origin.preference.__slots__
            if getattr(origin.preference, k) != math.inf
        }
        document = {
            "schema": SCHEMA,
            "descriptor": describe(self.descriptor),
            "sku": self.sku.name,
            "device": origin.device,
            "contiguous": origin.contiguous,
            "alignment": origin.alignment,
            "strides": dict(origin.strides),
            "preference": preference,
        }
        return json.dumps(document, sort_keys=True).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Selects the plan that `to_bytes` described, with the same SKU, or says why it cannot."""
        from baracuda.document import read_descriptor, read_document, read_fields

        document = read_document(data)
        desc = read_descriptor(document["descriptor"])
        given = read_fields("preference", document["preference"], PlanPreference)
        preference = replace(PlanPreference(**given), sku=document["sku"])
        layout = "contiguous" if document["contiguous"] else document["strides"] or None
        return plan(desc, document["device"], preference, layout=layout, alignment=document["alignment"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sku.name} {self.signature}>"


def plan(
    desc: Descriptor,
    device: Any = "cpu",
    preference: PlanPreference | None = None,
    *,
    layout: Any = None,
    alignment: int = 0,
) -> Plan:
    """Selects a plan for any descriptor: `type(desc).plan_class.select(...)`."""
    Plan._check_class(desc)
    return desc.plan_class.select(desc, device, preference, layout=layout, alignment=alignment)
