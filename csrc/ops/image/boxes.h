// What suppression of boxes is asked for: attributes, arguments, and its workspace.
#pragma once
#include <cmath>

#include "core/args.h"
#include "core/attrs.h"
#include "core/row.h"

namespace baracuda::image {

BCU_ATTRS(NmsAttrs, (f64, iou_threshold))
// boxes [n, 4], order [n] of their numbers, groups [n] (absent: all are of one), keep [n] by order.
BCU_ARGS(NmsArgs, (boxes, order, groups, keep), ())

// Numbers of the compute type above the largest C that is not above the threshold are above it.
template <class C>
C threshold_of(double given) {
  const C t = static_cast<C>(given);
  return static_cast<double>(t) > given ? std::nextafter(t, static_cast<C>(-HUGE_VAL)) : t;
}

inline int64_t box_count(const Problem& p) { return p.params ? p.params[NmsArgs::boxes].shape[0] : 0; }
// Four corners, an area and a group of each, one after another, and what is suppressed.
inline constexpr int64_t kBoxBytes = 6 * 8;
inline int64_t nms_workspace(const Problem& p) { return box_count(p) * (kBoxBytes + 1); }
// The same, a bit for each pair, and a bit for each that is suppressed or kept.
inline int64_t nms_words(int64_t n) { return (n + 63) / 64; }
inline int64_t simt_nms_workspace(const Problem& p) {
  const int64_t n = box_count(p), words = nms_words(n);
  return n * kBoxBytes + (n + 2) * words * 8;
}
inline Reason boxes_fit(const Problem& p) {
  if (box_count(p) < (int64_t{1} << 20)) return {};
  return {"boxes", "fewer than 2^20 boxes", "a GPU keeps a bit for each pair"};
}

}  // namespace baracuda::image
