// Threaded code: every function a handler that takes a block of values in vector registers and jumps to the next one.
// Between functions nothing is stored but what a later one needs as its second operand. Each functor is compiled by
// itself, as in the loops of its own family, and so gives the same bits.
#pragma once
#include <array>
#include <utility>

#include "core/compute.h"
#include "host/convert.h"
#include "host/lanes.h"
#include "ops/expr/program.h"

namespace baracuda::expr {

// Eight registers of arguments are passed in registers, everywhere.
inline constexpr int kBlockBytes = 8 * kVectorBytes < 256 ? 8 * kVectorBytes : 256;
template <class C>
inline constexpr int kBlock = kBlockBytes / sizeof(C);
inline constexpr int kMaxTemporaries = 32;
inline constexpr int kMaxSlots = kMaxInputs + kMaxNodes + kMaxNumbers + kMaxTemporaries;

template <class C>
struct Context {
  const C* slot[kMaxSlots];  // a block of each operand: imported values, temporaries, numbers
  C* out[kMaxNodes + kMaxOutputs];
  int64_t count;  // values of the block that matter
  bool zero;      // an integer was divided by zero
};

template <class C, class Lane>
struct Threaded;

template <class C, int... I>
struct Threaded<C, std::integer_sequence<int, I...>> {
  struct Instruction;
  template <int>
  using Vec = typename Lanes<C>::Vec;
  using Handler = void (*)(const Instruction*, Context<C>*, Vec<I>...);
  struct Instruction {
    Handler handler;
    int16_t operands[kMaxOperands - 1];  // slots besides the registers; of a store, the output; of a cast, the element
  };

  static constexpr int kBlock = expr::kBlock<C>;
  static constexpr int kWidth = Lanes<C>::kWidth;

  static void run(const Instruction* code, Context<C>* c) {
    code->handler(code, c, (static_cast<void>(I), Vec<I>{})...);
  }

  // x = F::f(x, further operands, numbers).
  template <class F, class... Numbers, size_t... K>
  [[gnu::always_inline]] static void each(C* x, const C* const* more, std::index_sequence<K...>, Numbers... numbers) {
#pragma GCC ivdep
    for (int i = 0; i < kBlock; ++i) x[i] = as_number<C>(F::f(x[i], more[K][i]..., numbers...));
  }

  template <class F, int kArrays, int kNumbers>
  static void call(const Instruction* at, Context<C>* c, Vec<I>... a) {
    alignas(64) C x[kBlock];
    (std::memcpy(x + I * kWidth, &a, sizeof a), ...);
    const C* more[kArrays];  // one too many: there is no array of none
    for (int k = 0; k + 1 < kArrays; ++k) more[k] = c->slot[at->operands[k]];
    constexpr std::make_index_sequence<kArrays - 1> kMore;
    const auto number = [&](int k) { return *c->slot[at->operands[kArrays - 1 + k]]; };
    if constexpr (kNumbers == 0) each<F>(x, more, kMore);
    if constexpr (kNumbers == 1) each<F>(x, more, kMore, number(0));
    if constexpr (kNumbers == 2) each<F>(x, more, kMore, number(0), number(1));
    if constexpr (kNumbers == 3) each<F>(x, more, kMore, number(0), number(1), number(2));
    return at[1].handler(at + 1, c, load<I>(x)...);
  }

  // Integer division: a divisor of zero is noted, and 1 taken in its place.
  template <class F>
  static void divide(const Instruction* at, Context<C>* c, Vec<I>... a) {
    alignas(64) C x[kBlock];
    (std::memcpy(x + I * kWidth, &a, sizeof a), ...);
    const C* b = c->slot[at->operands[0]];
    for (int64_t i = 0; i < c->count; ++i) c->zero |= b[i] == 0;
    for (int i = 0; i < kBlock; ++i) x[i] = F::f(x[i], b[i] == 0 ? C(1) : b[i]);
    return at[1].handler(at + 1, c, load<I>(x)...);
  }

  static void load_slot(const Instruction* at, Context<C>* c, Vec<I>...) {
    const C* from = c->slot[at->operands[0]];
    return at[1].handler(at + 1, c, load<I>(from)...);
  }

  static void store_out(const Instruction* at, Context<C>* c, Vec<I>... a) {
    C* to = c->out[at->operands[0]];
    (std::memcpy(to + I * kWidth, &a, sizeof a), ...);
    return at[1].handler(at + 1, c, a...);
  }

  static void save_slot(const Instruction* at, Context<C>* c, Vec<I>... a) {
    C* to = const_cast<C*>(c->slot[at->operands[0]]);
    (std::memcpy(to + I * kWidth, &a, sizeof a), ...);
    return at[1].handler(at + 1, c, a...);
  }

  // As if stored in an element and read again: halves are rounded, integers wrapped, bool is 0 or 1.
  static void through(const Instruction* at, Context<C>* c, Vec<I>... a) {
    alignas(64) C x[kBlock];
    alignas(64) char stored[kBlockBytes];
    const auto element = static_cast<Element>(at->operands[0]);
    (std::memcpy(x + I * kWidth, &a, sizeof a), ...);
    storer<C>(element)(stored, 1, x, kBlock);
    loader<C>(element)(stored, 1, x, kBlock);
    return at[1].handler(at + 1, c, load<I>(x)...);
  }

  static void finish(const Instruction*, Context<C>*, Vec<I>...) {}

  template <int kAt>
  static Vec<kAt> load(const C* from) {
    return Lanes<C>::load(from + kAt * kWidth);
  }
};

template <class C>
using Code = Threaded<C, std::make_integer_sequence<int, kBlockBytes / kVectorBytes>>;
template <class C>
using Handler = typename Code<C>::Handler;

// Elements whose compute type C is.
template <class C>
inline constexpr Elements kComputedIn = kHalves | Element::F32;
template <>
inline constexpr Elements kComputedIn<double> = set_of(Element::F64);
template <>
inline constexpr Elements kComputedIn<int64_t> = kSigned;
template <>
inline constexpr Elements kComputedIn<uint64_t> = kUnsigned | kBool;

// The handlers of a part of the functions, by their place in kFunctions; null for those of other parts, and where the
// function has none in C. Compiled in units of their own.
template <class C>
const Handler<C>* unary_handlers();
template <class C>
const Handler<C>* slope_handlers();
template <class C>
const Handler<C>* other_handlers();

template <class C>
Handler<C> handler_of(int function) {
  if (Handler<C> found = unary_handlers<C>()[function]) return found;
  if constexpr (std::is_floating_point_v<C>)
    if (Handler<C> found = slope_handlers<C>()[function]) return found;
  return other_handlers<C>()[function];
}

}  // namespace baracuda::expr
