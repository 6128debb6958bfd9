"""Plans: a kernel chosen for a descriptor, checked calls of it, and why it was chosen."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from baracuda import _core
from baracuda.choose.question import asked_place
from baracuda.choose.sku import (
    NO_PREFERENCE,
    Candidate,
    Explanation,
    KernelSku,
    PlanPreference,
    PrecisionGuarantee,
    Support,
    describe,
    make_sku,
    packed_question,
    rows,
)
from baracuda.describe.calls import signed
from baracuda.describe.dims import check_values, size_at
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, Refusal
from baracuda.describe.spec import Descriptor
from baracuda.memory.device import BACKENDS, CPU, Place, name_of, place_of

if TYPE_CHECKING:
    from typing import Self

    from baracuda.describe.spec import Signature


@dataclass(frozen=True, slots=True)
class Request:
    """What select was asked besides the descriptor."""

    device: str = "cpu"
    preference: PlanPreference = NO_PREFERENCE
    alignment: int = 0
    strides: tuple[tuple[str, tuple[int, ...]], ...] = ()  # that the caller says tensors will have
    arch: int = -1  # an architecture whose device need not be here

    @classmethod
    def of(
        cls, signature: Signature, device: Any, preference: PlanPreference | None, layout: Any, alignment: int
    ) -> Request:
        """Checks select's arguments."""
        place = place_of(device)
        if preference is None and layout is None and type(alignment) is int and alignment == 0:
            return _unpromised(place)
        wanted = NO_PREFERENCE if preference is None else preference
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
        return cls(name_of(place), wanted, alignment, tuple(sorted(strides.items())))

    def question(self, desc: Descriptor, signature: Signature) -> tuple[Any, ...]:
        """What the evaluator is asked: the question, the signature, attributes and strides."""
        backend, number = place_of(self.device)
        asked = packed_question(
            desc.op, desc.direction, backend, number, self.arch, desc.primary_element(), desc.aux_element(), None,
            self.alignment, (), self.preference,
        )  # fmt: skip
        return asked, signature, desc.packed_attributes(), self.strides


@lru_cache(maxsize=64)
def _unpromised(place: Place) -> Request:
    """What is asked of most devices most of the time."""
    return Request(name_of(place))


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
    for index, verdict, refusals, depends, workspace in _core.evaluate(*request.question(desc, desc.signature())):
        sku = make_sku(table[index], desc.primary_element(), desc.aux_element())
        found = Support(verdict, tuple(Refusal(*r) for r in refusals), tuple(depends), sku)
        candidates.append(Candidate(sku, found, workspace, index))
    return candidates


def _nearest(request: Request, candidates: list[Candidate]) -> list[Candidate]:
    """Nearest miss first; rows of other backends, whose one reason is that they are, come last."""
    wanted = BACKENDS[place_of(request.device)[0]]
    return sorted(candidates, key=lambda c: (c.sku.backend != wanted, len(c.support.refusals)))


class Plan(_core.RawPlan):
    """A kernel selected for a descriptor: immutable, shared between threads, picklable.

    `run` checks its arguments and launches; it allocates, copies and synchronises nothing. Plans are made with `select`.
    """

    __slots__ = ()
    descriptor_class: ClassVar[type[Descriptor]]
    workspace_alignment: ClassVar[int] = 64

    @classmethod
    @signed
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
            layout: The strides (in elements) that tensors will have, by name; "contiguous", or nothing, for those that will
                have none of their own. All rows take any strides; those that a library carries out are made ready for
                these, and have a portable kernel for the rest.
            alignment: Bytes that every address will be a multiple of; 0 where nothing is known. Rows that a library
                carries out for other addresses only refuse.

        Raises:
            UnsupportedError: No row takes it; lists every candidate's reasons.
            BackendUnavailableError: The device's backend cannot be used here.
        """
        cls._check_class(desc)
        signature = desc.signature()
        request = Request.of(signature, device, preference, layout, alignment)
        made: Self = _core.select(cls, *request.question(desc, signature), request.preference.threads, desc, request)
        return made

    @classmethod
    @signed
    def query(
        cls,
        desc: Descriptor,
        device: Any = "cpu",
        preference: PlanPreference | None = None,
        *,
        layout: Any = None,
        alignment: int = 0,
    ) -> Support:
        """What `select` would do, as an answer; never raises for a problem that no kernel takes.

        Args:
            desc: The problem.
            device: As `select` takes it; or an architecture that need not be here, which is answered from the table alone:
                "cpu:v3", "cuda:sm_90", "metal:apple9".
            preference: What the kernel must fulfil.
            layout: The strides that tensors will have, by name.
            alignment: Bytes that every address will be a multiple of.

        Returns:
            The best kernel with its `workspace_size`, or every reason why there is none.
        """
        cls._check_class(desc, "query")
        backend, number, arch = asked_place(str(device))
        place = name_of((CPU[0] if backend is None else backend, number))
        request = replace(Request.of(desc.signature(), place, preference, layout, alignment), arch=arch)
        candidates = judge(desc, request)
        best = next((c for c in candidates if c.support), None)
        if best is not None:
            return replace(best.support, workspace_size=best.workspace_size)
        nearest = _nearest(request, candidates)
        refusals = tuple(r for c in nearest for r in c.support.refusals)
        if not refusals:
            refusals = (Refusal("op", "op", desc.op, "an op with a row in the SKU table"),)
        return Support("no", refusals, (), nearest[0].sku if nearest else None)

    @classmethod
    def _check_class(cls, desc: Descriptor, asked: str = "select") -> None:
        wanted = getattr(cls, "descriptor_class", Descriptor)
        if not isinstance(desc, wanted):
            got = f"the class {desc.__name__}" if isinstance(desc, type) else f"a {type(desc).__name__}"
            raise InvalidProblemError(
                f"{cls.__name__}.{asked}: got {got}, want a {wanted.__name__}. bc.plan(desc) takes any descriptor."
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

    def workspace_for(self, /, **sizes: int) -> int:
        """Bytes of workspace that `run` needs for tensors of these sizes: `plan.workspace_for(kv=128)`.

        At most `workspace_size`, which is enough for every size; the same where nothing is a `bc.Dim`, and for kernels of
        libraries, which are made ready for the maxima.

        Args:
            **sizes: The value of each `bc.Dim`, by its name.

        Raises:
            InvalidProblemError: A name is missing or unknown, or its size is too large or leaves a remainder.
        """
        values = check_values(self._symbols, sizes)
        for p in self.signature.present:
            for shape in p.shapes:
                for size in shape:
                    size_at(size, values)
        return int(self._workspace_at(tuple(values.values())))

    def output_shapes(self, /, **sizes: int) -> dict[str, Any]:
        """Shapes of the outputs by name, for tensors of these sizes; a list of shapes for a list of tensors.

        Args:
            **sizes: The value of each `bc.Dim`, by its name.

        Raises:
            InvalidProblemError: A name is missing or unknown, or its size is too large or leaves a remainder.
        """
        values = check_values(self._symbols, sizes)
        found = {p.name: [tuple(size_at(size, values) for size in s) for s in p.shapes] for p in self.signature.outputs}
        return {p.name: found[p.name] if p.variadic else found[p.name][0] for p in self.signature.outputs}

    def can_implement(self, *args: Any, **kwargs: Any) -> Support:
        """Whether `run` would accept these arguments, with every reason if not.

        Takes what `run` takes, and tensors without memory: `bc.TensorSpec`, torch meta tensors, `jax.ShapeDtypeStruct`.
        """
        from baracuda.memory.tensor import stand_in

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
        """The plan as JSON that any host of the engine reads: what select was asked, by name, and the SKU that was chosen."""
        return bytes(_core.plan_document(self, json.dumps(describe(self.descriptor))))

    @staticmethod
    def from_bytes(data: bytes) -> Plan:
        """Selects the plan that `to_bytes` described, with the same SKU.

        Raises:
            InvalidProblemError: The data are no plan's, were changed, or were written by another version.
            UnsupportedError: The SKU is not here, or takes the problem no more.
        """
        from baracuda.describe.document import read_descriptor

        canonical = _core.read_plan_document(data)
        document = json.loads(canonical)
        question, tensors = document["question"], document["signature"]["tensors"]
        wanted = question["preference"]
        preference = PlanPreference(sku=document["sku"], **wanted | {"max_error": float(wanted["max_error"])})
        strides = {p["name"]: tuple(p["strides"]) for p in tensors if "strides" in p}
        desc = read_descriptor(document.get("descriptor"))
        made = plan(desc, question["device"], preference, layout=strides or None, alignment=question["alignment"])
        if made.to_bytes() != canonical:
            raise InvalidProblemError(
                f"from_bytes: descriptor: got {desc}, want the one that the plan was selected for."
            )
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sku.name} {self.signature}>"


@signed
def plan(
    desc: Descriptor,
    device: Any = "cpu",
    preference: PlanPreference | None = None,
    *,
    layout: Any = None,
    alignment: int = 0,
) -> Plan:
    """Selects a plan for any descriptor: `type(desc).plan_class.select(...)`."""
    if not isinstance(desc, Descriptor):
        Plan._check_class(desc)
    return desc.plan_class.select(desc, device, preference, layout=layout, alignment=alignment)
