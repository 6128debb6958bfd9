// The fake's objects but those that hold commands.
#include "emulator/fakemetal/fake.h"

#import <objc/runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "emulator/faults.h"

using namespace baracuda::emulator;

namespace baracuda::emulator {
namespace {

std::map<std::string, int64_t>& live() {
  static auto* all = new std::map<std::string, int64_t>;
  return *all;
}

// "selector:3,another:1": the third and the first call from now on fail.
void read_failing(const char* wanted, std::vector<std::pair<std::string, int64_t>>& out) {
  out.clear();
  std::string_view rest = wanted ? wanted : "";
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const size_t at = one.find(':');
    out.push_back(
        {std::string(one.substr(0, at)), at == one.npos ? 1 : std::atoll(std::string(one.substr(at + 1)).c_str())});
  }
}

bool setting(const char* name, bool otherwise) {
  const char* given = std::getenv(name);
  return given ? std::atoi(given) != 0 : otherwise;
}

}  // namespace

FakeMetal& FakeMetal::get() {
  static FakeMetal* all = [] {
    auto* made = new FakeMetal;
    read_failing(std::getenv("BARACUDA_FAKE_METAL_FAIL"), made->failing);
    return made;
  }();
  return *all;
}

bool FakeMetal::begin(const char* selector) {
  auto counted = std::find_if(calls.begin(), calls.end(), [&](const auto& c) { return c.first == selector; });
  if (counted == calls.end())
    calls.push_back({selector, 1});
  else
    ++counted->second;
  bool fails = gone;
  for (auto& [name, left] : failing) fails |= name == selector && --left == 0;
  return fails;
}

void FakeMetal::complain(const std::string& text) {
  std::fprintf(stderr, "fake Metal: %s\n", text.c_str());
  problems.push_back(text);
}

NSError* error_of(const std::string& text, NSInteger code) {
  NSDictionary* info = [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:text.c_str()]
                                                   forKey:NSLocalizedDescriptionKey];
  return [NSError errorWithDomain:@"MTLFakeErrorDomain" code:code userInfo:info];
}

}  // namespace baracuda::emulator

// What an object is when it is gone: whatever is sent to it ends the process.
@interface FakeGone : NSObject
@end

@implementation FakeGone
static void end_of_process(id object, SEL selector) {
  std::fprintf(stderr, "fake Metal: USE AFTER RELEASE: -%s was sent to an object at %p that is gone\n",
               sel_getName(selector), (void*)object);
  std::abort();
}
- (id)retain {
  return end_of_process(self, _cmd), nil;
}
- (oneway void)release {
  end_of_process(self, _cmd);
}
- (id)autorelease {
  return end_of_process(self, _cmd), nil;
}
- (NSMethodSignature*)methodSignatureForSelector:(SEL)selector {
  return end_of_process(self, selector), nil;
}
@end

@implementation FakeObject
- (id)init {
  self = [super init];
  count_ = 1;
  ++live()[class_getName([self class])];
  return self;
}
- (id)retain {
  BCU_FAKE_LOCK;
  ++count_;
  return self;
}
- (NSUInteger)retainCount {
  return NSUInteger(count_);
}
- (oneway void)release {
  BCU_FAKE_LOCK;
  if (--count_ > 0) return;
  --live()[class_getName([self class])];
  [self finish];
  object_setClass(self, [FakeGone class]);
}
- (void)finish {
}
@end

@implementation FakeBuffer
- (void*)contents {
  return memory->host;
}
- (NSUInteger)length {
  return length;
}
- (id<MTLDevice>)device {
  return device;
}
- (uint64_t)gpuAddress {
  return reinterpret_cast<uint64_t>(memory->data);
}
- (MTLStorageMode)storageMode {
  return memory->host ? MTLStorageModeShared : MTLStorageModePrivate;
}
- (void)finish {
  BCU_FAKE_LOCK;
  if (under_way) fake.complain("RELEASED WHILE IN USE: a buffer whose command buffers are not done");
  fake.heap.release(memory->data);
  [device release];
}
@end

@implementation FakeEvent
- (uint64_t)signaledValue {
  return value;
}
- (void)setSignaledValue:(uint64_t)given {
  value = given;
}
@end

@implementation FakeFunction
- (NSString*)name {
  return [NSString stringWithUTF8String:name_of(*kernel).c_str()];
}
@end

@implementation FakeLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  BCU_FAKE_LOCK;
  if (fake.begin("newFunctionWithName")) return nil;
  for (const MetalText& text : metal_texts()) {
    for (uint32_t i = 0; text.hash == hash && i < text.count; ++i) {
      if (std::strcmp(text.kernels[i].name, [name UTF8String]) != 0) continue;
      FakeFunction* found = [[FakeFunction alloc] init];
      found->kernel = &text.kernels[i];
      return found;
    }
  }
  return nil;
}
@end

@implementation FakePipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return kernel->most_threads;
}
- (NSUInteger)threadExecutionWidth {
  return setting("BARACUDA_FAKE_METAL_WIDE", false) ? 64 : kWarp;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return kernel->shared_bytes + NSUInteger(setting("BARACUDA_FAKE_METAL_HUNGRY", false) ? 32 << 10 : 0);
}
@end

@implementation FakeArchive
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor error:(NSError**)error {
  BCU_FAKE_LOCK;
  if (fake.begin("addComputePipelineFunctionsWithDescriptor")) return NO;
  kernel = [[[descriptor computeFunction] name] copy];
  return YES;
}
- (BOOL)serializeToURL:(NSURL*)url error:(NSError**)error {
  BCU_FAKE_LOCK;
  return !fake.begin("serializeToURL") && [[kernel dataUsingEncoding:NSUTF8StringEncoding] writeToFile:[url path]
                                                                                            atomically:YES];
}
- (void)finish {
  [kernel release];
}
@end

@implementation MTLCompileOptions
@synthesize fastMathEnabled = fastMathEnabled_, languageVersion = languageVersion_;
- (id)init {
  self = [super init];
  fastMathEnabled_ = YES;  // Metal's own choice
  return self;
}
@end

@implementation MTLBinaryArchiveDescriptor
@synthesize url = url_;
- (void)dealloc {
  [url_ release];
  [super dealloc];
}
@end

@implementation MTLComputePipelineDescriptor
@synthesize computeFunction = computeFunction_, binaryArchives = binaryArchives_;
@synthesize threadGroupSizeIsMultipleOfThreadExecutionWidth = threadGroupSizeIsMultipleOfThreadExecutionWidth_;
- (void)dealloc {
  [computeFunction_ release];
  [binaryArchives_ release];
  [super dealloc];
}
@end

namespace {

uint64_t hash_of(NSString* source) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char* c = [source UTF8String]; *c; ++c) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
  return h;
}

}  // namespace

@implementation FakeDevice
- (NSString*)name {
  return @"emulated Metal device";
}
- (uint64_t)registryID {
  return registry;
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  const char* newest = std::getenv("BARACUDA_FAKE_METAL_FAMILY");  // 0: a GPU that is not Apple's
  if (family == MTLGPUFamilyMetal3) return setting("BARACUDA_FAKE_METAL_3", true);
  return family < MTLGPUFamilyApple1 + (newest ? std::atoi(newest) : 9);
}
- (BOOL)hasUnifiedMemory {
  return setting("BARACUDA_FAKE_METAL_UNIFIED", true);
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return kDeviceMemory;
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return 32 << 10;
}
- (id<MTLCommandQueue>)newCommandQueue {
  BCU_FAKE_LOCK;
  return fake.begin("newCommandQueue") ? nil : [[FakeQueue alloc] init];
}
- (id<MTLSharedEvent>)newSharedEvent {
  BCU_FAKE_LOCK;
  return fake.begin("newSharedEvent") ? nil : [[FakeEvent alloc] init];
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)wanted options:(MTLResourceOptions)options {
  BCU_FAKE_LOCK;
  if (wanted == 0) fake.complain("a buffer of no bytes");
  if (fake.begin("newBufferWithLength") || wanted == 0) return nil;
  watch_faults(fake.heap);
  Allocation* made = fake.heap.allocate(0, wanted, options == MTLResourceStorageModeShared);
  if (!made) return nil;
  FakeBuffer* buffer = [[FakeBuffer alloc] init];
  buffer->memory = made, buffer->length = wanted, buffer->device = [self retain];
  return buffer;
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)pointer
                                   length:(NSUInteger)wanted
                                  options:(MTLResourceOptions)options
                              deallocator:(id)deallocator {
  BCU_FAKE_LOCK;
  const bool whole = reinterpret_cast<uintptr_t>(pointer) % kPage == 0 && wanted % kPage == 0 && wanted > 0;
  if (!whole) fake.complain("PAGES: memory of the host that is no whole pages");
  if (options != MTLResourceStorageModeShared) fake.complain("memory of the host that is not shared");
  if (fake.begin("newBufferWithBytesNoCopy") || !whole) return nil;
  watch_faults(fake.heap);
  Allocation* made = fake.heap.borrow(0, static_cast<char*>(pointer), wanted);
  if (!made) return nil;
  FakeBuffer* buffer = [[FakeBuffer alloc] init];
  buffer->memory = made, buffer->length = wanted, buffer->device = [self retain];
  return buffer;
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error {
  BCU_FAKE_LOCK;
  if ([options fastMathEnabled]) fake.complain("fast math is on");
  if ([options languageVersion] < MTLLanguageVersion3_1) fake.complain("the text needs Metal 3.1");
  const uint64_t hash = hash_of(source);
  bool known = false;
  std::string printed = "an internal error";
  for (const MetalText& text : metal_texts()) known |= text.hash == hash;
  if (fake.begin("newLibraryWithSource") || (!known && !compile_text([source UTF8String], hash, printed))) {
    if (error) *error = error_of("program_source:1:1: error: " + printed, 3);
    return nil;
  }
  FakeLibrary* library = [[FakeLibrary alloc] init];
  library->hash = hash;
  return library;
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(void*)reflection
                                                               error:(NSError**)error {
  BCU_FAKE_LOCK;
  if (fake.begin("newComputePipelineStateWithDescriptor")) {
    if (error) *error = error_of("Compiler encountered an internal error", 2);
    return nil;
  }
  NSString* name = [[descriptor computeFunction] name];
  for (FakeArchive* archive in [descriptor binaryArchives])
    if ([archive->kernel isEqualToString:name]) fake.begin("found in an archive");
  FakePipeline* pipeline = [[FakePipeline alloc] init];
  pipeline->kernel = static_cast<FakeFunction*>([descriptor computeFunction])->kernel;
  pipeline->whole = [descriptor threadGroupSizeIsMultipleOfThreadExecutionWidth];
  return pipeline;
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor error:(NSError**)error {
  BCU_FAKE_LOCK;
  NSString* read = nil;
  if ([descriptor url]) {
    NSData* data = [NSData dataWithContentsOfFile:[[descriptor url] path]];
    read = data ? [[NSString alloc] initWithData:data encoding:NSUTF8StringEncoding] : nil;
    if (!read) {
      if (error) *error = error_of("no such archive", 1);
      return nil;
    }
  }
  if (fake.begin("newBinaryArchiveWithDescriptor")) return [read release], nil;
  FakeArchive* archive = [[FakeArchive alloc] init];
  archive->kernel = read;
  return archive;
}
@end

extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  BCU_FAKE_LOCK;
  if (fake.begin("MTLCreateSystemDefaultDevice") || !setting("BARACUDA_FAKE_METAL_DEVICES", true)) return nil;
  return [[FakeDevice alloc] init];
}

// Controls for tests, by ctypes.
extern "C" {

#define BCU_CONTROL __attribute__((visibility("default")))

BCU_CONTROL void bcu_fake_metal_fail(const char* wanted) {
  BCU_FAKE_LOCK;
  read_failing(wanted, fake.failing);
}

BCU_CONTROL int64_t bcu_fake_metal_calls(const char* selector) {
  BCU_FAKE_LOCK;
  for (const auto& [name, n] : fake.calls)
    if (name == selector) return n;
  return 0;
}

// How many objects of a class there are.
BCU_CONTROL int64_t bcu_fake_metal_live(const char* of_class) {
  BCU_FAKE_LOCK;
  return live()[of_class];
}

// What went wrong since the last call, a line each; the text stays until the next one.
BCU_CONTROL const char* bcu_fake_metal_problems(void) {
  BCU_FAKE_LOCK;
  static std::string text;
  text.clear();
  for (const std::string& p : fake.problems) text += p + "\n";
  fake.problems.clear();
  fake.told = 0;
  return text.c_str();
}

// Another library's buffer, shared or private; of another device where `registry` is not 0. To be released by its
// owner.
BCU_CONTROL void* bcu_fake_metal_buffer(int64_t bytes, int32_t shared, uint64_t registry) {
  FakeDevice* device = [[FakeDevice alloc] init];
  device->registry = registry;
  id<MTLBuffer> made =
      [device newBufferWithLength:NSUInteger(bytes)
                          options:shared ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate];
  [device release];
  return made;
}

BCU_CONTROL void bcu_fake_metal_release(void* buffer) { [static_cast<FakeBuffer*>(buffer) release]; }

// Where the host sees a buffer that it shares.
BCU_CONTROL void* bcu_fake_metal_contents(void* buffer) { return [static_cast<FakeBuffer*>(buffer) contents]; }

// A host's own work in a queue: copies the beginning of a buffer to another one's.
BCU_CONTROL void bcu_fake_metal_copy(void* queue, void* from, void* to, int64_t bytes) {
  @autoreleasepool {
    id<MTLCommandBuffer> buffer = [static_cast<FakeQueue*>(queue) commandBuffer];
    id<MTLBlitCommandEncoder> blit = [buffer blitCommandEncoder];
    [blit copyFromBuffer:static_cast<FakeBuffer*>(from)
             sourceOffset:0
                 toBuffer:static_cast<FakeBuffer*>(to)
        destinationOffset:0
                     size:NSUInteger(bytes)];
    [blit endEncoding];
    [buffer commit];
  }
}

// The device is removed, or there again.
BCU_CONTROL void bcu_fake_metal_remove(int32_t gone) {
  BCU_FAKE_LOCK;
  fake.gone = gone != 0;
}

// Gives the device more memory than there is; 0 is what it has without it.
BCU_CONTROL void bcu_emulator_memory(int64_t bytes) {
  BCU_FAKE_LOCK;
  fake.heap.set_limit(bytes ? size_t(bytes) : kDeviceMemory);
}
}
