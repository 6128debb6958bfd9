"""Names that people look for: what is spelt much alike here, called otherwise, a method of arrays, or not there."""

from __future__ import annotations

from collections.abc import Iterable

# What other libraries call a function of bc.functional.
OTHERWISE: dict[str, str] = {
    "adadelta": "adadelta_", "adagrad": "adagrad_", "adam": "adam_", "adamw": "adamw_", "attention": "scaled_dot_product_attention",
    "bce_loss": "binary_cross_entropy", "bce_with_logits": "binary_cross_entropy_with_logits", "concatenate": "cat",
    "conv": "conv2d", "conv_general_dilated": "conv2d", "convolution": "conv2d", "cross_entropy_loss": "cross_entropy",
    "dot_general": "tensordot", "embedding_lookup": "embedding", "flash_attention": "scaled_dot_product_attention",
    "fused_rms_norm": "rms_norm", "gather_elements": "gather", "gemm": "addmm", "kl_divergence": "kl_div", "lion": "lion_",
    "logsumexp_reduce": "logsumexp", "mae_loss": "l1_loss", "mse": "mse_loss", "multi_head_attention": "scaled_dot_product_attention",
    "native_layer_norm": "layer_norm", "nll": "nll_loss", "power": "pow", "reduce_max": "amax", "reduce_mean": "mean",
    "reduce_min": "amin", "reduce_sum": "sum", "rms_normalization": "rms_norm", "rotary_embedding": "rope",
    "apply_rotary_pos_emb": "rope", "scaled_mm": "scaled_matmul", "sdpa": "scaled_dot_product_attention", "select": "where",
    "sgd": "sgd_", "swish": "silu", "top_k": "topk", "cast_to": "cast", "astype": "cast", "to": "cast", "grouped_mm": "quant_matmul_ids",
    "moe": "quant_matmul_ids", "batch_matmul": "bmm", "max_pool": "max_pool2d", "avg_pool": "avg_pool2d", "zeros_": "fill",
}  # fmt: skip

# Views: whose arrays these are, has them as methods.
_VIEWS = """adjoint as_strided broadcast_arrays broadcast_in_dim broadcast_tensors broadcast_to chunk conj detach diagonal
    dsplit expand expand_as expand_dims flatten hsplit imag moveaxis movedim narrow numel permute ravel real reshape
    select_dim size split split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten
    unsqueeze view view_as view_as_complex view_as_real vsplit"""
VIEWS = frozenset(_VIEWS.split())

# Names of the field that nothing here computes yet.
_ABSENT = """alpha_dropout angle bartlett_window blackman_window cholesky cholesky_inverse cholesky_solve combinations complex
    cond cumulative deform_conv2d det dropout1d dropout2d dropout3d eig eigh eigvals eigvalsh erfcx
    feature_alpha_dropout fft fft2 fftfreq fftn fftshift frexp frobenius_norm gradient gru gru_cell hamming_window
    hann_window hfft householder_product i0 i0e i1 i1e ifft ifft2 ifftn igamma igammac ihfft inv inverse irfft irfft2
    irfftn istft kaiser_window ldl_factor lobpcg log_ndtr logdet lstm lstm_cell lstsq lu lu_factor lu_solve lu_unpack
    matrix_exp matrix_rank multi_head_attention_forward ndtri nuclear_norm orgqr ormqr pca_lowrank pinv pinverse polar
    polygamma qr rfft rfft2 rfftn rnn rnn_cell rnn_relu rnn_tanh rrelu scaled_grouped_mm slogdet solve
    solve_triangular spmm stft svd svd_lowrank svdvals tensorinv tensorsolve triangular_solve unravel_index zeta"""
ABSENT = frozenset(_ABSENT.split())


def distance(a: str, b: str, most: int) -> int:
    """How many letters are wrong, missing, too many or exchanged with the next; more than `most` is not counted out."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    before, row = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        now = [i]
        for j, y in enumerate(b, 1):
            cost = min(row[j] + 1, now[j - 1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            now.append(cost)
        before, row = row, now
    return row[-1]


def near(name: str, known: Iterable[str]) -> str | None:
    """What is spelt so much alike that it was meant: one slip, two in long names, or other letter cases and underscores."""

    def plain(text: str) -> str:
        return text.lower().replace("_", "").replace("-", "").replace(" ", "")

    most = 0 if len(name) < 3 else 1 if len(name) < 8 else 2
    best: tuple[int, str] | None = None
    for other in known:
        if plain(other) == plain(name):
            return other
        found = distance(name, other, most)
        swapped = sorted(name) == sorted(other)
        if found <= most and (len(name) > 3 or swapped) and (best is None or (found, other) < best):
            best = (found, other)
    return best[1] if best else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question to end a message with, when something known is spelt much alike."""
    found = near(name, known)
    return f"; did you mean {found!r}?" if found else ""


def about(name: str, known: Iterable[str]) -> str:
    """What is to be said of a name of the field that no function has: the end of a message, or nothing."""
    names = list(known)
    if (other := OTHERWISE.get(name.lower())) in names:
        return f"; it is called {other!r} here."
    if name.lower() in VIEWS:
        return f": a view is no kernel, and arrays have it themselves, as in x.{name}(...)."
    if name.lower() in ABSENT:
        return ": it is not in this version."
    return suggestion(name, names)
