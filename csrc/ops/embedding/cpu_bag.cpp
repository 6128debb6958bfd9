// Bags of rows on the CPU: forward folds each bag's rows in the order of its ids; backward sorts the ids as embedding
// does, and every weight row sums what its bags give it.
#include "ops/embedding/cpu_bag.h"
#include "core/wanted.h"

#include "host/level.h"
#include "ops/embedding/cpu_rows.h"

namespace baracuda::embedding {
namespace {

// Which positions of the ids a bag has.
class Bags {
 public:
  Bags(const TensorView& ids, const TensorView& offsets, const BagAttrs& attrs)
      : offsets_(offsets.present() ? offsets : ids),
        given_(offsets.present() ? offsets.shape[0] : -1),
        ids_(ids.numel()),
        size_(offsets.present() ? 0 : ids.shape[1]),
        count(given_ < 0 ? ids.shape[0] : given_ - (attrs.include_last_offset ? 1 : 0)) {}

  struct Range {
    int64_t begin, end;
  };
  Range of(int64_t bag) const {
    if (given_ < 0) return {bag * size_, (bag + 1) * size_};
    int64_t ends[2] = {0, ids_};
    load_span(offsets_, bag, bag + 1 < given_ ? 2 : 1, ends);
    return {ends[0], ends[1]};
  }
  // Offsets begin with 0, do not fall, and stay within the ids; the first that does not is the launch's failure.
  bool good(const Launch& launch, int param) const {
    int64_t at[kIds + 1];
    for (int64_t begin = 0, n; begin < given_; begin += n) {
      n = std::min(kIds, given_ - begin);
      const int64_t known = std::min(n + 1, given_ - begin);
      load_span(offsets_, begin, known, at);
      if (known == n) at[n] = ids_;
      for (int64_t i = 0; i < n; ++i) {
        int64_t limit = begin + i == 0 ? 1 : ids_ + 1;
        const bool within = at[i] >= 0 && at[i] < limit;
        if (within && (at[i + 1] < 0 || at[i + 1] >= at[i])) continue;
        if (within) limit = at[i + 1] + 1;  // larger than the next one
        if (launch.failure) *launch.failure = {param, begin + i, at[i], limit_of(Wanted::Place, limit)};
        return false;
      }
    }
    return true;
  }

 private:
  MergedView offsets_;
  int64_t given_, ids_, size_;

 public:
  const int64_t count;
};

bool check(const Launch& launch, int ids, int offsets, const Bags& bags, int64_t rows) {
  return in_range(launch, ids, rows) && bags.good(launch, offsets);
}

constexpr int64_t kFetchRows = 16, kFetchBytes = 1024;

typedef double Wide __attribute__((vector_size(64)));
typedef float Singles __attribute__((vector_size(32)));
typedef float Columns __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(64)));
constexpr int kColumns = 16;
constexpr int64_t kAtOnce = 4;  // wide rows that are read side by side

// Whether columns of rows of an element are read as vectors.
constexpr bool read_as_vectors(Element e) {
  return e == Element::F32 || e == Element::BF16 || (e == Element::F16 && BCU_LEVEL_F16);
}
template <Element kElement>
void get_columns(const char* row, int64_t at, Columns& v) {
  if constexpr (kElement == Element::BF16) {
    Halves bits;
    std::memcpy(&bits, row + 2 * at, sizeof bits);
    const Words words = __builtin_convertvector(bits, Words) << 16;
    std::memcpy(&v, &words, sizeof v);
#if BCU_LEVEL_F16
  } else if constexpr (kElement == Element::F16) {
    constexpr int kThere = sizeof(level::Floats) / sizeof(float);
    for (int k = 0; k < kColumns; k += kThere) {
      const level::Floats some = level::load_halves(reinterpret_cast<const uint16_t*>(row) + at + k);
      std::memcpy(reinterpret_cast<float*>(&v) + k, &some, sizeof some);
    }
#endif
  } else {
    std::memcpy(&v, row + 4 * at, sizeof v);
  }
}
inline void add_columns(const Columns& v, Wide* sums) {
  Wide low, high;
  level::widen(Singles(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)), low);
  level::widen(Singles(__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)), high);
  sums[0] += low, sums[1] += high;
}

// Asks for a row, or as much of it as pays. (Always inlined, as fetch_ahead.h has it.)
[[gnu::always_inline]] inline void fetch_row(const char* from, int64_t bytes) {
  for (int64_t b = 0; b < std::min(bytes, kFetchBytes); b += 64) __builtin_prefetch(from + b);
}

// Adds n rows to the sums of kVectors kColumns columns from `at` on, in registers; `known` rows are at hand to be asked
// for.
template <Element kElement, int kVectors>
void add_strip(const char* const* rows, int64_t n, int64_t known, int64_t at, double* to) {
  constexpr int64_t kSize = kElement == Element::F32 ? 4 : 2;
  Wide sums[2 * kVectors];
  std::memcpy(sums, to + at, sizeof sums);
  const auto fetch = [&](int64_t i) __attribute__((always_inline)) {
    if (i + kFetchRows < known) fetch_row(rows[i + kFetchRows] + at * kSize, kVectors * kColumns * kSize);
  };
  for (int64_t i = 0; i < n; ++i) {
    fetch(i);
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) {
      Columns a;
      get_columns<kElement>(rows[i], at + k * kColumns, a);
      add_columns(a, sums + 2 * k);
    }
  }
  std::memcpy(to + at, sums, sizeof sums);
}
// The same of `width` columns, a multiple of kColumns; of wide rows a few at a time, so that memory is read along them.
template <Element kElement>
void add_strips(const char* const* rows, int64_t n, int64_t known, int64_t width, double* to) {
  const int64_t step = width > kStrip ? kAtOnce : std::max<int64_t>(n, 1);
  for (int64_t i = 0; i < n; i += step) {
    const int64_t some = std::min(step, n - i);
    int64_t at = 0;
    for (; at + kStrip <= width; at += kStrip)
      add_strip<kElement, kStrip / kColumns>(rows + i, some, known - i, at, to);
    if (width & (4 * kColumns)) add_strip<kElement, 4>(rows + i, some, known - i, at, to), at += 4 * kColumns;
    if (width & (2 * kColumns)) add_strip<kElement, 2>(rows + i, some, known - i, at, to), at += 2 * kColumns;
    if (width & kColumns) add_strip<kElement, 1>(rows + i, some, known - i, at, to);
  }
}

// Columns of one bag's result. T is what rows are computed in.
template <class T>
class BagFold {
  using Args = BagArgs;

 public:
  BagFold(const Launch& launch, const BagAttrs& attrs)
      : attrs_(attrs),
        ids_(launch[Args::ids]),
        scales_(launch[Args::per_sample_weights].present() ? launch[Args::per_sample_weights] : launch[Args::ids]),
        scaled_(launch[Args::per_sample_weights].present()),
        element_(launch.element),
        total_(launch[Args::ids].numel()),
        weight_(launch[Args::weight]),
        y_(launch[Args::y]),
        chosen_(attrs.mode == kBagMax ? launch[Args::max_indices] : launch[Args::y]),
        strips_(!scaled_ && weight_.even() && read_as_vectors(element_)) {}

  void run(int64_t bag, Bags::Range range, int64_t column, int64_t n) {
    if (attrs_.mode == kBagMax) return choose(bag, range, column, n);
    int64_t kept = 0, done = strips_ ? n / kColumns * kColumns : 0;
    if (done > 0) kept = sum_vectors(range, column, done);
    if (done < n) {
      sums_.start(n - done);
      kept = for_each(range, column + done, n - done,
                      [&](int64_t id, T scale) { add(id, scale, column + done, n - done); });
      std::copy_n(sums_.result(), n - done, wide_ + done);
    }
    for (int64_t j = 0; j < n && attrs_.mode == kBagMean && kept > 1; ++j) wide_[j] /= static_cast<double>(kept);
    store<double>(element_, at(y_, bag, column, element_), y_.stride, wide_, n);
  }

 private:
  static char* at(const Rows& rows, int64_t row, int64_t column, Element e) {
    return rows.at(row) + column * rows.stride * size_of(e);
  }

  // Rows come from anywhere in memory: several are asked for before the first is needed, the next bag's, too.
  [[gnu::always_inline]] void fetch(const char* from, int64_t n) const {
    fetch_row(from, weight_.stride == 1 ? n * size_of(element_) : 1);
  }

  // Calls f(id, scale) for the ids that are not padding, which reads n columns of its row; returns how many these are.
  template <class F>
  int64_t for_each(Bags::Range range, int64_t column, int64_t n, F&& f) {
    int64_t ids[kIds + kFetchRows], kept = 0;
    T scales[kIds];
    for (int64_t i = range.begin, count; i < range.end; i += count) {
      count = std::min(kIds, range.end - i);
      const int64_t known = std::min(count + kFetchRows, total_ - i);
      load_span(ids_, i, known, ids);
      if (scaled_) load_span(scales_, i, count, scales);
      int64_t next = i == after_ ? std::min(kFetchRows, known) : 0;  // the first that nobody asked for yet
      for (int64_t k = 0; k < count; ++k) {
        for (; next <= k + kFetchRows && next < known; ++next) fetch(at(weight_, ids[next], column, element_), n);
        if (ids[k] == attrs_.padding_idx) continue;
        ++kept;
        f(ids[k], scaled_ ? scales[k] : T(1));
      }
      after_ = i + count;
    }
    return kept;
  }

  int64_t sum_vectors(Bags::Range range, int64_t column, int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
      if (element_ == Element::BF16) return sum_strips<Element::BF16>(range, column, n);
      if (element_ == Element::F16) return sum_strips<Element::F16>(range, column, n);
      return sum_strips<Element::F32>(range, column, n);
    }
    return 0;
  }
  // n columns, a multiple of kColumns; returns how many rows they have.
  template <Element kElement>
  int64_t sum_strips(Bags::Range range, int64_t column, int64_t n) {
    const char* rows[kIds + kFetchRows];
    int64_t ids[kIds + kFetchRows], kept = 0;
    std::fill_n(wide_, n, 0.0);
    const char* const first = at(weight_, 0, column, kElement);
    const int64_t step = weight_.step() * size_of(kElement);
    for (int64_t i = range.begin, count; i < range.end; i += count) {
      count = std::min(kIds, range.end - i);
      const int64_t known = std::min(count + kFetchRows, total_ - i);
      load_span(ids_, i, known, ids);
      int64_t here = 0, all = 0;
      for (int64_t k = 0; k < known; ++k) {
        rows[all] = first + ids[k] * step;
        all += ids[k] != attrs_.padding_idx;
        here = k < count ? all : here;
      }
      for (int64_t k = 0; i != after_ && k < std::min(kFetchRows, all); ++k) fetch(rows[k], n);
      add_strips<kElement>(rows, here, all, n, wide_);
      kept += here, after_ = i + count;
    }
    return kept;
  }

  void add(int64_t id, T scale, int64_t column, int64_t n) {
    const char* from = at(weight_, id, column, element_);
    if (!scaled_) return add_row(sums_, element_, from, weight_.stride, n, row_);
    load<T>(element_, from, weight_.stride, row_, n);
    for (int64_t j = 0; j < n; ++j) row_[j] *= scale;
    sums_.add(row_, n);
  }

  // As in torch a NaN stays only where it comes first.
  void choose(int64_t bag, Bags::Range range, int64_t column, int64_t n) {
    bool any = false;
    for (int64_t j = 0; j < n; ++j) best_[j] = 0, place_[j] = -1;
    for_each(range, column, n, [&](int64_t id, T) {
      load<T>(element_, at(weight_, id, column, element_), weight_.stride, row_, n);
      for (int64_t j = 0; j < n; ++j) {
        const bool better = !any || row_[j] > best_[j];
        best_[j] = better ? row_[j] : best_[j];
        place_[j] = better ? id : place_[j];
      }
      any = true;
    });
    store<T>(element_, at(y_, bag, column, element_), y_.stride, best_, n);
    store<int64_t>(Element::I64, at(chosen_, bag, column, Element::I64), chosen_.stride, place_, n);
  }

  const BagAttrs attrs_;
  const MergedView ids_, scales_;
  const bool scaled_;
  const Element element_;
  const int64_t total_;
  int64_t after_ = -1;  // the position behind the last one that was read
  const Rows weight_, y_, chosen_;
  const bool strips_;
  BlockSum<T> sums_;
  alignas(64) T row_[kBlock];
  alignas(64) T best_[kBlock];
  alignas(64) double wide_[kBlock];
  alignas(64) int64_t place_[kBlock];
};

template <class T>
Status forward(const Launch& launch) {
  using Args = BagArgs;
  const TensorView &ids = launch[Args::ids], &y = launch[Args::y];
  const BagAttrs attrs = attributes<BagAttrs>(launch);
  const Bags bags(ids, launch[Args::offsets], attrs);
  if (!check(launch, Args::ids, Args::offsets, bags, launch[Args::weight].shape[0])) return Status::IndexOutOfRange;
  const int64_t columns = y.shape[1], stripes = (columns + kWidth - 1) / kWidth;
  if (bags.count == 0 || columns == 0) return Status::Ok;
  const int64_t work = std::min(columns, kWidth) * std::max<int64_t>(1, ids.numel() / bags.count);
  parallel_for(bags.count * stripes, rows_per_chunk(work), [&](int64_t begin, int64_t end) {
    BagFold<T> fold(launch, attrs);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t bag = i / stripes, first = i % stripes * kWidth, last = std::min(first + kWidth, columns);
      for (int64_t c = first; c < last; c += kBlock) fold.run(bag, bags.of(bag), c, std::min(kBlock, last - c));
    }
  });
  return Status::Ok;
}

// The sum of products, in double, or for double with Kahan's correction.
double dot(const float* a, const float* b, int64_t n) {
  double lanes[8] = {}, sum = 0;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) lanes[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}
double dot(const double* a, const double* b, int64_t n) {
  double sum = 0, lost = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double product = a[i] * b[i], y = product - lost, t = sum + y, c = (t - sum) - y;
    lost = c - c == 0 ? c : 0;
    sum = t;
  }
  return sum;
}

template <class T>
class BagGradient {
  using Args = BagBackwardArgs;

 public:
  BagGradient(const Launch& launch, const BagAttrs& attrs)
      : launch_(launch),
        attrs_(attrs),
        dweight_(launch[Args::dweight]),
        n_(launch[Args::ids].numel()),
        rows_(dweight_.shape[0]),
        columns_(dweight_.shape[1]),
        bags_(launch[Args::ids], launch[Args::offsets], attrs),
        occurrences_(static_cast<Occurrence*>(launch.workspace)),
        bag_(reinterpret_cast<int64_t*>(occurrences_ + 2 * n_)),
        kept_(bag_ + n_),
        dy_(launch[Args::dy]) {}

  Status run() {
    if (!check(launch_, Args::ids, Args::offsets, bags_, rows_)) return Status::IndexOutOfRange;
    const int64_t count = read();
    fill_zero(dweight_);
    const Occurrence* sorted = sort_by_id(occurrences_, occurrences_ + n_, count, rows_);
    const Rows target(dweight_);
    for_each_row(sorted, count, columns_,
                 [&](const Occurrence* first, const Occurrence* last, int64_t column, int64_t n) {
                   sum(target, first, last, column, n);
                 });
    if (launch_[Args::dper_sample_weights].present()) scales();
    return Status::Ok;
  }

 private:
  // The bag of every position (-1: none), how many ids of each bag count, and their occurrences.
  int64_t read() {
    for (int64_t i = 0; i < n_; ++i) bag_[i] = -1;
    for (int64_t b = 0; b < bags_.count && n_ > 0; ++b) {
      const Bags::Range range = bags_.of(b);
      std::fill(bag_ + range.begin, bag_ + range.end, b);
      kept_[b] = 0;
    }
    int64_t count = 0;
    for_each_id(launch_, Args::ids, rows_, [&](int64_t position, int64_t id) {
      if (bag_[position] < 0 || id == attrs_.padding_idx) return;
      ++kept_[bag_[position]];
      occurrences_[count++] = {id, position};
    });
    return count;
  }

  void sum(const Rows& target, const Occurrence* first, const Occurrence* last, int64_t column, int64_t n) {
    const int64_t size = size_of(launch_.element);
    const bool scaled = launch_[Args::per_sample_weights].present();
    BlockSum<T> sums;
    alignas(64) T row[kBlock];
    alignas(64) int64_t chosen[kBlock];
    sums.start(n);
    for (const Occurrence* o = first; o < last; ++o) {
      const int64_t bag = bag_[o->position];
      const char* from = dy_.at(bag) + column * dy_.stride * size;
      if (attrs_.mode == kBagSum && !scaled) {
        add_row(sums, launch_.element, from, dy_.stride, n, row);
        continue;
      }
      if (attrs_.mode == kBagMax && o > first && bag_[o[-1].position] == bag) continue;  // an id counts once in a bag
      load<T>(launch_.element, from, dy_.stride, row, n);
      if (scaled) {
        T scale;
        load_span(MergedView(launch_[Args::per_sample_weights]), o->position, 1, &scale);
        for (int64_t j = 0; j < n; ++j) row[j] *= scale;
      } else if (attrs_.mode == kBagMean) {
        for (int64_t j = 0; j < n; ++j) row[j] /= static_cast<T>(kept_[bag]);
      } else {
        const Rows best(launch_[Args::max_indices]);
        load<int64_t>(Element::I64, best.at(bag) + column * best.stride * 8, best.stride, chosen, n);
        for (int64_t j = 0; j < n; ++j) row[j] = chosen[j] == first->id ? row[j] : T(0);
      }
      sums.add(row, n);
    }
    store<double>(launch_.element, target.at(first->id) + column * target.stride * size, target.stride, sums.result(),
                  n);
  }

  // What each row's scale gets: the product of its row and the bag's gradient.
  void scales() {
    const MergedView ids(launch_[Args::ids]), to(launch_[Args::dper_sample_weights]);
    const Rows weight(launch_[Args::weight]);
    parallel_for(n_, rows_per_chunk(columns_), [&](int64_t begin, int64_t end) {
      alignas(64) T row[kBlock];
      alignas(64) T gradient[kBlock];
      for (int64_t i = begin; i < end; ++i) {
        int64_t id;
        load_span(ids, i, 1, &id);
        double sum = 0;
        const bool counts = bag_[i] >= 0 && id != attrs_.padding_idx;
        for (int64_t c = 0; c < columns_ && counts; c += kBlock) {
          const int64_t n = std::min(kBlock, columns_ - c), size = size_of(launch_.element);
          load<T>(launch_.element, weight.at(id) + c * weight.stride * size, weight.stride, row, n);
          load<T>(launch_.element, dy_.at(bag_[i]) + c * dy_.stride * size, dy_.stride, gradient, n);
          sum += dot(row, gradient, n);
        }
        store_span(to, i, 1, &sum);
      }
    });
  }

  const Launch& launch_;
  const BagAttrs attrs_;
  const TensorView& dweight_;
  int64_t n_, rows_, columns_;
  Bags bags_;
  Occurrence* occurrences_;
  int64_t *bag_, *kept_;
  Rows dy_;
};

}  // namespace

Status bag_forward(const Launch& launch) {
  return launch.element == Element::F64 ? forward<double>(launch) : forward<float>(launch);
}

Status bag_backward(const Launch& launch) {
  const BagAttrs attrs = attributes<BagAttrs>(launch);
  return launch.element == Element::F64 ? BagGradient<double>(launch, attrs).run()
                                        : BagGradient<float>(launch, attrs).run();
}

}  // namespace baracuda::embedding
