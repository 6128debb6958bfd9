"""Bags of embeddings: torch's results and gradients, and what the generated tests do not see: bad offsets and options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

G = torch.Generator().manual_seed(5)
WEIGHT = torch.randn(9, 7, dtype=torch.float64, generator=G)
IDS = torch.randint(0, 9, (40,), generator=G)
OFFSETS = torch.tensor([0, 3, 3, 4, 20, 40])
TABLE = torch.randint(0, 9, (5, 6), generator=G)
LISTS: list[tuple[Any, Any, dict[str, Any]]] = [
    (IDS, OFFSETS, {}),
    (IDS, OFFSETS, {"include_last_offset": True}),
    (IDS, OFFSETS[:3], {"padding_idx": 2}),
    (IDS.int(), OFFSETS.int(), {"padding_idx": -1}),
    (IDS[:0], OFFSETS[:1], {}),
    (IDS[:0], OFFSETS[:0], {}),
    (TABLE, None, {}),
    (TABLE, None, {"padding_idx": int(TABLE[0, 0])}),
    (torch.full((3, 4), 2), None, {"padding_idx": 2}),
    (TABLE, None, {"include_last_offset": True}),
]


@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted"])
@pytest.mark.parametrize("number", range(len(LISTS)))
def test_values_and_gradients_are_torchs(number: int, mode: str) -> None:
    ids, offsets, options = LISTS[number]
    options = options | {"mode": "sum" if mode == "weighted" else mode}
    weight = WEIGHT.clone().requires_grad_()
    scales = None
    if mode == "weighted":
        scales = torch.randn(ids.shape, dtype=torch.float64, generator=G)
    theirs = None if scales is None else scales.clone().requires_grad_()
    want = torch.nn.functional.embedding_bag(ids, weight, offsets, per_sample_weights=theirs, **options)
    dy = torch.randn(want.shape, dtype=torch.float64, generator=G)
    want.backward(dy)
    y, pull = bc.vjp(F.embedding_bag, ids, WEIGHT, offsets, per_sample_weights=scales, **options)
    torch.testing.assert_close(y, want.detach(), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(
        F.embedding_bag(ids, WEIGHT, offsets, per_sample_weights=scales, **options), y, rtol=0, atol=0
    )
    found = pull(dy)
    dweight = found[0] if scales is not None else found
    torch.testing.assert_close(dweight, weight.grad, rtol=1e-13, atol=1e-13)
    if scales is not None and theirs is not None:
        torch.testing.assert_close(found[1], theirs.grad, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_halves_are_torchs_to_their_rounding(dtype: torch.dtype) -> None:
    weight = WEIGHT.to(dtype)
    for mode in ("sum", "mean", "max"):
        got = F.embedding_bag(IDS, weight, OFFSETS, mode=mode)
        want = torch.nn.functional.embedding_bag(IDS, weight.double(), OFFSETS, mode=mode).to(dtype)
        torch.testing.assert_close(got, want, rtol=0 if mode == "max" else torch.finfo(dtype).eps, atol=0)


def test_maxima_keep_a_nan_that_comes_first_as_torch_does() -> None:
    weight = torch.tensor([[float("nan"), 1.0], [2.0, float("nan")], [3.0, 0.0]])
    ids, offsets = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([0, 3])
    want = torch.nn.functional.embedding_bag(ids, weight, offsets, mode="max")
    assert want.isnan().any()
    torch.testing.assert_close(F.embedding_bag(ids, weight, offsets, mode="max"), want, equal_nan=True)


def test_max_indices_are_the_first_maxima() -> None:
    ids, offsets = np.array([3, 1, 3, 0]), np.array([0, 3, 3])
    y, chosen = F.embedding_bag_forward(ids, np.ones((4, 2), np.float32), offsets, mode="max")
    assert y.tolist() == [[1, 1], [0, 0], [1, 1]]
    assert chosen.tolist() == [[3, 3], [-1, -1], [0, 0]]
    dweight = F.embedding_bag_backward(y, ids, np.ones((4, 2), np.float32), offsets, "max", max_indices=chosen)
    assert dweight[:, 0].tolist() == [1, 0, 0, 1]
    with pytest.raises(bc.InvalidProblemError, match="max_indices"):
        F.embedding_bag_backward(y, ids, np.ones((4, 2), np.float32), offsets, "max")


def test_ids_behind_the_last_offset_are_in_no_bag_but_checked() -> None:
    weight = np.arange(8, dtype=np.float32).reshape(4, 2)
    offsets = np.array([0, 1])
    for mode in ("sum", "mean", "max"):
        got = F.embedding_bag(np.array([2, 3]), weight, offsets, mode=mode, include_last_offset=True)
        np.testing.assert_array_equal(got, weight[[2]])
    dweight = F.embedding_bag_backward(got, np.array([2, 3]), weight, offsets, "sum", include_last_offset=True)
    np.testing.assert_array_equal(dweight, [[0, 0], [0, 0], [4, 5], [0, 0]])
    with pytest.raises(bc.IndexOutOfRangeError, match="4"):
        F.embedding_bag(np.array([2, 4]), weight, offsets, include_last_offset=True)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("offsets", "bad"), [([1, 2], 1), ([0, 6], 6), ([0, -2], -2), ([0, 4, 3], 4), ([-1, 2], -1), ([0, 2**40], 2**40)]
)
def test_bad_offsets_change_no_byte(offsets: list[int], bad: int, direction: str) -> None:
    desc: Any = bc.EmbeddingBagDescriptor((4, 2), (5,), offsets_shape=(len(offsets),), mode="sum")
    made = bc.plan(desc if direction == "forward" else desc.backward())
    args = {p.name: np.ones(p.shape, p.element.numpy) for p in made.signature.present}
    args["offsets"] = np.array(offsets)
    args["ids"][...] = 0
    (out,) = made.signature.outputs
    args[out.name][...] = 9
    with pytest.raises(bc.IndexOutOfRangeError, match=f"offsets.*{bad}"):
        made.run(**args, workspace=bc.empty(made.workspace_size, "u8"))
    assert (args[out.name] == 9).all()


@pytest.mark.parametrize("bad", [-1, 4, 2**40])
def test_a_bad_id_changes_no_byte(bad: int) -> None:
    for desc in (bc.EmbeddingBagDescriptor((4, 2), (3, 2)), bc.EmbeddingBagDescriptor((4, 2), (3, 2)).backward()):
        made = bc.plan(desc)
        args = {p.name: np.ones(p.shape, p.element.numpy) for p in made.signature.present}
        args["ids"][2, 0] = bad
        (out,) = made.signature.outputs
        args[out.name][...] = 9
        with pytest.raises(bc.IndexOutOfRangeError, match=str(bad)):
            made.run(**args, workspace=bc.empty(made.workspace_size, "u8"))
        assert (args[out.name] == 9).all()


@pytest.mark.parametrize(
    ("args", "kwargs", "match"),
    [
        ((IDS, WEIGHT), {}, "input: got"),
        ((TABLE, WEIGHT, OFFSETS), {}, "input: got"),
        ((IDS, WEIGHT, OFFSETS.int()), {}, "offsets"),
        ((IDS, WEIGHT, OFFSETS[:0]), {"include_last_offset": True}, "offsets_shape"),
        ((IDS, WEIGHT, [0, 3]), {}, "offsets: got a list, want a tensor"),
        ((IDS, WEIGHT, OFFSETS), {"mode": "min"}, "mode"),
        ((IDS, WEIGHT, OFFSETS), {"max_norm": 1.0}, "max_norm"),
        ((IDS, WEIGHT, OFFSETS), {"sparse": True}, "sparse"),
        ((IDS, WEIGHT, OFFSETS), {"padding_idx": 9}, "padding_idx"),
        ((IDS, WEIGHT, OFFSETS), {"per_sample_weights": torch.ones(40, dtype=torch.float64)}, "mode"),
        ((IDS, WEIGHT, OFFSETS), {"mode": "sum", "per_sample_weights": torch.ones(40)}, "per_sample_weights"),
        ((TABLE, WEIGHT), {"mode": "sum", "per_sample_weights": torch.ones(30, dtype=torch.float64)}, "per_sample"),
    ],
)
def test_refusals_name_the_argument(args: tuple[Any, ...], kwargs: dict[str, Any], match: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=match):
        F.embedding_bag(*args, **kwargs)


def test_one_plan_for_every_number_of_ids() -> None:
    ids, bags = bc.Dim("ids", max=50), bc.Dim("bags", max=10)
    desc = bc.EmbeddingBagDescriptor(
        (9, 7), (ids,), "f64", offsets_shape=(bags + 1,), mode="sum", include_last_offset=True
    )
    made = bc.plan(desc)
    for n, offsets in ((40, [0, 3, 40]), (2, [0, 0, 1, 2])):
        y = np.empty((len(offsets) - 1, 7))
        made.run(IDS[:n].numpy(), WEIGHT.numpy(), np.array(offsets), y)
        want = torch.nn.functional.embedding_bag(
            IDS[:n], WEIGHT, torch.tensor(offsets), mode="sum", include_last_offset=True
        )
        np.testing.assert_allclose(y, want.numpy(), rtol=1e-14, atol=1e-14)


def test_bits_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(2)
    weight, ids = rng.normal(size=(50, 300)).astype(np.float32), rng.integers(0, 50, 20_000)
    offsets = np.sort(rng.integers(0, 20_000, 700))
    offsets[0] = 0
    found = []
    before = bc.get_num_threads()
    try:
        for threads in (1, 2):
            bc.set_num_threads(threads)
            y = F.embedding_bag(ids, weight, offsets)
            found.append((y.tobytes(), F.embedding_bag_backward(y, ids, weight, offsets).tobytes()))
    finally:
        bc.set_num_threads(before)
    assert found[0] == found[1]
