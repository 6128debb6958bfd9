#include "core/size.h"

#include <algorithm>

namespace baracuda {

bool SizeExpr::eval_terms(const int64_t* symbols, int64_t& out) const {
  int64_t total = constant_;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    for (const int s : term.symbols)
      if (__builtin_mul_overflow(product, symbols[s], &product)) return false;
    if (__builtin_add_overflow(total, product, &total)) return false;
  }
  out = total;
  if (divisor_ == 1) return true;
  const int64_t rest = total % divisor_;
  out = total / divisor_ + (up_ && rest > 0);
  return up_ || rest == 0;
}

// An integer, or {"constant": 1, "terms": [[2, "n", "m"], ...], "divide": 4, "up": true}.
SizeExpr SizeExpr::read(const Reader& r, const std::vector<Symbol>& symbols) {
  constexpr size_t kMostTerms = 64, kMostFactors = 8;
  SizeExpr out;
  if (!r.json().is(Json::Kind::Object)) {
    out.constant_ = r.integer();
    return out;
  }
  r.only({"constant", "terms", "divide", "up"});
  if (r.has("constant")) out.constant_ = r.at("constant").integer();
  if (r.has("divide")) out.divisor_ = r.at("divide").integer(1);
  if (r.has("up")) out.up_ = r.at("up").boolean();
  for (const Reader& given : r.at("terms").items(kMostTerms)) {
    const std::vector<Reader> parts = given.items(kMostFactors + 1);
    if (parts.size() < 2) given.wrong("a coefficient and names of dims");
    Term term{parts[0].integer(), {}};
    for (size_t i = 1; i < parts.size(); ++i) {
      size_t at = 0;
      while (at < symbols.size() && symbols[at].name != parts[i].text()) ++at;
      if (at == symbols.size()) parts[i].wrong("one of the program's dims");
      term.symbols.push_back(static_cast<int>(at));
    }
    std::sort(term.symbols.begin(), term.symbols.end());
    for (const Term& other : out.terms_)
      if (other.symbols == term.symbols) given.wrong("each product of dims once");
    if (term.coefficient) out.terms_.push_back(std::move(term));
  }
  std::sort(out.terms_.begin(), out.terms_.end(), [](const Term& a, const Term& b) { return a.symbols < b.symbols; });
  const bool bare = out.terms_.size() == 1 && out.terms_[0].coefficient == 1 && out.terms_[0].symbols.size() == 1;
  if (bare && out.constant_ == 0 && out.divisor_ == 1) out.bare_ = out.terms_[0].symbols[0];
  return out;
}

bool SizeExpr::follows(const SizeExpr& other, int64_t mul, int64_t add) const {
  const bool sums = divisor_ == 1 && other.divisor_ == 1;
  const bool same = !sums && mul == 1 && add == 0 && divisor_ == other.divisor_ && up_ == other.up_;
  if ((!sums && !same) || terms_.size() != other.terms_.size()) return false;
  int64_t wanted = 0;
  auto scaled = [&](int64_t n) { return !__builtin_mul_overflow(n, mul, &wanted); };
  for (size_t i = 0; i < terms_.size(); ++i)
    if (terms_[i].symbols != other.terms_[i].symbols || !scaled(other.terms_[i].coefficient) ||
        terms_[i].coefficient != wanted)
      return false;
  return scaled(other.constant_) && !__builtin_add_overflow(wanted, add, &wanted) && constant_ == wanted;
}

std::string SizeExpr::text(const std::vector<Symbol>& symbols) const {
  std::string out;
  for (const Term& term : terms_) {
    out += out.empty() ? "" : " + ";
    if (term.coefficient != 1) out += std::to_string(term.coefficient) + "*";
    for (size_t i = 0; i < term.symbols.size(); ++i) out += (i ? "*" : "") + symbols[term.symbols[i]].name;
  }
  if (constant_ || out.empty()) out += (out.empty() ? "" : " + ") + std::to_string(constant_);
  if (divisor_ != 1) out = (up_ ? "ceil((" : "(") + out + ") / " + std::to_string(divisor_) + (up_ ? ")" : "");
  return out;
}

}  // namespace baracuda
