"""local_response_norm against torch's."""

from __future__ import annotations

import pytest
import torch

import baracuda as bc
import baracuda.functional as F


@pytest.mark.parametrize("shape", [(2, 7, 5), (2, 7, 3, 4), (1, 4, 2, 3, 4)])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_as_torch(shape: tuple[int, ...], size: int) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    leaf = x.clone().requires_grad_(True)
    want = torch.nn.functional.local_response_norm(leaf, size, 0.3, 0.6, 2.0)
    got, pull = bc.vjp(F.local_response_norm, x, size, 0.3, 0.6, 2.0)
    torch.testing.assert_close(got, want.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(F.local_response_norm(x, size, 0.3, 0.6, 2.0), got, rtol=1e-14, atol=0)
    dy = torch.randn_like(want)
    torch.testing.assert_close(pull(dy), torch.autograd.grad(want, leaf, dy)[0], rtol=1e-12, atol=1e-12)


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(bc.InvalidProblemError, match="at least 3 dimensions"):
        F.local_response_norm(torch.ones(3, 4), 2)
    with pytest.raises(bc.InvalidProblemError, match="size 1"):
        F.local_response_norm(torch.ones(1, 3, 4), 0)
