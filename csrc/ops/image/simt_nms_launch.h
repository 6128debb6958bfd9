// Launches the suppression of boxes on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/image/simt_nms.h"
#include "ops/image/skus.h"
#include "simt/index_launch.h"

namespace baracuda::image {

template <class C>
Status submit_nms(const Launch& launch) {
  using Args = NmsArgs;
  const TensorView &boxes = launch[Args::boxes], &order = launch[Args::order], &groups = launch[Args::groups];
  const TensorView& keep = launch[Args::keep];
  NmsParams p{};
  p.n = boxes.shape[0], p.words = nms_words(p.n);
  if (p.n == 0) return Status::Ok;
  const auto step = [](const TensorView& t, int i) { return t.shape[i] > 1 ? t.strides[i] : 0; };
  p.order = simt::index_params(launch, Args::order, p.n, false);
  p.order_stride = step(order, 0), p.box_stride = step(boxes, 0), p.corner_stride = step(boxes, 1);
  p.keep_stride = step(keep, 0), p.keep = keep.as<uint8_t>();
  p.boxes = boxes.data, p.element = static_cast<int32_t>(launch.element);
  if (groups.rank >= 0) {
    p.groups = groups.data, p.group_stride = step(groups, 0);
    p.group_element = static_cast<int32_t>(groups.element);
  }
  p.threshold = simt::bits_of(threshold_of<C>(attributes<NmsAttrs>(launch).iou_threshold));
  char* at = static_cast<char*>(launch.workspace);
  p.sorted_groups = reinterpret_cast<int64_t*>(at), p.fields = at + p.n * 8;
  p.pairs = reinterpret_cast<uint64_t*>(at + p.n * kBoxBytes);
  p.gone = p.pairs + p.n * p.words, p.kept = p.gone + p.words;
  Status s = simt::submit<NmsSort<C>>(launch, {simt::blocks_for(p.n, NmsSort<C>::kThreads)}, NmsSort<C>::kThreads, p);
  if (s != Status::Ok) return s;
  using Pairs = NmsPairs<C>;
  s = simt::submit<Pairs>(launch, {simt::blocks_for(p.n * p.words, Pairs::kThreads)}, Pairs::kThreads, p);
  return s == Status::Ok ? simt::submit<NmsKeep>(launch, {1}, NmsKeep::kThreads, p) : s;
}

}  // namespace baracuda::image

namespace baracuda {

template <>
struct SimtKernel<image::Nms> {
  static Status run(const Launch& launch) {
#if BCU_HAS_F64
    if (launch.element == Element::F64) return image::submit_nms<double>(launch);
#endif
    return image::submit_nms<float>(launch);
  }
};

}  // namespace baracuda
