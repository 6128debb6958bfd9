// What a family's metal.def is written with: the list of its Metal kernels, one line each.
//
//   BCU_METAL_KERNEL(softmax_forward_f32, (softmax::Forward<float>))     one body
//   BCU_METAL_MAP_FLOATS(gated_glu_forward, (gated::ForwardMap<gated::Glu>))   all bodies of an elementwise functor
//
// A body has its name within namespace baracuda; kernel names start with the family. The list is read twice: by the
// .metal text, where each line is a kernel, and by the host (metal_names.h), where each line says which kernel a body
// is, so that launching a body that no line names does not compile.
#pragma once

#define BCU_UNPACK(...) __VA_ARGS__

// The bodies of a functor F with parameters X, as map_launch.h's run_map picks them. C: the type it computes in.
#define BCU_METAL_MAP_STRIDED_WITH(name, F, C, X)                                                  \
  BCU_METAL_KERNEL(name##_strided_i32, (simt::MapStrided<BCU_UNPACK F, C, BCU_UNPACK X, int32_t>)) \
  BCU_METAL_KERNEL(name##_strided_i64, (simt::MapStrided<BCU_UNPACK F, C, BCU_UNPACK X, int64_t>))
#define BCU_METAL_MAP_FLOATS_WITH(name, F, X)                                                     \
  BCU_METAL_KERNEL(name##_f32_packed, (simt::MapPacked<BCU_UNPACK F, float, BCU_UNPACK X>))       \
  BCU_METAL_KERNEL(name##_f16_packed, (simt::MapPacked<BCU_UNPACK F, simt::f16, BCU_UNPACK X>))   \
  BCU_METAL_KERNEL(name##_bf16_packed, (simt::MapPacked<BCU_UNPACK F, simt::bf16, BCU_UNPACK X>)) \
  BCU_METAL_MAP_STRIDED_WITH(name##_f32, F, float, X)

// The same for functors without parameters. Floats are what map_floats launches; I64 and U64 are what
// run_map<F, int64_t> and run_map<F, uint64_t> launch.
#define BCU_METAL_MAP_FLOATS(name, F) BCU_METAL_MAP_FLOATS_WITH(name, F, (simt::Nothing))
#define BCU_METAL_MAP_I64(name, F) BCU_METAL_MAP_STRIDED_WITH(name##_i64, F, int64_t, (simt::Nothing))
#define BCU_METAL_MAP_U64(name, F) BCU_METAL_MAP_STRIDED_WITH(name##_u64, F, uint64_t, (simt::Nothing))
