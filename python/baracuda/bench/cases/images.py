"""Convolutions, pooling, resizing and batch norms."""

# torch's stubs are not fought here.
# mypy: disable-error-code="misc, arg-type"
from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import torch

import baracuda as bc
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import SIZE, bind, collector, noise, plan, space, there

Sizes = tuple[int, ...]


def _options(desc: bc.ConvDescriptor) -> tuple[Any, ...]:
    """As torch's operator takes them: stride, padding, dilation, transposed, output padding, groups."""
    return desc.stride, desc.low, desc.dilation, False, (0, 0), desc.groups


def _conv(desc: bc.ConvDescriptor) -> Sides:
    e = str(desc.element)
    x, w = noise(*desc.input_shape, element=e), noise(*desc.weight_shape, element=e, seed=1)
    y, z = (space(*desc.output_shape(), element=e) for _ in range(2))
    made, options = plan(desc), _options(desc)
    peer = torch.ops.aten.convolution.out
    return Sides.calls(bind(made, x=x, weight=w, y=y), lambda: peer(x, w, None, *options, out=z), made, lambda: [y])


def _gradients(desc: bc.ConvDescriptor) -> Sides:
    e = str(desc.element)
    x, w = noise(*desc.input_shape, element=e), noise(*desc.weight_shape, element=e, seed=1)
    dy = noise(*desc.output_shape(), element=e, seed=2)
    dx, dw = space(*desc.input_shape, element=e), space(*desc.weight_shape, element=e)
    made, options = plan(desc.backward()), _options(desc)

    def peer() -> list[Any]:
        return list(torch.ops.aten.convolution_backward(dy, x, w, None, *options, (True, True, False))[:2])

    return Sides.calls(bind(made, dy=dy, x=x, weight=w, dx=dx, dweight=dw), peer, made, lambda: [dx, dw])


# What it is, input, weight, stride, padding, groups; required and goal of the value, and of both gradients.
_CONVOLUTIONS: list[tuple[Any, ...]] = [
    ("conv2d 3x3", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, (0.9, 1.2), (0.8, 1.1)),
    ("conv2d 1x1", (8, 256, 56, 56), (64, 256, 1, 1), 1, 0, 1, (1.2, 1.5), None),
    ("conv2d depthwise 3x3", (8, 128, 56, 56), (128, 1, 3, 3), 1, 1, 128, (2.0, 3.0), None),
    ("conv2d 7x7 stride 2", (8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1, (0.9, 1.1), None),
]


def _pooled(desc: Any, peer: Any, *options: Any) -> Sides:
    """Of plans for x and y; torch's maxima come with their indices."""
    x, shape = noise(*desc.input_shape), desc.output_shape()
    y, z, made = space(*shape), space(*shape), plan(desc)
    outs = {"out": z, "indices": torch.empty(shape, dtype=torch.int64)} if "max" in desc.op else {"out": z}

    def peers() -> Any:
        peer(x, *options, **outs)
        return z

    return Sides.calls(bind(made, x=x, y=y), peers, made, lambda: [y])


def _mean(desc: Any) -> Sides:
    x, y, z = noise(*desc.input_shape), space(*desc.output_shape()), space(*desc.output_shape())
    made = plan(desc)
    return Sides.calls(bind(made, x=x, y=y), lambda: torch.mean(x, (2, 3), keepdim=True, out=z), made, lambda: [y])


def _pools(add: Any, quick: bool) -> None:
    """Pooling of the speed table."""
    wide = (1, 4, 16, 16) if quick else (8, 64, 112, 112)
    narrow = (1, 4, 14, 14) if quick else (8, 64, 56, 56)
    three, two, one = (3, 3), (2, 2), (1, 1)
    aten = torch.ops.aten
    most = bc.MaxPoolDescriptor(wide, three, two, one, one)
    mean = bc.AvgPoolDescriptor(wide, three, two, one, one)
    seven, whole = (bc.AdaptiveAvgPoolDescriptor(narrow, (n, n)) for n in (7, 1))
    for name, desc, sides, peer, wanted in (
        ("max_pool2d 3x3 stride 2", most, partial(_pooled, most, aten.max_pool2d_with_indices.out, three, two, one),
         "max_pool2d_with_indices out=", (8.0, 15.0)),
        ("avg_pool2d 3x3 stride 2", mean, partial(_pooled, mean, aten.avg_pool2d.out, three, two, one), "avg_pool2d out=", (4.0, 8.0)),
        ("adaptive_avg_pool2d to 7x7", seven, partial(_pooled, seven, aten.adaptive_avg_pool2d.out, (7, 7)),
         "adaptive_avg_pool2d out=", (2.0, 3.0)),
        ("adaptive_avg_pool2d to 1x1", whole, partial(_mean, whole), "mean out=", (0.9, 1.0)),
    ):  # fmt: skip
        bytes = sum(prod(map(int, shape)) for shape in (desc.input_shape, desc.output_shape())) * SIZE["f32"]
        add(name, "pool", "f32", desc.input_shape, sides, peer, bytes=bytes, required=wanted[0], goal=wanted[1])


def _channels(shape: Sizes, last: bool) -> list[Any]:
    """An image, its like for a gradient or a result (two of these), and four values of each channel (two of these)."""
    way = torch.channels_last if last else torch.contiguous_format
    images = [noise(*shape, seed=k).to(memory_format=way) for k in range(2)]
    own = [noise(shape[1], seed=k) for k in range(2, 6)]
    return [*images, *(torch.empty_like(images[0]) for _ in range(2)), own, [v.abs() for v in own]]


def _batch_norm(shape: Sizes, last: bool) -> Sides:
    x, _, y, z, (w, b, mean, old), (_, _, var, old_var) = _channels(shape, last)
    made, (m, s, m2, s2) = plan(bc.BatchNormDescriptor(shape)), torch.empty(4, shape[1]).unbind()
    ours = bind(
        made, x=x, weight=w, bias=b, running_mean=mean, running_var=var, y=y, mean=m, rstd=s, next_mean=mean,
        next_var=var, eps=1e-5, momentum=0.1,
    )  # fmt: skip
    options = (w, b, old, old_var, True, 0.1, 1e-5)
    return Sides.calls(ours, lambda: torch.native_batch_norm(x, *options, out=(z, m2, s2)), made, lambda: [y, m, s])


def _batch_norm_gradients(shape: Sizes, last: bool) -> Sides:
    x, dy, dx, _, (w, *_), _ = _channels(shape, last)
    _, mean, rstd = torch.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5)
    made, (dw, db) = plan(bc.BatchNormDescriptor(shape).backward()), torch.empty(2, shape[1]).unbind()
    ours = bind(made, dy=dy, x=x, weight=w, mean=mean, rstd=rstd, dx=dx, dweight=dw, dbias=db)

    def peer() -> list[Any]:
        backward = torch.ops.aten.native_batch_norm_backward
        return list(backward(dy, x, w, None, None, mean, rstd, True, 1e-5, [True] * 3))

    return Sides.calls(ours, peer, made, lambda: [dx, dw, db])


def _batch_norms(add: Any, quick: bool) -> None:
    """Training, of both orders of channels."""
    shape = (2, 8, 14, 14) if quick else (8, 64, 56, 56)
    for last in (False, True):
        name, n = f"batch_norm training {'NHWC' if last else 'NCHW'}", prod(shape) * SIZE["f32"]
        add(name, "norm", "f32", shape, partial(_batch_norm, shape, last), "native_batch_norm out=", bytes=3 * n,
            required=2.0, goal=3.0)  # fmt: skip
        add(f"{name} gradients", "norm", "f32", shape, partial(_batch_norm_gradients, shape, last),
            "native_batch_norm_backward", bytes=5 * n, required=1.0, goal=1.5)  # fmt: skip


def _stretched(shape: tuple[int, ...]) -> Sides:
    """Twice as large, with plans for x and y."""
    size = (2 * shape[2], 2 * shape[3])
    desc = bc.ResizeDescriptor(shape, size, (-1, -1), (2, 2), (4, 4))
    x, y, z, made = noise(*shape), space(*shape[:2], *size), space(*shape[:2], *size), plan(desc)
    peer = torch.ops.aten.upsample_bilinear2d.out
    return Sides.calls(bind(made, x=x, y=y), lambda: peer(x, size, False, out=z), made, lambda: [y])


def _sampled(shape: tuple[int, ...], mode: str, peer_mode: int) -> Sides:
    """At the places of an image that is turned a little."""
    turned = torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.9, 0.0]]] * shape[0])
    grid = there(torch.nn.functional.affine_grid(turned, list(shape), align_corners=False))
    x, y = noise(*shape), space(*shape)
    made = plan(bc.GridSampleDescriptor(shape, shape[2:], mode))
    return Sides.calls(
        bind(made, x=x, grid=grid, y=y), lambda: torch.grid_sampler(x, grid, peer_mode, 0, False), made, lambda: [y]
    )


def _regions(shape: tuple[int, ...], regions: int) -> Sides:
    """Maxima of regions, which torch itself has not."""
    generator = torch.Generator().manual_seed(1)
    corners = torch.rand(regions, 2, 2, generator=generator).sort(1).values.flatten(1) * shape[2]
    rois = there(torch.cat([torch.randint(0, shape[0], (regions, 1), generator=generator), corners], 1))
    desc = bc.RoiPoolDescriptor(shape, regions, (7, 7), save=False)
    x, y, made = noise(*shape), space(*desc.result_shape()), plan(desc)
    return Sides(Statement.call(bind(made, x=x, rois=rois, y=y)), None, (made,))


def _fractional(shape: tuple[int, ...]) -> Sides:
    """Fractional max pooling to half the size, on the same random samples."""
    x, samples = noise(*shape), torch.rand(*shape[:2], 2, generator=torch.Generator().manual_seed(1))
    half, functional = [shape[2] // 2] * 2, torch.nn.functional.fractional_max_pool2d
    ours = partial(bc.functional.fractional_max_pool2d, x, 2, half, _random_samples=there(samples))
    return Sides(Statement.call(ours), Statement.call(lambda: functional(x, 2, half, _random_samples=there(samples))))


def _resizes(add: Any, quick: bool) -> None:
    """Resizing of the speed table."""
    shape = (1, 4, 14, 14) if quick else (8, 64, 56, 56)
    bytes = 5 * prod(shape) * SIZE["f32"]
    small = (1, 3, 16, 16) if quick else (2, 3, 512, 512)
    for number, mode in enumerate(("linear", "nearest", "cubic")):
        add(f"grid_sample {mode}", "image", "f32", small, partial(_sampled, small, mode, number), "grid_sampler")
    add("roi_pool of 256 regions", "image", "f32", shape, partial(_regions, shape, 256), "has none")
    add("fractional_max_pool2d", "pool", "f32", shape, partial(_fractional, shape), "F.fractional_max_pool2d")
    add("interpolate bilinear 2x", "image", "f32", shape, partial(_stretched, shape), "upsample_bilinear2d out=", bytes=bytes,
        required=3.0, goal=5.0)  # fmt: skip


def cases(quick: bool) -> list[Case]:
    """Convolutions, pooling and batch norms of the speed table."""
    out, add = collector()
    _pools(add, quick)
    _resizes(add, quick)
    _batch_norms(add, quick)
    for name, full, weight, stride, padding, groups, wanted, gradients in _CONVOLUTIONS:
        x = (1, full[1], 16, 16) if quick else full
        both = (padding, padding)
        desc = bc.ConvDescriptor(x, weight, (stride, stride), both, both, groups=groups)
        y = desc.output_shape()
        bytes = (prod(x) + prod(weight) + prod(y)) * SIZE["f32"]
        flops = 2 * prod(y) * prod(weight[1:])
        add(name, "conv", "f32", x, partial(_conv, desc), "convolution out=", bytes=bytes, flops=flops, ceiling="f32",
            required=wanted[0], goal=wanted[1])  # fmt: skip
        if gradients:
            add(f"{name} gradients", "conv", "f32", x, partial(_gradients, desc), "convolution_backward",
                bytes=2 * bytes, flops=2 * flops, ceiling="f32", required=gradients[0], goal=gradients[1])  # fmt: skip
    return out
