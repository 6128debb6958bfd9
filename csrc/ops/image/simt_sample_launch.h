// Launches sampling by a grid and its gradients on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/image/simt_sample.h"
#include "ops/image/simt_types.h"
#include "ops/image/skus.h"
#include "simt/sort_launch.h"
#include "simt/space_launch.h"

namespace baracuda::image {

// The index space of images, perhaps channels, and results or places along kAxes axes; strides are added by tensor.
class SampleSpace {
 public:
  SampleSpace(const TensorView& sized, bool channels) : channels_(channels) {
    const Planes p(sized);
    space_.shape[space_.rank++] = sized.shape[0];
    if (channels) space_.shape[space_.rank++] = sized.shape[1];
    for (const int64_t n : p.size) space_.shape[space_.rank++] = n;
  }
  Operand operand(int64_t outer, int64_t channel, const int64_t* axes) const {
    Operand o;
    int d = 0;
    o.strides[d++] = outer;
    if (channels_) o.strides[d++] = channel;
    for (int i = 0; i < kAxes; ++i) o.strides[d++] = axes ? axes[i] : 0;
    return o;
  }
  Operand operand(const Planes& p) const { return operand(p.outer, p.channel, p.stride); }
  Operand operand(const Grid& g) const { return operand(g.outer, 0, g.stride); }
  const IterationSpace& shape() const { return space_; }

 private:
  IterationSpace space_;
  const bool channels_;
};

template <class C>
class SampleLaunch {
 public:
  SampleLaunch(const Launch& launch, const TensorView& x, const TensorView& grid, const TensorView& y)
      : launch_(launch), x_(x), given_(y), sampling_(sampling_of(launch, x)), image_(x), y_(y), grid_(grid) {
    std::copy_n(sampling_.side, kAxes, p_.side);
    p_.coordinate = grid_.coordinate, p_.axes = sampling_.axes;
    p_.grid = grid_.data, p_.element = static_cast<int32_t>(launch.element);
  }

  Status forward() {
    const SampleSpace space(given_, true);
    p_.space = simt::space_over<kSampleWalked>(
        space.shape(),
        {space.operand(y_), space.operand(image_.outer, image_.channel, nullptr), space.operand(grid_), Operand()});
    std::copy_n(image_.stride, kAxes, p_.step);
    p_.image = image_.data, p_.made = y_.data;
    return submit<SampleImage<C>>();
  }
  Status grids(const TensorView& dgrid) {
    const SampleSpace space(given_, false);
    const Grid made(dgrid);
    p_.space = simt::space_over<kSampleWalked>(
        space.shape(),
        {space.operand(made), space.operand(image_.outer, 0, nullptr), space.operand(grid_), space.operand(y_)});
    std::copy_n(image_.stride, kAxes, p_.step);
    p_.channels = x_.shape[1], p_.image_channel = image_.channel, p_.given_channel = y_.channel;
    p_.image = image_.data, p_.given = y_.data;
    p_.made = const_cast<char*>(made.data), p_.made_coordinate = made.coordinate;
    return submit<SampleGrid<C>>();
  }
  Status images(const TensorView& dx) {
    if (const Status s = clear(dx); s != Status::Ok) return s;
    const SampleSpace space(given_, false);
    const int64_t taps = sampling_.taps(), places = sampling_.places(), channels = x_.shape[1];
    p_.space = simt::space_over<kSampleWalked>(
        space.shape(), {Operand(), space.operand(places, 0, nullptr), space.operand(grid_), Operand()});
    const int64_t count = p_.space.count * taps;
    if (count == 0 || channels == 0) return Status::Ok;
    const int64_t height = sampling_.side[1].size, width = sampling_.side[2].size;
    p_.step[0] = height * width, p_.step[1] = width, p_.step[2] = 1;
    auto* const entries = static_cast<simt::Entry*>(launch_.workspace);
    char* const runs = static_cast<char*>(launch_.workspace) + simt::sort_workspace(count);
    p_.entries = entries, p_.places = places * x_.shape[0];
    p_.weights = runs + simt::runs_workspace(count, channels, 2 * sizeof(C));
    if (const Status s = submit<SampleTaps<C>>(); s != Status::Ok) return s;
    return spread(dx, entries, runs, count, taps);
  }

 private:
  template <class Body>
  Status submit() {
    if (p_.space.count == 0) return Status::Ok;
    return simt::submit<Body>(launch_, {simt::blocks_for(p_.space.count, Body::kThreads)}, Body::kThreads, p_);
  }
  Status clear(const TensorView& dx) {
    const Planes made(dx);
    const SampleSpace space(dx, true);
    p_.space = simt::space_over<kSampleWalked>(space.shape(), {space.operand(made), Operand(), Operand(), Operand()});
    p_.made = made.data;
    return submit<ClearImage<C>>();
  }
  Status spread(const TensorView& dx, simt::Entry* entries, void* runs, int64_t count, int64_t taps) {
    const simt::Entry* sorted = entries;
    if (const Status s = simt::sort_entries(launch_, entries, count, p_.places, &sorted); s != Status::Ok) return s;
    const Planes made(dx);
    const SampleSpace results(given_, false), places(dx, false);
    SpreadTapsParams q{};
    q.sorted = simt::sorted_params(sorted, count, p_.places, dx.shape[1], runs);
    q.given = simt::space_over<1>(results.shape(), {results.operand(y_)});
    q.places = simt::space_over<1>(places.shape(), {places.operand(made)});
    q.taps = taps, q.given_channel = y_.channel, q.made_channel = made.channel;
    q.from = y_.data, q.weights = p_.weights, q.made = made.data, q.element = p_.element;
    return simt::fold_sorted<SpreadTaps<C>>(launch_, q);
  }

  const Launch& launch_;
  const TensorView &x_, &given_;
  const Sampling sampling_;
  const Planes image_, y_;
  const Grid grid_;
  SampleParams p_{};
};

}  // namespace baracuda::image

namespace baracuda {

template <>
struct SimtKernel<image::Sample> {
  static Status run(const Launch& launch) {
    using Args = image::SampleArgs;
    return image::with_sample_type(launch.element, [&](auto c) {
      return image::SampleLaunch<decltype(c)>(launch, launch[Args::x], launch[Args::grid], launch[Args::y]).forward();
    });
  }
};

template <>
struct SimtKernel<image::SampleBackward> {
  static Status run(const Launch& launch) {
    using Args = image::SampleBackwardArgs;
    return image::with_sample_type(launch.element, [&](auto c) {
      using Sampler = image::SampleLaunch<decltype(c)>;
      const TensorView &dy = launch[Args::dy], &x = launch[Args::x], &grid = launch[Args::grid];
      const Status s = Sampler(launch, x, grid, dy).images(launch[Args::dx]);
      return s == Status::Ok ? Sampler(launch, x, grid, dy).grids(launch[Args::dgrid]) : s;
    });
  }
};

}  // namespace baracuda
