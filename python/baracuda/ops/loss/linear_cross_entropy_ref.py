"""Float64 reference of linear_cross_entropy.

Logits are sums of `features` products: each is off by what these allow, and so are the losses and, as relative errors of
the probabilities, the gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.loss.linear_cross_entropy import LinearCrossEntropyBackwardDescriptor, LinearCrossEntropyDescriptor
from baracuda.ops.loss.loss import Reduction
from baracuda.prove.reference import LARGEST, Array, Case, Expected, epsilon

# Numbers of this share of the element's exponents are promised: products of products of larger ones may not fit.
EXPONENTS = 0.25

SMOOTHING = 0.1
# Rows, features, classes; 200 rows of 100003 classes are three chunks.
_SHAPES = ((5, 7, 10), (33, 40, 65), (1, 1, 1), (0, 3, 4), (4, 0, 6), (70, 19, 300))
_LARGE = (200, 2, 100003)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Each reduction, with and without bias, ignored targets and smoothing, several chunks, NaN and infinities."""
    for i, shape in enumerate(_SHAPES):
        for k, reduction in enumerate(Reduction):
            case = _case(direction, element, shape, reduction, i + k, rng)
            case.exact_gradient = shape[0] > 0  # a mean of nothing is NaN
            if "weight" in case.tensors and k == 1:  # of either sign
                case.tensors["weight"][::2] *= -1
            yield case
    if element is Element.F32:
        yield _case(direction, element, _LARGE, Reduction.MEAN, 3, rng)
    nothing = _case(direction, element, (4, 5, 6), Reduction.MEAN, 1, rng)
    nothing.tensors["target"][:] = nothing.descriptor.ignore_index  # type: ignore[attr-defined]
    nothing.note, nothing.exact_gradient = "no counted target", False
    yield nothing
    special = _case(direction, element, (4, 5, 6), Reduction.NONE, 0, rng)
    x = special.tensors["input"]
    x[0, 3], x[1], special.tensors["target"][:] = np.nan, 40, [1, 2, 3, 5]
    if direction == "backward":
        special.tensors["lse"] = _lse(_logits(special.tensors)[0])
    special.note, special.exact_gradient = "special values", False
    yield special


def _case(
    direction: str,
    element: Element,
    shape: tuple[int, int, int],
    reduction: Reduction,
    variant: int,
    rng: np.random.Generator,
) -> Case:
    rows, features, classes = shape
    ignore, index = (-100 if variant % 2 else 0), (Element.I32 if variant % 3 == 1 else Element.I64)
    target = rng.integers(0, classes, rows)
    if ignore < 0 and rows > 2:
        target[::3] = ignore
    fields: dict[str, Any] = {
        "input_shape": (rows, features),
        "classes": classes,
        "element": element,
        "target_element": index,
        "reduction": reduction,
        "ignore_index": ignore,
        "bias": variant % 4 > 1,
        "weighted": variant % 3 > 0,
    }
    tensors: dict[str, Array] = {
        "input": rng.normal(0, 1, (rows, features)),
        "target": target,
        "linear_weight": rng.normal(0, 2 / np.sqrt(max(features, 1)), (classes, features)),
    }
    if fields["bias"]:
        tensors["linear_bias"] = rng.normal(0, 1, classes)
    if fields["weighted"]:
        tensors["weight"] = rng.uniform(0.5, 2, classes)
    scalars: dict[str, float | int] = {"label_smoothing": SMOOTHING} if variant % 2 else {}
    if direction == "forward":
        wanted = reduction is not Reduction.NONE and variant % 4 != 0
        desc = LinearCrossEntropyDescriptor(**fields, save=variant % 3 != 2, gradients_wanted=wanted)
        return Case(desc, tensors, scalars | ({"dloss": 0.75} if wanted else {}))
    tensors["lse"] = _lse(_logits(tensors)[0])
    tensors["dloss"] = rng.normal(1, 0.2, (rows,) if reduction is Reduction.NONE else ())
    return Case(LinearCrossEntropyBackwardDescriptor(**fields), tensors, scalars)


def _logits(t: dict[str, Any]) -> tuple[Array, Array]:
    """With the sums of their terms' magnitudes."""
    x, w, b = (np.asarray(t.get(name, 0.0), np.float64) for name in ("input", "linear_weight", "linear_bias"))
    with np.errstate(all="ignore"):
        return x @ w.T + b, np.abs(x) @ np.abs(w).T + np.abs(b)


def _lse(x: Array) -> Array:
    with np.errstate(all="ignore"):
        top = np.max(x, axis=1, keepdims=True, initial=-np.inf)
        return np.asarray(np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0])


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    t = case.tensors
    x, terms = _logits(t)
    rows, classes = x.shape
    counted = t["target"] != desc.ignore_index
    s = float(case.scalars.get("label_smoothing", 0.0))
    hot = np.zeros(x.shape)
    if x.size:
        np.put_along_axis(hot, np.where(counted, t["target"], 0)[:, None].astype(np.int64), 1.0, axis=1)
    by_class = np.asarray(t.get("weight", np.ones(classes)), np.float64)
    soft = (hot * (1 - s) + s / max(classes, 1)) * by_class
    whole, soft_size = soft.sum(1, keepdims=True), np.abs(soft)
    whole_size = soft_size.sum(1, keepdims=True)
    of_target = (hot * by_class).sum(1)
    with np.errstate(all="ignore"):
        share = of_target[counted].sum() if desc.reduction is Reduction.MEAN else np.float64(1)
        lse, off = _lse(x), np.max(terms, axis=1, initial=0)
        out: dict[str, Expected] = {}
        k = max(rows, classes, desc.input_shape[1], 1)
        if desc.direction == "forward":
            each = np.where(counted, np.sum(soft * (lse[:, None] - x), axis=1), 0)
            size = whole_size[:, 0] * (np.abs(lse) + 1 + 2 * off) + np.sum(soft_size * np.abs(x), axis=1)
            size = np.where(counted, size, 0)
            none = desc.reduction is Reduction.NONE
            out["loss"] = Expected(
                each if none else each.sum() / share, size if none else size.sum() / np.abs(share), k
            )
            out["lse"] = Expected(lse, np.abs(lse) + 1 + 2 * off, k)
            if not desc.gradients_wanted:
                return out
            dloss: Any = np.float64(case.scalars["dloss"])
        else:
            lse, dloss = np.asarray(t["lse"], np.float64), np.asarray(t["dloss"], np.float64)
        by = np.broadcast_to(dloss / share, (rows,))[:, None]
        p = np.exp(x - lse[:, None])
        d = np.where(counted[:, None], by * (whole * p - soft), 0)
        # A logit's error is a relative one of its probability.
        most = np.abs(by) * (
            whole_size * p * (1 + np.abs(x - lse[:, None]) + np.abs(lse[:, None]) + terms + off[:, None]) + soft_size
        )
        size = np.where(counted[:, None], most, 0)
        inputs, weight = (np.asarray(t[name], np.float64) for name in ("input", "linear_weight"))
        # Which holds while it is small.
        off = np.where(counted, off + np.abs(lse), 0)
        far = np.max(off, initial=0) * epsilon(desc.element.compute) > 2.0**-4
        reach = np.asarray(2 * LARGEST[desc.element.compute] if far else 0.0)
        out["dinput"] = Expected(d @ weight, size @ np.abs(weight), k, reach)
        out["dlinear_weight"] = Expected(d.T @ inputs, size.T @ np.abs(inputs), k, reach)
        out["dlinear_bias"] = Expected(d.sum(0), size.sum(0), k, reach)
    return out


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d: Any = case.descriptor
    fields = {name: getattr(d, name) for name in d.to_dict()} | {"element": Element.F64}
    tensors = {name: v for name, v in case.tensors.items() if name not in ("dloss", "lse")}
    return Case(LinearCrossEntropyDescriptor(**fields), tensors, case.scalars)
