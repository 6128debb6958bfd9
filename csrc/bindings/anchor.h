// Whether the memory of a tensor that was read some time ago is still its own.
#pragma once
#include <Python.h>

#include <utility>
#include <vector>

#include "bindings/import.h"

namespace baracuda::bindings {

// Where the memory of one tensor was that can be given other memory in place (torch's x.data = ..., set_, resize_;
// NumPy's resize; our rebase), after which the old one may be freed. torch's storage is held, so that no other tensor's
// memory can come to lie where it was.
struct Anchor {
  PyObject* object = nullptr;   // borrowed: who has the anchor holds it
  PyObject* storage = nullptr;  // held; null for others than torch's
  TorchStorage torch{};
  const void* data = nullptr;
  int32_t rank = 0;  // -1 for our own, whose shape stays
  Py_ssize_t sizes[kMaxRank];

  Anchor() = default;
  Anchor(Anchor&& other) noexcept : Anchor(other) { other.storage = nullptr; }
  Anchor& operator=(Anchor&&) = delete;
  ~Anchor() { Py_XDECREF(storage); }

 private:
  Anchor(const Anchor&) = default;
};

class Anchors {
 public:
  // Anchors a tensor, or each of a tuple of them; all other objects keep their memory. False with an exception set.
  bool add(PyObject* object);
  // The first object that was moved, or null.
  PyObject* moved() const;

 private:
  std::vector<Anchor> all_;
};

}  // namespace baracuda::bindings
