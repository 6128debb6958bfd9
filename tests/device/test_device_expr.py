"""Fused expressions on GPUs: the functions' bits, kernels kept on disk whatever lies there, and what happens without a
compiler. On the emulator, whose NVRTC and cudart compile and load the very texts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emulated
import numpy as np
import pytest
from fakecuda import on_devices

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.device import Device
from baracuda.ops.expr.expr import ExprDescriptor

RNG = np.random.default_rng(11)


@pytest.fixture(params=["cuda", "metal"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    if not Device(request.param).usable:
        pytest.skip(f"{request.param}: {Device(request.param).reason}")
    yield emulated.device_of(request.param)


# What loading and launching compiled kernels calls.
LOADING = ["cudaLibraryLoadData", "cudaLibraryGetKernel", "cudaLibraryUnload", "cudaLaunchKernel"]


def on(device: str, *shape: int) -> Any:
    return bc.asarray(RNG.normal(size=shape).astype(np.float32)).to(device)


def same(a: Any, b: Any) -> None:
    a, b = a.to("cpu").numpy(), b.to("cpu").numpy()
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(a, b)


def chain(x: Any, w: Any) -> Any:
    return F.relu(F.mul(F.sigmoid(F.add(F.mul(x, w), 1)), x))


def test_a_chain_is_one_kernel(device: str) -> None:
    expr = bc.expr.fuse(chain)
    for x, w in (
        (on(device, 30, 40), on(device, 40)),
        (on(device, 40, 30).T, on(device, 30, 1)),
        (on(device, 7), on(device)),
    ):
        told = expr.explain(x, w, device=device)
        assert (len(told.kernels), told.not_fused) == (1, ())
        same(expr(x, w), chain(x, w))
    assert expr.plan(x, w, device=device).sku.variant == "fused"


def test_views_outputs_and_mixed_elements(device: str) -> None:
    expr = bc.expr.fuse(lambda x, i: (F.where(F.gt(x, i), x, F.mul(x, 2)), F.lt(x, i), F.add(i, 3)))
    x, i = on(device, 33, 20), F.cast(F.mul(on(device, 33, 1), 5), "i16")
    found = expr(x[::-1, ::2], i)
    kept = x[::-1, ::2]
    wanted = (F.where(F.gt(kept, i), kept, F.mul(kept, 2)), F.lt(kept, i), F.add(i, 3))
    for a, b in zip(found, wanted, strict=True):
        same(a, b)


def test_what_is_not_fused_says_why(device: str) -> None:
    expr, x = bc.expr.fuse(lambda x: F.softmax(F.exp(x), -1) + F.sum(x * 2, -1, keepdim=True)), on(device, 5, 9)
    told = str(expr.explain(x, device=device))
    assert "softmax" in told and "sum" in told
    same(expr(x), F.add(F.softmax(F.exp(x), -1), F.sum(F.mul(x, 2), -1, keepdim=True)))


@pytest.mark.parametrize(
    ("shape", "axes", "cut"),
    [
        ((6, 50), -1, False),
        ((3, 4, 64), (-2, -1), False),
        ((900, 7), -1, False),
        ((2, 40001), -1, True),
        ((70001,), 0, True),
    ],
)
def test_reductions_are_folded_in_the_kernel(device: str, shape: tuple[int, ...], axes: Any, cut: bool) -> None:
    """As what lies in memory is, whether rows are whole packs, columns, or cut into strips."""

    def several(x: Any) -> Any:
        y = F.tanh(F.mul(x, 0.25))
        kept = F.mean(F.abs(x), axes, keepdim=True)
        return F.sum(y, axes), kept, F.amax(y, axes), F.amin(F.neg(x), axes), y

    expr = bc.expr.fuse(several)
    for x in (on(device, *shape), on(device, *(2 * n for n in shape))[(slice(None, None, 2),) * len(shape)]):
        told = expr.explain(x, device=device)
        assert (len(told.kernels), told.not_fused) == (1, ())
        for a, b in zip(expr(x), several(x), strict=True):
            same(a, b)
    made = expr.plan(bc.TensorSpec(shape), device=device)
    assert made.sku.variant == "fused_rows" and (made.workspace_size > 0) is cut


@pytest.mark.parametrize("shape", [(6, 50), (3, 4, 64), (900, 7), (2, 8191), (1, 1), (3, 8192)])
def test_functions_of_what_is_reduced(device: str, shape: tuple[int, ...]) -> None:
    def softmax_like(x: Any) -> Any:
        y = F.mul(x, 0.25)
        e = F.exp(F.sub(y, F.amax(y, -1, keepdim=True)))
        total = F.sum(e, -1, keepdim=True)
        return F.div(e, total), F.log(total), F.gt(total, 2)

    def norm_like(x: Any) -> Any:
        centred = F.sub(x, F.mean(x, -1, keepdim=True))
        return F.mul(centred, F.rsqrt(F.add(F.mean(F.square(centred), -1, keepdim=True), 1e-5)))

    for fn in (softmax_like, norm_like):
        expr = bc.expr.fuse(fn)
        for x in (on(device, *shape), on(device, *(2 * n for n in shape))[(slice(None, None, 2),) * len(shape)]):
            told = expr.explain(x, device=device)
            fused = shape[-1] < 8192
            assert (len(told.kernels) == 1 and not told.not_fused) is fused, told
            assert fused or "rows of at most 8191 elements" in str(told)
            found, wanted = expr(x), fn(x)
            for a, b in zip(found, wanted, strict=True) if isinstance(found, tuple) else ((found, wanted),):
                same(a, b)


def test_products_of_long_rows_are_apart(device: str) -> None:
    expr = bc.expr.fuse(lambda x: F.prod(F.add(F.mul(x, 0.01), 1), -1))
    for n, kernels in ((4096, 1), (4097, 1)):
        x = on(device, 3, n)
        told = expr.explain(x, device=device)
        assert len(told.kernels) == kernels and bool(told.not_fused) is (n > 4096)
        assert n <= 4096 or "rows of at most 4096 elements for prod" in told.not_fused[0]
        same(expr(x), F.prod(F.add(F.mul(x, 0.01), 1), -1))


def test_an_extremum_of_nothing_is_refused(device: str) -> None:
    desc = ExprDescriptor("inputs 1; neg f32 0; amax f32 1 1; out 2;", (3, 0), ((3, 0),), ("f32",), ("f32",), (1,))
    with pytest.raises(bc.UnsupportedError, match="at least one element along the reduced axes"):
        bc.plan(desc, device)


def test_a_graph_fuses_on_a_device(device: str) -> None:
    x, w = on(device, 6, 50), on(device, 50)
    graph = bc.trace(chain, bc.TensorSpec((6, 50), device=device), bc.TensorSpec((50,), device=device))
    plan = graph.compile()
    assert "expr" in str(plan.explain())
    same(plan.run(x, w), chain(x, w))


# --- kernels on disk ------------------------------------------------------------------------------------------------

CODE = """
import numpy as np, baracuda as bc, baracuda.functional as F, ctypes, os
x = bc.asarray(np.arange(6, dtype=np.float32)).to("cuda:1")
y = bc.expr.fuse(lambda x: F.exp(F.mul(x, 0.5)))(x)
assert (y.to("cpu").numpy() == F.exp(F.mul(x, 0.5)).to("cpu").numpy()).all()
print(ctypes.CDLL(os.environ["BARACUDA_CUDA_MODULE"]).bcu_fake_nvrtc_compiled())
"""


def start(**settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def compiled(cache: Path | str) -> int:
    """How many kernels a new process compiles, whose results are right."""
    process = start(BARACUDA_CACHE_DIR=str(cache))
    out, error = process.communicate()
    assert process.returncode == 0, error
    return int(out)


@on_devices
def test_kernels_are_kept_and_damaged_ones_compiled_again(tmp_path: Path) -> None:
    cache = tmp_path / "a" / "b"
    both = compiled(cache)  # the expression, and what finds out whether there is a compiler
    files = sorted(cache.iterdir())
    assert both == len(files) == 2 and compiled(cache) == 0
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    good = [f.read_bytes() for f in files]
    for k, bad in enumerate(
        (b"", good[0][:20], good[0][:-1], good[0] + b"x", b"\0" * len(good[0]), good[1], good[0][:32] + good[1][32:])
    ):
        files[0].write_bytes(bad)
        assert compiled(cache) == 1, k
        assert files[0].read_bytes()[:8] == good[0][:8] and compiled(cache) == 0
    flipped = bytearray(good[0])
    flipped[-5] ^= 1
    files[0].write_bytes(flipped)
    assert compiled(cache) == 1
    files[0].chmod(0o666)  # others may have written it
    assert compiled(cache) == 1 and compiled(cache) == 0
    files[0].unlink()
    files[0].symlink_to(files[1])
    assert compiled(cache) == 1 and not files[0].is_symlink()
    files[0].unlink()
    files[0].mkdir()
    assert compiled(cache) == 1
    assert not [f for f in cache.iterdir() if f.suffix != ".kernel"]


@on_devices
def test_a_folder_that_nobody_can_write(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for cache in (file, file / "below", "/proc/baracuda"):
        assert compiled(cache) == 2


@on_devices
@pytest.mark.parametrize(
    "fails",
    [
        "cudaLibraryLoadData:2",
        "cudaLibraryGetKernel:2",
        "cudaLibraryGetKernel:2,cudaLibraryUnload:1",
        "cudaLaunchKernel:1",
    ],
)
def test_a_kernel_that_cannot_be_loaded_is_an_error(tmp_path: Path, fails: str) -> None:
    process = start(BARACUDA_CACHE_DIR=str(tmp_path), BARACUDA_FAKE_CUDA_FAIL=fails)
    _, error = process.communicate()
    assert process.returncode == 1
    assert (
        "DeviceError: expression(): cuda:1: " in error
        and f"{fails.split(':')[0]}: " in error
        and "(CUDA error 719)" in error
    )


@on_devices
@pytest.mark.parametrize(
    "fails", ["cudaLibraryLoadData:1", "cudaLibraryGetKernel:1", "cudaLibraryGetKernel:1,cudaLibraryUnload:1"]
)
def test_without_a_kernel_to_try_functions_run_one_after_the_other(tmp_path: Path, fails: str) -> None:
    process = start(BARACUDA_CACHE_DIR=str(tmp_path), BARACUDA_FAKE_CUDA_FAIL=fails)
    _, error = process.communicate()
    assert process.returncode == 0, error


@on_devices
def test_processes_share_a_folder(tmp_path: Path) -> None:
    processes = [start(BARACUDA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    for process in processes:
        _, error = process.communicate()
        assert process.returncode == 0, error
    assert compiled(tmp_path) == 0 and len(list(tmp_path.iterdir())) == 2


@on_devices
def test_without_a_compiler_functions_run_one_after_the_other() -> None:
    code = """
import numpy as np, baracuda as bc, baracuda.functional as F
x = bc.asarray(np.arange(6, dtype=np.float32)).to("cuda")
expr = bc.expr.fuse(lambda x: F.exp(F.mul(x, 0.5)))
print(expr.explain(x, device="cuda"))
assert (expr(x).to("cpu").numpy() == F.exp(F.mul(x, 0.5)).to("cpu").numpy()).all()
from baracuda.ops.expr.expr import ExprDescriptor
try:
    bc.plan(ExprDescriptor("inputs 1; exp f32 0; out 1;", (6,), ((6,),), ("f32",), ("f32",)), "cuda")
except bc.UnsupportedError as error:
    print(error)
"""
    env = os.environ | {"BARACUDA_NVRTC_LIBRARY": "/nowhere/libnvrtc.so"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 fused kernels" in done.stdout and done.stdout.count("NVRTC") >= 2 and "pip install" in done.stdout


# --- Metal ----------------------------------------------------------------------------------------------------------

METAL_CODE = """
import numpy as np, baracuda as bc, baracuda.functional as F
x = bc.asarray(np.arange(6, dtype=np.float32)).to("metal")
expr = bc.expr.fuse(lambda x: F.exp(F.mul(x, 0.5)))
print(expr.explain(x, device="metal"))
assert (expr(x).to("cpu").numpy() == F.exp(F.mul(x, 0.5)).to("cpu").numpy()).all()
"""
on_metal = pytest.mark.skipif(not Device("metal").usable, reason=f"metal: {Device('metal').reason}")
on_the_fake = pytest.mark.skipif("BARACUDA_FAKE_METAL_TEXTS" not in os.environ, reason="no fake Metal")


def on_fake_metal(**settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", METAL_CODE], env=os.environ | settings, capture_output=True, text=True)


@on_metal
@pytest.mark.parametrize(
    "program", ["inputs 1; cast f64 0; exp f64 1; cast f32 2; out 3;", "inputs 1; exp f32 0; out 1; cast f64 1; out 2;"]
)
def test_metal_refuses_f64(program: str) -> None:
    results = ("f32", "f64")[: program.count("out")]
    with pytest.raises(bc.UnsupportedError) as raised:
        bc.plan(ExprDescriptor(program, (6,), ((6,),), ("f32",), results), "metal")
    assert "no f64, which Metal does not have" in str(raised.value) and "f32, or on the cpu" in str(raised.value)


@on_metal
@on_the_fake
@pytest.mark.parametrize(
    "fails", ["newLibraryWithSource", "newFunctionWithName", "newComputePipelineStateWithDescriptor"]
)
def test_a_text_that_metal_does_not_compile(fails: str) -> None:
    done = on_fake_metal(BARACUDA_FAKE_METAL_FAIL=f"{fails}:1")  # of what finds out whether there is a compiler
    assert done.returncode == 0 and "0 fused kernels" in done.stdout, done.stderr
    done = on_fake_metal(BARACUDA_FAKE_METAL_FAIL=f"{fails}:2")
    assert done.returncode == 1 and "DeviceError: expression" in done.stderr and "fused" in done.stderr


@on_metal
@on_the_fake
def test_metals_own_archives_keep_kernels(tmp_path: Path) -> None:
    for _ in range(2):
        done = on_fake_metal(BARACUDA_CACHE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert len(list(tmp_path.glob("fused-*.metalarchive"))) == 2


@on_metal
@on_the_fake
def test_a_text_is_translated_again_where_it_was_not_kept(tmp_path: Path) -> None:
    kept = tmp_path / "texts"
    for _ in range(2):
        done = on_fake_metal(BARACUDA_FAKE_METAL_TEXTS=str(kept))
        assert done.returncode == 0, done.stderr
        assert len(list(kept.glob("*.so"))) == 2
