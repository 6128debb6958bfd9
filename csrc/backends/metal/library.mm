// Libraries and pipelines: each family's text is compiled when a plan of it is first selected, each kernel when a plan
// is that launches it, or at its own first launch, and a text of its own (compile.mm) when a plan is selected. What the
// GPU's own compiler made is kept on disk, in a binary archive for each kernel.
#include "backends/metal/runtime.h"

#include <dlfcn.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "backends/kept.h"

namespace baracuda::metal {

struct Pipeline {
  Own<id<MTLComputePipelineState>> state;
};

namespace {

constexpr NSUInteger kThreadgroupBytes = 32 << 10, kSimdWidth = 32;

struct Family {
  Own<id<MTLLibrary>> library;
  uint64_t hash = 0;  // of the text
};
// Outlive every other object: work may be given while the process ends.
std::map<std::string, Family>& families() {
  static auto* all = new std::map<std::string, Family>;
  return *all;
}
std::map<std::string, std::unique_ptr<Pipeline>, std::less<>>& pipelines() {
  static auto* all = new std::map<std::string, std::unique_ptr<Pipeline>, std::less<>>;
  return *all;
}

Own<NSString*> string_of(const std::string& text) {
  return Own<NSString*>([[NSString alloc] initWithBytes:text.data() length:text.size() encoding:NSUTF8StringEncoding]);
}

// Nothing is reordered and no NaN or inf assumed away, beyond what the text itself asks for.
Own<MTLCompileOptions*> compile_options() {
  Own<MTLCompileOptions*> options([[MTLCompileOptions alloc] init]);
  [options.get() setFastMathEnabled:NO];
  [options.get() setLanguageVersion:MTLLanguageVersion3_1];
  return options;
}

// Without a library: what Metal says of `called` is in last_error().
Family compiled(Gpu& g, const std::string& text, const std::string& called) {
  NSError* error = nil;
  Family made{Own<id<MTLLibrary>>([g.device.get() newLibraryWithSource:string_of(text).get()
                                                               options:compile_options().get()
                                                                 error:&error]),
              hash_of(text)};
  if (!made.library) failed(("compiling " + called).c_str(), error);
  return made;
}

const Family* family(Gpu& g, const std::string& name) {
  auto known = families().find(name);
  if (known != families().end()) return &known->second;
  const std::string path = own_folder() + "/../metal/" + name + ".metal";
  std::ifstream file(path, std::ios::binary);
  std::stringstream read;
  if (file) read << file.rdbuf();
  if (!file || read.view().empty()) return failed("compiling kernels: %s cannot be read", path.c_str()), nullptr;
  Family made = compiled(g, read.str(), path);
  if (!made.library) return nullptr;
  return &families().emplace(name, std::move(made)).first->second;
}

// Where a kernel's archive is; empty where nothing is kept.
std::string archive_path(const Family& f, const char* kernel) {
  const std::string where = kept_folder();
  if (where.empty()) return "";
  char name[40];
  std::snprintf(name, sizeof name, "-%016llx.metalarchive", (unsigned long long)f.hash);
  return where + "/" + kernel + name;
}

Own<id<MTLBinaryArchive>> archive(Gpu& g, const std::string& path, bool from_disk) {
  Own<MTLBinaryArchiveDescriptor*> wanted([[MTLBinaryArchiveDescriptor alloc] init]);
  if (from_disk) [wanted.get() setUrl:[NSURL fileURLWithPath:string_of(path).get()]];
  return Own<id<MTLBinaryArchive>>([g.device.get() newBinaryArchiveWithDescriptor:wanted.get() error:nullptr]);
}

// A failure to keep what was compiled costs the next process time, and nobody more.
void keep(Gpu& g, MTLComputePipelineDescriptor* made, const std::string& path) {
  NSString* folder = [string_of(path).get() stringByDeletingLastPathComponent];
  [[NSFileManager defaultManager] createDirectoryAtPath:folder
                            withIntermediateDirectories:YES
                                             attributes:nil
                                                  error:nullptr];
  const Own<id<MTLBinaryArchive>> fresh = archive(g, path, false);
  if ([fresh.get() addComputePipelineFunctionsWithDescriptor:made error:nullptr])
    [fresh.get() serializeToURL:[NSURL fileURLWithPath:string_of(path).get()] error:nullptr];
}

// What launchers and bodies rely on.
bool fits(Gpu& g, id<MTLComputePipelineState> state, const Entry& entry) {
  const NSUInteger most = std::min(kThreadgroupBytes, [g.device.get() maxThreadgroupMemoryLength]);
  if ([state threadExecutionWidth] != kSimdWidth)
    return failed("%s: the GPU has SIMD groups of %lu threads, want 32", entry.name,
                  (unsigned long)[state threadExecutionWidth]),
           false;
  if ([state maxTotalThreadsPerThreadgroup] < entry.most_threads)
    return failed("%s: the GPU runs at most %lu threads of it in a group, want %u", entry.name,
                  (unsigned long)[state maxTotalThreadsPerThreadgroup], entry.most_threads),
           false;
  if ([state staticThreadgroupMemoryLength] > most)
    return failed("%s: it needs %lu bytes of threadgroup memory, there are %lu", entry.name,
                  (unsigned long)[state staticThreadgroupMemoryLength], (unsigned long)most),
           false;
  return true;
}

std::unique_ptr<Pipeline> make_pipeline(Gpu& g, const Family& f, const Entry& entry) {
  Own<id<MTLFunction>> function([f.library.get() newFunctionWithName:string_of(entry.name).get()]);
  if (!function) return failed("the Metal text has no kernel %s", entry.name), nullptr;
  Own<MTLComputePipelineDescriptor*> wanted([[MTLComputePipelineDescriptor alloc] init]);
  [wanted.get() setComputeFunction:function.get()];
  [wanted.get() setThreadGroupSizeIsMultipleOfThreadExecutionWidth:YES];
  const std::string path = archive_path(f, entry.name);
  Own<id<MTLBinaryArchive>> kept;
  if (!path.empty()) kept = archive(g, path, true);
  if (kept) [wanted.get() setBinaryArchives:[NSArray arrayWithObject:kept.get()]];
  NSError* error = nil;
  auto made = std::make_unique<Pipeline>();
  made->state = Own<id<MTLComputePipelineState>>([g.device.get() newComputePipelineStateWithDescriptor:wanted.get()
                                                                                               options:0
                                                                                            reflection:nil
                                                                                                 error:&error]);
  if (!made->state) return failed((std::string("making a pipeline of ") + entry.name).c_str(), error), nullptr;
  if (!fits(g, made->state.get(), entry)) return nullptr;
  if (!kept && !path.empty()) keep(g, wanted.get(), path);
  return made;
}

}  // namespace

id<MTLComputePipelineState> state_of(const Pipeline& p) { return p.state.get(); }

const Pipeline* pipeline(Gpu& g, Entry& entry) {
  if (entry.pipeline) return entry.pipeline;
  auto known = pipelines().find(std::string_view(entry.name));
  if (known == pipelines().end()) {
    const std::string_view name = entry.name;
    const Family* f = family(g, std::string(name.substr(0, name.find('_'))));
    std::unique_ptr<Pipeline> made = f ? make_pipeline(g, *f, entry) : nullptr;
    if (!made) return nullptr;
    known = pipelines().emplace(entry.name, std::move(made)).first;
  }
  return entry.pipeline = known->second.get();
}

const Pipeline* pipeline_of_text(Gpu& g, const std::string& text, const Entry& entry) {
  const Family made = compiled(g, text, std::string("the text of ") + entry.name);
  return made.library ? make_pipeline(g, made, entry).release() : nullptr;
}

std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace baracuda::metal
