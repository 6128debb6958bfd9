#include "core/plan.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/devices.h"
#include "core/float_state.h"
#include "core/inject.h"
#include "core/open_sizes.h"
#include "core/overlap.h"
#include "core/parallel.h"

namespace baracuda {
namespace {

std::string shape_text(const TensorView& t) {
  std::string out = "(";
  for (int i = 0; i < t.rank; ++i)
    out += std::to_string(t.shape[i]) + (i + 1 < t.rank || t.rank == 1 ? "," : "") + (i + 1 < t.rank ? " " : "");
  return out + ")";
}

std::string dim_text(const Signature& s, const DimExpr& d) {
  if (d.symbol < 0) return std::to_string(d.value);
  std::string out = s.symbols[d.symbol].name;
  if (d.mul != 1) out += "*" + std::to_string(d.mul);
  if (d.div != 1) out += "//" + std::to_string(d.div);
  if (d.add) out += (d.add > 0 ? "+" : "") + std::to_string(d.add);
  return out;
}

std::string shape_text(const Signature& s, const Slot& slot) {
  std::string out = "(";
  for (int i = 0; i < slot.rank; ++i)
    out +=
        dim_text(s, slot.dims[i]) + (i + 1 < slot.rank || slot.rank == 1 ? "," : "") + (i + 1 < slot.rank ? " " : "");
  return out + ")";
}

std::string slot_name(const Signature& s, int index) {
  const Param& p = s.params[s.slots[index].param];
  return p.variadic ? p.name + "[" + std::to_string(index - p.first) + "]" : p.name;
}

std::string shared_with(Overlap found, const std::string& name) {
  return (found == Overlap::Identical ? "the same memory as "
          : found == Overlap::Partial ? "memory that overlaps "
                                      : "memory that may overlap ") +
         name;
}

struct Checker {
  const PlanCore& plan;
  const Call& call;
  bool all;
  Refusals& out;
  int64_t needed = plan.workspace_size;  // bytes of workspace, once the sizes are known

  // Returns true when checking should stop.
  bool refuse(Code code, std::string field, std::string got, std::string want, std::string hint = "",
              int64_t needed = -1, int64_t actual = -1) {
    out.push_back({code, std::move(field), std::move(got), std::move(want), std::move(hint), needed, actual});
    return !all;
  }

  bool skipped(size_t k) const {
    return !plan.signature.params[plan.signature.slots[k].param].present || call.views[k].rank < 0;
  }

  // Reads the symbols from the tensors, and refuses those that are too large.
  bool symbols(int64_t* values, bool* known) {
    const Signature& s = plan.signature;
    return each_symbol(
        s, call.views, values, known, [this](size_t k) { return skipped(k); },
        [&](size_t k, int32_t of) {
          const Symbol& symbol = s.symbols[of];
          return values[of] > symbol.max &&
                 refuse(Code::Dim, slot_name(s, k), symbol.name + " = " + std::to_string(values[of]),
                        "at most " + std::to_string(symbol.max),
                        "select a plan with a larger bc.Dim(\"" + symbol.name + "\", max=...)", symbol.max, values[of]);
        });
  }

  // Sizes such as n // 2 want an n that can be divided.
  bool divisible(const int64_t* values, const bool* known) {
    const Signature& s = plan.signature;
    bool told[kMaxSymbols] = {};
    for (size_t k = 0; k < s.slots.size(); ++k) {
      if (!s.params[s.slots[k].param].present) continue;
      for (int i = 0; i < s.slots[k].rank; ++i) {
        const DimExpr& d = s.slots[k].dims[i];
        if (d.div == 1 || !known[d.symbol] || told[d.symbol]) continue;
        if (static_cast<int64_t>(__int128{values[d.symbol]} * d.mul % d.div) == 0) continue;
        told[d.symbol] = true;
        if (refuse(Code::Dim, slot_name(s, k), s.symbols[d.symbol].name + " = " + std::to_string(values[d.symbol]),
                   dim_text(s, d) + " without remainder", "pad or cut this dimension"))
          return true;
      }
    }
    return false;
  }

  bool sizes() {
    const Signature& s = plan.signature;
    int64_t values[kMaxSymbols] = {};
    bool known[kMaxSymbols] = {};
    if (!s.symbols.empty() && (symbols(values, known) || divisible(values, known))) return true;
    for (size_t k = 0; k < s.slots.size(); ++k) {
      if (skipped(k)) continue;
      const Slot& slot = s.slots[k];
      const TensorView& t = call.views[k];
      bool same = t.rank == slot.rank;
      for (int i = 0; same && i < slot.rank; ++i) {
        const DimExpr& d = slot.dims[i];
        same = (d.symbol < 0 || known[d.symbol]) && t.shape[i] == d.eval(values);
      }
      if (!same &&
          refuse(t.rank == slot.rank ? Code::Shape : Code::Rank, slot_name(s, k), "shape " + shape_text(t),
                 "shape " + shape_text(s, slot), "pass a tensor of the planned shape, or select a plan for this one"))
        return true;
    }
    if (s.symbols.empty() || !out.empty()) return false;
    return !sizes_hold(plan, call.views, values, needed, out) && !all;
  }

  // Whether the tensor has memory that can be compared with others'.
  bool located(size_t k) const {
    return !skipped(k) && !(call.dry && call.views[k].unbacked) && addressable(call.views[k]);
  }

  bool memory(size_t k) {
    const Signature& s = plan.signature;
    const TensorView& t = call.views[k];
    if (!addressable(t) && refuse(Code::Strides, slot_name(s, k), "a view that reaches over 2^62 bytes",
                                  "a view of memory that exists", "pass strides that stay inside one allocation"))
      return true;
    if (call.dry && t.unbacked) return false;
    if (!t.data && t.numel() != 0 &&
        refuse(Code::NullData, slot_name(s, k), "no data", "a tensor with memory",
               "pass a tensor that owns or borrows memory"))
      return true;
    int64_t need = alignment_of(t.element);
    return reinterpret_cast<uintptr_t>(t.data) % need != 0 && t.numel() != 0 &&
           refuse(Code::Misaligned, slot_name(s, k), "an address that is not a multiple of " + std::to_string(need),
                  std::to_string(need) + "-byte alignment", "copy it to fresh memory", need);
  }

  bool tensors() {
    const Signature& s = plan.signature;
    for (size_t k = 0; k < s.slots.size(); ++k) {
      if (skipped(k)) continue;
      const Slot& slot = s.slots[k];
      const TensorView& t = call.views[k];
      if (t.element != slot.element && refuse(Code::ElementKind, slot_name(s, k), name(t.element), name(slot.element),
                                              "cast it, or select a plan whose descriptor has this element"))
        return true;
      if ((t.device != plan.row.backend || t.device_id != plan.question.device) &&
          refuse(Code::Device, slot_name(s, k), device_name(t.device, t.device_id),
                 device_name(plan.row.backend, plan.question.device), "copy it there, or select a plan for its device"))
        return true;
      if (slot.role != Role::In && t.read_only &&
          refuse(Code::ReadOnly, slot_name(s, k), "a read-only tensor", "a writable one",
                 "pass a writable output; legacy DLPack capsules and jax arrays are always read-only"))
        return true;
      if (memory(k)) return true;
    }
    return false;
  }

  // Whether what is written and another tensor share memory in a way that the row does not take.
  bool shares(int o, int i) {
    const Signature& s = plan.signature;
    const Overlap found = overlap(call.views[o], call.views[i]);
    if (found == Overlap::None) return false;
    const bool in_place = found == Overlap::Identical && (plan.row.flags & kInPlaceSafe) &&
                          s.slots[i].role == Role::In && (plan.row.in_place_params >> s.slots[i].param & 1u);
    if (in_place) return false;
    const std::string want =
        (plan.row.flags & kInPlaceSafe) ? "disjoint memory, or the identical view of an input" : "disjoint memory";
    return refuse(Code::Overlap, slot_name(s, o), shared_with(found, slot_name(s, i)), want, "pass a separate output");
  }

  bool aliasing() {
    constexpr int kPairs = 32;  // tensors; above it, comparing all pairs costs more than sorting
    const Signature& s = plan.signature;
    const int n = static_cast<int>(s.slots.size());
    for (int o = 0; o < n; ++o) {
      if (s.slots[o].role == Role::In || skipped(o) || !addressable(call.views[o])) continue;
      if (alone(o)) return true;
      for (int i = 0; n <= kPairs && located(o) && i < n; ++i)
        if (i != o && located(i) && (s.slots[i].role == Role::In || i > o) && shares(o, i)) return true;
    }
    if (n <= kPairs) return false;
    std::vector<Mark> marks;
    mark(0, marks);
    return each_meeting(std::move(marks), [&](int a, int b) {
      const bool first = s.slots[a].role != Role::In && (s.slots[b].role == Role::In || a < b);
      return first ? shares(a, b) : shares(b, a);
    });
  }

  // Appends the tensors that have memory, numbered from `base`.
  void mark(int base, std::vector<Mark>& marks) const {
    for (size_t k = 0; k < plan.signature.slots.size(); ++k)
      if (located(k))
        marks.push_back({&call.views[k], base + static_cast<int>(k), plan.signature.slots[k].role != Role::In});
  }

  // Whether an output's elements share memory among themselves, or with a number of the call.
  bool alone(int o) {
    const Signature& s = plan.signature;
    const TensorView& out_view = call.views[o];
    if (!is_contiguous(out_view) && self_overlap(out_view) != Overlap::None &&
        refuse(Code::SelfOverlap, slot_name(s, o), "a view whose elements share memory", "one byte range per element",
               "pass an output without zero or overlapping strides"))
      return true;
    for (size_t k = 0; located(o) && k < s.scalars.size(); ++k) {
      const Scalar& scalar = call.scalars[k];
      if (!scalar.data || overlap(out_view, block(scalar.data, size_of(scalar.element))) == Overlap::None) continue;
      if (refuse(Code::Overlap, slot_name(s, o), "memory that holds the scalar " + s.scalars[k].name, "disjoint memory",
                 "pass the scalar as a number, or a separate output"))
        return true;
    }
    return false;
  }

  // Numbers in the host's memory are there to be read; those on devices are not looked at.
  bool numbers() {
    const std::vector<ScalarParam>& params = plan.signature.scalars;
    for (size_t k = 0; plan.looks && !call.numbers_later && k < params.size(); ++k) {
      Refusal why;
      if (holds_number(params[k], call.scalars[k], why)) continue;
      out.push_back(std::move(why));
      if (!all) return true;
    }
    return false;
  }

  static TensorView block(const void* data, int64_t bytes) {
    TensorView view;
    view.data = const_cast<void*>(data);
    view.rank = 1;
    view.shape[0] = bytes;
    view.strides[0] = 1;
    view.element = Element::U8;
    return view;
  }

  bool workspace() {
    if (needed == 0) return false;
    if (call.workspace_bytes < needed || !call.workspace)
      return out.push_back(few_bytes(call.workspace_bytes, needed)), !all;
    if (reinterpret_cast<uintptr_t>(call.workspace) % kWorkspaceAlignment)
      return refuse(Code::WorkspaceAlignment, "workspace", "an address that is not a multiple of 64",
                    "64-byte alignment", kWorkspaceHint, kWorkspaceAlignment);
    const Signature& s = plan.signature;
    const TensorView scratch = block(call.workspace, needed);
    for (size_t k = 0; k < s.slots.size(); ++k) {
      if (!located(k) || overlap(scratch, call.views[k]) == Overlap::None) continue;
      if (refuse(Code::Overlap, "workspace", "memory that overlaps " + slot_name(s, k), "memory of its own",
                 kWorkspaceHint))
        return true;
    }
    return false;
  }
};

}  // namespace

int64_t alignment_of(Element e) {
  const bool complex = e == Element::C64 || e == Element::C128;
  return complex ? size_of(e) / 2 : size_of(e);
}

Refusal out_of_range(const ScalarParam& param, std::string got) {
  const WholeRange range = whole_range(param);
  const std::string holder = param.fits == Element::Any ? "" : std::string(" that ") + name(param.fits) + " holds";
  return {Code::ScalarKind, "", std::move(got),
          "a number" + holder + ", " + std::to_string(range.least) + " <= n <= " + std::to_string(range.most),
          "pass a number in this range"};
}

bool holds_number(const ScalarParam& param, const Scalar& scalar, Refusal& why) {
  if (param.fits == Element::Any || !scalar.data) return true;
  const WholeRange range = whole_range(param);
  const bool below = kSigned.has(scalar.element) && scalar.as_i64() < 0;
  if (below ? scalar.as_i64() >= range.least : scalar.as_u64() <= range.most) return true;
  why = out_of_range(param, below ? std::to_string(scalar.as_i64()) : std::to_string(scalar.as_u64()));
  why.field = param.name;
  return false;
}

// The common call, decided without building a message: every tensor as planned, outputs disjoint from everything. False
// means "look closer", not "refused".
static bool plainly_fine(const PlanCore& plan, const Call& call) {
  constexpr int kMost = 16;
  const int n = static_cast<int>(plan.checks.size());
  if (n == 0 || n > kMost || call.dry) return false;
  Extent scratch = {0, 0};
  if (plan.workspace_size != 0) {
    const intptr_t start = reinterpret_cast<intptr_t>(call.workspace);
    if (!start || call.workspace_bytes < plan.workspace_size || start % kWorkspaceAlignment) return false;
    scratch = {start, start + plan.workspace_size};
  }
  for (size_t k = 0; k < plan.signature.scalars.size(); ++k)
    if (call.scalars[k].data) return false;
  Extent extents[kMost];
  for (int k = 0; k < n; ++k) {
    const SlotCheck& want = plan.checks[k];
    const TensorView& t = call.views[want.slot];
    const intptr_t start = reinterpret_cast<intptr_t>(t.data);
    if (t.rank != want.rank || t.element != want.element || t.device != plan.row.backend ||
        t.device_id != plan.question.device)
      return false;
    if ((!start && want.bytes) || (start & want.misalignment) || (want.written && t.read_only)) return false;
    int64_t resized = 0, strided = 0;
    for (int i = 0; i < want.rank; ++i) {
      resized |= t.shape[i] ^ want.shape[i];
      strided |= t.strides[i] ^ want.strides[i];
    }
    if (resized) return false;
    extents[k] = {start, start + want.bytes};
    if (strided && want.bytes && !is_contiguous(t)) {
      if (want.contiguous || !addressable(t)) return false;
      extents[k] = extent(t);
    }
    if (extents[k].begin < scratch.end && scratch.begin < extents[k].end) return false;
  }
  for (int o = 0; o < n; ++o) {
    if (!plan.checks[o].written) continue;
    for (int i = 0; i < n; ++i)
      if (i != o && extents[i].begin < extents[o].end && extents[o].begin < extents[i].end) return false;
  }
  return true;
}

// False for a tensor that no memory can hold.
static bool fill_check(const PlanCore& plan, int32_t index, SlotCheck& check) {
  const Slot& slot = plan.signature.slots[index];
  check.slot = index;
  check.rank = slot.rank;
  check.element = slot.element;
  check.written = slot.role != Role::In;
  check.contiguous = check.written;
  check.misalignment = static_cast<uint32_t>(alignment_of(slot.element) - 1);
  check.bytes = size_of(slot.element);
  for (int i = slot.rank - 1; i >= 0; --i) {
    check.shape[i] = slot.dims[i].value;
    check.strides[i] = check.bytes / size_of(slot.element);
    if (__builtin_mul_overflow(check.bytes, check.shape[i], &check.bytes) || check.bytes > kMaxBytes) return false;
  }
  return true;
}

void finish(PlanCore& plan) {
  const Signature& s = plan.signature;
  plan.first.clear();
  for (const Param& p : s.params) plan.first.push_back(p.first);
  plan.first.push_back(static_cast<int32_t>(s.slots.size()));
  static constinit std::atomic<uint64_t> plans{0};
  plan.id = ++plans;
  plan.looks = plan.row.backend == Backend::Cpu &&
               std::any_of(s.scalars.begin(), s.scalars.end(), [](const auto& p) { return p.fits != Element::Any; });
  plan.checks.clear();
  plan.bytes = -1;
  if (!s.symbols.empty()) return;
  int64_t bytes = 0;
  for (size_t k = 0; k < s.slots.size(); ++k) {
    if (!s.params[s.slots[k].param].present) continue;
    SlotCheck check;
    if (!fill_check(plan, static_cast<int32_t>(k), check)) return plan.checks.clear();
    bytes += check.bytes;
    plan.checks.push_back(check);
  }
  plan.bytes = bytes;
}

bool check_numbers(const PlanCore& plan, const Call& call, Refusals& refusals) {
  return !Checker{plan, call, false, refusals}.numbers();
}

bool check_call(const PlanCore& plan, const Call& call, bool all, Refusals& refusals) {
  if (plainly_fine(plan, call)) return true;
  Checker check{plan, call, all, refusals};
  if (check.sizes() || check.tensors() || check.numbers() || check.aliasing()) return false;
  check.workspace();
  return refusals.empty();
}

bool check_apart(const std::vector<Planned>& calls, Refusals& refusals, size_t& at) {
  std::vector<Mark> marks;
  std::vector<std::pair<int, int>> whose;  // call and slot by a mark's number
  for (size_t c = 0; c < calls.size(); ++c) {
    Checker check{*calls[c].plan, *calls[c].call, false, refusals};
    check.mark(static_cast<int>(whose.size()), marks);
    for (size_t k = 0; k < calls[c].plan->signature.slots.size(); ++k)
      whose.emplace_back(static_cast<int>(c), static_cast<int>(k));
  }
  return !each_meeting(std::move(marks), [&](int a, int b) {
    auto written = [&](int m) { return calls[whose[m].first].plan->signature.slots[whose[m].second].role != Role::In; };
    if (!written(a)) std::swap(a, b);
    const auto [mine, o] = whose[a];
    const auto [theirs, i] = whose[b];
    const TensorView &x = calls[mine].call->views[o], &y = calls[theirs].call->views[i];
    if (mine == theirs || x.device != y.device || x.device_id != y.device_id) return false;
    const Overlap found = overlap(x, y);
    if (found == Overlap::None) return false;
    at = mine;
    const Signature& other = calls[theirs].plan->signature;
    refusals.push_back({Code::Overlap, slot_name(calls[mine].plan->signature, o),
                        shared_with(found, "one of " + other.params[other.slots[i].param].name) + " of another element",
                        "disjoint memory", "pass a separate output"});
    return true;
  });
}

// Here and not behind an exported name: a call through one costs what a small kernel does.
static inline Launch prepared(const PlanCore& plan, const Call& call, void* stream, Failure* failure) {
  Launch l;
  l.tensors = call.views;
  l.first = plan.first.data();
  l.n_params = static_cast<int32_t>(plan.signature.params.size());
  l.scalars = call.scalars;
  l.attrs = plan.question.attrs.data();
  l.workspace = call.workspace;
  l.stream = stream;
  l.device = plan.question.device;
  l.row = plan.row_index;
  l.prepared = plan.prepared.get();
  l.failure = failure;
  l.element = plan.question.element;
  l.aux = plan.question.aux;
  l.batch_invariant = plan.row.guarantee.batch_invariant;
  return l;
}

// Of a number that a kernel refuses also what it is; kernels say where it is, and perhaps what it shall be.
static void name_number(const Launch& launch) {
  Failure& f = *launch.failure;
  if (f.tensor < 0 && f.position >= 0) f.value = std::bit_cast<int64_t>(launch.scalars[f.position].as_f64());
}

static inline Status carry_out(const PlanCore& plan, const Launch& launch) {
  if (fails_now(Injected::Launch)) [[unlikely]]
    return launch.failure->position = kInjectedLaunch, Status::Launch;
  const FloatState kernels_own;
  Status status;
  if (plan.threads == 0) {
    status = plan.kernel(launch);
  } else {
    ThreadLimit limit(plan.threads);
    status = plan.kernel(launch);
  }
  if (status == Status::InvalidProblem) [[unlikely]]
    name_number(launch);
  return status;
}

Status launch(const PlanCore& plan, const Call& call, void* stream, Failure* failure) {
  const Launch made = prepared(plan, call, stream, failure);
  return carry_out(plan, made);
}

Launch launch_of(const PlanCore& plan, const Call& call, void* stream, Failure* failure) {
  return prepared(plan, call, stream, failure);
}

Status launch_again(const PlanCore& plan, const Launch& launch) { return carry_out(plan, launch); }

int64_t call_bytes(const PlanCore& plan, const Call& call) {
  if (plan.bytes >= 0) return plan.bytes;
  int64_t bytes = 0;
  for (size_t k = 0; k < plan.signature.slots.size(); ++k)
    if (call.views[k].present()) bytes += call.views[k].numel() * size_of(call.views[k].element);
  return bytes;
}

}  // namespace baracuda
