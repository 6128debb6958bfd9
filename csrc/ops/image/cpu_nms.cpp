// Suppression of boxes: each that is left removes those behind it that overlap it, several of them at once.
#include <cstring>

#include "core/compute.h"
#include "host/in_range.h"
#include "ops/image/boxes.h"
#include "ops/image/cpu.h"
#include "ops/image/overlap.h"

namespace baracuda::image {
namespace {

template <class C>
class Suppression {
 public:
  Suppression(const Launch& launch, int64_t n) : launch_(launch), n_(n) {
    char* at = static_cast<char*>(launch.workspace);
    groups_ = reinterpret_cast<int64_t*>(at), at += n * 8;
    for (C*& field : field_) field = reinterpret_cast<C*>(at), at += n * sizeof(C);
    gone_ = static_cast<uint8_t*>(launch.workspace) + n * kBoxBytes;
  }

  void run() {
    read();
    if (n_ <= 0) return;
    std::memset(gone_, 0, n_);
    const C threshold = threshold_of<C>(attributes<NmsAttrs>(launch_).iou_threshold);
    for (int64_t i = 0; i < n_; ++i)
      if (!gone_[i]) remove(i, threshold);
    const TensorView& keep = launch_[NmsArgs::keep];
    for (int64_t i = 0; i < n_; ++i) keep.as<uint8_t>()[i * keep.strides[0]] = !gone_[i];
  }

 private:
  // Boxes in their order, a field of all after another.
  void read() {
    const TensorView &boxes = launch_[NmsArgs::boxes], &order = launch_[NmsArgs::order];
    const TensorView& groups = launch_[NmsArgs::groups];
    const auto number = [&](const TensorView& t, int64_t i) {
      int64_t v;
      load<int64_t>(t.element, t.as<char>() + i * t.strides[0] * size_of(t.element), 1, &v, 1);
      return v;
    };
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t id = number(order, i);
      C corner[4];
      load<C>(boxes.element, boxes.as<char>() + id * boxes.strides[0] * size_of(boxes.element), boxes.strides[1],
              corner, 4);
      for (int k = 0; k < 4; ++k) field_[k][i] = corner[k];
      field_[4][i] = (corner[2] - corner[0]) * (corner[3] - corner[1]);
      groups_[i] = groups.rank < 0 ? 0 : number(groups, id);
    }
  }
  Box<C> box(int64_t i) const { return {field_[0][i], field_[1][i], field_[2][i], field_[3][i], field_[4][i]}; }
  void remove(int64_t i, C threshold) {
    const Box<C> me = box(i);
    const int64_t group = groups_[i];
#pragma GCC ivdep
    for (int64_t k = i + 1; k < n_; ++k) gone_[k] |= (overlap(me, box(k)) > threshold) & (groups_[k] == group);
  }

  const Launch& launch_;
  const int64_t n_;
  C* field_[5];
  int64_t* groups_;
  uint8_t* gone_;
};

}  // namespace

Status run_nms(const Launch& launch) {
  const int64_t n = launch[NmsArgs::boxes].shape[0];
  if (!in_range(launch, NmsArgs::order, n)) return Status::IndexOutOfRange;
  with_float_type(launch.element, [&](auto c) { Suppression<decltype(c)>(launch, n).run(); });
  return Status::Ok;
}

}  // namespace baracuda::image
