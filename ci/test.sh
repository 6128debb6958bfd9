#!/usr/bin/env bash
# Everything that must pass before a change is merged: build, lint, all tests, sanitizers, wheel.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Wheels have CUDA kernels for several architectures, made of one PTX, and CPU kernels for four levels: one shows whether the
# former compile, and of the latter the lowest and this machine's own can be run anywhere (ci/full.sh takes all).
lowest=v2
if [[ $(uname -m) == aarch64 ]]; then lowest=neon; fi
CMAKE_ARGS="${CMAKE_ARGS:-} -DBARACUDA_CUDA_ARCHITECTURES=${BARACUDA_CI_ARCHITECTURES:-80} -DBARACUDA_CPU_LEVELS=$lowest;native"
export BARACUDA_WHEEL_LEVELS=$lowest

must "system tools" system_tools
step "optional system tools" optional_tools
must "virtual environment in ${venv#"$root"/}" make_venv

# What everything was last tested without is tested whole, with a tenth of the rest. Where that is everything, a fourth of
# what is generated for each op and element is: another one at each commit. BARACUDA_CI=all takes all of it.
touched=$(python ci/changed.py)
export BARACUDA_TOUCHED=$touched
only=("--touched=$touched" "--share=$(share_of 10)")
if [[ $touched == all ]]; then only=("--touched=all" "--share=$(share_of 4)"); fi
if [[ ${BARACUDA_CI:-} == all ]]; then only=("--touched=all"); fi
say "touched since $(cut -c1-10 ci/whole_run.txt 2>/dev/null || echo 'ever'): ${touched:-no kernel}"

# What others have was compiled when everything was: those that were touched, and a part of the rest.
drawn=$(python ci/changed.py --drawn 3)
BARACUDA_CUDA_FAMILIES=$(if [[ $touched == all ]]; then echo "$drawn"; else families_of "$touched"; fi)
export BARACUDA_CUDA_FAMILIES
# The same kernels as this machine's own, by way of other instructions; tests/test_import.py calls gated's, and knows the others.
of_lowest="$touched $drawn gated"
# What kernels of expr are compared with.
if [[ " ${of_lowest//,/ } " == *" expr "* ]]; then of_lowest+=" binary cast reduce ternary unary"; fi
BARACUDA_LOWEST_FAMILIES=$(families_of "$of_lowest")
export BARACUDA_LOWEST_FAMILIES
export CMAKE_ARGS="$CMAKE_ARGS -DBARACUDA_LOWEST_FAMILIES=${BARACUDA_LOWEST_FAMILIES// /;}"

must "build tools" pip install -q "build>=1.2"
must "sdist, and the wheel from it (some minutes the first time)" bash ci/build.sh "$dist"
must "install with test dependencies" bash ci/install.sh "$dist"
step "build report" python ci/build_report.py build/from-sdist
step "registers of the CUDA kernels" python ci/spills.py
step "lint" bash ci/check.sh
step "GPU kernels on the emulator" bash ci/emulator.sh
# A file stays in one process; in the order of their names, the slowest ones (tests/emulator) come first.
step "tests" pytest -n 2 --dist loadfile --no-loadscope-reorder -q --durations=40 "${only[@]}"
# "f16" is in "bf16", too.
step "guarantees at level $lowest" bash ci/level.sh $lowest -n 2 -q -k "f32 or f16" "--families=${BARACUDA_LOWEST_FAMILIES// /,}" "${only[@]}"
step "aarch64 under qemu" bash ci/arm64.sh
late "AddressSanitizer" bash ci/sanitize.sh address
late "ThreadSanitizer" bash ci/sanitize.sh thread
step "wheel" bash ci/wheel.sh "$dist"
# Later runs start from here, once it is committed.
if [[ ${BARACUDA_CI:-} == all ]] && ((${#failed[@]} == 0)); then python ci/changed.py --record || true; fi
finish
