// Matrix products by cuBLASLt. A plan asks it for algorithms once, for A and B stored either way; a launch whose layout
// none of them takes runs the portable tiles.
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
  return e == Element::F64 ? api::kF64 : e == Element::F32 ? api::kF32 : e == Element::F16 ? api::kF16 : api::kBF16;
}
inline int compute_of(Element e, MathPrecision math) {
  if (e == Element::F64) return api::kCompute64;
  return math == MathPrecision::Tf32 ? api::kComputeTf32 : api::kCompute32;
}
// Environment variables can make the library compute in less than it is asked for: the mask rules that out.
inline uint64_t implementations_of(Element e, MathPrecision math) {
  uint64_t denied = api::kSumsF16 | api::kIntegerUnits | api::kReadsI8;
  if (e == Element::F32) denied |= api::kReadsF16 | api::kReadsBF16;
  if (math != MathPrecision::Tf32) denied |= api::kReadsTf32;
  return ~denied;
}

// The library's descriptors of one shape; they live as long as a call.
struct Described {
  api::Desc desc;
  api::Layout x, y, c, d;
  Status status = Status::Ok;

  Described(const api::Api& lt, const Strided& s, Element e, MathPrecision math) {
    const int type = type_of(e), scale = e == Element::F64 ? api::kF64 : api::kF32;
    done(lt.desc_init(&desc, sizeof desc, compute_of(e, math), scale), "cublasLtMatmulDescInit");
    set(lt, api::kTransA, int32_t(s.x_transposed ? api::kTransposed : api::kPlain));
    set(lt, api::kTransB, int32_t(s.y_transposed ? api::kTransposed : api::kPlain));
    set(lt, api::kEpilogue, int32_t(s.bias ? api::kBiasEpilogue : api::kNoEpilogue));
    matrix(lt, x, type, s.x_transposed ? s.k : s.rows, s.x_transposed ? s.rows : s.k, s.ldx, s.batch, s.stride_x);
    matrix(lt, y, type, s.y_transposed ? s.columns : s.k, s.y_transposed ? s.k : s.columns, s.ldy, s.batch, s.stride_y);
    matrix(lt, c, type, s.rows, s.columns, s.ldc, s.batch, s.stride_c);
    matrix(lt, d, type, s.rows, s.columns, s.ldd, s.batch, s.stride_d);
  }
  void bias(const api::Api& lt, const void* vector) { set(lt, api::kBiasPointer, vector); }

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
  MathPrecision math = MathPrecision::Ieee;
  int64_t scratch = 0;  // the most that an algorithm of the list uses
  std::vector<Choice> list;
};

// Asks for one shape's algorithm: Unsupported where there is none.
inline Status ask(const Preparation& p, const Choices& all, Choice& out) {
  const Element e = p.problem.element;
  Described described(*all.lt, out.shape, e, all.math);
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
  set(api::kImplementations, implementations_of(e, all.math));
  const uint32_t alignment = out.packed ? kPacked : uint32_t(size_of(e));
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

inline Status prepare(const Preparation& p, Prepared** out, Reason* why) {
  Choices found;
  found.lt = api::api();
  if (!found.lt) return Status::Launch;
  found.math = p.row->guarantee.math;
  cuda::DeviceGuard guard(p.device);
  if (guard.status() != Status::Ok) return guard.status();
  if (Status status = api::handle(p.device, &found.handle); status != Status::Ok) return status;
  for (int i = 0; i < 8; ++i) {
    StridedCalls calls;
    if (!Imagined(p.problem, i & 1, i & 2).read(calls)) continue;
    Choice choice;
    choice.packed = i < 4, choice.shape = choice.packed ? calls.shape : unpacked(calls.shape);
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
                const StridedCalls& calls, double alpha_value, double beta_value) {
  const auto start = (reinterpret_cast<uintptr_t>(launch.workspace) + kWorkspaceStart - 1) / kWorkspaceStart;
  auto* const scratch = all.scratch ? reinterpret_cast<void*>(start * kWorkspaceStart) : nullptr;
  const C alpha = C(alpha_value), beta = calls.c ? C(beta_value) : C(0);
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

inline Status run(const Launch& launch) {
  cuda::DeviceGuard guard(launch.device);
  if (guard.status() != Status::Ok) return guard.status();
  const auto& all = *static_cast<const Choices*>(static_cast<const Prepared*>(launch.prepared));
  // Scalars that lie on the device may have any element: the tiles read them.
  const bool known = !launch.scalars[0].data && !launch.scalars[1].data;
  Gemm g;
  if (known) g.alpha = launch.scalars[0].as_f64(), g.beta = launch.scalars[1].as_f64();
  if (!read_tensors(launch, !known || g.beta != 0, g)) return Status::Ok;
  StridedCalls calls;
  if (!known || !strided(g, launch.element, calls)) return run_tiles(launch, g);
  // The library reads biases in packs, whatever was said of the matrices.
  if (reinterpret_cast<uintptr_t>(calls.bias) % kPacked) return run_tiles(launch, g);
  Described described(*all.lt, calls.shape, launch.element, all.math);
  if (calls.bias) described.bias(*all.lt, calls.bias);
  if (described.status != Status::Ok) return described.status;
  const Choice* choice = choose(all, calls, described);
  if (!choice) return run_tiles(launch, g);
  return launch.element == Element::F64 ? multiply<double>(launch, all, *choice, described, calls, g.alpha, g.beta)
                                        : multiply<float>(launch, all, *choice, described, calls, g.alpha, g.beta);
}

}  // namespace baracuda::matmul::lt

namespace baracuda {

template <>
struct SimtKernel<matmul::LtRow> {
  static Status prepare(const Preparation& p, Prepared** out, Reason* why) { return matmul::lt::prepare(p, out, why); }
  static Status run(const Launch& launch) { return matmul::lt::run(launch); }
};

}  // namespace baracuda
