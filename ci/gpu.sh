#!/usr/bin/env bash
# ci/gpu.sh [PYTEST ARGUMENTS]: for a machine with an NVIDIA GPU and nvcc. Builds for the card found, runs the generated
# tests on it, looks for stray accesses with compute-sanitizer, benchmarks, and writes one JSON to bench/results/. Under
# 9 minutes. PYTHON names the interpreter; its torch must have CUDA. Nothing is downloaded.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export PATH=$PATH:/usr/local/cuda/bin PYTHONPATH=$root/python BARACUDA_FULL=1
unset BARACUDA_CUDA_MODULE BARACUDA_METAL_MODULE

refuse() { echo "ci/gpu.sh: $*" >&2; exit 2; }
command -v nvidia-smi >/dev/null || refuse "no NVIDIA GPU here: there is no nvidia-smi"
card=$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>/dev/null | head -n 1) || card=
[[ $card == *,* ]] || refuse "no NVIDIA GPU here: nvidia-smi lists none"
command -v nvcc >/dev/null || refuse "no nvcc: install the CUDA toolkit, or put its bin folder on PATH"
lacking=$("$python" - <<'PY'
from importlib.util import find_spec

print(*(n for n in ("numpy", "torch", "pybind11", "tvm_ffi", "scipy_openblas32", "pytest", "xdist", "hypothesis",
                    "ml_dtypes", "rich", "cmake", "ninja") if find_spec(n) is None))  # fmt: skip
PY
)
[[ -z $lacking ]] || refuse "$python lacks $lacking"
say "$card"

arch=$(cut -d, -f2 <<<"$card" | tr -dc 0-9)
build=build/gpu
results=$build/results
rm -rf "$results" && mkdir -p "$results"

compile() {
  "$python" -m cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$(command -v "$python")" -DBARACUDA_INPLACE=ON \
    -DBARACUDA_CUDA=ON -DBARACUDA_CUDA_ARCHITECTURES="$arch" -DBARACUDA_CPU_LEVELS="${BARACUDA_CPU_LEVELS:-v3}" &&
    "$python" -m cmake --build "$build"
}
generated() {
  timeout 180 "$python" -m pytest -q -n 4 --durations=10 --junitxml="$results/tests.xml" tests/device "$@"
}
sanitize() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer: left out"; return 0; }
  local tool
  for tool in memcheck racecheck; do
    timeout 30 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$python" -m baracuda verify swiglu softmax --element f32 --device cuda || return 1
  done
}
benchmark() {
  timeout 150 "$python" -m baracuda bench --device cuda --runs 5 --json "$results/bench.json"
}

must "build for sm_$arch" compile
step "generated tests on the card" generated "$@"
step "compute-sanitizer" sanitize
step "benchmark" benchmark
step "results" "$python" ci/gpu_report.py "$results" "$card" "${failed[@]}"
finish
