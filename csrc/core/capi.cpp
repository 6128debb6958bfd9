// The C interface of include/baracuda/baracuda.h: handles, DLPack's tensors and status codes around the engine.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "baracuda/baracuda.h"
#include "core/capability.h"
#include "core/capi.h"
#include "core/device.h"
#include "core/devices.h"
#include "core/document.h"
#include "core/message.h"
#include "core/number.h"
#include "core/parallel.h"

using namespace baracuda;  // NOLINT: the interface's names are C's

namespace baracuda::capi {
namespace {

constexpr int kInlineViews = 16;

// A call's views and numbers, made of what the host gave. Memory that is not used is not initialised.
class HostCall {
 public:
  HostCall(const bcu_plan& plan, bool dry, Refusals& out) : plan_(plan), out_(out) {
    const size_t n = plan.core->signature.slots.size();
    if (n > kInlineViews) {
      many_ = std::make_unique<TensorView[]>(n);
      call_.views = many_.get();
    } else {
      call_.views = reinterpret_cast<TensorView*>(view_memory_);
    }
    call_.scalars = scalars_;
    call_.dry = dry;
    for (size_t k = 0; k < plan.core->signature.scalars.size(); ++k) scalars_[k] = Scalar();
    for (const int32_t slot : plan.absent) call_.views[slot].rank = -1, call_.views[slot].data = nullptr;
  }

  const Call& call() const { return call_; }
  void* stream() const { return options_.stream; }
  const bcu_run_options& options() const { return options_; }

  // False with refusals, of which there is one where the call is no question.
  bool take(const DLTensor* const* tensors, size_t n_tensors, const bcu_scalar* scalars, size_t n_scalars,
            const bcu_run_options* options) {
    if (!take_options(options) && !call_.dry) return false;
    if (n_tensors != plan_.tensors.size())
      refuse(Code::ListLength, "tensors", std::to_string(n_tensors) + " tensors",
             std::to_string(plan_.tensors.size()) + ", as the signature has them");
    if (n_scalars > plan_.scalars.size())
      refuse(Code::ListLength, "scalars", std::to_string(n_scalars) + " scalars",
             "at most " + std::to_string(plan_.scalars.size()) + ", as the signature has them");
    // A question goes on, so that all reasons are found; its views are whole where the number of tensors is right.
    if (!out_.empty() && (!call_.dry || n_tensors != plan_.tensors.size())) return false;
    for (size_t i = 0; i < n_tensors; ++i)
      if (!take_tensor(i, tensors ? tensors[i] : nullptr) && !call_.dry) return false;
    for (size_t i = 0; i < plan_.scalars.size(); ++i)
      if (!take_scalar(i, scalars && i < n_scalars ? &scalars[i] : nullptr) && !call_.dry) return false;
    return out_.empty();
  }

 private:
  bool refuse(Code code, std::string field, std::string got, std::string want, std::string hint = "") {
    out_.push_back({code, std::move(field), std::move(got), std::move(want), std::move(hint)});
    return false;
  }

  // Bytes on the plan's device, as a tensor of them would have it.
  bool take_workspace() {
    TensorView view;
    view.device = plan_.core->row.backend, view.device_id = plan_.core->question.device;
    view.rank = 1, view.shape[0] = call_.workspace_bytes, view.strides[0] = 1, view.element = Element::U8;
    view.data = options_.workspace;
    if (!options_.workspace || borrowed_.find(options_.workspace, 0, view, why_))
      return call_.workspace = view.data, true;
    why_->field = "options.workspace";
    out_.push_back(*why_);
    return false;
  }

  bool take_options(const bcu_run_options* given) {
    if (!given) return true;
    if (!known_struct(given, given->struct_size, sizeof options_))
      return refuse(Code::Problem, "options.struct_size", std::to_string(given->struct_size) + " bytes",
                    std::to_string(sizeof options_) + ", or more of them that are zero",
                    "set struct_size = sizeof(bcu_run_options), and clear what you do not use");
    std::memcpy(&options_, given, sizeof options_);
    if (options_.threads < 0)
      return refuse(Code::Problem, "options.threads", std::to_string(options_.threads), "a number of at least 0");
    call_.workspace_bytes = static_cast<int64_t>(std::min<size_t>(options_.workspace_bytes, INT64_MAX));
    return take_workspace();
  }

  std::string tensor_name(size_t i) const {
    const Signature& s = plan_.core->signature;
    const Param& p = s.params[s.slots[plan_.tensors[i]].param];
    return p.variadic ? p.name + "[" + std::to_string(plan_.tensors[i] - p.first) + "]" : p.name;
  }

  bool take_tensor(size_t i, const DLTensor* tensor) {
    TensorView& view = call_.views[plan_.tensors[i]];
    view.rank = -1;
    if (!tensor) return refuse(Code::MissingArgument, tensor_name(i), "nothing", "a tensor");
    const bool sizes_alone = call_.dry && !tensor->data;
    if (!(sizes_alone ? read_dltensor(*tensor, view, why_) : borrowed_.take(*tensor, view, why_))) {
      why_->field = tensor_name(i);
      out_.push_back(*why_);
      view.rank = -1;
      return false;
    }
    view.read_only = options_.read_only && options_.read_only[i];
    view.unbacked = sizes_alone;
    return true;
  }

  bool take_scalar(size_t i, const bcu_scalar* given) {
    const ScalarParam& param = plan_.core->signature.scalars[plan_.scalars[i]];
    Scalar& out = scalars_[plan_.scalars[i]];
    if (!given || given->kind == BCU_DEFAULT) {
      out = param.value;
      return param.has_default || refuse(Code::MissingArgument, param.name, "nothing", "a number");
    }
    if (take_number(param, *given, plan_.core->row.backend, plan_.core->question.device, borrowed_, out, why_))
      return true;
    why_->field = param.name;
    out_.push_back(*why_);
    out = Scalar();
    return false;
  }

  const bcu_plan& plan_;
  Refusals& out_;
  std::unique_ptr<Refusal> why_;
  Borrowed borrowed_;
  bcu_run_options options_{};
  Call call_;
  std::unique_ptr<TensorView[]> many_;
  alignas(TensorView) char view_memory_[kInlineViews * sizeof(TensorView)];
  alignas(Scalar) char scalar_memory_[kMaxScalars * sizeof(Scalar)];
  Scalar* scalars_ = reinterpret_cast<Scalar*>(scalar_memory_);
};

Status launch_on(const PlanCore& plan, const HostCall& call, Failure& failure) {
  const bcu_run_options& options = call.options();
  if (!options.parallel_for && !options.threads) return launch(plan, call.call(), call.stream(), &failure);
  const ThreadLimit limit(options.threads);
  const HostThreads host(options.parallel_for, options.parallel_context);
  return launch(plan, call.call(), call.stream(), &failure);
}

Json device_of(Backend backend, int32_t number) {
  const BackendState& state = backend_state(backend);
  const DeviceInfo* info = backend == Backend::Cpu ? nullptr : device_info(backend, number);
  Json out = Json::object();
  out.set("name", device_name(backend, number));
  out.set("usable", state.built && state.present);
  out.set("reason", state.reason);
  out.set("level", state.level);
  if (info) out.set("model", std::string(info->name));
  if (info) out.set("memory", info->memory);
  return out;
}

// "SoftmaxPlan(softmax.forward.cpu.f32.rows)": as the plan is called where it was made.
std::string title_of(const PlanCore& plan, const Json& descriptor) {
  const Json* made = descriptor.is(Json::Kind::Object) ? descriptor.find("class") : nullptr;
  std::string kind = made && made->is(Json::Kind::Text) ? made->text() : "";
  constexpr std::string_view kSuffix = "Descriptor";
  if (kind.ends_with(kSuffix)) kind.resize(kind.size() - kSuffix.size());
  return kind + "Plan(" + sku_name(plan.row, plan.question.element) + ")";
}

// Fills a plan's lists of what a caller gives, and of what it does not.
void number_arguments(bcu_plan& plan) {
  const Signature& s = plan.core->signature;
  for (size_t k = 0; k < s.slots.size(); ++k)
    (s.params[s.slots[k].param].present ? plan.tensors : plan.absent).push_back(static_cast<int32_t>(k));
  for (size_t k = 0; k < s.scalars.size(); ++k)
    if (s.scalars[k].present) plan.scalars.push_back(static_cast<int32_t>(k));
}

}  // namespace

bool Borrowed::find(void* memory, uint64_t offset, TensorView& view, std::unique_ptr<Refusal>& why) {
  if (view.device == Backend::Cpu) return true;
  DLTensor object{};
  object.data = memory, object.byte_offset = offset;
  Adopted adopted;
  if (!adopt(object, view, adopted, why)) return false;
  if (adopted.module) held_.push_back(adopted);
  return true;
}

bool take_number(const ScalarParam& param, const bcu_scalar& given, Backend backend, int32_t device, Borrowed& borrowed,
                 Scalar& out, std::unique_ptr<Refusal>& why) {
  switch (given.kind) {
    case BCU_FLOAT:
      if (param.kind == Scalar::Kind::Float) return take_real(param, given.value.f, out, why);
      break;
    case BCU_INT:
      return take_whole(param, given.value.i, out, why);
    case BCU_UNSIGNED:
      return take_whole(param, given.value.u, out, why);
    case BCU_TENSOR: {
      TensorView view;
      if (!given.value.tensor) break;
      return borrowed.take(*given.value.tensor, view, why) && take_tensor(param, view, backend, device, out, why);
    }
    default:
      break;
  }
  why = std::make_unique<Refusal>(
      Refusal{Code::ScalarKind, "", "a scalar of kind " + std::to_string(given.kind),
              param.kind == Scalar::Kind::Float ? "a number or a 0-d tensor" : "an integer or a 0-d tensor",
              "set kind to BCU_FLOAT, BCU_INT, BCU_UNSIGNED or BCU_TENSOR, and the value that goes with it"});
  return false;
}

std::unique_ptr<PlanCore> load_plan(const Reader& document, const bcu_load_options* options, std::string* title,
                                    bcu_status& status, bcu_error* error) {
  PlanDocument read = read_plan(document);
  if (!options || options->sku == BCU_SKU_SAME) read.question.preference.sku = read.sku;
  const std::string subject = read.question.op + " " + kDirectionNames[static_cast<int>(read.question.direction)];
  Selection found = select(read.question, std::move(read.signature), read.threads);
  if (found.failed) {
    status = fail(error, {found.failure}, subject);
  } else if (!found.plan) {
    const NoPlan why = no_plan(read.question, found, subject);
    status = fail_with(error, BCU_UNSUPPORTED, why.message, why.refusals);
  } else if (title) {
    *title = title_of(*found.plan, read.descriptor);
  }
  return std::move(found.plan);
}

bool known_options(const bcu_load_options* options, bcu_status& status, bcu_error* error) {
  if (!options || (known_struct(options, options->struct_size, sizeof *options) &&
                   (options->sku == BCU_SKU_SAME || options->sku == BCU_SKU_ANY)))
    return true;
  status = fail(error, {{Code::Problem, "options", "an unknown size or value", "a bcu_load_options", ""}}, "");
  return false;
}

bool known_struct(const void* given, size_t size, size_t known) {
  if (size < known) return false;
  for (size_t i = known; i < size; ++i)
    if (static_cast<const char*>(given)[i]) return false;
  return true;
}

char* copy_text(const std::string& text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!out) throw std::bad_alloc();
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

}  // namespace baracuda::capi

using namespace baracuda::capi;  // NOLINT

uint32_t bcu_abi_version() { return BCU_ABI_VERSION; }
const char* bcu_version() { return BCU_VERSION; }
void bcu_free(void* text) { std::free(text); }

bcu_status bcu_plan_load(const void* bytes, size_t size, const bcu_load_options* options, bcu_plan** plan,
                         bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!bytes || !plan) return refuse_null(error, bytes ? "plan" : "bytes");
    *plan = nullptr;
    init_parallel();
    bcu_status status = BCU_OK;
    if (!known_options(options, status, error)) return status;
    const Json document = read_json({static_cast<const char*>(bytes), size});
    auto made = std::make_unique<bcu_plan>();
    made->core = load_plan(Reader(document, ""), options, &made->title, status, error);
    if (!made->core) return status;
    number_arguments(*made);
    *plan = made.release();
    return BCU_OK;
  });
}

void bcu_plan_release(bcu_plan* plan) { delete plan; }

bcu_status bcu_plan_info(const bcu_plan* plan, char** json, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!plan || !json) return refuse_null(error, plan ? "json" : "plan");
    Json out = Json::object();
    const Json document = write_plan(*plan->core, Json());
    for (const char* part : {"schema", "sku", "question", "signature"}) out.set(part, *document.find(part));
    out.set("guarantee", write_guarantee(plan->core->row.guarantee, plan->core->question.element));
    out.set("workspace_size", plan->core->workspace_size);
    out.set("workspace_alignment", kWorkspaceAlignment);
    *json = copy_text(out.write());
    return BCU_OK;
  });
}

bcu_status bcu_plan_workspace(const bcu_plan* plan, const DLTensor* const* tensors, size_t n_tensors, size_t* bytes,
                              bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!plan || !bytes) return refuse_null(error, plan ? "bytes" : "plan");
    *bytes = static_cast<size_t>(plan->core->workspace_size);
    if (n_tensors == 0 || *bytes == 0) return BCU_OK;
    Refusals refusals;
    HostCall call(*plan, true, refusals);
    call.take(tensors, n_tensors, nullptr, 0, nullptr);
    // Numbers do not change it, and the call's own memory is still to come.
    std::erase_if(refusals, [](const Refusal& r) { return r.code == Code::MissingArgument; });
    if (refusals.empty() && check_call(*plan->core, call.call(), true, refusals)) return *bytes = 0, BCU_OK;
    for (const Refusal& r : refusals)
      if (r.code != Code::Workspace) return fail(error, refusals, plan->title);
    *bytes = static_cast<size_t>(refusals.front().needed);
    return BCU_OK;
  });
}

bcu_status bcu_plan_check(const bcu_plan* plan, const DLTensor* const* tensors, size_t n_tensors,
                          const bcu_scalar* scalars, size_t n_scalars, const bcu_run_options* options,
                          bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!plan) return refuse_null(error, "plan");
    Refusals refusals;
    HostCall call(*plan, true, refusals);
    call.take(tensors, n_tensors, scalars, n_scalars, options);
    if (n_tensors == plan->tensors.size()) check_call(*plan->core, call.call(), true, refusals);
    return refusals.empty() ? BCU_OK : fail(error, refusals, plan->title);
  });
}

bcu_status bcu_plan_run(const bcu_plan* plan, const DLTensor* const* tensors, size_t n_tensors,
                        const bcu_scalar* scalars, size_t n_scalars, const bcu_run_options* options, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!plan) return refuse_null(error, "plan");
    Refusals refusals;
    HostCall call(*plan, false, refusals);
    if (!call.take(tensors, n_tensors, scalars, n_scalars, options) ||
        !check_call(*plan->core, call.call(), false, refusals) || !may_launch(*plan->core, call.stream(), refusals))
      return fail(error, refusals, plan->title);
    Failure failure;
    const Status status = launch_on(*plan->core, call, failure);
    return status == Status::Ok ? BCU_OK : fail(error, {refusal_of(*plan->core, status, failure)}, plan->title);
  });
}

bcu_status bcu_devices(char** json, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!json) return refuse_null(error, "json");
    Json out = Json::list();
    for (const Backend backend : {Backend::Cpu, Backend::Cuda, Backend::Metal})
      for (int32_t i = 0; i < std::max(device_count(backend), 1); ++i) out.add(device_of(backend, i));
    *json = copy_text(out.write());
    return BCU_OK;
  });
}

bcu_status bcu_capabilities(const void* question, size_t size, char** json, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!question || !json) return refuse_null(error, question ? "json" : "question");
    const Json document = read_json({static_cast<const char*>(question), size});
    *json = copy_text(answer_question(Reader(document, "")).write());
    return BCU_OK;
  });
}
