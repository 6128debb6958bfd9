#!/usr/bin/env bash
# Real models of the package index, beside the peers that run them: tests/models. Asked for, as ci/full.sh asks; downloads some 150 MB.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} && -x $venv/bin/python ]]; then make_venv; fi

packages() { python -m pip install --quiet onnxruntime silero-vad magika rapidocr-onnxruntime; }

step "packages with models" packages
step "models" env BARACUDA_MODELS=1 python -m pytest -q tests/models
finish
