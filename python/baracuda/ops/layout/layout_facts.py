"""Facts of the layout family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import Facts, W, X, call, floats, ramp

FACTS = Facts(
    category="shape_layout",
    samples={
        "channel_shuffle": call(floats(2, 6, 3, 2), 3),
        "constant_pad_nd": call(X, (1, 2), 0.5),
        "narrow_copy": call(X, 1, 2, 3),
        "pad_backward": call(floats(4, 9), (4, 6), (1, 2)),
        "pixel_shuffle": call(floats(2, 8, 3, 2), 2),
        "pixel_unshuffle": call(floats(2, 4, 6), 2),
        "select_scatter": call(X, W, 0, 2),
        "split_copy": call(X, 4, 1),
        "split_with_sizes_copy": call(X, (1, 3), 0),
        "transpose_copy": call(X, 0, 1),
        "unfold_copy": call(X, 1, 3, 2),
    },
    steps={
        "diag_embed_backward": [call(ramp(2, 3, 3))],
        "diagonal_backward": [call(ramp(2), (2, 3))],
        "repeat_interleave": [call(ramp(3), np.array([2, 0, 1], np.int32), output_size=3)],
        "split_copy": [call(ramp(5), 2)],
        "triu_indices": [call(7, 9)],
    },
    drawn={
        "arrange": "arrange",
        "join": "join",
        "layout": "layout",
        "pad": "pad",
    },
    sampled=(
        "joined",
        "copies",
    ),
    peers={
        "copy": lambda torch: torch.clone,
        "repeat": lambda torch: lambda input, repeats: input.repeat(repeats),
    },
)
