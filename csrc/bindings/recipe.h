// How calls of one shape are carried out: bc.functional's recipes, a plan or a program each, parsed once and run
// without a Python frame.
#pragma once
#include <Python.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "bindings/order.h"
#include "bindings/plan.h"
#include "bindings/torch_empty.h"

namespace baracuda::bindings {

constexpr int kMaxParams = 24;

// Rest: a list that takes all further positional arguments.
enum class ParamKind : uint8_t { Tensor, Scalar, Attribute, Out, List, Rest };
inline constexpr const char* kParamKindNames[] = {"tensor", "scalar", "attribute", "out", "list", "rest"};

struct FunctionParam {
  PyObject* name;  // interned
  ParamKind kind;
  bool keyword_only;
  PyObject* fallback;  // the default, or null when required
  PyObject* others;    // a tuple: further names that the argument is taken by
};

// Views of the members of lists, not initialised; a few of them need no memory of their own.
class Members {
 public:
  Members() = default;
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  size_t size() const { return n_; }
  TensorView& operator[](size_t i) { return views_[i]; }
  std::span<const TensorView> all() const { return {views_, n_}; }
  void grow(size_t more) {
    if (n_ + more > room_) {
      room_ = 2 * (n_ + more);
      auto wider = std::make_unique<TensorView[]>(room_);
      std::copy_n(views_, n_, wider.get());
      many_ = std::move(wider);
      views_ = many_.get();
    }
    n_ += more;
  }

 private:
  static constexpr size_t kFew = 8;
  TensorView* views_ = reinterpret_cast<TensorView*>(few_);
  size_t n_ = 0, room_ = kFew;
  std::unique_ptr<TensorView[]> many_;
  alignas(TensorView) char few_[kFew * sizeof(TensorView)];
};

// A size of a result or of a view that an earlier part of the recipe counts.
inline constexpr int64_t kCounted = -1;

// Of the function's parameters; while a later part of a recipe runs, the results of those before it stand behind them.
struct Arguments {
  PyObject* values[kMaxParams];
  TensorView* views;  // not initialised: filled for the parameters that are tensors
  bool is_tensor[kMaxParams] = {};
  Members members;                   // of all lists
  int32_t first_member[kMaxParams];  // in `members`; -1 of what was not read as a list
  int32_t n_before = 0;              // results of earlier parts
  int64_t counted = 0;               // what kCounted stands for
  Keep keep;

  Arguments() : views(reinterpret_cast<TensorView*>(memory_)) {}

 private:
  alignas(TensorView) char memory_[kMaxParams * sizeof(TensorView)];
};

// Where an argument of the plan or the program comes from.
struct Source {
  // Before: what an earlier part made; it is one more argument once it is parsed.
  enum class From : uint8_t { Argument, Constant, Allocated, Member, Before } from;
  int32_t index;                 // function parameter, or allocation
  PyObject* constant = nullptr;  // of a member, its place in the list
  int32_t member = 0;
  int32_t n_dims = -1;  // >= 0: the plan sees dimensions `dims` of the tensor, -1 for an inserted one
  int8_t dims[kMaxRank] = {};
  bool fitted = false;           // the plan sees `sizes`: the first elements of a dimension, or one of size 1 broadcast
  int64_t sizes[kMaxRank] = {};  // kCounted: the first so many elements
};

inline constexpr const char* kSourceNames[] = {"argument", "constant", "allocated", "member", "before"};

// How a result lies that is not always in C order. Recipes that are kept for strides, too, know its own; others find
// them in each call.
struct Ordered {
  PyObject* make = nullptr;     // callable of sizes, strides and what else the allocation has; null: C order
  PyObject* strides = nullptr;  // a tuple, or null where these decide:
  OrderRule rule = OrderRule::Elementwise;
  OrderOf of = OrderOf::Torch;
  std::vector<Source> by;
  PyObject* numpy = nullptr;  // borrowed: the dtype of what NumPy's own C function makes
  int32_t rank = 0;
  int64_t sizes[kMaxRank] = {};
};

struct Allocation {
  PyObject* make;          // callable
  PyObject* args;          // tuple of its positional, then keyword arguments
  PyObject* kwnames;       // or null
  int32_t out_param = -1;  // the function's out= parameter, which takes the place of a new result
  bool before = false;     // it is no parameter but what an earlier part made
  PyObject* convert;       // hands a new result to another framework, or null
  bool torch = false;      // it is a torch tensor of this kind, and needs no call of Python's
  bool sized = false;      // kCounted is among the sizes
  TorchEmpty kind;
  Ordered ordered;
};

struct Entry;

// The next part of a recipe, where only the data say how large results are.
struct Then {
  // Results of the part before, of one i64 each: the size, and what shows wrong data. Empty where the size is known.
  std::vector<int32_t> numbers;
  int64_t least = 0;  // of the size: it is not smaller
  int64_t most = 0;
  PyObject* refuse = nullptr;  // raises for numbers of which one is negative, or whose first is above `most`
  std::shared_ptr<Entry> entry;
};

// What to do for calls of one shape: immutable, shared by the threads that run it.
struct Entry {
  PyObject* plan = nullptr;     // either a plan,
  PyObject* program = nullptr;  // or a program,
  bool strided = false;         // or neither: it depends on strides, too, and has keys with them
  std::vector<Source> sources;
  std::vector<Allocation> allocations;
  std::vector<int32_t> returns;
  bool listed = false;  // a tuple, even of one result
  Then then;            // has an entry where this is not the last part
  bool has_program() const { return program || (then.entry && then.entry->has_program()); }
  ~Entry() {
    Py_XDECREF(plan);
    Py_XDECREF(program);
    for (Source& s : sources) Py_XDECREF(s.constant);
    for (Allocation& a : allocations)
      Py_XDECREF(a.make), Py_XDECREF(a.args), Py_XDECREF(a.kwnames), Py_XDECREF(a.convert), Py_XDECREF(a.ordered.make),
          Py_XDECREF(a.ordered.strides);
    for (Allocation& a : allocations)
      for (Source& s : a.ordered.by) Py_XDECREF(s.constant);
    Py_XDECREF(then.refuse);
  }
};

// Makes an Entry of (plan or program, sources, allocations, returns, listed, next part or None), see op.py's Recipe;
// null with an exception set. `n_before`: results of earlier parts.
std::shared_ptr<Entry> parse_entry(PyObject* recipe, int n_params, int n_before = 0);
// A reference to a new result, or to the tensor given as out=. What a call without data makes has none either. Null
// with an exception set.
PyObject* allocate_result(const Allocation& a, const Arguments& args);
// What a plan sees of a tensor that a source names. `counted`: what kCounted stands for.
inline void apply_dims(const Source& s, TensorView& view, int64_t counted) {
  if (s.n_dims < 0) return;
  TensorView out = view;
  out.rank = s.n_dims;
  for (int i = 0; i < s.n_dims; ++i) {
    const bool one = s.dims[i] < 0 || view.shape[s.dims[i]] == 1;
    const int64_t size = s.sizes[i] == kCounted ? counted : s.sizes[i];
    out.shape[i] = s.dims[i] < 0 ? 1 : view.shape[s.dims[i]];
    out.strides[i] = s.dims[i] < 0 ? 0 : view.strides[s.dims[i]];
    if (!s.fitted || (!one && size > out.shape[i])) continue;
    if (one && size != 1) out.strides[i] = 0;
    out.shape[i] = size;
  }
  view = out;
}
using Params = std::span<const FunctionParam>;
// Reads tensors anew that other code may have moved since they were read; false with an exception.
bool read_again(PyObject* function, Params params, Arguments& arguments);
// Runs an entry for a function's arguments; `function` and its `params` are for messages.
PyObject* run_entry(PyObject* function, Params params, const Entry& entry, Arguments& arguments);

}  // namespace baracuda::bindings
