"""Programs: the same bits as their plans one after the other, at every size, with every error named before it harms."""

from __future__ import annotations

import gc
import json
import pickle
import random
import re
import threading
from typing import Any

import numpy as np
import pytest
import torch
from calls import directions, valid_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import N, by_plans, chain, rows

import baracuda as bc
from baracuda.describe.sizes import SizeExpr, contiguous_strides

OPS = pytest.mark.parametrize(("op", "direction"), [pytest.param(*d, id=f"{d[0]}-{d[1]}") for d in directions()])


def test_one_program_serves_every_length() -> None:
    program = chain().build()
    for k in (1, 7, 64, 0, 7, 2):
        x = rows(k)
        np.testing.assert_array_equal(program.run(x), by_plans(x))
    out = np.zeros((5, 12), np.float32)
    assert program.run(x=rows(5), y=out) is out
    np.testing.assert_array_equal(out, by_plans(rows(5)))
    assert program.arguments == ("x", "y") and program.launches == 3 and len(program.plans) == 3


@OPS
def test_every_op_as_a_step(op: str, direction: str) -> None:
    """A program of one step gives the plan's bits, from arguments as well as from constants, and from its bytes."""
    call = valid_call(op, direction)
    call.run()
    wanted = call.bytes()
    for constant in (False, True):
        again = valid_call(op, direction)
        b = bc.ProgramBuilder()
        given: dict[str, Any] = {}
        arguments: dict[str, Any] = {}
        for p in again.tensors:
            values = again.args[p.name] if p.variadic else [again.args[p.name]]
            made = []
            for i, v in enumerate(values):
                name = f"{p.name}{i}"
                if constant and p.role == 0:
                    made.append(b.constant(v, name))
                    continue
                made.append((b.input, b.inout, b.output)[p.role](name, v.shape, p.element))
                given[name] = v
            arguments[p.name] = made if p.variadic else made[0]
        for s in again.plan.signature.numbers:
            if s.name in again.args:
                arguments[s.name] = b.scalar(s.name, s.kind)
                given[s.name] = again.args[s.name]
        b.add(again.plan, **arguments)
        program = b.build()
        for made_again in (program, pickle.loads(pickle.dumps(program)) if not constant else program):
            made_again.run(**given)
            assert again.bytes() == wanted
            if any(p.role == 1 for p in again.tensors):
                break


def test_scratch_is_shared_by_values_that_are_not_alive_at_once() -> None:
    b = bc.ProgramBuilder()
    value = b.input("x", (1024,))
    for _ in range(10):
        value = b.add(bc.UnaryDescriptor("neg", (1024,)), x=value)
    b.add(bc.UnaryDescriptor("neg", (1024,)), x=value, y=b.output("y", (1024,)))
    program = b.build()
    assert program.memory == {"scratch": 2 * 4096, "unplanned": 10 * 4096}
    x = rows(1, 1024)[0]
    np.testing.assert_array_equal(program.run(x), -x)


def test_views_are_those_of_numpy() -> None:
    """Slices, splits and transposes of arguments and scratch, without a step."""
    b = bc.ProgramBuilder()
    x = b.input("x", (N, 12))
    split = x.reshape(N, 3, 4).transpose(1, 0, 2)  # [3, n, 4]
    y = b.output("y", (N, 4))
    b.add(bc.UnaryDescriptor("neg", (N, 4)), x=split[1], y=y)
    z = b.output("z", (2, N, 2))
    b.add(bc.UnaryDescriptor("exp", (2, N, 2)), x=split[1:3, :, 2:], y=z)
    joint = b.scratch((N, 6))
    b.add(bc.UnaryDescriptor("abs", (N, 2)), x=split[0][:, :2], y=joint[:, 4:])
    b.add(bc.UnaryDescriptor("abs", (N, 4)), x=split[2], y=joint[:, :4])
    w = b.output("w", (N, 6))
    b.add(bc.UnaryDescriptor("neg", (N, 6)), x=joint, y=w)
    program = b.build()
    for k in (1, 5, 64):
        a = rows(k)
        s = a.reshape(k, 3, 4).transpose(1, 0, 2)
        y_, z_, w_ = program.run(a)
        np.testing.assert_array_equal(y_, -s[1])
        np.testing.assert_allclose(z_, np.exp(s[1:3, :, 2:]), rtol=1e-6)
        np.testing.assert_array_equal(w_, -np.concatenate([abs(s[2]), abs(s[0][:, :2])], 1))


sizes = st.builds(
    lambda a, b, c, d, e: (SizeExpr.of(N) * a + b) * (SizeExpr.of(bc.Dim("m", max=9)) * c + d) + e,
    *[st.integers(-3, 3)] * 5,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sizes, sizes, st.integers(0, 64), st.integers(0, 9))
def test_arithmetic_of_sizes(x: SizeExpr, y: SizeExpr, n: int, m: int) -> None:
    at = {"n": n, "m": m}
    assert (x + y).at(at) == x.at(at) + y.at(at)
    assert (x - y).at(at) == x.at(at) - y.at(at)
    assert (x * y).at(at) == x.at(at) * y.at(at)
    assert x.ceil(4).at(at) == -(-x.at(at) // 4)
    assert (x * 4 // 4).at(at) == x.at(at) and (x - x).fixed == 0
    assert json.loads(json.dumps(x.json())) == x.json()


def test_products_of_two_symbols() -> None:
    m = bc.Dim("m", max=8)
    tokens = SizeExpr.of(N) * m
    b = bc.ProgramBuilder()
    x, y = b.input("x", (N, m, 4)), b.output("y", (tokens, 4))
    b.add(bc.UnaryDescriptor("neg", (bc.Dim("tokens", max=512), 4)), x=x.reshape(tokens, 4), y=y)
    program = b.build()
    for k, j in ((3, 5), (1, 8), (64, 8), (0, 3)):
        a = np.random.default_rng(1).normal(size=(k, j, 4)).astype(np.float32)
        np.testing.assert_array_equal(program.run(a), -a.reshape(k * j, 4))
    assert contiguous_strides((N, m, 4))[0] == SizeExpr.of(m) * 4


def test_scalars_sizes_and_elements_as_numbers() -> None:
    b = bc.ProgramBuilder()
    seed, offset = b.scalar("seed", "unsigned"), b.scalar("offset", "unsigned", 0)
    first, second = b.output("first", (N,)), b.output("second", (N,))
    b.input("length", (N,))
    b.add(bc.RandomDescriptor("uniform", (N,), "f32"), y=first, low=0.0, high=1.0, seed=seed, offset=offset)
    b.add(
        bc.RandomDescriptor("uniform", (N,), "f32"),
        y=second,
        low=0.0,
        high=1.0,
        seed=seed,
        offset=offset + SizeExpr.of(N).ceil(4),
    )
    filled = b.output("filled", (3,))
    b.add(bc.FillDescriptor((3,), "f32"), y=filled, value=N)
    taken = b.output("taken", (3,))
    b.add(bc.FillDescriptor((3,), "f32"), y=taken, value=b.constant(np.array([2.5, 7.5], np.float32))[1:])
    program = b.build()
    draw = bc.plan(bc.RandomDescriptor("uniform", (N,), "f32"))
    for k in (5, 8, 64):
        one, two, count, constant = program.run(length=np.zeros(k, np.float32), seed=2**63 + 5, offset=11)
        want = [
            draw.run(y=np.zeros(k, np.float32), low=0.0, high=1.0, seed=2**63 + 5, offset=11 + at)
            for at in (0, -(-k // 4))
        ]
        np.testing.assert_array_equal(one, want[0])
        np.testing.assert_array_equal(two, want[1])
        assert (count == k).all() and (constant == 7.5).all()
    again = program.run(length=np.zeros(5, np.float32), seed=1)
    np.testing.assert_array_equal(again[0], draw.run(y=np.zeros(5, np.float32), low=0.0, high=1.0, seed=1, offset=0))
    for bad, word in (
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({}, "seed"),
        ({"seed": 1, "offset": 2**64 - 1}, "offset"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            program.run(length=np.zeros(5, np.float32), **bad)


def test_constants_are_referred_to() -> None:
    held = np.arange(4, dtype=np.float32)
    b = bc.ProgramBuilder()
    b.add(bc.UnaryDescriptor("neg", (4,)), x=b.constant(held, "held"), y=b.output("y", (4,)))
    program = b.build()
    np.testing.assert_array_equal(program.run(), -held)
    held *= 3
    np.testing.assert_array_equal(program.run(), -held)
    assert program.named_constants()["held"] is held
    moved = torch.arange(4.0)
    b = bc.ProgramBuilder()
    b.add(bc.UnaryDescriptor("neg", (4,)), x=b.constant(moved), y=b.output("y", (4,)))
    program, bound = (p := b.build()), p.bind(y=torch.empty(4))
    moved.data = torch.ones(4)
    for call in (lambda: program.run(), bound):
        with pytest.raises(bc.InvalidProblemError) as caught:
            call()
        assert caught.value.code == "moved"
    with pytest.raises(bc.InvalidProblemError, match="contiguous"):
        b = bc.ProgramBuilder()
        b.add(bc.UnaryDescriptor("neg", (2,)), x=b.constant(held[::2]), y=b.output("y", (2,)))
        b.build()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"x": rows(3).astype(np.float16)}, "element"),
        ({"x": rows(3, 13)}, "shape"),
        ({"x": rows(3)[0]}, "rank"),
        ({"x": rows(65)}, "dim"),
        ({"x": rows(3, 24)[:, ::2]}, "strides"),
        ({"x": "nonsense"}, "not_a_tensor"),
        ({"y": rows(4)}, "shape"),
        ({"x": None}, "missing_argument"),
        ({"z": rows(3)}, "unknown_argument"),
        ({"x": torch.ones(3, 12, requires_grad=True)}, "requires_grad"),
        ({"x": torch.ones(3, 12, device="meta")}, "meta"),
        ({"stream": 0}, "stream"),
    ],
)
def test_arguments_are_refused_before_anything_runs(change: dict[str, Any], code: str) -> None:
    program = chain().build()
    arguments = {"x": rows(3), "y": np.full((3, 12), 7, np.float32)} | change
    if change.get("x") is None and "x" in change:
        del arguments["x"]
    before = np.array(arguments["y"])
    for call in (program.run, program.bind):
        with pytest.raises(bc.InvalidProblemError) as caught:
            call(**arguments)
        assert caught.value.code == code and str(caught.value).startswith("Program")
    np.testing.assert_array_equal(arguments["y"], before)


def test_what_is_written_is_apart_from_all_else() -> None:
    program = chain().build()
    memory = rows(8)
    read_only = rows(3)
    read_only.flags.writeable = False
    want = program.run(read_only)
    for x in (memory[:3], memory[1:4]):  # its last step reads nothing of x any more
        x[...] = read_only
        np.testing.assert_array_equal(program.run(x, memory[:3]), want)
    b = bc.ProgramBuilder()
    x, y = b.input("x", (N, 12)), b.output("y", (N, 12))
    b.add(bc.UnaryDescriptor("neg", (N, 12)), x=b.add(bc.UnaryDescriptor("exp", (N, 12)), x=x), y=y)
    b.add(bc.BinaryDescriptor("add", (N, 12), (N, 12)), a=x, b=x, y=b.output("z", (N, 12)))
    again = b.build()
    for x, y, code in (
        (memory[:3], memory[2:5], "overlap"),
        (memory[:3], memory[:3], "overlap"),
        (rows(3), read_only, "read_only"),
    ):
        with pytest.raises(bc.InvalidProblemError) as caught:
            again.run(x, y)
        assert caught.value.code == code
    held = np.arange(12, dtype=np.float32)
    b = bc.ProgramBuilder()
    b.add(bc.UnaryDescriptor("neg", (4,)), x=b.constant(held[:4]), y=b.output("y", (4,)))
    with pytest.raises(bc.InvalidProblemError, match="the constant"):
        b.build().run(held[3:7])
    unaligned = np.zeros(13, np.uint8)[1:].view()
    b = bc.ProgramBuilder()
    b.add(bc.UnaryDescriptor("neg", (3,)), x=b.input("x", (3,)), y=b.output("y", (3,)))
    with pytest.raises(bc.InvalidProblemError, match="multiple"):
        b.build().run(np.frombuffer(unaligned, np.float32))


def test_programs_that_cannot_be() -> None:
    neg = bc.UnaryDescriptor("neg", (4,))
    b = bc.ProgramBuilder()
    b.add(neg, x=b.scratch((4,), name="never"), y=b.output("y", (4,)))
    with pytest.raises(bc.InvalidProblemError, match="never, which nothing has written"):
        b.build()
    b = bc.ProgramBuilder()
    b.add(neg, x=b.input("x", (4,)), y=b.input("z", (4,)))
    with pytest.raises(bc.InvalidProblemError, match="may be written for y"):
        b.build()
    b = bc.ProgramBuilder()
    b.add(bc.UnaryDescriptor("neg", (N,)), x=b.constant(np.zeros(3, np.float32)), y=b.output("y", (N,)))
    with pytest.raises(bc.InvalidProblemError, match="size n"):
        b.build()
    b = bc.ProgramBuilder()
    x = b.input("x", (8,))
    for bad, word in (
        (lambda: b.add(neg, x=x), "shape"),
        (lambda: b.add(neg, x=b.input("h", (4,), "f16")), "f16"),
        (lambda: b.add(neg), "x: got nothing"),
        (lambda: b.add(neg, x=np.zeros(4)), "a value of this program"),
        (lambda: b.add(neg, x=x[:4], p=1), "p: got an unknown"),
        (lambda: b.input("x", (4,)), "twice"),
        (lambda: x.reshape(3, 3), "as many"),
        (lambda: x[::2], "step"),
        (lambda: x[0, 0], "at most 1"),
        (lambda: x.transpose(1), "axes"),
        (lambda: b.scalar("s", "complex"), "kind"),
        (lambda: b.input("m", (bc.Dim("n", max=3), N)), "maximum"),
        (lambda: b.add(bc.FillDescriptor((8,), "f32"), y=b.output("f", (8,)), value="3"), "value: got '3'"),
        (lambda: x[9:], "at most 8"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            bad()


def test_views_that_reach_beyond_are_found_at_their_sizes() -> None:
    b = bc.ProgramBuilder()
    x, y = b.input("x", (N,)), b.output("y", (4,))
    b.add(bc.UnaryDescriptor("neg", (4,)), x=x[2:6], y=y)
    program = b.build()
    np.testing.assert_array_equal(program.run(np.arange(6, dtype=np.float32)), -np.arange(2, 6, dtype=np.float32))
    with pytest.raises(bc.InvalidProblemError, match=r"Program step 0 .*beyond"):
        program.run(np.arange(5, dtype=np.float32))
    np.testing.assert_array_equal(program.run(np.arange(7, dtype=np.float32)), -np.arange(2, 6, dtype=np.float32))


def test_failures_in_the_data_name_the_step_and_leave_the_program_usable() -> None:
    b = bc.ProgramBuilder()
    x, index, y = b.input("x", (4,)), b.input("index", (2,), "i64"), b.output("y", (2,))
    t = b.add(bc.UnaryDescriptor("neg", (4,)), x=x)
    b.add(bc.GatherDescriptor((4,), (2,), 0), x=t, index=index, y=y)
    program, a = b.build(), np.arange(4, dtype=np.float32)
    for _ in range(2):
        with pytest.raises(bc.IndexOutOfRangeError, match=r"Program step 1 \(gather.*index: got index 9"):
            program.run(a, np.array([0, 9]))
        np.testing.assert_array_equal(program.run(a, np.array([1, 3])), [-1, -3])
    for kind, at in (("launch", 0), ("launch", 1), ("alloc", 0)):
        fresh = pickle.loads(pickle.dumps(program))
        out = np.zeros(2, np.float32)
        with bc.testing.fail(after=at, on=kind), pytest.raises(bc.BaracudaError, match="asked for"):
            fresh.run(a, np.array([1, 3]), out)
        np.testing.assert_array_equal(fresh.run(a, np.array([1, 3])), [-1, -3])


def test_bound_programs() -> None:
    program, x, y = chain().build(), rows(9), np.zeros((9, 12), np.float32)
    call = program.bind(x, y)
    for _ in range(3):
        x += 1
        assert call() is y
        np.testing.assert_array_equal(y, by_plans(x))
    del program
    gc.collect()
    np.testing.assert_array_equal(call(), by_plans(x))
    with pytest.raises(TypeError):
        call(1)
    moved = torch.ones(9, 12)
    call = chain().build().bind(moved)
    moved.data = torch.zeros(9, 12)
    with pytest.raises(bc.InvalidProblemError) as caught:
        call()
    assert caught.value.code == "moved"


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy, bc.asarray])
def test_results_are_of_the_arguments_kind(make: Any) -> None:
    x = make(rows(6))
    out = chain().build().run(x)
    assert type(out) is type(x)
    np.testing.assert_array_equal(np.from_dlpack(out), by_plans(rows(6)))


def test_writing_into_torch_tensors_is_seen_by_autograd() -> None:
    y = torch.zeros(3, 12)
    program, before = chain().build(), y._version
    program.run(torch.ones(3, 12), y)
    assert y._version > before
    program.bind(torch.ones(3, 12), y)()
    assert y._version > before + 1


def test_many_threads_run_one_program() -> None:
    program, wrong = chain().build(), []
    program.reserve(4)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for i in range(200):
            x = rows(rng.randrange(65), seed=seed * 1000 + i)
            if not (program.run(x) == by_plans(x)).all():
                wrong.append((seed, i))

    crew = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    program.trim()
    assert not wrong


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_programs_against_plans_one_by_one(data: Any) -> None:
    """Chains and joins of random elementwise steps over random views, at three sizes."""
    b, columns = bc.ProgramBuilder(), data.draw(st.sampled_from([1, 4, 6]))
    inputs = [b.input(f"x{i}", (N, columns)) for i in range(2)]
    pool: list[Any] = list(inputs)
    steps: list[tuple[str, list[int]]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        kind = data.draw(st.sampled_from(["neg", "abs", "exp", "add", "mul"]))
        take = [data.draw(st.integers(0, len(pool) - 1)) for _ in range(1 + (kind in ("add", "mul")))]
        if len(take) == 1:
            made = b.add(bc.UnaryDescriptor(kind, (N, columns)), x=pool[take[0]])
        else:
            made = b.add(
                bc.BinaryDescriptor(kind, (N, columns), (N, columns)),
                **dict(zip(("a", "b"), (pool[i] for i in take), strict=True)),
            )
        pool.append(made)
        steps.append((kind, take))
    b.add(bc.UnaryDescriptor("neg", (N, columns)), x=pool[-1], y=b.output("y", (N, columns)))
    program = b.build()
    for k in (1, data.draw(st.integers(0, 64)), 33):
        held = [rows(k, columns, seed=s) for s in (1, 2)]
        got = program.run(*held)
        for kind, take in steps:
            fn = getattr(bc.functional, kind)
            held.append(fn(*(held[i] for i in take)))
        np.testing.assert_array_equal(got, -held[-1])


def test_a_number_that_is_refused_leaves_nothing_half_made() -> None:
    """Also where it comes with sizes that are new, to a program that never ran, too."""
    b = bc.ProgramBuilder()
    b.input("x", (N,))
    draw = bc.RandomDescriptor("uniform", (N,), "f32")
    offset = b.scalar("offset", "unsigned") + SizeExpr.of(N)
    b.add(draw, y=b.output("y", (N,)), low=0.0, high=1.0, seed=1, offset=offset)
    program, plan = b.build(), bc.plan(draw)
    for k in (8, 5):
        x = np.zeros(k, np.float32)
        for _ in range(2):
            with pytest.raises(bc.InvalidProblemError, match="offset"):
                program.run(x, offset=2**64 - 1)
        wanted = plan.run(y=np.zeros(k, np.float32), low=0.0, high=1.0, seed=1, offset=k)
        np.testing.assert_array_equal(program.run(x, offset=0), wanted)


def test_plans_that_take_less_than_the_program() -> None:
    """At a size that was met before, and at one for which only limits are looked at."""
    b = bc.ProgramBuilder()
    x, y = b.input("x", (N, 3)), b.output("y", (N, 3))
    b.add(bc.UnaryDescriptor("neg", (bc.Dim("m", max=16), 3)), x=x, y=y)
    program = b.build()
    for k in (1, 16, 3):
        np.testing.assert_array_equal(program.run(rows(k, 3)), -rows(k, 3))
    for k in (17, 64):
        with pytest.raises(bc.InvalidProblemError, match="at most 16"):
            program.run(rows(k, 3))
    np.testing.assert_array_equal(program.run(rows(5, 3)), -rows(5, 3))


def test_shapes_are_told_by_their_sizes() -> None:
    n = bc.Dim("n", max=8)
    b = bc.ProgramBuilder()
    x, y = b.input("x", (n, 3)), b.input("y", (2 * SizeExpr.of(n) + 1,))
    b.add(bc.UnaryDescriptor("neg", (n, 3)), x=x, y=b.output("out", (n, 3)))
    b.add(bc.UnaryDescriptor("neg", (17,)), x=b.constant(np.zeros(17, np.float32)), y=b.output("more", (17,)))
    program = b.build()
    assert y.index == 1
    for shapes, said in (
        (((3, 4), (7,)), r"x: got shape (3, 4), want shape (n, 3). Pass a tensor of the program's shape."),
        (((3, 3), (8,)), r"y: got shape (8,), want shape (2*n + 1,). Pass a tensor of the program's shape."),
    ):
        with pytest.raises(bc.InvalidProblemError, match=re.escape(said)):
            program.run(*(np.zeros(s, np.float32) for s in shapes))
