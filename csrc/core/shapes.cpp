#include "core/shapes.h"

#include <vector>

#include "core/registry.h"
#include "shapes.inc"

namespace baracuda {
namespace {

struct FamilyRules {
  std::string_view family;
  ShapeRule (*of)(const Row&);
};
#define BCU_FAMILY(name) {#name, &name::shapes_of},
constexpr FamilyRules kRules[] = {
#include "families.inc"
};
#undef BCU_FAMILY

std::string text_of(const Sizes& sizes) {
  std::string out = "(";
  for (int i = 0; i < sizes.rank; ++i) out += (i ? ", " : "") + std::to_string(sizes.size[i]);
  return out + (sizes.rank == 1 ? ",)" : ")");
}

// What two shapes broadcast to, if they do.
Sizes broadcast_of(const Sizes& a, const Sizes& b) {
  Sizes out = a.rank >= b.rank ? a : b;
  for (int i = 1; i <= std::min(a.rank, b.rank); ++i) out.size[out.rank - i] = a.at(-i) == 1 ? b.at(-i) : a.at(-i);
  return out;
}

bool broadcasts(const Sizes& from, const Sizes& to) {
  bool good = from.rank <= to.rank;
  for (int i = 1; good && i <= from.rank; ++i) good = from.at(-i) == 1 || from.at(-i) == to.at(-i);
  return good;
}

}  // namespace

ShapeRule shape_rule(int32_t row) {
  static const std::vector<ShapeRule> rules = [] {
    std::vector<ShapeRule> out(static_cast<size_t>(row_count()), nullptr);
    for (int32_t i = 0; i < row_count(); ++i)
      for (const FamilyRules& f : kRules)
        if (f.family == family_of(i)) out[static_cast<size_t>(i)] = f.of(row_at(i));
    return out;
  }();
  return rules.at(static_cast<size_t>(row));
}

Shapes::Shapes(const Signature& signature, const Question& question, const TensorView* views, const int64_t* symbols)
    : signature_(signature), question_(question), views_(views), symbols_(symbols) {}

const Shapes::Tensor& Shapes::Tensor::is(const Sizes& want) const {
  if (slot_ >= 0 && shapes_->good_ && !(sizes_ == want))
    shapes_->refuse(param_, "shape " + text_of(sizes_), "shape " + text_of(want));
  return *this;
}

const Shapes::Tensor& Shapes::Tensor::fits(const Sizes& full) const {
  if (slot_ >= 0 && shapes_->good_ && !broadcasts(sizes_, full))
    shapes_->refuse(param_, "shape " + text_of(sizes_), "a shape that broadcasts to " + text_of(full));
  return *this;
}

const Shapes::Tensor& Shapes::Tensor::ranks(int least, int most) const {
  if (slot_ >= 0 && shapes_->good_ && (sizes_.rank < least || sizes_.rank > most))
    shapes_->refuse(param_, "shape " + text_of(sizes_),
                    least == most ? std::to_string(least) + " dimensions"
                                  : std::to_string(least) + " to " + std::to_string(most) + " dimensions");
  return *this;
}

const Shapes::Tensor& Shapes::Tensor::when(bool there) const {
  if (shapes_->good_ && (slot_ >= 0) != there)
    shapes_->refuse(param_, there ? "nothing" : "a tensor", there ? "a tensor" : "none");
  return *this;
}

bool Shapes::refuse(int param, std::string got, std::string want) {
  if (!good_) return false;
  good_ = false;
  const bool known = param >= 0 && param < static_cast<int>(signature_.params.size());
  why_ = {Code::Problem, known ? signature_.params[static_cast<size_t>(param)].name : "", std::move(got),
          std::move(want) + ", as " + question_.op + " has it", "make the plan from a descriptor"};
  return false;
}

// What is read at all: the element of the question, and those that it says are converted.
Elements Shapes::readable() const {
  Elements out = set_of(element());
  for (const Element e : question_.reads) out = out | e;
  return out;
}

Sizes Shapes::sizes_of(int32_t slot) const {
  Sizes out;
  const Slot& of = signature_.slots[static_cast<size_t>(slot)];
  out.rank = of.rank;
  for (int i = 0; i < of.rank; ++i) out.size[i] = views_ ? views_[slot].shape[i] : of.dims[i].eval(symbols_);
  return out;
}

bool Shapes::argument(int param, Role role, Elements elements, bool variadic, bool required) {
  if (param >= static_cast<int>(signature_.params.size())) return refuse(param, "too few tensors", "all of the op's");
  told_ |= 1u << param;
  const Param& p = signature_.params[static_cast<size_t>(param)];
  if (!p.present) return !required || refuse(param, "nothing", "a tensor");
  if (p.variadic != variadic) return refuse(param, variadic ? "a tensor" : "a list", variadic ? "a list" : "a tensor");
  if (p.role != role)
    return refuse(param, std::string("the role ") + kRoleNames[static_cast<int>(p.role)],
                  std::string("the role ") + kRoleNames[static_cast<int>(role)]);
  for (int i = 0; i < p.count; ++i) {
    const Element e = signature_.slots[static_cast<size_t>(p.first + i)].element;
    if (!elements.has(e)) return refuse(param, name(e), "another element");
  }
  return true;
}

Shapes::Tensor Shapes::one(int param, Role role, Elements elements, bool required) {
  const bool good = argument(param, role, elements, false, required);
  const bool there = good && signature_.params[static_cast<size_t>(param)].present;
  return {*this, param, there ? signature_.params[static_cast<size_t>(param)].first : -1};
}

int64_t Shapes::list(int param, Role role, Element e, bool optional) {
  if (!argument(param, role, set_of(e), true, !optional)) return 0;
  const Param& p = signature_.params[static_cast<size_t>(param)];
  if (!p.present) return 0;
  want(p.count > 0, param, "at least one tensor");
  return p.count;
}

Shapes::Tensor Shapes::of(int param, int64_t i) {
  return {*this, param, signature_.params[static_cast<size_t>(param)].first + static_cast<int32_t>(i)};
}

void Shapes::like(int param, int other) {
  const Param &p = signature_.params[static_cast<size_t>(param)], &q = signature_.params[static_cast<size_t>(other)];
  if (!good_ || !p.present) return;
  if (!want(p.count == q.count, param, "as many tensors as the other lists")) return;
  for (int i = 0; good_ && i < p.count; ++i) of(param, i).is(of(other, i));
}

bool Shapes::want(bool holds, int param, const char* what) {
  if (holds || !good_) return holds;
  const Param& p = signature_.params[static_cast<size_t>(param)];
  return refuse(param, p.count > 0 && p.present ? "shape " + text_of(sizes_of(p.first)) : "nothing", what);
}

bool Shapes::attribute(bool holds, const char* name, const char* what) {
  if (holds || !good_) return holds;
  refuse(-1, "another number", what);
  why_.field = name;
  return false;
}

bool Shapes::axis(int64_t axis, int rank) {
  return attribute(axis >= 0 && axis < std::max(rank, 1), "axis", "an axis of the tensor");
}

bool Shapes::axes(int64_t bits, int rank) {
  return attribute(bits >= 0 && bits < int64_t{1} << rank, "axes", "a bit for each axis of the tensor");
}

Sizes Shapes::joined(const Tensor& a, const Tensor& b) {
  const Sizes out = broadcast_of(a, b);
  a.fits(out);
  b.fits(out);
  return out;
}

Sizes Shapes::joined(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Sizes out = broadcast_of(broadcast_of(a, b), c);
  for (const Tensor& one : {a, b, c}) one.fits(out);
  return out;
}

Sizes Shapes::joined(const Sizes& a, const Sizes& b, int param) {
  const Sizes out = broadcast_of(a, b);
  want(broadcasts(a, out) && broadcasts(b, out), param, "dimensions that broadcast with the other factor's");
  return out;
}

bool Shapes::done(Refusal& why) {
  for (size_t p = 0; good_ && p < signature_.params.size(); ++p)
    if (!(told_ >> p & 1)) refuse(static_cast<int>(p), "an argument", "none that the rule does not know");
  if (!good_) why = std::move(why_);
  return good_;
}

}  // namespace baracuda
