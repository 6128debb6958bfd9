// A plan as bytes: what select was asked, with attributes and arguments by name. Nothing of it depends on the host's
// language, on a row's number or on this machine; loading asks select again.
#pragma once
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/select.h"

namespace baracuda {

inline constexpr int kSchema = 2;  // counts up with each change; older documents from 1.0 on will be read

struct PlanDocument {
  Question question;
  Signature signature;
  int32_t threads = 0;
  std::string sku;  // the kernel that was chosen
  Json descriptor;  // Python's, with the class's name; other hosts pass over it
};

BCU_API Json write_plan(const PlanCore& plan, Json descriptor);
// Throws DocumentError for anything that write_plan did not write.
BCU_API PlanDocument read_plan(const Reader& document);

// Parts that documents share.
Element read_element(const Reader& r);
void read_device(const Reader& r, Backend& backend, int32_t& device);  // "cpu", "cuda:1", "metal"
ScalarParam read_scalar(const Reader& r);
// Of what the writer said: a document that was changed by accident or by hand is told apart, since the engine cannot
// know which shapes an op takes together.
std::string digest_of(const std::vector<const Json*>& parts);
// The schema and the kind; throws.
void check_kind(const Reader& document, const char* kind);

}  // namespace baracuda
