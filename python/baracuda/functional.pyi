"""Written by ci/generate.py."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, ParamSpec, Protocol, SupportsIndex, TypeAlias

import numpy as np

from baracuda._core import Tensor as _Tensor
from baracuda.memory.generator import Generator as _Generator

class Array(Protocol):
    """What can be a tensor: an array of NumPy, torch or JAX, a bc.Tensor, or anything else that speaks DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_Whole: TypeAlias = SupportsIndex
_Number: TypeAlias = float | np.integer[Any] | np.floating[Any]
_Wholes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Reduction: TypeAlias = Literal["none", "mean", "sum", "batchmean"]
_P = ParamSpec("_P")

class _Function(Generic[_P]):
    __name__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...
    def infer(self, *args: Any, **kwargs: Any) -> Any:
        r"""Shapes and elements of the results, as `bc.TensorSpec`s, for arguments that need have no data."""

def _function(fn: Callable[_P, Any]) -> _Function[_P]: ...

@_function
def allclose(input: Any, other: Any, rtol: _Number = 1e-05, atol: _Number = 1e-08, equal_nan: bool = False) -> Any:
    r"""Whether all elements are close, as torch.allclose and isclose have it; waits for the answer."""
@_function
def clamp_max(input: Array | _Number, max: Array | _Number, *, out: Array | None = None) -> Any:
    r"""The smaller one of `input` and a bound, a number or a tensor, as torch.clamp_max."""
@_function
def clamp_min(input: Array | _Number, min: Array | _Number, *, out: Array | None = None) -> Any:
    r"""The larger one of `input` and a bound, a number or a tensor, as torch.clamp_min."""
@_function
def cumulative_trapezoid(y: Array | _Number, x: Array | _Number | None = None, *, dx: _Number | None = None, dim: _Whole = -1) -> Any:
    r"""The running integral along `dim` by the trapezoidal rule, as torch.cumulative_trapezoid."""
@_function
def diff(input: Array | _Number, n: _Whole = 1, dim: _Whole = -1, prepend: Array | _Number | None = None, append: Array | _Number | None = None, *, out: Array | None = None) -> Any:
    r"""The n-th differences of neighbours along `dim`, as torch.diff; of bools whether they differ."""
@_function
def entr(input: Array, *, out: Array | None = None) -> Any:
    r"""-x ln x, 0 at 0 and -inf below, as torch.special.entr."""
@_function
def equal(input: Any, other: Any) -> Any:
    r"""Whether two tensors have the same shape and elements, as torch.equal; waits for the answer."""
@_function
def fill(input: Array, value: Array | _Number) -> Any:
    r"""A tensor of the shape and element of `input`, filled with one number, as torch.fill."""
@_function
def float_power(input: Array | _Number, exponent: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Input ** exponent in f64, as torch.float_power."""
@_function
def isin(elements: Array | _Number, test_elements: Array | _Number, *, assume_unique: bool = False, invert: bool = False) -> Any:
    r"""Whether each of the elements is one of `test_elements`, as torch.isin; all pairs are compared."""
@_function
def isneginf(input: Array, *, out: Array | None = None) -> Any:
    r"""Whether elements are negative infinity, as torch.isneginf."""
@_function
def isposinf(input: Array, *, out: Array | None = None) -> Any:
    r"""Whether elements are positive infinity, as torch.isposinf."""
@_function
def isreal(input: Array) -> Any:
    r"""Whether elements have no imaginary part, as torch.isreal: true for all that are not complex."""
@_function
def logspace(start: Any, end: Any, steps: _Whole, base: _Number = 10.0, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""`steps` powers of a base whose exponents are evenly spaced, both ends included, as torch.logspace; computed in f64."""
@_function
def mvlgamma(input: Array, p: _Whole, *, out: Array | None = None) -> Any:
    r"""Ln of the multivariate gamma function of dimension p, as torch.mvlgamma: NaN or infinite at (p - 1) / 2 and below."""
@_function
def ndtr(input: Array, *, out: Array | None = None) -> Any:
    r"""The normal distribution function, erfc(-x / sqrt(2)) / 2, as torch.special.ndtr."""
@_function
def rsub(input: Array | _Number, other: Array | _Number, *, alpha: Array | _Number = 1) -> Any:
    r"""Other - alpha * input, as torch.rsub."""
@_function
def trapezoid(y: Array | _Number, x: Array | _Number | None = None, *, dx: _Number | None = None, dim: _Whole = -1) -> Any:
    r"""The integral along `dim` by the trapezoidal rule, of samples at x or dx apart, as torch.trapezoid."""
@_function
def trapz(y: Array | _Number, x: Array | _Number | None = None, *, dx: _Number | None = None, dim: _Whole = -1) -> Any:
    r"""The integral along `dim` by the trapezoidal rule, of samples at x or dx apart, as torch.trapezoid."""
@_function
def xlog1py(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Input * ln(1 + other), 0 where input is 0 and other is no NaN, as torch.special.xlog1py."""
@_function
def diag(input: Array, diagonal: _Whole = 0, *, out: Array | None = None) -> Any:
    r"""The matrix that has the vector `input` as a diagonal, or a diagonal of the matrix `input`, as torch.diag."""
@_function
def diag_backward(dy: Array, shape: Any, diagonal: _Whole = 0) -> Any:
    r"""Gradient of diag with respect to an input of `shape`."""
@_function
def diag_embed(input: Array, offset: _Whole = 0, dim1: _Whole = -2, dim2: _Whole = -1) -> Any:
    r"""Matrices that have the last dimension of `input` as a diagonal and are 0 elsewhere, as torch.diag_embed."""
@_function
def diag_embed_backward(dy: Array, offset: _Whole = 0, dim1: _Whole = -2, dim2: _Whole = -1) -> Any:
    r"""Gradient of diag_embed: the diagonals of dy."""
@_function
def flip(input: Array, dims: Any, *, out: Array | None = None) -> Any:
    r"""`input` with the order of elements turned round along `dims`, as torch.flip."""
@_function
def roll(input: Array, shifts: Any, dims: Any = ..., *, out: Array | None = None) -> Any:
    r"""`input` shifted along `dims`, what leaves one end coming in at the other, as torch.roll."""
@_function
def slice_scatter(input: Array | _Number, src: Array | _Number, dim: _Whole = 0, start: _Whole | None = None, end: _Whole | None = None, step: _Whole = 1) -> Any:
    r"""`input` with `input[..., start:end:step, ...]` along `dim` replaced by `src`, as torch.slice_scatter."""
@_function
def tril(input: Array, diagonal: _Whole = 0, *, out: Array | None = None) -> Any:
    r"""`input` with what lies above a diagonal set to 0, as torch.tril."""
@_function
def triu(input: Array, diagonal: _Whole = 0, *, out: Array | None = None) -> Any:
    r"""`input` with what lies below a diagonal set to 0, as torch.triu."""
@_function
def scaled_dot_product_attention(query: Array | _Number, key: Array | _Number, value: Array | _Number, attn_mask: Array | _Number | None = None, dropout_p: _Number = 0.0, is_causal: bool = False, scale: Array | _Number | None = None, enable_gqa: bool = False, *, window: Sequence[_Whole] = ..., softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, causal_alignment: str = 'top_left', generator: _Generator | None = None) -> Any:
    r"""softmax(scale * query @ key^T + mask) @ value, as torch.nn.functional.scaled_dot_product_attention."""
@_function
def scaled_dot_product_attention_backward(dout: Array | _Number, query: Array | _Number, key: Array | _Number, value: Array | _Number, out_saved: Array | _Number, lse: Array | _Number, attn_mask: Array | _Number | None = None, dropout_p: _Number = 0.0, is_causal: bool = False, scale: Array | _Number | None = None, enable_gqa: bool = False, *, window: Sequence[_Whole] = ..., softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, causal_alignment: str = 'top_left', seed: Array | _Number | None = None, offset: Array | _Number | None = None) -> Any:
    r"""Gradients (dquery, dkey, dvalue) of scaled_dot_product_attention, from what the forward returned, and was given."""
@_function
def scaled_dot_product_attention_forward(query: Array | _Number, key: Array | _Number, value: Array | _Number, attn_mask: Array | _Number | None = None, dropout_p: _Number = 0.0, is_causal: bool = False, scale: Array | _Number | None = None, enable_gqa: bool = False, *, window: Sequence[_Whole] = ..., softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, causal_alignment: str = 'top_left', seed: Array | _Number | None = None, offset: Array | _Number | None = None) -> Any:
    r"""scaled_dot_product_attention that returns (out, lse), for the backward; dropout is that of `seed` and `offset`."""
@_function
def attention_merge(out_a: Array | _Number, lse_a: Array | _Number, out_b: Array | _Number, lse_b: Array | _Number) -> Any:
    r"""(out, lse) of attention over the keys of two partial results, of scaled_dot_product_attention_forward for example."""
@_function
def attention_merge_backward(dout: Array | _Number, dlse: Array | _Number, out_a: Array | _Number, lse_a: Array | _Number, out_b: Array | _Number, lse_b: Array | _Number) -> Any:
    r"""Gradients (dout_a, dlse_a, dout_b, dlse_b) of attention_merge."""
@_function
def attention_merge_states(*states: Array | Sequence[Array]) -> Any:
    r"""(out, lse) of attention over the keys of any number of partial results, as FlashInfer's merge_states."""
@_function
def paged_attention(query: Array | _Number, key_pages: Array | _Number, value_pages: Array | _Number, page_table: Array | _Number, kv_len: Array | _Number, *, cu_seq_q: Array | _Number | None = None, max_q: _Whole | None = None, scale: Array | _Number | None = None, window_size: Sequence[_Whole] = ..., enable_gqa: bool = False, softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, k_scale: Array | _Number | None = None, v_scale: Array | _Number | None = None) -> Any:
    r"""Attention of each sequence's last queries over the pages of a key-value cache, as flash_attn_with_kvcache."""
@_function
def paged_attention_forward(query: Array | _Number, key_pages: Array | _Number, value_pages: Array | _Number, page_table: Array | _Number, kv_len: Array | _Number, *, cu_seq_q: Array | _Number | None = None, max_q: _Whole | None = None, scale: Array | _Number | None = None, window_size: Sequence[_Whole] = ..., enable_gqa: bool = False, softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, k_scale: Array | _Number | None = None, v_scale: Array | _Number | None = None) -> Any:
    r"""paged_attention that returns (out, lse), for attention_merge; lse is [B, H, Sq], or [H, total]."""
@_function
def paged_append_(key: Array | _Number, value: Array | _Number, key_pages: Array | _Number, value_pages: Array | _Number, page_table: Array | _Number, kv_len: Array | _Number, cu_seq: Array | _Number | None = None, *, k_scale: Array | _Number | None = None, v_scale: Array | _Number | None = None) -> Any:
    r"""Writes new keys and values into the pages of a cache, in place, behind the kv_len[b] positions of each sequence."""
@_function
def paged_append_slots_(key: Array | _Number, value: Array | _Number, key_pages: Array | _Number, value_pages: Array | _Number, slot_mapping: Array | _Number, *, k_scale: Array | _Number | None = None, v_scale: Array | _Number | None = None) -> Any:
    r"""Writes new keys and values to slots of a paged cache, in place, as vLLM's reshape_and_cache_flash."""
@_function
def varlen_attn(query: Array | _Number, key: Array | _Number, value: Array | _Number, cu_seq_q: Array | _Number, cu_seq_k: Array | _Number, max_q: _Whole, max_k: _Whole, *, scale: Array | _Number | None = None, window_size: Sequence[_Whole] = ..., enable_gqa: bool = False, softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, causal_alignment: str = 'bottom_right') -> Any:
    r"""Attention of packed sequences, as torch.nn.attention.varlen.varlen_attn and flash_attn_varlen_func."""
@_function
def varlen_attn_backward(dout: Array | _Number, query: Array | _Number, key: Array | _Number, value: Array | _Number, out_saved: Array | _Number, lse: Array | _Number, cu_seq_q: Array | _Number, cu_seq_k: Array | _Number, max_q: _Whole, max_k: _Whole, *, scale: Array | _Number | None = None, window_size: Sequence[_Whole] = ..., enable_gqa: bool = False, softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, causal_alignment: str = 'bottom_right') -> Any:
    r"""Gradients (dquery, dkey, dvalue) of varlen_attn, from what varlen_attn_forward returned; with sinks dsinks, too."""
@_function
def varlen_attn_forward(query: Array | _Number, key: Array | _Number, value: Array | _Number, cu_seq_q: Array | _Number, cu_seq_k: Array | _Number, max_q: _Whole, max_k: _Whole, *, scale: Array | _Number | None = None, window_size: Sequence[_Whole] = ..., enable_gqa: bool = False, softcap: _Number = 0.0, sinks: Array | _Number | None = None, alibi_slopes: Array | _Number | None = None, causal_alignment: str = 'bottom_right') -> Any:
    r"""varlen_attn that returns (out, lse), for the backward; lse is [H, total queries]."""
@_function
def batch_norm(input: Array | _Number, running_mean: Array | _Number, running_var: Array | _Number, weight: Array | _Number | None = None, bias: Array | _Number | None = None, training: bool = False, momentum: Array | _Number = 0.1, eps: Array | _Number = 1e-05) -> Any:
    r"""(input - mean) / sqrt(var + eps) * weight + bias for each channel of (images, channels, ...), as torch."""
@_function
def batch_norm_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, mean: Array | _Number, rstd: Array | _Number, training: bool = True, bias: bool = False) -> Any:
    r"""(dx, dweight, dbias) of batch_norm, without those of what is not there; `bias`: whether its gradient is wanted."""
@_function
def batch_norm_forward(input: Array | _Number, running_mean: Array | _Number, running_var: Array | _Number, weight: Array | _Number | None = None, bias: Array | _Number | None = None, training: bool = False, momentum: Array | _Number = 0.1, eps: Array | _Number = 1e-05) -> Any:
    r"""batch_norm with what its gradient needs: (y, mean, rstd)."""
@_function
def instance_norm(input: Array | _Number, running_mean: Array | _Number | None = None, running_var: Array | _Number | None = None, weight: Array | _Number | None = None, bias: Array | _Number | None = None, use_input_stats: bool = True, momentum: Array | _Number = 0.1, eps: Array | _Number = 1e-05) -> Any:
    r"""(input - mean) / sqrt(var + eps) * weight + bias for each channel of each image, as torch's instance_norm."""
@_function
def instance_norm_forward(input: Array | _Number, running_mean: Array | _Number | None = None, running_var: Array | _Number | None = None, weight: Array | _Number | None = None, bias: Array | _Number | None = None, use_input_stats: bool = True, momentum: Array | _Number = 0.1, eps: Array | _Number = 1e-05) -> Any:
    r"""instance_norm with what its gradient needs: (y, mean, rstd)."""
@_function
def native_batch_norm(input: Array | _Number, weight: Array | _Number, bias: Array | _Number, running_mean: Array | _Number, running_var: Array | _Number, training: bool, momentum: Array | _Number, eps: Array | _Number) -> Any:
    r"""(batch_norm, mean, 1 / sqrt(var + eps)) as torch.native_batch_norm; without training the last two are empty."""
@_function
def add(input: Array | _Number, other: Array | _Number, *, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""y = a + alpha b, as torch.add, with broadcasting and torch's type promotion."""
@_function
def arctan2(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = the angle of the point (b, a), as torch.atan2, with broadcasting and torch's type promotion."""
@_function
def atan2(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = the angle of the point (b, a), as torch.atan2, with broadcasting and torch's type promotion."""
@_function
def atan2_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of atan2 with respect to the operands that are tensors, in the broadcast shape."""
@_function
def bitwise_and(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a & b, as torch.bitwise_and, with broadcasting and torch's type promotion."""
@_function
def bitwise_left_shift(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a 2^b, cut to its bits; 0 for b < 0 and b >= its bits, as torch.bitwise_left_shift, with broadcasting and torch's type promotion."""
@_function
def bitwise_or(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a | b, as torch.bitwise_or, with broadcasting and torch's type promotion."""
@_function
def bitwise_right_shift(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = floor(a / 2^b); 0, or -1 where a < 0, for b < 0 and b >= its bits, as torch.bitwise_right_shift, with broadcasting and torch's type promotion."""
@_function
def bitwise_xor(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a ^ b, as torch.bitwise_xor, with broadcasting and torch's type promotion."""
@_function
def copysign(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = |a| with the sign of b, as torch.copysign, with broadcasting and torch's type promotion."""
@_function
def copysign_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of copysign with respect to the operands that are tensors, in the broadcast shape."""
@_function
def div(input: Array | _Number, other: Array | _Number, *, rounding_mode: str | None = None, out: Array | None = None) -> Any:
    r"""`a / b`, as torch.div, with broadcasting and type promotion; `rounding_mode` is None, "floor" or "trunc"."""
@_function
def div_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of div with respect to the operands that are tensors, in the broadcast shape."""
@_function
def divide(input: Array | _Number, other: Array | _Number, *, rounding_mode: str | None = None, out: Array | None = None) -> Any:
    r"""`a / b`, as torch.div, with broadcasting and type promotion; `rounding_mode` is None, "floor" or "trunc"."""
@_function
def eq(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a == b, as torch.eq, with broadcasting and torch's type promotion."""
@_function
def floor_divide(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""the largest integer <= a / b, as torch.floor_divide, with broadcasting and torch's type promotion."""
@_function
def fmax(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = max(a, b); of a number and NaN the number, as torch.fmax, with broadcasting and torch's type promotion."""
@_function
def fmax_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of fmax with respect to the operands that are tensors, in the broadcast shape."""
@_function
def fmin(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = min(a, b); of a number and NaN the number, as torch.fmin, with broadcasting and torch's type promotion."""
@_function
def fmin_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of fmin with respect to the operands that are tensors, in the broadcast shape."""
@_function
def fmod(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""the remainder of a / b with the sign of a, as torch.fmod, with broadcasting and torch's type promotion."""
@_function
def fmod_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of fmod with respect to the operands that are tensors, in the broadcast shape."""
@_function
def gcd(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""the greatest common divisor of |a| and |b|; gcd(0, 0) is 0, as torch.gcd, with broadcasting and torch's type promotion."""
@_function
def ge(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a >= b, as torch.ge, with broadcasting and torch's type promotion."""
@_function
def greater(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a > b, as torch.gt, with broadcasting and torch's type promotion."""
@_function
def greater_equal(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a >= b, as torch.ge, with broadcasting and torch's type promotion."""
@_function
def gt(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a > b, as torch.gt, with broadcasting and torch's type promotion."""
@_function
def heaviside(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a < 0 ? 0 : a == 0 ? b : 1; 0 for NaN, as torch.heaviside, with broadcasting and torch's type promotion."""
@_function
def hypot(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = sqrt(a^2 + b^2), as torch.hypot, with broadcasting and torch's type promotion."""
@_function
def hypot_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of hypot with respect to the operands that are tensors, in the broadcast shape."""
@_function
def isclose(input: Array | _Number, other: Array | _Number, rtol: Array | _Number = 1e-05, atol: Array | _Number = 1e-08, equal_nan: bool = False) -> Any:
    r"""|input - other| <= atol + |rtol * other|, as torch.isclose; integers of 32 bits and more are compared in f64."""
@_function
def lcm(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""the least common multiple of |a| and |b|, 0 with 0; it wraps, as torch.lcm, with broadcasting and torch's type promotion."""
@_function
def ldexp(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a 2^b, as torch.ldexp, with broadcasting and torch's type promotion."""
@_function
def ldexp_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of ldexp with respect to the operands that are tensors, in the broadcast shape."""
@_function
def le(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a <= b, as torch.le, with broadcasting and torch's type promotion."""
@_function
def less(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a < b, as torch.lt, with broadcasting and torch's type promotion."""
@_function
def less_equal(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a <= b, as torch.le, with broadcasting and torch's type promotion."""
@_function
def logaddexp(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = ln(e^a + e^b), as torch.logaddexp, with broadcasting and torch's type promotion."""
@_function
def logaddexp2(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = log2(2^a + 2^b), as torch.logaddexp2, with broadcasting and torch's type promotion."""
@_function
def logaddexp2_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of logaddexp2 with respect to the operands that are tensors, in the broadcast shape."""
@_function
def logaddexp_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of logaddexp with respect to the operands that are tensors, in the broadcast shape."""
@_function
def logical_and(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = (a != 0) and (b != 0), as torch.logical_and, with broadcasting and torch's type promotion."""
@_function
def logical_or(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = (a != 0) or (b != 0), as torch.logical_or, with broadcasting and torch's type promotion."""
@_function
def logical_xor(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = (a != 0) != (b != 0), as torch.logical_xor, with broadcasting and torch's type promotion."""
@_function
def lt(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a < b, as torch.lt, with broadcasting and torch's type promotion."""
@_function
def maximum(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = max(a, b); NaN is kept, as torch.maximum, with broadcasting and torch's type promotion."""
@_function
def maximum_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of maximum with respect to the operands that are tensors, in the broadcast shape."""
@_function
def minimum(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = min(a, b); NaN is kept, as torch.minimum, with broadcasting and torch's type promotion."""
@_function
def minimum_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of minimum with respect to the operands that are tensors, in the broadcast shape."""
@_function
def mul(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a * b, as torch.mul, with broadcasting and torch's type promotion."""
@_function
def mul_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of mul with respect to the operands that are tensors, in the broadcast shape."""
@_function
def multiply(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a * b, as torch.mul, with broadcasting and torch's type promotion."""
@_function
def ne(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a != b, as torch.ne, with broadcasting and torch's type promotion."""
@_function
def nextafter(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""the neighbour of a in its element, on the way to b, as torch.nextafter, with broadcasting and torch's type promotion."""
@_function
def not_equal(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a != b, as torch.ne, with broadcasting and torch's type promotion."""
@_function
def pow(input: Array | _Number, exponent: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a^b, as torch.pow, with broadcasting and torch's type promotion."""
@_function
def pow_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of pow with respect to the operands that are tensors, in the broadcast shape."""
@_function
def prelu(input: Array | _Number, weight: Array | _Number) -> Any:
    r"""`input` where it is above zero, elsewhere `weight * input`, as torch.nn.functional.prelu; weights per dimension 1."""
@_function
def prelu_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number) -> Any:
    r"""Gradients of prelu with respect to input and, in the input's shape, to weight."""
@_function
def remainder(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""the remainder of a / b with the sign of b, as torch.remainder, with broadcasting and torch's type promotion."""
@_function
def remainder_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of remainder with respect to the operands that are tensors, in the broadcast shape."""
@_function
def sub(input: Array | _Number, other: Array | _Number, *, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""y = a - alpha b, as torch.sub, with broadcasting and torch's type promotion."""
@_function
def subtract(input: Array | _Number, other: Array | _Number, *, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""y = a - alpha b, as torch.sub, with broadcasting and torch's type promotion."""
@_function
def true_divide(input: Array | _Number, other: Array | _Number, *, rounding_mode: str | None = None, out: Array | None = None) -> Any:
    r"""`a / b`, as torch.div, with broadcasting and type promotion; `rounding_mode` is None, "floor" or "trunc"."""
@_function
def xlogy(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = a ln(b); 0 where a is 0 and b not NaN, as torch.xlogy, with broadcasting and torch's type promotion."""
@_function
def xlogy_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of xlogy with respect to the operands that are tensors, in the broadcast shape."""
@_function
def batched_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: _Number) -> Any:
    r"""`nms` of boxes that only others of their category may remove, as torchvision.ops.batched_nms."""
@_function
def nms(boxes: Any, scores: Any, iou_threshold: _Number) -> Any:
    r"""Numbers of the boxes that no better one overlaps by more than the threshold, best first, as torchvision.ops.nms."""
@_function
def cast(input: Array, dtype: Any, *, out: Array | None = None) -> Any:
    r"""`input` in another element, as torch.Tensor.to(dtype); `dtype` is an element name or any framework's dtype."""
@_function
def clip_grad_norm_(grads: Any, max_norm: Any, norm_type: _Number = 2.0, error_if_nonfinite: bool = False) -> Any:
    r"""Scales gradients in place so that their norm together is at most `max_norm`, as torch.nn.utils.clip_grad_norm_."""
@_function
def clip_grad_value_(grads: Any, clip_value: Any) -> Any:
    r"""Cuts gradients to [-clip_value, clip_value] in place, as torch.nn.utils.clip_grad_value_."""
@_function
def clip_grads_with_norm_(grads: Any, max_norm: Any, total_norm: Any) -> Any:
    r"""Scales gradients in place by min(1, max_norm / (total_norm + 1e-6)), as torch.nn.utils.clip_grads_with_norm_."""
@_function
def get_total_norm(tensors: Any, norm_type: _Number = 2.0, error_if_nonfinite: bool = False) -> Any:
    r"""The norm of all elements of one array or a list of them together, as torch.nn.utils.get_total_norm."""
@_function
def argwhere(input: Array) -> Any:
    r"""The same as nonzero, as torch.argwhere."""
@_function
def masked_select(input: Array | _Number, mask: Array | _Number) -> Any:
    r"""Elements of `input` where `mask` holds, in logical order, as torch.masked_select; the two broadcast."""
@_function
def nonzero(input: Array, *, as_tuple: bool = False) -> Any:
    r"""Coordinates of the elements that are not zero, in logical order, one row for each, as torch.nonzero."""
@_function
def nonzero_static(input: Array, *, size: _Whole, fill_value: _Whole = -1) -> Any:
    r"""The first `size` rows of nonzero, as torch.nonzero_static, without waiting for the count: others hold `fill_value`."""
@_function
def one_hot(tensor: Any, num_classes: _Whole = -1) -> Any:
    r"""A row of zeros with a one at each index of `tensor`, as torch.nn.functional.one_hot: i64."""
@_function
def conv1d(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes | str = 0, dilation: _Wholes = 1, groups: _Whole = 1) -> Any:
    r"""Convolves (N, C, L) with weight (channels, C / groups, ...), as torch.nn.functional.conv1d."""
@_function
def conv1d_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes | str = 0, dilation: _Wholes = 1, groups: _Whole = 1, *, output_mask: Any = ...) -> Any:
    r"""Gradients (dinput, dweight) of conv1d and, with a `bias`, dbias: those that `output_mask` wants."""
@_function
def conv2d(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes | str = 0, dilation: _Wholes = 1, groups: _Whole = 1) -> Any:
    r"""Convolves (N, C, H, W) with weight (channels, C / groups, ...), as torch.nn.functional.conv2d."""
@_function
def conv2d_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes | str = 0, dilation: _Wholes = 1, groups: _Whole = 1, *, output_mask: Any = ...) -> Any:
    r"""Gradients (dinput, dweight) of conv2d and, with a `bias`, dbias: those that `output_mask` wants."""
@_function
def conv3d(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes | str = 0, dilation: _Wholes = 1, groups: _Whole = 1) -> Any:
    r"""Convolves (N, C, D, H, W) with weight (channels, C / groups, ...), as torch.nn.functional.conv3d."""
@_function
def conv3d_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes | str = 0, dilation: _Wholes = 1, groups: _Whole = 1, *, output_mask: Any = ...) -> Any:
    r"""Gradients (dinput, dweight) of conv3d and, with a `bias`, dbias: those that `output_mask` wants."""
@_function
def conv_transpose1d(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes = 0, output_padding: _Wholes = 0, groups: _Whole = 1, dilation: _Wholes = 1) -> Any:
    r"""The gradient of conv1d by its input, as torch.nn.functional.conv_transpose1d; weight is (C, channels / groups, ...)."""
@_function
def conv_transpose1d_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes = 0, output_padding: _Wholes = 0, groups: _Whole = 1, dilation: _Wholes = 1, *, output_mask: Any = ...) -> Any:
    r"""Gradients (dinput, dweight) of conv_transpose1d and, with a `bias`, dbias: those that `output_mask` wants."""
@_function
def conv_transpose2d(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes = 0, output_padding: _Wholes = 0, groups: _Whole = 1, dilation: _Wholes = 1) -> Any:
    r"""The gradient of conv2d by its input, as torch.nn.functional.conv_transpose2d; weight is (C, channels / groups, ...)."""
@_function
def conv_transpose2d_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes = 0, output_padding: _Wholes = 0, groups: _Whole = 1, dilation: _Wholes = 1, *, output_mask: Any = ...) -> Any:
    r"""Gradients (dinput, dweight) of conv_transpose2d and, with a `bias`, dbias: those that `output_mask` wants."""
@_function
def conv_transpose3d(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes = 0, output_padding: _Wholes = 0, groups: _Whole = 1, dilation: _Wholes = 1) -> Any:
    r"""The gradient of conv3d by its input, as torch.nn.functional.conv_transpose3d; weight is (C, channels / groups, ...)."""
@_function
def conv_transpose3d_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, stride: _Wholes = 1, padding: _Wholes = 0, output_padding: _Wholes = 0, groups: _Whole = 1, dilation: _Wholes = 1, *, output_mask: Any = ...) -> Any:
    r"""Gradients (dinput, dweight) of conv_transpose3d and, with a `bias`, dbias: those that `output_mask` wants."""
@_function
def gather_nd(input: Array | _Number, indices: Array | _Number) -> Any:
    r"""Slices of `input` at coordinates: y[i, ...] = input[indices[i, 0], indices[i, 1], ..., ...]."""
@_function
def put(input: Array | _Number, index: Array | _Number, source: Array | _Number, accumulate: bool = False) -> Any:
    r"""`input` with elements of `source` at `index` of its logical order, as torch.put: negative ones count from the end."""
@_function
def scatter_nd(input: Array | _Number, indices: Array | _Number, updates: Array | _Number, reduce: str | None = None) -> Any:
    r"""`input` with slices of `updates` at coordinates: y[indices[i, 0], indices[i, 1], ..., ...] = updates[i, ...]."""
@_function
def channel_shuffle(input: Array, groups: _Whole) -> Any:
    r"""The channels of groups in turn: (N, g k, ...) seen as (N, g, k, ...), swapped, as torch's channel_shuffle."""
@_function
def constant_pad_nd(input: Array, pad_: Any, value: _Number = 0) -> Any:
    r"""`input` with numbers before and behind its last dimensions, as torch.constant_pad_nd."""
@_function
def expand_copy(input: Array, size: Any) -> Any:
    r"""A copy of `input` broadcast to a shape, as torch.expand_copy; -1 keeps a size."""
@_function
def narrow_copy(input: Array, dim: _Whole, start: _Whole, length: _Whole) -> Any:
    r"""A copy of `length` slices of a dimension from `start` on, as torch.narrow_copy; a negative start counts from the end."""
@_function
def permute_copy(input: Array, dims: Any) -> Any:
    r"""A copy of `input` with its dimensions in another order, as torch.permute_copy."""
@_function
def pixel_shuffle(input: Array, upscale_factor: _Whole) -> Any:
    r"""(..., C r^2, H, W) to (..., C, H r, W r), as torch.nn.functional.pixel_shuffle, with r the factor."""
@_function
def pixel_unshuffle(input: Array, downscale_factor: _Whole) -> Any:
    r"""(..., C, H r, W r) to (..., C r^2, H, W), as torch.nn.functional.pixel_unshuffle, with r the factor."""
@_function
def split_copy(input: Array, split_size: _Whole, dim: _Whole = 0) -> Any:
    r"""Copies of the parts of a dimension, of one size but for the last, as torch.split_copy."""
@_function
def split_with_sizes_copy(input: Array, split_sizes: Any, dim: _Whole = 0) -> Any:
    r"""Copies of the parts of a dimension, of these sizes, as torch.split_with_sizes_copy."""
@_function
def squeeze_copy(input: Array, dim: Any = None) -> Any:
    r"""A copy of `input` without the dimensions of size 1, or without those of `dim` that have it, as torch.squeeze_copy."""
@_function
def t_copy(input: Array) -> Any:
    r"""A transposed copy of a matrix, or a copy of a vector, as torch.t_copy."""
@_function
def transpose_copy(input: Array, dim0: _Whole, dim1: _Whole) -> Any:
    r"""A copy of `input` with two dimensions swapped, as torch.transpose_copy."""
@_function
def unbind_copy(input: Array, dim: _Whole = 0) -> Any:
    r"""Copies of all slices of a dimension, without it, as torch.unbind_copy."""
@_function
def unfold_copy(input: Array, dimension: _Whole, size: _Whole, step: _Whole) -> Any:
    r"""Windows of a dimension, `step` apart, whose elements are the last dimension, as torch.unfold_copy."""
@_function
def unsqueeze_copy(input: Array, dim: _Whole) -> Any:
    r"""A copy of `input` with a dimension of size 1 inserted, as torch.unsqueeze_copy."""
@_function
def view_copy(input: Array, size: Any) -> Any:
    r"""A copy of `input` in another shape, as torch.view_copy: one size may be -1."""
@_function
def bincount(input: Array | _Number, weights: Array | _Number | None = None, minlength: _Whole = 0) -> Any:
    r"""How often each number occurs, or the sum of its weights, as torch.bincount."""
@_function
def histc(input: Any, bins: _Whole = 100, min: _Number = 0, max: _Number = 0, *, out: Any = None) -> Any:
    r"""How many values lie in each of `bins` bins of one width from `min` to `max`, as torch.histc."""
@_function
def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    r"""How many values lie between edges, or the sums of their weights, and the edges, as torch.histogram."""
@_function
def histogramdd(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    r"""How many points lie in each cell of a grid, or the sums of their weights, and the grid's edges, as torch.histogramdd."""
@_function
def ctc_loss(log_probs: Array | _Number, targets: Array | _Number, input_lengths: Array | _Number, target_lengths: Array | _Number, blank: _Whole = 0, reduction: _Reduction = 'mean', zero_infinity: bool = False) -> Any:
    r"""Connectionist temporal classification, as torch.nn.functional.ctc_loss."""
@_function
def ctc_loss_backward(dloss: Array | _Number, log_probs: Array | _Number, targets: Array | _Number, input_lengths: Array | _Number, target_lengths: Array | _Number, blank: _Whole = 0, zero_infinity: bool = False) -> Any:
    r"""Gradient of ctc_loss without reduction by `log_probs` (steps, samples, classes)."""
@_function
def bernoulli(input: Any, *, generator: _Generator | None = None, out: Any = None) -> Any:
    r"""1 with the probability that `input` holds, else 0, element by element, as torch.bernoulli."""
@_function
def bernoulli_(input: Any, p: Any = 0.5, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with 1 with probability `p`, else 0, and returns it, as Tensor.bernoulli_; p is a number."""
@_function
def multinomial(input: Any, num_samples: _Whole, replacement: bool = False, *, generator: _Generator | None = None, out: Any = None) -> Any:
    r"""Categories drawn from each row of `input` in proportion to its values, as torch.multinomial."""
@_function
def randint(low: Any, high: Any = None, size: Any = None, *, generator: _Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""Integers low <= y < high, with the arguments of torch.randint: (high, size) or (low, high, size)."""
@_function
def randint_like(input: Any, low: Any, high: Any = None, *, generator: _Generator | None = None, dtype: Any = None, device: Any = None) -> Any:
    r"""Integers low <= y < high in the shape and element of `input`, or in `dtype`, as torch.randint_like; see randint."""
@_function
def random_(input: Any, low: Any, high: Any, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with integers low <= y < high and returns it, as Tensor.random_."""
@_function
def randperm(n: _Whole, *, generator: _Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""A random permutation of 0 .. n - 1, as torch.randperm."""
@_function
def cdist(x1: Array | _Number, x2: Array | _Number, p: _Number = 2.0, compute_mode: str | None = 'use_mm_for_euclid_dist_if_necessary') -> Any:
    r"""Distances between all rows of x1 (..., P, M) and all of x2 (..., R, M), as torch.cdist: (..., P, R)."""
@_function
def dist(input: Array | _Number, other: Array | _Number, p: _Number = 2) -> Any:
    r"""The norm of input - other, over all elements, as torch.dist."""
@_function
def matrix_norm(A: Array, ord: _Number | str | None = 'fro', dim: Any = ..., keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""Norms of the matrices in two dimensions, as torch.linalg.matrix_norm."""
@_function
def pairwise_distance(x1: Array | _Number, x2: Array | _Number, p: _Number = 2.0, eps: _Number = 1e-06, keepdim: bool = False) -> Any:
    r"""The norm of x1 - x2 + eps along the last dimension, as torch's pairwise_distance."""
@_function
def pdist(input: Array, p: _Number = 2.0) -> Any:
    r"""Distances between all pairs of different rows, as torch's pdist: (0, 1), (0, 2), ..., (1, 2), ..."""
@_function
def renorm(input: Array, p: _Number, dim: _Whole, maxnorm: _Number) -> Any:
    r"""`input` with those slices along `dim` made shorter whose norm is above `maxnorm`, as torch.renorm."""
@_function
def weight_norm(v: Array | _Number, g: Array | _Number, dim: _Whole = 0) -> Any:
    r"""`v` with slices along `dim` of the lengths `g`, g v / |v|, as torch._weight_norm."""
@_function
def cauchy_(input: Any, median: _Number = 0.0, sigma: _Number = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with numbers of density sigma / (pi ((x - median)^2 + sigma^2)) and returns it, as Tensor.cauchy_."""
@_function
def exponential_(input: Any, lambd: _Number = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with numbers of density lambd exp(-lambd x) and returns it, as Tensor.exponential_."""
@_function
def geometric_(input: Any, p: _Number, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with the number of tries until the first success, k = 1, 2, ... with (1 - p)^(k - 1) p, as Tensor.geometric_."""
@_function
def gumbel_max(logits: Any, temperature: _Number = 1.0, dim: _Whole = -1, *, generator: _Generator | None = None) -> Any:
    r"""The index along `dim` of the largest of logits / temperature plus Gumbel noise: i with the probability that softmax gives i."""
@_function
def gumbel_softmax(logits: Any, tau: _Number = 1, hard: bool = False, eps: _Number = 1e-10, dim: _Whole = -1, *, generator: _Generator | None = None) -> Any:
    r"""softmax((logits + g) / tau) with Gumbel noise g, as torch.nn.functional.gumbel_softmax."""
@_function
def laplace_(input: Any, loc: _Number = 0.0, scale: _Number = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with numbers of density exp(-|x - loc| / scale) / (2 scale) and returns it, as torch.distributions.Laplace."""
@_function
def log_normal_(input: Any, mean: _Number = 1.0, std: _Number = 2.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with exp of normal numbers of a mean and a deviation, and returns it, as Tensor.log_normal_."""
@_function
def trunc_normal_(input: Any, mean: _Number = 0.0, std: _Number = 1.0, a: _Number = -2.0, b: _Number = 2.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with normal numbers that lie in [a, b], and returns it, as torch.nn.init.trunc_normal_."""
@_function
def verify_draft(draft: Any, draft_tokens: Any, target: Any, *, generator: _Generator | None = None) -> Any:
    r"""(tokens, accepted): speculative sampling's verification of a chain of draft tokens, distributed as the target."""
@_function
def verify_tree(tokens: Any, parents: Any, target: Any, *, generator: _Generator | None = None) -> Any:
    r"""(y, path, accepted): verification of a tree of draft tokens: what the target draws, for as long as the tree has it."""
@_function
def dropout(input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False, *, generator: _Generator | None = None) -> Any:
    r"""Drops elements with probability `p` and divides the others by 1 - p, as torch.nn.functional.dropout."""
@_function
def dropout_backward(dy: Any, p: Any, seed: _Whole, offset: _Whole) -> Any:
    r"""Gradient of dropout with respect to its input, from what its generator gave: the mask is made again."""
@_function
def chain_matmul(*matrices: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""The product of matrices in the order that takes the fewest multiplications, as torch.chain_matmul."""
@_function
def chain_matmul_backward(dy: Array, *matrices: Array | Sequence[Array]) -> Any:
    r"""Gradients of chain_matmul with respect to its matrices."""
@_function
def einsum(equation: str, *operands: Array | Sequence[Array]) -> Any:
    r"""Sums of products of the operands' elements, with the dimensions named by letters, as torch.einsum."""
@_function
def einsum_backward(dy: Array, equation: str, *operands: Array | Sequence[Array]) -> Any:
    r"""Gradients of einsum with respect to its operands."""
@_function
def inner(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Products summed over the last dimension of both, as torch.inner; a 0-d tensor is a factor."""
@_function
def inner_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients (dinput, dother) of inner."""
@_function
def tensordot(a: Array | _Number, b: Array | _Number, dims: Any = 2, out: Array | None = None) -> Any:
    r"""Products of `a` and `b` summed over the last dimensions of a and the first of b, or over listed ones, as torch's."""
@_function
def tensordot_backward(dy: Array | _Number, a: Array | _Number, b: Array | _Number, dims: Any = 2) -> Any:
    r"""Gradients (da, db) of tensordot."""
@_function
def embedding(input: Array | _Number, weight: Array | _Number, padding_idx: _Whole | None = None, max_norm: _Number | None = None, norm_type: _Number = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    r"""Rows of `weight` at the indices `input`, as torch.nn.functional.embedding."""
@_function
def embedding_backward(dy: Array | _Number, input: Array | _Number, num_weights: _Whole, padding_idx: _Whole | None = None) -> Any:
    r"""Gradient of embedding with respect to a weight of `num_weights` rows."""
@_function
def embedding_bag(input: Array | _Number, weight: Array | _Number, offsets: Array | _Number | None = None, max_norm: _Number | None = None, norm_type: _Number = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', sparse: bool = False, per_sample_weights: Array | _Number | None = None, include_last_offset: bool = False, padding_idx: _Whole | None = None) -> Any:
    r"""Sums, means or maxima of bags of rows of `weight`, as torch.nn.functional.embedding_bag."""
@_function
def embedding_bag_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, offsets: Array | _Number | None = None, mode: str = 'mean', per_sample_weights: Array | _Number | None = None, include_last_offset: bool = False, padding_idx: _Whole | None = None, max_indices: Array | _Number | None = None) -> Any:
    r"""Gradient of embedding_bag with respect to `weight`; with weights (dweight, dper_sample_weights)."""
@_function
def embedding_bag_forward(input: Array | _Number, weight: Array | _Number, offsets: Array | _Number | None = None, mode: str = 'mean', per_sample_weights: Array | _Number | None = None, include_last_offset: bool = False, padding_idx: _Whole | None = None) -> Any:
    r"""embedding_bag with what its gradient needs: (y, max_indices) of maxima, else y alone."""
@_function
def aminmax(input: Array, *, dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""(minimum, maximum) over `dim` (all axes by default), as torch.aminmax."""
@_function
def aminmax_backward(dmin: Array | _Number, dmax: Array | _Number, input: Array | _Number, min: Array | _Number, max: Array | _Number, dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of aminmax with respect to `input`, given both results; ties share evenly."""
@_function
def argmax(input: Array, dim: _Whole | None = None, keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""Position of the first maximum along `dim`, or in the flattened tensor, as torch.argmax (i64)."""
@_function
def argmin(input: Array, dim: _Whole | None = None, keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""Position of the first minimum along `dim`, or in the flattened tensor, as torch.argmin (i64)."""
@_function
def max(input: Array, dim: _Whole | None = None, keepdim: bool = False) -> Any:
    r"""The maximum of all elements, or (maximum, its first position) along `dim`, as torch.max; for two tensors: maximum."""
@_function
def max_backward(dvalues: Array | _Number, indices: Array | _Number, input: Array | _Number, dim: _Whole, keepdim: bool = False) -> Any:
    r"""Gradient of max along `dim` with respect to `input`, of which only the shape matters."""
@_function
def min(input: Array, dim: _Whole | None = None, keepdim: bool = False) -> Any:
    r"""The minimum of all elements, or (minimum, its first position) along `dim`, as torch.min; for two tensors: minimum."""
@_function
def min_backward(dvalues: Array | _Number, indices: Array | _Number, input: Array | _Number, dim: _Whole, keepdim: bool = False) -> Any:
    r"""Gradient of min along `dim` with respect to `input`, of which only the shape matters."""
@_function
def fake_quantize(input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number | None = None, quant_min: _Whole = -128, quant_max: _Whole = 127) -> Any:
    r"""What quantization makes of `input`: (round(input * (1 / scale)) + zero_point, within the range, - zero_point) scale."""
@_function
def fake_quantize_backward(dy: Array | _Number, input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number | None = None, quant_min: _Whole = -128, quant_max: _Whole = 127) -> Any:
    r"""Gradient of fake_quantize with respect to `input`: dy where codes are in range, else 0."""
@_function
def fake_quantize_per_channel_affine(input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number, axis: _Whole, quant_min: _Whole, quant_max: _Whole) -> Any:
    r"""Fake quantization by a scale for each index along `axis`, as torch.fake_quantize_per_channel_affine."""
@_function
def fake_quantize_per_channel_affine_backward(dy: Array | _Number, input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number, axis: _Whole, quant_min: _Whole, quant_max: _Whole) -> Any:
    r"""Gradient of fake_quantize_per_channel_affine with respect to `input`."""
@_function
def fake_quantize_per_tensor_affine(input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number, quant_min: _Whole, quant_max: _Whole) -> Any:
    r"""Fake quantization by one scale, number or tensor, as torch.fake_quantize_per_tensor_affine."""
@_function
def fake_quantize_per_tensor_affine_backward(dy: Array | _Number, input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number, quant_min: _Whole, quant_max: _Whole) -> Any:
    r"""Gradient of fake_quantize_per_tensor_affine with respect to `input`."""
@_function
def fold(input: Array, output_size: _Wholes, kernel_size: _Wholes, dilation: _Wholes = 1, padding: _Wholes = 0, stride: _Wholes = 1) -> Any:
    r"""Columns (N, C kh kw, windows) added up to images (N, C, H, W), as torch.nn.functional.fold."""
@_function
def fold_backward(dy: Array, kernel_size: _Wholes, dilation: _Wholes = 1, padding: _Wholes = 0, stride: _Wholes = 1) -> Any:
    r"""Gradient of fold by its input: `unfold`."""
@_function
def unfold(input: Array, kernel_size: _Wholes, dilation: _Wholes = 1, padding: _Wholes = 0, stride: _Wholes = 1) -> Any:
    r"""The windows of images (N, C, H, W) as columns (N, C kh kw, windows), as torch.nn.functional.unfold: a copy."""
@_function
def unfold_backward(dy: Array, shape: Any, kernel_size: _Wholes, dilation: _Wholes = 1, padding: _Wholes = 0, stride: _Wholes = 1) -> Any:
    r"""Gradient of unfold by its input of this shape: `fold`."""
@_function
def fractional_max_pool2d(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Any = None) -> Any:
    r"""The largest value of windows at places that random numbers choose, as torch.nn.functional.fractional_max_pool2d."""
@_function
def fractional_max_pool3d(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Any = None) -> Any:
    r"""The largest value of windows at places that random numbers choose, as torch.nn.functional.fractional_max_pool3d."""
@_function
def geglu(input: Array, dim: _Whole = -1) -> Any:
    r"""`value * gelu(gate)` over the halves of `input` along `dim`; the gate is the second half."""
@_function
def geglu_backward(dy: Array | _Number, input: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of geglu with respect to `input`."""
@_function
def glu(input: Array, dim: _Whole = -1) -> Any:
    r"""`value * sigmoid(gate)` over the halves of `input` along `dim`, as torch.nn.functional.glu."""
@_function
def glu_backward(dy: Array | _Number, input: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of glu with respect to `input`."""
@_function
def reglu(input: Array, dim: _Whole = -1) -> Any:
    r"""`value * relu(gate)` over the halves of `input` along `dim`; the gate is the second half."""
@_function
def reglu_backward(dy: Array | _Number, input: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of reglu with respect to `input`."""
@_function
def silu_and_mul(input: Array, dim: _Whole = -1) -> Any:
    r"""silu(first half) * second half, as inference engines lay out their gate and up projections."""
@_function
def silu_and_mul_backward(dy: Array | _Number, input: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of silu_and_mul with respect to `input`."""
@_function
def silu_mul(gate: Array | _Number, value: Array | _Number) -> Any:
    r"""silu(gate) * value for two tensors."""
@_function
def silu_mul_backward(dy: Array | _Number, gate: Array | _Number, value: Array | _Number) -> Any:
    r"""Gradients (dgate, dvalue) of silu_mul."""
@_function
def swiglu(input: Array, dim: _Whole = -1) -> Any:
    r"""`value * silu(gate)` over the halves of `input` along `dim`; the gate is the second half."""
@_function
def swiglu_backward(dy: Array | _Number, input: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of swiglu with respect to `input`."""
@_function
def geglu_quantize(input: Array | _Number, dim: _Whole = -1, dtype: Any = 'i8', *, scale: Array | _Number | None = None, group: _Whole | None = None) -> Any:
    r"""Codes of `geglu(input, dim)` in one pass, as `swiglu_quantize`."""
@_function
def glu_quantize(input: Array | _Number, dim: _Whole = -1, dtype: Any = 'i8', *, scale: Array | _Number | None = None, group: _Whole | None = None) -> Any:
    r"""Codes of `glu(input, dim)` in one pass, as `swiglu_quantize`."""
@_function
def reglu_quantize(input: Array | _Number, dim: _Whole = -1, dtype: Any = 'i8', *, scale: Array | _Number | None = None, group: _Whole | None = None) -> Any:
    r"""Codes of `reglu(input, dim)` in one pass, as `swiglu_quantize`."""
@_function
def silu_and_mul_quantize(input: Array | _Number, dim: _Whole = -1, dtype: Any = 'i8', *, scale: Array | _Number | None = None, group: _Whole | None = None) -> Any:
    r"""Codes of `silu_and_mul(input, dim)` in one pass: as `swiglu_quantize`, but the gate is the first half."""
@_function
def swiglu_quantize(input: Array | _Number, dim: _Whole = -1, dtype: Any = 'i8', *, scale: Array | _Number | None = None, group: _Whole | None = None) -> Any:
    r"""Codes of `swiglu(input, dim)` in one pass: no values are written."""
@_function
def unscale_grads_(grads: Any, found_inf: Any, inv_scale: Any) -> Any:
    r"""Multiplies gradients by inv_scale in place, and makes found_inf 1 where one was infinite or NaN."""
@_function
def update_scale_(scale: Any, growth_tracker: Any, found_inf: Any, growth_factor: _Number = 2.0, backoff_factor: _Number = 0.5, growth_interval: _Whole = 2000) -> Any:
    r"""The next step's scale, in place, as torch._amp_update_scale_."""
@_function
def index(input: Any, indices: Any) -> Any:
    r"""Elements of `input` where indices of its dimensions say, as x[indices] of torch and NumPy: a copy."""
@_function
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    r"""`input` with `values` where indices of its dimensions say, as torch.index_put: a copy with x[indices] = values."""
@_function
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    r"""Writes `values` into `input` where indices of its dimensions say, as torch.Tensor.index_put_; see index_put."""
@_function
def index_reduce(input: Array | _Number, dim: _Whole, index: Array | _Number, source: Array | _Number, reduce: str, *, include_self: bool = True, out: Array | None = None) -> Any:
    r"""`input` folded with slices of `source` at `index` along `dim`, as torch.index_reduce."""
@_function
def masked_scatter(input: Array | _Number, mask: Array | _Number, source: Array | _Number, *, out: Array | None = None) -> Any:
    r"""`input` with the elements of `source`, in order, where `mask` holds, as torch.masked_scatter."""
@_function
def masked_scatter_backward(dy: Array | _Number, input: Array | _Number, mask: Array | _Number, source: Array | _Number) -> Any:
    r"""Gradients (dinput, dsource) of masked_scatter; elements of the source that were not used have 0."""
@_function
def gather(input: Array | _Number, dim: _Whole, index: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Elements of `input` along `dim` at `index`, element by element, as torch.gather."""
@_function
def gather_backward(dy: Array | _Number, index: Array | _Number, shape: Any, dim: _Whole, wrap: bool = False) -> Any:
    r"""Gradient of gather with respect to an input of `shape`; with `wrap` that of take_along_dim."""
@_function
def index_select(input: Array | _Number, dim: _Whole, index: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Slices of `input` along `dim` at the indices of a vector, as torch.index_select."""
@_function
def index_select_backward(dy: Array | _Number, index: Array | _Number, shape: Any, dim: _Whole) -> Any:
    r"""Gradient of index_select with respect to an input of `shape`."""
@_function
def masked_fill(input: Array | _Number, mask: Array | _Number, value: Any) -> Any:
    r"""`input` with `value` where `mask` holds, as torch.masked_fill: of the element of `input`, with broadcasting."""
@_function
def take(input: Array | _Number, index: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Elements of `input`, taken as one row, at `index`, as torch.take: negative indices count from the end."""
@_function
def take_along_dim(input: Array | _Number, indices: Array | _Number, dim: _Whole | None = None, *, out: Array | None = None) -> Any:
    r"""Elements of `input` along `dim` at `indices`, as torch.take_along_dim: negative ones count from the end."""
@_function
def take_along_dim_backward(dy: Array | _Number, input: Array | _Number, indices: Array | _Number, dim: _Whole | None = None) -> Any:
    r"""Gradient of take_along_dim with respect to `input`."""
@_function
def take_backward(dy: Array | _Number, index: Array | _Number, shape: Any) -> Any:
    r"""Gradient of take with respect to an input of `shape`."""
@_function
def pack_int4(input: Array, dtype: Any = 's4', *, out: Array | None = None) -> Any:
    r"""`input` rounded to 4-bit integers, two to a byte along the last dimension: the first in the low half."""
@_function
def unpack_int4(input: Array, packed: Any = 's4', dtype: Any = 'f32', size: _Whole | None = None, *, out: Array | None = None) -> Any:
    r"""The 4-bit integers of bytes along the last dimension, as pack_int4 lays them."""
@_function
def interpolate(input: Array, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False) -> Any:
    r"""The axes behind batch and channels made longer or shorter, as torch.nn.functional.interpolate."""
@_function
def interpolate_backward(dy: Array, shape: Any, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False) -> Any:
    r"""Gradient of interpolate by its input of this shape."""
@_function
def upsample(input: Array, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: bool | None = None) -> Any:
    r"""`interpolate` by its older name, as torch.nn.functional.upsample."""
@_function
def upsample_bilinear(input: Array, size: Any = None, scale_factor: Any = None) -> Any:
    r"""`interpolate` with mode "bilinear" and aligned corners, as torch.nn.functional.upsample_bilinear."""
@_function
def upsample_nearest(input: Array, size: Any = None, scale_factor: Any = None) -> Any:
    r"""`interpolate` with mode "nearest", as torch.nn.functional.upsample_nearest."""
@_function
def cat(tensors: Sequence[Array], dim: _Whole = 0, *, out: Array | None = None) -> Any:
    r"""The tensors one after the other along `dim`, as torch.cat: of the element that holds all of theirs."""
@_function
def concat(tensors: Sequence[Array], dim: _Whole = 0, *, out: Array | None = None) -> Any:
    r"""The same as cat, as torch.concat."""
@_function
def stack(tensors: Sequence[Array], dim: _Whole = 0, *, out: Array | None = None) -> Any:
    r"""The tensors side by side along a new dimension, as torch.stack: of the element that holds all of theirs."""
@_function
def atleast_1d(*tensors: Array | Sequence[Array]) -> Any:
    r"""The tensors with at least one dimension, as torch.atleast_1d; copies."""
@_function
def atleast_2d(*tensors: Array | Sequence[Array]) -> Any:
    r"""The tensors with at least two dimensions, as torch.atleast_2d; copies."""
@_function
def atleast_3d(*tensors: Array | Sequence[Array]) -> Any:
    r"""The tensors with at least three dimensions, as torch.atleast_3d; copies."""
@_function
def block_diag(*tensors: Array | Sequence[Array]) -> Any:
    r"""Matrices along the diagonal of a matrix of zeros, as torch.block_diag; vectors are rows, elements are promoted."""
@_function
def cartesian_prod(*tensors: Array | Sequence[Array]) -> Any:
    r"""All combinations of one element of each of the vectors, as rows of a matrix, as torch.cartesian_prod."""
@_function
def column_stack(*tensors: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""Vectors as columns, and tensors of more dimensions, side by side, as torch.column_stack."""
@_function
def diagflat(input: Array, offset: _Whole = 0) -> Any:
    r"""The matrix that has all elements of `input`, in their order, as a diagonal, as torch.diagflat."""
@_function
def diagonal_backward(dy: Array, shape: Any, offset: _Whole = 0, dim1: _Whole = 0, dim2: _Whole = 1) -> Any:
    r"""Gradient of diagonal_copy with respect to an input of `shape`."""
@_function
def diagonal_copy(input: Array, offset: _Whole = 0, dim1: _Whole = 0, dim2: _Whole = 1) -> Any:
    r"""A diagonal of the matrices in two dimensions, as the last dimension, as torch.diagonal_copy."""
@_function
def diagonal_scatter(input: Array | _Number, src: Array | _Number, offset: _Whole = 0, dim1: _Whole = 0, dim2: _Whole = 1) -> Any:
    r"""`input` with `src` on a diagonal of the matrices in two dimensions, as torch.diagonal_scatter."""
@_function
def dstack(*tensors: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""The tensors one behind the other, along the third dimension, as torch.dstack."""
@_function
def fliplr(input: Array) -> Any:
    r"""`input` with the order of its columns turned round, as torch.fliplr."""
@_function
def flipud(input: Array) -> Any:
    r"""`input` with the order of its rows turned round, as torch.flipud."""
@_function
def hstack(*tensors: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""The tensors side by side: along the second dimension, the first one of vectors, as torch.hstack."""
@_function
def linalg_diagonal(input: Array, *, offset: _Whole = 0, dim1: _Whole = -2, dim2: _Whole = -1) -> Any:
    r"""A copy of a diagonal of the matrices in the last two dimensions, as torch.linalg.diagonal."""
@_function
def meshgrid(*tensors: Array | Sequence[Array], indexing: str = 'ij') -> Any:
    r"""The coordinates of a grid's points, one tensor for each of the vectors, as torch.meshgrid; copies."""
@_function
def rot90(input: Array, k: _Whole = 1, dims: Any = ...) -> Any:
    r"""`input` turned by k times 90 degrees in the plane of two dimensions, from the first towards the second, as torch.rot90."""
@_function
def row_stack(*tensors: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""The tensors one below the other, vectors as rows, as torch.vstack."""
@_function
def select_scatter(input: Array | _Number, src: Array | _Number, dim: _Whole, index: _Whole) -> Any:
    r"""`input` with `src` at one index of a dimension, as torch.select_scatter."""
@_function
def tril_indices(row: _Whole, col: _Whole, offset: _Whole = 0, *, dtype: Any = None, device: Any = None) -> Any:
    r"""Rows and columns of the elements on and below a diagonal of a (row, col) matrix, as torch.tril_indices."""
@_function
def triu_indices(row: _Whole, col: _Whole, offset: _Whole = 0, *, dtype: Any = None, device: Any = None) -> Any:
    r"""Rows and columns of the elements on and above a diagonal of a (row, col) matrix, as torch.triu_indices."""
@_function
def vstack(*tensors: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""The tensors one below the other, vectors as rows, as torch.vstack."""
@_function
def group_norm(input: Array | _Number, num_groups: _Whole, weight: Array | _Number | None = None, bias: Array | _Number | None = None, eps: _Number = 1e-05) -> Any:
    r"""(input - mean) / sqrt(var + eps) * weight + bias over groups of channels, as torch's group_norm."""
@_function
def layer_norm(input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, bias: Array | _Number | None = None, eps: Array | _Number = 1e-05, weight_offset: _Number = 0.0) -> Any:
    r"""(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions, as torch."""
@_function
def layer_norm_backward(dy: Array | _Number, input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number, mean: Array | _Number, rstd: Array | _Number, bias: bool = False, weight_offset: _Number = 0.0) -> Any:
    r"""(dx, dweight, dbias) without those that do not exist; `bias` says whether dbias is wanted."""
@_function
def layer_norm_forward(input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, bias: Array | _Number | None = None, eps: Array | _Number = 1e-05, weight_offset: _Number = 0.0) -> Any:
    r"""layer_norm with what its gradient needs: (y, mean, rstd)."""
@_function
def adafactor_(params: Any, grads: Any, row_vars: Any, col_vars: Any, variances: Any, *, step: Any, lr: Any = 0.01, beta2_decay: _Number = -0.8, eps1: _Number | None = None, eps2: _Number = 0.001, d: _Number = 1.0, weight_decay: Any = 0.0, maximize: bool = False) -> Any:
    r"""One step of Adafactor in place, over one array or a list of them; torch.optim.Adafactor's formula."""
@_function
def lamb_(params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, *, step: Any, lr: Any = 0.001, beta1: _Number = 0.9, beta2: _Number = 0.999, eps: _Number = 1e-06, weight_decay: _Number = 0.0, min_ratio: _Number = 0.0, max_ratio: _Number = 10.0) -> Any:
    r"""One step of LAMB in place, over one array or a list of them."""
@_function
def muon_(params: Any, grads: Any, momentum_buffers: Any, *, lr: Any = 0.001, weight_decay: Any = 0.1, momentum: _Number = 0.95, nesterov: bool = True, ns_coefficients: Sequence[_Number] = ..., ns_steps: _Whole = 5, eps: _Number = 1e-07, adjust_lr_fn: str | None = None, ns_element: str = 'bf16') -> Any:
    r"""One step of Muon in place, over one matrix or a list of them; torch.optim.Muon's formula."""
@_function
def alias_copy(input: Array, *, out: Array | None = None) -> Any:
    r"""`input` in memory of its own and in the order of its strides, as torch.clone."""
@_function
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""start, start + step, ... below end (above it for a negative step), as torch.arange."""
@_function
def clone(input: Array, *, out: Array | None = None) -> Any:
    r"""`input` in memory of its own and in the order of its strides, as torch.clone."""
@_function
def copy(input: Array, *, out: Array | None = None) -> Any:
    r"""`input` in contiguous memory of its own, or in `out` whatever its strides, as torch.Tensor.copy_."""
@_function
def eye(n: _Whole, m: _Whole | None = None, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""Ones on the diagonal of an (n, m) matrix of zeros, as torch.eye."""
@_function
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""A new array filled with one number, as torch.full."""
@_function
def full_like(input: Array, fill_value: Array | _Number, *, dtype: Any = None, device: Any = None) -> Any:
    r"""A tensor of the shape of `input`, and of its element or of `dtype`, filled with one value, as torch.full_like."""
@_function
def linspace(start: Any, end: Any, steps: _Whole, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""`steps` evenly spaced numbers from start to end, both included, as torch.linspace."""
@_function
def ones(*size: Any, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""A new array of ones, as torch.ones."""
@_function
def ones_like(input: Array, *, dtype: Any = None, device: Any = None) -> Any:
    r"""Ones of the shape of `input`, and of its element or of `dtype`, as torch.ones_like."""
@_function
def zeros(*size: Any, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""A new array of zeros, as torch.zeros."""
@_function
def zeros_like(input: Array, *, dtype: Any = None, device: Any = None) -> Any:
    r"""Zeros of the shape of `input`, and of its element or of `dtype`, as torch.zeros_like."""
@_function
def bilinear(input1: Array | _Number, input2: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None) -> Any:
    r"""x1^T W_o x2 + b_o for every output o, as torch's bilinear, over the last dimension of both inputs."""
@_function
def corrcoef(input: Array) -> Any:
    r"""Correlations of a matrix's rows, as torch.corrcoef: covariances over both standard deviations, within -1 and 1."""
@_function
def cov(input: Array | _Number, *, correction: _Whole = 1, fweights: Array | _Number | None = None, aweights: Array | _Number | None = None) -> Any:
    r"""Covariances of a matrix's rows, of which each column is an observation, as torch.cov."""
@_function
def cross(input: Array | _Number, other: Array | _Number, dim: _Whole | None = None, *, out: Array | None = None) -> Any:
    r"""The cross product of vectors of three elements, as torch.cross: along the first dimension of size 3 by default."""
@_function
def linalg_cross(input: Array | _Number, other: Array | _Number, *, dim: _Whole = -1, out: Array | None = None) -> Any:
    r"""The cross product of vectors of three elements along `dim`, as torch.linalg.cross."""
@_function
def linalg_vander(x: Array, *, N: _Whole | None = None) -> Any:
    r"""Vandermonde's matrices: rows of 1, x, x^2, ..., as torch.linalg.vander; as many columns as rows by default."""
@_function
def matrix_power(A: Array, n: _Whole, *, out: Array | None = None) -> Any:
    r"""Products of n equal matrices, as torch.linalg.matrix_power; n is at least 0: inverses are not built."""
@_function
def multi_dot(*tensors: Array | Sequence[Array], out: Array | None = None) -> Any:
    r"""The product of matrices in the order that takes the fewest multiplications, as torch.linalg.multi_dot."""
@_function
def vander(x: Array, N: _Whole | None = None, increasing: bool = False) -> Any:
    r"""Vandermonde's matrix of a vector, by falling powers or rising ones, as torch.vander."""
@_function
def vecdot(x: Array | _Number, y: Array | _Number, *, dim: _Whole = -1, out: Array | None = None) -> Any:
    r"""Sums of products along `dim` of two tensors that broadcast, as torch.linalg.vecdot; elements are promoted."""
@_function
def linear_cross_entropy(input: Array | _Number, linear_weight: Array | _Number, target: Array | _Number, *, linear_bias: Array | _Number | None = None, weight: Array | _Number | None = None, reduction: _Reduction = 'mean', ignore_index: _Whole | None = None, label_smoothing: Array | _Number = 0.0, options: Any = None) -> Any:
    r"""cross_entropy(linear(input, linear_weight, linear_bias), target) without keeping the logits, as torch's."""
@_function
def linear_cross_entropy_backward(dloss: Array | _Number, input: Array | _Number, linear_weight: Array | _Number, target: Array | _Number, lse: Array | _Number, *, linear_bias: Array | _Number | None = None, weight: Array | _Number | None = None, reduction: _Reduction = 'mean', ignore_index: _Whole = -100, label_smoothing: Array | _Number = 0.0) -> Any:
    r"""Gradients (dinput, dlinear_weight) and, with a bias, dlinear_bias, from linear_cross_entropy_forward's lse."""
@_function
def linear_cross_entropy_forward(input: Array | _Number, linear_weight: Array | _Number, target: Array | _Number, *, linear_bias: Array | _Number | None = None, weight: Array | _Number | None = None, reduction: _Reduction = 'mean', ignore_index: _Whole = -100, label_smoothing: Array | _Number = 0.0) -> Any:
    r"""linear_cross_entropy with what its gradient needs: (loss, lse)."""
@_function
def linear_cross_entropy_fused(input: Array | _Number, linear_weight: Array | _Number, target: Array | _Number, *, linear_bias: Array | _Number | None = None, weight: Array | _Number | None = None, reduction: _Reduction = 'mean', ignore_index: _Whole = -100, label_smoothing: Array | _Number = 0.0, dloss: Array | _Number = 1.0) -> Any:
    r"""(loss, dinput, dlinear_weight) and with a bias dlinear_bias: the gradients, for `dloss`, in the pass that finds the loss."""
@_function
def cross_entropy(input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, size_average: bool | None = None, ignore_index: _Whole = -100, reduce: bool | None = None, reduction: _Reduction = 'mean', label_smoothing: Array | _Number = 0.0, *, out_element: Any = None, softcap: _Number | None = None, z_loss: _Number = 0.0) -> Any:
    r"""Cross-entropy of logits with class indices or probabilities, as torch.nn.functional.cross_entropy."""
@_function
def cross_entropy_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, ignore_index: _Whole = -100, reduction: _Reduction = 'mean', label_smoothing: Array | _Number = 0.0, weight: Array | _Number | None = None, *, lse: Array | _Number | None = None) -> Any:
    r"""Gradient of cross_entropy with respect to `input`; `lse` is recomputed when it is not given."""
@_function
def cross_entropy_forward(input: Array | _Number, target: Array | _Number, ignore_index: _Whole = -100, reduction: _Reduction = 'mean', label_smoothing: Array | _Number = 0.0, weight: Array | _Number | None = None, *, out_element: Any = None) -> Any:
    r"""cross_entropy with what its gradient needs: (loss, lse)."""
@_function
def cross_entropy_fused(input: Array | _Number, target: Array | _Number, ignore_index: _Whole = -100, reduction: _Reduction = 'mean', label_smoothing: Array | _Number = 0.0, *, out_element: Any = None) -> Any:
    r"""(loss, dinput): cross_entropy with its gradient for dloss = 1, in one pass over the logits."""
@_function
def cosine_embedding_loss(input1: Array | _Number, input2: Array | _Number, target: Array | _Number, margin: _Number = 0, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1, as torch's cosine_embedding_loss."""
@_function
def gaussian_nll_loss(input: Array | _Number, target: Array | _Number, var: Array | _Number, full: bool = False, eps: _Number = 1e-06, reduction: _Reduction = 'mean') -> Any:
    r"""(ln v + (input - target)^2 / v) / 2 with v = max(var, eps), reduced, as torch's gaussian_nll_loss."""
@_function
def hinge_embedding_loss(input: Array | _Number, target: Array | _Number, margin: _Number = 1.0, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""Input where target is 1, max(0, margin - input) where it is -1, reduced, as torch's hinge_embedding_loss."""
@_function
def margin_ranking_loss(input1: Array | _Number, input2: Array | _Number, target: Array | _Number, margin: _Number = 0, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""max(0, margin - target * (input1 - input2)), reduced, as torch's margin_ranking_loss."""
@_function
def multi_margin_loss(input: Array | _Number, target: Array | _Number, p: _Whole = 1, margin: _Number = 1.0, weight: Array | _Number | None = None, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""Sum over classes j but y of max(0, margin - x[y] + x[j])^p weight[y] / classes, as torch's multi_margin_loss."""
@_function
def multilabel_margin_loss(input: Array | _Number, target: Array | _Number, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""Sum of max(0, 1 - x[y] + x[j]) / classes over targets y and other classes j, as torch's multilabel_margin_loss."""
@_function
def multilabel_soft_margin_loss(input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""-mean over classes of target * logsigmoid(x) + (1 - target) * logsigmoid(-x), as torch's multilabel_soft_margin_loss."""
@_function
def poisson_nll_loss(input: Array | _Number, target: Array | _Number, log_input: bool = True, full: bool = False, size_average: Any = None, eps: _Number = 1e-08, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""exp(input) - target * input, or input - target * ln(input + eps), reduced, as torch's poisson_nll_loss."""
@_function
def soft_margin_loss(input: Array | _Number, target: Array | _Number, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""ln(1 + exp(-target * input)), reduced, of targets 1 and -1, as torch's soft_margin_loss."""
@_function
def triplet_margin_loss(anchor: Array | _Number, positive: Array | _Number, negative: Array | _Number, margin: _Number = 1.0, p: _Number = 2, eps: _Number = 1e-06, swap: bool = False, size_average: Any = None, reduce: Any = None, reduction: _Reduction = 'mean') -> Any:
    r"""max(0, margin + |anchor - positive| - |anchor - negative|), reduced, as torch's triplet_margin_loss."""
@_function
def triplet_margin_with_distance_loss(anchor: Array | _Number, positive: Array | _Number, negative: Array | _Number, *, distance_function: Any = None, margin: _Number = 1.0, swap: bool = False, reduction: _Reduction = 'mean') -> Any:
    r"""max(0, margin + d(anchor, positive) - d(anchor, negative)), reduced, as torch's triplet_margin_with_distance_loss."""
@_function
def masked_amax(input: Array | _Number, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The maximum of the elements that the mask keeps, as torch.masked.amax; the least number where it keeps none."""
@_function
def masked_amin(input: Array | _Number, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The minimum of the elements that the mask keeps, as torch.masked.amin; the largest number where it keeps none."""
@_function
def masked_argmax(input: Array | _Number, dim: _Whole | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The position of the first maximum among the elements that the mask keeps, in the input's element, as torch.masked.argmax."""
@_function
def masked_argmin(input: Array | _Number, dim: _Whole | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The position of the first minimum among the elements that the mask keeps, in the input's element, as torch.masked.argmin."""
@_function
def masked_cumprod(input: Array | _Number, dim: _Whole, *, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""Running product along `dim` of the elements that the mask keeps, as torch.masked.cumprod."""
@_function
def masked_cumsum(input: Array | _Number, dim: _Whole, *, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""Running sum along `dim` of the elements that the mask keeps, as torch.masked.cumsum."""
@_function
def masked_log_softmax(input: Array | _Number, dim: _Whole, *, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""Log-softmax along `dim` of the elements that the mask keeps; -inf elsewhere, as torch.masked.log_softmax."""
@_function
def masked_logaddexp(input: Array | _Number, other: Array | _Number, *, dtype: Any = None, input_mask: Array | _Number | None = None, other_mask: Array | _Number | None = None) -> Any:
    r"""log(exp(input) + exp(other)) of what the masks keep, as torch.masked.logaddexp."""
@_function
def masked_logsumexp(input: Array | _Number, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""log(sum(exp(x))) of the elements that the mask keeps, as torch.masked.logsumexp; the least number where it keeps none."""
@_function
def masked_mean(input: Array | _Number, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The mean of the elements that the mask keeps, as torch.masked.mean; NaN where it keeps none."""
@_function
def masked_norm(input: Array | _Number, ord: _Number | None = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The norm of the elements that the mask keeps, as torch.masked.norm."""
@_function
def masked_normalize(input: Array | _Number, ord: _Number, dim: _Whole, *, eps: _Number = 1e-12, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""What the mask keeps over max(its norm along `dim`, eps), 0 elsewhere, as torch.masked.normalize."""
@_function
def masked_prod(input: Array | _Number, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The product of the elements that the mask keeps, as torch.masked.prod; 1 where it keeps none."""
@_function
def masked_softmax(input: Array | _Number, dim: _Whole, *, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""Softmax along `dim` of the elements that the mask keeps; 0 elsewhere, as torch.masked.softmax."""
@_function
def masked_softmin(input: Array | _Number, dim: _Whole, *, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""Softmax of -input along `dim` where the mask keeps it; 0 elsewhere, as torch.masked.softmin."""
@_function
def masked_std(input: Array | _Number, dim: Any = None, unbiased: bool | None = None, *, correction: _Number | None = None, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The standard deviation of the elements that the mask keeps, as torch.masked.std."""
@_function
def masked_sum(input: Array | _Number, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The sum of the elements that the mask keeps, as torch.masked.sum; 0 where it keeps none."""
@_function
def masked_var(input: Array | _Number, dim: Any = None, unbiased: bool | None = None, *, correction: _Number | None = None, keepdim: bool = False, dtype: Any = None, mask: Array | _Number | None = None) -> Any:
    r"""The variance of the elements that the mask keeps, as torch.masked.var."""
@_function
def addbmm(input: Array | _Number, batch1: Array | _Number, batch2: Array | _Number, *, beta: Array | _Number = 1, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""Gives beta * input + alpha * (sum over the batch of batch1 @ batch2), as torch.addbmm; `input` broadcasts."""
@_function
def addmm(input: Array | _Number, mat1: Array | _Number, mat2: Array | _Number, *, beta: Array | _Number = 1, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""Gives beta * input + alpha * mat1 @ mat2, as torch.addmm; `input` broadcasts, and is not read when beta is 0."""
@_function
def addmv(input: Array | _Number, mat: Array | _Number, vec: Array | _Number, *, beta: Array | _Number = 1, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""Gives beta * input + alpha * mat @ vec, as torch.addmv; `input` broadcasts."""
@_function
def baddbmm(input: Array | _Number, batch1: Array | _Number, batch2: Array | _Number, *, beta: Array | _Number = 1, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""Gives beta * input + alpha * batch1 @ batch2 for batches of matrices, as torch.baddbmm; `input` broadcasts."""
@_function
def bmm(input: Array | _Number, mat2: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Products of two batches of matrices of the same length, as torch.bmm."""
@_function
def dot(input: Array | _Number, tensor: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Sum of the products of two vectors, as torch.dot."""
@_function
def linear(input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None, *, activation: str = 'none') -> Any:
    r"""Gives input @ weight.T + bias over the last dimension, as torch.nn.functional.linear."""
@_function
def linear_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, bias: Array | _Number | None = None) -> Any:
    r"""Gradients (dinput, dweight) of linear, and dbias where there is a `bias`."""
@_function
def matmul(input: Array | _Number, other: Array | _Number, *, activation: str = 'none', out: Array | None = None) -> Any:
    r"""Matrix product as torch.matmul: batches broadcast; vectors are rows on the left, columns on the right."""
@_function
def matmul_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients (dinput, dother) of matmul, summed over the dimensions that it broadcast."""
@_function
def mm(input: Array | _Number, mat2: Array | _Number, *, out: Array | None = None) -> Any:
    r"""The product of two matrices, as torch.mm."""
@_function
def mv(input: Array | _Number, vec: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Matrix times vector, as torch.mv."""
@_function
def vdot(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Sum of the products of two vectors, as torch.vdot: the same as dot for real numbers."""
@_function
def mode(input: Array, dim: _Whole = -1, keepdim: bool = False) -> Any:
    r"""(values, indices) of the most frequent along `dim`, as torch.mode: the smallest of those as frequent, at its last place."""
@_function
def adamax_(params: Any, grads: Any, exp_avgs: Any, exp_infs: Any, *, step: Any, lr: Any = 0.002, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0, grad_scale: Any = 1.0, maximize: bool = False) -> Any:
    r"""One Adamax step in place, over one array or a list of them; see AdamaxDescriptor for the formula."""
@_function
def lion_(params: Any, grads: Any, exp_avgs: Any, *, lr: Any = 0.0001, beta1: Any = 0.9, beta2: Any = 0.99, weight_decay: Any = 0.0, grad_scale: Any = 1.0, maximize: bool = False) -> Any:
    r"""One Lion step in place, over one array or a list of them; see LionDescriptor for the formula."""
@_function
def nadam_(params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, *, step: Any, mu_product: Any, lr: Any = 0.002, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0, momentum_decay: Any = 0.004, grad_scale: Any = 1.0, decoupled_weight_decay: bool = False, maximize: bool = False) -> Any:
    r"""One NAdam step in place, over one array or a list of them; see NAdamDescriptor for the formula."""
@_function
def radam_(params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, *, step: Any, lr: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0, grad_scale: Any = 1.0, decoupled_weight_decay: bool = False, maximize: bool = False) -> Any:
    r"""One RAdam step in place, over one array or a list of them; see RAdamDescriptor for the formula."""
@_function
def mx_dequantize(input: Array | _Number, scale: Array | _Number, format: str = 'mxfp8_e4m3', dtype: Any = 'f32') -> Any:
    r"""The values of an MX format: each code's number times its block's scale, rounded to f32, then to `dtype`."""
@_function
def mx_quantize(input: Array, format: str = 'mxfp8_e4m3') -> Any:
    r"""Values as codes with a scale for each 32 of them, a power of two: the MX formats of OCP's specification 1.0."""
@_function
def nll_loss(input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, size_average: bool | None = None, ignore_index: _Whole = -100, reduce: bool | None = None, reduction: _Reduction = 'mean', *, out_element: Any = None) -> Any:
    r"""Negative log-likelihood of class indices, as torch.nn.functional.nll_loss."""
@_function
def nll_loss_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, ignore_index: _Whole = -100, reduction: _Reduction = 'mean') -> Any:
    r"""Gradient of nll_loss with respect to `input`, of which only the shape matters."""
@_function
def add_rms_norm(input: Array | _Number, residual: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""(rms_norm(input + residual), input + residual) in one pass; the sum is rounded to the element first."""
@_function
def add_rms_norm_backward(dy: Array | _Number, dsum: Array | _Number, sum: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number, rstd: Array | _Number, weight_offset: _Number = 0.0) -> Any:
    r"""(dx, dweight), or dx alone without a weight; dx is the gradient of input and of residual. dsum may be None."""
@_function
def add_rms_norm_forward(input: Array | _Number, residual: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""add_rms_norm with what its gradient needs: (y, sum, rstd)."""
@_function
def rms_norm(input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""`input / sqrt(mean(input^2) + eps) * weight` over the trailing dimensions, as torch.nn.functional.rms_norm."""
@_function
def rms_norm_add(input: Array | _Number, residual: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""`residual + rms_norm(input)` in one pass, rounded once."""
@_function
def rms_norm_add_backward(dy: Array | _Number, input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number, rstd: Array | _Number, weight_offset: _Number = 0.0) -> Any:
    r"""(dx, dweight), or dx alone without a weight; the gradient of residual is dy."""
@_function
def rms_norm_add_forward(input: Array | _Number, residual: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""rms_norm_add with what its gradient needs: (y, rstd)."""
@_function
def rms_norm_backward(dy: Array | _Number, input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0, *, rstd: Array | _Number | None = None) -> Any:
    r"""Gradients (dx, dweight) of rms_norm, or dx alone without a weight; `rstd` is recomputed when it is not given."""
@_function
def rms_norm_forward(input: Array | _Number, normalized_shape: _Wholes, weight: Array | _Number | None = None, eps: Array | _Number | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""rms_norm with what its gradient needs: (y, rstd)."""
@_function
def layer_norm_quantize(input: Array | _Number, weight: Array | _Number | None = None, bias: Array | _Number | None = None, eps: Array | _Number = 1e-05, dtype: Any = 'i8', *, residual: Array | _Number | None = None, scale: Array | _Number | None = None, group: _Whole | None = None) -> Any:
    r"""Codes of layer_norm over the last dimension of `input`, or of `input + residual`, in one pass: no values are written."""
@_function
def rms_norm_quantize(input: Array | _Number, weight: Array | _Number | None = None, eps: Array | _Number | None = None, dtype: Any = 'i8', *, residual: Array | _Number | None = None, scale: Array | _Number | None = None, group: _Whole | None = None, weight_offset: _Number = 0.0) -> Any:
    r"""Codes of rms_norm over the last dimension of `input`, or of `input + residual`, in one pass: no values are written."""
@_function
def nvfp4_dequantize(input: Array | _Number, scale: Array | _Number, global_scale: Array | _Number, dtype: Any = 'f32') -> Any:
    r"""The values of NVFP4: of each code its number times (scale global_scale), in f32, then rounded to `dtype`."""
@_function
def nvfp4_quantize(input: Array | _Number, global_scale: Array | _Number | None = None) -> Any:
    r"""Values as NVFP4: codes of 4-bit floats (e2m1), f8e4m3 scales of 16 values each, and a scale for all."""
@_function
def adam_(params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any = None, *, step: Any, lr: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.0, grad_scale: Any = 1.0, maximize: bool = False, amsgrad: bool = False) -> Any:
    r"""One Adam step in place, over one array or a list of them; see AdamDescriptor for the formula."""
@_function
def adamw_(params: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any = None, *, step: Any, lr: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, eps: Any = 1e-08, weight_decay: Any = 0.01, grad_scale: Any = 1.0, maximize: bool = False, amsgrad: bool = False) -> Any:
    r"""One AdamW step in place, over one array or a list of them; see AdamWDescriptor for the formula."""
@_function
def sgd_(params: Any, grads: Any, momentum_buffers: Any = None, *, step: Any = None, lr: Any = 0.001, momentum: Any = 0.0, dampening: Any = 0.0, weight_decay: Any = 0.0, grad_scale: Any = 1.0, nesterov: bool = False, maximize: bool = False) -> Any:
    r"""One SGD step in place, over one array or a list of them; see SGDDescriptor for the formula."""
@_function
def pad(input: Array, pad: Any, mode: str = 'constant', value: _Number | None = None, *, out: Array | None = None) -> Any:
    r"""`input` with elements added before and behind its last dimensions, as torch.nn.functional.pad."""
@_function
def pad_backward(dy: Array, shape: Any, pad: Any, mode: str = 'constant') -> Any:
    r"""Gradient of pad with respect to an input of `shape`."""
@_function
def repeat(input: Array, repeats: Any, *, out: Array | None = None) -> Any:
    r"""`input` repeated as a whole along each dimension, as torch.Tensor.repeat: at least one number per dimension."""
@_function
def repeat_backward(dy: Array, shape: Any, repeats: Any, each: bool = False) -> Any:
    r"""Gradient of repeat with respect to an input of `shape`; with `each` that of repeat_interleave."""
@_function
def repeat_interleave(input: Array | _Number, repeats: Array | _Number | None = None, dim: _Whole | None = None, *, output_size: _Whole | None = None) -> Any:
    r"""Every element of `input` repeated along `dim`, as torch.repeat_interleave."""
@_function
def tile(input: Array, dims: Any, *, out: Array | None = None) -> Any:
    r"""`input` repeated as a whole along its last dimensions, as torch.tile."""
@_function
def binary_cross_entropy(input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: _Reduction = 'mean') -> Any:
    r"""Cross entropy of probabilities, as torch.nn.functional.binary_cross_entropy."""
@_function
def binary_cross_entropy_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, reduction: _Reduction = 'mean') -> Any:
    r"""Gradient of binary_cross_entropy with respect to `input`."""
@_function
def binary_cross_entropy_with_logits(input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: _Reduction = 'mean', pos_weight: Array | _Number | None = None) -> Any:
    r"""Cross entropy of sigmoid(input), as torch.nn.functional.binary_cross_entropy_with_logits."""
@_function
def binary_cross_entropy_with_logits_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, weight: Array | _Number | None = None, reduction: _Reduction = 'mean', pos_weight: Array | _Number | None = None) -> Any:
    r"""Gradient of binary_cross_entropy_with_logits with respect to `input`."""
@_function
def huber_loss(input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'mean', delta: Array | _Number = 1.0, weight: Array | _Number | None = None) -> Any:
    r"""Squares up to `delta`, then magnitudes times it, as torch.nn.functional.huber_loss."""
@_function
def huber_loss_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'mean', delta: Array | _Number = 1.0) -> Any:
    r"""Gradient of huber_loss with respect to `input`, in the shape that input and target broadcast to."""
@_function
def kl_div(input: Array | _Number, target: Array | _Number, size_average: bool | None = None, reduce: bool | None = None, reduction: _Reduction = 'mean', log_target: bool = False) -> Any:
    r"""Kullback-Leibler divergence of log-probabilities from a target, as torch.nn.functional.kl_div."""
@_function
def kl_div_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'mean', log_target: bool = False) -> Any:
    r"""Gradient of kl_div with respect to `input`, in the shape that input and target broadcast to."""
@_function
def l1_loss(input: Array | _Number, target: Array | _Number, size_average: bool | None = None, reduce: bool | None = None, reduction: _Reduction = 'mean', weight: Array | _Number | None = None) -> Any:
    r"""|input - target|, as torch.nn.functional.l1_loss."""
@_function
def l1_loss_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'mean') -> Any:
    r"""Gradient of l1_loss with respect to `input`, in the shape that input and target broadcast to."""
@_function
def mse_loss(input: Array | _Number, target: Array | _Number, size_average: bool | None = None, reduce: bool | None = None, reduction: _Reduction = 'mean', weight: Array | _Number | None = None) -> Any:
    r"""(input - target)^2, as torch.nn.functional.mse_loss."""
@_function
def mse_loss_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'mean') -> Any:
    r"""Gradient of mse_loss with respect to `input`, in the shape that input and target broadcast to."""
@_function
def smooth_l1_loss(input: Array | _Number, target: Array | _Number, size_average: bool | None = None, reduce: bool | None = None, reduction: _Reduction = 'mean', beta: Array | _Number = 1.0) -> Any:
    r"""Squares up to `beta`, then magnitudes, as torch.nn.functional.smooth_l1_loss."""
@_function
def smooth_l1_loss_backward(dloss: Array | _Number, input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'mean', beta: Array | _Number = 1.0) -> Any:
    r"""Gradient of smooth_l1_loss with respect to `input`, in the shape that input and target broadcast to."""
@_function
def adaptive_avg_pool1d(input: Array, output_size: Any) -> Any:
    r"""The mean of each of `output_size` parts of (N, C, L), as torch.nn.functional.adaptive_avg_pool1d."""
@_function
def adaptive_avg_pool1d_backward(dy: Array, shape: _Wholes, output_size: Any) -> Any:
    r"""Gradient of adaptive_avg_pool1d by its input of this shape."""
@_function
def adaptive_avg_pool2d(input: Array, output_size: Any) -> Any:
    r"""The mean of each of `output_size` parts of (N, C, H, W), as torch.nn.functional.adaptive_avg_pool2d."""
@_function
def adaptive_avg_pool2d_backward(dy: Array, shape: _Wholes, output_size: Any) -> Any:
    r"""Gradient of adaptive_avg_pool2d by its input of this shape."""
@_function
def adaptive_avg_pool3d(input: Array, output_size: Any) -> Any:
    r"""The mean of each of `output_size` parts of (N, C, D, H, W), as torch.nn.functional.adaptive_avg_pool3d."""
@_function
def adaptive_avg_pool3d_backward(dy: Array, shape: _Wholes, output_size: Any) -> Any:
    r"""Gradient of adaptive_avg_pool3d by its input of this shape."""
@_function
def adaptive_max_pool1d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    r"""The largest of each of `output_size` parts of (N, C, L), as torch.nn.functional.adaptive_max_pool1d."""
@_function
def adaptive_max_pool1d_backward(dy: Array | _Number, indices: Array | _Number, shape: _Wholes, output_size: Any) -> Any:
    r"""Gradient of adaptive_max_pool1d by its input of this shape, given the indices that it returned."""
@_function
def adaptive_max_pool2d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    r"""The largest of each of `output_size` parts of (N, C, H, W), as torch.nn.functional.adaptive_max_pool2d."""
@_function
def adaptive_max_pool2d_backward(dy: Array | _Number, indices: Array | _Number, shape: _Wholes, output_size: Any) -> Any:
    r"""Gradient of adaptive_max_pool2d by its input of this shape, given the indices that it returned."""
@_function
def adaptive_max_pool3d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    r"""The largest of each of `output_size` parts of (N, C, D, H, W), as torch.nn.functional.adaptive_max_pool3d."""
@_function
def adaptive_max_pool3d_backward(dy: Array | _Number, indices: Array | _Number, shape: _Wholes, output_size: Any) -> Any:
    r"""Gradient of adaptive_max_pool3d by its input of this shape, given the indices that it returned."""
@_function
def avg_pool1d(input: Array, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: _Whole | None = None) -> Any:
    r"""The mean of each window of (N, C, L), as torch.nn.functional.avg_pool1d."""
@_function
def avg_pool1d_backward(dy: Array, shape: _Wholes, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: _Whole | None = None) -> Any:
    r"""Gradient of avg_pool1d by its input of this shape."""
@_function
def avg_pool2d(input: Array, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: _Whole | None = None) -> Any:
    r"""The mean of each window of (N, C, H, W), as torch.nn.functional.avg_pool2d."""
@_function
def avg_pool2d_backward(dy: Array, shape: _Wholes, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: _Whole | None = None) -> Any:
    r"""Gradient of avg_pool2d by its input of this shape."""
@_function
def avg_pool3d(input: Array, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: _Whole | None = None) -> Any:
    r"""The mean of each window of (N, C, D, H, W), as torch.nn.functional.avg_pool3d."""
@_function
def avg_pool3d_backward(dy: Array, shape: _Wholes, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: _Whole | None = None) -> Any:
    r"""Gradient of avg_pool3d by its input of this shape."""
@_function
def lp_pool1d(input: Array, norm_type: _Number, kernel_size: _Wholes, stride: _Wholes | None = None, ceil_mode: bool = False) -> Any:
    r"""(sum of x**norm_type)**(1 / norm_type) of each window, as torch.nn.functional.lp_pool1d."""
@_function
def lp_pool2d(input: Array, norm_type: _Number, kernel_size: _Wholes, stride: _Wholes | None = None, ceil_mode: bool = False) -> Any:
    r"""(sum of x**norm_type)**(1 / norm_type) of each window, as torch.nn.functional.lp_pool2d."""
@_function
def lp_pool3d(input: Array, norm_type: _Number, kernel_size: _Wholes, stride: _Wholes | None = None, ceil_mode: bool = False) -> Any:
    r"""(sum of x**norm_type)**(1 / norm_type) of each window, as torch.nn.functional.lp_pool3d."""
@_function
def max_pool1d(input: Array, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, dilation: _Wholes = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    r"""The largest of each window of (N, C, L), as torch.nn.functional.max_pool1d; with `return_indices` also where it is."""
@_function
def max_pool1d_backward(dy: Array | _Number, indices: Array | _Number, shape: _Wholes, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, dilation: _Wholes = 1, ceil_mode: bool = False) -> Any:
    r"""Gradient of max_pool1d by its input of this shape, given the indices that it returned."""
@_function
def max_pool2d(input: Array, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, dilation: _Wholes = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    r"""The largest of each window of (N, C, H, W), as torch.nn.functional.max_pool2d; with `return_indices` also where it is."""
@_function
def max_pool2d_backward(dy: Array | _Number, indices: Array | _Number, shape: _Wholes, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, dilation: _Wholes = 1, ceil_mode: bool = False) -> Any:
    r"""Gradient of max_pool2d by its input of this shape, given the indices that it returned."""
@_function
def max_pool3d(input: Array, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, dilation: _Wholes = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
    r"""The largest of each window of (N, C, D, H, W), as torch.nn.functional.max_pool3d; with `return_indices` also where it is."""
@_function
def max_pool3d_backward(dy: Array | _Number, indices: Array | _Number, shape: _Wholes, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, dilation: _Wholes = 1, ceil_mode: bool = False) -> Any:
    r"""Gradient of max_pool3d by its input of this shape, given the indices that it returned."""
@_function
def max_unpool1d(input: Array | _Number, indices: Array | _Number, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, output_size: Any = None) -> Any:
    r"""Zeros with `input` at the places that `indices` name, as torch.nn.functional.max_unpool1d."""
@_function
def max_unpool2d(input: Array | _Number, indices: Array | _Number, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, output_size: Any = None) -> Any:
    r"""Zeros with `input` at the places that `indices` name, as torch.nn.functional.max_unpool2d."""
@_function
def max_unpool3d(input: Array | _Number, indices: Array | _Number, kernel_size: _Wholes, stride: _Wholes | None = None, padding: _Wholes = 0, output_size: Any = None) -> Any:
    r"""Zeros with `input` at the places that `indices` name, as torch.nn.functional.max_unpool3d."""
@_function
def js_div(input: Array | _Number, target: Array | _Number, beta: _Number = 0.5, reduction: _Reduction = 'batchmean') -> Any:
    r"""The generalised Jensen-Shannon divergence beta KL(p | m) + (1 - beta) KL(q | m), m = beta p + (1 - beta) q."""
@_function
def preference_loss(chosen: Array | _Number, rejected: Array | _Number, reference_chosen: Array | _Number | None = None, reference_rejected: Array | _Number | None = None, beta: _Number = 0.1, label_smoothing: _Number = 0.0, form: str = 'sigmoid', reduction: _Reduction = 'mean') -> Any:
    r"""Losses of pairs of answers of which one was preferred, from the log-probabilities of both."""
@_function
def tv_distance(input: Array | _Number, target: Array | _Number, reduction: _Reduction = 'batchmean') -> Any:
    r"""The total variation distance |input - target| / 2 of probabilities, element by element, reduced."""
@_function
def addr(input: Array | _Number, vec1: Array | _Number, vec2: Array | _Number, *, beta: Array | _Number = 1, alpha: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""Gives beta * input + alpha * outer(vec1, vec2), as torch.addr, for one element; `input` broadcasts."""
@_function
def ger(input: Array | _Number, vec2: Array | _Number, *, out: Array | None = None) -> Any:
    r"""The same as outer, as torch.ger."""
@_function
def kron(input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""Kronecker's product: every element of `input` times all of `other`, as torch.kron; elements are promoted."""
@_function
def kron_backward(dy: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients (dinput, dother) of kron."""
@_function
def outer(input: Array | _Number, vec2: Array | _Number, *, out: Array | None = None) -> Any:
    r"""The matrix of all products of an element of `input` and one of `vec2`, as torch.outer; elements are promoted."""
@_function
def dequantize(input: Array, format: str, dtype: Any = 'f32', *, out: Array | None = None) -> Any:
    r"""The values of blocks of a GGUF format."""
@_function
def quantize(input: Array, format: str, *, out: Array | None = None) -> Any:
    r"""The blocks of a GGUF format that hold `input`, as bytes along the last dimension."""
@_function
def quant_embedding(weight: Array | _Number, input: Array | _Number, format: str, dtype: Any = 'f32', *, out: Array | None = None) -> Any:
    r"""Rows of a table in blocks of a GGUF format, at the indices `input`: y[..., :] = dequantize(weight)[input[...], :]."""
@_function
def quant_linear(input: Array | _Number, weight: Array | _Number, scale: Array | _Number, zero_point: Array | _Number | None = None, bias: Array | _Number | None = None, order: Array | _Number | None = None, *, packed: Any = None, quantize_input: bool = False, out: Array | None = None) -> Any:
    r"""Gives input @ w.T + bias, where w = (weight - zero_point) scale: `linear` with a weight that quantize_linear made."""
@_function
def quant_linear_backward(dy: Array | _Number, weight: Array | _Number, scale: Array | _Number, zero_point: Array | _Number | None = None, bias: Array | _Number | None = None, order: Array | _Number | None = None, *, packed: Any = None) -> Any:
    r"""The gradient of quant_linear with respect to its input, dy @ w, and to its bias where there is one: sums of dy."""
@_function
def repack_awq(qweight: Array | _Number, qzeros: Array | _Number, scales: Array | _Number) -> Any:
    r"""An AWQ checkpoint's 4-bit layer as quant_linear takes it: `quant_linear(x, *repack_awq(...), packed="u4")`."""
@_function
def repack_gptq(qweight: Array | _Number, qzeros: Array | _Number, scales: Array | _Number, g_idx: Array | _Number | None = None, *, bits: _Whole = 4, checkpoint_format: str = 'gptq') -> Any:
    r"""A GPTQ checkpoint's layer as quant_linear takes it: `quant_linear(x, *repack_gptq(...), packed="u4")`."""
@_function
def quant_matmul(input: Array | _Number, weight: Array | _Number, format: str, *, quantize_input: bool = False, out: Array | None = None) -> Any:
    r"""The product of `input` with the transpose of a weight in blocks of a GGUF format, as `linear` with the weight's values."""
@_function
def quant_matmul_backward(dy: Array | _Number, weight: Array | _Number, format: str) -> Any:
    r"""The gradient of quant_matmul with respect to its input, dy @ w. A quantized input has the gradient of one that is not."""
@_function
def quant_matmul_ids(input: Array | _Number, weight: Array | _Number, ids: Array | _Number, format: str, *, quantize_input: bool = False, out: Array | None = None) -> Any:
    r"""Products with experts' weights: y[..., n] = sum_k input[..., k] w[ids[...], n, k], as ggml's mul_mat_id."""
@_function
def quant_matmul_ids_backward(dy: Array | _Number, weight: Array | _Number, ids: Array | _Number, format: str, shape: Any) -> Any:
    r"""The gradient of quant_matmul_ids with respect to its input: each row of dy times the weight that its id names."""
@_function
def nanquantile(input: Array | _Number, q: Array | _Number, dim: _Whole | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Array | None = None) -> Any:
    r"""Quantiles of the numbers along `dim`, NaN where there are none, as torch.nanquantile: the values at q (n - 1) of the order."""
@_function
def quantile(input: Array | _Number, q: Array | _Number, dim: _Whole | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Array | None = None) -> Any:
    r"""Quantiles along `dim`, NaN where there is any, as torch.quantile: the values at q (n - 1) of the order."""
@_function
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = ..., *, generator: _Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""Normal numbers, with the arguments of torch.normal: (mean, std, size) of numbers, or tensors of means and deviations."""
@_function
def normal_(input: Any, mean: Any = 0.0, std: Any = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with normal numbers and returns it, as Tensor.normal_."""
@_function
def rand(*size: Any, generator: _Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""Uniform numbers on [0, 1), with the arguments of torch.rand; see uniform."""
@_function
def rand_like(input: Any, *, generator: _Generator | None = None, dtype: Any = None, device: Any = None) -> Any:
    r"""Uniform numbers on [0, 1) in the shape and element of `input`, or in `dtype`, as torch.rand_like; see uniform."""
@_function
def randn(*size: Any, generator: _Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""Standard normal numbers, with the arguments of torch.randn; see normal."""
@_function
def randn_like(input: Any, *, generator: _Generator | None = None, dtype: Any = None, device: Any = None) -> Any:
    r"""Standard normal numbers in the shape and element of `input`, or in `dtype`, as torch.randn_like; see normal."""
@_function
def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = ..., *, generator: _Generator | None = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    r"""Uniform numbers on [low, high), as numpy.random.uniform; `high` is never reached, in half types neither."""
@_function
def uniform_(input: Any, low: Any = 0.0, high: Any = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with uniform numbers on [low, high) and returns it, as Tensor.uniform_."""
@_function
def adadelta_(params: Any, grads: Any, square_avgs: Any, acc_deltas: Any, *, lr: Any = 1.0, rho: Any = 0.9, eps: Any = 1e-06, weight_decay: Any = 0.0, grad_scale: Any = 1.0, maximize: bool = False) -> Any:
    r"""One Adadelta step in place, over one array or a list of them; see AdadeltaDescriptor for the formula."""
@_function
def adagrad_(params: Any, grads: Any, state_sums: Any, *, step: Any, lr: Any = 0.01, lr_decay: Any = 0.0, eps: Any = 1e-10, weight_decay: Any = 0.0, grad_scale: Any = 1.0, maximize: bool = False) -> Any:
    r"""One Adagrad step in place, over one array or a list of them; see AdagradDescriptor for the formula."""
@_function
def rmsprop_(params: Any, grads: Any, square_avgs: Any, momentum_buffers: Any = None, grad_avgs: Any = None, *, lr: Any = 0.01, alpha: Any = 0.99, eps: Any = 1e-08, momentum: Any = 0.0, weight_decay: Any = 0.0, grad_scale: Any = 1.0, maximize: bool = False) -> Any:
    r"""One RMSprop step in place, over one array or a list of them; see RMSpropDescriptor for the formula."""
@_function
def all(input: Array, dim: _Wholes | None = None, keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""Whether no element along `dim` is zero, as torch.all; u8 for u8. An empty list of dimensions folds none."""
@_function
def amax(input: Array, dim: _Wholes = ..., keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""Maximum over `dim` (all axes by default), as torch.amax."""
@_function
def amax_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Wholes = ..., keepdim: bool = False) -> Any:
    r"""Gradient of amax with respect to `input`, given its result; ties share evenly."""
@_function
def amin(input: Array, dim: _Wholes = ..., keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""Minimum over `dim` (all axes by default), as torch.amin."""
@_function
def amin_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Wholes = ..., keepdim: bool = False) -> Any:
    r"""Gradient of amin with respect to `input`, given its result; ties share evenly."""
@_function
def any(input: Array, dim: _Wholes | None = None, keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""Whether some element along `dim` is not zero, as torch.any; u8 for u8. An empty list of dimensions folds none."""
@_function
def count_nonzero(input: Array, dim: _Wholes | None = None) -> Any:
    r"""How many elements along `dim` (of all by default) are not zero, as torch.count_nonzero (i64)."""
@_function
def logsumexp(input: Array, dim: _Wholes, keepdim: bool = False, *, out: Array | None = None) -> Any:
    r"""log(sum(exp(input))) over `dim`, without overflow, as torch.logsumexp; of integers in f32."""
@_function
def logsumexp_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Wholes, keepdim: bool = False) -> Any:
    r"""Gradient of logsumexp with respect to `input`, from its result."""
@_function
def mean(input: Array, dim: _Wholes | None = None, keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""Mean over `dim` (all axes by default), as torch.mean; of `input` cast to `dtype`."""
@_function
def mean_backward(dy: Array | _Number, input: Array | _Number, dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of mean with respect to `input`, of which only the shape matters."""
@_function
def nanmean(input: Array, dim: _Wholes | None = None, keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""Mean over `dim` of the elements that are no NaN, as torch.nanmean; NaN where there are none; of `input` cast to `dtype`."""
@_function
def nanmean_backward(dy: Array | _Number, input: Array | _Number, dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of nanmean with respect to `input`."""
@_function
def nansum(input: Array, dim: _Wholes | None = None, keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""Sum over `dim` without NaN, as torch.nansum; integers and bool give i64; of `input` cast to `dtype`."""
@_function
def nansum_backward(dy: Array | _Number, input: Array | _Number, dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of nansum with respect to `input`."""
@_function
def prod(input: Array, dim: _Whole | None = None, keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""Product along `dim` (of all elements by default), as torch.prod; integers and bool give i64; of `input` cast to `dtype`."""
@_function
def prod_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Whole | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of prod with respect to `input`, right where elements are zero."""
@_function
def sum(input: Array, dim: _Wholes | None = None, keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""Sum over `dim` (all axes by default), as torch.sum; integers and bool give i64; of `input` cast to `dtype`."""
@_function
def sum_backward(dy: Array | _Number, input: Array | _Number, dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of sum with respect to `input`, of which only the shape matters."""
@_function
def sum_to(input: Array, shape: _Wholes) -> Any:
    r"""`input` summed down to `shape`, which broadcasts to its shape, as torch.Tensor.sum_to_size; sums of integers are i64."""
@_function
def sum_to_backward(dy: Array | _Number, input: Array | _Number, shape: _Wholes = ...) -> Any:
    r"""Gradient of sum_to with respect to `input`: dy broadcast to its shape."""
@_function
def trace(input: Array) -> Any:
    r"""Sum of the diagonal of a matrix, as torch.trace; integers give i64."""
@_function
def trace_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of trace with respect to `input`, of which only the shape matters."""
@_function
def roi_align(input: Array | _Number, boxes: Array | _Number, output_size: _Wholes, spatial_scale: _Number = 1.0, sampling_ratio: _Whole = -1, aligned: bool = False) -> Any:
    r"""Means of regions (image, x1, y1, x2, y2) of (N, C, H, W) as (regions, C, bins, bins), as torchvision.ops.roi_align."""
@_function
def roi_align_backward(dy: Array | _Number, boxes: Array | _Number, shape: Any, output_size: _Wholes, spatial_scale: _Number = 1.0, sampling_ratio: _Whole = -1, aligned: bool = False) -> Any:
    r"""Gradient of roi_align by its input of this shape."""
@_function
def beta(concentration1: Any, concentration0: Any, *, generator: _Generator | None = None) -> Any:
    r"""Beta numbers, of the density x^(a - 1) (1 - x)^(b - 1) / B(a, b), as torch.distributions.Beta. Not torch's stream."""
@_function
def beta_(input: Any, concentration1: Any, concentration0: Any, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with numbers of a beta distribution and returns it; see beta."""
@_function
def binomial(count: Any, prob: Any, generator: _Generator | None = None) -> Any:
    r"""How many of `count` tries succeed, each with probability `prob`, as torch.binomial. Not torch's stream."""
@_function
def binomial_(input: Any, count: Any, prob: Any, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with the successes of `count` tries and returns it. Not torch's stream."""
@_function
def gamma(concentration: Any, rate: Any = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Gamma numbers, of the density rate^a x^(a - 1) exp(-rate x) / G(a), as torch.distributions.Gamma. Not torch's stream."""
@_function
def gamma_(input: Any, concentration: Any, rate: Any = 1.0, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with numbers of a gamma distribution and returns it; see gamma."""
@_function
def poisson(input: Any, generator: _Generator | None = None) -> Any:
    r"""Poisson numbers whose means are the elements of `input`, as torch.poisson. Not torch's stream."""
@_function
def poisson_(input: Any, rate: Any, *, generator: _Generator | None = None) -> Any:
    r"""Fills `input` with Poisson numbers of a mean and returns it. Not torch's stream."""
@_function
def local_response_norm(input: Array, size: _Whole, alpha: _Number = 0.0001, beta: _Number = 0.75, k: _Number = 1.0) -> Any:
    r"""Input / (k + alpha mean)**beta over the squares of `size` channels around, as torch.nn.functional.local_response_norm."""
@_function
def qk_norm_rope(q: Array | _Number, k: Array | _Number, q_weight: Array | _Number, k_weight: Array | _Number, cos: Array | _Number, sin: Array | _Number, eps: Array | _Number | None = None, position: Array | _Number = 0, positions: Array | _Number | None = None, rotary_dim: _Whole | None = None, interleaved: bool = False, weight_offset: _Number = 0.0) -> Any:
    r"""(q, k) with each head normalised and rotated: rms_norm_rope of both, which may have different numbers of heads."""
@_function
def rms_norm_rope(input: Array | _Number, weight: Array | _Number, cos: Array | _Number, sin: Array | _Number, eps: Array | _Number | None = None, position: Array | _Number = 0, positions: Array | _Number | None = None, rotary_dim: _Whole | None = None, interleaved: bool = False, weight_offset: _Number = 0.0) -> Any:
    r"""rope(rms_norm(input, weight), cos, sin) over the last dimension of [..., S, D], in one pass and rounded once."""
@_function
def rms_norm_rope_backward(dy: Array | _Number, input: Array | _Number, weight: Array | _Number, cos: Array | _Number, sin: Array | _Number, rstd: Array | _Number, position: Array | _Number = 0, positions: Array | _Number | None = None, rotary_dim: _Whole | None = None, interleaved: bool = False, weight_offset: _Number = 0.0) -> Any:
    r"""Gradients (dx, dweight) of rms_norm_rope, or dx alone without a weight."""
@_function
def rms_norm_rope_forward(input: Array | _Number, weight: Array | _Number, cos: Array | _Number, sin: Array | _Number, eps: Array | _Number | None = None, position: Array | _Number = 0, positions: Array | _Number | None = None, rotary_dim: _Whole | None = None, interleaved: bool = False, weight_offset: _Number = 0.0) -> Any:
    r"""rms_norm_rope with what its gradient needs: (y, rstd)."""
@_function
def roi_pool(input: Array | _Number, boxes: Array | _Number, output_size: _Wholes, spatial_scale: _Number = 1.0) -> Any:
    r"""Maxima of regions (image, x1, y1, x2, y2) of (N, C, H, W) as (regions, C, bins, bins), as torchvision.ops.roi_pool."""
@_function
def roi_pool_backward(dy: Array | _Number, boxes: Array | _Number, indices: Array | _Number, shape: Any) -> Any:
    r"""Gradient of roi_pool by its input of this shape: dy added up at `indices` of the images that boxes name."""
@_function
def roi_pool_forward(input: Array | _Number, boxes: Array | _Number, output_size: _Wholes, spatial_scale: _Number = 1.0) -> Any:
    r"""roi_pool with what its gradient needs: (y, indices)."""
@_function
def rope(input: Array | _Number, cos: Array | _Number, sin: Array | _Number, position: Array | _Number = 0, positions: Array | _Number | None = None, rotary_dim: _Whole | None = None, interleaved: bool = False) -> Any:
    r"""Rotary position embedding of [..., S, D] with tables [positions, rotary_dim / 2]."""
@_function
def rope_backward(dy: Array | _Number, cos: Array | _Number, sin: Array | _Number, position: Array | _Number = 0, positions: Array | _Number | None = None, rotary_dim: _Whole | None = None, interleaved: bool = False) -> Any:
    r"""Gradient of rope with respect to `input`."""
@_function
def cummax(input: Array, dim: _Whole, *, reverse: bool = False) -> Any:
    r"""(values, indices) of the largest so far along `dim`, as torch.cummax: the last of values that tie; NaN stays."""
@_function
def cummin(input: Array, dim: _Whole, *, reverse: bool = False) -> Any:
    r"""(values, indices) of the smallest so far along `dim`, as torch.cummin: the last of values that tie; NaN stays."""
@_function
def logcumsumexp(input: Array, dim: _Whole, *, reverse: bool = False, exclusive: bool = False, out: Array | None = None) -> Any:
    r"""Logarithm of the running sum of exponentials along `dim`, as torch.logcumsumexp."""
@_function
def logcumsumexp_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Whole, *, reverse: bool = False, exclusive: bool = False) -> Any:
    r"""Gradient of logcumsumexp with respect to `input`, given its result."""
@_function
def affine_grid(theta: Array, size: Any, align_corners: bool | None = None) -> Any:
    r"""The positions theta[n] (x, y, 1) of the places of an image of `size`, as torch.nn.functional.affine_grid."""
@_function
def affine_grid_backward(dy: Array, size: Any, align_corners: bool | None = None) -> Any:
    r"""Gradient of affine_grid by theta."""
@_function
def grid_sample(input: Array | _Number, grid: Array | _Number, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: bool | None = None) -> Any:
    r"""(N, C, H, W) or (N, C, D, H, W) at the positions of grid (N, ..., axes), as torch.nn.functional.grid_sample."""
@_function
def grid_sample_backward(dy: Array | _Number, input: Array | _Number, grid: Array | _Number, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: bool | None = None) -> Any:
    r"""Gradients (dinput, dgrid) of grid_sample."""
@_function
def grid_sampler_2d(input: Array | _Number, grid: Array | _Number, interpolation_mode: _Whole, padding_mode: _Whole, align_corners: bool) -> Any:
    r"""`grid_sample` of (N, C, H, W) by numbers, as torch.grid_sampler_2d: modes 0 bilinear, 1 nearest, 2 bicubic."""
@_function
def grid_sampler_3d(input: Array | _Number, grid: Array | _Number, interpolation_mode: _Whole, padding_mode: _Whole, align_corners: bool) -> Any:
    r"""`grid_sample` of (N, C, D, H, W) by numbers, as torch.grid_sampler_3d."""
@_function
def categorical(logits: Any, num_samples: _Whole | None = None, *, generator: _Generator | None = None) -> Any:
    r"""Draws from the last axis in proportion to exp(logits), with replacement, as torch.distributions.Categorical(logits=)."""
@_function
def filter_logits(logits: Array | _Number, temperature: _Number = 1.0, top_k: _Whole = 0, top_p: _Number = 1.0, min_p: _Number = 0.0, typical_p: _Number = 1.0, *, counts: Array | _Number | None = None, repetition_penalty: _Number = 1.0, presence_penalty: _Number = 0.0, frequency_penalty: _Number = 0.0, mask: Array | _Number | None = None, controls: Array | _Number | None = None, probabilities: bool = False, out: Array | None = None) -> Any:
    r"""Logits of the tokens that sample_tokens would draw from, -inf elsewhere; or their `probabilities`, which add up to 1."""
@_function
def sample_tokens(logits: Any, temperature: Any = 1.0, top_k: Any = 0, top_p: Any = 1.0, min_p: Any = 0.0, typical_p: Any = 1.0, *, counts: Any = None, repetition_penalty: Any = 1.0, presence_penalty: Any = 0.0, frequency_penalty: Any = 0.0, mask: Any = None, num_samples: _Whole | None = None, generator: _Generator | None = None, out: Any = None) -> Any:
    r"""Draws a token, or `num_samples`, from each row of logits: one kernel, which sorts nothing."""
@_function
def dequantize_linear(input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number | None = None, axis: _Whole | None = None, dtype: Any = 'f32', *, packed: Any = None, out: Array | None = None) -> Any:
    r"""The values of codes, as ONNX's DequantizeLinear: (input - zero_point) scale."""
@_function
def dynamic_quantize(input: Array, block_size: Any = None, dtype: Any = 'i8', *, symmetric: bool = True) -> Any:
    r"""Codes of `input` and the scales that their blocks need; with symmetric=False and "u8" ONNX's DynamicQuantizeLinear."""
@_function
def quantize_linear(input: Array | _Number, scale: Array | _Number, zero_point: Array | _Number | None = None, dtype: Any = 'i8', axis: _Whole | None = None, *, saturate: bool = True, out: Array | None = None) -> Any:
    r"""Codes of `input` with given scales, as ONNX's QuantizeLinear: round(input / scale) + zero_point, within their range."""
@_function
def int_mm(input: Array | _Number, mat2: Array | _Number, *, out: Array | None = None) -> Any:
    r"""The product of two matrices of int8 in int32, exact, as torch._int_mm."""
@_function
def scaled_matmul(input: Array | _Number, other: Array | _Number, scale_a: Array | _Number | None = None, scale_b: Array | _Number | None = None, bias: Array | _Number | None = None, zero_a: Array | _Number | None = None, zero_b: Array | _Number | None = None, *, out_dtype: Any = None, activation: str = 'none', out: Array | None = None) -> Any:
    r"""Gives act(scale_a * scale_b * (input @ other) + bias) for i8 or float8_e4m3fn factors, in one kernel."""
@_function
def cumprod(input: Array, dim: _Whole, *, dtype: Any = None, reverse: bool = False, exclusive: bool = False, out: Array | None = None) -> Any:
    r"""Running product along `dim`, as torch.cumprod; integers and bool give i64. Cast to `dtype` before, if it is given."""
@_function
def cumprod_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Whole, *, reverse: bool = False, exclusive: bool = False) -> Any:
    r"""Gradient of cumprod with respect to `input`, given its result; right where elements are zero."""
@_function
def cumsum(input: Array, dim: _Whole, *, dtype: Any = None, reverse: bool = False, exclusive: bool = False, out: Array | None = None) -> Any:
    r"""Running sum along `dim`, as torch.cumsum; integers and bool give i64. Cast to `dtype` before, if it is given."""
@_function
def cumsum_backward(dy: Array | _Number, dim: _Whole, input: Array | _Number | None = None, *, reverse: bool = False, exclusive: bool = False) -> Any:
    r"""Gradient of cumsum with respect to its input, of whose element it is where `input` is given."""
@_function
def index_add(input: Array | _Number, dim: _Whole, index: Array | _Number, source: Array | _Number, *, alpha: Any = 1, out: Array | None = None) -> Any:
    r"""`input` with `alpha` times slices of `source` added at `index` along `dim`, as torch.index_add."""
@_function
def index_copy(input: Array | _Number, dim: _Whole, index: Array | _Number, source: Array | _Number, *, out: Array | None = None) -> Any:
    r"""`input` with slices of `source` written to `index` along `dim`, as torch.index_copy; the last of equal ones stays."""
@_function
def index_fill(input: Array | _Number, dim: _Whole, index: Array | _Number, value: Any) -> Any:
    r"""`input` with `value` at the slices `index` along `dim`, as torch.index_fill: negative ones count from the end."""
@_function
def scatter(input: Array | _Number, dim: _Whole, index: Array | _Number, src: Array | _Number | None = None, *, value: Any = None, reduce: str | None = None, out: Array | None = None) -> Any:
    r"""`input` with elements of `src`, or one number, written to `index` along `dim`, as torch.scatter."""
@_function
def scatter_add(input: Array | _Number, dim: _Whole, index: Array | _Number, src: Array | _Number, *, out: Array | None = None) -> Any:
    r"""`input` with elements of `src` added at `index` along `dim`, as torch.scatter_add."""
@_function
def scatter_reduce(input: Array | _Number, dim: _Whole, index: Array | _Number, src: Array | _Number, reduce: str, *, include_self: bool = True, out: Array | None = None) -> Any:
    r"""`input` folded with elements of `src` at `index` along `dim`, as torch.scatter_reduce: sum, prod, mean, amax, amin."""
@_function
def bucketize(input: Array | _Number, boundaries: Array | _Number, *, out_int32: bool = False, right: bool = False, out: Array | None = None) -> Any:
    r"""Between which of the sorted `boundaries` each of `input` lies, as torch.bucketize."""
@_function
def searchsorted(sorted_sequence: Array | _Number, input: Array | _Number, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Array | _Number | None = None, out: Array | None = None) -> Any:
    r"""Where in `sorted_sequence` each of `input` belongs, as torch.searchsorted; NaN belongs behind every number."""
@_function
def segment_max(data: Any, segment_ids: Any, num_segments: _Whole | None = None) -> Any:
    r"""The largest of the slices of each segment: y[s] is that of all data[i] whose segment_ids[i] is s."""
@_function
def segment_mean(data: Any, segment_ids: Any, num_segments: _Whole | None = None) -> Any:
    r"""The mean of the slices of each segment: y[s] is that of all data[i] whose segment_ids[i] is s."""
@_function
def segment_min(data: Any, segment_ids: Any, num_segments: _Whole | None = None) -> Any:
    r"""The smallest of the slices of each segment: y[s] is that of all data[i] whose segment_ids[i] is s."""
@_function
def segment_prod(data: Any, segment_ids: Any, num_segments: _Whole | None = None) -> Any:
    r"""The product of the slices of each segment: y[s] is that of all data[i] whose segment_ids[i] is s."""
@_function
def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: _Whole = 0, unsafe: bool = False, initial: _Number | None = None) -> Any:
    r"""Folds of neighbours along `axis`, as torch.segment_reduce: each segment begins where the one before it ends."""
@_function
def segment_softmax(data: Any, segment_ids: Any, num_segments: _Whole | None = None) -> Any:
    r"""exp(data[i] - m) / the sum of these over the segment of i, where m is its largest: a softmax of each segment."""
@_function
def segment_sum(data: Any, segment_ids: Any, num_segments: _Whole | None = None) -> Any:
    r"""The sum of the slices of each segment: y[s] is that of all data[i] whose segment_ids[i] is s."""
@_function
def kthvalue(input: Array, k: _Whole, dim: _Whole = -1, keepdim: bool = False) -> Any:
    r"""(values, indices) of the `k`-th smallest along `dim`, as torch.kthvalue; of ties by position."""
@_function
def median(input: Array, dim: _Whole | None = None, keepdim: bool = False) -> Any:
    r"""The lower median of `input`, NaN where there is any: of all elements, or (values, indices) along `dim`, as torch.median."""
@_function
def nanmedian(input: Array, dim: _Whole | None = None, keepdim: bool = False) -> Any:
    r"""The lower median of the numbers in `input`: of all elements, or (values, indices) along `dim`, as torch.nanmedian."""
@_function
def topk(input: Array, k: _Whole, dim: _Whole = -1, largest: bool = True, sorted: bool = True) -> Any:
    r"""(values, indices) of the `k` largest along `dim`, as torch.topk; in order, whatever `sorted` says."""
@_function
def log_softmax(input: Array, dim: _Whole, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""log(softmax(input)) along `dim`, as torch.log_softmax; of `input` cast to `dtype`, if it is given."""
@_function
def log_softmax_backward(dy: Array | _Number, result: Array | _Number, dim: _Whole, input: Array | _Number | None = None) -> Any:
    r"""Gradient of log_softmax, from its result; of the element of `input`, if it is given."""
@_function
def scaled_softmax(input: Array | _Number, dim: _Whole, scale: _Number = 1.0, mask: Array | _Number | None = None, *, out: Array | None = None) -> Any:
    r"""softmax(scale * input) along `dim` of the elements where `mask` (bool) is true; the others are 0."""
@_function
def scaled_softmax_backward(dy: Array | _Number, result: Array | _Number, dim: _Whole, scale: _Number = 1.0) -> Any:
    r"""Gradient of scaled_softmax, from its result."""
@_function
def softmax(input: Array, dim: _Whole, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""exp(input) / sum(exp(input)) along `dim`, as torch.softmax; of `input` cast to `dtype`, if it is given."""
@_function
def softmax_backward(dy: Array | _Number, result: Array | _Number, dim: _Whole, input: Array | _Number | None = None) -> Any:
    r"""Gradient of softmax, from its result; of the element of `input`, if it is given."""
@_function
def softmin(input: Array, dim: _Whole, *, dtype: Any = None) -> Any:
    r"""softmax(-input) along `dim`, as torch's softmin: a plan of scaled_softmax with the scale -1; cast to `dtype` before."""
@_function
def argsort(input: Array, dim: _Whole = -1, descending: bool = False, *, stable: bool = False) -> Any:
    r"""Positions that sort `input` along `dim`, as torch.argsort (i64); always stable, so `stable` changes nothing."""
@_function
def lexsort(*keys: Array | Sequence[Array], dim: _Whole = -1) -> Any:
    r"""Positions that sort by several keys along `dim`, as numpy.lexsort: by the last one, where that ties by the one before."""
@_function
def msort(input: Array, *, out: Array | None = None) -> Any:
    r"""`input` sorted along its first dimension, as torch.msort."""
@_function
def sort(input: Array, dim: _Whole = -1, descending: bool = False, stable: bool = False) -> Any:
    r"""(values, indices) of `input` sorted along `dim`, as torch.sort; always stable, so `stable` changes nothing."""
@_function
def entmax15(input: Array, dim: _Whole = -1, *, out: Array | None = None) -> Any:
    r"""max(input / 2 - t, 0)^2, which adds up to 1 along `dim`: 1.5-entmax, between softmax and sparsemax."""
@_function
def entmax15_backward(dy: Array | _Number, result: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of entmax15, from its result."""
@_function
def sparsemax(input: Array, dim: _Whole = -1, *, out: Array | None = None) -> Any:
    r"""The point nearest to `input` of those that are not negative and add up to 1 along `dim`: max(input - t, 0)."""
@_function
def sparsemax_backward(dy: Array | _Number, result: Array | _Number, dim: _Whole = -1) -> Any:
    r"""Gradient of sparsemax, from its result."""
@_function
def addcdiv(input: Array | _Number, tensor1: Array | _Number, tensor2: Array | _Number, *, value: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""`input + value * tensor1 / tensor2`, as torch.addcdiv: of floats only, as there."""
@_function
def addcdiv_backward(dy: Array | _Number, input: Array | _Number, tensor1: Array | _Number, tensor2: Array | _Number, *, value: Array | _Number = 1) -> Any:
    r"""Gradients of addcdiv with respect to its tensors, in the broadcast shape."""
@_function
def addcmul(input: Array | _Number, tensor1: Array | _Number, tensor2: Array | _Number, *, value: Array | _Number = 1, out: Array | None = None) -> Any:
    r"""`input + value * tensor1 * tensor2`, as torch.addcmul, with broadcasting and type promotion."""
@_function
def addcmul_backward(dy: Array | _Number, input: Array | _Number, tensor1: Array | _Number, tensor2: Array | _Number, *, value: Array | _Number = 1) -> Any:
    r"""Gradients of addcmul with respect to its tensors, in the broadcast shape."""
@_function
def clamp(input: Array | _Number, min: Array | _Number | None = None, max: Array | _Number | None = None, *, out: Array | None = None) -> Any:
    r"""`input` held between two bounds, as torch.clamp; they are numbers or tensors that broadcast, either may be None."""
@_function
def clamp_backward(dy: Array | _Number, input: Array | _Number, min: Array | _Number | None = None, max: Array | _Number | None = None) -> Any:
    r"""Gradient of clamp; of the bounds, too, where they are tensors."""
@_function
def clip(input: Array | _Number, min: Array | _Number | None = None, max: Array | _Number | None = None, *, out: Array | None = None) -> Any:
    r"""`input` held between two bounds, as torch.clamp; they are numbers or tensors that broadcast, either may be None."""
@_function
def lerp(input: Array | _Number, end: Array | _Number, weight: Array | _Number, *, out: Array | None = None) -> Any:
    r"""`input + weight * (end - input)`, as torch.lerp; `weight` is a number or a tensor, all of one element."""
@_function
def lerp_backward(dy: Array | _Number, input: Array | _Number, end: Array | _Number, weight: Array | _Number) -> Any:
    r"""Gradients of lerp with respect to its tensors, in the broadcast shape."""
@_function
def where(condition: Array | _Number, input: Array | _Number, other: Array | _Number, *, out: Array | None = None) -> Any:
    r"""`input` where `condition` holds, else `other`, as torch.where, with broadcasting and type promotion."""
@_function
def where_backward(dy: Array | _Number, condition: Array | _Number, input: Array | _Number, other: Array | _Number) -> Any:
    r"""Gradients of where with respect to the choices that are tensors, in the broadcast shape."""
@_function
def abs(input: Array, *, out: Array | None = None) -> Any:
    r"""y = |x|; integers wrap, as torch.abs. Integers are promoted as in torch."""
@_function
def abs_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of abs from its input."""
@_function
def absolute(input: Array, *, out: Array | None = None) -> Any:
    r"""y = |x|; integers wrap, as torch.abs. Integers are promoted as in torch."""
@_function
def acos(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arccos(x), as torch.acos. Integers are promoted as in torch."""
@_function
def acos_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of acos from its input."""
@_function
def acosh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arcosh(x), as torch.acosh. Integers are promoted as in torch."""
@_function
def acosh_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of acosh from its input."""
@_function
def affine(input: Array, scale: Array | _Number, shift: Array | _Number, *, out: Array | None = None) -> Any:
    r"""y = scale x + shift; integers wrap."""
@_function
def affine_backward(dy: Array | _Number, input: Array | _Number, scale: Array | _Number, shift: Array | _Number) -> Any:
    r"""Gradient of affine from its input."""
@_function
def arccos(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arccos(x), as torch.acos. Integers are promoted as in torch."""
@_function
def arccosh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arcosh(x), as torch.acosh. Integers are promoted as in torch."""
@_function
def arcsin(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arcsin(x), as torch.asin. Integers are promoted as in torch."""
@_function
def arcsinh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arsinh(x), as torch.asinh. Integers are promoted as in torch."""
@_function
def arctan(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arctan(x), as torch.atan. Integers are promoted as in torch."""
@_function
def arctanh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = artanh(x), as torch.atanh. Integers are promoted as in torch."""
@_function
def asin(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arcsin(x), as torch.asin. Integers are promoted as in torch."""
@_function
def asin_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of asin from its input."""
@_function
def asinh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arsinh(x), as torch.asinh. Integers are promoted as in torch."""
@_function
def asinh_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of asinh from its input."""
@_function
def atan(input: Array, *, out: Array | None = None) -> Any:
    r"""y = arctan(x), as torch.atan. Integers are promoted as in torch."""
@_function
def atan_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of atan from its input."""
@_function
def atanh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = artanh(x), as torch.atanh. Integers are promoted as in torch."""
@_function
def atanh_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of atanh from its input."""
@_function
def bitwise_not(input: Array, *, out: Array | None = None) -> Any:
    r"""y = ~x; not x for bool, as torch.bitwise_not. Integers are promoted as in torch."""
@_function
def cbrt(input: Array, *, out: Array | None = None) -> Any:
    r"""y = the real cube root of x. Integers are promoted as in torch."""
@_function
def cbrt_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of cbrt from its output."""
@_function
def ceil(input: Array, *, out: Array | None = None) -> Any:
    r"""the smallest integer >= x, as torch.ceil. Integers are promoted as in torch."""
@_function
def celu(input: Array, alpha: Array | _Number = 1.0, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x > 0 ? x : alpha (e^(x / alpha) - 1), as torch.nn.functional.celu."""
@_function
def celu_backward(dy: Array | _Number, input: Array | _Number, alpha: Array | _Number = 1.0) -> Any:
    r"""Gradient of celu from its input."""
@_function
def clz(input: Array, *, out: Array | None = None) -> Any:
    r"""the number of zero bits above the highest one. Integers are promoted as in torch."""
@_function
def cos(input: Array, *, out: Array | None = None) -> Any:
    r"""y = cos(x), as torch.cos. Integers are promoted as in torch."""
@_function
def cos_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of cos from its input."""
@_function
def cosh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = cosh(x), as torch.cosh. Integers are promoted as in torch."""
@_function
def cosh_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of cosh from its input."""
@_function
def ctz(input: Array, *, out: Array | None = None) -> Any:
    r"""the number of zero bits below the lowest one. Integers are promoted as in torch."""
@_function
def cube(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x * x * x. Integers are promoted as in torch."""
@_function
def cube_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of cube from its input."""
@_function
def deg2rad(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x pi / 180, as torch.deg2rad. Integers are promoted as in torch."""
@_function
def deg2rad_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of deg2rad from its input."""
@_function
def digamma(input: Array, *, out: Array | None = None) -> Any:
    r"""y = the derivative of ln |gamma(x)|, as torch.digamma. Integers are promoted as in torch."""
@_function
def digamma_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of digamma from its input."""
@_function
def elu(input: Array, alpha: Array | _Number = 1.0, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x > 0 ? x : alpha (e^x - 1), as torch.nn.functional.elu."""
@_function
def elu_backward(dy: Array | _Number, input: Array | _Number, alpha: Array | _Number = 1.0) -> Any:
    r"""Gradient of elu from its input."""
@_function
def erf(input: Array, *, out: Array | None = None) -> Any:
    r"""y = erf(x), as torch.erf. Integers are promoted as in torch."""
@_function
def erf_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of erf from its input."""
@_function
def erfc(input: Array, *, out: Array | None = None) -> Any:
    r"""y = 1 - erf(x), right for large x, as torch.erfc. Integers are promoted as in torch."""
@_function
def erfc_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of erfc from its input."""
@_function
def erfinv(input: Array, *, out: Array | None = None) -> Any:
    r"""y = the number with erf(y) = x, as torch.erfinv. Integers are promoted as in torch."""
@_function
def erfinv_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of erfinv from its output."""
@_function
def exp(input: Array, *, out: Array | None = None) -> Any:
    r"""y = e^x, as torch.exp. Integers are promoted as in torch."""
@_function
def exp2(input: Array, *, out: Array | None = None) -> Any:
    r"""y = 2^x, as torch.exp2. Integers are promoted as in torch."""
@_function
def exp2_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of exp2 from its output."""
@_function
def exp_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of exp from its output."""
@_function
def expm1(input: Array, *, out: Array | None = None) -> Any:
    r"""y = e^x - 1, right for small x, as torch.expm1. Integers are promoted as in torch."""
@_function
def expm1_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of expm1 from its output."""
@_function
def fix(input: Array, *, out: Array | None = None) -> Any:
    r"""x without its fraction, as torch.trunc. Integers are promoted as in torch."""
@_function
def floor(input: Array, *, out: Array | None = None) -> Any:
    r"""the largest integer <= x, as torch.floor. Integers are promoted as in torch."""
@_function
def frac(input: Array, *, out: Array | None = None) -> Any:
    r"""x - trunc(x), as torch.frac."""
@_function
def frac_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of frac from its input."""
@_function
def gelu(input: Array, approximate: str = 'none') -> Any:
    r"""`x * Phi(x)`, as torch.nn.functional.gelu; `approximate` is "none" or "tanh"."""
@_function
def gelu_backward(dy: Array | _Number, input: Array | _Number, approximate: str = 'none') -> Any:
    r"""Gradient of gelu from its input."""
@_function
def hardshrink(input: Array, lambd: Array | _Number = 0.5, *, out: Array | None = None) -> Any:
    r"""y = |x| <= lambd ? 0 : x, as torch.nn.functional.hardshrink."""
@_function
def hardshrink_backward(dy: Array | _Number, input: Array | _Number, lambd: Array | _Number = 0.5) -> Any:
    r"""Gradient of hardshrink from its input."""
@_function
def hardsigmoid(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = min(max(x + 3, 0), 6) / 6, as torch.nn.functional.hardsigmoid."""
@_function
def hardsigmoid_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of hardsigmoid from its input."""
@_function
def hardswish(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x min(max(x + 3, 0), 6) / 6, as torch.nn.functional.hardswish."""
@_function
def hardswish_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of hardswish from its input."""
@_function
def hardtanh(input: Array, min_val: Array | _Number = -1.0, max_val: Array | _Number = 1.0, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = min(max(x, min_val), max_val); NaN is kept, as torch.nn.functional.hardtanh."""
@_function
def hardtanh_backward(dy: Array | _Number, input: Array | _Number, min_val: Array | _Number = -1.0, max_val: Array | _Number = 1.0) -> Any:
    r"""Gradient of hardtanh from its input."""
@_function
def isfinite(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x is neither infinite nor NaN, as torch.isfinite. Integers are promoted as in torch."""
@_function
def isinf(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x is infinite, as torch.isinf. Integers are promoted as in torch."""
@_function
def isnan(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x is NaN, as torch.isnan. Integers are promoted as in torch."""
@_function
def leaky_relu(input: Array, negative_slope: Array | _Number = 0.01, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x > 0 ? x : negative_slope x, as torch.nn.functional.leaky_relu."""
@_function
def leaky_relu_backward(dy: Array | _Number, input: Array | _Number, negative_slope: Array | _Number = 0.01) -> Any:
    r"""Gradient of leaky_relu from its input."""
@_function
def lgamma(input: Array, *, out: Array | None = None) -> Any:
    r"""y = ln |gamma(x)|, as torch.lgamma. Integers are promoted as in torch."""
@_function
def lgamma_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of lgamma from its input."""
@_function
def log(input: Array, *, out: Array | None = None) -> Any:
    r"""y = ln(x), as torch.log. Integers are promoted as in torch."""
@_function
def log10(input: Array, *, out: Array | None = None) -> Any:
    r"""y = log10(x), as torch.log10. Integers are promoted as in torch."""
@_function
def log10_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of log10 from its input."""
@_function
def log1p(input: Array, *, out: Array | None = None) -> Any:
    r"""y = ln(1 + x), right for small x, as torch.log1p. Integers are promoted as in torch."""
@_function
def log1p_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of log1p from its input."""
@_function
def log2(input: Array, *, out: Array | None = None) -> Any:
    r"""y = log2(x), as torch.log2. Integers are promoted as in torch."""
@_function
def log2_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of log2 from its input."""
@_function
def log_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of log from its input."""
@_function
def logical_not(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x == 0, as torch.logical_not. Integers are promoted as in torch."""
@_function
def logit(input: Array, eps: Array | _Number | None = None, *, out: Array | None = None) -> Any:
    r"""y = ln(z / (1 - z)), z being x held within [eps, 1 - eps (rounded)] unless eps is negative, as torch.logit. Integers are promoted as in torch."""
@_function
def logit_backward(dy: Array | _Number, input: Array | _Number, eps: Array | _Number | None = None) -> Any:
    r"""Gradient of logit from its input."""
@_function
def logsigmoid(input: Array, *, out: Array | None = None) -> Any:
    r"""y = -ln(1 + e^-x), as torch.nn.functional.logsigmoid."""
@_function
def logsigmoid_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of logsigmoid from its input."""
@_function
def mish(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x tanh(ln(1 + e^x)), as torch.nn.functional.mish."""
@_function
def mish_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of mish from its input."""
@_function
def nan_to_num(input: Array, nan: Array | _Number = 0.0, posinf: Array | _Number | None = None, neginf: Array | _Number | None = None, *, out: Array | None = None) -> Any:
    r"""NaN and infinities replaced by numbers, infinities by the largest ones where none is given, as torch.nan_to_num."""
@_function
def nan_to_num_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of nan_to_num: zero where its input is not finite."""
@_function
def neg(input: Array, *, out: Array | None = None) -> Any:
    r"""y = -x; integers wrap, as torch.neg. Integers are promoted as in torch."""
@_function
def neg_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of neg from its input."""
@_function
def negative(input: Array, *, out: Array | None = None) -> Any:
    r"""y = -x; integers wrap, as torch.neg. Integers are promoted as in torch."""
@_function
def popcount(input: Array, *, out: Array | None = None) -> Any:
    r"""the number of one bits. Integers are promoted as in torch."""
@_function
def positive(input: Array) -> Any:
    r"""A copy of the input, which must be a number, as torch.positive."""
@_function
def rad2deg(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x 180 / pi, as torch.rad2deg. Integers are promoted as in torch."""
@_function
def rad2deg_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of rad2deg from its input."""
@_function
def reciprocal(input: Array, *, out: Array | None = None) -> Any:
    r"""y = 1 / x, as torch.reciprocal. Integers are promoted as in torch."""
@_function
def reciprocal_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of reciprocal from its output."""
@_function
def relu(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = max(x, 0); NaN is kept, as torch.nn.functional.relu."""
@_function
def relu6(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = min(max(x, 0), 6); NaN is kept, as torch.nn.functional.relu6."""
@_function
def relu6_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of relu6 from its input."""
@_function
def relu_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of relu from its output."""
@_function
def round(input: Array, *, decimals: _Whole = 0, out: Array | None = None) -> Any:
    r"""The nearest multiple of 10^-decimals, ties to even, as torch.round; `decimals` needs a float element."""
@_function
def rsqrt(input: Array, *, out: Array | None = None) -> Any:
    r"""y = 1 / sqrt(x), as torch.rsqrt. Integers are promoted as in torch."""
@_function
def rsqrt_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of rsqrt from its output."""
@_function
def selu(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = scale (x > 0 ? x : alpha (e^x - 1)), scale 1.0507009873554805, alpha 1.6732632423543772, as torch.nn.functional.selu."""
@_function
def selu_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of selu from its input."""
@_function
def sgn(input: Array, *, out: Array | None = None) -> Any:
    r"""y = (x > 0) - (x < 0); 0 for NaN, as torch.sign. Integers are promoted as in torch."""
@_function
def sigmoid(input: Array, *, out: Array | None = None) -> Any:
    r"""y = 1 / (1 + e^-x), as torch.sigmoid. Integers are promoted as in torch."""
@_function
def sigmoid_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of sigmoid from its output."""
@_function
def sign(input: Array, *, out: Array | None = None) -> Any:
    r"""y = (x > 0) - (x < 0); 0 for NaN, as torch.sign. Integers are promoted as in torch."""
@_function
def signbit(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x has a minus sign, also as -0 and NaN, as torch.signbit. Integers are promoted as in torch."""
@_function
def silu(input: Array, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x / (1 + e^-x), as torch.nn.functional.silu."""
@_function
def silu_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of silu from its input."""
@_function
def sin(input: Array, *, out: Array | None = None) -> Any:
    r"""y = sin(x), as torch.sin. Integers are promoted as in torch."""
@_function
def sin_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of sin from its input."""
@_function
def sinc(input: Array, *, out: Array | None = None) -> Any:
    r"""y = sin(pi x) / (pi x); 1 for 0, as torch.sinc. Integers are promoted as in torch."""
@_function
def sinc_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of sinc from its input."""
@_function
def sinh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = sinh(x), as torch.sinh. Integers are promoted as in torch."""
@_function
def sinh_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of sinh from its input."""
@_function
def softplus(input: Array, beta: Array | _Number = 1.0, threshold: Array | _Number = 20.0, *, out: Array | None = None) -> Any:
    r"""y = ln(1 + e^(beta x)) / beta; x where beta x > threshold, as torch.nn.functional.softplus."""
@_function
def softplus_backward(dy: Array | _Number, input: Array | _Number, beta: Array | _Number = 1.0, threshold: Array | _Number = 20.0) -> Any:
    r"""Gradient of softplus from its input."""
@_function
def softshrink(input: Array, lambd: Array | _Number = 0.5, *, out: Array | None = None) -> Any:
    r"""y = x > lambd ? x - lambd : x < -lambd ? x + lambd : 0; NaN is kept, as torch.nn.functional.softshrink."""
@_function
def softshrink_backward(dy: Array | _Number, input: Array | _Number, lambd: Array | _Number = 0.5) -> Any:
    r"""Gradient of softshrink from its input."""
@_function
def softsign(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x / (1 + |x|), as torch.nn.functional.softsign. Integers are promoted as in torch."""
@_function
def softsign_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of softsign from its input."""
@_function
def sqrt(input: Array, *, out: Array | None = None) -> Any:
    r"""y = sqrt(x), as torch.sqrt. Integers are promoted as in torch."""
@_function
def sqrt_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of sqrt from its output."""
@_function
def square(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x * x; integers wrap, as torch.square. Integers are promoted as in torch."""
@_function
def square_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of square from its input."""
@_function
def step(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x > 0 ? 1 : 0; 0 for NaN. Integers are promoted as in torch."""
@_function
def tan(input: Array, *, out: Array | None = None) -> Any:
    r"""y = tan(x), as torch.tan. Integers are promoted as in torch."""
@_function
def tan_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of tan from its output."""
@_function
def tanh(input: Array, *, out: Array | None = None) -> Any:
    r"""y = tanh(x), as torch.tanh. Integers are promoted as in torch."""
@_function
def tanh_backward(dy: Array | _Number, output: Array | _Number) -> Any:
    r"""Gradient of tanh from its output."""
@_function
def tanhshrink(input: Array, *, out: Array | None = None) -> Any:
    r"""y = x - tanh(x), as torch.nn.functional.tanhshrink. Integers are promoted as in torch."""
@_function
def tanhshrink_backward(dy: Array | _Number, input: Array | _Number) -> Any:
    r"""Gradient of tanhshrink from its input."""
@_function
def threshold(input: Array, threshold: Array | _Number, value: Array | _Number, inplace: bool = False, *, out: Array | None = None) -> Any:
    r"""y = x > threshold ? x : value; NaN is kept, as torch.nn.functional.threshold."""
@_function
def threshold_backward(dy: Array | _Number, input: Array | _Number, threshold: Array | _Number, value: Array | _Number) -> Any:
    r"""Gradient of threshold from its input."""
@_function
def trunc(input: Array, *, out: Array | None = None) -> Any:
    r"""x without its fraction, as torch.trunc. Integers are promoted as in torch."""
@_function
def unique(input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: _Whole | None = None, *, return_index: bool = False) -> Any:
    r"""Each value of `input` once, or each slice along `dim`, in order, as torch.unique: the results that are asked for."""
@_function
def unique_consecutive(input: Array, return_inverse: bool = False, return_counts: bool = False, dim: _Whole | None = None, *, return_index: bool = False) -> Any:
    r"""`input` without what is equal to its neighbour before it, as torch.unique_consecutive: the results that are asked for."""
@_function
def cosine_similarity(x1: Array | _Number, x2: Array | _Number, dim: _Whole = 1, eps: _Number = 1e-08) -> Any:
    r"""Cosine of the angle between x1 and x2 along `dim` of their common shape, as torch's cosine_similarity."""
@_function
def cosine_similarity_backward(dy: Array | _Number, x1: Array | _Number, x2: Array | _Number, dim: _Whole = 1, eps: _Number = 1e-08) -> Any:
    r"""Gradients of cosine_similarity with respect to x1 and x2, in their common shape."""
@_function
def norm(input: Array, p: _Number | str | None = 'fro', dim: _Wholes | None = None, keepdim: bool = False, out: Array | None = None) -> Any:
    r"""(sum |input|^p)^(1/p) over `dim` (all axes by default), as torch.norm; p "fro" is 2."""
@_function
def norm_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, p: _Number | str | None = 'fro', dim: _Wholes | None = None, keepdim: bool = False) -> Any:
    r"""Gradient of norm with respect to `input`, given its result."""
@_function
def std(input: Array, dim: _Wholes | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: _Number | None = None, out: Array | None = None) -> Any:
    r"""Standard deviation over `dim` (all axes by default), as torch.std: over the count less `correction`, 1 by default."""
@_function
def std_backward(dy: Array | _Number, input: Array | _Number, result: Array | _Number, dim: _Wholes | None = None, correction: _Number | None = None, keepdim: bool = False, unbiased: bool | None = None) -> Any:
    r"""Gradient of std with respect to `input`, given its result."""
@_function
def std_mean(input: Array, dim: _Wholes | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: _Number | None = None) -> Any:
    r"""(standard deviation, mean) over `dim` (all axes by default), as torch.std_mean: over the count less `correction`, 1 by default."""
@_function
def std_mean_backward(dstd: Array | _Number, dmean: Array | _Number, input: Array | _Number, std: Array | _Number, dim: _Wholes | None = None, correction: _Number | None = None, keepdim: bool = False, unbiased: bool | None = None) -> Any:
    r"""Gradient of std_mean with respect to `input`, given the standard deviation."""
@_function
def var(input: Array, dim: _Wholes | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: _Number | None = None, out: Array | None = None) -> Any:
    r"""Variance over `dim` (all axes by default), as torch.var: over the count less `correction`, 1 by default."""
@_function
def var_backward(dy: Array | _Number, input: Array | _Number, dim: _Wholes | None = None, correction: _Number | None = None, keepdim: bool = False, unbiased: bool | None = None) -> Any:
    r"""Gradient of var with respect to `input`."""
@_function
def var_mean(input: Array, dim: _Wholes | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: _Number | None = None) -> Any:
    r"""(variance, mean) over `dim` (all axes by default), as torch.var_mean: over the count less `correction`, 1 by default."""
@_function
def var_mean_backward(dvar: Array | _Number, dmean: Array | _Number, input: Array | _Number, dim: _Wholes | None = None, correction: _Number | None = None, keepdim: bool = False, unbiased: bool | None = None) -> Any:
    r"""Gradient of var_mean with respect to `input`."""
@_function
def normalize(input: Array, p: _Number = 2.0, dim: Any = 1, eps: _Number = 1e-12, out: Array | None = None) -> Any:
    r"""Values over max(norm(input, p) along `dim`, eps), as torch's normalize; of halves in f32, rounded once."""
@_function
def vector_norm(x: Array, ord: _Number = 2, dim: _Wholes | None = None, keepdim: bool = False, *, dtype: Any = None, out: Array | None = None) -> Any:
    r"""(sum |x|^ord)^(1/ord) over `dim` (all axes by default), as torch.linalg.vector_norm, of x cast to `dtype`."""

_linalg_cross = linalg_cross
_linalg_diagonal = linalg_diagonal
_linalg_matmul = matmul
_linalg_matrix_norm = matrix_norm
_linalg_matrix_power = matrix_power
_linalg_multi_dot = multi_dot
_linalg_vander = linalg_vander
_linalg_vecdot = vecdot
_linalg_vector_norm = vector_norm
class linalg:
    cross = _linalg_cross
    diagonal = _linalg_diagonal
    matmul = _linalg_matmul
    matrix_norm = _linalg_matrix_norm
    matrix_power = _linalg_matrix_power
    multi_dot = _linalg_multi_dot
    vander = _linalg_vander
    vecdot = _linalg_vecdot
    vector_norm = _linalg_vector_norm

_special_digamma = digamma
_special_entr = entr
_special_erf = erf
_special_erfc = erfc
_special_erfinv = erfinv
_special_exp2 = exp2
_special_expit = sigmoid
_special_expm1 = expm1
_special_gammaln = lgamma
_special_log1p = log1p
_special_log_softmax = log_softmax
_special_logit = logit
_special_logsumexp = logsumexp
_special_multigammaln = mvlgamma
_special_ndtr = ndtr
_special_psi = digamma
_special_round = round
_special_sinc = sinc
_special_softmax = softmax
_special_xlog1py = xlog1py
_special_xlogy = xlogy
class special:
    digamma = _special_digamma
    entr = _special_entr
    erf = _special_erf
    erfc = _special_erfc
    erfinv = _special_erfinv
    exp2 = _special_exp2
    expit = _special_expit
    expm1 = _special_expm1
    gammaln = _special_gammaln
    log1p = _special_log1p
    log_softmax = _special_log_softmax
    logit = _special_logit
    logsumexp = _special_logsumexp
    multigammaln = _special_multigammaln
    ndtr = _special_ndtr
    psi = _special_psi
    round = _special_round
    sinc = _special_sinc
    softmax = _special_softmax
    xlog1py = _special_xlog1py
    xlogy = _special_xlogy

_masked_amax = masked_amax
_masked_amin = masked_amin
_masked_argmax = masked_argmax
_masked_argmin = masked_argmin
_masked_cumprod = masked_cumprod
_masked_cumsum = masked_cumsum
_masked_log_softmax = masked_log_softmax
_masked_logaddexp = masked_logaddexp
_masked_logsumexp = masked_logsumexp
_masked_mean = masked_mean
_masked_norm = masked_norm
_masked_normalize = masked_normalize
_masked_prod = masked_prod
_masked_softmax = masked_softmax
_masked_softmin = masked_softmin
_masked_std = masked_std
_masked_sum = masked_sum
_masked_var = masked_var
class masked:
    amax = _masked_amax
    amin = _masked_amin
    argmax = _masked_argmax
    argmin = _masked_argmin
    cumprod = _masked_cumprod
    cumsum = _masked_cumsum
    log_softmax = _masked_log_softmax
    logaddexp = _masked_logaddexp
    logsumexp = _masked_logsumexp
    mean = _masked_mean
    norm = _masked_norm
    normalize = _masked_normalize
    prod = _masked_prod
    softmax = _masked_softmax
    softmin = _masked_softmin
    std = _masked_std
    sum = _masked_sum
    var = _masked_var
