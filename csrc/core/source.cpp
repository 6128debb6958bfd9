#include "core/source.h"

#include "core/registry.h"
#include "shapes.inc"

// The family's own source_of, or that of all: without looking into the argument's namespace, where both are found.
#define BCU_FAMILY(name)                                                                  \
  namespace baracuda::name {                                                              \
  static SourceRule found_source(const ::baracuda::Row& row) { return (source_of)(row); } \
  }
#include "families.inc"
#undef BCU_FAMILY

namespace baracuda {

SourceRule source_rule(int32_t row) {
  const std::string_view family = family_of(row);
#define BCU_FAMILY(name) \
  if (family == #name) return name::found_source(row_at(row));
#include "families.inc"
#undef BCU_FAMILY
  return nullptr;
}

}  // namespace baracuda
