# Sourced by the scripts of this folder: where things are, and the few steps that they share.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python=${PYTHON:-python3}
venv=${BARACUDA_VENV:-$root/.venv}
dist=$root/dist
failed=()
times=()
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

say() { printf '\n== %s\n' "$*"; }

# step NAME COMMAND...: runs it and says how long it took; a failure is kept for `finish`, so that one run shows them all.
# Where a script names a folder `record`, a step that it has there as passed is not run again.
step() {
  local name=$1 start=$SECONDS word=ok note=${record:+$record/${1//[^A-Za-z0-9]/_}}
  shift
  say "$name"
  if [[ $note && -f $note ]]; then
    times+=("$(<"$note")")
    echo "passed before"
    return
  fi
  if ! kept "$@"; then
    word=FAILED
    failed+=("$name")
    mv "$logs/last" "$logs/${#failed[@]}"
  fi
  times+=("$(printf '%5d s  %-6s  %s' $((SECONDS - start)) "$word" "$name")")
  if [[ $note && $word == ok ]]; then printf '%s\n' "${times[-1]}" >"$note"; fi
  printf '== %s: %s, %d s\n' "$name" "$word" $((SECONDS - start))
}

# kept COMMAND...: its output goes to a file, too, where no terminal has it: `finish` says again what failed. In this shell.
kept() {
  local code=0
  : >"$logs/last"
  if [[ -t 1 ]]; then
    "$@"
    return
  fi
  { "$@"; } > >(tee "$logs/last") 2>&1 || code=$?
  wait $! 2>/dev/null || true
  return "$code"
}

# watched COMMAND...: says every ten seconds how many objects of the newest build folder are compiled.
watched() {
  local folder job total start=$SECONDS
  "$@" &
  job=$!
  while kill -0 "$job" 2>/dev/null; do
    sleep 1
    (((SECONDS - start) % 10 == 0)) || continue
    folder=$(ls -td build/*/build.ninja 2>/dev/null | head -1)
    if [[ $folder ]]; then
      folder=${folder%/build.ninja}
      total=$(grep -c '^build .*\.o:' "$folder/build.ninja" || true)
      printf '   %4d s: %d of %d objects compiled\n' $((SECONDS - start)) "$(find "$folder" -name '*.o' | wc -l)" "$total"
    else
      printf '   %4d s: pip prepares the build\n' $((SECONDS - start))
    fi
  done
  wait "$job"
}

# late NAME COMMAND...: the same, but left out, and listed so, where the run has taken longer than others are given in all.
late() {
  if ((SECONDS > ${BARACUDA_CI_SECONDS:-4200})); then
    say "$1: left out, $SECONDS s have passed (BARACUDA_CI_SECONDS)"
    times+=("$(printf '%5s    %-6s  %s' - left "$1")")
    return
  fi
  step "$@"
}

# The same, for steps without which nothing else makes sense.
must() {
  step "$@"
  if ((${#failed[@]})); then finish; fi
}

# Where only the end of a run's output is at hand, it has to say what failed: the tests by name, else the step's last lines.
recall() {
  local i
  for i in "${!failed[@]}"; do
    say "${failed[i]}: what failed"
    grep -aE '^E  ' "$logs/$((i + 1))" | cut -c1-300 | tail -n 40 || true
    grep -aE '^(FAILED|ERROR) ' "$logs/$((i + 1))" | cut -c1-300 | tail -n 40 || tail -n 30 "$logs/$((i + 1))"
  done
}

finish() {
  if ((${#failed[@]})); then recall; fi
  say "summary (${SECONDS} s)"
  printf '%s\n' "${times[@]}"
  if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[*]}"
    exit 1
  fi
  exit 0
}

# Packages whose lack costs only the tests that need them: they are skipped, and say so.
optional_tools() {
  command -v clang-19 >/dev/null && command -v gnustep-config >/dev/null && return
  local wanted=(clang-19 libclang-rt-19-dev libgnustep-base-dev gobjc)
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${wanted[@]}" && return
  fi
  echo "without ${wanted[*]}, the text of the Metal kernels is not checked, and the Metal backend not run" >&2
}

# What pip cannot bring. Installed where that is possible, otherwise named in one line.
system_tools() {
  local missing=()
  command -v g++ >/dev/null || missing+=(g++)
  if ! command -v "$python" >/dev/null; then
    missing+=(python3 python3-venv python3-dev)
  else
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    "$python" -c 'import sysconfig, pathlib; assert (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists()' \
      2>/dev/null || missing+=(python3-dev)
  fi
  if ((${#missing[@]})); then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
      apt-get update -q &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" || return 1
    else
      echo "missing: ${missing[*]}; on Debian or Ubuntu: sudo apt-get install ${missing[*]}" >&2
      return 1
    fi
  fi
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "$python is older than 3.11; name another with PYTHON=" >&2; return 1; }
}

# One of so many shares of the tests, another at each commit: tests/conftest.py, --share.
share_of() { echo "$(git rev-list --count HEAD 2>/dev/null || echo 0)/$1"; }

# families_of FOUND [FAMILIES]: the op families (of these) among what ci/changed.py has found, with spaces between.
families_of() {
  comm -12 <(tr ' ' '\n' <<<"${2-$(python ci/changed.py --all-families)}" | sort) <(tr ', ' '\n\n' <<<"$1" | sort) | xargs
}

make_venv() {
  [[ -x $venv/bin/python ]] || "$python" -m venv "$venv" || return 1
  # shellcheck disable=SC1091
  . "$venv/bin/activate"
  hash -r
}

# A second build of the same sources costs seconds where ccache is at hand.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER:-ccache} CCACHE_BASEDIR=/ CCACHE_NOHASHDIR=1
  export CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER:-ccache}
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1
