"""ONNX operators that are layers: attention, recurrent ones, convolutions with a state, by several functions each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx_cases import NodeCase

Call = Callable[..., Any]


def _rope(F: Any, c: NodeCase, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    if positions is None:  # of each token its own row
        positions = F.arange(cos.shape[0] * cos.shape[1]).reshape(cos.shape[:2])
        cos, sin = (t.reshape(-1, t.shape[2]) for t in (cos, sin))
    heads = c.get("num_heads", 0)
    seen = x if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
    dim = c.get("rotary_embedding_dim", 0) or None
    y = F.rope(seen, cos, sin, positions=positions, rotary_dim=dim, interleaved=bool(c.get("interleaved", 0)))
    return y if x.ndim == 4 else y.transpose(0, 2, 1, 3).reshape(x.shape)


def _heads(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _bias(c: NodeCase, mask: Any, rows: int, columns: int, offset: Any, used: Any, element: Any) -> Any:
    """What is added to scores: the mask, and -inf where a query may not see a key."""
    bias = np.zeros((rows, columns), element)
    if mask is not None:
        behind = [(0, 0)] * (mask.ndim - 1) + [(0, columns - mask.shape[-1])]
        mask = np.pad(mask, behind, constant_values=False if mask.dtype == bool else -np.inf)
        bias = bias + (np.where(mask, 0, -np.inf).astype(element) if mask.dtype == bool else mask)
    ahead = np.arange(columns) - (np.arange(rows)[:, None] + np.reshape(offset, (-1, 1, 1, 1)))
    low, high = c.get("left_window_size", -1), c.get("right_window_size", -1)
    seen = np.ones_like(ahead, bool)
    seen &= ahead <= 0 if c.get("is_causal", 0) else True
    seen &= -ahead <= low if low >= 0 else True
    seen &= ahead <= high if high >= 0 else True
    if used is not None:
        seen = seen & (np.arange(columns) < used[:, None, None, None])
    return bias if seen.all() else bias + np.where(seen, 0, -np.inf).astype(element)


def _attention_steps(F: Any, c: NodeCase, q: Any, k: Any, v: Any, mask: Any, past: int | None, used: Any) -> Any:
    """The result and the scores that are asked for, by products and a softmax."""
    import onnx

    element, rows, columns = q.dtype, q.shape[2], k.shape[2]
    if q.shape[1] != k.shape[1]:
        k, v = (F.repeat_interleave(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    scale = c.get("scale") or q.shape[3] ** -0.5
    half = float(element.type(scale**0.5))
    scores = F.matmul(F.mul(q, half), F.mul(k, half).swapaxes(2, 3))
    if cap := c.get("softcap", 0.0):
        scores = F.mul(F.tanh(F.div(scores, cap)), cap)
    offset = past if past is not None else 0 if used is None else used - rows
    bias = _bias(c, mask, rows, columns, offset, used, element)
    biased = F.add(scores, bias)
    kind = c.get("softmax_precision")
    wide = biased if kind is None else F.cast(biased, onnx.helper.tensor_dtype_to_np_dtype(kind))
    weights = F.softmax(wide, -1)
    if (lost := np.isneginf(bias.max(-1, keepdims=True))).any():
        weights = F.where(np.broadcast_to(lost, weights.shape), 0.0, weights)
    shown = {2: biased, 3: weights}.get(c.get("qk_matmul_output_mode", 0), scores)
    weights = F.cast(weights, element)
    return F.matmul(weights, v), F.cast(shown, element)


def _attention(F: Any, c: NodeCase, q: Any, k: Any, v: Any, *rest: Any) -> Any:
    mask, past_k, past_v, used = (*rest, None, None, None, None)[:4]
    flat = q.ndim == 3
    if flat:
        heads = c.get("q_num_heads"), c.get("kv_num_heads"), c.get("kv_num_heads")
        q, k, v = (_heads(x, h) for x, h in zip((q, k, v), heads, strict=True))
    if past_k is not None:
        k, v = F.cat([past_k, k], 2), F.cat([past_v, v], 2)
    causal, scores = bool(c.get("is_causal", 0)), None
    options = ("softcap", "softmax_precision", "left_window_size", "right_window_size")
    other = used is not None or len(c.outputs) > 3 or any(c.get(o, 0) not in (0, 0.0, -1) for o in options)
    other |= causal and (past_k is not None or mask is not None)
    if other or (mask is not None and mask.shape[-1] != k.shape[2]):
        y, scores = _attention_steps(F, c, q, k, v, mask, None if past_k is None else past_k.shape[2], used)
    else:
        y = F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=causal, scale=c.get("scale"), enable_gqa=q.shape[1] != k.shape[1]
        )
    y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1) if flat else y
    return (y, k, v, scores)[: len(c.outputs)]


def _graph(F: Any, graph: Any, x: Any) -> Any:
    """A function of one tensor that is written as nodes."""
    import onnx
    from onnx_table import CALLS as ALL

    known = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer} | {graph.input[0].name: x}
    for node in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        given = [known[name] for name in node.input]
        one = NodeCase(graph.name, node.op_type, attributes, given, [None] * len(node.output), 0)
        known[node.output[0]] = (
            np.array(given[0].shape) if node.op_type == "Shape" else ALL[node.op_type](F, one, *given)
        )
    return known[graph.output[0].name]


def _flex_attention(F: Any, c: NodeCase, q: Any, k: Any, v: Any) -> Any:
    """Products and a softmax, with functions of scores and of weights between them."""
    if q.shape[1] != k.shape[1]:
        k, v = (F.repeat_interleave(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    kind = q.dtype
    q, k, v = (F.cast(x, "f32") if x.dtype.itemsize < 4 else x for x in (q, k, v))
    scores = F.mul(F.matmul(q, k.swapaxes(2, 3)), c.get("scale") or q.shape[3] ** -0.5)
    scores = _graph(F, c.get("score_mod"), scores) if c.get("score_mod") else scores
    weights = F.softmax(scores, -1)
    weights = _graph(F, c.get("prob_mod"), weights) if c.get("prob_mod") else weights
    return F.cast(F.matmul(weights, v), kind)


def _whole_product(F: Any, c: NodeCase, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """A product of integers less their zeros, which f64 holds."""
    a, b = (
        F.cast(x, "f64") if z is None else F.sub(F.cast(x, "f64"), F.cast(z, "f64"))
        for x, z in ((a, a_zero), (b, b_zero))
    )
    return F.cast(F.matmul(a, b), "i32")


def _quantized_product(
    F: Any, c: NodeCase, a: Any, ra: Any, za: Any, b: Any, rb: Any, zb: Any, ry: Any, zy: Any
) -> Any:
    whole = _whole_product(F, c, a, b, za, zb)
    rate = F.div(F.mul(F.cast(ra, "f32"), F.cast(rb, "f32")), F.cast(ry, "f32"))
    y = F.add(F.round(F.mul(F.cast(whole, "f32"), rate)), F.cast(zy, "f32"))
    limits = np.iinfo(zy.dtype)
    return F.cast(F.clamp(y, float(limits.min), float(limits.max)), zy.dtype)


def _causal_conv(F: Any, c: NodeCase, x: Any, weight: Any, bias: Any = None, past: Any = None) -> Any:
    """A depthwise convolution of what came before and x; and the last of both, which the next call is given."""
    kept = weight.shape[2] - 1
    whole = F.cat([past, x], 2) if past is not None else F.pad(x, (kept, 0))
    y = F.conv1d(whole, weight, bias, groups=x.shape[1])
    y = F.silu(y) if c.get("activation", "none") != "none" else y
    return y, F.copy(whole[:, :, whole.shape[2] - kept :])


def _gru_cell(F: Any, c: NodeCase, x: Any, w: Any, r: Any, b: Any, state: list[Any]) -> list[Any]:
    (h,), n = state, r.shape[1]
    own, theirs = F.linear(x, w, b[: 3 * n]), F.linear(h, r[: 2 * n], b[3 * n : 5 * n])
    update, reset = F.sigmoid(F.add(own[:, :n], theirs[:, :n])), F.sigmoid(F.add(own[:, n : 2 * n], theirs[:, n:]))
    if c.get("linear_before_reset", 0):
        seen = F.mul(reset, F.linear(h, r[2 * n :], b[5 * n :]))
    else:
        seen = F.linear(F.mul(reset, h), r[2 * n :], b[5 * n :])
    return [F.lerp(F.tanh(F.add(own[:, 2 * n :], seen)), h, update)]


def _lstm_cell(F: Any, c: NodeCase, x: Any, w: Any, r: Any, b: Any, state: list[Any], peep: Any = None) -> list[Any]:
    h, cell = state
    n = r.shape[1]
    gates = F.add(F.linear(x, w, b[: 4 * n]), F.linear(h, r, b[4 * n :]))
    i, o, f, new = (gates[:, k * n : (k + 1) * n] for k in range(4))
    p = np.zeros(3 * n, x.dtype) if peep is None else peep
    i, f = F.sigmoid(F.add(i, F.mul(p[:n], cell))), F.sigmoid(F.add(f, F.mul(p[2 * n :], cell)))
    cell = F.add(F.mul(f, cell), F.mul(i, F.tanh(new)))
    return [F.mul(F.sigmoid(F.add(o, F.mul(p[n : 2 * n], cell))), F.tanh(cell)), cell]


def _rnn_cell(F: Any, c: NodeCase, x: Any, w: Any, r: Any, b: Any, state: list[Any]) -> list[Any]:
    n = r.shape[1]
    return [F.tanh(F.add(F.linear(x, w, b[:n]), F.linear(state[0], r, b[n:])))]


def _recurrent(cell: Call, gates: int, states: int) -> Call:
    """A layer over time, in one direction or both: all results, and the last states."""

    def call(F: Any, c: NodeCase, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, *rest: Any) -> Any:
        batched, (many, _, n) = c.get("layout", 0), r.shape
        x = x.swapaxes(0, 1) if batched else x
        given = [s if s is None or not batched else s.swapaxes(0, 1) for s in (*rest, None, None)[:states]]
        b = np.zeros((many, 2 * gates * n), x.dtype) if b is None else b
        peeps = rest[states:]  # of LSTM
        results, last = [], []
        for d in range(many):
            state = [np.zeros((x.shape[1], n), x.dtype) if s is None else s[d] for s in given]
            back = c.get("direction", "forward") == "reverse" or d == 1
            found = []
            for t in range(len(x))[:: -1 if back else 1]:
                state = cell(F, c, x[t], w[d], r[d], b[d], state, *(p[d] for p in peeps))
                found.append(state[0])
            results.append(F.stack(found[:: -1 if back else 1], 0))
            last.append(state)
        y = F.stack(results, 1)
        ends = [F.stack([s[k] for s in last], 0) for k in range(states)]
        if batched:
            y, ends = y.transpose(2, 0, 1, 3), [e.swapaxes(0, 1) for e in ends]
        return (y, *ends)[: len(c.outputs)]

    return call


def _linear_attention(
    F: Any, c: NodeCase, q: Any, k: Any, v: Any, past: Any = None, decay: Any = None, beta: Any = None
) -> Any:
    """A state per head that each step reads from and adds to, in f32."""
    many, own, kind = c.get("q_num_heads"), c.get("kv_num_heads"), q.dtype
    q, k, v = (F.cast(_heads(x, n), "f32") for x, n in zip((q, k, v), (many, own, own), strict=True))
    decay, beta = (None if x is None else F.cast(x, "f32") for x in (decay, beta))
    decay = None if decay is None else _heads(decay, own)
    beta = None if beta is None else beta[..., None].transpose(0, 2, 1, 3)
    state = F.zeros((q.shape[0], own, k.shape[3], v.shape[3])) if past is None else F.cast(past, "f32")
    scale = c.get("scale", 0.0) or q.shape[3] ** -0.5
    found = []
    for t in range(q.shape[2]):
        at = slice(t, t + 1)
        column, row = k[:, :, at].swapaxes(2, 3), v[:, :, at]
        if decay is not None:
            state = F.mul(state, F.exp(decay[:, :, at]).swapaxes(2, 3))
        if beta is not None:
            row = F.mul(beta[:, :, at], F.sub(row, F.matmul(k[:, :, at], state)))
        state = F.add(state, F.mul(column, row))
        read = F.repeat_interleave(state, many // own, 1) if many != own else state
        found.append(F.mul(F.matmul(q[:, :, at], read), scale))
    y = F.cat(found, 2).transpose(0, 2, 1, 3)
    return F.cast(y.reshape(*y.shape[:2], -1), kind), F.cast(state, kind if past is None else past.dtype)


CALLS: dict[str, Call] = {
    "Attention": _attention,
    "CausalConvWithState": _causal_conv,
    "GRU": _recurrent(_gru_cell, 3, 1),
    "LSTM": _recurrent(_lstm_cell, 4, 2),
    "LinearAttention": _linear_attention,
    "MatMulInteger": _whole_product,
    "QLinearMatMul": _quantized_product,
    "RNN": _recurrent(_rnn_cell, 1, 1),
    "RotaryEmbedding": _rope,
    "ai.onnx.preview.FlexAttention": _flex_attention,
}
