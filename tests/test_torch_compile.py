"""torch.compile(backend="baracuda"): models, forward and backward, agree with eager torch, and what is written is written."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as N
from torch.utils.checkpoint import checkpoint

import baracuda as bc
import baracuda.torch
from baracuda.torch.report import Report

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    baracuda.torch.report(reset=True)
    yield
    torch._dynamo.reset()


def compiled(fn: Any, **options: Any) -> Any:
    return torch.compile(fn, backend="baracuda", **options)


def seen() -> Report:
    return baracuda.torch.report()


def agrees(model: nn.Module, *args: Any, fallbacks: tuple[str, ...] = (), **kwargs: Any) -> None:
    """Results, gradients of parameters and of arguments, and buffers are those of eager torch."""
    twin = _twin(model)
    floats = [a for a in args if _is_float(a)]
    mine, theirs = ([a.detach().clone().requires_grad_() for a in floats] for _ in range(2))

    def run(fn: Any, given: list[torch.Tensor]) -> Any:
        torch.manual_seed(1)
        left = iter(given)
        out = fn(*[next(left) if _is_float(a) else a for a in args], **kwargs)
        (out if out.ndim == 0 else out.square().sum()).backward()
        return out

    wide = _twin(model).double()
    got, want = run(compiled(model), mine), run(twin, theirs)
    exact = [a.detach().double().requires_grad_() for a in floats]
    near(got, want, run(wide, exact))
    assert got.stride() == want.stride()
    for a, b, c in zip(mine, theirs, exact, strict=True):
        near(a.grad, b.grad, c.grad)
    for p, q, r in zip(model.parameters(), twin.parameters(), wide.parameters(), strict=True):
        near(p.grad, q.grad, r.grad)
    for b, c in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(b, c)
    assert set(seen().fallbacks) == set(fallbacks), str(seen())
    assert not seen().whole and not seen().refused and not seen().relaid, str(seen())
    assert seen().runs >= 1


def near(got: Any, want: Any, exact: Any) -> None:
    """As near to eager torch as `assert_close` asks, or as near to float64 as that is: sums that cancel are neither's fault."""
    assert got.dtype == want.dtype and got.shape == want.shape

    def off(x: torch.Tensor) -> float:
        return float((x.detach().double() - exact.detach()).square().mean().sqrt())

    if not torch.isfinite(exact).all() or off(got) > 2 * off(want):
        torch.testing.assert_close(got, want)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _twin(model: nn.Module) -> nn.Module:
    import copy

    return copy.deepcopy(model)


class Norm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotated(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    cos, sin = (torch.cat([f, f], -1) for f in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Block(nn.Module):
    """Of a transformer as Llama has it."""

    def __init__(self, size: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = Norm(size), Norm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size, bias=False)
        self.gate, self.up, self.down = nn.Linear(size, 48), nn.Linear(size, 48), nn.Linear(48, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, -1))
        y = N.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, d))
        h = self.after(x)
        return x + self.down(N.silu(self.gate(h)) * self.up(h))


class Gpt(nn.Module):
    """As GPT-2: learned positions, LayerNorm, one table for words and logits, and its loss."""

    def __init__(self, words: int = 50, size: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(16, size)
        layer = nn.TransformerEncoderLayer(size, 4, 64, dropout, N.gelu, batch_first=True, norm_first=True)
        self.layers = nn.ModuleList([layer, _twin(layer)])
        self.norm = nn.LayerNorm(size)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        logits = N.linear(self.norm(x), self.words.weight)
        return N.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, stride=2, groups=4), nn.BatchNorm2d(12), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(12, 5),
    )  # fmt: skip


@pytest.mark.parametrize(
    "activation", [nn.ReLU, nn.GELU, nn.Tanh, nn.ELU, nn.LeakyReLU, nn.Softplus, nn.Mish, nn.Sigmoid]
)
def test_perceptrons(activation: Callable[[], nn.Module]) -> None:
    agrees(nn.Sequential(nn.Linear(13, 31), activation(), nn.Linear(31, 7), nn.LogSoftmax(-1)), torch.randn(5, 13))


def test_a_convnet_in_training_updates_its_statistics() -> None:
    agrees(convnet(), torch.randn(4, 3, 17, 15))


def test_a_convnet_in_channels_last_keeps_its_strides() -> None:
    x = torch.randn(4, 3, 17, 15).contiguous(memory_format=torch.channels_last)
    agrees(convnet()[:7].to(memory_format=torch.channels_last), x)


def test_a_convnet_in_evaluation() -> None:
    agrees(convnet().eval(), torch.randn(4, 3, 17, 15))


def test_a_transformer_block() -> None:
    agrees(Block(), torch.randn(2, 7, 32))


def test_a_gpt() -> None:
    agrees(Gpt(), torch.randint(0, 50, (3, 11)))


def test_dropout_draws_what_eager_draws() -> None:
    agrees(
        nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.3), nn.Linear(64, 64), nn.Dropout(0.7)),
        torch.randn(9, 8),
        fallbacks=("draw_mask",),
    )


def test_an_lstm_runs_in_torch() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.head = nn.LSTM(6, 10, batch_first=True), nn.Linear(10, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(N.relu(self.cells(x.tanh())[0][:, -1]))

    model, x = Last(), torch.randn(4, 5, 6)
    got = compiled(model)(x)
    torch.testing.assert_close(got, model(x))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode: Callable[[], Any]) -> None:
    model, x = Block().eval(), torch.randn(2, 5, 32)
    with mode():
        got, want = compiled(model)(x), model(x)
    torch.testing.assert_close(got, want)
    assert not seen().fallbacks and got.is_inference() == want.is_inference()


@pytest.mark.parametrize("backward", [False, True])
def test_autocast(backward: bool) -> None:
    model, x = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)), torch.randn(512, 32)
    exact = _twin(model).double()(x.double()).detach()

    def run(fn: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return fn(x)

    got, want = run(compiled(model)), run(_twin(model))
    assert got.dtype == want.dtype == torch.bfloat16

    def rms(y: torch.Tensor) -> float:
        return float((y.detach().double() - exact).square().mean().sqrt())

    assert rms(got) <= 1.02 * rms(want)
    if backward:
        got.float().square().sum().backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())
    assert not seen().fallbacks, str(seen())


@pytest.mark.parametrize("dropout", [False, True])
def test_checkpoint(dropout: bool) -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [nn.Linear(32, 32), nn.Dropout(0.4), nn.Linear(32, 32)]
            self.blocks = nn.ModuleList([Block(), nn.Sequential(*layers) if dropout else Block()])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    fallbacks = ("draw_mask", "draw_mask_again", "save_state") if dropout else ("save_state",)
    agrees(Saving(), torch.randn(2, 5, 32), fallbacks=fallbacks)


def test_arguments_that_are_written() -> None:
    def fn(cache: torch.Tensor, count: torch.Tensor, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        cache.index_copy_(1, at, x)
        cache[0, :2] = x[0, :2] * 2
        count.add_(1)
        return cache.sum(1) * count

    at, x = torch.tensor([3, 1]), torch.randn(4, 2, 6)
    mine, theirs = ([torch.zeros(4, 9, 6), torch.zeros(())] for _ in range(2))
    run = compiled(fn)
    for _ in range(3):
        got, want = run(*mine, x, at), fn(*theirs, x, at)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(mine, theirs)
    assert not seen().fallbacks and seen().partitions == 1, str(seen())


def test_a_value_from_before_a_write_is_kept() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = x.clone()
        shown = x[1:]
        x.mul_(2)
        y.copy_(before + 1)
        return before, shown, x + before, y.view(-1)

    mine, theirs = ([torch.arange(6.0).view(3, 2), torch.zeros(3, 2)] for _ in range(2))
    got, want = compiled(fn)(*mine), fn(*theirs)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(mine, theirs)
    mine[0].zero_()
    assert got[1].abs().sum() == 0 and got[0].abs().sum() > 0  # a view of the argument, and a value of its own


def test_a_write_bumps_the_version_that_autograd_looks_at() -> None:
    x, w = torch.randn(5), torch.randn(5, requires_grad=True)
    loss = (x * w).sum()

    def fn(x: torch.Tensor) -> None:
        x.add_(1)

    compiled(fn)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_results_that_share_memory_do_so_as_in_torch() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.exp()
        a, b = y.split([2, 3], 1)
        return y, a, b.t(), x, x.t()[1:], y[0]

    x = torch.randn(4, 5)
    got, want = compiled(fn)(x), fn(x)
    torch.testing.assert_close(got, want)
    assert [t.stride() for t in got] == [t.stride() for t in want]
    got[0].fill_(7)
    assert all(bool((t == 7).all()) for t in (got[1], got[2], got[5])) and got[3] is x


def test_a_function_between_programs_runs_in_torch() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x.relu() + 1).abs().log1p() @ torch.ones(5, 2)

    x = torch.randn(3, 8)
    torch.testing.assert_close(compiled(fn)(x), fn(x))
    found = seen().fallbacks
    assert found["aten._fft_r2c.default"].calls == 1
    assert "aten._fft_r2c.default" in str(seen()) and seen().partitions >= 1


def test_an_error_in_the_place_of_a_fallback() -> None:
    with pytest.raises(Exception, match=r"baracuda has nothing for aten\._fft_r2c\.default"):
        compiled(lambda x: torch.fft.rfft(x), options={"fallback": False})(torch.randn(8))


@pytest.mark.parametrize("options", [{"passes": ["no"]}, {"other": 1}, {"fallback": 2}])
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="want"):
        compiled(lambda x: x + 1, options=options)(torch.randn(8))


def test_random_functions_draw_what_eager_draws() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = N.dropout(x, 0.5) + torch.rand_like(x)
        return N.dropout(y * torch.randn(x.shape), 0.2) + torch.randint(0, 9, x.shape)

    x = torch.randn(20, 30)
    run = compiled(fn)
    for seed in (3, 4):
        torch.manual_seed(seed)
        got, after = run(x), torch.rand(3)
        torch.manual_seed(seed)
        torch.testing.assert_close(got, fn(x))
        assert torch.equal(after, torch.rand(3))


@pytest.mark.parametrize("marked", [False, True])
def test_sizes_that_change(marked: bool) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.25))
    twin, run = _twin(model), compiled(model)
    for n in (5, 9, 4, 9):
        x = torch.randn(n, 3, 6)
        if marked:
            torch._dynamo.mark_dynamic(x, 0)
        for fn in (run, twin):
            torch.manual_seed(n)
            fn(x).square().sum().backward()
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-4)  # sums over all calls
    assert not seen().whole and set(seen().fallbacks) == {"draw_mask"}, str(seen())


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, d = x.shape
        q, k, v = (t.view(b, s, 4, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        y = N.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + N.dropout(self.out(y.transpose(1, 2).reshape(b, s, d)), 0.25)


def test_one_program_serves_open_sizes() -> None:
    model = Attends()
    twin, run = _twin(model), compiled(model)
    for n in (5, 9, 33, 7, 64, 1, 12):
        x = torch.randn(n, 7, 16)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        model.zero_grad()
        twin.zero_grad()
        for fn in (run, twin):
            torch.manual_seed(n)
            fn(x).square().mean().backward()
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad)
    found = seen()
    assert not found.closed and not found.whole and not found.refused, str(found)
    assert found.partitions <= 8 and found.sizes <= 4, str(
        found
    )  # two sizes and one for all, forward and backward; and 1


@pytest.mark.parametrize("captured", [False, True])
def test_numbers_that_data_decide(captured: bool) -> None:
    def fn(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * n.sum().item() + x[x > 0].exp().sum()

    x, n = torch.randn(30), torch.arange(4)
    names = {"capture_scalar_outputs": captured, "capture_dynamic_output_shape_ops": captured}
    with torch._dynamo.config.patch(**names):
        torch.testing.assert_close(compiled(fn)(x, n), fn(x, n))
    assert seen().partitions >= 1 and not seen().whole


def test_a_branch_that_data_decide() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y.exp() if y.sum() > 0 else y.neg().sqrt()

    run = compiled(fn)
    for x in (torch.ones(4), -torch.ones(4)):
        torch.testing.assert_close(run(x), fn(x))


def test_sizes_that_data_decide() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.relu()[x > 0].sum() * 2 + x.nonzero().shape[0]

    x = torch.randn(50)
    torch.testing.assert_close(compiled(fn)(x), fn(x))


def test_an_index_out_of_range_is_an_error() -> None:
    table = torch.randn(5, 3)
    with pytest.raises(IndexError):
        compiled(lambda i: table[i] + 1)(torch.tensor([1, 7]))


def test_tangents_of_other_strides() -> None:
    x = torch.randn(4, 6, requires_grad=True)
    y = compiled(lambda x: x.exp() * 2)(x)
    y.backward(torch.randn(6, 4).t())
    assert x.grad is not None and seen().refused == {}
    z = compiled(lambda x: x.sin())(x)
    x.grad = None
    z.sum().backward()  # an expanded one
    torch.testing.assert_close(x.grad, x.detach().cos())


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
)
def test_other_dtypes(dtype: torch.dtype) -> None:
    x = (torch.randn(6, 7) * 5).abs().to(dtype)

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + x if dtype != torch.bool else x | x
        return y, y.sum(0), y.t().float() @ y.float(), torch.where(y > 2, y, x), y[1:, ::2], x.max(1)[0]

    torch.testing.assert_close(compiled(fn)(x), fn(x))


def test_empty_and_strange_layouts() -> None:
    def fn(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return a.exp().sum(0), (b + 1).t(), b * c, c.expand(3, 4) + 1, a.reshape(-1), b.flip(0)

    args = torch.empty(0, 5), torch.randn(8, 6)[::2, 1:4].t(), torch.randn(1).expand(3, 4)
    got, want = compiled(fn)(*args), fn(*args)
    torch.testing.assert_close(got, want)
    assert [t.stride() for t in got] == [t.stride() for t in want]


def test_threads_share_a_compiled_function() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64)).eval()
    xs = [torch.randn(32, 64) for _ in range(16)]
    with torch.no_grad():
        want, run = [model(x) for x in xs], compiled(model)
        run(xs[0])

    def one(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return run(x)

    with ThreadPoolExecutor(4) as pool:
        for got, expected in zip(pool.map(one, xs * 4), want * 4, strict=True):
            torch.testing.assert_close(got, expected)


def test_attention_with_masks_and_groups() -> None:
    def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        a = N.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        b = N.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)
        return a + b

    q, k, v = (torch.randn(2, 4, 9, 16, requires_grad=True) for _ in range(3))
    mask = torch.rand(9, 9) > 0.3
    mask |= torch.eye(9, dtype=torch.bool)
    twins = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    compiled(fn)(q, k, v, mask).square().sum().backward()
    fn(*twins, mask).square().sum().backward()
    for a, b in zip((q, k, v), twins, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    assert math.isfinite(float(q.grad.sum()))  # type: ignore[union-attr]
    assert not seen().fallbacks, str(seen())


def test_torch_finds_the_backend_and_the_core_imports_no_torch() -> None:
    assert "baracuda" in torch._dynamo.list_backends()
    code = "import sys, baracuda, baracuda.functional; assert 'torch' not in sys.modules and 'baracuda.torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    text = (ROOT / "pyproject.toml").read_text()
    assert 'baracuda = "baracuda.torch:backend"' in text and callable(bc.torch.backend)


def test_the_page_lists_the_table() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "torch_table.py"), "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
