#!/usr/bin/env bash
# ci/metal.sh [PYTEST ARGUMENTS]: for a Mac with Apple silicon. Builds the package in place, runs the generated tests on the
# GPU and the CPU's own, trains the tiny Llama on both, measures, and writes one JSON to bench/results/ (docs/metal.md). It
# goes on after failures. Needs Xcode's command line tools; PYTHON names the interpreter.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export PYTHONPATH=$root/python:$root/examples/tiny_llama BARACUDA_CACHE_DIR=$root/build/metal/cache
unset BARACUDA_CUDA_MODULE BARACUDA_METAL_MODULE BARACUDA_METAL_POOL_BYTES

refuse() { echo "ci/metal.sh: $*" >&2; exit 2; }
[[ $(uname -sm) == "Darwin arm64" ]] || refuse "this is $(uname -sm), want a Mac with Apple silicon"
xcode-select -p >/dev/null 2>&1 || refuse "no compiler: xcode-select --install"
make_venv
build=build/metal
results=$build/results
rm -rf "$results" && mkdir -p "$results"

tools() { pip install -q numpy pybind11 cmake ninja pytest pytest-xdist hypothesis ml_dtypes rich scipy-openblas32 apache-tvm-ffi; }
# What is measured beside; without them the measurements are ours alone.
peers() { pip install -q torch mlx || true; }
compile() {
  { cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$(command -v python)" -DBARACUDA_INPLACE=ON &&
    cmake --build "$build"; } 2>&1 | tee "$build/build.log"
}
found() { python -m baracuda info && python -c "import baracuda as bc; d = bc.Device('metal'); assert d.usable, d.reason"; }
on_gpu() {
  BARACUDA_FULL=1 python -m pytest -q -n 2 --junitxml="$results/metal.xml" tests/device -k metal "$@"
}
on_cpu() { python -m pytest -q -n 4 --junitxml="$results/cpu.xml" tests/test_guarantee.py; }
trained() { python ci/metal_report.py train "$results/train.json"; }
measured() { python ci/metal_report.py measure "$results/measure.json"; }

must "tools" tools
step "torch and mlx to compare with" peers
must "build" compile
step "the device is found" found
step "generated tests on the GPU" on_gpu "$@"
step "guarantees on the CPU" on_cpu
step "the tiny Llama on both" trained
step "measurements" measured
step "results" python ci/metal_report.py join "$results" "${failed[@]+"${failed[@]}"}"
finish
