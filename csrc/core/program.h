// A program: steps of plans over slots of memory, checked once and replayed. Sizes are expressions of symbols, so one
// program serves a length that changes. Immutable; what changes from run to run is in frames, of which a pool is kept.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/sites.h"
#include "core/size.h"

namespace baracuda {

// Where a value's memory is: the caller's, held from the start, or planned.
enum class Storage : uint8_t { Argument, Constant, Scratch };
inline constexpr const char* kStorageNames[] = {"argument", "constant", "scratch"};

struct ProgramValue {
  std::string name;
  Storage storage = Storage::Argument;
  Role role = Role::In;  // of arguments
  Element element = Element::F32;
  std::vector<SizeExpr> shape;
  std::vector<SizeExpr> strides;  // in elements, of arguments that are not contiguous
  int64_t most_bytes = 0;
  int64_t offset = 0;  // of scratch, in the frame's memory
  // Places of steps: of the first that writes it, and the last that sees it; -1 where none does.
  int32_t first_write = -1, last_use = -1;
};

// What a step's plan sees of a value.
struct ProgramView {
  int32_t value = 0;
  int32_t slot = 0;                      // of the plan
  bool fixed = true;                     // no size, stride or offset depends on a symbol
  bool whole = false;                    // all of the value, as it is
  Element element = Element::F32;        // the value's, or the part of a complex one
  SizeExpr offset;                       // in elements
  std::vector<SizeExpr> shape, strides;  // in elements
};

// A number of a step: written in the program, the caller's, one that follows sizes, a value's memory, or where a step's
// random numbers start.
struct ProgramNumber {
  enum class From : uint8_t { Literal, Scalar, Size, View, Draw } from = From::Literal;
  Scalar literal;
  int32_t scalar = 0;  // of the program's
  int32_t number = 0;  // of the plan's scalars
  SizeExpr size;       // the number, or, with a scalar, what is added to it
  int32_t draw = 0;    // of the program's
  ProgramView view;
};

struct ProgramStep {
  const PlanCore* plan = nullptr;
  std::vector<ProgramView> views;            // of the plan's tensors that are present, in order
  std::vector<ProgramNumber> numbers;        // of its scalars that are present, in order
  int32_t first_view = 0, first_number = 0;  // in a frame's lists, which have a place for absent ones, too
  int64_t workspace = 0;                     // offset in the frame's memory, where the plan needs one
  bool fixed = true;
  bool looks = false;  // at numbers that are written while the program runs
  // Once it was checked at some sizes, all that can be wrong at others is a size of the plan that is too large: shapes
  // go together whatever the symbols are, and what is written is a value that the step sees once.
  bool proven = false;
  std::vector<std::pair<SizeExpr, int64_t>> limits;  // those sizes, and the most that they may be
};

// Random numbers of a program: what its draws take, one after the other, from the state that two of its scalars are.
struct ProgramRandom {
  int32_t seed = -1, offset = -1;  // scalars; -1: nothing is drawn
  std::vector<SizeExpr> draws;     // in blocks of the generator
};

// What sizes a program is right for: those at which an expression is not below 0.
struct ProgramCondition {
  SizeExpr size;
  std::string want;  // the same in words, for messages
};

struct ProgramFrame;  // core/program_run.cpp

// Where a run failed: a step with the reasons, or, with step -1, the arguments.
struct ProgramFailure {
  int32_t step = -1;
  Refusals refusals;
  int32_t value = -1;  // in which the step's kernel found something wrong, or -1
};

// What became of a program's runs on a device that captures them.
struct GraphCounts {
  int64_t made = 0;      // graphs
  int64_t replaced = 0;  // steps of them that were given something else
  int64_t launched = 0;
};

class Program {
 public:
  // Reads a document whose steps name plans by their place in `plans`; the constants are views of memory that outlives
  // the program. Throws DocumentError.
  BCU_API Program(const Reader& document, std::vector<const PlanCore*> plans, std::vector<TensorView> constants);
  BCU_API ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::vector<ProgramValue>& values() const { return values_; }
  const std::vector<int32_t>& arguments() const { return arguments_; }  // numbers of values, in the caller's order
  const std::vector<ScalarParam>& scalars() const { return scalars_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const std::vector<ProgramStep>& steps() const { return steps_; }
  const ProgramRandom& random() const { return random_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  int64_t unplanned_bytes() const { return unplanned_bytes_; }  // the scratch, one buffer per value

  const Json& source() const { return source_; }  // what was read, without plans
  // How it is written, with the documents of its plans.
  BCU_API Json document(Json plans) const;

  // The symbols' values, from the arguments that are present; false with the reasons.
  BCU_API bool solve(const TensorView* arguments, int64_t* symbols, Refusals& out) const;
  BCU_API bool shape_of(int32_t value, const int64_t* symbols, std::vector<int64_t>& out) const;
  // How far one run moves the random offset, and, where it is asked for, where each draw starts from it.
  BCU_API bool blocks(const int64_t* symbols, uint64_t& out, uint64_t* starts = nullptr) const;

  // Runs all steps. Arguments in order, all present; numbers in the order of scalars(). False with the failure: before
  // the first launch nothing has changed, later the outputs are unspecified. `scratch`: scratch_bytes() of the
  // caller's, aligned to 64; null where the program shall keep its own.
  BCU_API bool run(const TensorView* arguments, const Scalar* scalars, void* stream, ProgramFailure& failure,
                   void* scratch = nullptr) const;
  // Makes frames until there are so many; false where memory is lacking.
  BCU_API bool reserve(int frames, ProgramFailure& failure) const;
  // Lets go of frames that no run uses.
  BCU_API void trim() const;

  // Has later runs launch their steps as one graph, where the device has such, or not any more.
  void capture(bool on) const { captured_ = on; }
  // How often; and why the last run that could not did not.
  BCU_API GraphCounts graphs(std::string& reason) const;

  // A frame of one caller's own, with arguments that are checked once.
  using Bound = std::unique_ptr<ProgramFrame, void (*)(ProgramFrame*)>;
  BCU_API Bound bind(const TensorView* arguments, const Scalar* scalars, void* stream, ProgramFailure& failure) const;
  BCU_API bool replay(ProgramFrame& frame, ProgramFailure& failure) const;

 private:
  friend struct ProgramFrame;
  void read_values(const Reader& document, const std::vector<TensorView>& constants);
  void read_random(const Reader& random);
  bool met(const int64_t* symbols, Refusals& out) const;
  void read_steps(const Reader& steps, const std::vector<const PlanCore*>& plans);
  void plan_scratch();
  std::string call_text() const;
  std::unique_ptr<ProgramFrame> take(void* stream, void* scratch, ProgramFailure& failure) const;
  void put_back(std::unique_ptr<ProgramFrame> frame) const;
  void account(ProgramFrame& frame) const;
  bool check(const TensorView* arguments, const Scalar* scalars, int64_t* symbols, Refusals& out) const;

  Json source_;
  std::vector<Symbol> symbols_;
  std::vector<ProgramValue> values_;
  std::vector<int32_t> arguments_;
  std::vector<TensorView> constants_;  // by value; of the others, nothing
  std::vector<ScalarParam> scalars_;
  std::vector<int32_t> scalar_uses_;  // the last step that each is for, or -1
  ProgramRandom random_;
  std::vector<ProgramCondition> conditions_;
  std::vector<ProgramStep> steps_;
  Sites sites_;  // of steps on devices
  Backend backend_ = Backend::Cpu;
  int32_t device_ = 0;
  int64_t scratch_bytes_ = 0, unplanned_bytes_ = 0;
  int32_t n_views_ = 0, n_numbers_ = 0;
  mutable std::atomic<bool> captured_{false};
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ProgramFrame>> idle_;
  mutable GraphCounts graphs_;
  mutable std::string no_graph_;
};

}  // namespace baracuda
