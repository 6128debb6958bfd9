// Codes of gated activations on the CPU, in rows, without values in between.
#include "core/parallel.h"
#include "host/loops.h"
#include "ops/gated/cpu.h"
#include "ops/gated/halves.h"
#include "ops/quant/coded_rows.h"

namespace baracuda::gated {
namespace {

// Rows along the last dimension of what is split, or of one of a pair.
RowMap rows_of_half(const Operand& half, const IterationSpace& space) {
  TensorView t{};
  t.data = half.data, t.element = half.element, t.rank = space.rank;
  std::copy_n(space.shape, space.rank, t.shape);
  std::copy_n(half.strides, space.rank, t.strides);
  return row_map(t, trailing_mask(t.rank, 1));
}

template <class Gate, class Code>
void coded_rows(const RowMap& value, const RowMap& gate, const quant::CodedRows& to, int64_t begin, int64_t end) {
  alignas(kStreamLine) float values[kRowTile<float>], gates[kRowTile<float>];
  quant::CodeWriter<Code> writer(to);
  const int64_t length = value.length();
  for (int64_t r = begin; r < end; ++r) {
    writer.begin(r);
    for (int pass = 0; pass < writer.passes(); ++pass) {
      for (int64_t at = 0; at < length; at += kRowTile<float>) {
        const int64_t n = std::min(kRowTile<float>, length - at);
        const float* const in[] = {read(value, value.row(r), at, n, values), read(gate, gate.row(r), at, n, gates)};
        writer.put(
            pass, at, n,
            [&](int64_t i, int64_t count, float* y) {
              const float* const from[] = {in[0] + i, in[1] + i};
              loops::element_loop<Product<Gate>, float>(from, &y, count, loops::UpTo<2>(), loops::UpTo<1>());
            },
            Ahead(value, r + 1, end, at), Ahead(gate, r + 1, end, at));
      }
    }
  }
}

}  // namespace

template <class Gate>
void coded(const Launch& launch) {
  using Args = CodedArgs;
  const IterationSpace space = space_of(launch[Args::y]);
  const auto attrs = attributes<CodedAttrs>(launch);
  const GatedAttrs split{attrs.split_dim, attrs.gate_first};
  const RowMap value = rows_of_half(half(Half::Value, launch[Args::x], launch[Args::value], split, space), space);
  const RowMap gate = rows_of_half(half(Half::Gate, launch[Args::x], launch[Args::gate], split, space), space);
  const auto to = quant::CodedRows::of<Args>(launch, attrs.group);
  quant::with_code(to.code, [&]<class Code>() {
    parallel_for(to.y.rows(), row_grain(to.y.length()),
                 [&](int64_t begin, int64_t end) { coded_rows<Gate, Code>(value, gate, to, begin, end); });
  });
}
template void coded<Glu>(const Launch&);
template void coded<ReGlu>(const Launch&);
template void coded<SwiGlu>(const Launch&);
template void coded<GeGlu>(const Launch&);

}  // namespace baracuda::gated
