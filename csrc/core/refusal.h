// Why something cannot be done: enumerated codes (API, docs/errors.md) with the field, what came, what is wanted, what
// to do.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace baracuda {

#define BCU_REFUSALS(X)                                                                                             \
  X(Op, "op")                                                                                                       \
  X(Direction, "direction") X(Backend, "backend") X(NotBuilt, "not_built") X(NoDevice, "no_device") X(Arch, "arch") \
      X(ElementKind, "element") X(AuxElement, "aux_element") X(Rank, "rank")                    \
          X(Sku, "sku") X(Deterministic, "deterministic")                                 \
              X(BatchInvariant, "batch_invariant") X(MathPrecision, "math_precision") X(MaxError, "max_error")      \
                  X(WorkspaceLimit, "workspace_limit") X(Problem, "problem") X(MissingArgument, "missing_argument") \
                      X(UnknownArgument, "unknown_argument") X(Shape, "shape") X(Dim, "dim") X(Device, "device")    \
                          X(ReadOnly, "read_only") X(Overlap, "overlap") X(SelfOverlap, "self_overlap")             \
                              X(Workspace, "workspace") X(WorkspaceAlignment, "workspace_alignment")                \
                                  X(ListLength, "list_length") X(ScalarKind, "scalar") X(Misaligned, "misaligned")  \
                                      X(NullData, "null_data") X(NotATensor, "not_a_tensor")                        \
                                          X(ByteOrder, "byte_order") X(Strides, "strides") X(Masked, "masked")      \
                                              X(RequiresGrad, "requires_grad") X(Conjugate, "conjugate")            \
                                                  X(Negative, "negative") X(Sparse, "sparse") X(Meta, "meta")       \
                                                      X(Capsule, "capsule") X(Stream, "stream")                     \
                                                          X(Event, "event") X(Capture, "capture")                   \
                                                          X(IndexRange, "index_out_of_range")                       \
                                                              X(IntegerDivision, "integer_division")                \
                                                                  X(ValueRange, "value_out_of_range")              \
                                                                  X(LaunchFailed, "launch_failed")                 \
                                                                  X(DeviceMemory, "device_memory")                 \
                                                                  X(Moved, "moved") X(Busy, "busy")                \
                                                                  X(Document, "document") X(BufferTooSmall, "buffer_too_small")

enum class Code : uint8_t {
#define X(code, text) code,
  BCU_REFUSALS(X)
#undef X
};
inline constexpr const char* kCodeNames[] = {
#define X(code, text) text,
    BCU_REFUSALS(X)
#undef X
};
constexpr const char* name(Code c) { return kCodeNames[static_cast<int>(c)]; }

struct Refusal {
  Code code;
  std::string field;  // the argument or descriptor field
  std::string got;
  std::string want;
  std::string hint;
  int64_t needed = -1;  // bytes or a limit, where a number helps
  int64_t actual = -1;
};
using Refusals = std::vector<Refusal>;

}  // namespace baracuda
