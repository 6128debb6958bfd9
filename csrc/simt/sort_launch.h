// Launches the sort of entries and folds of what was sorted.
#pragma once
#include <utility>

#include "simt/launch.h"
#include "simt/sort.h"
#include "simt/sort_workspace.h"
#include "simt/sorted_fold.h"

namespace baracuda::simt {

static_assert(sizeof(Entry) == kEntryBytes && SortTile::kTile == kSortTile && SortTile::kDigits == kSortDigits);

// Sorts `count` entries by their ids, which are from 0 to `ids`, in a workspace of sort_workspace(count) bytes that
// begins with them; sets where the result is.
inline Status sort_entries(const Launch& launch, Entry* entries, int64_t count, int64_t ids, const Entry** sorted) {
  SortParams p{};
  p.count = count, p.tiles = (count + SortTile::kTile - 1) / SortTile::kTile;
  p.counts = reinterpret_cast<uint32_t*>(entries + 2 * count);
  Entry *from = entries, *to = entries + count;
  for (p.shift = 0; p.shift < 63 && (ids >> p.shift) > 0 && count > 0; p.shift += SortTile::kBits) {
    p.from = from, p.to = to;
    Status s = submit<CountDigits>(launch, {p.tiles}, CountDigits::kThreads, p);
    if (s == Status::Ok) s = submit<SumCounts>(launch, {1}, SumCounts::kThreads, p);
    if (s == Status::Ok) s = submit<MoveEntries>(launch, {p.tiles}, MoveEntries::kThreads, p);
    if (s != Status::Ok) return s;
    std::swap(from, to);
  }
  *sorted = from;
  return Status::Ok;
}

// `runs`: runs_workspace(count, columns, sizeof(State)) bytes.
inline SortedParams sorted_params(const Entry* entries, int64_t count, int64_t ids, int64_t columns, void* runs) {
  SortedParams s{};
  s.entries = entries, s.runs = runs;
  s.count = count, s.ids = ids, s.columns = columns;
  s.narrow = count * columns < (int64_t{1} << 31);
  if (s.narrow && columns > 0) s.by_columns = divider(columns);
  return s;
}

template <class Job>
Status fold_sorted(const Launch& launch, typename Job::Params p) {
  using Fold = FoldSorted<Job>;
  static_assert(Fold::kRun == kFoldRun);
  const int64_t count = p.sorted.count, columns = p.sorted.columns, slots = (count + kFoldRun - 1) / kFoldRun;
  if (slots > 1) {
    p.sorted.later = true;
    const Status s = submit<Fold>(launch, {blocks_for(slots * columns, Fold::kThreads)}, Fold::kThreads, p);
    if (s != Status::Ok) return s;
  }
  p.sorted.later = false;
  return submit<Fold>(launch, {blocks_for(count * columns, Fold::kThreads)}, Fold::kThreads, p);
}

}  // namespace baracuda::simt
