// A row of the SKU table: the one place where a kernel's elements, layouts, machine, flags and promises are written down.
// Families build theirs in csrc/ops/<family>/skus.h; build, selection, capabilities(), docs and tests read it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/args.h"
#include "core/launch.h"

namespace baracuda {

enum class BoundKind : uint8_t { Exact, Ulp, Sum };
inline constexpr const char* kBoundNames[] = {"exact", "ulp", "sum"};
// exact        the correctly rounded (or integer) result
// ulp(n)       n units in the last place of the compute element, plus one rounding to the stored element
// sum(c)       |err| <= c * eps(accumulator) * sqrt(K) * sum|terms|, plus one rounding of the output
struct Bound {
  BoundKind kind = BoundKind::Exact;
  double c = 0;
};
constexpr Bound exact() { return {}; }
constexpr Bound ulp(double n) { return {BoundKind::Ulp, n}; }
constexpr Bound sum(double c) { return {BoundKind::Sum, c}; }

enum class MathPrecision : uint8_t { Ieee, Tf32, Count };
inline constexpr const char* kMathNames[] = {"ieee", "tf32"};

struct Guarantee {
  MathPrecision math = MathPrecision::Ieee;
  Element accumulator = Element::Count;  // in which sums are kept; Count: the compute element
  Bound bound{};
  bool deterministic = true;           // same bits for the same call on the same machine
  bool bit_stable = true;              // same bits over processes on the same hardware
  bool thread_invariant = true;        // bits do not depend on the number of threads
  bool batch_invariant = true;         // a row's bits do not depend on its neighbours or how many there are
};

// What has run this kernel: a device of its backend (in CI for cpu), the tests' emulator, or only a compiler.
enum class Proof : uint8_t { Device, Emulated, Compiled };
constexpr const char* name(Proof p) {
  return p == Proof::Device ? "verified on device" : p == Proof::Emulated ? "emulated" : "compiled";
}

enum RowFlag : uint32_t {
  kInPlaceSafe = 1u << 0,   // an output may be the identical view of an input of the same element
  kCaptureSafe = 1u << 1,   // legal inside a graph capture
};

// The machine levels of the cpu backend; other backends use their own numbers (CUDA: 80, 90).
inline constexpr int kArchAny = 0;

// What a rule in a row may look at. Sizes are the maxima; null pointers mean "not said yet".
struct ParamMeta {
  int32_t rank = -1;
  Element element = Element::F32;
  bool fixed = true;     // no size is a Dim
  bool strided = false;  // the caller has said which strides the tensor will have
  int64_t shape[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};
};
struct Problem {
  const int64_t* attrs = nullptr;
  const ParamMeta* params = nullptr;  // tensor parameters in signature order
  int32_t n_params = 0;
  Element element = Element::F32;
  Element aux = Element::F32;
  int32_t alignment = 0;  // bytes that the caller says addresses are multiples of; 0: not said
};
using WorkspaceRule = int64_t (*)(const Problem&);
// A reason why this row cannot do this problem: field, what it wants and what to do; all null when it can.
struct Reason {
  const char* field = nullptr;
  const char* want = nullptr;
  const char* hint = nullptr;
  explicit constexpr operator bool() const { return field != nullptr; }
};
using ExtraCheck = Reason (*)(const Problem&);
// Numbers that a row takes of an attribute, whatever the sizes are: the answer needs no sizes.
struct AttrRange {
  const char* name;
  double least, most;
  const char* want;
  const char* hint;
};

struct Row {
  const char* op = "";
  const char* variant = "general";    // the last word of the SKU's readable name
  const char* gpu_variant = "simt";   // the same on GPUs, where portable bodies serve them
  const char* alone_variant = "alone";  // of the same kernel for callers who want each row as if it were alone
  Direction direction = Direction::Forward;
  Backend backend = Backend::Cpu;
  Elements elements{};
  Elements aux{};          // empty: the op has no second element
  Elements convertible{};  // that inputs may have besides the primary one; they are converted while being read
  int32_t max_rank = kMaxRank;
  int32_t min_arch = kArchAny;
  int32_t preference = 0;
  const char* measured = "";  // device and date on which the preference was measured
  uint32_t flags = kCaptureSafe;
  Proof proof = Proof::Device;
  uint32_t in_place_params = ~0u;  // with kInPlaceSafe: bit p is set when tensor parameter p may be the output
  Guarantee guarantee{};
  ArgList args{};
  AttrList attrs{};
  WorkspaceRule workspace = nullptr;
  ExtraCheck check = nullptr;
  std::span<const AttrRange> ranges{};
};

// A row that also knows, at compile time, the type its kernel is made from (a functor, or a tag).
template <class Tag>
struct RowOf : Row {
  using tag = Tag;
  constexpr RowOf with(auto&& change) const {
    RowOf r = *this;
    change(r);
    return r;
  }
  constexpr RowOf name(const char* v, const char* on_gpus = "simt") const {
    return with([&](Row& r) { r.variant = v, r.gpu_variant = on_gpus; });
  }
  constexpr RowOf named_alone(const char* v) const {
    return with([&](Row& r) { r.alone_variant = v; });
  }
  constexpr RowOf backward() const { return with([](Row& r) { r.direction = Direction::Backward; }); }
  constexpr RowOf on(Backend b) const { return with([&](Row& r) { r.backend = b; }); }
  constexpr RowOf takes(Elements e, Elements second = {}) const {
    return with([&](Row& r) { r.elements = e, r.aux = second; });
  }
  constexpr RowOf reads(Elements e) const {
    return with([&](Row& r) { r.convertible = e; });
  }
  constexpr RowOf within(Bound b) const { return with([&](Row& r) { r.guarantee.bound = b; }); }
  constexpr RowOf exact() const { return within({}); }
  constexpr RowOf ulp(double n) const { return within({BoundKind::Ulp, n}); }
  constexpr RowOf sum(double c) const { return within({BoundKind::Sum, c}); }
  constexpr RowOf not_batch_invariant() const { return with([](Row& r) { r.guarantee.batch_invariant = false; }); }
  constexpr RowOf flag(uint32_t f) const { return with([&](Row& r) { r.flags |= f; }); }
  constexpr RowOf math(MathPrecision m) const { return with([&](Row& r) { r.guarantee.math = m; }); }
  constexpr RowOf sums_in(Element e) const { return with([&](Row& r) { r.guarantee.accumulator = e; }); }
  constexpr RowOf in_place() const { return flag(kInPlaceSafe); }
  constexpr RowOf in_place_of(uint32_t params) const {
    return with([&](Row& r) { r.flags |= kInPlaceSafe, r.in_place_params = params; });
  }
  constexpr RowOf arch(int level) const { return with([&](Row& r) { r.min_arch = level; }); }
  constexpr RowOf rank(int n) const { return with([&](Row& r) { r.max_rank = n; }); }
  constexpr RowOf prefer(int p, const char* where) const {
    return with([&](Row& r) { r.preference = p, r.measured = where; });
  }
  template <class Args>
  constexpr RowOf args_of() const {
    return with([](Row& r) { r.args = Args::kArgs; });
  }
  template <class Attrs>
  constexpr RowOf attrs_of() const {
    return with([](Row& r) { r.attrs = AttrList(Attrs::kFields); });
  }
  constexpr RowOf scratch(WorkspaceRule f) const { return with([&](Row& r) { r.workspace = f; }); }
  constexpr RowOf only_if(ExtraCheck f) const { return with([&](Row& r) { r.check = f; }); }
  constexpr RowOf only_in(std::span<const AttrRange> ranges) const { return with([&](Row& r) { r.ranges = ranges; }); }
};

template <class Tag>
constexpr RowOf<Tag> row(const char* op) {
  RowOf<Tag> r;
  r.op = op;
  return r;
}

// Rows with their tags, in order. A std::tuple of a hundred rows would cost every compile unit a second.
template <class... Tags>
struct Table {
  std::array<Row, sizeof...(Tags)> rows;
};
template <class... Tags>
constexpr Table<Tags...> table(RowOf<Tags>... rows) {
  return {{static_cast<const Row&>(rows)...}};
}
template <class... A, class... B>
constexpr Table<A..., B...> operator+(const Table<A...>& a, const Table<B...>& b) {
  Table<A..., B...> both;
  std::copy(a.rows.begin(), a.rows.end(), both.rows.begin());
  std::copy(b.rows.begin(), b.rows.end(), both.rows.begin() + a.rows.size());
  return both;
}
template <class... Tables>
constexpr auto join(const Tables&... tables) {
  return (tables + ...);
}

// The rows of a table, which now do not promise that a row's bits are its own, and once more for callers who want that:
// the same kernels, which see what is promised and treat each row as if it were alone.
inline constexpr int kAlonePreference = -20;
template <class... Tags>
constexpr Table<Tags...> not_alone(Table<Tags...> t) {
  for (Row& row : t.rows) row.guarantee.batch_invariant = false;
  return t;
}
template <class... Tags>
constexpr Table<Tags..., Tags...> and_alone(const Table<Tags...>& t) {
  Table<Tags...> alone = t;
  for (Row& row : alone.rows) row.variant = row.alone_variant, row.preference += kAlonePreference, row.measured = "not measured";
  return not_alone(t) + alone;
}

// The rows of a table once more for a GPU, where SimtKernel<Tag> runs the family's portable bodies. Metal has no f64.
template <class... Tags>
constexpr Table<Tags...> on_simt(Table<Tags...> t, Backend backend, int arch) {
  for (Row& row : t.rows) {
    row.backend = backend, row.min_arch = arch, row.variant = row.gpu_variant, row.proof = Proof::Emulated;
    row.preference = 0, row.measured = "";
    if (backend != Backend::Metal) continue;
    row.elements = row.elements - kNoMetal, row.aux = row.aux - kNoMetal;
    row.convertible = row.convertible - kNoMetal;
  }
  return t;
}
inline constexpr int kLeastCudaArch = 80;
template <class... Tags>
constexpr auto on_cuda(const Table<Tags...>& t) {
  return on_simt(t, Backend::Cuda, kLeastCudaArch);
}
template <class... Tags>
constexpr auto on_metal(const Table<Tags...>& t) {
  return on_simt(t, Backend::Metal, kArchAny);
}
// A table with its rows for every backend that portable bodies serve.
template <class... Tags>
constexpr auto everywhere(const Table<Tags...>& t) {
  return t + on_cuda(t) + on_metal(t);
}

template <class... Tags>
constexpr std::array<Row, sizeof...(Tags)> rows_of(const Table<Tags...>& t) {
  return t.rows;
}

struct Family {
  const char* name;
  const Row* rows;
  int32_t n_rows;
};

}  // namespace baracuda
