#include "ops/conv/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(conv_gather_f32, (conv::Gather<float>))
BCU_METAL_KERNEL(conv_gather_f16, (conv::Gather<simt::f16>))
BCU_METAL_KERNEL(conv_gather_bf16, (conv::Gather<simt::bf16>))
BCU_METAL_KERNEL(conv_channel_sum_f32, (conv::ChannelSum<float>))
BCU_METAL_KERNEL(conv_channel_sum_f16, (conv::ChannelSum<simt::f16>))
BCU_METAL_KERNEL(conv_channel_sum_bf16, (conv::ChannelSum<simt::bf16>))
