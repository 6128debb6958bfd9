"""Reference of the quantizing epilogue: what an op's reference gives, in units of scales, before it is rounded to a code."""

from __future__ import annotations

import numpy as np

from baracuda.describe.elements import Element
from baracuda.prove.reference import Array, Expected, ulp

_LIMITS = {Element.I8: (-128.0, 127.0), Element.F8E4M3: (-448.0, 448.0), Element.F8E5M2: (-57344.0, 57344.0)}


def coded(y: Expected, code: Element, group: int | None, given: Array | None) -> dict[str, Expected]:
    """Codes, and scales if none is given.

    A code's error is that of the value, that of the scale, and half of the distance between codes.

    Args:
        y: The values of the op that the epilogue is of.
        code: The element of codes.
        group: How many values along the last dimension share a scale; None: all of them.
        given: One scale for all.
    """
    value, size = np.asarray(y.value, np.float64), np.asarray(y.magnitude, np.float64)
    size, lost = np.broadcast_to(size, value.shape), np.broadcast_to(1.0 if y.lost is None else y.lost, value.shape)
    rows, last = value.shape[:-1], value.shape[-1]
    shape = (*rows, last // group, group) if group else (*rows, 1, last)
    v, size, lost = (np.asarray(t, np.float64).reshape(shape) for t in (value, size, lost))
    most = _LIMITS[code][1]
    reach = np.broadcast_to(
        size.max(-1, initial=0.0)[..., None], shape
    )  # where this is beyond f32, so may the scale be
    with np.errstate(all="ignore"):
        if given is None:
            scale, scale_size, scale_lost = (t.max(-1, initial=0.0) / most for t in (np.abs(v), size, lost))
            found = {"scale": Expected(scale, scale_size, y.terms, size.max(-1, initial=0.0), 1 + scale_lost)}
        else:
            scale, scale_size, scale_lost = np.full(shape[:-1], np.float64(given)), np.zeros(()), np.zeros(())
            found = {}
        s = scale[..., None]
        units = np.where(v == 0, 0.0, v / s)
        error = np.where(v == 0, 0.0, np.abs(units) / s)
        sizes = np.where(size == 0, 0.0, size / s) + error * scale_size[..., None]
        losts = lost / s + error * (1 + scale_lost[..., None])
        units = np.where(np.isnan(units), 0.0 if code is Element.I8 else np.nan, np.clip(units, *_LIMITS[code]))
        step = np.ones(shape) if code is Element.I8 else ulp(units, code)
    codes = (np.asarray(t).reshape(value.shape) for t in (units, sizes, reach, losts, step))
    units, sizes, reach, losts, step = codes
    return {"y": Expected(units, sizes, y.terms, reach, losts, step)} | found
