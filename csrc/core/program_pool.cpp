// Frames between runs, and what becomes of them on devices that capture.
#include <algorithm>
#include <utility>

#include "core/program_frame.h"

namespace baracuda {
namespace {

constexpr size_t kMostIdle = 16;  // frames that are kept for later runs

}  // namespace

void ProgramFrame::touch_users(size_t value) {
  if (!graph_) return;
  const auto& steps = program_.steps_;
  const auto step_of = [&](int32_t at, int32_t ProgramStep::* first) {
    const auto behind = std::upper_bound(steps.begin(), steps.end(), at,
                                         [&](int32_t n, const ProgramStep& step) { return n < step.*first; });
    return static_cast<size_t>(behind - steps.begin()) - 1;
  };
  for (const int32_t at : views_of_[value]) touch(step_of(at, &ProgramStep::first_view));
  for (const int32_t at : numbers_of_[value]) touch(step_of(at, &ProgramStep::first_number));
}

bool ProgramFrame::launch_graph() {
  if (!program_.captured_.load(std::memory_order_relaxed)) return false;
  if (!graph_) graph_ = std::make_unique<ProgramGraph>(program_.backend_, program_.device_, launches_.size());
  return graph_->launch(stream_, [this](size_t k, void* stream) {
    Launch step = launches_[k];
    step.stream = stream;
    return kernels_[k] ? kernels_[k](step) : launch_again(*program_.steps_[k].plan, step);
  });
}

// Of a device, a frame whose last run was in the stream: others' may still be at work.
std::unique_ptr<ProgramFrame> Program::take(void* stream, void* scratch, ProgramFailure& failure) const {
  std::unique_ptr<ProgramFrame> out;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const auto& frame) { return scratch || frame->may_follow(stream); });
    if (found != idle_.rend()) {
      out = std::move(*found);
      idle_.erase(std::next(found).base());
    }
  }
  if (!out) out = std::make_unique<ProgramFrame>(*this);
  if (!out->use_scratch(scratch, failure.refusals)) return nullptr;
  return out;
}

void Program::put_back(std::unique_ptr<ProgramFrame> frame) const {
  std::unique_ptr<ProgramFrame> gone;  // the one that was not used for the longest time; freed without the lock
  account(*frame);
  std::lock_guard lock(mutex_);
  if (idle_.size() >= kMostIdle) {
    gone = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  idle_.push_back(std::move(frame));
}

void Program::account(ProgramFrame& frame) const {
  if (!frame.graph()) return;
  const GraphCounts now = frame.graph()->counts(), known = std::exchange(frame.counted_, now);
  std::lock_guard lock(mutex_);
  graphs_.made += now.made - known.made;
  graphs_.replaced += now.replaced - known.replaced;
  graphs_.launched += now.launched - known.launched;
  if (!frame.graph()->reason().empty()) no_graph_ = frame.graph()->reason();
}

GraphCounts Program::graphs(std::string& reason) const {
  std::lock_guard lock(mutex_);
  reason = no_graph_;
  return graphs_;
}

bool Program::reserve(int frames, ProgramFailure& failure) const {
  std::vector<std::unique_ptr<ProgramFrame>> made;
  size_t known = 0;
  {
    std::lock_guard lock(mutex_);
    known = idle_.size();
  }
  for (auto i = static_cast<int>(known); i < frames; ++i) {
    made.push_back(std::make_unique<ProgramFrame>(*this));
    if (!made.back()->use_scratch(nullptr, failure.refusals)) return false;
  }
  std::lock_guard lock(mutex_);
  for (auto& frame : made) idle_.push_back(std::move(frame));
  return true;
}

void Program::trim() const {
  std::vector<std::unique_ptr<ProgramFrame>> gone;
  std::lock_guard lock(mutex_);
  gone.swap(idle_);
}

}  // namespace baracuda
