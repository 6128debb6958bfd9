"""The C interface: the same bits, the same refusals and the same texts as Python's, from hosts that have none of it."""

from __future__ import annotations

import ctypes as c
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import host
import numpy as np
import pytest
from calls import ValidCall, directions, valid_call
from host import HostError, HostPlan, lib, options, scalar, tensor

import baracuda as bc

EXAMPLE = Path(__file__).parents[1] / "examples" / "c"
OPS = pytest.mark.parametrize(("op", "direction"), [pytest.param(*d, id=f"{d[0]}-{d[1]}") for d in directions()])
SOFTMAX = bc.plan(bc.SoftmaxDescriptor("softmax", (4, 6)))


def arguments(call: ValidCall) -> tuple[list[host.DLTensor], list[host.Scalar]]:
    """A valid call's arguments as a host has them."""
    given = []
    for p in call.tensors:
        value = call.args[p.name]
        given += [tensor(v, p.element) for v in (value if p.variadic else [value])]
    return given, [scalar(call.args.get(s.name)) for s in call.plan.signature.numbers]


def arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    return x, np.zeros_like(x)


@OPS
def test_the_same_bits(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    plan = HostPlan(call.plan.to_bytes())
    assert plan.info()["sku"] == call.plan.sku.name
    before = {
        p.name: [v.copy() for v in (call.args[p.name] if p.variadic else [call.args[p.name]])] for p in call.tensors
    }
    call.run()
    wanted = call.bytes()
    for p in call.tensors:
        for now, then in zip(call.args[p.name] if p.variadic else [call.args[p.name]], before[p.name], strict=True):
            now[...] = then
    tensors, scalars = arguments(call)
    assert plan.workspace(tensors) == call.plan.workspace_size
    plan.run(tensors, scalars, options(call.workspace), check=True)
    plan.run(tensors, scalars, options(call.workspace))
    assert call.bytes() == wanted


def test_refusals_are_those_of_python() -> None:
    x, y = arrays()
    plan = HostPlan(SOFTMAX.to_bytes())
    locked = y.copy()
    locked.flags.writeable = False
    read_only = (c.c_uint8 * 2)(0, 1)
    lying = options(read_only=c.cast(read_only, c.c_void_p))
    for given, also, theirs in (
        ((x[:3], y), None, (x[:3], y)),
        ((x, y.astype(np.float16)), None, (x, y.astype(np.float16))),
        ((x, x[::-1]), None, (x, x[::-1])),
        ((x, y), lying, (x, locked)),
    ):
        with pytest.raises(HostError) as mine:
            plan.run([tensor(v) for v in given], (), also)
        with pytest.raises(bc.InvalidProblemError) as wanted:
            SOFTMAX.run(*theirs)
        assert str(mine.value) == str(wanted.value) and mine.value.code == wanted.value.code
        assert mine.value.status == host.STATUS["invalid_problem"]
        assert not y.any()
    with pytest.raises(HostError) as mine:
        plan.run([tensor(x[:3]), tensor(y.astype(np.float16))], (), None, check=True)
    support = SOFTMAX.can_implement(x[:3], y.astype(np.float16))
    assert [(r["code"], r["field"], r["got"], r["want"], r["hint"]) for r in mine.value.reasons] == [
        (r.code, r.field, r.got, r.want, r.hint) for r in support.refusals
    ]


def test_failures_of_launches_are_those_of_python() -> None:
    found = bc.plan(bc.GatherDescriptor((4,), (2,), 0))
    x, index, y = np.arange(4, dtype=np.float32), np.array([1, 9]), np.zeros(2, np.float32)
    with pytest.raises(HostError) as mine:
        HostPlan(found.to_bytes()).run([tensor(x), tensor(index), tensor(y)])
    with pytest.raises(bc.IndexOutOfRangeError) as wanted:
        found.run(x, index, y)
    assert str(mine.value) == str(wanted.value) and mine.value.status == host.STATUS["index_out_of_range"]


def test_scalars() -> None:
    made = bc.plan(bc.RandomDescriptor("normal", (64,), "f32"))
    plan, wanted, got = HostPlan(made.to_bytes()), np.zeros(64, np.float32), np.zeros(64, np.float32)
    names = [s.name for s in made.signature.numbers]
    numbers: dict[str, Any] = {"mean": 1.5, "std": 0.5, "seed": 2**64 - 1, "offset": 7}
    made.run(y=wanted, **numbers)
    plan.run([tensor(got)], [scalar(numbers[n]) for n in names])
    assert (wanted == got).all()
    held = {n: np.array(v, np.uint64 if isinstance(v, int) else np.float32) for n, v in numbers.items()}
    got[:] = 0
    plan.run([tensor(got)], [scalar(held[n]) for n in names])
    assert (wanted == got).all()
    for bad, word in (({"seed": 1.5}, "seed"), ({"offset": np.zeros(2, np.int64)}, "offset")):
        with pytest.raises(HostError, match=word) as caught:
            plan.run([tensor(got)], [scalar((numbers | bad)[n]) for n in names])
        assert caught.value.code == "scalar"
    with pytest.raises(HostError, match="seed") as caught:
        plan.run([tensor(got)], [host.Scalar(9) if n == "seed" else scalar(numbers[n]) for n in names])
    missing = names.index("seed")
    with pytest.raises(HostError, match="seed: got nothing"):
        plan.run([tensor(got)], [scalar(numbers[n]) for n in names[:missing]])


def test_workspaces() -> None:
    call = next(valid_call(*d) for d in directions() if valid_call(*d).plan.workspace_size)
    plan, (tensors, scalars) = HostPlan(call.plan.to_bytes()), arguments(call)
    with pytest.raises(HostError) as caught:
        plan.run(tensors, scalars)
    assert caught.value.status == host.STATUS["workspace"]
    with pytest.raises(HostError) as caught:
        plan.run(tensors, scalars, options(workspace=call.workspace, workspace_bytes=call.plan.workspace_size - 1))
    assert caught.value.status == host.STATUS["workspace"]


def test_counts_and_null_pointers() -> None:
    x, y = arrays()
    plan = HostPlan(SOFTMAX.to_bytes())
    for tensors in ([], [tensor(x)], [tensor(x)] * 3):
        with pytest.raises(HostError, match="2, as the signature has them"):
            plan.run(tensors)
    with pytest.raises(HostError, match="at most 0"):
        plan.run([tensor(x), tensor(y)], [scalar(1.0)])
    pointers = (c.POINTER(host.DLTensor) * 2)(c.pointer(tensor(x)), None)
    error = host.Error()
    with pytest.raises(HostError, match="y: got nothing"):
        error.check(lib.bcu_plan_run(plan.handle, pointers, c.c_size_t(2), None, c.c_size_t(0), None, error.handle))
    assert lib.bcu_plan_run(plan.handle, None, c.c_size_t(2), None, c.c_size_t(0), None, None) == 2
    assert b"x: got nothing" in lib.bcu_last_error()
    out = c.c_void_p()
    for call in (
        lambda: lib.bcu_plan_load(None, c.c_size_t(5), None, c.byref(out), None),
        lambda: lib.bcu_plan_load(b"{}", c.c_size_t(2), None, None, None),
        lambda: lib.bcu_plan_run(None, None, c.c_size_t(0), None, c.c_size_t(0), None, None),
        lambda: lib.bcu_plan_check(None, None, c.c_size_t(0), None, c.c_size_t(0), None, None),
        lambda: lib.bcu_plan_info(plan.handle, None, None),
        lambda: lib.bcu_plan_workspace(None, None, c.c_size_t(0), c.byref(c.c_size_t()), None),
        lambda: lib.bcu_devices(None, None),
        lambda: lib.bcu_device_check(None, None, None),
    ):
        assert call() == 2 and b"a null pointer" in lib.bcu_last_error()
    lib.bcu_plan_release(None), lib.bcu_error_release(None), lib.bcu_free(None)
    assert lib.bcu_error_message(None) == b"" and lib.bcu_error_reasons(None) == b"[]"
    assert lib.bcu_abi_version() == 1 and lib.bcu_version().decode() == bc.__version__


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"ndim": 9}, "rank 9"), ({"ndim": -1}, "rank -1"), ({"bits": 7}, "7 bits"), ({"lanes": 4}, "4 lanes"), ({"code": 200}, "code 200"),
        ({"device_type": 77}, "device"), ({"device_type": 2}, "cuda"), ({"shape": None}, "no sizes"), ({"data": None}, "no data"),
        ({"data": 3}, "not a multiple"),
    ],
)  # fmt: skip
def test_tensors_that_are_none(change: dict[str, Any], word: str) -> None:
    x, y = arrays()
    bad = tensor(x)
    for name, value in change.items():
        setattr(bad, name, value)
    with pytest.raises(HostError, match=word):
        HostPlan(SOFTMAX.to_bytes()).run([bad, tensor(y)])


def test_negative_sizes_and_offsets() -> None:
    x, y = arrays()
    plan = HostPlan(SOFTMAX.to_bytes())
    bad = tensor(x)
    bad.shape[0] = -4
    with pytest.raises(HostError, match="negative size"):
        plan.run([bad, tensor(y)])
    memory = np.zeros((5, 6), np.float32)
    memory[1:] = x
    inside = tensor(memory[:4], strides=False)
    inside.byte_offset = 24
    plan.run([inside, tensor(y)])
    np.testing.assert_array_equal(y, SOFTMAX.run(x, np.zeros_like(x)))


def test_sizes_of_structs() -> None:
    x, y = arrays()
    plan = HostPlan(SOFTMAX.to_bytes())

    class Longer(c.Structure):
        _fields_ = [("known", host.RunOptions), ("new", c.c_uint64)]

    for new, fine in ((0, True), (1, False)):
        longer = Longer(options(), new)
        longer.known.struct_size = c.sizeof(Longer)
        given = c.cast(c.pointer(longer), c.POINTER(host.RunOptions)).contents
        if fine:
            plan.run([tensor(x), tensor(y)], (), given)
        else:
            with pytest.raises(HostError, match="struct_size"):
                plan.run([tensor(x), tensor(y)], (), given)
    for size in (0, 8):
        with pytest.raises(HostError, match="struct_size"):
            plan.run([tensor(x), tensor(y)], (), options(struct_size=size))
    with pytest.raises(HostError, match="threads"):
        plan.run([tensor(x), tensor(y)], (), options(threads=-1))
    with pytest.raises(HostError, match="options"):
        HostPlan(SOFTMAX.to_bytes(), sku=5)


def test_questions_find_all_reasons() -> None:
    """Also where options or the number of scalars are wrong: the tensors are still looked at."""
    x, y = arrays()
    plan = HostPlan(SOFTMAX.to_bytes())
    given = [tensor(x[:3]), tensor(y.astype(np.float16))]
    for scalars, also, word in (([scalar(1.0)], None, "list_length"), ([], options(struct_size=8), "problem")):
        with pytest.raises(HostError) as caught:
            plan.run(given, scalars, also, check=True)
        assert {r["code"] for r in caught.value.reasons} >= {word, "shape", "element"}


def test_another_kernel_where_any_will_do() -> None:
    document = json.loads(SOFTMAX.to_bytes()) | {"sku": "softmax.forward.cpu.f32.of_another_machine"}
    data = json.dumps(document).encode()
    with pytest.raises(HostError, match="of_another_machine") as caught:
        HostPlan(data)
    assert caught.value.status == host.STATUS["unsupported"]
    assert HostPlan(data, sku=1).info()["sku"] == SOFTMAX.sku.name


def test_truncated_and_changed_bytes() -> None:
    rng, data = random.Random(3), SOFTMAX.to_bytes()
    for _ in range(1500):
        changed = bytearray(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randrange(1, 4)):
            if changed:
                changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            assert HostPlan(bytes(changed)).info()["question"] == json.loads(data)["question"]
        except HostError as e:
            assert e.status in (host.STATUS["invalid_problem"], host.STATUS["unsupported"])


def test_the_hosts_own_threads() -> None:
    made = bc.plan(bc.MatmulDescriptor((300, 200), (200, 150), "f32"))
    rng = np.random.default_rng(2)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((300, 200), (200, 150)))
    wanted, got = np.zeros((300, 150), np.float32), np.zeros((300, 150), np.float32)
    work = np.zeros(made.workspace_size + 64, np.uint8)
    work = work[-work.ctypes.data % 64 :][: made.workspace_size] if made.workspace_size else None
    made.run(x, w, wanted, workspace=work)
    plan, regions, threads = HostPlan(made.to_bytes()), [], set()

    def spread(n: int, body: Any, data: int, each: int) -> None:
        regions.append(n)

        def work_on(start: int) -> None:
            for chunk in range(start, each, 4):
                threads.add(threading.get_ident())
                body(data, chunk)

        crew = [threading.Thread(target=work_on, args=(k,)) for k in range(4)]
        for t in crew:
            t.start()
        for t in crew:
            t.join()

    for surplus in (0, 3, -1):  # as often as asked, too often, and not often enough
        callback = host.PARALLEL_FOR(lambda _, n, body, data, more=surplus: spread(n, body, data, max(n + more, 0)))
        got[:] = 0
        for limit in (0, 1, 3):
            plan.run([tensor(x), tensor(w), tensor(got)], (), options(work, parallel_for=callback, threads=limit))
            assert (got == wanted).all()
    assert regions and len(threads) > 1


def test_one_plan_on_many_threads() -> None:
    plan = HostPlan(SOFTMAX.to_bytes())
    wrong: list[Any] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(4, 6)).astype(np.float32)
        y, bad = np.zeros_like(x), tensor(x[:3])
        wanted = SOFTMAX.run(x, np.zeros_like(x))
        for _ in range(300):
            y[:] = 0
            plan.run([tensor(x), tensor(y)])
            if not (y == wanted).all():
                wrong.append(y.copy())
            try:
                plan.run([bad, tensor(y)])
                wrong.append("accepted")
            except HostError as e:
                if "(3, 6)" not in str(e):
                    wrong.append(str(e))

    crew = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    assert not wrong


def test_devices() -> None:
    text = c.c_char_p()
    assert lib.bcu_devices(c.byref(text), None) == 0
    found = json.loads(text.value or b"")
    lib.bcu_free(text)
    assert found[0]["name"] == "cpu" and found[0]["usable"]
    assert all(d["usable"] or d["reason"] for d in found)


def small_program(held: Any) -> bc.Program:
    """y = -(x + held), z = drawn numbers, for rows that only a run knows."""
    n = bc.Dim("n", max=64)
    b = bc.ProgramBuilder()
    x, y, z = b.input("x", (n, 4)), b.output("y", (n, 4)), b.output("z", (2,))
    t = b.add(bc.BinaryDescriptor("add", (n, 4), (4,)), a=x, b=b.constant(held, "held"))
    b.add(bc.UnaryDescriptor("neg", (n, 4)), x=t, y=y)
    draw = bc.RandomDescriptor("uniform", (2,), "f32")
    b.add(draw, y=z, low=b.scalar("low", "float", 0.0), high=1.0, seed=b.scalar("seed", "unsigned"), offset=0)
    return b.build()


def test_programs_give_the_same_bits_and_refusals() -> None:
    held = np.arange(4, dtype=np.float32)
    program = small_program(held)
    mine = host.HostProgram(program.to_bytes(), [tensor(held)])
    assert [a["name"] for a in mine.info()["arguments"]] == ["x", "y", "z"] and mine.info()[
        "scratch_bytes"
    ] == program.scratch_bytes
    for k in (1, 7, 64, 0):
        x = np.random.default_rng(k).normal(size=(k, 4)).astype(np.float32)
        wanted = program.run(x, seed=2**64 - 1)
        got = [np.zeros((k, 4), np.float32), np.zeros(2, np.float32)]
        given = [tensor(x), *map(tensor, got)]
        mine.run(given, [scalar(None), scalar(2**64 - 1)])
        for a, w in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, w)
        assert mine.shape([given[0], None, None], 1) == (k, 4)
    x, y, z = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32), np.zeros(2, np.float32)
    for arrays, numbers in (
        ((x, y[:2], z), [None, 1]), ((x.astype(np.float64), y, z), [None, 1]), ((x, y, y[0, :2]), [None, 1]), ((x, y, z), [None, -1]),
        ((np.zeros((65, 4), np.float32), y, z), [None, 1]), ((x[:, ::2], y, z), [None, 1]), ((x, y, z), [2.5, 1.5]),
    ):  # fmt: skip
        with pytest.raises(HostError) as mine_error:
            mine.run([*map(tensor, arrays)], [*map(scalar, numbers)])
        with pytest.raises(bc.BaracudaError) as wanted_error:
            program.run(*arrays, **{} if numbers[0] is None else {"low": numbers[0]}, seed=numbers[1])
        if isinstance(numbers[1], int):
            assert str(mine_error.value) == str(wanted_error.value)
        assert mine_error.value.code == wanted_error.value.code
    for tensors, word in (
        ([], "3, as the program"),
        ([None, tensor(y), tensor(z)], "x: got nothing"),
        ([tensor(x), None, tensor(z)], "y: got"),
    ):
        with pytest.raises(HostError, match=word):
            mine.run(tensors, [scalar(None), scalar(1)])
    with pytest.raises(HostError, match="seed: got nothing"):
        mine.run([tensor(x), tensor(y), tensor(z)])
    for bad in ([], [tensor(held)] * 2, [tensor(held[:3])], [tensor(held.astype(np.float64))]):
        with pytest.raises(HostError, match="constant"):
            host.HostProgram(program.to_bytes(), bad)
    rng, data, fine = random.Random(4), program.to_bytes(), 0
    for _ in range(600):
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            host.HostProgram(bytes(changed[: rng.choice([len(data), rng.randrange(len(data))])]), [tensor(held)])
            fine += 1
        except HostError as e:
            assert e.status in (host.STATUS["invalid_problem"], host.STATUS["unsupported"])
    assert fine < 300


def test_results_from_the_hosts_allocator() -> None:
    held = np.arange(4, dtype=np.float32)
    program = small_program(held)
    mine, made = host.HostProgram(program.to_bytes(), [tensor(held)]), {}

    def allocate(_: Any, argument: int, shape: Any, rank: int, dtype: int, nbytes: int) -> int | None:
        sizes = tuple(shape[:rank])
        assert nbytes == 4 * int(np.prod(sizes)) and dtype == 2 | 32 << 8 | 1 << 16
        made[argument] = np.zeros(sizes, np.float32)
        return made[argument].ctypes.data

    x = np.ones((5, 4), np.float32)
    callback = host.ALLOCATE(allocate)
    options_ = host.ProgramOptions(c.sizeof(host.ProgramOptions), allocate=callback)
    mine.run([tensor(x), None, None], [scalar(None), scalar(3)], options_)
    for i, wanted in enumerate(program.run(x, seed=3)):
        np.testing.assert_array_equal(made[i + 1], wanted)
    options_.allocate = host.ALLOCATE(lambda *_: None)
    with pytest.raises(HostError, match="the host's allocator gave none for y"):
        mine.run([tensor(x), None, None], [scalar(None), scalar(3)], options_)
    with pytest.raises(HostError, match="bcu_program_options"):
        mine.run([tensor(x), None, None], [scalar(None), scalar(3)], host.ProgramOptions(8))


@pytest.mark.skipif(shutil.which("cc") is None or shutil.which("c++") is None, reason="no compiler of C and C++ here")
def test_the_examples_in_c(tmp_path: Path) -> None:
    """Compiled as C11 with all warnings, linked without Python, they compute what Python did."""
    run = subprocess.run
    config = [sys.executable, "-m", "baracuda", "config"]
    flags, libs = (
        run([*config, o], check=True, capture_output=True, text=True).stdout.split() for o in ("--cflags", "--libs")
    )
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    sanitized = ["-fsanitize=address,undefined"] if os.environ.get("BARACUDA_SANITIZER") == "address" else []
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
    for name, script, says in (
        ("run_plan", "write_plan.py", "bit for bit"),
        ("run_llama", "write_llama.py", "what Python generated"),
    ):
        run([sys.executable, EXAMPLE / script, tmp_path], check=True)
        run(
            ["cc", "-std=c11", *strict, *sanitized, EXAMPLE / f"{name}.c", *flags, *libs, "-o", tmp_path / name],
            check=True,
        )
        done = run([tmp_path / name, tmp_path], capture_output=True, text=True, env=environment)
        assert done.returncode == 0 and says in done.stdout, done.stdout + done.stderr
    (tmp_path / "softmax.json").write_text("{}")
    done = run([tmp_path / "run_plan", tmp_path], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "[document] schema" in done.stderr
    assert len(set((tmp_path / "text.txt").read_bytes())) > 20, "a text of few different bytes proves little"
    header = "#include <baracuda/baracuda.h>\nint main() { return int(bcu_abi_version() != BCU_ABI_VERSION); }\n"
    (tmp_path / "header.cpp").write_text(header)
    run(
        ["c++", "-std=c++17", *strict, *sanitized, tmp_path / "header.cpp", *flags, *libs, "-o", tmp_path / "header"],
        check=True,
    )
    assert run([tmp_path / "header"], env=environment).returncode == 0
