"""What functions without a row of their own are declared to be made of, compared with the plans that run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from differential import calls, functions
from differential.probe import Probe
from differential.values import to_numpy
from opinfo import entries
from opinfo.judge import tensors
from torch.utils._pytree import tree_map

import baracuda as bc
from baracuda import __main__ as command
from baracuda import _index
from baracuda import functional as F
from baracuda.choose.sku import rows
from baracuda.ops.random.random import _planned, planned
from conftest import FULL

CALLS = 400 if FULL else 60  # random ones of each function, some of which it refuses


def _x(*shape: int) -> np.ndarray[Any, Any]:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _whole(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.int32)


_LONG = np.ones((3, 4), np.int64)
# Calls of functions that no peer has, of gradients, and of what random calls rarely need.
_BLOCKS = np.arange(102, dtype=np.uint8).reshape(3, 34) % 60  # three rows of one block
_NVFP4 = np.ones((2, 16), np.uint8), np.ones((2, 2), ml_dtypes.float8_e4m3fn), np.ones((), np.float32)
_WORDS = np.arange(64, dtype=np.int32).reshape(8, 8)
SAMPLES: dict[str, list[Callable[[], Any]]] = {
    "attention_merge_states": [
        lambda: F.attention_merge_states(_x(2, 3), _x(2)),
        lambda: F.attention_merge_states(_x(2, 3), _x(2), _x(2, 3), _x(2)),
    ],
    "clamp_max": [lambda: F.clamp_max(_x(3), 0.5)],
    "clamp_min": [lambda: F.clamp_min(_x(3), 0.5)],
    "cdist": [lambda: F.cdist(_x(30, 2), _x(30, 2))],
    "adaptive_avg_pool1d_backward": [lambda: F.adaptive_avg_pool1d_backward(_x(2, 3, 2), (2, 3, 5), 2)],
    "adaptive_avg_pool2d_backward": [lambda: F.adaptive_avg_pool2d_backward(_x(1, 3, 2, 2), (1, 3, 5, 4), 2)],
    "adaptive_avg_pool3d_backward": [
        lambda: F.adaptive_avg_pool3d_backward(_x(1, 2, 2, 2, 1), (1, 2, 5, 4, 3), (2, 2, 1))
    ],
    "adaptive_max_pool1d_backward": [
        lambda: F.adaptive_max_pool1d_backward(_x(2, 3, 2), np.zeros((2, 3, 2), np.int64), (2, 3, 5), 2)
    ],
    "adaptive_max_pool2d_backward": [
        lambda: F.adaptive_max_pool2d_backward(_x(1, 3, 2, 2), np.zeros((1, 3, 2, 2), np.int64), (1, 3, 5, 4), 2)
    ],
    "adaptive_max_pool3d_backward": [
        lambda: F.adaptive_max_pool3d_backward(
            _x(1, 2, 2, 2, 1), np.zeros((1, 2, 2, 2, 1), np.int64), (1, 2, 5, 4, 3), (2, 2, 1)
        )
    ],
    "avg_pool1d_backward": [lambda: F.avg_pool1d_backward(_x(2, 3, 2), (2, 3, 5), 2)],
    "avg_pool2d_backward": [lambda: F.avg_pool2d_backward(_x(1, 3, 2, 2), (1, 3, 5, 4), 2)],
    "avg_pool3d_backward": [lambda: F.avg_pool3d_backward(_x(1, 2, 2, 2, 1), (1, 2, 5, 4, 3), 2)],
    "max_pool1d_backward": [lambda: F.max_pool1d_backward(_x(2, 3, 2), np.zeros((2, 3, 2), np.int64), (2, 3, 5), 2)],
    "max_pool2d_backward": [
        lambda: F.max_pool2d_backward(_x(1, 3, 2, 2), np.zeros((1, 3, 2, 2), np.int64), (1, 3, 5, 4), 2)
    ],
    "max_pool3d_backward": [
        lambda: F.max_pool3d_backward(_x(1, 2, 2, 2, 1), np.zeros((1, 2, 2, 2, 1), np.int64), (1, 2, 5, 4, 3), 2)
    ],
    "interpolate": [
        lambda: F.interpolate(_x(1, 2, 3), 5),
        lambda: F.interpolate(_x(1, 2, 3), 5, mode="linear"),
        lambda: F.interpolate(_x(1, 2, 3), 5, mode="area"),
    ],
    "interpolate_backward": [
        lambda: F.interpolate_backward(_x(1, 2, 5), (1, 2, 3), 5),
        lambda: F.interpolate_backward(_x(1, 2, 5), (1, 2, 3), 5, mode="linear"),
        lambda: F.interpolate_backward(_x(1, 2, 5), (1, 2, 3), 5, mode="area"),
    ],
    "affine_grid": [lambda: F.affine_grid(_x(2, 2, 3), (2, 1, 3, 4))],
    "affine_grid_backward": [lambda: F.affine_grid_backward(_x(2, 3, 4, 2), (2, 1, 3, 4))],
    "fold_backward": [lambda: F.fold_backward(_x(1, 2, 3, 3), 2, padding=1)],
    "grid_sampler_2d": [lambda: F.grid_sampler_2d(_x(1, 2, 3, 3), _x(1, 2, 2, 2), 0, 0, False)],
    "grid_sampler_3d": [lambda: F.grid_sampler_3d(_x(1, 2, 3, 3, 2), _x(1, 2, 2, 2, 3), 0, 0, False)],
    "roi_pool_backward": [
        lambda: F.roi_pool_backward(
            _x(1, 2, 2, 2), np.zeros((1, 5), np.float32), np.zeros((1, 2, 2, 2), np.int64), (1, 2, 3, 3)
        )
    ],
    "fractional_max_pool2d": [lambda: F.fractional_max_pool2d(_x(1, 2, 5, 5).astype(np.float16), 2, (3, 1))],
    "fractional_max_pool3d": [lambda: F.fractional_max_pool3d(_x(1, 2, 5, 5, 5), 2, 3)],
    "local_response_norm": [lambda: F.local_response_norm(_x(2, 3, 4).astype(np.float16), 2)],
    "trapezoid": [lambda: F.trapezoid(_x(2, 3).astype(np.float16))],
    "trapz": [lambda: F.trapz(_x(2, 3).astype(np.float16))],
    "cumulative_trapezoid": [lambda: F.cumulative_trapezoid(_x(2, 3).astype(np.float16))],
    "weight_norm": [lambda: F.weight_norm(_x(3, 4), _x(3, 1)), lambda: F.weight_norm(_x(3), _x(3))],
    "nms": [lambda: F.nms(_x(3, 4), _x(3), 0.5)],
    "batched_nms": [
        lambda: F.batched_nms(_x(3, 4), _x(3), np.zeros(3, np.int64), 0.5),
        lambda: F.batched_nms(_x(3, 4), _x(3), np.zeros(3, np.int32), 0.5),
    ],
    "unfold": [lambda: F.unfold(_x(1, 2, 3, 3), 2, padding=1)],
    "unfold_backward": [lambda: F.unfold_backward(_x(1, 8, 4), (1, 2, 3, 3), 2)],
    "upsample": [
        lambda: F.upsample(_x(1, 2, 3), 5),
        lambda: F.upsample(_x(1, 2, 3), 5, mode="linear"),
        lambda: F.upsample(_x(1, 2, 3), 5, mode="area"),
    ],
    "upsample_bilinear": [lambda: F.upsample_bilinear(_x(1, 2, 3, 3), 5)],
    "upsample_nearest": [lambda: F.upsample_nearest(_x(1, 2, 3), 5)],
    "lp_pool1d": [
        lambda: F.lp_pool1d(_x(2, 3, 5), 2.0, 2),
        lambda: F.lp_pool1d(_x(2, 3, 5).astype(np.float16), 2.0, 2),
    ],
    "lp_pool2d": [
        lambda: F.lp_pool2d(_x(2, 3, 5, 4), 2.0, 2),
        lambda: F.lp_pool2d(_x(2, 3, 5, 4).astype(np.float16), 2.0, 2),
    ],
    "lp_pool3d": [
        lambda: F.lp_pool3d(_x(2, 3, 5, 4, 3), 2.0, 2),
        lambda: F.lp_pool3d(_x(2, 3, 5, 4, 3).astype(np.float16), 2.0, 2),
    ],
    "quant_embedding": [lambda: F.quant_embedding(_BLOCKS, np.array([1, 0]), "q8_0")],
    "quant_matmul_backward": [lambda: F.quant_matmul_backward(_x(2, 3), _BLOCKS, "q8_0")],
    "quant_linear": [
        lambda: F.quant_linear(_x(2, 4), np.ones((3, 4), np.int8), _x(1)),
        lambda: F.quant_linear(_x(2, 4), np.ones((3, 2), np.uint8), _x(1), packed="u4"),
        lambda: F.quant_linear(_x(2, 4), np.ones((3, 4), np.int8), _x(1), quantize_input=True),
        lambda: F.quant_linear(_x(2, 4), np.ones((3, 4), np.int8), _x(1), order=np.arange(4)),
    ],
    "quant_linear_backward": [
        lambda: F.quant_linear_backward(_x(2, 3), np.ones((3, 4), np.int8), _x(1), None, _x(3), np.arange(4)),
        lambda: F.quant_linear_backward(_x(2, 3), np.ones((3, 2), np.uint8), _x(1), packed="u4"),
    ],
    "quant_matmul_ids_backward": [
        lambda: F.quant_matmul_ids_backward(_x(5, 3), np.stack([_BLOCKS] * 2), np.arange(5) % 2, "q8_0", (1, 32))
    ],
    "mx_quantize": [
        lambda: F.mx_quantize(_x(2, 32)),
        lambda: F.mx_quantize(_x(2, 32).astype(np.float16), "mxfp6_e2m3"),
        lambda: F.mx_quantize(_x(2, 32), "mxfp4"),
        lambda: F.mx_quantize(_x(2, 32), "mxint8"),
    ],
    "mx_dequantize": [
        lambda: F.mx_dequantize(np.ones((2, 32), np.uint8), np.ones((2, 1), np.uint8), "mxfp6_e3m2"),
        lambda: F.mx_dequantize(np.ones((2, 16), np.uint8), np.ones((2, 1), np.uint8), "mxfp4", "f16"),
        lambda: F.mx_dequantize(np.ones((2, 32), np.int8), np.ones((2, 1), np.uint8), "mxint8", "bf16"),
    ],
    "silu_and_mul_quantize": [
        lambda: F.silu_and_mul_quantize(_x(2, 4)),
        lambda: F.silu_and_mul_quantize(_x(2, 4), scale=0.1),
    ],
    "nvfp4_quantize": [
        lambda: F.nvfp4_quantize(_x(2, 32)),
        lambda: F.nvfp4_quantize(_x(2, 32).astype(np.float16), np.ones((), np.float32)),
        lambda: F.nvfp4_quantize(_x(2, 32)[:0]),
    ],
    "nvfp4_dequantize": [lambda: F.nvfp4_dequantize(*_NVFP4, "f16")],
    "repack_awq": [lambda: F.repack_awq(_WORDS, _WORDS[:1], np.ones((1, 64), np.float16))],
    "repack_gptq": [
        lambda: F.repack_gptq(_WORDS, _WORDS[:1, :1], np.ones((1, 8), np.float16)),
        lambda: F.repack_gptq(
            np.zeros((6, 32), np.int32), np.zeros((1, 3), np.int32), np.ones((1, 32), np.float16), bits=3
        ),
        lambda: F.repack_gptq(_WORDS, _WORDS[:1, :1], np.ones((1, 8), np.float16), np.zeros(64, np.int32)),
    ],
    "fake_quantize_per_tensor_affine": [lambda: F.fake_quantize_per_tensor_affine(_x(4), 0.1, 3, 0, 255)],
    "fake_quantize_per_tensor_affine_backward": [
        lambda: F.fake_quantize_per_tensor_affine_backward(_x(4), _x(4), 0.1, 3, 0, 255)
    ],
    "fake_quantize_per_channel_affine": [
        lambda: F.fake_quantize_per_channel_affine(_x(2, 3), _x(2), np.zeros(2, np.int32), 0, 0, 255)
    ],
    "fake_quantize_per_channel_affine_backward": [
        lambda: F.fake_quantize_per_channel_affine_backward(_x(2, 3), _x(2, 3), _x(2), np.zeros(2, np.int32), 0, 0, 255)
    ],
    "chain_matmul": [lambda: F.chain_matmul(_whole(2, 3), _LONG)],
    "chain_matmul_backward": [
        lambda: F.chain_matmul_backward(_x(2, 5), _x(2, 1), _x(1, 1), _x(1, 5)),
        lambda: F.chain_matmul_backward(_x(2, 5), _x(2, 3), _x(3, 4), _x(4, 5)),
    ],
    "clip_grad_norm_": [lambda: F.clip_grad_norm_([_x(3), _x(2, 2)], 1.0)],
    **{n: [lambda n=n: getattr(F, n)(_x(4), 0.3, interpolation="nearest")] for n in ("quantile", "nanquantile")},
    "conv1d_backward": [lambda: F.conv1d_backward(_x(2, 3, 5), _x(2, 2, 7), _x(3, 2, 3))],
    "conv2d_backward": [lambda: F.conv2d_backward(_x(1, 3, 5, 2), _x(1, 2, 7, 2), _x(3, 2, 3, 1), _x(3))],
    "conv3d_backward": [lambda: F.conv3d_backward(_x(1, 3, 2, 2, 2), _x(1, 1, 3, 2, 2), _x(3, 1, 2, 1, 1))],
    "conv_transpose1d_backward": [lambda: F.conv_transpose1d_backward(_x(1, 2, 7), _x(1, 3, 5), _x(3, 2, 3))],
    "conv_transpose2d_backward": [
        lambda: F.conv_transpose2d_backward(_x(1, 2, 7, 2), _x(1, 3, 5, 2), _x(3, 2, 3, 1), _x(2))
    ],
    "conv_transpose3d_backward": [
        lambda: F.conv_transpose3d_backward(_x(1, 1, 3, 2, 2), _x(1, 3, 2, 2, 2), _x(3, 1, 2, 1, 1))
    ],
    "diagonal_backward": [lambda: F.diagonal_backward(_x(2), (2, 3))],
    "diag_embed_backward": [lambda: F.diag_embed_backward(_x(2, 3, 3))],
    "einsum": [lambda: F.einsum("ij,jk->ik", _whole(2, 3), _LONG)],
    "einsum_backward": [
        lambda: F.einsum_backward(_x(2), "ij,k->i", _x(2, 3), _x(4)),
        lambda: F.einsum_backward(_x(3), "ii->i", _x(3, 3)),
        lambda: F.einsum_backward(_x(2), "ij,ij->i", _x(2, 3), _x(2, 3).astype(np.float16)),
    ],
    "instance_norm": [lambda: F.instance_norm(_x(2, 3, 4))],
    "instance_norm_forward": [lambda: F.instance_norm_forward(_x(2, 3, 4))],
    "native_batch_norm": [
        lambda t=training: F.native_batch_norm(_x(2, 3, 4), None, None, _x(3), _x(3), t, 0.1, 1e-5)
        for training in (True, False)
    ],
    "gather_nd": [lambda: F.gather_nd(_x(2, 3).T, _LONG[:, :2] * 0)],
    "put": [lambda: F.put(_x(2, 3).T, _LONG[0] * 0, _x(4))],
    "scatter_nd": [
        lambda r=r: F.scatter_nd(_x(3, 2).T, np.zeros((3, 2), np.int64), _x(3), r) for r in (None, "sum", "amax")
    ],
    "group_norm": [lambda: F.group_norm(_x(2, 3, 4).transpose(0, 2, 1), 2, _x(4), _x(4))],
    "gaussian_nll_loss": [lambda: F.gaussian_nll_loss(_x(3), _x(3), _x(3), reduction="sum")],
    "multilabel_soft_margin_loss": [lambda: F.multilabel_soft_margin_loss(_x(2, 3), _x(2, 3), reduction="sum")],
    "js_div": [lambda r=r: F.js_div(_x(2, 3), _x(2, 3), reduction=r) for r in ("mean", "sum", "batchmean")],
    "tv_distance": [lambda r=r: F.tv_distance(_x(2, 3), _x(2, 3), r) for r in ("mean", "sum", "batchmean")],
    "preference_loss": [
        lambda f=f, r=r: F.preference_loss(*map(_x, (3, 3, 3, 3)), form=f, reduction=r)
        for f, r in (("hinge", "sum"), ("ipo", "mean"), ("sigmoid", "batchmean"))
    ]
    + [lambda: F.preference_loss(_x(3), _x(3), label_smoothing=0.1)],
    "muon_": [
        lambda: F.muon_(_x(3, 2), _x(3, 2), _x(3, 2), lr=np.float32(0.1) * np.ones((), "f4")),
        lambda: F.muon_(_x(3, 2), _x(3, 2), _x(3, 2), nesterov=False),
    ],
    "adafactor_": [
        lambda: F.adafactor_(
            _x(3, 2), _x(3, 2), _x(3, 1), _x(1, 2), [None], step=np.array(3), lr=np.array(0.1), maximize=True
        ),
        lambda: F.adafactor_(_x(3), _x(3), [None], [None], _x(3), step=1, weight_decay=0.1),
    ],
    "lamb_": [
        lambda: F.lamb_(_x(3), _x(3), _x(3), abs(_x(3)), step=np.array(3), weight_decay=0.1),
        lambda: F.lamb_(_x(3).astype("f2"), _x(3).astype("f2"), _x(3), abs(_x(3)), step=3),
    ],
    "unscale_grads_": [lambda: F.unscale_grads_([_x(3), _x(2)], np.zeros((), "f4"), 0.5)],
    "update_scale_": [lambda: F.update_scale_(np.ones((), "f4"), np.zeros((), "i4"), np.zeros((), "f4"))],
    "multi_margin_loss": [
        lambda: F.multi_margin_loss(_x(2, 3), np.zeros(2, np.int32), 2, weight=_x(3), reduction="sum")
    ],
    "multilabel_margin_loss": [lambda: F.multilabel_margin_loss(_x(2, 3), -_whole(2, 3), reduction="sum")],
    "triplet_margin_with_distance_loss": [
        lambda: F.triplet_margin_with_distance_loss(_x(2, 3), _x(2, 3), _x(2, 3), swap=True),
        lambda: F.triplet_margin_with_distance_loss(_whole(2, 3), _LONG[:2, :3], _x(2, 3), reduction="sum"),
    ],
    "inner": [lambda: F.inner(_whole(2, 3), _LONG.T)],
    "inner_backward": [
        lambda: F.inner_backward(_x(2, 2, 2, 2).transpose(0, 2, 1, 3), _x(2, 2, 3), _x(2, 2, 3)),
        lambda: F.inner_backward(_x(2, 3), _x(2, 3), _x().astype(np.float16)),
    ],
    "int_mm": [lambda: F.int_mm(np.ones((17, 32), np.int8), np.ones((32, 8), np.int8))],
    "kron_backward": [
        lambda: F.kron_backward(_x(4, 6), _x(2, 3), _x(2, 2)),
        lambda: F.kron_backward(_x(1, 2), _x(1, 1), _x(1, 2)),
        lambda: F.kron_backward(_x(4, 6), _x(2, 3).astype(np.float16), _x(2, 2)),
    ],
    "linear_backward": [
        lambda: F.linear_backward(_x(2, 4), _x(2, 3), _x(4, 3)),
        lambda: F.linear_backward(_x(2, 4), _x(2, 3), _x(4, 3), _x(4)),
    ],
    "linear_cross_entropy_fused": [lambda: F.linear_cross_entropy_fused(_x(4, 8), _x(6, 8), np.arange(4))],
    "masked_scatter_backward": [lambda: F.masked_scatter_backward(_x(2, 3), _x(2, 3), _x(2, 3) > 0, _x(6))],
    "matmul_backward": [
        lambda: F.matmul_backward(_x(2, 4), _x(2, 3), _x(3, 4)),
        lambda: F.matmul_backward(_x(5, 2, 4), _x(2, 3), _x(5, 3, 4)),
    ],
    "qk_norm_rope": [lambda: F.qk_norm_rope(_x(2, 4, 3, 8), _x(2, 2, 3, 8), _x(8), _x(8), _x(3, 4), _x(3, 4))],
    "random_": [lambda: F.random_(_x(3), 0, 9)],
    "categorical": [lambda: F.categorical(_x(2, 3, 4).astype(np.float64))],
    "gumbel_max": [
        lambda: F.gumbel_max(_x(2, 3).astype(np.float16)),
        lambda: F.gumbel_max(_x(2, 3).astype(np.float16), 2.0),
    ],
    "laplace_": [lambda: F.laplace_(_x(3).astype(np.float16))],
    "gamma": [lambda: F.gamma(_x(3) ** 2, 2.0)],
    "gamma_": [lambda: F.gamma_(_x(3), 2.0, 3.0)],
    "beta_": [lambda: F.beta_(_x(3), 2.0, 3.0)],
    "poisson_": [lambda: F.poisson_(_whole(3), 3.0)],
    "binomial_": [lambda: F.binomial_(_whole(3), 5, 0.5)],
    "exponential_": [lambda: F.exponential_(_x(3).astype(np.float16))],
    "cauchy_": [lambda: F.cauchy_(_x(3).astype(np.float16))],
    "geometric_": [lambda: F.geometric_(_whole(3), 0.5)],
    "log_normal_": [lambda: F.log_normal_(_x(3).astype(np.float16))],
    "trunc_normal_": [
        lambda: F.trunc_normal_(_x(3).astype(np.float16)),
        lambda: F.trunc_normal_(_x(3), a=8.0, b=10.0),
        lambda: F.trunc_normal_(_x(3).astype(np.float16), a=8.0, b=10.0),
    ],
    "isreal": [lambda: F.isreal(_x(3)), lambda: F.isreal(_x(3).astype(np.complex64))],
    "gumbel_softmax": [lambda: F.gumbel_softmax(_x(2, 3).astype(np.float16), hard=True)],
    "rand": [lambda: F.rand(3)],
    "rand_like": [lambda: F.rand_like(_x(2, 5))],
    "isin": [lambda: F.isin(_whole(3), _whole(2), invert=True)],
    "randint_like": [lambda: F.randint_like(_x(3), 5)],
    "randn": [lambda: F.randn(3)],
    "randn_like": [lambda: F.randn_like(_x(2, 5))],
    "lexsort": [lambda: F.lexsort(_x(3), _whole(3))],
    "index_put": [
        lambda: F.index_put(_x(3, 2), (_whole(2), _whole(2)), _x(2)),
        lambda: F.index_put(_x(3, 2), (_x(3) > 0,), _x(2).T[:1], True),
        lambda: F.index_put(_x(3, 2), (None, _whole(2)), _x(1)),
    ],
    "index_put_": [
        lambda: F.index_put_(_x(3, 2), (_whole(2), _whole(2)), _x(2)),
        lambda: F.index_put_(_x(3, 2), (_x(3) > 0,), _x(2).T[:1], True),
    ],
    **{
        f"segment_{n}": [lambda n=n: getattr(F, f"segment_{n}")(_x(3, 2).astype(np.float16), _LONG[0, :3])]
        for n in ("sum", "mean", "prod", "max", "min", "softmax")
    },
    "segment_reduce": [
        lambda: F.segment_reduce(_x(4, 2).astype(np.float16), "mean", lengths=_LONG[0], initial=0.5),
        lambda: F.segment_reduce(_x(3, 4), "max", offsets=_LONG * [0, 1, 2, 4], axis=1),
    ],
    "histogramdd": [
        lambda: F.histogramdd(_x(4, 2), 3, density=True),
        lambda: F.histogramdd(_x(4, 2), [_x(3), _x(4)]),
        lambda: F.histogramdd(_x(4, 2), [3, 2], weight=_x(4)),
    ],
    "softmin": [lambda: F.softmin(_x(3), 0, dtype="f64")],
    "split_copy": [lambda: F.split_copy(_x(5), 2)],
    "triu_indices": [lambda: F.triu_indices(7, 9)],
    "vector_norm": [lambda: F.vector_norm(_x(3), dtype="f64")],
    "vander": [lambda: F.vander(_x(3)), lambda: F.vander(_whole(3).astype(np.int8), 1)],
    "silu_and_mul_backward": [lambda: F.silu_and_mul_backward(_x(2, 4), _x(2, 8))],
    "silu_mul_backward": [lambda: F.silu_mul_backward(_x(4), _x(4), _x(4))],
    "take_along_dim_backward": [
        lambda: F.take_along_dim_backward(_x(2, 1), _x(2, 3), np.zeros((2, 1), np.int64), 1),
        lambda: F.take_along_dim_backward(_x(2, 2), _x(1, 3), np.zeros((2, 2), np.int64), 1),
        lambda: F.take_along_dim_backward(_x(2), _x(2, 3), np.zeros(2, np.int64)),
    ],
    "tensordot": [lambda: F.tensordot(_whole(2, 3), _LONG, 1)],
    "tensordot_backward": [
        lambda: F.tensordot_backward(_x(2, 4), _x(2, 3), _x(3, 4), 1),
        lambda: F.tensordot_backward(_x(2, 3, 4), _x(2, 3).astype(np.float16), _x(4), 0),
    ],
}
OWN = [n for n in dir(F) if n not in _index.OPS]
TABLE = {(r["op"], r["direction"]) for r in rows()}


def _launched(probe: Probe, call: Callable[[], Any]) -> set[tuple[str, str]]:
    """The ops of a call's plans, with their directions; none where the function refuses the call."""
    record = probe.fresh()
    for plans in (planned, _planned):  # made by other tests, unseen by the probe
        plans.cache_clear()
    try:
        call()
    except bc.BaracudaError:
        return set()
    return {(r.plan.descriptor.op, r.plan.descriptor.direction) for r in record.ran}


def _random_call(name: str, number: int) -> Callable[[], Any]:
    made = calls.make(name, (7, number))
    positional, keywords = made.arguments(calls.ours(made))
    return lambda: getattr(F, name)(*positional, **keywords)


def _random_pull(name: str, number: int) -> Callable[[], Any]:
    """The gradient of a random call with respect to its results; nothing where it has none."""
    made = calls.make(name, (7, number))
    positional, keywords = made.arguments(calls.ours(made))
    keywords.pop("out", None)
    try:
        y, pull = bc.vjp(getattr(F, name), *positional, **keywords)
    except bc.BaracudaError:
        return lambda: None
    ones = [to_numpy(x) for x in (y if isinstance(y, tuple) else (y,))]
    ones = [np.ones(x.shape, x.dtype) for x in ones]
    return lambda: pull(ones[0] if len(ones) == 1 else tuple(ones))


def _of_torch(name: str) -> list[Callable[[], Any]]:
    """Calls with the samples that torch's table has of a function, also of mixed elements, of bools, and with dtype=."""
    found: list[Callable[[], Any]] = []
    options_of = getattr(F, name).__signature__.parameters
    for entry in entries.table():
        fn = entries.function(entry)
        if fn is not getattr(F, name):
            continue
        for element in entries.elements(entry):
            for args, options in entries.samples(entry, element)[:CALLS]:
                given = [x for x in tensors((args, options)) if x.dtype is element]
                found.append(partial(fn, *args, **options))
                for other in (torch.float64, torch.int32, torch.bool) if len(found) % 3 == 0 else ():
                    for few in (given[-1:], given):
                        mixed = tree_map(lambda x: x.to(other) if any(x is y for y in few) else x, (args, options))  # noqa: B023
                        found.append(partial(fn, *mixed[0], **mixed[1]))
                if "dtype" in options_of:
                    found.append(partial(fn, *args, **(options | {"dtype": "f64"})))
    return found


def _declared(name: str) -> bool:
    return bool(getattr(getattr(F, name), "steps", ""))


@pytest.mark.parametrize("name", [n for n in OWN if _declared(n)])
def test_declared_steps_are_those_that_run(name: str) -> None:
    made = list(SAMPLES.get(name, ()))
    if name in functions.names():
        made += [_random_call(name, i) for i in range(CALLS)]
    elif _index.FUNCTIONS[name].rpartition(".")[2] in functions.SAMPLED:
        made += _of_torch(name)
    forward = name.removesuffix("_backward")
    if forward != name and forward in functions.names() and functions.has_gradient(forward):
        made += [_random_pull(forward, i) for i in range(CALLS)]
    with Probe().installed() as probe:
        ran = set().union(*(_launched(probe, call) for call in made))
    declared = set(_index.STEPS[name])
    assert ran <= declared, "say so in @made_of"
    assert declared <= ran, "nothing runs these: drop them from @made_of, or add a call to SAMPLES that needs them"


def test_every_function_answers() -> None:
    """By a row of its own, one that its name says, or those that it declares."""
    for name in dir(F):
        found = bc.capabilities(name, element="f32", device="cpu:v4x")
        assert found, name
        mine = {(c.sku.op, c.sku.direction) for c in found}
        assert mine <= TABLE
        if name not in _index.OPS:
            assert mine == set(_index.STEPS[name]) and {c.step_of for c in found} == {name}
        assert getattr(F, name).__doc__.count("Elements, error bounds") or "Made of" in getattr(F, name).__doc__, name


def test_steps_are_named_in_docstrings() -> None:
    text = F.einsum.__doc__
    assert "Made of `cast`, `copy`, `matmul`, `mul`, `sum`" in text
    assert "    matmul, f16 bf16 f32 f64: " in text and "    mul, " in text
    assert F.clip.__doc__ == F.clamp.__doc__, "one function"


def _printed(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["baracuda", *arguments])
    assert command.main() == 0
    return capsys.readouterr().out


def test_commands_know_functions_of_several_plans(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explained = _printed(["explain", "kron"], monkeypatch, capsys)
    assert explained.startswith("kron is made of mul:") and "step of kron" in explained
    assert "`mul` forward cpu" in _printed(["capabilities", "kron"], monkeypatch, capsys)
    verified = _printed(["verify", "chain_matmul", "--element", "f32"], monkeypatch, capsys)
    assert "matmul.forward.cpu.f32" in verified and "mul.forward.cpu.f32" in verified
    monkeypatch.setattr(sys, "argv", ["baracuda", "explain", "einsum", "shape=8"])
    assert command.main() == 2 and "Explain one of these" in capsys.readouterr().err
