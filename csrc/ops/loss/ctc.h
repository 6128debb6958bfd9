// Connectionist temporal classification: what the paths of labels through time add up to, in logarithms. States are the
// blanks (even: before, between and behind the labels) and the labels (odd) of a sample, one behind another. Portable.
#pragma once
#include "baracuda/math/exp.h"
#include "baracuda/math/log.h"

namespace baracuda::loss {

// ln(e^a + e^b), of -inf too; NaN wins.
template <class C>
BCU_FN C log_add(C a, C b) {
  bool second = a < b || b != b;
  C high = second ? b : a, low = second ? a : b;
  C sum = high + math::log1p(math::exp(low - high));
  return high == -math::infinity<C>() ? high : sum;
}
template <class C>
BCU_FN C log_add(C a, C b, C c) {
  C high = a < b || b != b ? b : a;
  high = high < c || c != c ? c : high;
  C sum = high + math::log(math::exp(a - high) + math::exp(b - high) + math::exp(c - high));
  return high == -math::infinity<C>() ? high : sum;
}

// What a label's entry in the list of equal labels says: which one comes next, or that none does; one that has an equal
// before it, or is the blank, begins no list.
BCU_FN bool begins_list(int64_t entry) { return entry >= 0; }
BCU_FN int64_t next_equal(int64_t entry) { return entry >= 0 ? entry : -1 - entry; }
BCU_FN int64_t list_entry(int64_t next, bool begins) { return begins ? next : -1 - next; }

}  // namespace baracuda::loss
