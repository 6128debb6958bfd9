"""Embedding: what the generated tests do not see: torch's results, bad ids, in-place accumulation, threads."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F


def workspace(plan: bc.Plan) -> bc.Tensor:
    return bc.empty(plan.workspace_size, "u8")


def gradient(
    dy: np.ndarray, ids: np.ndarray, rows: int, into: np.ndarray | None = None, **fields: object
) -> np.ndarray:
    desc = bc.EmbeddingBackwardDescriptor(
        (rows, dy.shape[-1]), ids.shape, dy.dtype, ids.dtype, accumulate=into is not None, **fields
    )
    made = bc.plan(desc)
    dweight = np.full((rows, dy.shape[-1]), 7, dy.dtype) if into is None else into
    made.run(dy, ids, dweight, workspace=workspace(made))
    return dweight


@pytest.mark.parametrize("padding", [None, 0, 2, -1])
def test_values_and_gradient_are_torchs(padding: int | None) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 2, 2], [4, 0, 2]])
    want = torch.nn.functional.embedding(ids, weight, padding)
    dy = torch.randn_like(want)
    want.backward(dy)
    y, pull = bc.vjp(F.embedding, ids, weight.detach(), padding)
    assert torch.equal(y, want.detach())
    torch.testing.assert_close(pull(dy), weight.grad, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("bad", [-1, 5, 2**40])
def test_bad_id_changes_no_byte(bad: int) -> None:
    weight, ids = np.ones((5, 3), np.float32), np.array([[0, 4], [bad, 1]])
    y = np.full((2, 2, 3), 9, np.float32)
    with pytest.raises(bc.IndexOutOfRangeError, match="ids"):
        bc.plan(bc.EmbeddingDescriptor((5, 3), (2, 2))).run(ids, weight, y)
    assert (y == 9).all()
    for accumulate in (False, True):
        made = bc.plan(bc.EmbeddingBackwardDescriptor((5, 3), (2, 2), accumulate=accumulate))
        with pytest.raises(bc.IndexOutOfRangeError, match=str(bad)):
            made.run(y, ids, weight, workspace=workspace(made))
        assert (weight == 1).all()


def test_u32_ids_are_not_read_as_negative() -> None:
    with pytest.raises(bc.IndexOutOfRangeError, match=str(2**32 - 1)):
        F.embedding(np.array([2**32 - 1], np.uint32), np.ones((5, 3), np.float32))


def test_padding_row_is_read_but_gets_no_gradient() -> None:
    weight, ids = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([1, 3, 1])
    np.testing.assert_array_equal(F.embedding(ids, weight, padding_idx=-1), weight[ids])
    dy = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(gradient(dy, ids, 4, padding_idx=3), [[0] * 3, [2] * 3, [0] * 3, [0] * 3])
    into = np.full((4, 3), 5, np.float32)
    np.testing.assert_array_equal(gradient(dy, ids, 4, into, padding_idx=1), [[5] * 3, [5] * 3, [5] * 3, [6] * 3])


def test_many_duplicates_are_summed_to_one_rounding() -> None:
    dy = np.full((100_000, 3), 0.1, np.float32)
    total = gradient(dy, np.zeros(100_000, np.int64), 2)
    assert (total[0] == np.float32(np.float64(np.float32(0.1)) * 100_000)).all()
    dy64 = np.full((100_000, 1), 0.1)
    assert abs(gradient(dy64, np.zeros(100_000, np.int64), 1)[0, 0] - 10_000) <= 2 * np.spacing(10_000.0)


def test_infinite_gradient_stays_infinite() -> None:
    dy = np.array([[1.0], [np.inf], [2.0], [3.0]])
    assert gradient(dy, np.zeros(4, np.int64), 1)[0, 0] == np.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [3, 700])
def test_bits_do_not_depend_on_threads(dtype: type, columns: int) -> None:
    rng = np.random.default_rng(1)
    dy, ids = rng.normal(size=(3000, columns)).astype(dtype), rng.zipf(1.3, 3000) % 97
    desc = bc.EmbeddingBackwardDescriptor((97, columns), (3000,), dtype)
    results = []
    for threads in (1, 2):
        made = bc.plan(desc, preference=bc.PlanPreference(threads=threads))
        out = np.empty((97, columns), dtype)
        made.run(dy, ids, out, workspace=workspace(made))
        results.append(out.tobytes())
    assert results[0] == results[1]


def test_refused_options_and_fields() -> None:
    ids, weight = np.zeros(3, np.int64), np.ones((5, 3), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="max_norm"):
        F.embedding(ids, weight, max_norm=1.0)
    with pytest.raises(bc.InvalidProblemError, match="padding_idx"):
        bc.EmbeddingDescriptor((5, 3), (2,), padding_idx=5)
    with pytest.raises(bc.InvalidProblemError, match="weight_shape"):
        bc.EmbeddingDescriptor((5,), (2,))
    with pytest.raises(bc.UnsupportedError, match="i64"):
        bc.plan(bc.EmbeddingDescriptor((5, 3), (2,), index_element="i16"))


def test_one_plan_serves_any_number_of_ids() -> None:
    made = bc.plan(bc.EmbeddingBackwardDescriptor((5, 2), (bc.Dim("tokens", max=64),)))
    space = workspace(made)
    for n in (64, 1, 0, 17):
        dy, ids, out = np.ones((n, 2), np.float32), np.arange(n) % 5, np.empty((5, 2), np.float32)
        made.run(dy, ids, out, workspace=space)
        np.testing.assert_array_equal(out[:, 0], np.bincount(ids, minlength=5))


def test_gradient_of_one_id_is_compensated() -> None:
    """The sorted row's error does not grow with the positions of an id, though its promise has sqrt(K) in it."""
    dy = np.random.default_rng(5).random((4000, 8), np.float32)
    got = gradient(dy, np.zeros(4000, np.int64), 2)
    exact = dy.astype(np.longdouble).sum(0)
    assert (np.abs(got[0] - exact) <= 2.0**-23 * exact).all()
    assert not got[1].any()
