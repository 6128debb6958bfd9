"""linear_cross_entropy on GPUs: steps that make the logits of some rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda.call.compose import Composer, Number, Value
from baracuda.ops.binary.binary import BinaryDescriptor
from baracuda.ops.layout.layout import FillDescriptor
from baracuda.ops.loss.loss import CrossEntropyBackwardDescriptor, CrossEntropyDescriptor, NllLossDescriptor, Reduction
from baracuda.ops.matmul.matmul import MatmulDescriptor
from baracuda.ops.reduce.reduce import ReduceDescriptor

if TYPE_CHECKING:
    from baracuda.ops.loss.linear_cross_entropy import LinearCrossEntropyDescriptor

OPS = ()

# Logits that a GPU makes at a time.
_CHUNK = 1 << 26


class _Layer:
    """Steps of a layer whose logits are made for some rows at a time.

    Losses of rows, their lse and the gradients of a chunk are of the tensors' element; what is summed over chunks is f32
    (f64 for f64).
    """

    def __init__(
        self,
        c: Composer,
        desc: LinearCrossEntropyDescriptor,
        tensors: dict[str, Value | None],
        smoothing: Number | float,
    ) -> None:
        self.c = c
        self.desc = desc
        self.smoothing = smoothing
        self.input, self.target, self.linear_weight = (_given(tensors, n) for n in ("input", "target", "linear_weight"))
        self.linear_bias, self.weight = tensors["linear_bias"], tensors["weight"]
        self.rows, self.features = self.input.shape
        self.classes = self.linear_weight.shape[0]
        self.wide = desc.element.statistic

    def chunks(self) -> list[slice]:
        """Rows that are treated together."""
        step = max(64, _CHUNK // max(1, self.classes))
        return [slice(at, min(self.rows, at + step)) for at in range(0, self.rows, step)]

    def logits(self, part: slice) -> Value:
        """Of some rows."""
        x, w = self.input[part], self.linear_weight.permute((1, 0))
        bias = {} if self.linear_bias is None else {"bias": self.linear_bias}
        made: Value = self.c(MatmulDescriptor(x.shape, w.shape, x.element, bool(bias)), a=x, b=w, **bias)
        return made

    def fields(self) -> dict[str, Any]:
        """Of the losses' descriptors, row by row."""
        d = self.desc
        return {
            "target_element": d.target_element,
            "reduction": Reduction.NONE,
            "ignore_index": d.ignore_index,
            "weighted": d.weighted,
        }

    def losses(self, part: slice, logits: Value, loss: Value, lse: Value) -> None:
        """Losses and lse of some rows."""
        desc = CrossEntropyDescriptor(logits.shape, logits.element, save=True, **self.fields())
        more = {} if self.weight is None else {"weight": self.weight}
        self.c(
            desc,
            logits=logits,
            target=self.target[part],
            label_smoothing=self.smoothing,
            loss=loss[part],
            lse=lse[part],
            **more,
        )

    def divisor(self) -> Value:
        """What the counted targets weigh, in f32 or f64: the likelihood of -1 everywhere."""
        minus: Value = self.c(FillDescriptor((), self.wide), value=-1)
        shape = (self.rows, self.classes)
        desc = NllLossDescriptor(shape, self.wide, **self.fields() | {"reduction": Reduction.SUM})
        weight = {} if self.weight is None else {"weight": self.c.cast(self.weight, self.wide)}
        made: Value = self.c(desc, input=minus.expand(shape), target=self.target, **weight)
        return made

    def over(self, x: Value, divisor: Value | None) -> Value:
        """x, a number, divided where there is a mean."""
        if divisor is None:
            return x
        made: Value = self.c(BinaryDescriptor("div", (), (), self.wide), a=x, b=divisor)
        return made

    def reduced(self, loss: Value, divisor: Value | None) -> Value:
        """The losses, or their sum or mean."""
        if self.desc.reduction is Reduction.NONE:
            return loss
        wide = self.c.cast(loss, self.wide)
        total: Value = self.c(ReduceDescriptor("sum", loss.shape, None, False, self.wide), x=wide)
        return self.c.cast(self.over(total, divisor), loss.element)

    def add(self, sums: list[Value], part: Value) -> None:
        """Adds what a chunk gives to the sum of those before, if there is one."""
        if not sums:
            sums.append(part)
            return
        total, more = self.c.cast(sums[0], self.wide), self.c.cast(part, self.wide)
        sums[0] = self.c(BinaryDescriptor("add", total.shape, more.shape, self.wide), a=total, b=more)

    def gradients(self, part: slice, logits: Value, dloss: Value, lse: Value, found: _Found) -> None:
        """What some rows give to the gradients; `logits` become their own."""
        c, e = self.c, logits.element
        more = {} if self.weight is None else {"weight": self.weight}
        given: dict[str, Any] = {"target": self.target[part], "lse": lse[part], "label_smoothing": self.smoothing}
        desc = CrossEntropyBackwardDescriptor(logits.shape, e, **self.fields())
        c(desc, dloss=dloss[part], logits=logits, dlogits=logits, **given, **more)
        x, across = self.input[part], logits.permute((1, 0))
        c(
            MatmulDescriptor(logits.shape, self.linear_weight.shape, e),
            a=logits,
            b=self.linear_weight,
            out=found.dinput[part],
        )
        self.add(found.dlinear_weight, c(MatmulDescriptor(across.shape, x.shape, e), a=across, b=x))
        if self.linear_bias is not None:
            self.add(found.dlinear_bias, c(ReduceDescriptor("sum", logits.shape, (0,), False, e), x=logits))


class _Found:
    """Gradients while chunks are added to them."""

    def __init__(self, layer: _Layer) -> None:
        self.layer = layer
        self.dinput = layer.c.new(layer.input.shape, layer.input.element)
        self.dlinear_weight: list[Value] = []
        self.dlinear_bias: list[Value] = []

    def values(self) -> tuple[Value, ...]:
        """dinput, dlinear_weight and, where there is a bias, dlinear_bias."""
        layer, e = self.layer, self.layer.input.element
        sums = [(self.dlinear_weight, layer.linear_weight)]
        if layer.linear_bias is not None:
            sums.append((self.dlinear_bias, layer.linear_bias))
        made = (layer.c.cast(s[0], e) if s else layer.c.zeros(of.shape, e) for s, of in sums)
        return (self.dinput, *made)


def _given(tensors: dict[str, Value | None], name: str) -> Value:
    found = tensors[name]
    assert found is not None, name
    return found


def chunked(
    c: Composer,
    input: Value,
    linear_weight: Value,
    target: Value,
    linear_bias: Value | None,
    weight: Value | None,
    label_smoothing: Number | float,
    dloss: Value | Number | None = None,
    lse: Value | None = None,
    *,
    desc: LinearCrossEntropyDescriptor,
    wanted: str,
) -> Value | tuple[Value, ...]:
    """The steps. `wanted`: "loss", "loss lse", "loss gradients" for a dloss that is a number, or "gradients"."""
    tensors = {"input": input, "target": target, "linear_weight": linear_weight}
    layer = _Layer(c, desc, {**tensors, "linear_bias": linear_bias, "weight": weight}, label_smoothing)
    divisor = layer.divisor() if desc.reduction is Reduction.MEAN else None
    found = _Found(layer) if "gradients" in wanted else None
    loss = c.new((layer.rows,), input.element) if lse is None else None
    every = c.new((layer.rows,), layer.wide) if lse is None else lse
    by = None
    if found:
        number = 1.0 if dloss is None else dloss
        given = dloss if isinstance(dloss, Value) else c(FillDescriptor((), layer.wide), value=number)
        wide = given if desc.reduction is Reduction.NONE else layer.over(c.cast(given, layer.wide), divisor)
        by = c.cast(wide, input.element).expand((layer.rows,))
    for part in layer.chunks():
        logits = layer.logits(part)
        if loss is not None:
            layer.losses(part, logits, loss, every)
        if found and by is not None:
            layer.gradients(part, logits, by, every, found)
    results: tuple[Value, ...] = () if loss is None else (layer.reduced(loss, divisor),)
    if wanted == "loss lse":
        results += (every,)
    if found:
        results += found.values()
    return results if len(results) > 1 else results[0]
