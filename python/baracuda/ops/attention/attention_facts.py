"""Facts of the attention family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import INNER, LENGTHS, OWN, Facts, because, call, floats, ramp

Q, CU = floats(7, 2, 8), np.array([0, 3, 7], np.int32)
PAGES, TABLE = floats(4, 8, 2, 8), np.array([[0, 1], [2, 3]], np.int32)
ATTENDED = floats(2, 2, 5, 8)


def _scaled(d: Draws) -> Arguments:
    """Few and many queries over few and many keys; heads of 8 to 128."""
    width, heads = d.pick(8, 16, 32, 64, 64, 80, 128), d.pick(1, 3, 4, 8, 12)
    rest = max(1.0, d.count / (width * heads))
    length = d.between(1, min(2048, rest))
    batch = max(1, min(16, int(rest / length)))
    queries = d.pick(length, length, 1, d.between(1, length))
    while batch * heads * queries * length * width > 1e9:
        batch, queries, length = max(1, batch // 2), max(1, queries * 2 // 3), max(1, length * 2 // 3)
    shapes = {"query": queries, "key": length, "value": length}
    given: Arguments = {n: d.floats((batch, heads, m, width)) for n, m in shapes.items()}
    return given | ({"is_causal": True} if queries == length and d.chance(0.4) else {})


FACTS = Facts(
    category="attention",
    samples={
        "attention_merge": call(ATTENDED, floats(2, 2, 5), ATTENDED, floats(2, 2, 5)),
        "attention_merge_backward": call(
            ATTENDED, floats(2, 2, 5), ATTENDED, floats(2, 2, 5), ATTENDED, floats(2, 2, 5)
        ),
        "attention_merge_states": call(*(ATTENDED, floats(2, 2, 5)) * 3),
        "paged_append_": call(floats(2, 1, 2, 8), floats(2, 1, 2, 8), PAGES, PAGES.copy(), TABLE, LENGTHS),
        "paged_append_slots_": call(floats(2, 2, 8), floats(2, 2, 8), PAGES, PAGES.copy(), np.array([9, -1], np.int32)),
        "paged_attention": call(floats(2, 1, 4, 8), PAGES, PAGES, TABLE, LENGTHS, enable_gqa=True),
        "paged_attention_forward": call(floats(2, 1, 2, 8), PAGES, PAGES, TABLE, LENGTHS),
        "scaled_dot_product_attention_backward": call(*(ATTENDED,) * 5, floats(2, 2, 5)),
        "varlen_attn": call(Q, Q, Q, CU, CU, 4, 4),
        "varlen_attn_backward": call(*(Q,) * 5, floats(2, 7), CU, CU, 4, 4),
        "varlen_attn_forward": call(Q, Q, Q, CU, CU, 4, 4),
    },
    steps={
        "attention_merge_states": [call(ramp(2, 3), ramp(2)), call(ramp(2, 3), ramp(2), ramp(2, 3), ramp(2))],
    },
    drawn={
        "attention": "attention",
    },
    alone=because(
        OWN,
        "attention_merge attention_merge_states paged_append_slots_ paged_append_ paged_attention paged_attention_forward",
    )
    | because("torch's runs on some GPUs only; compared in tests/ops", "varlen_attn varlen_attn_forward")
    | because(INNER, "scaled_dot_product_attention_forward"),
    partly={
        "nn.functional.scaled_dot_product_attention": "some samples drop out, at random; some want grouped heads without being asked",
    },
    sweep={
        "attention": _scaled,
    },
)
