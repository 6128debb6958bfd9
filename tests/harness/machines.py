"""The same calls on two kinds of processor, held beside each other.

python tests/harness/machines.py write FILE      # runs a drawn sample of all families and keeps inputs and results
python tests/harness/machines.py compare FILE    # runs them on this machine: bits where order is promised, else bounds

Rows that promise exact results, and elementwise functions at levels with fused multiply-add, give the same bits on both.
Whatever else there is differs by no more than the two rows' bounds together. With --train the tiny Llama is trained for a
few steps, too, and its losses are held beside each other.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from baracuda import _core, _index
from baracuda.choose.plan import plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.elements import Element
from baracuda.prove.narrow import is_records
from baracuda.prove.reference import Case, reference_module, worst
from baracuda.prove.verify import candidates, count_elements, execute, expect, rounded

CASES = 4  # of each op, direction, element and variant
ELEMENTS = 3000  # of a case, at most
ELEMENTWISE = {"unary", "binary", "ternary", "gated"}
OTHER = {"blas"}  # a library's own order
WITH_FMA = ("v3", "v4", "v4x", "neon", "neon_dot")
# Steps of training, and how far losses of two machines may be apart, relatively: some roundings of the element, for sums
# are built in other orders and steps build on each other.
STEPS = 4
APART = {"f32": 64 * 2.0**-24, "bf16": 4 * 2.0**-9}


@dataclass
class Call:
    """A call and what it gave where it was written."""

    op: str
    direction: str
    element: Element
    variant: str
    family: str
    case: Case
    outputs: dict[str, Any]


def drawn(share: str, families: set[str]) -> Iterator[tuple[str, str, Element, str]]:
    """A part k/n of all ops, directions and elements that this machine runs, with their families."""
    turn, _, parts = share.partition("/")
    asked = dict.fromkeys(
        (r["op"], r["direction"], Element(e), r["family"])
        for r in rows()
        if r["backend"] == "cpu" and r["op"] in _index.OPS and (not families or r["family"] in families)
        for e in r["elements"]
    )
    for item in asked:
        if crc32(f"{turn} {item}".encode()) % int(parts) == 0:
            yield item


def execute_plainly(case: Case, variant: str) -> dict[str, Any]:
    """The outputs of a variant's plan, contiguous."""
    return execute(case, plan(case.descriptor, preference=PlanPreference(sku=variant))).outputs


def calls(share: str, families: set[str], seed: int) -> Iterator[Call]:
    """The calls of a share, run here."""
    for op, direction, element, family in drawn(share, families):
        for variant in candidates(op, direction, element):
            if variant in OTHER:
                continue
            rng, wish, count = np.random.default_rng(seed), PlanPreference(sku=variant), 0
            for case in reference_module(op).cases(op, direction, element, rng):
                if count == CASES:
                    break
                if count_elements(case) > ELEMENTS or not type(case.descriptor).plan_class.query(
                    case.descriptor, "cpu", wish
                ):
                    continue
                count += 1
                given = replace(case, tensors=dict(rounded(case).tensors))
                yield Call(op, direction, element, variant, family, given, execute_plainly(given, variant))


def parts(outputs: Any) -> list[Any]:
    """An output's arrays: several where it is variadic."""
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def same_bits(a: Any, b: Any) -> bool:
    """Equal bytes, but for which NaN it is: processors make different ones."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.tobytes() == b.tobytes():
        return True
    if a.shape != b.shape or is_records(a) or a.dtype.kind not in "fV":
        return False
    numbers = [x.astype(np.float64) for x in (a, b)]
    nans = [np.isnan(x) for x in numbers]
    bits = [x.view(f"u{x.dtype.itemsize}") for x in (a, b)]
    return bool(np.array_equal(nans[0], nans[1]) and np.array_equal(bits[0][~nans[0]], bits[1][~nans[0]]))


def differences(call: Call, fused: bool) -> tuple[bool, list[str]]:
    """Whether the bits are the same here, and what is not as promised."""
    made = plan(call.case.descriptor, preference=PlanPreference(sku=call.variant))
    found = execute_plainly(call.case, call.variant)
    label = f"{call.op}.{call.direction}.{call.element}.{call.variant} {call.case.note} {call.case.descriptor}"
    same, problems = True, []
    expected = expect(call.case)
    for p in made.signature.outputs:
        for here, there, want in zip(
            parts(found[p.name]), parts(call.outputs[p.name]), parts(expected[p.name]), strict=True
        ):
            if same_bits(here, there):
                continue
            same = False
            promise = made.precision_guarantee
            if promise.bound == "exact" or not p.element.is_float or (fused and call.family in ELEMENTWISE):
                differ = np.argwhere(np.asarray(here != there) & ~((here != here) & (there != there)))
                at = tuple(differ[0]) if len(differ) else ()
                problems.append(
                    f"{label}, {p.name}: other bits in {len(differ)} of {here.size}, {here[at]!r} {there[at]!r}"
                )
                continue
            for who, values in (("here", here), ("there", there)):
                share, text = worst(values, want, promise, made.descriptor.primary_element(), p.element)
                if not share <= 1:
                    problems.append(f"{label}, {p.name} {who}: {share:.3g} times what is allowed, {text}")
    return same, problems


def losses() -> dict[str, list[float]]:
    """The tiny Llama's losses in its first steps, by element."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/tiny_llama"))
    from model import Config
    from training import Batches, Trainer

    text = bytes(range(32, 127)) * 12
    found = {}
    for element in APART:
        config = Config(d_model=32, layers=2, heads=4, kv_heads=2, hidden=48, context=24, element=element)
        trainer = Trainer(config, batch=3, steps=40, lr=5e-3)
        batches = Batches(text, 3, config.context, seed=1)
        found[element] = [trainer.step(*batches[trainer.done]) for _ in range(STEPS)]
    return found


def apart(here: dict[str, list[float]], there: dict[str, list[float]]) -> list[str]:
    """What is not as near as it should be among losses."""
    problems = []
    for element, bound in APART.items():
        distances = [abs(a - b) / abs(b) for a, b in zip(here[element], there[element], strict=True)]
        print(f"losses of {element}: {here[element]} here, {max(distances):.2g} apart of {bound:.2g}")
        if not max(distances) <= bound:
            problems.append(f"losses of {element}: {here[element]} here, {there[element]} there")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--share", default="0/1", help="k/n: one n-th of all ops, directions and elements")
    parser.add_argument("--families", default="", help="only these, with commas between")
    parser.add_argument("--train", action="store_true", help="write: the tiny Llama's losses, too")
    options = parser.parse_args()
    families = set(filter(None, options.families.split(",")))
    level = str(_core.backend_state("cpu")["level"])
    if options.what == "write":
        seed = int(os.environ.get("BARACUDA_TEST_SEED", "20261121"))
        kept = list(calls(options.share, families, seed))
        options.file.write_bytes(pickle.dumps((level, kept, losses() if options.train else None)))
        print(f"{len(kept)} calls at level {level}")
        return
    there, kept, trained = pickle.loads(options.file.read_bytes())
    counts: Counter[str] = Counter()
    problems = apart(losses(), trained) if trained else []
    for call in kept:
        if call.variant not in candidates(call.op, call.direction, call.element):
            counts["not here"] += 1
            continue
        same, found = differences(call, level in WITH_FMA and there in WITH_FMA)
        counts["same bits" if same else "other bits"] += 1
        problems += found
    print(f"level {level} beside {there}: {dict(counts)}, {len(problems)} problems")
    print(*problems[:60], sep="\n")
    sys.exit(bool(problems) or not counts["same bits"])


if __name__ == "__main__":
    main()
