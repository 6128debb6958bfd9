// How the elements of an axis are found again in a larger axis made from it by padding or repeating. Portable.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::layout {

// The modes of a pad, and the two ways to repeat.
enum AxisMode : int32_t { kConstant, kReflect, kReplicate, kCircular, kRepeatWhole, kRepeatEach };

struct Axis {
  int64_t size, padded;  // without what is cut off, and with what is added
  int64_t low;           // added in front
  int64_t skipped;       // cut off in front
};

// An axis of x elements that becomes one of y with `low` more (negative: less) in front.
BCU_FN Axis padded_axis(int64_t x, int64_t y, int64_t low) {
  int64_t high = y - x - low;
  Axis a;
  a.skipped = low < 0 ? -low : 0;
  a.size = x - a.skipped + (high < 0 ? high : 0);
  a.padded = y, a.low = low < 0 ? 0 : low;
  return a;
}

// How often element c of the axis (0 where it is cut off) occurs, and where: in ascending order, or for reflections the
// element itself first.
BCU_FN int64_t occurrences(Axis a, int32_t mode, int64_t c) {
  if (c < 0 || c >= a.size) return 0;
  int64_t at = a.low + c, last = a.size - 1;
  if (mode == kReflect)
    return 1 + (c >= 1 && c <= a.low ? 1 : 0) + (c < last && a.low + 2 * last - c < a.padded ? 1 : 0);
  if (mode == kReplicate) return (c == last ? a.padded - 1 : at) - (c == 0 ? 0 : at) + 1;
  if (mode == kCircular) return 1 + (at >= a.size ? 1 : 0) + (at + a.size < a.padded ? 1 : 0);
  if (mode >= kRepeatWhole) return a.padded / a.size;
  return 1;
}
BCU_FN int64_t occurrence(Axis a, int32_t mode, int64_t c, int64_t k) {
  int64_t at = a.low + c;
  if (mode == kReflect) {
    bool before = c >= 1 && c <= a.low;
    if (k == 0) return at;
    return k == 1 && before ? a.low - c : a.low + 2 * (a.size - 1) - c;
  }
  if (mode == kReplicate) return (c == 0 ? 0 : at) + k;
  if (mode == kCircular) return (at >= a.size ? at - a.size : at) + k * a.size;
  if (mode == kRepeatWhole) return c + k * a.size;
  if (mode == kRepeatEach) return c * (a.padded / a.size) + k;
  return at;
}

}  // namespace baracuda::layout
