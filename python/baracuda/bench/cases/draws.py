"""Random numbers, permutations and samples, dropout; elementwise losses, those of classes and of sequences."""

# torch's stubs are not fought here.
# mypy: disable-error-code="call-arg, assignment, arg-type"
from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import SIZE, bind, noise, plan, space, text, there
from baracuda.ops.random.rejection import PARAMETERS


def _fill(kind: str, n: int) -> Sides:
    y, z = (there(torch.zeros(n, dtype=torch.int64 if kind != "bernoulli" else torch.float32)) for _ in range(2))
    if kind == "randint":
        made = plan(bc.RandintDescriptor((n,)))
        return Sides.calls(bind(made, y=y, low=0, high=1000, seed=1), lambda: z.random_(0, 1000), made)
    if kind == "randperm":
        made = plan(bc.RandpermDescriptor(n))
        return Sides.calls(bind(made, y=y, seed=1), lambda: torch.randperm(n, out=z), made)
    made = plan(bc.BernoulliDescriptor((n,)))
    return Sides.calls(bind(made, y=y, p=0.3, seed=1), lambda: z.bernoulli_(0.3), made)


# Parameters of the distributions that have one for each element, and torch's function.
_DISTRIBUTIONS: dict[str, tuple[tuple[float, ...], Any]] = {
    "gamma": ((2.5,), torch._standard_gamma),
    "beta": ((2.0, 3.0), None),
    "poisson": ((4.0,), torch.poisson),
    "binomial": ((100.0, 0.3), torch.binomial),
}


def _distribution(kind: str, n: int) -> Sides:
    numbers, peer = _DISTRIBUTIONS[kind]
    given, y = [there(torch.full((n,), v)) for v in numbers], space(n)
    made = plan(bc.RejectionDescriptor(kind, (n,)))
    names = PARAMETERS[kind]
    ours = bind(made, **dict(zip(names, given, strict=True)), y=y, seed=1)
    if peer is None:
        return Sides.calls(ours, lambda: torch._sample_dirichlet(torch.stack(given, -1)), made)
    return Sides.calls(ours, lambda: peer(*given), made)


def _ctc(steps: int, samples: int, classes: int, labels: int) -> Sides:
    x = torch.log_softmax(noise(steps, samples, classes), -1)
    generator = torch.Generator().manual_seed(1)
    targets = there(torch.randint(1, classes, (samples, labels), generator=generator))
    sizes = [there(torch.full((samples,), k, dtype=torch.int64)) for k in (steps, labels)]
    loss = space(samples)
    made = plan(bc.CtcLossDescriptor(tuple(x.shape), tuple(targets.shape)))
    ours = bind(made, log_probs=x, targets=targets, input_lengths=sizes[0], target_lengths=sizes[1], loss=loss)
    return Sides.calls(ours, lambda: F.ctc_loss(x, targets, sizes[0], sizes[1], 0, "none"), made, lambda: [loss])


def _dropout(element: str, n: int) -> Sides:
    x, y = noise(n, element=element), space(n, element=element)
    made = plan(bc.DropoutDescriptor((n,), element))
    return Sides.calls(bind(made, x=x, y=y, p=0.1, seed=1), lambda: F.dropout(x, 0.1), made)


def _multinomial(rows: int, categories: int, samples: int, *, replacement: bool) -> Sides:
    p = torch.softmax(noise(rows, categories), -1)
    y, z = (there(torch.zeros(rows, samples, dtype=torch.int64)) for _ in range(2))
    made = plan(bc.MultinomialDescriptor((rows, categories), samples, replacement))
    return Sides.calls(bind(made, p=p, y=y, seed=1), lambda: torch.multinomial(p, samples, replacement, out=z), made)


def _top_p(rows: int, tokens: int) -> Sides:
    x, y = noise(rows, tokens), there(torch.zeros(rows, dtype=torch.int64))
    made = plan(bc.SampleTokensDescriptor((rows, tokens)))

    def peer() -> torch.Tensor:
        p, at = torch.sort(torch.softmax(x, -1), descending=True)
        p[p.cumsum(-1) - p > 0.9] = 0
        return at.gather(-1, torch.multinomial(p, 1))

    return Sides.calls(bind(made, logits=x, y=y, top_p=0.9, seed=1), peer, made)


def _loss(kind: str, reduction: str, element: str, n: int) -> Sides:
    x, t = noise(n, element=element), torch.sigmoid(noise(n, element=element, seed=1))
    loss = space(*((n,) if reduction == "none" else ()), element=element)
    made = plan(bc.PointwiseLossDescriptor(kind, (n,), (n,), element, reduction))
    peer: Any = getattr(F, kind)
    return Sides.calls(
        bind(made, input=x, target=t, loss=loss), lambda: peer(x, t, reduction=reduction), made, lambda: [loss]
    )


def _class_loss(name: str, element: str, rows: int, classes: int) -> Sides:
    x = noise(rows, classes, element=element)
    generator = torch.Generator().manual_seed(1)
    target = there(torch.randint(0, classes, (rows,), generator=generator))
    weight = there(torch.rand(classes, generator=generator).to(x.dtype) + 0.5)
    loss = space(element=element)
    if name == "nll_loss":
        made = plan(bc.NllLossDescriptor((rows, classes), element, weighted=True))
        ours = bind(made, input=x, target=target, weight=weight, loss=loss)
        return Sides.calls(ours, lambda: F.nll_loss(x, target, weight), made, lambda: [loss])
    if name == "cross_entropy of probabilities":
        q = torch.softmax(noise(rows, classes, element=element, seed=2), -1)
        made = plan(bc.CrossEntropyDescriptor((rows, classes), element, element, save=False))
        return Sides.calls(
            bind(made, logits=x, target=q, loss=loss), lambda: F.cross_entropy(x, q), made, lambda: [loss]
        )
    made = plan(bc.CrossEntropyDescriptor((rows, classes), element, save=False, weighted=True))
    ours = bind(made, logits=x, target=target, weight=weight, loss=loss)
    return Sides.calls(ours, lambda: F.cross_entropy(x, target, weight), made, lambda: [loss])


def cases(quick: bool) -> list[Case]:
    """Fills of 16M numbers, samples of 64 x 32000, tokens of 64 x 128000, losses of 16M elements and of 2048 x 32000 classes."""
    n = 1 << (14 if quick else 24)
    out: list[Case] = []
    for kind, size in (("randint", 8), ("bernoulli", 4), ("randperm", 8)):
        out.append(Case(kind, "random", "f32" if size == 4 else "i64", text((n,)), f"torch {kind}",
                        partial(_fill, kind, n), bytes=size * n, flops=0, ceiling="nt_fill"))  # fmt: skip
    m = n >> 4
    for kind, (numbers, peer) in _DISTRIBUTIONS.items():
        out.append(Case(kind, "random", "f32", text((m,)), f"torch {peer.__name__ if peer else '_sample_dirichlet'}",
                        partial(_distribution, kind, m), bytes=4 * (len(numbers) + 1) * m, flops=0,
                        ceiling="memory"))  # fmt: skip
    lines = (10, 2, 20, 4) if quick else (300, 32, 1000, 50)
    out.append(Case("ctc_loss", "loss", "f32", text(lines[:3]), "torch F.ctc_loss", partial(_ctc, *lines), flops=0,
                    ceiling=""))  # fmt: skip
    rows, categories = (4, 1000) if quick else (64, 32000)
    for samples, replacement in ((1, True), (100, True), (100, False)):
        drawn = f"{samples} {'with' if replacement else 'without'} replacement"
        out.append(Case(f"multinomial, {drawn}", "random", "f32", text((rows, categories)), "torch.multinomial out=",
                        partial(_multinomial, rows, categories, samples, replacement=replacement),
                        bytes=4 * rows * categories, flops=0, ceiling="read", required=2))  # fmt: skip
    rows, tokens = (4, 1000) if quick else (64, 128000)
    out.append(Case("sample_tokens, top_p", "random", "f32", text((rows, tokens)), "torch softmax, sort, cumsum, multinomial",
                    partial(_top_p, rows, tokens), bytes=4 * rows * tokens, flops=0, ceiling="read", required=15,
                    goal=50))  # fmt: skip
    classes = (32, 1000) if quick else (2048, 32000)
    for e in ("f32", "bf16"):
        out.append(Case("dropout", "random", e, text((n,)), "torch F.dropout", partial(_dropout, e, n),
                        bytes=2 * n * SIZE[e], flops=n, ceiling="memory"))  # fmt: skip
        for kind, reduction in (("mse_loss", "mean"), ("mse_loss", "none"), ("smooth_l1_loss", "mean"),
                                ("binary_cross_entropy_with_logits", "mean")):  # fmt: skip
            moved = (3 if reduction == "none" else 2) * n * SIZE[e]
            out.append(Case(f"{kind} {reduction}", "loss", e, text((n,)), f"torch F.{kind}",
                            partial(_loss, kind, reduction, e, n), bytes=moved, flops=3 * n,
                            ceiling="memory" if reduction == "none" else "read"))  # fmt: skip
        m = classes[0] * classes[1]
        for name, moved in (("cross_entropy with weights", m), ("cross_entropy of probabilities", 2 * m)):
            out.append(Case(name, "loss", e, text(classes), "torch F.cross_entropy",
                            partial(_class_loss, name, e, *classes), bytes=moved * SIZE[e], flops=4 * m,
                            ceiling="read"))  # fmt: skip
        out.append(Case("nll_loss", "loss", e, text(classes), "torch F.nll_loss",
                        partial(_class_loss, "nll_loss", e, *classes), bytes=64 * classes[0], flops=0,
                        ceiling=""))  # fmt: skip
    return out
