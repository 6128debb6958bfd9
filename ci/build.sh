#!/usr/bin/env bash
# ci/build.sh FOLDER: the sdist, and the wheel built from that sdist, as the only files of their kind in FOLDER.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=${1:-$dist}
rm -f "$out"/baracuda-*.whl "$out"/baracuda-*.tar.gz
# Outside the sdist's temporary folder, so that ci/build_report.py can read the times.
export SKBUILD_BUILD_DIR=$root/build/from-sdist
python -m build --outdir "$out" . >"$root/build.log" 2>&1 || { tail -n 60 "$root/build.log"; exit 1; }
ls -l "$out"/baracuda-*
