// Running a program: arguments are checked once per run; views are resolved when a symbol changed; then steps are
// launched one after the other.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/device.h"
#include "core/devices.h"
#include "core/float_state.h"
#include "core/inject.h"
#include "core/message.h"
#include "core/number.h"
#include "core/program_frame.h"

namespace baracuda {
namespace {

bool same(const Scalar& a, const Scalar& b) {
  return a.kind == b.kind && a.u == b.u && a.data == b.data && a.element == b.element;
}

}  // namespace

ScratchMemory::~ScratchMemory() {
  std::string unused;
  if (!data_) return;
  if (backend_ == Backend::Cpu)
    std::free(data_);
  else if (const DeviceModule* module = device_module(backend_, unused))
    module->release(device_, data_);
}

bool ScratchMemory::allocate(Backend backend, int32_t device, int64_t bytes, Refusals& out) {
  backend_ = backend, device_ = device;
  if (bytes == 0) return true;
  std::string reason = "no memory is left";
  void* memory = nullptr;
  if (fails_now(Injected::Alloc)) {
    reason = kInjectedText;
  } else if (backend == Backend::Cpu) {
    memory = std::aligned_alloc(kWorkspaceAlignment, static_cast<size_t>(bytes));
  } else if (const DeviceModule* module = device_module(backend, reason)) {
    if (module->allocate(device, bytes, &memory) != Status::Ok) reason = module->last_error(), memory = nullptr;
  }
  data_ = static_cast<char*>(memory);
  if (!data_)
    out.push_back({Code::DeviceMemory, device_name(backend, device), reason,
                   std::to_string(bytes) + " bytes of scratch", "free tensors that are not needed any more", bytes});
  return data_ != nullptr;
}

// Sizes and strides (none: contiguous) at these symbols, the number of elements, and how far they reach; false where
// that is no shape.
bool ProgramFrame::spread(const std::vector<SizeExpr>& shape, const std::vector<SizeExpr>& strides,
                          const int64_t* symbols, TensorView& view, int64_t& numel, Reach& reach) {
  int64_t dense = 1, low = 0, high = 0;
  bool good = true;
  numel = 1;
  for (int i = static_cast<int>(shape.size()) - 1; good && i >= 0; --i) {
    good = shape[i].eval(symbols, view.shape[i]) && view.shape[i] >= 0;
    view.strides[i] = dense;
    if (!strides.empty()) good = good && strides[i].eval(symbols, view.strides[i]);
    int64_t step = 0;
    good = good && !__builtin_mul_overflow(dense, std::max<int64_t>(view.shape[i], 1), &dense) &&
           !__builtin_mul_overflow(numel, view.shape[i], &numel) &&
           !__builtin_mul_overflow(view.strides[i], view.shape[i] - (view.shape[i] > 0), &step) &&
           !__builtin_add_overflow(step < 0 ? low : high, step, step < 0 ? &low : &high);
  }
  reach = numel > 0 ? Reach{low, high} : Reach{};
  return good;
}

ProgramFrame::ProgramFrame(const Program& program)
    : program_(program),
      views_(program.n_views_),
      uses_(program.n_views_, Use{-1, 0}),
      number_uses_(program.n_numbers_, Use{-1, 0}),
      numbers_(program.n_numbers_),
      starts_(program.random_.draws.size()),
      launches_(program.steps_.size()),
      kernels_(program.steps_.size()),
      addresses_(program.values_.size(), nullptr),
      whole_(program.values_.size()),
      reach_(program.values_.size()),
      views_of_(program.values_.size()),
      numbers_of_(program.values_.size()) {
  for (TensorView& v : views_) v.rank = -1;
  for (size_t v = 0; v < whole_.size(); ++v) {
    const ProgramValue& value = program.values_[v];
    whole_[v].rank = static_cast<int32_t>(value.shape.size());
    whole_[v].element = value.element;
    whole_[v].device = program.backend_;
    whole_[v].device_id = program.device_;
    whole_[v].read_only = value.storage == Storage::Constant;
  }
}

bool ProgramFrame::size_values(const int64_t* symbols, Refusals& out) {
  for (size_t v = 0; v < whole_.size(); ++v) {
    const ProgramValue& value = program_.values_[v];
    int64_t numel = 0;
    if (spread(value.shape, value.strides, symbols, whole_[v], numel, reach_[v]) &&
        numel <= value.most_bytes / size_of(value.element))
      continue;
    out.push_back({Code::Dim, value.name, "sizes that leave a remainder, or are beyond those at the maxima",
                   "shape " + shape_text(value.shape, program_.symbols_), "these sizes do not go with the program"});
    return false;
  }
  return true;
}

bool ProgramFrame::resolve_view(const ProgramView& from, const int64_t* symbols, TensorView& view, Use& use,
                                std::string& why) {
  const ProgramValue& value = program_.values_[from.value];
  if (from.whole) {
    view = whole_[from.value];
    use = {from.value, 0};
    return true;
  }
  int64_t offset = 0, numel = 0;
  Reach reach;
  view = whole_[from.value];
  view.rank = static_cast<int32_t>(from.shape.size());
  view.element = from.element;
  const int64_t parts = size_of(value.element) / size_of(from.element);
  const Reach& all = reach_[from.value];
  const bool good = from.offset.eval(symbols, offset) &&
                    spread(from.shape, from.strides, symbols, view, numel, reach) &&
                    !__builtin_add_overflow(reach.low, offset, &reach.low) &&
                    !__builtin_add_overflow(reach.high, offset, &reach.high);
  if (!good || (numel > 0 && (reach.low < all.low * parts || reach.high >= (all.high + 1) * parts))) {
    why = value.name;
    return false;
  }
  use = {from.value, numel > 0 ? offset * size_of(from.element) : 0};
  return true;
}

bool ProgramFrame::resolve_step(int32_t k, const int64_t* symbols, Refusals& out) {
  const ProgramStep& step = program_.steps_[k];
  std::string why;
  bool good = true;
  for (const ProgramView& from : step.views) {
    const int32_t at = step.first_view + from.slot;
    if (!resolved_) views_of_[from.value].push_back(at);
    if (good && (!resolved_ || !from.fixed)) good = resolve_view(from, symbols, views_[at], uses_[at], why);
  }
  for (const ProgramNumber& from : step.numbers) {
    if (!good || from.from != ProgramNumber::From::View) continue;
    const int32_t at = step.first_number + from.number;
    TensorView view;
    std::unique_ptr<Refusal> unfit;
    good = resolve_view(from.view, symbols, view, number_uses_[at], why);
    view.unbacked = true;  // its address is filled in with the others
    const ScalarParam& param = step.plan->signature.scalars[from.number];
    if (good && !take_tensor(param, view, program_.backend_, program_.device_, numbers_[at], unfit))
      good = false, why = program_.values_[from.view.value].name;
    if (!resolved_) numbers_of_[from.view.value].push_back(at);
  }
  if (!good)
    out.push_back({Code::Dim, "steps[" + std::to_string(k) + "]", "a view of " + why + " that reaches beyond it",
                   "views inside their values at all sizes", "these sizes do not go together with the program"});
  return good;
}

bool ProgramFrame::use_scratch(void* given, Refusals& out) {
  if (!given && !own_.data() && !own_.allocate(program_.backend_, program_.device_, program_.scratch_bytes_, out))
    return false;
  char* const now = given ? static_cast<char*>(given) : own_.data();
  for (size_t k = 0; resolved_ && now != scratch_ && k < launches_.size(); ++k) {
    if (!program_.steps_[k].plan->workspace_size) continue;
    launches_[k].workspace = now + program_.steps_[k].workspace;
    touch(k);
  }
  scratch_ = now;
  return true;
}

bool ProgramFrame::check(int32_t k, Refusals& out) {
  const ProgramStep& step = program_.steps_[k];
  Call call;
  call.views = views_.data() + step.first_view;
  call.scalars = numbers_.data() + step.first_number;
  call.workspace = step.plan->workspace_size ? scratch_ + step.workspace : nullptr;
  call.workspace_bytes = step.plan->workspace_size;
  call.numbers_later = true;
  if (!check_call(*step.plan, call, false, out)) return false;
  launches_[k] = launch_of(*step.plan, call, nullptr, &failure_);
  kernels_[k] = step.plan->threads || step.looks ? nullptr : step.plan->kernel;
  launches_[k].row = program_.sites_.of(k, step.plan->row_index);
  return true;
}

void ProgramFrame::point(const TensorView* arguments, bool all) {
  for (size_t v = 0, a = 0; v < addresses_.size(); ++v) {
    const ProgramValue& value = program_.values_[v];
    char* now = value.storage == Storage::Argument   ? static_cast<char*>(arguments[a++].data)
                : value.storage == Storage::Constant ? static_cast<char*>(program_.constants_[v].data)
                                                     : scratch_ + value.offset;
    if (now != addresses_[v]) touch_users(v);
    if (!all && now == addresses_[v]) continue;
    addresses_[v] = now;
    for (const int32_t at : views_of_[v]) views_[at].data = now + uses_[at].bytes;
    for (const int32_t at : numbers_of_[v]) numbers_[at].data = now + number_uses_[at].bytes;
  }
}

bool ProgramFrame::number(const ProgramStep& step, size_t i, const Scalar* scalars, const int64_t* symbols,
                          Refusals& out) {
  const ProgramNumber& from = step.numbers[i];
  const ScalarParam& param = step.plan->signature.scalars[from.number];
  Scalar& to = numbers_[step.first_number + from.number];
  std::unique_ptr<Refusal> why;
  int64_t size = 0;
  bool good = from.size.eval(symbols, size);
  if (from.from == ProgramNumber::From::Literal) {
    to = from.literal;
  } else if (from.from == ProgramNumber::From::Size) {
    good = good && take_whole(param, size, to, why);
  } else if (const Scalar& given = scalars[from.scalar]; from.from == ProgramNumber::From::Draw) {
    good = !given.data && take_whole(param, __int128{given.u + starts_[static_cast<size_t>(from.draw)]}, to, why);
  } else if (given.data) {
    to = given;
    good = size == 0;
    if (Refusal unfit; good && step.plan->looks && !holds_number(param, to, unfit))
      good = false, why = std::make_unique<Refusal>(std::move(unfit));
  } else if (given.kind == Scalar::Kind::Float) {
    good = take_real(param, given.f, to, why);
  } else {
    const __int128 whole = given.kind == Scalar::Kind::Int ? __int128{given.i} : __int128{given.u};
    good = good && take_whole(param, whole + size, to, why);
  }
  if (good) return true;
  const bool given = from.from == ProgramNumber::From::Scalar || from.from == ProgramNumber::From::Draw;
  const std::string field = given ? program_.scalars_[from.scalar].name : param.name;
  if (why) {
    why->field = field;
    out.push_back(*why);
  } else {
    out.push_back({Code::ScalarKind, field, "a number that these sizes do not go with", "a number given by value", ""});
  }
  return false;
}

bool ProgramFrame::numbers(const Scalar* scalars, const int64_t* symbols, bool all, ProgramFailure& failure) {
  if (all) following_.clear();
  if (uint64_t total = 0; all && !program_.blocks(symbols, total, starts_.data())) {
    failure.refusals.push_back({Code::Dim, "", "sizes at which a draw takes no whole number of blocks", "other sizes",
                                "these sizes do not go with the program"});
    return false;
  }
  for (size_t k = 0; all && k < program_.steps_.size(); ++k)
    for (size_t i = 0; i < program_.steps_[k].numbers.size(); ++i) {
      const ProgramNumber::From from = program_.steps_[k].numbers[i].from;
      const bool follows = from == ProgramNumber::From::Scalar || from == ProgramNumber::From::Draw;
      if (follows) following_.emplace_back(k, i);
      if (follows || from == ProgramNumber::From::View) continue;
      if (number(program_.steps_[k], i, scalars, symbols, failure.refusals)) continue;
      failure.step = static_cast<int32_t>(k);
      return false;
    }
  for (const auto& [k, i] : following_) {
    const ProgramStep& step = program_.steps_[k];
    const Scalar& now = numbers_[step.first_number + step.numbers[static_cast<size_t>(i)].number];
    const Scalar before = now;
    if (!number(step, static_cast<size_t>(i), scalars, symbols, failure.refusals)) {
      failure.step = k;
      return false;
    }
    if (!same(before, now)) touch(static_cast<size_t>(k));
  }
  return true;
}

bool ProgramFrame::within_limits(const ProgramStep& step, const int64_t* symbols, Refusals& out) const {
  for (const auto& [size, most] : step.limits) {
    int64_t n = 0;
    if (size.eval(symbols, n) && n <= most) continue;
    out.push_back({Code::Dim, "", size.text(program_.symbols_) + " = " + std::to_string(n),
                   "at most " + std::to_string(most), "make the program with plans for larger sizes", most, n});
    return false;
  }
  return true;
}

bool ProgramFrame::forget(int32_t step, ProgramFailure& failure) {
  failure.step = step;
  if (graph_) graph_->touch_all();
  resolved_ = false;
  for (auto& list : views_of_) list.clear();
  for (auto& list : numbers_of_) list.clear();
  return false;
}

bool ProgramFrame::prepare(const TensorView* arguments, const Scalar* scalars, void* stream, const int64_t* symbols,
                           ProgramFailure& failure) {
  const size_t n = program_.symbols_.size();
  const bool same = resolved_ && std::equal(symbols, symbols + n, symbols_);
  const bool first = !resolved_;
  const auto steps = static_cast<int32_t>(program_.steps_.size());
  if (!same) {
    if (!size_values(symbols, failure.refusals)) return forget(-1, failure);
    for (int32_t k = 0; k < steps; ++k) {
      if (!first && program_.steps_[k].fixed) continue;
      touch(static_cast<size_t>(k));
      if (!resolve_step(k, symbols, failure.refusals)) return forget(k, failure);
    }
    std::copy(symbols, symbols + n, symbols_);
    resolved_ = true;
  }
  point(arguments, !same);
  if (!numbers(scalars, symbols, !same, failure)) return same ? false : forget(failure.step, failure);
  for (int32_t k = 0; !same && k < steps; ++k) {
    const ProgramStep& step = program_.steps_[k];
    if (!first && step.fixed) continue;
    const bool known = !first && step.proven;
    if (!(known ? within_limits(step, symbols, failure.refusals) &&
                      check_sizes(*step.plan, views_.data() + step.first_view, step.plan->workspace_size,
                                  failure.refusals)
                : check(k, failure.refusals)))
      return forget(k, failure);
  }
  if (!same || stream_ != stream)
    for (Launch& l : launches_) l.stream = stream;
  stream_ = stream;
  return true;
}

bool ProgramFrame::launch(ProgramFailure& failure) {
  const bool one_fails = calls_left(Injected::Launch).load(std::memory_order_relaxed) >= 0;
  used_ = true;
  if (program_.backend_ == Backend::Cpu) return launch_steps(failure, one_fails);
  if (!one_fails && launch_graph()) return true;
  const bool together = graph_ && program_.captured_.load(std::memory_order_relaxed) && graph_->begin(stream_);
  const bool done = launch_steps(failure, one_fails);
  if (together) graph_->end(stream_);
  return done;
}

// Numbers in the caller's memory, of a frame whose arguments were checked before.
bool ProgramFrame::numbers_hold(ProgramFailure& failure) const {
  for (const auto& [k, i] : following_) {
    const ProgramStep& step = program_.steps_[static_cast<size_t>(k)];
    const ProgramNumber& number = step.numbers[static_cast<size_t>(i)];
    Refusal why;
    if (!step.plan->looks || holds_number(step.plan->signature.scalars[static_cast<size_t>(number.number)],
                                          numbers_[static_cast<size_t>(step.first_number + number.number)], why))
      continue;
    why.field = program_.scalars_[static_cast<size_t>(number.scalar)].name;
    failure.step = k;
    failure.refusals.push_back(std::move(why));
    return false;
  }
  return true;
}

// Numbers of a step that were written since the run began.
bool ProgramFrame::written_numbers_hold(size_t k, ProgramFailure& failure) const {
  const ProgramStep& step = program_.steps_[k];
  Call call;
  call.scalars = numbers_.data() + step.first_number;
  if (!step.looks || check_numbers(*step.plan, call, failure.refusals)) return true;
  failure.step = static_cast<int32_t>(k);
  return false;
}

bool ProgramFrame::launch_steps(ProgramFailure& failure, bool one_fails) {
  const FloatState kernels_own;
  const size_t steps = launches_.size();
  for (size_t k = 0; k < steps; ++k) {
    const bool plain = kernels_[k] && !one_fails;
    if (!plain && !written_numbers_hold(k, failure)) return false;
    const Status status = plain ? kernels_[k](launches_[k]) : launch_again(*program_.steps_[k].plan, launches_[k]);
    if (status == Status::Ok) [[likely]]
      continue;
    failure.step = static_cast<int32_t>(k);
    failure.refusals.push_back(refusal_of(*program_.steps_[k].plan, status, failure_));
    for (const ProgramView& view : program_.steps_[k].views)
      if (view.slot == failure_.tensor) failure.value = view.value;
    failure_ = Failure();
    return false;
  }
  return true;
}

bool Program::run(const TensorView* arguments, const Scalar* scalars, void* stream, ProgramFailure& failure,
                  void* scratch) const {
  int64_t symbols[kMaxProgramSymbols];
  if (!check(arguments, scalars, symbols, failure.refusals)) return false;
  std::unique_ptr<ProgramFrame> frame = take(stream, scratch, failure);
  if (!frame) return false;
  const bool done = frame->prepare(arguments, scalars, stream, symbols, failure) && frame->launch(failure);
  put_back(std::move(frame));
  return done;
}

Program::Bound Program::bind(const TensorView* arguments, const Scalar* scalars, void* stream,
                             ProgramFailure& failure) const {
  Bound none(nullptr, [](ProgramFrame* f) { delete f; });
  int64_t symbols[kMaxProgramSymbols];
  if (!check(arguments, scalars, symbols, failure.refusals)) return none;
  std::unique_ptr<ProgramFrame> frame = take(stream, nullptr, failure);
  if (!frame || !frame->prepare(arguments, scalars, stream, symbols, failure)) return none;
  none.reset(frame.release());
  return none;
}

bool Program::replay(ProgramFrame& frame, ProgramFailure& failure) const {
  const bool done = frame.numbers_hold(failure) && frame.launch(failure);
  account(frame);
  return done;
}

}  // namespace baracuda
