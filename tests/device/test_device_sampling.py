"""Tokens on devices: those of the cpu, numbers that are tensors there, and what kernels find in the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.device import Device
from baracuda.ops.sampling.sampling import CONTROLS


@pytest.fixture(params=["cuda", "metal"])
def place(request: pytest.FixtureRequest) -> str:
    if not Device(request.param).usable:
        pytest.skip(f"{request.param}: {Device(request.param).reason}")
    return str(request.param)


def there(place: str, x: Any) -> Any:
    return bc.asarray(np.asarray(x), device=place)


def host(t: Any) -> Any:
    return np.asarray(t.to("cpu").numpy())


def _logits(rng: np.random.Generator) -> Any:
    return rng.normal(0, 3, (3, 600)).astype(np.float32)


def test_tokens_are_those_of_the_cpu(place: str, rng: np.random.Generator) -> None:
    z = _logits(rng)
    counts, mask = rng.integers(0, 3, z.shape).astype(np.int32), rng.random(600) < 0.8
    table = np.tile(np.array(list(CONTROLS.values()), np.float32), (3, 1))
    table[:, 0], table[:, 1], table[:, 2] = [0.7, 0.0, 2.0], [0, 3, 50], [0.8, 1.0, 0.5]
    more: dict[str, Any] = {"counts": counts, "mask": mask, "controls": table}
    want = F.filter_logits(z, probabilities=True, **more)
    got = F.filter_logits(there(place, z), probabilities=True, **{k: there(place, v) for k, v in more.items()})
    np.testing.assert_allclose(host(got), want, rtol=3e-7)
    given: dict[str, Any] = {"typical_p": 0.9, "min_p": 1e-4, "top_p": 0.95}
    want = F.sample_tokens(z, num_samples=3, generator=bc.Generator(5, 2**33), **given)
    got = F.sample_tokens(there(place, z), num_samples=3, generator=bc.Generator(5, 2**33), **given)
    np.testing.assert_array_equal(host(got), want)
    Device(place).check()


def test_draws_read_their_numbers_on_the_device(place: str, rng: np.random.Generator) -> None:
    z = _logits(rng)
    y, want = bc.empty((3,), "i64", device=place), np.empty(3, np.int64)
    plan = bc.plan(bc.SampleTokensDescriptor((3, 600)), place)
    numbers = {"top_k": np.int64(5), "top_p": np.float32(0.5), "seed": np.uint64(9), "offset": np.uint64(4)}
    plan.run(logits=there(place, z), y=y, **{k: there(place, v) for k, v in numbers.items()})
    cpu = bc.plan(bc.SampleTokensDescriptor((3, 600)))
    cpu.run(logits=z, y=want, workspace=bc.empty(cpu.workspace_size, "u8"), **{k: v.item() for k, v in numbers.items()})
    np.testing.assert_array_equal(host(y), want)
    Device(place).check()


def test_what_cannot_be_drawn_from(place: str, rng: np.random.Generator) -> None:
    def wrong(word: str, call: Any, error: Any = bc.ValueOutOfRangeError) -> None:
        call()
        with pytest.raises(error, match=word):
            Device(place).check()

    z = _logits(rng)
    z[1, 7] = np.nan
    wrong("logits: got nan at element 607, want a finite number", lambda: F.sample_tokens(there(place, z)))
    z[1] = -np.inf
    wrong("logits: got 0 at element 600, want a finite sum above 0", lambda: F.filter_logits(there(place, z)))
    z[1] = 0
    p = there(place, np.array([0.5, 1.0, 1.5], np.float32))
    wrong("controls: got 1.5 at element 18, want 0 <= value <= 1", lambda: F.sample_tokens(there(place, z), top_p=p))
    drawn, number = bc.plan(bc.SampleTokensDescriptor((3, 600)), place), there(place, np.float32(1.5))
    y = bc.empty((3,), "i64", device=place)
    wrong("top_p: got 1.5, want 0 <= value <= 1", lambda: drawn.run(logits=there(place, z), y=y, seed=1, top_p=number))
    wrong("p: got 1.5, want 0 <= value <= 1", lambda: F.dropout(there(place, z), number))
    with pytest.raises(bc.InvalidProblemError, match="temperature: got -1, want a finite number that is not negative"):
        F.sample_tokens(there(place, z), -1.0)
    even = there(place, np.full((1, 2, 4), 0.25, np.float32))
    target = there(place, np.full((1, 3, 4), 0.25, np.float32))
    tokens = there(place, np.array([[1, 4]]))
    wrong("draft_tokens", lambda: F.verify_draft(even, tokens, target), bc.IndexOutOfRangeError)
    wrong("parents", lambda: F.verify_tree(tokens, there(place, np.array([[0, 2]])), target), bc.IndexOutOfRangeError)
    none = there(place, np.zeros((1, 3, 4), np.float32))
    wrong("target: got 0 at element 0", lambda: F.verify_tree(tokens, there(place, np.array([[0, 1]])), none))
