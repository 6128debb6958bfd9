// GGUF's blocks to values and back, a few blocks at a time.
#include "ops/quant/cpu.h"
#include "backends/cpu/family.h"
#include "host/in_range.h"
#include "host/row_writer.h"
#include "ops/quant/cpu_scaled.h"

namespace baracuda::quant {
namespace {

inline constexpr int64_t kTile = 1024;  // values that are taken at once: whole blocks of every format

struct Values {
  const float* data;
  float operator()(int at) const { return data[at]; }
};
struct Target {
  uint8_t* data;
  void put(int at, uint32_t byte) const { data[at] = static_cast<uint8_t>(byte); }
};

// f(first value, values) for tiles of the rows of `values`, in parallel.
template <class F>
void each_tile(const RowMap& values, F&& f) {
  const int64_t tiles = (values.length() + kTile - 1) / kTile;
  parallel_for(values.rows() * tiles, row_grain(std::min(kTile, values.length())), [&](int64_t begin, int64_t end) {
    f([&](auto&& tile) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t at = t % tiles * kTile;
        tile(t / tiles, at, std::min(kTile, values.length() - at));
      }
    });
  });
}

template <class Format>
void dequantize(const RowMap& x, const RowMap& y) {
  each_tile(y, [&](auto&& tiles) {
    const RowWriter<float> writer(y, false);
    alignas(kStreamLine) float found[kTile];
    uint8_t gathered[kTile / Format::kValues * Format::kBytes];
    tiles([&](int64_t row, int64_t at, int64_t n) {
      const int64_t first = at / Format::kValues * Format::kBytes, count = n / Format::kValues * Format::kBytes;
      const uint8_t* bytes = bytes_of(x, row, first, count, gathered);
      for (int64_t b = 0; b < n / Format::kValues; ++b)
        decode<Format>(bytes + b * Format::kBytes, found + b * Format::kValues);
      writer.put(y.row(row), at, n,
                 [&](int64_t begin, int64_t length, float* to) { std::copy_n(found + begin, length, to); });
    });
  });
}

template <class Format>
void quantize(const RowMap& x, const RowMap& y) {
  each_tile(x, [&](auto&& tiles) {
    const RowReader<float> reader(x);
    alignas(kStreamLine) float buffer[kTile];
    uint8_t made[kTile / Format::kValues * Format::kBytes];
    tiles([&](int64_t row, int64_t at, int64_t n) {
      const int64_t first = at / Format::kValues * Format::kBytes, count = n / Format::kValues * Format::kBytes;
      const float* values = reader.get(x.row(row), at, n, buffer);
      uint8_t* to = y.inner.dense() ? reinterpret_cast<uint8_t*>(y.row(row)) + first : made;
      for (int64_t b = 0; b < n / Format::kValues; ++b)
        Encoder<Format::kNumber>::encode(Values{values + b * Format::kValues}, Target{to + b * Format::kBytes});
      if (to != made) return;
      y.inner.runs(first, count, [&, from = made](int64_t offset, int64_t stride, int64_t run) mutable {
        for (int64_t i = 0; i < run; ++i) y.row(row)[offset + i * stride] = static_cast<char>(*from++);
      });
    });
  });
}

uint32_t last_axis(const TensorView& t) { return 1u << (t.rank - 1); }

}  // namespace

Product::Product(const Launch& launch)
    : Product(row_map(launch[ProductArgs::x], last_axis(launch[ProductArgs::x])),
              row_map(launch[ProductArgs::w], last_axis(launch[ProductArgs::w])),
              row_map(launch[ProductArgs::y], last_axis(launch[ProductArgs::y]))) {}

// One row of a map, and one matrix of a tensor of three dimensions.
RowMap only_row(const RowMap& m, int64_t row) {
  RowMap one = m;
  one.data = m.row(row), one.outer = Steps();
  return one;
}
RowMap matrix_of(const TensorView& w, int64_t id) {
  TensorView one = w;
  one.rank = 2, one.data = w.as<char>() + (w.shape[0] > 1 ? id * w.strides[0] : 0);
  for (int i = 0; i < 2; ++i) one.shape[i] = w.shape[i + 1], one.strides[i] = w.strides[i + 1];
  return row_map(one, last_axis(one));
}

template <auto kRun>
Status run_experts(const Launch& launch) {
  using A = ExpertArgs;
  const TensorView &x = launch[A::x], &w = launch[A::w], &ids = launch[A::ids], &y = launch[A::y];
  if (!in_range(launch, A::ids, w.shape[0])) return Status::IndexOutOfRange;
  const RowMap from = row_map(x, last_axis(x)), to = row_map(y, last_axis(y));
  if (to.length() == 0) return Status::Ok;
  const MergedView places(ids);
  for (int64_t row = 0; row < to.rows(); ++row) {
    int64_t id;
    load_span(places, row, 1, &id);
    kRun(Product(only_row(from, row), matrix_of(w, id), only_row(to, row)), attributes<ProductAttrs>(launch).format,
         launch.workspace);
  }
  return Status::Ok;
}

}  // namespace baracuda::quant

namespace baracuda {

template <>
struct CpuKernel<quant::Dequantize> {
  static Status run(const Launch& launch) {
    using namespace quant;
    const TensorView &x = launch[Args::x], &y = launch[Args::y];
    const RowMap from = row_map(x, last_axis(x)), to = row_map(y, last_axis(y));
    if (to.rows() == 0 || to.length() == 0) return Status::Ok;
    with_format(attributes<FormatAttrs>(launch).format, [&](auto f) { dequantize<decltype(f)>(from, to); });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<quant::Quantize> {
  static Status run(const Launch& launch) {
    using namespace quant;
    const TensorView &x = launch[Args::x], &y = launch[Args::y];
    const RowMap from = row_map(x, last_axis(x)), to = row_map(y, last_axis(y));
    if (from.rows() == 0 || from.length() == 0) return Status::Ok;
    with_written_format(attributes<FormatAttrs>(launch).format, [&](auto f) { quantize<decltype(f)>(from, to); });
    return Status::Ok;
  }
};

template <auto kRun>
Status run_product(const Launch& launch) {
  const quant::Product p(launch);
  if (p.rows > 0 && p.columns > 0) kRun(p, attributes<quant::ProductAttrs>(launch).format, launch.workspace);
  return Status::Ok;
}
template <>
struct CpuKernel<quant::FloatProduct> {
  static Status run(const Launch& launch) { return run_product<quant::run_floats>(launch); }
};
template <>
struct CpuKernel<quant::IntegerProduct> {
  static Status run(const Launch& launch) { return run_product<quant::run_integers>(launch); }
};
template <>
struct CpuKernel<quant::FloatExperts> {
  static Status run(const Launch& launch) { return quant::run_experts<quant::run_floats>(launch); }
};
template <>
struct CpuKernel<quant::IntegerExperts> {
  static Status run(const Launch& launch) { return quant::run_experts<quant::run_integers>(launch); }
};

template <>
struct CpuKernel<quant::CodeLinear> {
  static Status run(const Launch& launch) {
    using namespace quant;
    using A = LinearArgs;
    const TensorView &x = launch[A::x], &y = launch[A::y], &scale = launch[A::scale];
    TensorView w = launch[A::w];
    if (kF8Codes.has(w.element)) w.element = Element::U8;  // their codes
    const Product p(row_map(x, last_axis(x)), row_map(w, last_axis(w)), row_map(y, last_axis(y)));
    if (p.rows == 0 || p.columns == 0) return Status::Ok;
    const CodedWeight weight{launch[A::w].element,
                             attributes<LinearAttrs>(launch).packed,
                             std::max<int64_t>(1, p.columns / std::max<int64_t>(1, scale.shape[0])),
                             std::max<int64_t>(1, p.depth / std::max<int64_t>(1, scale.shape[1])),
                             scale,
                             launch[A::zero_point],
                             launch[A::bias]};
    run_codes(p, weight, launch.workspace);
    return Status::Ok;
  }
};

#define BCU_SCALED(Tag, function)        \
  template <>                            \
  struct CpuKernel<quant::Tag> {         \
    static Status run(const Launch& l) { \
      quant::function(l);                \
      return Status::Ok;                 \
    }                                    \
  };
BCU_SCALED(QuantizeLinear, run_quantize_linear)
BCU_SCALED(DequantizeLinear, run_dequantize_linear)
BCU_SCALED(FakeQuantize, run_fake_quantize)
BCU_SCALED(FakeQuantizeGradient, run_fake_gradient)
BCU_SCALED(DynamicQuantize, run_dynamic_quantize)
#undef BCU_SCALED

}  // namespace baracuda

BCU_CPU_FAMILY(quant)
