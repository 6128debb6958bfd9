// Error functions, and gelu, which is made from one.
#include "ops/unary/cpu.h"

namespace baracuda::unary {

BCU_UNARY_BOTH(Erf)
BCU_UNARY_BOTH(Erfc)
BCU_UNARY_BOTH(GeluTanh)
BCU_UNARY_BOTH(Gelu)

Status run_gelu(const Launch& launch) {
  return attributes<GeluAttrs>(launch).approximate ? run_forward<GeluTanh>(launch) : run_forward<Gelu>(launch);
}
Status run_gelu_backward(const Launch& launch) {
  return attributes<GeluAttrs>(launch).approximate ? run_backward<GeluTanh>(launch) : run_backward<Gelu>(launch);
}

}  // namespace baracuda::unary
