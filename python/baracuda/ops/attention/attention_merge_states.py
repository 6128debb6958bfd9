"""Any number of partial results of attention as one, made of merges of two."""

from __future__ import annotations

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.steps import made_of
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.attention.attention_merge import attention_merge

OPS = ()


@pulled_through
@made_of("attention_merge copy")
@composed(tensors="states")
def attention_merge_states(c: Composer, *states: Value) -> tuple[Value, Value]:
    """(out, lse) of attention over the keys of any number of partial results, as FlashInfer's merge_states.

    Neighbours are merged by attention_merge until one is left, so that roundings grow with the logarithm of the number.
    Parts over no keys (lse = -inf) are left out bit for bit.

    Args:
        *states: out [..., D] and lse [...] of each part in turn: out_a, lse_a, out_b, lse_b and so on.

    Returns:
        out like the first, and lse.
    """
    if not states or len(states) % 2:
        raise InvalidProblemError(f"states: got {len(states)} tensors, want out and lse of each of at least one part.")
    parts = list(zip(states[::2], states[1::2], strict=True))
    if states[0].rank == 0 or states[1].shape != states[0].shape[:-1]:
        got = f"got out {states[0].shape} and lse {states[1].shape}"
        raise InvalidProblemError(f"states: {got}, want out [..., D] and lse [...].")
    if len(parts) == 1:
        return c.copy(parts[0][0]), c.copy(parts[0][1])
    while len(parts) > 1:
        pairs = [c.of(attention_merge, *a, *b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    out, lse = parts[0]
    return out, lse
