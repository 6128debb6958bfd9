"""The Metal backend as it ships, its text and its Objective-C++, on the emulator and a fake Metal as device="metal"."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from emulator import build as emulator

pytestmark = pytest.mark.skipif(bool(emulator.unable_metal()), reason=emulator.unable_metal())


def test_the_module_is_one_metal_device() -> None:
    code = "import json; from baracuda import _core; print(json.dumps(_core.backend_state('metal')))"
    env = os.environ | emulator.environment("race")
    state = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True, env=env))
    assert state["present"], state
