// From a program's nodes to threaded code: one region, whose functions all compute in C.
#pragma once
#include <algorithm>
#include <vector>

#include "ops/expr/threaded.h"

namespace baracuda::expr {

// What a region is given and gives: values that lie in memory before it, in the order of slots, and those that it
// stores, in the order of outputs.
struct Region {
  std::vector<int16_t> imports, exports;
};

template <class C>
struct Compiled : Region {
  struct alignas(64) Block {
    C values[kBlock<C>];
  };
  std::vector<typename Code<C>::Instruction> code;
  std::vector<Block> numbers;
  int temporaries = 0;

  int slots() const { return static_cast<int>(imports.size()) + temporaries + static_cast<int>(numbers.size()); }

  // The slots that do not move from block to block.
  void settle(Context<C>& c, Block* memory) const {
    const C** slot = c.slot + imports.size();
    for (int k = 0; k < temporaries; ++k) *slot++ = memory[k].values;
    for (const Block& number : numbers) *slot++ = number.values;
    c.zero = false;
  }
};

template <class C>
class Compiler {
 public:
  // `nodes` are values that functions, casts and numbers of the program make, in order.
  Compiler(const Program& program, const std::vector<int16_t>& nodes, Region region)
      : program_(program), nodes_(nodes) {
    static_cast<Region&>(made_) = std::move(region);
    std::fill_n(slot_, kMaxValues, kNowhere);
    for (size_t k = 0; k < made_.imports.size(); ++k) slot_[made_.imports[k]] = static_cast<int16_t>(k);
  }

  // False where there are more values to be kept than temporaries.
  bool compile(Compiled<C>& out) {
    count_uses();
    for (const int16_t value : nodes_) {
      const Node& node = *program_.of(value);
      if (node.kind == Node::Kind::Function)
        function(node);
      else if (node.kind == Node::Kind::Cast)
        cast(node);
      else
        continue;
      held_ = value;
      if ((uses_[value] > 0 || exported(value)) && wraps(node))
        emit(&Code<C>::through, {static_cast<int16_t>(node.result)});
      store(value);
    }
    for (const int16_t value : made_.exports) {
      if (!made_here(value)) load(value), store(value);
    }
    emit(&Code<C>::finish, {});
    place_slots();
    out = std::move(made_);
    return temporaries_ <= kMaxTemporaries;
  }

 private:
  static constexpr int kMaxValues = kMaxInputs + kMaxNodes;
  static constexpr int16_t kNowhere = -1;
  // Slots whose number is only known at the end: temporaries, and numbers of the program.
  static constexpr int16_t kTemporary = 1000, kNumber = 2000;

  bool made_here(int16_t value) const {
    const Node* node = program_.of(value);
    return node && node->kind != Node::Kind::Number && std::find(nodes_.begin(), nodes_.end(), value) != nodes_.end();
  }

  // Whether something outside of the region reads it, which may compute in another type.
  bool exported(int16_t value) const {
    return std::find(made_.exports.begin(), made_.exports.end(), value) != made_.exports.end();
  }

  void count_uses() {
    for (const int16_t value : nodes_) {
      const Node& node = *program_.of(value);
      for (int i = 0; i < node.count; ++i) ++uses_[node.args[i]];
    }
  }

  // Whether a function's value must be made what its element would hold: results of halves stay as they are.
  static bool wraps(const Node& node) {
    if (node.kind == Node::Kind::Cast || kFunctions[node.function].answers) return false;
    return !is_float(node.element) && (info(node.element).bits < 64 || node.element == Element::Bool);
  }

  void emit(Handler<C> handler, std::initializer_list<int16_t> operands) {
    typename Code<C>::Instruction made{handler, {}};
    std::copy(operands.begin(), operands.end(), made.operands);
    made_.code.push_back(made);
  }

  int16_t slot_of(int16_t value) {
    const Node* node = program_.of(value);
    if (slot_[value] == kNowhere && node && node->kind == Node::Kind::Number) {
      slot_[value] = static_cast<int16_t>(kNumber + made_.numbers.size());
      auto& block = made_.numbers.emplace_back();
      const C number = is_float(node->element) ? static_cast<C>(node->real) : static_cast<C>(node->whole);
      std::fill_n(block.values, kBlock<C>, number);
    }
    return slot_[value];
  }

  // Keeps what the registers hold, if it is wanted again besides `now` uses.
  void keep(int now) {
    if (held_ < 0 || slot_of(held_) != kNowhere || uses_[held_] <= now) return;
    int at = 0;
    while (at < temporaries_ && taken_[at]) ++at;
    if (at >= kMaxTemporaries) {
      temporaries_ = kMaxTemporaries + 1;
      at = 0;
    }
    temporaries_ = std::max(temporaries_, at + 1);
    taken_[at] = true;
    slot_[held_] = static_cast<int16_t>(kTemporary + at);
    emit(&Code<C>::save_slot, {slot_[held_]});
  }

  void load(int16_t value) {
    if (held_ == value) return;
    keep(0);
    emit(&Code<C>::load_slot, {slot_of(value)});
    held_ = value;
  }

  void used(int16_t value) {
    if (--uses_[value] > 0) return;
    if (slot_[value] >= kTemporary && slot_[value] < kNumber) taken_[slot_[value] - kTemporary] = false;
  }

  void store(int16_t value) {
    for (size_t k = 0; k < made_.exports.size(); ++k)
      if (made_.exports[k] == value) emit(&Code<C>::store_out, {static_cast<int16_t>(k)});
  }

  static bool commutes(int function) {
    for (const char* name : {"add", "mul", "eq", "ne", "logical_and", "logical_or", "logical_xor"})
      if (kFunctions[function].name == name) return true;
    return false;
  }

  void function(const Node& node) {
    int16_t args[kMaxOperands];
    std::copy_n(node.args, kMaxOperands, args);
    if (node.count > 1 && args[1] == held_ && args[0] != held_ && commutes(node.function)) std::swap(args[0], args[1]);
    if (args[0] == held_)
      keep(1);
    else
      load(args[0]);
    if (std::find(args + 1, args + node.count, held_) != args + node.count) keep(0);
    typename Code<C>::Instruction made{handler_of<C>(node.function), {}};
    for (int i = 1; i < node.count; ++i) made.operands[i - 1] = slot_of(args[i]);
    made_.code.push_back(made);
    for (int i = 0; i < node.count; ++i) used(args[i]);
  }

  void cast(const Node& node) {
    if (node.args[0] == held_)
      keep(1);
    else
      load(node.args[0]);
    // In f32 and in 64 bits everything is held already that the compute type holds.
    if (node.element != Element::F32 && (info(node.element).bits < 64 || node.element == Element::Bool))
      emit(&Code<C>::through, {static_cast<int16_t>(node.element)});
    used(node.args[0]);
  }

  void place_slots() {
    const auto imports = static_cast<int16_t>(made_.imports.size());
    made_.temporaries = std::min(temporaries_, kMaxTemporaries);
    for (auto& instruction : made_.code) {
      if (instruction.handler == &Code<C>::store_out || instruction.handler == &Code<C>::through) continue;
      for (int16_t& slot : instruction.operands) {
        if (slot >= kNumber)
          slot = static_cast<int16_t>(slot - kNumber + imports + made_.temporaries);
        else if (slot >= kTemporary)
          slot = static_cast<int16_t>(slot - kTemporary + imports);
      }
    }
  }

  const Program& program_;
  const std::vector<int16_t>& nodes_;
  Compiled<C> made_;
  int16_t slot_[kMaxValues];
  int uses_[kMaxValues] = {};
  bool taken_[kMaxTemporaries] = {};
  int temporaries_ = 0;
  int16_t held_ = -1;
};

}  // namespace baracuda::expr
