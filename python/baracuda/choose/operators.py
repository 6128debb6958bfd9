"""Operators by the names that exchange formats have for them: ONNX's, and those of PyTorch's aten."""

from __future__ import annotations

import re
from collections.abc import Container

# ONNX's operators that one op or function computes, under the name that `bc.capabilities` and `bc.functional` have for it.
# Most of the rest are views, constants and control flow.
ONNX: dict[str, str] = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Add": "add", "AffineGrid": "affine_grid", "And": "logical_and",
    "ArgMax": "argmax", "ArgMin": "argmin", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "Attention": "scaled_dot_product_attention", "AveragePool": "avg_pool", "BatchNormalization": "batch_norm",
    "Bernoulli": "bernoulli", "BitShift": "bitwise_left_shift", "BitwiseAnd": "bitwise_and", "BitwiseNot": "bitwise_not",
    "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor", "Cast": "cast", "CastLike": "cast",
    "CausalConvWithState": "conv", "Ceil": "ceil", "Celu": "celu", "Clip": "clamp", "Col2Im": "fold", "Compress": "masked_select",
    "Concat": "cat", "ConstantOfShape": "full", "Conv": "conv", "ConvInteger": "conv", "ConvTranspose": "conv_transpose",
    "Cos": "cos", "Cosh": "cosh", "CumProd": "cumprod", "CumSum": "cumsum", "DepthToSpace": "pixel_shuffle",
    "DequantizeLinear": "dequantize_linear", "Div": "div", "Dropout": "dropout", "DynamicQuantizeLinear": "dynamic_quantize",
    "Einsum": "einsum", "Elu": "elu", "Equal": "eq", "Erf": "erf", "Exp": "exp", "Expand": "expand_copy", "EyeLike": "eye",
    "Floor": "floor", "Gather": "index_select", "GatherElements": "gather", "GatherND": "gather_nd", "Gelu": "gelu",
    "Gemm": "addmm", "GlobalAveragePool": "mean", "GlobalLpPool": "norm", "GlobalMaxPool": "amax", "Greater": "gt",
    "GreaterOrEqual": "ge", "GridSample": "grid_sample", "GroupNormalization": "group_norm", "HardSigmoid": "hardsigmoid",
    "HardSwish": "hardswish", "Identity": "copy", "InstanceNormalization": "instance_norm", "IsInf": "isinf", "IsNaN": "isnan",
    "LRN": "local_response_norm", "LayerNormalization": "layer_norm", "LeakyRelu": "leaky_relu", "Less": "lt",
    "LessOrEqual": "le", "Log": "log", "LogSoftmax": "log_softmax", "LpNormalization": "normalize", "LpPool": "lp_pool2d",
    "MatMul": "matmul", "MatMulInteger": "int_mm", "Max": "maximum", "MaxPool": "max_pool", "MaxRoiPool": "roi_pool",
    "MaxUnpool": "max_unpool2d", "Mean": "mean", "MeanVarianceNormalization": "batch_norm", "Min": "minimum", "Mish": "mish",
    "Mod": "remainder", "Mul": "mul", "Multinomial": "multinomial", "Neg": "neg", "NegativeLogLikelihoodLoss": "nll_loss",
    "NonMaxSuppression": "nms", "NonZero": "nonzero", "Not": "logical_not", "OneHot": "one_hot", "Or": "logical_or",
    "PRelu": "prelu", "Pad": "pad", "Pow": "pow", "QLinearMatMul": "scaled_matmul", "QuantizeLinear": "quantize_linear",
    "RMSNormalization": "rms_norm", "RandomNormal": "randn", "RandomNormalLike": "randn_like", "RandomUniform": "rand",
    "RandomUniformLike": "rand_like", "Range": "arange", "Reciprocal": "reciprocal", "ReduceL1": "vector_norm",
    "ReduceL2": "vector_norm", "ReduceLogSumExp": "logsumexp", "ReduceMax": "amax", "ReduceMean": "mean", "ReduceMin": "amin",
    "ReduceProd": "prod", "ReduceSum": "sum", "Relu": "relu", "Resize": "interpolate", "RoiAlign": "roi_align",
    "RotaryEmbedding": "rope", "Round": "round", "Scatter": "scatter", "ScatterElements": "scatter", "ScatterND": "scatter_nd",
    "Selu": "selu", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softmax": "softmax",
    "SoftmaxCrossEntropyLoss": "cross_entropy", "Softplus": "softplus", "Softsign": "softsign",
    "SpaceToDepth": "pixel_unshuffle", "Split": "split_copy", "Sqrt": "sqrt", "Sub": "sub", "Sum": "add", "SwiGLU": "swiglu",
    "Swish": "silu", "Tan": "tan", "Tanh": "tanh", "ThresholdedRelu": "threshold", "Tile": "tile", "TopK": "topk",
    "Transpose": "permute_copy", "Trilu": "triu", "Unique": "unique", "Upsample": "interpolate", "Where": "where",
    "Xor": "logical_xor",
}  # fmt: skip

# Those that no function of this version computes, and why.
ONNX_ABSENT: dict[str, tuple[str, ...]] = {
    "a view, a shape or the same bits: arrays have it themselves": (
        "BitCast", "Constant", "Flatten", "Reshape", "Shape", "Size", "Slice", "Squeeze", "Unsqueeze",
    ),
    "control flow, or of sequences": (
        "ConcatFromSequence", "If", "Loop", "Optional", "OptionalGetElement", "OptionalHasElement", "Scan", "SequenceAt",
        "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence",
    ),
    "of text": ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"),
    "several functions one after the other": (
        "BlackmanWindow", "CenterCropPad", "GRU", "HammingWindow", "HannWindow", "Hardmax", "LSTM", "LinearAttention", "RNN",
        "ReduceLogSum", "ReduceSumSquare", "ReverseSequence", "Shrink", "TensorScatter",
    ),
    "not in this version": (
        "DFT", "DeformConv", "Det", "ImageDecoder", "MelWeightMatrix", "QLinearConv", "STFT",
    ),
}  # fmt: skip

# aten's operators that are called otherwise here; the others have the same names.
ATEN: dict[str, str] = {
    "_log_softmax": "log_softmax", "_log_softmax_backward_data": "log_softmax_backward", "_native_batch_norm_legit": "batch_norm",
    "_scaled_mm": "scaled_matmul", "_softmax": "softmax", "_softmax_backward_data": "softmax_backward", "_to_copy": "cast",
    "_weight_int4pack_mm": "quant_linear", "clone": "copy",
    "contiguous": "copy", "convolution": "conv",
    "copy_": "copy", "cross_entropy_loss": "cross_entropy", "embedding_dense_backward": "embedding_backward",
    "linalg_vector_norm": "vector_norm", "log_sigmoid_forward": "logsigmoid",
    "native_dropout": "dropout", "native_group_norm": "group_norm", "native_layer_norm": "layer_norm",
    "native_layer_norm_backward": "layer_norm_backward", "nll_loss2d_forward": "nll_loss", "nll_loss_forward": "nll_loss",
    "to": "cast", "upsample_bilinear2d": "interpolate", "upsample_nearest2d": "interpolate",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_cudnn_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_embedding_bag": "embedding_bag", "_adaptive_avg_pool2d": "adaptive_avg_pool", "_fused_rms_norm": "rms_norm",
    "max_pool2d_with_indices": "max_pool2d", "max_pool3d_with_indices": "max_pool3d", "scalar_tensor": "full",
    "_int_mm": "int_mm", "_unsafe_index": "take",
}  # fmt: skip
_ATEN_NAME = re.compile(r"(?:torch\.ops\.)?aten(?:::|\.)(\w+)(?:\.\w+)?")


def own_name(name: str, known: Container[str]) -> str | None:
    """What an operator of ONNX ("LayerNormalization") or of aten ("aten::native_layer_norm", "aten.add.Tensor") is called here.

    Args:
        name: Its name there.
        known: Names that there are.

    Returns:
        The name here; None for what is neither's, or has no counterpart.
    """
    if name in ONNX:
        return ONNX[name]
    found = _ATEN_NAME.fullmatch(name)
    if found is None:
        return None
    plain = found[1]
    for candidate in (ATEN.get(plain), plain, plain.removesuffix("_")):
        if candidate is not None and candidate in known:
            return candidate
    return ATEN.get(plain.removesuffix("_backward"))


def absence(name: str) -> str:
    """Why an operator of ONNX is no op here: the end of a message, or nothing."""
    for why, operators in ONNX_ABSENT.items():
        if name in operators:
            return f": ONNX's {name} is {why}."
    return ""
