#include "ops/expr/source.h"

#include <algorithm>
#include <vector>

#include "ops/expr/skus.h"

namespace baracuda::expr {
namespace {

#define BCU_TEXT(...) BCU_TEXT_OF(__VA_ARGS__)
#define BCU_TEXT_OF(...) #__VA_ARGS__
constexpr const char* kFunctors[] = {
#define BCU_EXPR_ALL
#define BCU_EXPR(F, name, arrays, numbers, elements, answers) BCU_TEXT(F),
#include "ops/expr/ops.def"
};

// Around a functor of ops.def that an integer divisor of zero has no value of.
constexpr std::string_view kDivided = "Divided<";

constexpr const char kCudaPrelude[] =
#include "expr_prelude_cuda.inc"
    ;
constexpr const char kMetalPrelude[] =
#include "expr_prelude_metal.inc"
    ;

// The type of a value between functions, and of a tensor's element in memory.
enum class Type : int8_t { Bool, I64, U64, F32, F64 };
constexpr const char* kTypes[] = {"bool", "int64_t", "uint64_t", "float", "double"};
constexpr Type type_of(Element e) {
  if (e == Element::Bool) return Type::Bool;
  if (is_float(e)) return e == Element::F64 ? Type::F64 : Type::F32;
  return kSigned.has(e) ? Type::I64 : Type::U64;
}
// Functions of bool compute with 0 and 1.
constexpr Type computing(Element e) { return e == Element::Bool ? Type::U64 : type_of(e); }
constexpr const char* text(Type t) { return kTypes[static_cast<int>(t)]; }

constexpr const char* stored(Element e) {
  switch (e) {
    case Element::Bool:
    case Element::U8:
      return "uint8_t";
    case Element::U16:
      return "uint16_t";
    case Element::U32:
      return "uint32_t";
    case Element::U64:
      return "uint64_t";
    case Element::I8:
      return "int8_t";
    case Element::I16:
      return "int16_t";
    case Element::I32:
      return "int32_t";
    case Element::I64:
      return "int64_t";
    case Element::F16:
      return "simt::f16";
    case Element::BF16:
      return "simt::bf16";
    case Element::F32:
      return "float";
    default:
      return "double";
  }
}
// What a stored value is converted by: bool is stored as a byte, and no number.
constexpr const char* stored_as(Element e) { return e == Element::Bool ? "bool" : stored(e); }

class Writer {
 public:
  Writer(const Program& p, const ParamMeta* params) : p_(p), params_(params) {
    for (int v = 0; v < p_.values(); ++v) types_[v] = type_at(v), wide_ |= size(types_[v]) == 8;
    int numbers = 0;
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (p_.of(v)->kind == Node::Kind::Number) number_at_[v] = numbers++;
    find_sweeps();
    if (!sweeps_.empty()) params_type_ = "FoldedParams";
  }

  int pack() const {
    if (sweeps_.empty()) return wide_ ? 4 : 8;
    int most = 0;
    for (const Sweep& sweep : sweeps_) most = std::max(most, sweep.pack);
    return most;
  }

  std::string written() {
    line("namespace baracuda { namespace expr {\n");  // Metal is C++14
    line("struct Program {");
    line("  enum : int { kInputs = " + number(p_.inputs) + ", kOutputs = " + number(p_.outputs) +
         ", kPack = " + number(pack()) + " };\n");
    for (int stage = 0; stage <= last_; ++stage) functions(stage);
    if (sweeps_.empty()) {
      element();
      pack_of_elements();
    }
    for (const Sweep& sweep : sweeps_) values(sweep);
    if (!sweeps_.empty()) row();
    line("};\n");
    line("}}  // namespace baracuda::expr\n");
    const std::string body = sweeps_.empty() ? "FusedMap" : "FusedFold";
    line("BCU_ENTRY((baracuda::expr::" + body + "<baracuda::expr::Program>))");
    return std::move(out_);
  }

 private:
  // Reductions that are folded while a row is read once, in packs of so many values: those of a stage wait for the ones
  // of the stages before.
  struct Sweep {
    int stage = 0, pack = 0;
    std::vector<int> folds;
    bool stores = false;  // the outputs that are not one for a row
  };

  static std::string number(int64_t n) { return std::to_string(n); }
  static int size(Type t) { return t == Type::Bool ? 1 : t == Type::F32 ? 4 : 8; }
  void line(const std::string& text) { out_ += text + "\n"; }

  Element in(int k) const { return params_[ExprArgs::x0 + k].element; }
  Element out(int k) const { return params_[ExprArgs::y0 + k].element; }

  Type type_at(int value) const {
    if (value < p_.inputs) return type_of(in(value));
    const Node& node = *p_.of(value);
    switch (node.kind) {
      case Node::Kind::Number:
        return computing(node.element);
      case Node::Kind::Function:
        return kFunctions[node.function].answers ? Type::Bool : type_of(node.element);
      default:
        return type_of(node.element);
    }
  }

  static std::string converted(const std::string& value, Type from, Type to) {
    if (from == to) return value;
    if (to == Type::Bool) return value + " != " + text(from) + "(0)";
    // As a cast does: what is below zero wraps.
    if (to == Type::U64 && (from == Type::F32 || from == Type::F64))
      return "simt::Convert<uint64_t>::to(" + value + ")";
    return std::string(text(to)) + "(" + value + ")";
  }
  std::string operand(int value, Type wanted) const { return converted("v" + number(value), types_[value], wanted); }

  // A value as the element would hold it: integers wrap, halves are rounded if it is a cast to one.
  static std::string through(const std::string& value, Element e) {
    const std::string to = std::string("simt::Convert<") + stored_as(e) + ">::to(" + value + ")";
    if (e == Element::F16 || e == Element::BF16)
      return std::string("simt::Stored<") + stored(e) + ">::load(" + to + ")";
    return std::string(text(type_of(e))) + "(" + to + ")";
  }

  std::string called(const Node& node) const {
    const Function& f = kFunctions[node.function];
    const Type type = computing(node.element);
    std::string functor = kFunctors[node.function];
    const bool may_divide = functor.rfind(kDivided, 0) == 0;
    if (may_divide) functor = functor.substr(kDivided.size(), functor.size() - kDivided.size() - 1);
    std::string args;
    for (int i = 0; i < node.count; ++i) args += (i ? ", " : "") + operand(node.args[i], type);
    if (may_divide && !is_float(node.element)) return "divide<" + functor + ">(p, " + args + ")";
    if (f.answers) return "bool(" + functor + "::f(" + args + "))";
    return functor + "::f(" + args + ")";
  }

  std::string made(const Node& node) const {
    if (node.kind == Node::Kind::Cast) {
      const Type from = types_[node.args[0]];
      const std::string value = operand(node.args[0], from == Type::Bool ? Type::U64 : from);
      return node.element == Element::Bool && from == Type::Bool ? operand(node.args[0], from)
                                                                 : through(value, node.element);
    }
    std::string value = called(node);
    const bool whole = kFunctions[node.function].answers || is_float(node.element);
    if (whole || (size_of(node.element) == 8 && node.element != Element::Bool)) return value;
    return through(value, node.element);
  }

  bool is_fold(int value) const { return p_.of(value) && p_.of(value)->kind == Node::Kind::Reduce; }
  bool is_number(int value) const { return p_.of(value) && p_.of(value)->kind == Node::Kind::Number; }
  bool stores(int stage, int output) const { return stage == last_ && !p_.per_row(p_.out[output]); }
  std::vector<int> folds_of(int stage) const {
    std::vector<int> found;
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (is_fold(v) && p_.sweep(v) == stage + 1) found.push_back(v);
    return found;
  }
  // Values of rows that functions of elements take in a stage.
  std::vector<int> rows_for(int stage) const {
    std::vector<int> found;
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (p_.per_row(v) && p_.sweep(v) <= stage) found.push_back(v);
    return found;
  }
  // Values of elements, and numbers, that what a stage gives is made of.
  std::vector<bool> wanted_in(int stage) const {
    std::vector<bool> wanted(p_.values());
    for (const int v : folds_of(stage)) wanted[p_.of(v)->args[0]] = true;
    for (int k = 0; k < p_.outputs; ++k)
      if (stores(stage, k)) wanted[p_.out[k]] = true;
    for (int v = p_.values() - 1; v >= p_.inputs; --v) {
      wanted[v] = wanted[v] && !p_.per_row(v);
      for (int i = 0; i < p_.of(v)->count && wanted[v]; ++i) wanted[p_.of(v)->args[i]] = true;
    }
    return wanted;
  }
  std::string defined(int v) const {
    const std::string t = text(types_[v]);
    const std::string value = is_number(v) ? "number<" + t + ">(p, " + number(number_at_[v]) + ")" : made(*p_.of(v));
    return t + " v" + number(v) + " = " + value + ";";
  }

  // The program of one element as far as a stage needs it: inputs and values of rows as values, what is folded and
  // outputs by reference.
  void functions(int stage) {
    std::string head = "  BCU_DEVICE void functions" + number(stage) + "(BCU_CONSTANT " + params_type_ + "& p";
    const auto add = [&](const char* how, int type_of, const std::string& name) {
      head += std::string(", ") + how + text(types_[type_of]) + (*how ? "& " : " ") + name;
    };
    for (int k = 0; k < p_.inputs; ++k) add("", k, "v" + number(k));
    for (const int v : rows_for(stage)) add("", v, "v" + number(v));
    for (const int v : folds_of(stage)) add("BCU_THREAD ", v, "f" + number(v));
    for (int k = 0; k < p_.outputs; ++k)
      if (stores(stage, k)) add("BCU_THREAD ", p_.out[k], "y" + number(k));
    line(head + ") {");
    const std::vector<bool> wanted = wanted_in(stage);
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (wanted[v]) line("    " + defined(v));
    for (const int v : folds_of(stage)) line("    f" + number(v) + " = " + operand(p_.of(v)->args[0], types_[v]) + ";");
    for (int k = 0; k < p_.outputs; ++k)
      if (stores(stage, k)) line("    y" + number(k) + " = v" + number(p_.out[k]) + ";");
    line("  }\n");
  }
  std::string list(int stage, const char* of_inputs, const char* of_outputs) const {
    std::string args;
    for (int k = 0; k < p_.inputs; ++k) args += ", x" + number(k) + of_inputs;
    for (const int v : rows_for(stage)) args += ", v" + number(v);
    for (const int v : folds_of(stage)) args += ", f" + number(v) + of_outputs;
    for (int k = 0; k < p_.outputs; ++k)
      if (stores(stage, k)) args += ", y" + number(k) + of_outputs;
    return args;
  }

  // Statements that read inputs, and that write outputs that are no reductions: one element, or packs of them.
  void read_elements(const std::string& indent) {
    for (int k = 0; k < p_.inputs; ++k) {
      const std::string t = text(types_[k]);
      line(indent + t + " x" + number(k) + " = read<" + stored(in(k)) + ", " + t + ">(p, kMostOut + " + number(k) +
           ", at);");
    }
  }
  void write_elements(const std::string& indent, const char* suffix) {
    for (int k = 0; k < p_.outputs; ++k)
      if (!p_.per_row(p_.out[k]))
        line(indent + "write<" + stored(out(k)) + ", " + stored_as(out(k)) + ">(p, " + number(k) + ", at, y" +
             number(k) + suffix + ");");
  }
  void read_packs(const std::string& indent, const std::string& pack) {
    for (int k = 0; k < p_.inputs; ++k) {
      const std::string t = text(types_[k]);
      line(indent + t + " x" + number(k) + "[" + pack + "];");
      line(indent + "read_pack<" + stored(in(k)) + ", " + t + ", " + pack + ">(p, kMostOut + " + number(k) + ", at, x" +
           number(k) + ");");
    }
  }
  void write_packs(const std::string& indent, const std::string& pack) {
    for (int k = 0; k < p_.outputs; ++k)
      if (!p_.per_row(p_.out[k]))
        line(indent + "write_pack<" + stored(out(k)) + ", " + stored_as(out(k)) + ", " + text(types_[p_.out[k]]) +
             ", " + pack + ">(p, " + number(k) + ", at, y" + number(k) + ");");
  }

  void element() {
    line("  BCU_DEVICE void element(BCU_CONSTANT FusedParams& p, BCU_THREAD const int32_t* at) {");
    read_elements("    ");
    for (int k = 0; k < p_.outputs; ++k) line(std::string("    ") + text(types_[p_.out[k]]) + " y" + number(k) + ";");
    line("    functions0(p" + list(0, "", "") + ");");
    write_elements("    ", "");
    line("  }\n");
  }

  void pack_of_elements() {
    line("  BCU_DEVICE void pack(BCU_CONSTANT FusedParams& p, BCU_THREAD const int32_t* at) {");
    read_packs("    ", "kPack");
    for (int k = 0; k < p_.outputs; ++k)
      line(std::string("    ") + text(types_[p_.out[k]]) + " y" + number(k) + "[kPack];");
    line("    BCU_UNROLL for (int j = 0; j < kPack; ++j) functions0(p" + list(0, "[j]", "[j]") + ");");
    write_packs("    ", "kPack");
    line("  }");
  }

  // --- reductions ---

  // As the reduce family folds a contiguous row: 16 bytes at once, and products four values.
  void find_sweeps() {
    for (int v = p_.inputs; v < p_.values(); ++v)
      last_ = std::max(last_, is_fold(v) ? p_.sweep(v) - 1 : p_.per_row(v) ? 0 : p_.sweep(v));
    int pack = 0;
    for (int stage = 0; p_.axes > 0 && stage <= last_; ++stage) {
      Sweep sums{stage, 0, {}}, products{stage, 4, {}};
      for (const int v : folds_of(stage)) {
        pack = sums.pack = 16 / size(types_[v]);
        (is_product(v) ? products : sums).folds.push_back(v);
      }
      if (sums.pack == products.pack) {
        sums.folds.insert(sums.folds.end(), products.folds.begin(), products.folds.end());
        products.folds.clear();
      }
      for (const Sweep& sweep : {sums, products})
        if (!sweep.folds.empty()) sweeps_.push_back(sweep);
      if (sweeps_.back().stage < stage) sweeps_.push_back({stage, pack, {}});
    }
    if (!sweeps_.empty()) sweeps_.back().stores = true;
  }
  std::string fold_of(int v) const {
    const std::string of = std::string(text(types_[v])) + ">";
    switch (p_.of(v)->reduction) {
      case Reduction::Amax:
        return "simt::ExtremeFold<true, " + of;
      case Reduction::Amin:
        return "simt::ExtremeFold<false, " + of;
      case Reduction::Prod:
        return "reduce::ProductFold<" + of;
      default:
        return "simt::SumFold<" + of;
    }
  }
  bool is_product(int v) const { return p_.of(v)->reduction == Reduction::Prod; }
  bool is_mean(int v) const { return p_.of(v)->reduction == Reduction::Mean; }
  std::string state_of(int v) const {
    const std::string state = "s" + number(v);
    return is_product(v) ? state + ".all" : fold_of(v) + "::value(" + state + ")";
  }
  static std::string values_of(const Sweep& sweep) { return "values" + number(sweep.stage) + "_" + number(sweep.pack); }

  // A pack of the values that are folded, from position i of a row on; what is past the end changes nothing.
  void values(const Sweep& sweep) {
    const std::string pack = number(sweep.pack);
    std::string head = "  BCU_DEVICE void " + values_of(sweep) +
                       "(BCU_CONSTANT FoldedParams& p, BCU_THREAD const Line<kInputs>& line, int64_t i";
    std::string own, filled;
    for (const int v : rows_for(sweep.stage)) head += std::string(", ") + text(types_[v]) + " v" + number(v);
    for (const int v : folds_of(sweep.stage)) {
      const std::string t = text(types_[v]), f = "f" + number(v);
      if (std::find(sweep.folds.begin(), sweep.folds.end(), v) == sweep.folds.end()) {
        own += "    " + t + " " + f + "[" + pack + "];\n";
        continue;
      }
      head += ", BCU_THREAD " + t + "* " + f;
      filled += "      " + f + "[j] = " + (is_product(v) ? t + "(1)" : fold_of(v) + "::fill()") + ";\n";
    }
    for (int k = 0; k < p_.outputs; ++k)
      if (stores(sweep.stage, k))
        own += std::string("    ") + text(types_[p_.out[k]]) + " y" + number(k) + "[" + pack + "];\n";
    const std::string all = "BCU_UNROLL for (int j = 0; j < " + pack + "; ++j)";
    const std::string call = "functions" + number(sweep.stage) + "(p";
    line(head + ") {");
    out_ += own;
    line("    int64_t at[kMostOut + int(kInputs)];");
    line("    if (p.frame.packed) {");
    line("      places<kOutputs, kInputs>(p, line.from, i, at);");
    read_packs("      ", pack);
    line("      " + all + " " + call + list(sweep.stage, "[j]", "[j]") + ");");
    if (sweep.stores) write_packs("      ", pack);
    line("      return;\n    }");
    line("    " + all + " {");
    out_ += filled;
    line("      if (i + j >= line.last) continue;");
    line("      places<kOutputs, kInputs>(p, line.from, i + j, at);");
    read_elements("      ");
    line("      " + call + list(sweep.stage, "", "[j]") + ");");
    if (sweep.stores) write_elements("      ", "[j]");
    line("    }\n  }\n");
  }

  void fold(const Sweep& sweep) {
    const std::string pack = number(sweep.pack), step = ") * " + pack;
    std::string arrays, given;
    for (const int v : rows_for(sweep.stage)) given += ", v" + number(v);
    for (const int v : sweep.folds) {
      const std::string n = number(v);
      line("    " + fold_of(v) + "::State s" + n + " = " + fold_of(v) + "::start();");
      arrays += std::string("      ") + text(types_[v]) + " f" + n + "[" + pack + "];\n";
      given += ", f" + n;
    }
    line("    for (int64_t i = line.begin + int64_t(team.rank" + step + "; i < line.last; i += int64_t(team.size" +
         step + ") {");
    out_ += arrays;
    line("      " + values_of(sweep) + "(p, line, i" + given + ");");
    for (const int v : sweep.folds) {
      const std::string n = number(v), zero = std::string(text(types_[v])) + "(0)";
      if (is_product(v))
        line("      BCU_UNROLL for (int j = 0; j < " + pack + "; ++j) if (i + j < line.last) " + fold_of(v) +
             "::add(s" + n + ", f" + n + "[j], " + zero + ", p, i + j);");
      else
        line("      " + fold_of(v) + "::add<" + pack + ">(s" + n + ", f" + n + ", i, line.last);");
    }
    line("    }");
  }

  // What is known of a row behind a stage, by all of its team: reductions, and functions of them.
  void known(int stage) {
    for (const int v : folds_of(stage)) {
      const std::string team = is_product(v) ? "simt::team_state<" + fold_of(v) + ">" : fold_of(v) + "::team",
                        s = "s" + number(v);
      line("    " + s + " = " + team + "(ctx, team, " + s + ", shared);");
    }
    for (const int v : folds_of(stage)) {
      const std::string value = is_mean(v) ? "simt::quotient(" + state_of(v) + ", p.frame.length)" : state_of(v);
      if (is_taken(v)) line(std::string("    ") + text(types_[v]) + " v" + number(v) + " = " + value + ";");
    }
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (p_.per_row(v) && !is_fold(v) && p_.sweep(v) == stage + 1) line("    " + defined(v));
  }
  // Whether a function takes a value, or a sweep may.
  bool is_taken(int value) const {
    bool taken = p_.sweep(value) <= last_;
    for (int v = p_.inputs; v < p_.values(); ++v)
      for (int i = 0; i < p_.of(v)->count; ++i) taken |= p_.of(v)->args[i] == value;
    return taken;
  }
  bool is_row_number(int value) const {
    bool found = false;
    for (int v = p_.inputs; v < p_.values() && is_number(value); ++v)
      for (int i = 0; i < p_.of(v)->count; ++i) found |= p_.per_row(v) && !is_fold(v) && p_.of(v)->args[i] == value;
    return found;
  }

  void row() {
    line("  BCU_DEVICE void row(BCU_THREAD const simt::Context& ctx, BCU_THREAD const simt::Team& team,");
    line("                      BCU_SHARED float* shared, BCU_CONSTANT FoldedParams& p,");
    line("                      BCU_THREAD const Line<kInputs>& line) {");
    for (int v = p_.inputs; v < p_.values(); ++v)
      if (is_row_number(v)) line("    " + defined(v));
    for (int stage = 0; stage <= last_; ++stage) {
      for (const Sweep& sweep : sweeps_)
        if (sweep.stage == stage) fold(sweep);
      known(stage);
    }
    line("    if (team.rank != 0u || line.row >= p.frame.rows) return;");
    for (int k = 0; k < p_.outputs; ++k) {
      const int v = p_.out[k];
      if (is_fold(v))
        line(std::string("    put<") + stored(out(k)) + (is_mean(v) ? ", true" : ", false") + ">(p, " + number(k) +
             ", line, " + state_of(v) + ");");
      else if (p_.per_row(v))
        line(std::string("    write<") + stored(out(k)) + ", " + stored_as(out(k)) + ">(p, " + number(k) +
             ", line.from, v" + number(v) + ");");
    }
    line("  }");
  }

  const Program& p_;
  const ParamMeta* params_;
  Type types_[kMaxInputs + kMaxNodes];
  int number_at_[kMaxInputs + kMaxNodes] = {};  // of numbers, their place among them
  bool wide_ = false;
  int last_ = 0;  // stage
  std::vector<Sweep> sweeps_;
  std::string params_type_ = "FusedParams", out_;
};

}  // namespace

Written write_kernel(const Program& program, const ParamMeta* params, Backend backend, bool whole) {
  Writer writer(program, params);
  Written made;
  if (whole) made.text = backend == Backend::Metal ? kMetalPrelude : kCudaPrelude;
  made.text += writer.written();
  made.pack = writer.pack();
  return made;
}

std::string kernel_text(const Problem& problem, Backend backend, bool whole) {
  Program program;
  if (read_program(text_at(problem.attrs), program)) return {};
  return write_kernel(program, problem.params, backend, whole).text;
}

}  // namespace baracuda::expr
