"""Language models of GGUF files: random ones of every architecture against an f64 reference, whole and in steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llm_reference
import numpy as np
import pytest
from llm_models import VOCABULARY, Model, written

import baracuda as bc

# Every architecture, and what varies within one.
CASES: dict[str, dict[str, Any]] = {
    "llama": {"name": "llama"},
    "llama, tied, biases, one head of keys": {"name": "llama", "tied": True, "biases": True, "attention__head_count_kv": 1},
    "llama, linear": {"name": "llama", "rope__scaling__type": "linear", "rope__scaling__factor": 4.0},
    "llama, yarn": {
        "name": "llama", "rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, "rope__scaling__original_context_length": 16,
    },
    "llama 3's factors": {"name": "llama", "extra": {"rope_freqs.weight": np.linspace(1, 8, 8, dtype=np.float32)}},
    "mixtral": {"name": "llama", "expert_count": 5, "expert_used_count": 2},
    "qwen2": {"name": "qwen2", "biases": True, "tied": True},
    "qwen3": {"name": "qwen3", "attention__key_length": 24, "attention__value_length": 24},
    "qwen3moe": {"name": "qwen3moe"},
    "phi3": {"name": "phi3"},
    "phi3, longrope": {
        "name": "phi3", "rope__scaling__attn_factor": 1.2, "rope__scaling__original_context_length": 32, "rope__scaling__type": "longrope",
        "extra": {
            "rope_factors_long.weight": np.linspace(1, 4, 6, dtype=np.float32), "rope_factors_short.weight": np.ones(6, np.float32),
        },
    },
    "gemma": {"name": "gemma", "tied": True, "attention__key_length": 32, "attention__value_length": 32},
    "gemma2": {"name": "gemma2", "tied": True, "attention__value_length": 8},
    "gemma3": {"name": "gemma3", "tied": True, "block_count": 5},
    "gemma3, linear": {"name": "gemma3", "rope__scaling__type": "linear", "rope__scaling__factor": 8.0, "rope__freq_base_swa": 5e3},
    "f16": {"name": "llama", "form": "f16"},
    "q8_0": {"name": "qwen3", "form": "q8_0"},
    "q4_0": {"name": "llama", "form": "q4_0", "tied": True},
    "q5_0 of experts": {"name": "qwen3moe", "form": "q5_0"},
    "q4_k": {"name": "gemma3", "form": "q4_k", "embedding_length": 256, "feed_forward_length": 256, "attention__head_count": 16},
}  # fmt: skip


def made(path: Path, rng: np.random.Generator, case: str, **changed: Any) -> Model:
    return written(path / "model.gguf", rng, **(CASES[case] | changed))


def close(got: np.ndarray, want: np.ndarray, within: float = 2e-5) -> None:
    """Equal up to f32's rounding, by the size of the logits."""
    assert got.shape == want.shape and got.dtype == np.float32
    assert np.abs(got - want).max() <= within * np.abs(want).max(), np.abs(got - want).max() / np.abs(want).max()


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_the_reference(case: str, tmp_path: Path, rng: np.random.Generator) -> None:
    model = made(tmp_path, rng, case)
    ids = rng.integers(0, VOCABULARY, 23).tolist()
    mine = bc.llm.load(model.path, exact=True)
    close(mine.logits(ids), llm_reference.logits(model, ids))


@pytest.mark.parametrize("case", CASES)
def test_a_prompt_and_tokens_one_by_one_are_one_text(case: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """Greedy tokens, each of which is the reference's best one of the text so far; and of prompts in chunks."""
    model = made(tmp_path, rng, case)
    mine = bc.llm.load(model.path, exact=True)
    prompt = rng.integers(0, VOCABULARY, 11).tolist()
    tokens = list(mine.generate(prompt, max_tokens=9))
    assert len(tokens) == 9
    want = llm_reference.logits(model, prompt + tokens)[len(prompt) - 1 : -1]
    behind = want.max(-1) - np.take_along_axis(want, np.array(tokens)[:, None], 1)[:, 0]
    assert behind.max() <= 4e-5 * np.abs(want).max()
    batch = mine.batch(1, chunk=4)
    request = batch.add(prompt, max_tokens=9)
    assert [token for _, token in batch.run()] == tokens == request.tokens


def test_rounded_rows_are_near_and_other_ones(tmp_path: Path, rng: np.random.Generator) -> None:
    model = made(tmp_path, rng, "q8_0")
    ids = rng.integers(0, VOCABULARY, 9).tolist()
    exact, rounded = (bc.llm.load(model.path, exact=e).logits(ids) for e in (True, False))
    assert 0 < np.abs(exact - rounded).max() < 0.05 * np.abs(exact).max()


def test_short_factors_are_for_short_contexts(tmp_path: Path, rng: np.random.Generator) -> None:
    model = made(tmp_path, rng, "phi3, longrope")
    ids = rng.integers(0, VOCABULARY, 20).tolist()
    found = [bc.llm.load(model.path, exact=True, context=n).logits(ids) for n in (32, 33)]
    for n, logits in zip((32, 33), found, strict=True):
        close(logits, llm_reference.logits(model, ids, n))
    assert np.abs(found[0] - found[1]).max() > 1e-2


def test_windows_that_no_row_knows_bound_the_context(tmp_path: Path, rng: np.random.Generator) -> None:
    """A window whose layers are not known changes nothing in texts that it sees whole, and longer ones are refused."""
    model = made(tmp_path, rng, "llama", attention__sliding_window=20)
    mine = bc.llm.load(model.path, exact=True)
    assert mine.context == 20
    ids = rng.integers(0, VOCABULARY, 20).tolist()
    close(mine.logits(ids), llm_reference.logits(model, ids))
    with pytest.raises(bc.InvalidProblemError, match="from 2 to 20"):
        bc.llm.load(model.path, context=21)


def test_perplexity_is_that_of_the_logits(tmp_path: Path, rng: np.random.Generator) -> None:
    model = made(tmp_path, rng, "llama")
    ids = rng.integers(0, VOCABULARY, 50).tolist()
    total, count = 0.0, 0
    for begin in range(0, 50, 20):
        window = ids[begin : begin + 20]
        x = llm_reference.logits(model, window, 20)
        x = x - np.log(np.exp(x).sum(-1, keepdims=True))
        total -= x[np.arange(len(window) - 1), window[1:]].sum()
        count += len(window) - 1
    assert bc.llm.load(model.path, context=20).perplexity(ids) == pytest.approx(np.exp(total / count), rel=1e-5)


def test_sampling_follows_the_seed_and_the_numbers(tmp_path: Path, rng: np.random.Generator) -> None:
    mine = bc.llm.load(made(tmp_path, rng, "llama").path)

    def drawn(**numbers: Any) -> list[int]:
        return list(mine.generate([3, 5, 8], max_tokens=24, **numbers))

    assert drawn(temperature=1.0, seed=1) == drawn(temperature=1.0, seed=1) != drawn(temperature=1.0, seed=2)
    assert drawn(temperature=1.0) != drawn(temperature=1.0)
    assert drawn(temperature=1.0, top_k=1, seed=4) == drawn() == drawn(temperature=0.7, top_p=1e-6, seed=3)
    assert drawn(temperature=0.7, min_p=1.0, seed=3) == drawn()


def test_generators_take_turns_and_may_be_left(tmp_path: Path, rng: np.random.Generator) -> None:
    mine = bc.llm.load(made(tmp_path, rng, "gemma3").path)
    prompts = [rng.integers(0, VOCABULARY, n).tolist() for n in (5, 9, 4)]
    alone = [list(mine.generate(p, max_tokens=8)) for p in prompts]
    running = [mine.generate(p, max_tokens=8) for p in prompts]
    together = [[next(g) for g in running] for _ in range(8)]
    assert [list(t) for t in zip(*together, strict=True)] == alone
    left = mine.generate(prompts[0])
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert list(mine.generate(prompts[1], max_tokens=8)) == alone[1]


def test_stop_tokens_end_a_text_and_are_not_of_it(tmp_path: Path, rng: np.random.Generator) -> None:
    mine = bc.llm.load(made(tmp_path, rng, "llama").path)
    whole = list(mine.generate([1, 2], max_tokens=20))
    stop = whole[6]
    assert list(mine.generate([1, 2], max_tokens=20, stop=[stop])) == whole[: whole.index(stop)]


def test_what_does_not_fit_is_refused_before_anything_runs(tmp_path: Path, rng: np.random.Generator) -> None:
    mine = bc.llm.load(made(tmp_path, rng, "llama").path, context=16)
    for prompt, options, said in (
        ([1] * 16, {}, "got 16 tokens, want fewer than the context of 16"),
        ([], {}, "got no tokens"),
        ([1, VOCABULARY], {}, f"token 1: got {VOCABULARY}, want integers from 0 to {VOCABULARY - 1}"),
        ([-1], {}, "token 0: got -1"),
        ([1.5], {}, "token 0: got 1.5"),
        ([1], {"max_tokens": 0}, "max_tokens: got 0"),
        ([1], {"temperature": -1.0}, "temperature"),
        ([1], {"top_p": 2.0}, "top_p"),
        ([1], {"seed": "x"}, "seed: got 'x'"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=said):
            mine.generate(prompt, **options)
    for ids in ([], [1] * 17, [VOCABULARY]):
        with pytest.raises(bc.InvalidProblemError, match="ids"):
            mine.logits(ids)
    assert len(list(mine.generate([1] * 15))) == 1
    assert mine.logits([1] * 16).shape == (16, VOCABULARY)
    for context in (1, 65, "many"):
        with pytest.raises(bc.InvalidProblemError, match="context"):
            bc.llm.load(tmp_path / "model.gguf", context=context)  # type: ignore[arg-type]
