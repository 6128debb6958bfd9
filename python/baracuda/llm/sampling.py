"""How the next token is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.errors import InvalidProblemError, shown


@dataclass(frozen=True, slots=True)
class Sampling:
    """Numbers that `F.sample_tokens` takes; by default the most probable token is taken.

    Attributes:
        temperature: What logits are divided by; 0 takes the largest.
        top_k: Keeps so many of the most probable tokens; 0 keeps all.
        top_p: Keeps the fewest of the most probable ones whose probabilities add up to so much.
        min_p: Keeps tokens at least so many times as probable as the most probable one.
        seed: The same seed gives the same tokens; None: others at each call.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        """Wrong numbers are refused before anything runs.

        Raises:
            InvalidProblemError: A number is out of its range; the message says which, and what would do.
        """
        F.filter_logits(np.zeros((1, 2), np.float32), **self.numbers())
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise InvalidProblemError(
                f"seed: got {shown(self.seed)}, want an int, or None for another one at each call."
            )

    def numbers(self) -> dict[str, Any]:
        """What the functions are called with."""
        return {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p, "min_p": self.min_p}

    def generator(self) -> bc.Generator:
        """Random numbers of a sequence."""
        if self.seed is not None:
            return bc.Generator(self.seed)
        return bc.Generator(int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1)))

    def draw(self, logits: Any, generator: bc.Generator) -> int:
        """A token, of logits (tokens,)."""
        return int(F.sample_tokens(logits, **self.numbers(), generator=generator))
