"""Networks of packages of the registry give ONNX Runtime's numbers: run by ci/models.sh, where they are installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if os.environ.get("BARACUDA_MODELS") != "1":
    pytest.skip("asked for by ci/models.sh", allow_module_level=True)

import onnxruntime

import baracuda as bc
import baracuda.onnx

RNG = np.random.default_rng(0)


def f(*shape: int, scale: float = 1.0) -> Any:
    return RNG.normal(size=shape).astype(np.float32) * np.float32(scale)


STATE = {"state": f(2, 1, 128, scale=0.1)}
WAVE, RATE = {"input": f(1, 576, scale=0.1)}, {"sr": np.array(16000, np.int64)}
# Package, file in it, inputs.
MODELS: list[tuple[str, str, dict[str, Any]]] = [
    ("silero_vad", "silero_vad.onnx", WAVE | STATE | RATE),
    ("silero_vad", "silero_vad_16k_sequence.onnx",
     {"input": f(20, 576, scale=0.1), "h": f(1, 1, 128, scale=0.1), "c": f(1, 1, 128, scale=0.1)}),
    ("silero_vad", "silero_vad_op18_ifless.onnx", WAVE | STATE | RATE),
    ("silero_vad", "silero_vad_openvino_16k.onnx", WAVE | STATE),
    ("silero_vad", "silero_vad_half.onnx", WAVE | STATE),
    ("silero_vad", "silero_vad_16k_op15.onnx", WAVE | STATE | RATE),
    ("magika", "model.onnx", {"bytes": RNG.integers(0, 257, (1, 2048)).astype(np.int32)}),
    ("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": f(1, 3, 48, 192)}),
    ("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", {"x": f(1, 3, 48, 160)}),
    ("rapidocr_onnxruntime", "ch_PP-OCRv4_det_infer.onnx", {"x": f(1, 3, 160, 160)}),
]  # fmt: skip


def path_of(package: str, name: str) -> Path:
    module = pytest.importorskip(package)
    found = list(Path(module.__file__).parent.rglob(name))
    if not found:
        pytest.skip(f"this version of {package} has no {name}")
    return found[0]


@pytest.mark.parametrize(("package", "name", "feeds"), MODELS, ids=[m[1] for m in MODELS])
def test_models_give_onnxruntimes_numbers(package: str, name: str, feeds: dict[str, Any], tmp_path: Path) -> None:
    path = path_of(package, name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    wanted = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)
    model = baracuda.onnx.load(path)
    assert not model.missing
    constants = {n: x for n, x in feeds.items() if not x.ndim}
    rest = {n: x for n, x in feeds.items() if x.ndim}
    known = baracuda.onnx.load(path, constants=constants)
    dims = {
        s: n for p in known.inputs for s, n in zip(p.shape or (), rest[p.name].shape, strict=True) if isinstance(s, str)
    }
    compiled = known.compile(dims=dims, frozen=True)
    compiled.save(tmp_path / "saved")
    saved = baracuda.onnx.CompiledModel.load(tmp_path / "saved")
    for found in (model.run(feeds), compiled.run(rest), saved.run(rest)):
        for got, want in zip(found.values(), wanted, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            scale = max(float(np.abs(want).max(initial=0)), 1e-2)
            assert float(np.abs(got.astype("f8") - want).max(initial=0)) <= 1e-4 * scale


def test_one_program_for_any_batch() -> None:
    path = path_of("magika", "model.onnx")
    model = baracuda.onnx.load(path)
    name = next(s for s in model.inputs[0].shape or () if isinstance(s, str))
    compiled = model.compile(dims={name: bc.Dim("n", max=6)}, frozen=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for batch in (1, 2, 6):
        feeds = {"bytes": RNG.integers(0, 257, (batch, 2048)).astype(np.int32)}
        got, want = next(iter(compiled.run(feeds).values())), session.run(None, feeds)[0]
        np.testing.assert_allclose(got, want, atol=1e-4)


LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)


@pytest.mark.parametrize("name", LIGHT)
def test_light_networks_give_what_onnx_wants(name: str) -> None:
    """The classifiers of ONNX's suite, whose weights are numbers that the files compute."""
    import onnx
    import onnx.backend.test
    from onnx.backend.test.runner import Runner

    path = Path(onnx.backend.test.__file__).parent / "data" / "light" / f"light_{name}.onnx"
    proto, want = onnx.load(path), onnx.TensorProto()
    want.ParseFromString(path.with_name(f"light_{name}_output_0.pb").read_bytes())
    model = baracuda.onnx.load(proto)
    given = {i.name: i for i in proto.graph.input}
    feeds = {p.name: Runner.generate_dummy_data(given[p.name]) for p in model.inputs}
    got = next(iter(model.run(feeds).values()))
    np.testing.assert_allclose(got, onnx.numpy_helper.to_array(want), rtol=1e-3, atol=1e-7)
