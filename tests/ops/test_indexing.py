"""Reading and writing by index: torch's results, gradients and refusals; bad indices; threads; in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

G = torch.Generator().manual_seed(3)
X = torch.randn(4, 5, 6, dtype=torch.float64, generator=G)
SRC = torch.randn(4, 7, 6, dtype=torch.float64, generator=G)
INDEX = torch.randint(0, 5, (4, 7, 6), generator=G)
UNIQUE = torch.argsort(torch.rand(4, 5, 6, generator=G), 1)[:, :3]
ROWS = torch.tensor([3, 0, 3, 1])
SLICES = torch.randn(4, 4, 6, dtype=torch.float64, generator=G)
MASK = X > 0.3
T = torch.Tensor

CALLS: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    ("gather", F.gather, torch.gather, (X, 1, INDEX), {}),
    ("gather part", F.gather, torch.gather, (X, -1, INDEX[:2, :3]), {}),
    ("index_select", F.index_select, torch.index_select, (X, 1, ROWS), {}),
    ("index_select last", F.index_select, torch.index_select, (X, -1, ROWS.int()), {}),
    ("take", F.take, torch.take, (X, INDEX[0] - 3), {}),
    ("take_along_dim", F.take_along_dim, torch.take_along_dim, (X, INDEX - 3, 1), {}),
    ("masked_fill", F.masked_fill, torch.masked_fill, (X, MASK, 2.5), {}),
    ("masked_fill wide", F.masked_fill, torch.masked_fill, (X[0], MASK, -1), {}),
    ("masked_select", F.masked_select, torch.masked_select, (X, MASK), {}),
    ("masked_select wide mask", F.masked_select, torch.masked_select, (X[0], MASK), {}),
    ("masked_select wide input", F.masked_select, torch.masked_select, (X, MASK[0, :1]), {}),
    ("masked_select 0-d", F.masked_select, torch.masked_select, (X, torch.tensor(True)), {}),
    ("take_along_dim broadcast", F.take_along_dim, torch.take_along_dim, (X, INDEX[:1, :, :1], 1), {}),
    ("take_along_dim wide", F.take_along_dim, torch.take_along_dim, (X[:1], INDEX, 1), {}),
    ("take_along_dim row", F.take_along_dim, torch.take_along_dim, (X, INDEX), {}),
    ("gather 0-d", F.gather, torch.gather, (X[0, 0, 0], 0, torch.tensor([0, 0])), {}),
    ("gather one", F.gather, torch.gather, (X[0, 0], 0, torch.tensor(2)), {}),
    ("scatter 0-d", F.scatter, torch.scatter, (X[0, 0, 0], 0, torch.tensor([0]), X[0, 0, :1]), {}),
    ("scatter one", F.scatter, torch.scatter, (X[0, 0], 0, torch.tensor(2), X[0, 1, 0]), {}),
    ("scatter_add 0-d", F.scatter_add, torch.scatter_add, (X[0, 0, 0], 0, torch.tensor([0, 0]), X[0, 0, :2]), {}),
    ("index_copy 0-d", F.index_copy, torch.index_copy, (X[0, 0, 0], 0, torch.tensor([0]), X[0, 0, :1]), {}),
    ("scatter", F.scatter, torch.scatter, (X, 1, UNIQUE, SRC[:, :3]), {}),
    ("scatter number", F.scatter, torch.scatter, (X, 1, INDEX, 2.5), {}),
    ("scatter_add", F.scatter_add, torch.scatter_add, (X, 1, INDEX, SRC), {}),
    ("index_copy", F.index_copy, torch.index_copy, (X, 1, torch.tensor([4, 0, 2, 1]), SLICES), {}),
    ("index_add", F.index_add, torch.index_add, (X, 1, ROWS, SLICES), {"alpha": -0.5}),
    ("index_fill", F.index_fill, T.index_fill, (X, 2, ROWS - 4, 1.5), {}),
    ("masked_scatter", F.masked_scatter, torch.masked_scatter, (X, MASK, SRC), {}),
    ("masked_scatter wide", F.masked_scatter, torch.masked_scatter, (X[0], MASK, SRC), {}),
    ("masked_scatter wide mask", F.masked_scatter, torch.masked_scatter, (X, MASK[0, :1], SRC.repeat(2, 1, 1)), {}),
    *(
        (f"index_reduce {how} {own}", F.index_reduce, torch.index_reduce, (X, 1, ROWS, SLICES, how), {"include_self": own})
        for how in ("mean", "amax", "amin", "prod")
        for own in (True, False)
    ),
    *(
        (f"scatter_reduce {how} {own}", F.scatter_reduce, torch.scatter_reduce, (X, 1, INDEX, SRC, how), {"include_self": own})
        for how in ("sum", "mean", "amax", "amin", "prod")
        for own in (True, False)
    ),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize(("ours", "torchs", "args", "kwargs"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_results_and_gradients_are_torchs(
    ours: Callable[..., Any], torchs: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    given = [a.clone().requires_grad_() if isinstance(a, T) and a.dtype.is_floating_point else a for a in args]
    want = torchs(*given, **kwargs)
    dy = torch.randn_like(want)
    want.backward(dy)
    y, pull = bc.vjp(ours, *args, **kwargs)
    torch.testing.assert_close(y, want.detach(), rtol=1e-14, atol=1e-14)
    found = pull(dy)
    for got, x in zip(
        found if isinstance(found, tuple) else (found,),
        (g for g in given if isinstance(g, T) and g.requires_grad),
        strict=True,
    ):
        torch.testing.assert_close(got, x.grad, rtol=1e-13, atol=1e-13)
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.int16, torch.bool):
        if ours is F.masked_fill and dtype is torch.uint8 and args[2] == -1:
            continue
        if ours is F.scatter and not dtype.is_floating_point and not isinstance(args[3], T):
            continue  # refused: torch cuts 2.5 to 2
        if not dtype.is_floating_point and (
            "alpha" in kwargs or "mean" in args or (dtype is torch.bool and F.index_add is ours)
        ):
            continue
        typed = [(3 * a).to(dtype) if isinstance(a, T) and a.dtype.is_floating_point else a for a in args]
        try:
            reference = torchs(*typed, **kwargs)
        except RuntimeError:
            continue
        torch.testing.assert_close(ours(*typed, **kwargs), reference, msg=str(dtype))


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("dim", [0, -1])
def test_index_reduce_along_other_dimensions(dim: int) -> None:
    source = X.select(dim, 1).unsqueeze(dim).expand(*(4 if d == dim % 3 else n for d, n in enumerate(X.shape))) * 1.5
    x, s = X.clone().requires_grad_(), source.clone().requires_grad_()
    want = torch.index_reduce(x, dim, ROWS, s, "amax")
    y, pull = bc.vjp(F.index_reduce, X, dim, ROWS.int(), source, "amax")
    assert torch.equal(y, want.detach())
    for got, wanted in zip(pull(X), torch.autograd.grad(want, (x, s), X), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-14, atol=0)


@pytest.mark.parametrize("ids", [[7, -3], [0], [-1, 0]])
def test_nothing_is_in_range_of_an_empty_axis(ids: list[int]) -> None:
    index, none = np.array(ids), np.empty((0, 3), np.float32)
    for call in (
        lambda: F.index_select(none, 0, index),
        lambda: F.gather(none, 0, np.repeat(index[:, None], 3, 1)),
        lambda: F.embedding(index, none),
    ):
        with pytest.raises(bc.IndexOutOfRangeError, match=f"got index {ids[0]} at element 0, want"):
            call()


def test_what_index_reduce_and_masked_scatter_refuse() -> None:
    for call, match in (
        (lambda: F.index_reduce(X, 1, ROWS, SLICES, "sum"), "reduce: got 'sum'"),
        (lambda: F.index_reduce(X, 1, ROWS, SRC, "prod"), "source: got f64"),
        (lambda: F.index_reduce(X, 1, INDEX, SLICES, "prod"), "index: got rank 3"),
        (lambda: F.masked_scatter(X, INDEX, SRC), "mask: got i64"),
        (lambda: F.masked_scatter(X, MASK, SRC.float()), "source: got f32, want f64"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            call()
    with pytest.raises(bc.IndexOutOfRangeError):
        F.index_reduce(X, 1, ROWS + 3, SLICES, "prod")
    with pytest.raises(bc.IndexOutOfRangeError):
        F.masked_scatter(X, MASK, SRC[0, 0])
    none = torch.zeros_like(MASK)
    assert torch.equal(F.masked_scatter(X, none, X[:0]), X) and F.masked_scatter(X[:0], MASK[:0], SRC).shape == (
        0,
        5,
        6,
    )


def test_prod_is_torchs() -> None:
    for own in (True, False):
        args: tuple[Any, ...] = (X, 1, INDEX, SRC, "prod")
        want = torch.scatter_reduce(*args, include_self=own)
        torch.testing.assert_close(F.scatter_reduce(*args, include_self=own), want, rtol=1e-14, atol=0)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("how", ["prod", "amax", "mean"])
def test_gradients_of_folds_with_zeros_and_parts(how: str, own: bool) -> None:
    """torch's rule for products: no zero, one and several among what a place gets; src larger than index."""
    x = torch.tensor([2.0, 0, 3, 5, 0, 4], dtype=torch.float64).requires_grad_()
    src = torch.tensor([3.0, 0, 2, 0, 0, 5, 7, 0, 2, 9], dtype=torch.float64).requires_grad_()
    index = torch.tensor([0, 0, 1, 2, 2, 3, 3, 4, 4])
    want = torch.scatter_reduce(x, 0, index, src[:9], how, include_self=own)  # its gradient wants equal shapes
    dy = torch.arange(1.0, 7, dtype=torch.float64)
    wanted = torch.autograd.grad(want, (x, src), dy)
    y, pull = bc.vjp(F.scatter_reduce, x.detach(), 0, index, src.detach(), how, include_self=own)
    assert torch.equal(y, want.detach())
    for got, w in zip(pull(dy), wanted, strict=True):
        torch.testing.assert_close(got, w, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_sources_larger_than_the_index(name: str) -> None:
    index, src = UNIQUE[:3, :2, :5], SRC.clone().requires_grad_()
    x = X.clone().requires_grad_()
    want = getattr(torch, name)(x, 1, index, src[:3, :2, :5])
    y, pull = bc.vjp(getattr(F, name), X, 1, index, SRC)
    assert torch.equal(y, want.detach()) and torch.equal(y, getattr(torch, name)(X, 1, index, SRC))
    for got, wanted in zip(pull(X), torch.autograd.grad(want, (x, src), X), strict=True):
        assert torch.equal(got, wanted)


def test_scatter_takes_torchs_other_forms() -> None:
    assert torch.equal(F.scatter(X, 1, INDEX, value=2.5), torch.scatter(X, 1, INDEX, value=2.5))
    for how, name in (("add", "sum"), ("multiply", "prod")):
        want = torch.scatter_reduce(X, 1, INDEX, SRC, name)
        y, pull = bc.vjp(F.scatter, X, 1, INDEX, SRC, reduce=how)
        assert torch.equal(y, F.scatter_reduce(X, 1, INDEX, SRC, name))
        torch.testing.assert_close(y, want)
        assert len(pull(y)) == 2
    y, pull = bc.vjp(F.scatter, X, 1, INDEX, value=1.0)
    assert torch.equal(pull(X), torch.scatter(X, 1, INDEX, 0.0))


@pytest.mark.parametrize("kind", ["numpy", "own", "jax"])
def test_views_that_are_cut_and_broadcast_for_other_kinds(kind: str) -> None:
    jax = pytest.importorskip("jax")
    to = {"numpy": np.asarray, "own": bc.asarray, "jax": lambda a: jax.numpy.asarray(a)}[kind]
    x, src, index = X.float().numpy(), SRC.float().numpy(), INDEX.numpy()
    i = index.astype(np.int32)[:3, :2, :5]
    want = torch.scatter(X.float(), 1, INDEX[:3, :2, :5], SRC.float()).numpy()
    got = F.scatter(to(x), 1, to(i), to(src))
    assert isinstance(got, type(to(x))) and np.array_equal(np.asarray(got), want)
    if kind != "jax":  # which has no i64
        got = F.take_along_dim(to(x), to(index[:1, :, :1]), 1)
        assert np.array_equal(np.asarray(got), np.take_along_axis(x, index[:1, :, :1], 1))


def test_integer_means_are_rounded_down() -> None:
    x, src = torch.tensor([-3, 5, 7]), torch.tensor([-4, 2, 1])
    index = torch.tensor([0, 0, 2])
    for own in (True, False):
        args: tuple[Any, ...] = (x, 0, index, src, "mean")
        assert torch.equal(F.scatter_reduce(*args, include_self=own), torch.scatter_reduce(*args, include_self=own))


def test_nan_propagates() -> None:
    x, src = torch.zeros(3), torch.tensor([float("nan"), 1.0, 2.0])
    for how in ("amax", "amin"):
        got = F.scatter_reduce(x, 0, torch.tensor([0, 0, 1]), src, how)
        assert (
            torch.equal(
                got,
                torch.scatter_reduce(x, 0, torch.tensor([0, 0, 1]), src, how),
            )
            or got.isnan()[0]
        )
        assert got.isnan().tolist() == [True, False, False]


def test_nonzero_and_one_hot() -> None:
    for x in (
        X > 0.5,
        torch.tensor([0.0, -0.0, float("nan"), 1]),
        torch.zeros(3, 0),
        torch.tensor(1.0),
        torch.tensor(0),
    ):
        assert torch.equal(F.nonzero(x), torch.nonzero(x)) and torch.equal(F.argwhere(x), torch.argwhere(x))
        for got, want in zip(F.nonzero(x, as_tuple=True), torch.nonzero(x, as_tuple=True), strict=True):
            assert torch.equal(got, want)
    for index, n in ((ROWS, 5), (ROWS, -1), (ROWS[:0], 3), (ROWS.reshape(2, 2), 4), (torch.tensor(1), 3)):
        assert torch.equal(F.one_hot(index, n), torch.nn.functional.one_hot(index, n))
    large = (np.arange(300_000) % 3 == 0).reshape(300, 1000)
    np.testing.assert_array_equal(F.nonzero(large), np.argwhere(large))
    assert isinstance(F.nonzero(bc.zeros((3, 2))), bc.Tensor)


WRITERS: list[Any] = [
    bc.GatherDescriptor((5, 3), (5, 3)),
    bc.GatherBackwardDescriptor((5, 3), (5, 3)),
    bc.IndexSelectDescriptor((5, 3), (5,)),
    bc.ScatterDescriptor((5, 3), (5, 3)),
    bc.ScatterReduceDescriptor((5, 3), (5, 3), mode="mean"),
    bc.IndexAddDescriptor((5, 3), (5,)),
    bc.IndexCopyDescriptor((5, 3), (5,)),
]


@pytest.mark.parametrize("bad", [-1, 5, 2**40])
@pytest.mark.parametrize("desc", WRITERS, ids=lambda d: type(d).__name__)
def test_a_bad_index_changes_no_byte(desc: Any, bad: int) -> None:
    made = bc.plan(desc)
    args = {p.name: np.ones(p.shape, p.element.numpy) for p in made.signature.present}
    (out,) = made.signature.outputs
    args["index"][...] = 0
    args["index"][3] = bad
    args[out.name][...] = 9
    with pytest.raises(bc.IndexOutOfRangeError, match=str(bad)):
        made.run(**args, workspace=bc.empty(made.workspace_size, "u8") if made.workspace_size else None)
    assert (args[out.name] == 9).all()


def test_negative_indices_wrap_only_where_torch_wraps() -> None:
    for name in ("gather", "scatter_add"):
        with pytest.raises(bc.IndexOutOfRangeError):
            getattr(F, name)(*((X, 1, -INDEX - 1) if name == "gather" else (X, 1, -INDEX - 1, SRC)))
    with pytest.raises(bc.IndexOutOfRangeError):
        F.take(X, torch.tensor([-121]))
    with pytest.raises(bc.IndexOutOfRangeError):
        F.one_hot(torch.tensor([-1]), 3)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: F.gather(X, 1, INDEX[0]), "index: got"),
        (lambda: F.gather(X, 1, INDEX[:, :, [0] * 9]), "index: got"),
        (lambda: F.gather(X, 3, INDEX), "axis"),
        (lambda: F.gather(X, 1, INDEX.to(torch.float32)), "index"),
        (lambda: F.take(X, INDEX.int()), "index"),
        (lambda: F.index_select(X, 0, INDEX), "index: got"),
        (lambda: F.scatter(X, 1, INDEX, SRC.float()), "src"),
        (lambda: F.scatter(X, 1, INDEX, SRC[:, :3]), "src"),
        (lambda: F.scatter_reduce(X, 1, INDEX, SRC, "median"), "mode"),
        (lambda: F.index_add(X, 1, ROWS, SRC), "source"),
        (lambda: F.masked_fill(X, X, 1), "mask"),
        (lambda: F.masked_fill(torch.zeros(3, dtype=torch.uint8), torch.ones(3, dtype=torch.bool), 300), "value"),
        (lambda: F.masked_select(X, MASK[:, :2]), "mask"),
        (lambda: F.masked_select(X, INDEX), "mask"),
        (lambda: F.take_along_dim(X, INDEX[:, :, :5], 1), "indices"),
        (lambda: F.scatter(X, 1, INDEX), "src"),
        (lambda: F.scatter(X, 1, INDEX, SRC, value=1), "src"),
        (lambda: F.scatter(X, 1, INDEX, 2.0, reduce="add"), "reduce"),
        (lambda: F.scatter(X, 1, INDEX, SRC, reduce="mean"), "reduce"),
        (lambda: F.one_hot(ROWS.int(), 5), "tensor"),
        (lambda: F.one_hot(ROWS[:0]), "num_classes"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], field: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=field):
        call()


def test_the_last_of_equal_indices_stays_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(5)
    x, index = np.zeros((300, 400), np.float32), rng.integers(0, 300, (500, 400))
    src = rng.normal(size=(500, 400)).astype(np.float32)
    want = x.copy()
    for i in range(500):
        want[index[i], np.arange(400)] = src[i]
    sums = np.zeros((300, 400))
    np.add.at(sums, (index, np.arange(400)), src.astype(np.float64))
    for threads in (1, 2):
        limit = bc.PlanPreference(threads=threads)
        y = np.empty_like(x)
        made = bc.plan(bc.ScatterDescriptor(x.shape, index.shape), preference=limit)
        made.run(x, index, src, y)
        np.testing.assert_array_equal(y, want)
        made = bc.plan(bc.ScatterReduceDescriptor(x.shape, index.shape), preference=limit)
        made.run(x, index, src, y, workspace=bc.empty(made.workspace_size, "u8"))
        np.testing.assert_array_equal(y, sums.astype(np.float32))


def test_in_place() -> None:
    x, source = np.ones((5, 3), np.float32), np.full((2, 3), 2, np.float32)
    made = bc.plan(bc.IndexAddDescriptor((5, 3), (2,)))
    made.run(x, np.array([1, 1]), source, x, workspace=bc.empty(made.workspace_size, "u8"))
    np.testing.assert_array_equal(x[:, 0], [1, 5, 1, 1, 1])
    bc.plan(bc.IndexCopyDescriptor((5, 3), (2,))).run(x, np.array([4, 0]), source, x)
    np.testing.assert_array_equal(x[:, 0], [2, 5, 1, 1, 2])


def test_capacities() -> None:
    x = np.arange(6, dtype=np.int32) % 3
    for capacity in (0, 2, 4, 6):
        made = bc.plan(bc.NonzeroDescriptor((6,), capacity, "i32"))
        y, count = np.full((capacity, 1), 7), np.zeros((), np.int64)
        made.run(x, y, count, workspace=bc.empty(made.workspace_size, "u8"))
        want = np.zeros(6, np.int64)
        want[:4] = [1, 2, 4, 5]
        assert count == 4 and (y[:, 0] == want[:capacity]).all()


BY_INDEX: dict[str, Callable[[Any, T, T, T], Any]] = {
    "index_select": lambda lib, x, i, _: lib.index_select(x, 0, i),
    "take": lambda lib, x, i, _: lib.take(x, i),
    "gather": lambda lib, x, i, _: lib.gather(x, 0, i),
    "take_along_dim": lambda lib, x, i, _: lib.take_along_dim(x, i),
    "index_fill": lambda lib, x, i, _: lib.index_fill(x, 0, i, 9.0),
    "index_add": lambda lib, x, i, source: lib.index_add(x, 0, i, source),
    "index_copy": lambda lib, x, i, source: lib.index_copy(x, 0, i, source),
    "scatter": lambda lib, x, i, source: lib.scatter(x, 0, i, source),
    "scatter_number": lambda lib, x, i, _: lib.scatter(x, 0, i, 9.0),
    "scatter_add": lambda lib, x, i, source: lib.scatter_add(x, 0, i, source),
    **{
        f"{name}_{mode}": lambda lib, x, i, source, name=name, mode=mode: getattr(lib, name)(x, 0, i, source, mode)
        for name in ("index_reduce", "scatter_reduce")
        for mode in ("prod", "amax", "mean")
    },
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", BY_INDEX)
def test_rank_0_with_any_number_of_indices(name: str) -> None:
    """What torch gives, or a refusal where torch has one: a tensor of rank 0 has one element, however many indices."""
    call = BY_INDEX[name]
    wrong = []
    for count in (None, 0, 1, 2, 5):
        index = torch.zeros(() if count is None else (count,), dtype=torch.int64)
        for source in (torch.tensor(7.0), torch.arange(7.0, 7.0 + index.numel()).reshape(index.shape)):
            for x in (torch.tensor(3.0), torch.tensor([3.0])):
                found: list[Any] = []
                for lib in (torch, F):
                    try:
                        found.append(call(lib, x, index, source).tolist())
                    except (RuntimeError, IndexError):  # torch's; ours are the same or bc.InvalidProblemError
                        found.append("refused")
                    except bc.InvalidProblemError:
                        found.append("refused")
                if found[0] != found[1]:
                    wrong.append(f"x {tuple(x.shape)}, {count} indices, source {tuple(source.shape)}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize(("name", "element"), [("index_select", np.uint8), ("embedding", np.float16)])
def test_short_rows_of_every_length(name: str, element: type, gap: int) -> None:
    """They are moved in pieces that may overlap: no byte beside a row may change, and none of it may be left out."""
    rng = np.random.default_rng(7)
    for n in [*range(1, 70), 100, 127, 128, 129, 255, 256, 257, 512, 1000, 1024, 1025]:
        table = rng.integers(0, 100, (9, n + gap)).astype(element)[:, :n]
        ids = rng.integers(0, 9, 300).astype(rng.choice([np.int64, np.int32]))
        room = np.full((302, n + gap), 77, element)
        out = room[1:-1, :n]
        if name == "index_select":
            F.index_select(table, 0, ids, out=out)
        else:
            made = bc.plan(bc.EmbeddingDescriptor(table.shape, ids.shape, element, index_element=ids.dtype))
            made.run(ids=ids, weight=table, y=out)
        np.testing.assert_array_equal(out, table[ids], err_msg=str(n))
        out[:] = 77
        assert (room == 77).all(), n


@pytest.mark.parametrize("columns", [3, 16, 100])
@pytest.mark.parametrize("shift", [0, 4, 20])
def test_results_that_are_written_past_the_caches(columns: int, shift: int) -> None:
    """Large ones, which begin anywhere in a line."""
    rows = (17 << 20) // (4 * columns)
    memory = np.full(rows * columns + 32, -1, np.float32)
    start = -memory.ctypes.data % 64 // 4 + shift // 4
    out = memory[start : start + rows * columns].reshape(rows, columns)
    table = np.random.default_rng(1).normal(size=(1000, columns)).astype(np.float32)
    ids = np.arange(rows) * 7919 % 1000
    F.index_select(table, 0, ids, out=out)
    np.testing.assert_array_equal(out, table[ids])
    out[:] = -1
    assert (memory == -1).all()


@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint32])
def test_a_bad_index_is_named_wherever_it_is(index: type) -> None:
    """The first one, whichever thread finds one first."""
    x, limit = np.zeros((5, 2), np.float32), 5
    for at in (0, 255, 256, 32768, 99_999):
        ids = np.zeros(100_000, index)
        ids[at], ids[99_999] = limit, limit + 1
        for view in (ids, np.repeat(ids, 2)[::2]):
            with pytest.raises(bc.IndexOutOfRangeError, match=rf"\b{limit + (at == 99_999)}\b") as error:
                F.index_select(x, 0, view)
            assert str(at) in str(error.value)


@pytest.mark.parametrize("name", ["size", "fill_value"])
def test_nonzero_static_names_what_i64_does_not_hold(name: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=rf"nonzero_static\(\): {name}: got {2**70}"):
        F.nonzero_static(np.eye(2), **{"size": 3, name: 2**70})
