"""What descriptors and functions of attention have in common about scores."""

from __future__ import annotations

from enum import Enum
from math import sqrt
from typing import Any

from baracuda.call.inference import spec_of
from baracuda.call.op import Arg
from baracuda.describe.dims import Dim, Shape, largest
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, ScalarParam, output, scalar, tensor

OPS = ()


class CausalAlignment(Enum):
    """Where the causal diagonal lies when there are more keys than queries, or fewer.

    BOTTOM_RIGHT: the last query uses all valid keys, as a decoding model needs. TOP_LEFT: query i uses keys 0 to i, as
    torch's `is_causal`.
    """

    BOTTOM_RIGHT = "bottom_right"
    TOP_LEFT = "top_left"

    def __int__(self) -> int:
        return int(self is CausalAlignment.TOP_LEFT)


class Scored(Descriptor):
    """What descriptors of attention have in common about scores. Their fields stand in each, in its own order."""

    __slots__ = ()
    causal: bool
    element: Element
    window_left: int
    window_right: int
    softcap: float
    alibi_shape: Shape | None
    sinks: bool

    def check_scores(self, batch: int | Dim, heads: int | Dim) -> None:
        """The fields of windows, softcaps and slopes."""
        for field in ("window_left", "window_right"):
            if getattr(self, field) < -1:
                raise self.wrong(field, getattr(self, field), "a number of keys, or -1 for no end on that side")
        if self.softcap and not 1e-30 <= self.softcap <= 1e30:
            raise self.wrong("softcap", self.softcap, "0.0 for none, or a number from 1e-30 to 1e30")
        if self.alibi_shape not in (None, (heads,), (batch, heads)):
            raise self.wrong("alibi_shape", self.alibi_shape, f"({heads},) or ({batch}, {heads}): slopes of heads")

    @property
    def lse_element(self) -> Element:
        """Element of the logarithms of sums of exponentials, and of alibi's slopes."""
        return Element.F64 if self.element is Element.F64 else Element.F32

    def alibi(self) -> Param:
        """Slopes of heads, where there are any."""
        return tensor("alibi", self.alibi_shape or (), self.lse_element, present=self.alibi_shape is not None)

    def sink_logits(self, heads: int | Dim) -> Param:
        """A logit per head, where there are sinks."""
        return tensor("sinks", (heads,), self.lse_element, present=self.sinks)

    def sink_gradients(self, heads: int | Dim) -> Param:
        """Their gradients."""
        return output("dsinks", (heads,), self.lse_element, present=self.sinks)

    def scale(self, dim: int | Dim) -> ScalarParam:
        """What scores are multiplied by: 1/sqrt(dim) by default."""
        d = largest(dim)
        return scalar("scale", "float", 1 / sqrt(d) if d else 1.0)


def check_options(
    name: str, field: str, window: object, alibi: Arg | None, sinks: Arg | None, element: Element
) -> None:
    """What a function is given as a window, as slopes and as sinks."""
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise InvalidProblemError(f"{name}: {field}: got {window!r}, want (left, right): two ints, -1 for no end.")
    want = Element.F64 if element is Element.F64 else Element.F32
    for x in (alibi, sinks):
        if x is not None and x.element is not want:
            raise InvalidProblemError(f"{name}: {x.name}: got {x.element}, want {want} for {element}. Cast it.")


def with_sinks(found: tuple[Any, ...], known: dict[str, Any]) -> tuple[Any, ...]:
    """Gradients of q, k and v, and of sinks; None for a mask of floats, which stands between them."""
    mask = known.get("attn_mask")
    seen = None if mask is None or known["sinks"] is None else spec_of(mask)
    between = seen is not None and Element.coerce(seen.element).is_float
    return (*found[:3], *([None] if between else []), *found[3:])
