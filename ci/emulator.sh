#!/usr/bin/env bash
# ci/emulator.sh [PYTEST ARGUMENTS]: the GPU backends without a GPU. Builds the emulated cuda and metal modules with the
# race detector and runs every row's kernel body, the launchers, and devices' tensors, streams and errors on them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} && -x $venv/bin/python ]]; then make_venv; fi

must "emulated modules" python tests/harness/emulator/build.py race
step "tests on the emulator" python tests/harness/emulator/build.py race \
  python -m pytest -n 2 -q --durations=40 tests/test_device*.py "$@"
finish
