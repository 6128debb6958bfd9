#!/usr/bin/env bash
# The exhaustive run, some hours long: every layout, every f32 value, every CPU level. Its summary is committed once per
# issue (docs/exhaustive-run.md). Started again at the same commit, it goes on with the steps that have not passed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export BARACUDA_FULL=1 BARACUDA_EXHAUSTIVE=1

must "system tools" system_tools
step "optional system tools" optional_tools
must "virtual environment in ${venv#"$root"/}" make_venv
must "build tools" pip install -q "build>=1.2"
must "sdist, and the wheel from it" bash ci/build.sh "$dist"
must "install with test dependencies" bash ci/install.sh "$dist"
if [[ -z $(git status --porcelain) ]]; then
  record=$root/build/full-$(git rev-parse --short HEAD)
  mkdir -p "$record"
fi
step "lint" bash ci/check.sh
step "tests in all layouts" pytest -n 2 --dist loadfile --no-loadscope-reorder -q --deselect tests/math/test_math.py::test_error_bound_exhaustive --ignore tests/test_differential.py
step "10^5 calls beside torch's" pytest -n 2 -q tests/test_differential.py
step "random calls beside torch's, timed" python -m baracuda bench --sweep --budget 600 --out build/sweep.json --plot build/sweep.png
step "random gradients beside torch's, timed" python -m baracuda bench --sweep --gradients --budget 300 --out build/sweep-gradients.json
step "functions at every f32 value" pytest -q tests/math/test_math.py -k exhaustive
step "devices on the emulator" bash ci/emulator.sh -k "not guarantee"
for backend in cuda metal; do
  for element in f32 bf16 "f16 and not bf16" "not f32 and not f16"; do  # "f16" is in "bf16", too
    step "kernels of $backend on the emulator, $element" bash ci/emulator.sh -k "guarantee and $backend and $element"
  done
done
step "registers of the CUDA kernels" python ci/spills.py
for level in v2 v3 v4; do
  step "guarantees at level $level" bash ci/level.sh "$level" -n 2 -q
done
step "aarch64 under qemu" bash ci/arm64.sh
step "AddressSanitizer" bash ci/sanitize.sh address
step "ThreadSanitizer" bash ci/sanitize.sh thread
step "wheel" bash ci/wheel.sh "$dist"
# Other mutants at each commit; what survives is printed, for a test or for ci/equivalent_mutants.toml.
step "200 mutants" python ci/mutate.py --seed "$(git rev-list --count HEAD)" --count 200
if ((${#failed[@]} == 0)); then python ci/changed.py --record || true; fi
finish
