#include "backends/cuda/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "backends/kept.h"

namespace baracuda {
namespace {

// A file: this, the key, the value. The checksum is of both.
struct Header {
  char magic[8];
  uint64_t key_bytes, value_bytes, checksum;
};
constexpr char kMagic[8] = {'b', 'c', 'u', 'k', 'e', 'r', 'n', '1'};
constexpr off_t kMostBytes = off_t{64} << 20;

uint64_t hashed(const std::string& text, uint64_t hash) {
  hash = hash_of(text, hash);
  return hash ^ hash >> 32;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

  bool read_all(std::string& out, size_t bytes) const {
    out.resize(bytes);
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = read(descriptor_, out.data() + done, bytes - done);
      if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
      done += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return true;
  }
  bool write_all(const void* from, size_t bytes) const {
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = write(descriptor_, static_cast<const char*>(from) + done, bytes - done);
      if (n < 0 && errno != EINTR) return false;
      done += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return true;
  }

 private:
  int descriptor_;
};

bool make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

}  // namespace

std::string DiskCache::path_of(const std::string& key) const {
  char name[48];
  std::snprintf(name, sizeof name, "/%016llx%016llx.kernel", static_cast<unsigned long long>(hashed(key, kHashStart)),
                static_cast<unsigned long long>(hashed(key, ~kHashStart)));
  return folder_ + name;
}

bool DiskCache::find(const std::string& key, std::string* value) const {
  if (folder_.empty()) return false;
  const File file(open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found{};
  if (!file || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const bool ours = (found.st_uid == geteuid() || found.st_uid == 0) && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  std::string bytes;
  if (!ours || found.st_size < off_t{sizeof(Header)} || found.st_size > kMostBytes) return false;
  if (!file.read_all(bytes, static_cast<size_t>(found.st_size))) return false;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t rest = bytes.size() - sizeof header;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return false;
  if (header.key_bytes != key.size() || header.key_bytes > rest || header.value_bytes != rest - header.key_bytes)
    return false;
  if (bytes.compare(sizeof header, key.size(), key) != 0) return false;
  std::string kept = bytes.substr(sizeof header + key.size());
  if (header.checksum != hashed(kept, hashed(key, kHashStart))) return false;
  *value = std::move(kept);
  return true;
}

void DiskCache::keep(const std::string& key, const std::string& value) const {
  if (folder_.empty() || !make_folders(folder_)) return;
  static std::atomic<int> count = 0;
  const std::string path = path_of(key);
  const std::string beside = path + "." + std::to_string(getpid()) + "." + std::to_string(count++);
  Header header{{}, key.size(), value.size(), hashed(value, hashed(key, kHashStart))};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  bool good;
  {
    const File file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return;
    good = file.write_all(&header, sizeof header) && file.write_all(key.data(), key.size()) &&
           file.write_all(value.data(), value.size());
  }
  // Whole or not at all: another process may be doing the same.
  if (!good || rename(beside.c_str(), path.c_str()) != 0) unlink(beside.c_str());
}

}  // namespace baracuda
