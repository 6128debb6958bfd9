// Folds outputs that lie side by side: position after position of the folded dimensions, a tile of outputs at a time.
#pragma once
#include "core/parallel.h"
#include "ops/reduce/columns.h"
#include "ops/reduce/kernels.h"

namespace baracuda::reduce {

// Values that are read where they lie.
template <class C>
bool in_place(const Walk& w, const Terms<C>& terms) {
  return w.in_element == element_of<C> && !terms.map;
}

// A row, or n columns, that begin at a position; most need not know it.
template <class Row>
inline constexpr bool kOrdered = requires { Row::kOrdered; };
template <class Row, class... Size>
Row start_at(int64_t position, Size... n) {
  if constexpr (kOrdered<Row>)
    return Row(n..., position);
  else
    return Row(n...);
}

// Whether the last kept dimension and the folded ones fill memory without a gap.
inline bool fills_memory(const Walk& w) {
  return w.kept > 0 && w.folded.rank == 1 && w.in_strides[w.kept - 1] == 1 &&
         w.folded.strides[0] == w.shape[w.kept - 1];
}

// How outputs are cut into tiles: into parts of the last kept dimension, or, where that is short, into whole runs of
// it, one for each of some indices of the dimension before.
struct Tiles {
  int64_t width = 1, step = 0;     // of the last kept dimension
  int64_t rows = 1, row_step = 0;  // of the one before
  int64_t per = 1;                 // runs of a tile
  int64_t most, tiles_of_row, tiles_of_rows;

  Tiles(const Walk& w, int64_t tile) : most(tile) {
    constexpr int64_t kEnough = 256;  // values that are worth a tile of their own
    if (w.kept) width = w.shape[w.kept - 1], step = w.in_strides[w.kept - 1];
    const bool joins = !(fills_memory(w) && w.length * width >= kEnough);
    if (w.kept > 1 && joins && 2 * width <= tile) {
      rows = w.shape[w.kept - 2], row_step = w.in_strides[w.kept - 2];
      per = std::min(rows, tile / width);
    }
    tiles_of_row = (width + tile - 1) / tile;
    tiles_of_rows = (rows + per - 1) / per;
  }
  int64_t count(const Walk& w) const { return w.outputs / (width * rows) * tiles_of_rows * tiles_of_row; }
  int64_t widest() const { return std::min(most, width * per); }
  // The first output of tile t, and how many there are.
  int64_t first(int64_t t) const {
    const int64_t column = t % tiles_of_row * most, block = t / tiles_of_row;
    return (block / tiles_of_rows * rows + block % tiles_of_rows * per) * width + column;
  }
  int64_t size(int64_t t) const {
    const int64_t column = t % tiles_of_row * most, row = t / tiles_of_row % tiles_of_rows * per;
    return per == 1 ? std::min(most, width - column) : std::min(per, rows - row) * width;
  }
};

// Values of a tile's outputs at one position of the folded dimensions, one behind the other.
template <class C>
class TileReader {
 public:
  TileReader(const Walk& w, const Terms<C>& terms, const Tiles& tiles)
      : w_(w),
        terms_(terms),
        tiles_(tiles),
        dense_(tiles.per == 1 && tiles.step == 1 && !terms.map),
        direct_(dense_ && w.in_element == element_of<C>) {}

  bool direct() const { return direct_; }
  bool direct_bf16() const { return dense_ && w_.in_element == Element::BF16; }
  // `buffer` has place for n values.
  const C* get(const char* from, int64_t n, C* buffer) const {
    if (direct_) return reinterpret_cast<const C*>(from);
    if (tiles_.per == 1)
      read_values<C>(w_.in_element, from, tiles_.step, buffer, n);
    else
      get_runs(from, n, buffer);
    if (terms_.map) terms_.map(buffer, n, terms_.p);
    return buffer;
  }

 private:
  void get_runs(const char* from, int64_t n, C* buffer) const {
    const int64_t size = size_of(w_.in_element), width = tiles_.width, runs = n / width;
    if (tiles_.step == 1 && width * size >= kLongRun) {
      for (int64_t i = 0; i < runs; ++i)
        read_values<C>(w_.in_element, from + i * tiles_.row_step * size, 1, buffer + i * width, width);
      return;
    }
    // Column by column, which are long loops, and first without a conversion, which would be one call for each run.
    with_word_type(w_.in_element, [&](auto word) {
      using Word = decltype(word);
      Word words[kColumnTile];
      const auto* values = reinterpret_cast<const Word*>(from);
      for (int64_t j = 0; j < width; ++j)
        move_values(values + j * tiles_.step, tiles_.row_step, words + j, width, runs);
      read_values<C>(w_.in_element, words, 1, buffer, n);
    });
  }

  static constexpr int64_t kLongRun = 64;

  const Walk& w_;
  const Terms<C>& terms_;
  const Tiles& tiles_;
  bool dense_, direct_;
};

// Adds positions [begin, end) of a tile to `columns`; `base` is where the values of its first output start.
template <class C, class Columns>
void add_positions(const Walk& w, const TileReader<C>& reader, const char* base, int64_t begin, int64_t end,
                   Columns& columns) {
  const int64_t size = size_of(w.in_element), n = columns.n;
  C buffer[4][Columns::kTile];
  const auto at = [&](int64_t r, int k) { return reader.get(base + w.folded.offset(r) * size, n, buffer[k]); };
  int64_t r = begin;
  if constexpr (requires(const uint16_t* const(&rows)[8]) { columns.add8_bf16(rows); }) {
    for (; reader.direct_bf16() && r + 8 <= end; r += 8) {
      const uint16_t* rows[8];
      for (int k = 0; k < 8; ++k) rows[k] = reinterpret_cast<const uint16_t*>(base + w.folded.offset(r + k) * size);
      columns.add8_bf16(rows);
    }
  }
  for (; r + 4 <= end; r += 4) {
    const C *a = at(r, 0), *b = at(r + 1, 1), *c = at(r + 2, 2), *d = at(r + 3, 3);
    columns.add4(a, b, c, d);
  }
  for (; r < end; ++r) columns.add(at(r, 0));
}

// Positions that are folded as columns of their own, where few columns and their positions fill memory without a gap;
// 1: none.
inline constexpr int64_t kAbreast = 512;
inline int64_t positions_abreast(const Walk& w, const Tiles& tiles, int64_t columns, int64_t length) {
  constexpr int64_t kLeast = 16;
  return fills_memory(w) && tiles.per == 1 && columns == tiles.width
             ? std::max<int64_t>(1, std::min(kAbreast / columns, length / kLeast))
             : 1;
}

// The same for `rounds` times as many positions as are folded abreast, which are added to what `columns` have.
template <class C, class Columns>
void add_abreast(const Walk& w, const TileReader<C>& reader, const char* base, int64_t begin, int64_t rounds,
                 int64_t abreast, Columns& columns) {
  const int64_t size = size_of(w.in_element), n = columns.n;
  auto wide = start_at<Columns>(0, n * abreast);
  C buffer[4][Columns::kTile];
  const auto at = [&](int64_t r, int k) {
    return reader.get(base + (begin + r * abreast) * n * size, wide.n, buffer[k]);
  };
  int64_t r = 0;
  for (; r + 4 <= rounds; r += 4) {
    const C *a = at(r, 0), *b = at(r + 1, 1), *c = at(r + 2, 2), *d = at(r + 3, 3);
    wide.add4(a, b, c, d);
  }
  for (; r < rounds; ++r) wide.add(at(r, 0));
  const auto* states = wide.finish();
  for (int64_t k = 0; k < abreast; ++k) {
    if constexpr (kOrdered<Columns>)
      columns.merge(states + k * n, begin + k, abreast);
    else
      columns.merge(states + k * n);
  }
}

// short_rows: rows can be folded together, see fold_short_rows(); exact: in whatever order, as two values always are.
inline bool across_pays(const Walk& w, bool short_rows, bool exact) {
  constexpr int64_t kFew = 8, kMany = 64, kBrief = 32;
  if (w.kept == 0) return false;
  if (w.folded.rank == 0) return true;
  const int64_t step = std::abs(w.in_strides[w.kept - 1]), along = std::abs(w.folded.strides[w.folded.rank - 1]);
  if (w.length <= (!short_rows || !w.folded.dense() ? kBrief : exact ? 3 : 2)) return true;
  if (step >= along) return false;
  const Tiles tiles(w, kColumnTile);
  return tiles.widest() >= (tiles.per == 1 ? kFew : kMany) || (fills_memory(w) && w.length * tiles.width >= kAbreast);
}

template <class C, class Fold, class State = typename Fold::State>
void fold_across(const Walk& w, const Terms<C>& terms, State* partial, const Sink<State>& sink) {
  using Columns = typename Fold::Columns;
  constexpr int64_t kTile = Columns::kTile;
  const Tiles tiles(w, kTile);
  const TileReader<C> reader(w, terms, tiles);
  const int64_t tasks = tiles.count(w), strips = strips_for(tasks, w.length, 64, w.outputs * w.length);
  const int64_t per = (w.length + strips - 1) / strips;
  // Narrow values that are read where they are take less time.
  const int64_t share = reader.direct() && sizeof(C) < 4 ? 4 / sizeof(C) : 1;
  const int64_t grain = strips > 1 ? 1 : share * row_grain(tiles.widest() * w.length);
  parallel_for(tasks * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t task = t / strips, strip = t % strips, output = tiles.first(task), n = tiles.size(task);
      const int64_t first = std::min(w.length, strip * per), last = std::min(w.length, first + per);
      const char* base = w.from(output);
      const int64_t abreast = positions_abreast(w, tiles, n, last - first);
      const int64_t rounds = abreast > 1 ? (last - first) / abreast : 0, rest = first + rounds * abreast;
      auto columns = start_at<Columns>(rest, n);
      add_positions<C>(w, reader, base, rest, last, columns);
      if (rounds > 0) add_abreast<C>(w, reader, base, first, rounds, abreast, columns);
      const State* states = columns.finish();
      if (strips == 1)
        sink.put(w, output, n, states, sink.args);
      else
        std::copy(states, states + n, partial + strip * w.outputs + output);
    }
  });
  if (strips == 1) return;
  parallel_for(w.outputs, kTile, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o += kTile) {
      auto columns = start_at<Columns>(0, std::min(kTile, end - o));
      for (int64_t s = 0; s < strips; ++s) columns.merge(partial + s * w.outputs + o);
      sink.put(w, o, columns.n, columns.finish(), sink.args);
    }
  });
}

}  // namespace baracuda::reduce
