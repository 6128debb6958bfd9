// Where compiled kernels are kept, and the hash that names them.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace baracuda {

inline constexpr uint64_t kHashStart = 0xcbf29ce484222325;

// FNV-1a.
constexpr uint64_t hash_of(std::string_view text, uint64_t hash = kHashStart) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// BARACUDA_CACHE_DIR, else baracuda in the user's cache folder; empty where nothing is to be kept: the variable is set
// to nothing, or there is no such folder.
inline std::string kept_folder() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (std::getenv("BARACUDA_CACHE_DIR")) return variable("BARACUDA_CACHE_DIR");
  const std::string home = variable("HOME");
#if defined(__APPLE__)
  return home.empty() ? "" : home + "/Library/Caches/baracuda";
#else
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty() && cache[0] == '/')
    return cache + "/baracuda";
  return home.empty() ? "" : home + "/.cache/baracuda";
#endif
}

}  // namespace baracuda
