"""Tables for rotary embeddings beyond the context that a model was trained with, as configurations of models say it.

Frequencies and angles are worked out in f64 on the host and rounded once: tables are constants, made when a model is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.describe.calls import signed
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown

if TYPE_CHECKING:
    from baracuda.prove.reference import Array

OPS = ()


class _Config:
    """The entries of a scaling, read and checked one by one."""

    def __init__(self, given: Mapping[str, Any], kind: str) -> None:
        self.given, self.kind = given, kind

    def number(self, name: str, default: float | None = None, least: float = 0.0) -> float:
        value = self.given.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not (least < value < math.inf):
            got = "nothing" if value is None else shown(value)
            raise InvalidProblemError(f"scaling: {self.kind}: {name}: got {got}, want a finite number above {least:g}.")
        return float(value)

    def given_number(self, name: str) -> float | None:
        return None if self.given.get(name) is None else self.number(name)

    def numbers(self, name: str, count: int) -> Array:
        value = self.given.get(name)
        if not isinstance(value, (list, tuple)) or len(value) != count or any(not v > 0 for v in value):
            raise InvalidProblemError(
                f"scaling: {self.kind}: {name}: got {shown(value)}, want a list of {count} numbers above 0, one for each pair."
            )
        return np.array(value, np.float64)

    def context(self) -> float:
        return self.number("original_max_position_embeddings")


Made = tuple[Any, float]  # frequencies, and what cos and sin are multiplied by


def _entries(scaling: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if scaling is not None and not isinstance(scaling, Mapping):
        raise InvalidProblemError(
            f"scaling: got {shown(scaling)}, want a dict, such as a model's rope_scaling, or None."
        )
    return {} if scaling is None else scaling


def _usual(dim: int, base: float) -> Array:
    return np.asarray(base ** -(np.arange(0, dim, 2, dtype=np.float64) / dim))


def _raised(dim: int, base: float, by: float) -> float:
    if dim <= 2:
        raise InvalidProblemError(f"dim: got {dim}, want more than 2 where a scaling changes the base.")
    return float(base * by ** (dim / (dim - 2)))


def _linear(c: _Config, dim: int, base: float, length: int) -> Made:
    return _usual(dim, base) / c.number("factor"), 1.0


def _ntk(c: _Config, dim: int, base: float, length: int) -> Made:
    return _usual(dim, _raised(dim, base, c.number("factor"))), 1.0


def _dynamic(c: _Config, dim: int, base: float, length: int) -> Made:
    factor, context = c.number("factor"), c.context()
    longer = max(float(length), context) / context
    return _usual(dim, _raised(dim, base, factor * longer - (factor - 1))), 1.0


def _temperature(factor: float, scale: float = 1.0) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _yarn(c: _Config, dim: int, base: float, length: int) -> Made:
    factor, context = c.number("factor"), c.context()
    fast, slow = c.number("beta_fast", 32.0), c.number("beta_slow", 1.0)
    kept = c.given_number("attention_factor")
    if kept is None:
        scale, everywhere = c.given.get("mscale"), c.given.get("mscale_all_dim")
        kept = (
            _temperature(factor, float(scale)) / _temperature(factor, float(everywhere))
            if scale and everywhere
            else _temperature(factor)
        )

    if base <= 1:
        raise InvalidProblemError(f"base: got {base:g}, want more than 1 where yarn asks which pairs turn how often.")

    def pair(turns: float) -> float:  # the pair that turns so often in the context
        return dim * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair(fast), pair(slow)
    if c.given.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low if high != low else 0.001), 0.0, 1.0)
    usual = _usual(dim, base)
    return usual / factor * ramp + usual * (1 - ramp), kept


def _longrope(c: _Config, dim: int, base: float, length: int) -> Made:
    context = c.context()
    factors = c.numbers("long_factor" if length > context else "short_factor", dim // 2)
    kept = c.given_number("attention_factor")
    if kept is None:
        factor = c.given_number("factor")
        if factor is None:
            factor = c.number("max_position_embeddings") / context
        if factor > 1 and context <= 1:
            want = "more than 1 token, whose logarithm the attention factor is divided by"
            raise InvalidProblemError(
                f"scaling: longrope: original_max_position_embeddings: got {context:g}, want {want}."
            )
        kept = math.sqrt(1 + math.log(factor) / math.log(context)) if factor > 1 else 1.0
    return _usual(dim, base) / factors, kept


def _llama3(c: _Config, dim: int, base: float, length: int) -> Made:
    factor, low, high = c.number("factor"), c.number("low_freq_factor"), c.number("high_freq_factor")
    if not low < high:
        raise InvalidProblemError(
            f"scaling: llama3: high_freq_factor: got {high:g}, want more than low_freq_factor, {low:g}."
        )
    usual = _usual(dim, base)
    turns = c.context() * usual / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - smooth) * usual / factor + smooth * usual, 1.0


_SCALINGS: dict[str, Callable[[_Config, int, float, int], Made]] = {
    "default": lambda c, dim, base, length: (_usual(dim, base), 1.0),
    "linear": _linear,
    "ntk": _ntk,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "llama3": _llama3,
}
_OLD_NAMES = {"mrope": "default", "su": "longrope"}


@signed
def rope_frequencies(
    dim: int, base: float = 10000.0, scaling: Mapping[str, Any] | None = None, length: int = 0
) -> tuple[Array, float]:
    """The frequencies of a rotary embedding, in f64, and what its cosines and sines are multiplied by.

    Pair i of position p is turned by p f_i. Without scaling f_i = base^(-2i / dim). `scaling` is a model's configuration
    ("rope_scaling", or "rope_parameters"), by its "rope_type":

    - linear: f_i / factor.
    - ntk: the base is base factor^(dim / (dim - 2)).
    - dynamic: the same with factor n - (factor - 1), n = length / original_max_position_embeddings, at least 1.
    - yarn: f_i / factor for slow pairs, f_i for fast ones, a ramp between those that turn beta_slow and beta_fast times in the
      original context; cos and sin times 0.1 ln(factor) + 1, or what mscale and mscale_all_dim, or attention_factor say.
    - longrope: f_i / long_factor_i, or short_factor_i up to the original context; cos and sin times
      sqrt(1 + ln(factor) / ln(original)), or attention_factor.
    - llama3: f_i / factor where a wave is longer than original / low_freq_factor, f_i where it is shorter than original /
      high_freq_factor, and a ramp in turns between.

    Args:
        dim: How many elements are rotated, even.
        base: theta.
        scaling: None for the usual embedding.
        length: Tokens that there will be, where that matters (dynamic, longrope).

    Raises:
        InvalidProblemError: A type that is not known, or an entry that is missing or no such number.
    """
    if isinstance(dim, bool) or not isinstance(dim, int) or not 2 <= dim < 2**31 or dim % 2:
        raise InvalidProblemError(f"dim: got {shown(dim)}, want an even int of at least 2, below 2**31.")
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not 0 < base < math.inf:
        raise InvalidProblemError(f"base: got {shown(base)}, want a finite number above 0.")
    given = _entries(scaling)
    kind = str(given.get("rope_type") or given.get("type") or "default")
    kind = _OLD_NAMES.get(kind, kind)
    if kind not in _SCALINGS:
        raise InvalidProblemError(f"scaling: rope_type: got {shown(kind)}, want one of {', '.join(_SCALINGS)}.")
    return _SCALINGS[kind](_Config(given, kind), dim, float(base), length)


def _of_axes(angles: Array, scaling: Mapping[str, Any], pairs: int) -> Array:
    """Angles of three axes, (3, n, pairs), as one of them for each pair."""
    section = scaling.get("mrope_section")
    if not isinstance(section, (list, tuple)) or len(section) != 3 or sum(section) != pairs or min(section) < 0:
        raise InvalidProblemError(
            f"scaling: mrope_section: got {shown(section)}, want three numbers of pairs that add up to {pairs}."
        )
    axis = np.repeat(np.arange(3), section)
    if scaling.get("mrope_interleaved"):
        axis = np.zeros(pairs, np.int64)
        for a in (1, 2):
            axis[a : 3 * section[a] : 3] = a
    return np.asarray(np.take_along_axis(angles, np.broadcast_to(axis, (1, *angles.shape[1:])), 0)[0])


@signed
def rope_tables(
    positions: Any,
    dim: int,
    base: float = 10000.0,
    scaling: Mapping[str, Any] | None = None,
    *,
    length: int | None = None,
    element: Any = Element.F32,
    device: str | None = None,
) -> tuple[Any, Any]:
    """(cos, sin) of shape (positions, dim / 2), which `rope` and its kin take, with a model's scaling.

    Worked out in f64, and rounded once. See `bc.rope_frequencies` for what scalings there are. With "mrope_section" (M-RoPE:
    time, height and width have positions of their own) `positions` has three rows; sections lie one after another, or every
    third pair belongs to one with "mrope_interleaved".

    Args:
        positions: How many, from 0 on; or the positions themselves, any shape, which is made flat: the tables have a row for
            each of them, in this order, and `rope`'s own positions count the rows.
        dim: How many elements are rotated, even.
        base: theta.
        scaling: A model's "rope_scaling"; None for the usual embedding.
        length: Tokens that there will be, for dynamic and longrope; by default one more than the largest position.
        element: Of the tables.
        device: Where bc.Tensors are made; by default they are NumPy arrays.
    """
    given = _entries(scaling)
    if isinstance(positions, int) and positions < 0:
        raise InvalidProblemError(f"positions: got {positions}, want a number of them that is not negative.")
    sections = given.get("mrope_section") is not None
    at = np.arange(positions) if isinstance(positions, int) else np.asarray(positions)
    if at.dtype.kind not in "iu" or (not isinstance(positions, int) and sections and (at.ndim < 1 or len(at) != 3)):
        want = "integers" + (", those of three axes in three rows, as there is a mrope_section" if sections else "")
        raise InvalidProblemError(f"positions: got {at.dtype} of shape {at.shape}, want {want}.")
    if sections and isinstance(positions, int):
        at = np.broadcast_to(at, (3, positions))
    rows = at.reshape((3, at.size // 3) if sections else (at.size,))
    tokens = (int(rows.max()) + 1 if rows.size else 0) if length is None else length
    frequencies, factor = rope_frequencies(dim, base, scaling, tokens)
    angles = rows[..., None].astype(np.float64) * frequencies
    if sections:
        angles = _of_axes(angles, given, dim // 2)
    to = Element.coerce(element, "element")
    if not to.is_float:
        raise InvalidProblemError(f"element: got {to}, want a float.")
    cos, sin = ((f(angles) * factor).astype(to.numpy) for f in (np.cos, np.sin))
    if device is None:
        return cos, sin
    from baracuda.memory.tensor import asarray

    return asarray(cos, device=device), asarray(sin, device=device)
