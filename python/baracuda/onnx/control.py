"""Control flow: nodes that run graphs inside of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baracuda import functional as F
from baracuda.onnx.call import Call, Known
from baracuda.onnx.evaluate import Scope, run_block
from baracuda.onnx.graph import Block
from baracuda.onnx.operators.table import element_of, zeros

LONGEST = 10_000  # iterations of a loop that a compiled graph repeats


def _block(c: Call, name: str) -> Block:
    found = c.get(name)
    if not isinstance(found, Block):
        c.wrong(f"no graph as {name!r}", "one")
    return found


def _if(c: Call, scope: Scope | None) -> tuple[Any, ...]:
    chosen = _block(c, "then_branch" if c.number(0) else "else_branch")
    return tuple(run_block(chosen, {}, scope))


def _tensor(value: Any) -> Any:
    return value.tensor if isinstance(value, Known) else value


def _stacked(c: Call, values: list[Any], i: int, body: Block, axis: int = 0) -> Any:
    """Results of iterations side by side."""
    if not values:
        declared = body.empty[i]
        if declared is None:
            c.refuse("a loop without iterations", "one, where the shapes of its results are not declared")
        return zeros((0, *declared[1]), dtype=element_of(c, declared[0]))
    if all(isinstance(v, Known) for v in values):
        return Known(np.stack([v.array for v in values], axis))
    return F.stack([_tensor(v) for v in values], axis)


def _loop(c: Call, scope: Scope | None) -> tuple[Any, ...]:
    body = _block(c, "body")
    trips, going = c.number(0), c.number(1)
    going = True if going is None else bool(going)
    state = list(c.values[2:])
    many = len(body.inputs) - 2
    state += [None] * (many - len(state))
    scans: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - many)]
    if many < 0 or len(state) != many or len(body.outputs) < 1 + many:
        c.wrong(
            f"{len(state)} values for a body of {len(body.inputs)} inputs", "an iteration, a condition and the values"
        )
    i = 0
    while going and (trips is None or i < trips):
        given = dict(zip(body.inputs, [Known(np.int64(i)), Known(np.bool_(going)), *state], strict=True))
        made = run_block(body, given, scope)
        asked = made[0]
        going = bool(asked.array) if isinstance(asked, Known) else bool(Call(c.node, [asked]).number(0))
        state = made[1 : 1 + many]
        for found, value in zip(scans, made[1 + many :], strict=True):
            found.append(value)
        i += 1
        if i > LONGEST and all(isinstance(v, Known) for v in (asked, *state)):
            c.refuse(f"a loop of more than {LONGEST} iterations of known values", "fewer")
    return (*state, *(_stacked(c, values, 1 + many + k, body) for k, values in enumerate(scans)))


def _axes(c: Call, name: str, many: int) -> list[int]:
    return list(c.get(name) or [0] * many)


def _scan(c: Call, scope: Scope | None) -> tuple[Any, ...]:
    if c.opset < 9:
        c.refuse("Scan of opset 8", "opset 9 or newer", "onnx.version_converter converts it.")
    body, scanned = _block(c, "body"), c.get("num_scan_inputs")
    many = len(c.values) - scanned
    state, inputs = list(c.values[:many]), [_tensor(v) for v in c.values[many:]]
    axes, back = _axes(c, "scan_input_axes", scanned), _axes(c, "scan_input_directions", scanned)
    made_many = len(body.outputs) - many
    out_axes, out_back = _axes(c, "scan_output_axes", made_many), _axes(c, "scan_output_directions", made_many)
    axes = [a % x.ndim for a, x in zip(axes, inputs, strict=True)]
    steps = inputs[0].shape[axes[0]]
    scans: list[list[Any]] = [[] for _ in range(made_many)]
    for t in range(steps):
        parts = [
            x[(slice(None),) * a + (steps - 1 - t if b else t,)] for x, a, b in zip(inputs, axes, back, strict=True)
        ]
        made = run_block(body, dict(zip(body.inputs, [*state, *parts], strict=True)), scope)
        state = made[:many]
        for found, value in zip(scans, made[many:], strict=True):
            found.append(value)
    results = []
    for k, (values, axis, turned) in enumerate(zip(scans, out_axes, out_back, strict=True)):
        results.append(_stacked(c, values[::-1] if turned else values, many + k, body, axis))
    return (*state, *results)


def _sequence_map(c: Call, scope: Scope | None) -> tuple[Any, ...]:
    body, first = _block(c, "body"), c.values[0]
    found: list[list[Any]] = [[] for _ in body.outputs]
    for i in range(len(first)):
        given = [v[i] if isinstance(v, list) else v for v in c.values]
        made = run_block(body, dict(zip(body.inputs, given, strict=True)), scope)
        for values, value in zip(found, made, strict=True):
            values.append(value)
    return tuple(found)


CONTROL: dict[str, Callable[[Call, Scope | None], tuple[Any, ...]]] = {
    "If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map,
}  # fmt: skip
