// Launches convolutions and their gradients on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/conv/planes.h"
#include "ops/conv/simt.h"
#include "ops/conv/skus.h"
#include "simt/space_launch.h"

namespace baracuda::conv {

// Dimensions that several tensors walk, in the order in which they are added.
struct Walk {
  IterationSpace space;
  std::array<Operand, kRight> steps{};

  // How far a step moves two tensors, and which position it changes.
  void add(int64_t size, int64_t first, int64_t second, int position = -1, int64_t by = 0) {
    const int d = space.rank++;
    space.shape[d] = size;
    steps[0].strides[d] = first, steps[1].strides[d] = second;
    if (position >= 0) steps[2 + position].strides[d] = by;
  }
  simt::Space<kRight> made() const { return simt::space_over(space, steps); }
};

// What is gathered from `read`.
inline GatherParams reading(const Pass& p, const Planes& read) {
  GatherParams g{};
  g.b = read.data;
  for (int i = 0; i < kAxes; ++i) {
    g.size[i] = read.size[i], g.begin[i] = p.line[i].begin;
    g.begin_b += p.line[i].begin * read.stride[i];
  }
  return g;
}

inline Status submit_gather(const Launch& launch, int64_t groups, GatherParams& g) {
  constexpr int64_t kTile = Gather<float>::kTile;
  g.row_tiles = (g.rows + kTile - 1) / kTile, g.column_tiles = (g.columns.count + kTile - 1) / kTile;
  const int64_t blocks = groups * g.row_tiles * g.column_tiles;
  if (blocks == 0) return Status::Ok;
  if (blocks > simt::kMaxGridX) return Status::Unsupported;
  return simt::with_float(launch.element, [&](auto t) {
    using Body = Gather<decltype(t)>;
    return simt::submit<Body>(launch, {blocks}, Body::kThreads, g);
  });
}

// made = a pass from `read`.
inline Status submit_pass(const Launch& launch, const Conv& c, Makes makes, const Pass& p, const Planes& read,
                          const Planes& weight, const TensorView& bias, const Planes& made) {
  const bool result = makes == Makes::Result;
  const Element e = launch.element;
  GatherParams g = reading(p, read);
  Walk terms, columns;
  int64_t to = 0, tap = 0;
  terms.add(read_channels(c, makes), result ? weight.channel : weight.outer, read.channel);
  columns.add(c.n, made.outer, read.outer);
  for (int i = 0; i < kAxes; ++i) {
    const Line& l = p.line[i];
    terms.add(l.taps, l.tap_step * weight.stride[i], l.dilate * read.stride[i], i, l.dilate);
    columns.add(l.count, l.step * made.stride[i], l.move * read.stride[i], i, l.move);
    to += l.first * made.stride[i], tap += l.tap * weight.stride[i];
  }
  g.terms = terms.made(), g.columns = columns.made();
  g.a = weight.data + tap * size_of(e);
  g.out = made.data + to * size_of(e);
  g.rows = made_channels(c, makes);
  g.a_row = result ? weight.outer : weight.channel, g.out_row = made.channel;
  g.a_group = c.outs * weight.outer, g.b_group = read_channels(c, makes) * read.channel;
  g.out_group = g.rows * made.channel;
  if (bias.present()) g.bias = bias.data, g.bias_step = bias.strides[0];
  return submit_gather(launch, c.groups, g);
}

inline Status run_pass(const Launch& launch, const Conv& c, Makes makes, const TensorView& read,
                       const TensorView& weight, const TensorView& bias, const TensorView& made) {
  if (made.numel() == 0) return Status::Ok;
  const Planes x(read), w(weight), y(made);
  const int64_t passes = passes_of(c, makes);
  for (int64_t i = 0; i < passes; ++i) {
    const Pass p = pass_of(c, makes, i);
    if (p.empty()) continue;
    const Status status = submit_pass(launch, c, makes, p, x, w, bias, y);
    if (status != Status::Ok) return status;
  }
  return Status::Ok;
}

// dweight: sums over images and places of result times image, for each channel of the result and each tap.
inline Status run_filter(const Launch& launch, const Conv& c, const TensorView& image, const TensorView& result,
                         const TensorView& dweight) {
  const Planes x(image), dy(result), dw(dweight);
  const Pass p = pass_of(c, Makes::Result, 0);
  GatherParams g = reading(p, x);
  g.a = dy.data, g.out = dw.data;
  Walk terms, columns;
  terms.add(c.n, dy.outer, x.outer);
  columns.add(c.ins, dw.channel, x.channel);
  for (int i = 0; i < kAxes; ++i) {
    const Line& l = p.line[i];
    terms.add(l.count, dy.stride[i], l.move * x.stride[i], i, l.move);
    columns.add(l.taps, dw.stride[i], l.dilate * x.stride[i], i, l.dilate);
  }
  g.terms = terms.made(), g.columns = columns.made();
  g.rows = c.outs, g.a_row = dy.channel, g.out_row = dw.outer;
  g.a_group = c.outs * dy.channel, g.b_group = c.ins * x.channel, g.out_group = c.outs * dw.outer;
  return submit_gather(launch, c.groups, g);
}

inline Status run_bias(const Launch& launch, const TensorView& dy, const TensorView& dbias) {
  const Planes y(dy);
  ChannelParams p{};
  p.dy = dy.data, p.dbias = dbias.data, p.channel = y.channel, p.step = dbias.shape[0] == 1 ? 0 : dbias.strides[0];
  IterationSpace space;
  Operand steps{};
  const int64_t sizes[] = {dy.shape[0], y.size[0], y.size[1], y.size[2]};
  const int64_t strides[] = {y.outer, y.stride[0], y.stride[1], y.stride[2]};
  space.rank = 4;
  std::copy_n(sizes, 4, space.shape), std::copy_n(strides, 4, steps.strides);
  p.places = simt::space_over<1>(space, {steps});
  return simt::with_float(launch.element, [&](auto t) {
    using Body = ChannelSum<decltype(t)>;
    return simt::submit<Body>(launch, {dbias.shape[0]}, Body::kThreads, p);
  });
}

}  // namespace baracuda::conv

namespace baracuda {

template <conv::Makes kMakes>
struct SimtKernel<conv::Forward<kMakes>> {
  static Status run(const Launch& launch) {
    using Args = conv::ConvArgs;
    const auto of = [&](int i) -> const TensorView& { return launch[i]; };
    const conv::Conv c = conv::forward_conv<kMakes>(attributes<conv::ConvAttrs>(launch), of);
    return conv::run_pass(launch, c, kMakes, launch[Args::x], launch[Args::weight], launch[Args::bias],
                          launch[Args::y]);
  }
};

template <conv::Makes kMakes>
struct SimtKernel<conv::Backward<kMakes>> {
  static Status run(const Launch& launch) {
    using Args = conv::ConvBackwardArgs;
    const auto of = [&](int i) -> const TensorView& { return launch[i]; };
    const conv::Conv c = conv::backward_conv<kMakes>(attributes<conv::ConvAttrs>(launch), of);
    const TensorView &dy = launch[Args::dy], &x = launch[Args::x];
    TensorView no_bias;
    no_bias.rank = -1;
    Status status = Status::Ok;
    if (launch[Args::dx].present())
      status = conv::run_pass(launch, c, conv::other(kMakes), dy, launch[Args::weight], no_bias, launch[Args::dx]);
    const bool result = kMakes == conv::Makes::Result;
    if (status == Status::Ok && launch[Args::dweight].present())
      status = conv::run_filter(launch, c, result ? x : dy, result ? dy : x, launch[Args::dweight]);
    if (status == Status::Ok && launch[Args::dbias].present()) status = conv::run_bias(launch, dy, launch[Args::dbias]);
    return status;
  }
};

}  // namespace baracuda
