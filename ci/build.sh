#!/usr/bin/env bash
# ci/build.sh FOLDER: the sdist, and the wheel built from that sdist, as the only files of their kind in FOLDER.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=${1:-$dist}
rm -f "$out"/baracuda-*.whl "$out"/baracuda-*.tar.gz
# Unpacked in a folder whose name stays, so that ccache knows the sources again; ci/build_report.py reads the times.
unpacked=$root/build/sdist
export SKBUILD_BUILD_DIR=$root/build/from-sdist
build() {
  rm -rf "$unpacked"
  mkdir -p "$unpacked"
  python -m build --sdist --outdir "$out" . &&
    tar -xzf "$out"/baracuda-*.tar.gz -C "$unpacked" --strip-components=1 &&
    python -m build --wheel --outdir "$out" "$unpacked"
}
build >"$root/build.log" 2>&1 || { tail -n 60 "$root/build.log"; exit 1; }
ls -l "$out"/baracuda-*
