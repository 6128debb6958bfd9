"""Tokens of a draft model judged by the target's probabilities. Kernels in csrc/ops/sampling, reference in draft_ref.py.

Speculative sampling (Leviathan et al., Chen et al., 2023): what comes out is distributed as if the target had drawn it.

Place i of row r, of n + 1, has block r (n + 1) + i of baracuda.ops.random.random, with words w0 to w3:

- Draft token i is kept where all before it are and target >= draft or u draft < target, as f32 are compared after one product:
  u = (w0 >> 8) 2**-24.
- In the place i of the first that is not kept a token is drawn by the weights max(target_i - draft_i, 0), or target_i where all
  of them are 0; after all n by target_n. It is drawn as multinomial's, by the 64 bits of w2 and w3.
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


OPS = (
    Op(
        "verify_draft",
        VerifyDraftDescriptor,
        NotDifferentiable("random numbers are not a function of a tensor"),
        "y = the draft's tokens so far as the target keeps them, and one that it draws",
    ),
)


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
    shape, code, _, *place = _core.describe(draft)
    desc = VerifyDraftDescriptor(shape, Element(code), Element(_core.describe(draft_tokens)[1]))
    made, blocks = planned(desc, (place[0], place[1]))
    convert = foreign_converter(draft)
    fields = (shape[:1], Element.I64, name_of((place[0], place[1])))
    accepted = allocated(*maker(draft, *fields)) if convert is None else allocated(empty, fields, ("device",))
    given = {"draft": draft, "draft_tokens": draft_tokens, "target": target, "accepted": accepted}
    tokens = chosen(generator).draw(blocks, lambda s, o: run_new(made, draft, None, **given, seed=s, offset=o))
    return tokens, accepted if convert is None else convert(accepted)
