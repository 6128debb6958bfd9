"""Operators over time: RNN, GRU, LSTM, and others with a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import Rule, cast, operator, reshaped, swapped, zeros

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "Sigmoid": lambda x: F.sigmoid(x),
    "Tanh": lambda x: F.tanh(x),
    "Relu": lambda x: F.relu(x),
    "Softsign": lambda x: F.softsign(x),
    "Softplus": lambda x: F.softplus(x),
}


class Cell:
    """One direction of a layer: weights, and the functions of its gates.

    Args:
        c: The call.
        r: Weights of the state.
        b: Biases of input and state, or None.
        functions: The activations, in ONNX's order.
        peep: Weights of LSTM's cell state, or None.
    """

    gates = 1
    states = 1
    default: tuple[str, ...] = ("Tanh",)

    def __init__(self, c: Call, r: Any, b: Any, functions: list[Callable[[Any], Any]], peep: Any = None) -> None:
        self.r, self.functions, self.peep, self.n = r, functions, peep, r.shape[1]
        k = self.gates * self.n
        self.input_bias: Any = None if b is None else b[:k]
        self.state_bias: Any = None if b is None else b[k:]
        self.linear_before_reset = bool(c.get("linear_before_reset", 0))

    def own(self, x: Any, w: Any) -> Any:
        """What all steps take of the input: one product."""
        bias = self.input_bias if self.input_bias is None else F.add(self.input_bias, self.state_bias)
        return F.linear(x, w, bias)

    def step(self, own: Any, state: list[Any]) -> list[Any]:
        """The next state, of RNN: f(x w + h r + b)."""
        return [self.functions[0](F.add(own, F.linear(state[0], self.r)))]

    def part(self, x: Any, first: int, last: int | None = None) -> Any:
        """Gates of a product, from one on to another."""
        return x[:, first * self.n : (first + 1 if last is None else last) * self.n]


class Lstm(Cell):
    """Gates are in the order input, output, forget, cell."""

    gates = 4
    states = 2
    default = ("Sigmoid", "Tanh", "Tanh")

    def step(self, own: Any, state: list[Any]) -> list[Any]:
        """Next result and cell state."""
        h, cell = state
        gate, new, out = self.functions
        gates = F.add(own, F.linear(h, self.r))
        i, o, f, seen = (self.part(gates, k) for k in range(4))
        if self.peep is not None:
            p = [self.peep[k * self.n : (k + 1) * self.n] for k in range(3)]
            i, f = F.add(i, F.mul(p[0], cell)), F.add(f, F.mul(p[2], cell))
        cell = F.add(F.mul(gate(f), cell), F.mul(gate(i), new(seen)))
        if self.peep is not None:
            o = F.add(o, F.mul(p[1], cell))
        return [F.mul(gate(o), out(cell)), cell]


class Gru(Cell):
    """Gates are in the order update, reset, hidden."""

    gates = 3
    default = ("Sigmoid", "Tanh")

    def own(self, x: Any, w: Any) -> Any:
        """Biases of the state are added to its own products."""
        return F.linear(x, w, self.input_bias)

    def step(self, own: Any, state: list[Any]) -> list[Any]:
        """(1 - z) f(x w + (reset * h) r) + z h, with the reset before or behind the product."""
        (h,), n = state, self.n
        gate, new = self.functions
        bias = self.state_bias
        early, late = (None, None) if bias is None else (bias[: 2 * n], bias[2 * n :])
        theirs = F.linear(h, self.r[: 2 * n], early)
        update, reset = (gate(F.add(self.part(own, k), self.part(theirs, k))) for k in range(2))
        if self.linear_before_reset:
            seen = F.mul(reset, F.linear(h, self.r[2 * n :], late))
        else:
            seen = F.linear(F.mul(reset, h), self.r[2 * n :], late)
        return [F.lerp(new(F.add(self.part(own, 2), seen)), h, update)]


def _functions(c: Call, cell: type[Cell], many: int) -> list[list[Callable[[Any], Any]]]:
    """The activations of each direction."""
    names = [v.decode() if isinstance(v, bytes) else v for v in c.get("activations") or cell.default * many]
    if c.get("clip") or c.get("input_forget", 0) or c.get("activation_alpha") or c.get("activation_beta"):
        c.refuse("clip, input_forget or activations with parameters", "none of these")
    for name in names:
        if name not in ACTIVATIONS:
            c.refuse(f"activation {name!r}", f"one of {', '.join(ACTIVATIONS)}")
    each = len(cell.default)
    if len(names) != each * many:
        c.wrong(f"{len(names)} activations", f"{each} for each of {many} directions")
    return [[ACTIVATIONS[name] for name in names[d * each : (d + 1) * each]] for d in range(many)]


def _recurrent(kind: type[Cell]) -> Rule:
    """A layer over time, in one direction or both: all results, and the last states."""

    def call(c: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, *rest: Any) -> Any:
        batched, (many, _, n) = c.get("layout", 0), r.shape
        x = swapped(x, 0, 1) if batched else x
        given = [s if s is None or not batched else swapped(s, 0, 1) for s in (*rest, None, None)[: kind.states]]
        peep = rest[kind.states] if len(rest) > kind.states else None
        known = c.known(4)
        lengths = None if known is not None and (known == x.shape[0]).all() else lengths
        functions = _functions(c, kind, many)
        results, last = [], []
        for d in range(many):
            state = [zeros((x.shape[1], n), dtype=x.element) if s is None else s[d] for s in given]
            p = None if peep is None else peep[d]
            cell = kind(c, r[d], None if b is None else b[d], functions[d], p)
            back = c.get("direction", "forward") == "reverse" or d == 1
            found, state = _over_time(cell, cell.own(x, w[d]), state, back, lengths)
            results.append(F.stack(found, 0))
            last.append(state)
        y = F.stack(results, 1)
        ends = [F.stack([s[k] for s in last], 0) for k in range(kind.states)]
        if batched:
            y, ends = F.copy(y.permute(2, 0, 1, 3)), [F.copy(swapped(e, 0, 1)) for e in ends]
        return (y, *ends)

    return call


def _over_time(cell: Cell, own: Any, state: list[Any], back: bool, lengths: Any) -> tuple[list[Any], list[Any]]:
    """The results of all steps, and the last state; sequences that have ended keep theirs and give zeros."""
    found: list[Any] = []
    steps = own.shape[0]
    for t in range(steps)[:: -1 if back else 1]:
        new = cell.step(own[t], state)
        if lengths is None:
            state = new
            found.append(state[0])
            continue
        alive = F.gt(lengths, t).unsqueeze(1)
        state = [F.where(alive, a, b) for a, b in zip(new, state, strict=True)]
        found.append(F.where(alive, new[0], 0.0))
    return found[:: -1 if back else 1], state


operator("RNN")(_recurrent(Cell))
operator("GRU")(_recurrent(Gru))
operator("LSTM")(_recurrent(Lstm))


@operator("CausalConvWithState")
def _causal_conv(c: Call, x: Any, weight: Any, bias: Any = None, past: Any = None) -> Any:
    """A depthwise convolution of what came before and x; and the last of both, which the next call is given."""
    kept = weight.shape[2] - 1
    whole = F.cat([past, x], 2) if past is not None else F.pad(x, (kept, 0))
    y = F.conv1d(whole, weight, bias, groups=x.shape[1])
    y = F.silu(y) if c.get("activation", "none") != "none" else y
    return y, F.copy(whole[:, :, whole.shape[2] - kept :])


@operator("LinearAttention")
def _linear_attention(c: Call, q: Any, k: Any, v: Any, past: Any = None, decay: Any = None, beta: Any = None) -> Any:
    """A state per head that each step reads from and adds to, in f32."""
    many, own, kind = c.get("q_num_heads"), c.get("kv_num_heads"), q.element
    q, k, v = (cast(split_heads(x, n), "f32") for x, n in zip((q, k, v), (many, own, own), strict=True))
    decay = None if decay is None else split_heads(cast(decay, "f32"), own)
    beta = None if beta is None else cast(beta, "f32").unsqueeze(3).permute(0, 2, 1, 3)
    state = zeros((q.shape[0], own, k.shape[3], v.shape[3])) if past is None else cast(past, "f32")
    scale = c.get("scale", 0.0) or q.shape[3] ** -0.5
    found = []
    for t in range(q.shape[2]):
        at = slice(t, t + 1)
        column, row = swapped(k[:, :, at], 2, 3), v[:, :, at]
        if decay is not None:
            state = F.mul(state, swapped(F.exp(decay[:, :, at]), 2, 3))
        if beta is not None:
            row = F.mul(beta[:, :, at], F.sub(row, F.matmul(k[:, :, at], state)))
        state = F.add(state, F.mul(column, row))
        read = F.repeat_interleave(state, many // own, 1) if many != own else state
        found.append(F.mul(F.matmul(q[:, :, at], read), scale))
    y = join_heads(F.cat(found, 2))
    return cast(y, kind), cast(state, kind if past is None else past.element)


def split_heads(x: Any, heads: int) -> Any:
    """(batch, tokens, heads * dim) as (batch, heads, tokens, dim)."""
    return reshaped(x, (*x.shape[:2], heads, x.shape[2] // heads)).permute(0, 2, 1, 3)


def join_heads(x: Any) -> Any:
    """(batch, heads, tokens, dim) as (batch, tokens, heads * dim)."""
    return F.copy(x.permute(0, 2, 1, 3)).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])
