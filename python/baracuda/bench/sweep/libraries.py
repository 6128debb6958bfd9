"""The libraries that functions are measured beside: torch on its tensors, NumPy on its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baracuda.bench.sweep.cells import Cell
from baracuda.bench.sweep.sides import Unsuited, laid_out, numbers
from baracuda.prove import peers
from baracuda.prove.draws import Array, parameters

_TORCH = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "bool": "bool", "u8": "uint8"}
_WHOLE = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}
# What NumPy calls arguments, and functions of another name.
_KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axis"}
_NUMPY = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negative",
    "cat": "concatenate",
    "clamp": "clip",
}

_UNLIKE = frozenset(("var", "std"))  # other defaults than torch's


class Torch:
    """torch's functions on CPU tensors."""

    name = "torch"

    def __init__(self) -> None:
        """Needs torch."""
        import torch

        self.torch = torch

    def threads(self, count: int) -> None:
        """Sets how many it uses."""
        self.torch.set_num_threads(count)

    def dtype(self, name: str) -> Any:
        """Of an element's name."""
        return getattr(self.torch, (_TORCH | _WHOLE)[name])

    def make(self, array: Array, rng: np.random.Generator) -> Any:
        """A tensor."""
        torch, dtype = self.torch, self.dtype(array.element)
        values = torch.from_numpy(np.ascontiguousarray(numbers(array, rng)))
        if array.layout == "contiguous":
            return values.to(dtype)
        return laid_out(
            array,
            values,
            lambda shape: torch.empty(shape, dtype=dtype),
            lambda x, order: x.permute(order),
            lambda x, shape: x.expand(shape),
        )

    def function(self, cell: Cell) -> Callable[..., Any]:
        """Of this name, or the formula in its place."""
        return peers.torch_function(cell.name)

    def keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """They are the same."""
        return kwargs

    def wide(self, value: Any) -> Any:
        """Halves as f64."""
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return value.double() if value.dtype in (torch.float16, torch.bfloat16) else value
        if isinstance(value, dict):
            return {k: self.wide(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            made = [self.wide(v) for v in value]
            return value if all(a is b for a, b in zip(made, value, strict=True)) else type(value)(made)
        return value

    def out(self, result: Any) -> Any:
        """Of this shape."""
        if isinstance(result, (tuple, list)):
            raise Unsuited("theirs", TypeError("out= of several results"))
        return self.torch.empty_like(result)

    def numpy(self, result: Any) -> np.ndarray[Any, Any]:
        """Of a tensor, a number, or an array of ours."""
        if isinstance(result, self.torch.Tensor):
            result = result.detach()
            result = result.to(self.torch.float64) if result.is_floating_point() else result
            found: np.ndarray[Any, Any] = result.numpy()
            return found
        return np.asarray(result.numpy() if hasattr(result, "numpy") else result)

    def like(self, result: Any, rng: np.random.Generator) -> Any:
        """Normal numbers."""
        return self.torch.from_numpy(np.asarray(rng.standard_normal(tuple(result.shape)))).to(result.dtype)

    def gradient(self, cell: Cell, args: list[Any], kwargs: dict[str, Any], dy: list[Any]) -> Callable[[], Any]:
        """autograd.grad by the floats among the arguments, without those that ours has no gradient of."""
        import baracuda.functional as F

        torch, fn = self.torch, self.function(cell)
        constants: frozenset[str] = getattr(getattr(F, cell.name), "constants", frozenset())
        places = list(parameters(cell.name))
        still = [
            kwargs[k] if k in kwargs else args[places.index(k)]
            for k in (constants | {"target"}) & cell.arguments.keys()
        ]
        leaves: list[Any] = []

        def leaf(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if not value.is_floating_point() or any(value is s for s in still):
                    return value
                leaves.append(value.detach().requires_grad_())
                return leaves[-1]
            return type(value)(leaf(v) for v in value) if isinstance(value, (list, tuple)) else value

        given, named = [leaf(a) for a in args], {k: leaf(v) for k, v in kwargs.items()}

        def run() -> Any:
            made = fn(*given, **named)
            results = [y for y in (made if isinstance(made, (tuple, list)) else [made]) if y.requires_grad]
            return torch.autograd.grad(results, leaves, dy, allow_unused=True)

        return run


class NumPy:
    """NumPy's functions on its arrays."""

    name = "numpy"

    def threads(self, count: int) -> None:
        """It uses one, but for products."""

    def dtype(self, name: str) -> Any:
        """Of an element's name."""
        if name == "bf16":
            raise Unsuited("theirs", TypeError("NumPy has no bf16"))
        return np.dtype((_TORCH | _WHOLE)[name])

    def make(self, array: Array, rng: np.random.Generator) -> Any:
        """An array."""
        dtype = self.dtype(array.element)
        return laid_out(array, numbers(array, rng), lambda shape: np.empty(shape, dtype), np.transpose, np.broadcast_to)

    def function(self, cell: Cell) -> Callable[..., Any]:
        """Of this name in NumPy, with NumPy's words for dimensions."""
        found: Callable[..., Any] | None = getattr(np, _NUMPY.get(cell.name, cell.name), None)
        if found is None or cell.name in _UNLIKE:
            raise Unsuited("theirs", LookupError(f"NumPy has no {cell.name}"))
        return found

    def keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """As NumPy calls them."""
        return {_KEYWORDS.get(k, k): v for k, v in kwargs.items()}

    def wide(self, value: Any) -> Any:
        """Itself: NumPy's halves are compared as they are."""
        return value

    def out(self, result: Any) -> Any:
        """Of this shape."""
        return np.empty_like(result)

    def numpy(self, result: Any) -> np.ndarray[Any, Any]:
        """The array itself, floats as f64."""
        found = np.asarray(result.numpy() if hasattr(result, "numpy") else result)
        return found.astype(np.float64) if found.dtype.kind == "f" else found

    def like(self, result: Any, rng: np.random.Generator) -> Any:
        """Normal numbers."""
        return rng.standard_normal(result.shape).astype(result.dtype)

    def gradient(self, cell: Cell, args: list[Any], kwargs: dict[str, Any], dy: list[Any]) -> Callable[[], Any]:
        """NumPy has none."""
        raise Unsuited("theirs", LookupError("NumPy has no gradients"))


def library(name: str) -> Torch | NumPy:
    """By its name."""
    return Torch() if name == "torch" else NumPy()
