// What streams hold: operations that nobody has waited for, in the order that streams and events give them, and the
// graphs that are captured instead.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/fakecuda/cuda_runtime_api.h"

namespace baracuda::emulator {

struct Problem {
  cudaError_t error = cudaSuccess;
  std::string text;  // what a person needs to know
};
using Work = std::function<Problem()>;

struct Node {
  int device;
  Work work;
  std::vector<size_t> after;                       // nodes that come first
  std::shared_ptr<const std::vector<Node>> child;  // a graph in the place of work
};
using Nodes = std::vector<Node>;

// A capture from its beginning to its end.
struct Capture {
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  Nodes nodes;
  std::map<cudaStream_t, std::vector<size_t>> tips;  // by stream: what the next node comes after
  std::string broken;                                // why it was invalidated
};

// What an event was last recorded behind.
struct Mark {
  uint64_t operation = 0;          // 0: nothing; done when it is no longer in the queue
  std::weak_ptr<Capture> capture;  // or, of a capture,
  std::vector<size_t> nodes;       // these nodes
  bool captured = false;
};

}  // namespace baracuda::emulator

struct CUstream_st {
  int device;
  bool blocking;  // keeps its order with the default stream
  std::shared_ptr<baracuda::emulator::Capture> capture;
};
struct CUevent_st {
  int device;
  bool timing;
  baracuda::emulator::Mark mark;
  std::shared_ptr<double> time;  // when the last record was reached; negative before
};
struct CUgraphNode_st {
  cudaGraph_t graph;
  size_t index;
};
struct CUgraph_st {
  std::shared_ptr<const baracuda::emulator::Nodes> nodes;
  std::vector<std::unique_ptr<CUgraphNode_st>> handles;  // of nodes that were added one by one
};
struct CUgraphExec_st {
  int device;
  std::shared_ptr<const baracuda::emulator::Nodes> nodes;  // launches that wait keep those of their time
  cudaGraph_t from;
  uint64_t last;  // its last launch, which the next one comes behind
};

namespace baracuda::emulator {

class Queue {
 public:
  // Puts work behind what its stream (null: the device's default one) has to do first, and behind `after`; into the
  // graph, where the stream is being captured. 0 with `problem` filled where that is not allowed.
  uint64_t add(int device, cudaStream_t stream, Work work, Problem& problem, std::vector<uint64_t> after = {});
  // Runs what has to be done until the operations are: a stream's, one, a device's.
  Problem drain(int device, cudaStream_t stream);
  Problem drain_until(uint64_t operation);
  Problem drain_device(int device);
  // Runs one operation on the way to this one: devices work on while somebody asks.
  Problem step_towards(uint64_t operation);
  bool holds(uint64_t operation) const { return waiting_.contains(operation); }
  uint64_t last_of(int device, cudaStream_t stream) const;
  void drop_device(int device);
  size_t size() const { return waiting_.size(); }
  double now() const { return now_; }

  cudaStream_t create_stream(int device, bool blocking);
  bool destroy_stream(cudaStream_t stream);
  bool is_stream(cudaStream_t stream) const;
  size_t live_streams() const { return streams_.size(); }

  Problem record(cudaEvent_t event, cudaStream_t stream);
  Problem wait(int device, cudaStream_t stream, cudaEvent_t event);

  Problem begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
  // The nodes, or null with the problem; the capture is over either way, unless it is not this stream's to end.
  std::shared_ptr<const Nodes> end_capture(cudaStream_t stream, Problem& problem);
  bool capturing(cudaStream_t stream) const { return stream && stream->capture; }
  // A call that would be wrong in the middle of a capture: breaks the captures that it meets.
  Problem refuse_unsafe(const std::string& api, cudaStreamCaptureMode mode_of_thread);
  Problem refuse_whole_device(const std::string& api, int device);
  Problem refuse_stream(const std::string& api, int device, cudaStream_t stream);
  static Problem run_graph(const Nodes& nodes);

 private:
  struct Operation {
    int device;
    cudaStream_t stream;  // null: the device's default one
    Work work;
    std::vector<uint64_t> after;
  };
  Problem run(uint64_t operation);
  std::vector<uint64_t> needed_for(std::vector<uint64_t> wanted) const;  // with what they wait for, in order
  Problem run_all(const std::vector<uint64_t>& operations);
  std::shared_ptr<Capture> blocked_by(int device, cudaStream_t stream) const;
  Problem break_capture(Capture& capture, cudaError_t error, std::string why);
  Problem capture_node(int device, cudaStream_t stream, Work work);

  std::map<uint64_t, Operation> waiting_;
  uint64_t last_ = 0;
  std::vector<cudaStream_t> streams_;
  double now_ = 0;  // a clock that only work moves
};

}  // namespace baracuda::emulator
