"""What only training needs: optimizer steps, gradient clipping, and the gradient of an embedding."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import SIZE, bind, noise, space, text


def _adamw(count: int, numel: int) -> Sides:
    params = [noise(numel, seed=i) for i in range(count)]
    grads = [noise(numel, seed=i + 1) for i in range(count)]
    moments = [[torch.zeros(numel) for _ in range(count)] for _ in range(2)]
    made = bc.plan(bc.AdamWDescriptor(tuple((numel,) for _ in range(count)), "f32"))
    ours = bind(made, grads=grads, params=params, exp_avgs=moments[0], exp_avg_sqs=moments[1], lr=1e-3, step=1)
    leaves = [p.clone().requires_grad_() for p in params]
    for leaf, grad in zip(leaves, grads, strict=True):
        leaf.grad = grad
    optimizer = torch.optim.AdamW(leaves, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, fused=True)

    def peer() -> list[torch.Tensor]:
        optimizer.step()
        return [leaf.detach() for leaf in leaves]

    return Sides.calls(ours, peer, made, lambda: params)


def _sgd(count: int, numel: int) -> Sides:
    params, grads = ([noise(numel, seed=i + k) for i in range(count)] for k in range(2))
    momentum = [torch.zeros(numel) for _ in range(count)]
    made = bc.plan(bc.SGDDescriptor(tuple((numel,) for _ in range(count)), "f32"))
    ours = bind(made, grads=grads, params=params, momentum_buffers=momentum, lr=1e-3, momentum=0.9, step=2)
    leaves = [p.clone().requires_grad_() for p in params]
    for leaf, grad in zip(leaves, grads, strict=True):
        leaf.grad = grad
    optimizer = torch.optim.SGD(leaves, lr=1e-3, momentum=0.9, fused=True)

    def peer() -> list[torch.Tensor]:
        optimizer.step()
        return [leaf.detach() for leaf in leaves]

    return Sides.calls(ours, peer, made, lambda: params)


def _total_norm(count: int, numel: int) -> Sides:
    grads = [noise(numel, seed=i) for i in range(count)]
    made, norm = bc.plan(bc.TotalNormDescriptor(tuple((numel,) for _ in range(count)), "f32")), space()
    return Sides.calls(bind(made, tensors=grads, total_norm=norm), lambda: torch.nn.utils.get_total_norm(grads), made,
                       lambda: [norm])  # fmt: skip


def _embedding_backward(element: str, rows: int, columns: int, tokens: int, *, index_add: bool) -> Sides:
    ids = torch.randint(0, rows, (tokens,), generator=torch.Generator().manual_seed(0))
    dy, dweight = noise(tokens, columns, element=element), space(rows, columns, element=element)
    gradient = space(rows, columns, element=element)
    made = bc.plan(bc.EmbeddingBackwardDescriptor((rows, columns), (tokens,), element, "i64", accumulate=True))
    ours = bind(made, dy=dy, ids=ids, dweight=dweight)

    def peer() -> Any:
        if index_add:
            return gradient.index_add_(0, ids, dy)
        return gradient.add_(torch.ops.aten.embedding_dense_backward(dy, ids, rows, -1, False))

    return Sides.calls(ours, peer, made, lambda: [dweight])


def cases(quick: bool) -> list[Case]:
    """AdamW, SGD and the norm of gradients over 10M parameters; embedding gradients for a table of 32000 x 4096."""
    out = []
    total, count = (10_000, 10) if quick else (10_000_000, 1000)
    for name, parts, required, goal in (("AdamW, 1 tensor", 1, 0.95, 1.0), ("AdamW, many tensors", count, 4, 5)):
        shape = f"{parts} x {total // parts}"
        out.append(Case(name, "optim", "f32", shape, "torch.optim.AdamW(fused=True).step()",
                        partial(_adamw, parts, total // parts), bytes=28 * total, flops=16 * total, ceiling="memory",
                        required=required, goal=goal))  # fmt: skip
    shape = f"{count} x {total // count}"
    out.append(Case("SGD with momentum, many tensors", "optim", "f32", shape, "torch.optim.SGD(fused=True).step()",
                    partial(_sgd, count, total // count), bytes=20 * total, flops=4 * total, ceiling="memory"))  # fmt: skip
    out.append(Case("norm of gradients, many tensors", "optim", "f32", shape, "torch.nn.utils.get_total_norm",
                    partial(_total_norm, count, total // count), bytes=4 * total, flops=2 * total,
                    ceiling="memory"))  # fmt: skip
    rows, columns, tokens = (100, 64, 32) if quick else (32000, 4096, 2048)
    for e in ("f32", "bf16"):
        moved, flops = 3 * tokens * columns * SIZE[e], tokens * columns
        sizes = text((rows, columns)) + f", {tokens} ids"
        out.append(Case("embedding backward", "embedding", e, sizes, "torch embedding_dense_backward, then add_",
                        partial(_embedding_backward, e, rows, columns, tokens, index_add=False), bytes=moved,
                        flops=flops, ceiling="memory", required=5, goal=10))  # fmt: skip
        out.append(Case("embedding backward, index_add", "embedding", e, sizes, "torch index_add_ into the gradient",
                        partial(_embedding_backward, e, rows, columns, tokens, index_add=True), bytes=moved,
                        flops=flops, ceiling="memory"))  # fmt: skip
    return out
