"""Facts of the conv family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import Call, Facts, call, floats, ramp


def _samples(axes: int, transposed: bool) -> dict[str, Call]:
    """A convolution over so many axes in two groups, and its gradient."""
    name = f"conv{'_transpose' * transposed}{axes}d"
    x, weight = floats(2, 4, *(5,) * axes), floats(4, 3, *(3,) * axes) if transposed else floats(6, 2, *(3,) * axes)
    dy, more = floats(2, 6, *(7 if transposed else 3,) * axes), {"groups": 2}
    return {name: call(x, weight, **more), f"{name}_backward": call(dy, x, weight, **more)}


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
)
