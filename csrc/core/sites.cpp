#include "core/sites.h"

#include <map>
#include <mutex>
#include <utility>

namespace baracuda {
namespace {

constexpr int32_t kMostSites = INT32_MAX - 1;

struct Known {
  int32_t steps;
  std::string program;
};

struct Registry {
  std::mutex mutex;
  std::map<int32_t, Known> known;  // by the first number
  int32_t next = 1;
};

// Never destroyed: programs may go after statics do.
Registry& registry() {
  static Registry* const made = new Registry;
  return *made;
}

}  // namespace

Sites::Sites(int32_t steps, std::string program) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  // After two thousand million steps there are no new numbers: faults name the row alone.
  if (steps <= 0 || steps > kMostSites - r.next) return;
  first_ = r.next;
  r.next += steps;
  r.known.emplace(first_, Known{steps, std::move(program)});
}

Sites::~Sites() {
  if (!first_) return;
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.known.erase(first_);
}

Sites& Sites::operator=(Sites&& other) noexcept {
  std::swap(first_, other.first_);
  return *this;
}

std::string site_text(int32_t site) {
  if (site == 0) return {};
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  auto after = r.known.upper_bound(site);
  if (after == r.known.begin()) return "a step of a program that is gone";
  const auto& [first, known] = *--after;
  if (site - first >= known.steps) return "a step of a program that is gone";
  return "step " + std::to_string(site - first) + " of " + known.program;
}

}  // namespace baracuda
