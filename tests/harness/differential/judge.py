"""Makes a call on both sides and says what differs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.prove.peers import torch_function
from baracuda.prove.reference import LARGEST, Expected, epsilon, to_reference, ulp, worst
from differential import calls, functions
from differential.calls import Call
from differential.excuses import EXCUSES
from differential.probe import Probe, Record
from differential.values import FLOATS, T, arranged, to_numpy, values_of

Array = np.ndarray[Any, Any]
TORCH_ULP = 4.0  # that torch's own float64 may be off where it is all that f64 can be compared with
# Arguments that gradients of ours stop at, and torch's do not; each is an excuse of docs/not-like-torch.md.
CONSTANT = {"target": "losses", "weight": "losses", "pos_weight": "losses", "attn_mask": "attention"}


@dataclass
class Known(Expected):
    """What the reference says about a result, and which result of its plan it is."""

    place: int = 0


@dataclass
class Finding:
    """One difference."""

    call: Call
    kind: str  # refused, accepted, escaped, element, shape, kind, value, count, input, remembered, out
    detail: str
    excuse: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.call!r}: {self.detail}"


def attempt(fn: Any, call: Call, given: dict[str, Any], **more: Any) -> tuple[Any, BaseException | None]:
    """The result, or what was raised."""
    positional, keywords = call.arguments(given)
    try:
        return fn(*positional, **keywords, **more), None
    except Exception as error:
        return None, error


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def unsupported(error: BaseException) -> bool:
    """Whether torch only lacks a kernel for the element on the CPU, or breaks in it."""
    text = str(error)
    return isinstance(error, NotImplementedError) or any(
        w in text for w in ("not implemented for", "not supported", "INTERNAL ASSERT FAILED")
    )


def compute_of(native: list[Any]) -> str:
    """What results of these elements are computed in."""
    for r in native:
        if isinstance(r, torch.Tensor) and r.dtype.is_floating_point:
            return "f64" if r.dtype is torch.float64 else "f32"
    return ""


def judge(call: Call, probe: Probe, rng: np.random.Generator) -> list[Finding]:
    """All differences of one call."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = _gradient(call, probe, rng) if call.gradient else _forward(call, probe, rng)
        for f in found:
            f.excuse = f.excuse or next((e.row for e in EXCUSES if f.kind in e.kinds and not e.where and e.when(f)), "")
        return found


def _forward(call: Call, probe: Probe, rng: np.random.Generator) -> list[Finding]:
    theirs = torch_function(call.name)
    native, error = attempt(theirs, call, calls.native(call))
    more: dict[str, Any] = {}
    if call.wants_out and isinstance(native, torch.Tensor):
        out = calls.out_like(rng, call, native)
        made, error = attempt(theirs, call, calls.native(call), out=calls.torch_out(out))
        native = native if error else made
        if error is not None and "out" in str(error) and isinstance(error, TypeError):
            call.wants_out, error = False, None  # torch has no out= here
        else:
            call.out, more = out, {"out": out.ours()}
    given = calls.ours(call)
    record = probe.fresh(_hostile(call), _product(call))
    got, refusal = attempt(getattr(F, call.name), call, given, **more)
    found = _acceptance(call, refusal, error)
    if refusal is not None or (error is not None and not unsupported(error)):
        return found
    if more and got is not more["out"]:
        found.append(Finding(call, "out", "the result is not what was given as out"))
    found += _untouched(call, given)
    compute = compute_of(results(native)) if error is None else _compute_of_ours(results(got))
    wide, failed = attempt(theirs, call, calls.wide(call, compute))
    found += _compare(call, results(got), None if error else results(native), None if failed else results(wide), record)
    if not more and not found:
        again, refusal = attempt(getattr(F, call.name), call, calls.ours(call))
        same = refusal is None and all(_bits(a) == _bits(b) for a, b in zip(results(got), results(again), strict=True))
        if not same:
            found.append(Finding(call, "remembered", f"the second call gave something else ({refusal})"))
    return found


def _hostile(call: Call) -> bool:
    """Whether some number is not finite or so large that sums of products may not be."""
    for x in call.tensors().values():
        if x.is_float and x.array.size:
            values = np.abs(to_reference(x.array))
            if not np.isfinite(values).all() or values.max() > (100 if x.element == "f16" else 1e12):
                return True
    return False


def _product(call: Call) -> float:
    """The largest term of a product of all tensors, and of a gradient of that."""
    sizes = [_most(to_reference(x.array)) for x in call.tensors().values() if x.is_float]
    return float(np.prod([max(1.0, size) for size in sizes])) * (10.0 if call.gradient else 1.0)


def _bits(x: Any) -> Any:
    return np.ascontiguousarray(to_numpy(x)).tobytes() if hasattr(x, "dtype") else x


def _compute_of_ours(got: list[Any]) -> str:
    elements = [str(Element.coerce(to_numpy(x).dtype)) for x in got if hasattr(x, "shape")]
    floats = [e for e in elements if e in FLOATS]
    return "" if not floats else "f64" if floats[0] == "f64" else "f32"


def _acceptance(call: Call, refusal: BaseException | None, error: BaseException | None) -> list[Finding]:
    if refusal is not None and not isinstance(refusal, (bc.BaracudaError, TypeError)):
        return [Finding(call, "escaped", f"{type(refusal).__name__}: {refusal}")]
    if not call.wrong and "arguments that cannot be used" in str(refusal):
        return [Finding(call, "escaped", f"a rule failed at what is right: {refusal}")]
    if call.name in functions.FORMULAS:
        return []  # what these refuse is not torch's to say
    if refusal is not None and error is None:
        return [Finding(call, "refused", f"{type(refusal).__name__}: {refusal}")]
    if refusal is None and error is not None:
        return [
            Finding(
                call,
                "accepted",
                f"torch: {type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}",
            )
        ]
    return []


def _untouched(call: Call, given: dict[str, Any]) -> list[Finding]:
    for key, x in call.given.items():
        pairs = zip(x, given[key], strict=True) if isinstance(x, list) else [(x, given[key])]
        for spec, value in pairs:
            if isinstance(spec, T) and _bits(value) != spec.array.tobytes():
                return [Finding(call, "input", f"{key} was written")]
    return []


def _compare(
    call: Call, got: list[Any], native: list[Any] | None, wide: list[Any] | None, record: Record
) -> list[Finding]:
    reference = native or wide
    if reference is None:
        return []
    if len(got) != len(reference):
        return [Finding(call, "count", f"{len(got)} results, want {len(reference)}")]
    found: list[Finding] = []
    known = _expected(record, len(got))
    for i, value in enumerate(got):
        if not isinstance(reference[i], torch.Tensor):
            continue
        array = to_numpy(value)
        if not _of_kind(value, call):
            found.append(Finding(call, "kind", f"result {i} is a {type(value).__name__}"))
        if tuple(array.shape) != tuple(reference[i].shape):
            found.append(Finding(call, "shape", f"result {i} is {array.shape}, want {tuple(reference[i].shape)}"))
            continue
        element = str(Element.coerce(array.dtype))
        wanted = element if native is None or call.out else _held(call, str(Element.coerce(native[i].dtype)))
        if element != wanted:
            found.append(Finding(call, "element", f"result {i} is {element}, want {wanted}"))
            continue
        own = None if native is None else native[i]
        exact = None if wide is None else wide[i]
        one = known[i] if known and np.shape(known[i].magnitude) == array.shape else None
        found += _judged(Finding(call, "value", f"result {i} "), partial(difference, array, own, exact, record, one))
    return found


def _held(call: Call, element: str) -> str:
    """The element as the producer of the first tensor has it: jax narrows what has 64 bits."""
    first = next(iter(call.tensors().values()), None)
    if first is None or first.producer != "jax":
        return element
    return {"f64": "f32", "i64": "i32", "u64": "u32"}.get(element, element)


def _of_kind(value: Any, call: Call) -> bool:
    first = next(iter(call.tensors().values()), None)
    if first is None:
        return True
    module = type(value).__module__.partition(".")[0]
    return (
        module == {"numpy": "numpy", "torch": "torch", "own": "baracuda", "jax": "jaxlib"}[first.producer]
        or call.out is not None
    )


def _expected(record: Record, count: int) -> list[Known] | None:
    """What the reference of the only plan says, if it says it for every result."""
    if len(record.ran) != 1:
        return None
    found = record.ran[0].expected()
    if found is None or len(found) != count or any(np.shape(e.value) != np.shape(e.magnitude) for e in found):
        return None
    return [Known(e.value, e.magnitude, e.terms, e.reach, e.lost, i) for i, e in enumerate(found)]


def _judged(f: Finding, difference: Callable[..., str]) -> list[Finding]:
    """The finding of a difference, if there is one, with the excuse that covers it."""
    f.detail += difference(None)
    if f.detail[-1] == " ":
        return []
    places = [(e, np.asarray(e.where(f.call))) for e in EXCUSES if f.kind in e.kinds and e.where and e.when(f)]
    for excuse, where in places:
        if not difference(where, excuse.free):
            f.excuse = excuse.row
            break
    return [f]


def _pardoned(pardon: Array | None, shape: tuple[int, ...]) -> Array:
    """The places that an excuse covers, in the result's shape; all of them where that does not tell."""
    if pardon is None:
        return np.zeros(shape, bool)
    try:
        return np.broadcast_to(pardon, shape)
    except ValueError:
        return np.full(shape, bool(pardon.any()))


def difference(
    got: Array,
    native: Any,
    wide: Any,
    record: Record,
    known: Known | None,
    pardon: Array | None = None,
    free: bool = False,
) -> str:
    """What is wrong with the numbers; empty where nothing is.

    A number is right that is torch's own bit for bit; that is within the guarantee of torch's float64; or that is within
    the guarantee of the reference, where the reference agrees with torch's float64 as far as that is exact itself.
    """
    stored = Element.coerce(got.dtype)
    if not stored.is_float:
        want = to_numpy(native if native is not None else wide).astype(got.dtype)
        want = np.where(_pardoned(pardon, got.shape), got, want)
        return "" if np.array_equal(got, want) else _first(got != want, got, want)
    if wide is None or not wide.dtype.is_floating_point or wide.shape != got.shape:
        return _native_only(got, native, pardon)
    want = to_numpy(wide).astype(np.float64)
    ours = to_reference(got)
    same = _pardoned(pardon, got.shape)
    if native is not None and native.shape == got.shape and native.dtype.is_floating_point:
        bits = to_reference(to_numpy(native)).astype(np.float64)
        same = same | (bits == ours) | (np.isnan(bits) & np.isnan(ours))
    want = np.where(same, ours, want)
    if known is None:
        return _coarse(got, want, stored, record)
    ran = record.ran[0].plan
    guarantee, element = ran.precision_guarantee, ran.descriptor.primary_element()
    magnitude = np.maximum(np.asarray(known.magnitude, np.float64), np.abs(want))
    if pardon is not None and not free:  # an excuse leaves the reference to judge
        want = np.where(
            _pardoned(pardon, got.shape), np.asarray(known.value, np.float64), to_numpy(wide).astype(np.float64)
        )
    share, text = worst(got, replace(known, value=want, magnitude=magnitude), guarantee, element, stored)
    if share <= 1:
        return ""
    value = np.where(same, ours, np.asarray(known.value).reshape(got.shape))
    slack = record.ran[0].slack(stored, known.place)
    lost = 1e-16 * min(max(record.scale, 10.0), 1e4)  # where torch's formula cancels
    near = (
        np.abs(value - want)
        <= slack.reshape(got.shape) + 1e-9 * np.abs(want) + 1e-12 * np.minimum(magnitude, 1e3) + lost
    )
    near |= (value == want) | (np.isnan(value) & np.isnan(want))
    if near.all() and worst(got, replace(known, value=value, magnitude=magnitude), guarantee, element, stored)[0] <= 1:
        return ""
    return f"{text} ({share:.3g} times the error allowed by {ran.sku}; the reference says {_at(text, value)})"


def _at(text: str, values: Array) -> Any:
    """The value at the place that a description begins with."""
    return values[tuple(json.loads(text[text.index("[") : text.index("]") + 1]))]


def _native_only(got: Array, native: Any, pardon: Array | None) -> str:
    want = to_numpy(native).astype(np.float64)
    wrong = ~(
        _pardoned(pardon, got.shape) | (to_reference(got) == want) | (np.isnan(want) & np.isnan(to_reference(got)))
    )
    return _first(wrong, got, want) if wrong.any() else ""


def _first(wrong: Array, got: Array, want: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0][: got.ndim])
    return f"at {list(at)}: got {got[at]!r}, want {want[at]!r}"


def _coarse(got: Array, want: Array, stored: Element, record: Record) -> str:
    """Several plans: each adds its bound and its rounding, relative to the largest terms of all."""
    if got.size == 0:
        return ""
    ours = to_reference(got)
    if record.hostile:
        return ""  # intermediates may be beyond the element: nothing is promised about their sum
    most = max((_most(e.magnitude) for r in record.ran for e in (r.expected() or [])), default=0.0)
    if all(r.recipe is None for r in record.ran):
        most = record.scale
    most = max(most, _most(want), 2.0**-100)
    if most > 1e30 or (stored is Element.F16 and most > 1e4):
        return ""
    compute = stored.compute
    error = (record.error_factor() * epsilon(compute) + len(record.ran) * epsilon(stored)) * most + ulp(want, stored)
    if compute is Element.F64:
        error = error * (1 + TORCH_ULP)
    fine = (ours == want) | (np.isnan(ours) & np.isnan(want)) | (np.abs(ours - want) <= error)
    fine |= np.isinf(ours) & (np.abs(want) + error >= LARGEST[stored]) & (np.sign(ours) == np.sign(want))
    return "" if fine.all() else _first(~fine, got, want) + f", allowed {float(np.max(error)):.3g}"


def _most(values: Any) -> float:
    values = np.abs(np.asarray(values, np.float64))
    values = values[np.isfinite(values)]
    return float(values.max(initial=0))


def _leaves(call: Call, given: dict[str, Any]) -> list[torch.Tensor]:
    """The float tensors that gradients are asked for, in the order of arguments."""
    found = []
    for key, spec in call.given.items():
        pairs = zip(spec, given[key], strict=True) if isinstance(spec, list) else [(spec, given[key])]
        family = functions.family(call.name).__name__
        stops = key in CONSTANT and (family in ("pointwise_loss", "class_loss", "attention"))
        for s, x in pairs:
            if isinstance(s, T) and s.is_float and not s.index and not stops:
                found.append(x)
    return found


def _flat(value: Any) -> list[Any]:
    return [y for x in value for y in _flat(x)] if isinstance(value, (tuple, list)) else [value]


def _gradient(call: Call, probe: Probe, rng: np.random.Generator) -> list[Finding]:
    theirs = torch_function(call.name)
    floats = [x.element for x in call.tensors().values() if x.is_float]
    given = calls.wide(call, "f64" if "f64" in floats else "f32")
    leaves = [x.requires_grad_() for x in _leaves(call, given)]
    wide, error = attempt(theirs, call, given)
    _, native_error = attempt(theirs, call, calls.native(call))
    probe.fresh()
    mine, refusal = attempt(lambda *a, **k: bc.vjp(getattr(F, call.name), *a, **k), call, calls.ours(call))
    found = _acceptance(call, refusal, native_error)
    if refusal is not None or error is not None:
        return [f for f in found if f.kind != "accepted" or not unsupported(native_error)] if native_error else found
    y, pull = mine
    ours = [x for x in results(y) if to_numpy(x).dtype.kind in "fV" or to_numpy(x).dtype.name == "bfloat16"]
    outs = [x for x in results(wide) if x.dtype.is_floating_point and x.requires_grad]
    if len(ours) != len(outs) or not outs:
        return found
    dys = [
        arranged(rng, values_of(rng, str(Element.coerce(to_numpy(x).dtype)), tuple(x.shape)), call.producer)
        for x in ours
    ]
    try:
        want = torch.autograd.grad(outs, leaves, [d.wide() for d in dys], allow_unused=True)
    except (RuntimeError, IndexError):
        return found
    record = probe.fresh(_hostile(call), _product(call))
    try:
        got = _flat(pull(dys[0].ours() if len(dys) == 1 else tuple(d.ours() for d in dys)))
    except Exception as e:
        return [
            *found,
            Finding(
                call, "refused" if isinstance(e, bc.BaracudaError) else "escaped", f"pull: {type(e).__name__}: {e}"
            ),
        ]
    pulled = [x for x in call.tensors().values() if not x.index]
    if len(got) == len(pulled) > len(want):  # integers have one here, too
        got = [g for g, x in zip(got, pulled, strict=True) if x.is_float]
    if len(got) != len(want):
        return [*found, Finding(call, "count", f"{len(got)} gradients, want {len(want)}")]
    wanted = [torch.zeros_like(x) if g is None else g for g, x in zip(want, leaves, strict=True)]
    known = _expected(record, len(got))
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        array = to_numpy(a)
        if tuple(array.shape) != tuple(b.shape):
            found.append(Finding(call, "shape", f"gradient {i} is {array.shape}, want {tuple(b.shape)}"))
            continue
        one = known[i] if known and np.shape(known[i].magnitude) == array.shape else None
        text = difference(array, None, b, record, one)
        if text:
            own = _native_gradient(call, dys, i)
            finding = Finding(call, "value", f"dy {dys[0]!r}: gradient {i} ")
            found += _judged(finding, partial(difference, array, own, b, record, one))
    return found


def _native_gradient(call: Call, dys: list[T], which: int) -> torch.Tensor | None:
    """Torch's own gradient in the tensors' elements, where it has one."""
    given = calls.native(call)
    leaves = [x.requires_grad_() for x in _leaves(call, given)]
    value, error = attempt(torch_function(call.name), call, given)
    if error is not None:
        return None
    outs = [x for x in results(value) if x.dtype.is_floating_point and x.requires_grad]
    try:
        return torch.autograd.grad(outs, leaves, [d.native() for d in dys], allow_unused=True)[which]
    except (RuntimeError, IndexError):
        return None
