"""Sums of products over labelled dimensions: the steps of einsum, tensordot and their kin, and of their gradients.

A network is found from labels and sizes alone: operands are first reduced to the labels that something else needs
(diagonals, sums), then multiplied in pairs, each by one plan: a batched matrix product of permuted views, or a product
element by element where nothing is summed. Labels of size 1 take no part; they come back in the result's shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import TypeAlias

from baracuda.call.compose import Composer, Shape, Value
from baracuda.describe.dims import MAX_RANK, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import promote

Labels: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = dict[int, int]
Path: TypeAlias = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Node:
    """A reduced operand (`leaf` is its number) or the product of two nodes; `labels` are its dimensions, size 1 left out."""

    labels: Labels
    leaf: int = -1
    left: Node | None = None
    right: Node | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """Which operands are multiplied when.

    Attributes:
        operands: Labels of each operand's dimensions; a repeated one means a diagonal.
        result: Labels of the result.
        sizes: Size of every label.
        root: The last product.
    """

    operands: tuple[Labels, ...]
    result: Labels
    sizes: Sizes
    root: Node

    @property
    def large(self) -> Labels:
        """The labels of the result that are larger than 1."""
        return tuple(n for n in self.result if self.sizes[n] != 1)


def _needed(labels: Labels, others: Sequence[Node], result: Labels) -> Labels:
    wanted = {n for node in others for n in node.labels} | set(result)
    return tuple(n for n in labels if n in wanted)


def _product(a: Node, b: Node, others: Sequence[Node], result: Labels) -> Node:
    both = (*a.labels, *(n for n in b.labels if n not in a.labels))
    return Node(_needed(both, others, result), left=a, right=b)


def network(operands: Sequence[Labels], shapes: Sequence[Shape], result: Labels, path: Path | None = None) -> Network:
    """The order in which operands are multiplied.

    Args:
        operands: Labels of each operand's dimensions.
        shapes: Their sizes; 1 is broadcast.
        result: Labels of the result.
        path: Pairs of places in the list of what is left, to which each product is appended; None: the two of which the
            product adds least to what is left, then the cheapest one, then the first.
    """
    sizes: Sizes = {}
    for labels, shape in zip(operands, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    own = [
        Node(tuple(dict.fromkeys(n for n, s in zip(labels, shape, strict=True) if s != 1 and sizes[n] != 1)), leaf=i)
        for i, (labels, shape) in enumerate(zip(operands, shapes, strict=True))
    ]
    left = [replace(x, labels=_needed(x.labels, [*own[:i], *own[i + 1 :]], result)) for i, x in enumerate(own)]
    steps = list(path or ())
    while len(left) > 1:
        i, j = steps.pop(0) if steps else _cheapest(left, result, sizes)
        a, b = left[i], left[j]
        others = [x for k, x in enumerate(left) if k not in (i, j)]
        left = [*others, _product(a, b, others, result)]
    return Network(tuple(operands), result, sizes, left[0])


def _cheapest(left: Sequence[Node], result: Labels, sizes: Sizes) -> tuple[int, int]:
    def cost(pair: tuple[int, int]) -> tuple[int, int, int]:
        a, b = left[pair[0]], left[pair[1]]
        made = _product(a, b, [x for x in left if x is not a and x is not b], result)
        kept, gone = (prod(sizes[n] for n in x.labels) for x in (a, b))
        flops = prod(sizes[n] for n in {*a.labels, *b.labels})
        return prod(sizes[n] for n in made.labels) - kept - gone, flops, pair[1]

    return min(combinations(range(len(left)), 2), key=cost) if len(left) > 2 else (0, 1)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value and what its dimensions are called; each once."""

    value: Value
    labels: Labels

    def ordered(self, labels: Labels) -> Value:
        """The dimensions in this order, of size 1 where the value has none."""
        return self.value.permute([self.labels.index(n) if n in self.labels else -1 for n in labels])


def _diagonal(x: Value, labels: Labels, sizes: Sizes) -> Labelled:
    """One dimension per label that is larger than 1: repeated ones are walked together."""
    steps: dict[int, int] = {}
    for label, size, step in zip(labels, x.shape, x.strides, strict=True):
        if size != 1 and sizes[label] != 1:
            steps[label] = steps.get(label, 0) + step
    shape = tuple(sizes[n] for n in steps)
    return Labelled(replace(x, shape=shape, strides=tuple(steps.values())), tuple(steps))


def _reduced(c: Composer, x: Labelled, labels: Labels) -> Labelled:
    """Summed over all other labels."""
    from baracuda.ops.reduce.reduce import ReduceDescriptor

    axes = tuple(i for i, n in enumerate(x.labels) if n not in labels)
    kept = tuple(n for n in x.labels if n in labels)
    if not axes:
        return x
    return Labelled(c(ReduceDescriptor("sum", x.value.shape, axes, element=x.value.element), x=x.value), kept)


_Groups: TypeAlias = tuple[Labels, Labels, Labels]


def _as_matrices(x: Labelled, groups: _Groups) -> tuple[Value, Shape]:
    """The dimensions in the order of batch, rows and columns, and the shape in which each of the last two is one."""
    seen, at = x.ordered(tuple(n for group in groups for n in group)), len(groups[0])
    rows = at + len(groups[1])
    lead = seen.shape[:at] if at + 2 <= MAX_RANK else (prod(seen.shape[:at]),)
    return seen, (*lead, prod(seen.shape[at:rows]), prod(seen.shape[rows:]))


def _copies(x: Labelled, groups: _Groups) -> bool:
    """Whether strides do not let several dimensions be seen as one."""
    seen, shape = _as_matrices(x, groups)
    return seen.reshape(shape) is None


def multiply(c: Composer, a: Labelled, b: Labelled, result: Labels) -> Labelled:
    """The product of two, summed over the labels that `result` lacks; these are in both.

    The dimensions of what this gives may stand in another order in memory than in `result`.
    """
    if len(result) > MAX_RANK:
        want = f"at most {MAX_RANK}. Contract in steps, or name other operands first"
        raise InvalidProblemError(f"got a product of {len(result)} dimensions larger than 1, want {want}.")
    from baracuda.ops.binary.binary import BinaryDescriptor
    from baracuda.ops.matmul.matmul import MatmulDescriptor

    inner = tuple(n for n in a.labels if n in b.labels and n not in result)
    element = _common(a.value.element, b.value.element, bool(inner))
    if not inner:
        x, y = a.ordered(result), b.ordered(result)
        desc = BinaryDescriptor("mul", x.shape, y.shape, element, x.element, y.element)
        return Labelled(c(desc, a=x, b=y), result)
    if result and result[-1] in a.labels and result[-1] not in b.labels:
        a, b = b, a
    a, b = Labelled(c.cast(a.value, element), a.labels), Labelled(c.cast(b.value, element), b.labels)
    batch = tuple(n for n in result if n in a.labels and n in b.labels)
    rows = tuple(n for n in result if n in a.labels and n not in b.labels)
    columns = tuple(n for n in result if n in b.labels and n not in a.labels)
    orders = [tuple(n for n in x.labels if n in inner) for x in (a, b)]
    inner = min(orders, key=lambda k: _copies(a, (batch, rows, k)) + _copies(b, (batch, k, columns)))
    x = c.reshape(*_as_matrices(a, (batch, rows, inner)))
    y = c.reshape(*_as_matrices(b, (batch, inner, columns)))
    made: Value = c(MatmulDescriptor(x.shape, y.shape, element), a=x, b=y)
    order = (*batch, *rows, *columns)
    sizes = dict(zip(a.labels, a.value.shape, strict=True)) | dict(zip(b.labels, b.value.shape, strict=True))
    return Labelled(c.reshape(made, tuple(sizes[n] for n in order)), order)


def _common(a: Element, b: Element, summed: bool) -> Element:
    """The element of a product; as in torch, only those of integers and products without a sum are promoted."""
    if a is not b and summed and (a.is_float or b.is_float):
        raise InvalidProblemError(f"got {a} and {b}, want one element for what is summed. Cast one of them.")
    return promote(a, b)


class Evaluation:
    """The values of a network's nodes, made when they are asked for."""

    def __init__(self, c: Composer, net: Network, operands: Sequence[Value], *, keeps: bool = False) -> None:
        self.c = c
        self.net = net
        self.keeps = keeps  # whether sums of one operand alone are of its element, as torch's tensordot has integers
        self.operands = operands
        self.found: dict[int, Labelled] = {}

    def value(self, node: Node) -> Labelled:
        """The value of a node."""
        if id(node) not in self.found:
            self.found[id(node)] = self._made(node)
        return self.found[id(node)]

    def _made(self, node: Node) -> Labelled:
        if node.left is not None and node.right is not None:
            a, b = self.value(node.left), self.value(node.right)
            last = node is self.net.root
            wanted = tuple(n for n in self.net.result if n in node.labels) if last else node.labels
            return multiply(self.c, a, b, wanted)
        x = _diagonal(self.operands[node.leaf], self.net.operands[node.leaf], self.net.sizes)
        made = _reduced(self.c, x, node.labels)
        return Labelled(self.c.cast(made.value, x.value.element), made.labels) if self.keeps else made

    def result(self) -> Value:
        """What the network gives."""
        return self.value(self.net.root).ordered(self.net.result)

    def gradients(self, dy: Value) -> tuple[Value, ...]:
        """Gradients of the operands, in their shapes and elements, from the result's."""
        shape = tuple(self.net.sizes[n] for n in self.net.result)
        if dy.shape != shape:
            raise InvalidProblemError(f"dy: got shape {shape_text(dy.shape)}, want {shape_text(shape)}, as the result.")
        kept = [i for i, n in enumerate(self.net.result) if self.net.sizes[n] != 1]
        return self.gradients_of(Labelled(dy.permute(kept), self.net.large))

    def gradients_of(self, dy: Labelled) -> tuple[Value, ...]:
        """The same, from the result's gradient without dimensions of size 1."""
        self._check(dy.value.element)
        made: dict[int, Value] = {}
        waiting = [(self.net.root, dy)]
        while waiting:
            node, dnode = waiting.pop()
            if node.left is None or node.right is None:
                made[node.leaf] = self._spread(node.leaf, dnode)
                continue
            for one, other in ((node.left, node.right), (node.right, node.left)):
                factor = self.value(other)
                same = Labelled(self.c.cast(factor.value, dnode.value.element), factor.labels)
                waiting.append((one, multiply(self.c, dnode, same, one.labels)))
        return tuple(made[i] for i in range(len(self.operands)))

    def _check(self, given: Element) -> None:
        element = self.operands[0].element
        for x in self.operands[1:]:
            element = promote(element, x.element)
        if not element.is_float:
            raise InvalidProblemError(f"got operands of {element}, want floats: integers have no gradient.")
        if given is not element:
            raise InvalidProblemError(f"dy: got {given}, want {element}, as the result. Cast it first.")

    def _spread(self, leaf: int, dnode: Labelled) -> Value:
        """The gradient of an operand from that of its reduced form."""
        x, labels = self.operands[leaf], self.net.operands[leaf]
        value = self.c.cast(dnode.value, x.element)
        sizes = self.net.sizes
        counted = {n: labels.count(n) for n in labels if sizes[n] != 1}
        if all(k == 1 for k in counted.values()):
            seen = Labelled(value, dnode.labels).ordered(labels)
            return seen.expand(x.shape)
        target = self.c.zeros(x.shape, x.element)
        from baracuda.ops.layout.layout import CopyDescriptor

        diagonal = _diagonal(target, labels, sizes)
        seen = Labelled(value, dnode.labels).ordered(diagonal.labels).expand(diagonal.value.shape)
        self.c(CopyDescriptor(seen.shape, x.element), x=seen, y=diagonal.value)
        return target
