// Norms whose results are codes: the forward kernels' rows, with a writer of codes.
#include "core/parallel.h"
#include "ops/norm/cpu_forward.h"
#include "ops/quant/coded_rows.h"

namespace baracuda::norm {

template <bool kCenter>
Status run_coded(const Launch& launch) {
  using Args = CodedNormArgs;
  const auto attrs = attributes<CodedNormAttrs>(launch);
  const uint32_t last = trailing_mask(launch[Args::x].rank, 1), all = 0xff;
  const ForwardMaps m{.x = row_map(launch[Args::x], last),
                      .residual = row_map(launch[Args::residual], last),
                      .weight = row_map(launch[Args::weight], all),
                      .bias = row_map(launch[Args::bias], all),
                      .sum = row_map(launch[Args::sum], last),
                      .weight_offset = attrs.weight_offset};
  const auto to = quant::CodedRows::of<Args>(launch, attrs.group);
  const float eps = static_cast<float>(launch.scalars[Args::eps].as_f64());
  quant::with_code(to.code, [&]<class Code>() {
    parallel_for(m.x.rows(), row_grain(m.x.length()), [&](int64_t begin, int64_t end) {
      quant::CodeWriter<Code> writer(to);
      forward_rows<kCenter>(m, eps, begin, end, writer);
    });
  });
  return Status::Ok;
}

template Status run_coded<false>(const Launch&);
template Status run_coded<true>(const Launch&);

}  // namespace baracuda::norm
