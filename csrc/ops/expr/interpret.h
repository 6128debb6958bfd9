// Runs a region as a loop of the tile driver.
#pragma once
#include <atomic>

#include "ops/expr/fusion.h"

namespace baracuda::expr {

template <class Code>
struct Running {
  const Code& code;
  std::atomic<bool>& zero;
};

// One block, whose operands are where the context says.
template <class C>
void run_block(const Compiled<C>& code, Context<C>& c, const Running<Compiled<C>>& running, int64_t count) {
  c.count = count;
  Code<C>::run(code.code.data(), &c);
  if (c.zero) running.zero.store(true, std::memory_order_relaxed);
}

// Blocks that are not whole, or whose outputs lie on their inputs, pass through memory of their own.
template <class C>
void run_apart(const Compiled<C>& code, Context<C>& c, const Running<Compiled<C>>& running, const C* const* in,
               C* const* out, int64_t from, int64_t count) {
  using Block = typename Compiled<C>::Block;
  Block x[kMaxInputs], y[kMaxOutputs];
  for (size_t k = 0; k < code.imports.size(); ++k) {
    x[k] = {};
    std::memcpy(x[k].values, in[k] + from, count * sizeof(C));
    c.slot[k] = x[k].values;
  }
  for (size_t k = 0; k < code.exports.size(); ++k) c.out[k] = y[k].values;
  run_block(code, c, running, count);
  for (size_t k = 0; k < code.exports.size(); ++k) std::memcpy(out[k] + from, y[k].values, count * sizeof(C));
}

template <class C>
bool in_place(const Compiled<C>& code, const C* const* in, C* const* out) {
  bool found = false;
  for (size_t j = 0; j < code.exports.size(); ++j)
    for (size_t k = 0; k < code.imports.size(); ++k) found |= out[j] == in[k];
  return found;
}

template <class C>
void interpret(const C* const* in, C* const* out, int64_t n, const void* params) {
  const auto& running = *static_cast<const Running<Compiled<C>>*>(params);
  const Compiled<C>& code = running.code;
  const size_t n_in = code.imports.size(), n_out = code.exports.size();
  typename Compiled<C>::Block memory[kMaxTemporaries];
  Context<C> c;
  code.settle(c, memory);
  // With several outputs one may be stored where an input is still to be read.
  const int64_t whole = n_out > 1 && in_place(code, in, out) ? 0 : n / kBlock<C> * kBlock<C>;
  for (int64_t i = 0; i < whole; i += kBlock<C>) {
    for (size_t k = 0; k < n_in; ++k) c.slot[k] = in[k] + i;
    for (size_t k = 0; k < n_out; ++k) c.out[k] = out[k] + i;
    run_block(code, c, running, kBlock<C>);
  }
  for (int64_t i = whole; i < n; i += kBlock<C>)
    run_apart(code, c, running, in, out, i, std::min<int64_t>(kBlock<C>, n - i));
}

}  // namespace baracuda::expr
