"""Tokens of a draft model judged by the target's probabilities. Kernels in csrc/ops/sampling, reference in draft_ref.py.

Speculative sampling (Leviathan et al., Chen et al., 2023): what comes out is distributed as if the target had drawn it.

Place i of row r, of n + 1, has block r (n + 1) + i of baracuda.ops.random.random, with words w0 to w3:

- Draft token i is kept where all before it are and target >= draft or u draft < target, as f32 are compared after one product:
  u = (w0 >> 8) 2**-24.
- In the place i of the first that is not kept a token is drawn by the weights max(target_i - draft_i, 0), or target_i where all
  of them are 0; after all n by target_n. It is drawn as multinomial's, by the 64 bits of w2 and w3.

A tree's places are walked from 0 on, the place behind token i being i + 1: at each a token is drawn by its target, with the 64
bits of w2 and w3 of its block, and where a child of the place holds that token, the walk goes on behind the first such child.
"""

from __future__ import annotations

from typing import Any

from baracuda import _core
from baracuda.call.op import NotDifferentiable, Op, composite, run_new
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar, tensor
from baracuda.memory.device import name_of
from baracuda.memory.generator import chosen
from baracuda.memory.results import allocated, foreign_converter, maker
from baracuda.memory.tensor import empty
from baracuda.ops.random.random import planned


@descriptor(family="sampling", op="verify_draft")
class VerifyDraftDescriptor(Descriptor):
    """y = the draft's tokens up to the first that the target does not keep, a token drawn in its place, then -1.

    The mapping is in the module's docstring. Where all are kept, the last token is one more, drawn from the target. Values of
    probabilities that are drawn from are finite and not negative and not all 0 (else ValueOutOfRangeError); draft tokens lie in
    the vocabulary (else IndexOutOfRangeError). Scalars: seed and offset.

    Args:
        draft_shape: Shape of draft, [rows, tokens, vocabulary]: what each draft token was drawn from.
        element: Of draft and target: f16, bf16 or f32; target is [rows, tokens + 1, vocabulary].
        token_element: Of draft_tokens, [rows, tokens]: i64 or i32. y, [rows, tokens + 1], and accepted, [rows], the number of
            draft tokens that are kept, are i64.
    """

    draft_shape: Shape
    element: Element = Element.F32
    token_element: Element = Element.I64

    def validate(self) -> None:
        if len(self.draft_shape) != 3 or isinstance(self.draft_shape[1], Dim):
            raise self.wrong("draft_shape", self.draft_shape, "[rows, tokens, vocabulary], tokens an int")

    def aux_element(self) -> Element:
        return self.token_element

    def signature(self) -> Signature:
        rows, drafted, vocabulary = self.draft_shape
        return Signature(
            tensor("draft", self.draft_shape, self.element),
            tensor("draft_tokens", (rows, drafted), self.token_element),
            tensor("target", (rows, drafted + 1, vocabulary), self.element),
            output("y", (rows, drafted + 1), Element.I64),
            output("accepted", (rows,), Element.I64),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        rows, drafted, _ = self.draft_shape
        return product((rows, drafted + 1))


@descriptor(family="sampling", op="verify_tree")
class VerifyTreeDescriptor(Descriptor):
    """y = tokens that the target draws one after another, along a tree of draft tokens for as long as one is there; then -1.

    The mapping is in the module's docstring. y is distributed as the target, whatever tokens the tree has. Values of
    probabilities that are drawn from are finite and not negative and not all 0 (else ValueOutOfRangeError); parents come before
    their children (else IndexOutOfRangeError). Scalars: seed and offset.

    Args:
        target_shape: Shape of target, [rows, tokens + 1, vocabulary]: place 0, and what comes after each of the tree's tokens.
        element: Of target: f16, bf16 or f32.
        token_element: Of tokens and parents, [rows, tokens]: i64 or i32. Token i comes after the place parents[i], 0 to i: 0 is the
            root, j + 1 the place behind token j. y, [rows, tokens + 1], path, [rows, tokens], the tokens of the tree that are
            among them by number, then -1, and accepted, [rows], how many those are, are i64.
    """

    target_shape: Shape
    element: Element = Element.F32
    token_element: Element = Element.I64

    def validate(self) -> None:
        shape = self.target_shape
        if len(shape) != 3 or isinstance(shape[1], Dim) or shape[1] < 1:
            raise self.wrong("target_shape", shape, "[rows, tokens + 1, vocabulary], tokens an int")

    def aux_element(self) -> Element:
        return self.token_element

    def signature(self) -> Signature:
        rows, places, _ = self.target_shape
        assert isinstance(places, int)
        return Signature(
            tensor("tokens", (rows, places - 1), self.token_element),
            tensor("parents", (rows, places - 1), self.token_element),
            tensor("target", self.target_shape, self.element),
            output("y", (rows, places), Element.I64),
            output("path", (rows, places - 1), Element.I64),
            output("accepted", (rows,), Element.I64),
            scalar("seed", "unsigned"),
            scalar("offset", "unsigned", 0),
        )

    def blocks(self) -> SizeExpr:
        """What it takes of its generator."""
        return product(self.target_shape[:2])


_WHY = NotDifferentiable("random numbers are not a function of a tensor")
OPS = (
    Op("verify_draft", VerifyDraftDescriptor, _WHY,
       "y = the draft's tokens so far as the target keeps them, and one that it draws"),
    Op("verify_tree", VerifyTreeDescriptor, _WHY, "y = tokens that the target draws, along a tree of draft tokens"),
)  # fmt: skip


def _run(desc: Any, like: Any, generator: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    """Runs a plan for all its outputs, new and of the kind of `like`."""
    *_, device, ordinal = _core.describe(like)
    place = (device, ordinal)
    made, blocks = planned(desc, place)
    convert = foreign_converter(like)
    rest = {}
    for p in desc.signature().outputs[1:]:
        fields = (p.shape, p.element, name_of(place))
        rest[p.name] = allocated(*maker(like, *fields)) if convert is None else allocated(empty, fields, ("device",))
    tokens = chosen(generator).draw(blocks, lambda s, o: run_new(made, like, None, **given, **rest, seed=s, offset=o))
    return tokens, *(rest.values() if convert is None else map(convert, rest.values()))


@composite
def verify_draft(draft: Any, draft_tokens: Any, target: Any, *, generator: Any = None) -> tuple[Any, Any]:
    """(tokens, accepted): speculative sampling's verification of a chain of draft tokens, distributed as the target.

    Each row keeps its draft tokens, one after another, with probability min(1, target / draft); in the place of the first that
    is not kept it draws from what the target has beyond the draft, and after all of them from the target. The same tokens on
    every backend and layout.

    Args:
        draft: [rows, n, vocabulary], probabilities that the draft's tokens were drawn with.
        draft_tokens: [rows, n], i64 or i32.
        target: [rows, n + 1, vocabulary], the target's probabilities at these places and the next.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.

    Returns:
        Tokens, [rows, n + 1], -1 after the last one; and how many of the draft's are among them, [rows].
    """
    shape, code, *_ = _core.describe(draft)
    desc = VerifyDraftDescriptor(shape, Element(code), Element(_core.describe(draft_tokens)[1]))
    tokens, accepted = _run(desc, draft, generator, {"draft": draft, "draft_tokens": draft_tokens, "target": target})
    return tokens, accepted


@composite
def verify_tree(tokens: Any, parents: Any, target: Any, *, generator: Any = None) -> tuple[Any, Any, Any]:
    """(y, path, accepted): verification of a tree of draft tokens: what the target draws, for as long as the tree has it.

    From the root on a token is drawn by the target; where one of the children is that token, the next is drawn behind it. What
    comes out is distributed as the target, however the tree was made. The same tokens on every backend and layout.

    Args:
        tokens: [rows, n], i64 or i32: the tree's tokens, parents before children.
        parents: [rows, n]: the place that each comes after: 0 for the root, j + 1 for token j.
        target: [rows, n + 1, vocabulary], the target's probabilities at these places.
        generator: A bc.Generator; by default the one that `bc.manual_seed` seeds.

    Returns:
        Tokens, [rows, n + 1], -1 after the last one; which of the tree's are among them, [rows, n], -1 after the last; and
        how many those are, [rows].
    """
    shape, code, *_ = _core.describe(target)
    desc = VerifyTreeDescriptor(shape, Element(code), Element(_core.describe(tokens)[1]))
    y, path, accepted = _run(desc, target, generator, {"tokens": tokens, "parents": parents, "target": target})
    return y, path, accepted
