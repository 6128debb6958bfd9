// Programs with reductions as sweeps over rows, each with the functions that can be computed by then.
#include "ops/expr/fusion.h"
#include "ops/expr/skus.h"

namespace baracuda::expr {
namespace {

class SweepBuilder {
 public:
  SweepBuilder(Fusion& fusion, Class computing) : f_(fusion), p_(fusion.program), class_(computing) {
    std::fill_n(held_, kMaxInputs + kMaxNodes, int16_t{-1});
    std::fill_n(row_, kMaxInputs + kMaxNodes, int16_t{-1});
    for (int v = p_.inputs; v < p_.values(); ++v) {
      const Node& node = *p_.of(v);
      if (node.kind == Node::Kind::Reduce) last_ = std::max(last_, node.sweep - 1);
      if (!node.per_row) last_ = std::max<int>(last_, node.sweep);
      for (int i = 0; i < node.count; ++i) used_[node.args[i]] = true;
    }
  }

  const char* build() {
    for (int v = p_.inputs; v < p_.values(); ++v)
      for (int i = 0; i < p_.of(v)->count && !p_.of(v)->per_row; ++i) hold_until(p_.of(v)->args[i], p_.of(v)->sweep);
    for (int k = 0; k < p_.outputs; ++k)
      if (!p_.per_row(p_.out[k])) hold_until(exported(p_, used_, p_.out[k]), last_);
    for (int s = 0; s <= last_; ++s) {
      Sweep made;
      elements(s, made);
      folds(s, made);
      rows(s, made);
      if (wrong_) return wrong_;
      f_.sweeps.push_back(std::move(made));
    }
    for (int k = 0; k < p_.outputs; ++k)
      if (p_.per_row(p_.out[k])) f_.row_outputs.push_back({k, row_[exported(p_, used_, p_.out[k])]});
    return nullptr;
  }

 private:
  bool is_number(int16_t value) const { return p_.of(value) && p_.of(value)->kind == Node::Kind::Number; }

  void hold_until(int16_t value, int sweep) {
    kept_[value] |= value >= p_.inputs && !is_number(value) && !p_.per_row(value) && p_.sweep(value) < sweep;
  }

  int16_t hold(int16_t value) {
    if (held_[value] < 0) held_[value] = n_held_++;
    if (n_held_ > kMaxHeld) wrong_ = "at most 3 values that are reduced, or used again behind a reduction";
    return held_[value];
  }

  // Functions of this sweep whose values are one for a row, or not.
  std::vector<int16_t> nodes_of(int sweep, bool per_row) const {
    std::vector<int16_t> nodes;
    for (int v = p_.inputs; v < p_.values(); ++v) {
      const Node& node = *p_.of(v);
      const bool computed = node.kind == Node::Kind::Function || (node.kind == Node::Kind::Cast && used_[v]);
      if (computed && node.sweep == sweep && node.per_row == per_row) nodes.push_back(static_cast<int16_t>(v));
    }
    return nodes;
  }

  AnyRegion compiled(const std::vector<int16_t>& nodes, const Region& region) {
    if (region.imports.size() > kMaxInputs) wrong_ = "at most 16 values that a sweep over the rows reads";
    if (region.exports.size() > kMaxOutputs) wrong_ = "at most 8 values that a sweep over the rows gives";
    return with_class(class_, [&](auto c) -> AnyRegion {
      Compiled<decltype(c)> made;
      if (!Compiler<decltype(c)>(p_, nodes, region).compile(made)) wrong_ = kTooManyValues;
      return made;
    });
  }

  // Adds to the imports what comes from elsewhere.
  void import(const std::vector<int16_t>& nodes, int16_t value, Region& region) const {
    const auto among = [&](const std::vector<int16_t>& all) {
      return std::find(all.begin(), all.end(), value) != all.end();
    };
    if (!is_number(value) && !among(nodes) && !among(region.imports)) region.imports.push_back(value);
  }
  void import_all(const std::vector<int16_t>& nodes, Region& region) const {
    for (const int16_t v : nodes)
      for (int i = 0; i < p_.of(v)->count; ++i) import(nodes, p_.of(v)->args[i], region);
    for (const int16_t v : region.exports) import(nodes, v, region);
  }

  void elements(int sweep, Sweep& made) {
    const std::vector<int16_t> nodes = nodes_of(sweep, false);
    Region region;
    const auto give = [&](int16_t value, Place to) {
      region.exports.push_back(value);
      made.out.push_back(to);
    };
    // What is stored may lie where an input is still to be read, and waits for the last sweep.
    for (int k = 0; k < p_.outputs && sweep == last_; ++k)
      if (!p_.per_row(p_.out[k]))
        give(exported(p_, used_, p_.out[k]), {Place::Of::Tensor, static_cast<int16_t>(ExprArgs::y0 + k)});
    const auto give_held = [&](int16_t value) {
      if (held_[value] < 0) give(value, {Place::Of::Held, hold(value)});
    };
    for (int v = p_.inputs; v < p_.values(); ++v) {
      const Node& node = *p_.of(v);
      if (node.kind == Node::Kind::Reduce && node.sweep == sweep + 1) give_held(node.args[0]);
      if (kept_[v] && node.sweep == sweep) give_held(static_cast<int16_t>(v));
    }
    import_all(nodes, region);
    for (const int16_t v : region.imports) {
      const Place::Of of = v < p_.inputs ? Place::Of::Tensor : p_.per_row(v) ? Place::Of::Row : Place::Of::Held;
      const int at = of == Place::Of::Tensor ? ExprArgs::x0 + v : of == Place::Of::Row ? row_[v] : held_[v];
      made.in.push_back({of, static_cast<int16_t>(at)});
    }
    made.code = compiled(nodes, region);
  }

  int16_t new_row() {
    if (n_rows_ == kMaxRowValues) wrong_ = "at most 16 values that are one for a row";
    return n_rows_ < kMaxRowValues ? n_rows_++ : n_rows_;
  }

  void folds(int sweep, Sweep& made) {
    for (int v = p_.inputs; v < p_.values(); ++v) {
      const Node& node = *p_.of(v);
      if (node.kind != Node::Kind::Reduce || node.sweep != sweep + 1) continue;
      row_[v] = new_row();
      made.folds.push_back({held_[node.args[0]], row_[v], node.reduction});
    }
  }

  void rows(int sweep, Sweep& made) {
    const std::vector<int16_t> nodes = nodes_of(sweep + 1, true);
    if (nodes.empty()) return;
    Region region;
    region.exports = nodes;
    import_all(nodes, region);
    for (const int16_t v : region.imports) made.row_in.push_back(row_[v]);
    for (const int16_t v : nodes) made.row_out.push_back(row_[v] = new_row());
    made.row_code = compiled(nodes, region);
  }

  Fusion& f_;
  const Program& p_;
  const Class class_;
  int last_ = 0;
  const char* wrong_ = nullptr;
  bool used_[kMaxInputs + kMaxNodes] = {}, kept_[kMaxInputs + kMaxNodes] = {};
  int16_t held_[kMaxInputs + kMaxNodes], row_[kMaxInputs + kMaxNodes];
  int16_t n_held_ = 0, n_rows_ = 0;
};

}  // namespace

const char* make_sweeps(Fusion& fusion, Class computing) { return SweepBuilder(fusion, computing).build(); }

}  // namespace baracuda::expr
