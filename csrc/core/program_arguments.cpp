// Checking the arguments of one run of a program.
#include <algorithm>

#include "core/devices.h"
#include "core/message.h"
#include "core/overlap.h"
#include "core/program_frame.h"

namespace baracuda {
namespace {

std::string shape_text(const int64_t* shape, size_t n) {
  std::string out = "(";
  for (size_t i = 0; i < n; ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (n == 1 ? ",)" : ")");
}

// Checks the arguments of one run; the first thing that is wrong ends it.
struct ArgumentChecker {
  const Program& program;
  Backend backend;
  int32_t device;
  Refusals& out;

  bool refuse(Code code, const std::string& field, std::string got, std::string want, std::string hint) {
    out.push_back({code, field, std::move(got), std::move(want), std::move(hint)});
    return false;
  }

  bool one(const ProgramValue& v, const TensorView& t, const int64_t* symbols) {
    if (t.element != v.element)
      return refuse(Code::ElementKind, v.name, name(t.element), name(v.element), "cast it first");
    if (t.device != backend || t.device_id != device)
      return refuse(Code::Device, v.name, device_name(t.device, t.device_id), device_name(backend, device),
                    "copy it there, or make the program for its device");
    bool same = t.rank == static_cast<int32_t>(v.shape.size());
    for (int32_t i = 0; same && i < t.rank; ++i) {
      int64_t size = 0;
      same = v.shape[i].eval(symbols, size) && size == t.shape[i];
    }
    if (!same)
      return refuse(t.rank == static_cast<int32_t>(v.shape.size()) ? Code::Shape : Code::Rank, v.name,
                    "shape " + shape_text(t.shape, static_cast<size_t>(std::max(t.rank, 0))),
                    "shape " + shape_text(v.shape, program.symbols()), "pass a tensor of the program's shape");
    if (v.strides.empty() ? !is_contiguous(t) : !addressable(t) || !as_strided(v, t, symbols))
      return refuse(Code::Strides, v.name, "strides " + shape_text(t.strides, static_cast<size_t>(t.rank)),
                    v.strides.empty() ? "a contiguous tensor" : "strides " + shape_text(v.strides, program.symbols()),
                    "copy it first");
    if (v.role != Role::In && t.read_only)
      return refuse(Code::ReadOnly, v.name, "a read-only tensor", "a writable one", "pass a writable tensor");
    if (!t.data && t.numel()) return refuse(Code::NullData, v.name, "no data", "a tensor with memory", "");
    const int64_t need = alignment_of(v.element);
    if (reinterpret_cast<uintptr_t>(t.data) % static_cast<uintptr_t>(need) && t.numel())
      return refuse(Code::Misaligned, v.name, "an address that is not a multiple of " + std::to_string(need),
                    std::to_string(need) + "-byte alignment", "copy it to fresh memory");
    return true;
  }

  // Strides of single elements, and of no elements, say nothing.
  static bool as_strided(const ProgramValue& v, const TensorView& t, const int64_t* symbols) {
    bool same = true;
    for (int32_t i = 0; same && i < t.rank; ++i) {
      int64_t step = 0;
      same = t.shape[i] <= 1 || (v.strides[i].eval(symbols, step) && step == t.strides[i]);
    }
    return same || t.numel() == 0;
  }

  static bool meets(const Extent& x, const Extent& y) { return x.begin < y.end && y.begin < x.end; }
  static bool meets(const TensorView& a, const TensorView& b) { return meets(extent(a), extent(b)); }

  // Nor with a number that a step is given from then on.
  bool apart(const TensorView* arguments, const Scalar* scalars, const std::vector<int32_t>& last_uses) {
    for (size_t k = 0; k < last_uses.size(); ++k) {
      const auto at = reinterpret_cast<intptr_t>(scalars[k].data);
      for (size_t a = 0; at && a < program.arguments().size(); ++a) {
        const ProgramValue& v = program.values()[program.arguments()[a]];
        if (v.role == Role::In || arguments[a].numel() == 0 || last_uses[k] < v.first_write) continue;
        if (!meets(extent(arguments[a]), {at, at + size_of(scalars[k].element)})) continue;
        return refuse(Code::Overlap, v.name, "memory that holds the scalar " + program.scalars()[k].name,
                      "disjoint memory", "pass the scalar as a number, or a separate tensor");
      }
    }
    return true;
  }
  // What is written shares no memory with anything else that the program sees from then on.
  bool apart(const TensorView* arguments, const std::vector<TensorView>& constants) {
    const auto& numbers = program.arguments();
    for (size_t a = 0; a < numbers.size(); ++a) {
      const ProgramValue& v = program.values()[numbers[a]];
      if (v.role == Role::In || arguments[a].numel() == 0) continue;
      for (size_t b = 0; b < numbers.size(); ++b) {
        if (a == b || arguments[b].numel() == 0 || !meets(arguments[a], arguments[b])) continue;
        const ProgramValue& other = program.values()[numbers[b]];
        if (other.role == Role::In && other.last_use < v.first_write) continue;
        return refuse(Code::Overlap, v.name, "memory that overlaps " + other.name, "disjoint memory",
                      "pass a separate tensor");
      }
      for (size_t c = 0; c < constants.size(); ++c)
        if (program.values()[c].storage == Storage::Constant && constants[c].numel() &&
            meets(arguments[a], constants[c]))
          return refuse(Code::Overlap, v.name, "memory that overlaps the constant " + program.values()[c].name,
                        "disjoint memory", "pass a separate tensor");
    }
    return true;
  }
};

}  // namespace

std::string shape_text(const std::vector<SizeExpr>& shape, const std::vector<Symbol>& symbols) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + shape[i].text(symbols);
  return out + (shape.size() == 1 ? ",)" : ")");
}

bool Program::check(const TensorView* arguments, const Scalar* scalars, int64_t* symbols, Refusals& out) const {
  if (!solve(arguments, symbols, out)) return false;
  ArgumentChecker checker{*this, backend_, device_, out};
  for (size_t a = 0; a < arguments_.size(); ++a)
    if (!checker.one(values_[arguments_[a]], arguments[a], symbols)) return false;
  return checker.apart(arguments, constants_) && checker.apart(arguments, scalars, scalar_uses_);
}

}  // namespace baracuda
