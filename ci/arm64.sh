#!/usr/bin/env bash
# ci/arm64.sh [pytest arguments]: the CPU backend for aarch64, cross-built by g++ and run under qemu-user: promises of its rows,
# the same calls on this machine and there beside each other, and with all families the tiny Llama.
# BARACUDA_TOUCHED: what was touched (ci/changed.py); with "all", or by default, a few families drawn by the commit.
# BARACUDA_FULL=1: all families, every test. BARACUDA_ARM64_FAMILIES: these families instead.
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
exec qemu-aarch64 -cpu max -L $tools/root $arm_python "\$@"
WRAPPER
chmod +x "$emulated"

touched=${BARACUDA_TOUCHED-all}
if [[ ${BARACUDA_ARM64_FAMILIES:-} ]]; then
  families=$BARACUDA_ARM64_FAMILIES
elif [[ ${BARACUDA_FULL:-} == 1 ]]; then
  families=$("$host" ci/changed.py --all-families)
elif [[ $touched == all ]]; then
  families=$(families_of "$("$host" ci/changed.py --drawn 8)")
else
  families=$(families_of "$touched")
fi
if [[ ! $families ]]; then
  echo "no kernel was touched"
  exit 0
fi
echo "families: $families"

# Python.h asks for a header in the folder of its architecture.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DBARACUDA_WERROR=ON \
  -DCMAKE_CXX_FLAGS="-idirafter $tools/root/usr/include" -DPython_EXECUTABLE="$emulated" \
  -DBARACUDA_CPU_LEVELS=neon -DBARACUDA_CPU_FAMILIES="${families// /;}" >"$build.log" 2>&1 ||
  { tail -n 30 "$build.log"; exit 1; }
ninja -C "$build" >"$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
rm -rf "$site"
cmake --install "$build" --prefix "$site" >/dev/null
(cd python && find baracuda -name '*.py') | while read -r file; do install -D -m 644 "python/$file" "$site/$file"; done

share=0/1
if [[ ${BARACUDA_FULL:-} != 1 ]]; then share=$(share_of 10); fi
export BARACUDA_NUM_THREADS=2
calls=$build/calls.pickle
"$host" tests/harness/machines.py write "$calls" --share "$share" --families "${families// /,}"
export ARM64_SITE=$site
"$emulated" -c "
from baracuda import _core
state = _core.backend_state('cpu')
assert state['present'] and state['level'] == 'neon', state"
"$emulated" tests/harness/machines.py compare "$calls"
if [[ ${BARACUDA_FULL:-} == 1 ]]; then "$emulated" -m pytest -q -p no:cacheprovider tests/test_tiny_llama.py -k "falls or threads or resumed or cached"; fi
# Two at once, for qemu-user starts no other emulated process by itself. "f16" is in "bf16", too.
promises() {
  "$emulated" -m pytest -q -p no:cacheprovider --tb=short -k "$1" tests/test_guarantee.py "--families=${families// /,}" \
    --touched=none --share="$share" "${@:2}" || (($? == 5))  # 5: a small share may be empty
}
promises "f16 or i8" "$@" >"$build.log" 2>&1 &
other=$!
promises f32 "$@"
wait $other || { cat "$build.log"; exit 1; }
tail -n 1 "$build.log"
