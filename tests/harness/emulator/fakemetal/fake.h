// A Metal for tests: objects that know whether they are still there, memory that nobody may touch out of turn, and
// kernels that the emulator runs from the translated .metal texts. Work is done when somebody waits for it, so that
// whoever does not wait has nothing.
#pragma once
#import <Metal/Metal.h>

#include <mutex>
#include <string>
#include <vector>

#include "emulator/fakemetal/texts.h"
#include "emulator/heap.h"

namespace baracuda::emulator {

struct FakeMetal {
  std::recursive_mutex mutex;
  Heap heap;
  std::vector<std::string> problems;  // misuse, in the order that it was met
  size_t told = 0;                    // how many of those a command buffer has failed for
  std::vector<std::pair<std::string, int64_t>> calls, failing;
  bool gone = false;  // the device was removed
  double now = 0;     // seconds of the GPU's clock

  static FakeMetal& get();
  // Counts a call; true where a test asked for its failure, or the device is gone.
  bool begin(const char* selector);
  // Keeps and prints what a user of Metal did wrong.
  void complain(const std::string& text);
};

NSError* error_of(const std::string& text, NSInteger code);

}  // namespace baracuda::emulator

#define BCU_FAKE_LOCK                                                   \
  auto& fake [[maybe_unused]] = ::baracuda::emulator::FakeMetal::get(); \
  std::lock_guard lock(fake.mutex)

// An object with a count of its own. One that is gone stays as what ends the process with a report when it is used.
@interface FakeObject : NSObject {
  int32_t count_;
}
// Lets go of what the object has; in place of dealloc.
- (void)finish;
@end

namespace baracuda::emulator {

struct Order;  // the commands of a command buffer

}  // namespace baracuda::emulator

@interface FakeDevice : FakeObject <MTLDevice> {
 @public
  uint64_t registry;
}
@end

@interface FakeBuffer : FakeObject <MTLBuffer> {
 @public
  baracuda::emulator::Allocation* memory;
  FakeDevice* device;
  NSUInteger length;
  int under_way;  // command buffers that name it and are not done
}
@end

@interface FakeEvent : FakeObject <MTLSharedEvent> {
 @public
  uint64_t value;
}
@end

@interface FakeLibrary : FakeObject <MTLLibrary> {
 @public
  uint64_t hash;
}
@end

@interface FakeFunction : FakeObject <MTLFunction> {
 @public
  const baracuda::emulator::Kernel* kernel;
}
@end

@interface FakePipeline : FakeObject <MTLComputePipelineState> {
 @public
  const baracuda::emulator::Kernel* kernel;
  BOOL whole;  // its groups are whole SIMD groups
}
@end

@interface FakeArchive : FakeObject <MTLBinaryArchive> {
 @public
  NSString* kernel;
}
@end

@interface FakeQueue : FakeObject <MTLCommandQueue>
@end

@interface FakeCommands : FakeObject <MTLCommandBuffer> {
 @public
  FakeQueue* queue;
  baracuda::emulator::Order* order;
  FakeObject* encoder;  // the one that has not ended
  MTLCommandBufferStatus state;
  NSError* failure;
  double start, end;
  int polls;
}
// Queues hand them out in the order of their commits.
+ (void)run:(FakeCommands*)wanted;
@end
