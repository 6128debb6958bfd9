#!/usr/bin/env bash
# Lint: what a person runs before a commit is what CI runs. Tools: pip install -e '.[lint]', or ci/test.sh once.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} && -x $venv/bin/python ]]; then make_venv; fi

sources() { find csrc include tests -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.mm' | sort; }
c_format() { sources | xargs clang-format --dry-run -Werror; }

step "ruff check" ruff check .
step "ruff format" ruff format --check --quiet .
step "mypy --strict" mypy --strict --no-error-summary
step "clang-format" c_format
step "generated files" python ci/generate.py --check
finish
