"""Reference of 4-bit integers in bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.cast.int4 import INT4, PackInt4Descriptor, UnpackInt4Descriptor
from baracuda.prove.reference import Array, Case, Expected

_SHAPES: tuple[tuple[int, ...], ...] = ((1,), (2,), (7,), (3, 0), (0, 5), (5, 130), (2, 1, 3, 2, 1, 2, 2, 5), (3, 2101))


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Rows of odd and even length, ranks 1 to 8; ties, what is out of range, NaN; every byte."""
    for packed in INT4:
        if op == "unpack_int4":
            for shape in _SHAPES:
                desc = UnpackInt4Descriptor(shape, element, packed)
                yield Case(desc, {"x": rng.integers(0, 256, desc.signature()["x"].shape)})
            yield Case(UnpackInt4Descriptor((512,), element, packed), {"x": np.arange(256)}, note="every byte")
            continue
        for shape in _SHAPES:
            yield Case(
                PackInt4Descriptor(shape, element, packed), {"x": _numbers(element, rng.uniform(-20, 20, shape))}
            )
        special = np.arange(-40, 81) / 4  # every tie and what lies between, out of range at both ends
        if element.is_float:
            beside = np.concatenate([np.nextafter(special, -99), np.nextafter(special, 99)])
            special = np.concatenate([special, beside, [np.nan, np.inf, -np.inf, -0.0, 6e4, -6e4]])
        yield Case(PackInt4Descriptor(special.shape, element, packed), {"x": _numbers(element, special)}, note="ties")


def _numbers(element: Element, x: Array) -> Array:
    if element.is_float:
        return x
    return (np.abs(x) if element is Element.U8 else x).astype(np.int64)


def reference(case: Case) -> dict[str, Expected]:
    """Bytes, or the numbers in them."""
    desc = case.descriptor
    x = np.asarray(case.tensors["x"])
    if isinstance(desc, UnpackInt4Descriptor):
        code = np.stack([x & 15, x >> 4], -1).reshape(*x.shape[:-1], 2 * x.shape[-1]).astype(np.int64)
        code = code[..., : desc.shape[-1]]
        y = np.where(code > 7, code - 16, code) if desc.packed_element is Element.S4 else code
        return {"y": Expected(y.astype(np.uint8) if desc.element is Element.U8 else y)}
    assert isinstance(desc, PackInt4Descriptor)
    least, most = (-8, 7) if desc.packed_element is Element.S4 else (0, 15)
    whole = np.clip(np.rint(np.where(np.isnan(x), 0, x).astype(np.float64)), least, most).astype(np.int64) & 15
    if x.shape[-1] % 2:
        whole = np.concatenate([whole, np.zeros((*x.shape[:-1], 1), np.int64)], -1)
    return {"y": Expected((whole[..., ::2] + 16 * whole[..., 1::2]).astype(np.uint8))}
