"""Continuous batching: the same tokens as alone, whoever else is there; pages, prefixes, limits and leaving."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_models import VOCABULARY, written

import baracuda as bc
from baracuda.llm.pages import Pages


@pytest.fixture
def model(tmp_path: Path, rng: np.random.Generator) -> Any:
    return bc.llm.load(written(tmp_path / "m.gguf", rng, "gemma3", context_length=256).path, exact=True)


def prompts_of(rng: np.random.Generator, count: int, most: int = 60) -> list[list[int]]:
    return [rng.integers(0, VOCABULARY, rng.integers(1, most)).tolist() for _ in range(count)]


def alone(model: Any, prompt: list[int], **options: Any) -> list[int]:
    """Without anything that was computed before."""
    batch = model.batch(1)
    request = batch.add(prompt, **options)
    return [token for r, token in batch.run() if r is request]


@pytest.mark.parametrize("name", ["llama", "qwen3moe", "phi3", "gemma2"])
def test_a_batch_gives_what_each_gives_alone(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    model = bc.llm.load(written(tmp_path / "m.gguf", rng, name, context_length=128).path, exact=True)
    prompts = prompts_of(rng, 7)
    options = [{"max_tokens": int(n), "temperature": float(t), "seed": 5} for n, t in zip(range(4, 11), [0, 1] * 4)]  # noqa: B905
    batch = model.batch(3, chunk=24)
    requests = [batch.add(p, **o) for p, o in zip(prompts, options, strict=True)]
    found: dict[int, list[int]] = {id(r): [] for r in requests}
    for request, token in batch.run():
        found[id(request)].append(token)
    for request, prompt, o in zip(requests, prompts, options, strict=True):
        assert request.reason == "length" and found[id(request)] == request.tokens == alone(model, prompt, **o)


def test_requests_join_and_leave_at_any_step(model: Any, rng: np.random.Generator) -> None:
    batch = model.batch(4, chunk=16)
    live: list[tuple[Any, list[int], int]] = []
    for step in range(60):
        if step < 40 and rng.random() < 0.4:
            (prompt,) = prompts_of(rng, 1)
            count = int(rng.integers(1, 12))
            live.append((batch.add(prompt, max_tokens=count), prompt, count))
        if live and rng.random() < 0.15:
            batch.cancel(live[rng.integers(len(live))][0])
        batch.step()
    for _ in batch.run():
        pass
    assert not batch and not batch.running and not batch.waiting and len(live) > 8
    assert {r.reason for r, *_ in live} == {"length", "cancelled"}
    for request, prompt, count in live:
        want = alone(model, prompt, max_tokens=count)
        assert request.tokens == (want if request.reason == "length" else want[: len(request.tokens)])
    assert batch._pages.available == batch._pages.count


def test_a_beginning_that_was_there_is_not_computed_again(model: Any, rng: np.random.Generator) -> None:
    batch = model.batch(2)
    beginning = rng.integers(0, VOCABULARY, 70).tolist()
    first = batch.add([*beginning, 1], max_tokens=30)
    list(batch.run())
    again, other = batch.add([*beginning, 1], max_tokens=30), batch.add([*beginning, 2, 3], max_tokens=30)
    list(batch.run())
    follow = batch.add([*beginning, 1, *first.tokens], max_tokens=4)
    list(batch.run())
    assert (first.reused, again.reused, other.reused, follow.reused) == (0, 64, 64, 96)
    assert again.tokens == first.tokens and other.tokens == alone(model, [*beginning, 2, 3], max_tokens=30)
    assert follow.tokens == alone(model, [*beginning, 1, *first.tokens], max_tokens=4)
    exactly = batch.add(beginning[:64], max_tokens=3)  # the last token has to be computed
    list(batch.run())
    assert exactly.reused == 32 and exactly.tokens == alone(model, beginning[:64], max_tokens=3)


def test_too_little_memory_is_refused_or_waited_for(model: Any, rng: np.random.Generator) -> None:
    page = 4 * 32 * model.config.layers * model.config.kv_heads * 2 * model.config.key_dim
    with pytest.raises(bc.MemoryLimitError, match=f"want at least {page:,} bytes"):
        model.batch(2, memory_limit=page - 1)
    batch = model.batch(4, memory_limit=3 * page)
    assert batch.nbytes == 3 * page
    with pytest.raises(bc.MemoryLimitError, match=r"take 4 pages of 32 tokens, want at most the 3 pages"):
        batch.add([1] * 90, max_tokens=7)
    prompts = [rng.integers(0, VOCABULARY, 40).tolist() for _ in range(4)]
    requests = [batch.add(p, max_tokens=10) for p in prompts]
    batch.step()
    assert batch.running == requests[:1] and batch.waiting == requests[1:]
    list(batch.run())
    assert [r.tokens for r in requests] == [alone(model, p, max_tokens=10) for p in prompts]


def test_requests_of_others_and_bad_numbers_are_refused(model: Any) -> None:
    batch, other = model.batch(2), model.batch(2)
    with pytest.raises(bc.InvalidProblemError, match="another batch"):
        other.cancel(batch.add([1], max_tokens=1))
    list(batch.run())
    for options in (
        {"sequences": 0},
        {"sequences": 2, "context": 257},
        {"sequences": 2, "chunk": 0},
        {"sequences": 1.5},
    ):
        with pytest.raises(bc.InvalidProblemError, match="want an int from"):
            model.batch(**options)
    assert batch.step() == []


def test_a_refused_step_changes_nothing(model: Any, rng: np.random.Generator) -> None:
    prompts = prompts_of(rng, 3)
    batch = model.batch(2, chunk=16)
    requests = [batch.add(p, max_tokens=9) for p in prompts]
    for _ in range(40):
        with bc.testing.fail(after=int(rng.integers(60)), on="launch"), suppress(bc.BaracudaError):
            batch.step()
        if not batch:
            break
    list(batch.run())
    assert [r.tokens for r in requests] == [alone(model, p, max_tokens=9) for p in prompts]


def test_pages_are_never_lost_or_given_twice(rng: np.random.Generator) -> None:
    """Random texts that share beginnings, taken and given back in any order."""
    pages = Pages(12, 2)
    held: list[tuple[list[Any], list[int]]] = []
    for _ in range(4000):
        if held and rng.random() < 0.5:
            taken, _ = held.pop(rng.integers(len(held)))
            pages.give_back(taken)
        else:
            text = rng.integers(0, 2, rng.integers(1, 12)).tolist()
            found = pages.take(text, len(text) + int(rng.integers(4)))
            if found is None:
                continue
            taken, known = found
            assert known * 2 < len(text)
            for i in range(known, len(text) // 2):
                if not pages.remember(taken[i], taken[i - 1] if i else None, text[2 * i : 2 * i + 2]):
                    break
            for i, page in enumerate(taken[:known]):
                assert list(page.tokens) == text[2 * i : 2 * i + 2]
            held.append((taken, text))
        used = {page.index for taken, _ in held for page in taken}
        fresh = [page.index for taken, _ in held for page in taken if page.users == 1]
        assert len(fresh) == len(set(fresh)) and len(used) + pages.available == 12
    for taken, _ in held:
        pages.give_back(taken)
    assert pages.available == 12
