#include "core/program_graph.h"

#include <algorithm>
#include <utility>

#include "core/devices.h"

namespace baracuda {
namespace {

constexpr int64_t kMostMade = 16;  // a graph that is made again and again costs more than it saves

// Parts that were captured, until a chain has copied them.
class Parts {
 public:
  Parts(const DeviceModule& module, int32_t device) : module_(module), device_(device) {}
  ~Parts() {
    for (void* part : all)
      if (part) module_.queues->destroy_part(device_, part);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  std::vector<void*> all;

 private:
  const DeviceModule& module_;
  int32_t device_;
};

}  // namespace

ProgramGraph::ProgramGraph(Backend backend, int32_t device, size_t steps) : device_(device), stale_(steps, true) {
  std::string why;
  module_ = device_module(backend, why);
  if (!module_)
    give_up(why);
  else if (module_->queues && module_->queues->begin_run)
    pieces_ = true;
  else if (!module_->queues || !module_->queues->make_chain)
    give_up(device_name(backend, device) + " has no graphs");
}

ProgramGraph::~ProgramGraph() {
  if (chain_) module_->queues->destroy_chain(device_, chain_);
  if (own_) module_->queues->destroy_stream(device_, own_);
}

bool ProgramGraph::give_up(std::string reason) {
  reason_ = std::move(reason);
  return false;
}

bool ProgramGraph::failed() { return give_up(module_->last_error()); }

bool ProgramGraph::capture(size_t step, const LaunchStep& launch, void** part) {
  const DeviceQueues& queues = *module_->queues;
  if (!own_ && queues.create_stream(device_, false, &own_) != Status::Ok) return own_ = nullptr, failed();
  if (queues.begin_capture(device_, own_) != Status::Ok) return failed();
  const Status launched = launch(step, own_);
  const std::string why = launched == Status::Ok ? "" : module_->last_error();
  const Status ended = queues.end_part(device_, own_, part);
  if (launched == Status::Ok && ended == Status::Ok) return true;
  if (ended == Status::Ok && *part) queues.destroy_part(device_, *part);
  *part = nullptr;
  return give_up("step " + std::to_string(step) + ": " + (why.empty() ? module_->last_error() : why));
}

bool ProgramGraph::make(const LaunchStep& launch) {
  if (counts_.made == kMostMade) return give_up("the kernels that its steps launch change from run to run");
  if (chain_) module_->queues->destroy_chain(device_, std::exchange(chain_, nullptr));
  Parts parts(*module_, device_);
  parts.all.assign(stale_.size(), nullptr);
  for (size_t k = 0; k < stale_.size(); ++k)
    if (!capture(k, launch, &parts.all[k])) return false;
  if (module_->queues->make_chain(device_, parts.all.data(), static_cast<int32_t>(stale_.size()), &chain_) !=
      Status::Ok)
    return chain_ = nullptr, failed();
  stale_.assign(stale_.size(), false);
  ++counts_.made;
  return true;
}

bool ProgramGraph::refresh(const LaunchStep& launch) {
  if (!chain_) return make(launch);
  for (size_t k = 0; k < stale_.size(); ++k) {
    if (!stale_[k]) continue;
    Parts part(*module_, device_);
    part.all.assign(1, nullptr);
    bool fits = false;
    if (!capture(k, launch, &part.all[0])) return false;
    if (module_->queues->replace_part(device_, chain_, static_cast<int32_t>(k), part.all[0], &fits) != Status::Ok)
      return failed();
    if (!fits) return make(launch);
    stale_[k] = false;
    ++counts_.replaced;
  }
  return true;
}

bool ProgramGraph::launch(void* stream, const LaunchStep& step) {
  if (pieces_ || !reason_.empty()) return false;
  if (!std::exchange(warm_, true)) return false;
  bool captured = false;
  if (module_->queues->capturing(device_, stream, &captured) != Status::Ok) return failed();
  if (captured || !refresh(step)) return false;
  if (module_->queues->launch_chain(device_, chain_, stream) != Status::Ok) return failed();
  ++counts_.launched;
  return true;
}

bool ProgramGraph::begin(void* stream) {
  if (!pieces_) return false;
  if (module_->queues->begin_run(device_, stream) != Status::Ok) return failed();
  if (counts_.made == 0) counts_.made = 1;
  return true;
}

void ProgramGraph::end(void* stream) {
  int32_t pieces = 0;
  if (module_->queues->end_run(device_, stream, &pieces) != Status::Ok) {
    failed();
  } else if (pieces > 1) {
    give_up("the last run was " + std::to_string(pieces) +
            " pieces: streams that its own waits for had work in between");
  } else {
    reason_.clear();
    ++counts_.launched;
  }
}

}  // namespace baracuda
