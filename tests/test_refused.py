"""A refused call changes nothing: no byte of any tensor, no version counter of torch, no generator; and errors are ours."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from calls import ValidCall, directions, valid_call
from hostile import calls, malformed, state

import baracuda as bc
import baracuda.functional as F
from baracuda import _index
from baracuda.describe.spec import IN
from conftest import FULL, SEED

# What a kernel finds in the data may leave outputs half written; generators stay.
FOUND_IN_DATA = (bc.IndexOutOfRangeError, bc.IntegerDivisionError, bc.ValueOutOfRangeError)


def lists() -> list[tuple[str, str]]:
    """Ops and directions with a parameter that is a list of tensors."""
    return [d for d in directions() if any(p.variadic for p in valid_call(*d).tensors)]


def bad_members(call: ValidCall, name: str, index: int, written: bool) -> list[tuple[str, Any]]:
    """What may stand in a list in place of a tensor and is refused, and why."""
    good = call.args[name][index]
    other = np.float64 if good.dtype != np.float64 else np.float32
    frozen, raw = good.copy(), bytearray(good.nbytes + 1)
    frozen.flags.writeable = False
    found: list[tuple[str, Any]] = [
        ("element", good.astype(other)),
        (
            "shape",
            np.zeros((*good.shape[:-1], good.shape[-1] + 1), good.dtype) if good.ndim else np.zeros(3, good.dtype),
        ),
        ("rank", good[None].copy()),
        ("no tensor", None),
        ("no tensor", 1.5),
        ("no memory", bc.TensorSpec(good.shape, call.plan.signature[name].element)),
    ]
    if good.nbytes and good.itemsize > 1:
        found.append(("misaligned", np.ndarray(good.shape, good.dtype, raw, 1)))
    if written:
        found.append(("read-only", frozen))
        others = [v for k, v in call.args.items() if k != name and isinstance(v, np.ndarray) and v.size]
        others += [
            v
            for k, of in call.args.items()
            if isinstance(of, list)
            for i, v in enumerate(of)
            if (k, i) != (name, index)
        ]
        for alias in (v for v in others if v.shape == good.shape and v.dtype == good.dtype and v.size):
            found.append(("alias", alias))
            break
        if good.size > 1 and good.ndim:
            one = np.zeros(1, good.dtype)
            found.append(("shares", np.lib.stride_tricks.as_strided(one, good.shape, (0,) * good.ndim)))
    return found


@pytest.mark.parametrize(("op", "direction"), lists())
def test_one_bad_member_of_a_list_at_every_place(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.tensors:
        for k in range(len(p.shapes) if p.variadic else 0):
            for why, bad in bad_members(call, p.name, k, p.role != IN):
                wrong = list(call.args[p.name])
                wrong[k] = bad
                before = state(*call.args.values(), wrong)
                with pytest.raises(bc.BaracudaError) as caught:
                    call.run(**{p.name: wrong})
                field = caught.value.refusals[0].field
                assert why in ("alias",) or field == f"{p.name}[{k}]", f"{p.name}[{k}], {why}: {caught.value}"
                assert state(*call.args.values(), wrong) == before, f"{p.name}[{k}], {why}: something was written"


# Functions that write to lists: their lists by name, in the order of the signature, and what else they take.
Lists = dict[str, list[Any]]
IN_PLACE: dict[str, Callable[[Callable[..., Any]], tuple[Lists, dict[str, Any]]]] = {
    "adamw_": lambda s: ({"params": s(), "grads": s(), "exp_avgs": s(1), "exp_avg_sqs": s(1)}, {"step": 1}),
    "adam_": lambda s: (
        {"params": s(), "grads": s(), "exp_avgs": s(1), "exp_avg_sqs": s(1), "max_exp_avg_sqs": s(1)},
        {"step": 1, "amsgrad": True},
    ),
    "sgd_": lambda s: ({"params": s(), "grads": s(), "momentum_buffers": s(1)}, {"step": 2, "momentum": 0.9}),
    "adagrad_": lambda s: ({"params": s(), "grads": s(), "state_sums": s(1)}, {"step": 1}),
    "rmsprop_": lambda s: (
        {"params": s(), "grads": s(), "square_avgs": s(1), "momentum_buffers": s(1), "grad_avgs": s(1)},
        {"momentum": 0.9},
    ),
    "adadelta_": lambda s: ({"params": s(), "grads": s(), "square_avgs": s(1), "acc_deltas": s(1)}, {}),
    "adamax_": lambda s: ({"params": s(), "grads": s(), "exp_avgs": s(1), "exp_infs": s(1)}, {"step": 1}),
    "nadam_": lambda s: (
        {"params": s(), "grads": s(), "exp_avgs": s(1), "exp_avg_sqs": s(1)},
        {"step": 1, "mu_product": 0.5},
    ),
    "radam_": lambda s: ({"params": s(), "grads": s(), "exp_avgs": s(1), "exp_avg_sqs": s(1)}, {"step": 1}),
    "lion_": lambda s: ({"params": s(), "grads": s(), "exp_avgs": s(1)}, {}),
    "clip_grad_norm_": lambda s: ({"grads": s()}, {"max_norm": 0.1}),
    "clip_grad_value_": lambda s: ({"grads": s()}, {"clip_value": 0.1}),
    "clip_grads_with_norm_": lambda s: ({"grads": s()}, {"max_norm": 0.1, "total_norm": np.full((), 9, np.float32)}),
}
MIXED = ("f32", "f16", "f32", "bf16", "f64")


def make(kind: str, wide: bool, name: str) -> Callable[..., Any]:
    """Lists of small tensors of mixed elements; statistics of half types are f32."""
    torch = pytest.importorskip("torch") if kind == "torch" else None

    def one(element: str, fill: float) -> Any:
        e = bc.Element.coerce(element)
        if torch is not None:
            names = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
            return torch.full((2, 3), fill, dtype=getattr(torch, names[element]))
        made = np.full((2, 3), fill, e.numpy)
        return bc.asarray(made) if kind == "bc" else made

    def several(statistic: bool = False) -> list[Any]:
        return [one("f32" if statistic and e != "f64" else e, 1.0) for e in MIXED if wide or e != "f64"]

    return several


@pytest.mark.parametrize("kind", ["numpy", "torch", "bc"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_lists_of_mixed_elements_are_stepped_together_or_not_at_all(name: str, kind: str) -> None:
    fn = getattr(F, name)
    wide = name not in ("clip_grad_norm_", "clip_grads_with_norm_")  # one norm is not of f64 and others

    def attempt(change: Callable[[Lists, dict[str, Any]], None]) -> None:
        given, besides = IN_PLACE[name](make(kind, wide, name))
        change(given, besides)
        before = state(*given.values(), *besides.values())
        with pytest.raises(bc.BaracudaError) as caught:
            fn(**given, **besides)
        assert state(*given.values(), *besides.values()) == before, f"{caught.value}: something was written"

    given, besides = IN_PLACE[name](make(kind, wide, name))
    before = state(*given.values())
    fn(**given, **besides)
    assert state(*given.values()) != before, "the call that is right does nothing"
    good, _ = IN_PLACE[name](make("numpy", wide, name))
    for listed, members in good.items():
        for k, member in enumerate(members):
            other = np.float64 if member.dtype != np.float64 else np.float32
            wrongs: list[Any] = [member.astype(np.int32), member[:1].copy(), 1.5, None]
            # Of the gradients of a clip every element is as good as another.
            wrongs += [member.astype(other)] if len(good) > 1 and wide else []
            for wrong in wrongs if len(good) > 1 else wrongs[:1] + wrongs[2:]:
                attempt(lambda g, _, x=wrong, n=listed, i=k: g[n].__setitem__(i, x))
            attempt(lambda g, _, n=listed, i=k: g[n].append(g[n][i]))  # twice, and longer than the others
    for scalar in [n for n in IN_PLACE[name](make("numpy", wide, name))[1] if n not in ("amsgrad", "total_norm")]:
        for wrong in ("x", None, 1j, 10**400, np.zeros(2)):
            attempt(lambda _, b, x=wrong, n=scalar: b.__setitem__(n, x))


def test_what_one_element_steps_may_not_be_what_another_reads() -> None:
    memory = np.ones(8, np.float32)
    one = [memory[:4], memory.view(np.float64)[:2]]  # params of two elements in the same bytes
    fresh = [[np.ones_like(x) for x in one] for _ in range(3)]
    before = memory.copy()
    with pytest.raises(bc.InvalidProblemError, match="another element"):
        F.adamw_(one, *fresh, step=1)
    assert (memory == before).all()
    F.adamw_([memory[:4], memory.view(np.float64)[2:]], *fresh, step=1)


def test_messages_count_as_the_callers_lists_do() -> None:
    given, besides = IN_PLACE["adamw_"](make("numpy", True, "adamw_"))
    given["grads"][3] = given["grads"][3].astype(np.float32)
    with pytest.raises(bc.InvalidProblemError, match=r"grads\[3\]: got f32, want bf16"):
        F.adamw_(**given, **besides)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(_index.FUNCTIONS))
def test_refused_calls_change_nothing_and_raise_our_errors(name: str) -> None:
    rng = random.Random(f"{SEED} {name}")
    bc.manual_seed(SEED)
    for fn, args, kwargs in calls(name, rng, 400 if FULL else 12):
        before = state(*args, *kwargs.values())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fn(*args, **kwargs)
        except FOUND_IN_DATA:
            assert state(*args, *kwargs.values())[0] == before[0], "the generator moved"
        except (bc.BaracudaError, MemoryError):
            assert state(*args, *kwargs.values()) == before, f"{args}, {kwargs}: something was written"


def test_plans_from_malformed_documents() -> None:
    found = directions()
    rng = random.Random(SEED)
    for op, direction in found if FULL else rng.sample(found, 15):
        for data in malformed(valid_call(op, direction).plan.to_bytes(), rng, 12 if FULL else 2):
            with suppress(bc.BaracudaError):
                bc.Plan.from_bytes(data)
