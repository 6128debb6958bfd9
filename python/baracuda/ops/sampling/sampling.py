"""Tokens drawn from rows of logits, and what is kept of them. Kernels in csrc/ops/sampling, reference in sampling_ref.py.

Everything after the logits is integer arithmetic, so that a draw is the same on every backend, for every layout and
thread count, and other programs can repeat it:

- A row's logits are read as f32. Where a token was seen count > 0 times (at most 2**24 - 1 count), its logit z is divided
  by the repetition penalty, or, if it is not above 0, by f32(1 / penalty); then less frequency count, less presence,
  each rounded to f32. The product is u_f u_c + (u_f l_c + (l_f u_c + l_f l_c)), u and l being upper and lower 12 bits
  (of frequency rounded half up in magnitude; of count those below 2**12), in which every product is exact. Where the
  mask is false z is -inf.
- q = floor((max z - z) s), s = f32(24204406 / temperature), both products of f32: the distance from the row's largest in
  2**-24 octaves, at most 62 2**24. Weights are w = ((2**32 + e) 2**(bits - 33)) >> (q >> 24): e is Horner's scheme in
  u = 2**32 - 1 - 2**8 (q mod 2**24) with the coefficients of `COEFFICIENTS`, products being >> 32, and bits = 62 -
  ceil(log2(tokens)). They are exp((z - max z) / temperature) to 2**-28 and the f32 rounding of q.
- Tokens are in order by z descending, those that tie by position. top_k keeps the first k. top_p keeps, of those, the
  fewest first ones whose weights add up to ceil(S ceil(top_p 2**32) / 2**32) of their sum S, at least one. min_p keeps
  those whose weight is at least the same share of the largest weight.
- typical_p orders what is left by |q - m|, m = floor(sum(w q) / sum(w)), that is by how far a token's surprise is from
  the mean; q <= m before q > m, then by position. It keeps the fewest first ones whose weights add up to that share.
- A temperature of 0 keeps the first token alone.
- Sample j of row r is element r samples + j of randint below the sum of the weights kept: the first token, in the last of
  these orders, at which their running sum goes beyond it.
"""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, composite, function, run_new
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import Descriptor, Param, ScalarParam, Signature, descriptor, frame, output, scalar, tensor
from baracuda.memory.generator import chosen
from baracuda.ops.random.random import planned

# The columns of `controls`, and what each is where nothing is given.
CONTROLS: dict[str, float] = {
    "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0,
    "repetition": 1.0, "presence": 0.0, "frequency": 0.0,
}  # fmt: skip


@frame
class _Logits(Descriptor):
    """Fields, tensors and numbers that drawing and filtering share."""

    __slots__ = ()
    shape: Shape
    element: Element = Element.F32
    counted: bool = False
    mask_shape: Shape | None = None
    per_row: bool = False

    def validate(self) -> None:
        if len(self.shape) not in (1, 2):
            raise self.wrong("shape", self.shape, "(tokens,) or (rows, tokens)")
        if isinstance(n := self.shape[-1], int) and n >= 2**29:
            raise self.wrong("shape", self.shape, "fewer than 2**29 tokens")
        if self.mask_shape is None:
            return
        lead = len(self.shape) - len(self.mask_shape)
        if lead < 0 or any(m not in (1, s) for m, s in zip(self.mask_shape, self.shape[lead:], strict=True)):
            raise self.wrong("mask_shape", self.mask_shape, f"a shape that broadcasts to {shape_text(self.shape)}")

    def given(self) -> tuple[Param, ...]:
        """The tensors that are read."""
        return (
            tensor("logits", self.shape, self.element),
            tensor("counts", self.shape, Element.I32, present=self.counted),
            tensor("mask", self.mask_shape or (), Element.BOOL, present=self.mask_shape is not None),
            tensor("controls", (*self.shape[:-1], len(CONTROLS)), Element.F32, present=self.per_row),
        )

    def numbers(self) -> tuple[ScalarParam, ...]:
        """What all rows are drawn with, where there are no controls."""
        return tuple(
            scalar(name, "int" if name == "top_k" else "float", value, present=not self.per_row)
            for name, value in CONTROLS.items()
        )


@descriptor(family="sampling", op="sample_tokens")
class SampleTokensDescriptor(_Logits):
    """Tokens drawn from rows of logits by what top_k, top_p, min_p and typical_p keep; the mapping is in the module's docstring.

    Numbers, or the columns of `controls` (f32, a row for each of logits), in this order: temperature (not negative; 0
    takes the largest), top_k (0: all), top_p, min_p, typical_p (in [0, 1]), repetition (not negative), presence and
    frequency (finite), the last three of effect with `counts` only; then seed and offset. Logits are less than infinity
    and not NaN, and those of a row not all -inf (else ValueOutOfRangeError).

    Args:
        shape: Shape of logits: (tokens,) or (rows, tokens).
        element: Of logits: f16, bf16 or f32. Tokens are i64.
        counted: Whether `counts` (i32, shape of logits) says how often each token was seen.
        mask_shape: Shape of the mask (bool, true keeps), which broadcasts to `shape`; None: no mask.
        per_row: Whether each row has numbers of its own, in `controls`.
        samples: How many are drawn from each row, tokens being (rows, samples); None: one, tokens being (rows,).
    """

    samples: int | None = None

    def validate(self) -> None:
        _Logits.validate(self)
        if self.samples is not None and self.samples < 0:
            raise self.wrong("samples", self.samples, "at least 0, or None")

    def signature(self) -> Signature:
        drawn = () if self.samples is None else (self.samples,)
        return Signature(
            *self.given(),
            output("y", (*self.shape[:-1], *drawn), Element.I64),
            *self.numbers(),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return (product(self.shape[:-1]) * (1 if self.samples is None else self.samples)).ceil(2)


@descriptor(family="sampling", op="filter_logits")
class FilterLogitsDescriptor(_Logits):
    """y = logits where top_k, top_p, min_p and typical_p keep a token, -inf elsewhere; or its probability and 0.

    What is kept is what `sample_tokens` draws from, with the same numbers. Logits are after penalties, before the
    temperature; probabilities are those of what is kept, which add up to 1.

    Args:
        shape: Shape of logits and y: (tokens,) or (rows, tokens).
        element: f16, bf16 or f32.
        counted: Whether `counts` (i32, shape of logits) says how often each token was seen.
        mask_shape: Shape of the mask (bool, true keeps), which broadcasts to `shape`; None: no mask.
        per_row: Whether each row has numbers of its own, in `controls`.
        probabilities: Whether y are those.
    """

    probabilities: bool = False

    def signature(self) -> Signature:
        return Signature(*self.given(), output("y", self.shape, self.element), *self.numbers())

    def attributes(self) -> dict[str, int | float]:
        return {"probabilities": int(self.probabilities)}


OPS = (
    Op("sample_tokens", SampleTokensDescriptor, NotDifferentiable("random numbers are not a function of a tensor"),
       "y = tokens drawn in proportion to exp(logits / temperature), of those that are kept"),
    Op("filter_logits", FilterLogitsDescriptor, NotDifferentiable("tokens are kept or not by comparison"),
       "y = logits, or probabilities, of the tokens that top_k, top_p, min_p and typical_p keep"),
)  # fmt: skip


# What callers know numbers by that plans have shorter names for.
_CALLED = {n: f"{n}_penalty" for n in ("repetition", "presence", "frequency")}


def _one(name: str, value: Any) -> int | float:
    """One number for all rows."""
    whole = name == "top_k"
    try:
        return operator.index(value) if whole else float(value)
    except (TypeError, ValueError):
        name, kind = _CALLED.get(name, name), "an int" if whole else "a number"
        raise InvalidProblemError(
            f"{name}: got {shown(value)}, want {kind}, or an array of one for each row."
        ) from None


def controls_of(rows: Shape, **numbers: Any) -> dict[str, Any]:
    """Numbers for all rows as they are; with arrays of one for each row among them, one table of `controls`."""
    arrays = []
    for name, v in numbers.items():
        if not hasattr(v, "__dlpack__"):
            continue
        shape = tuple(_core.describe(v)[0])
        if shape != rows:
            name, want = _CALLED.get(name, name), f"one number for each row, {shape_text(rows)}"
            raise InvalidProblemError(f"{name}: got shape {shape_text(shape)}, want {want}.")
        arrays.append(v)
    if not arrays:
        return {k: _one(k, v) for k, v in numbers.items()}
    first = arrays[0]
    columns = [
        F.cast(v, Element.F32) if hasattr(v, "__dlpack__") else F.full_like(first, float(_one(k, v)), dtype=Element.F32)
        for k, v in numbers.items()
    ]
    return {"controls": F.stack(columns, -1)}


def _check_penalty(name: str, repetition: Any) -> None:
    if isinstance(repetition, Real) and not 0 < float(repetition) < math.inf:
        raise InvalidProblemError(
            f"{name}: repetition_penalty: got {repetition}, want a finite number above 0; 1 for none."
        )


@made_of("cast fill sample_tokens stack")
@composite
def sample_tokens(
    logits: Any,
    temperature: Any = 1.0,
    top_k: Any = 0,
    top_p: Any = 1.0,
    min_p: Any = 0.0,
    typical_p: Any = 1.0,
    *,
    counts: Any = None,
    repetition_penalty: Any = 1.0,
    presence_penalty: Any = 0.0,
    frequency_penalty: Any = 0.0,
    mask: Any = None,
    num_samples: int | None = None,
    generator: Any = None,
    out: Any = None,
) -> Any:
    """Draws a token, or `num_samples`, from each row of logits: one kernel, which sorts nothing.

    Penalties, mask, temperature, top_k, top_p, min_p and typical_p take effect in this order, as in transformers. Each
    number may be an array of one for each row. The same tokens on every backend and layout.

    Args:
        logits: (tokens,) or (rows, tokens), f16, bf16 or f32.
        temperature: What logits are divided by; 0 takes the largest.
        top_k: Keeps so many of the largest; 0 keeps all.
        top_p: Keeps the fewest of the largest whose probabilities add up to so much.
        min_p: Keeps tokens at least so many times as probable as the most probable one.
        typical_p: Keeps the fewest tokens whose surprise is nearest to the mean and whose probabilities add up to so much.
        counts: i32 of the shape of logits: how often each token was seen; penalties are for those that were.
        repetition_penalty: What logits above 0 are divided, and others multiplied by; above 0.
        presence_penalty: What is taken from the logit of a token that was seen.
        frequency_penalty: What is taken as often as it was seen.
        mask: bool, which broadcasts to logits: false never draws a token.
        num_samples: How many are drawn from each row; tokens are then (rows, num_samples), else (rows,).
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        out: Array of i64 to fill.
    """
    _check_penalty("sample_tokens", repetition_penalty)
    shape, code, _, *place = _core.describe(logits)
    numbers = controls_of(
        tuple(shape[:-1]),
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, typical_p=typical_p,
        repetition=repetition_penalty, presence=presence_penalty, frequency=frequency_penalty,
    )  # fmt: skip
    masked = None if mask is None else _core.describe(mask)[0]
    desc = SampleTokensDescriptor(shape, Element(code), counts is not None, masked, "controls" in numbers, num_samples)
    made, blocks = planned(desc, (place[0], place[1]))
    given = {"logits": logits, "counts": counts, "mask": mask} | numbers
    given = {name: value for name, value in given.items() if value is not None}
    return chosen(generator).draw(blocks, lambda s, o: run_new(made, logits, out, **given, seed=s, offset=o))


@made_of("cast copy sample_tokens")
@composite
def categorical(logits: Any, num_samples: int | None = None, *, generator: Any = None) -> Any:
    """Draws from the last axis in proportion to exp(logits), with replacement, as torch.distributions.Categorical(logits=).

    `sample_tokens` of every row: the same categories on every backend and layout. Logits of f64 are rounded to f32.

    Args:
        logits: Floats of rank 1 or more, less than infinity and not NaN, not all -inf in a row.
        num_samples: How many are drawn from each row, along a new last axis; None: one, without such an axis.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
    """
    shape, code, *_ = _core.describe(logits)
    if not Element(code).is_float or not shape:
        raise InvalidProblemError(f"logits: got {Element(code)} of shape {shape}, want floats of rank 1 or more.")
    z = F.cast(logits, Element.F32) if Element(code) is Element.F64 else logits
    if len(shape) > 2:
        z = F.view_copy(z, (math.prod(shape[:-1]), shape[-1]))
    drawn = sample_tokens(z, num_samples=num_samples, generator=generator)
    made = shape[:-1] if num_samples is None else (*shape[:-1], num_samples)
    return drawn.reshape(made) if len(shape) > 2 else drawn


@function(tensors="logits counts mask controls")
def filter_logits(
    call: Call,
    logits: Arg,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical_p: float = 1.0,
    *,
    counts: Arg | None = None,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    mask: Arg | None = None,
    controls: Arg | None = None,
    probabilities: bool = False,
    out: Arg | None = None,
) -> Recipe:
    """Logits of the tokens that sample_tokens would draw from, -inf elsewhere; or their `probabilities`, which add up to 1.

    `controls`, f32 of eight columns, stands for the numbers of each row: temperature, top_k, top_p, min_p, typical_p and
    the penalties for repetition, presence and frequency.
    """
    if mask is not None and mask.element is not Element.BOOL:
        raise InvalidProblemError(f"filter_logits: mask: got element {mask.element}, want bool.")
    _check_penalty("filter_logits", repetition_penalty)
    beside = (temperature, top_k, top_p, min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty)
    if controls is not None and beside != (1, 0, 1, 0, 1, 1, 0, 0):
        raise InvalidProblemError(
            "filter_logits: controls: got numbers beside them, want one or the other: columns of theirs."
        )
    desc = FilterLogitsDescriptor(
        logits.shape,
        logits.element,
        counts is not None,
        None if mask is None else mask.shape,
        controls is not None,
        probabilities,
    )
    numbers: dict[str, Any] = {} if controls is not None else {
        "temperature": float(temperature), "top_k": int(top_k), "top_p": float(top_p), "min_p": float(min_p),
        "typical_p": float(typical_p), "repetition": float(repetition_penalty), "presence": float(presence_penalty),
        "frequency": float(frequency_penalty),
    }  # fmt: skip
    return call(desc, logits=logits, counts=counts, mask=mask, controls=controls, **numbers)
