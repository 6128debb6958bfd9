#!/usr/bin/env bash
# ci/emulator.sh [PYTEST ARGUMENTS]: the GPU backends without a GPU. Builds the emulated cuda and metal modules with the
# race detector and runs every row's kernel body, the launchers, and devices' tensors, streams and errors on them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} && -x $venv/bin/python ]]; then make_venv; fi

# BARACUDA_TOUCHED: only these families (ci/changed.py); all by default.
touched=${BARACUDA_TOUCHED-all}
if [[ $touched != all ]]; then
  BARACUDA_EMULATED_FAMILIES=$(families_of "$touched")
  export BARACUDA_EMULATED_FAMILIES
  if [[ ! $BARACUDA_EMULATED_FAMILIES ]]; then
    echo "no kernel was touched"
    exit 0
  fi
  set -- "--touched=${BARACUDA_EMULATED_FAMILIES// /,}" --share=-1 "$@"
fi

must "emulated modules" python tests/harness/emulator/build.py race
step "tests on the emulator" python tests/harness/emulator/build.py race \
  python -m pytest -n 2 -q --durations=40 tests/device "$@"
finish
