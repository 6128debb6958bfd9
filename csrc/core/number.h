// Numbers given to a call: what a scalar parameter takes. False with the reason, whose field is left empty.
#pragma once
#include <memory>

#include "core/api.h"
#include "core/refusal.h"
#include "core/signature.h"

namespace baracuda {

// For parameters of kind Float.
BCU_API bool take_real(const ScalarParam& param, double number, Scalar& out, std::unique_ptr<Refusal>& why);
// For parameters of any kind.
BCU_API bool take_whole(const ScalarParam& param, __int128 number, Scalar& out, std::unique_ptr<Refusal>& why);
// A 0-d tensor, which is read when the kernel runs.
BCU_API bool take_tensor(const ScalarParam& param, const TensorView& view, Backend backend, int32_t device, Scalar& out,
                         std::unique_ptr<Refusal>& why);

}  // namespace baracuda
