// A fused expression as text, and as the nodes that kernels are made of. The text is what descriptors, documents and
// questions carry: functions by their names in the SKU table, so that it means the same to every version.
//
//   inputs 2; add f32 0 1; number f32 0.5; mul f32 2 3; relu f32 4; out 5;
//
// Values are numbered: the inputs, then one for each instruction. An instruction names a function, the element that it
// computes in, and its operands: values, then numbers. `cast` gives the stored element's value, rounded or wrapped;
// without one halves keep the bits that f32 has. `sum f32 5 2` reduces value 5 over the last 2 axes; functions after it
// take it as one value all along the row. `out 5` makes a value the next output.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "core/element.h"

namespace baracuda::expr {

inline constexpr int kMaxInputs = 16, kMaxOutputs = 8, kMaxOperands = 5;
inline constexpr int kMaxNodes = 96;      // functions, numbers and casts
inline constexpr int kMaxFunctions = 64;  // of one kernel
inline constexpr int kMaxNumbers = 32;

struct Function {
  std::string_view name;
  int8_t arrays, numbers;  // operands that vary from element to element, then those that are numbers
  Elements elements;
  bool answers;  // the result is bool
};
inline constexpr Function kFunctions[] = {
#define BCU_EXPR_ALL
#define BCU_EXPR(F, name, arrays, numbers, elements, answers) {name, arrays, numbers, elements, answers},
#include "ops/expr/ops.def"
};
inline constexpr int kFunctionCount = sizeof kFunctions / sizeof *kFunctions;

// The function of a name, or -1.
constexpr int function_of(std::string_view name) {
  for (int i = 0; i < kFunctionCount; ++i)
    if (kFunctions[i].name == name) return i;
  return -1;
}

enum class Reduction : int8_t { Sum, Mean, Amax, Amin, Prod, Count };
inline constexpr std::string_view kReductions[] = {"sum", "mean", "amax", "amin", "prod"};

struct Node {
  enum class Kind : int8_t { Function, Number, Cast, Reduce } kind = Kind::Function;
  int16_t function = -1;
  Element element = Element::F32;  // computed in; of a cast, cast to
  Element result = Element::F32;   // stored as
  Reduction reduction = Reduction::Sum;
  int8_t axes = 0;  // that are reduced
  int8_t count = 0;
  int8_t sweep = 0;      // over the rows, in which it is known: reductions are behind those that give their operand
  bool per_row = false;  // one value for a row: reductions, and functions of them and of numbers
  int16_t args[kMaxOperands] = {};
  double real = 0;  // a number, as its element wants it
  int64_t whole = 0;
};

struct Program {
  int inputs = 0, outputs = 0, nodes = 0;
  int axes = 0;  // the last ones, which are reduced; 0: none
  Node node[kMaxNodes];
  int16_t out[kMaxOutputs];

  int values() const { return inputs + nodes; }
  const Node* of(int value) const { return value < inputs ? nullptr : &node[value - inputs]; }
  bool per_row(int value) const { return value >= inputs && of(value)->per_row; }
  int sweep(int value) const { return value < inputs ? 0 : of(value)->sweep; }
};

// Reads a text; null, or what was wanted where it could not be read.
class ProgramReader {
 public:
  ProgramReader(std::string_view text, Program& program) : rest_(text), program_(program) {}

  const char* read() {
    while (next_instruction()) {
      if (const char* wrong = instruction()) return wrong;
      if (!words_.empty()) return "no more operands than the function has";
    }
    if (!rest_.empty()) return "';' at the end of every instruction";
    if (program_.inputs == 0) return "'inputs' with their number first";
    return program_.outputs ? nullptr : "at least one output";
  }

 private:
  bool next_instruction() {
    const size_t end = rest_.find(';');
    if (end == rest_.npos) return false;
    words_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return true;
  }

  std::string_view word() {
    const size_t end = words_.find(' ');
    const std::string_view found = words_.substr(0, end);
    words_.remove_prefix(end == words_.npos ? words_.size() : end + 1);
    return found;
  }

  template <class N>
  bool number(N& out) {
    const std::string_view text = word();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return !text.empty() && error == std::errc() && end == text.data() + text.size();
  }

  bool element(Element& out) {
    const std::string_view wanted = word();
    for (int e = 0; e < kElementCount; ++e) {
      out = static_cast<Element>(e);
      if (kReal.has(out) && wanted == name(out)) return true;
    }
    return false;
  }

  bool value(int16_t& out) { return number(out) && out >= 0 && out < program_.values(); }

  const char* instruction() {
    const std::string_view called = word();
    if (called == "inputs") {
      const bool first = program_.inputs == 0 && number(program_.inputs);
      return first && program_.inputs > 0 && program_.inputs <= kMaxInputs ? nullptr : "1 to 16 inputs, said once";
    }
    if (program_.inputs == 0) return "'inputs' with their number first";
    if (called == "out") {
      if (program_.outputs == kMaxOutputs) return "at most 8 outputs";
      int16_t& to = program_.out[program_.outputs++];
      return number(to) && to >= 0 && to < program_.values() ? nullptr : "an output that is a value";
    }
    if (program_.nodes == kMaxNodes) return "at most 96 functions, numbers and casts";
    Node node;
    if (!element(node.element)) return "an element behind each function's name";
    node.result = node.element;
    const char* wrong = called == "number" ? number_node(node)
                        : called == "cast" ? cast_node(node)
                                           : other(node, called);
    if (wrong) return wrong;
    place(node);
    program_.node[program_.nodes++] = node;
    return nullptr;
  }

  void place(Node& node) const {
    bool varies = false, waits = false;
    for (int i = 0; i < node.count; ++i) {
      const Node* from = program_.of(node.args[i]);
      node.sweep = std::max(node.sweep, static_cast<int8_t>(program_.sweep(node.args[i])));
      waits |= from && from->per_row;
      varies |= !from || (!from->per_row && from->kind != Node::Kind::Number);
    }
    const bool reduces = node.kind == Node::Kind::Reduce;
    node.sweep = static_cast<int8_t>(node.sweep + (reduces ? 1 : 0));
    node.per_row = reduces || (waits && !varies);
  }

  const char* number_node(Node& node) {
    node.kind = Node::Kind::Number;
    if (++numbers_ > kMaxNumbers) return "at most 32 numbers";
    bool good;
    if (is_float(node.element)) {
      good = number(node.real);
    } else if (kSigned.has(node.element)) {
      good = number(node.whole);
    } else {
      uint64_t whole = 0;
      good = number(whole);
      node.whole = static_cast<int64_t>(whole);
    }
    return good ? nullptr : "a number of its element";
  }

  const char* cast_node(Node& node) {
    node.kind = Node::Kind::Cast, node.count = 1;
    return value(node.args[0]) ? nullptr : "operands that are values before";
  }

  const char* other(Node& node, std::string_view called) {
    for (int r = 0; r < static_cast<int>(Reduction::Count); ++r) {
      if (called != kReductions[r]) continue;
      node.kind = Node::Kind::Reduce, node.reduction = static_cast<Reduction>(r), node.count = 1;
      if (!is_float(node.element)) return "f16, bf16, f32 or f64 for a reduction";
      if (!value(node.args[0]) || !number(node.axes) || node.axes <= 0) return "a value, and how many axes of it";
      if (program_.per_row(node.args[0])) return "reductions of what varies along their axes";
      if (program_.axes != 0 && program_.axes != node.axes) return "reductions over the same axes";
      program_.axes = node.axes;
      return nullptr;
    }
    node.function = static_cast<int16_t>(function_of(called));
    if (node.function < 0) return "functions that can be fused";
    if (++functions_ > kMaxFunctions) return "at most 64 functions";
    const Function& f = kFunctions[node.function];
    if (!f.elements.has(node.element)) return "elements that its functions compute in";
    if (f.answers) node.result = Element::Bool;
    node.count = static_cast<int8_t>(f.arrays + f.numbers);
    for (int i = 0; i < node.count; ++i) {
      if (!value(node.args[i])) return "operands that are values before";
      const Node* from = program_.of(node.args[i]);
      if (i >= f.arrays && (!from || from->kind != Node::Kind::Number)) return "numbers behind a function's operands";
    }
    return nullptr;
  }

  std::string_view rest_, words_;
  Program& program_;
  int functions_ = 0, numbers_ = 0;
};

inline const char* read_program(std::string_view text, Program& program) { return ProgramReader(text, program).read(); }

// For rules: at every new size they are asked about the same few texts again, each of which lies where it lay.
struct KnownProgram {
  std::string text;
  Program program;
  const char* wrong = nullptr;
};
inline const KnownProgram& known_program(std::string_view text) {
  constexpr int kBits = 6;
  thread_local std::unique_ptr<KnownProgram> known[size_t{1} << kBits];
  const uint64_t place = reinterpret_cast<uintptr_t>(text.data()) * uint64_t{0x9E3779B97F4A7C15u};
  std::unique_ptr<KnownProgram>& here = known[place >> (64 - kBits)];
  if (here && here->text == text) return *here;
  here = std::make_unique<KnownProgram>();
  here->text = text;
  here->wrong = read_program(text, here->program);
  return *here;
}

}  // namespace baracuda::expr
