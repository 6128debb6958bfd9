"""Errors of descriptors and plans in the words of the function that was called: its user has not made either."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from baracuda.describe.errors import BaracudaError, InvalidProblemError, UnsupportedError, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Fields of descriptors, with the parameters that they come from; the first that a function has is meant.
FIELDS: dict[str, tuple[str, ...]] = {
    "a_shape": ("input", "self", "query"),
    "axes": ("dim", "dims"),
    "axis": ("dim", "dims"),
    "b_shape": ("other", "mat2", "vec2", "weight"),
    "has_max": ("max",),
    "high": ("padding", "pad"),
    "ids_shape": ("input",),
    "index_shape": ("index", "indices"),
    "input_shape": ("input",),
    "k_shape": ("key",),
    "kernel": ("kernel_size",),
    "logits_shape": ("input", "logits"),
    "low": ("padding", "pad"),
    "mask_element": ("attn_mask", "mask"),
    "mask_shape": ("attn_mask", "mask"),
    "q_shape": ("query",),
    "shape": ("input",),
    "split_dim": ("dim",),
    "table_shape": ("cos",),
    "v_shape": ("value",),
    "weight_shape": ("weight",),
    "x_shape": ("input",),
}
_PLAN = re.compile(r"^\w+Plan\([^()]*\): ")
_DESCRIPTOR = re.compile(r"^(\w+)Descriptor(?:\.(\w+))?: ")
_SHAPES = re.compile(r"\b\w+_shape\b")
# What is to be done about a plan's arguments, where there is no plan.
_HINTS = {
    "Pass a tensor of the planned shape, or select a plan for this one.": "Pass a tensor of this shape.",
    "Cast it, or select a plan whose descriptor has this element.": "Cast it.",
}


def own_word(field: str, parameters: Collection[str]) -> str:
    """What a function with these parameters calls a descriptor's field."""
    if field in parameters:
        return field
    return next((p for p in FIELDS.get(field, ()) if p in parameters), field)


def in_own_words(text: str, parameters: Collection[str]) -> str:
    """A message of a descriptor or a plan, without their names."""
    text = _PLAN.sub("", text)
    if found := _DESCRIPTOR.match(text):
        field = f"{own_word(found[2], parameters)}: " if found[2] else ""
        text = field + _SHAPES.sub(lambda m: own_word(m[0], parameters), text[found.end() :])
    for theirs, ours in _HINTS.items():
        text = text.replace(theirs, ours)
    return text


def refuse_numbers(name: str, given: Mapping[str, object]) -> None:
    """Says so where a function that failed was given numbers in the place of each tensor."""
    if given and all(isinstance(v, (int, float)) for v in given.values()):
        got = ", ".join(f"{key}={shown(v)}" for key, v in given.items())
        raise InvalidProblemError(
            f"{name}(): got only numbers ({got}), want at least one tensor. Wrap one with np.asarray()."
        )


def name_failure(name: str, error: BaracudaError, parameters: Collection[str]) -> None:
    """Puts the function's name in front of an error that lacks it: descriptors know nothing of functions.

    Parts of functions, whose names begin with "_", are not named.
    """
    if name.startswith("_") or str(error).startswith((f"{name}(", f"{name}:")):
        return
    text = str(error)
    if not isinstance(error, UnsupportedError):  # which shows the problem as it was asked
        text = in_own_words(text, parameters)
    error.args = (f"{name}(): {text}",)
