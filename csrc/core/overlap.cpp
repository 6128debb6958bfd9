#include "core/overlap.h"

#include <algorithm>
#include <numeric>

namespace baracuda {
namespace {

// sum_k coeff[k] * x[k] = target with 0 <= x[k] <= bound[k]; all coefficients positive, largest first.
struct Equation {
  static constexpr int kMaxTerms = 2 * kMaxRank + 2;
  static constexpr int kBudget = 20000;  // search steps; ordinary slices need a handful
  int n = 0;
  int64_t coeff[kMaxTerms], bound[kMaxTerms], gcd[kMaxTerms + 1], reach[kMaxTerms + 1];
  int steps = 0;

  void add(int64_t c, int64_t b) {
    if (b > 0 && c > 0) coeff[n] = c, bound[n++] = b;
  }
  void prepare() {
    int order[kMaxTerms];
    std::iota(order, order + n, 0);
    std::sort(order, order + n, [&](int a, int b) { return coeff[a] > coeff[b]; });
    int64_t c[kMaxTerms], b[kMaxTerms];
    for (int i = 0; i < n; ++i) c[i] = coeff[order[i]], b[i] = bound[order[i]];
    std::copy(c, c + n, coeff), std::copy(b, b + n, bound);
    gcd[n] = reach[n] = 0;
    for (int i = n - 1; i >= 0; --i) gcd[i] = std::gcd(gcd[i + 1], c[i]), reach[i] = reach[i + 1] + c[i] * b[i];
  }
  // 1: solvable, 0: not, -1: gave up
  int solve(int i, int64_t target) {
    if (target < 0 || target > reach[i]) return 0;
    if (target == 0) return 1;
    if (i == n || target % gcd[i]) return 0;
    int64_t most = std::min(bound[i], target / coeff[i]);
    int64_t left = target - reach[i + 1];
    int64_t least = left > 0 ? (left + coeff[i] - 1) / coeff[i] : 0;
    bool unsure = false;
    for (int64_t x = most; x >= least; --x) {
      if (++steps > kBudget) return -1;
      int found = solve(i + 1, target - x * coeff[i]);
      if (found == 1) return 1;
      unsure |= found < 0;
    }
    return unsure ? -1 : 0;
  }
};

bool same_view(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.element != b.element || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i]) return false;
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

// The bytes that a view may reach, or their places modulo a distance; a range that wraps around has a second, `tail`.
struct Range {
  intptr_t begin, end;
  int mark;
  bool wraps, tail;
};

using Meet = std::function<bool(int, int)>;

// The pairs of ranges that share a place, one of the two written.
bool sweep(std::vector<Range>& ranges, const std::vector<Mark>& marks, const Meet& meet) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> open[2];  // ranges that are not over yet: of marks that are only read, and of written ones
  for (const Range& r : ranges) {
    const bool written = marks[r.mark].written;
    for (int kind = !written; kind < 2; ++kind) {
      std::erase_if(open[kind], [&](const Range& other) { return other.end <= r.begin; });
      for (const Range& other : open[kind]) {
        // Two that wrap around meet at the end, too: once is enough.
        if (other.mark == r.mark || ((other.tail || r.tail) && other.wraps && r.wraps)) continue;
        if (meet(marks[other.mark].id, marks[r.mark].id)) return true;
      }
    }
    open[written].push_back(r);
  }
  return false;
}

// The distance that all views with more than one element step by in their longest steps, or 0.
int64_t common_step(const Range* first, const Range* last, const std::vector<Mark>& marks) {
  int64_t step = 0;
  for (const Range* r = first; r != last; ++r) {
    const TensorView& t = *marks[r->mark].view;
    int64_t longest = 0;
    for (int i = 0; i < t.rank; ++i)
      if (t.shape[i] > 1) longest = std::max<int64_t>(longest, std::abs(t.strides[i]) * size_of(t.element));
    step = std::gcd(step, longest);
  }
  return step;
}

// A group of ranges that hang together, at their places modulo the distance that they have in common.
bool sweep_places(const Range* first, const Range* last, const std::vector<Mark>& marks, const Meet& meet) {
  const int64_t step = common_step(first, last, marks);
  std::vector<Range> places(first, last);
  if (step == 0) return sweep(places, marks, meet);
  const int n = static_cast<int>(places.size());
  for (int k = 0; k < n; ++k) {
    const TensorView& t = *marks[places[k].mark].view;
    const int64_t size = size_of(t.element);
    int64_t length = size;
    for (int i = 0; i < t.rank; ++i)
      if (const int64_t stride = std::abs(t.strides[i]) * size; stride % step) length += (t.shape[i] - 1) * stride;
    const int64_t begin = (places[k].begin % step + step) % step, end = begin + std::min(length, step);
    places[k] = {begin, std::min(end, step), places[k].mark, end > step, false};
    if (end > step) places.push_back({0, end - step, places[k].mark, true, true});
  }
  return sweep(places, marks, meet);
}

Overlap verdict(int found) { return found == 1 ? Overlap::Partial : found == 0 ? Overlap::None : Overlap::Undecided; }

}  // namespace

Extent extent(const TensorView& t) {
  intptr_t low = reinterpret_cast<intptr_t>(t.data), high = low;
  int64_t size = size_of(t.element);
  for (int i = 0; i < t.rank; ++i) {
    if (t.shape[i] == 0) return {low, low};
    int64_t span = (t.shape[i] - 1) * t.strides[i] * size;
    (span < 0 ? low : high) += span;
  }
  return {low, high + size};
}

bool addressable(const TensorView& t) {
  constexpr __int128 kMost = __int128{1} << 62;
  __int128 low = reinterpret_cast<intptr_t>(t.data), high = low, count = size_of(t.element);
  for (int i = 0; i < t.rank; ++i)
    if (t.shape[i] == 0) return true;
  for (int i = 0; i < t.rank; ++i) {
    count *= t.shape[i];
    // Below 2^63 * 2^63 * 16, and checked at each step.
    __int128 span = __int128{t.shape[i] - 1} * t.strides[i];
    if (count > kMost || span > kMost || span < -kMost) return false;
    (span < 0 ? low : high) += span * size_of(t.element);
    if (low < -kMost || high > kMost) return false;
  }
  return true;
}

bool each_meeting(std::vector<Mark> marks, const Meet& meet) {
  std::vector<Range> ranges;
  ranges.reserve(marks.size());
  for (int k = 0; k < static_cast<int>(marks.size()); ++k)
    if (const Extent e = extent(*marks[k].view); e.begin != e.end) ranges.push_back({e.begin, e.end, k, false, false});
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t first = 0, last; first < ranges.size(); first = last) {
    intptr_t end = ranges[first].end;
    bool written = marks[ranges[first].mark].written;
    for (last = first + 1; last < ranges.size() && ranges[last].begin < end; ++last) {
      end = std::max(end, ranges[last].end);
      written |= marks[ranges[last].mark].written;
    }
    if (last - first > 1 && written && sweep_places(&ranges[first], &ranges[0] + last, marks, meet)) return true;
  }
  return false;
}

Overlap overlap(const TensorView& a, const TensorView& b) {
  Extent ea = extent(a), eb = extent(b);
  if (ea.begin == ea.end || eb.begin == eb.end || ea.end <= eb.begin || eb.end <= ea.begin) return Overlap::None;
  if (same_view(a, b)) return Overlap::Identical;
  // Count a's index upward and b's downward, so that every coefficient is positive; single bytes are two more terms.
  Equation eq;
  for (const TensorView* t : {&a, &b}) {
    for (int i = 0; i < t->rank; ++i) eq.add(std::abs(t->strides[i]) * size_of(t->element), t->shape[i] - 1);
  }
  eq.add(1, size_of(a.element) - 1);
  eq.add(1, size_of(b.element) - 1);
  eq.prepare();
  return verdict(eq.solve(0, eb.end - 1 - ea.begin));
}

Overlap self_overlap(const TensorView& t) {
  struct Step {
    int64_t stride, count;
  } steps[kMaxRank];
  int n = 0;
  for (int i = 0; i < t.rank; ++i)
    if (t.shape[i] == 0) return Overlap::None;
  for (int i = 0; i < t.rank; ++i) {
    if (t.shape[i] == 1) continue;
    if (t.strides[i] == 0) return Overlap::Partial;
    Step step{std::abs(t.strides[i]), t.shape[i] - 1};
    int at = n++;
    for (; at > 0 && steps[at - 1].stride > step.stride; --at) steps[at] = steps[at - 1];
    steps[at] = step;
  }
  int64_t reach = 0;
  bool nested = true;
  for (int i = 0; i < n; ++i) {
    nested &= steps[i].stride > reach;
    reach += steps[i].stride * steps[i].count;
  }
  if (nested) return Overlap::None;
  // Two indices collide when a difference vector d, |d_k| <= count_k, not zero, has sum d_k * stride_k = 0. Fix the
  // first non-zero difference to be positive in dimension k and shift the others by their count.
  bool unsure = false;
  for (int k = 0; k < n; ++k) {
    Equation eq;
    int64_t target = -steps[k].stride;
    eq.add(steps[k].stride, steps[k].count - 1);
    for (int j = k + 1; j < n; ++j) {
      eq.add(steps[j].stride, 2 * steps[j].count);
      target += steps[j].stride * steps[j].count;
    }
    eq.prepare();
    int found = eq.solve(0, target);
    if (found == 1) return Overlap::Partial;
    unsure |= found < 0;
  }
  return unsure ? Overlap::Undecided : Overlap::None;
}

}  // namespace baracuda
