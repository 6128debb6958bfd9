#!/usr/bin/env bash
# From a fresh clone to a small Llama that trains and writes text: virtual environment, build, install, main job.
# Arguments go to the example: ci/demo.sh --text FILE
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

must "system tools" system_tools
must "virtual environment in ${venv#"$root"/}" make_venv
# The example runs on the CPU: whoever has nvcc does not wait for the kernels of GPUs.
must "build and install (some minutes the first time)" pip install -q --config-settings=cmake.define.BARACUDA_CUDA=OFF ".[examples]"
must "build report" python ci/build_report.py build
must "examples/tiny_llama" python examples/tiny_llama "$@"
finish
