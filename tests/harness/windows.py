"""Windows of any kernel, stride, padding and dilation, by descriptor: pools, convolutions, fold, and their gradients.

    python tests/harness/windows.py SEED COUNT

Each runs in memory between pages that nobody may touch, and is held to its promise.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from open_sizes import run

import baracuda as bc
from baracuda.choose.plan import plan
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.describe.spec import IN, INOUT
from baracuda.ops.pool import pool_ref
from baracuda.prove.reference import Case, worst
from baracuda.prove.verify import expect

_MOST = 6000  # elements of an image with its padding


def _several(rng: random.Random, axes: int, *numbers: int) -> tuple[int, ...]:
    return tuple(rng.choice(numbers) for _ in range(axes))


def windows(rng: random.Random, axes: int, dilated: bool = True) -> dict[str, Any]:
    """What a window may be: also smaller and larger than its padding, by far."""
    found = {
        "stride": _several(rng, axes, 1, 1, 2, 3, 5),
        "low": _several(rng, axes, 0, 0, 1, 2, 7, 40),
        "high": _several(rng, axes, 0, 0, 1, 2, 7, 40),
    }
    return found | ({"dilation": _several(rng, axes, 1, 1, 2, 3)} if dilated else {})


def pooled(rng: random.Random, direction: str) -> Case:
    """A pool or its gradient."""
    axes = rng.choice((1, 2, 2, 3))
    shape = (
        rng.choice((1, 2)),
        rng.choice((1, 2, 3)),
        *_several(rng, axes, 1, 2, 3, 5, 9, 20, *((300,) if axes == 1 else ())),
    )
    op = rng.choice(("max_pool", "avg_pool"))
    fields: dict[str, Any] = {"kernel": _several(rng, axes, 1, 2, 2, 3, 4, 7), "ceil_mode": rng.random() < 0.3}
    fields |= windows(rng, axes, op == "max_pool")
    if op == "max_pool":
        fields["indices"] = direction == "backward" or rng.random() < 0.6
    else:
        fields |= {"count_include_pad": rng.random() < 0.5, "divisor": rng.choice((0, 0, -3))}
    element = bc.Element.coerce(rng.choice(("f32", "f32", "f64", "f16", "bf16")))
    desc = pool_ref.FORWARD[op](shape, element=element, **fields)
    values = np.random.default_rng(rng.getrandbits(32)).standard_normal(shape)
    made: Case = pool_ref._case(desc, direction, values)
    return made


def _filled(desc: Any, rng: random.Random) -> Case:
    numbers = np.random.default_rng(rng.getrandbits(32))
    given = [p for p in desc.signature().present if p.role in (IN, INOUT)]
    return Case(desc, {p.name: numbers.standard_normal(tuple(map(int, p.shape))) for p in given})


def convolved(rng: random.Random, direction: str) -> Case:
    """A convolution, a transposed one, or the gradients."""
    axes = rng.choice((1, 2, 2, 3))
    groups = rng.choice((1, 1, 2))
    ins, outs = groups * rng.choice((1, 2, 5)), groups * rng.choice((1, 2, 3, 16))
    transposed = rng.random() < 0.4
    taps = _several(rng, axes, 1, 2, 3, 4)
    fields = windows(rng, axes) | {"groups": groups, "element": rng.choice(("f32", "f32", "f64", "f16"))}
    shape = (rng.choice((0, 1, 2, 17)), ins, *_several(rng, axes, 1, 2, 3, 6, 11))
    weight = (ins, outs // groups, *taps) if transposed else (outs, ins // groups, *taps)
    if transposed:
        fields["low"] = tuple(min(n, 2) for n in fields["low"])
        fields["high"] = _several(rng, axes, 0, 0, 1, -1)
    else:
        fields["low"], fields["high"] = (tuple(min(n, 9) for n in fields[end]) for end in ("low", "high"))
    kinds = {
        (False, "forward"): bc.ConvDescriptor,
        (False, "backward"): bc.ConvBackwardDescriptor,
        (True, "forward"): bc.ConvTransposeDescriptor,
        (True, "backward"): bc.ConvTransposeBackwardDescriptor,
    }
    return _filled(kinds[transposed, direction](shape, weight, **fields), rng)


def folded(rng: random.Random, _: str) -> Case:
    """Windows added up."""
    axes = rng.choice((1, 2, 2, 3))
    shape = (rng.choice((0, 1, 2)), rng.choice((1, 2, 3)), *_several(rng, axes, 1, 2, 3, 6, 11))
    fields = windows(rng, axes) | {"kernel": _several(rng, axes, 1, 2, 3), "element": rng.choice(("f32", "f64", "f16"))}
    fields["low"], fields["high"] = (tuple(min(n, 9) for n in fields[end]) for end in ("low", "high"))
    return _filled(bc.FoldDescriptor(shape, **fields), rng)


def problem(rng: random.Random) -> Case | None:
    """A case, where the descriptor takes what was drawn."""
    try:
        found = rng.choice((pooled, pooled, pooled, convolved, convolved, folded))(
            rng, rng.choice(("forward", "backward"))
        )
    except InvalidProblemError:
        return None
    shapes = [s for p in found.descriptor.signature().present for s in p.shapes]
    return found if all(np.prod(s, dtype=np.float64) <= _MOST for s in shapes) else None


def check(case: Case, low: bool) -> None:
    """Runs it and compares."""
    made = plan(case.descriptor)
    got = run(case, made, {}, low)
    expected = expect(case)
    for p in made.signature.outputs:
        actual = np.frombuffer(got[p.name], p.element.numpy).reshape(tuple(map(int, p.shape)))
        share, text = worst(
            actual, expected[p.name], made.precision_guarantee, made.descriptor.primary_element(), p.element
        )
        assert share <= 1, f"{p.name}: error is {share:.3g} times what is allowed, {text}"


def main(seed: int, count: int) -> None:
    """So many problems."""
    rng = random.Random(seed)
    wrong: list[str] = []
    done = 0
    with np.errstate(all="ignore"):  # means of nothing
        while done < count:
            case = problem(rng)
            if case is None:
                continue
            done += 1
            print(f"at {case.descriptor}", flush=True)  # the last line tells where a process ended
            try:
                check(case, rng.random() < 0.5)
            except (AssertionError, BaracudaError) as error:
                wrong.append(f"{case.descriptor}: {type(error).__name__}: {error}")
    print(f"{done} problems")
    sys.exit("\n".join(wrong[:40]) + f"\n{len(wrong)} wrong" if wrong else 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
