"""What people get wrong in their first hour: the message says which argument, what came, what is wanted or what to do."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from hostile import ODD
from mistakes import MISTAKES

import baracuda as bc
import baracuda.functional as F
from baracuda import _index
from baracuda.choose.operators import ATEN, ONNX, ONNX_ABSENT, own_name
from baracuda.describe.calls import SPELLINGS, spellings
from baracuda.describe.names import ABSENT, OTHERWISE, VIEWS, about, near

x = np.arange(12, dtype=np.float32).reshape(3, 4)
SOFTMAX = bc.SoftmaxDescriptor("softmax", (4, 8))
ALL_NAMES = [*_index.FUNCTIONS, *_index.OPS]


# --- one mechanism: other names of arguments --------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(_index.FUNCTIONS))
def test_every_function_takes_numpys_names_of_arguments(name: str) -> None:
    """A call by them gets as far as one by the function's own names, and says the same."""
    fn = getattr(F, name)
    parameters = inspect.signature(fn).parameters
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for other, own in spellings(parameters).items():
        before: list[Any] = []
        for p in positional:
            if p.name == own:
                break
            before.append(x.copy() if p.default is p.empty else p.default)
        value = 1 if own in ("dim", "dims", "axis") else True if own.startswith("keepdim") else x.copy()

        def told(key: str, given: Any = value, args: Any = before) -> str:
            try:
                return type(fn(*args, **{key: given})).__name__
            except bc.UsageError as error:
                assert "unexpected" not in str(error), error
                return f"{type(error).__name__}: {error}"
            except bc.BaracudaError as error:
                return f"{type(error).__name__}: {error}"

        assert told(other) == told(own), f"{other} for {own}"


def test_names_of_numpy_give_the_same_numbers_and_gradients() -> None:
    assert (F.sum(x, axis=1, keepdims=True) == x.sum(axis=1, keepdims=True)).all()
    assert (F.argmax(x, axis=0) == x.argmax(0)).all() and (
        F.median(x, axis=1, keepdims=True)[0] == F.median(x, 1, True)[0]
    ).all()
    for fn, options in ((F.softmax, {"axis": 0}), (F.std, {"axis": 1, "keepdims": True}), (F.amax, {"axis": (0, 1)})):
        y, pull = bc.vjp(fn, x, **options)
        z, same = bc.vjp(fn, x, *options.values()) if fn is not F.std else bc.vjp(fn, x, 1, keepdim=True)
        assert np.array_equal(pull(y), same(z))
    assert "axis" not in spellings(["input", "axis"])
    assert set(SPELLINGS) >= {"axis", "keepdims", "keepdim"}


# --- calls that a signature does not allow ----------------------------------------------------------------------------


def descriptors() -> list[type]:
    return [getattr(bc, name) for name in sorted(_index.DESCRIPTORS) if name.endswith("Descriptor")]


@pytest.mark.parametrize("name", sorted(_index.FUNCTIONS))
def test_wrong_calls_of_functions_name_function_and_argument(name: str) -> None:
    fn = getattr(F, name)
    name = fn.__name__  # of an alias, the function's own
    parameters = inspect.signature(fn).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if needed:
        with pytest.raises(bc.UsageError, match=rf"^{name}\(\) misses its argument '{needed[0]}'"):
            fn()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        with pytest.raises(bc.UsageError, match=rf"^{name}\(\) got an unexpected keyword argument 'nonsense'"):
            fn(*[3] * len(needed), nonsense=1)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        with pytest.raises(bc.UsageError, match=rf"^{name}\(\) takes at most \d+ positional"):
            fn(*[3] * 30)
    if needed:
        with pytest.raises(bc.UsageError, match=rf"^{name}\(\) got '{needed[0]}' twice"):
            fn(3, **{needed[0]: 3})


@pytest.mark.parametrize("cls", descriptors(), ids=lambda c: c.__name__)
def test_wrong_calls_of_descriptors_name_descriptor_and_field(cls: Any) -> None:
    name = cls.__name__
    with pytest.raises(bc.UsageError, match=rf"^{name}\(\) got an unexpected keyword argument 'nonsense'"):
        cls(nonsense=1)
    with pytest.raises(bc.UsageError, match=rf"^{name}\(\) takes at most"):
        cls(*[1] * 40)
    needed = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    if needed:
        with pytest.raises(bc.UsageError, match=rf"^{name}\(\) misses its argument '{needed[0]}'"):
            cls()
    field = cls.__dataclass_fields__
    for odd in (*ODD, np.zeros(3), int, b"x", bc.Dim("n", 8)):
        for one in field:
            try:
                cls(**dict.fromkeys(needed, (4, 8)) | {one: odd})
            except bc.BaracudaError:
                continue


@pytest.mark.parametrize(
    "call",
    [bc.plan, bc.vjp, bc.Dim, bc.TensorSpec, bc.empty, bc.SoftmaxPlan.select, bc.SoftmaxPlan.query, bc.set_num_threads],
    ids=lambda c: c.__name__,
)
def test_wrong_calls_of_public_names(call: Any) -> None:
    with pytest.raises(bc.UsageError, match=rf"^{call.__name__}\(\) misses its argument"):
        call()


# --- names ------------------------------------------------------------------------------------------------------------


def test_only_near_names_are_suggested() -> None:
    for wrong in ("reshape", "lstm", "svd", "attention", "gru", "fft", "qr", "det"):
        assert "did you mean" not in about(wrong, ALL_NAMES)
        assert not hasattr(F, wrong)
    for typo, meant in (("sotfmax", "softmax"), ("layernorm", "layer_norm"), ("LayerNorm", "layer_norm"), ("crossentropy", "cross_entropy"),
                        ("sigmiod", "sigmoid"), ("conv_2d", "conv2d"), ("max_pool_2d", "max_pool2d"), ("Relu", "relu")):  # fmt: skip
        assert near(typo, ALL_NAMES) == meant, typo
    for name in [n for n in sorted(_index.FUNCTIONS) if len(n) > 6][::9]:
        dropped = name[:3] + name[4:]
        assert dropped in ALL_NAMES or near(dropped, ALL_NAMES) is not None, dropped
    for unlike in ("transformer", "optimizer", "resnet", "xyz", "ab", "q"):
        assert near(unlike, ALL_NAMES) is None


def test_lists_of_names_agree_with_what_there_is() -> None:
    """What is said not to be there is not, and what is called otherwise is."""
    assert [n for n in ABSENT | VIEWS if n in ALL_NAMES] == []
    assert {n for n in OTHERWISE.values() if n not in ALL_NAMES} == set()
    assert [n for n in OTHERWISE if n in _index.FUNCTIONS] == []
    with pytest.raises(AttributeError, match=r"it is not in this version"):
        F.lstm  # noqa: B018
    with pytest.raises(AttributeError, match=r"arrays have it themselves, as in x\.reshape"):
        F.reshape  # noqa: B018
    with pytest.raises(AttributeError, match="it is called 'scaled_dot_product_attention' here"):
        F.attention  # noqa: B018
    with pytest.raises(bc.InvalidProblemError, match="not in this version"):
        bc.capabilities("svd")


def test_names_of_onnx_and_aten() -> None:
    known = _index.OPS.keys() | _index.STEPS.keys()
    assert {n: ours for n, ours in [*ONNX.items(), *ATEN.items()] if ours not in known} == {}
    defs = pytest.importorskip("onnx.defs")
    operators = {s.name for s in defs.get_all_schemas() if s.domain == ""}
    absent = {n for names in ONNX_ABSENT.values() for n in names}
    assert operators == ONNX.keys() | absent and not ONNX.keys() & absent
    for name in (
        "LayerNormalization",
        "aten::native_layer_norm",
        "aten.layer_norm.default",
        "torch.ops.aten.layer_norm",
    ):
        found = bc.capabilities(name, device="cpu")
        assert found.question.op == "layer_norm" and {c.sku.op for c in found} == {"layer_norm"}
    assert own_name("aten::add_.Tensor", known) == "add" and own_name("aten::no_such", known) is None
    with pytest.raises(bc.InvalidProblemError, match=r"ONNX's Loop is control flow"):
        bc.capabilities("Loop")


# --- queries about machines that are not here -------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda:sm_80", "cuda:sm_90", "metal:apple9", "cpu:v2", "cpu:v3"])
def test_query_about_architectures(device: str) -> None:
    """As `capabilities` answers, with the kernel and its workspace or every reason."""
    found = bc.SoftmaxPlan.query(SOFTMAX, device=device)
    rows = bc.capabilities("softmax", direction="forward", element="f32", device=device)
    assert found and found.sku in [c.sku for c in rows if not c.support.refusals]
    assert found.workspace_size >= 0 and f"workspace {found.workspace_size} bytes" in str(found)
    wide = bc.SoftmaxPlan.query(bc.SoftmaxDescriptor("softmax", (4, 8), element="f64"), device=device)
    assert bool(wide) == (not device.startswith("metal"))
    assert wide or any(r.code == "element" and r.got == "f64" for r in wide.refusals)


def test_answers_say_what_they_depend_on() -> None:
    found = bc.capabilities("conv", device="cpu")
    assert all(c.support.verdict == "depends" for c in found)
    assert (
        str(found).count("depends on the element") == len(found) == found.to_markdown().count("depends on the element")
    )
    exact = bc.capabilities("conv", element="f32", device="cpu")
    assert "depends on sizes and attributes of the descriptor" in str(exact) or all(c.support for c in exact)


# --- typical mistakes -------------------------------------------------------------------------------------------------

DEVICES = {"gpu": "cuda", "GPU": "cuda", "CPU": "cpu", "Cuda": "cuda", "cuda0": "cuda:0", "cuda-1": "cuda:1", "mps": "metal",
           "mps:0": "metal", "cdua": "cuda", "cuda 0": "cuda:0", "Metal": "metal", "gpu:1": "cuda:1"}  # fmt: skip


@pytest.mark.parametrize("typo", DEVICES)
def test_devices_that_are_misspelt(typo: str) -> None:
    for call in (
        lambda: bc.empty((2,), device=typo),
        lambda: bc.plan(SOFTMAX, typo),
        lambda: bc.Device(typo),
        lambda: bc.capabilities("exp", device=typo),
    ):
        with pytest.raises(bc.InvalidProblemError, match=re.escape(f"did you mean {DEVICES[typo]!r}?")):
            call()


@pytest.mark.parametrize(("call", "kind", "words"), MISTAKES, ids=[c for c, _, _ in MISTAKES])
def test_typical_mistakes(call: str, kind: str, words: str) -> None:
    """The message names function and argument, says what came and what is wanted, and nothing that the user has not written."""
    torch = pytest.importorskip("torch")
    f32, a = np.float32, np.ones((4, 8), np.float32)
    known = {
        "np": np, "bc": bc, "F": F, "torch": torch, "f": f32, "a": a, "d": SOFTMAX, "p": bc.plan(SOFTMAX), "i": np.zeros(3, np.int64),
        "x": np.ones((3, 4), f32), "y": np.ones((4, 5), f32), "img": np.ones((2, 3, 8, 8), f32), "t": torch.ones(3, 4),
    }  # fmt: skip
    with pytest.raises((bc.BaracudaError, AttributeError)) as caught:
        eval(call, known)
    text = str(caught.value)
    assert (type(caught.value).__name__ == kind and text.startswith(words)) or words in text, text
    if call.startswith("F.") and kind != "UnsupportedError":
        assert not re.search(r"\w+Descriptor\b|\w+Plan\(", text), text


@pytest.mark.parametrize("name", sorted(_index.FUNCTIONS))
def test_tensors_of_rank_8_are_taken_or_refused_by_name(name: str) -> None:
    """Some functions need one dimension more on the way."""
    fn, deep = getattr(F, name), np.ones((1,) * 8, np.float32)
    parameters = inspect.signature(fn).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    for last in (deep, 1, [deep, deep]):
        given: list[Any] = [deep] * len(needed)
        given[-1:] = [last] if needed else []
        try:
            fn(*given)
        except bc.BaracudaError:
            continue
