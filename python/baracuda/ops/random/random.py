"""Random fills by Philox4x32-10. Kernels in csrc/ops/random, reference in random_ref.py.

Element i, counted in logical row-major order, depends on (seed, offset, i) and the scalars only: the same bits for
every layout, thread count and backend (normals: within 4 ulp between backends). The mapping, which other programs may
rely on:

- A block is Philox4x32-10 of the 128-bit counter (offset + b modulo 2**64 in the lower half, 0 in the upper) under the
  64-bit key `seed`; it gives words w0..w3. Key and counter words are little-endian: word 0 holds the lowest 32 bits.
- f32, f16, bf16: element i uses block b = i // 4 and word k = i % 4. f64: block b = i // 2 and words 2k, 2k + 1, k = i
  % 2.
- uniform: u = (w_k >> 8) * 2**-24, for f64 u = ((w_{2k+1} >> 6) * 2**27 + (w_{2k} >> 5)) * 2**-53. y = low + u * span
  in the compute type, where low and span = high - low are rounded to it first; u = u_hi + u_lo splits after the upper
  12 (f64: 26) bits, span = s_hi + s_lo after rounding to 12 (f64: 26) bits, half up in magnitude, and
  y = low + (u_hi * s_hi + (u_hi * s_lo + (u_lo * s_hi + u_lo * s_lo))), in which every product is exact. y is cut to
  [least stored value >= low, greatest stored value < high] and then rounded to the stored element, so `high` is never
  reached. If no stored value lies in [low, high), all elements are low, rounded.
- normal: Box-Muller on words (w0, w1) for elements 4b, 4b + 1 and (w2, w3) for 4b + 2, 4b + 3: r = sqrt(-2 log(v)),
  v = f32(w0 >> 1) * 2**-31 + 2**-32; z = r cos(2 pi a), r sin(2 pi a), a = w1 * 2**-32. f64 makes two elements of a
  block: v = ((w1 >> 6) * 2**27 + (w0 >> 5) + 1) * 2**-53, a = (w3 * 2**21 + (w2 >> 11)) * 2**-53. y = mean + std * z.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import nextafter
from typing import Any

from baracuda import _core
from baracuda.call.allocation import of_numpy, orders
from baracuda.call.op import NotDifferentiable, Op, composite
from baracuda.call.steps import made_of
from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import Shape, check_shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import SAME
from baracuda.describe.promotion import broadcast
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar
from baracuda.memory.device import Place, name_of, place_of
from baracuda.memory.generator import Generator, chosen
from baracuda.memory.results import allocated, foreign_converter, fresh, new_result


@descriptor(family="random", kinds=("uniform", "normal"))
class RandomDescriptor(Descriptor):
    """Fills y with random numbers; the exact mapping is in the module's docstring.

    Scalars of "uniform": low, high (finite, low <= high); of "normal": mean, std (finite, std >= 0); then seed and
    offset of both. Bits depend on neither layout nor thread count.

    Args:
        kind: "uniform" on [low, high), or "normal".
        shape: Shape of y, rank 0-8.
        element: f16, bf16, f32 or f64.
    """

    kind: str
    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        moments = ("low", "high") if self.kind == "uniform" else ("mean", "std")
        return Signature(
            output("y", self.shape, self.element),
            scalar(moments[0], default=0.0),
            scalar(moments[1], default=1.0),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return product(self.shape).ceil(2 if self.element is Element.F64 else 4)


_WHY = NotDifferentiable("random numbers are not a function of a tensor")
OPS = (
    Op("uniform", RandomDescriptor, _WHY, "y[i] = low + (high - low) * u_i, u_i uniform on [0, 1)"),
    Op("normal", RandomDescriptor, _WHY, "y[i] = mean + std * z_i, z_i standard normal"),
)


@lru_cache(maxsize=256)
def planned(desc: Any, place: Place) -> tuple[Plan, int]:
    """The plan of a descriptor that draws, and the blocks that it takes of its generator."""
    return plan(desc, name_of(place)), desc.blocks().at({})


@lru_cache(maxsize=256)
def _planned(kind: str, shape: tuple[int, ...], element: Element, place: Place) -> tuple[Plan, int]:
    return planned(RandomDescriptor(kind, shape, element), place)


def _fill(kind: str, y: Any, first: Any, second: Any, generator: Generator | None) -> Any:
    shape, code, _, *place = _core.describe(y)
    made, drawn = _planned(kind, shape, Element(code), (place[0], place[1]))
    chosen(generator).draw(drawn, lambda seed, offset: made.run(y, first, second, seed, offset))
    return y


def _new(size: Any, dtype: Any, device: Any, out: Any) -> Any:
    element = Element.F32 if dtype is None else Element.coerce(dtype, "dtype")
    return fresh(() if out is not None else check_shape(size, "size"), element, device, out)


@composite
def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = (),
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
) -> Any:
    """Uniform numbers on [low, high), as numpy.random.uniform; `high` is never reached, in half types neither.

    Not torch's stream: the same generator state gives other numbers than torch, but the same on every backend and
    layout.

    Args:
        low: Lower end; a number.
        high: Upper end; a number, at least low.
        size: Shape of the result.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        dtype: Element of the result, f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; size and dtype are then its own.
    """
    return _fill("uniform", _new(size, dtype, device, out), low, high, generator)


@composite
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = (),
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
) -> Any:
    """Normal numbers, with the arguments of torch.normal: (mean, std, size) of numbers, or tensors of means and deviations.

    Not torch's stream: the same generator state gives other numbers than torch, but the same on every backend (within
    4 ulp) and layout.

    Args:
        mean: Mean; a number, or without a size a tensor of one for every element.
        std: Standard deviation; a number, at least 0, or such a tensor.
        size: Shape of the result; that of the tensors, broadcast, where there are some.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        dtype: Element of the result, f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; size and dtype are then its own.
    """
    moments = [x for x in (mean, std) if hasattr(x, "__dlpack__")]
    if moments and size == () and out is None:
        return _of_moments(mean, std, moments, generator)
    return _fill("normal", _new(size, dtype, device, out), mean, std, generator)


def _of_moments(mean: Any, std: Any, moments: list[Any], generator: Any) -> Any:
    """Standard normal numbers times std plus mean, in the tensors' common shape."""
    from baracuda import functional as F

    shape: Any = ()
    for x in moments:
        shape = broadcast(shape, _core.describe(x)[0], "normal: mean and std")
    z = run_like(moments[0], shape, lambda y: _fill("normal", y, 0.0, 1.0, generator))
    return F.add(F.mul(z, std), mean)


def run_like(input: Any, shape: Any, fill: Callable[[Any], Any], element: Element | None = None) -> Any:
    """A new tensor of the kind of another one, and in its order where it has its shape, filled."""
    from baracuda.memory.tensor import empty

    sizes, code, strides, *place = _core.describe(input)
    device, kind = name_of((place[0], place[1])), element or Element(code)
    convert = foreign_converter(input)
    if convert is not None:
        return convert(fill(allocated(empty, (shape, kind, device), ("device",))))
    steps = SAME.strides(tuple(shape), [(sizes, strides)], of_numpy(input)) if orders(input) else None
    return fill(new_result(input, tuple(shape), kind, device, steps))


def rounded_into(out: Any, drawn: Any, element: Element) -> Any:
    """`out`, given what was drawn in a wider element; integers take their largest number where more was drawn."""
    from baracuda import functional as F

    if element.is_integer:
        most = 2.0 ** (element.bits - (0 if str(element).startswith("u") else 1))
        F.clamp(drawn, max=nextafter(most, 0.0) if element.bits == 64 else most - 1, out=drawn)
    return F.cast(drawn, element, out=out)


def _size(size: tuple[Any, ...]) -> Any:
    return size[0] if len(size) == 1 and isinstance(size[0], (list, tuple)) else size


@made_of("uniform")
@composite
def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """Uniform numbers on [0, 1), with the arguments of torch.rand; see uniform."""
    return _fill("uniform", _new(_size(size), dtype, device, out), 0.0, 1.0, generator)


@made_of("normal")
@composite
def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """Standard normal numbers, with the arguments of torch.randn; see normal."""
    return _fill("normal", _new(_size(size), dtype, device, out), 0.0, 1.0, generator)


def asked_like(input: Any, dtype: Any, device: Any) -> tuple[Any, Element]:
    """Shape and element of a result like `input`."""
    shape, code, _, *place = _core.describe(input)
    if device is not None and place_of(device) != tuple(place):
        raise InvalidProblemError(f"device: got {device}, want that of input, or none.")
    return shape, Element(code) if dtype is None else Element.coerce(dtype, "dtype")


def _like(kind: str, input: Any, dtype: Any, device: Any, generator: Any) -> Any:
    shape, element = asked_like(input, dtype, device)
    return run_like(input, shape, lambda y: _fill(kind, y, 0.0, 1.0, generator), element)


@made_of("uniform")
@composite
def rand_like(input: Any, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """Uniform numbers on [0, 1) in the shape and element of `input`, or in `dtype`, as torch.rand_like; see uniform."""
    return _like("uniform", input, dtype, device, generator)


@made_of("normal")
@composite
def randn_like(input: Any, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """Standard normal numbers in the shape and element of `input`, or in `dtype`, as torch.randn_like; see normal."""
    return _like("normal", input, dtype, device, generator)


@composite
def uniform_(input: Any, low: Any = 0.0, high: Any = 1.0, *, generator: Any = None) -> Any:
    """Fills `input` with uniform numbers on [low, high) and returns it, as Tensor.uniform_."""
    return _fill("uniform", input, low, high, generator)


@composite
def normal_(input: Any, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Any:
    """Fills `input` with normal numbers and returns it, as Tensor.normal_."""
    return _fill("normal", input, mean, std, generator)
