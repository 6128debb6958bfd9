"""What parameters of functions are, for docstrings of functions that do not say it themselves."""

from __future__ import annotations

import inspect
from typing import Any

from baracuda import _core

# What names mean throughout: they are torch's.
MEANINGS = {
    "affine": "whether there are weights",
    "align_corners": "whether the corners of input and result lie on each other",
    "alpha": "a factor",
    "axis": "a dimension, negative ones counting from the end",
    "batch1": "the left matrices",
    "batch2": "the right matrices",
    "beta": "a factor, or where a function turns",
    "bias": "what is added, one for each channel",
    "ceil_mode": "whether windows may reach over the end",
    "correction": "what the count is reduced by in the divisor",
    "cos": "cosines of the angles",
    "count_include_pad": "whether padding counts in the divisor",
    "cu_seq_k": "where sequences of keys begin",
    "cu_seq_q": "where sequences of queries begin",
    "delta": "where the loss turns linear",
    "descending": "whether the largest comes first",
    "device": "where the result is made, as 'cpu' or 'cuda:0'",
    "diagonal": "which diagonal, above the main one where positive",
    "dilation": "steps between the elements of a window",
    "dim": "along which dimension, negative ones counting from the end",
    "dim1": "the first of two dimensions",
    "dim2": "the second of two dimensions",
    "dims": "dimensions",
    "divisor_override": "the divisor, in the place of the number of elements",
    "dloss": "the gradient of the loss",
    "dout": "the gradient of the result",
    "dtype": "the element of the result, by name or as a dtype of any framework",
    "dx": "the distance of samples",
    "dy": "the gradient of the result",
    "enable_gqa": "whether several query heads may share one of keys",
    "end": "where it ends",
    "eps": "added so that nothing is divided by 0",
    "equal_nan": "whether NaN equals NaN",
    "exclusive": "whether an element is left out of its own sum",
    "exponent": "the exponent",
    "fill_value": "the number that is filled in",
    "generator": "what random numbers are drawn from; by default that of bc.manual_seed",
    "grid": "where to sample, from -1 to 1",
    "group": "how many elements share a scale",
    "groups": "how many groups of channels there are",
    "ignore_index": "a target that counts for nothing",
    "include_last_offset": "whether the last offset is the end",
    "index": "positions along `dim`, negative ones counting from the end",
    "indices": "positions",
    "inplace": "taken for torch's sake; results are new",
    "input": "what is computed with",
    "interleaved": "whether pairs are neighbours, and not halves apart",
    "is_causal": "whether a query sees no later keys",
    "k": "how many",
    "keepdim": "whether reduced dimensions stay, of size 1",
    "kernel_size": "the size of a window",
    "key": "the keys",
    "label_smoothing": "how much of the target is spread over all classes",
    "lambd": "where the function turns",
    "largest": "whether the largest are wanted",
    "lse": "the saved log-sum-exp",
    "margin": "the margin",
    "mask": "which elements count",
    "mat2": "the right matrix",
    "max": "the upper bound",
    "mean": "the mean",
    "min": "the lower bound",
    "mode": "how it is done",
    "momentum": "how much of what is new goes into running statistics",
    "norm_type": "the power of the norm",
    "normalized_shape": "the last dimensions, which are normalised together",
    "num_classes": "how many classes there are",
    "offset": "where it begins, or which diagonal",
    "offsets": "where bags or segments begin",
    "other": "the second operand, broadcast with the first",
    "out": "what the result is written to; it is returned",
    "out_element": "the element of the result",
    "output": "the saved result",
    "output_padding": "what is added to the size of the result",
    "output_size": "the sizes of the result",
    "p": "a probability, or the power of a norm",
    "padding": "how many elements are added on both sides, or 'same' or 'valid'",
    "padding_idx": "an index whose row has no gradient",
    "padding_mode": "what lies outside",
    "per_sample_weights": "a factor for each index",
    "pos_weight": "a factor for targets of 1",
    "position": "the first position",
    "positions": "the position of each row",
    "quant_max": "the largest code",
    "quant_min": "the smallest code",
    "query": "the queries",
    "reduce": "how values are folded",
    "reduction": '"none", or how losses are folded: "mean" or "sum"',
    "residual": "what is added before or behind",
    "result": "the saved result",
    "return_indices": "whether places are returned, too",
    "reverse": "whether it runs from the end",
    "right": "whether equal elements lie before",
    "rotary_dim": "how many elements of a head are rotated; all by default",
    "rounding_mode": 'None, "floor" or "trunc"',
    "rstd": "the saved reciprocal of the deviation",
    "rtol": "relative tolerance",
    "atol": "absolute tolerance",
    "running_mean": "the running mean, which training updates",
    "running_var": "the running variance, which training updates",
    "scale": "a factor",
    "scale_factor": "how many times as large the result is",
    "shape": "sizes",
    "sin": "sines of the angles",
    "size": "sizes",
    "size_average": "torch's older name for a part of `reduction`",
    "softcap": "the bound that logits are pressed into; 0 for none",
    "sorted": "whether they are in order",
    "source": "what is written",
    "spatial_scale": "what coordinates are multiplied by",
    "src": "what is written",
    "stable": "whether equal elements stay in order",
    "stride": "steps between windows; a window by default",
    "target": "what is wanted",
    "tensor1": "the first factor",
    "tensor2": "the second factor or the divisor",
    "tensors": "the tensors",
    "threshold": "where the function turns",
    "training": "whether this is training",
    "unbiased": "torch's older name for a correction of 1",
    "value": "the value",
    "vec2": "the second vector",
    "vec": "the vector",
    "weight": "weights",
    "weight_offset": "added to the weights",
    "x1": "the first points",
    "x2": "the second points",
    "zero_point": "the code of 0",
    "alibi_slopes": "the slope of each head's bias",
    "sinks": "a further logit for each head",
    "boxes": "regions: image, x1, y1, x2, y2",
    "approximate": '"none" or "tanh"',
    "attn_mask": "which keys count, or what is added to logits",
}

# By the annotation of a rule.
KINDS = {
    "int": "an int", "int | None": "an int or None", "float": "a number", "float | None": "a number or None", "bool": "a bool",
    "bool | None": "a bool or None", "str": "a text", "str | None": "a text or None", "float | str | None": "a number, a name or None",
    "Axes": "ints", "Axes | None": "ints or None", "Axes | str": "ints or a text", "Pair": "an int, or two", "Sizes": "ints",
    "Number": "a number or None", "tuple[int, int]": "two ints", "tuple[int, ...] | int": "ints", "Sequence[float]": "numbers",
}  # fmt: skip


def _kind(p: inspect.Parameter, kind: str, annotation: Any, broadcast: bool) -> str:
    """What is to be given, in words."""
    if kind == "list":
        return "tensors, in a list"
    if kind == "rest":
        return "tensors, or one list of them"
    if kind in ("tensor", "scalar", "out"):
        number = kind == "scalar" or (kind == "tensor" and broadcast)
        return ("a tensor or a number" if number else "a tensor") + (", or None" if p.default is None else "")
    if isinstance(p.default, bool):
        return "a bool"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return KINDS.get(text, "")


def arguments(fn: Any) -> str:
    """The section on the arguments of a function of bc.functional."""
    miss = getattr(fn, "miss", None)
    kinds = {} if miss is None else {name: _core.param_kinds[kind] for name, kind, *_ in miss.params}
    rule = {} if miss is None else inspect.signature(miss.rule).parameters
    broadcast = fn.defined_in.split(".")[-2] in ("binary", "ternary")  # whose operands may be numbers
    lines = ["Args:"]
    for p in fn.__signature__.parameters.values():
        annotation = (rule.get(p.name) or p).annotation
        given = _kind(p, kinds.get(p.name, "attribute"), annotation, broadcast)
        said = ": ".join(part for part in (given, MEANINGS.get(p.name, "")) if part) or "as in the formula"
        default = "" if p.default is p.empty or p.default is None else f" By default {_shown(p.default)}."
        lines.append(f"    {'*' * (p.kind is p.VAR_POSITIONAL)}{p.name}: {said[0].upper()}{said[1:]}.{default}")
    return "\n".join(lines) if len(lines) > 1 else ""


def _shown(value: Any) -> str:
    return str(getattr(value, "__name__", None) or repr(value))
