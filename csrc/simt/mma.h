// Products of small matrices by a warp, and what feeds them; not for Metal.
//
//   Mma<T>::add(ctx, a, b, c)   C += A B with A of 16 x 16 and B of 16 x 8 elements of f16 or bf16, C of 16 x 8 floats
//   load_matrices<kTransposed>(ctx, row, out)   four matrices of 8 x 8 elements from shared memory
//   CopyQueue                   copies 16 bytes at a time from global to shared memory beside other work
//
// What a lane holds is as PTX has it. With group = lane / 4 and pair = lane % 4, each word two elements, low half
// first:
//   a[0..3]  A at row group, group + 8, group, group + 8 and columns 2 pair, 2 pair + 1; for a[2] and a[3] 8 further on
//   b[0..1]  B at column group and rows 2 pair, 2 pair + 1; for b[1] 8 further on
//   c[0..3]  C at row group (c[2], c[3]: group + 8) and columns 2 pair, 2 pair + 1, 2 pair, 2 pair + 1
// load_matrices: lane 8 i + r has the address of row r of matrix i, 16 bytes; out[i] is that matrix at row `group` and
// columns 2 pair, 2 pair + 1, or of its transpose.
#pragma once
#include "simt/simt.h"

#if defined(__CUDACC__)

namespace baracuda::simt {

template <class T>
struct Mma;
template <>
struct Mma<f16> {
  BCU_DEVICE void add(const Context&, const uint32_t* a, const uint32_t* b, float* c) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
template <>
struct Mma<bf16> {
  BCU_DEVICE void add(const Context&, const uint32_t* a, const uint32_t* b, float* c) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

template <bool kTransposed>
BCU_DEVICE void load_matrices(const Context&, const void* row, uint32_t* out) {
  uint32_t at = uint32_t(__cvta_generic_to_shared(row));
  if (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

// Copies of one thread. A copy is there after the thread has waited for the group that it was committed with; barriers
// show it to other threads.
struct CopyQueue {
  // `bytes` of 16, from 0 to 16; the others become zero.
  BCU_METHOD void copy(void* to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(uint32_t(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(bytes)
                 : "memory");
  }
  BCU_METHOD void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  // Until at most so many groups are under way.
  template <int kGroups>
  BCU_METHOD void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
  }
};

}  // namespace baracuda::simt

#elif !defined(BCU_METAL_LAUNCHERS)
#include "simt/mma_host.h"
#endif
