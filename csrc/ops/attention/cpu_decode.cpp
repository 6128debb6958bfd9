// Attention of few queries against many keys: the keys are cut into fixed chunks, each gives a partial result for all
// query rows of its kv head, and the partial results are merged in order by their highest scores.
#include <cstring>

#include "baracuda/math/math.h"
#include "ops/attention/cpu.h"
#include "ops/attention/lanes.h"

namespace baracuda::attention {
namespace {

// Scores of kRows query rows (dense, [d] each) with keys [0, keys), lanes along d. kRows * kWide dot products at a
// time.
template <class C, int kRows>
void dot_scores(const C* q, int64_t d, const Block<C>& k, int64_t keys, C* scores) {
  constexpr int kStep = kLanes<C>, kWide = kStep / kRows;
  const int64_t whole = d - d % kStep;
  for (int64_t key = 0; key < keys; key += kWide) {
    const C* rows[kWide];
    for (int w = 0; w < kWide; ++w) rows[w] = k.data + std::min(key + w, keys - 1) * k.ld;
    Vector<C> sum[kStep] = {};
    for (int64_t i = 0; i < whole; i += kStep) {
#pragma GCC unroll 16
      for (int w = 0; w < kWide; ++w) {
        const Vector<C> x = load_lanes(rows[w] + i);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) sum[r * kWide + w] += x * load_lanes(q + r * d + i);
      }
    }
    alignas(kVectorBytes) C total[kStep];
    store_lanes(total, sum_each<C>(sum));
    if (whole < d) {
      for (int r = 0; r < kRows; ++r)
        for (int w = 0; w < kWide; ++w)
          for (int64_t i = whole; i < d; ++i) total[r * kWide + w] += rows[w][i] * q[r * d + i];
    }
    // Past the last key there is room, and what stands there is never used.
    for (int r = 0; r < kRows; ++r) std::memcpy(scores + r * kDecodeKeys + key, total + r * kWide, kWide * sizeof(C));
  }
}

// result[row][0 .. kWide vectors) += sum over keys of p[row][key] * v[key][...]. The sum starts at zero: a sum of sums
// loses less.
template <class C, int kRows, int kWide>
[[gnu::always_inline]] inline void add_values_tile(const C* p, int64_t keys, const C* v, int64_t ldv, C* result,
                                                   int64_t dv) {
  constexpr int kStep = kLanes<C>;
  Vector<C> sum[kRows][kWide] = {};
  for (int64_t k = 0; k < keys; ++k) {
    Vector<C> x[kWide];
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) x[w] = load_lanes(v + k * ldv + w * kStep);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int w = 0; w < kWide; ++w) sum[r][w] += p[r * kDecodeKeys + k] * x[w];
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < kWide; ++w) {
      C* to = result + r * dv + w * kStep;
      store_lanes(to, load_lanes(to) + sum[r][w]);
    }
}

template <class C, int kRows>
void add_values(const C* p, int64_t keys, const C* v, int64_t ldv, C* result, int64_t dv) {
  constexpr int64_t kStep = kLanes<C>;
  constexpr int kWide = level::kRegisters / 8;
  int64_t i = 0;
  for (; i + kWide * kStep <= dv; i += kWide * kStep)
    add_values_tile<C, kRows, kWide>(p, keys, v + i, ldv, result + i, dv);
  for (; i + kStep <= dv; i += kStep) add_values_tile<C, kRows, 1>(p, keys, v + i, ldv, result + i, dv);
  for (; i < dv; ++i) {
    for (int r = 0; r < kRows; ++r) {
      C sum = 0;
      for (int64_t k = 0; k < keys; ++k) sum += p[r * kDecodeKeys + k] * v[k * ldv + i];
      result[r * dv + i] += sum;
    }
  }
}

// scores -> exp(score - highest), in place; `keys` is rounded up to whole lanes with keys that count nothing.
template <class C>
void chunk_softmax(C* scores, int64_t keys, C* highest, C* total) {
  constexpr int64_t kWide = 32;
  const int64_t padded = round_up(keys, kWide);
  std::fill(scores + keys, scores + padded, -C(INFINITY));
  C top[kWide], sum[kWide] = {};
  for (int64_t j = 0; j < kWide; ++j) top[j] = -C(INFINITY);
  for (int64_t k = 0; k < padded; k += kWide)
    for (int64_t j = 0; j < kWide; ++j) top[j] = scores[k + j] > top[j] ? scores[k + j] : top[j];
  for (int64_t j = 1; j < kWide; ++j) top[0] = top[j] > top[0] ? top[j] : top[0];
  const C base = top[0] == -C(INFINITY) ? C(0) : top[0];
  for (int64_t k = 0; k < padded; k += kWide) {
    C* p = scores + k;
#pragma GCC ivdep
    for (int64_t j = 0; j < kWide; ++j) {
      p[j] = math::exp(p[j] - base);
      sum[j] += p[j];
    }
  }
  for (int64_t half = kWide / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) sum[j] += sum[j + half];
  *highest = top[0], *total = sum[0];
}

template <class C>
struct Partial {
  C *highest, *total, *result;  // [rows], [rows], [rows][dv]
  Partial(C* base, int64_t rows) : highest(base), total(base + rows), result(base + 2 * rows) {}
};

template <class C>
struct Chunk {
  const ForwardProblem& problem;
  int64_t b, kv_head, first_key;
  DecodeScratch<C> scratch;

  // Keys of this chunk that query row r may use: [start, limit).
  int64_t start(int64_t r) const {
    const Sizes& s = problem.sizes;
    return std::clamp<int64_t>(s.start(s.position(r)) - first_key, 0, kDecodeKeys);
  }
  int64_t limit(int64_t r) const {
    const Sizes& s = problem.sizes;
    return std::clamp<int64_t>(s.limit(s.position(r)) - first_key, 0, kDecodeKeys);
  }
  // Where its blocks of keys begin.
  int64_t first_block() const { return start(0) / kKeys * kKeys; }
};

// Softcap and ALiBi of one row's keys, which are side by side here.
template <class C>
void shape_row(const Chunk<C>& t, int64_t r, int64_t keys) {
  const Sizes& s = t.problem.sizes;
  C* scores = t.scratch.scores + r * kDecodeKeys;
  const int64_t first = t.first_block();
  shape_scores<C>({static_cast<C>(s.softcap)}, 1, keys - first, 0, scores + first, nullptr);
  if (t.problem.alibi.data == nullptr) return;
  const C slope = t.problem.alibi.template slope<C>(t.b, s.head(t.kv_head, r));
  const C own = static_cast<C>(s.position(r) + s.diagonal - t.first_key);
#pragma GCC ivdep
  for (int64_t k = first; k < keys; ++k) scores[k] -= slope * std::abs(own - static_cast<C>(k));
}

template <class C>
void chunk_scores(const Chunk<C>& t, int64_t keys) {
  const Sizes& s = t.problem.sizes;
  const DecodeScratch<C>& m = t.scratch;
  for (int64_t key = t.first_block(); key < keys; key += kKeys) {
    const int64_t n = std::min(kKeys, keys - key);
    const Block<C> k = fetch_keys(t.problem.pages, t.problem.k, t.b, t.kv_head, t.first_key + key, n, s.d, m.block);
    int64_t r = 0;
    if constexpr (kLanes<C> >= 4)
      for (; r + 4 <= s.rows; r += 4)
        dot_scores<C, 4>(m.queries + r * s.d, s.d, k, n, m.scores + r * kDecodeKeys + key);
    for (; r + 2 <= s.rows; r += 2) dot_scores<C, 2>(m.queries + r * s.d, s.d, k, n, m.scores + r * kDecodeKeys + key);
    for (; r < s.rows; ++r) dot_scores<C, 1>(m.queries + r * s.d, s.d, k, n, m.scores + r * kDecodeKeys + key);
  }
  if (s.softcap != 0 || t.problem.alibi.data != nullptr)
    for (int64_t r = 0; r < s.rows; ++r) shape_row(t, r, keys);
  if (t.problem.mask.data == nullptr) return;
  for (int64_t r = 0; r < s.rows; ++r) {
    t.problem.mask.read(t.b, s.head(t.kv_head, r), s.position(r), t.first_key, keys, m.line);
    for (int64_t k = 0; k < keys; ++k) m.scores[r * kDecodeKeys + k] += m.line[k];
  }
}

// kRows rows with the block's keys [begin, end) that all may use, then what each may use before and beyond them.
template <class C, int kRows>
void rows_values(const Chunk<C>& t, int64_t r, int64_t key, int64_t n, const Block<C>& v, C* result) {
  const int64_t dv = t.problem.sizes.dv;
  const C* p = t.scratch.scores + r * kDecodeKeys + key;
  int64_t begin = 0, end = n;
  for (int i = 0; i < kRows; ++i) {
    begin = std::max(begin, std::min(t.start(r + i) - key, n));
    end = std::min(end, std::max<int64_t>(t.limit(r + i) - key, 0));
  }
  end = std::max(begin, end);
  add_values<C, kRows>(p + begin, end - begin, v.data + begin * v.ld, v.ld, result + r * dv, dv);
  for (int i = 0; i < kRows; ++i) {
    const int64_t first = std::max<int64_t>(t.start(r + i) - key, 0), last = std::min(n, t.limit(r + i) - key);
    const auto add = [&](int64_t from, int64_t to) {
      if (from < to)
        add_values<C, 1>(p + i * kDecodeKeys + from, to - from, v.data + from * v.ld, v.ld, result + (r + i) * dv, dv);
    };
    add(first, std::min(begin, last));
    add(std::max(first, end), last);
  }
}

template <class C>
void chunk_values(const Chunk<C>& t, int64_t keys, C* result) {
  const Sizes& s = t.problem.sizes;
  std::fill(result, result + s.rows * s.dv, C(0));
  for (int64_t key = t.first_block(); key < keys; key += kKeys) {
    const int64_t n = std::min(kKeys, keys - key);
    const Block<C> v =
        fetch_keys(t.problem.pages, t.problem.v, t.b, t.kv_head, t.first_key + key, n, s.dv, t.scratch.block);
    int64_t r = 0;
    for (; r + 4 <= s.rows; r += 4) rows_values<C, 4>(t, r, key, n, v, result);
    for (; r + 2 <= s.rows; r += 2) rows_values<C, 2>(t, r, key, n, v, result);
    for (; r < s.rows; ++r) rows_values<C, 1>(t, r, key, n, v, result);
  }
}

template <class C>
void run_chunk(const Chunk<C>& t, int64_t keys, const Partial<C>& partial) {
  const Sizes& s = t.problem.sizes;
  const DecodeScratch<C>& m = t.scratch;
  const LoadFn<C> load_row = loader<C>(t.problem.q.element);
  const C scale = static_cast<C>(s.scale * t.problem.k_scale.of(t.kv_head));
  for (int64_t r = 0; r < s.rows; ++r) {
    C* line = m.queries + r * s.d;
    load_row(t.problem.q.at(t.b, s.head(t.kv_head, r), s.position(r)), t.problem.q.column, line, s.d);
    for (int64_t i = 0; i < s.d; ++i) line[i] *= scale;
  }
  chunk_scores(t, keys);
  for (int64_t r = 0; r < s.rows; ++r) {
    C* scores = m.scores + r * kDecodeKeys;
    std::fill(scores, scores + t.start(r), -C(INFINITY));
    chunk_softmax(scores, t.limit(r), partial.highest + r, partial.total + r);
    if (!t.problem.dropout.used()) continue;
    const int64_t n = t.limit(r);
    t.problem.dropout.read(t.b, s.head(t.kv_head, r), s.position(r), t.first_key, n, m.line);
    for (int64_t k = 0; k < n; ++k) scores[k] *= m.line[k];
  }
  chunk_values(t, keys, partial.result);
}

// Partial results in the order of their keys: sum_c exp(m_c - m) * part_c. A sink counts, and has no values.
template <class C>
void merge(const ForwardProblem& problem, int64_t b, int64_t kv_head, int64_t r, const C* partials, int64_t chunks,
           C* line) {
  const Sizes& s = problem.sizes;
  const int64_t size = partial_size(s.rows, s.dv);
  const int64_t head = s.head(kv_head, r), position = s.position(r);
  const C unit = static_cast<C>(problem.v_scale.of(kv_head)), sink = problem.sinks.template logit<C>(head);
  C top = sink;
  for (int64_t c = 0; c < chunks; ++c) {
    const C other = Partial<const C>(partials + c * size, s.rows).highest[r];
    top = other > top ? other : top;
  }
  C total = sink == -C(INFINITY) ? C(0) : sink == top ? C(1) : math::exp(sink - top);
  std::fill(line, line + s.dv, C(0));
  for (int64_t c = 0; c < chunks && top != -C(INFINITY); ++c) {
    const Partial<const C> part(partials + c * size, s.rows);
    const C weight = math::exp(part.highest[r] - top);
    const C* result = part.result + r * s.dv;
    total += weight * part.total[r];
    for (int64_t i = 0; i < s.dv; ++i) line[i] += weight * result[i];
  }
  const C lse = top == -C(INFINITY) ? top : top + math::log(total);
  if (top != -C(INFINITY))
    for (int64_t i = 0; i < s.dv; ++i) line[i] = line[i] / total * unit;
  store<C>(problem.out.element, problem.out.at(b, head, position), problem.out.column, line, s.dv);
  if (problem.lse.data != nullptr) store<C>(problem.lse.element, problem.lse.at(b, head, position), 1, &lse, 1);
}

}  // namespace

int64_t decode_chunks(const Sizes& s) {
  const int64_t used = s.rows > 0 ? s.limit(s.q_len - 1) : 0;
  return std::max<int64_t>(blocks_of(used, kDecodeKeys) - s.start(0) / kDecodeKeys, 1);
}

Tasks decode_tasks(const Sizes& s) {
  const int64_t chunks = decode_chunks(s), keys = chunks > 1 ? kDecodeKeys : s.kv_len;
  return {s.batch * s.kv_heads * chunks, s.rows * keys * (s.d + s.dv)};
}

template <class C>
void run_decode(const ForwardProblem& problem, int64_t first, int64_t last, C* partials, char* memory) {
  const Sizes& s = problem.sizes;
  Carver from(memory);
  const DecodeScratch<C> scratch(from, s.rows, s.d, s.dv);
  const int64_t used = s.limit(s.q_len - 1), chunks = decode_chunks(s), first_chunk = s.start(0) / kDecodeKeys;
  for (int64_t i = first; i < last; ++i) {
    const int64_t head = i / chunks, b = head / s.kv_heads, kv_head = head % s.kv_heads;
    const int64_t first_key = (first_chunk + i % chunks) * kDecodeKeys, keys = std::min(kDecodeKeys, used - first_key);
    C* partial = chunks > 1 ? partials + i * partial_size(s.rows, s.dv) : scratch.partial;
    if (keys > 0) run_chunk(Chunk<C>{problem, b, kv_head, first_key, scratch}, keys, Partial<C>(partial, s.rows));
    for (int64_t r = 0; chunks == 1 && r < s.rows; ++r)
      merge<C>(problem, b, kv_head, r, partial, keys > 0 ? 1 : 0, scratch.line);
  }
}

template <class C>
void merge_chunks(const ForwardProblem& problem, int64_t first, int64_t last, const C* partials, char* memory) {
  const Sizes& s = problem.sizes;
  Carver from(memory);
  const DecodeScratch<C> scratch(from, s.rows, s.d, s.dv);
  const int64_t chunks = decode_chunks(s), size = chunks * partial_size(s.rows, s.dv);
  for (int64_t i = first; i < last; ++i) {
    const int64_t head = i / s.rows;
    merge(problem, head / s.kv_heads, head % s.kv_heads, i % s.rows, partials + head * size, chunks, scratch.line);
  }
}

template void run_decode<float>(const ForwardProblem&, int64_t, int64_t, float*, char*);
template void run_decode<double>(const ForwardProblem&, int64_t, int64_t, double*, char*);
template void merge_chunks<float>(const ForwardProblem&, int64_t, int64_t, const float*, char*);
template void merge_chunks<double>(const ForwardProblem&, int64_t, int64_t, const double*, char*);

}  // namespace baracuda::attention
