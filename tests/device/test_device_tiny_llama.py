"""The main job on a device: the same model, the same numbers within rounding, the same text."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fakecuda import on_devices

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiny_llama"
TEXT = b"the quick brown fox jumps over the lazy dog. " * 9
STEPS = 3


@pytest.fixture(scope="module", autouse=True)
def example_on_path():
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))


def trained(device: str):
    from model import Config
    from training import Batches, Trainer

    c = Config(d_model=16, layers=2, heads=4, kv_heads=2, hidden=24, vocab=128, context=12)
    trainer = Trainer(c, batch=2, steps=10, lr=5e-3, device=device)
    batches = Batches(TEXT, 2, c.context, seed=1)
    return trainer, [trainer.step(*batches[i]) for i in range(STEPS)]


@on_devices
def test_training_and_text_agree_with_the_cpu(tmp_path: Path) -> None:
    from generation import Generator
    from storage import read
    from training import Trainer

    (host, wanted), (device, losses) = trained("cpu"), trained("cuda")
    # Rounding differs by a few ulp an op; AdamW divides by small numbers, so parameters differ by more than the loss.
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    for name, value in host.parameters.items():
        np.testing.assert_allclose(read(device.parameters[name]), value, rtol=0, atol=1e-4, err_msg=name)
    texts = []
    for trainer in (host, device):
        made = Generator(trainer.config, trainer.parameters, trainer.tables, temperature=0.7, store=trainer.store)
        texts.append(made.generate(b"the ", 8))
    assert texts[0] == texts[1]

    device.save(tmp_path / "device.safetensors")
    resumed = Trainer(device.config, batch=2, steps=10, lr=5e-3)
    resumed.load(tmp_path / "device.safetensors")
    for name, value in resumed.parameters.items():
        assert value.tobytes() == read(device.parameters[name]).tobytes(), name
