#!/usr/bin/env bash
# ci/level.sh LEVEL [pytest arguments]: the SKUs' promises, kept by the kernels of another CPU level.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export BARACUDA_CPU_LEVEL=$1
shift
present=$(python -c "from baracuda import _core; s = _core.backend_state('cpu'); print(s['reason'] if not s['present'] else '')")
if [[ $present ]]; then
  echo "not run: $present"
  exit 0
fi
exec pytest tests/test_guarantee.py tests/test_elements_alone.py "$@"
