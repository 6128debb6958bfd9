// Gamma, beta, Poisson and binomial numbers on the CPU, one after another; all that they are drawn from is checked
// first.
#include <atomic>
#include <bit>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/rows.h"
#include "host/runs.h"
#include "ops/random/kernels.h"
#include "ops/random/rejection.h"

namespace baracuda::random {
namespace {

inline constexpr int64_t kDrawn = 256;  // elements that are read and written together

// The place of the first value that nothing is drawn from.
template <class C>
bool check_values(const Launch& launch, int tensor, bool unit) {
  const TensorView& given = launch[tensor];
  const MergedView view(given);
  std::atomic<int64_t> first{INT64_MAX};
  parallel_for(given.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    C values[kDrawn];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kDrawn, end - begin);
      load_span(view, begin, n, values);
      for (int64_t i = 0; i < n; ++i) {
        if (takes(values[i], unit)) continue;
        int64_t seen = first.load(std::memory_order_relaxed);
        while (begin + i < seen && !first.compare_exchange_weak(seen, begin + i)) continue;
        return;
      }
    }
  });
  const int64_t at = first.load();
  if (at == INT64_MAX) return true;
  double value;
  load_span(view, at, 1, &value);
  const ValueRange range = unit ? ValueRange::Unit : ValueRange::NotNegative;
  if (launch.failure) *launch.failure = {tensor, at, std::bit_cast<int64_t>(value), static_cast<int64_t>(range)};
  return false;
}

template <class Draw, class C>
Status draw(const Launch& launch) {
  constexpr int kInputs = Draw::kInputs;
  for (int i = 0; i < kInputs; ++i)
    if (!check_values<C>(launch, i, Draw::kUnits >> i & 1)) return Status::ValueOutOfRange;
  const TensorView& y = launch[kInputs];
  const uint64_t seed = launch.scalars[GammaArgs::seed].as_u64(), offset = launch.scalars[GammaArgs::offset].as_u64();
  const MergedView to(y), first(launch[0]), second(launch[kInputs - 1]);
  parallel_for(y.numel(), kDrawn, [&](int64_t begin, int64_t end) {
    C given[2][kDrawn], out[kDrawn];
    load_span(first, begin, end - begin, given[0]), load_span(second, begin, end - begin, given[1]);
    for (int64_t i = begin; i < end; ++i) {
      const C in[] = {given[0][i - begin], given[1][i - begin]};
      Tries t{seed, offset + static_cast<uint64_t>(i), 0, 0};
      out[i - begin] = Draw::of(in, t);
    }
    store_span(to, begin, end - begin, out);
  });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::random

namespace baracuda {

template <class Draw>
Status CpuKernel<random::Rejection<Draw>>::run(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) { return random::draw<Draw, decltype(c)>(launch); });
}
template struct CpuKernel<random::Rejection<random::GammaDraw>>;
template struct CpuKernel<random::Rejection<random::BetaDraw>>;
template struct CpuKernel<random::Rejection<random::PoissonDraw>>;
template struct CpuKernel<random::Rejection<random::BinomialDraw>>;

}  // namespace baracuda
