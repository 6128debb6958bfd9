// Comparisons, logical and bitwise operations.
#include "ops/binary/cpu.h"

namespace baracuda::binary {

template Status run_forward<Eq>(const Launch&);
template Status run_forward<Ne>(const Launch&);
template Status run_forward<Lt>(const Launch&);
template Status run_forward<Le>(const Launch&);
template Status run_forward<Gt>(const Launch&);
template Status run_forward<Ge>(const Launch&);
template Status run_forward<LogicalAnd>(const Launch&);
template Status run_forward<LogicalOr>(const Launch&);
template Status run_forward<LogicalXor>(const Launch&);
template Status run_bits<BitwiseAnd>(const Launch&);
template Status run_bits<BitwiseOr>(const Launch&);
template Status run_bits<BitwiseXor>(const Launch&);

}  // namespace baracuda::binary
