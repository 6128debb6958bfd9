"""local_response_norm, made of other functions."""

from __future__ import annotations

from math import prod

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import Op
from baracuda.call.steps import made_of
from baracuda.describe.dims import shape_text
from baracuda.describe.errors import InvalidProblemError

OPS: tuple[Op, ...] = ()


@pulled_through
@made_of("add avg_pool cast copy div mul pad pow")
@composed(tensors="input")
def local_response_norm(
    c: Composer, input: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    """Input / (k + alpha mean)**beta over the squares of `size` channels around, as torch.nn.functional.local_response_norm.

    (N, C, ...); channels that are not there count as zeros.
    """
    if input.rank < 3 or size < 1:
        raise InvalidProblemError(
            f"input, size: got shape {shape_text(input.shape)} and {size}, want at least 3 dimensions and size 1."
        )
    if 0 in input.shape:
        return c.copy(input)
    n, channels, *sizes = input.shape
    x = c.wide(input)
    planes = c.reshape(c.of(F.mul, x, x), (n, 1, channels, prod(sizes)))
    padded = c.of(F.pad, planes, (0, 0, size // 2, (size - 1) // 2))
    means = c.reshape(c.of(F.avg_pool2d, padded, (size, 1), 1), input.shape)
    return c.cast(c.of(F.div, x, c.of(F.pow, c.of(F.add, c.of(F.mul, means, alpha), k), beta)), input.element)
