"""Calls of the functions that random arguments do not fit: what they are given, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Call = tuple[tuple[Any, ...], dict[str, Any]]


def _floats(*shape: int, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


def _call(*args: Any, **kwargs: Any) -> Call:
    return args, kwargs


def _lists(count: int) -> list[list[np.ndarray]]:
    return [[np.abs(_floats(3, 2)), np.abs(_floats(5))] for _ in range(count)]


X, W, ONE, ROWS = _floats(4, 6), _floats(6), np.ones((), np.float32), _floats(4, 1)
HEADS, TURN = _floats(2, 5, 3, 8), _floats(9, 4)
TARGET, LSE = np.array([1, 0, 2, 1]), _floats(4)
LAYER, IMAGE = _floats(3, 6), _floats(2, 3, 4, 5)
Q, CU = _floats(7, 2, 8), np.array([0, 3, 7], np.int32)
PAGES, TABLE, LENGTHS = _floats(4, 8, 2, 8), np.array([[0, 1], [2, 3]], np.int32), np.array([3, 11], np.int32)
ATTENDED = _floats(2, 2, 5, 8)
CODES = np.arange(24, dtype=np.int8).reshape(4, 6)
WORDS = np.arange(64, dtype=np.int32).reshape(8, 8)


def _conv(axes: int, transposed: bool = False) -> dict[str, Call]:
    """A convolution over so many axes in two groups, and its gradient."""
    name = f"conv{'_transpose' * transposed}{axes}d"
    x, weight = _floats(2, 4, *(5,) * axes), _floats(4, 3, *(3,) * axes) if transposed else _floats(6, 2, *(3,) * axes)
    dy, more = _floats(2, 6, *(7 if transposed else 3,) * axes), {"groups": 2}
    return {name: _call(x, weight, **more), f"{name}_backward": _call(dy, x, weight, **more)}


CONVOLUTIONS = {k: v for axes in (1, 2, 3) for turned in (False, True) for k, v in _conv(axes, turned).items()}


def _pools(axes: int) -> dict[str, Call]:
    """Pooling over so many axes, and its gradients."""
    x, y = _floats(2, 3, *(5,) * axes), _floats(2, 3, *(2,) * axes)
    indices = np.zeros(y.shape, np.int64)
    made: dict[str, Call] = {}
    for kind in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"):
        given: tuple[Any, ...] = (y, indices) if "max" in kind else (y,)
        made[f"{kind}{axes}d"], made[f"{kind}{axes}d_backward"] = _call(x, 2), _call(*given, x.shape, 2)
    made[f"lp_pool{axes}d"], made[f"max_unpool{axes}d"] = _call(x, 2.0, 2), _call(y, indices, 2)
    return made


POOLS = _pools(1) | _pools(2) | _pools(3)

SAMPLES: dict[str, Call] = (
    CONVOLUTIONS
    | POOLS
    | {
        "affine_grid": _call(_floats(2, 2, 3), (2, 1, 3, 4)),
        "affine_grid_backward": _call(_floats(2, 3, 4, 2), (2, 1, 3, 4)),
        "roi_align": _call(IMAGE, np.array([[0, 0, 0, 2, 2], [1, 1, 0, 3, 2]], np.float32), 2),
        "roi_align_backward": _call(_floats(2, 3, 2, 2), np.zeros((2, 5), np.float32), IMAGE.shape, 2),
        "roi_pool": _call(IMAGE, np.array([[0, 0, 0, 2, 2], [1, 1, 0, 3, 2]], np.float32), 2),
        "roi_pool_forward": _call(IMAGE, np.array([[0, 0, 0, 2, 2], [1, 1, 0, 3, 2]], np.float32), 2),
        "roi_pool_backward": _call(
            _floats(2, 3, 2, 2), np.zeros((2, 5), np.float32), np.zeros((2, 3, 2, 2), np.int64), IMAGE.shape
        ),
        "fractional_max_pool2d": _call(IMAGE, 2, 2),
        "fractional_max_pool3d": _call(_floats(1, 2, 4, 4, 4), 2, 2),
        "gamma": _call(X * X, 2.0),
        "gamma_": _call(X.copy(), 2.0),
        "beta": _call(X * X, W * W),
        "beta_": _call(X.copy(), 2.0, W * W),
        "poisson": _call(X * X),
        "poisson_": _call(X.copy(), 12.0),
        "binomial": _call(X * X, np.float32(0.5) * np.ones_like(X)),
        "binomial_": _call(X.copy(), 40, 0.5),
        "weight_norm": _call(X, ROWS),
        "nms": _call(_floats(5, 4), _floats(5), 0.5),
        "batched_nms": _call(_floats(5, 4), _floats(5), np.zeros(5, np.int64), 0.5),
        "ctc_loss": _call(_floats(5, 2, 4), TARGET.reshape(2, 2), np.array([5, 4]), np.array([2, 1])),
        "ctc_loss_backward": _call(LSE[:2], _floats(5, 2, 4), TARGET.reshape(2, 2), np.array([5, 4]), np.array([2, 1])),
        "fold": _call(_floats(2, 12, 6), (4, 3), 2),
        "fold_backward": _call(_floats(2, 3, 4, 3), 2),
        "grid_sample": _call(IMAGE, _floats(2, 3, 2, 2), align_corners=False),
        "grid_sample_backward": _call(_floats(2, 3, 3, 2), IMAGE, _floats(2, 3, 2, 2), align_corners=False),
        "grid_sampler_2d": _call(IMAGE, _floats(2, 3, 2, 2), 2, 1, True),
        "grid_sampler_3d": _call(_floats(2, 3, 2, 4, 5), _floats(2, 3, 2, 2, 3), 0, 2, False),
        "unfold": _call(IMAGE, 2, padding=1),
        "unfold_backward": _call(_floats(2, 12, 12), IMAGE.shape, 2),
        "local_response_norm": _call(_floats(2, 3, 4), 2),
        "adam_": _call(*_lists(4), step=1),
        "adamw_": _call(*_lists(5), step=1, amsgrad=True),
        "adadelta_": _call(*_lists(4)),
        "adagrad_": _call(*_lists(3), step=1),
        "adamax_": _call(*_lists(4), step=1),
        "lion_": _call(*_lists(3)),
        "lamb_": _call(*_lists(4), step=3),
        "muon_": _call(X, X[::-1], X * 0, ns_steps=2),
        "adafactor_": _call([X], [X], [ROWS * 0], [_floats(1, 6) * 0], [None], step=2),
        "unscale_grads_": _call([X, W], np.zeros((), "f4"), 0.5),
        "update_scale_": _call(np.ones((), "f4"), np.zeros((), "i4"), np.zeros((), "f4")),
        "nadam_": _call(*_lists(4), step=1, mu_product=0.5),
        "radam_": _call(*_lists(4), step=1),
        "rmsprop_": _call(*_lists(5), momentum=0.5),
        "add_rms_norm": _call(X, X, (6,), W),
        "add_rms_norm_backward": _call(X, X, X, (6,), W, ROWS),
        "attention_merge": _call(ATTENDED, _floats(2, 2, 5), ATTENDED, _floats(2, 2, 5)),
        "attention_merge_backward": _call(
            ATTENDED, _floats(2, 2, 5), ATTENDED, _floats(2, 2, 5), ATTENDED, _floats(2, 2, 5)
        ),
        "attention_merge_states": _call(*(ATTENDED, _floats(2, 2, 5)) * 3),
        "channel_shuffle": _call(_floats(2, 6, 3, 2), 3),
        "batch_norm_backward": _call(IMAGE, IMAGE, W[:3], W[:3], W[3:]),
        "native_batch_norm": _call(IMAGE, W[:3], W[3:], None, None, True, 0.1, 1e-5),
        "interpolate": _call(IMAGE, scale_factor=2.0),
        "interpolate_backward": _call(_floats(2, 3, 8, 10), IMAGE.shape, (8, 10), mode="bilinear"),
        "upsample": _call(IMAGE, (8, 10)),
        "upsample_bilinear": _call(IMAGE, (8, 10)),
        "upsample_nearest": _call(IMAGE, scale_factor=2),
        "bilinear": _call(_floats(4, 3), _floats(4, 2), _floats(5, 3, 2), _floats(5)),
        "clamp_backward": _call(X, X, 0.0, 1.0),
        "clip_grads_with_norm_": _call([X.copy(), W.copy()], 1.0, ONE),
        "constant_pad_nd": _call(X, (1, 2), 0.5),
        "dequantize": _call(np.arange(68, dtype=np.uint8).reshape(2, 34), "q8_0"),
        "einsum_backward": _call(_floats(4, 3), "ij,kj->ik", X, LAYER),
        "embedding_bag_backward": _call(_floats(2, 6), TARGET, LAYER, np.array([0, 2])),
        "index_put": _call(X, (TARGET, None), ROWS),
        "index_put_": _call(X.copy(), (None, TARGET), ROWS, True),
        "int_mm": _call(CODES, CODES.T),
        "layer_norm_backward": _call(X, X, (6,), W, ROWS, ROWS, True),
        "linear_cross_entropy_backward": _call(ONE, X, LAYER, TARGET, LSE),
        "linear_cross_entropy_fused": _call(X, LAYER, TARGET),
        "linear_cross_entropy_forward": _call(X, LAYER, TARGET),
        "logspace": _call(0, 2, 5),
        "masked_normalize": _call(X, 2.0, 1, mask=X > 0),
        "mvlgamma": _call(X, 2),
        "narrow_copy": _call(X, 1, 2, 3),
        "normal": _call(0.0, 1.0, (3, 2), dtype="f16"),
        "pad_backward": _call(_floats(4, 9), (4, 6), (1, 2)),
        "paged_append_": _call(_floats(2, 1, 2, 8), _floats(2, 1, 2, 8), PAGES, PAGES.copy(), TABLE, LENGTHS),
        "paged_append_slots_": _call(
            _floats(2, 2, 8), _floats(2, 2, 8), PAGES, PAGES.copy(), np.array([9, -1], np.int32)
        ),
        "paged_attention": _call(_floats(2, 1, 4, 8), PAGES, PAGES, TABLE, LENGTHS, enable_gqa=True),
        "paged_attention_forward": _call(_floats(2, 1, 2, 8), PAGES, PAGES, TABLE, LENGTHS),
        "pixel_shuffle": _call(_floats(2, 8, 3, 2), 2),
        "pixel_unshuffle": _call(_floats(2, 4, 6), 2),
        "qk_norm_rope": _call(HEADS, HEADS[:, :, :1], W[:1].repeat(8), W[:1].repeat(8), TURN, TURN),
        "quant_embedding": _call(np.arange(68, dtype=np.uint8).reshape(2, 34), TARGET % 2, "q8_0"),
        "quant_linear": _call(X, CODES, ONE, None, LAYER[0, :1].repeat(4)),
        "quant_linear_backward": _call(_floats(3, 4), CODES, ONE, None, LAYER[0, :1].repeat(4)),
        "mx_quantize": _call(_floats(2, 32), "mxfp6_e3m2"),
        "mx_dequantize": _call(
            np.arange(64, dtype=np.uint8).reshape(2, 32), np.full((2, 1), 127, np.uint8), "mxfp6_e2m3"
        ),
        "nvfp4_quantize": _call(_floats(2, 32)),
        "rms_norm_quantize": _call(X, W, residual=X[::-1], group=3),
        "layer_norm_quantize": _call(X, W, W, dtype="f8e4m3", scale=0.1),
        **dict.fromkeys(("glu_quantize", "reglu_quantize", "swiglu_quantize"), _call(X, group=3)),
        **dict.fromkeys(("geglu_quantize", "silu_and_mul_quantize"), _call(X, 0, "f8e5m2", scale=ONE)),
        "nvfp4_dequantize": _call(
            CODES.view(np.uint8)[:2, :1].repeat(16, 1), np.ones((2, 2), ml_dtypes.float8_e4m3fn), ONE
        ),
        "repack_awq": _call(WORDS, WORDS[:1], np.ones((1, 64), np.float16)),
        "repack_gptq": _call(WORDS, WORDS[:1, :1], np.ones((1, 8), np.float16)),
        "quant_matmul": _call(_floats(2, 32), np.arange(102, dtype=np.uint8).reshape(3, 34) % 60, "q8_0"),
        "quant_matmul_ids": _call(
            _floats(2, 32), np.arange(136, dtype=np.uint8).reshape(2, 2, 34) % 60, TARGET[:2] % 2, "q8_0"
        ),
        "quant_matmul_ids_backward": _call(
            _floats(2, 2), np.arange(136, dtype=np.uint8).reshape(2, 2, 34) % 60, TARGET[:2] % 2, "q8_0", (2, 32)
        ),
        "quant_matmul_backward": _call(_floats(2, 3), np.arange(102, dtype=np.uint8).reshape(3, 34) % 60, "q8_0"),
        "quantize": _call(_floats(2, 32), "q4_0"),
        "quantize_linear": _call(X, np.abs(ROWS) + 0.1, dtype="u4", axis=0),
        "dequantize_linear": _call(CODES, ONE),
        "dynamic_quantize": _call(X, (1, 2), "u8", symmetric=False),
        "fake_quantize": _call(X, 0.1, 3, 0, 255),
        "fake_quantize_backward": _call(X, X, 0.1, 3, 0, 255),
        "fake_quantize_per_tensor_affine": _call(X, 0.1, 3, 0, 255),
        "fake_quantize_per_tensor_affine_backward": _call(X, X, 0.1, 3, 0, 255),
        "fake_quantize_per_channel_affine": _call(X, np.abs(ROWS) + 0.1, LENGTHS[:1].repeat(len(ROWS)), 0, 0, 255),
        "fake_quantize_per_channel_affine_backward": _call(
            X, X, np.abs(ROWS) + 0.1, LENGTHS[:1].repeat(len(ROWS)), 0, 0, 255
        ),
        "rand": _call(2, 3),
        "randint": _call(3, 9, (2, 4)),
        "randint_like": _call(X, 9),
        "randn": _call((2, 3), dtype="f64"),
        "random_": _call(CODES.copy(), 0, 5),
        "randperm": _call(7),
        "renorm": _call(X, 2.0, 0, 1.0),
        "rms_norm_add_backward": _call(X, X, (6,), W, ROWS),
        "rms_norm_rope": _call(HEADS, None, TURN, TURN),
        "rms_norm_rope_forward": _call(HEADS, W[:1].repeat(8), TURN, TURN),
        "rms_norm_rope_backward": _call(HEADS, HEADS, W[:1].repeat(8), TURN, TURN, _floats(2, 5, 3, 1)),
        "js_div": _call(X, X[::-1]),
        "tv_distance": _call(X, X[::-1], "none"),
        "preference_loss": _call(W, W[::-1], W * 2, W),
        "sample_tokens": _call(X, 0.7, 3, 0.9, counts=np.ones((4, 6), np.int32), mask=X > -1),
        "scaled_dot_product_attention_backward": _call(*(ATTENDED,) * 5, _floats(2, 2, 5)),
        "scaled_matmul": _call(CODES, CODES.T, ONE, ONE, out_dtype="f16"),
        **{f"segment_{n}": _call(X, TARGET, 3) for n in ("sum", "mean", "prod", "max", "min", "softmax")},
        "segment_reduce": _call(X, "sum", lengths=TARGET, unsafe=True),
        "histogramdd": _call(X[:, :2], [np.sort(W[:3]), np.sort(W)]),
        "select_scatter": _call(X, W, 0, 2),
        "split_copy": _call(X, 4, 1),
        "split_with_sizes_copy": _call(X, (1, 3), 0),
        "transpose_copy": _call(X, 0, 1),
        "unfold_copy": _call(X, 1, 3, 2),
        "uniform": _call(0.0, 1.0, (3, 2)),
        "unpack_int4": _call(np.arange(6, dtype=np.uint8).reshape(2, 3)),
        "verify_draft": _call(np.abs(_floats(2, 3, 5)), np.ones((2, 3), np.int64), np.abs(_floats(2, 4, 5))),
        "verify_tree": _call(np.ones((2, 3), np.int64), np.zeros((2, 3), np.int64), np.abs(_floats(2, 4, 5))),
        "varlen_attn": _call(Q, Q, Q, CU, CU, 4, 4),
        "varlen_attn_forward": _call(Q, Q, Q, CU, CU, 4, 4),
        "varlen_attn_backward": _call(*(Q,) * 5, _floats(2, 7), CU, CU, 4, 4),
    }
)
