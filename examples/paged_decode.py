"""Decoding two sequences of different lengths over a key-value cache in pages."""

import numpy as np

import baracuda.functional as F

SIZE, HEADS, KV_HEADS, DIM = 16, 8, 2, 64
rng = np.random.default_rng(0)
keys = np.zeros((6, SIZE, KV_HEADS, DIM), np.float32)  # six pages of 16 positions
values = np.zeros_like(keys)
table = np.array([[4, 0, 2], [5, 1, 3]], np.int32)  # which pages are whose, in order
lengths = np.array([0, 0], np.int32)

# Two prompts of 20 and 9 tokens, one behind the other; then a token each, again and again.
k, v = rng.standard_normal((2, 29, KV_HEADS, DIM), np.float32)
F.paged_append_(k, v, keys, values, table, lengths, cu_seq=np.array([0, 20, 29], np.int32))
lengths += np.array([20, 9], np.int32)
for _ in range(8):
    k, v = rng.standard_normal((2, 2, 1, KV_HEADS, DIM), np.float32)
    q = rng.standard_normal((2, 1, HEADS, DIM), np.float32)
    F.paged_append_(k, v, keys, values, table, lengths)
    lengths += 1
    out = F.paged_attention(q, keys, values, table, lengths, window_size=(-1, 0), enable_gqa=True)

# The same as attention over the first sequence's keys laid one behind the other.
laid = [cache[table[0]].reshape(-1, KV_HEADS, DIM)[: lengths[0]].swapaxes(0, 1)[None] for cache in (keys, values)]
wanted = F.scaled_dot_product_attention(q[:1].swapaxes(1, 2), *laid, enable_gqa=True)
np.testing.assert_allclose(out[:1].swapaxes(1, 2), wanted, rtol=1e-4, atol=1e-6)
print("lengths", lengths, "in", table.size, "pages of", SIZE)
