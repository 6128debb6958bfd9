// The one evaluator: can_implement asks one row, select takes the best accepted row, capabilities() asks with
// wildcards.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "core/api.h"
#include "core/refusal.h"
#include "core/registry.h"

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
  Element element = Element::Any;
  Element aux = Element::Any;
  std::vector<Element> reads;  // further input elements
  int32_t rank = -1;           // the highest rank of a tensor; -1 is a wildcard
  bool contiguous = false;     // promised by the caller for all tensors
  int32_t alignment = 0;       // promised by the caller, bytes
  bool has_problem = false;    // whether attrs and params are known
  std::vector<int64_t> attrs;
  std::vector<ParamMeta> params;
  Preference preference;

  Problem problem() const { return {attrs.data(), params.data(), static_cast<int32_t>(params.size()), element, aux}; }
};

enum class Verdict : uint8_t { No, Depends, Yes };

struct Answer {
  int32_t row = -1;
  Verdict verdict = Verdict::No;
  Refusals refusals;
  std::vector<std::string> depends;  // what the answer depends on
  int64_t workspace = 0;
};

BCU_API Answer evaluate(int32_t row, const Question& question);
// Every row of the question's op, in the order they are tried: preference first, then the table's order.
BCU_API std::vector<Answer> evaluate_all(const Question& question);
BCU_API std::string sku_name(const Row& row, Element element);

}  // namespace baracuda
