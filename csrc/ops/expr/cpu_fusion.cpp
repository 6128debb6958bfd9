// Chooses the compute types of a program, and compiles it.
#include "ops/expr/fusion.h"

namespace baracuda::expr {

int16_t exported(const Program& p, const bool* used, int16_t value) {
  const Node* node = p.of(value);
  return node && node->kind == Node::Kind::Cast && !used[value] ? node->args[0] : value;
}

namespace {

// Programs whose tensors can be loaded in one compute type, and whose functions all compute in it.
class SingleClass {
 public:
  SingleClass(const Fusion& fusion, Class wanted) : p_(fusion.program), stored_(fusion.stored), class_(wanted) {
    for (int v = p_.inputs; v < p_.values(); ++v)
      for (int i = 0; i < p_.of(v)->count; ++i) used_[p_.of(v)->args[i]] = true;
  }

  bool possible() const {
    for (int v = p_.inputs; v < p_.values(); ++v) {
      const Node& node = *p_.of(static_cast<int16_t>(v));
      if (node.kind == Node::Kind::Function && !computes(node)) return false;
      if (node.kind == Node::Kind::Cast && used_[v] && !casts(node)) return false;
      if (node.kind == Node::Kind::Reduce && class_of(node.element) != class_) return false;
    }
    for (int k = 0; k < p_.outputs; ++k)
      if (!stores(p_.out[k])) return false;
    return true;
  }

  AnyRegion compiled() const {
    std::vector<int16_t> nodes;
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (p_.of(v)->kind != Node::Kind::Cast || used_[v]) nodes.push_back(static_cast<int16_t>(v));
    Region region;
    for (int k = 0; k < p_.inputs; ++k) region.imports.push_back(static_cast<int16_t>(k));
    for (int k = 0; k < p_.outputs; ++k) region.exports.push_back(exported(p_, used_, p_.out[k]));
    return with_class(class_, [&](auto c) -> AnyRegion {
      Compiled<decltype(c)> made;
      fits_ = Compiler<decltype(c)>(p_, nodes, region).compile(made);
      return made;
    });
  }
  bool fits() const { return fits_; }

 private:
  // Functions of bool are right in every type that has them: what they give is made 0 or 1 again.
  bool computes(const Node& node) const {
    if (class_of(node.element) == class_) return true;
    return node.element == Element::Bool && kFunctions[node.function].elements.has(element_of_class(class_));
  }
  bool is_input(int16_t value) const { return value < p_.inputs; }
  Element element_at(int16_t value) const { return is_input(value) ? stored_[value] : p_.of(value)->result; }
  // Whether a value, held in this type, is what a cast of it would start from.
  bool held(int16_t value) const {
    return !is_input(value) || class_of(stored_[value]) == class_ || stored_[value] == Element::Bool;
  }
  bool casts(const Node& node) const {
    if (node.element == Element::Bool) return held(node.args[0]);
    if (class_of(node.element) != class_) return false;
    // Tensors of other types are converted while being loaded, once.
    return held(node.args[0]) || node.element == element_of_class(class_) ||
           (!is_float(element_at(node.args[0])) && !is_float(node.element));
  }
  bool stores(int16_t value) const {
    const Node* node = p_.of(value);
    if (node && node->kind == Node::Kind::Cast && !used_[value]) return held(node->args[0]);
    if (node && node->kind == Node::Kind::Reduce) return held(node->args[0]);
    if (node && node->kind == Node::Kind::Number) return class_of(node->element) == class_;
    return held(value);
  }

  const Program& p_;
  const Element* stored_;
  const Class class_;
  bool used_[kMaxInputs + kMaxNodes] = {};
  mutable bool fits_ = true;
};

// Several compute types: regions of consecutive functions of one, and conversions between them.
class SeveralClasses {
 public:
  explicit SeveralClasses(Fusion& fusion) : f_(fusion), p_(fusion.program) {
    f_.buffers = p_.inputs + p_.outputs;
    for (auto& at : buffer_) std::fill_n(at, kClasses, int16_t{-1});
  }

  bool build() {
    for (int v = p_.inputs; v < p_.values();) {
      const Node& node = *p_.of(v);
      if (node.kind == Node::Kind::Cast)
        cast(static_cast<int16_t>(v++), node);
      else if (node.kind == Node::Kind::Number)
        ++v;
      else
        v = region(v);
    }
    for (int k = 0; k < p_.outputs; ++k) output(k);
    return fits_ && f_.buffers <= kMaxBuffers;
  }

 private:
  Class class_at(int16_t value) const {
    const Node* node = p_.of(value);
    return class_of(!node ? f_.stored[value] : node->kind == Node::Kind::Function ? node->element : node->result);
  }
  int16_t new_buffer() { return static_cast<int16_t>(f_.buffers++); }

  // The buffer of a value in a class, converted to it where it is not there yet.
  int16_t in_class(int16_t value, Class c) {
    int16_t& at = buffer_[value][static_cast<int>(c)];
    if (at >= 0) return at;
    const Node* node = p_.of(value);
    if (!node) {
      at = new_buffer();
      f_.steps.emplace_back(Conversion{value, at, Class::U64, c, bits_of(f_.stored[value]), f_.stored[value]});
      return at;
    }
    if (node->kind == Node::Kind::Number) return at = number(value, c);
    const Class from = class_at(value);
    const int16_t source = buffer_[value][static_cast<int>(from)];
    const Element through = compute_element(node->result);
    at = new_buffer();
    f_.steps.emplace_back(Conversion{source, at, from, c, through, through});
    return at;
  }

  // A number on its own: what a region without functions stores.
  int16_t number(int16_t value, Class c) {
    const int16_t at = new_buffer();
    add_region({value}, {{}, {value}}, c, {}, {at});
    return at;
  }

  void cast(int16_t value, const Node& node) {
    const Class from = class_at(node.args[0]), to = class_of(node.element);
    const int16_t source = in_class(node.args[0], from), at = new_buffer();
    f_.steps.emplace_back(Conversion{source, at, from, to, node.element, node.element});
    buffer_[value][static_cast<int>(to)] = at;
  }

  // Takes functions from value v on, as long as they compute in one class; returns the next value.
  int region(int v) {
    const Class c = class_at(static_cast<int16_t>(v));
    std::vector<int16_t> nodes, in, out;
    Region made;
    int end = v;
    for (; end < p_.values(); ++end) {
      const Node& node = *p_.of(end);
      const bool number = node.kind == Node::Kind::Number;
      if (!number && (node.kind != Node::Kind::Function || class_at(static_cast<int16_t>(end)) != c)) break;
      if (!number) nodes.push_back(static_cast<int16_t>(end));
    }
    const auto inside = [&](int16_t value) { return std::find(nodes.begin(), nodes.end(), value) != nodes.end(); };
    for (const int16_t value : nodes) {
      const Node& node = *p_.of(value);
      for (int i = 0; i < node.count; ++i) {
        const int16_t arg = node.args[i];
        const Node* from = p_.of(arg);
        if (inside(arg) || (from && from->kind == Node::Kind::Number)) continue;
        if (std::find(made.imports.begin(), made.imports.end(), arg) != made.imports.end()) continue;
        in.push_back(in_class(arg, c));
        made.imports.push_back(arg);
      }
    }
    for (const int16_t value : nodes) {
      made.exports.push_back(value);
      out.push_back(buffer_[value][static_cast<int>(c)] = new_buffer());
    }
    add_region(nodes, made, c, in, out);
    return end;
  }

  void add_region(const std::vector<int16_t>& nodes, const Region& region, Class c, std::vector<int16_t> in,
                  std::vector<int16_t> out) {
    RegionStep step{{}, std::move(in), std::move(out)};
    with_class(c, [&](auto type) {
      Compiled<decltype(type)> made;
      fits_ &= Compiler<decltype(type)>(p_, nodes, region).compile(made);
      step.code = std::move(made);
    });
    f_.steps.emplace_back(std::move(step));
  }

  void output(int k) {
    const int16_t value = p_.out[k];
    const Class c = class_at(value);
    const Element stored = f_.stored[kMaxInputs + k];
    const int16_t from = in_class(value, c), to = static_cast<int16_t>(p_.inputs + k);
    f_.steps.emplace_back(Conversion{from, to, c, Class::U64, stored, bits_of(stored)});
  }

  Fusion& f_;
  const Program& p_;
  int16_t buffer_[kMaxInputs + kMaxNodes][kClasses];
  bool fits_ = true;
};

}  // namespace

const char* make_fusion(Fusion& fusion) {
  const Program& p = fusion.program;
  for (const Class c : {Class::F32, Class::F64, Class::I64, Class::U64}) {
    const SingleClass single(fusion, c);
    if (!single.possible()) continue;
    if (p.axes > 0) return make_sweeps(fusion, c);
    fusion.single = single.compiled();
    return single.fits() ? nullptr : kTooManyValues;
  }
  if (p.axes > 0) return "one compute type, f32 or f64, where there are reductions";
  return SeveralClasses(fusion).build() ? nullptr : "fewer values, or values of fewer types";
}

}  // namespace baracuda::expr
