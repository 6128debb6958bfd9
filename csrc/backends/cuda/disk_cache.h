// Compiled kernels kept on disk, by what they were compiled from. Nothing of it is needed: where the folder cannot be
// read or written, everything is compiled again. Processes may use one folder at the same time.
#pragma once
#include <string>

namespace baracuda {

class DiskCache {
 public:
  // `folder` ends without a slash; empty: nothing is kept.
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}

  // True with what was kept for this very key. A file that is damaged, of another format, of another user or writable
  // for others is as good as none.
  bool find(const std::string& key, std::string* value) const;
  void keep(const std::string& key, const std::string& value) const;
  std::string path_of(const std::string& key) const;

 private:
  std::string folder_;
};

}  // namespace baracuda
