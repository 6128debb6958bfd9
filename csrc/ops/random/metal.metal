#include "ops/random/simt.h"
#include "ops/random/simt_discrete.h"
#include "ops/random/simt_multinomial.h"
#include "ops/random/simt_rejection.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(random_uniform_f32, (random::Fill<random::UniformDraw<float>, float>))
BCU_METAL_KERNEL(random_normal_f32, (random::Fill<random::NormalDraw<float>, float>))
BCU_METAL_MAP_WITH(random_bernoulli, (random::TossDraw), float, 1, 1, (random::DrawExtra))
BCU_METAL_MAP_WITH(random_randint, (random::IntegerDraw), int64_t, 1, 1, (random::DrawExtra))
BCU_METAL_MAP_WITH(random_randperm, (random::ShuffleDraw), int64_t, 1, 1, (random::DrawExtra))
BCU_METAL_MAP_WITH(random_dropout, (random::DropoutDraw), float, 1, 1, (random::DrawExtra))
BCU_METAL_KERNEL(random_weigh, (random::WeighRows<float>))
BCU_METAL_KERNEL(random_samples, (random::DrawSamples<float>))
BCU_METAL_KERNEL(random_take, (random::TakeSamples<float>))
BCU_METAL_MAP_WITH(random_gamma, (random::Drawn<random::GammaDraw>), float, 1, 1, (random::DrawExtra))
BCU_METAL_MAP_WITH(random_beta, (random::Drawn<random::BetaDraw>), float, 2, 1, (random::DrawExtra))
BCU_METAL_MAP_WITH(random_poisson, (random::Drawn<random::PoissonDraw>), float, 1, 1, (random::DrawExtra))
BCU_METAL_MAP_WITH(random_binomial, (random::Drawn<random::BinomialDraw>), float, 2, 1, (random::DrawExtra))
