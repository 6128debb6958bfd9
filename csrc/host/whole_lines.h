// Loops that choose between values, for levels with masks: of a choice the compiler makes loads with a mask, which the
// processor does not fetch ahead for (backward of relu, 16M f32: 4.5 ms by them, 3.2 by whole lines).
#pragma once
#include <concepts>
#include <cstdint>

#include "host/level.h"

namespace baracuda {

// A line of values, all of which are read whatever is chosen from them.
template <class C>
struct WholeLine {
  static constexpr int64_t kBytes = 64, kValues = kBytes / sizeof(C);
  C values[kValues];

  [[gnu::always_inline]] explicit WholeLine(const C* from) { level::read_line(from, values); }
};

template <class C, class F, class... Lines>
[[gnu::always_inline]] inline void each_of_line(int64_t at, F&& f, const Lines&... lines) {
#pragma GCC ivdep
#pragma GCC unroll 1
  for (int64_t j = 0; j < WholeLine<C>::kValues; ++j) f(at + j, lines.values[j]...);
}

// f(i, from[i]...) for all i < n.
template <class F, class C, std::same_as<C>... Cs>
[[gnu::always_inline]] inline void choose_each(int64_t n, F&& f, const C* from, const Cs*... more) {
  using Line = WholeLine<C>;
  const int64_t whole = level::kVectorBytes == Line::kBytes ? n - n % Line::kValues : 0;
  for (int64_t i = 0; i < whole; i += Line::kValues) each_of_line<C>(i, f, Line(from + i), Line(more + i)...);
#pragma GCC ivdep
  for (int64_t i = whole; i < n; ++i) f(i, from[i], more[i]...);
}

}  // namespace baracuda
