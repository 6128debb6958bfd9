// Codes with scales: element by element through the tile driver.
#include "ops/quant/cpu_scaled.h"
#include <span>

#include "core/compute.h"
#include "host/tile.h"
#include "ops/quant/affine.h"
#include "ops/quant/scale_space.h"

namespace baracuda::quant {
namespace {

template <class C>
struct Limits {
  C least, most;
};

void code_loop(const float* const* in, float* const* out, int64_t n, const void* params) {
  const Limits<float> by = *static_cast<const Limits<float>*>(params);
  const float *x = in[0], *scale = in[1], *zero = in[2];
  float* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Coded::f(x[i], scale[i], zero[i], by.least, by.most);
}
template <int kMantissa>
void code_f8_loop(const float* const* in, float* const* out, int64_t n, const void* params) {
  const float saturate = *static_cast<const float*>(params);
  const float *x = in[0], *scale = in[1];
  float* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = CodedF8<kMantissa>::f(x[i], scale[i], saturate);
}
void decode_loop(const float* const* in, float* const* out, int64_t n, const void*) {
  const float *x = in[0], *scale = in[1], *zero = in[2];
  float* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Decoded::f(x[i], scale[i], zero[i]);
}
template <int kMantissa>
void decode_f8_loop(const float* const* in, float* const* out, int64_t n, const void*) {
  const float *x = in[0], *scale = in[1];
  float* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = DecodedF8<kMantissa>::f(x[i], scale[i]);
}
template <class C>
void fake_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const Limits<C> by = *static_cast<const Limits<C>*>(params);
  const C *x = in[0], *scale = in[1], *zero = in[2];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Faked::f(x[i], scale[i], zero[i], by.least, by.most);
}
template <class C>
void fake_gradient_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const Limits<C> by = *static_cast<const Limits<C>*>(params);
  const C *dy = in[0], *x = in[1], *scale = in[2], *zero = in[3];
  C* dx = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = FakedGradient::f(dy[i], x[i], scale[i], zero[i], by.least, by.most);
}

// What loops are given: values and scales of a launch in the same space.
struct Scaled {
  const ScaleSpace cut;
  const IterationSpace space = cut.space();

  Operand values(const TensorView& t) const { return operand(cut.values(t), space); }
  Operand scales(const TensorView& t) const { return operand(cut.scales(t), space); }
  Operand zeros(const TensorView& t) const { return t.present() ? scales(t) : constant(&kZero, Element::F32); }
  static constexpr float kZero = 0;
};

template <class C>
void fake(const Launch& launch) {
  const auto attrs = attributes<FakeAttrs>(launch);
  const Limits<C> by{C(attrs.least), C(attrs.most)};
  const Scaled s{{launch[CodeArgs::x], launch[CodeArgs::scale]}};
  const Operand in[] = {s.values(launch[CodeArgs::x]), s.scales(launch[CodeArgs::scale]),
                        s.zeros(launch[CodeArgs::zero_point])};
  const Operand out[] = {s.values(launch[CodeArgs::y])};
  run_tiles<C>(s.space, in, out, &fake_loop<C>, &by);
}
template <class C>
void fake_gradient(const Launch& launch) {
  using A = FakeGradientArgs;
  const auto attrs = attributes<FakeAttrs>(launch);
  const Limits<C> by{C(attrs.least), C(attrs.most)};
  const Scaled s{{launch[A::x], launch[A::scale]}};
  const Operand in[] = {s.values(launch[A::dy]), s.values(launch[A::x]), s.scales(launch[A::scale]),
                        s.zeros(launch[A::zero_point])};
  const Operand out[] = {s.values(launch[A::dx])};
  run_tiles<C>(s.space, in, out, &fake_gradient_loop<C>, &by);
}

// Of 8-bit floats the loop for their significand, of integers none.
TileLoop<float> of_f8(Element e, TileLoop<float> wide, TileLoop<float> narrow) {
  return e == Element::F8E4M3 ? wide : e == Element::F8E5M2 ? narrow : nullptr;
}

}  // namespace

void run_quantize_linear(const Launch& launch) {
  const auto attrs = attributes<CodeAttrs>(launch);
  const TensorView &x = launch[CodeArgs::x], &scale = launch[CodeArgs::scale], &y = launch[CodeArgs::y];
  const Scaled s{{x, scale}};
  const Operand in[] = {s.values(x), s.scales(scale), s.zeros(launch[CodeArgs::zero_point])}, out[] = {s.values(y)};
  const Limits<float> by{static_cast<float>(attrs.least), static_cast<float>(attrs.most)};
  const float saturate = static_cast<float>(attrs.saturate);
  if (const auto loop = of_f8(y.element, &code_f8_loop<3>, &code_f8_loop<2>)) {
    run_tiles<float>(s.space, std::span(in, 2), out, loop, &saturate);
  } else {
    run_tiles<float>(s.space, in, out, &code_loop, &by);
  }
}

void run_dequantize_linear(const Launch& launch) {
  const TensorView &x = launch[CodeArgs::x], &scale = launch[CodeArgs::scale], &y = launch[CodeArgs::y];
  const Scaled s{{x, scale}};
  const Operand in[] = {s.values(x), s.scales(scale), s.zeros(launch[CodeArgs::zero_point])}, out[] = {s.values(y)};
  if (const auto loop = of_f8(x.element, &decode_f8_loop<3>, &decode_f8_loop<2>)) {
    run_tiles<float>(s.space, std::span(in, 2), out, loop, nullptr);
  } else {
    run_tiles<float>(s.space, in, out, &decode_loop, nullptr);
  }
}

void run_fake_quantize(const Launch& launch) {
  with_float_type(launch.element, [&](auto c) { fake<decltype(c)>(launch); });
}
void run_fake_gradient(const Launch& launch) {
  with_float_type(launch.element, [&](auto c) { fake_gradient<decltype(c)>(launch); });
}

}  // namespace baracuda::quant
