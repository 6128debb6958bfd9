// The order in which the elements of a new result lie: that of the tensors which it is made of, as the framework has it
// whose tensors they are.
#pragma once
#include <Python.h>

#include <cstdint>
#include <span>

#include "core/launch.h"

namespace baracuda::bindings {

// Which of the operands' strides decide, and how.
enum class OrderRule : uint8_t {
  Elementwise,  // all operands', which broadcast to the result; the first that tells two dimensions apart decides
  Mixed,        // the same where a number was an operand, too, which keeps torch from its shortcuts
  Same,         // the first operand's, which has the result's shape
  Channels,     // channels last where one operand has them so, else C order
};
inline constexpr const char* kOrderRuleNames[] = {"elementwise", "mixed", "same", "channels"};

// Whose rules break ties: NumPy's ufuncs order dimensions otherwise than torch does.
enum class OrderOf : uint8_t { Torch, NumPy };

inline constexpr int kMaxOrdering = 8;  // operands that decide

struct Lying {
  int rank = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;
};

// Whether the strides are those that a fresh tensor has, in dimensions of size 1, too.
inline bool is_fresh(const Lying& x) {
  int64_t want = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    if (x.strides[i] != want) return false;
    want *= x.shape[i];
  }
  return true;
}

// Strides of a new result of a shape, in elements and without gaps; false where it lies in C order.
bool order_strides(OrderRule rule, OrderOf of, std::span<const Lying> operands, int rank, const int64_t* shape,
                   int64_t* strides);

// Whether a callable is _core.numpy_empty, which makes a NumPy array of a shape, strides and a dtype.
bool is_numpy_empty(PyObject* make);
// A new array with strides in elements that leave no gaps; null with an exception.
PyObject* numpy_empty(PyObject* dtype, int rank, const int64_t* shape, const int64_t* strides);

bool order_setup(PyObject* module);

}  // namespace baracuda::bindings
