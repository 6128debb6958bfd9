#include "backends/cpu/loader.h"

#include <cstdlib>
#include <iterator>
#include <string>

#include "backends/cpu/probe.h"
#include "backends/modules.h"

namespace baracuda {
namespace {

// Where the level is in the list; -1 for a processor below all of them.
int start_of(const std::string& level) {
  for (int i = static_cast<int>(std::size(kModuleLevels)) - 1; i >= 0; --i)
    if (level == kModuleLevels[i].name) return i;
  return -1;
}

// The module of one level, or null; what went wrong with a file that is there is added to `tried`.
const CpuModule* open_level(const std::string& directory, const char* level, std::string& tried) {
  std::string path = directory + "/libbaracuda_cpu_" + level + ".so";
  auto entry = reinterpret_cast<CpuModuleEntry>(open_module(path, "baracuda_cpu_module", tried));
  if (!entry || entry()->abi == kModuleAbi) return entry ? entry() : nullptr;
  tried += path + ": it was built for another version; ";
  return nullptr;
}

}  // namespace

LoadedBackend open_cpu_backend() {
  LoadedBackend out;
  std::string error;
  CpuLevel level = best_cpu_level(error);
  if (!error.empty()) {
    out.state.built = true;
    out.state.reason = error;
    return out;
  }
  // A wheel may have been built for fewer levels: take the best one that is there, unless one was named; go on below it
  // only for families that it leaves out.
  const char* forced = std::getenv("BARACUDA_CPU_LEVEL");
  bool named = forced && *forced;
  std::string directory = own_directory(), tried;
  for (int i = start_of(cpu_level_name(level)); i >= 0; --i) {
    const CpuModule* module = open_level(directory, kModuleLevels[i].name, tried);
    if (!module && named && out.families.empty()) {
      out.state.built = true;
      out.state.reason =
          std::string("BARACUDA_CPU_LEVEL names ") + kModuleLevels[i].name + ", for which this wheel has no module";
      if (!tried.empty()) out.state.reason += " that opens: " + tried;
      return out;
    }
    if (!module) continue;
    if (out.families.empty()) out.thresholds = {module->thresholds, static_cast<size_t>(module->n_thresholds)};
    if (out.families.empty()) out.state = {true, true, kModuleLevels[i].arch, kModuleLevels[i].name, ""};
    out.families.emplace_back(module->families, static_cast<size_t>(module->n_families));
    if (module->complete) return out;
  }
  out.families.clear();
  out.state = {};
  out.state.reason = tried.empty() ? "no CPU module lies in " + directory : tried;
  return out;
}

}  // namespace baracuda
