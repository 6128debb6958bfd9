// What a family's metal.metal is written with: the list of its Metal kernels, one line each.
//
//   BCU_METAL_KERNEL(softmax_forward_f32, (softmax::Forward<float>))     one body
//   BCU_METAL_MAP(gated_glu_forward, (gated::Product<gated::Glu>), float, 2, 1)   an elementwise function
//
// A body has its name within namespace baracuda; kernel names start with the family. The list is read twice: by the
// .metal text, where each line is a kernel, and by the host (metal_names.h), where each line says which kernel a body
// is, so that launching a body that no line names does not compile.
#pragma once

#define BCU_UNPACK(...) __VA_ARGS__

// The kernel of an elementwise function F that computes in C, as run_map<F, C> launches it with so many inputs and
// outputs; and of one that has parameters X.
#define BCU_METAL_MAP(name, F, C, inputs, outputs) BCU_METAL_MAP_WITH(name, F, C, inputs, outputs, (simt::Nothing))
#define BCU_METAL_MAP_WITH(name, F, C, inputs, outputs, X) \
  BCU_METAL_KERNEL(name, (simt::Map<BCU_UNPACK F, C, inputs, outputs, BCU_UNPACK X>))
// All that map_integers launches, and all that map_real does.
#define BCU_METAL_MAP_INTEGERS(name, F, inputs, outputs) \
  BCU_METAL_MAP(name##_i64, F, int64_t, inputs, outputs) \
  BCU_METAL_MAP(name##_u64, F, uint64_t, inputs, outputs)
#define BCU_METAL_MAP_REAL(name, F, inputs, outputs)   \
  BCU_METAL_MAP(name##_f32, F, float, inputs, outputs) \
  BCU_METAL_MAP_INTEGERS(name, F, inputs, outputs)
