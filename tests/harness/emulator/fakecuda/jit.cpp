#include "emulator/fakecuda/jit.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace baracuda::emulator {
namespace {

struct Folder {
  std::string path;
  int count = 0;
  Folder() {
    char name[] = "/tmp/baracuda_emulator_XXXXXX";
    path = mkdtemp(name) ? name : "";
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty() && owner == getpid()) std::filesystem::remove_all(path, ignored);
  }
  pid_t owner = getpid();  // not a forked child
};

std::string own_path() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&own_path), &info) && info.dli_fname ? info.dli_fname : "";
}

}  // namespace

std::string new_folder() {
  static Folder folder;
  const std::string path = folder.path + "/" + std::to_string(folder.count++);
  std::filesystem::create_directory(path);
  return path;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  return static_cast<bool>(out.write(text.data(), static_cast<std::streamsize>(text.size())));
}

bool read_file(const std::string& path, std::string& text) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  text = all.str();
  return static_cast<bool>(in);
}

bool run_command(const std::string& command, std::string& printed) {
  // Sanitizers' libraries are for this process, not for the compiler.
  FILE* pipe = popen(("unset LD_PRELOAD; (" + command + ") 2>&1").c_str(), "r");
  if (!pipe) return false;
  char part[4096];
  for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) printed.append(part, n);
  return pclose(pipe) == 0;
}

bool compile_library(const std::string& source, const std::string& library, const std::string& more,
                     std::string& printed) {
  const std::string object = library + ".o";
  return run_command(std::string(BCU_EMULATOR_COMPILE) + " " + more + " -c -x c++ " + source + " -o " + object,
                     printed) &&
         run_command(std::string(BCU_EMULATOR_LINK) + " -shared " + object + " " BCU_EMULATOR_HOOKS " " + own_path() +
                         " -o " + library,
                     printed);
}

void* open_library(const void* bytes, size_t size) {
  const int descriptor = memfd_create("kernel", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const bool written = write(descriptor, bytes, size) == static_cast<ssize_t>(size);
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  void* library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (written && !library) std::fprintf(stderr, "%s\n", dlerror());
  // Kept open: another library of the same path would be taken for this one.
  return library;
}

}  // namespace baracuda::emulator
