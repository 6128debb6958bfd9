#include "core/inject.h"

namespace baracuda {

std::atomic<int64_t>& calls_left(Injected kind) {
  static constinit std::atomic<int64_t> left[static_cast<int>(Injected::Count)] = {{-1}, {-1}};
  return left[static_cast<int>(kind)];
}

}  // namespace baracuda
