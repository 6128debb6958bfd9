// The one evaluator: can_implement asks one row, select takes the best accepted row, capabilities() asks with
// wildcards.
#pragma once
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/api.h"
#include "core/refusal.h"
#include "core/registry.h"
#include "core/signature.h"

namespace baracuda {

struct Preference {
  std::string sku;  // "" or a SKU's readable name (or its variant)
  bool deterministic = false;
  bool batch_invariant = false;
  MathPrecision math = MathPrecision::Ieee;
  double max_error = std::numeric_limits<double>::infinity();
  int64_t max_workspace_bytes = std::numeric_limits<int64_t>::max();
};

struct Question {
  std::string op;  // "" is a wildcard
  Direction direction = Direction::Any;
  Backend backend = Backend::Any;
  int32_t device = 0;  // the backend's ordinal
  int32_t arch = -1;   // of a device that need not be here; -1: the one that is
  Element element = Element::Any;
  Element aux = Element::Any;
  std::vector<Element> reads;                         // further input elements
  int32_t rank = -1;                                  // the highest rank of a tensor; -1 is a wildcard
  int32_t alignment = 0;                              // said by the caller, bytes; 0: not said
  std::vector<std::pair<std::string, double>> given;  // attributes by name, where the problem is not known
  bool has_problem = false;                           // whether attrs and params are known
  std::vector<int64_t> attrs;
  std::vector<ParamMeta> params;
  Preference preference;

  Problem problem() const {
    return {attrs.data(), params.data(), static_cast<int32_t>(params.size()), element, aux, alignment};
  }
};

enum class Verdict : uint8_t { No, Depends, Yes };
inline constexpr const char* kVerdictNames[] = {"no", "depends", "yes"};

struct Answer {
  int32_t row = -1;
  Verdict verdict = Verdict::No;
  Refusals refusals;
  std::vector<std::string> depends;  // what the answer depends on
  int64_t workspace = 0;
};

// Strides that the caller says a tensor will have.
struct NamedStrides {
  std::string name;
  std::vector<int64_t> strides;
};
// Adds what a signature says of a problem: ranks, sizes at their maxima, and what is converted while being read.
BCU_API void take_signature(Question& question, const Signature& signature, const std::vector<NamedStrides>& promised);

BCU_API Answer evaluate(int32_t row, const Question& question);
// Every row of the question's op, in the order they are tried: preference first, then the table's order. Rows of other
// backends say so to a problem; a question without one is not about them.
BCU_API std::vector<Answer> evaluate_all(const Question& question);
BCU_API std::string sku_name(const Row& row, Element element);

}  // namespace baracuda
