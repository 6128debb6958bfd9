// Folds the values of a walk, whatever is folded: where the kept dimensions are the denser ones in memory, or rows are
// very short, columns are folded side by side (across.h); otherwise each output folds its own row. Reductions with few
// outputs are cut into strips.
#pragma once
#include "host/short_rows.h"
#include "ops/reduce/across.h"

namespace baracuda::reduce {

// Values of a row that is alone that are folded at once, and rows that lie side by side whose values are gathered
// together: as many as a line of memory holds.
inline constexpr int64_t kPiece = 1024;
template <class C>
inline constexpr int64_t kAcross = 64 / sizeof(C);

// Adds positions [begin, begin + n) of the folded dimensions to `row`; `base` is where the output's values start.
template <class C, class Row>
void fold_range(const Walk& w, const Terms<C>& terms, const char* base, int64_t begin, int64_t n, Row& row) {
  constexpr int64_t kGather = 1024, kDirectRun = 64;
  const int64_t size = size_of(w.in_element);
  const bool plain = w.in_element == element_of<C>;
  C buffer[kGather];
  int64_t filled = 0;
  const auto flush = [&] {
    if (filled == 0) return;
    if (terms.map) terms.map(buffer, filled, terms.p);
    row.add(buffer, filled);
    filled = 0;
  };
  w.folded.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
    const char* at = base + offset * size;
    if (plain && !terms.map && stride == 1 && (count >= kDirectRun || count == n)) {
      if constexpr (kOrdered<Row>) flush();
      row.add(reinterpret_cast<const C*>(at), count);
      return;
    }
    if constexpr (requires { row.add_bf16(nullptr, 0); }) {
      if (w.in_element == Element::BF16 && !terms.map && stride == 1) {
        const int64_t done = row.add_bf16(reinterpret_cast<const uint16_t*>(at), count);
        at += done * size, count -= done;
      }
    }
    if (!kOrdered<Row> && stride == 1 &&
        count >= 64 * kGather) {  // four long streams, which memory serves a third faster than one
      flush();
      constexpr int64_t kPiece = kGather / 4;
      const int64_t quarter = count / kGather * kPiece;
      for (int64_t i = 0; i < quarter; i += kPiece) {
        for (int64_t s = 0; s < 4; ++s)
          read_values<C>(w.in_element, at + (s * quarter + i) * size, 1, buffer + s * kPiece, kPiece);
        filled = kGather;
        flush();
      }
      at += 4 * quarter * size, count -= 4 * quarter;
    }
    while (count > 0) {
      int64_t piece = std::min(count, kGather - filled);
      read_values<C>(w.in_element, at, stride, buffer + filled, piece);
      at += piece * stride * size, count -= piece, filled += piece;
      if (filled == kGather) flush();
    }
  });
  flush();
}

template <class C, class Fold>
inline constexpr bool in_short_rows =
    requires { Fold::Row::fold_rows(0, 0, [](int) { return static_cast<const C*>(nullptr); }); };

// Whether a row is best folded together with its neighbours, as row.add() folds one alone. Rows that pass through a
// buffer must fit it.
template <class C>
bool is_short(const Walk& w, const Terms<C>& terms) {
  return w.folded.dense() && (w.length <= kShortRow || (in_place(w, terms) && w.length < Lanes<C>::kBlock));
}

// As many rows as a vector has lanes at once, see short_rows.h.
template <class C, class Row>
void fold_short_rows(const Walk& w, const Terms<C>& terms, int64_t begin, int64_t n, C* to) {
  using L = Lanes<C>;
  const bool direct = in_place(w, terms), even = w.kept <= 1 || !direct;
  const bool adjacent = w.kept <= 1 && w.in_strides[0] == w.length;
  C buffer[L::kWidth * kShortRow];
  for (int64_t o = 0; o < n; o += L::kWidth) {
    const int64_t rows = std::min<int64_t>(L::kWidth, n - o);
    if (!direct) {
      for (int64_t r = 0; r < (adjacent ? 1 : rows); ++r)
        read_values<C>(w.in_element, w.from(begin + o + r), 1, buffer + r * w.length,
                       adjacent ? rows * w.length : w.length);
      if (terms.map) terms.map(buffer, rows * w.length, terms.p);
    }
    const C* first = direct ? reinterpret_cast<const C*>(w.from(begin + o)) : buffer;
    const int64_t apart = direct ? w.in_strides[0] : w.length;
    const auto fold = [&](auto at) { return Row::fold_rows(static_cast<int>(rows), w.length, at); };
    const auto folded = even ? fold([=](int r) { return first + r * apart; })
                             : fold([&](int r) { return reinterpret_cast<const C*>(w.from(begin + o + r)); });
    std::memcpy(to + o, &folded, rows * sizeof(C));
  }
}

inline constexpr int64_t kPuts = 64;  // results that are put together

template <class C, class Fold, class State = typename Fold::State>
void fold_together(const Walk& w, const Terms<C>& terms, const Sink<State>& sink) {
  parallel_for(w.outputs, row_grain(w.length), [&](int64_t begin, int64_t end) {
    State values[kPuts];
    for (int64_t o = begin; o < end; o += kPuts) {
      const int64_t n = std::min(kPuts, end - o);
      fold_short_rows<C, typename Fold::Row>(w, terms, o, n, values);
      sink.put(w, o, n, values, sink.args);
    }
  });
}

// Rows of bf16 that are added as they are stored, as many at once.
template <class Row>
void fold_bf16_together(const Walk& w, const Sink<float>& sink) {
  constexpr int64_t kWidth = Lanes<float>::kWidth;
  static_assert(kPuts % kWidth == 0);
  parallel_for(w.outputs, row_grain(w.length), [&](int64_t begin, int64_t end) {
    float values[kPuts];
    for (int64_t o = begin; o < end; o += kPuts) {
      const int64_t n = std::min(kPuts, end - o);
      for (int64_t i = 0; i < n; i += kWidth) {
        const int64_t rows = std::min(kWidth, n - i);
        const auto folded = Row::fold_bf16(static_cast<int>(rows), w.length,
                                           [&](int r) { return reinterpret_cast<const uint16_t*>(w.from(o + i + r)); });
        std::memcpy(values + i, &folded, sizeof folded);
      }
      sink.put(w, o, n, values, sink.args);
    }
  });
}

template <class C, class Fold, class State = typename Fold::State>
void fold_rows(const Walk& w, const Terms<C>& terms, State* partial, const Sink<State>& sink) {
  const int64_t strips = strips_for(w.outputs, w.length, Lanes<C>::kBlock, w.outputs * w.length);
  const int64_t per = ((w.length + strips - 1) / strips + Lanes<C>::kBlock - 1) / Lanes<C>::kBlock * Lanes<C>::kBlock;
  auto fold_one = [&](int64_t output, int64_t begin, int64_t end) {
    auto row = start_at<typename Fold::Row>(begin);
    if (end > begin) fold_range<C>(w, terms, w.from(output), begin, end - begin, row);
    return row.state();
  };
  if (strips == 1) {
    if constexpr (in_short_rows<C, Fold>)
      if (is_short(w, terms)) return fold_together<C, Fold>(w, terms, sink);
    if constexpr (requires { Fold::Row::fold_bf16(0, 0, [](int) { return static_cast<const uint16_t*>(nullptr); }); })
      if (w.in_element == Element::BF16 && !terms.map && w.folded.dense() && Fold::Row::folds_bf16(w.length))
        return fold_bf16_together<typename Fold::Row>(w, sink);
    parallel_for(w.outputs, row_grain(w.length), [&](int64_t begin, int64_t end) {
      State values[kPuts];
      for (int64_t o = begin; o < end; o += kPuts) {
        const int64_t n = std::min(kPuts, end - o);
        for (int64_t j = 0; j < n; ++j) values[j] = fold_one(o + j, 0, w.length);
        sink.put(w, o, n, values, sink.args);
      }
    });
    return;
  }
  parallel_for(w.outputs * strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = std::min(w.length, t % strips * per);
      partial[t] = fold_one(t / strips, from, std::min(w.length, from + per));
    }
  });
  for (int64_t o = 0; o < w.outputs; ++o) {
    auto row = start_at<typename Fold::Row>(0);
    row.merge(partial + o * strips, strips);
    const State value = row.state();
    sink.put(w, o, 1, &value, sink.args);
  }
}

// Values of positions [begin, begin + n) of `rows` outputs from `first` on, which lie `apart` elements apart: those of
// each output behind those of the one before. Elements of neighbours are read together.
template <class C>
void gather_rows(const Walk& w, const char* base, int64_t rows, int64_t apart, int64_t begin, int64_t n, C* to) {
  const int64_t size = size_of(w.in_element);
  if (rows == 1) {
    w.folded.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
      load<C>(w.in_element, base + offset * size, stride, to, count);
      to += count;
    });
    return;
  }
  const LoadFn<C> load_across = loader<C>(w.in_element);
  C across[kAcross<C>];
  w.folded.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i, ++to) {
      load_across(base + (offset + i * stride) * size, apart, across, rows);
      for (int64_t r = 0; r < rows; ++r) to[r * n] = across[r];
    }
  });
}

// Folds positions [begin, end) of outputs that are alone: in pieces that are counted from the row's start, whatever
// lies beside it and however its values lie. `buffer` holds kPiece values of each.
template <class C, class Row>
void fold_alone(const Walk& w, const Terms<C>& terms, const char* base, int64_t rows, int64_t apart, int64_t begin,
                int64_t end, C* buffer, Row* to) {
  const bool direct = in_place(w, terms) && w.folded.dense();
  for (; begin < end; begin += kPiece) {
    const int64_t n = std::min(kPiece, end - begin);
    if (direct) {
      for (int64_t r = 0; r < rows; ++r) to[r].add(reinterpret_cast<const C*>(base) + r * apart + begin, n);
      continue;
    }
    gather_rows(w, base, rows, apart, begin, n, buffer);
    if (terms.map) terms.map(buffer, rows * n, terms.p);
    for (int64_t r = 0; r < rows; ++r) to[r].add(buffer + r * n, n);
  }
}

// Each row as if it were alone. Its length says into how many strips it is cut; how many rows there are only says
// whether the strips of one are spread over the threads.
template <class C, class Fold, class State = typename Fold::State>
void fold_each_alone(const Walk& w, const Terms<C>& terms, State* partial, const Sink<State>& sink) {
  using Row = typename Fold::Row;
  if constexpr (in_short_rows<C, Fold>)
    if (is_short(w, terms) && w.length <= kPiece) return fold_together<C, Fold>(w, terms, sink);
  const int64_t strips = w.length < kSplitFrom ? 1 : kMaxStrips;
  const int64_t per = ((w.length + strips - 1) / strips + kPiece - 1) / kPiece * kPiece;
  const auto strip = [&](const char* base, int64_t rows, int64_t apart, int64_t s, C* buffer, State* states) {
    Row each[kAcross<C>];
    fold_alone<C>(w, terms, base, rows, apart, std::min(w.length, s * per), std::min(w.length, (s + 1) * per), buffer,
                  each);
    for (int64_t r = 0; r < rows; ++r) states[r] = each[r].state();
  };
  const auto put = [&](int64_t output, const State* states) {
    Row row;
    row.merge(states, strips);
    const State value = row.state();
    sink.put(w, output, 1, &value, sink.args);
  };
  if (strips > 1 && w.outputs < kMaxStrips) {
    parallel_for(w.outputs * strips, 1, [&](int64_t begin, int64_t end) {
      C buffer[kPiece];
      for (int64_t t = begin; t < end; ++t) strip(w.from(t / strips), 1, 0, t % strips, buffer, partial + t);
    });
    for (int64_t o = 0; o < w.outputs; ++o) put(o, partial + o * strips);
    return;
  }
  // Outputs that lie side by side are gathered together, as many as a line of memory holds.
  const int64_t inner = w.kept ? w.shape[w.kept - 1] : 1, apart = w.kept ? w.in_strides[w.kept - 1] : 0;
  const int64_t together = w.folded.dense() ? 1 : std::min(kAcross<C>, inner),
                groups = (inner + together - 1) / together;
  parallel_for(w.outputs / inner * groups, row_grain(together * w.length), [&](int64_t begin, int64_t end) {
    C buffer[kAcross<C> * kPiece];
    State states[kAcross<C>], parts[kAcross<C>][kMaxStrips];
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g % groups * together, output = g / groups * inner + first;
      const int64_t rows = std::min(together, inner - first);
      const char* base = w.from(output);
      if (strips == 1) {
        strip(base, rows, apart, 0, buffer, states);
        sink.put(w, output, rows, states, sink.args);
        continue;
      }
      for (int64_t s = 0; s < strips; ++s) {
        strip(base, rows, apart, s, buffer, states);
        for (int64_t r = 0; r < rows; ++r) parts[r][s] = states[r];
      }
      for (int64_t r = 0; r < rows; ++r) put(output + r, parts[r]);
    }
  });
}

// `workspace` holds value_partials() bytes.
template <class C, class Fold>
void fold(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<typename Fold::State>& sink) {
  if (w.outputs == 0) return;
  auto* partial = static_cast<typename Fold::State*>(workspace);
  if constexpr (!Fold::kExact)
    if (w.alone) return fold_each_alone<C, Fold>(w, terms, partial, sink);
  if (across_pays(w, in_short_rows<C, Fold>, Fold::kExact))
    fold_across<C, Fold>(w, terms, partial, sink);
  else
    fold_rows<C, Fold>(w, terms, partial, sink);
}

}  // namespace baracuda::reduce
