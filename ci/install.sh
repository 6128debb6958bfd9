#!/usr/bin/env bash
# ci/install.sh FOLDER: installs the wheels in FOLDER with everything that lint and tests need.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
wheel=$(ls "${1:-$dist}"/baracuda-*.whl)
# The same version as one that is already there would be kept.
pip install -q --force-reinstall --no-deps "${1:-$dist}"/baracuda[-_]*.whl
pip install -q "$wheel[test,lint,wheel]"
pip install -q "nvidia-cuda-cuobjdump>=13" || echo "without cuobjdump, the registers of CUDA kernels are not checked" >&2
