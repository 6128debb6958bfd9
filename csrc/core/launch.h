// What a kernel is given: tensors, scalars and attributes in signature order, and memory it may use. Nothing else.
#pragma once
#include <cstdint>

#include "core/api.h"
#include "core/attrs.h"
#include "core/element.h"

namespace baracuda {

inline constexpr int kMaxRank = 8;

enum class Backend : uint8_t { Cpu, Cuda, Metal, Count, Any = 255 };
enum class Direction : uint8_t { Forward, Backward, Any = 255 };
inline constexpr const char* kBackendNames[] = {"cpu", "cuda", "metal"};
inline constexpr const char* kDirectionNames[] = {"forward", "backward"};
constexpr const char* name(Backend b) { return kBackendNames[static_cast<int>(b)]; }
constexpr const char* name(Direction d) { return kDirectionNames[static_cast<int>(d)]; }

// Return codes of a launch; the Python errors map one to one (docs/errors.md).
enum class Status : int32_t {
  Ok = 0, Misaligned = 1, InvalidProblem = 2, Unsupported = 3, Workspace = 4, Launch = 5,
  IndexOutOfRange = 6, IntegerDivision = 7, ValueOutOfRange = 8
};

struct TensorView {
  void* data = nullptr;
  int64_t shape[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // in elements, signed; what a size-1 dimension carries is ignored
  int32_t rank = 0;                // -1: an optional tensor that this plan does not have
  Element element = Element::F32;
  Backend device = Backend::Cpu;
  bool read_only = false;
  bool unbacked = false;  // a shape without memory, as can_implement takes it; never reaches a kernel
  int32_t device_id = 0;

  bool present() const { return rank >= 0; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  template <class T>
  T* as() const { return static_cast<T*>(data); }
};

inline bool is_contiguous(const TensorView& t) {
  int64_t want = 1;
  bool dense = true;
  for (int i = t.rank - 1; i >= 0; --i) {
    if (t.shape[i] == 0) return true;
    dense &= t.shape[i] == 1 || t.strides[i] == want;
    want *= t.shape[i];
  }
  return dense;
}

// A number given to run, either by value or as a 0-d tensor that is read when the kernel runs.
struct Scalar {
  enum class Kind : uint8_t { Float, Int, Unsigned };
  union {
    double f;
    int64_t i;
    uint64_t u;
  };
  const void* data = nullptr;  // not null: read `element` from here at launch time
  Element element = Element::F64;
  Kind kind = Kind::Float;

  constexpr Scalar() : f(0) {}
  BCU_API double as_f64() const;
  BCU_API int64_t as_i64() const;
  BCU_API uint64_t as_u64() const;
};

// What a kernel found in the data; turned into an error message by the caller.
struct Failure {
  int32_t tensor = -1;    // position in the signature's tensors
  int64_t position = -1;  // linear element position in that tensor
  int64_t value = 0;      // of ValueOutOfRange: the bits of a double
  int64_t limit = 0;      // of ValueOutOfRange: a ValueRange
};

// What a ValueOutOfRange kernel wants a number in the data to be. Faults of GPUs carry -2 - range as their limit.
enum class ValueRange : int64_t { Finite, Unit, NotNegative, PositiveSum, Count };
constexpr const char* name(ValueRange range) {
  constexpr const char* kNames[] = {"a finite number", "0 <= value <= 1", "a finite number that is not negative",
                                    "a finite sum above 0"};
  return kNames[static_cast<int>(range)];
}

struct Launch {
  const TensorView* tensors = nullptr;  // tensor parameters in signature order; a variadic one is flattened
  const int32_t* first = nullptr;       // first[p] .. first[p + 1]: where tensor parameter p lies in `tensors`
  int32_t n_params = 0;                 // tensor parameters
  const Scalar* scalars = nullptr;      // scalar parameters in signature order
  const int64_t* attrs = nullptr;       // 8-byte slots in the order that BCU_ATTRS declares
  void* workspace = nullptr;            // 64-byte aligned, workspace_size(plan) bytes
  void* stream = nullptr;               // of the device's own kind; null is its default stream
  int32_t device = 0;                   // the ordinal of the plan's device
  int64_t row = -1;  // this kernel's row in the table, below the number of its step (core/sites.h)
  const void* prepared = nullptr;       // the plan's Prepared, of rows that prepare
  Failure* failure = nullptr;
  Element element = Element::F32;  // the plan's primary and second element
  Element aux = Element::F32;
  bool batch_invariant = true;  // what this kernel's row promises, where one kernel serves several

  const TensorView& operator[](int param) const { return tensors[first[param]]; }
  int count(int param) const { return first[param + 1] - first[param]; }
};

using Kernel = Status (*)(const Launch&);

}  // namespace baracuda
