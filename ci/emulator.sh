#!/usr/bin/env bash
# ci/emulator.sh [PYTEST ARGUMENTS]: the GPU backends without a GPU. Builds the emulated cuda and metal modules with the
# race detector and runs every row's kernel body, the launchers, and devices' tensors, streams and errors on them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} && -x $venv/bin/python ]]; then make_venv; fi

# BARACUDA_TOUCHED: only these families and files (ci/changed.py); all by default, and then an eighth (another at each commit) of what is
# generated for each row and element, but with BARACUDA_FULL=1 all of that.
touched=${BARACUDA_TOUCHED-all}
if [[ $touched != all ]]; then
  # Tests of devices use kernels of whatever family.
  if [[ $touched != *tests/device/* ]]; then
    BARACUDA_EMULATED_FAMILIES=$(families_of "$touched")
    export BARACUDA_EMULATED_FAMILIES
    if [[ ! $BARACUDA_EMULATED_FAMILIES ]]; then
      echo "no kernel was touched"
      exit 0
    fi
  fi
  set -- "--touched=$touched" --share=none "$@"
elif [[ ${BARACUDA_FULL:-} != 1 ]]; then
  whole=$(find tests/device -name 'test_*.py' | grep -vE '_(guarantee|large|far|empties)\.py' | paste -sd,)
  set -- "--touched=$whole" "--share=$(share_of 8)" "$@"
fi

must "emulated modules" python tests/harness/emulator/build.py race
step "tests on the emulator" python tests/harness/emulator/build.py race \
  python -m pytest -n 2 -q --durations=40 tests/device "$@"
finish
