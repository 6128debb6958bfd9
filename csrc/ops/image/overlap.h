// How much boxes overlap: for kernels of all backends.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::image {

// Corners (x1, y1), (x2, y2), and what they enclose.
template <class C>
struct Box {
  C x1, y1, x2, y2, area;
};
template <class C>
BCU_FN C smaller(C a, C b) {
  return b < a ? b : a;
}
template <class C>
BCU_FN C larger(C a, C b) {
  return b > a ? b : a;
}
// The share of both that they have in common; NaN of two empty ones.
template <class C>
BCU_FN C overlap(Box<C> a, Box<C> b) {
  C width = larger(C(0), smaller(a.x2, b.x2) - larger(a.x1, b.x1));
  C height = larger(C(0), smaller(a.y2, b.y2) - larger(a.y1, b.y1));
  C both = width * height;
  return both / (a.area + b.area - both);
}

}  // namespace baracuda::image
