"""What is said about kernels: SKUs and their guarantees, what a caller insists on, and answers with reasons."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from baracuda import _core, _index
from baracuda.describe.calls import Signed
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, Refusal, is_text
from baracuda.memory.device import BACKENDS, meant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from baracuda.describe.spec import Descriptor

SCHEMA: int = _core.schema  # of to_bytes and to_json

MATH: tuple[str, ...] = _core.math_precisions
DIRECTIONS: tuple[str, ...] = _core.directions

# What products do to finished sums, by the code of their activation; a test compares them with `Activation`.
EPILOGUES = ("bias", "bias_relu", "bias_gelu", "bias_gelu_tanh", "bias_silu")
# What architectures are called, by backend; those of the cpu have names.
ARCHITECTURES = {"cuda": "sm_", "metal": "apple"}


@dataclass(frozen=True, slots=True)
class PrecisionGuarantee:
    """What a kernel promises about its numbers; tests and `python -m baracuda verify` hold it to that.

    Attributes:
        math_precision: "ieee", or a reduced precision that was asked for; its bound is for inputs that are normal numbers.
        accumulator: Element in which sums are kept.
        bound: "exact", "ulp" (c units in the last place of the compute element, plus the rounding of the stored element)
            or "sum" (|error| <= c * eps(accumulator) * sqrt(K) * sum|terms|, plus one rounding of the output).
        c: The bound's constant.
        deterministic: The same call gives the same bits.
        bit_stable_on_same_hardware: Also in another process on the same hardware.
        thread_invariant: Bits do not depend on the number of threads.
        batch_invariant: A row's bits do not depend on the other rows of the batch.
    """

    math_precision: str
    accumulator: Element
    bound: str
    c: float
    deterministic: bool
    bit_stable_on_same_hardware: bool
    thread_invariant: bool
    batch_invariant: bool

    def __str__(self) -> str:
        bound = {"exact": "exact", "ulp": f"{self.c:g} ulp", "sum": f"{self.c:g} eps sqrt(K) sum|terms|"}[self.bound]
        flags = [
            n
            for n, v in (
                ("deterministic", self.deterministic),
                ("thread-invariant", self.thread_invariant),
                ("batch-invariant", self.batch_invariant),
            )
            if v
        ]
        return f"{bound}, {', '.join(flags)}, accumulates in {self.accumulator}"


@dataclass(frozen=True, slots=True)
class KernelSku:
    """Which kernel: the fields are the API, the name is for people and logs.

    Attributes:
        level: Instruction set level of a cpu kernel's code, such as "v4"; empty for other backends.
        max_rank: Highest rank of the tensors.
        in_place_safe: An output may be the identical view of an input.
        capture_safe: A CUDA graph may capture it.
        preference: Higher ones are tried first.
        measured: On which device and date the preference was measured.
    """

    name: str
    op: str
    direction: str
    family: str
    backend: str
    element: Element | None
    aux_element: Element | None
    variant: str
    level: str
    max_rank: int
    in_place_safe: bool
    capture_safe: bool
    preference: int
    measured: str
    precision_guarantee: PrecisionGuarantee

    def __str__(self) -> str:
        return self.name

    @property
    def category(self) -> str | None:
        """What kind of op this is: "gemm", "softmax", "unary_elementwise" ...; None for steps of optimizers."""
        return _index.CATEGORIES[self.family]

    @property
    def layout(self) -> str:
        """What memory it takes: "strided", whatever the strides and addresses, as all rows do."""
        return "strided"

    @property
    def epilogue(self) -> tuple[str, ...]:
        """What the kernel can do to a result before it stores it; empty for other kernels.

        Of products, in GEMM libraries' words: "identity" stores it; "bias", "bias_relu", "bias_gelu" (by erf), "bias_gelu_tanh"
        and "bias_silu" apply the activation, with a bias before it where there is one. Of norms and gated activations:
        "quantize_tensor" codes it by a scale that is given, "quantize_token" and "quantize_group" by those that it finds.
        """
        found = _rows_named(self.op, self.direction, self.backend, self.variant, self.element)
        attributes = {name for row in found for _, name in row["attributes"]}
        if "group" in attributes and self.aux_element is not None and self.op.endswith("_quantize"):
            return ("quantize_tensor", "quantize_token", "quantize_group")
        if "activation" not in attributes:
            return ()
        whole = self.element is not None and self.element.is_integer  # sums of integers have no activation
        last = max(int(row["ranges"].get("activation", (0, 0 if whole else len(EPILOGUES) - 1))[1]) for row in found)
        return ("identity", *EPILOGUES[: last + 1])

    @property
    def arch(self) -> str:
        """The oldest architecture that it runs on, as questions name it: "v4x", "sm_80"; empty for all of its backend."""
        found = _rows_named(self.op, self.direction, self.backend, self.variant, self.element)
        level = min(int(row["min_arch"]) for row in found)
        if not level:
            return ""
        if self.backend == "cpu":
            levels: dict[str, int] = _core.cpu_levels
            return next(name for name, number in levels.items() if number == level)
        return f"{ARCHITECTURES[self.backend]}{level}"


@lru_cache(maxsize=1 << 12)
def _rows_named(
    op: str, direction: str, backend: str, variant: str, element: Element | None
) -> tuple[dict[str, Any], ...]:
    """The rows with this name; those that take the element, where there are any."""
    wanted = op, direction, backend, variant
    found = [r for r in rows() if (r["op"], r["direction"], r["backend"], r["variant"]) == wanted]
    taking = [r for r in found if element is not None and int(element) in r["elements"]]
    return tuple(taking or found)


@dataclass(frozen=True, slots=True)
class PlanPreference(metaclass=Signed):
    """What the caller insists on; nothing of it is ever quietly dropped.

    Attributes:
        backend: "cpu", "cuda" or "metal"; None takes the device's.
        sku: A SKU's name or variant that must be used.
        deterministic: Only kernels that give the same bits each time.
        batch_invariant: Only kernels whose rows do not depend on the batch.
        math_precision: "ieee" (default), or a reduced precision that is allowed ("tf32").
        max_error: Only kernels whose bound has a constant of at most this: c of ulp(c), or of sum(c), whichever kind the
            op's kernels promise (`precision_guarantee` says which). 0 takes exact kernels only.
        max_workspace_bytes: Only kernels that need at most this much workspace.
        threads: Threads that one run may use; 0 takes the process's setting.
    """

    backend: str | None = None
    sku: str = ""
    deterministic: bool = False
    batch_invariant: bool = False
    math_precision: str = "ieee"
    max_error: float = math.inf
    max_workspace_bytes: int = 2**63 - 1
    threads: int = 0

    def __post_init__(self) -> None:
        if self.math_precision not in MATH:
            raise InvalidProblemError(
                f"PlanPreference.math_precision: got {self.math_precision!r}, want one of {', '.join(MATH)}."
            )
        if self.backend is not None and self.backend not in BACKENDS:
            raise InvalidProblemError(
                f"PlanPreference.backend: got {self.backend!r}, want None or one of {', '.join(BACKENDS)}{meant(str(self.backend))}"
            )
        if not is_text(self.sku):
            raise InvalidProblemError(f"PlanPreference.sku: got {self.sku!r}, want a SKU's name or variant.")
        for name in ("deterministic", "batch_invariant"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidProblemError(f"PlanPreference.{name}: got {getattr(self, name)!r}, want True or False.")
        real = isinstance(self.max_error, (int, float)) and not isinstance(self.max_error, bool)
        beyond = isinstance(self.max_error, int) and self.max_error > sys.float_info.max
        if not real or beyond or not self.max_error >= 0:
            raise InvalidProblemError(f"PlanPreference.max_error: got {self.max_error!r}, want a number of at least 0.")
        for name, most in (("max_workspace_bytes", 2**63), ("threads", 2**16)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
                raise InvalidProblemError(f"PlanPreference.{name}: got {value!r}, want an int, 0 <= {name} < {most}.")

    def packed(self) -> tuple[Any, ...]:
        """What the evaluator reads: see parse_preference in csrc/bindings/question.cpp."""
        math = MATH.index(self.math_precision)
        most = self.max_workspace_bytes
        return self.sku, self.deterministic, self.batch_invariant, math, float(self.max_error), most


NO_PREFERENCE = PlanPreference()


# What an answer depends on, in words.
DEPENDS = {
    "element": "the element", "aux_element": "the second element", "descriptor": "sizes and attributes of the descriptor"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Support:
    """An answer with its reasons: truthy when it is yes.

    Attributes:
        verdict: "yes", "no" or "depends".
        refusals: Every reason for a no.
        depends: What a "depends" depends on: "element", "aux_element" or "descriptor".
        sku: The kernel that the answer is about, when there is one.
        workspace_size: Bytes of workspace that it needs at the largest sizes; -1 where no sizes were asked about.
    """

    verdict: str
    refusals: tuple[Refusal, ...] = ()
    depends: tuple[str, ...] = ()
    sku: KernelSku | None = None
    workspace_size: int = -1

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    def __str__(self) -> str:
        if self.refusals:
            return f"{self.verdict}:\n" + "\n".join(f"  [{r.code}] {r}" for r in self.refusals)
        return self.in_short()

    def in_short(self) -> str:
        """One line: the verdict with what it depends on, or with all reasons."""
        if self.refusals:
            return f"{self.verdict}: {'; '.join(map(str, self.refusals))}"
        if self.workspace_size >= 0:
            return f"{self.verdict}: {self.sku}, workspace {self.workspace_size} bytes"
        return self.verdict + (f" on {', '.join(DEPENDS.get(d, d) for d in self.depends)}" if self.depends else "")


def packed_question(
    op: str,
    direction: str | None,
    backend: int | None,
    device: int,
    arch: int,
    element: Element | None,
    aux: Element | None,
    rank: int | None,
    alignment: int,
    attributes: tuple[tuple[str, float], ...],
    preference: PlanPreference,
) -> tuple[Any, ...]:
    """What the evaluator is asked: see parse_question in csrc/bindings/question.cpp. None is a wildcard."""
    way = -1 if direction is None else DIRECTIONS.index(direction)
    codes = [-1 if code is None else code for code in (backend, element, aux, rank)]
    demands = preference.packed()
    return op, way, codes[0], device, arch, *codes[1:], alignment, attributes, demands


@lru_cache(maxsize=1)
def rows() -> tuple[dict[str, Any], ...]:
    """The SKU table, as the engine has it."""
    return tuple(_core.rows())


def make_sku(row: Mapping[str, Any], element: Element | None, aux: Element | None = None) -> KernelSku:
    """A row of the table as a KernelSku, for one element or for none in particular."""
    accumulator = element.compute if element is not None else Element.F32
    if row["accumulator"] >= 0:
        accumulator = Element(row["accumulator"])
    guarantee = PrecisionGuarantee(
        row["math"], accumulator, row["bound"], row["bound_c"], row["deterministic"], row["bit_stable"],
        row["thread_invariant"], row["batch_invariant"],
    )  # fmt: skip
    level = _core.backend_state("cpu")["level"] if row["backend"] == "cpu" else ""
    return KernelSku(
        name=_core.sku_name(row["index"], -1 if element is None else int(element)),
        op=row["op"], direction=row["direction"], family=row["family"], backend=row["backend"], element=element,
        aux_element=aux, variant=row["variant"], level=level, max_rank=row["max_rank"], in_place_safe=row["in_place_safe"],
        capture_safe=row["capture_safe"], preference=row["preference"], measured=row["measured"],
        precision_guarantee=guarantee,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row that selection looked at."""

    sku: KernelSku
    support: Support
    workspace_size: int
    row: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which rows were tried, in order, and what became of each."""

    descriptor: Descriptor
    candidates: tuple[Candidate, ...]
    chosen: KernelSku | None

    def __str__(self) -> str:
        lines = [str(self.descriptor)]
        for c in self.candidates:
            mark = "->" if c.sku == self.chosen else "  "
            lines.append(
                f"{mark} {c.sku.name}  preference {c.sku.preference}  workspace {c.workspace_size} B: {c.support}"
            )
        return "\n".join(lines)

    def to_json(self) -> str:
        """The same for tools; carries a schema number."""
        entries = [
            {
                "sku": c.sku.name,
                "preference": c.sku.preference,
                "verdict": c.support.verdict,
                "workspace_size": c.workspace_size,
                "refusals": [
                    {"code": r.code, "field": r.field, "got": r.got, "want": r.want, "hint": r.hint}
                    for r in c.support.refusals
                ],
            }
            for c in self.candidates
        ]
        chosen = self.chosen.name if self.chosen else None
        return json.dumps(
            {"schema": SCHEMA, "descriptor": describe(self.descriptor), "chosen": chosen, "candidates": entries}
        )


def describe(desc: Descriptor) -> dict[str, Any]:
    """A descriptor as JSON-ready values, with its class."""
    return {"class": type(desc).__name__, "fields": desc.to_dict()}
