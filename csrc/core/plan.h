// A selected plan: a row's kernel, the packed signature and attributes. Immutable; shared between threads.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/api.h"
#include "core/evaluate.h"
#include "core/prepare.h"
#include "core/refusal.h"
#include "core/shapes.h"
#include "core/signature.h"

namespace baracuda {

inline constexpr int64_t kWorkspaceAlignment = 64;
inline constexpr const char* kWorkspaceHint =
    "allocate it with bc.empty(plan.workspace_size, \"u8\", device=plan.device)";

// A tensor as the fast check reads it: what has to be equal, in few cache lines.
struct SlotCheck {
  int64_t shape[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // those of the contiguous tensor
  int64_t bytes = 0;
  int32_t slot = 0;
  int32_t rank = 0;
  Element element = Element::F32;
  bool written = false;
  bool contiguous = false;    // anything else needs a closer look
  uint32_t misalignment = 0;  // bits of the address that must be zero
};

struct PlanCore {
  int32_t row_index = -1;
  Row row;
  Kernel kernel = nullptr;
  ShapeRule rule = nullptr;
  std::shared_ptr<const Prepared> prepared;  // null for rows that make nothing
  Signature signature;
  std::vector<int32_t> first;     // signature.params.size() + 1 entries
  std::vector<SlotCheck> checks;  // of the tensors that the plan has; empty when sizes depend on symbols
  int64_t bytes = -1;             // that they hold together, where `checks` knows it
  uint64_t id = 0;                // no other plan of the process has had it
  bool looks = false;             // at numbers in memory, whether its scalars take them
  int64_t workspace_size = 0;
  int32_t threads = 0;  // 0: as many as the process uses
  Question question;    // as it was asked, with the device's ordinal and the attributes
};

// Fills `first`, `checks`, `bytes`, `id` and `looks` from the signature.
BCU_API void finish(PlanCore& plan);

// Bytes of workspace that a call needs where the symbols have these values, each at most its maximum. A launch is told
// nothing of the maxima: what it carves for a call's sizes, it would carve in a plan that is fixed to them.
BCU_API int64_t workspace_at(const PlanCore& plan, const int64_t* symbols);

// Whether a row's rule keeps to kMaxBytes for all values of the symbols up to their maxima; else false with the reason.
bool workspace_counts(const Row& row, const Question& question, const Signature& signature, Refusal& why);

// A call being checked: views of all slots, and the caller's workspace.
struct Call {
  TensorView* views = nullptr;  // by slot; absent parameters have rank -1
  const Scalar* scalars = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
  bool dry = false;            // a question: tensors without memory are fine
  bool numbers_later = false;  // their memory is not written yet: who launches looks at them
};

// What an address of such elements is a multiple of.
BCU_API int64_t alignment_of(Element element);

// The refusal of a number that a scalar parameter of whole numbers does not take.
BCU_API Refusal out_of_range(const ScalarParam& param, std::string got);

// Whether a number in the host's memory, if it is one, is such as the parameter takes; false with the reason.
BCU_API bool holds_number(const ScalarParam& param, const Scalar& scalar, Refusal& why);

// Whether a plan whose sizes are symbols takes the tensors of a call, which are as its signature has them, with so many
// bytes of workspace; false with the reason. Plans of fixed sizes were asked when they were selected.
BCU_API bool check_sizes(const PlanCore& plan, const TensorView* views, int64_t workspace_bytes, Refusals& refusals);

// Whether all numbers of a call are, which may change between calls with the same arguments.
BCU_API bool check_numbers(const PlanCore& plan, const Call& call, Refusals& refusals);

// Checks a call against the plan; adds every refusal, or only the first when `all` is false. True when it may run.
// Views of rank -1 whose parameter is present are passed over: they were refused before.
BCU_API bool check_call(const PlanCore& plan, const Call& call, bool all, Refusals& refusals);

struct Planned {
  const PlanCore* plan;
  const Call* call;
};

// Of calls that run one after the other, each checked before: whether what one writes is apart from all that the others
// read or write. False with one refusal, of the call `at`.
BCU_API bool check_apart(const std::vector<Planned>& calls, Refusals& refusals, size_t& at);

// Why a launch may not come into a capture, if so: `capturing` says whether the call's stream is being captured, `here`
// that the calling thread captures another one while this call names none.
inline bool refuse_in_capture(const Row& row, bool capturing, bool here, Refusal& why) {
  if (here)
    why = {Code::Capture, "stream", "none while this thread captures a stream", "the stream that is being captured",
           "pass stream=: work in the default stream would run now, and not with the graph"};
  else if (capturing && !(row.flags & kCaptureSafe))
    why = {Code::Capture, "stream", "a stream that is being captured", "a stream that runs its work now",
           "this kernel is not capture_safe: run it before the capture, or choose one whose SKU says capture_safe"};
  else
    return false;
  return true;
}

BCU_API Status launch(const PlanCore& plan, const Call& call, void* stream, Failure* failure);
// The same in two: a launch that refers to the call's views and scalars, and carrying it out, again and again.
BCU_API Launch launch_of(const PlanCore& plan, const Call& call, void* stream, Failure* failure);
BCU_API Status launch_again(const PlanCore& plan, const Launch& launch);
// Bytes that the call's tensors hold, to decide whether to release the interpreter.
BCU_API int64_t call_bytes(const PlanCore& plan, const Call& call);

}  // namespace baracuda
