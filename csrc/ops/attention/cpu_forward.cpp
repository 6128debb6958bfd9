// Attention forward in blocks. A panel is 32 query rows side by side: scores, softmax and result are kept transposed
// ([key][query], [dim][query]), so that K and V are read as they lie and no step needs a sum across lanes.
#include "baracuda/math/math.h"
#include "ops/attention/cpu.h"
#include "ops/attention/lanes.h"

namespace baracuda::attention {
namespace {

constexpr int64_t kTaskRows = kPanels * kPanel;

// Up to kPanels panels of one kv head.
template <class C>
struct Task {
  const ForwardProblem& problem;
  const Sizes& sizes;
  int64_t b, kv_head, first_row, rows;
  ForwardScratch<C> scratch;

  int64_t panels() const { return blocks_of(rows, kPanel); }
  int64_t panel_rows(int64_t panel) const { return std::min(kPanel, rows - panel * kPanel); }
  int64_t row(int64_t panel, int64_t lane) const { return first_row + panel * kPanel + lane; }
  int64_t start(int64_t r) const { return sizes.start(sizes.position(r)); }
  int64_t limit(int64_t r) const { return sizes.limit(sizes.position(r)); }
};

template <class C>
void load_queries(const Task<C>& t) {
  const Sizes& s = t.sizes;
  const Rows4& q = t.problem.q;
  const LoadFn<C> load_row = loader<C>(q.element);
  const C scale = static_cast<C>(s.scale * t.problem.k_scale.of(t.kv_head));
  for (int64_t panel = 0; panel < t.panels(); ++panel) {
    C* lines = t.scratch.lines;
    const int64_t n = t.panel_rows(panel);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t r = t.row(panel, j);
      C* line = lines + j * s.d;
      load_row(q.at(t.b, s.head(t.kv_head, r), s.position(r)), q.column, line, s.d);
      for (int64_t i = 0; i < s.d; ++i) line[i] *= scale;
    }
    std::fill(lines + n * s.d, lines + kPanel * s.d, C(0));
    transpose(lines, s.d, kPanel, s.d, t.scratch.queries + panel * s.d * kPanel, kPanel);
  }
}

// Nothing seen yet but the heads' sinks.
template <class C>
void start_rows(const Task<C>& t) {
  const ForwardScratch<C>& m = t.scratch;
  std::fill(m.highest, m.highest + kPanels * kPanel, -C(INFINITY));
  std::fill(m.total, m.total + kPanels * kPanel, C(0));
  std::fill(m.result, m.result + kPanels * t.sizes.dv * kPanel, C(0));
  if (t.problem.sinks.data == nullptr) return;
  for (int64_t j = 0; j < t.rows; ++j) {
    m.highest[j] = t.problem.sinks.template logit<C>(t.sizes.head(t.kv_head, t.first_row + j));
    m.total[j] = m.highest[j] == -C(INFINITY) ? C(0) : C(1);
  }
}

template <class C>
void add_mask(const Task<C>& t, int64_t panel, int64_t first_key, int64_t keys) {
  C *line = t.scratch.lines, *scores = t.scratch.scores;
  for (int64_t j = 0; j < t.panel_rows(panel); ++j) {
    const int64_t r = t.row(panel, j);
    t.problem.mask.read(t.b, t.sizes.head(t.kv_head, r), t.sizes.position(r), first_key, keys, line);
    for (int64_t k = 0; k < keys; ++k) scores[k * kPanel + j] += line[k];
  }
}

// Weights, whose sum is known by now, are dropped.
template <class C>
void drop(const Task<C>& t, int64_t panel, int64_t first_key, int64_t keys) {
  C *line = t.scratch.lines, *scores = t.scratch.scores;
  for (int64_t j = 0; j < t.panel_rows(panel); ++j) {
    const int64_t r = t.row(panel, j);
    t.problem.dropout.read(t.b, t.sizes.head(t.kv_head, r), t.sizes.position(r), first_key, keys, line);
    for (int64_t k = 0; k < keys; ++k) scores[k * kPanel + j] *= line[k];
  }
}

// Softcap and ALiBi.
template <class C>
void shape_panel(const Task<C>& t, int64_t panel, int64_t first_key, int64_t keys) {
  const Sizes& s = t.sizes;
  const Alibi& alibi = t.problem.alibi;
  C slopes[kPanel] = {}, own[kPanel] = {};
  Bias<C> bias{static_cast<C>(s.softcap)};
  if (alibi.data != nullptr) {
    for (int64_t j = 0; j < t.panel_rows(panel); ++j) {
      const int64_t r = t.row(panel, j);
      slopes[j] = alibi.template slope<C>(t.b, s.head(t.kv_head, r));
      own[j] = static_cast<C>(s.position(r) + s.diagonal - first_key);
    }
    bias.slopes = slopes, bias.own = own;
  }
  shape_scores<C>(bias, keys, kPanel, kPanel, t.scratch.scores, nullptr);
}

// Scores become exp(score - highest so far); the sum and the result so far are brought to the new highest score.
// False when no row's highest score has changed, so that the result needs no rescaling.
template <class C>
bool softmax_step(C* scores, int64_t keys, int64_t unlimited, const C* limits, int64_t started, const C* starts,
                  C* highest, C* total, C* change) {
  for (int64_t k = 0; k < started; ++k) {
    C* row = scores + k * kPanel;
#pragma GCC ivdep
    for (int64_t j = 0; j < kPanel; ++j) row[j] = static_cast<C>(k) >= starts[j] ? row[j] : -C(INFINITY);
  }
  for (int64_t k = unlimited; k < keys; ++k) {
    C* row = scores + k * kPanel;
#pragma GCC ivdep
    for (int64_t j = 0; j < kPanel; ++j) row[j] = static_cast<C>(k) < limits[j] ? row[j] : -C(INFINITY);
  }
  C top[kPanel], base[kPanel], sum[kPanel] = {};
  for (int64_t j = 0; j < kPanel; ++j) top[j] = highest[j];
  for (int64_t k = 0; k < keys; ++k) {
    const C* row = scores + k * kPanel;
    for (int64_t j = 0; j < kPanel; ++j) top[j] = row[j] > top[j] ? row[j] : top[j];
  }
  bool changed = false;
  for (int64_t j = 0; j < kPanel; ++j) {
    base[j] = top[j] == -C(INFINITY) ? C(0) : top[j];
    changed |= top[j] != highest[j];
  }
  for (int64_t k = 0; k < keys; ++k) {
    C* row = scores + k * kPanel;
#pragma GCC ivdep
    for (int64_t j = 0; j < kPanel; ++j) {
      const C p = math::exp(row[j] - base[j]);
      row[j] = p;
      sum[j] += p;
    }
  }
#pragma GCC ivdep
  for (int64_t j = 0; j < kPanel; ++j) {
    change[j] = top[j] == highest[j] ? C(1) : math::exp(highest[j] - base[j]);
    total[j] = total[j] * change[j] + sum[j];
    highest[j] = top[j];
  }
  return changed;
}

// One panel against keys [first_key, first_key + keys).
template <class C>
void panel_step(const Task<C>& t, int64_t panel, int64_t first_key, int64_t keys, const Block<C>& k,
                const Block<C>& v) {
  const Sizes& s = t.sizes;
  const ForwardScratch<C>& m = t.scratch;
  alignas(64) C limits[kPanel] = {}, starts[kPanel] = {};
  int64_t lowest = keys, most = 0, started = 0;  // a row's keys begin at `started` at the latest
  bool used = false;
  for (int64_t j = 0; j < t.panel_rows(panel); ++j) {
    const int64_t limit = std::clamp<int64_t>(t.limit(t.row(panel, j)) - first_key, 0, keys);
    const int64_t start = std::clamp<int64_t>(t.start(t.row(panel, j)) - first_key, 0, keys);
    limits[j] = static_cast<C>(limit), starts[j] = static_cast<C>(start);
    lowest = std::min(lowest, limit), most = std::max(most, limit), started = std::max(started, start);
    used |= start < limit;
  }
  if (!used) return;
  if (t.panel_rows(panel) < kPanel && s.right < 0) std::fill(limits, limits + kPanel, static_cast<C>(keys));
  C* result = m.result + panel * s.dv * kPanel;
  product<C, Left::ByRow, false>(most, kPanel, s.d, k.data, k.ld, m.queries + panel * s.d * kPanel, kPanel, m.scores,
                                 kPanel);
  if (s.softcap != 0 || t.problem.alibi.data != nullptr) shape_panel(t, panel, first_key, most);
  if (t.problem.mask.data != nullptr) add_mask(t, panel, first_key, most);
  const bool changed = softmax_step(m.scores, most, lowest, limits, started, starts, m.highest + panel * kPanel,
                                    m.total + panel * kPanel, m.change);
  if (t.problem.dropout.used()) drop(t, panel, first_key, most);
  if (changed) {
    for (int64_t i = 0; i < s.dv; ++i)
      for (int64_t j = 0; j < kPanel; ++j) result[i * kPanel + j] *= m.change[j];
  }
  if (started > 0) {
    product<C, Left::ByColumn, true, Ends::Both>(s.dv, kPanel, 0, v.data, v.ld, m.scores, kPanel, result, kPanel,
                                                 {most, limits, starts});
  } else if (lowest == most) {
    product<C, Left::ByColumn, true>(s.dv, kPanel, most, v.data, v.ld, m.scores, kPanel, result, kPanel);
  } else {
    product<C, Left::ByColumn, true, Ends::Upper>(s.dv, kPanel, lowest, v.data, v.ld, m.scores, kPanel, result, kPanel,
                                                  {most, limits});
  }
}

template <class C>
void store_results(const Task<C>& t) {
  const Sizes& s = t.sizes;
  const Rows4& out = t.problem.out;
  const StoreFn<C> store_row = storer<C>(out.element);
  const C unit = static_cast<C>(t.problem.v_scale.of(t.kv_head));
  for (int64_t panel = 0; panel < t.panels(); ++panel) {
    C* result = t.scratch.result + panel * s.dv * kPanel;
    const C *highest = t.scratch.highest + panel * kPanel, *total = t.scratch.total + panel * kPanel;
    C lse[kPanel];
    for (int64_t j = 0; j < kPanel; ++j)
      lse[j] = highest[j] == -C(INFINITY) ? highest[j] : highest[j] + math::log(total[j]);
    for (int64_t i = 0; i < s.dv; ++i)
      for (int64_t j = 0; j < kPanel; ++j)
        result[i * kPanel + j] = highest[j] == -C(INFINITY) ? C(0) : result[i * kPanel + j] / total[j] * unit;
    transpose(result, kPanel, s.dv, kPanel, t.scratch.lines, s.dv);
    for (int64_t j = 0; j < t.panel_rows(panel); ++j) {
      const int64_t r = t.row(panel, j), head = s.head(t.kv_head, r), position = s.position(r);
      store_row(out.at(t.b, head, position), out.column, t.scratch.lines + j * s.dv, s.dv);
      if (t.problem.lse.data != nullptr)
        store<C>(t.problem.lse.element, t.problem.lse.at(t.b, head, position), 1, lse + j, 1);
    }
  }
}

template <class C>
void run_task(const Task<C>& t) {
  const Sizes& s = t.sizes;
  const ForwardScratch<C>& m = t.scratch;
  load_queries(t);
  start_rows(t);
  const int64_t last_key = t.limit(t.first_row + t.rows - 1);
  for (int64_t key = t.start(t.first_row) / kKeys * kKeys; key < last_key; key += kKeys) {
    const int64_t keys = std::min(kKeys, last_key - key);
    const Block<C> k = fetch_keys(t.problem.pages, t.problem.k, t.b, t.kv_head, key, keys, s.d, m.keys);
    const Block<C> v = fetch_keys(t.problem.pages, t.problem.v, t.b, t.kv_head, key, keys, s.dv, m.values);
    for (int64_t panel = 0; panel < t.panels(); ++panel) panel_step(t, panel, key, keys, k, v);
  }
  store_results(t);
}

}  // namespace

Tasks blocked_tasks(const Sizes& s) {
  return {blocks_of(s.rows, kTaskRows) * s.batch * s.kv_heads, std::min(s.rows, kTaskRows) * s.kv_len * (s.d + s.dv)};
}

template <class C>
void run_blocked(const ForwardProblem& problem, int64_t first, int64_t last, char* memory) {
  const Sizes& s = problem.sizes;
  Carver from(memory);
  const ForwardScratch<C> scratch(from, s.d, s.dv);
  const int64_t per_head = blocks_of(s.rows, kTaskRows), heads = s.batch * s.kv_heads;
  for (int64_t i = first; i < last; ++i) {
    // The last rows first: with a causal mask they take longest.
    const int64_t first_row = (per_head - 1 - i / heads) * kTaskRows, head = i % heads;
    run_task(Task<C>{problem, s, head / s.kv_heads, head % s.kv_heads, first_row,
                     std::min(kTaskRows, s.rows - first_row), scratch});
  }
}

template void run_blocked<float>(const ForwardProblem&, int64_t, int64_t, char*);
template void run_blocked<double>(const ForwardProblem&, int64_t, int64_t, char*);

}  // namespace baracuda::attention
