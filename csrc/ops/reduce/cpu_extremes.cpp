// The largest and the smallest values, one instance for each type that they are compared in.
#include "ops/reduce/driver.h"

namespace baracuda::reduce {

template <bool kMax, class V>
void fold_extreme(const Walk& w, const Terms<V>& terms, void* workspace, const Sink<V>& sink) {
  fold<V, ExtremeFold<kMax, V>>(w, terms, workspace, sink);
}

#define BCU_EXTREMES(V)                                                                     \
  template void fold_extreme<true, V>(const Walk&, const Terms<V>&, void*, const Sink<V>&); \
  template void fold_extreme<false, V>(const Walk&, const Terms<V>&, void*, const Sink<V>&);
BCU_EXTREMES(float)
BCU_EXTREMES(double)
BCU_EXTREMES(int8_t)
BCU_EXTREMES(int16_t)
BCU_EXTREMES(int32_t)
BCU_EXTREMES(int64_t)
BCU_EXTREMES(uint8_t)
BCU_EXTREMES(uint16_t)
BCU_EXTREMES(uint32_t)
BCU_EXTREMES(uint64_t)
#undef BCU_EXTREMES

}  // namespace baracuda::reduce
