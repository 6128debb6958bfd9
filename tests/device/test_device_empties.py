"""What test_empties.py does on the cpu for every row of a GPU: on the emulator (`python tests/harness/emulator/build.py plain
pytest FILE`), or on a device where there is one."""

from __future__ import annotations

import emulated
import numpy as np
import pytest
from emptied import LAYOUTS, check, problems

from baracuda.describe.elements import Element
from baracuda.memory.device import Device
from baracuda.prove.verify import FILLS, candidates, count_elements
from conftest import FULL

MOST = None if FULL else (6, 1)
LARGEST_EMULATED = 2_000  # elements of a problem; outputs may be large where inputs are empty


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # references divide by 0 terms
def test_empties_and_rank_0(backend: str, op: str, direction: str, element: Element, rng: np.random.Generator) -> None:
    if not Device(backend).usable:
        pytest.skip(f"{backend}: {Device(backend).reason}")
    device, wrong = emulated.device_of(backend), []
    for case in problems(op, direction, element, rng, MOST):
        if not FULL and count_elements(case) > LARGEST_EMULATED:
            continue
        for variant in candidates(op, direction, element, device):
            for layout in LAYOUTS if FULL else [str(rng.choice(LAYOUTS[:2]))]:
                wrong += check(case, variant, layout, int(rng.choice(FILLS)), device)
    assert not wrong, "\n".join(wrong[:20])
