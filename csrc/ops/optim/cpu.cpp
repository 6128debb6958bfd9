// AdamW on the CPU: one parallel region over fixed chunks of the whole list, so that a thousand small tensors cost no
// more than a large one.
#include "backends/cpu/family.h"
#include "backends/cpu/parallel.h"
#include "core/runs.h"
#include "ops/optim/scalars.h"
#include "ops/optim/skus.h"

namespace baracuda::optim {
namespace {

enum { kGrads, kParams, kExpAvgs, kExpAvgSqs };
constexpr int64_t kChunk = 32768;  // elements
constexpr int64_t kTile = 1024;

// Finds the tensor of a list that holds an element counted over the whole list; some starts are kept, the rest is
// walked.
class ListIndex {
 public:
  ListIndex(const TensorView* tensors, int count) : tensors_(tensors), every_((count + kMarks - 1) / kMarks) {
    for (int t = 0; t < count; ++t) {
      if (t % every_ == 0) marks_[used_++] = total_;
      total_ += tensors[t].numel();
    }
  }
  int64_t total() const { return total_; }

  struct Place {
    int tensor;
    int64_t element;  // within that tensor
  };
  Place find(int64_t element) const {
    int low = 0, high = used_;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (marks_[middle] <= element ? low : high) = middle;
    }
    Place place{low * every_, element - marks_[low]};
    for (int64_t n; place.element >= (n = tensors_[place.tensor].numel()); ++place.tensor) place.element -= n;
    return place;
  }

 private:
  static constexpr int kMarks = 512;
  const TensorView* tensors_;
  int every_;
  int used_ = 0;
  int64_t total_ = 0;
  int64_t marks_[kMarks];
};

template <class T>
void update(const AdamWStep<T>& step, const T* g, T* p, T* m, T* v, int64_t n) {
  const AdamWStep<T> s = step;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T pi = p[i], mi = m[i], vi = v[i];
    adamw(s, g[i], pi, mi, vi);
    p[i] = pi, m[i] = mi, v[i] = vi;
  }
}

// A stretch of one tensor in compute type: the tensor's own memory where that is possible, else a buffer.
template <class T>
class Stretch {
 public:
  explicit Stretch(const TensorView& t)
      : view_(t), direct_(view_.contiguous() && t.element == (sizeof(T) == 8 ? Element::F64 : Element::F32)) {}
  bool direct() const { return direct_; }
  T* get(int64_t begin, int64_t n) {
    if (direct_) return reinterpret_cast<T*>(view_.at(begin));
    load_span(view_, begin, n, buffer_);
    return buffer_;
  }
  void put(int64_t begin, int64_t n) {
    if (!direct_) store_span(view_, begin, n, buffer_);
  }

 private:
  MergedView view_;
  bool direct_;
  alignas(64) T buffer_[kTile];
};

template <class T>
void update_part(const Launch& launch, int tensor, const AdamWStep<T>& step, int64_t begin, int64_t end) {
  auto view = [&](int param) -> const TensorView& { return launch.tensors[launch.first[param] + tensor]; };
  Stretch<T> g(view(kGrads)), p(view(kParams)), m(view(kExpAvgs)), v(view(kExpAvgSqs));
  const bool direct = g.direct() && p.direct() && m.direct() && v.direct();
  for (int64_t n; begin < end; begin += n) {
    n = direct || end - begin < kTile ? end - begin : kTile;
    update(step, g.get(begin, n), p.get(begin, n), m.get(begin, n), v.get(begin, n), n);
    p.put(begin, n), m.put(begin, n), v.put(begin, n);
  }
}

template <class T>
Status run_adamw(const Launch& launch) {
  const AdamWScalars scalars(launch.scalars);
  if (const int k = scalars.wrong(); k >= 0) {
    if (launch.failure) *launch.failure = {-1, k, 0, 0};
    return Status::InvalidProblem;
  }
  const AdamWStep<T> step = make_step<T>(scalars, attributes<AdamWAttrs>(launch).maximize != 0);
  const TensorView* params = launch.tensors + launch.first[kParams];
  const ListIndex index(params, launch.count(kParams));
  parallel_for(index.total(), kChunk, [&](int64_t begin, int64_t end) {
    ListIndex::Place at = index.find(begin);
    while (begin < end) {
      const int64_t left = params[at.tensor].numel() - at.element;
      const int64_t n = left < end - begin ? left : end - begin;
      if (n > 0) update_part(launch, at.tensor, step, at.element, at.element + n);
      begin += n;
      at = {at.tensor + 1, 0};
    }
  });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::optim

namespace baracuda {

template <>
struct CpuKernel<optim::AdamW> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? optim::run_adamw<double>(launch) : optim::run_adamw<float>(launch);
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(optim)
