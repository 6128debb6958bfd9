"""Matrix products: what the generated tests do not see: torch's functions and gradients, threads, strides, sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

torch = pytest.importorskip("torch")


def variants(desc: bc.MatmulDescriptor) -> list[str]:
    """The rows that take a problem on this machine."""
    names = ("thin", "bf16_dot", "packed", "blas")
    return [n for n in names if bc.MatmulPlan.query(desc, preference=bc.PlanPreference(sku=n))]


def run(desc: bc.MatmulDescriptor, *args: object, **preference: object) -> None:
    made = bc.plan(desc, preference=bc.PlanPreference(**preference))
    made.run(*args, workspace=bc.empty(made.workspace_size, "u8") if made.workspace_size else None)


def random(*shape: int, dtype: object = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def close(got: object, want: object) -> None:
    torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(want), rtol=1e-12, atol=1e-12)


T64 = {"dtype": torch.float64}
CALLS = [
    ("matmul", (5, 7), (7, 3)), ("matmul", (7,), (7, 3)), ("matmul", (5, 7), (7,)), ("matmul", (7,), (7,)),
    ("matmul", (2, 1, 5, 7), (3, 7, 4)), ("matmul", (7,), (3, 7, 4)), ("matmul", (3, 5, 7), (7,)),
    ("mm", (5, 7), (7, 3)),
    ("bmm", (3, 5, 7), (3, 7, 2)), ("mv", (5, 7), (7,)), ("dot", (7,), (7,)), ("matmul", (4, 6, 7), (7, 9)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "a", "b"), CALLS)
def test_functions_and_gradients_are_torchs(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = torch.randn(a, **T64).requires_grad_(), torch.randn(b, **T64).requires_grad_()
    want = getattr(torch, name)(x, y)
    dy = torch.randn_like(want)
    want.backward(dy)
    for convert in (lambda t: t.detach(), lambda t: t.detach().numpy()):
        got, pull = bc.vjp(getattr(F, name), convert(x), convert(y))
        assert type(got) is type(convert(x)) or got.shape == ()
        close(got, want.detach())
        dx, dother = pull(convert(dy) if want.ndim else np.asarray(dy))
        close(dx, x.grad)
        close(dother, y.grad)


@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 5, 7), (2, 3, 5, 7)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_and_its_gradients_are_torchs(shape: tuple[int, ...], with_bias: bool) -> None:
    x, w = torch.randn(shape, **T64).requires_grad_(), torch.randn(4, 7, **T64).requires_grad_()
    parameters = [x, w] + ([torch.randn(4, **T64).requires_grad_()] if with_bias else [])
    want = torch.nn.functional.linear(*parameters)
    dy = torch.randn_like(want)
    want.backward(dy)
    got, pull = bc.vjp(F.linear, *(p.detach() for p in parameters))
    close(got, want.detach())
    for gradient, p in zip(pull(dy), parameters, strict=True):
        close(gradient, p.grad)


TORCHS = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


@pytest.mark.parametrize("activation", TORCHS)
@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 5, 7)])
def test_activations_and_their_gradients_are_torchs(shape: tuple[int, ...], activation: str) -> None:
    parameters = [torch.randn(s, **T64).requires_grad_() for s in (shape, (4, 7), (4,))]
    for given in (parameters, parameters[:2]):
        want = TORCHS[activation](torch.nn.functional.linear(*given))
        dy = torch.randn_like(want)
        wanted = torch.autograd.grad(want, given, dy)
        got, pull = bc.vjp(F.linear, *(p.detach() for p in given), activation=activation)
        close(got, want.detach())
        for gradient, p in zip(pull(dy), wanted, strict=True):
            close(gradient, p)
    x, w = parameters[0], parameters[1]
    want = TORCHS[activation](torch.matmul(x, w.T))
    dy = torch.randn_like(want)
    wanted = torch.autograd.grad(want, (x, w), dy)
    got, pull = bc.vjp(F.matmul, x.detach(), w.detach().T, activation=activation)
    close(got, want.detach())
    dx, dw = pull(dy)
    close(dx, wanted[0])
    close(dw.T, wanted[1])


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu"])
def test_activations_see_the_sum_before_it_is_rounded(activation: str) -> None:
    x, w, b = (torch.randn(s).mul(0.3).bfloat16() for s in ((40, 100), (50, 100), (50,)))
    exact = TORCHS[activation](torch.nn.functional.linear(*(t.double() for t in (x, w, b))))
    got = F.linear(x, w, b, activation=activation).double()
    twice = TORCHS[activation](F.linear(x, w, b)).double()
    once = exact.to(torch.bfloat16).double()
    assert (got != once).sum() < 0.02 * got.numel() < 0.1 * got.numel() < (twice != once).sum()


@pytest.mark.parametrize("activation", TORCHS)
def test_every_row_activates_every_layout(activation: str) -> None:
    for m, n, k in ((3, 40, 30), (50, 60, 70), (300, 270, 40)):
        a, b, c, bias = random(m, k), random(k, n), random(m, n), random(n)
        sums = torch.from_numpy(2.0 * (a.astype("f8") @ b) - c + bias)
        for element, dtype, error in (("f32", "f4", 1e-5), ("f64", "f8", 1e-5), ("f16", "f2", 1e-2)):
            desc = bc.MatmulDescriptor((m, k), (k, n), element, bias=True, c_shape=(m, n), activation=activation)
            for variant in variants(desc):
                for how in ("plain", "transposed", "gaps"):
                    out = arranged(np.zeros((m, n), dtype), how)
                    tensors = [x.astype(dtype) for x in (a, b, c, bias)]
                    made = bc.plan(desc, preference=bc.PlanPreference(sku=variant))
                    made.run(*tensors, out, alpha=2, beta=-1, workspace=bc.empty(made.workspace_size, "u8"))
                    want = TORCHS[activation](sums).numpy()
                    if element == "f16":
                        assert np.abs(out - want).max() <= error * sums.abs().max().item(), (variant, how)
                    else:
                        assert np.allclose(out, want, rtol=error, atol=20 * error), (variant, how)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "i8"])
def test_integers_wrap_as_torchs(dtype: str) -> None:
    most = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    for a, b in (((5, 7), (7, 3)), ((40, 300), (300, 50)), ((3, 5, 7), (7, 4)), ((9,), (9, 5)), ((2100,), (2100,))):
        x, y = (rng.integers(most.min, most.max, s, dtype, endpoint=True) for s in (a, b))
        got = F.matmul(x, y)
        assert got.dtype == np.dtype(dtype)
        assert (np.asarray(got) == (torch.from_numpy(x) @ torch.from_numpy(y)).numpy()).all()
    c, x, y = (rng.integers(most.min, most.max, s, dtype, endpoint=True) for s in ((5, 3), (5, 7), (7, 3)))
    want = torch.addmm(*(torch.from_numpy(t) for t in (c, x, y)), beta=2, alpha=3).numpy()
    assert (F.addmm(c, x, y, beta=2, alpha=3) == want).all()


def test_integers_have_no_activation() -> None:
    with pytest.raises(bc.InvalidProblemError, match="activation"):
        bc.MatmulDescriptor((3, 4), (4, 5), "i32", activation="relu")
    with pytest.raises(bc.InvalidProblemError, match="one of none, relu"):
        F.linear(random(3, 4), random(5, 4), activation="swish")


ADDED = [
    ("addmm", (5, 3), (5, 7), (7, 3)), ("addmm", (3,), (5, 7), (7, 3)), ("addmm", (5, 1), (5, 7), (7, 3)),
    ("addmm", (), (5, 7), (7, 3)),
    ("baddbmm", (2, 5, 3), (2, 5, 7), (2, 7, 3)), ("baddbmm", (5, 1), (2, 5, 7), (2, 7, 3)),
    ("addbmm", (5, 3), (2, 5, 7), (2, 7, 3)), ("addmv", (5,), (5, 7), (7,)), ("addmv", (1,), (5, 7), (7,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "c", "a", "b"), ADDED)
def test_additions_are_torchs(name: str, c: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> None:
    args = [torch.randn(s, **T64) for s in (c, a, b)]
    close(getattr(F, name)(*args), getattr(torch, name)(*args))
    close(getattr(F, name)(*args, beta=0.5, alpha=-2), getattr(torch, name)(*args, beta=0.5, alpha=-2))
    args[0].fill_(float("nan"))
    close(getattr(F, name)(*args, beta=0), getattr(torch, name)(*args, beta=0))


def test_out_is_written() -> None:
    a, b, out = random(5, 7), random(7, 3), np.empty((5, 3), np.float32)
    assert F.matmul(a, b, out=out) is out
    assert np.allclose(out, a @ b, rtol=1e-5, atol=1e-5)


PROBLEMS = [
    ((1, 700), (700, 300)),
    ((5, 300), (300, 70)),
    ((130, 520), (520, 200)),
    ((300, 4200), (4200, 40)),
    ((9, 33, 65), (65, 20)),
    ((7, 40, 30), (7, 30, 50)),
]


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(("a", "b"), PROBLEMS)
def test_bits_do_not_depend_on_threads_or_runs(element: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    desc = bc.MatmulDescriptor(a, b, element)
    dtype = bc.Element.coerce(element).numpy
    x, y = random(*a, dtype=dtype), random(*b, dtype=dtype)
    for variant in variants(desc):
        made = []
        for threads in (1, 2, 5, 2):
            out = np.empty(desc.output_shape(), dtype)
            run(desc, x, y, out, sku=variant, threads=threads)
            made.append(out.tobytes())
        assert len(set(made)) == 1, f"{variant}: bits differ with threads"


def test_packed_row_is_batch_invariant() -> None:
    x, y = random(200, 300), random(300, 150)
    whole = np.empty((200, 150), np.float32)
    run(bc.MatmulDescriptor(x.shape, y.shape), x, y, whole, batch_invariant=True)
    for rows in (slice(0, 1), slice(3, 10), slice(17, 150)):
        part = np.empty_like(whole[rows])
        run(bc.MatmulDescriptor(x[rows].shape, y.shape), x[rows], y, part, batch_invariant=True)
        assert (part == whole[rows]).all()


def arranged(x: np.ndarray, how: str) -> np.ndarray:
    """The same values in another place: transposed, with gaps, reversed, all of them."""
    if how == "transposed":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if how == "gaps":
        wide = np.zeros((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1]), x.dtype)
        wide[..., ::2, ::3] = x
        return wide[..., ::2, ::3]
    return np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1] if how == "reversed" else x


@pytest.mark.parametrize("sizes", [(1, 40, 30), (6, 50, 33), (40, 3, 20), (50, 60, 70)])
def test_layouts_in_all_combinations(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    desc = bc.MatmulDescriptor((2, m, k), (2, k, n), "f64", c_shape=(2, m, n))
    a, b, c = random(2, m, k, dtype="f8"), random(2, k, n, dtype="f8"), random(2, m, n, dtype="f8")
    want = 2 * (a @ b) - c
    layouts = ("plain", "transposed", "gaps", "reversed")
    for variant in variants(desc):
        for how in itertools.product(layouts, repeat=3):
            out = arranged(np.zeros_like(want), how[2])
            run_plan = bc.plan(desc, preference=bc.PlanPreference(sku=variant))
            workspace = bc.empty(run_plan.workspace_size, "u8")
            run_plan.run(arranged(a, how[0]), arranged(b, how[1]), c, out, alpha=2, beta=-1, workspace=workspace)
            assert np.allclose(out, want, rtol=1e-12, atol=1e-12), (variant, how)


@pytest.mark.parametrize("layout", ["plain", "transposed", "gaps"])
def test_accumulates_in_place(layout: str) -> None:
    for m, n, k in ((3, 200, 50), (70, 80, 2500)):
        a, b, out = random(m, k, dtype="f8"), random(k, n, dtype="f8"), arranged(random(m, n, dtype="f8"), layout)
        want = 0.5 * (a @ b) + 2 * out
        desc = bc.MatmulDescriptor(a.shape, b.shape, "f64", c_shape=out.shape)
        for variant in variants(desc):
            target = arranged(np.array(out), layout)
            made = bc.plan(desc, preference=bc.PlanPreference(sku=variant))
            made.run(a, b, target, target, alpha=0.5, beta=2, workspace=bc.empty(made.workspace_size, "u8"))
            assert np.allclose(target, want, rtol=1e-11, atol=1e-11), variant


def test_output_over_a_factor_is_refused() -> None:
    a, b = random(6, 6), random(6, 6)
    before = a.copy()
    made = bc.plan(bc.MatmulDescriptor((6, 6), (6, 6)))
    with pytest.raises(bc.BaracudaError, match="same memory as a"):
        made.run(a, b, a, workspace=bc.empty(made.workspace_size, "u8"))
    assert (a == before).all()


def test_strides_past_two_to_the_31() -> None:
    # Two rows far apart in a file that is almost all hole.
    import mmap

    apart = 2**31 + 64
    memory = np.frombuffer(mmap.mmap(-1, (apart + 4096) * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.float32)
    far = np.lib.stride_tricks.as_strided(memory, (2, 40), (apart * 4, 4))
    far[...] = random(2, 40)
    b = random(40, 30)
    out = np.empty((2, 30), np.float32)
    desc = bc.MatmulDescriptor((2, 40), (40, 30))
    for variant in variants(desc):
        run(desc, far, b, out, sku=variant)
        assert np.allclose(out, far @ b, rtol=1e-4, atol=1e-5), variant
    back = np.empty((30, 2), np.float32)
    desc = bc.MatmulDescriptor((30, 40), (40, 2))
    for variant in variants(desc):
        run(desc, b.T, far.T, back, sku=variant)
        assert np.allclose(back, b.T @ far.T, rtol=1e-4, atol=1e-5), variant


def test_one_plan_serves_all_sizes_of_a_dim() -> None:
    tokens = bc.Dim("tokens", max=300)
    desc = bc.MatmulDescriptor((4, tokens, 70), (70, 90))
    made = bc.plan(desc)
    workspace = bc.empty(made.workspace_size, "u8")
    w = random(70, 90)
    for n in (0, 1, 2, 9, 100, 300):
        x, out = random(4, n, 70), np.empty((4, n, 90), np.float32)
        made.run(x, w, out, workspace=workspace)
        assert np.allclose(out, x @ w, rtol=1e-4, atol=1e-4)


def test_equal_terms_do_not_drift() -> None:
    # 0.1 * 0.1 added a million times: a single running f32 sum would be off by far more than the bound.
    k = 1 << 20
    a, b = np.full((9, k), 0.1, np.float32), np.full((k, 9), 0.1, np.float32)
    exact = k * float(np.float32(0.1)) ** 2
    desc = bc.MatmulDescriptor(a.shape, b.shape)
    for variant in variants(desc):
        out = np.empty((9, 9), np.float32)
        run(desc, a, b, out, sku=variant)
        allowed = (
            bc.plan(desc, preference=bc.PlanPreference(sku=variant)).precision_guarantee.c * 2.0**-23 * k**0.5 * exact
        )
        assert np.abs(out - exact).max() <= allowed, variant


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"a_shape": (3,), "b_shape": (3, 4)}, "a_shape"), ({"a_shape": (2, 3), "b_shape": (4, 5)}, "b_shape"),
        ({"a_shape": (2, 2, 3), "b_shape": (3, 3, 5)}, "b_shape"),
        ({"a_shape": (2, 3), "b_shape": (3, 5), "c_shape": (3, 5)}, "c_shape"),
        ({"a_shape": (4, 2, 3), "b_shape": (3, 5), "batch_shape": (2,)}, "batch_shape"),
        ({"a_shape": (2, 3), "b_shape": (3, 5), "element": "x9"}, "element"),
    ],
)  # fmt: skip
def test_wrong_problems_name_the_field(fields: dict[str, object], named: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=named):
        bc.MatmulDescriptor(**fields)


def test_functions_refuse_what_torch_refuses() -> None:
    with pytest.raises(bc.InvalidProblemError, match="one element"):
        F.matmul(random(3, 4), random(4, 5, dtype="f8"))
    with pytest.raises(bc.InvalidProblemError, match="2 dimensions"):
        F.mm(random(2, 3, 4), random(4, 5))
    with pytest.raises(bc.InvalidProblemError, match="linear"):
        F.linear(random(3, 4), random(5, 3))


def test_gradient_descriptors() -> None:
    desc = bc.MatmulDescriptor((2, 3, 5, 7), (3, 7, 4), "f64")
    a, b, dout = random(2, 3, 5, 7, dtype="f8"), random(3, 7, 4, dtype="f8"), random(2, 3, 5, 4, dtype="f8")
    da, db = np.empty_like(a), np.empty_like(b)
    run(desc.backward_a(), dout, b.swapaxes(-1, -2), da)
    run(desc.backward_b(), a.swapaxes(-1, -2), dout, db)
    assert np.allclose(da, dout @ b.swapaxes(-1, -2))
    assert np.allclose(db, (a.swapaxes(-1, -2) @ dout).sum(0))
