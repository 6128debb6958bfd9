"""Facts of the conv family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import math

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import Call, Facts, call, floats, ramp
from baracuda.prove.rules import planes


def _samples(axes: int, transposed: bool) -> dict[str, Call]:
    """A convolution over so many axes in two groups, and its gradient."""
    name = f"conv{'_transpose' * transposed}{axes}d"
    x, weight = floats(2, 4, *(5,) * axes), floats(4, 3, *(3,) * axes) if transposed else floats(6, 2, *(3,) * axes)
    dy, more = floats(2, 6, *(7 if transposed else 3,) * axes), {"groups": 2}
    return {name: call(x, weight, **more), f"{name}_backward": call(dy, x, weight, **more)}


def _scaled(d: Draws) -> Arguments:
    """Images of many sizes: kernels of 1 to 7, strides, padding, groups and depthwise; at most a thousand million products."""
    axes, turned = int(d.name[-2]), "transpose" in d.name
    batch, inward, extents = planes(d, axes)
    kernel = min(d.pick(1, 2, 3, 3, 3, 5, 7) if axes < 3 else d.pick(1, 2, 3, 3), *extents)
    outward, stride = d.between(1, 256), d.pick(1, 1, 1, 2)
    kind = d.rng.random()
    groups = inward if kind < 0.15 else d.pick(2, 4) if kind < 0.3 else 1
    inward, outward = (max(1, n // groups) * groups for n in (inward, outward))
    while (
        batch * inward * outward // groups * kernel**axes * math.prod(extents) > 1e9
        and max(batch, inward, outward) > groups
    ):
        batch, inward, outward = (n if n < max(batch, inward, outward) else n // 2 for n in (batch, inward, outward))
        inward, outward = (max(1, n // groups) * groups for n in (inward, outward))
    batch = max(1, batch)
    shape = (inward, outward // groups) if turned else (outward, inward // groups)
    given: Arguments = {
        "input": d.floats((batch, inward, *extents)),
        "weight": d.floats((*shape, *(kernel,) * axes), plain=True),
    }
    given |= {"bias": d.floats((outward,), plain=True)} if d.chance(0.5) else {}
    return given | {"stride": stride, "padding": 0 if turned else kernel // 2, "groups": groups}


FACTS = Facts(
    category="convolution",
    samples={k: v for axes in (1, 2, 3) for turned in (False, True) for k, v in _samples(axes, turned).items()},
    steps={
        "conv1d_backward": [call(ramp(2, 3, 5), ramp(2, 2, 7), ramp(3, 2, 3))],
        "conv2d_backward": [call(ramp(1, 3, 5, 2), ramp(1, 2, 7, 2), ramp(3, 2, 3, 1), ramp(3))],
        "conv3d_backward": [call(ramp(1, 3, 2, 2, 2), ramp(1, 1, 3, 2, 2), ramp(3, 1, 2, 1, 1))],
        "conv_transpose1d_backward": [call(ramp(1, 2, 7), ramp(1, 3, 5), ramp(3, 2, 3))],
        "conv_transpose2d_backward": [call(ramp(1, 2, 7, 2), ramp(1, 3, 5, 2), ramp(3, 2, 3, 1), ramp(2))],
        "conv_transpose3d_backward": [call(ramp(1, 1, 3, 2, 2), ramp(1, 3, 2, 2, 2), ramp(3, 1, 2, 1, 1))],
    },
    sampled=(
        "conv",
        "conv_transposed",
    ),
    partly={
        "nn.functional.conv1d": "no integers",
        "nn.functional.conv2d": "no integers",
        "nn.functional.conv3d": "no integers",
        "nn.functional.conv_transpose1d": "no integers",
        "nn.functional.conv_transpose2d": "no integers",
        "nn.functional.conv_transpose3d": "no integers",
    },
    sweep={
        "conv": _scaled,
        "conv_transposed": _scaled,
    },
)
