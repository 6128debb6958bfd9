// The SKU table of GGUF's blocks of quantized values, and of products with them.
#pragma once
#include <algorithm>

#include "ops/quant/epilogue.h"

namespace baracuda::quant {

// format: ggml's number of the type (blocks.h).
BCU_ATTRS(FormatAttrs, (i64, format))
BCU_ARGS(Args, (x, y), ())
BCU_ATTRS(ProductAttrs, (i64, format), (i64, quantize_input))
BCU_ARGS(ProductArgs, (x, w, y), ())
// x (..., K), w (E, N, bytes), ids (...), y (..., N).
BCU_ARGS(ExpertArgs, (x, w, ids, y), ())

struct Dequantize {};
struct Quantize {};
struct FloatProduct {};
struct IntegerProduct {};
struct FloatExperts {};
struct IntegerExperts {};

template <class Tag>
constexpr auto base(const char* op) {
  return row<Tag>(op).name("blocks").template args_of<Args>().template attrs_of<FormatAttrs>().takes(kFloats).exact();
}

// The element is that of the values; blocks are bytes.
inline constexpr auto kLocal = table(base<Dequantize>("dequantize"), base<Quantize>("quantize"));

// A product takes this many values of a row of weights at once, and this many rows at a time; up to kThinRows of them
// are multiplied while weights are read.
inline constexpr int64_t kChunk = 256, kRowBlock = 256, kThinRows = 4;

// Activations as the kernels read them: `bytes` for each value of whole chunks.
inline int64_t rows_bytes(const Problem& p, double bytes, int64_t most = kRowBlock) {
  const ParamMeta& x = p.params[ProductArgs::x];
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.shape[i];
  const int64_t values = (x.shape[x.rank - 1] + kChunk - 1) / kChunk * kChunk;
  return static_cast<int64_t>(static_cast<double>(std::min(rows, most) * values) * bytes);
}
inline int64_t float_rows(const Problem& p) { return rows_bytes(p, 4); }
inline int64_t integer_rows(const Problem& p) { return rows_bytes(p, 2.625); }  // Rows of cpu_integers.cpp
// A row at a time, each with its expert.
static_assert(int{ExpertArgs::x} == int{ProductArgs::x});
inline int64_t float_row(const Problem& p) { return rows_bytes(p, 4, 1); }
inline int64_t integer_row(const Problem& p) { return rows_bytes(p, 2.625, 1); }

inline constexpr AttrRange kFloatInput[] = {
    {"quantize_input", 0, 0, "0: the row multiplies the values themselves", "the int8 row quantizes them"}};
inline constexpr AttrRange kIntegerInput[] = {
    {"quantize_input", 1, 1, "1: the row quantizes the activations", "another row multiplies them as they are"}};

// Sums are built in blocks of 256 products, by other sums for few rows than for many.
template <class Tag>
constexpr auto product(const char* variant, const char* on_gpus, std::span<const AttrRange> inputs) {
  const auto r = row<Tag>("quant_matmul").name(variant, on_gpus).template args_of<ProductArgs>();
  return r.template attrs_of<ProductAttrs>().takes(kHalves | Element::F32).sum(8).not_batch_invariant().only_in(inputs);
}
inline constexpr auto kProducts =
    table(product<FloatProduct>("floats", "simt", kFloatInput).scratch(float_rows),
          product<IntegerProduct>("int8", "simt_int8", kIntegerInput).scratch(integer_rows));

template <class Tag>
constexpr auto experts(const char* variant, const char* on_gpus, std::span<const AttrRange> inputs) {
  const auto r = row<Tag>("quant_matmul_ids").name(variant, on_gpus).template args_of<ExpertArgs>();
  return r.template attrs_of<ProductAttrs>().takes(kHalves | Element::F32, kIndex).sum(8).only_in(inputs);
}
inline constexpr auto kExperts =
    table(experts<FloatExperts>("floats", "simt", kFloatInput).scratch(float_row),
          experts<IntegerExperts>("int8", "simt_int8", kIntegerInput).scratch(integer_row));

// y = x w.T + bias, w = (codes - zero) scale; packed: 1 for two u4 in a byte, 2 for two s4.
BCU_ATTRS(LinearAttrs, (i64, packed))
BCU_ARGS(LinearArgs, (x, w, scale, zero_point, bias, y), ())
struct CodeLinear {};
static_assert(int{LinearArgs::x} == int{ProductArgs::x});
inline constexpr Elements kCodes = Element::I8 | Element::U8 | Element::I16 | Element::U16 | kF8Codes;
inline constexpr auto kLinears = table(row<CodeLinear>("quant_linear")
                                           .name("codes", "simt")
                                           .args_of<LinearArgs>()
                                           .attrs_of<LinearAttrs>()
                                           .takes(kHalves | Element::F32, kCodes)
                                           .sum(8)
                                           .not_batch_invariant()
                                           .scratch(float_rows));

// On GPUs each result is summed by itself, and quantizes what it multiplies: no scratch.
template <class... Tags>
constexpr Table<Tags...> each_alone(Table<Tags...> t) {
  for (Row& r : t.rows) r.workspace = nullptr, r.guarantee.batch_invariant = true;
  return t;
}
inline constexpr auto kGpuProducts = each_alone(join(kProducts, kExperts, kLinears));

// Codes of another element with a scale, and for integers a zero point, for each block of values: x = (q - zero) scale.
// f32 scales have the rank of x, with sizes that divide x's; codes go from least to most.
BCU_ATTRS(CodeAttrs, (i64, least), (i64, most), (i64, saturate))
BCU_ATTRS(FakeAttrs, (i64, least), (i64, most))
BCU_ATTRS(DynamicAttrs, (i64, least), (i64, most), (i64, symmetric))
BCU_ARGS(CodeArgs, (x, scale, zero_point, y), ())
BCU_ARGS(FakeGradientArgs, (dy, x, scale, zero_point, dx), ())
BCU_ARGS(DynamicArgs, (x, y, scale, zero_point), ())

struct QuantizeLinear {};
struct DequantizeLinear {};
struct FakeQuantize {};
struct FakeQuantizeGradient {};
struct DynamicQuantize {};

inline constexpr Elements kCoded = kHalves | Element::F32;

template <class Tag, class Args>
constexpr auto scaled(const char* op) {
  return row<Tag>(op).name("scaled").template args_of<Args>().exact();
}
inline constexpr auto kScaled = table(
    scaled<QuantizeLinear, CodeArgs>("quantize_linear").attrs_of<CodeAttrs>().takes(kCoded, kCodes),
    scaled<DequantizeLinear, CodeArgs>("dequantize_linear").takes(kCoded, kCodes),
    scaled<FakeQuantize, CodeArgs>("fake_quantize").attrs_of<FakeAttrs>().takes(kFloats).in_place_of(1u << CodeArgs::x),
    scaled<FakeQuantizeGradient, FakeGradientArgs>("fake_quantize")
        .attrs_of<FakeAttrs>()
        .takes(kFloats)
        .backward()
        .in_place_of(1u << FakeGradientArgs::dy | 1u << FakeGradientArgs::x),
    scaled<DynamicQuantize, DynamicArgs>("dynamic_quantize").attrs_of<DynamicAttrs>().takes(kCoded, kCodes));

inline constexpr auto kTable = join(everywhere(kLocal), everywhere(kScaled), kProducts, kExperts, kLinears,
                                    on_cuda(kGpuProducts), on_metal(kGpuProducts));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::quant
