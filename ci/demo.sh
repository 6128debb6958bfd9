#!/usr/bin/env bash
# From a fresh clone to a small Llama that trains and writes text: virtual environment, build, install, main job.
# Arguments go to the example: ci/demo.sh --text FILE
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

must "system tools" system_tools
must "virtual environment in ${venv#"$root"/}" make_venv
must "build and install (some minutes the first time)" watched pip install -q --disable-pip-version-check ".[examples]"
must "examples/tiny_llama" python examples/tiny_llama "$@"
must "examples/tiny_llama --quantize" python examples/tiny_llama --quantize q4_k --steps 20 --out build/quantized
finish
