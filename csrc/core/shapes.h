// What an op's tensors and attributes have to be to each other, told once per op by its family
// (csrc/ops/<family>/shapes.h) as the Python spec has it: kernels rely on it and look at nothing twice. Selection
// asks the rule, because documents, which anybody can write, come in without a spec; and of plans whose sizes are Dims
// each call does, because no spec has seen its sizes.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/evaluate.h"

namespace baracuda {

// The sizes of a tensor; at(-1) is the last one, and what is not there is -1.
struct Sizes {
  int32_t rank = 0;
  int64_t size[kMaxRank] = {};

  Sizes() = default;
  Sizes(std::initializer_list<int64_t> sizes) {
    for (const int64_t n : sizes) size[rank++] = n;
  }
  bool operator==(const Sizes& other) const { return rank == other.rank && std::equal(size, size + rank, other.size); }
  int64_t at(int i) const { return i < -rank || i >= rank ? -1 : size[i < 0 ? i + rank : i]; }
  // Without its last n, and those only.
  Sizes lead(int n) const { return part(0, std::max(rank - n, 0)); }
  Sizes tail(int n) const { return part(std::max(rank - n, 0), rank); }
  Sizes with(int64_t axis, int64_t n) const {
    Sizes out = *this;
    if (axis >= 0 && axis < rank) out.size[axis] = n;
    return out;
  }
  Sizes without(int64_t axis) const {
    Sizes out;
    for (int i = 0; i < rank; ++i)
      if (i != axis) out.size[out.rank++] = size[i];
    return out;
  }
  Sizes then(int64_t n) const { return then(Sizes{n}); }
  Sizes then(const Sizes& more) const {  // the first kMaxRank of them
    Sizes out = *this;
    for (int i = 0; i < more.rank && out.rank < kMaxRank; ++i) out.size[out.rank++] = more.size[i];
    return out;
  }
  // What is reduced away, a bit per axis.
  Sizes reduced(uint64_t axes, bool keepdim) const {
    Sizes out;
    for (int i = 0; i < rank; ++i)
      if (!(axes >> i & 1) || keepdim) out.size[out.rank++] = axes >> i & 1 ? 1 : size[i];
    return out;
  }

 private:
  Sizes part(int from, int to) const {
    Sizes out;
    for (int i = from; i < to; ++i) out.size[out.rank++] = size[i];
    return out;
  }
};

// Asks a rule of one problem. The first thing that is wrong is kept; after it, nothing is compared.
class Shapes {
 public:
  // One argument, or one tensor of a list.
  class Tensor {
   public:
    Tensor(Shapes& shapes, int param, int32_t slot) : shapes_(&shapes), param_(param), slot_(slot) {
      if (slot >= 0) sizes_ = shapes.sizes_of(slot);
    }
    explicit operator bool() const { return slot_ >= 0; }
    const Sizes& sizes() const { return sizes_; }
    operator const Sizes&() const { return sizes_; }
    int rank() const { return sizes_.rank; }
    Element element() const { return slot_ < 0 ? Element::Any : shapes_->signature_.slots[slot_].element; }
    int64_t at(int i) const { return sizes_.at(i); }
    // Has these sizes; broadcasts to them; has so many dimensions. Nothing is asked of what is absent.
    const Tensor& is(const Sizes& want) const;
    const Tensor& fits(const Sizes& full) const;
    const Tensor& ranks(int least, int most) const;
    const Tensor& ranks(int rank) const { return ranks(rank, rank); }
    const Tensor& when(bool there) const;  // present exactly then

   private:
    Shapes* shapes_;
    int param_;
    int32_t slot_;
    Sizes sizes_;
  };

  // At these tensors of a call, or, without one, at these values of the symbols.
  BCU_API Shapes(const Signature& signature, const Question& question, const TensorView* views, const int64_t* symbols);

  Element element() const { return question_.element; }
  Element aux() const { return question_.aux; }
  Element wide() const { return element() == Element::F64 ? Element::F64 : Element::F32; }  // of statistics
  Element whole_or(Element e) const { return is_float(element()) ? element() : e; }
  template <class Attrs>
  Attrs attrs() const {
    return attributes<Attrs>(question_.problem());
  }
  const int64_t* slots() const { return question_.attrs.data(); }  // of all attributes, texts too
  // Whether no size is a Dim; and whether sizes are those of a call, not maxima.
  bool fixed() const { return signature_.symbols.empty(); }
  bool real() const { return views_ || fixed(); }

  // Arguments that have to be there, of the question's element or these.
  Tensor in(int param) { return one(param, Role::In, set_of(element()), true); }
  Tensor in(int param, Elements elements) { return one(param, Role::In, elements, true); }
  Tensor in(int param, Element e) { return in(param, set_of(e)); }
  Tensor out(int param) { return out(param, element()); }
  Tensor out(int param, Elements elements) { return one(param, Role::Out, elements, true); }
  Tensor out(int param, Element e) { return out(param, set_of(e)); }
  Tensor inout(int param) { return inout(param, set_of(element())); }
  Tensor inout(int param, Elements elements) { return one(param, Role::InOut, elements, true); }
  // Those that are converted while being read.
  Tensor reads(int param) { return one(param, Role::In, readable(), true); }
  // Optional ones.
  Tensor may_in(int param) { return may_in(param, element()); }
  Tensor may_in(int param, Elements elements) { return one(param, Role::In, elements, false); }
  Tensor may_in(int param, Element e) { return may_in(param, set_of(e)); }
  Tensor may_out(int param) { return may_out(param, element()); }
  Tensor may_out(int param, Element e) { return may_out(param, set_of(e)); }
  Tensor may_out(int param, Elements elements) { return one(param, Role::Out, elements, false); }
  Tensor may_read(int param) { return one(param, Role::In, readable(), false); }
  void absent(int param) { one(param, Role::In, set_of(element()), false).when(false); }
  // A list, which has these many tensors where `count` says so; the tensor of a list.
  int64_t list(int param, Role role, Element e, bool optional = false);
  Tensor of(int param, int64_t i);
  // Every tensor of a list has the sizes of the same one of another; an absent one has none.
  void like(int param, int other);

  // A condition on one argument, or on an attribute; true when it holds.
  bool want(bool holds, int param, const char* what);
  bool attribute(bool holds, const char* name, const char* what);
  bool flag(int64_t value, const char* name) { return attribute(value == 0 || value == 1, name, "0 or 1"); }
  bool axis(int64_t axis, int rank);  // 0 <= axis < rank, where a rank of 0 counts as 1
  bool axes(int64_t bits, int rank);  // a bit for each
  // What they broadcast to; with `param`, sizes that are parts of tensors, of which that one is named.
  Sizes joined(const Tensor& a, const Tensor& b);
  Sizes joined(const Tensor& a, const Tensor& b, const Tensor& c);
  Sizes joined(const Sizes& a, const Sizes& b, int param);

  // Whether all held, and no argument was left out; else the first refusal.
  BCU_API bool done(Refusal& why);

 private:
  friend class Tensor;
  Tensor one(int param, Role role, Elements elements, bool required);
  bool argument(int param, Role role, Elements elements, bool variadic, bool required);
  Elements readable() const;
  Sizes sizes_of(int32_t slot) const;
  bool refuse(int param, std::string got, std::string want);

  const Signature& signature_;
  const Question& question_;
  const TensorView* views_;
  const int64_t* symbols_;
  uint32_t told_ = 0;  // a bit per argument that the rule spoke of
  bool good_ = true;
  Refusal why_{};
};

using ShapeRule = void (*)(Shapes&);

// The rule of a row's op; null where its family has none.
BCU_API ShapeRule shape_rule(int32_t row);

}  // namespace baracuda
