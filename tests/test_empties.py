"""Empty tensors and rank 0 in every argument of every plan, with the strides that their producers give them: results are the
reference's, whatever memory held before, or the problem is refused."""

from __future__ import annotations

import numpy as np
import pytest
from calls import directions, elements_of
from emptied import LAYOUTS, check, problems

from baracuda.prove.verify import FILLS, candidates
from conftest import FULL

MOST = None if FULL else (30, 5)  # problems per op that make something of nothing, and others


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # references divide by 0 terms
@pytest.mark.parametrize(("op", "direction"), directions(), ids=["-".join(t) for t in directions()])
def test_empties_and_rank_0(op: str, direction: str, rng: np.random.Generator) -> None:
    wrong = []
    elements = elements_of(op, direction)
    for element in elements if FULL else elements[:1]:
        for case in problems(op, direction, element, rng, MOST):
            for variant in candidates(op, direction, element):
                for layout in LAYOUTS if FULL else [str(rng.choice(LAYOUTS[:2]))]:
                    wrong += check(case, variant, layout, int(rng.choice(FILLS)))
    assert not wrong, "\n".join(wrong[:20])
