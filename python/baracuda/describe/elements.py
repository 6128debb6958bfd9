"""Element kinds, and their coercion from the dtypes of NumPy, torch, jax and ml_dtypes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.names import near

_TABLE: tuple[tuple[str, int], ...] = tuple(_core.element_table())  # name and bits
_CODES = {name: code for code, (name, _) in enumerate(_TABLE)}

_ALIASES = {
    "bool": "bool", "bool_": "bool", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16", "half": "f16",
    "bfloat16": "bf16", "float32": "f32", "float": "f32", "float64": "f64", "double": "f64", "long": "i64", "int": "i32",
    "complex64": "c64", "complex128": "c128", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
    "int4": "s4", "uint4": "u4",
}  # fmt: skip
_NUMPY_NAMES = {v: k for k, v in _ALIASES.items() if k not in ("bool_", "half", "float", "double", "long", "int")}


class Element(IntEnum):
    """What a tensor's entries are; values come from the engine."""

    BOOL = _CODES["bool"]
    U8 = _CODES["u8"]
    U16 = _CODES["u16"]
    U32 = _CODES["u32"]
    U64 = _CODES["u64"]
    I8 = _CODES["i8"]
    I16 = _CODES["i16"]
    I32 = _CODES["i32"]
    I64 = _CODES["i64"]
    F16 = _CODES["f16"]
    BF16 = _CODES["bf16"]
    F32 = _CODES["f32"]
    F64 = _CODES["f64"]
    C64 = _CODES["c64"]
    C128 = _CODES["c128"]
    F8E4M3 = _CODES["f8e4m3"]
    F8E5M2 = _CODES["f8e5m2"]
    S4 = _CODES["s4"]
    U4 = _CODES["u4"]
    BIN = _CODES["bin"]

    def __str__(self) -> str:
        """The short name, such as "f32"."""
        return _TABLE[self._value_][0]

    def __repr__(self) -> str:
        """The short name in quotes: what a descriptor accepts."""
        return repr(str(self))

    @property
    def bits(self) -> int:
        """Bits per element."""
        return _TABLE[self._value_][1]

    @property
    def nbytes(self) -> int:
        """Bytes per stored element; sub-byte elements travel as u8 storage."""
        return max(self.bits // 8, 1)

    @property
    def is_float(self) -> bool:
        """Whether this is f16, bf16, f32 or f64."""
        return self in (Element.F16, Element.BF16, Element.F32, Element.F64)

    @property
    def is_half(self) -> bool:
        """Whether this is f16 or bf16."""
        return self in (Element.F16, Element.BF16)

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer (not bool)."""
        return Element.U8 <= self <= Element.I64

    @property
    def is_unsigned(self) -> bool:
        """Whether this is an unsigned integer (not bool)."""
        return Element.U8 <= self <= Element.U64

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the greatest number of an integer element."""
        bits = self.bits
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self >= Element.I8 else (0, (1 << bits) - 1)

    @property
    def compute(self) -> Element:
        """The element arithmetic is carried out in: f32 for half types and 8-bit floats, else itself."""
        return Element.F32 if self.is_half or self in (Element.F8E4M3, Element.F8E5M2) else self

    @property
    def statistic(self) -> Element:
        """The element of saved statistics (rstd, lse): f64 for f64, else f32."""
        return Element.F64 if self is Element.F64 else Element.F32

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; bf16 and fp8 need the package ml_dtypes."""
        name = _NUMPY_NAMES.get(str(self), "uint8")
        if self in (Element.BF16, Element.F8E4M3, Element.F8E5M2):
            try:
                import ml_dtypes
            except ImportError:
                raise InvalidProblemError(
                    f"element: NumPy has no {self} of its own. Install ml_dtypes to use it with NumPy arrays."
                ) from None
            name = getattr(ml_dtypes, name)
        made: np.dtype[Any] = np.dtype(name)
        return made

    @classmethod
    def coerce(cls, value: Any, field: str = "element") -> Element:
        """An element from its name or any framework's dtype.

        Args:
            value: "f32", "float32", np.float32, torch.float32, jnp.bfloat16, ml_dtypes.bfloat16 or an Element.
            field: What to call it in an error.

        Raises:
            InvalidProblemError: If it names no element.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            name = value
        elif isinstance(value, np.dtype):
            name = value.name if value.isnative else f"non-native {value.str}"
        else:
            name = getattr(value, "__name__", None) or getattr(value, "name", None) or str(value)
        name = str(name).removeprefix("torch.")
        found = _BY_NAME.get(_ALIASES.get(name, name))
        if found is None:
            raise InvalidProblemError(
                f"{field}: got {shown(value)}, want one of {', '.join(_BY_NAME)} or a dtype of NumPy, torch, jax or ml_dtypes{_meant(name)}"
            )
        return found


# What elements are called elsewhere.
_ELSEWHERE = {
    "fp16": "f16", "fp32": "f32", "fp64": "f64", "bfp16": "bf16", "bf": "bf16", "fp8": "f8e4m3", "float8": "f8e4m3",
    "e4m3": "f8e4m3", "e5m2": "f8e5m2", "short": "i16", "byte": "u8", "char": "i8",
    "complex": "c64", "single": "f32", "integer": "i64",
}  # fmt: skip


def _meant(name: str) -> str:
    """The element that a name which is none was for: the end of a message."""
    plain = name.lower()
    found = _ELSEWHERE.get(plain) or near(plain, [*_BY_NAME, *_ALIASES])
    return f"; did you mean {found!r}?" if found else "."


_BY_NAME = {str(e): e for e in Element}
