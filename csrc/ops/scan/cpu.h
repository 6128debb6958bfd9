// How scans walk their tensors on the CPU.
#pragma once
#include <array>

#include "core/parallel.h"
#include "host/rows.h"
#include "host/stream.h"
#include "ops/scan/skus.h"

namespace baracuda::scan {

// Calls lines(maps) with the tensors as lines along the axis, or, where neighbours in memory belong to different lines,
// columns(maps, first, n) for tiles of lines, with maps whose rows are the axis' positions. Lines of up to kShort
// values are columns, too: they cost more to begin than to scan.
template <int64_t kShort, size_t kTensors, class Lines, class Columns>
void walk(const std::array<TensorView, kTensors>& tensors, int64_t axis, Lines&& lines, Columns&& columns) {
  std::array<RowMap, kTensors> maps;
  for (size_t k = 0; k < kTensors; ++k) maps[k] = row_map(tensors[k], tensors[k].rank == 0 ? 0 : 1u << axis);
  const RowMap& x = maps[0];
  const int64_t rows = x.rows(), length = x.length();
  if (rows == 0 || length == 0) return;
  bool along = x.inner.rank == 1;
  for (const RowMap& m : maps) along = along && m.inner.dense();
  if ((along && length > kShort) || !side_by_side(x)) return lines(maps);
  for (RowMap& m : maps) m = across(m);
  const int64_t tiles = (rows + kTile - 1) / kTile;
  parallel_for(tiles, row_grain(std::min(rows, kTile) * length), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) columns(maps, t * kTile, std::min(kTile, rows - t * kTile));
  });
}

// Writes n values of a row wherever they have to go.
template <class C>
void put_row(const RowMap& m, char* row, int64_t begin, int64_t n, const C* from) {
  if (m.direct<C>())
    std::copy_n(from, n, reinterpret_cast<C*>(row) + begin);
  else
    write(m, row, begin, n, from);
}

// Line by line; In and Out are what a Line reads and writes. (Results past the caches, copied there from a tile, were
// half as fast.)
template <class Line, class In, class Out>
void run_lines(const RowMap& x, const RowMap& y) {
  const int64_t length = x.length();
  parallel_for(x.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    const RowReader<In> reader(x);
    alignas(kStreamLine) In given[kTile];
    alignas(kStreamLine) Out found[kTile];
    for (int64_t r = begin; r < end; ++r) {
      Line line;
      const char* from = x.row(r);
      char* to = y.row(r);
      for (int64_t at = 0; at < length; at += kTile) {
        const int64_t n = std::min(kTile, length - at);
        Out* out = target(y, to, at, found);
        line.scan(reader.get(from, at, n, given), n, out);
        write(y, to, at, n, out);
      }
    }
  });
}

}  // namespace baracuda::scan
