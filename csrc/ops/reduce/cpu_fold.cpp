// The folds that several kernels share, one instance for each type; extremes are in cpu_extremes.cpp.
#include "ops/reduce/driver.h"

namespace baracuda::reduce {

template <class C>
void fold_sum(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink) {
  fold<C, SumFold<C>>(w, terms, workspace, sink);
}
template <class C>
void fold_product(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink) {
  fold<C, ProductFold<C>>(w, terms, workspace, sink);
}
template <class W>
void fold_count(const Walk& w, const Terms<W>& terms, void* workspace, const Sink<int64_t>& sink) {
  fold<W, CountFold<W>>(w, terms, workspace, sink);
}

template void fold_sum<float>(const Walk&, const Terms<float>&, void*, const Sink<float>&);
template void fold_sum<double>(const Walk&, const Terms<double>&, void*, const Sink<double>&);
template void fold_sum<int64_t>(const Walk&, const Terms<int64_t>&, void*, const Sink<int64_t>&);
template void fold_sum<uint64_t>(const Walk&, const Terms<uint64_t>&, void*, const Sink<uint64_t>&);
template void fold_product<float>(const Walk&, const Terms<float>&, void*, const Sink<float>&);
template void fold_product<double>(const Walk&, const Terms<double>&, void*, const Sink<double>&);
template void fold_product<uint64_t>(const Walk&, const Terms<uint64_t>&, void*, const Sink<uint64_t>&);
template void fold_count<uint8_t>(const Walk&, const Terms<uint8_t>&, void*, const Sink<int64_t>&);
template void fold_count<uint16_t>(const Walk&, const Terms<uint16_t>&, void*, const Sink<int64_t>&);
template void fold_count<uint32_t>(const Walk&, const Terms<uint32_t>&, void*, const Sink<int64_t>&);
template void fold_count<uint64_t>(const Walk&, const Terms<uint64_t>&, void*, const Sink<int64_t>&);

}  // namespace baracuda::reduce
