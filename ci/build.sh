#!/usr/bin/env bash
# ci/build.sh FOLDER: the sdist, and the wheel built from that sdist, as the only files of their kind in FOLDER.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=${1:-$dist}
rm -f "$out"/baracuda-*.whl "$out"/baracuda-*.tar.gz
# Unpacked in a folder whose name stays, so that ccache knows the sources again; ci/build_report.py reads the times.
unpacked=$root/build/sdist
export SKBUILD_BUILD_DIR=$root/build/from-sdist
# With the address of the project, what the index shows leads there: BARACUDA_URL=https://github.com/OWNER/baracuda
source=.
if [[ ${BARACUDA_URL:-} ]]; then
  source=$root/build/for-index
  "$python" ci/for_index.py "$BARACUDA_URL" "$source"
fi
build() {
  rm -rf "$unpacked"
  mkdir -p "$unpacked"
  python -m build --sdist --outdir "$out" "$source" &&
    tar -xzf "$out"/baracuda-*.tar.gz -C "$unpacked" --strip-components=1 &&
    python -m build --wheel --config-setting=cmake.define.BARACUDA_WERROR=ON --outdir "$out" "$unpacked"
}
build >"$root/build.log" 2>&1 || { tail -n 60 "$root/build.log"; exit 1; }
ls -l "$out"/baracuda-*
