"""Random integers, coin tosses, permutations and samples by Philox4x32-10. Kernels in csrc/ops/random, reference in discrete_ref.py.

Results depend on (seed, offset), the element's place in logical row-major order and the arguments only: the same bits
for every layout, thread count and backend. Words w0..w3 of block b are those of baracuda.ops.random.random. The mapping:

- bernoulli: y = 1 where word < ceil(p 2**32): element i takes word i % 4 of block i // 4. Where p is f64 (y, where p is
  a number and y is f64), 64 bits: words 2k, 2k + 1 of block i // 2, k = i % 2, and ceil(p 2**64).
- randint: x = 64 bits as above; y = low + floor(x n / 2**64), n = high - low. Where x n mod 2**64 < 2**64 mod n, x is
  passed over (Lemire), so that all numbers have the same probability: try k takes its block with k in the counter's
  third word.
- randperm: words of 6 blocks are the keys of 24 rounds of an unbalanced Feistel network over the least 2**m >= 2 n;
  y[i] = what i becomes, sent through again until it is below n. First the lowest bit of a seventh block exchanges 0 and
  1 or does not: the network alone makes even permutations only.
- multinomial: a row's probabilities are integers: p 2**s, rounded to nearest, s such that the largest has 62 -
  ceil(log2(categories)) bits. Sample j of row r is the category in which a number below their sum falls, drawn as
  element r num_samples + j of randint. Without replacement, what was drawn no longer counts.
"""

from __future__ import annotations

from typing import Any

from baracuda import _core
from baracuda.call.op import NotDifferentiable, Op, composite, run_new
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, check_shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar, tensor
from baracuda.memory.generator import Generator, chosen
from baracuda.memory.results import fresh
from baracuda.ops.random.random import planned


@descriptor(family="random", op="bernoulli")
class BernoulliDescriptor(Descriptor):
    """y = 1 with probability p, else 0; the exact mapping is in the module's docstring.

    p lies in [0, 1]: another number is refused, another value in a tensor is a ValueOutOfRangeError.

    Args:
        shape: Shape of y, rank 0-8.
        element: Of y: a float, an integer or bool.
        p_element: Element of p, a tensor of y's shape: f16, bf16, f32 or f64; None where p is a number given to run.
    """

    shape: Shape
    element: Element = Element.F32
    p_element: Element | None = None

    def aux_element(self) -> Element:
        return self.p_element or (Element.F64 if self.element is Element.F64 else Element.F32)

    def signature(self) -> Signature:
        given = self.p_element is not None
        return Signature(
            tensor("p", self.shape, self.p_element or Element.F32, present=given),
            output("y", self.shape, self.element),
            scalar("p", default=0.5, present=not given),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return product(self.shape).ceil(2 if self.aux_element() is Element.F64 else 4)


@descriptor(family="random", op="randint")
class RandintDescriptor(Descriptor):
    """Integers low <= y < high, all with exactly the same probability; the mapping is in the module's docstring.

    Scalars: low < high, which the element must hold, seed and offset.

    Args:
        shape: Shape of y, rank 0-8.
        element: An integer, a float or bool.
    """

    shape: Shape
    element: Element = Element.I64

    def signature(self) -> Signature:
        return Signature(
            output("y", self.shape, self.element),
            scalar("low", "int", 0),
            scalar("high", "int"),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return product(self.shape).ceil(2)


@descriptor(family="random", op="randperm")
class RandpermDescriptor(Descriptor):
    """A random permutation of 0 .. n - 1, worked out number by number; the mapping is in the module's docstring.

    Args:
        n: How many numbers; the element must hold them.
        element: An integer or a float.
    """

    n: int
    element: Element = Element.I64

    def validate(self) -> None:
        if isinstance(self.n, Dim) or self.n < 0:
            raise self.wrong("n", self.n, "an int of at least 0")
        held = {Element.F16: 2**11, Element.BF16: 2**8, Element.F32: 2**24, Element.F64: 2**53}
        bits = self.element.bits - (str(self.element)[0] == "i")
        if self.n - 1 > held.get(self.element, 2**bits - 1):
            raise self.wrong("n", self.n, f"numbers that {self.element} holds")

    def signature(self) -> Signature:
        return Signature(
            output("y", (self.n,), self.element), scalar("seed", "unsigned"), scalar("offset", "unsigned", 0)
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return SizeExpr.of(7)


@descriptor(family="random", op="multinomial")
class MultinomialDescriptor(Descriptor):
    """Categories drawn with probabilities in proportion to p; the mapping is in the module's docstring.

    Values of p are finite and not negative, and those of a row not all 0 (else ValueOutOfRangeError); they need not add
    up to 1. A value below 2**-62 categories of the row's largest counts as 0. Without replacement no category is drawn
    twice, and a row with fewer than `samples` that are not 0 is an error.

    Args:
        p_shape: Shape of p: (categories,) or (rows, categories).
        samples: How many are drawn from each row.
        replacement: Whether a category may be drawn again.
        element: Of p: f16, bf16, f32 or f64; y is i64.
    """

    p_shape: Shape
    samples: int
    replacement: bool = False
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.p_shape) not in (1, 2):
            raise self.wrong("p_shape", self.p_shape, "(categories,) or (rows, categories)")
        if self.samples < 0:
            raise self.wrong("samples", self.samples, "at least 0")
        categories = self.p_shape[-1]
        if not self.replacement and isinstance(categories, int) and self.samples > categories:
            raise self.wrong("samples", self.samples, f"at most the {categories} categories without replacement")

    def signature(self) -> Signature:
        return Signature(
            tensor("p", self.p_shape, self.element),
            output("y", (*self.p_shape[:-1], self.samples), Element.I64),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return (product(self.p_shape[:-1]) * self.samples).ceil(2)


_WHY = NotDifferentiable("random numbers are not a function of a tensor")
OPS = (
    Op("bernoulli", BernoulliDescriptor, _WHY, "y = 1 with probability p, else 0"),
    Op("randint", RandintDescriptor, _WHY, "low <= y < high, each with the same probability"),
    Op("randperm", RandpermDescriptor, _WHY, "y = a random permutation of 0 .. n - 1"),
    Op("multinomial", MultinomialDescriptor, _WHY, "y = categories drawn in proportion to p"),
)


@composite
def bernoulli(input: Any, *, generator: Any = None, out: Any = None) -> Any:
    """1 with the probability that `input` holds, else 0, element by element, as torch.bernoulli.

    Not torch's stream: the same generator state gives other numbers than torch, but the same on every backend and
    layout.

    Args:
        input: Probabilities.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        out: Array of the same shape to fill, of any element.
    """
    shape, code, _, *place = _core.describe(input)
    element = Element(code)
    result = element if out is None else Element(_core.describe(out)[1])
    made, blocks = planned(BernoulliDescriptor(shape, result, element), (place[0], place[1]))
    return chosen(generator).draw(blocks, lambda s, o: run_new(made, input, out, p=input, seed=s, offset=o))


@composite
def bernoulli_(input: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fills `input` with 1 with probability `p`, else 0, and returns it, as Tensor.bernoulli_; p is a number."""
    shape, code, _, *place = _core.describe(input)
    made, blocks = planned(BernoulliDescriptor(shape, Element(code)), (place[0], place[1]))
    return chosen(generator).draw(blocks, lambda s, o: made.run(input, p, s, o))


@composite
def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    out: Any = None,
) -> Any:
    """Integers low <= y < high, with the arguments of torch.randint: (high, size) or (low, high, size).

    All numbers have exactly the same probability. Not torch's stream: the same generator state gives other numbers than
    torch, but the same on every backend and layout.

    Args:
        low: Lower end; 0 where it is left out.
        high: Upper end, which is never reached.
        size: Shape of the result.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        dtype: Element of the result, i64 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; size and dtype are then its own.
    """
    if size is None and isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None and out is None:
        raise InvalidProblemError("randint: size: got None, want a shape: randint(high, size) or (low, high, size).")
    element = Element.I64 if dtype is None else Element.coerce(dtype, "dtype")
    y = fresh(() if out is not None else check_shape(size, "size"), element, device, out)
    return _fill_integers(y, low, high, generator)


@made_of("cast randint")
@composite
def randint_like(
    input: Any, low: Any, high: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None
) -> Any:
    """Integers low <= y < high in the shape and element of `input`, or in `dtype`, as torch.randint_like; see randint.

    Args:
        input: A tensor, of which shape, element and kind matter. Of floats the integers are cast.
        low: Lower end; where `high` is left out, that, and the lower end is 0.
        high: Upper end, which is never reached.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        dtype: Element of the result.
        device: That of `input`, or None.
    """
    from baracuda.ops.cast.cast import cast
    from baracuda.ops.random.random import asked_like, run_like

    low, high = (0, low) if high is None else (low, high)
    shape, element = asked_like(input, dtype, device)
    whole = Element.I64 if element.is_float else element
    made = run_like(input, shape, lambda y: _fill_integers(y, low, high, generator), whole)
    return made if whole is element else cast(made, element)


@made_of("randint")
@composite
def random_(input: Any, low: Any, high: Any, *, generator: Any = None) -> Any:
    """Fills `input` with integers low <= y < high and returns it, as Tensor.random_."""
    return _fill_integers(input, low, high, generator)


def _fill_integers(y: Any, low: Any, high: Any, generator: Generator | None) -> Any:
    shape, code, _, *place = _core.describe(y)
    made, blocks = planned(RandintDescriptor(shape, Element(code)), (place[0], place[1]))
    return chosen(generator).draw(blocks, lambda s, o: made.run(y, low, high, s, o))


@composite
def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """A random permutation of 0 .. n - 1, as torch.randperm.

    Not torch's stream: the same generator state gives other numbers than torch, but the same on every backend and
    layout.

    Args:
        n: How many numbers.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        dtype: Element of the result, i64 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array of n elements to fill instead of making one; dtype is then its own.
    """
    element = Element.I64 if dtype is None else Element.coerce(dtype, "dtype")
    y = fresh(check_shape((n,), "n"), element, device, out)
    _, code, _, *place = _core.describe(y)
    made, blocks = planned(RandpermDescriptor(n, Element(code)), (place[0], place[1]))
    return chosen(generator).draw(blocks, lambda s, o: made.run(y, s, o))


@composite
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Any:
    """Categories drawn from each row of `input` in proportion to its values, as torch.multinomial.

    Not torch's stream: the same generator state gives other numbers than torch, but the same on every backend and
    layout.

    Args:
        input: Values of the categories, (categories,) or (rows, categories); not negative, not all 0.
        num_samples: How many are drawn from each row.
        replacement: Whether a category may be drawn again.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.
        out: Array of i64 to fill.
    """
    shape, code, _, *place = _core.describe(input)
    categories = shape[-1] if shape else 0
    if num_samples < 0 or (shape and not replacement and num_samples > categories):
        want = "at least 0" if num_samples < 0 else f"at most the {categories} categories without replacement"
        raise InvalidProblemError(f"num_samples: got {num_samples}, want {want}.")
    desc = MultinomialDescriptor(shape, num_samples, replacement, Element(code))
    made, blocks = planned(desc, (place[0], place[1]))
    return chosen(generator).draw(blocks, lambda s, o: run_new(made, input, out, p=input, seed=s, offset=o))
