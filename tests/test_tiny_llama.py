"""The main job: a model of functions, traced, trains, resumes, generates, and does not depend on threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baracuda as bc

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "tiny_llama"
TEXT = (b"the quick brown fox jumps over the lazy dog. " * 40) + bytes(range(32, 127)) * 4


@pytest.fixture(scope="module", autouse=True)
def example_on_path():
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))


def small(element: str = "f32"):
    from model import Config

    return Config(d_model=32, layers=2, heads=4, kv_heads=2, hidden=48, context=24, element=element)


def train(steps: int, threads: int = 0, element: str = "f32"):
    from training import Batches, Trainer

    bc.set_num_threads(threads)
    try:
        trainer = Trainer(small(element), batch=3, steps=40, lr=5e-3)
        batches = Batches(TEXT, 3, trainer.config.context, seed=1)
        losses = [trainer.step(*batches[trainer.done]) for _ in range(steps)]
    finally:
        bc.set_num_threads(0)
    return trainer, batches, losses


def test_loss_falls() -> None:
    _, _, losses = train(40)
    assert losses[0] == pytest.approx(np.log(256), rel=0.02)
    assert np.mean(losses[-5:]) < 0.75 * losses[0]


def test_threads_give_the_same_checkpoint(tmp_path: Path) -> None:
    for threads in (1, 2):
        trainer, _, _ = train(6, threads)
        trainer.save(tmp_path / f"{threads}.safetensors")
    assert (tmp_path / "1.safetensors").read_bytes() == (tmp_path / "2.safetensors").read_bytes()


def test_resumed_run_equals_an_unbroken_one(tmp_path: Path) -> None:
    from training import Trainer

    whole, batches, _ = train(8)
    half, _, _ = train(4)
    half.save(tmp_path / "half.safetensors")
    resumed = Trainer(small(), batch=3, steps=40, lr=5e-3, seed=99)
    resumed.load(tmp_path / "half.safetensors")
    for _ in range(4):
        resumed.step(*batches[resumed.done])
    for name, value in whole.parameters.items():
        assert np.array_equal(value, resumed.parameters[name]), name


def test_gradients_agree_with_torch_in_float64() -> None:
    from torch_model import loss_and_gradients
    from training import Batches, Trainer

    torch = pytest.importorskip("torch")
    trainer = Trainer(small("f64"), batch=2)
    inputs, targets = Batches(TEXT, 2, trainer.config.context, seed=2)[0]
    loss, found = trainer.gradients_of(inputs, targets)
    want, gradients = loss_and_gradients(trainer.config, trainer.parameters, inputs, targets, torch.float64)
    assert loss == pytest.approx(want, rel=1e-12)
    for name, value in gradients.items():
        scale = np.abs(value).max()
        assert np.abs(found[name] - value).max() <= 1e-11 * scale, name


def test_cached_decoding_equals_the_full_pass() -> None:
    from generation import Generator
    from model import forward

    trainer, _, _ = train(3)
    config = trainer.config
    text = np.frombuffer(TEXT, np.uint8)[: config.context].astype(np.int64)
    full = forward(config, trainer.parameters, text[None], trainer.tables)
    generator = Generator(config, trainer.parameters, trainer.tables)
    for position, byte in enumerate(text):
        generator.feed(int(byte), position)
        np.testing.assert_allclose(generator.logits[0], full[position], rtol=2e-4, atol=2e-5)


def test_generation_is_reproducible_and_fits_the_context() -> None:
    from generation import Generator

    trainer, _, _ = train(20)
    texts = [
        Generator(trainer.config, trainer.parameters, trainer.tables, seed=s).generate(b"the ", 100) for s in (5, 5, 6)
    ]
    assert texts[0] == texts[1] != texts[2]
    assert len(texts[0]) == trainer.config.context
    assert texts[0].startswith(b"the ")
    greedy = Generator(trainer.config, trainer.parameters, trainer.tables, temperature=0).generate(b"the ", 8)
    assert len(greedy) == 12


def test_a_token_by_functions_one_by_one_is_that_of_the_graph() -> None:
    """Bit for bit, logits and the byte that is drawn; and it is 8 launches a layer."""
    from generation import Generator

    trainer, _, _ = train(3)
    eager, compiled = (Generator(trainer.config, trainer.parameters, trainer.tables) for _ in range(2))
    for position, byte in enumerate(b"the quick"):
        logits, following = eager.feed_eagerly(byte, position)
        compiled.feed(byte, position)
        assert np.array_equal(bc.from_dlpack(logits).numpy(), compiled.logits)
        assert np.asarray(bc.from_dlpack(following).numpy()) == compiled.token
    assert compiled.plan.launches <= 8 * trainer.config.layers + 6
    assert np.array_equal(eager.cache.keys, compiled.cache.keys)


def test_memory_of_a_step_is_planned() -> None:
    trainer, _, _ = train(1)
    memory = trainer.plan.memory
    assert memory.planned <= 1.05 * memory.lower_bound and memory.planned < memory.unplanned / 2
    assert "adamw" in trainer.plan.explain() and "<svg" in trainer.graph.to_svg()


def quantizable(hidden: int = 256):
    from model import Config
    from training import Batches, Trainer

    config = Config(d_model=256, layers=2, heads=4, kv_heads=2, hidden=hidden, context=24)
    trainer = Trainer(config, batch=2, steps=12, lr=2e-3)
    batches = Batches(TEXT, 2, config.context, seed=1)
    for i in range(12):
        trainer.step(*batches[i])
    return trainer, batches


def test_the_gguf_package_reads_quantized_weights(tmp_path: Path) -> None:
    import quantized

    gguf = pytest.importorskip("gguf")
    trainer, _ = quantizable(hidden=96)
    kept = quantized.save(trainer.config, trainer.parameters, "q4_k", tmp_path / "w.gguf")
    assert kept == ["layers.0.down", "layers.1.down"]
    reader = gguf.GGUFReader(str(tmp_path / "w.gguf"))
    assert reader.fields["tiny_llama.d_model"].contents() == 256
    read = {t.name: t for t in reader.tensors}
    assert read.keys() == trainer.parameters.keys()
    for name, value in trainer.parameters.items():
        t = read[name]
        whole = value.ndim == 2 and name not in kept
        assert t.tensor_type.name == ("Q4_K" if whole else "F32"), name
        found = gguf.dequantize(t.data, t.tensor_type)
        wanted = value.T if value.ndim == 2 and name != "embedding" else value
        assert found.shape == wanted.shape
        error = np.sqrt(((found - wanted) ** 2).sum() / (wanted.astype(np.float64) ** 2).sum())
        assert error < (0.1 if whole else 1e-30), name


@pytest.mark.parametrize("form", ["q4_k", "q8_0", "mxfp4"])
def test_decoding_with_quantized_weights_is_the_full_pass_and_costs_little(tmp_path: Path, form: str) -> None:
    import quantized
    from generation import Generator
    from model import forward

    trainer, batches = quantizable()
    config = trainer.config
    assert not quantized.save(config, trainer.parameters, form, tmp_path / "w.gguf")
    blocks = quantized.load(config, tmp_path / "w.gguf")
    assert quantized.nbytes(blocks) < quantized.nbytes(trainer.parameters) / 3
    generators = [Generator(config, w, trainer.tables) for w in (trainer.parameters, blocks)]
    text = np.frombuffer(TEXT, np.uint8)[: config.context].astype(np.int64)
    full = forward(config, blocks, text[None], trainer.tables)
    for position, byte in enumerate(text):
        generators[1].feed(int(byte), position)
        np.testing.assert_allclose(generators[1].logits[0], full[position], rtol=2e-3, atol=2e-4 * np.abs(full).max())
    losses = [quantized.loss_of(g, batches) for g in generators]
    assert losses[0] < 5 and abs(losses[1] - losses[0]) < (0.01 if form == "q8_0" else 0.1)
    assert len(generators[1].generate(b"the ", 8)) == 12
    assert all(speed > 0 for speed in quantized.speeds(generators, rounds=1))


def test_the_example_says_what_quantization_costs(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    sizes = "--steps 3 --batch 2 --d-model 256 --layers 1 --heads 4 --hidden 256 --context 24 --generate 8"
    command = [sys.executable, str(EXAMPLE), *sizes.split(), "--text", str(tmp_path / "text"), "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--quantize", "q4_k"], check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"what q4_k costs and gains", done.stdout)
    assert re.search(r"q4_k\W+[\d,]+\W+4\.\d{4}\W+[\d,]+ ", done.stdout), done.stdout
    assert "q4_k.gguf to" in done.stdout.replace("\n", "") and (tmp_path / "q4_k.gguf").stat().st_size > 100_000
