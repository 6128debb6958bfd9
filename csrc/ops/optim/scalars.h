// What a call is given besides its tensors, as the host reads it. simt.h does the same on a device.
#pragma once
#include <cmath>

#include "core/launch.h"
#include "ops/optim/adaptive.h"

namespace baracuda::optim {

// Which parameter of the call a rule's list is. Of rmsprop without momentum the one before the last list is absent.
template <class Rule>
struct ListsOf {
  static constexpr int at(int list) { return Rule::Args::grads + list; }
};
template <>
struct ListsOf<RmspropRule<true, false>> {
  using Args = RmspropArgs;
  static constexpr int at(int list) { return list < Args::momentum_buffers ? list : list + 1; }
};

template <class W>
Beta<W> beta_of(double beta) {
  return {static_cast<W>(beta), static_cast<W>(1 - beta), static_cast<W>(std::log(beta))};
}
// `to` has `maximize` and `option`.
template <class Rule, class To>
void read_flags(const Launch& launch, To& to) {
  if constexpr (Rule::kFlags > 0) to.maximize = launch.attrs[0] != 0;
  if constexpr (Rule::kFlags > 1) to.option = launch.attrs[1] != 0;
}

// The numbers of a call; `last` comes after its scalars.
template <class Rule>
Numbers<double> numbers_of(const Launch& launch, double last = 0) {
  Numbers<double> n{};
  for (int k = 0; k < Rule::kScalars; ++k) n.value[k] = launch.scalars[k].as_f64();
  n.value[Rule::kScalars] = last;
  for (int k = 0; k < Rule::kBetas; ++k) n.beta[k] = beta_of<double>(n.value[Rule::kBeta + k]);
  if constexpr (Rule::kStep >= 0) n.step = launch.scalars[Rule::kStep].as_i64();
  read_flags<Rule>(launch, n);
  return n;
}

}  // namespace baracuda::optim
