"""Attention by cuDNN: which problems and calls go to it, on the fake one (tests/harness/emulator/fakecuda/fake_cudnn.cpp)
that checks and carries out what it is given."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakecuda import MODULE, calls, failing, on_devices

import baracuda as bc
from baracuda import Dim
from baracuda.describe.elements import Element
from baracuda.ops.attention.attention import AttentionDescriptor
from baracuda.ops.attention.attention_ref import _case
from baracuda.ops.attention.scores import CausalAlignment
from baracuda.prove.reference import Case, reference_module, worst
from baracuda.prove.verify import execute, verify
from conftest import SEED

OP = "scaled_dot_product_attention"
SHAPE = (1, 4, 40, 16)
PLAIN = AttentionDescriptor(SHAPE, SHAPE, SHAPE, element="f16")
MOST_KEPT = 16  # graphs that the module keeps for the next question


def case(direction: str = "forward", **options: Any) -> Case:
    return _case(direction, Element.F16, SHAPE, SHAPE, SHAPE, False, options, np.random.default_rng(5))


def by_cudnn(made: Any, what: Case, layout: str = "dense") -> bool:
    """Whether a run of a case goes to cuDNN; its results are right either way."""
    before = calls("cudnnExecute")
    outcome = execute(what, made, layout)
    expected = reference_module(OP).reference(what)
    for p in made.signature.outputs:
        share, text = worst(outcome.outputs[p.name], expected[p.name], made.precision_guarantee, Element.F16, p.element)
        assert share <= 1, f"{p.name}: {text}"
    assert not any(outcome.stray.values())
    return calls("cudnnExecute") > before


def refused(desc: Any, want: str, sku: str = "cudnn", code: str = "problem", **options: Any) -> bc.Refusal:
    """The reason why a row does not take a problem."""
    limit = bc.PlanPreference(sku=sku, deterministic=options.pop("deterministic", False))
    with pytest.raises(bc.UnsupportedError) as caught:
        bc.plan(desc, "cuda", limit, **options)
    found = [r for r in caught.value.refusals if r.code == code and want in f"{r.got} {r.want} {r.hint}"]
    assert found, str(caught.value)
    return found[0]


@on_devices
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("direction", "variant"), [("forward", "cudnn"), ("backward", "cudnn"), ("backward", "cudnn_unordered")]
)
def test_rows_keep_their_guarantee(direction: str, variant: str, element: str) -> None:
    """In a layout that cuDNN takes, and in others, which the portable bodies do within the same plan."""
    before = calls("cudnnExecute")
    layouts = ("dense", "contiguous", "transposed")
    report = verify(OP, direction, Element.coerce(element), variant, layouts, SEED, "cuda:1", most_elements=40_000)
    assert report.cases >= 4 and not report.problems, "\n".join(report.problems[:10])
    assert calls("cudnnExecute") - before >= report.cases


@on_devices
def test_select_prefers_it() -> None:
    for desc in (PLAIN, PLAIN.backward(), replace(PLAIN, save_lse=False), replace(PLAIN, element="bf16", causal=True)):
        made = bc.plan(desc, "cuda:1")
        assert made.sku.variant == "cudnn" and made.sku.precision_guarantee.deterministic
        assert not made.sku.precision_guarantee.batch_invariant
        assert made.workspace_size > 0
        again = type(made).from_bytes(made.to_bytes())
        assert again.sku == made.sku and again.workspace_size == made.workspace_size
    assert bc.plan(PLAIN, "cuda", bc.PlanPreference(batch_invariant=True)).sku.variant == "alone"
    assert bc.plan(PLAIN, "cuda", bc.PlanPreference(max_error=16)).sku.variant == "simt"
    assert bc.plan(replace(PLAIN, element="f32"), "cuda").sku.variant == "simt"


@on_devices
def test_refusals_say_why() -> None:
    wide, odd = (1, 4, 40, 136), (1, 4, 40, 12)
    refused(AttentionDescriptor(wide, wide, wide, element="f16"), "at most 128")
    refused(AttentionDescriptor(odd, odd, odd, element="f16"), "multiples of 8")
    refused(AttentionDescriptor(SHAPE, SHAPE, odd, element="f16"), "multiples of 8")
    refused(replace(PLAIN, mask_shape=(40, 40)), "no mask")
    for fields, want in (({"window_left": 8}, "no window"), ({"window_right": 8}, "no window"),
                         ({"softcap": 5.0}, "caps scores"), ({"dropout": True}, "drops weights"),
                         ({"alibi_shape": (4,)}, "no ALiBi")):  # fmt: skip
        refused(replace(PLAIN, **fields), want)
        refused(replace(PLAIN, **fields).backward(), want)
        assert bc.plan(replace(PLAIN, **fields), "cuda").sku.variant == "simt"
    refused(replace(PLAIN, q_shape=(1, 4, Dim("n", max=40), 16)), "known when the plan is selected")
    refused(replace(PLAIN, q_shape=(1, 4, 1, 16)), "more than 16 query rows")
    refused(replace(PLAIN, q_shape=(0, 4, 40, 16), k_shape=(0, 4, 40, 16), v_shape=(0, 4, 40, 16)), "not empty")
    few = (1, 4, 24, 16)
    refused(replace(PLAIN, k_shape=few, v_shape=few, causal=True), "top_left")
    top_left = replace(PLAIN, k_shape=few, v_shape=few, causal=True, causal_alignment=CausalAlignment.TOP_LEFT)
    assert bc.plan(top_left, "cuda").sku.variant == "cudnn"
    refused(replace(PLAIN, element="f32"), "f16", code="element")
    refused(PLAIN.backward(), "False", "cudnn_unordered", "deterministic", deterministic=True)
    huge = (64, 64, 8192, 128)
    refused(AttentionDescriptor(huge, huge, huge, element="f16"), "2^31")


@on_devices
def test_sums_in_a_fixed_order_have_a_limit() -> None:
    """They take memory for every score: long sequences go to the portable row, or are asked for in any order."""
    long = (1, 32, 8192, 64)
    desc = AttentionDescriptor(long, long, long, element="f16").backward()
    assert "cudnn_unordered" in refused(desc, "2147483648 bytes").hint
    assert bc.plan(desc, "cuda").sku.variant == "simt"
    made = bc.plan(desc, "cuda", bc.PlanPreference(sku="cudnn_unordered"))
    assert not made.precision_guarantee.deterministic
    assert bc.plan(PLAIN.backward(), "cuda", bc.PlanPreference(max_workspace_bytes=4096)).sku.variant == "simt"


@on_devices
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_calls_that_it_does_not_take(direction: str) -> None:
    """Other layouts, addresses and scalars than the graph's run on the portable bodies, with the same meaning."""
    plain = case(direction)
    made = bc.plan(plain.descriptor, "cuda:1")
    assert made.sku.variant == "cudnn"
    assert by_cudnn(made, plain)
    for layout in ("contiguous", "transposed", "sliced", "negative", "rows_apart"):  # "contiguous" begins at byte 34
        assert not by_cudnn(made, plain, layout), layout
    assert by_cudnn(made, case(direction, kv_len=40)) and by_cudnn(made, case(direction, scale=0.3))
    assert not by_cudnn(made, case(direction, kv_len=33))
    assert not by_cudnn(made, case(direction, scale=-0.5))
    assert not by_cudnn(made, case(direction, scale=0.0))
    with pytest.raises(bc.IndexOutOfRangeError):
        execute(Case(plain.descriptor, plain.tensors, {"kv_len": 41}), made, "dense")


@on_devices
def test_strides_that_are_named() -> None:
    """Heads inside of positions, q, k and v in one tensor: a graph is built for what select is told."""
    packed = np.random.default_rng(3).normal(size=(2, 40, 3, 4, 16)).astype(np.float16)
    desc = AttentionDescriptor(*((2, 4, 40, 16),) * 3, element="f16", save_lse=False)
    whole = bc.asarray(packed, device="cuda:1")
    views = {n: whole[:, :, i].transpose(0, 2, 1, 3) for i, n in enumerate("qkv")}
    outs = {"out": bc.empty((2, 40, 4, 16), "f16", device="cuda:1").transpose(0, 2, 1, 3)}
    made = bc.plan(desc, "cuda:1", layout={n: t.strides for n, t in (views | outs).items()})
    again = type(made).from_bytes(made.to_bytes())
    assert made.sku.variant == "cudnn" and again.sku == made.sku
    scratch = bc.empty(made.workspace_size, "u8", device="cuda:1")
    for which in (made, again):
        before = calls("cudnnExecute")
        which.run(**views, **outs, workspace=scratch)
        bc.Device("cuda:1").check()
        assert calls("cudnnExecute") == before + 1
    q, k, v = (packed[:, :, i].swapaxes(1, 2).astype(np.float64) for i in range(3))
    want = reference_module(OP).reference(Case(desc, {"q": q, "k": k, "v": v}))["out"]
    got = outs["out"].transpose(0, 2, 1, 3).to("cpu").numpy().swapaxes(1, 2)
    share, text = worst(got, want, made.precision_guarantee, Element.F16, Element.F16)
    assert share <= 1, text
    assert not by_cudnn(made, Case(desc, {"q": q, "k": k, "v": v})), "contiguous tensors are not what it was told"
    for strides in ((2560, 640, 16, 2), (2560, 640, 12, 1), (0, 640, 16, 1), (-2560, 640, 16, 1), (2**40, 640, 16, 1)):
        assert refused(desc, "multiples of 8", layout={"q": strides}).field == "layout"
        assert bc.plan(desc, "cuda", layout={"q": strides}).sku.variant == "simt"
    assert refused(desc, "multiples of 16", alignment=8).field == "alignment"
    assert bc.plan(desc, "cuda", alignment=8).sku.variant == "simt"
    assert bc.plan(desc, "cuda", alignment=32).sku.variant.startswith("cudnn")
    for wrong in ((1, 2, 3), [1, 2, 3], (1, 2, 3, 4.0), "dense"):
        with pytest.raises(bc.InvalidProblemError, match="layout"):
            bc.plan(desc, "cuda", layout={"q": wrong})


@on_devices
def test_scalars_on_the_device() -> None:
    made = bc.plan(PLAIN, "cuda:1")
    tensors = {n: bc.asarray(v.astype(np.float16), device="cuda:1") for n, v in case().tensors.items()}
    outs = {"out": bc.empty(SHAPE, "f16", device="cuda:1"), "lse": bc.empty(SHAPE[:3], "f32", device="cuda:1")}
    scratch = bc.empty(made.workspace_size, "u8", device="cuda:1")
    before = calls("cudnnExecute")
    n = bc.asarray(np.asarray(33, np.int64), device="cuda:1")
    made.run(**tensors, **outs, kv_len=n, workspace=scratch)
    bc.Device("cuda:1").check()
    want = reference_module(OP).reference(case(kv_len=33))
    assert np.allclose(outs["out"].to("cpu").numpy(), want["out"].value, atol=2e-3)
    assert calls("cudnnExecute") == before


@on_devices
def test_a_graph_is_built_once() -> None:
    shape = (1, 2, 56, 24)  # of no other test
    desc, before = AttentionDescriptor(shape, shape, shape, element="f16"), calls("cudnnBuild")
    plans = [bc.plan(desc, "cuda:1") for _ in range(3)]
    assert desc.plan_class.query(desc, "cuda:1").sku == plans[0].sku
    assert calls("cudnnBuild") - before == 1
    bc.plan(desc, "cuda:0")
    assert calls("cudnnBuild") - before == 2, "a graph belongs to its device"


@on_devices
def test_graphs_go_with_their_plans() -> None:
    graphs = ctypes.CDLL(MODULE).bcu_fake_cudnn_graphs
    graphs.restype = ctypes.c_int64
    shapes = [(1, 1, 20 + i, 8) for i in range(MOST_KEPT + 5)]
    plans = [bc.plan(AttentionDescriptor(s, s, s, element="f16"), "cuda") for s in shapes]
    assert graphs() >= len(plans)
    plans.clear()
    gc.collect()
    assert graphs() <= MOST_KEPT


@on_devices
def test_failures_of_the_library() -> None:
    shape = (1, 2, 48, 24)  # of no other test: its graph is not there yet
    desc = AttentionDescriptor(shape, shape, shape, element="f16")
    with failing("cudnnBuild:1"):
        made = bc.plan(desc, "cuda:1")
    assert made.sku.variant == "simt", "what cuDNN cannot do now goes to the next row"
    assert "simt" in str(made.explain().chosen)
    made = bc.plan(desc, "cuda:1")
    assert made.sku.variant == "cudnn", "and is tried again"
    what = _case("forward", Element.F16, shape, shape, shape, False, {}, np.random.default_rng(5))
    with failing("cudnnExecute:1"), pytest.raises(bc.DeviceError, match="cuDNN"):
        execute(what, made, "dense")
    assert by_cudnn(made, what)


def test_the_real_library_takes_the_graphs() -> None:
    """Those of tests/harness/cudnn/plans.py, for cards that are not here, where the wheels are."""
    folder = Path(__file__).parent / "harness/cudnn"
    done = subprocess.run([sys.executable, folder / "plans.py"], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
