"""What a network is given and gives: names, elements and shapes; and arrays of any library for them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import onnx

import baracuda as bc
from baracuda import Dim, InvalidProblemError, Refusal
from baracuda.describe.errors import shown

Size = int | str | Dim


@dataclass(frozen=True)
class Port:
    """An input or an output.

    Attributes:
        name: Its name.
        element: Of its numbers, as `f32`; empty where the file does not say, or it is no tensor of numbers.
        shape: Sizes: numbers, names of what is open, or `bc.Dim`s; None where the file does not say.
    """

    name: str
    element: str
    shape: tuple[Size, ...] | None

    def __str__(self) -> str:
        """As `x: f32 [batch, 3, 224, 224]`."""
        sizes = "[?]" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        return f"{self.name}: {self.element or '?'} {sizes}"

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> Port:
        """That of a graph."""
        kind = value.type.tensor_type
        shape = None
        if kind.HasField("shape"):
            shape = tuple(_size(d, f"{value.name}.{i}") for i, d in enumerate(kind.shape.dim))
        try:
            element = str(bc.Element.coerce(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)))
        except (KeyError, bc.BaracudaError):
            element = ""
        return cls(value.name, element, shape)

    def with_sizes(self, sizes: Mapping[str, int | Dim]) -> Port:
        """With names replaced by numbers or `bc.Dim`s."""
        if self.shape is None:
            return self
        return Port(self.name, self.element, tuple(sizes.get(n, n) if isinstance(n, str) else n for n in self.shape))


def _size(dim: Any, name: str) -> Size:
    """A size; of one that has no name the input's name and the axis is one."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    given = str(dim.dim_param)
    return given if given and given != "?" else name


def open_names(ports: Iterable[Port]) -> list[str]:
    """Names of sizes that are not known."""
    return list(dict.fromkeys(n for p in ports for n in p.shape or () if isinstance(n, str)))


def checked_sizes(given: Mapping[str, Any], ports: Sequence[Port]) -> dict[str, int | Dim]:
    """Sizes that the user gives, by name.

    Raises:
        InvalidProblemError: A name is none of the inputs' sizes, or a value no size.
    """
    names = open_names(ports)
    for name, value in given.items():
        if name not in names:
            near = _near(name, names)
            raise InvalidProblemError(
                f"dims: got {shown(name)}, want some of {', '.join(names) or 'none: all sizes are fixed'}.{near}"
            )
        if isinstance(value, bool) or not isinstance(value, (int, Dim)) or (isinstance(value, int) and value < 0):
            raise InvalidProblemError(f"dims[{name!r}]: got {shown(value)}, want a size, or bc.Dim({name!r}, max=...).")
    return dict(given)


def _near(name: Any, names: Sequence[str]) -> str:
    by_letters = {n.lower(): n for n in names}
    found = get_close_matches(str(name).lower(), by_letters, 1)
    return f" Is {by_letters[found[0]]!r} meant?" if found else ""


def taken(feeds: Any, ports: Sequence[Port]) -> list[Any]:
    """The values of inputs in order, checked.

    Raises:
        InvalidProblemError: A name is unknown or missing, or a value has another element or shape; says what to do.
    """
    names = [p.name for p in ports]
    if not isinstance(feeds, Mapping):
        raise InvalidProblemError(f"run: got {shown(feeds)}, want a dict of the inputs {', '.join(names) or '(none)'}.")
    for name in feeds:
        if name not in names:
            raise InvalidProblemError(
                f"run: got input {shown(name)}, want {', '.join(names) or 'no inputs'}.{_near(name, names)}",
                [Refusal("unknown_argument", str(name), "no input of the network", ", ".join(names))],
            )
    if lacking := [str(p) for p in ports if p.name not in feeds]:
        raise InvalidProblemError(
            f"run: got no {lacking[0].partition(':')[0]!r}, want {'; '.join(lacking)} as well.",
            [Refusal("missing_argument", lacking[0], "nothing", "an array")],
        )
    return [_checked(feeds[p.name], p) for p in ports]


def _checked(value: Any, port: Port) -> Any:
    """A value as an array, of the port's element and shape; numbers and lists become arrays of NumPy."""
    if value is None or (isinstance(value, (list, tuple)) and not port.element):
        return value
    if isinstance(value, (bool, int, float, list, tuple, np.generic)):
        value = _array_of(value, port)
    if isinstance(value, np.ndarray) and not is_tensor(value):
        return value  # the operators that take it say so
    tensor = value if isinstance(value, bc.Tensor) else _borrowed(value, port)
    if port.element and str(tensor.element) != port.element:
        raise InvalidProblemError(
            f"input {port.name!r}: got elements of {tensor.element}, want {port.element}: cast it (F.cast(x, {port.element!r})).",
            [Refusal("element", port.name, str(tensor.element), port.element)],
        )
    if port.shape is not None and not _fits(tensor.shape, port):
        raise InvalidProblemError(
            f"input {port.name!r}: got shape {tensor.shape}, want [{', '.join(map(str, port.shape))}].",
            [Refusal("shape", port.name, str(tensor.shape), str(port.shape))],
        )
    return value


def _array_of(value: Any, port: Port) -> Any:
    """Numbers and lists as an array of the port's element, where it holds them."""
    try:
        array = np.asarray(value)
        if not port.element:
            return array
        made = array.astype(bc.Element.coerce(port.element).numpy)
        # Floats are rounded to the element; integers are the same ones.
        if array.dtype.kind not in "biuf" or (made.dtype.kind in "biu" and not np.array_equal(made, array)):
            raise ValueError("its values are no such numbers")
        return made
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidProblemError(
            f"input {port.name!r}: got {shown(value)}, want an array of {port.element or 'numbers'}: {error}."
        ) from None


def is_tensor(array: Any) -> bool:
    """Whether kernels here have the array's element, one to an item."""
    try:
        return bc.Element.coerce(array.dtype).bits >= 8
    except bc.BaracudaError:
        return False


def _borrowed(value: Any, port: Port) -> Any:
    try:
        return bc.from_dlpack(value)
    except (bc.BaracudaError, TypeError, BufferError, RuntimeError) as error:
        raise InvalidProblemError(f"input {port.name!r}: got {shown(value)}, want an array: {error}") from error


def _fits(shape: Sequence[int], port: Port) -> bool:
    """Whether sizes are those that are known; exporters give one name to sizes that differ, so names say nothing."""
    wanted = port.shape or ()
    if len(shape) != len(wanted):
        return False
    for n, size in zip(shape, wanted, strict=True):
        if (isinstance(size, int) and n != size) or (
            isinstance(size, Dim) and n > size.max * size.mul // size.div + size.add
        ):
            return False
    return True


def like(value: Any) -> Any:
    """What makes arrays of a value's library of tensors of ours."""
    if value is None or isinstance(value, (np.ndarray, np.generic)):
        return lambda t: t.numpy()
    if isinstance(value, bc.Tensor):
        return lambda t: t
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return torch.from_dlpack
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        import jax

        return jax.dlpack.from_dlpack
    found = getattr(inspect.getmodule(type(value)), "from_dlpack", None)
    return found if callable(found) else lambda t: t.numpy()
