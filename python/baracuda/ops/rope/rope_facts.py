"""Facts of the rope family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import HEADS, OWN, TURN, Facts, W, because, call, floats, ramp

FACTS = Facts(
    category="attention",
    samples={
        "qk_norm_rope": call(HEADS, HEADS[:, :, :1], W[:1].repeat(8), W[:1].repeat(8), TURN, TURN),
        "rms_norm_rope": call(HEADS, None, TURN, TURN),
        "rms_norm_rope_backward": call(HEADS, HEADS, W[:1].repeat(8), TURN, TURN, floats(2, 5, 3, 1)),
        "rms_norm_rope_forward": call(HEADS, W[:1].repeat(8), TURN, TURN),
    },
    steps={
        "qk_norm_rope": [call(ramp(2, 4, 3, 8), ramp(2, 2, 3, 8), ramp(8), ramp(8), ramp(3, 4), ramp(3, 4))],
    },
    alone=because(OWN, "rope rms_norm_rope rms_norm_rope_forward qk_norm_rope"),
)
