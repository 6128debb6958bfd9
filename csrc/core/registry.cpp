#include "core/registry.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "skus.inc"

namespace baracuda {
namespace {

#define BCU_FAMILY(name) {#name, name::kRows.data(), static_cast<int32_t>(name::kRows.size())},
constexpr Family kFamilies[] = {
#include "families.inc"
};
#undef BCU_FAMILY

struct Place {
  const Family* family;
  int32_t row;
  const Row& get() const { return family->rows[row]; }
};

// Where each row is, and the rows of each op and direction in the order they are tried.
struct Index {
  using Key = std::pair<std::string_view, Direction>;
  std::vector<Place> places;
  std::map<Key, std::vector<int32_t>> rows;

  Index() {
    for (const Family& f : kFamilies)
      for (int32_t i = 0; i < f.n_rows; ++i) add({&f, i});
    for (auto& [key, of] : rows)
      std::stable_sort(of.begin(), of.end(),
                       [&](int32_t a, int32_t b) { return places[a].get().preference > places[b].get().preference; });
  }
  void add(const Place& p) {
    const auto number = static_cast<int32_t>(places.size());
    places.push_back(p);
    for (const std::string_view op : {std::string_view(p.get().op), std::string_view()})
      for (const Direction direction : {p.get().direction, Direction::Any}) rows[{op, direction}].push_back(number);
  }
};
const Index& all() {
  static const Index index;
  return index;
}
const Place& place(int32_t index) { return all().places.at(index); }

}  // namespace

std::span<const Family> families() { return kFamilies; }

int32_t row_count() { return static_cast<int32_t>(all().places.size()); }

const Row& row_at(int32_t index) { return place(index).get(); }

std::span<const int32_t> rows_of(std::string_view op, Direction direction) {
  const auto found = all().rows.find({op, direction});
  return found == all().rows.end() ? std::span<const int32_t>() : found->second;
}

const char* family_of(int32_t index) { return place(index).family->name; }

const BackendState& backend_state(Backend backend) { return loaded_backend(backend).state; }

const DeviceModule* device_module(Backend backend, std::string& reason) {
  const LoadedBackend& found = loaded_backend(backend);
  if (!found.state.present) reason = found.state.reason;
  return found.state.present ? found.module : nullptr;
}

namespace {

using Families = std::span<const FamilyKernels* const>;

bool is_of(const FamilyKernels& f, const Place& p) { return std::strcmp(f.family, p.family->name) == 0; }

// A module's kernel for a row, or null; `stale` is set when the module was built from another table.
Kernel kernel_in(Families families, const Place& p, bool& stale) {
  for (const FamilyKernels* f : families) {
    if (!is_of(*f, p)) continue;
    stale |= f->n_rows != p.family->n_rows;
    if (!stale && f->kernels[p.row]) return f->kernels[p.row];
  }
  return nullptr;
}

}  // namespace

Kernel find_kernel(int32_t row, std::string& reason) {
  const Place& p = place(row);
  const Backend backend = p.get().backend;
  const LoadedBackend& loaded = loaded_backend(backend);
  const BackendState& state = loaded.state;
  if (!state.built || !state.present) {
    reason = state.reason;
    return nullptr;
  }
  bool stale = false;
  Kernel kernel = nullptr;
  for (const Families families : loaded.families)
    if (!kernel && !stale) kernel = kernel_in(families, p, stale);
  if (kernel) return kernel;
  reason = "the " + std::string(name(backend)) + " module for " + state.level;
  reason += stale ? " was built from another table; build it again" : " has no kernel for this row";
  return nullptr;
}

std::span<const Threshold> cpu_thresholds() { return loaded_backend(Backend::Cpu).thresholds; }

Prepare find_prepare(int32_t row) {
  const Place& p = place(row);
  for (const Families families : loaded_backend(p.get().backend).families)
    for (const FamilyKernels* f : families)
      if (is_of(*f, p) && f->n_rows == p.family->n_rows && f->prepare && f->prepare[p.row]) return f->prepare[p.row];
  return nullptr;
}

}  // namespace baracuda
