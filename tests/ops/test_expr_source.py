"""The texts of fused kernels: legal Metal, what NVRTC compiles for a card, and nothing joined that is rounded apart."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.expr.source import text_of
from baracuda.ops.expr.expr import ExprDescriptor
from baracuda.ops.expr.expr_ref import _programs
from metal import legality

ROOT = Path(__file__).resolve().parents[2]
ELEMENTS = (Element.F32, Element.F16, Element.BF16, Element.F64, Element.I32, Element.I64, Element.U8, Element.BOOL)


def programs(e: Element) -> list[ExprDescriptor]:
    """Programs that have all functions of an element."""
    return [
        ExprDescriptor(text, (3, 4), ((3, 4), (4,), (3, 1)), (e, e, e), (e,) * len(names))
        for text, names, _ in _programs(e)
    ]


def reductions(e: Element) -> list[ExprDescriptor]:
    """All reductions of an element beside what is reduced; products alone, which f64 reads in other packs; functions of them."""
    every = f"inputs 2; mul {e} 0 1; sum {e} 2 2; mean {e} 2 2; amax {e} 2 2; amin {e} 0 2; prod {e} 2 2; "
    shapes = ((3, 4, 5), ((3, 4, 5), (5,)), (e, e))
    return [
        ExprDescriptor(every + " ".join(f"out {k};" for k in range(2, 8)), *shapes, (e,) * 6, (0, 2, -2, 2, 2, 2)),
        ExprDescriptor(f"inputs 2; mul {e} 0 1; prod {e} 2 1; out 3;", *shapes, (e,), (1,)),
        ExprDescriptor(
            f"inputs 2; mul {e} 0 1; amax {e} 2 1; prod {e} 2 1; number {e} 2; mul {e} 3 5; sub {e} 2 6; sum {e} 7 1; "
            f"div {e} 7 8; cast bool 8; out 9; out 6; out 10; out 4;",
            *shapes, (e, e, Element.BOOL, e), (0, 1, -1, 1),
        ),
    ]  # fmt: skip


# --- by the real NVRTC ----------------------------------------------------------------------------------------------


@cache
def nvrtc() -> Any:
    """NVRTC of its wheel; None where it is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / "cu13" / "lib" / "libnvrtc.so.13"
        if file.exists():
            return ctypes.CDLL(str(file))
    return None


needs_nvrtc = pytest.mark.skipif(nvrtc() is None, reason="pip install nvidia-cuda-nvrtc")


def compiled(text: str, target: str, ptx: bool = False) -> bytes:
    """A text as the cuda module has it compiled: its headers and options, which are read from the sources."""
    backend = ROOT / "csrc" / "backends" / "cuda"
    header = (backend / "nvrtc_headers.h").read_text()
    names = re.findall(r'"(\w[\w.]*)"', header[header.index("kHeaderNames") : header.index("kHeaders[]")])
    parts = ["#pragma once\n", *re.findall(r'R"text\((.*?)\)text"', header, re.S)]
    assert len(names) == len(parts) == 4
    listed = re.search(r"kOptions\[\] = \{(.*?)\};", (backend / "compile.cu").read_text(), re.S)
    assert listed
    options = [f"--gpu-architecture={target}", *re.findall(r'"(.*?)"', listed[1])]
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()

    def strings(of: list[str]) -> Any:
        return (ctypes.c_char_p * len(of))(*(s.encode() for s in of))

    made = library.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), b"fused.cu", len(names), strings(parts), strings(names)
    )
    assert made == 0
    code = library.nvrtcCompileProgram(program, len(options), strings(options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert code == 0, log.value.decode()[:2000]
    kind = "PTX" if ptx else "CUBIN"
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    out = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{kind}")(program, out)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return out.raw


@needs_nvrtc
@pytest.mark.drawn(4)
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_nvrtc_compiles_every_function(element: Element) -> None:
    for desc in programs(element):
        assert compiled(text_of(desc, "cuda", True), "sm_80").startswith(b"\x7fELF")


@needs_nvrtc
@pytest.mark.parametrize("element", [e for e in ELEMENTS if e.is_float], ids=str)
def test_nvrtc_compiles_reductions(element: Element) -> None:
    for desc in reductions(element):
        assert compiled(text_of(desc, "cuda", True), "sm_80").startswith(b"\x7fELF")


@needs_nvrtc
@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_nvrtc_compiles_for_newer_cards(target: str) -> None:
    assert compiled(text_of(programs(Element.F32)[0], "cuda", True), target).startswith(b"\x7fELF")


@needs_nvrtc
def test_a_product_and_a_sum_are_rounded_apart() -> None:
    for element, name in ((Element.F32, "f32"), (Element.F64, "f64")):
        desc = ExprDescriptor(
            f"inputs 3; mul {element} 0 1; add {element} 3 2; out 4;", (9,), ((9,),) * 3, (element,) * 3, (element,)
        )
        text = compiled(text_of(desc, "cuda", True), "compute_80", ptx=True).decode()
        assert f"mul.rn.{name}" in text and f"add.rn.{name}" in text and "fma." not in text


# --- Metal ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not legality.available(), reason=f"no {legality.CLANG}: apt-get install it")
@pytest.mark.parametrize("element", [Element.F32, Element.BF16, Element.I32], ids=str)
def test_metal_takes_the_text(element: Element, tmp_path: Path) -> None:
    file = tmp_path / "fused.metal"
    for desc in programs(element) + (reductions(element) if element.is_float else []):
        file.write_text(text_of(desc, "metal", True))
        assert legality.problems(file) == []


def test_metal_is_told_not_to_join() -> None:
    text = text_of(programs(Element.F32)[0], "metal", True)
    assert text.index("#pragma METAL fp contract(off)") < text.index("struct Add")


# --- what people see ------------------------------------------------------------------------------------------------


def test_source_of_an_expression() -> None:
    expr = bc.expr.fuse(lambda x, w: F.tanh(x * w + 2))
    x, w = bc.TensorSpec((4, 5), "bf16"), bc.TensorSpec((5,))
    assert expr.source(x, w) == expr.plan(x, w).descriptor.program  # type: ignore[attr-defined]
    for device in ("cuda", "metal"):
        text, whole = expr.source(x, w, device=device), expr.source(x, w, device=device, whole=True)
        assert whole.endswith(text) and len(whole) > 50_000
        for part in ("unary::Tanh::f(v", "binary::Mul::f(", "Plus::f(", "read<simt::bf16, float>", "BCU_ENTRY"):
            assert part in text
    assert "metal_stdlib" in expr.source(x, w, device="metal", whole=True)


def test_source_of_reductions() -> None:
    expr = bc.expr.fuse(lambda x: (F.mean(F.exp(x), -1), F.prod(F.neg(x), -1), F.exp(x)))
    text = expr.source(bc.TensorSpec((4, 5), "f64"), device="cuda")
    for part in ("SumFold<double>::add<2>", "ProductFold<double>", "values0_4(", "put<double, true>(p, 0", "FusedFold"):
        assert part in text
    assert text.count("write<double, double>(p, 2") == 1  # what is not reduced is written once
    halves = expr.source(bc.TensorSpec((4, 5), "bf16"), device="metal")
    assert "put<simt::bf16, true>(p, 0" in halves and "values0_2(" not in halves


def test_numbers_are_no_part_of_a_text() -> None:
    x = bc.TensorSpec((7,))
    two, three = (bc.expr.fuse(fn).source(x, device="cuda") for fn in (lambda x: F.exp(x * 2), lambda x: F.exp(x * 3)))
    assert two == three
