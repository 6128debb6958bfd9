// Attention backward. P is computed again from the scores and lse, block by block:
//   dP = dout V^T, dS = P (dP - rowsum(dout out)), dq = scale dS K, dk = scale dS^T Q, dv = P^T dout.
// A task owns a range of query rows of one kv head: it finishes their dq, and adds to its own partial dk and dv. A
// second pass sums the partials in order, so that nothing depends on which thread did what.
#include "baracuda/math/math.h"
#include "ops/attention/cpu.h"
#include "ops/attention/lanes.h"

namespace baracuda::attention {
namespace {

template <class C>
struct Task {
  const BackwardProblem& problem;
  const Sizes& sizes;
  int64_t b, kv_head;
  BackwardScratch<C> scratch;
  C *dk, *dv;  // partial sums, [k_len][wide]

  int64_t wide_d() const { return round_up(sizes.d, kPanel); }
  int64_t wide_dv() const { return round_up(sizes.dv, kPanel); }
};

// Row r of a tensor with the query's heads, in the compute type, zero-filled to `wide` columns.
template <class C>
void load_line(const Task<C>& t, const Rows4& x, int64_t r, int64_t columns, int64_t wide, C* line) {
  const char* from = x.at(t.b, t.sizes.head(t.kv_head, r), t.sizes.position(r));
  if (x.element == element_of<C> && x.column == 1 && columns % kLanes<C> == 0) {
    const C* values = reinterpret_cast<const C*>(from);
    for (int64_t i = 0; i < columns; i += kLanes<C>) store_lanes(line + i, load_lanes(values + i));
  } else {
    load<C>(x.element, from, x.column, line, columns);
  }
  std::fill(line + columns, line + wide, C(0));
}

// Queries (scaled) and output gradients of rows [first, first + n), as rows and transposed; lse, delta and limits per
// row. Rows beyond n are zero and may use no key.
template <class C>
void load_rows(const Task<C>& t, int64_t first, int64_t n) {
  const Sizes& s = t.sizes;
  const BackwardProblem& p = t.problem;
  const BackwardScratch<C>& m = t.scratch;
  const int64_t wide_d = t.wide_d(), wide_dv = t.wide_dv();
  const C scale = static_cast<C>(s.scale);
  std::fill(m.query_rows + n * wide_d, m.query_rows + kBackRows * wide_d, C(0));
  std::fill(m.gradient_rows + n * wide_dv, m.gradient_rows + kBackRows * wide_dv, C(0));
  for (int64_t j = 0; j < kBackRows; ++j) {
    m.lse[j] = C(INFINITY), m.delta[j] = C(0), m.starts[j] = C(0), m.limits[j] = C(0);
    if (j >= n) continue;
    const int64_t r = first + j;
    C *query = m.query_rows + j * wide_d, *gradient = m.gradient_rows + j * wide_dv;
    load_line(t, p.q, r, s.d, wide_d, query);
    for (int64_t i = 0; i < s.d; ++i) query[i] *= scale;
    load_line(t, p.dout, r, s.dv, wide_dv, gradient);
    load_line(t, p.out, r, s.dv, s.dv, m.lines);
    m.delta[j] = dot(gradient, m.lines, s.dv);
    load<C>(p.lse.element, p.lse.at(t.b, s.head(t.kv_head, r), s.position(r)), 1, m.lse + j, 1);
    if (m.lse[j] == -C(INFINITY)) m.lse[j] = C(INFINITY);  // an empty row: every P becomes 0
  }
  transpose(m.query_rows, wide_d, kBackRows, s.d, m.queries, kBackRows);
  transpose(m.gradient_rows, wide_dv, kBackRows, s.dv, m.gradients, kBackRows);
}

template <class C>
void add_mask(const Task<C>& t, int64_t first, int64_t n, int64_t first_key, int64_t keys) {
  C *line = t.scratch.lines, *scores = t.scratch.scores;
  for (int64_t j = 0; j < n; ++j) {
    t.problem.mask.read(t.b, t.sizes.head(t.kv_head, first + j), t.sizes.position(first + j), first_key, keys, line);
    for (int64_t k = 0; k < keys; ++k) scores[k * kBackRows + j] += line[k];
  }
}

// What the weights are multiplied by, and dP with them.
template <class C>
void drop_gradients(const Task<C>& t, int64_t first, int64_t n, int64_t key, int64_t keys) {
  const BackwardScratch<C>& m = t.scratch;
  for (int64_t j = 0; j < n; ++j) {
    t.problem.dropout.read(t.b, t.sizes.head(t.kv_head, first + j), t.sizes.position(first + j), key, keys, m.lines);
    for (int64_t k = 0; k < keys; ++k) {
      m.factors[k * kBackRows + j] = m.lines[k];
      m.dscores[k * kBackRows + j] *= m.lines[k];
    }
  }
}
// P of dv.
template <class C>
void drop_weights(const BackwardScratch<C>& m, int64_t n, int64_t keys) {
  for (int64_t k = 0; k < keys; ++k)
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) m.scores[k * kBackRows + j] *= m.factors[k * kBackRows + j];
}

// Softcap and ALiBi; slopes: what the softcap's gradient is multiplied by.
template <class C>
void shape_block(const Task<C>& t, int64_t first, int64_t n, int64_t key, int64_t keys) {
  const Sizes& s = t.sizes;
  const Alibi& alibi = t.problem.alibi;
  C slopes[kBackRows] = {}, own[kBackRows] = {};
  Bias<C> bias{static_cast<C>(s.softcap)};
  if (alibi.data != nullptr) {
    for (int64_t j = 0; j < n; ++j) {
      slopes[j] = alibi.template slope<C>(t.b, s.head(t.kv_head, first + j));
      own[j] = static_cast<C>(s.position(first + j) + s.diagonal - key);
    }
    bias.slopes = slopes, bias.own = own;
  }
  shape_scores<C>(bias, keys, kBackRows, kBackRows, t.scratch.scores, t.scratch.slopes);
}

// scores -> P, dscores: dP -> dS, for keys [0, keys) of which a row uses those from its start to below its limit; all
// rows use [started, unlimited).
template <class C>
void softmax_gradient(const BackwardScratch<C>& m, int64_t keys, int64_t started, int64_t unlimited, bool capped) {
  for (int64_t k = 0; k < keys; ++k) {
    C *p = m.scores + k * kBackRows, *ds = m.dscores + k * kBackRows;
#pragma GCC ivdep
    for (int64_t j = 0; j < kBackRows; ++j) {
      p[j] = math::exp(p[j] - m.lse[j]);
      ds[j] = p[j] * (ds[j] - m.delta[j]);
    }
    if (capped) {
      const C* slopes = m.slopes + k * kBackRows;
#pragma GCC ivdep
      for (int64_t j = 0; j < kBackRows; ++j) ds[j] *= slopes[j];
    }
    if (k >= started && k < unlimited) continue;
#pragma GCC ivdep
    for (int64_t j = 0; j < kBackRows; ++j) {
      const bool used = static_cast<C>(k) < m.limits[j] && static_cast<C>(k) >= m.starts[j];
      p[j] = used ? p[j] : C(0);
      ds[j] = used ? ds[j] : C(0);
    }
  }
}

// Rows [first, first + n) against keys [key, key + keys).
template <class C>
void step(const Task<C>& t, int64_t first, int64_t n, int64_t key, int64_t keys) {
  const Sizes& s = t.sizes;
  const BackwardProblem& p = t.problem;
  const BackwardScratch<C>& m = t.scratch;
  const Block<C> k = fetch(p.k, p.k.at(t.b, t.kv_head, key), keys, s.d, m.keys, true);
  const Block<C> v = fetch(p.v, p.v.at(t.b, t.kv_head, key), keys, s.dv, m.values, true);
  int64_t lowest = keys, started = 0;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t start = std::clamp<int64_t>(s.start(s.position(first + j)) - key, 0, keys);
    const int64_t limit = std::clamp<int64_t>(s.limit(s.position(first + j)) - key, 0, keys);
    m.starts[j] = static_cast<C>(start), m.limits[j] = static_cast<C>(limit);
    lowest = std::min(lowest, limit), started = std::max(started, start);
  }
  const int64_t columns = std::min(kBackRows, round_up(n, kPanel)), wide_d = t.wide_d(), wide_dv = t.wide_dv();
  product<C, Left::ByRow, false>(keys, columns, s.d, k.data, k.ld, m.queries, kBackRows, m.scores, kBackRows);
  product<C, Left::ByRow, false>(keys, columns, s.dv, v.data, v.ld, m.gradients, kBackRows, m.dscores, kBackRows);
  if (s.softcap != 0 || p.alibi.data != nullptr) shape_block(t, first, n, key, keys);
  if (p.mask.data != nullptr) add_mask(t, first, n, key, keys);
  if (p.dropout.used()) drop_gradients(t, first, n, key, keys);
  softmax_gradient(m, keys, started, lowest, s.softcap != 0);
  if (p.dropout.used()) drop_weights(m, n, keys);
  product<C, Left::ByColumn, true>(s.d, columns, keys, k.data, k.ld, m.dscores, kBackRows, m.dqueries, kBackRows);
  product<C, Left::ByRow, true>(keys, wide_dv, n, m.scores, kBackRows, m.gradient_rows, wide_dv, t.dv + key * wide_dv,
                                wide_dv);
  product<C, Left::ByRow, true>(keys, wide_d, n, m.dscores, kBackRows, m.query_rows, wide_d, t.dk + key * wide_d,
                                wide_d);
}

template <class C>
void run_rows(const Task<C>& t, int64_t first, int64_t n) {
  const Sizes& s = t.sizes;
  const BackwardScratch<C>& m = t.scratch;
  const Rows4& dq = t.problem.dq;
  load_rows(t, first, n);
  std::fill(m.dqueries, m.dqueries + s.d * kBackRows, C(0));
  std::fill(m.scores, m.scores + kKeys * kBackRows, C(0));
  std::fill(m.dscores, m.dscores + kKeys * kBackRows, C(0));
  const int64_t last_key = s.limit(s.position(first + n - 1));
  for (int64_t key = s.start(s.position(first)) / kKeys * kKeys; key < last_key; key += kKeys)
    step(t, first, n, key, std::min(kKeys, last_key - key));
  transpose(m.dqueries, kBackRows, s.d, kBackRows, m.lines, s.d);
  for (int64_t j = 0; j < n; ++j) {
    C* line = m.lines + j * s.d;
    for (int64_t i = 0; i < s.d; ++i) line[i] *= static_cast<C>(s.scale);
    const int64_t r = first + j;
    store<C>(dq.element, dq.at(t.b, s.head(t.kv_head, r), s.position(r)), dq.column, line, s.d);
  }
}

int64_t split_rows(const Sizes& s) {
  return round_up(blocks_of(std::max<int64_t>(s.rows, 1), backward_splits(s.rows)), kBackRows);
}

// dk and dv of one kv head's keys [first, last): the sum of the splits' partials.
template <class C>
void sum_partials(const BackwardProblem& p, int64_t b, int64_t kv_head, C* partials, int64_t splits, int64_t size,
                  int64_t first, int64_t last) {
  const Sizes& s = p.sizes;
  const int64_t wide_d = round_up(s.d, kPanel), wide_dv = round_up(s.dv, kPanel);
  for (int64_t key = first; key < last; ++key) {
    C *dk = partials + key * wide_d, *dv = partials + s.k_len * wide_d + key * wide_dv;
    for (int64_t split = 1; split < splits; ++split) {
      const C *more_dk = dk + split * size, *more_dv = dv + split * size;
#pragma GCC ivdep
      for (int64_t i = 0; i < wide_d; ++i) dk[i] += more_dk[i];
#pragma GCC ivdep
      for (int64_t i = 0; i < wide_dv; ++i) dv[i] += more_dv[i];
    }
    store<C>(p.dk.element, p.dk.at(b, kv_head, key), p.dk.column, dk, s.d);
    store<C>(p.dv.element, p.dv.at(b, kv_head, key), p.dv.column, dv, s.dv);
  }
}

}  // namespace

Tasks gradient_tasks(const Sizes& s) {
  return {s.batch * s.kv_heads * backward_splits(s.rows), split_rows(s) * s.kv_len * (s.d + s.dv)};
}

template <class C>
void run_gradients(const BackwardProblem& p, int64_t first, int64_t last, C* partials, char* memory) {
  const Sizes& s = p.sizes;
  Carver from(memory);
  const BackwardScratch<C> scratch(from, s.d, s.dv);
  const int64_t heads = s.batch * s.kv_heads, splits = backward_splits(s.rows), rows = split_rows(s);
  const int64_t size = gradient_partial_size(s.k_len, s.d, s.dv);
  for (int64_t i = first; i < last; ++i) {
    // The last rows first: with a causal mask they take longest.
    const int64_t head = i % heads, split = splits - 1 - i / heads;
    C* dk = partials + (head * splits + split) * size;
    std::fill(dk, dk + size, C(0));
    const Task<C> task{p, s, head / s.kv_heads, head % s.kv_heads, scratch, dk, dk + s.k_len * round_up(s.d, kPanel)};
    const int64_t end = std::min(s.rows, (split + 1) * rows);
    for (int64_t r = split * rows; r < end; r += kBackRows) run_rows(task, r, std::min(kBackRows, end - r));
  }
}

Tasks gradient_sum_tasks(const Sizes& s) {
  return {s.batch * s.kv_heads * blocks_of(s.k_len, kKeys), kKeys * (s.d + s.dv) * backward_splits(s.rows)};
}

template <class C>
void sum_gradients(const BackwardProblem& p, int64_t first, int64_t last, C* partials) {
  const Sizes& s = p.sizes;
  const int64_t blocks = blocks_of(s.k_len, kKeys), splits = backward_splits(s.rows);
  const int64_t size = gradient_partial_size(s.k_len, s.d, s.dv);
  for (int64_t i = first; i < last; ++i) {
    const int64_t head = i / blocks, key = i % blocks * kKeys;
    sum_partials(p, head / s.kv_heads, head % s.kv_heads, partials + head * splits * size, splits, size, key,
                 std::min(key + kKeys, s.k_len));
  }
}

template void run_gradients<float>(const BackwardProblem&, int64_t, int64_t, float*, char*);
template void run_gradients<double>(const BackwardProblem&, int64_t, int64_t, double*, char*);
template void sum_gradients<float>(const BackwardProblem&, int64_t, int64_t, float*);
template void sum_gradients<double>(const BackwardProblem&, int64_t, int64_t, double*);

}  // namespace baracuda::attention
