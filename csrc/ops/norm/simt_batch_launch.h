// Launches the norms of channels over a batch on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/norm/simt_batch.h"
#include "ops/norm/skus.h"
#include "simt/rows_launch.h"

namespace baracuda::norm {

// How a call's tensors lie over the dimensions of x.
struct ChannelLayout {
  IterationSpace space;
  uint32_t kept;  // dimensions that pick a row
  int64_t groups, channels;
  bool training;

  ChannelLayout(const Launch& launch, const TensorView& x) : space(space_of(x)) {
    const auto attrs = attributes<BatchNormAttrs>(launch);
    kept = attrs.per_instance ? 3u : 2u;
    groups = attrs.per_instance ? x.shape[0] : 1, channels = x.shape[1];
    training = attrs.training;
  }
  Operand of(const TensorView& t) const { return output_operand(t, space); }
  // One value for each channel, or for each image's.
  Operand beside(const TensorView& t) const {
    Operand o = t.present() ? Operand{t.data, t.element, {}} : Operand{};
    for (int d = 0; d < t.rank; ++d) o.strides[d + 2 - t.rank] = t.shape[d] == 1 ? 0 : t.strides[d];
    return o;
  }
  template <class C>
  void put(ChannelParams<C>& p, int k, const TensorView& t) const {
    const Operand o = beside(t);
    p.data[k] = o.data, p.element[k] = static_cast<int32_t>(o.element);
    p.step[k] = o.strides[1], p.group_step[k] = o.strides[0];
  }
};

// Strips of rows, which depend on sizes alone, and the workspace.
template <class T>
class BatchLaunch {
 public:
  using C = simt::ComputeOf<T>;
  using Rows = simt::StridedRows<T>;

  BatchLaunch(const Launch& launch, const ChannelLayout& layout, const Operand (&tensors)[kBatchTensors])
      : launch_(launch), layout_(layout), p_{} {
    p_.s = simt::row_space(layout.space, ~layout.kept, tensors);
    grid_ = simt::teams(p_.s, 16, 512, tensors[kBatchX].data ? kBatchX : kBatchDy);
    const int64_t rows = p_.s.rows, length = p_.s.length;
    const int64_t most = std::min(kBatchStrips, rows ? kBatchTeams / rows : 1), shortest = p_.s.columns ? 256 : 4096;
    const int64_t wanted = std::max<int64_t>(1, std::min(most, length / shortest));
    p_.per = ((length + wanted - 1) / wanted + 7) / 8 * 8;
    strips_ = p_.per ? (length + p_.per - 1) / p_.per : 0;
    rows_ = static_cast<C*>(launch.workspace);
    p_.sums = rows_ + 2 * rows;
  }

  // One Body for all strips of all rows.
  template <template <class> class Body>
  Status rows(bool with_terms) {
    p_.rows = with_terms ? rows_ : nullptr;
    return simt::submit<Body<Rows>>(launch_, {grid_.blocks, strips_}, grid_.threads, p_);
  }
  // One Body for all channels; `more` adds its tensors and numbers.
  template <template <class> class Body, class More>
  Status channels(More&& more) {
    ChannelParams<C> p{};
    p.groups = layout_.groups, p.channels = layout_.channels, p.length = p_.s.length, p.per = p_.per;
    p.strips = strips_, p.sums = p_.sums, p.rows = rows_, p.training = layout_.training;
    more(p);
    return simt::submit<Body<C>>(launch_, {simt::blocks_for(p.channels, 256)}, 256, p);
  }

 private:
  const Launch& launch_;
  const ChannelLayout& layout_;
  BatchParams<C> p_;
  simt::TeamGrid grid_;
  int64_t strips_;
  C* rows_;
};

template <class T>
Status batch_forward(const Launch& launch, const ChannelLayout& layout) {
  using Args = BatchNormArgs;
  const Operand tensors[] = {layout.of(launch[Args::x]),        {}, layout.beside(launch[Args::weight]),
                             layout.beside(launch[Args::bias]), {}, {},
                             layout.of(launch[Args::y])};
  BatchLaunch<T> run(launch, layout, tensors);
  Status status = layout.training ? run.template rows<BatchMoments>(false) : Status::Ok;
  if (status == Status::Ok)
    status = run.template channels<BatchStatistics>([&](auto& p) {
      p.eps = simt::number_of(launch.scalars[Args::eps]);
      if (launch[Args::next_mean].present()) p.momentum = simt::number_of(launch.scalars[Args::momentum]);
      layout.put(p, kOldMean, launch[Args::running_mean]), layout.put(p, kOldVar, launch[Args::running_var]);
      layout.put(p, kNewMean, launch[Args::next_mean]), layout.put(p, kNewVar, launch[Args::next_var]);
      layout.put(p, kSavedBatchMean, launch[Args::mean]), layout.put(p, kSavedBatchRstd, launch[Args::rstd]);
    });
  return status == Status::Ok ? run.template rows<BatchScale>(true) : status;
}

template <class T>
Status batch_backward(const Launch& launch, const ChannelLayout& layout) {
  using Args = BatchNormBackwardArgs;
  const Operand tensors[] = {
      layout.of(launch[Args::x]),        layout.of(launch[Args::dy]),       layout.beside(launch[Args::weight]), {},
      layout.beside(launch[Args::mean]), layout.beside(launch[Args::rstd]), layout.of(launch[Args::dx])};
  BatchLaunch<T> run(launch, layout, tensors);
  Status status = Status::Ok;
  if (layout.training || launch[Args::dweight].present() || launch[Args::dbias].present()) {
    status = run.template rows<BatchTerms>(false);
    if (status == Status::Ok)
      status = run.template channels<BatchGradients>([&](auto& p) {
        layout.put(p, kNewMean, launch[Args::dbias]), layout.put(p, kNewVar, launch[Args::dweight]);
      });
  }
  return status == Status::Ok ? run.template rows<BatchSpread>(layout.training) : status;
}

}  // namespace baracuda::norm

namespace baracuda {

template <>
inline constexpr int kSimtSlice<norm::BatchNorm> = 3;
template <>
inline constexpr int kSimtSlice<norm::Backward<norm::BatchNorm>> = 3;

template <>
struct SimtKernel<norm::BatchNorm> {
  template <class L>
  static Status run(const L& launch) {
    const norm::ChannelLayout layout(launch, launch[norm::BatchNormArgs::x]);
    return simt::with_float(launch.element, [&](auto t) { return norm::batch_forward<decltype(t)>(launch, layout); });
  }
};

template <>
struct SimtKernel<norm::Backward<norm::BatchNorm>> {
  template <class L>
  static Status run(const L& launch) {
    const norm::ChannelLayout layout(launch, launch[norm::BatchNormBackwardArgs::x]);
    return simt::with_float(launch.element, [&](auto t) { return norm::batch_backward<decltype(t)>(launch, layout); });
  }
};

}  // namespace baracuda
