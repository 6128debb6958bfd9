// A program's steps as one graph of their device: captured once, launched at once. Each step is a part of it, and what
// it is given changes by putting a new part in the old one's place.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/program.h"

namespace baracuda {

class ProgramGraph {
 public:
  // Launches a step in a stream.
  using LaunchStep = std::function<Status(size_t step, void* stream)>;

  ProgramGraph(Backend backend, int32_t device, size_t steps);
  ~ProgramGraph();
  ProgramGraph(const ProgramGraph&) = delete;
  ProgramGraph& operator=(const ProgramGraph&) = delete;

  // What a step is given was changed.
  void touch(size_t step) { stale_[step] = true; }
  void touch_all() { stale_.assign(stale_.size(), true); }

  // Runs all steps. False: nothing was launched, and they have to be one by one: at the first run, which makes kernels
  // ready and is where they fail; while the caller captures the stream; and for good, with the reason, where that is
  // not possible.
  bool launch(void* stream, const LaunchStep& step);

  // Where the device has no graphs, but takes a run's launches as one piece: begins and ends that. False: they are
  // launched one by one.
  bool begin(void* stream);
  void end(void* stream);

  const GraphCounts& counts() const { return counts_; }
  const std::string& reason() const { return reason_; }

 private:
  bool give_up(std::string reason);
  bool failed();
  bool capture(size_t step, const LaunchStep& launch, void** part);
  bool make(const LaunchStep& launch);
  bool refresh(const LaunchStep& launch);

  const DeviceModule* module_ = nullptr;
  int32_t device_;
  std::vector<bool> stale_;
  bool warm_ = false, pieces_ = false;      // pieces: it has no graphs
  void *own_ = nullptr, *chain_ = nullptr;  // the stream that is captured, and the graph
  GraphCounts counts_;
  std::string reason_;
};

}  // namespace baracuda
