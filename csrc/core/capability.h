// Questions about the SKU table and their answers as JSON, the same for every host: what bc.Question.to_json() writes,
// and what bc.Capabilities.from_json() reads.
#pragma once
#include "core/json.h"
#include "core/row.h"

namespace baracuda {

// The rows that answer a question, with their reasons. Throws DocumentError for what is no question.
BCU_API Json answer_question(const Reader& document);

Json write_guarantee(const Guarantee& guarantee, Element element);

}  // namespace baracuda
