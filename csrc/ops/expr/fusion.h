// A program made ready for a CPU: threaded code for its functions, in one compute type where that is possible, else in
// several with conversions between them.
#pragma once
#include <memory>
#include <optional>
#include <tuple>
#include <variant>

#include "core/prepare.h"
#include "ops/expr/compile.h"

namespace baracuda::expr {

enum class Class : uint8_t { F32, F64, I64, U64 };
inline constexpr int kClasses = 4;
constexpr Class class_of(Element e) {
  if (is_float(e)) return e == Element::F64 ? Class::F64 : Class::F32;
  return kSigned.has(e) ? Class::I64 : Class::U64;
}
// Calls f(C()).
template <class F>
decltype(auto) with_class(Class c, F&& f) {
  switch (c) {
    case Class::F32:
      return f(float());
    case Class::F64:
      return f(double());
    case Class::I64:
      return f(int64_t());
    default:
      return f(uint64_t());
  }
}
// An element that only this class computes in.
constexpr Element element_of_class(Class c) {
  constexpr Element kElements[] = {Element::F32, Element::F64, Element::I64, Element::U64};
  return kElements[static_cast<int>(c)];
}

// Values of several compute types lie in buffers of kChunk; one is stored in an element and loaded into another type.
inline constexpr int64_t kChunk = 64;
inline constexpr int kMaxBuffers = 256;
struct Conversion {
  int16_t from, to;  // buffers
  Class from_class, to_class;
  Element stored, loaded;  // of one size
};
using AnyRegion = std::variant<Compiled<float>, Compiled<double>, Compiled<int64_t>, Compiled<uint64_t>>;
struct RegionStep {
  AnyRegion code;
  std::vector<int16_t> in, out;  // buffers of its imports and exports
};
using Step = std::variant<Conversion, RegionStep>;

// Any tensor's bits as numbers: what carries mixed elements through the tile driver.
constexpr Element bits_of(Element e) {
  switch (size_of(e)) {
    case 1:
      return Element::U8;
    case 2:
      return Element::U16;
    case 4:
      return Element::U32;
    default:
      return Element::U64;
  }
}

// Programs with reductions go over rows, some of which are held at a time, once for every reduction that waits for
// another one. What a sweep is given and gives: tensors, values of all elements that are held until a later sweep or
// until they are folded, and values of rows.
inline constexpr int kMaxHeld = 3, kMaxRowValues = 16;
struct Place {
  enum class Of : int8_t { Tensor, Held, Row } of;
  int16_t at;
};
struct Fold {
  int held, row;  // of what, and the value of the row that it becomes
  Reduction how;
};
struct Sweep {
  AnyRegion code;
  std::vector<Place> in, out;  // of its imports and exports
  std::vector<Fold> folds;
  AnyRegion row_code;  // functions of rows' values, behind the folds
  std::vector<int16_t> row_in, row_out;
};
struct RowOutput {
  int output, row;
};

struct Fusion : Prepared {
  Program program;
  Element stored[kMaxInputs + kMaxOutputs];  // elements of the tensors
  std::optional<AnyRegion> single;           // of the class in which tensors are loaded
  std::vector<Sweep> sweeps;                 // where there are reductions
  std::vector<RowOutput> row_outputs;
  std::vector<Step> steps;
  int buffers = 0;  // the first ones are the inputs' and the outputs' bits
};

inline constexpr const char* kTooManyValues = "fewer values that are used again later: at most 32 at a time";

// Fills single, sweeps or steps; null, or what is too much.
const char* make_fusion(Fusion& fusion);
// Fills sweeps, all of whose functions compute in one class.
const char* make_sweeps(Fusion& fusion, Class computing);
// Where a cast's result is only stored, the tensor's element does what the cast would.
int16_t exported(const Program& program, const bool* used, int16_t value);

}  // namespace baracuda::expr
