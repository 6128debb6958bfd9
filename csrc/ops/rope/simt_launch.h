// Launches rotary position embeddings on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/rope/simt.h"
#include "ops/rope/simt_norm_launch.h"
#include "ops/rope/simt_table.h"
#include "ops/rope/skus.h"
#include "simt/space_launch.h"

namespace baracuda::rope {

template <class Call>
class RotateLaunch {
  using Args = typename Call::Args;

 public:
  RotateLaunch(const Launch& launch, float sign)
      : launch_(launch),
        attrs_(attributes<RopeAttrs>(launch)),
        rows_(simt::leading(launch[Call::kFrom])),
        pairs_(attrs_.rotary_dim / 2) {
    fill_tensors();
    const TensorView &x = launch[Call::kFrom], &y = launch[Call::kTo];
    const TensorView &cos = launch[Args::cos], &sin = launch[Args::sin], &positions = launch[Args::positions];
    d_ = x.shape[x.rank - 1];
    p_.x = x.data, p_.y = y.data, p_.cos = cos.data, p_.sin = sin.data;
    if (positions.present()) {
      p_.positions = positions.data;
      p_.positions_element = static_cast<int32_t>(positions.element);
    } else {
      p_.start = simt::number_of(launch.scalars[Args::position]);
    }
    p_.x_column = simt::last_stride(x), p_.y_column = simt::last_stride(y);
    p_.cos_row = cos.strides[0], p_.cos_column = simt::last_stride(cos);
    p_.sin_row = sin.strides[0], p_.sin_column = simt::last_stride(sin);
    p_.pairs = pairs_, p_.limit = cos.shape[0];
    p_.fault = simt::fault_of(launch), p_.row = launch.row;
    p_.sign = sign, p_.interleaved = attrs_.interleaved != 0;
    p_.tensor = positions.present() ? Args::positions : Args::cos;
    p_.x_element = static_cast<int32_t>(launch.element);
    p_.cos_element = static_cast<int32_t>(cos.element), p_.sin_element = static_cast<int32_t>(sin.element);
  }

  Status run() {
    if (rows_.numel() == 0 || d_ == 0) return Status::Ok;
    const int64_t seq = rows_.shape[rows_.rank - 1];
    const Scalar& start = launch_.scalars[Args::position];
    const Status status = check_start(launch_, start, p_.limit, seq, Args::cos, launch_[Args::positions]);
    if (status != Status::Ok) return status;
    return simt::with_float(launch_.element, [&](auto t) {
      using T = decltype(t);
      using C = simt::ComputeOf<T>;
      if (packable(sizeof(T), sizeof(C))) {
        constexpr int64_t kCount = simt::Pack<T>::kCount;
        const int64_t turned = attrs_.interleaved ? 2 * pairs_ / kCount : pairs_ / kCount;
        return submit<RotatePacks<T>>(turned, turned + (d_ - 2 * pairs_) / kCount);
      }
      return submit<RotateAny<C>>(pairs_, d_ - pairs_);
    });
  }

 private:
  void fill_tensors() {
    const SequencePlaces places(rows_, launch_[Args::positions]);
    tensors_ = {simt::leading_operand(launch_[Call::kFrom]), simt::leading_operand(launch_[Call::kTo]), places.at,
                places.number};
  }

  bool packable(int64_t size, int64_t table_size) const {
    const int64_t count = 16 / size;
    const Element table = table_size == 8 ? Element::F64 : Element::F32;
    const TensorView &cos = launch_[Args::cos], &sin = launch_[Args::sin];
    auto tables_pack = [&](const TensorView& t) {
      return t.element == table && simt::last_stride(t) == 1 && reinterpret_cast<uintptr_t>(t.data) % 16 == 0 &&
             t.strides[0] * table_size % 16 == 0;
    };
    const int64_t turned = attrs_.interleaved ? 2 * pairs_ : pairs_;
    return turned % count == 0 && d_ % count == 0 && (2 * pairs_) % count == 0 && tables_pack(cos) &&
           tables_pack(sin) && simt::packs(tensors_[0], rows_.rank, p_.x_column, size) &&
           simt::packs(tensors_[1], rows_.rank, p_.y_column, size);
  }

  template <class Body>
  Status submit(int64_t turned, int64_t units) {
    p_.turned = turned;
    p_.space = simt::space_of_rows(rows_, tensors_, units);
    return simt::submit<Body>(launch_, {simt::blocks_for(p_.space.count, 256)}, 256, p_);
  }

  const Launch& launch_;
  RopeAttrs attrs_;
  IterationSpace rows_;
  int64_t d_, pairs_;
  std::array<Operand, RotateParams::kTensors> tensors_;
  RotateParams p_{};
};

inline Status make_table(const Launch& launch) {
  using Args = RopeTableArgs;
  const TensorView &cos = launch[Args::cos], &sin = launch[Args::sin];
  TableParams p{};
  p.cos = cos.data, p.sin = sin.data;
  p.rows = cos.shape[0], p.pairs = cos.shape[1];
  p.cos_row = cos.strides[0], p.cos_column = cos.strides[1];
  p.sin_row = sin.strides[0], p.sin_column = sin.strides[1];
  p.base = simt::number_of(launch.scalars[Args::base]);
  const double base = math::bit_cast<double>(p.base.real);
  if (!p.base.data) p.base_rest = static_cast<float>(base - static_cast<double>(p.base.f));
  p.cos_element = static_cast<int32_t>(cos.element), p.sin_element = static_cast<int32_t>(sin.element);
  return simt::submit<MakeTable>(launch, {simt::blocks_for(p.rows * p.pairs, 256)}, 256, p);
}

}  // namespace baracuda::rope

namespace baracuda {

template <int kSign>
struct SimtKernel<rope::Rotate<kSign>> {
  static Status run(const Launch& launch) { return rope::RotateLaunch<rope::RotateCall<kSign>>(launch, kSign).run(); }
};

template <>
struct SimtKernel<rope::Table> {
  static Status run(const Launch& launch) { return rope::make_table(launch); }
};

}  // namespace baracuda
