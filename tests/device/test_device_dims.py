"""What test_dims.py does on the cpu for every row of a GPU: on the emulator (`python tests/harness/emulator/build.py plain
pytest FILE`), or on a device where there is one."""

from __future__ import annotations

import emulated
import numpy as np
import pytest
from dimmed import check_row, with_workspace

from baracuda.choose.sku import rows
from baracuda.memory.device import Device
from baracuda.prove.reference import reference_module
from baracuda.prove.verify import count_elements
from conftest import FULL, SEED

ROWS = [(backend, *row) for backend in emulated.BACKENDS for row in with_workspace(backend)]
LARGEST = emulated.MOST_ELEMENTS if FULL else 2_000  # elements of a case


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("backend", "op", "direction", "variant"), ROWS, ids=["-".join(t) for t in ROWS])
def test_a_call_needs_the_workspace_of_its_own_sizes(backend: str, op: str, direction: str, variant: str) -> None:
    if not Device(backend).usable:
        pytest.skip(f"{backend}: {Device(backend).reason}")
    row = next(
        r for r in rows() if (r["backend"], r["op"], r["direction"], r["variant"]) == (backend, op, direction, variant)
    )
    elements = emulated.chosen(row, FULL, SEED)[: None if FULL else 1]

    def cases() -> object:
        for element in elements:
            for case in reference_module(op).cases(op, direction, element, np.random.default_rng(SEED)):
                if 0 < count_elements(case) <= LARGEST:
                    yield element, case

    check_row(cases(), op, direction, variant, emulated.device_of(backend), 12 if FULL else 2)
