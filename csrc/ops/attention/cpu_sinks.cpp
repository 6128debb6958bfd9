// Gradients of sinks on the CPU: what the backward leaves of each row is summed over a head.
#include "ops/attention/cpu.h"
#include "ops/attention/lanes.h"

namespace baracuda::attention {
namespace {

constexpr int64_t kColumns = 256;  // that pass through a buffer at once

// rowsum(dout out).
template <class C>
C row_delta(const SinkProblem& p, int64_t b, int64_t h, int64_t row) {
  C dy[kColumns], y[kColumns], sum = 0;
  const auto read = [&](const Rows4& x, int64_t c, int64_t n, C* to) {
    load<C>(x.element, x.at(b, h, row) + c * x.column * size_of(x.element), x.column, to, n);
  };
  for (int64_t c = 0; c < p.dv; c += kColumns) {
    const int64_t n = std::min(kColumns, p.dv - c);
    read(p.dout, c, n, dy), read(p.out, c, n, y);
    sum += dot(dy, y, n);
  }
  return sum;
}

template <class C>
C gradient(const SinkProblem& p, int64_t h) {
  const C sink = p.sinks.template logit<C>(h);
  double sum = 0;  // over all rows of a batch: they may be many; of an infinite sink its limit
  for (int64_t b = 0; b < p.batch && std::abs(sink) != C(INFINITY); ++b) {
    for (int64_t row = 0; row < p.rows; ++row) {
      C lse;
      load<C>(p.lse.element, p.lse.at(b, h, row), 1, &lse, 1);
      sum += static_cast<double>(math::exp(sink - lse) * row_delta<C>(p, b, h, row));
    }
  }
  return static_cast<C>(0 - sum);
}

template <class C>
void gradients(const SinkProblem& p) {
  parallel_for(p.heads, grain_for(p.batch * p.rows * (p.dv + 16)), [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) p.dsinks.as<C>()[h * p.dsinks.strides[0]] = gradient<C>(p, h);
  });
}

}  // namespace

void sink_gradients(const SinkProblem& p) {
  p.dsinks.element == Element::F64 ? gradients<double>(p) : gradients<float>(p);
}

}  // namespace baracuda::attention
