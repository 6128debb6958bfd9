// Cross-entropy with class indices on the CPU. Rows stay in cache between passes; all targets are checked before the
// first write. Classes may have weights: a target's loss counts as often as its class weighs.
#include "ops/loss/entropy_rows.h"
#include "ops/loss/kernels.h"

namespace baracuda::loss {
namespace {

template <class C>
void forward(const Problems& p, void* workspace) {
  C* losses = static_cast<C*>(workspace);
  const bool brief = in_short_rows(p);
  parallel_for(p.rows, row_grain(p.classes), [&](int64_t begin, int64_t end) {
    const auto put = [&](int64_t r, int64_t t, const RowTerms<C>& terms, const C*) {
      put_loss(p, r, t, terms, losses);
    };
    if (brief) return short_rows<C>(p, begin, end, put);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t t = p.counted_target(r);
      put(r, t, row_terms<C>(p, p.logits_row(r), t, nullptr), nullptr);
    }
  });
  reduce_losses(p, losses);
}

template <class C>
void backward(const Problems& p) {
  if (p.rows == 0) return;
  parallel_for(p.rows, row_grain(p.classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t t = p.counted_target(r);
      if (t < 0)
        clear_row<C>(p, r);
      else
        gradient_row<false, C>(p, r, t, nullptr, get<C>(p.lse, r), row_gradient(p, t, p.share_of<C>(r), C(1)));
    }
  });
}

template <class C>
void fused(const Problems& p, Element element, void* workspace) {
  char* next = static_cast<char*>(workspace);
  C* losses = nullptr;
  if (p.reduction() != Reduction::None) {
    losses = reinterpret_cast<C*>(next);
    next += whole_lines(p.rows * static_cast<int64_t>(sizeof(C)));
  }
  const bool scratch = kHalves.has(element) && p.classes > kRowTile<C> && p.classes <= kLongRow;
  const int64_t strips = std::max<int64_t>(1, strips_of(p.rows)), per = (p.rows + strips - 1) / strips;
  const C share = p.reduction() == Reduction::Mean ? C(1) / static_cast<C>(p.counted) : C(1);
  const bool brief = in_short_rows(p);
  const auto finish = [&](int64_t r, int64_t t, const RowTerms<C>& terms, const C* kept) {
    put_loss(p, r, t, terms, losses);
    put_gradient(p, r, t, terms, share, kept);
  };
  parallel_for(strips, row_grain(p.classes * std::max<int64_t>(1, per)), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      C* own = scratch ? reinterpret_cast<C*>(next + s * whole_lines(p.classes * sizeof(C))) : nullptr;
      const int64_t first = s * per, last = std::min(p.rows, (s + 1) * per);
      if (brief)
        short_rows<C>(p, first, last, finish);
      else
        for (int64_t r = first; r < last; ++r) fused_row(p, r, share, losses, own);
    }
  });
  reduce_losses(p, losses);
}

}  // namespace
}  // namespace baracuda::loss

namespace baracuda {

template <>
struct CpuKernel<loss::CrossEntropy> {
  static Status run(const Launch& launch) {
    loss::Problems p(launch, loss::kForward);
    return p.run(launch, [&](auto c) { loss::forward<decltype(c)>(p, launch.workspace); });
  }
};

template <>
struct CpuKernel<loss::CrossEntropyBackward> {
  static Status run(const Launch& launch) {
    loss::Problems p(launch, loss::kBackward);
    return p.run(launch, [&](auto c) { loss::backward<decltype(c)>(p); });
  }
};

template <>
struct CpuKernel<loss::CrossEntropyFused> {
  static Status run(const Launch& launch) {
    loss::Problems p(launch, loss::kFused);
    return p.run(launch, [&](auto c) { loss::fused<decltype(c)>(p, launch.element, launch.workspace); });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(loss)
