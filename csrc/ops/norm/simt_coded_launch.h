// Launches norms whose results are codes on a GPU.
#pragma once
#include "ops/norm/simt_coded.h"
#include "ops/norm/skus.h"
#include "ops/quant/simt_coded_launch.h"

namespace baracuda::norm {

template <bool kCenter>
Status coded_forward(const Launch& launch) {
  using Args = CodedNormArgs;
  const auto attrs = attributes<CodedNormAttrs>(launch);
  const quant::CodedLaunch<Args> to(launch);
  const auto of = [&](int k) { return output_operand(launch[k], to.space); };
  const Operand tensors[] = {of(Args::x), of(Args::residual), of(Args::weight), of(Args::bias),
                             to.codes(),  to.scales(),        of(Args::sum)};
  CodedNormParams p{};
  p.s = simt::row_space(to.space, to.inner(), tensors);
  if (p.s.rows == 0) return Status::Ok;
  p.codes = to.frame(attrs.group, p.s, ~(1u << kCodedScale));
  p.eps = simt::number_of(launch.scalars[Args::eps]);
  p.per_length = static_cast<float>(1.0 / static_cast<double>(p.s.length));
  p.weight_offset = static_cast<float>(attrs.weight_offset == 0 ? -0.0 : attrs.weight_offset);
  return quant::with_row_code(launch[Args::y].element, [&]<class Code>() {
    using Body = CodedForward<Code, kCenter>;
    const simt::TeamGrid grid = simt::row_teams(p.s, 16, Body::kThreads);
    return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
  });
}

}  // namespace baracuda::norm
