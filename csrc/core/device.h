// What a backend with memory of its own gives the engine besides kernels: devices, memory, copies and waiting. The
// cuda and metal modules export one of these; so does the tests' emulator.
#pragma once
#include "core/api.h"
#include "core/backend.h"
#include "core/libraries.h"

namespace baracuda {

struct DeviceInfo {
  char name[64] = {};
  int32_t arch = 0;    // cuda: 80, 90
  int32_t units = 0;   // multiprocessors
  int64_t memory = 0;  // bytes
  int64_t driver = 0, runtime = 0;
};

enum class CopyKind : int32_t { ToDevice, ToHost, OnDevice };

// What a kernel found in the data of an earlier launch.
struct DeviceFault {
  int32_t row = -1, site = 0;  // the kernel's row, and its step of a program (core/sites.h)
  Failure failure;
};

using FindSymbol = void* (*)(Library, const char* symbol);  // library_symbol, for modules that do not link the engine

// Streams, events and captured graphs of a device. A null stream is its default one.
struct DeviceQueues {
  // A blocking stream is ordered with the device's default stream.
  Status (*create_stream)(int32_t device, bool blocking, void** out);
  Status (*destroy_stream)(int32_t device, void* stream);
  Status (*stream_done)(int32_t device, void* stream, bool* done);
  // Later work of the stream waits for what the event was last recorded behind, on whatever device that was.
  Status (*wait)(int32_t device, void* stream, void* event);
  Status (*create_event)(int32_t device, bool timing, void** out);
  Status (*destroy_event)(int32_t device, void* event);
  Status (*record)(int32_t device, void* event, void* stream);
  Status (*event_done)(int32_t device, void* event, bool* done);
  Status (*synchronize_event)(int32_t device, void* event);
  Status (*elapsed)(int32_t device, void* start, void* end, float* milliseconds);
  // Whether somebody captures the stream, us or another library; false for the default stream, which nobody can. Fails
  // for what is no stream, where a backend can tell.
  Status (*capturing)(int32_t device, void* stream, bool* out);
  Status (*begin_capture)(int32_t device, void* stream);
  // Ends it. `graph` null: the work is forgotten; else it is ready to be launched.
  Status (*end_capture)(int32_t device, void* stream, void** graph, int64_t* nodes);
  Status (*launch_graph)(int32_t device, void* graph, void* stream);
  Status (*destroy_graph)(int32_t device, void* graph);
  // Chains: graphs of parts that run one after the other, each of which another one may take the place of. Null where a
  // backend has none.
  // Ends a capture whose work becomes a part; null where nothing was launched.
  Status (*end_part)(int32_t device, void* stream, void** part) = nullptr;
  Status (*destroy_part)(int32_t device, void* part) = nullptr;
  // Ready to be launched; parts are copied, and null ones left out.
  Status (*make_chain)(int32_t device, void* const* parts, int32_t n, void** chain) = nullptr;
  // For launches to come. `fits` false: the part launches other kernels than the one before, and nothing was changed.
  Status (*replace_part)(int32_t device, void* chain, int32_t place, void* part, bool* fits) = nullptr;
  // Behind the chain's launches before, in whatever stream they are.
  Status (*launch_chain)(int32_t device, void* chain, void* stream) = nullptr;
  Status (*destroy_chain)(int32_t device, void* chain) = nullptr;
  // In the place of chains: what a stream is given in between goes to the device as one piece. Null where a backend has
  // none. `pieces`: how many it became, where other streams' work had to come before or after parts of it.
  Status (*begin_run)(int32_t device, void* stream) = nullptr;
  Status (*end_run)(int32_t device, void* stream, int32_t* pieces) = nullptr;
  // The object that others name a stream by, which has been given all of the stream's work. Null where a stream is
  // that.
  Status (*queue_of)(int32_t device, void* stream, void** queue) = nullptr;
};

// Memory that others name by an object in place of an address, as DLPack does Metal's.
struct DeviceObjects {
  // Where the memory of an object begins, and its size: ours to use until it is given up as often as it was adopted.
  Status (*adopt)(int32_t device, void* object, void** address, int64_t* bytes);
  Status (*give_up)(int32_t device, void* address);
  // The object that holds an address, and how far behind its start. Others may use that memory from now on.
  Status (*lend)(int32_t device, const void* address, void** object, int64_t* offset);
  // The device's address of memory of the host, without a copy; to be given up as what was adopted. Launch where that
  // cannot be.
  Status (*share)(int32_t device, void* host, int64_t bytes, void** address);
};

// Functions return Status::Ok, or Status::Launch and last_error() says what went wrong, on this thread; `allocate`
// returns Status::Workspace where the device has not that much memory left.
struct DeviceModule {
  int32_t abi;
  const char* version;  // of baracuda, whose table it was built with
  const char* name;
  const FamilyKernels* const* families;
  int32_t n_families;
  int32_t (*count)();  // 0: last_error() says why
  Status (*describe)(int32_t device, DeviceInfo* out);
  Status (*allocate)(int32_t device, int64_t bytes, void** out);
  Status (*release)(int32_t device, void* memory);
  Status (*copy)(int32_t device, void* to, const void* from, int64_t bytes, CopyKind kind, void* stream);
  // Between two devices, directly where they can reach each other; done when it returns. The stream is the target's.
  Status (*copy_between)(int32_t to_device, void* to, int32_t from_device, const void* from, int64_t bytes,
                         void* stream);
  Status (*fill)(int32_t device, void* to, int32_t byte, int64_t bytes, void* stream);
  // Waits for one stream; null is the whole device.
  Status (*synchronize)(int32_t device, void* stream);
  // Takes the fault that was raised since the last call; row -1 when there is none. Waits as synchronize does.
  Status (*take_fault)(int32_t device, void* stream, DeviceFault* out);
  const char* (*last_error)();
  // Makes what launches on the device need besides their arguments, so that no launch allocates.
  Status (*prepare)(int32_t device);
  const DeviceQueues* queues;
  // Says how libraries are found, before anything else is asked; null where a backend has no use for them.
  void (*attach)(FindSymbol);
  const DeviceObjects* objects = nullptr;  // null where addresses are all that there is
  // While it is on, launches of this thread make ready what they need, and run nothing. Null where nothing is left to.
  void (*rehearse)(bool on) = nullptr;
};
using DeviceModuleEntry = const DeviceModule* (*)();

}  // namespace baracuda
