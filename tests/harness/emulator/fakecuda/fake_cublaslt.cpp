// The part of cuBLASLt that baracuda calls, on the fake runtime: descriptors, algorithms and products are checked as a
// strict library would check them, and products computed when somebody waits for them. What callers must forbid (sums
// in another order or in less precision) is what this library does as soon as it may.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include "backends/cuda/cublaslt.h"
#include "core/api.h"
#include "core/f8.h"
#include "core/half.h"
#include "emulator/fakecuda/runtime.h"

using namespace baracuda;
using namespace baracuda::emulator;
namespace lt = baracuda::cuda::lt;

namespace {

constexpr uint64_t kLayoutMark = 0x6c61796f7574, kDescMark = 0x64657363, kWishMark = 0x77697368, kAlgoMark = 0x616c676f;
constexpr int kExecutionFailed = 13;
constexpr int64_t kSplitFrom = 256;  // products per sum from which this library sums in two parts, if it may

struct FakeLayout {
  uint64_t mark;
  int64_t type, rows, columns, lead, batch, stride;
};
struct FakeDesc {
  uint64_t mark;
  int64_t compute, scale, transpose_a, transpose_b, epilogue;
  const void* bias;
  const void* scales[2];  // of A and of B, on the device
};
struct FakeWish {
  uint64_t mark;
  uint64_t workspace, reductions, implementations, alignment[4];
};
struct FakeAlgo {
  uint64_t mark;
  uint32_t alignment, reads_tf32, sums_f16, reduction;
  int64_t parts, rows_times_columns, bias, type;
};
static_assert(sizeof(FakeAlgo) <= sizeof(lt::Algo) && sizeof(FakeLayout) <= sizeof(lt::Layout));

bool refuses_all = false;   // asked for by a test
int64_t last_algo[4] = {};  // parts, reduction scheme, alignment, whether factors are cut to TF32

struct FakeHandle {
  int device;
};
std::set<const void*>& handles() {
  static auto* all = new std::set<const void*>;
  return *all;
}

int refuse(int code, const std::string& text) {
  std::fprintf(stderr, "fake cuBLASLt: %s\n", text.c_str());
  return code;
}

bool is_narrow(int64_t type) { return type == lt::kI8 || type == lt::kF8E4M3; }
int64_t bytes_of(int64_t type) {
  return type == lt::kF64 ? 8 : type == lt::kF32 || type == lt::kI32 ? 4 : is_narrow(type) ? 1 : 2;
}
// What sizes and leading dimensions of 8-bit matrices are multiples of.
int64_t pack_of(int64_t type) { return type == lt::kI8 ? 4 : type == lt::kF8E4M3 ? 16 : 1; }

template <class T>
const T* valid(const void* p, uint64_t mark) {
  auto* t = static_cast<const T*>(p);
  return t && t->mark == mark ? t : nullptr;
}

struct Call {
  const FakeDesc* desc = nullptr;
  const FakeLayout* m[4] = {};  // A, B, C, D
  int64_t rows = 0, columns = 0, k = 0;
};

// The problem that descriptors describe, or why they describe none.
int read(const void* desc, const void* a, const void* b, const void* c, const void* d, Call& out) {
  out.desc = valid<FakeDesc>(desc, kDescMark);
  if (!out.desc) return refuse(lt::kInvalidValue, "this is no matmul descriptor");
  const void* given[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    out.m[i] = valid<FakeLayout>(given[i], kLayoutMark);
    if (!out.m[i]) return refuse(lt::kInvalidValue, "this is no matrix layout");
    const FakeLayout& m = *out.m[i];
    if (m.lead < m.rows || m.rows <= 0 || m.columns <= 0)
      return refuse(lt::kInvalidValue, "leading dimension " + std::to_string(m.lead) + " of a matrix of " +
                                           std::to_string(m.rows) + " x " + std::to_string(m.columns));
    if (m.batch != out.m[0]->batch || m.batch < 1) return refuse(lt::kInvalidValue, "batch counts differ");
    if (m.type != out.m[i - i % 2]->type) return refuse(lt::kNotSupported, "elements differ");
    const bool overlaps = m.batch > 1 && m.stride < m.lead * (m.columns - 1) + m.rows;
    if (m.batch > 1 && (m.stride < 0 || (i == 3 && overlaps))) return refuse(lt::kInvalidValue, "batch stride");
  }
  const bool ta = out.desc->transpose_a, tb = out.desc->transpose_b;
  out.rows = ta ? out.m[0]->columns : out.m[0]->rows, out.k = ta ? out.m[0]->rows : out.m[0]->columns;
  out.columns = tb ? out.m[1]->rows : out.m[1]->columns;
  const bool agree = (tb ? out.m[1]->columns : out.m[1]->rows) == out.k && out.m[3]->rows == out.rows &&
                     out.m[3]->columns == out.columns && out.m[2]->rows == out.rows && out.m[2]->columns == out.columns;
  if (!agree) return refuse(lt::kInvalidValue, "sizes of the matrices do not agree");
  const int64_t factor = out.m[0]->type, result = out.m[3]->type;
  if (is_narrow(factor)) {
    const int64_t pack = pack_of(factor);
    const bool integers = factor == lt::kI8;
    if (!ta || tb) return refuse(lt::kNotSupported, "A of 8-bit elements is transposed, and B is not");
    if (out.rows % pack || out.k % pack) return refuse(lt::kNotSupported, "sizes of 8-bit matrices");
    for (const FakeLayout* m : out.m)
      if (m->lead % pack) return refuse(lt::kNotSupported, "leading dimensions of 8-bit matrices");
    if (integers ? result != lt::kI32 : result != lt::kF32 && result != lt::kF16 && result != lt::kBF16)
      return refuse(lt::kNotSupported, "the result's element");
    if (out.desc->compute != (integers ? lt::kComputeI32 : lt::kCompute32) ||
        out.desc->scale != (integers ? lt::kI32 : lt::kF32))
      return refuse(lt::kNotSupported, "this compute type with these elements");
    const bool biased = out.desc->epilogue != lt::kNoEpilogue;
    if (biased && (integers || result == lt::kF32)) return refuse(lt::kNotSupported, "a bias with this result");
    return lt::kSuccess;
  }
  if (factor != result) return refuse(lt::kNotSupported, "elements differ");
  if (out.desc->scales[0] || out.desc->scales[1]) return refuse(lt::kNotSupported, "scales of wide elements");
  const bool wide = factor == lt::kF64;
  if (out.desc->scale != (wide ? lt::kF64 : lt::kF32) || (out.desc->compute == lt::kCompute64) != wide ||
      (out.desc->compute == lt::kComputeTf32 && out.m[0]->type != lt::kF32))
    return refuse(lt::kNotSupported, "this compute type with these elements");
  return lt::kSuccess;
}

// Whether every line begins where packs of so many bytes do.
bool divides(const Call& call, int64_t alignment) {
  for (const FakeLayout* m : call.m) {
    const int64_t unit = bytes_of(m->type);
    if (m->columns > 1 && m->lead * unit % alignment != 0) return false;
    if (m->batch > 1 && m->stride * unit % alignment != 0) return false;
  }
  return true;
}

int64_t scratch_of(const Call& call, const FakeAlgo& algo) {
  if (algo.parts == 1) return 0;
  return algo.parts * call.rows * call.columns * call.m[3]->batch * (call.m[0]->type == lt::kF64 ? 8 : 4);
}

double load(int64_t type, const char* p) {
  if (type == lt::kF64) return *reinterpret_cast<const double*>(p);
  if (type == lt::kF32) return *reinterpret_cast<const float*>(p);
  if (type == lt::kI8) return *reinterpret_cast<const int8_t*>(p);
  if (type == lt::kI32) return *reinterpret_cast<const int32_t*>(p);
  if (type == lt::kF8E4M3) return F8<3>::decode(*reinterpret_cast<const uint8_t*>(p));
  const uint16_t h = *reinterpret_cast<const uint16_t*>(p);
  return type == lt::kF16 ? f16_to_float(h) : bf16_to_float(h);
}
void store(int64_t type, char* p, double v) {
  if (type == lt::kF64) *reinterpret_cast<double*>(p) = v;
  if (type == lt::kF32) *reinterpret_cast<float*>(p) = float(v);
  if (type == lt::kI32) *reinterpret_cast<int32_t*>(p) = int32_t(v);
  if (type == lt::kF16) *reinterpret_cast<uint16_t*>(p) = float_to_f16(float(v));
  if (type == lt::kBF16) *reinterpret_cast<uint16_t*>(p) = float_to_bf16(float(v));
}
// The 13 lowest bits dropped, to nearest.
float to_tf32(float x) {
  const uint32_t u = bits_of(x);
  if ((u & 0x7f800000u) == 0x7f800000u) return x;
  return float_of((u + 0xfffu + ((u >> 13) & 1u)) & ~0x1fffu);
}

struct Product {
  FakeDesc desc;
  FakeLayout m[4];
  FakeAlgo algo;
  int64_t rows = 0, columns = 0, k = 0;
  const char *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  char *d = nullptr, *scratch = nullptr;
  double alpha = 1, beta = 0;

  const char* at(const char* p, int which, int64_t i, int64_t j, int64_t n, bool transposed) const {
    const FakeLayout& l = m[which];
    return p + (n * (l.batch > 1 ? l.stride : 0) + (transposed ? j + i * l.lead : i + j * l.lead)) * bytes_of(l.type);
  }
  template <class C>
  C sum(int64_t i, int64_t j, int64_t n, int64_t from, int64_t to) const {
    C total = 0;
    for (int64_t l = from; l < to; ++l) {
      C x = C(load(m[0].type, at(a, 0, i, l, n, desc.transpose_a)));
      C y = C(load(m[1].type, at(b, 1, l, j, n, desc.transpose_b)));
      if (algo.reads_tf32) x = C(to_tf32(float(x))), y = C(to_tf32(float(y)));
      total += x * y;
      if (algo.sums_f16) total = C(f16_to_float(float_to_f16(float(total))));
    }
    return total;
  }
  template <class C>
  void put(int64_t i, int64_t j, int64_t n, C total) const {
    C v = C(alpha) * total;
    for (const void* scale : desc.scales)
      if (scale) v *= C(*static_cast<const float*>(scale));
    if (beta != 0) v += C(beta) * C(load(m[2].type, at(c, 2, i, j, n, false)));
    if (desc.epilogue == lt::kBiasEpilogue) v += C(load(m[3].type, bias + i * bytes_of(m[3].type)));
    store(m[3].type, const_cast<char*>(at(d, 3, i, j, n, false)), double(v));
  }
  template <class C>
  void run() const {
    C* partial = reinterpret_cast<C*>(scratch);
    const int64_t all = m[3].batch * columns * rows, half = k / 2;
    for (int64_t e = 0; e < all; ++e) {
      const int64_t i = e % rows, j = e / rows % columns, n = e / rows / columns;
      if (algo.parts == 1) {
        put<C>(i, j, n, sum<C>(i, j, n, 0, k));
        continue;
      }
      partial[e] = sum<C>(i, j, n, 0, half), partial[all + e] = sum<C>(i, j, n, half, k);
    }
    if (algo.parts == 1) return;
    for (int64_t e = 0; e < all; ++e) {
      C total = partial[e] + partial[all + e];
      // Partial sums in the output's element.
      if (algo.reduction != lt::kReduceInComputeType && m[3].type == lt::kF16)
        total =
            C(f16_to_float(float_to_f16(float(partial[e])))) + C(f16_to_float(float_to_f16(float(partial[all + e]))));
      if (algo.reduction != lt::kReduceInComputeType && m[3].type == lt::kBF16)
        total = C(bf16_to_float(float_to_bf16(float(partial[e])))) +
                C(bf16_to_float(float_to_bf16(float(partial[all + e]))));
      put<C>(e % rows, e / rows % columns, e / rows / columns, total);
    }
  }
};

// The allocation that holds a matrix on the current device, or null with what is wrong printed.
Allocation* holds(const char* what, const char* p, const FakeLayout& m, uint32_t alignment) {
  const int64_t unit = bytes_of(m.type);
  const int64_t bytes = ((m.batch - 1) * (m.batch > 1 ? m.stride : 0) + (m.columns - 1) * m.lead + m.rows) * unit;
  Allocation* a = Runtime::get().heap.find(p);
  if (!a || a->device != current_device() || p + bytes > a->data + a->bytes) {
    refuse(0, std::string(what) + " of " + std::to_string(bytes) + " bytes is not in one allocation of the device");
    return nullptr;
  }
  if (reinterpret_cast<uintptr_t>(p) % alignment == 0) return a;
  refuse(0, std::string(what) + " is not aligned to the " + std::to_string(alignment) + " bytes the algorithm wants");
  return nullptr;
}

}  // namespace

#define BCU_BEGIN(touches_device)                 \
  Runtime& r = Runtime::get();                    \
  std::lock_guard lock(r.mutex);                  \
  if (r.begin(__func__, touches_device)) {        \
    cudaGetLastError(); /* it is no CUDA error */ \
    return kExecutionFailed;                      \
  }

extern "C" {

BCU_API size_t cublasLtGetVersion() { return 130000; }

BCU_API const char* cublasLtGetStatusName(int code) {
  return code == lt::kSuccess          ? "CUBLAS_STATUS_SUCCESS"
         : code == lt::kInvalidValue   ? "CUBLAS_STATUS_INVALID_VALUE"
         : code == lt::kNotSupported   ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : code == lt::kNotInitialized ? "CUBLAS_STATUS_NOT_INITIALIZED"
                                       : "CUBLAS_STATUS_EXECUTION_FAILED";
}

BCU_API int cublasLtCreate(void** handle) {
  BCU_BEGIN(true);
  *handle = new FakeHandle{current_device()};
  handles().insert(*handle);
  return lt::kSuccess;
}

BCU_API int cublasLtMatrixLayoutInit_internal(void* layout, size_t bytes, int type, uint64_t rows, uint64_t columns,
                                              int64_t lead) {
  BCU_BEGIN(false);
  if (bytes < sizeof(lt::Layout)) return refuse(3, "no room for a layout");
  auto* out = static_cast<FakeLayout*>(layout);
  *out = {kLayoutMark, type, int64_t(rows), int64_t(columns), lead, 1, 0};
  return lt::kSuccess;
}

BCU_API int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  BCU_BEGIN(false);
  auto* out = static_cast<FakeLayout*>(layout);
  if (!valid<FakeLayout>(layout, kLayoutMark)) return refuse(lt::kInvalidValue, "this is no matrix layout");
  if (attribute == lt::kBatchCount && bytes == 4) return out->batch = *static_cast<const int32_t*>(value), lt::kSuccess;
  if (attribute == lt::kBatchStride && bytes == 8)
    return out->stride = *static_cast<const int64_t*>(value), lt::kSuccess;
  return refuse(lt::kInvalidValue, "a layout's attribute " + std::to_string(attribute));
}

BCU_API int cublasLtMatmulDescInit_internal(void* desc, size_t bytes, int compute, int scale) {
  BCU_BEGIN(false);
  if (bytes < sizeof(lt::Desc)) return refuse(3, "no room for a descriptor");
  *static_cast<FakeDesc*>(desc) = {kDescMark, compute, scale, 0, 0, lt::kNoEpilogue, nullptr, {}};
  return lt::kSuccess;
}

BCU_API int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* value, size_t bytes) {
  BCU_BEGIN(false);
  auto* out = static_cast<FakeDesc*>(desc);
  if (!valid<FakeDesc>(desc, kDescMark)) return refuse(lt::kInvalidValue, "this is no matmul descriptor");
  if (attribute == lt::kBiasPointer && bytes == 8)
    return std::memcpy(&out->bias, value, sizeof out->bias), lt::kSuccess;
  if ((attribute == lt::kScalePointerA || attribute == lt::kScalePointerB) && bytes == 8)
    return std::memcpy(&out->scales[attribute - lt::kScalePointerA], value, bytes), lt::kSuccess;
  if (bytes != 4) return refuse(lt::kInvalidValue, "an attribute's size");
  const int32_t number = *static_cast<const int32_t*>(value);
  if (attribute == lt::kTransA) return out->transpose_a = number, lt::kSuccess;
  if (attribute == lt::kTransB) return out->transpose_b = number, lt::kSuccess;
  if (attribute == lt::kEpilogue) return out->epilogue = number, lt::kSuccess;
  return refuse(lt::kInvalidValue, "a descriptor's attribute " + std::to_string(attribute));
}

BCU_API int cublasLtMatmulPreferenceInit_internal(void* wish, size_t bytes) {
  BCU_BEGIN(false);
  if (bytes < sizeof(lt::Preference)) return refuse(3, "no room for a preference");
  *static_cast<FakeWish*>(wish) = {kWishMark, 0, 7, ~uint64_t{0}, {256, 256, 256, 256}};
  return lt::kSuccess;
}

BCU_API int cublasLtMatmulPreferenceSetAttribute(void* wish, int attribute, const void* value, size_t bytes) {
  BCU_BEGIN(false);
  auto* out = static_cast<FakeWish*>(wish);
  if (!valid<FakeWish>(wish, kWishMark)) return refuse(lt::kInvalidValue, "this is no preference");
  uint64_t number = 0;
  std::memcpy(&number, value, bytes <= 8 ? bytes : 0);
  const bool wide = attribute == lt::kMostWorkspace || attribute == lt::kImplementations;
  if (bytes != (wide ? 8u : 4u)) return refuse(lt::kInvalidValue, "an attribute's size");
  if (attribute == lt::kMostWorkspace) return out->workspace = number, lt::kSuccess;
  if (attribute == lt::kReductions) return out->reductions = number, lt::kSuccess;
  if (attribute == lt::kImplementations) return out->implementations = number, lt::kSuccess;
  if (attribute < lt::kAlignmentA || attribute > lt::kAlignmentD)
    return refuse(lt::kInvalidValue, "a preference's attribute " + std::to_string(attribute));
  return out->alignment[attribute - lt::kAlignmentA] = number, lt::kSuccess;
}

BCU_API int cublasLtMatmulAlgoGetHeuristic(void* handle, void* desc, void* a, void* b, void* c, void* d, void* wish,
                                           int wanted, lt::Heuristic* found, int* count) {
  BCU_BEGIN(true);
  *count = 0;
  if (!handles().contains(handle)) return refuse(lt::kNotInitialized, "this is no handle");
  if (static_cast<FakeHandle*>(handle)->device != current_device()) return refuse(lt::kArchMismatch, "another device");
  Call call;
  if (int code = read(desc, a, b, c, d, call)) return code;
  auto* w = valid<FakeWish>(wish, kWishMark);
  if (refuses_all) return lt::kNotSupported;
  if (!w || wanted < 1) return refuse(lt::kInvalidValue, "this is no preference");
  uint64_t least = 256;
  for (uint64_t x : w->alignment) least = x < least ? x : least;
  const int64_t type = call.m[0]->type;
  FakeAlgo algo{kAlgoMark, uint32_t(is_narrow(type) ? pack_of(type) : bytes_of(type)), 0, 0, lt::kNoReduction, 1, 0, 0,
                type};
  if (least >= 16 && divides(call, 16)) algo.alignment = 16;
  const bool f32 = type == lt::kF32;
  algo.reads_tf32 = f32 && (w->implementations & lt::kReadsTf32);
  algo.sums_f16 = type == lt::kF16 && (w->implementations & lt::kSumsF16);
  if (call.desc->compute == lt::kComputeTf32 && !algo.reads_tf32) return lt::kNotSupported;
  algo.rows_times_columns = call.rows * call.columns;
  FakeAlgo split = algo;
  split.parts = 2;
  split.reduction = w->reductions & 4 ? 4 : w->reductions & 1 ? 1 : uint32_t(w->reductions & lt::kReduceInComputeType);
  if (call.k >= kSplitFrom && type != lt::kI8 && split.reduction && uint64_t(scratch_of(call, split)) <= w->workspace)
    algo = split;
  *found = {};
  std::memcpy(&found->algo, &algo, sizeof algo);
  found->workspace = size_t(scratch_of(call, algo));
  return *count = 1, lt::kSuccess;
}

BCU_API int cublasLtMatmulAlgoCheck(void* handle, void* desc, void* a, void* b, void* c, void* d, const lt::Algo* algo,
                                    lt::Heuristic* found) {
  BCU_BEGIN(true);
  if (!handles().contains(handle)) return refuse(lt::kNotInitialized, "this is no handle");
  Call call;
  if (int code = read(desc, a, b, c, d, call)) return code;
  FakeAlgo known;
  std::memcpy(&known, algo, sizeof known);
  if (known.mark != kAlgoMark || known.type != call.m[0]->type)
    return refuse(lt::kInvalidValue, "this is no algorithm");
  if (!divides(call, known.alignment)) return lt::kNotSupported;
  found->algo = *algo, found->workspace = size_t(scratch_of(call, known)), found->state = lt::kSuccess;
  return lt::kSuccess;
}

BCU_API int cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                           void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                           const lt::Algo* algo, void* workspace, size_t bytes, cudaStream_t stream) {
  BCU_BEGIN(true);
  if (!handles().contains(handle)) return refuse(lt::kNotInitialized, "this is no handle");
  if (static_cast<FakeHandle*>(handle)->device != current_device()) return refuse(lt::kArchMismatch, "another device");
  if (r.check_stream(stream)) return cudaGetLastError(), refuse(lt::kInvalidValue, "the stream");
  Call call;
  if (int code = read(desc, a_layout, b_layout, c_layout, d_layout, call)) return code;
  lt::Heuristic found{};
  if (int code = cublasLtMatmulAlgoCheck(handle, desc, a_layout, b_layout, c_layout, d_layout, algo, &found))
    return refuse(code, "the algorithm does not take these layouts");
  Product p{*call.desc, {*call.m[0], *call.m[1], *call.m[2], *call.m[3]}, {}, call.rows, call.columns, call.k};
  std::memcpy(&p.algo, algo, sizeof p.algo);
  const int64_t told[] = {p.algo.parts, p.algo.reduction, p.algo.alignment, p.algo.reads_tf32};
  std::memcpy(last_algo, told, sizeof told);
  // Integers are exact as doubles.
  const bool wide = call.m[0]->type == lt::kF64 || call.m[0]->type == lt::kI8;
  p.alpha = load(call.desc->scale, static_cast<const char*>(alpha));
  p.beta = load(call.desc->scale, static_cast<const char*>(beta));
  p.a = static_cast<const char*>(a), p.b = static_cast<const char*>(b), p.c = static_cast<const char*>(c);
  p.d = static_cast<char*>(d), p.scratch = static_cast<char*>(workspace);
  p.bias = static_cast<const char*>(call.desc->bias);
  std::vector<Allocation*> touched;
  const char* const names[] = {"A", "B", "C", "D"};
  const char* const matrices[] = {p.a, p.b, p.c, p.d};
  for (int i = 0; i < 4; ++i)
    if (i != 2 || p.beta != 0) touched.push_back(holds(names[i], matrices[i], *call.m[i], p.algo.alignment));
  if (c == d && (call.m[2]->lead != call.m[3]->lead || call.m[2]->stride != call.m[3]->stride) && p.beta != 0)
    return refuse(lt::kInvalidValue, "C is D in another layout");
  const FakeLayout vector{kLayoutMark, call.m[3]->type, call.rows, 1, call.rows, 1, 0};
  if (call.desc->epilogue == lt::kBiasEpilogue) touched.push_back(holds("the bias", p.bias, vector, 16));
  const FakeLayout number{kLayoutMark, lt::kF32, 1, 1, 1, 1, 0};
  for (const void* scale : call.desc->scales)
    if (scale) touched.push_back(holds("a scale", static_cast<const char*>(scale), number, 4));
  if (found.workspace > bytes) return refuse(lt::kInvalidValue, "the workspace is too small");
  const FakeLayout scratch{kLayoutMark, lt::kF16, int64_t(found.workspace) / 2, 1, int64_t(found.workspace) / 2, 1, 0};
  if (found.workspace) touched.push_back(holds("the workspace", p.scratch, scratch, 256));
  for (Allocation* t : touched)
    if (!t) return lt::kInvalidValue;
  cudaError_t error = r.enqueue(stream, [p, touched, wide] {
    if (Opened::gone(touched))
      return Problem{cudaErrorIllegalAddress, "a graph's product of memory that has been freed"};
    Opened opened(touched);
    wide ? p.run<double>() : p.run<float>();
    return Problem{};
  });
  return error ? cudaGetLastError(), refuse(kExecutionFailed, "the stream") : lt::kSuccess;
}

BCU_API void bcu_fake_cublaslt_last(int64_t out[4]) { std::memcpy(out, last_algo, sizeof last_algo); }
// How many handles there are.
BCU_API void bcu_fake_cublaslt_refuse(int32_t all) { refuses_all = all; }
BCU_API int64_t bcu_fake_cublaslt_handles() { return int64_t(handles().size()); }

}  // extern "C"
