"""The CPU parallel runtime and the CPU probe, compiled on their own: no baracuda build is needed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "tests" / "native"
SOURCES = [ROOT / "csrc" / "backends" / "cpu" / name for name in ("parallel.cpp", "pool.cpp", "probe.cpp")]
FLAGS = ["-std=c++20", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'csrc'}"]
CASES = ("cover", "odd_arguments", "counts", "limit", "nested", "sums", "callers", "busy", "fork")
LINUX = sys.platform.startswith("linux")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def build(out: Path, main: str, *flags: str) -> Path:
    """Compiles one test program (or library) together with the runtime's sources."""
    command = ["g++", *FLAGS, *flags, str(NATIVE / main), *map(str, SOURCES), "-o", str(out), "-ldl", "-pthread"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def clean_env(**settings: str) -> dict[str, str]:
    """The environment without what steers threads and levels, plus `settings`.

    Teams are kept although the machine may be busy: many cases look at what several threads do.
    """
    drop = ("BARACUDA_", "OMP_", "GOMP_", "LD_PRELOAD")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    return kept | {"BARACUDA_PACE_THREADS": "0"} | settings


def run(*command: object, **settings: str) -> str:
    done = subprocess.run(
        [str(c) for c in command], check=False, capture_output=True, text=True, timeout=120, env=clean_env(**settings)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("parallel")
    build(out / "parallel_test", "parallel_test.cpp")
    build(out / "pool_test", "parallel_test.cpp", "-DBCU_OWN_POOL")
    build(out / "probe_test", "probe_test.cpp")
    build(out / "pace_test", "pace_test.cpp")
    build(out / "shares_test", "shares_test.cpp")
    build(out / "capi.so", "parallel_capi.cpp", "-shared", "-fPIC", "-fvisibility=hidden")
    build(
        out / "capi_alone.so",
        "parallel_capi.cpp",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        '-DBCU_LIBGOMP="libgomp-nowhere.so.9"',
    )
    return out


@pytest.mark.parametrize("case", CASES)
def test_case(programs: Path, case: str) -> None:
    run(programs / "parallel_test", case)


@pytest.mark.parametrize("case", CASES)
def test_case_on_own_threads(programs: Path, case: str) -> None:
    """What systems without libgomp have."""
    run(programs / "pool_test", case)


def test_pace(programs: Path) -> None:
    run(programs / "pace_test")


def test_shares(programs: Path) -> None:
    run(programs / "shares_test")


@pytest.mark.skipif(not LINUX, reason="the thread runtime is libgomp")
def test_stalled_teams_are_given_up(programs: Path) -> None:
    run(programs / "parallel_test", "paced", BARACUDA_PACE_THREADS="1")
    run(programs / "parallel_test", "paced", BARACUDA_PACE_THREADS="")
    run(programs / "parallel_test", "unpaced")


@pytest.mark.parametrize("value", ["2", "on", "-1", "00"])
def test_malformed_pace(programs: Path, value: str) -> None:
    out = run(programs / "parallel_test", "settings", BARACUDA_PACE_THREADS=value)
    assert f"BARACUDA_PACE_THREADS must be 0 or 1, got '{value}'" in out


@pytest.mark.skipif(not LINUX, reason="the thread runtime is libgomp")
def test_sanitized(tmp_path: Path) -> None:
    """Every case under ThreadSanitizer. parallel.cpp annotates the fork and join in libgomp; nothing is suppressed."""
    source = tmp_path / "empty.cpp"
    source.write_text("int main() { return 0; }\n")
    empty = tmp_path / "empty"
    for command in (["g++", "-fsanitize=thread", str(source), "-o", str(empty)], [str(empty)]):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip("ThreadSanitizer does not run here: " + done.stderr)
    program = build(tmp_path / "tsan", "parallel_test.cpp", "-O1", "-fsanitize=thread")
    pool = build(tmp_path / "pool", "parallel_test.cpp", "-O1", "-fsanitize=thread", "-DBCU_OWN_POOL")
    for case in CASES:
        for which in (program, pool):
            run(which, case, TSAN_OPTIONS="atexit_sleep_ms=50")  # the default is a second for each process
    run(program, "paced", TSAN_OPTIONS="atexit_sleep_ms=50", BARACUDA_PACE_THREADS="1")


def test_no_static_initialisers(programs: Path) -> None:
    """Loading the library runs no code of ours."""
    for source in SOURCES:
        out = programs / (source.stem + ".o")
        subprocess.run(["g++", *FLAGS, "-c", str(source), "-o", str(out)], check=True)
        assert "init_array" not in run("objdump", "-h", out), source.name


# --- thread count settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"BARACUDA_NUM_THREADS": "5"}, 5),
        ({"BARACUDA_NUM_THREADS": "5", "OMP_NUM_THREADS": "3"}, 5),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"BARACUDA_NUM_THREADS": "20"}, 20),
        ({}, len(os.sched_getaffinity(0)) if LINUX else 1),
    ],
)
@pytest.mark.skipif(not LINUX, reason="the thread runtime is libgomp")
def test_default_count(programs: Path, settings: dict[str, str], expected: int) -> None:
    run(programs / "parallel_test", "counts", EXPECT_THREADS=str(expected), **settings)


@pytest.mark.parametrize("value", ["0", "-1", "two", "2x", "1000000", " "])
def test_malformed_count(programs: Path, value: str) -> None:
    out = run(programs / "parallel_test", "settings", BARACUDA_NUM_THREADS=value)
    assert f"BARACUDA_NUM_THREADS must be an integer from 1 to 1024, got '{value}'" in out


@pytest.mark.parametrize("value", ["", "1", "1024"])
def test_well_formed_count(programs: Path, value: str) -> None:
    assert run(programs / "parallel_test", "settings", BARACUDA_NUM_THREADS=value).startswith("ok\n")


# --- which libgomp

PRELUDE = """
import ctypes, os, sys

# Milliseconds for a second worker: it may have to wait for a core of a busy machine; where none is wanted, one would come at once.
LONG, SHORT = 20000, 500

def load(path):
    lib = ctypes.CDLL(path)
    lib.bcu_test_thread_runtime.restype = ctypes.c_char_p
    return lib

def mapped():
    return {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}

def child(body):
    pid = os.fork()
    if pid == 0:
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            body()
        except BaseException as e:
            print(repr(e), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def use_torch():
    import torch
    torch.set_num_threads(2)
    x = torch.zeros(1 << 20)
    for _ in range(4):
        x = x + 1
    assert x.sum().item() == 4 << 20

path = sys.argv[1]
"""

RUNTIME_CASES = {
    "torch_first": """
use_torch()
lib = load(path)
assert lib.bcu_test_region(LONG) == 1008
assert lib.bcu_test_thread_runtime().startswith(b"shared: ")
use_torch()
assert len(mapped()) == 1, mapped()
""",
    "torch_last": """
lib = load(path)
assert lib.bcu_test_region(LONG) == 1008
assert lib.bcu_test_thread_runtime().startswith(b"system: ")
use_torch()
assert lib.bcu_test_region(LONG) == 1008
assert len(mapped()) == 1, mapped()
""",
    "torch_between": """
lib = load(path)
use_torch()
assert lib.bcu_test_region(LONG) == 1008
assert lib.bcu_test_thread_runtime().startswith(b"shared: ")
assert len(mapped()) == 1, mapped()
""",
    # As torch in this process has it now, so that libgomp never has to change the team's size.
    "torch_count_is_followed": """
import torch
lib = load(path)
for n in (1, 2, 1, 3):
    torch.set_num_threads(n)
    assert lib.bcu_test_num_threads() == n
    assert lib.bcu_test_region(LONG if n > 1 else SHORT) == (1008 if n > 1 else 8)
lib.bcu_test_set_num_threads(2)
assert lib.bcu_test_num_threads() == 2
""",
    # First loaded in a child whose parent had a team: the team stayed behind, a region would wait for it for ever.
    "loaded_after_fork": """
use_torch()
def body():
    lib = load(path)
    assert lib.bcu_test_region(SHORT) == 8
    assert lib.bcu_test_num_threads() == 1
    assert lib.bcu_test_thread_runtime() == b"serial (libgomp was loaded before this process was forked)"
child(body)
""",
    # A prefork server's worker: nothing was inherited, so nothing has to be serial.
    "libgomp_loaded_in_child": """
def body():
    use_torch()
    lib = load(path)
    assert lib.bcu_test_region(LONG) == 1008
    assert lib.bcu_test_thread_runtime().startswith(b"shared: ")
child(body)
""",
    "forked_with_torch": """
use_torch()
lib = load(path)
assert lib.bcu_test_region(LONG) == 1008
def body():
    assert lib.bcu_test_region(SHORT) == 8
    assert lib.bcu_test_thread_runtime() == b"serial (forked child)"
child(body)
assert lib.bcu_test_region(LONG) == 1008
""",
}


@pytest.mark.skipif(not LINUX, reason="the thread runtime is libgomp")
@pytest.mark.parametrize("case", RUNTIME_CASES)
def test_beside_torch(programs: Path, case: str) -> None:
    pytest.importorskip("torch")
    run(sys.executable, "-c", PRELUDE + RUNTIME_CASES[case], programs / "capi.so", **need_two(case))


def need_two(case: str) -> dict[str, str]:
    """Two OpenMP threads also on a machine with one core, except where the default itself is looked at."""
    return {} if case == "torch_count_is_followed" else {"OMP_NUM_THREADS": "2"}


def system_libgomp(programs: Path) -> str:
    out = run(programs / "parallel_test", "settings")
    assert "system: " in out, out
    return out.split("system: ")[1].strip()


@pytest.mark.skipif(not LINUX, reason="the thread runtime is libgomp")
def test_renamed_copy_is_shared(programs: Path, tmp_path: Path) -> None:
    """A wheel's libgomp-<hash>.so with its own SONAME, as auditwheel grafts it."""
    renamed = tmp_path / "libgomp-ab.1"
    original = Path(system_libgomp(programs)).read_bytes()
    assert len("libgomp-ab.1") == len("libgomp.so.1")
    renamed.write_bytes(original.replace(b"libgomp.so.1\0", b"libgomp-ab.1\0"))
    code = """
held = ctypes.CDLL(sys.argv[2])
lib = load(path)
assert lib.bcu_test_region(LONG) == 1008
assert lib.bcu_test_thread_runtime() == b"shared: " + sys.argv[2].encode(), lib.bcu_test_thread_runtime()
assert len(mapped()) == 1, mapped()
"""
    run(sys.executable, "-c", PRELUDE + code, programs / "capi.so", renamed, OMP_NUM_THREADS="2")


@pytest.mark.skipif(not LINUX, reason="the thread runtime is libgomp")
def test_bundled_copy(programs: Path) -> None:
    path = system_libgomp(programs)
    code = """
lib = load(path)
lib.bcu_test_set_bundled(sys.argv[2].encode())
assert lib.bcu_test_region(LONG) == 1008
assert lib.bcu_test_thread_runtime() == b"bundled: " + sys.argv[2].encode(), lib.bcu_test_thread_runtime()
"""
    run(sys.executable, "-c", PRELUDE + code, programs / "capi_alone.so", path, OMP_NUM_THREADS="2")


@pytest.mark.parametrize("bundled", ["", "/nowhere/libgomp.so.1"])
def test_serial_without_libgomp(programs: Path, bundled: str) -> None:
    code = """
lib = load(path)
lib.bcu_test_set_bundled(sys.argv[2].encode())
lib.bcu_test_set_num_threads(4)
assert lib.bcu_test_region(SHORT) == 8
assert lib.bcu_test_num_threads() == 1
assert lib.bcu_test_thread_runtime().startswith(b"serial (no libgomp"), lib.bcu_test_thread_runtime()
assert not mapped()
"""
    run(sys.executable, "-c", PRELUDE + code, programs / "capi_alone.so", bundled)


# --- the probe


def probe(programs: Path, **settings: str) -> dict[str, str]:
    lines = run(programs / "probe_test", "print", **settings).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_level_rules(programs: Path) -> None:
    run(programs / "probe_test", "levels")


@pytest.mark.skipif(platform.machine() != "x86_64" or not LINUX, reason="compares with /proc/cpuinfo flags")
def test_level_agrees_with_kernel(programs: Path) -> None:
    """The kernel lists a flag only where it saves the registers, by code of its own."""
    line = next(x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("flags"))
    flags = set(line.split(":")[1].split())
    need = {
        "v2": "pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm",
        "v3": "fma movbe avx f16c bmi1 avx2 bmi2 abm",
        "v4": "avx512f avx512dq avx512cd avx512bw avx512vl",
        "v4x": "avx512_vnni avx512_bf16",
    }
    expected = "generic"
    for level, names in need.items():
        if not set(names.split()) <= flags:
            break
        expected = level
    got = probe(programs)
    assert (got["hardware"], got["best"], got["error"]) == (expected, expected, "")
    model = next(x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name"))
    assert got["model"] == model.split(":", 1)[1].strip()


def test_level_from_environment(programs: Path) -> None:
    hardware = probe(programs)["hardware"]
    levels = ["neon", "neon_dot"] if hardware.startswith("neon") else ["v2", "v3", "v4", "v4x"]
    usable = levels[: levels.index(hardware) + 1] if hardware in levels else []
    for level in usable:
        got = probe(programs, BARACUDA_CPU_LEVEL=level)
        assert (got["best"], got["error"]) == (level, "")
    lacking = next(level for level in ("neon", "v4x", "v2") if level not in usable)
    for value, why in (
        (lacking, "this machine lacks that level"),
        ("V3", "unknown level"),
        ("generic", "unknown level"),
    ):
        got = probe(programs, BARACUDA_CPU_LEVEL=value)
        assert got["best"] == hardware
        assert got["error"] == f"BARACUDA_CPU_LEVEL={value}: {why}; usable here: {', '.join(usable) or 'none'}"
    assert probe(programs, BARACUDA_CPU_LEVEL="")["error"] == ""


@pytest.mark.skipif(not LINUX, reason="compares with the affinity mask")
def test_cores_and_caches(programs: Path) -> None:
    got = probe(programs)
    cpus = os.sched_getaffinity(0)
    assert int(got["usable_cpus"]) == len(cpus)
    assert 1 <= int(got["physical_cores"]) <= len(cpus)
    assert 4096 <= int(got["l1d"]) <= int(got["l2"]) <= 1 << 30
    assert 1 << 18 <= int(got["l3"]) <= 1 << 34
    one = min(cpus)
    pinned = subprocess.run(
        [str(programs / "probe_test"), "print"],
        capture_output=True,
        text=True,
        env=clean_env(),
        preexec_fn=lambda: os.sched_setaffinity(0, {one}),
        check=True,
    )
    assert "usable_cpus=1\nphysical_cores=1\n" in pinned.stdout
