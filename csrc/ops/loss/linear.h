// How linear_cross_entropy is cut: logits are made for some rows at a time, and never kept.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/row.h"
#include "ops/loss/args.h"
#include "ops/matmul/blocking.h"

namespace baracuda::loss {

// Each part of the workspace starts on a cache line.
constexpr int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Logits of a chunk, unless that were too few rows. A chunk adds to the whole gradient of the weights, which takes the
// time of some hundred rows' products: then there are more rows, and still no more logits than half of the weights.
inline constexpr int64_t kChunkLogits = int64_t{1} << 23, kLeastChunkRows = 64, kLeastSummedRows = 512;
constexpr int64_t least_chunk_rows(int64_t features, bool dweight) {
  return dweight ? std::clamp(features / 2, kLeastChunkRows, kLeastSummedRows) : kLeastChunkRows;
}
constexpr int64_t chunk_rows(int64_t rows, int64_t classes, int64_t least) {
  return std::min(rows, std::max(least, kChunkLogits / std::max<int64_t>(1, classes)));
}

// dloss: the number that the forward pass makes gradients for.
BCU_ARGS(LinearArgs,
         (input, target, linear_weight, linear_bias, weight, loss, lse, dinput, dlinear_weight, dlinear_bias),
         (label_smoothing, dloss))
BCU_ARGS(LinearBackwardArgs,
         (dloss, input, target, linear_weight, linear_bias, weight, lse, dinput, dlinear_weight, dlinear_bias),
         (label_smoothing))

template <class Args>
inline constexpr bool kMakesLoss = std::is_same_v<Args, LinearArgs>;

// The parts of the workspace, each a formula that grows with every size.
struct LinearParts {
  int64_t losses, logits, dweight, dbias, products;  // bytes
  int64_t all() const { return losses + logits + dweight + dbias + products; }
};
struct LinearSizes {
  int64_t rows, features, classes, bytes;  // bytes of the compute element
  bool reduces, dweight, dbias;
  bool halves;  // gradients of weights are summed over chunks beside their tensor
};
inline LinearParts linear_parts(const LinearSizes& s) {
  LinearParts p{};
  if (s.reduces) p.losses = whole_lines(s.rows * s.bytes);
  const int64_t least = least_chunk_rows(s.features, s.dweight), most = std::max(kChunkLogits, least * s.classes);
  p.logits = whole_lines(std::min(s.rows * s.classes, most) * s.bytes);
  // Whatever the features are: where they are fewer, chunks may be shorter.
  if (s.dweight && s.halves && s.rows > chunk_rows(s.rows, s.classes, kLeastChunkRows))
    p.dweight = whole_lines(s.classes * s.features * s.bytes);
  if (s.dbias) p.dbias = whole_lines(s.classes * s.bytes);
  auto product = [&](int64_t m, int64_t n, int64_t k) {
    return matmul::workspace_bytes(1, 1, m, n, k, s.bytes, s.bytes);
  };
  p.products = std::max({product(s.rows, s.classes, s.features), product(s.rows, s.features, s.classes),
                         product(s.classes, s.features, s.rows)});
  return p;
}

template <class Args>
int64_t linear_scratch(const Problem& p) {
  const ParamMeta &input = p.params[Args::input], &weight = p.params[Args::linear_weight];
  const Elements halves = Element::F16 | Element::BF16;
  const int64_t bytes = p.element == Element::F64 ? 8 : 4;
  const bool adds_up = attributes<CrossEntropyAttrs>(p).reduction != static_cast<int64_t>(Reduction::None);
  return linear_parts({input.shape[0], input.shape[1], weight.shape[0], bytes, kMakesLoss<Args> && adds_up,
                       p.params[Args::dlinear_weight].rank >= 0, p.params[Args::dlinear_bias].rank >= 0,
                       halves.has(p.element)})
      .all();
}

}  // namespace baracuda::loss
