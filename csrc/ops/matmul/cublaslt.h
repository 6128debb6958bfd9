// Matrix products by cuBLASLt. A plan asks it for algorithms once, for A and B stored either way; a launch whose layout
// none of them takes runs the portable rows' kernels.
#pragma once
#include <vector>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/device.h"
#include "ops/matmul/simt_launch.h"
#include "ops/matmul/strided.h"

namespace baracuda::matmul::lt {

namespace api = cuda::lt;

inline constexpr uint32_t kPacked = 16;  // bytes that fast algorithms want addresses and strides to be a multiple of
inline constexpr int64_t kMostWorkspace = int64_t{32} << 20;
inline constexpr int64_t kWorkspaceStart = 256;  // what the library's workspace begins at a multiple of; ours: of 64
inline constexpr int64_t kStartSlack = kWorkspaceStart - 64;

inline int type_of(Element e) {
  switch (e) {
    case Element::F64:
      return api::kF64;
    case Element::F16:
      return api::kF16;
    case Element::BF16:
      return api::kBF16;
    case Element::I8:
      return api::kI8;
    case Element::I32:
      return api::kI32;
    case Element::F8E4M3:
      return api::kF8E4M3;
    default:
      return api::kF32;
  }
}

// What is multiplied, what it becomes, and by which arithmetic.
struct Kind {
  Element factors, result;
  MathPrecision math;

  int compute() const {
    if (factors == Element::F64) return api::kCompute64;
    if (factors == Element::I8) return api::kComputeI32;
    return math == MathPrecision::Tf32 ? api::kComputeTf32 : api::kCompute32;
  }
  // Of alpha and beta.
  int numbers() const { return type_of(factors == Element::F64 || factors == Element::I8 ? result : Element::F32); }
  // Environment variables can make the library compute in less than it is asked for: the mask rules that out.
  uint64_t implementations() const {
    if (factors == Element::I8) return ~uint64_t{0};
    uint64_t denied = api::kSumsF16 | api::kIntegerUnits | api::kReadsI8;
    if (factors == Element::F32) denied |= api::kReadsF16 | api::kReadsBF16;
    if (math != MathPrecision::Tf32) denied |= api::kReadsTf32;
    return ~denied;
  }
};

// The library's descriptors of one shape; they live as long as a call.
struct Described {
  api::Desc desc;
  api::Layout x, y, c, d;
  Status status = Status::Ok;

  Described(const api::Api& lt, const Strided& s, const Kind& kind) {
    const int type = type_of(kind.factors), result = type_of(kind.result);
    done(lt.desc_init(&desc, sizeof desc, kind.compute(), kind.numbers()), "cublasLtMatmulDescInit");
    set(lt, api::kTransA, int32_t(s.x_transposed ? api::kTransposed : api::kPlain));
    set(lt, api::kTransB, int32_t(s.y_transposed ? api::kTransposed : api::kPlain));
    set(lt, api::kEpilogue, int32_t(s.bias ? api::kBiasEpilogue : api::kNoEpilogue));
    matrix(lt, x, type, s.x_transposed ? s.k : s.rows, s.x_transposed ? s.rows : s.k, s.ldx, s.batch, s.stride_x);
    matrix(lt, y, type, s.y_transposed ? s.columns : s.k, s.y_transposed ? s.k : s.columns, s.ldy, s.batch, s.stride_y);
    matrix(lt, c, result, s.rows, s.columns, s.ldc, s.batch, s.stride_c);
    matrix(lt, d, result, s.rows, s.columns, s.ldd, s.batch, s.stride_d);
  }
  // bias, or a scale that lies on the device.
  void pointer(const api::Api& lt, int attribute, const void* data) {
    if (data) set(lt, attribute, data);
  }

 private:
  void done(int code, const char* function) {
    if (status == Status::Ok) status = api::check(code, function);
  }
  template <class T>
  void set(const api::Api& lt, int attribute, T value) {
    done(lt.desc_set(&desc, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  void matrix(const api::Api& lt, api::Layout& out, int type, int64_t rows, int64_t columns, int64_t lead,
              int64_t batch, int64_t stride) {
    const int32_t count = static_cast<int32_t>(batch);
    done(lt.layout_init(&out, sizeof out, type, uint64_t(rows), uint64_t(columns), lead), "cublasLtMatrixLayoutInit");
    done(lt.layout_set(&out, api::kBatchCount, &count, sizeof count), "cublasLtMatrixLayoutSetAttribute");
    done(lt.layout_set(&out, api::kBatchStride, &stride, sizeof stride), "cublasLtMatrixLayoutSetAttribute");
  }
};

// An algorithm with the shape that it was asked for. With `packed` it may count on aligned addresses.
struct Choice {
  Strided shape;
  bool packed = false;
  api::Algo algo;
  int64_t workspace = 0;
};
struct Choices : Prepared {
  const api::Api* lt = nullptr;
  api::Handle handle = nullptr;
  Kind kind;
  int64_t scratch = 0;  // the most that an algorithm of the list uses
  std::vector<Choice> list;
};

// Asks for one shape's algorithm: Unsupported where there is none.
inline Status ask(const Preparation& p, const Choices& all, Choice& out) {
  Described described(*all.lt, out.shape, all.kind);
  if (described.status != Status::Ok) return described.status;
  api::Preference wish;
  Status status = api::check(all.lt->preference_init(&wish, sizeof wish), "cublasLtMatmulPreferenceInit");
  auto set = [&](int attribute, auto value) {
    if (status != Status::Ok) return;
    const int code = all.lt->preference_set(&wish, attribute, &value, sizeof value);
    status = api::check(code, "cublasLtMatmulPreferenceSetAttribute");
  };
  set(api::kMostWorkspace, uint64_t(std::clamp<int64_t>(p.most_workspace - kStartSlack, 0, kMostWorkspace)));
  // Partial sums neither meet in an order of chance nor are rounded to the output's element.
  set(api::kReductions, uint32_t(api::kNoReduction | api::kReduceInComputeType));
  set(api::kImplementations, all.kind.implementations());
  const uint32_t alignment = out.packed ? kPacked : uint32_t(size_of(all.kind.factors));
  for (int which : {api::kAlignmentA, api::kAlignmentB, api::kAlignmentC, api::kAlignmentD}) set(which, alignment);
  if (status != Status::Ok) return status;
  api::Heuristic found{};
  int count = 0;
  const int code = all.lt->heuristic(all.handle, &described.desc, &described.x, &described.y, &described.c,
                                     &described.d, &wish, 1, &found, &count);
  if (code == api::kNotSupported || (code == api::kSuccess && (count == 0 || found.state != api::kSuccess)))
    return Status::Unsupported;
  out.algo = found.algo, out.workspace = int64_t(found.workspace);
  return api::check(code, "cublasLtMatmulAlgoGetHeuristic");
}

// The same product with leading dimensions and strides that no pack divides.
inline Strided unpacked(Strided s) {
  for (int64_t* lead : {&s.ldx, &s.ldy, &s.ldc, &s.ldd}) *lead |= 1;
  if (s.batch > 1)
    for (int64_t* stride : {&s.stride_x, &s.stride_y, &s.stride_c, &s.stride_d})
      if (*stride) *stride = 2 * *stride + 1;
  return s;
}

// Asks for the algorithms of so many choices; `imagine(i, choice)` says which, or false where there is none.
template <class Imagine>
Status prepare_choices(const Preparation& p, const Kind& kind, int count, Imagine&& imagine, Prepared** out,
                       Reason* why) {
  Choices found;
  found.lt = api::api();
  if (!found.lt) return Status::Launch;
  found.kind = kind;
  cuda::DeviceGuard guard(p.device);
  if (guard.status() != Status::Ok) return guard.status();
  if (Status status = api::handle(p.device, &found.handle); status != Status::Ok) return status;
  for (int i = 0; i < count; ++i) {
    Choice choice;
    if (!imagine(i, choice)) continue;
    const Status status = ask(p, found, choice);
    if (status == Status::Unsupported) continue;
    if (status != Status::Ok) return status;
    found.scratch = std::max(found.scratch, choice.workspace);
    found.list.push_back(choice);
  }
  if (found.list.empty()) {
    *why = {"library", "an algorithm of cuBLASLt for this problem", "the portable row takes it"};
    return Status::Unsupported;
  }
  if (found.scratch) found.workspace = found.scratch + kStartSlack;
  *out = new Choices(std::move(found));
  return Status::Ok;
}

inline Status prepare(const Preparation& p, Prepared** out, Reason* why) {
  const Kind kind{p.problem.element, p.problem.element, p.row->guarantee.math};
  auto imagine = [&](int i, Choice& choice) {
    StridedCalls calls;
    if (!Imagined<MatmulArgs>(p.problem, i & 1, i & 2).read(calls)) return false;
    choice.packed = i < 4, choice.shape = choice.packed ? calls.shape : unpacked(calls.shape);
    return true;
  };
  return prepare_choices(p, kind, 8, imagine, out, why);
}

// 8-bit elements are multiplied in one layout only, and in whole packs.
inline Status prepare_scaled(const Preparation& p, Prepared** out, Reason* why) {
  auto imagine = [&](int, Choice& choice) {
    StridedCalls calls;
    if (!Imagined<ScaledArgs>(p.problem, false, true).read(calls)) return false;
    choice.packed = true, choice.shape = calls.shape;
    return true;
  };
  return prepare_choices(p, {p.problem.element, p.problem.aux, MathPrecision::Ieee}, 1, imagine, out, why);
}

// Whether packs of 16 bytes begin where fast algorithms expect them.
inline bool packed(const StridedCalls& calls) {
  uintptr_t bits = 0;
  for (const char* p : {calls.x, calls.y, calls.c, calls.d, calls.bias}) bits |= reinterpret_cast<uintptr_t>(p);
  for (int i = 0; i < calls.loop_rank; ++i)
    bits |= uintptr_t(calls.loop_x[i] | calls.loop_y[i] | calls.loop_c[i] | calls.loop_d[i]);
  return bits % kPacked == 0;
}

// The algorithm for a call: that of its very shape, else the first that the library says will do. Null: there is none.
inline const Choice* choose(const Choices& all, const StridedCalls& calls, Described& described) {
  const bool aligned = packed(calls);
  for (const Choice& c : all.list)
    if (c.shape == calls.shape && (aligned || !c.packed)) return &c;
  for (const Choice& c : all.list) {
    const bool alike = c.shape.x_transposed == calls.shape.x_transposed &&
                       c.shape.y_transposed == calls.shape.y_transposed && (aligned || !c.packed);
    api::Heuristic found{};
    if (alike &&
        all.lt->check(all.handle, &described.desc, &described.x, &described.y, &described.c, &described.d, &c.algo,
                      &found) == api::kSuccess &&
        found.state == api::kSuccess && int64_t(found.workspace) <= all.scratch)
      return &c;
  }
  return nullptr;
}

template <class C>
Status multiply(const Launch& launch, const Choices& all, const Choice& choice, Described& described,
                const StridedCalls& calls) {
  const auto start = (reinterpret_cast<uintptr_t>(launch.workspace) + kWorkspaceStart - 1) / kWorkspaceStart;
  auto* const scratch = all.scratch ? reinterpret_cast<void*>(start * kWorkspaceStart) : nullptr;
  const C alpha = C(calls.alpha), beta = calls.c ? C(calls.beta) : C(0);
  for (int64_t n = 0; n < calls.loops; ++n) {
    int64_t x = 0, y = 0, c = 0, d = 0, left = n;
    for (int i = calls.loop_rank - 1; i >= 0; left /= calls.loop_shape[i--]) {
      const int64_t at = left % calls.loop_shape[i];
      x += at * calls.loop_x[i], y += at * calls.loop_y[i], c += at * calls.loop_c[i], d += at * calls.loop_d[i];
    }
    char* const to = calls.d + d;
    const int code =
        all.lt->matmul(all.handle, &described.desc, &alpha, calls.x + x, &described.x, calls.y + y, &described.y, &beta,
                       calls.c ? calls.c + c : to, &described.c, to, &described.d, &choice.algo, scratch,
                       size_t(all.scratch), static_cast<cudaStream_t>(launch.stream));
    if (Status status = api::check(code, "cublasLtMatmul"); status != Status::Ok) return status;
  }
  return Status::Ok;
}

// Multiplies, unless no algorithm of the plan takes the layout: then nothing is `done`.
inline Status with_choice(const Launch& launch, const StridedCalls& calls, bool* done) {
  const auto& all = *static_cast<const Choices*>(static_cast<const Prepared*>(launch.prepared));
  Described described(*all.lt, calls.shape, all.kind);
  described.pointer(*all.lt, api::kBiasPointer, calls.bias);
  described.pointer(*all.lt, api::kScalePointerA, calls.scale_x);
  described.pointer(*all.lt, api::kScalePointerB, calls.scale_y);
  if (described.status != Status::Ok) return described.status;
  const Choice* choice = choose(all, calls, described);
  *done = choice != nullptr;
  if (!choice) return Status::Ok;
  switch (all.kind.numbers()) {
    case api::kF64:
      return multiply<double>(launch, all, *choice, described, calls);
    case api::kI32:
      return multiply<int32_t>(launch, all, *choice, described, calls);
    default:
      return multiply<float>(launch, all, *choice, described, calls);
  }
}

// What cuBLASLt cannot take goes to tensor cores where they take the element, and to tiles.
inline Status run_portable(const Launch& launch, const Gemm& g) {
  return kHalves.has(launch.element) ? run_mma_or_tiles(launch, g) : run_tiles_there(launch, g);
}

inline Status run(const Launch& launch) {
  cuda::DeviceGuard guard(launch.device);
  if (guard.status() != Status::Ok) return guard.status();
  // Scalars that lie on the device may have any element: the portable kernels read them.
  const Scalar &alpha = launch.scalars[MatmulArgs::alpha], &beta = launch.scalars[MatmulArgs::beta];
  const bool known = !alpha.data && !beta.data;
  Gemm g;
  if (known) g.alpha = alpha.as_f64(), g.beta = beta.as_f64();
  if (!read_tensors(launch, !known || g.beta != 0, g)) return Status::Ok;
  StridedCalls calls;
  calls.alpha = g.alpha, calls.beta = g.beta;
  // The library reads biases in packs, whatever was said of the matrices.
  bool done = known && strided(g, calls) && reinterpret_cast<uintptr_t>(calls.bias) % kPacked == 0;
  if (done) {
    if (Status status = with_choice(launch, calls, &done); status != Status::Ok) return status;
  }
  return done ? Status::Ok : run_portable(launch, g);
}

inline Status run_scaled(const Launch& launch) {
  cuda::DeviceGuard guard(launch.device);
  if (guard.status() != Status::Ok) return guard.status();
  Gemm g;
  if (!read_scaled(launch, g)) return Status::Ok;
  StridedCalls calls;
  bool done = strided(g, calls) && scaled_layout(calls.shape, launch.element) && packed(calls);
  calls.scale_x = g.scale_b.data, calls.scale_y = g.scale_a.data;
  if (done) {
    if (Status status = with_choice(launch, calls, &done); status != Status::Ok) return status;
  }
  return done ? Status::Ok : run_scaled_there(launch, g);
}

}  // namespace baracuda::matmul::lt

namespace baracuda {

template <>
struct SimtKernel<matmul::LtRow> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) { return matmul::lt::prepare(p, out, why); }
  static Status run(const Launch& launch) { return matmul::lt::run(launch); }
};

template <>
struct SimtKernel<matmul::ScaledLtRow> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) {
    return matmul::lt::prepare_scaled(p, out, why);
  }
  static Status run(const Launch& launch) { return matmul::lt::run_scaled(launch); }
};

}  // namespace baracuda
