"""Scaling of losses so that gradients of halves do not vanish, as torch.amp.GradScaler does it, without asking the device."""

from __future__ import annotations

from math import inf
from typing import Any

from baracuda import functional as F
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.ops.optim.inplace import FLOATS, Changes, is_number, scalar, shape_of, want_array, want_writable
from baracuda.ops.optim.optim import as_list, groups_of

OPS = ()


@made_of("cast copy get_total_norm isfinite logical_not maximum mul")
@composite
def unscale_grads_(grads: Any, found_inf: Any, inv_scale: Any) -> None:
    """Multiplies gradients by inv_scale in place, and makes found_inf 1 where one was infinite or NaN.

    As torch._amp_foreach_non_finite_check_and_unscale_, but lists may mix elements, and no gradient is left out where one
    is not finite.

    Args:
        grads: Gradients, one array or a list of them.
        found_inf: f32 of rank 0, in place: stays 1 where it is.
        inv_scale: 1 / scale: a number or a 0-d array.
    """
    listed, inv_scale = as_list(grads), scalar("inv_scale", inv_scale, -inf)
    want_array("found_inf", found_inf, (Element.F32,), ())
    for i, g in enumerate(listed):
        want_array(f"grads[{i}]", g, FLOATS)
        want_writable({f"grads[{i}]": g, "found_inf": found_inf}, {})
    changes = Changes()
    for group in groups_of("unscale_grads_", {"grads": listed}, "grads"):
        norm = F.get_total_norm(group.parts[0], inf)
        bad = F.cast(F.logical_not(F.isfinite(norm)), "f32")
        changes.change(F.maximum, found_inf, bad)
    if not is_number(inv_scale):
        for g in listed:
            if not shape_of(g):  # the product of two arrays of rank 0 would be of the wider element
                changes.change_wide(F.mul, g, inv_scale, last=True)
    changes.write()
    for g in listed:
        if is_number(inv_scale) or shape_of(g):
            F.mul(g, inv_scale, out=g)  # in place, where nothing is allocated


@made_of("add copy eq isfinite logical_and logical_or mul ne where")
@composite
def update_scale_(
    scale: Any,
    growth_tracker: Any,
    found_inf: Any,
    growth_factor: float = 2.0,
    backoff_factor: float = 0.5,
    growth_interval: int = 2000,
) -> None:
    """The next step's scale, in place, as torch._amp_update_scale_.

    Where found_inf is not 0 the scale becomes scale * backoff_factor and the tracker 0. Else the tracker counts a step; with the
    growth_interval-th the scale becomes scale * growth_factor, unless that is infinite, and the tracker 0.

    Args:
        scale: f32 of rank 0.
        growth_tracker: i32 of rank 0: steps without infinite gradients since the scale changed.
        found_inf: f32 of rank 0, as unscale_grads_ leaves it.
        growth_factor: Above 1.
        backoff_factor: Above 0, below 1.
        growth_interval: Steps after which the scale grows.
    """
    growth_factor = scalar("growth_factor", growth_factor, 1, open_start=True)
    backoff_factor = scalar("backoff_factor", backoff_factor, 0, 1, open_start=True, open_end=True)
    growth_interval = scalar("growth_interval", growth_interval, 1, 2**31 - 1)
    for name, x, element in (
        ("scale", scale, Element.F32),
        ("growth_tracker", growth_tracker, Element.I32),
        ("found_inf", found_inf, Element.F32),
    ):
        want_array(name, x, (element,), ())
    want_writable({"scale": scale, "growth_tracker": growth_tracker}, {"found_inf": found_inf})
    bad, count = F.ne(found_inf, 0), F.add(growth_tracker, 1)
    grown, full = F.mul(scale, growth_factor), F.eq(count, growth_interval)
    grows = F.logical_and(full, F.isfinite(grown))
    kept = F.where(grows, grown, scale)
    next_scale = F.where(bad, F.mul(scale, backoff_factor), kept)
    next_count = F.where(F.logical_or(bad, full), 0, count)
    F.copy(next_scale, out=scale)
    F.copy(next_count, out=growth_tracker)
