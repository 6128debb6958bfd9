// The folds that several kernels share, one instance for each type.
#include "ops/reduce/driver.h"

namespace baracuda::reduce {

template <class C>
void fold_sum(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink) {
  fold<C, SumFold<C>>(w, terms, workspace, sink);
}
template <bool kMax, class C>
void fold_extreme(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink) {
  fold<C, ExtremeFold<kMax, C>>(w, terms, workspace, sink);
}
template <class C>
void fold_product(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<C>& sink) {
  fold<C, ProductFold<C>>(w, terms, workspace, sink);
}
template <class C>
void fold_count(const Walk& w, const Terms<C>& terms, void* workspace, const Sink<int64_t>& sink) {
  fold<C, CountFold<C>>(w, terms, workspace, sink);
}

#define BCU_FOLDS(C)                                                                        \
  template void fold_sum<C>(const Walk&, const Terms<C>&, void*, const Sink<C>&);           \
  template void fold_extreme<true, C>(const Walk&, const Terms<C>&, void*, const Sink<C>&); \
  template void fold_extreme<false, C>(const Walk&, const Terms<C>&, void*, const Sink<C>&);
BCU_FOLDS(float)
BCU_FOLDS(double)
BCU_FOLDS(int64_t)
BCU_FOLDS(uint64_t)
#undef BCU_FOLDS
template void fold_product<float>(const Walk&, const Terms<float>&, void*, const Sink<float>&);
template void fold_product<double>(const Walk&, const Terms<double>&, void*, const Sink<double>&);
template void fold_product<uint64_t>(const Walk&, const Terms<uint64_t>&, void*, const Sink<uint64_t>&);
template void fold_count<float>(const Walk&, const Terms<float>&, void*, const Sink<int64_t>&);
template void fold_count<double>(const Walk&, const Terms<double>&, void*, const Sink<int64_t>&);
template void fold_count<int64_t>(const Walk&, const Terms<int64_t>&, void*, const Sink<int64_t>&);

}  // namespace baracuda::reduce
