// What rows with a quantizing epilogue ask of their codes and scales.
#pragma once
#include "core/shapes.h"

namespace baracuda::quant {

// Codes of the sizes `values`, with one scale that is given or with those that are found.
template <class Args>
void coded_shapes(Shapes& s, const Sizes& values, int64_t group) {
  s.want(values.rank >= 1, Args::y, "at least one dimension");
  s.out(Args::y, s.aux()).is(values);
  const auto given = s.may_in(Args::given, Element::F32).is({});
  s.attribute(group >= 0 && (group == 0 || (!given && values.at(-1) % group == 0)), "group",
              "0 for whole rows or a scale that is given, or a divisor of the last size");
  s.may_out(Args::scale, Element::F32).when(!given).is(values.lead(1).then(group > 0 ? values.at(-1) / group : 1));
}

}  // namespace baracuda::quant
