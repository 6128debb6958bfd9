// Sizes of programs: constant + sum of coefficient * product of symbols, the whole divided exactly or rounded up.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/api.h"
#include "core/json.h"
#include "core/signature.h"

namespace baracuda {

inline constexpr int kMaxProgramSymbols = 16;

class SizeExpr {
 public:
  struct Term {
    int64_t coefficient = 1;
    std::vector<int> symbols;  // numbers in the program's list; one may come twice
  };

  SizeExpr() = default;
  explicit SizeExpr(int64_t constant) : constant_(constant) {}

  bool fixed() const { return terms_.empty(); }
  // The number of the symbol that this size is, or -1.
  int symbol() const { return bare_; }
  // False where it leaves a remainder that it should not, or 64 bits.
  bool eval(const int64_t* symbols, int64_t& out) const {
    if (bare_ >= 0) return out = symbols[bare_], true;
    if (terms_.empty() && divisor_ == 1) return out = constant_, true;
    return eval_terms(symbols, out);
  }
  // Whether this is other * mul + add, whatever the symbols are; false where that takes a division.
  BCU_API bool follows(const SizeExpr& other, int64_t mul, int64_t add) const;

  BCU_API static SizeExpr read(const Reader& r, const std::vector<Symbol>& symbols);
  BCU_API std::string text(const std::vector<Symbol>& symbols) const;

 private:
  BCU_API bool eval_terms(const int64_t* symbols, int64_t& out) const;

  int64_t constant_ = 0;
  std::vector<Term> terms_;  // in one order, none twice
  int bare_ = -1;
  int64_t divisor_ = 1;
  bool up_ = false;  // rounds up; else the division is exact
};

}  // namespace baracuda
