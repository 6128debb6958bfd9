"""Steps of optimizers that look at a whole parameter, Muon, Adafactor and LAMB, made of other functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, log, prod, sqrt
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.dims import shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.optim.inplace import (
    FLOATS,
    Changes,
    element_of,
    is_number,
    reused,
    scalar,
    shape_of,
    want_array,
    want_writable,
)
from baracuda.ops.optim.optim import as_list

OPS = ()

_RATIOS = (None, "original", "match_rms_adamw")


def _aligned(**lists: Any) -> list[tuple[Any, ...]]:
    """The lists side by side, of one length; the first one's shapes are those of the second, both of float elements."""
    made = {n: as_list(v) for n, v in lists.items()}
    if len({len(v) for v in made.values()}) > 1:
        text = ", ".join(f"{len(v)} {n}" for n, v in made.items())
        raise InvalidProblemError(f"got {text}, want lists of equal lengths.")
    (first, params), (second, grads), *_ = made.items()
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        want_array(f"{first}[{i}]", p, FLOATS)
        want_array(f"{second}[{i}]", g, FLOATS)
        if shape_of(p) != shape_of(g):
            raise InvalidProblemError(
                f"{second}[{i}]: got shape {shape_of(g)}, want that of {first}[{i}], {shape_of(p)}."
            )
    return list(zip(*made.values(), strict=True))


def _writable(i: int, names: str, p: Any, g: Any, *states: Any) -> None:
    """Of one parameter: what is written can be, and shares no memory with the others."""
    written = {f"{n}[{i}]": x for n, x in zip(f"params {names}".split(), (p, *states), strict=True)}
    want_writable(written, {f"grads[{i}]": g})


def _apart(rows: list[tuple[Any, ...]]) -> None:
    """No two parameters are the same memory, as when one is listed twice."""
    if _core.inferring():  # nothing has memory
        return
    known: dict[int, int] = {}
    for i, (p, *_) in enumerate(rows):
        first = known.setdefault(_core.borrow(p).address, i) if prod(shape_of(p)) else i
        if first != i:
            raise InvalidProblemError(
                f"params[{i}]: got memory that params[{first}] has, too, want each parameter once. Add its gradients."
            )


def _times(a: Any, b: Any) -> Any:
    """Of numbers or 0-d arrays."""
    return a * b if is_number(a) and is_number(b) else F.mul(a, b)


def _as(x: Any, element: Element) -> Any:
    return x if element_of(x) is element else F.cast(x, element)


def _decay(changes: Changes, p: Any, lr: Any, weight_decay: Any) -> None:
    """Multiplies by 1 - lr weight_decay."""
    if is_number(weight_decay) and weight_decay == 0:
        return
    lost = _times(lr, weight_decay)
    if is_number(lost):
        changes.change(F.mul, p, 1 - lost)
    else:
        changes.change_wide(F.mul, p, F.sub(1.0, lost))


def _step_back(changes: Changes, p: Any, update: Any, by: Any) -> None:
    """Takes `by` times the update off, which nobody needs any more."""
    wide = element_of(p).statistic
    by = by if is_number(by) else _as(by, wide)
    lost = reused(F.mul, update, by) if element_of(update) is wide else F.mul(F.cast(update, wide), by)
    changes.change_wide(F.sub, p, lost, last=True)


def _orthogonal(x: Any, coefficients: Sequence[float], steps: int, eps: float, element: Element) -> Any:
    """A matrix with x's singular vectors whose singular values are near 1, by the iteration x = a x + (b g + c g g) x, g = x x^T."""
    a, b, c = coefficients
    x = _as(x, element)
    rows, columns = shape_of(x)
    turned = rows > columns
    x = x.T if turned else x
    x = F.div(x, _as(F.clamp(F.vector_norm(x), min=eps), element))
    for _ in range(steps):
        gram = F.matmul(x, x.T)
        x = F.addmm(x, F.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if turned else x


def _ratio(adjust_lr_fn: str | None, rows: int, columns: int) -> float:
    if adjust_lr_fn == "match_rms_adamw":
        return 0.2 * sqrt(max(rows, columns))
    return sqrt(max(1.0, rows / columns))


@made_of("cast clamp copy div lerp matmul mul sub norm")
@composite
def muon_(
    params: Any,
    grads: Any,
    momentum_buffers: Any,
    *,
    lr: Any = 1e-3,
    weight_decay: Any = 0.1,
    momentum: float = 0.95,
    nesterov: bool = True,
    ns_coefficients: Sequence[float] = (3.4445, -4.775, 2.0315),
    ns_steps: int = 5,
    eps: float = 1e-7,
    adjust_lr_fn: str | None = None,
    ns_element: str = "bf16",
) -> None:
    """One step of Muon in place, over one matrix or a list of them; torch.optim.Muon's formula.

    m = m + (1 - momentum) (g - m); u = g + momentum (m - g) with `nesterov`, else m; u becomes a matrix with its singular
    vectors and singular values near 1 by `ns_steps` steps of Newton and Schulz in `ns_element`; p = p (1 - lr weight_decay)
    - lr ratio u. The ratio is sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)) with "match_rms_adamw".

    Args:
        params: Matrices of any float element.
        grads: Their gradients.
        momentum_buffers: Momentum, of any float element; kept in f32 if made so.
        lr: Learning rate; a number or a 0-d array.
        weight_decay: Decoupled weight decay; a number or a 0-d array.
        momentum: Decay of the momentum.
        nesterov: Whether the step looks ahead.
        ns_coefficients: a, b and c of the iteration.
        ns_steps: How many iterations; less than 100.
        eps: The least norm that the update is divided by.
        adjust_lr_fn: None or "original", or "match_rms_adamw".
        ns_element: What the iteration computes in: "bf16" as torch, "f16", "f32" or "f64".
    """
    if adjust_lr_fn not in _RATIOS:
        raise InvalidProblemError(
            f'muon_: adjust_lr_fn: got {adjust_lr_fn!r}, want None, "original" or "match_rms_adamw".'
        )
    if not 0 <= ns_steps < 100:
        raise InvalidProblemError(f"muon_: ns_steps: got {ns_steps}, want 0 to 99.")
    if len(ns_coefficients) != 3:
        raise InvalidProblemError(f"muon_: ns_coefficients: got {len(ns_coefficients)} numbers, want 3.")
    element = Element.coerce(ns_element, "muon_: ns_element")
    if element not in FLOATS:
        raise InvalidProblemError(f"ns_element: got {element}, want f16, bf16, f32 or f64.")
    lr, weight_decay = scalar("lr", lr), scalar("weight_decay", weight_decay)
    momentum, eps = scalar("momentum", momentum, 0, 1), scalar("eps", eps)
    ns_coefficients = [scalar(f"ns_coefficients[{i}]", c, -inf) for i, c in enumerate(ns_coefficients)]
    rows = _aligned(params=params, grads=grads, momentum_buffers=momentum_buffers)
    for i, (p, _, buffer) in enumerate(rows):
        if len(shape_of(p)) != 2 or 0 in shape_of(p):
            got = shape_text(shape_of(p))
            raise InvalidProblemError(f"muon_: params[{i}]: got shape {got}, want a matrix. Give others to adamw_.")
        want_array(f"momentum_buffers[{i}]", buffer, FLOATS, shape_of(p))
        _writable(i, "momentum_buffers", *rows[i])
    _apart(rows)
    changes = Changes()
    for p, g, buffer in rows:
        g = _as(g, element_of(buffer))
        moved = changes.change(F.lerp, buffer, g, 1 - momentum)
        update = F.lerp(g, moved, momentum) if nesterov else moved
        update = _orthogonal(update, ns_coefficients, ns_steps, eps, element)
        _decay(changes, p, lr, weight_decay)
        _step_back(changes, p, update, _times(lr, _ratio(adjust_lr_fn, *shape_of(p))))
    changes.write()


def _mean_square(x: Any, dim: int) -> Any:
    """Along one dimension, which stays with size 1."""
    return F.mean(F.square(x), dim, keepdim=True)


def _root_mean_square(x: Any) -> Any:
    return F.mul(F.vector_norm(x), prod(shape_of(x)) ** -0.5)


def _check_factors(i: int, p: Any, row: Any, column: Any, variance: Any) -> None:
    if len(shape_of(p)) < 2:
        if row is not None or column is not None or variance is None:
            raise InvalidProblemError(
                f"adafactor_: variances[{i}]: want an array, and None in row_vars and col_vars: {i} is a vector."
            )
        return want_array(f"variances[{i}]", variance, FLOATS, shape_of(p))
    if row is None or column is None or variance is not None:
        raise InvalidProblemError(f"adafactor_: row_vars[{i}] and col_vars[{i}]: want arrays, and None in variances.")
    *outer, rows, columns = shape_of(p)
    want_array(f"row_vars[{i}]", row, FLOATS, (*outer, rows, 1))
    want_array(f"col_vars[{i}]", column, (element_of(row),), (*outer, 1, columns))


@made_of("cast clamp copy div lerp mean minimum mul neg norm pow rsqrt square sub")
@composite
def adafactor_(
    params: Any,
    grads: Any,
    row_vars: Any,
    col_vars: Any,
    variances: Any,
    *,
    step: Any,
    lr: Any = 1e-2,
    beta2_decay: float = -0.8,
    eps1: float | None = None,
    eps2: float = 1e-3,
    d: float = 1.0,
    weight_decay: Any = 0.0,
    maximize: bool = False,
) -> None:
    """One step of Adafactor in place, over one array or a list of them; torch.optim.Adafactor's formula.

    With t = step^beta2_decay and the last two dimensions as rows and columns: r = r + t (mean of g^2 over columns - r),
    c = c + t (mean of g^2 over rows - c), v = r c / max(mean of r over rows, eps1); of vectors v = v + t (g^2 - v). Then
    u = g / sqrt(max(v, eps1^2)) and p = p (1 - lr weight_decay) - max(eps2, rms(p)) min(lr, 1 / sqrt(step)) u / max(1, rms(u) / d),
    rms(p) being of p before the step.

    Args:
        params: Parameters of any float element.
        grads: Their gradients.
        row_vars: For each parameter of two and more dimensions r, (..., rows, 1); None for others.
        col_vars: Likewise c, (..., 1, columns).
        variances: For each vector and number v; None for others. Statistics are f32 (f64 for f64), halves as in torch are taken, too.
        step: Number of this step, from 1; a number or a 0-d array.
        lr: Most that the step may be of the parameter's size; a number or a 0-d array.
        beta2_decay: Below 0.
        eps1: Least mean of r; None for the distance from 1 to the next number of the parameter's element.
        eps2: Least size of a parameter that counts.
        d: Most that the update's size may be.
        weight_decay: Decoupled weight decay; a number or a 0-d array.
        maximize: Ascend instead of descend.
    """
    step, lr, weight_decay = scalar("step", step, 1), scalar("lr", lr), scalar("weight_decay", weight_decay)
    beta2_decay, d = scalar("beta2_decay", beta2_decay, -inf, 0), scalar("d", d, open_start=True)
    eps1, eps2 = None if eps1 is None else scalar("eps1", eps1), scalar("eps2", eps2)
    rows = _aligned(params=params, grads=grads, row_vars=row_vars, col_vars=col_vars, variances=variances)
    for i, (p, _, *factors) in enumerate(rows):
        _check_factors(i, p, *factors)
        _writable(i, "row_vars col_vars variances", *rows[i])
    _apart(rows)
    changes = Changes()
    for p, g, *factors in rows:
        if prod(shape_of(p)):
            least = _EPS[element_of(p)] if eps1 is None else eps1
            _adafactor(changes, p, g, factors, step, beta2_decay, lr, least, eps2, d, weight_decay, maximize)
    changes.write()


_EPS = {Element.F16: 2.0**-10, Element.BF16: 2.0**-7, Element.F32: 2.0**-23, Element.F64: 2.0**-52}


def _adafactor(
    changes: Changes, p: Any, g: Any, factors: list[Any], step: Any, beta2_decay: float, lr: Any, eps1: float, eps2: float, d: float,
    weight_decay: Any, maximize: bool,
) -> None:  # fmt: skip
    row, column, variance = factors
    kept = element_of(variance if row is None else row)
    g = _as(g, kept.statistic)
    forget = step**beta2_decay if is_number(step) else _as(F.pow(_as(step, kept.statistic), beta2_decay), kept)
    if row is None:
        found = changes.change(F.lerp, variance, _as(F.square(g), kept), forget)
    else:
        row = changes.change(F.lerp, row, _as(_mean_square(g, -1), kept), forget)
        column = changes.change(F.lerp, column, _as(_mean_square(g, -2), kept), forget)
        found = F.div(F.mul(row, column), F.clamp(F.mean(row, -2, keepdim=True), min=eps1))
    update = F.mul(F.rsqrt(F.clamp(_as(found, kept.statistic), min=eps1 * eps1)), g)
    size = F.clamp(_root_mean_square(p), min=eps2)
    too_large = F.clamp(F.mul(_root_mean_square(update), 1 / d), min=1.0)
    by = F.div(F.mul(_as(size, kept.statistic), _rate(step, lr, kept.statistic)), too_large)
    _decay(changes, p, lr, weight_decay)
    _step_back(changes, p, update, F.neg(by) if maximize else by)


def _rate(step: Any, lr: Any, element: Element) -> Any:
    """The lesser of lr and 1 / sqrt(step), of numbers or 0-d arrays."""
    lr = lr if is_number(lr) else _as(lr, element)
    most = step**-0.5 if is_number(step) else F.rsqrt(_as(step, element))
    if is_number(lr):
        return min(lr, most) if is_number(most) else F.clamp(most, max=lr)
    return F.clamp(lr, max=most) if is_number(most) else F.minimum(lr, most)


@made_of("add cast clamp copy div eq expm1 lerp mul norm sign sqrt square sub where")
@composite
def lamb_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    *,
    step: Any,
    lr: Any = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    min_ratio: float = 0.0,
    max_ratio: float = 10.0,
) -> None:
    """One step of LAMB in place, over one array or a list of them.

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; u = m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps)
    + weight_decay p; p = p - lr r u, with r = |p| / |u| (2-norms of the parameter) held within [min_ratio, max_ratio], and 1 where
    either norm is 0. Source: You et al., Large Batch Optimization for Deep Learning, 2020, version 3 of the algorithm. Clip
    gradients by their total norm before, with clip_grad_norm_.

    Args:
        params: Parameters of any float element.
        grads: Their gradients.
        exp_avgs: First moments, f32 (f64 for f64 parameters).
        exp_avg_sqs: Second moments, likewise.
        step: Number of this step, from 1; a number or a 0-d array.
        lr: Learning rate; a number or a 0-d array.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        eps: Added to the root of the second moment.
        weight_decay: What of the parameter is added to the update.
        min_ratio: Least ratio of norms.
        max_ratio: Largest ratio of norms.
    """
    if not 0 <= min_ratio <= max_ratio:
        raise InvalidProblemError(
            f"lamb_: min_ratio: got {min_ratio} and max_ratio {max_ratio}, want 0 <= min_ratio <= max_ratio."
        )
    step, lr = scalar("step", step, 1), scalar("lr", lr)
    beta1, beta2 = scalar("beta1", beta1, 0, 1, open_end=True), scalar("beta2", beta2, 0, 1, open_end=True)
    eps, weight_decay = scalar("eps", eps), scalar("weight_decay", weight_decay)
    rows = _aligned(params=params, grads=grads, exp_avgs=exp_avgs, exp_avg_sqs=exp_avg_sqs)
    for i, (p, _, *moments) in enumerate(rows):
        for name, x in zip(("exp_avgs", "exp_avg_sqs"), moments, strict=True):
            want_array(f"{name}[{i}]", x, (element_of(p).statistic,), shape_of(p))
        _writable(i, "exp_avgs exp_avg_sqs", *rows[i])
    _apart(rows)
    changes = Changes()
    for p, g, m, v in rows:
        if not prod(shape_of(p)):
            continue
        wide = element_of(m)
        g, own = _as(g, wide), _as(p, wide)
        first = changes.seen(partial(F.lerp, weight=1 - beta1), m, g)
        second = changes.seen(partial(F.lerp, weight=1 - beta2), v, F.square(g))
        root = reused(F.add, reused(F.sqrt, reused(F.mul, second, _unbiased(beta2, step, wide))), eps)
        u = reused(F.div, reused(F.mul, first, _unbiased(beta1, step, wide)), root)
        if weight_decay:
            u = reused(partial(F.add, alpha=weight_decay), u, own)
        size, update = F.vector_norm(own), F.vector_norm(u)
        ratio = F.clamp(F.div(size, update), min_ratio, max_ratio)
        ratio = F.where(F.eq(F.mul(F.sign(size), F.sign(update)), 0), 1.0, ratio)
        _step_back(changes, p, u, F.mul(ratio, lr))
    changes.write()


def _unbiased(beta: float, step: Any, element: Element) -> Any:
    """1 / (1 - beta^step)."""
    if is_number(step) or beta == 0:
        return 1 / (1 - beta**step) if beta else 1.0
    return F.div(-1.0, F.expm1(F.mul(_as(step, element), log(beta))))
