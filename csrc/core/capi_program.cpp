// The C interface's programs.
#include <algorithm>

#include "core/capi.h"
#include "core/devices.h"
#include "core/evaluate.h"
#include "core/parallel.h"
#include "core/program.h"

using namespace baracuda;        // NOLINT: the interface's names are C's
using namespace baracuda::capi;  // NOLINT

struct bcu_program {
  Borrowed constants;
  std::vector<std::unique_ptr<PlanCore>> plans;
  std::unique_ptr<Program> core;
  Backend backend = Backend::Cpu;
  int32_t device = 0;
};

namespace baracuda::capi {
namespace {

bcu_status fail_program(bcu_error* error, const bcu_program& program, const ProgramFailure& failure) {
  std::string where = "Program";
  if (failure.step >= 0) {
    const PlanCore& plan = *program.core->steps()[failure.step].plan;
    where += " step " + std::to_string(failure.step) + " (" + sku_name(plan.row, plan.question.element) + ")";
  }
  return fail(error, failure.refusals, where);
}

bcu_status fail_program(bcu_error* error, const bcu_program& program, Refusal why) {
  return fail_program(error, program, ProgramFailure{-1, {std::move(why)}});
}

const ProgramValue& argument(const bcu_program& program, size_t i) {
  return program.core->values()[program.core->arguments()[i]];
}

// One run's arguments.
class Arguments {
 public:
  Arguments(const bcu_program& program, const bcu_program_options& options)
      : program_(program),
        options_(options),
        views_(program.core->arguments().size()),
        scalars_(program.core->scalars().size()) {
    for (TensorView& v : views_) v.rank = -1;
  }

  const TensorView* views() const { return views_.data(); }
  const Scalar* scalars() const { return scalars_.data(); }

  // `sizes_alone`: nothing will run, and tensors may come without memory.
  bool tensors(const DLTensor* const* given, size_t n, bool sizes_alone, Refusals& out) {
    if (n != views_.size())
      return refuse(out, Code::ListLength, "tensors", std::to_string(n) + " tensors",
                    std::to_string(views_.size()) + ", as the program has arguments");
    std::unique_ptr<Refusal> why;
    for (size_t i = 0; i < n; ++i) {
      if (!given || !given[i]) continue;
      if (!(sizes_alone ? read_dltensor(*given[i], views_[i], why) : borrowed_.take(*given[i], views_[i], why))) {
        why->field = argument(program_, i).name;
        out.push_back(*why);
        return false;
      }
      views_[i].read_only = options_.read_only && options_.read_only[i];
    }
    return true;
  }

  // Results that were not given.
  bool allocate(Refusals& out) {
    int64_t symbols[kMaxProgramSymbols] = {};
    bool solved = false;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (views_[i].rank >= 0) continue;
      const ProgramValue& value = argument(program_, i);
      if (value.role != Role::Out || !options_.allocate)
        return refuse(out, Code::MissingArgument, value.name, "nothing", "a tensor");
      if (!solved && !program_.core->solve(views_.data(), symbols, out)) return false;
      solved = true;
      if (!one(i, value, symbols, out)) return false;
    }
    return true;
  }

  bool numbers(const bcu_scalar* given, size_t n, Refusals& out) {
    if (n > scalars_.size())
      return refuse(out, Code::ListLength, "scalars", std::to_string(n) + " scalars",
                    "at most " + std::to_string(scalars_.size()));
    for (size_t i = 0; i < scalars_.size(); ++i) {
      const ScalarParam& param = program_.core->scalars()[i];
      if (!given || i >= n || given[i].kind == BCU_DEFAULT) {
        scalars_[i] = param.value;
        if (!param.has_default) return refuse(out, Code::MissingArgument, param.name, "nothing", "a number");
        continue;
      }
      std::unique_ptr<Refusal> why;
      if (take_number(param, given[i], program_.backend, program_.device, borrowed_, scalars_[i], why)) continue;
      why->field = param.name;
      out.push_back(*why);
      return false;
    }
    return true;
  }

 private:
  static bool refuse(Refusals& out, Code code, std::string field, std::string got, std::string want) {
    out.push_back({code, std::move(field), std::move(got), std::move(want), ""});
    return false;
  }

  bool one(size_t i, const ProgramValue& value, const int64_t* symbols, Refusals& out) {
    std::vector<int64_t> shape;
    if (!program_.core->shape_of(program_.core->arguments()[i], symbols, shape))
      return refuse(out, Code::Dim, value.name, "no shape", "a shape at these sizes");
    TensorView& view = views_[i];
    view.rank = static_cast<int32_t>(shape.size());
    view.element = value.element;
    view.device = program_.backend;
    view.device_id = program_.device;
    int64_t dense = 1;
    for (int k = view.rank - 1; k >= 0; --k) view.shape[k] = shape[k], view.strides[k] = dense, dense *= shape[k];
    const ElementInfo& e = info(value.element);
    const DLDataType type = {e.dl_code, e.dl_bits, 1};
    const auto bytes = static_cast<size_t>(dense * size_of(value.element));
    view.data = options_.allocate(options_.allocate_context, i, shape.data(), view.rank, type, bytes);
    if (!view.data && bytes) {
      out.push_back({Code::DeviceMemory, value.name, "the host's allocator gave none for " + value.name,
                     std::to_string(bytes) + " bytes", ""});
      return false;
    }
    std::unique_ptr<Refusal> why;
    if (borrowed_.find(view.data, 0, view, why)) return true;
    why->field = value.name;
    out.push_back(*why);
    return false;
  }

  const bcu_program& program_;
  const bcu_program_options& options_;
  std::vector<TensorView> views_;
  std::vector<Scalar> scalars_;
  Borrowed borrowed_;
};

bool run(const bcu_program& program, const Arguments& arguments, const bcu_program_options& options,
         ProgramFailure& failure) {
  if (!options.parallel_for && !options.threads)
    return program.core->run(arguments.views(), arguments.scalars(), options.stream, failure);
  const ThreadLimit limit(options.threads);
  const HostThreads host(options.parallel_for, options.parallel_context);
  return program.core->run(arguments.views(), arguments.scalars(), options.stream, failure);
}

// The plans of a document; false with the status.
bool load_plans(const Reader& plans, const bcu_load_options* options, bcu_program& program, bcu_status& status,
                bcu_error* error) {
  constexpr size_t kMostPlans = size_t{1} << 16;
  for (const Reader& plan : plans.items(kMostPlans)) {
    program.plans.push_back(load_plan(plan, options, nullptr, status, error));
    if (!program.plans.back()) return false;
  }
  return true;
}

}  // namespace
}  // namespace baracuda::capi

bcu_status bcu_program_load(const void* bytes, size_t size, const DLTensor* const* constants, size_t n_constants,
                            const bcu_load_options* options, bcu_program** program, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!bytes || !program) return refuse_null(error, bytes ? "program" : "bytes");
    *program = nullptr;
    init_parallel();
    bcu_status status = BCU_OK;
    if (!known_options(options, status, error)) return status;
    const Json document = read_json({static_cast<const char*>(bytes), size});
    const Reader reader(document, "");
    auto made = std::make_unique<bcu_program>();
    if (!load_plans(reader.at("plans"), options, *made, status, error)) return status;
    std::vector<TensorView> held(n_constants);
    std::unique_ptr<Refusal> why;
    for (size_t i = 0; i < n_constants; ++i) {
      if (!constants || !constants[i]) return refuse_null(error, "constants");
      if (made->constants.take(*constants[i], held[i], why)) continue;
      why->field = "constants[" + std::to_string(i) + "]";
      return fail(error, {*why}, "Program");
    }
    std::vector<const PlanCore*> plans;
    for (const auto& plan : made->plans) plans.push_back(plan.get());
    if (!plans.empty()) made->backend = plans[0]->row.backend, made->device = plans[0]->question.device;
    made->core = std::make_unique<Program>(reader, plans, held);
    *program = made.release();
    return BCU_OK;
  });
}

void bcu_program_release(bcu_program* program) { delete program; }

bcu_status bcu_program_info(const bcu_program* program, char** json, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!program || !json) return refuse_null(error, program ? "json" : "program");
    const Json& source = program->core->source();
    Json out = Json::object(), arguments = Json::list(), constants = Json::list();
    for (const Json& value : source.find("values")->items()) {
      if (value.find("storage")->text() == "argument") arguments.add(value);
      if (value.find("storage")->text() == "constant") constants.add(value);
    }
    for (const char* part : {"schema", "device", "dims"}) out.set(part, *source.find(part));
    out.set("arguments", std::move(arguments));
    out.set("constants", std::move(constants));
    out.set("scalars", *source.find("scalars"));
    if (const Json* random = source.find("random")) out.set("random", *random);
    Json& steps = out.set("steps", Json::list());
    for (const ProgramStep& step : program->core->steps())
      steps.add(sku_name(step.plan->row, step.plan->question.element));
    out.set("scratch_bytes", program->core->scratch_bytes());
    *json = copy_text(out.write());
    return BCU_OK;
  });
}

bcu_status bcu_program_shape(const bcu_program* program, const DLTensor* const* tensors, size_t n_tensors,
                             size_t argument_number, int64_t* shape, int32_t* rank, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!program || !shape || !rank) return refuse_null(error, program ? "shape" : "program");
    if (argument_number >= program->core->arguments().size())
      return fail_program(error, *program,
                          {Code::UnknownArgument, "argument", std::to_string(argument_number),
                           "a number below " + std::to_string(program->core->arguments().size()), ""});
    const bcu_program_options options{};
    Arguments arguments(*program, options);
    ProgramFailure failure;
    int64_t symbols[kMaxProgramSymbols] = {};
    std::vector<int64_t> found;
    if (!arguments.tensors(tensors, n_tensors, true, failure.refusals) ||
        !program->core->solve(arguments.views(), symbols, failure.refusals))
      return fail_program(error, *program, failure);
    if (!program->core->shape_of(program->core->arguments()[argument_number], symbols, found))
      return fail_program(error, *program, {Code::Dim, "", "no shape", "a shape at these sizes", ""});
    *rank = static_cast<int32_t>(found.size());
    std::copy(found.begin(), found.end(), shape);
    return BCU_OK;
  });
}

bcu_status bcu_program_blocks(const bcu_program* program, const DLTensor* const* tensors, size_t n_tensors,
                              uint64_t* blocks, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!program || !blocks) return refuse_null(error, program ? "blocks" : "program");
    const bcu_program_options options{};
    Arguments arguments(*program, options);
    ProgramFailure failure;
    int64_t symbols[kMaxProgramSymbols] = {};
    if (!arguments.tensors(tensors, n_tensors, true, failure.refusals) ||
        !program->core->solve(arguments.views(), symbols, failure.refusals))
      return fail_program(error, *program, failure);
    if (!program->core->blocks(symbols, *blocks))
      return fail_program(error, *program, {Code::Dim, "", "no number of blocks", "one at these sizes", ""});
    return BCU_OK;
  });
}

bcu_status bcu_program_reserve(const bcu_program* program, int32_t runs, bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!program) return refuse_null(error, "program");
    ProgramFailure failure;
    return program->core->reserve(runs, failure) ? BCU_OK : fail_program(error, *program, failure);
  });
}

bcu_status bcu_program_run(const bcu_program* program, const DLTensor* const* tensors, size_t n_tensors,
                           const bcu_scalar* scalars, size_t n_scalars, const bcu_program_options* options,
                           bcu_error* error) {
  return guarded(error, [&]() -> bcu_status {
    if (!program) return refuse_null(error, "program");
    const bcu_program_options none{};
    if (options && (!known_struct(options, options->struct_size, sizeof none) || options->threads < 0))
      return fail_program(
          error, *program,
          {Code::Problem, "options", "an unknown size, or a negative number of threads", "a bcu_program_options",
           "set struct_size = sizeof(bcu_program_options), and clear what you do not use"});
    const bcu_program_options& wanted = options ? *options : none;
    Arguments arguments(*program, wanted);
    ProgramFailure failure;
    bool capturing = false;  // the run asks for itself
    if (!ask_stream(program->backend, program->device, wanted.stream, capturing, failure.refusals) ||
        !arguments.tensors(tensors, n_tensors, false, failure.refusals) || !arguments.allocate(failure.refusals) ||
        !arguments.numbers(scalars, n_scalars, failure.refusals) || !run(*program, arguments, wanted, failure))
      return fail_program(error, *program, failure);
    return BCU_OK;
  });
}
