"""Generated tests: one item per (op, direction, element), from the SKU table and the specs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "harness"))
# Beside other processes of pytest-xdist, threads that spin while they wait take the cores from those that work: half of all
# processor time. libgomp reads it when it is loaded.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import baracuda
from baracuda import _core, _index
from baracuda.choose.sku import rows
from baracuda.describe.elements import Element

_core.set_thread_pacing(False)  # bits are compared over numbers of threads that really run, on busy machines, too

SEED = int(os.environ.get("BARACUDA_TEST_SEED", "20261121"))
OPS = Path(__file__).resolve().parents[1] / "python/baracuda/ops"
FULL = os.environ.get("BARACUDA_FULL", "") == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("baracuda")
    group.addoption("--families", default="", help="of the generated tests, only those of these families' ops (a,b)")
    group.addoption("--light", type=int, default=0, help="so many of the generated tests, of f32, bf16 and i32 only")
    group.addoption(
        "--touched", default="all", help="tests of these families and files (ci/changed.py), a share of the rest"
    )
    group.addoption("--share", default="", help="which tenth (k/10), third (k/3), ...; none leaves the rest out")


def op_of(item: pytest.Item) -> str | None:
    """The op that a generated test is about."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    return params.get("op", params.get("op_name"))


@cache
def family_of_file(path: Path) -> str:
    """The family whose own tests a file of tests/ops holds: that of the module whose name is the longest part of its name."""
    stem = path.stem.removeprefix("test_")
    found = [p for p in OPS.glob("*/*.py") if stem == p.stem or stem.startswith(f"{p.stem}_")]
    return max(found, key=lambda p: len(p.stem)).parent.name if path.parent.name == "ops" and found else ""


def touched_by(config: pytest.Config) -> Callable[[pytest.Item], bool]:
    """Whether a test concerns what was changed, or is of the share that is run at any rate.

    Where everything was touched, a share is one of what is generated for each op and element; all other tests are run.
    """
    touched = set(filter(None, config.getoption("--touched").split(",")))
    ops = {row["op"] for row in rows() if row["family"] in touched}

    share = config.getoption("--share") or "0/10"
    parts = int(share.partition("/")[2]) if share != "none" else 0

    def chosen(item: pytest.Item) -> bool:
        whole = {item.path.relative_to(config.rootpath).as_posix(), family_of_file(item.path)}
        return in_share(item, parts) or bool(whole & touched) or op_of(item) in ops

    def chosen_of_all(item: pytest.Item) -> bool:
        drawn = not config.getoption("--share") or op_of(item) is None or in_share(item, parts)
        return drawn and not left_to_others(item, config.getoption("--share"))

    def in_share(item: pytest.Item, parts: int) -> bool:
        return parts > 0 and crc32(f"{share} {item.nodeid}".encode()) % parts == 0

    return chosen_of_all if touched == {"all"} else chosen


def left_to_others(item: pytest.Item, share: str) -> bool:
    """Whether a test of the kind that takes long is left to another run, where runs take shares of such tests."""
    mark = item.get_closest_marker("drawn")
    drawn = mark is None or not share or crc32(f"{share} {item.nodeid}".encode()) % mark.args[0] == 0
    return not drawn and not FULL


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    families = set(filter(None, config.getoption("--families").split(",")))
    ops = {row["op"] for row in rows() if row["family"] in families}
    light = (Element.F32, Element.BF16, Element.I32)
    touched = touched_by(config)

    def chosen(item: pytest.Item) -> bool:
        callspec = getattr(item, "callspec", None)
        params = callspec.params if callspec else {}
        other = config.getoption("--light") and params.get("element", Element.F32) not in light
        return not other and (not families or op_of(item) in {None, *ops}) and touched(item)

    kept = [item for item in items if chosen(item)]
    if most := config.getoption("--light"):
        generated = [item for item in kept if hasattr(item, "callspec") and "op" in item.callspec.params]
        spread = {generated[i * len(generated) // most] for i in range(most)} if len(generated) > most else {*generated}
        kept = [item for item in kept if item in spread or item not in generated]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_report_header() -> str:
    return f"baracuda: seed {SEED} (BARACUDA_TEST_SEED), {'all layouts' if FULL else 'three layouts per case'} (BARACUDA_FULL)"


def table_items() -> list[tuple[str, str, Element]]:
    """Every (op, direction, element) that a cpu row declares and a spec describes."""
    found = {}
    for row in rows():
        if row["backend"] == "cpu" and row["op"] in _index.OPS:
            for e in row["elements"]:
                found[row["op"], row["direction"], Element(e)] = None
    return sorted(found, key=lambda t: (t[0], t[1], int(t[2])))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"backend", "op", "direction", "element"} <= set(metafunc.fixturenames):
        import emulated

        found = emulated.items(FULL, SEED)
        metafunc.parametrize(
            ("backend", "op", "direction", "element"), found, ids=["-".join(map(str, t)) for t in found]
        )
    elif {"op", "direction", "element"} <= set(metafunc.fixturenames):
        items = table_items()
        only = getattr(metafunc.function, "directions", ("forward", "backward"))
        items = [t for t in items if t[1] in only]
        metafunc.parametrize(("op", "direction", "element"), items, ids=["-".join(map(str, t)) for t in items])
    if "op_name" in metafunc.fixturenames:
        metafunc.parametrize("op_name", sorted(_index.OPS))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of its own per test, from the printed seed and the test's name."""
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture(scope="module", autouse=True)
def cheap_collections(request: pytest.FixtureRequest) -> None:
    """Tests collect garbage often: without this, each time some hundred thousand objects of earlier tests, torch and jax are visited."""
    gc.collect()
    if request.path.parent.name != "device":  # these count what is on devices, which cycles of older objects hold, too
        gc.freeze()


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Whatever a test does on the emulated devices, no memory, stream or work of it stays there."""
    from fakecuda import live

    def settle() -> None:
        for device in baracuda.devices():
            if device.backend == "cuda":
                device.synchronize()
        gc.collect()

    settle()
    before = live()
    yield
    settle()
    assert live() == before, "device memory, streams or work were left behind"


@pytest.fixture
def op_spec(op_name: str):
    return next(op for op in import_module(_index.OPS[op_name]).OPS if op.name == op_name)
