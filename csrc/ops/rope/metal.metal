#include "ops/rope/simt.h"
#include "ops/rope/simt_norm.h"
#include "ops/rope/simt_table.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(rope_any_f32, (rope::RotateAny<float>))
BCU_METAL_KERNEL(rope_packs_f32, (rope::RotatePacks<float>))
BCU_METAL_KERNEL(rope_packs_f16, (rope::RotatePacks<simt::f16>))
BCU_METAL_KERNEL(rope_packs_bf16, (rope::RotatePacks<simt::bf16>))
BCU_METAL_KERNEL(rope_table, (rope::MakeTable))
BCU_METAL_KERNEL(rope_norm_forward_f32, (rope::NormRotateForward<float>))
BCU_METAL_KERNEL(rope_norm_backward_f32, (rope::NormRotateBack<float>))
BCU_METAL_KERNEL(rope_norm_terms_f32, (rope::NormRotateTerms<float>))
BCU_METAL_KERNEL(rope_norm_forward_f16, (rope::NormRotateForward<simt::f16>))
BCU_METAL_KERNEL(rope_norm_backward_f16, (rope::NormRotateBack<simt::f16>))
BCU_METAL_KERNEL(rope_norm_terms_f16, (rope::NormRotateTerms<simt::f16>))
BCU_METAL_KERNEL(rope_norm_forward_bf16, (rope::NormRotateForward<simt::bf16>))
BCU_METAL_KERNEL(rope_norm_backward_bf16, (rope::NormRotateBack<simt::bf16>))
BCU_METAL_KERNEL(rope_norm_terms_bf16, (rope::NormRotateTerms<simt::bf16>))
BCU_METAL_KERNEL(rope_norm_finish, (simt::FoldRows<simt::StridedRows<float>, simt::SumFold<float>>))
