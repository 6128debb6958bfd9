// Launches rms_norm_rope on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/rope/simt_norm.h"
#include "ops/rope/skus.h"
#include "simt/fold_launch.h"
#include "simt/space_launch.h"

namespace baracuda::rope {

// Where the rows of a sequence find their positions and, for a fault, the numbers of these.
struct SequencePlaces {
  Operand at, number;

  SequencePlaces(const IterationSpace& rows, const TensorView& positions) {
    const int seq = rows.rank - 1;
    number.strides[seq] = rows.shape[seq] == 1 ? 0 : 1;
    at = number;
    if (!positions.present()) return;
    auto stride = [&](int d) { return positions.shape[d] == 1 ? 0 : positions.strides[d]; };
    at.strides[seq] = stride(positions.rank - 1);
    if (positions.rank == 2) {
      at.strides[0] = stride(0);
      number.strides[0] = rows.shape[0] == 1 ? 0 : rows.shape[seq];
    }
  }
};

// A position that is known now is refused before anything is launched.
// `tables`: where cos stands.
inline Status check_start(const Launch& launch, const Scalar& start, int64_t limit, int64_t seq, int tables,
                          const TensorView& positions) {
  if (positions.present() || start.data) return Status::Ok;
  const int64_t first = start.as_i64();
  if (first >= 0 && first <= limit - seq) return Status::Ok;
  const int64_t bad = first < 0 || first >= limit ? 0 : limit - first;
  if (launch.failure) *launch.failure = {tables, bad, first + bad, limit};
  return Status::IndexOutOfRange;
}

class NormRotateLaunch {
 public:
  // rstd may be absent.
  template <class Args>
  NormRotateLaunch(const Launch& launch, Args, const TensorView& out)
      : launch_(launch),
        rows_(simt::leading(launch[Args::x])),
        tables_(Args::cos),
        positions_(launch[Args::positions]),
        start_(launch.scalars[Args::position]) {
    const NormRopeAttrs attrs = attributes<NormRopeAttrs>(launch);
    const TensorView &x = launch[Args::x], &weight = launch[Args::weight], &rstd = launch[Args::rstd];
    const TensorView &cos = launch[Args::cos], &sin = launch[Args::sin];
    const SequencePlaces places(rows_, positions_);
    const Operand none;
    tensors_ = {simt::leading_operand(x),
                simt::leading_operand(out),
                none,
                rstd.present() ? simt::leading_operand(rstd) : none,
                places.at,
                places.number};
    p_.x = x.data, p_.out = out.data, p_.rstd = rstd.present() ? rstd.data : nullptr;
    p_.weight = weight.present() ? weight.data : nullptr;
    p_.weight_column = weight.present() ? simt::last_stride(weight) : 0;
    p_.x_column = simt::last_stride(x), p_.out_column = simt::last_stride(out);
    p_.cos = cos.data, p_.cos_row = cos.strides[0], p_.cos_column = simt::last_stride(cos);
    p_.sin = sin.data, p_.sin_row = sin.strides[0], p_.sin_column = simt::last_stride(sin);
    p_.cos_element = static_cast<int32_t>(cos.element), p_.sin_element = static_cast<int32_t>(sin.element);
    p_.positions = positions_.present() ? positions_.data : nullptr;
    p_.positions_element = static_cast<int32_t>(positions_.element);
    p_.start = simt::number_of(start_);
    p_.columns = x.shape[x.rank - 1];
    p_.pairs = attrs.rotary_dim / 2, p_.limit = cos.shape[0];
    p_.interleaved = attrs.interleaved != 0;
    p_.fault = simt::fault_of(launch), p_.row = launch.row;
    p_.tensor = positions_.present() ? Args::positions : Args::cos;
    offset_ = attrs.weight_offset;
  }

  Status forward(const Scalar& eps) {
    p_.eps = simt::number_of(eps);
    return run([&](auto t) { return rows<NormRotateForward<decltype(t)>>(); });
  }

  // The sums of weights' gradients come first: dx may be dy or x.
  Status backward(const TensorView& dy, const TensorView& dweight) {
    p_.dy = dy.data, p_.dy_column = simt::last_stride(dy);
    tensors_[NormParams::kDy] = simt::leading_operand(dy);
    const bool sums = dweight.present();
    return run(
        [&](auto t) {
          using T = decltype(t);
          Status status = sums ? terms<T>(dweight) : Status::Ok;
          return status == Status::Ok ? rows<NormRotateBack<T>>() : status;
        },
        sums);
  }

 private:
  template <class F>
  Status run(F&& f, bool without_rows = false) {
    const bool empty = rows_.numel() == 0;
    if (p_.columns == 0 || (empty && !without_rows)) return Status::Ok;
    if (!empty) {
      const int64_t seq = rows_.shape[rows_.rank - 1];
      const Status status = check_start(launch_, start_, p_.limit, seq, tables_, positions_);
      if (status != Status::Ok) return status;
    }
    p_.space = simt::space_over(rows_, tensors_);
    return simt::with_float(launch_.element, [&](auto t) {
      using C = simt::ComputeOf<decltype(t)>;
      p_.per_column = simt::bits_of(static_cast<C>(1.0 / static_cast<double>(p_.columns)));
      // Without an offset -0, which changes no weight.
      p_.weight_offset = simt::bits_of(static_cast<C>(offset_ == 0 ? -0.0 : offset_));
      return f(t);
    });
  }

  template <class Body>
  Status rows() {
    if (p_.space.count == 0) return Status::Ok;
    return simt::submit<Body>(launch_, {simt::blocks_for(p_.space.count, Body::kThreads / 32)}, Body::kThreads, p_);
  }

  template <class T>
  Status terms(const TensorView& dweight) {
    using C = simt::ComputeOf<T>;
    using Body = NormRotateTerms<T>;
    const int64_t count = p_.space.count, strips = simt_strips(count);
    p_.per = strips ? (count + strips - 1) / strips : 0;
    p_.partial = launch_.workspace;
    if (strips) {
      const int64_t blocks = (p_.columns - p_.pairs + Body::kThreads - 1) / Body::kThreads;
      const Status status = simt::submit<Body>(launch_, {blocks, strips}, Body::kThreads, p_);
      if (status != Status::Ok) return status;
    }
    C* partial = static_cast<C*>(launch_.workspace);
    return simt::fold_strips<C>(launch_, partial, strips, p_.columns, dweight, partial + strips * p_.columns);
  }

  const Launch& launch_;
  IterationSpace rows_;
  int tables_;
  const TensorView& positions_;
  const Scalar& start_;
  std::array<Operand, NormParams::kTensors> tensors_;
  NormParams p_{};
  double offset_ = 0;
};

}  // namespace baracuda::rope

namespace baracuda {

template <>
struct SimtKernel<rope::NormRotate> {
  template <class L>
  static Status run(const L& launch) {
    using Args = rope::NormRopeArgs;
    return rope::NormRotateLaunch(launch, Args(), launch[Args::y]).forward(launch.scalars[Args::eps]);
  }
};

template <>
struct SimtKernel<rope::NormRotateBackward> {
  template <class L>
  static Status run(const L& launch) {
    using Args = rope::NormRopeBackwardArgs;
    rope::NormRotateLaunch rows(launch, Args(), launch[Args::dx]);
    return rows.backward(launch[Args::dy], launch[Args::dweight]);
  }
};

}  // namespace baracuda
