// A plan's signature, packed at select from the Python spec: what each argument of run must be.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/checked.h"
#include "core/launch.h"

namespace baracuda {

enum class Role : uint8_t { In, InOut, Out };
inline constexpr const char* kRoleNames[] = {"in", "in-out", "out"};
inline constexpr const char* kScalarKindNames[] = {"float", "int", "unsigned"};

inline constexpr int kMaxSymbols = 8;
inline constexpr int kMaxArgs = 32;  // tensor and scalar parameters of one op
inline constexpr int kMaxScalars = 16;

// A size: a constant, or symbol * mul / div + add where the symbol is a bc.Dim read from the tensors.
struct DimExpr {
  int64_t value = 0;
  int32_t symbol = -1;
  int32_t mul = 1, div = 1;
  int64_t add = 0;

  bool bare() const { return symbol >= 0 && mul == 1 && div == 1 && add == 0; }
  // Divisions are exact for symbols that the checker accepted. The detour keeps made-up sizes from overflowing.
  int64_t eval(const int64_t* symbols) const {
    return symbol < 0 ? value : static_cast<int64_t>(__int128{symbols[symbol]} * mul / div + add);
  }
  // The symbol's value for which this size is `size`, or -1.
  int64_t solve(int64_t size) const {
    __int128 scaled = (__int128{size} - add) * div;
    return scaled < 0 || scaled % mul ? -1 : static_cast<int64_t>(scaled / mul);
  }
};

struct Slot {  // one tensor
  int32_t param = 0;
  Role role = Role::In;
  Element element = Element::F32;
  int32_t rank = 0;
  DimExpr dims[kMaxRank];
};

struct Param {  // one tensor argument; a variadic one has several slots, an absent one still has a place
  std::string name;
  Role role = Role::In;
  bool present = true;
  bool variadic = false;
  bool reads = false;  // its element is converted while being read: the row lists it as convertible
  int32_t first = 0, count = 1;
};

struct ScalarParam {  // one number argument; an absent one still has a place
  std::string name;
  Scalar::Kind kind = Scalar::Kind::Float;
  bool present = true, has_default = false, has_least = false;
  Scalar value{};
  double least = 0;             // the smallest number that is taken; one in device memory is not looked at
  Element fits = Element::Any;  // an integer element that must hold the number, as torch has it
};

// Whole numbers least .. most.
struct WholeRange {
  int64_t least;
  uint64_t most;
};

// The numbers that a parameter of kind Int or Unsigned takes. Where a signed one goes to an unsigned element it may
// stand for the number of the same bits, as in torch: -1 for the greatest.
constexpr WholeRange whole_range(const ScalarParam& p) {
  const bool whole = p.kind == Scalar::Kind::Unsigned;
  if (p.fits == Element::Any || !kInts.has(p.fits))
    return {whole ? 0 : INT64_MIN, whole ? UINT64_MAX : uint64_t{INT64_MAX}};
  const int bits = info(p.fits).bits;
  const uint64_t most = ~uint64_t{0} >> (64 - bits + kSigned.has(p.fits));
  const uint64_t held = whole ? most : std::min<uint64_t>(most, INT64_MAX);
  if (whole) return {0, held};
  return {kSigned.has(p.fits) ? -static_cast<int64_t>(most) - 1 : -static_cast<int64_t>(held), held};
}

struct Symbol {
  std::string name;
  int64_t max = 0;
};

struct Signature {
  std::vector<Param> params;
  std::vector<Slot> slots;  // flattened, absent parameters included
  std::vector<ScalarParam> scalars;
  std::vector<Symbol> symbols;
};

}  // namespace baracuda
