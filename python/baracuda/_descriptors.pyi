"""Written by ci/generate.py: descriptors with what their fields are made from, and plans."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeAlias

from baracuda.choose.plan import Plan as _Plan
from baracuda.describe.dims import Dim
from baracuda.ops.attention import attention as _attention
from baracuda.ops.attention import attention_append as _attention_append
from baracuda.ops.attention import attention_merge as _attention_merge
from baracuda.ops.attention import attention_paged as _attention_paged
from baracuda.ops.attention import attention_paged_append as _attention_paged_append
from baracuda.ops.attention import attention_varlen as _attention_varlen
from baracuda.ops.binary import binary as _binary
from baracuda.ops.cast import cast as _cast
from baracuda.ops.cast import int4 as _int4
from baracuda.ops.conv import conv as _conv
from baracuda.ops.conv import conv_norm as _conv_norm
from baracuda.ops.embedding import embedding as _embedding
from baracuda.ops.embedding import embedding_bag as _embedding_bag
from baracuda.ops.expr import expr as _expr
from baracuda.ops.gated import gated as _gated
from baracuda.ops.gated import gated_quantize as _gated_quantize
from baracuda.ops.image import boxes as _boxes
from baracuda.ops.image import fold as _fold
from baracuda.ops.image import regions as _regions
from baracuda.ops.image import resize as _resize
from baracuda.ops.image import roi_pool as _roi_pool
from baracuda.ops.image import sample as _sample
from baracuda.ops.indexing import compact as _compact
from baracuda.ops.indexing import counting as _counting
from baracuda.ops.indexing import indexing as _indexing
from baracuda.ops.indexing import scatter as _scatter
from baracuda.ops.layout import arrange as _arrange
from baracuda.ops.layout import join as _join
from baracuda.ops.layout import layout as _layout
from baracuda.ops.layout import pad as _pad
from baracuda.ops.loss import ctc as _ctc
from baracuda.ops.loss import linear_cross_entropy as _linear_cross_entropy
from baracuda.ops.loss import loss as _loss
from baracuda.ops.loss import pointwise_loss as _pointwise_loss
from baracuda.ops.matmul import gated_matmul as _gated_matmul
from baracuda.ops.matmul import matmul as _matmul
from baracuda.ops.matmul import scaled_matmul as _scaled_matmul
from baracuda.ops.norm import batch_norm as _batch_norm
from baracuda.ops.norm import layer_norm as _layer_norm
from baracuda.ops.norm import norm as _norm
from baracuda.ops.norm import norm_quantize as _norm_quantize
from baracuda.ops.optim import clip as _clip
from baracuda.ops.optim import moments as _moments
from baracuda.ops.optim import optim as _optim
from baracuda.ops.optim import rates as _rates
from baracuda.ops.pool import pool as _pool
from baracuda.ops.quant import code_linear as _code_linear
from baracuda.ops.quant import fake_quantize as _fake_quantize
from baracuda.ops.quant import quant as _quant
from baracuda.ops.quant import quant_matmul as _quant_matmul
from baracuda.ops.quant import quant_matmul_ids as _quant_matmul_ids
from baracuda.ops.quant import scaled as _scaled
from baracuda.ops.random import discrete as _discrete
from baracuda.ops.random import dropout as _dropout
from baracuda.ops.random import random as _random
from baracuda.ops.random import rejection as _rejection
from baracuda.ops.reduce import extrema as _extrema
from baracuda.ops.reduce import reduce as _reduce
from baracuda.ops.reduce import variance as _variance
from baracuda.ops.rope import rms_norm_rope as _rms_norm_rope
from baracuda.ops.rope import rope as _rope
from baracuda.ops.rope import rope_append as _rope_append
from baracuda.ops.sampling import draft as _draft
from baracuda.ops.sampling import sampling as _sampling
from baracuda.ops.scan import running as _running
from baracuda.ops.scan import scan as _scan
from baracuda.ops.softmax import softmax as _softmax
from baracuda.ops.softmax import sparse as _sparse
from baracuda.ops.sort import search as _search
from baracuda.ops.sort import selection as _selection
from baracuda.ops.sort import sort as _sort
from baracuda.ops.sort import unique as _unique
from baracuda.ops.ternary import ternary as _ternary
from baracuda.ops.unary import unary as _unary

_Size: TypeAlias = int | Dim
_Shape: TypeAlias = int | Sequence[int | Dim]
_Ints: TypeAlias = int | Sequence[int]
_Mode: TypeAlias = str | Enum
_Element: TypeAlias = Any  # its name, or the dtype of any framework

class AdadeltaDescriptor(_rates.AdadeltaDescriptor):
    r"""One step of Adadelta, in place, over a list of tensors in a single launch; torch.optim.Adadelta's formula."""
    def __init__(self, shapes: Sequence[_Shape], element: _Element = ..., maximize: bool = ...) -> None: ...

class AdadeltaPlan(_Plan): ...

class AdagradDescriptor(_rates.AdagradDescriptor):
    r"""One step of Adagrad, in place, over a list of tensors in a single launch; torch.optim.Adagrad's formula."""
    def __init__(self, shapes: Sequence[_Shape], element: _Element = ..., maximize: bool = ...) -> None: ...

class AdagradPlan(_Plan): ...

class AdamDescriptor(_optim.AdamDescriptor):
    r"""One step of Adam, in place, over a list of tensors in a single launch; torch.optim.Adam's formula."""
    def __init__(
        self, shapes: Sequence[_Shape], element: _Element = ..., maximize: bool = ..., amsgrad: bool = ...
    ) -> None: ...

class AdamPlan(_Plan): ...

class AdamWDescriptor(_optim.AdamWDescriptor):
    r"""One step of AdamW, in place, over a list of tensors in a single launch; torch.optim.AdamW's formula."""
    def __init__(
        self, shapes: Sequence[_Shape], element: _Element = ..., maximize: bool = ..., amsgrad: bool = ...
    ) -> None: ...

class AdamWPlan(_Plan): ...

class AdamaxDescriptor(_moments.AdamaxDescriptor):
    r"""One step of Adamax, in place, over a list of tensors in a single launch; torch.optim.Adamax's formula."""
    def __init__(self, shapes: Sequence[_Shape], element: _Element = ..., maximize: bool = ...) -> None: ...

class AdamaxPlan(_Plan): ...

class AdaptiveAvgPoolBackwardDescriptor(_pool.AdaptiveAvgPoolBackwardDescriptor):
    r"""dx_i = the sum over the parts o that hold place i of dy_o, divided by their sizes."""
    def __init__(self, input_shape: _Shape, output_size: _Ints, element: _Element = ...) -> None: ...

class AdaptiveAvgPoolBackwardPlan(_Plan): ...

class AdaptiveAvgPoolDescriptor(_pool.AdaptiveAvgPoolDescriptor):
    r"""y[n, c, o] = the mean of x over the places floor(o size / results) to ceil((o + 1) size / results) - 1."""
    def __init__(self, input_shape: _Shape, output_size: _Ints, element: _Element = ...) -> None: ...

class AdaptiveAvgPoolPlan(_Plan): ...

class AdaptiveMaxPoolBackwardDescriptor(_pool.AdaptiveMaxPoolBackwardDescriptor):
    r"""dx_i = the sum of dy_o over the parts o that hold place i and whose index is i."""
    def __init__(self, input_shape: _Shape, output_size: _Ints, element: _Element = ...) -> None: ...

class AdaptiveMaxPoolBackwardPlan(_Plan): ...

class AdaptiveMaxPoolDescriptor(_pool.AdaptiveMaxPoolDescriptor):
    r"""y[n, c, o] = the largest x of the places floor(o size / results) to ceil((o + 1) size / results) - 1."""
    def __init__(
        self, input_shape: _Shape, output_size: _Ints, element: _Element = ..., indices: bool = ...
    ) -> None: ...

class AdaptiveMaxPoolPlan(_Plan): ...

class AddRmsNormBackwardDescriptor(_norm.AddRmsNormBackwardDescriptor):
    r"""dx of both x and residual: the gradient of rms_norm at sum, plus dsum; dweight as for rms_norm."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        dweight: bool = ...,
        dsum: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class AddRmsNormBackwardPlan(_Plan): ...

class AddRmsNormDescriptor(_norm.AddRmsNormDescriptor):
    r"""sum = x + residual, rounded to the element; y = rms_norm(sum)."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        save: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class AddRmsNormPlan(_Plan): ...

class ArangeDescriptor(_layout.ArangeDescriptor):
    r"""y[i] = start + i step, counted in logical order; start and step are numbers given to run. Integers wrap."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class ArangePlan(_Plan): ...

class ArgReduceDescriptor(_extrema.ArgReduceDescriptor):
    r"""Y = position of the first maximum or minimum along an axis, or in the whole tensor in logical order."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        axis: int | None = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class ArgReducePlan(_Plan): ...

class AttentionBackwardDescriptor(_attention.AttentionBackwardDescriptor):
    r"""Gradients of attention with respect to q, k and v, from out and lse of the forward."""
    def __init__(
        self,
        q_shape: _Shape,
        k_shape: _Shape,
        v_shape: _Shape,
        causal: bool = ...,
        causal_alignment: _Mode = ...,
        mask_shape: _Shape | None = ...,
        mask_element: _Element = ...,
        element: _Element = ...,
        window_left: int = ...,
        window_right: int = ...,
        softcap: float = ...,
        alibi_shape: _Shape | None = ...,
        dropout: bool = ...,
        sinks: bool = ...,
    ) -> None: ...

class AttentionBackwardPlan(_Plan): ...

class AttentionDescriptor(_attention.AttentionDescriptor):
    r"""out = softmax(scale * q @ k^T + mask) @ v, lse = logsumexp(scale * q @ k^T + mask), without a matrix of scores."""
    def __init__(
        self,
        q_shape: _Shape,
        k_shape: _Shape,
        v_shape: _Shape,
        causal: bool = ...,
        causal_alignment: _Mode = ...,
        mask_shape: _Shape | None = ...,
        mask_element: _Element = ...,
        element: _Element = ...,
        window_left: int = ...,
        window_right: int = ...,
        softcap: float = ...,
        alibi_shape: _Shape | None = ...,
        dropout: bool = ...,
        sinks: bool = ...,
        save_lse: bool = ...,
    ) -> None: ...

class AttentionPlan(_Plan): ...

class AttentionMergeBackwardDescriptor(_attention_merge.AttentionMergeBackwardDescriptor):
    r"""Gradients of attention_merge with respect to both parts."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class AttentionMergeBackwardPlan(_Plan): ...

class AttentionMergeDescriptor(_attention_merge.AttentionMergeDescriptor):
    r"""Two partial results over different keys as one: lse = log(exp(lse_a) + exp(lse_b))."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class AttentionMergePlan(_Plan): ...

class AvgPoolBackwardDescriptor(_pool.AvgPoolBackwardDescriptor):
    r"""dx_i = the sum of dy_o, divided as the sum of window o is, over the windows o that hold place i."""
    def __init__(
        self,
        input_shape: _Shape,
        kernel: _Ints,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        divisor: int = ...,
        element: _Element = ...,
    ) -> None: ...

class AvgPoolBackwardPlan(_Plan): ...

class AvgPoolDescriptor(_pool.AvgPoolDescriptor):
    r"""y[n, c, o] = the sum of x[n, c, o stride - low + t] over the taps t that are inside, divided by their number."""
    def __init__(
        self,
        input_shape: _Shape,
        kernel: _Ints,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        divisor: int = ...,
        element: _Element = ...,
    ) -> None: ...

class AvgPoolPlan(_Plan): ...

class BatchNormBackwardDescriptor(_batch_norm.BatchNormBackwardDescriptor):
    r"""dx = (dy - mean(dy) - xhat mean(dy xhat)) rstd weight, xhat = (x - mean) rstd; dweight = sum of dy xhat, dbias of dy."""
    def __init__(
        self,
        input_shape: _Shape,
        element: _Element = ...,
        training: bool = ...,
        per_instance: bool = ...,
        weight: bool = ...,
        parameter_element: _Element = ...,
        dweight: bool = ...,
        dbias: bool = ...,
    ) -> None: ...

class BatchNormBackwardPlan(_Plan): ...

class BatchNormDescriptor(_batch_norm.BatchNormDescriptor):
    r"""y = (x - mean) rstd weight + bias with rstd = 1 / sqrt(var + eps), for each channel of (images, channels, ...)."""
    def __init__(
        self,
        input_shape: _Shape,
        element: _Element = ...,
        training: bool = ...,
        per_instance: bool = ...,
        weight: bool = ...,
        parameter_element: _Element = ...,
        bias: bool = ...,
        running: bool = ...,
        running_element: _Element = ...,
        save: bool = ...,
    ) -> None: ...

class BatchNormPlan(_Plan): ...

class BernoulliDescriptor(_discrete.BernoulliDescriptor):
    r"""y = 1 with probability p, else 0; the exact mapping is in the module's docstring."""
    def __init__(self, shape: _Shape, element: _Element = ..., p_element: _Element = ...) -> None: ...

class BernoulliPlan(_Plan): ...

class BinaryBackwardDescriptor(_binary.BinaryBackwardDescriptor):
    r"""da and db, both in the shape that a and b broadcast to; sum them to the operands' own shapes."""
    def __init__(
        self,
        kind: str,
        a_shape: _Shape | None,
        b_shape: _Shape | None,
        element: _Element = ...,
        a_element: _Element = ...,
        b_element: _Element = ...,
    ) -> None: ...

class BinaryBackwardPlan(_Plan): ...

class BinaryDescriptor(_binary.BinaryDescriptor):
    r"""y = f(a, b), element by element, with broadcasting."""
    def __init__(
        self,
        kind: str,
        a_shape: _Shape | None,
        b_shape: _Shape | None,
        element: _Element = ...,
        a_element: _Element = ...,
        b_element: _Element = ...,
    ) -> None: ...

class BinaryPlan(_Plan): ...

class BincountDescriptor(_counting.BincountDescriptor):
    r"""y[b] = how many elements of index are b; size = how many bins the largest of them needs."""
    def __init__(self, shape: _Shape, bins: _Size, index_element: _Element = ...) -> None: ...

class BincountPlan(_Plan): ...

class CastDescriptor(_cast.CastDescriptor):
    r"""y = x in another element: floats round to nearest even once, float to integer truncates, integers wrap, bool is x != 0."""
    def __init__(
        self, shape: _Shape, input_element: _Element, output_element: _Element, saturate: bool = ...
    ) -> None: ...

class CastPlan(_Plan): ...

class CatDescriptor(_join.CatDescriptor):
    r"""y = the tensors one after the other along `axis`, bit for bit."""
    def __init__(self, shapes: Sequence[_Shape], axis: int = ..., element: _Element = ...) -> None: ...

class CatPlan(_Plan): ...

class ClampBackwardDescriptor(_ternary.ClampBackwardDescriptor):
    r"""dx = dy where x lies within the bounds (a tie with a bound counts as within), else 0."""
    def __init__(self, shape: _Shape, element: _Element = ..., has_min: bool = ..., has_max: bool = ...) -> None: ...

class ClampBackwardPlan(_Plan): ...

class ClampDescriptor(_ternary.ClampDescriptor):
    r"""y = min(max(x, min), max), the bounds being numbers given to run. NaN is kept; max wins over min."""
    def __init__(
        self,
        shape: _Shape,
        element: _Element = ...,
        has_min: bool = ...,
        has_max: bool = ...,
        input_element: _Element = ...,
    ) -> None: ...

class ClampPlan(_Plan): ...

class ClipGradValueDescriptor(_clip.ClipGradValueDescriptor):
    r"""Grads cut to [-clip_value, clip_value], in place, over a list of tensors in a single launch; NaN stays."""
    def __init__(self, shapes: Sequence[_Shape], element: _Element = ...) -> None: ...

class ClipGradValuePlan(_Plan): ...

class ClipGradsWithNormDescriptor(_clip.ClipGradsWithNormDescriptor):
    r"""Grads *= min(1, max_norm / (total_norm + 1e-6)), in place, over a list of tensors in a single launch."""
    def __init__(self, shapes: Sequence[_Shape], element: _Element = ..., norm_element: _Element = ...) -> None: ...

class ClipGradsWithNormPlan(_Plan): ...

class ConvBackwardDescriptor(_conv.ConvBackwardDescriptor):
    r"""Gradients of conv: dx by x, dweight by weight (summed over images and places), dbias the sums of dy's channels."""
    def __init__(
        self,
        input_shape: _Shape,
        weight_shape: _Shape,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        dilation: _Ints = ...,
        groups: int = ...,
        element: _Element = ...,
        dx: bool = ...,
        dweight: bool = ...,
        dbias: bool = ...,
    ) -> None: ...

class ConvBackwardPlan(_Plan): ...

class ConvDescriptor(_conv.ConvDescriptor):
    r"""y[n, o, p] = bias[o] + sum over c, t of x[n, c, p stride + t dilation - low] weight[o, c, t]; x is 0 outside."""
    def __init__(
        self,
        input_shape: _Shape,
        weight_shape: _Shape,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        dilation: _Ints = ...,
        groups: int = ...,
        element: _Element = ...,
        bias: bool = ...,
    ) -> None: ...

class ConvPlan(_Plan): ...

class ConvNormDescriptor(_conv_norm.ConvNormDescriptor):
    r"""y = relu((conv(x) - mean) rstd scale + shift) with rstd = 1 / sqrt(var + eps), for each channel of y."""
    def __init__(
        self,
        input_shape: _Shape,
        weight_shape: _Shape,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        dilation: _Ints = ...,
        groups: int = ...,
        element: _Element = ...,
        bias: bool = ...,
        scale: bool = ...,
        shift: bool = ...,
        relu: bool = ...,
    ) -> None: ...

class ConvNormPlan(_Plan): ...

class ConvTransposeBackwardDescriptor(_conv.ConvTransposeBackwardDescriptor):
    r"""Gradients of conv_transpose: dx is conv of dy, dweight and dbias are sums over images and places."""
    def __init__(
        self,
        input_shape: _Shape,
        weight_shape: _Shape,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        dilation: _Ints = ...,
        groups: int = ...,
        element: _Element = ...,
        dx: bool = ...,
        dweight: bool = ...,
        dbias: bool = ...,
    ) -> None: ...

class ConvTransposeBackwardPlan(_Plan): ...

class ConvTransposeDescriptor(_conv.ConvTransposeDescriptor):
    r"""y[n, o, q] = bias[o] + sum of x[n, c, p] weight[c, o, t] over all c, p, t with p stride + t dilation - low = q."""
    def __init__(
        self,
        input_shape: _Shape,
        weight_shape: _Shape,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        dilation: _Ints = ...,
        groups: int = ...,
        element: _Element = ...,
        bias: bool = ...,
    ) -> None: ...

class ConvTransposePlan(_Plan): ...

class CopyDescriptor(_layout.CopyDescriptor):
    r"""y = x, bit for bit, from any strides to any strides: also contiguous() and permute, given a permuted view."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class CopyPlan(_Plan): ...

class CosineSimilarityBackwardDescriptor(_variance.CosineSimilarityBackwardDescriptor):
    r"""dx1 = dy (x2 / (|x1| |x2|) - y x1 / |x1|^2), and dx2 likewise; a length below eps counts as eps, a constant."""
    def __init__(self, input_shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class CosineSimilarityBackwardPlan(_Plan): ...

class CosineSimilarityDescriptor(_variance.CosineSimilarityDescriptor):
    r"""y = sum(x1 x2) / (max(|x1|, eps) max(|x2|, eps)) along an axis of their common shape, with the scalar eps."""
    def __init__(self, x1_shape: _Shape, x2_shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class CosineSimilarityPlan(_Plan): ...

class CrossEntropyBackwardDescriptor(_loss.CrossEntropyBackwardDescriptor):
    r"""dlogits = dloss (exp(logits - lse) - onehot(target)), divided by the counted targets for a mean; 0 where ignored."""
    def __init__(
        self,
        logits_shape: _Shape,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        weighted: bool = ...,
        out_element: _Element = ...,
    ) -> None: ...

class CrossEntropyBackwardPlan(_Plan): ...

class CrossEntropyDescriptor(_loss.CrossEntropyDescriptor):
    r"""loss = lse - logits[target], lse = log(sum(exp(logits))) over the classes; reduced over the targets."""
    def __init__(
        self,
        logits_shape: _Shape,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        save: bool = ...,
        weighted: bool = ...,
        out_element: _Element = ...,
    ) -> None: ...

class CrossEntropyPlan(_Plan): ...

class CrossEntropyFusedDescriptor(_loss.CrossEntropyFusedDescriptor):
    r"""The loss of CrossEntropyDescriptor and, with one exp per logit, its gradient for dloss = 1."""
    def __init__(
        self,
        logits_shape: _Shape,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        save: bool = ...,
        out_element: _Element = ...,
    ) -> None: ...

class CrossEntropyFusedPlan(_Plan): ...

class CtcLossBackwardDescriptor(_ctc.CtcLossBackwardDescriptor):
    r"""dlog_probs = dloss (exp(log_probs) - the share of the paths that take this class at this step); 0 behind a sample."""
    def __init__(
        self,
        log_probs_shape: _Shape,
        targets_shape: _Shape,
        blank: int = ...,
        zero_infinity: bool = ...,
        element: _Element = ...,
        target_element: _Element = ...,
    ) -> None: ...

class CtcLossBackwardPlan(_Plan): ...

class CtcLossDescriptor(_ctc.CtcLossDescriptor):
    r"""loss[n] = -ln of what the probabilities of all paths that spell the labels of sample n add up to."""
    def __init__(
        self,
        log_probs_shape: _Shape,
        targets_shape: _Shape,
        blank: int = ...,
        zero_infinity: bool = ...,
        element: _Element = ...,
        target_element: _Element = ...,
    ) -> None: ...

class CtcLossPlan(_Plan): ...

class CumulativeExtremeDescriptor(_running.CumulativeExtremeDescriptor):
    r"""values_i = the largest, or smallest, of x_0 to x_i along an axis, indices_i = where along it that was."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class CumulativeExtremePlan(_Plan): ...

class DequantizeDescriptor(_quant.DequantizeDescriptor):
    r"""y = the values of the blocks x: scales times small integers, as ggml and the `gguf` package read them."""
    def __init__(self, shape: _Shape, format: _Mode, element: _Element = ...) -> None: ...

class DequantizePlan(_Plan): ...

class DequantizeLinearDescriptor(_scaled.DequantizeLinearDescriptor):
    r"""y = (x - zero_point) scale, for codes x as quantize_linear makes them."""
    def __init__(
        self,
        shape: _Shape,
        scale_shape: _Shape,
        element: _Element = ...,
        code_element: _Element = ...,
        zero_point: bool = ...,
    ) -> None: ...

class DequantizeLinearPlan(_Plan): ...

class DiagBackwardDescriptor(_arrange.DiagBackwardDescriptor):
    r"""dx = the diagonal of dy, or 0 with dy on the diagonal."""
    def __init__(self, shape: _Shape, diagonal: int = ..., element: _Element = ...) -> None: ...

class DiagBackwardPlan(_Plan): ...

class DiagDescriptor(_arrange.DiagDescriptor):
    r"""y = the matrix that has the vector x as its diagonal and is 0 elsewhere, or the diagonal of a matrix x."""
    def __init__(self, shape: _Shape, diagonal: int = ..., element: _Element = ...) -> None: ...

class DiagPlan(_Plan): ...

class DropoutBackwardDescriptor(_dropout.DropoutBackwardDescriptor):
    r"""Dx = dy / (1 - p) where an element was kept, else 0; from the same p, seed and offset. dx may be the view dy."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class DropoutBackwardPlan(_Plan): ...

class DropoutDescriptor(_dropout.DropoutDescriptor):
    r"""y = x / (1 - p) where an element is kept, 0 where it is dropped, which it is with probability p."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class DropoutPlan(_Plan): ...

class DynamicQuantizeDescriptor(_scaled.DynamicQuantizeDescriptor):
    r"""Finds a scale for each block of x, and with it y as quantize_linear does."""
    def __init__(
        self,
        shape: _Shape,
        scale_shape: _Shape,
        element: _Element = ...,
        code_element: _Element = ...,
        symmetric: bool = ...,
        least: int | None = ...,
        most: int | None = ...,
    ) -> None: ...

class DynamicQuantizePlan(_Plan): ...

class EmbeddingBackwardDescriptor(_embedding.EmbeddingBackwardDescriptor):
    r"""dweight[r, :] = sum of dy[i, :] over the positions i with ids[i] == r, in the order of positions."""
    def __init__(
        self,
        weight_shape: _Shape,
        ids_shape: _Shape,
        element: _Element = ...,
        index_element: _Element = ...,
        padding_idx: int | None = ...,
        accumulate: bool = ...,
    ) -> None: ...

class EmbeddingBackwardPlan(_Plan): ...

class EmbeddingBagBackwardDescriptor(_embedding_bag.EmbeddingBagBackwardDescriptor):
    r"""dweight[r, :] = sum of what the bags of ids r give: dy, dy / count, dy times the weight, or dy at the maxima."""
    def __init__(
        self,
        weight_shape: _Shape,
        ids_shape: _Shape,
        element: _Element = ...,
        index_element: _Element = ...,
        padding_idx: int | None = ...,
        offsets_shape: _Shape | None = ...,
        mode: _Mode = ...,
        weighted: bool = ...,
        include_last_offset: bool = ...,
    ) -> None: ...

class EmbeddingBagBackwardPlan(_Plan): ...

class EmbeddingBagDescriptor(_embedding_bag.EmbeddingBagDescriptor):
    r"""y[b, :] = sum, mean or maximum of weight[ids[i], :] over the positions i of bag b; 0 where the bag is empty."""
    def __init__(
        self,
        weight_shape: _Shape,
        ids_shape: _Shape,
        element: _Element = ...,
        index_element: _Element = ...,
        padding_idx: int | None = ...,
        offsets_shape: _Shape | None = ...,
        mode: _Mode = ...,
        weighted: bool = ...,
        include_last_offset: bool = ...,
    ) -> None: ...

class EmbeddingBagPlan(_Plan): ...

class EmbeddingDescriptor(_embedding.EmbeddingDescriptor):
    r"""y[..., :] = weight[ids[...], :]."""
    def __init__(
        self,
        weight_shape: _Shape,
        ids_shape: _Shape,
        element: _Element = ...,
        index_element: _Element = ...,
        padding_idx: int | None = ...,
    ) -> None: ...

class EmbeddingPlan(_Plan): ...

class ExprDescriptor(_expr.ExprDescriptor):
    r"""y0, y1, ... = the outputs of a program of elementwise functions of x0, x1, ..., which broadcast, and of sums of them."""
    def __init__(
        self,
        program: str,
        shape: _Shape,
        shapes: Sequence[_Shape],
        elements: Sequence[_Element],
        results: Sequence[_Element],
        reduced: _Ints = ...,
    ) -> None: ...

class ExprPlan(_Plan): ...

class EyeDescriptor(_layout.EyeDescriptor):
    r"""y = 1 on the main diagonal, 0 elsewhere."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class EyePlan(_Plan): ...

class FakeQuantizeBackwardDescriptor(_fake_quantize.FakeQuantizeBackwardDescriptor):
    r"""dx = dy where the code of x was within the range, else 0 (the straight-through estimate)."""
    def __init__(
        self, shape: _Shape, scale_shape: _Shape, least: int, most: int, element: _Element = ..., zero_point: bool = ...
    ) -> None: ...

class FakeQuantizeBackwardPlan(_Plan): ...

class FakeQuantizeDescriptor(_fake_quantize.FakeQuantizeDescriptor):
    r"""y = (min(max(round(x * (1 / scale)) + zero_point, least), most) - zero_point) scale: what quantization makes of x."""
    def __init__(
        self, shape: _Shape, scale_shape: _Shape, least: int, most: int, element: _Element = ..., zero_point: bool = ...
    ) -> None: ...

class FakeQuantizePlan(_Plan): ...

class FillDescriptor(_layout.FillDescriptor):
    r"""y = value, rounded to y's element as cast does; value is a number given to run."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class FillPlan(_Plan): ...

class FilterLogitsDescriptor(_sampling.FilterLogitsDescriptor):
    r"""y = logits where top_k, top_p, min_p and typical_p keep a token, -inf elsewhere; or its probability and 0."""
    def __init__(
        self,
        shape: _Shape,
        element: _Element = ...,
        counted: bool = ...,
        mask_shape: _Shape | None = ...,
        per_row: bool = ...,
        probabilities: bool = ...,
    ) -> None: ...

class FilterLogitsPlan(_Plan): ...

class FlipDescriptor(_arrange.FlipDescriptor):
    r"""y[..., i, ...] = x[..., n - 1 - i, ...] along each of `axes`."""
    def __init__(self, shape: _Shape, axes: _Ints = ..., element: _Element = ...) -> None: ...

class FlipPlan(_Plan): ...

class FoldDescriptor(_fold.FoldDescriptor):
    r"""y[n, c, p] = the sum of x[n, (c, t), o] over the windows o and their taps t that lie at place p."""
    def __init__(
        self,
        image_shape: _Shape,
        kernel: _Ints,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        dilation: _Ints = ...,
        element: _Element = ...,
    ) -> None: ...

class FoldPlan(_Plan): ...

class GatedActivationBackwardDescriptor(_gated.GatedActivationBackwardDescriptor):
    r"""dvalue = dy * g(gate), dgate = dy * value * g'(gate), written to the halves of dx or to two tensors."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        split_dim: int | None = ...,
        element: _Element = ...,
        gate_half: _Mode = ...,
    ) -> None: ...

class GatedActivationBackwardPlan(_Plan): ...

class GatedActivationDescriptor(_gated.GatedActivationDescriptor):
    r"""y = value * g(gate), where value and gate are the halves of x, or two tensors."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        split_dim: int | None = ...,
        element: _Element = ...,
        gate_half: _Mode = ...,
    ) -> None: ...

class GatedActivationPlan(_Plan): ...

class GatedMatmulDescriptor(_gated_matmul.GatedMatmulDescriptor):
    r"""out = value * g(gate), where value and gate are the halves of a @ b along its last dimension."""
    def __init__(
        self, a_shape: _Shape, b_shape: _Shape, element: _Element = ..., gate: _Mode = ..., gate_half: _Mode = ...
    ) -> None: ...

class GatedMatmulPlan(_Plan): ...

class GatedQuantizeDescriptor(_gated_quantize.GatedQuantizeDescriptor):
    r"""y = the codes of value * g(gate), where value and gate are the halves of x, or two tensors."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        split_dim: int | None = ...,
        element: _Element = ...,
        gate_half: _Mode = ...,
        code_element: _Element = ...,
        given: bool = ...,
        group: int | None = ...,
    ) -> None: ...

class GatedQuantizePlan(_Plan): ...

class GatherBackwardDescriptor(_indexing.GatherBackwardDescriptor):
    r"""dx[i, j, k] = the sum of dy over the positions whose index names that element, 0 where there is none."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        wrap: bool = ...,
    ) -> None: ...

class GatherBackwardPlan(_Plan): ...

class GatherDescriptor(_indexing.GatherDescriptor):
    r"""y[i, j, k] = x[i, index[i, j, k], k] for axis 1, and likewise for others."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        wrap: bool = ...,
    ) -> None: ...

class GatherPlan(_Plan): ...

class GeluBackwardDescriptor(_unary.GeluBackwardDescriptor):
    r"""dx = dy (Phi(x) + x Phi'(x)), or the derivative of the tanh approximation."""
    def __init__(self, shape: _Shape, approximate: _Mode = ..., element: _Element = ...) -> None: ...

class GeluBackwardPlan(_Plan): ...

class GeluDescriptor(_unary.GeluDescriptor):
    r"""y = x Phi(x), Phi the normal distribution's cumulative function."""
    def __init__(
        self, shape: _Shape, approximate: _Mode = ..., element: _Element = ..., input_element: _Element = ...
    ) -> None: ...

class GeluPlan(_Plan): ...

class GridSampleBackwardDescriptor(_sample.GridSampleBackwardDescriptor):
    r"""dx = the sum of dy times what a result takes of a place; dgrid = the sum of dy times what y changes with the position."""
    def __init__(
        self,
        input_shape: _Shape,
        output_size: _Ints,
        mode: _Mode = ...,
        padding: _Mode = ...,
        align_corners: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class GridSampleBackwardPlan(_Plan): ...

class GridSampleDescriptor(_sample.GridSampleDescriptor):
    r"""y[n, c, o] = x[n, c] at the position grid[n, o], whose numbers are for the axes of x from the last to the first."""
    def __init__(
        self,
        input_shape: _Shape,
        output_size: _Ints,
        mode: _Mode = ...,
        padding: _Mode = ...,
        align_corners: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class GridSamplePlan(_Plan): ...

class HistcDescriptor(_counting.HistcDescriptor):
    r"""y[b] = how many elements of x lie in bin b of those of one width from `low` to `high`, which the last one holds, too."""
    def __init__(self, shape: _Shape, bins: _Size, element: _Element = ...) -> None: ...

class HistcPlan(_Plan): ...

class IndexAddDescriptor(_scatter.IndexAddDescriptor):
    r"""y = x, but y[i, index[j], k] += alpha source[i, j, k] for axis 1, and likewise for others."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class IndexAddPlan(_Plan): ...

class IndexCopyDescriptor(_scatter.IndexCopyDescriptor):
    r"""y = x, but y[i, index[j], k] = source[i, j, k] for axis 1, and likewise for others."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class IndexCopyPlan(_Plan): ...

class IndexFillDescriptor(_scatter.IndexFillDescriptor):
    r"""y = x, but y[i, index[j], k] = value for axis 1, and likewise for others. Negative indices count from the end."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class IndexFillPlan(_Plan): ...

class IndexSelectBackwardDescriptor(_indexing.IndexSelectBackwardDescriptor):
    r"""dx[i, j, k] = the sum of dy over the positions whose index is j, 0 where there is none; see gather's gradient."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        wrap: bool = ...,
    ) -> None: ...

class IndexSelectBackwardPlan(_Plan): ...

class IndexSelectDescriptor(_indexing.IndexSelectDescriptor):
    r"""y[i, j, k] = x[i, index[j], k] for axis 1, and likewise for others."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        wrap: bool = ...,
    ) -> None: ...

class IndexSelectPlan(_Plan): ...

class IndexedExtremumBackwardDescriptor(_extrema.IndexedExtremumBackwardDescriptor):
    r"""dx = dvalues at the returned positions, 0 elsewhere. Positions outside of the axis are an IndexOutOfRangeError."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        axis: int = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class IndexedExtremumBackwardPlan(_Plan): ...

class IndexedExtremumDescriptor(_extrema.IndexedExtremumDescriptor):
    r"""values = maximum or minimum of x along an axis, indices = its first position."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        axis: int = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class IndexedExtremumPlan(_Plan): ...

class KvCacheAppendDescriptor(_attention_append.KvCacheAppendDescriptor):
    r"""cache[b, :, p : p + S] = x[b], where p is `position`, or positions[b]."""
    def __init__(
        self,
        cache_shape: _Shape,
        x_shape: _Shape,
        positions_shape: _Shape | None = ...,
        positions_element: _Element = ...,
        element: _Element = ...,
    ) -> None: ...

class KvCacheAppendPlan(_Plan): ...

class LayerNormBackwardDescriptor(_layer_norm.LayerNormBackwardDescriptor):
    r"""dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy (weight + weight_offset); dweight = sum of dy xhat, dbias of dy."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        dweight: bool = ...,
        dbias: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class LayerNormBackwardPlan(_Plan): ...

class LayerNormDescriptor(_layer_norm.LayerNormDescriptor):
    r"""y = (x - mean) rstd weight + bias with rstd = 1 / sqrt(mean((x - mean)^2) + eps), over the trailing dimensions."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        bias: bool = ...,
        save: bool = ...,
        weight_offset: float = ...,
        weight_rows: int = ...,
    ) -> None: ...

class LayerNormPlan(_Plan): ...

class LinearCrossEntropyBackwardDescriptor(_linear_cross_entropy.LinearCrossEntropyBackwardDescriptor):
    r"""Gradients of input, weight and bias; the logits are made again, some rows at a time."""
    def __init__(
        self,
        input_shape: _Shape,
        classes: _Size,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        bias: bool = ...,
        weighted: bool = ...,
    ) -> None: ...

class LinearCrossEntropyBackwardPlan(_Plan): ...

class LinearCrossEntropyDescriptor(_linear_cross_entropy.LinearCrossEntropyDescriptor):
    r"""The cross_entropy of logits = input linear_weight^T + linear_bias, which are made for some rows at a time and never kept."""
    def __init__(
        self,
        input_shape: _Shape,
        classes: _Size,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        bias: bool = ...,
        weighted: bool = ...,
        save: bool = ...,
        gradients_wanted: bool = ...,
    ) -> None: ...

class LinearCrossEntropyPlan(_Plan): ...

class LinspaceDescriptor(_layout.LinspaceDescriptor):
    r"""y = n evenly spaced numbers from start to end."""
    def __init__(self, size: _Size, element: _Element = ...) -> None: ...

class LinspacePlan(_Plan): ...

class LionDescriptor(_moments.LionDescriptor):
    r"""One step of Lion, in place, over a list of tensors in a single launch."""
    def __init__(self, shapes: Sequence[_Shape], element: _Element = ..., maximize: bool = ...) -> None: ...

class LionPlan(_Plan): ...

class LogCumSumExpBackwardDescriptor(_running.LogCumSumExpBackwardDescriptor):
    r"""dx_i = the sum over j >= i of dy_j exp(x_i - y_j)."""
    def __init__(self, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class LogCumSumExpBackwardPlan(_Plan): ...

class LogCumSumExpDescriptor(_running.LogCumSumExpDescriptor):
    r"""y_i = log(exp(x_0) + ... + exp(x_i)) along an axis, without overflow."""
    def __init__(self, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class LogCumSumExpPlan(_Plan): ...

class MaskedSelectDescriptor(_compact.MaskedSelectDescriptor):
    r"""y[k] = the k-th element of x, in logical order, where mask holds; count = how many there are."""
    def __init__(self, shape: _Shape, capacity: _Size, element: _Element = ...) -> None: ...

class MaskedSelectPlan(_Plan): ...

class MatmulDescriptor(_matmul.MatmulDescriptor):
    r"""out = act(alpha * a @ b + beta * c + bias), for a batch of matrices."""
    def __init__(
        self,
        a_shape: _Shape,
        b_shape: _Shape,
        element: _Element = ...,
        bias: bool = ...,
        c_shape: _Shape | None = ...,
        batch_shape: _Shape | None = ...,
        activation: _Mode = ...,
    ) -> None: ...

class MatmulPlan(_Plan): ...

class MaxPoolBackwardDescriptor(_pool.MaxPoolBackwardDescriptor):
    r"""dx_i = the sum of dy_o over the windows o that hold place i and whose index is i."""
    def __init__(
        self,
        input_shape: _Shape,
        kernel: _Ints,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        ceil_mode: bool = ...,
        dilation: _Ints = ...,
        element: _Element = ...,
    ) -> None: ...

class MaxPoolBackwardPlan(_Plan): ...

class MaxPoolDescriptor(_pool.MaxPoolDescriptor):
    r"""y[n, c, o] = the largest x[n, c, o stride - low + t dilation] of the taps t that are inside."""
    def __init__(
        self,
        input_shape: _Shape,
        kernel: _Ints,
        stride: _Ints = ...,
        low: _Ints = ...,
        high: _Ints = ...,
        ceil_mode: bool = ...,
        dilation: _Ints = ...,
        element: _Element = ...,
        indices: bool = ...,
    ) -> None: ...

class MaxPoolPlan(_Plan): ...

class MinMaxBackwardDescriptor(_extrema.MinMaxBackwardDescriptor):
    r"""dx: all elements equal to the minimum share dmin evenly, those equal to the maximum dmax."""
    def __init__(
        self, input_shape: _Shape, axes: _Ints | None = ..., keepdim: bool = ..., element: _Element = ...
    ) -> None: ...

class MinMaxBackwardPlan(_Plan): ...

class MinMaxDescriptor(_extrema.MinMaxDescriptor):
    r"""Minimum and maximum of x over `axes`, as amin and amax give them."""
    def __init__(
        self, input_shape: _Shape, axes: _Ints | None = ..., keepdim: bool = ..., element: _Element = ...
    ) -> None: ...

class MinMaxPlan(_Plan): ...

class MultinomialDescriptor(_discrete.MultinomialDescriptor):
    r"""Categories drawn with probabilities in proportion to p; the mapping is in the module's docstring."""
    def __init__(self, p_shape: _Shape, samples: int, replacement: bool = ..., element: _Element = ...) -> None: ...

class MultinomialPlan(_Plan): ...

class NAdamDescriptor(_moments.NAdamDescriptor):
    r"""One step of NAdam, in place, over a list of tensors in a single launch; torch.optim.NAdam's formula."""
    def __init__(
        self,
        shapes: Sequence[_Shape],
        element: _Element = ...,
        maximize: bool = ...,
        decoupled_weight_decay: bool = ...,
    ) -> None: ...

class NAdamPlan(_Plan): ...

class NllLossBackwardDescriptor(_loss.NllLossBackwardDescriptor):
    r"""dinput[target] = -dloss weight[target], divided by what the counted targets weigh for a mean; 0 elsewhere."""
    def __init__(
        self,
        input_shape: _Shape,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        weighted: bool = ...,
        out_element: _Element = ...,
    ) -> None: ...

class NllLossBackwardPlan(_Plan): ...

class NllLossDescriptor(_loss.NllLossDescriptor):
    r"""loss = -weight[target] input[target], the input being logarithms of probabilities; reduced over the targets."""
    def __init__(
        self,
        input_shape: _Shape,
        element: _Element = ...,
        target_element: _Element = ...,
        reduction: _Mode = ...,
        ignore_index: int = ...,
        weighted: bool = ...,
        out_element: _Element = ...,
    ) -> None: ...

class NllLossPlan(_Plan): ...

class NmsDescriptor(_boxes.NmsDescriptor):
    r"""keep[i] = whether no box that is kept before box order[i] overlaps it by more than the threshold."""
    def __init__(
        self,
        count: _Size,
        iou_threshold: float = ...,
        groups: bool = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class NmsPlan(_Plan): ...

class NonzeroDescriptor(_compact.NonzeroDescriptor):
    r"""y[k, :] = the coordinates of the k-th element of x, in logical order, that is not zero; count = how many there are."""
    def __init__(self, shape: _Shape, capacity: _Size, element: _Element = ...) -> None: ...

class NonzeroPlan(_Plan): ...

class NormQuantizeDescriptor(_norm_quantize.NormQuantizeDescriptor):
    r"""y = the codes of rms_norm or layer_norm over the last dimension of x, or of sum = x + residual, rounded to its element."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        element: _Element = ...,
        code_element: _Element = ...,
        weight: bool = ...,
        bias: bool = ...,
        residual: bool = ...,
        given: bool = ...,
        group: int | None = ...,
        weight_offset: float = ...,
    ) -> None: ...

class NormQuantizePlan(_Plan): ...

class OneHotDescriptor(_compact.OneHotDescriptor):
    r"""y[..., c] = 1 where index[...] is c, else 0. An index outside of the classes is an IndexOutOfRangeError."""
    def __init__(
        self, shape: _Shape, classes: _Size, element: _Element = ..., index_element: _Element = ...
    ) -> None: ...

class OneHotPlan(_Plan): ...

class PackInt4Descriptor(_int4.PackInt4Descriptor):
    r"""y[..., i] = code(x[..., 2i]) + 16 code(x[..., 2i + 1]): numbers become 4-bit integers, two to a byte."""
    def __init__(self, shape: _Shape, element: _Element = ..., packed_element: _Element = ...) -> None: ...

class PackInt4Plan(_Plan): ...

class PadBackwardDescriptor(_pad.PadBackwardDescriptor):
    r"""dx = the sum of dy over all places that an element of x went to, rounded once; 0 where it was cut off."""
    def __init__(self, shape: _Shape, low: _Ints, high: _Ints, mode: _Mode = ..., element: _Element = ...) -> None: ...

class PadBackwardPlan(_Plan): ...

class PadDescriptor(_pad.PadDescriptor):
    r"""y = x with `low` elements more in front of each axis and `high` behind it; negative numbers cut elements off."""
    def __init__(self, shape: _Shape, low: _Ints, high: _Ints, mode: _Mode = ..., element: _Element = ...) -> None: ...

class PadPlan(_Plan): ...

class PagedAppendDescriptor(_attention_paged_append.PagedAppendDescriptor):
    r"""New keys and values of each sequence, written into the pages of a cache behind the kv_len[b] that are there."""
    def __init__(
        self,
        k_pages_shape: _Shape,
        v_pages_shape: _Shape,
        table_shape: _Shape,
        k_shape: _Shape,
        v_shape: _Shape,
        element: _Element = ...,
        index_element: _Element = ...,
        cache_element: _Element = ...,
    ) -> None: ...

class PagedAppendPlan(_Plan): ...

class PagedAppendSlotsDescriptor(_attention_paged_append.PagedAppendSlotsDescriptor):
    r"""New keys and values, each written to the place in a paged cache that its slot says, as vLLM's reshape_and_cache."""
    def __init__(
        self,
        k_pages_shape: _Shape,
        v_pages_shape: _Shape,
        k_shape: _Shape,
        v_shape: _Shape,
        element: _Element = ...,
        index_element: _Element = ...,
        cache_element: _Element = ...,
    ) -> None: ...

class PagedAppendSlotsPlan(_Plan): ...

class PagedAttentionDescriptor(_attention_paged.PagedAttentionDescriptor):
    r"""Attention of the new queries of each sequence over the pages of a cache."""
    def __init__(
        self,
        k_pages_shape: _Shape,
        v_pages_shape: _Shape,
        table_shape: _Shape,
        q_shape: _Shape,
        causal: bool = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        window_left: int = ...,
        window_right: int = ...,
        softcap: float = ...,
        alibi_shape: _Shape | None = ...,
        save_lse: bool = ...,
        sinks: bool = ...,
        max_q: int = ...,
        cache_element: _Element = ...,
    ) -> None: ...

class PagedAttentionPlan(_Plan): ...

class PointwiseLossBackwardDescriptor(_pointwise_loss.PointwiseLossBackwardDescriptor):
    r"""dinput = dloss times the loss's derivative, divided as the mean is, in the shape that input and target broadcast to."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        target_shape: _Shape,
        element: _Element = ...,
        reduction: _Mode = ...,
        weight_shape: _Shape | None = ...,
        pos_weight_shape: _Shape | None = ...,
        log_target: bool = ...,
        input_element: _Element = ...,
        target_element: _Element = ...,
        weight_element: _Element = ...,
        pos_weight_element: _Element = ...,
    ) -> None: ...

class PointwiseLossBackwardPlan(_Plan): ...

class PointwiseLossDescriptor(_pointwise_loss.PointwiseLossDescriptor):
    r"""loss = f(input, target), element by element, with broadcasting, reduced over all elements."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        target_shape: _Shape,
        element: _Element = ...,
        reduction: _Mode = ...,
        weight_shape: _Shape | None = ...,
        pos_weight_shape: _Shape | None = ...,
        log_target: bool = ...,
        input_element: _Element = ...,
        target_element: _Element = ...,
        weight_element: _Element = ...,
        pos_weight_element: _Element = ...,
    ) -> None: ...

class PointwiseLossPlan(_Plan): ...

class QuantLinearDescriptor(_code_linear.QuantLinearDescriptor):
    r"""y = x @ w.T + bias, with the values w = (codes - zero_point) scale of a weight, which are found while it is multiplied."""
    def __init__(
        self,
        x_shape: _Shape,
        w_shape: _Shape,
        scale_shape: _Shape,
        element: _Element = ...,
        code_element: _Element = ...,
        zero_point: bool = ...,
        bias: bool = ...,
    ) -> None: ...

class QuantLinearPlan(_Plan): ...

class QuantMatmulDescriptor(_quant_matmul.QuantMatmulDescriptor):
    r"""y = x @ w.T, with the values of w's blocks: y[..., n] = sum_k x[..., k] w[n, k]."""
    def __init__(
        self, x_shape: _Shape, w_shape: _Shape, format: _Mode, element: _Element = ..., quantize_input: bool = ...
    ) -> None: ...

class QuantMatmulPlan(_Plan): ...

class QuantMatmulIdsDescriptor(_quant_matmul_ids.QuantMatmulIdsDescriptor):
    r"""y[..., n] = sum_k x[..., k] w[ids[...], n, k]: each row of x times the weight that its id names, as ggml's mul_mat_id."""
    def __init__(
        self,
        x_shape: _Shape,
        w_shape: _Shape,
        format: _Mode,
        element: _Element = ...,
        index_element: _Element = ...,
        quantize_input: bool = ...,
    ) -> None: ...

class QuantMatmulIdsPlan(_Plan): ...

class QuantizeDescriptor(_quant.QuantizeDescriptor):
    r"""y = the blocks that hold x; of q4_0, q4_1, q5_0, q5_1, q8_0, mxfp4, tq1_0 and tq2_0 bit for bit as ggml and `gguf` have them."""
    def __init__(self, shape: _Shape, format: _Mode, element: _Element = ...) -> None: ...

class QuantizePlan(_Plan): ...

class QuantizeLinearDescriptor(_scaled.QuantizeLinearDescriptor):
    r"""y = the code of x: min(max(round(x / scale) + zero_point, least), most), or the nearest 8-bit float to x / scale."""
    def __init__(
        self,
        shape: _Shape,
        scale_shape: _Shape,
        element: _Element = ...,
        code_element: _Element = ...,
        zero_point: bool = ...,
        least: int | None = ...,
        most: int | None = ...,
        saturate: bool = ...,
    ) -> None: ...

class QuantizeLinearPlan(_Plan): ...

class RAdamDescriptor(_moments.RAdamDescriptor):
    r"""One step of RAdam, in place, over a list of tensors in a single launch; torch.optim.RAdam's formula."""
    def __init__(
        self,
        shapes: Sequence[_Shape],
        element: _Element = ...,
        maximize: bool = ...,
        decoupled_weight_decay: bool = ...,
    ) -> None: ...

class RAdamPlan(_Plan): ...

class RMSpropDescriptor(_rates.RMSpropDescriptor):
    r"""One step of RMSprop, in place, over a list of tensors in a single launch; torch.optim.RMSprop's formula."""
    def __init__(
        self,
        shapes: Sequence[_Shape],
        element: _Element = ...,
        maximize: bool = ...,
        centered: bool = ...,
        has_momentum: bool = ...,
    ) -> None: ...

class RMSpropPlan(_Plan): ...

class RandintDescriptor(_discrete.RandintDescriptor):
    r"""Integers low <= y < high, all with exactly the same probability; the mapping is in the module's docstring."""
    def __init__(self, shape: _Shape, element: _Element = ...) -> None: ...

class RandintPlan(_Plan): ...

class RandomDescriptor(_random.RandomDescriptor):
    r"""Fills y with random numbers; the exact mapping is in the module's docstring."""
    def __init__(self, kind: str, shape: _Shape, element: _Element = ...) -> None: ...

class RandomPlan(_Plan): ...

class RandpermDescriptor(_discrete.RandpermDescriptor):
    r"""A random permutation of 0 .. n - 1, worked out number by number; the mapping is in the module's docstring."""
    def __init__(self, n: int, element: _Element = ...) -> None: ...

class RandpermPlan(_Plan): ...

class RankDescriptor(_selection.RankDescriptor):
    r"""values = the one of x along an axis at a place of its order, indices = where along it that was."""
    def __init__(
        self, kind: str, shape: _Shape, axis: int = ..., keepdim: bool = ..., k: int = ..., element: _Element = ...
    ) -> None: ...

class RankPlan(_Plan): ...

class ReduceBackwardDescriptor(_reduce.ReduceBackwardDescriptor):
    r"""Dx: dy spread over the folded axes, divided by what a mean counts."""
    def __init__(
        self, kind: str, input_shape: _Shape, axes: _Ints | None = ..., keepdim: bool = ..., element: _Element = ...
    ) -> None: ...

class ReduceBackwardPlan(_Plan): ...

class ReduceDescriptor(_reduce.ReduceDescriptor):
    r"""y = sum, product, mean, maximum, ... of x over `axes`."""
    def __init__(
        self, kind: str, input_shape: _Shape, axes: _Ints | None = ..., keepdim: bool = ..., element: _Element = ...
    ) -> None: ...

class ReducePlan(_Plan): ...

class RejectionDescriptor(_rejection.RejectionDescriptor):
    r"""Draws each element of y from a distribution with parameters of its own; the mapping is in the module's docstring."""
    def __init__(self, kind: str, shape: _Shape, element: _Element = ...) -> None: ...

class RejectionPlan(_Plan): ...

class RepeatBackwardDescriptor(_pad.RepeatBackwardDescriptor):
    r"""dx = the sum of dy over the repetitions of each element, rounded once."""
    def __init__(self, shape: _Shape, repeats: _Ints, each: bool = ..., element: _Element = ...) -> None: ...

class RepeatBackwardPlan(_Plan): ...

class RepeatDescriptor(_pad.RepeatDescriptor):
    r"""y = x repeated along each axis: as a whole (a b a b), or with `each` element by element (a a b b)."""
    def __init__(self, shape: _Shape, repeats: _Ints, each: bool = ..., element: _Element = ...) -> None: ...

class RepeatPlan(_Plan): ...

class ResizeBackwardDescriptor(_resize.ResizeBackwardDescriptor):
    r"""dx_p = the sum of dy_o times what result o takes of place p."""
    def __init__(
        self,
        input_shape: _Shape,
        output_size: _Ints,
        start: _Ints,
        step: _Ints,
        den: _Ints,
        cubic: bool = ...,
        antialias: bool = ...,
        a: float = ...,
        element: _Element = ...,
    ) -> None: ...

class ResizeBackwardPlan(_Plan): ...

class ResizeDescriptor(_resize.ResizeDescriptor):
    r"""y[n, c, o] = the sum over places p, along each axis, of w(|p - q|) x[n, c, p], where q = (start + o step) / den."""
    def __init__(
        self,
        input_shape: _Shape,
        output_size: _Ints,
        start: _Ints,
        step: _Ints,
        den: _Ints,
        cubic: bool = ...,
        antialias: bool = ...,
        a: float = ...,
        element: _Element = ...,
    ) -> None: ...

class ResizePlan(_Plan): ...

class ResizeNearestBackwardDescriptor(_resize.ResizeNearestBackwardDescriptor):
    r"""dx_p = the sum of dy_o over the results o that are x_p."""
    def __init__(
        self,
        input_shape: _Shape,
        output_size: _Ints,
        start: _Ints,
        step: _Ints,
        den: _Ints,
        rounded: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class ResizeNearestBackwardPlan(_Plan): ...

class ResizeNearestDescriptor(_resize.ResizeNearestDescriptor):
    r"""y[n, c, o] = x[n, c, p], where p = floor((start + o step) / den) along each axis, at least 0 and at most the last."""
    def __init__(
        self,
        input_shape: _Shape,
        output_size: _Ints,
        start: _Ints,
        step: _Ints,
        den: _Ints,
        rounded: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class ResizeNearestPlan(_Plan): ...

class RmsNormAddBackwardDescriptor(_norm.RmsNormAddBackwardDescriptor):
    r"""dx and dweight of rms_norm; the gradient of residual is dy itself."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        dweight: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class RmsNormAddBackwardPlan(_Plan): ...

class RmsNormAddDescriptor(_norm.RmsNormAddDescriptor):
    r"""y = residual + rms_norm(x), rounded once: a norm behind a layer, whose result joins the residual stream."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        save: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class RmsNormAddPlan(_Plan): ...

class RmsNormBackwardDescriptor(_norm.RmsNormBackwardDescriptor):
    r"""dx = rstd (g - xhat mean(g xhat)), g = dy (weight + weight_offset), xhat = x rstd; dweight = sum of dy xhat."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        dweight: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class RmsNormBackwardPlan(_Plan): ...

class RmsNormDescriptor(_norm.RmsNormDescriptor):
    r"""y = x rstd (weight + weight_offset) with rstd = 1 / sqrt(mean(x^2) + eps), over the trailing dimensions."""
    def __init__(
        self,
        input_shape: _Shape,
        normalized_shape: _Shape,
        element: _Element = ...,
        weight: bool = ...,
        save: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class RmsNormPlan(_Plan): ...

class RmsNormRopeBackwardDescriptor(_rms_norm_rope.RmsNormRopeBackwardDescriptor):
    r"""g is dy rotated back; dx and dweight are those of rms_norm for g. The tables have no gradient."""
    def __init__(
        self,
        input_shape: _Shape,
        table_rows: _Size,
        rotary_dim: int | None = ...,
        layout: _Mode = ...,
        positions_shape: _Shape | None = ...,
        positions_element: _Element = ...,
        table_element: _Element = ...,
        element: _Element = ...,
        weight: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class RmsNormRopeBackwardPlan(_Plan): ...

class RmsNormRopeDescriptor(_rms_norm_rope.RmsNormRopeDescriptor):
    r"""y = rope(rms_norm(x)), rounded once: each row of x is normalised over its last dimension, then rotated."""
    def __init__(
        self,
        input_shape: _Shape,
        table_rows: _Size,
        rotary_dim: int | None = ...,
        layout: _Mode = ...,
        positions_shape: _Shape | None = ...,
        positions_element: _Element = ...,
        table_element: _Element = ...,
        element: _Element = ...,
        weight: bool = ...,
        save: bool = ...,
        weight_offset: float = ...,
    ) -> None: ...

class RmsNormRopePlan(_Plan): ...

class RoiAlignBackwardDescriptor(_regions.RoiAlignBackwardDescriptor):
    r"""dx = the sum of dy times what the samples of a bin take of a place, divided by their number; in a fixed order."""
    def __init__(
        self,
        input_shape: _Shape,
        regions: _Size,
        output_size: _Ints,
        spatial_scale: float = ...,
        sampling_ratio: int = ...,
        aligned: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class RoiAlignBackwardPlan(_Plan): ...

class RoiAlignDescriptor(_regions.RoiAlignDescriptor):
    r"""y[k, c, i, j] = the mean of image x[n, c] over the samples of bin (i, j) of region k."""
    def __init__(
        self,
        input_shape: _Shape,
        regions: _Size,
        output_size: _Ints,
        spatial_scale: float = ...,
        sampling_ratio: int = ...,
        aligned: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class RoiAlignPlan(_Plan): ...

class RoiPoolDescriptor(_roi_pool.RoiPoolDescriptor):
    r"""y[k, c, i, j] = the largest value of image x[n, c] in bin (i, j) of region k, and where that is in the image."""
    def __init__(
        self,
        input_shape: _Shape,
        regions: _Size,
        output_size: _Ints,
        spatial_scale: float = ...,
        element: _Element = ...,
        save: bool = ...,
    ) -> None: ...

class RoiPoolPlan(_Plan): ...

class RollDescriptor(_arrange.RollDescriptor):
    r"""y[..., (i + shift) mod n, ...] = x[..., i, ...] along every axis."""
    def __init__(self, shape: _Shape, shifts: _Ints, element: _Element = ...) -> None: ...

class RollPlan(_Plan): ...

class RopeAppendDescriptor(_rope_append.RopeAppendDescriptor):
    r"""q = rope(q); k_cache[b, :, p] = rope(k)[b, :, s]; v_cache[b, :, p] = v[b, :, s], where p is the position of row s."""
    def __init__(
        self,
        input_shape: _Shape,
        table_rows: _Size,
        rotary_dim: int | None = ...,
        layout: _Mode = ...,
        positions_shape: _Shape | None = ...,
        positions_element: _Element = ...,
        table_element: _Element = ...,
        element: _Element = ...,
        kv_heads: _Size | None = ...,
        cache_rows: _Size | None = ...,
        v_dim: _Size | None = ...,
    ) -> None: ...

class RopeAppendPlan(_Plan): ...

class RopeBackwardDescriptor(_rope.RopeBackwardDescriptor):
    r"""dx is dy rotated back: pairs become (a cos + b sin, b cos - a sin). dx may be dy."""
    def __init__(
        self,
        input_shape: _Shape,
        table_rows: _Size,
        rotary_dim: int | None = ...,
        layout: _Mode = ...,
        positions_shape: _Shape | None = ...,
        positions_element: _Element = ...,
        table_element: _Element = ...,
        element: _Element = ...,
    ) -> None: ...

class RopeBackwardPlan(_Plan): ...

class RopeDescriptor(_rope.RopeDescriptor):
    r"""Pairs (a, b) of x become (a cos - b sin, b cos + a sin), with the table row of their position."""
    def __init__(
        self,
        input_shape: _Shape,
        table_rows: _Size,
        rotary_dim: int | None = ...,
        layout: _Mode = ...,
        positions_shape: _Shape | None = ...,
        positions_element: _Element = ...,
        table_element: _Element = ...,
        element: _Element = ...,
    ) -> None: ...

class RopePlan(_Plan): ...

class RopeTableDescriptor(_rope.RopeTableDescriptor):
    r"""cos[p, i] = cos(p * base^(-2i / rotary_dim)), sin likewise: the tables of the usual, unscaled rotary embedding."""
    def __init__(self, table_shape: _Shape, element: _Element = ...) -> None: ...

class RopeTablePlan(_Plan): ...

class SGDDescriptor(_optim.SGDDescriptor):
    r"""One step of SGD, in place, over a list of tensors in a single launch; torch.optim.SGD's formula."""
    def __init__(
        self,
        shapes: Sequence[_Shape],
        element: _Element = ...,
        has_momentum: bool = ...,
        nesterov: bool = ...,
        maximize: bool = ...,
    ) -> None: ...

class SGDPlan(_Plan): ...

class SampleTokensDescriptor(_sampling.SampleTokensDescriptor):
    r"""Tokens drawn from rows of logits by what top_k, top_p, min_p and typical_p keep; the mapping is in the module's docstring."""
    def __init__(
        self,
        shape: _Shape,
        element: _Element = ...,
        counted: bool = ...,
        mask_shape: _Shape | None = ...,
        per_row: bool = ...,
        samples: int | None = ...,
    ) -> None: ...

class SampleTokensPlan(_Plan): ...

class ScaledMatmulDescriptor(_scaled_matmul.ScaledMatmulDescriptor):
    r"""out = act(scale_a * scale_b * (a @ b) + bias), for a batch of matrices of 8-bit elements."""
    def __init__(
        self,
        a_shape: _Shape,
        b_shape: _Shape,
        element: _Element,
        output_element: _Element,
        scale_a_shape: _Shape | None = ...,
        scale_b_shape: _Shape | None = ...,
        bias: bool = ...,
        activation: _Mode = ...,
    ) -> None: ...

class ScaledMatmulPlan(_Plan): ...

class ScaledSoftmaxBackwardDescriptor(_softmax.ScaledSoftmaxBackwardDescriptor):
    r"""dx = scale y (dy - sum(y dy)) from the saved result y, which is 0 where the mask kept nothing."""
    def __init__(self, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class ScaledSoftmaxBackwardPlan(_Plan): ...

class ScaledSoftmaxDescriptor(_softmax.ScaledSoftmaxDescriptor):
    r"""y = softmax(scale x) along an axis, of the elements that a mask keeps; the others are 0."""
    def __init__(
        self, shape: _Shape, axis: int = ..., element: _Element = ..., mask_shape: _Shape | None = ...
    ) -> None: ...

class ScaledSoftmaxPlan(_Plan): ...

class ScanBackwardDescriptor(_scan.ScanBackwardDescriptor):
    r"""Cumsum: dx_i = dy_i + dy_(i + 1) + ...; cumprod: sum over j >= i of dy_j y_j / x_i, right at zeros."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class ScanBackwardPlan(_Plan): ...

class ScanDescriptor(_scan.ScanDescriptor):
    r"""y_i = x_0 + ... + x_i along an axis, or the product."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class ScanPlan(_Plan): ...

class ScatterDescriptor(_scatter.ScatterDescriptor):
    r"""y = x, but y[i, index[i, j, k], k] = source[i, j, k] for axis 1, and likewise for others."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        has_source: bool = ...,
    ) -> None: ...

class ScatterPlan(_Plan): ...

class ScatterReduceDescriptor(_scatter.ScatterReduceDescriptor):
    r"""y = x folded with source: y[i, index[i, j, k], k] gets source[i, j, k] for axis 1, and likewise for others."""
    def __init__(
        self,
        shape: _Shape,
        index_shape: _Shape,
        axis: int = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        mode: _Mode = ...,
        include_self: bool = ...,
    ) -> None: ...

class ScatterReducePlan(_Plan): ...

class SearchsortedDescriptor(_search.SearchsortedDescriptor):
    r"""y = how many elements of a sorted sequence come before each of values: those below it or, with right, not above it."""
    def __init__(
        self,
        sequence_shape: _Shape,
        shape: _Shape,
        right: bool = ...,
        element: _Element = ...,
        index_element: _Element = ...,
    ) -> None: ...

class SearchsortedPlan(_Plan): ...

class SoftmaxBackwardDescriptor(_softmax.SoftmaxBackwardDescriptor):
    r"""dx = y (dy - sum(y dy)), and dy - exp(y) sum(dy) for log_softmax, from the saved result y."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class SoftmaxBackwardPlan(_Plan): ...

class SoftmaxDescriptor(_softmax.SoftmaxDescriptor):
    r"""y = exp(x - max) / sum(exp(x - max)) along an axis, or its logarithm (x - max) - log(sum)."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class SoftmaxPlan(_Plan): ...

class SortDescriptor(_sort.SortDescriptor):
    r"""values = x sorted along an axis, indices = where along it they were."""
    def __init__(self, shape: _Shape, axis: int = ..., descending: bool = ..., element: _Element = ...) -> None: ...

class SortPlan(_Plan): ...

class SparseSoftmaxBackwardDescriptor(_sparse.SparseSoftmaxBackwardDescriptor):
    r"""dx = s (dy - sum(s dy) / sum(s)), s = 1 where y is above 0, else 0; for entmax15 s = sqrt(y). From the saved result y."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class SparseSoftmaxBackwardPlan(_Plan): ...

class SparseSoftmaxDescriptor(_sparse.SparseSoftmaxDescriptor):
    r"""y = max(x - t, 0) along an axis, or max(x / 2 - t, 0)^2 for entmax15, t such that y adds up to 1."""
    def __init__(self, kind: str, shape: _Shape, axis: int = ..., element: _Element = ...) -> None: ...

class SparseSoftmaxPlan(_Plan): ...

class StackDescriptor(_join.StackDescriptor):
    r"""y = the tensors side by side along a new axis, bit for bit."""
    def __init__(self, shape: _Shape, count: int, axis: int = ..., element: _Element = ...) -> None: ...

class StackPlan(_Plan): ...

class SumToBackwardDescriptor(_reduce.SumToBackwardDescriptor):
    r"""Dx = dy broadcast to `input_shape`."""
    def __init__(self, input_shape: _Shape, target_shape: _Shape, element: _Element = ...) -> None: ...

class SumToBackwardPlan(_Plan): ...

class SumToDescriptor(_reduce.SumToDescriptor):
    r"""Y = x summed over the dimensions along which `target_shape` was broadcast: the reverse of broadcasting."""
    def __init__(self, input_shape: _Shape, target_shape: _Shape, element: _Element = ...) -> None: ...

class SumToPlan(_Plan): ...

class TakeBackwardDescriptor(_indexing.TakeBackwardDescriptor):
    r"""Dx = in logical order the sums of dy over the positions that took an element; see gather's gradient."""
    def __init__(
        self, shape: _Shape, index_shape: _Shape, element: _Element = ..., index_element: _Element = ...
    ) -> None: ...

class TakeBackwardPlan(_Plan): ...

class TakeDescriptor(_indexing.TakeDescriptor):
    r"""y[...] = x in logical order at index[...]. Negative indices count from the end, as in torch.take."""
    def __init__(
        self, shape: _Shape, index_shape: _Shape, element: _Element = ..., index_element: _Element = ...
    ) -> None: ...

class TakePlan(_Plan): ...

class TernaryBackwardDescriptor(_ternary.TernaryBackwardDescriptor):
    r"""da, db and dc, all in the shape that the operands broadcast to; sum them to the operands' own shapes."""
    def __init__(
        self,
        kind: str,
        a_shape: _Shape,
        b_shape: _Shape | None,
        c_shape: _Shape | None,
        element: _Element = ...,
        a_element: _Element = ...,
        b_element: _Element = ...,
        c_element: _Element = ...,
    ) -> None: ...

class TernaryBackwardPlan(_Plan): ...

class TernaryDescriptor(_ternary.TernaryDescriptor):
    r"""y = f(a, b, c), element by element, with broadcasting."""
    def __init__(
        self,
        kind: str,
        a_shape: _Shape,
        b_shape: _Shape | None,
        c_shape: _Shape | None,
        element: _Element = ...,
        a_element: _Element = ...,
        b_element: _Element = ...,
        c_element: _Element = ...,
    ) -> None: ...

class TernaryPlan(_Plan): ...

class TopkDescriptor(_selection.TopkDescriptor):
    r"""values = the k largest (or smallest) of x along an axis in their order, indices = where along it they were."""
    def __init__(
        self, shape: _Shape, k: _Size, axis: int = ..., largest: bool = ..., element: _Element = ...
    ) -> None: ...

class TopkPlan(_Plan): ...

class TotalNormDescriptor(_clip.TotalNormDescriptor):
    r"""The p-norm of all elements of a list of tensors together: (sum |x|^p)^(1/p), or max |x| for an infinite p."""
    def __init__(
        self, shapes: Sequence[_Shape], element: _Element = ..., p: float = ..., error_if_nonfinite: bool = ...
    ) -> None: ...

class TotalNormPlan(_Plan): ...

class TraceBackwardDescriptor(_reduce.TraceBackwardDescriptor):
    r"""Dx = dy on the diagonal, 0 elsewhere."""
    def __init__(self, input_shape: _Shape, element: _Element = ...) -> None: ...

class TraceBackwardPlan(_Plan): ...

class TraceDescriptor(_reduce.TraceDescriptor):
    r"""y = sum of a matrix's diagonal; i64 for integers and bool, which wraps."""
    def __init__(self, input_shape: _Shape, element: _Element = ...) -> None: ...

class TracePlan(_Plan): ...

class TrilDescriptor(_arrange.TrilDescriptor):
    r"""y[..., i, j] = x[..., i, j] where j - i <= diagonal, else 0."""
    def __init__(self, shape: _Shape, diagonal: int = ..., element: _Element = ...) -> None: ...

class TrilPlan(_Plan): ...

class TriuDescriptor(_arrange.TriuDescriptor):
    r"""y[..., i, j] = x[..., i, j] where j - i >= diagonal, else 0."""
    def __init__(self, shape: _Shape, diagonal: int = ..., element: _Element = ...) -> None: ...

class TriuPlan(_Plan): ...

class UnaryBackwardDescriptor(_unary.UnaryBackwardDescriptor):
    r"""dx = dy * f'(x), from the saved x, or from the saved y where that is enough."""
    def __init__(self, kind: str, shape: _Shape, element: _Element = ...) -> None: ...

class UnaryBackwardPlan(_Plan): ...

class UnaryDescriptor(_unary.UnaryDescriptor):
    r"""y = f(x), element by element."""
    def __init__(self, kind: str, shape: _Shape, element: _Element = ..., input_element: _Element = ...) -> None: ...

class UnaryPlan(_Plan): ...

class UniqueDescriptor(_unique.UniqueDescriptor):
    r"""values = the values of x, each once: in the order of `sort`, or of each run of equal neighbours one."""
    def __init__(
        self,
        kind: str,
        length: _Size,
        capacity: _Size,
        has_indices: bool = ...,
        has_inverse: bool = ...,
        has_counts: bool = ...,
        element: _Element = ...,
    ) -> None: ...

class UniquePlan(_Plan): ...

class UnpackInt4Descriptor(_int4.UnpackInt4Descriptor):
    r"""y[..., 2i] and y[..., 2i + 1] are the integers of the low and the high half of x[..., i]."""
    def __init__(self, shape: _Shape, element: _Element = ..., packed_element: _Element = ...) -> None: ...

class UnpackInt4Plan(_Plan): ...

class VarianceBackwardDescriptor(_variance.VarianceBackwardDescriptor):
    r"""dx = dy 2 (x - mean) / (count - correction); for a standard deviation y half of that over y, 0 where y is 0."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        axes: _Ints | None = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        correction: float = ...,
    ) -> None: ...

class VarianceBackwardPlan(_Plan): ...

class VarianceDescriptor(_variance.VarianceDescriptor):
    r"""y = sum((x - mean)^2) / max(count - correction, 0) over `axes`, or its square root."""
    def __init__(
        self,
        kind: str,
        input_shape: _Shape,
        axes: _Ints | None = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        correction: float = ...,
    ) -> None: ...

class VariancePlan(_Plan): ...

class VarlenAttentionBackwardDescriptor(_attention_varlen.VarlenAttentionBackwardDescriptor):
    r"""Gradients with respect to q, k and v of packed sequences, each as AttentionBackwardDescriptor's."""
    def __init__(
        self,
        q_shape: _Shape,
        k_shape: _Shape,
        v_shape: _Shape,
        cu_shape: _Shape,
        max_q: int,
        max_k: int,
        causal: bool = ...,
        causal_alignment: _Mode = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        window_left: int = ...,
        window_right: int = ...,
        softcap: float = ...,
        alibi_shape: _Shape | None = ...,
        sinks: bool = ...,
    ) -> None: ...

class VarlenAttentionBackwardPlan(_Plan): ...

class VarlenAttentionDescriptor(_attention_varlen.VarlenAttentionDescriptor):
    r"""Attention of sequences that lie one behind the other: sequence b has queries cu_seq_q[b] to cu_seq_q[b + 1]."""
    def __init__(
        self,
        q_shape: _Shape,
        k_shape: _Shape,
        v_shape: _Shape,
        cu_shape: _Shape,
        max_q: int,
        max_k: int,
        causal: bool = ...,
        causal_alignment: _Mode = ...,
        element: _Element = ...,
        index_element: _Element = ...,
        window_left: int = ...,
        window_right: int = ...,
        softcap: float = ...,
        alibi_shape: _Shape | None = ...,
        sinks: bool = ...,
        save_lse: bool = ...,
    ) -> None: ...

class VarlenAttentionPlan(_Plan): ...

class VectorNormBackwardDescriptor(_variance.VectorNormBackwardDescriptor):
    r"""dx = dy sign(x) (|x| / y)^(p - 1), 0 where x is 0; infinite p: all |x| equal to y share dy evenly."""
    def __init__(
        self,
        input_shape: _Shape,
        axes: _Ints | None = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        p: float = ...,
    ) -> None: ...

class VectorNormBackwardPlan(_Plan): ...

class VectorNormDescriptor(_variance.VectorNormDescriptor):
    r"""y = (sum |x|^p)^(1/p) over `axes`; max |x| for inf, min |x| for -inf, how many are not zero for p = 0."""
    def __init__(
        self,
        input_shape: _Shape,
        axes: _Ints | None = ...,
        keepdim: bool = ...,
        element: _Element = ...,
        p: float = ...,
    ) -> None: ...

class VectorNormPlan(_Plan): ...

class VerifyDraftDescriptor(_draft.VerifyDraftDescriptor):
    r"""y = the draft's tokens up to the first that the target does not keep, a token drawn in its place, then -1."""
    def __init__(self, draft_shape: _Shape, element: _Element = ..., token_element: _Element = ...) -> None: ...

class VerifyDraftPlan(_Plan): ...

class VerifyTreeDescriptor(_draft.VerifyTreeDescriptor):
    r"""y = tokens that the target draws one after another, along a tree of draft tokens for as long as one is there; then -1."""
    def __init__(self, target_shape: _Shape, element: _Element = ..., token_element: _Element = ...) -> None: ...

class VerifyTreePlan(_Plan): ...

class WhereBackwardDescriptor(_ternary.WhereBackwardDescriptor):
    r"""da = dy where condition holds, else 0; db the other way round; both in the broadcast shape."""
    def __init__(
        self, condition_shape: _Shape, a_shape: _Shape | None, b_shape: _Shape | None, element: _Element = ...
    ) -> None: ...

class WhereBackwardPlan(_Plan): ...

class WhereDescriptor(_ternary.WhereDescriptor):
    r"""y = a where condition holds, b elsewhere, with broadcasting."""
    def __init__(
        self,
        condition_shape: _Shape,
        a_shape: _Shape | None,
        b_shape: _Shape | None,
        element: _Element = ...,
        a_element: _Element = ...,
        b_element: _Element = ...,
    ) -> None: ...

class WherePlan(_Plan): ...

class WriteSliceDescriptor(_arrange.WriteSliceDescriptor):
    r"""y = x, but y[..., start + i * step, ...] = source[..., i, ...] along `axis`. y may be x itself."""
    def __init__(
        self, shape: _Shape, size: _Size, axis: int = ..., step: int = ..., element: _Element = ...
    ) -> None: ...

class WriteSlicePlan(_Plan): ...
