"""Faults sown into the Metal backend's own Objective-C++: the fake Metal finds each, at one op's work from Python."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from faulty import ROOT, Fault, link, module, replaced, run

from emulator import build as emulator

# Each compiles a file.
pytestmark = [
    pytest.mark.skipif(bool(emulator.unable_metal()), reason=emulator.unable_metal()),
    pytest.mark.drawn(4),
]
RUNTIME = ROOT / "csrc/backends/metal"


@dataclass(frozen=True)
class Wrong:
    """One passage of a file, what takes its place, and what is said of it."""

    name: str
    file: str
    right: str
    wrong: str
    says: str
    pool: str = "0"  # BARACUDA_METAL_POOL_BYTES
    fails: str = ""  # BARACUDA_FAKE_METAL_FAIL
    nth: int = 0
    variant: str = "plain"  # of the emulator


DROPPED = "Own() { [object_ release]; }"
WRONG = [
    Wrong("parameters are not bound", "launch.mm",
          "[encoder setBytes:params length:entry.param_bytes atIndex:0];", "", "UNBOUND"),
    Wrong("parameters of another size", "launch.mm", "length:entry.param_bytes", "length:entry.param_bytes - 8", "WRONG SIZE"),
    Wrong("another index", "launch.mm", "atIndex:0", "atIndex:1", "WRONG INDEX"),
    Wrong("a buffer that is not named", "launch.mm", "[encoder useResource:b->buffer.get() usage:kUsage];", "", "OUT OF BOUNDS"),
    Wrong("tensors alone are named", "launch.mm", "residents.add(params, entry.param_bytes);", "", "OUT OF BOUNDS"),
    Wrong("groups of too many threads", "launch.mm", "MTLSizeMake(NSUInteger(threads), 1, 1)",
          "MTLSizeMake(NSUInteger(threads) * 32, 1, 1)", "TOO MANY THREADS"),
    Wrong("no pipeline", "launch.mm", "[encoder setComputePipelineState:state_of(*p)];", "", "NO PIPELINE"),
    Wrong("fast math", "library.mm", "setFastMathEnabled:NO", "setFastMathEnabled:YES", "fast math is on"),
    Wrong("a text that does not compile", "library.mm", "compiled(g, read.str(), path)",
          'compiled(g, read.str() + "}", path)', "embedding.metal: program_source:1:1: error"),
    Wrong("a copy that does not wait", "memory.mm", "wait_until(g, lock, block->used);\n  if (const", "if (const",
          "the host touches memory that work under way uses|not what was computed"),
    Wrong("memory is given again too early", "memory.mm", "if (b->used < oldest && serves", "if (serves",
          "not what was computed", pool="9999999"),
    Wrong("memory goes too early", "launch.mm", "    b->used = serial;\n", "", "touches|not what was computed", pool="9999999"),
    Wrong("memory that is not there", "memory.mm", "if (!out.buffer) return false;", "", "null pointer",
          fails="newBufferWithLength:2"),
    Wrong("a fill past the end", "memory.mm", "NSMakeRange(to - block->address, NSUInteger(bytes))",
          "NSMakeRange(to - block->address, NSUInteger(bytes) + 1)", "PAST THE END"),
    Wrong("an encoder that is not ended", "queues.mm", "  [s.encoder.get() endEncoding];\n", "", "ENCODER NOT ENDED"),
    Wrong("a blit that is not ended", "memory.mm", "[blit endEncoding];", "", "ENCODER NOT ENDED", nth=2),
    Wrong("committed twice", "queues.mm", "[s.open.get() commit];", "[s.open.get() commit];\n  [s.open.get() commit];",
          "COMMITTED TWICE"),
    Wrong("never committed", "queues.mm", "  [s.open.get() commit];\n", "", "WAITED TOO EARLY"),
    Wrong("a stream does not wait for an event", "queues.mm",
          "    [buffer encodeWaitForEvent:e.event.get() value:e.value];\n", "", "not what was computed"),
    Wrong("streams are not ordered", "queues.mm",
          "[s.open.get() encodeWaitForEvent:o.order.get() value:o.under_way.back().serial];", "(void)o;", "not what was computed"),
    Wrong("an event that is never signalled", "queues.mm", "  [s.open.get() encodeSignalEvent:event value:value];\n", "",
          "DEADLOCK"),
    Wrong("nothing is released", "runtime.h", DROPPED, "Own() {}", "left behind|kept to be given again"),
    Wrong("released once too often", "runtime.h", DROPPED, "Own() { [object_ release]; [object_ release]; }",
          "USE AFTER RELEASE|exit status -11"),  # objects that are not the fake's own crash
    Wrong("not retained", "runtime.h", "return Own([object retain]);", "return Own(object);", "USE AFTER RELEASE"),
    Wrong("a queue that lacks what its stream was given", "queues.mm",
          "    commit(g, s);\n    *queue", "    *queue", "not what was computed"),
    Wrong("a failure that nobody is told", "queues.mm",
          "  if (g.told.empty()) return Status::Ok;\n", "  return Status::Ok;\n", "no DeviceError", fails="execution:1"),
    Wrong("a fault that stays", "module.mm", "    std::memset(word, 0, sizeof found);\n", "", "told twice"),
    Wrong("another library's buffer is not kept", "memory.mm", "Own<id<MTLBuffer>>::kept(buffer);\n      block.address",
          "Own<id<MTLBuffer>>(buffer);\n      block.address", "USE AFTER RELEASE"),
    Wrong("another library's buffer is forgotten too early", "memory.mm", "!b.adopted && b.used < oldest", "!b.adopted",
          "touches|not what was computed"),
    Wrong("another library's buffer is kept for ever", "memory.mm", "--found->second.adopted;", "", "left behind"),
    Wrong("an offset that is lost", "memory.mm", "*offset = int64_t(address_of(address) - block->address)", "*offset = 0",
          "not what was computed"),
    Wrong("memory that others had is given again", "memory.mm", "if (block.lent) return Status::Ok;", "",
          "kept to be given again", pool="9999999"),
    Wrong("parts of pages", "memory.mm", "const uint64_t whole = (uint64_t(bytes) + page - 1) / page * page;",
          "const uint64_t whole = uint64_t(bytes);", "PAGES"),
    Wrong("pages that are private", "memory.mm", "options:MTLResourceStorageModeShared\n" + 67 * " " + "deallocator",
          "options:MTLResourceStorageModePrivate\n" + 67 * " " + "deallocator", "not shared"),
    Wrong("pages go too early", "memory.mm", "if (found->second.pages) wait_until(g, lock, found->second.used);", "",
          "touches|not what was computed"),
    Wrong("a run that is in pieces", "queues.mm", "s.dispatches >= kBatch && !s.whole", "s.dispatches >= kBatch", "in pieces"),
    Wrong("a run that is not given", "queues.mm", "s.whole = false;\n    commit(g, s);", "s.whole = false;", "in pieces"),
    Wrong("a rehearsal that runs", "launch.mm", "if (rehearsing) return Status::Ok;", "", "no memory of this device|left behind"),
    Wrong("a rehearsal for ever", "launch.mm", "rehearsing = on;", "rehearsing = true;", "not what was computed|0 command"),
    Wrong("a shift of too many bits", "module.mm", "found.row >> 32", "found.row >> 64", "exit status -4"),
    Wrong("memory of the host's after it has gone", "memory.mm",
          "Block block = std::move(found->second);\n  g.blocks.erase(found);",
          "g.blocks.erase(found);\n  Block block = std::move(found->second);", "heap-use-after-free", variant="sanitize"),
    Wrong("a status word that is not read", "module.mm", "if (!raised) return", "if (raised) return", "no IndexOutOfRange|got index 0"),
]  # fmt: skip

# Everything that the runtime does, with rows taken from a table; "kept" in the end where all was right.
WORK = r"""
import ctypes, gc, mmap, os, sys
import numpy as np
import baracuda as bc
import baracuda.functional
from fakemetal import Producer, calls, copy_in, live, problems
from host import lib
X, IDS = np.arange(5 * 16, dtype=np.float32).reshape(5, 16), np.array([3, 0, 4, 4, 1], np.int64)
WANTED = os.environ.get("BARACUDA_FAKE_METAL_FAIL", "")
KIND = bc.DeviceMemoryError if WANTED.startswith("newBufferWithLength") else bc.DeviceError if WANTED else None
PLAN = bc.plan(bc.EmbeddingDescriptor(X.shape, IDS.shape), device="metal")

def put(x):
    return bc.asarray(x, device="metal")

def check(got, want):
    if not np.array_equal(got.to("cpu").numpy(), want):
        sys.exit("not what was computed")

def streams():
    x, ids, y, z = put(X), put(IDS), put(X), bc.zeros(X.shape, device="metal")
    one, two = bc.Stream("metal", non_blocking=True), bc.Stream("metal", non_blocking=True)
    event = bc.Event("metal")
    PLAN.run(ids=ids, weight=x, y=y, stream=one)
    event.record(one)
    event.wait(two)
    PLAN.run(ids=ids, weight=y, y=z, stream=two)
    two.synchronize()
    check(z, X[IDS][IDS])
    PLAN.run(ids=ids, weight=x, y=z, stream=two)
    check(z, X[IDS])  # a copy waits for all work that has been given that memory, in any stream
    ordered = bc.Stream("metal")
    copied, w = bc.zeros(X.shape, device="metal"), bc.zeros(X.shape, device="metal")
    copied.copy_from(x)
    PLAN.run(ids=ids, weight=copied, y=w, stream=ordered)
    PLAN.run(ids=ids, weight=w, y=z)
    check(z, X[IDS][IDS])

def memory():
    ids, y, fixed = put(IDS), put(X), put(X)
    one, two = bc.Stream("metal", non_blocking=True), bc.Stream("metal", non_blocking=True)
    for k in range(3):
        x = put(X + k)
        PLAN.run(ids=ids, weight=x, y=y, stream=one)
        del x
        other = bc.empty(X.shape, device="metal")  # as large as what has just gone, in another stream, which is earlier
        PLAN.run(ids=ids, weight=fixed, y=other, stream=two)
        two.synchronize()
        check(other, X[IDS])
        again = put(-X)
        check(y, (X + k)[IDS])
        check(again, -X)

def status():
    x, ids, y = put(X), put(np.array([1, 9, 0, 0, 0], np.int64)), put(X)
    PLAN.run(ids=ids, weight=x, y=y)
    for text in ("no IndexOutOfRangeError", "told twice"):
        try:
            bc.Device("metal").check()
            told = False
        except bc.IndexOutOfRangeError:
            told = True
        if told != text.startswith("no"):
            sys.exit(text)

def foreign():
    ids, y, out = put(IDS), put(X), Producer(np.zeros_like(X), 32)
    again = Producer(np.zeros_like(X), 32, handle=out.handle)
    PLAN.run(ids=ids, weight=Producer(X, 16), y=y)
    check(y, X[IDS])
    PLAN.run(ids=ids, weight=y, y=out)
    check(bc.from_dlpack(again), X[IDS][IDS])  # the same buffer, while work under way writes to it
    check(bc.from_dlpack(y[2:].__dlpack__(max_version=(1, 0))), X[IDS][2:])
    lent = put(X)
    before = settled()["FakeBuffer"]
    lent.__dlpack__(max_version=(1, 0))
    del lent
    if settled()["FakeBuffer"] != before - 1:
        sys.exit("memory that others had is kept to be given again")

def pages():
    ids, y = put(IDS), np.frombuffer(mmap.mmap(-1, 4096), np.float32)[: X.size].reshape(X.shape)
    out = bc.from_dlpack(y, device="metal", copy=False)
    PLAN.run(ids=ids, weight=put(X), y=out)
    del out  # waits
    if not np.array_equal(y, X[IDS]):
        sys.exit("not what was computed")

def runs():
    def chain(x, ids):
        for _ in range(70):
            x = bc.functional.embedding(ids, x)
        return x
    x, ids, y = put(X), put(IDS), put(X)
    graph = bc.trace(chain, bc.TensorSpec(X.shape, device="metal"), bc.TensorSpec(IDS.shape, "i64", device="metal"))
    compiled = graph.compile(capture=True)
    bc.Device("metal").synchronize()
    before = calls("commit")
    compiled.run(x, ids, out=y)
    if calls("commit") - before != 1:
        sys.exit("a run in pieces: " + str(calls("commit") - before))
    want = X
    for _ in range(70):
        want = want[IDS]
    check(y, want)

def hosts():
    stream, queue = bc.Stream("metal", non_blocking=True), ctypes.c_void_p()
    ids, x, y = put(IDS), put(X), put(X)
    out, copied = Producer(np.zeros_like(X)), Producer(np.zeros_like(X))
    PLAN.run(ids=ids, weight=x, y=Producer(X, handle=out.handle), stream=stream)
    lib.bcu_stream_queue(b"metal", ctypes.c_void_p(stream.handle), ctypes.byref(queue), None)
    copy_in(queue.value, out, copied)
    PLAN.run(ids=ids, weight=Producer(X, handle=copied.handle), y=y, stream=stream)
    check(y, X[IDS][IDS])
    out.release(), copied.release()

def work():
    streams(), memory(), status(), foreign(), pages(), runs(), hosts()

def settled():
    gc.collect()
    bc.Device("metal").synchronize()
    return live()

try:
    work()
except bc.BaracudaError as e:
    print(e)
    sys.exit(0 if KIND and isinstance(e, KIND) and not problems() else 1)
if KIND:
    sys.exit(f"no {KIND.__name__}")
before = settled()
work()
if os.environ["BARACUDA_METAL_POOL_BYTES"] == "0" and settled() != before:
    sys.exit(f"left behind: {live()}, it was {before}")
if found := problems():
    sys.exit(found)
print("kept")
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders with a module of a variant as it is, and the objects that it is made of."""

    @cache
    def made(variant: str) -> Path:
        folder = tmp_path_factory.mktemp(variant)
        module(Fault("as it is", "embedding", "embedding", "forward", backend="metal"), folder, variant)
        return folder

    return made


def with_fault(wrong: Wrong, sound: Path, folder: Path) -> Path:
    """The module with the runtime's files that the fault is in compiled again."""
    built = ROOT / "build" / f"emulator-{wrong.variant}"
    text = replaced(wrong.file, (RUNTIME / wrong.file).read_text(), wrong.right, wrong.wrong, wrong.nth)
    changed = folder / "backends/metal" / wrong.file
    changed.parent.mkdir(parents=True)
    changed.write_text(text)
    names = [p.name for p in RUNTIME.glob("*.mm")] if wrong.file.endswith(".h") else [wrong.file]
    fresh = {}
    for entry in json.loads((built / "compile_commands.json").read_text()):
        name = Path(entry["file"]).name
        if name in names and "probe_metal.dir" in entry["output"]:
            words = [w for w in shlex.split(entry["command"]) if w != "ccache"]
            words = [*words[: words.index("-o")], "-w"]
            source = changed if name == wrong.file else entry["file"]
            run([words[0], f"-I{folder}", *words[1:], "-c", source, "-o", folder / f"{name}.o"], built)
            fresh[f"{name}.o"] = folder / f"{name}.o"
    kept = [p for part in ("probe_metal", "engine") for p in built.glob(f"CMakeFiles/{part}.dir/**/*.o")]
    objects = [*fresh.values(), *(p for p in kept if p.name not in fresh), sound / "unit.o", sound / "text.o"]
    out = folder / "lib/libfaulty_metal_emulated.so"
    out.parent.mkdir()
    (folder / "metal").symlink_to(sound / "metal")
    link(objects, built, out)
    return out


def outcome(path: Path, wrong: Wrong) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("BARACUDA_")}
    env |= emulator.METAL_SETTINGS | {"BARACUDA_METAL_MODULE": str(path), "BARACUDA_METAL_POOL_BYTES": wrong.pool}
    env |= {"BARACUDA_FAKE_METAL_FAIL": wrong.fails} if wrong.fails else {}
    env |= emulator.sanitizer_environment() if wrong.variant == "sanitize" else {}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests/harness"), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, env=env, timeout=120)
    return f"{done.stdout}{done.stderr}exit status {done.returncode}"


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: w.name)
def test_a_fault_is_found(wrong: Wrong, sound: Callable[[str], Path], tmp_path: Path) -> None:
    found = outcome(with_fault(wrong, sound(wrong.variant), tmp_path), wrong)
    assert re.search(wrong.says, found), found[-3000:]
    assert "exit status 0" not in found, found


@pytest.mark.parametrize(("variant", "pool", "fails"), dict.fromkeys((w.variant, w.pool, w.fails) for w in WRONG))
def test_without_a_fault_nothing_is_found(variant: str, pool: str, fails: str, sound: Callable[[str], Path]) -> None:
    as_it_is = Wrong("", "", "", "", "", pool, fails, variant=variant)
    found = outcome(sound(variant) / "lib/libfaulty_metal_emulated.so", as_it_is)
    assert "exit status 0" in found, found[-3000:]
    assert fails or "kept" in found
