#!/usr/bin/env bash
# ci/build.sh FOLDER: the sdist, the wheel with all CPU levels built from that sdist, and where nvcc is, the wheel of the cuda
# backend, as the only files of their kind in FOLDER. BARACUDA_CUDA_FAMILIES: only these of that.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=${1:-$dist}
rm -f "$out"/baracuda[-_]*.whl "$out"/baracuda-*.tar.gz
# Unpacked in a folder whose name stays, so that ccache knows the sources again; ci/build_report.py reads the times.
unpacked=$root/build/sdist
export CMAKE_ARGS="-DBARACUDA_CPU_LEVELS=all ${CMAKE_ARGS:-}"
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
    SKBUILD_BUILD_DIR=$root/build/from-sdist wheel "$unpacked" || return 1
  command -v nvcc >/dev/null || return 0
  if [[ -v BARACUDA_CUDA_FAMILIES ]]; then
    [[ $BARACUDA_CUDA_FAMILIES ]] || return 0
    CMAKE_ARGS="$CMAKE_ARGS -DBARACUDA_CUDA_FAMILIES=${BARACUDA_CUDA_FAMILIES// /;}"
  fi
  CMAKE_ARGS="$CMAKE_ARGS -DBARACUDA_CPU_LEVELS=none" SKBUILD_BUILD_DIR=$root/build/from-sdist-cuda wheel "$unpacked/packaging/cuda13"
}
wheel() { python -m build --wheel --config-setting=cmake.define.BARACUDA_WERROR=ON --outdir "$out" "$1"; }
build >"$root/build.log" 2>&1 || { tail -n 60 "$root/build.log"; exit 1; }
ls -l "$out"/baracuda[-_]*
