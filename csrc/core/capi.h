// What the parts of the C interface share: handles, and exceptions and refusals as status codes.
#pragma once
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "baracuda/baracuda.h"
#include "core/dltensor.h"
#include "core/json.h"
#include "core/plan.h"

struct bcu_error {
  std::string message, code, reasons = "[]";
};

struct bcu_plan {
  std::unique_ptr<baracuda::PlanCore> core;
  std::string title;             // how messages call it
  std::vector<int32_t> tensors;  // slots, in the order in which callers give them
  std::vector<int32_t> scalars;  // numbers of scalar parameters
  std::vector<int32_t> absent;   // slots of optional tensors that the plan does not have
};

namespace baracuda::capi {

// The calling thread's own.
bcu_error& last();
// Writes an error and returns its status.
bcu_status fail(bcu_error* error, const Refusals& refusals, const std::string& where);
bcu_status fail_with(bcu_error* error, bcu_status status, std::string message, const Refusals& refusals);
bcu_status refuse_null(bcu_error* error, const char* argument);
// For the exception that is being handled.
bcu_status fail_caught(bcu_error* error) noexcept;

// No exception leaves the interface.
template <class F>
bcu_status guarded(bcu_error* error, F f) noexcept {
  try {
    return f();
  } catch (...) {
    return fail_caught(error);
  }
}

// Tensors as views, and the use of memory that devices name by objects: until this goes.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    for (Adopted& a : held_) a.give_up();
  }

  // Fills all of `view` but read_only; false with the reason.
  bool take(const DLTensor& tensor, TensorView& view, std::unique_ptr<Refusal>& why) {
    return read_dltensor(tensor, view, why) && find(tensor.data, tensor.byte_offset, view, why);
  }
  // Gives a view its address, in memory that a host's pointer names; false with the reason.
  bool find(void* memory, uint64_t offset, TensorView& view, std::unique_ptr<Refusal>& why);

 private:
  std::vector<Adopted> held_;
};

// A number for a parameter; false with the reason.
bool take_number(const ScalarParam& param, const bcu_scalar& given, Backend backend, int32_t device, Borrowed& borrowed,
                 Scalar& out, std::unique_ptr<Refusal>& why);
// False with the status where a caller's options are none.
bool known_options(const bcu_load_options* options, bcu_status& status, bcu_error* error);
// Throws DocumentError; null with the error written where no row takes the plan.
std::unique_ptr<PlanCore> load_plan(const Reader& document, const bcu_load_options* options, std::string* title,
                                    bcu_status& status, bcu_error* error);

// Whether the stream is one of the device's; `capturing`: whether it is being captured.
bool ask_stream(Backend backend, int32_t number, void* stream, bool& capturing, Refusals& out);
// Whether the stream is one, and takes this launch.
bool may_launch(const PlanCore& plan, void* stream, Refusals& out);

// Whether a caller's struct of `size` bytes has nothing that this version, which knows the first ones, would miss.
bool known_struct(const void* given, size_t size, size_t known);
char* copy_text(const std::string& text);

}  // namespace baracuda::capi
