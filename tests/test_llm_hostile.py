"""Files that are cut, that lie, or that are of other models: an error that says so, and never a crash."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_models import Model, written

import baracuda as bc


def again(
    model: Model, path: Path, *, drop: tuple[str, ...] = (), tensors: dict[str, Any] | None = None, **changed: Any
) -> Path:
    """The same file with other entries and tensors."""
    file = bc.load_gguf(model.path)
    said = dict(file.metadata) | {k.replace("__", "."): v for k, v in changed.items()}
    kept = {k: v for k, v in (file.tensors | (tensors or {})).items() if k not in drop}
    bc.save_gguf(path, kept, {k: v for k, v in said.items() if k not in drop and v is not None})
    return path


@pytest.fixture
def model(tmp_path: Path, rng: np.random.Generator) -> Model:
    return written(tmp_path / "good.gguf", rng, "llama", form="q8_0")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deepseek2", "latent attention"), ("gemma3n", "AltUp"), ("mamba", "state-space"), ("bert", "encoder"), ("nobody", "want one of"),
    ],
)  # fmt: skip
def test_other_architectures_are_refused_by_name(name: str, said: str, tmp_path: Path, model: Model) -> None:
    path = again(model, tmp_path / "b.gguf", general__architecture=name)
    with pytest.raises(bc.UnsupportedError, match=f"got '{name}'.*{said}"):
        bc.llm.load(path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"llama__block_count": 10**6}, "block_count.*1 to 4096"),
        ({"llama__block_count": 4}, "'blk.3.attn_norm.weight': got none"),
        ({"llama__block_count": 2}, "blk.2.*want none that the decoder does not use"),
        ({"llama__block_count": None}, "block_count': got nothing"),
        ({"llama__embedding_length": 2**40}, "embedding_length"),
        ({"llama__embedding_length": 128}, "'token_embd.weight': got shape"),
        ({"llama__embedding_length": -64}, "embedding_length"),
        ({"llama__embedding_length": "64"}, "embedding_length"),
        ({"llama__attention__head_count": 0}, "head_count"),
        ({"llama__attention__head_count": 3}, "head_count_kv.*divides the 3 heads"),
        ({"llama__attention__head_count": 2**31 - 1}, "head_count_kv|attn_q"),
        ({"llama__attention__key_length": 15}, "dimension_count"),
        ({"llama__attention__layer_norm_rms_epsilon": float("nan")}, "epsilon"),
        ({"llama__attention__layer_norm_rms_epsilon": None}, "epsilon"),
        ({"llama__rope__freq_base": 0.0}, "freq_base"),
        ({"llama__rope__dimension_count": 18}, "dimension_count"),
        ({"llama__rope__scaling__type": "other"}, "scaling.type"),
        ({"llama__rope__scaling__factor": -1.0}, "scaling.factor"),
        ({"llama__logit_scale": 0.5}, "logit_scale' is 0.5"),
        ({"llama__expert_count": 4}, "expert_used_count"),
        ({"llama__expert_count": 4, "llama__expert_used_count": 5}, "expert_used_count"),
        ({"llama__attention__head_count_kv": np.array([2, 1, 2], np.int32)}, "layers that differ"),
        ({"llama__feed_forward_length": 97}, "ffn_gate.weight': got shape"),
        ({"general__architecture": 5}, "general.architecture': got 5"),
        ({"general__architecture": None}, "general.architecture': got nothing"),
    ],
)  # fmt: skip
def test_entries_that_cannot_be_are_named(changed: dict[str, Any], said: str, tmp_path: Path, model: Model) -> None:
    with pytest.raises((bc.InvalidProblemError, bc.UnsupportedError), match=said):
        bc.llm.load(again(model, tmp_path / "b.gguf", **changed))


def test_tensors_that_are_missing_or_others_are_named(tmp_path: Path, model: Model) -> None:
    names = list(bc.load_gguf(model.path).tensors)
    for name in names:
        if name == "output.weight":  # then the embedding is the head
            continue
        with pytest.raises(bc.InvalidProblemError, match=f"{name}"):
            bc.llm.load(again(model, tmp_path / "b.gguf", drop=(name,)))
        with pytest.raises(bc.InvalidProblemError, match=f"{name}"):
            bc.llm.load(again(model, tmp_path / "b.gguf", tensors={name: np.zeros((3, 5), np.float32)}))
    with pytest.raises(bc.InvalidProblemError, match=r"blk.0.ffn_up_shexp.weight.*want none"):
        bc.llm.load(again(model, tmp_path / "b.gguf", tensors={"blk.0.ffn_up_shexp.weight": np.zeros(3, np.float32)}))
    with pytest.raises(bc.InvalidProblemError, match=r"output_norm.weight'.*int32"):
        bc.llm.load(again(model, tmp_path / "b.gguf", tensors={"output_norm.weight": np.zeros(64, np.int32)}))
    for bad in (
        np.zeros(8, np.float32),
        np.ones(7, np.float32),
        np.ones(8, np.float16),
        np.full(8, np.nan, np.float32),
    ):
        with pytest.raises(bc.InvalidProblemError, match=r"rope_freqs.weight"):
            bc.llm.load(again(model, tmp_path / "b.gguf", tensors={"rope_freqs.weight": bad}))


def test_a_file_that_is_cut_or_changed_anywhere_is_an_error_or_a_model(
    tmp_path: Path, model: Model, rng: np.random.Generator
) -> None:
    raw = model.path.read_bytes()
    path = tmp_path / "b.gguf"
    for cut in [0, 3, 4, 8, 30, *rng.integers(30, len(raw) - 1, 40).tolist()]:
        path.write_bytes(raw[:cut])
        with pytest.raises(bc.InvalidProblemError):
            bc.llm.load(path)
    head = len(raw) - sum(v.data.nbytes for v in bc.load_gguf(model.path).tensors.values())
    refused = 0
    for _ in range(300):
        changed = bytearray(raw)
        at = int(rng.integers(8, head - 8))
        changed[at : at + 4] = struct.pack("<I", int(rng.choice([0, 1, 2**31 - 1, 2**32 - 1, rng.integers(2**32)])))
        path.write_bytes(changed)
        try:
            bc.llm.load(path)
        except bc.BaracudaError:
            refused += 1
        except UserWarning:
            refused += 1  # of texts that are no UTF-8
    assert refused > 150


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bc.llm.load(tmp_path / "none.gguf")
    (tmp_path / "text").write_text("a text")
    with pytest.raises(bc.InvalidProblemError, match="no GGUF file"):
        bc.llm.load(tmp_path / "text")
