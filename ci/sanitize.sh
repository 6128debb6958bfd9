#!/usr/bin/env bash
# ci/sanitize.sh address|thread [pytest arguments]: an instrumented build of one CPU level, and a subset of the tests in it.
# BARACUDA_TOUCHED: only these families (ci/changed.py --families); "all" by default.
# BARACUDA_FULL=1: every test of the subset, else a tenth (another at each commit) of what is generated for each op and element.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [[ -z ${VIRTUAL_ENV:-} ]]; then make_venv; fi
kind=${1:?address or thread}
shift
level=${BARACUDA_SANITIZE_LEVEL:-v3}
build=$root/build/sanitize-$kind
site=$build/site

case $kind in
  address)
    flags=address,undefined
    # CPython and NumPy keep what they allocate until the process ends; allocations too large are part of the tests.
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:strict_init_order=1
    # The first error of either kind ends the run.
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    preload="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)"
    ;;
  thread)
    flags=thread
    # CPython, NumPy and OpenBLAS are not instrumented: only races between accesses of our own code are looked for.
    export TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1:report_signal_unsafe=0:atexit_sleep_ms=50
    preload=$(g++ -print-file-name=libtsan.so)
    ;;
  *)
    echo "unknown sanitizer '$kind': want address or thread" >&2
    exit 2
    ;;
esac

# Races between threads are looked for where kernels share work in different ways, memory errors everywhere.
sharing="binary cast embedding gated loss matmul norm optim reduce rope softmax"
touched=${BARACUDA_TOUCHED-all}
families=$(python ci/changed.py --all-families)
if [[ $kind == thread ]]; then
  families=$sharing
  if [[ ${BARACUDA_FULL:-} != 1 ]]; then families=$(families_of "$(python ci/changed.py --drawn 3)" "$sharing"); fi
fi
if [[ $touched != all ]]; then
  families=$(families_of "$touched")
  if [[ $kind == thread ]]; then families=$(families_of "$families" "$sharing"); fi
fi
if [[ ! $families ]]; then
  echo "no kernel that this would look at was touched"
  exit 0
fi

python -c 'import tvm_ffi, pybind11, scipy_openblas32' 2>/dev/null || python ci/build_requirements.py | xargs pip install -q
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBARACUDA_SANITIZE="$flags" -DBARACUDA_CUDA=OFF \
  -DBARACUDA_CPU_LEVELS="$level" -DBARACUDA_CPU_FAMILIES="${families// /;}" -DPython_EXECUTABLE="$(command -v python)" >"$build.log" 2>&1 || { tail -n 30 "$build.log"; exit 1; }
ninja -C "$build" >"$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
rm -rf "$site"
cmake --install "$build" --prefix "$site" >/dev/null
cp -r python/baracuda/. "$site/baracuda" --no-clobber

export PYTHONPATH=$site BARACUDA_CPU_LEVEL=$level BARACUDA_NUM_THREADS=2 OMP_NUM_THREADS=2 PYTHONMALLOC=malloc
export BARACUDA_SANITIZER=$kind
LD_PRELOAD=$preload python -c "
import baracuda
assert baracuda.__file__.startswith('$site'), baracuda.__file__
from baracuda import _core
assert _core.backend_state('cpu')['present'], _core.backend_state('cpu')"
# Kernels of each kind; then the run path with every kind of tensor, overlaps, documents, and refusals.
tests=(tests/test_guarantee.py)
only="f32 and (swiglu or sum or softmax or rms_norm or matmul or rope or embedding or cross_entropy or adamw or add or cast)"
parallel=()  # races need the cores; what is out of bounds is so on any
if [[ $kind == address ]]; then
  parallel=(-n 2 --dist worksteal)
  tests+=(tests/test_empties.py tests/test_capi.py tests/test_capi_capabilities.py tests/test_program.py
    tests/test_program_documents.py tests/test_program_random.py tests/test_remembered.py tests/test_engine.py)
  # The engine's own, with plans of some families.
  if [[ $touched == all ]]; then
    tests+=(tests/test_import_tensors.py tests/test_import_protocol.py tests/test_lifetimes.py tests/test_lifetimes_model.py
      tests/test_documents.py)
  fi
  only="($only) or not guarantee"
  if [[ $touched == all && ${BARACUDA_FULL:-} != 1 ]]; then
    tests+=("--touched=$(tr ' ' ',' <<<"${tests[*]}")" "--share=$(share_of 10)")
  fi
  tests+=(tests/test_refusal.py tests/test_aliasing.py tests/test_run_path.py tests/test_forged.py)
fi
if [[ $touched != all || $kind == thread ]]; then  # the engine is as it was, or only some families are there
  tests+=("--touched=${families// /,}" --share=none)
fi
if [[ $touched != all && $kind == address ]]; then only="f32 or bf16 or not guarantee"; fi
LD_PRELOAD=$preload exec python -m pytest -q "${parallel[@]}" -p no:cacheprovider --tb=short -k "$only" "${tests[@]}" "$@"
