// What one run of a program needs besides the program: resolved views and launches, and scratch.
#pragma once
#include <memory>
#include <vector>

#include "core/program.h"
#include "core/program_graph.h"

namespace baracuda {

std::string shape_text(const std::vector<SizeExpr>& shape, const std::vector<Symbol>& symbols);

// Memory on the program's device, aligned to 64 bytes.
class ScratchMemory {
 public:
  ScratchMemory() = default;
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory();
  // False with the reason.
  bool allocate(Backend backend, int32_t device, int64_t bytes, Refusals& out);
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  Backend backend_ = Backend::Cpu;
  int32_t device_ = 0;
};

struct ProgramFrame {
  explicit ProgramFrame(const Program& program);

  // Takes the caller's scratch, or memory of its own; false with the reason.
  bool use_scratch(void* given, Refusals& out);
  // Makes everything ready for these arguments, which were checked.
  bool prepare(const TensorView* arguments, const Scalar* scalars, void* stream, const int64_t* symbols,
               ProgramFailure& failure);
  bool launch(ProgramFailure& failure);
  // Whether a run in a stream may have this frame: what was launched before, and may still run, uses its scratch.
  bool may_follow(void* stream) const { return !used_ || program_.backend_ == Backend::Cpu || stream == stream_; }
  const ProgramGraph* graph() const { return graph_.get(); }

 private:
  friend class Program;
  struct Reach {  // the first and the last element, counted from the value's address
    int64_t low = 0, high = -1;
  };
  struct Use {  // a view or number that lies in a value
    int32_t value;
    int64_t bytes;  // from the value's address
  };
  static bool spread(const std::vector<SizeExpr>& shape, const std::vector<SizeExpr>& strides, const int64_t* symbols,
                     TensorView& view, int64_t& numel, Reach& reach);
  // The sizes of values at these symbols; false with the reason.
  bool size_values(const int64_t* symbols, Refusals& out);
  bool resolve_step(int32_t k, const int64_t* symbols, Refusals& out);
  bool resolve_view(const ProgramView& from, const int64_t* symbols, TensorView& view, Use& use, std::string& why);
  void point(const TensorView* arguments, bool all);
  bool number(const ProgramStep& step, size_t i, const Scalar* scalars, const int64_t* symbols, Refusals& out);
  bool numbers(const Scalar* scalars, const int64_t* symbols, bool resolved, ProgramFailure& failure);
  bool check(int32_t k, Refusals& out);
  bool launch_graph();
  bool launch_steps(ProgramFailure& failure, bool one_fails);
  bool numbers_hold(ProgramFailure& failure) const;
  bool written_numbers_hold(size_t step, ProgramFailure& failure) const;
  // Notes that a step is given something else than before.
  void touch(size_t step) {
    if (graph_) graph_->touch(step);
  }
  void touch_users(size_t value);
  bool within_limits(const ProgramStep& step, const int64_t* symbols, Refusals& out) const;
  // A frame that is half of one size and half of another is made anew.
  bool forget(int32_t step, ProgramFailure& failure);

  const Program& program_;
  ScratchMemory own_;
  char* scratch_ = nullptr;
  std::vector<TensorView> views_;
  std::vector<Use> uses_, number_uses_;  // beside views_ and numbers_
  std::vector<Scalar> numbers_;
  std::vector<uint64_t> starts_;  // of draws, from the caller's offset
  std::vector<Launch> launches_;
  std::vector<Kernel> kernels_;                         // beside them; null where the plan sets the number of threads
  std::vector<char*> addresses_;                        // by value
  std::vector<TensorView> whole_;                       // by value: its own shape
  std::vector<Reach> reach_;                            // likewise
  std::vector<std::pair<int32_t, int32_t>> following_;  // step and number: those that the caller's scalars give
  std::vector<std::vector<int32_t>> views_of_, numbers_of_;  // by value
  int64_t symbols_[kMaxProgramSymbols] = {};
  Failure failure_;
  bool resolved_ = false;
  bool used_ = false;  // something was launched, in this stream
  void* stream_ = nullptr;
  std::unique_ptr<ProgramGraph> graph_;  // of programs that are captured
  GraphCounts counted_;                  // what the program knows of it
};

}  // namespace baracuda
