// Reading a program, and planning the memory of what only its steps see.
#include "core/program.h"

#include <algorithm>
#include <limits>

#include "core/document.h"
#include "core/number.h"
#include "core/program_frame.h"

namespace baracuda {
namespace {

constexpr size_t kMostSteps = size_t{1} << 20, kMostValues = size_t{1} << 20;
constexpr int64_t kLine = 64;  // scratch starts at multiples of a cache line

// Of what only steps see.
int64_t scratch_of(int64_t bytes, const std::string& whose) {
  int64_t out = 0;
  if (!round_up(bytes, kLine, out))
    throw DocumentError("values", std::to_string(bytes) + " bytes of scratch for " + whose + " at the largest sizes",
                        "at most 2^56 bytes: smaller sizes, or Dims of a smaller max");
  return out;
}

std::vector<SizeExpr> read_sizes(const Reader& r, const std::vector<Symbol>& symbols) {
  std::vector<SizeExpr> out;
  for (const Reader& size : r.items(kMaxRank)) out.push_back(SizeExpr::read(size, symbols));
  return out;
}

std::vector<SizeExpr> read_strides(const Reader& r, const std::vector<Symbol>& symbols, size_t rank) {
  std::vector<SizeExpr> out = read_sizes(r, symbols);
  if (out.size() != rank) r.wrong("one stride per dimension");
  return out;
}

bool same(const std::vector<SizeExpr>& a, const std::vector<SizeExpr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SizeExpr& x, const SizeExpr& y) { return x.follows(y, 1, 0); });
}

bool all_fixed(const std::vector<SizeExpr>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const SizeExpr& e) { return e.fixed(); });
}

// One of a block that scratch is cut from, while the steps from `first` to `last` run.
struct Piece {
  int64_t bytes;
  int32_t first, last;
  int64_t* offset;
};

// Greedy by size, each piece into the smallest gap that it fits: within some percent of what is alive at once.
int64_t place(std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.bytes > b.bytes; });
  std::vector<const Piece*> placed;  // by offset
  int64_t total = 0;
  for (Piece& piece : pieces) {
    int64_t end = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
    for (const Piece* other : placed) {
      if (other->last < piece.first || piece.last < other->first) continue;
      const int64_t gap = *other->offset - end;
      if (gap >= piece.bytes && gap < best_gap) best = end, best_gap = gap;
      end = std::max(end, *other->offset + other->bytes);
    }
    *piece.offset = best < 0 ? end : best;
    total = std::max(total, *piece.offset + piece.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &piece,
                                   [](const Piece* a, const Piece* b) { return *a->offset < *b->offset; }),
                  &piece);
  }
  return total;
}

// Reads one step's views and numbers against its plan.
struct StepReader {
  const std::vector<ProgramValue>& values;
  const std::vector<Symbol>& symbols;
  const std::vector<ScalarParam>& scalars;
  const ProgramRandom& random;

  ProgramView view(const Reader& r) const {
    r.only({"value", "element", "offset", "shape", "strides"});
    ProgramView out;
    out.value = static_cast<int32_t>(r.at("value").integer(0, static_cast<int64_t>(values.size()) - 1));
    const ProgramValue& value = values[out.value];
    out.element = r.has("element") ? read_element(r.at("element")) : value.element;
    if (out.element != value.element && out.element != part_of(value.element))
      r.at("element").wrong("the value's, or that of its real parts");
    if (r.has("offset")) out.offset = SizeExpr::read(r.at("offset"), symbols);
    out.shape = r.has("shape") ? read_sizes(r.at("shape"), symbols) : value.shape;
    if (r.has("strides"))
      out.strides = read_strides(r.at("strides"), symbols, out.shape.size());
    else if (!r.has("shape"))
      out.strides = value.strides;
    out.whole = out.element == value.element && out.offset.follows(SizeExpr(), 1, 0) && same(out.shape, value.shape) &&
                same(out.strides, value.strides);
    out.fixed = out.offset.fixed() && all_fixed(out.shape) && all_fixed(out.strides) && all_fixed(value.shape) &&
                all_fixed(value.strides);
    return out;
  }

  void tensors(const Reader& r, ProgramStep& step) const {
    const Signature& s = step.plan->signature;
    std::vector<int32_t> slots;
    for (size_t k = 0; k < s.slots.size(); ++k)
      if (s.params[s.slots[k].param].present) slots.push_back(static_cast<int32_t>(k));
    const std::vector<Reader> given = r.items(kMostValues);
    if (given.size() != slots.size()) r.wrong(std::to_string(slots.size()) + " tensors, as the plan has them");
    for (size_t i = 0; i < given.size(); ++i) {
      const Slot& slot = s.slots[slots[i]];
      step.views.push_back(view(given[i]));
      step.views.back().slot = slots[i];
      const ProgramValue& value = values[step.views.back().value];
      const std::string name = s.params[slot.param].name;
      if (step.views.back().element != slot.element)
        given[i].wrong("a value of " + std::string(baracuda::name(slot.element)) + " for " + name);
      const bool writes = slot.role != Role::In;
      const bool writable =
          value.storage == Storage::Scratch || (value.storage == Storage::Argument && value.role != Role::In);
      if (writes && !writable) given[i].wrong("a value that may be written for " + name);
      step.fixed &= step.views.back().fixed;
    }
  }

  ProgramNumber number(const Reader& r, const ScalarParam& param) const {
    ProgramNumber out;
    std::unique_ptr<Refusal> why;
    if (!r.json().is(Json::Kind::Object)) {
      const bool real = param.kind == Scalar::Kind::Float && !r.json().is(Json::Kind::Int);
      const bool good = real                                ? take_real(param, r.number(), out.literal, why)
                        : r.json().is(Json::Kind::Unsigned) ? take_whole(param, __int128{r.whole()}, out.literal, why)
                                                            : take_whole(param, r.integer(), out.literal, why);
      if (!good) r.wrong(why->want);
      return out;
    }
    r.only({"scalar", "size", "view", "draw"});
    if (r.has("draw")) {
      if (r.has("scalar") || r.has("size") || r.has("view")) r.wrong("nothing beside a draw");
      if (param.kind != Scalar::Kind::Unsigned) r.wrong("a number that is an offset");
      out.from = ProgramNumber::From::Draw;
      out.scalar = random.offset;
      out.draw = static_cast<int32_t>(r.at("draw").integer(0, std::ssize(random.draws) - 1));
      return out;
    }
    if (r.has("size")) out.size = SizeExpr::read(r.at("size"), symbols), out.from = ProgramNumber::From::Size;
    if (r.has("scalar")) {
      out.from = ProgramNumber::From::Scalar;
      out.scalar = static_cast<int32_t>(r.at("scalar").integer(0, static_cast<int64_t>(scalars.size()) - 1));
      const ScalarParam& given = scalars[out.scalar];
      const bool whole = given.kind != Scalar::Kind::Float;
      if ((param.kind != Scalar::Kind::Float && !whole) || (r.has("size") && !whole)) r.wrong("an integer scalar");
    }
    if (r.has("view")) {
      out.from = ProgramNumber::From::View;
      out.view = view(r.at("view"));
    }
    if (r.has("view") == (r.has("scalar") || r.has("size"))) r.wrong("a view, or a scalar and a size");
    return out;
  }

  void numbers(const Reader& r, ProgramStep& step) const {
    const std::vector<ScalarParam>& params = step.plan->signature.scalars;
    const std::vector<Reader> given = r.items(kMaxScalars);
    for (size_t k = 0; k < params.size(); ++k) {
      if (!params[k].present) continue;
      const size_t i = step.numbers.size();
      if (i >= given.size() && !params[k].has_default) r.wrong("a number for " + params[k].name);
      if (i < given.size()) {
        step.numbers.push_back(number(given[i], params[k]));
      } else {
        step.numbers.emplace_back();
        step.numbers.back().literal = params[k].value;
      }
      step.numbers.back().number = static_cast<int32_t>(k);
      const ProgramNumber& n = step.numbers.back();
      step.fixed &= n.from == ProgramNumber::From::View ? n.view.fixed : n.size.fixed();
    }
    if (given.size() > step.numbers.size()) r.wrong("at most " + std::to_string(step.numbers.size()) + " numbers");
  }
};

// Whether a step's shapes go together at all sizes; fills the limits.
bool shapes_proven(ProgramStep& step) {
  const Signature& s = step.plan->signature;
  std::vector<const SizeExpr*> known(s.symbols.size(), nullptr);
  for (const bool bare : {true, false}) {
    for (const ProgramView& view : step.views) {
      const Slot& slot = s.slots[view.slot];
      if (static_cast<int32_t>(view.shape.size()) != slot.rank) return false;
      for (int k = 0; k < slot.rank; ++k) {
        const DimExpr& d = slot.dims[k];
        const SizeExpr& size = view.shape[k];
        if (bare && d.bare() && !known[d.symbol]) {
          known[d.symbol] = &size;
          step.limits.emplace_back(size, s.symbols[d.symbol].max);
        }
        if (bare) continue;
        const bool good = d.symbol < 0 ? size.follows(SizeExpr(d.value), 1, 0)
                                       : known[d.symbol] && d.div == 1 && size.follows(*known[d.symbol], d.mul, d.add);
        if (!good) return false;
      }
    }
  }
  return true;
}

bool proven(ProgramStep& step, const std::vector<ProgramValue>& values) {
  const Signature& s = step.plan->signature;
  for (const ProgramView& view : step.views) {
    const Slot& slot = s.slots[view.slot];
    const auto uses = std::count_if(step.views.begin(), step.views.end(),
                                    [&](const ProgramView& v) { return v.value == view.value; });
    const bool written = slot.role != Role::In;
    if (written && (uses != 1 || !view.strides.empty())) return false;
    if (view.element != values[view.value].element) return false;
  }
  for (const ProgramNumber& n : step.numbers)
    if (n.from == ProgramNumber::From::View) return false;
  return shapes_proven(step);
}

// Of all that the program says, and of its plans in their order.
std::string program_digest(const Json& source, const Json& plans) {
  Json digests = Json::list();
  for (const Json& plan : plans.items()) {
    const Json* own = plan.find("digest");
    digests.add(own ? *own : Json());
  }
  std::vector<const Json*> parts;
  for (const char* part : {"dims", "values", "scalars", "random", "conditions", "steps"})
    if (const Json* own = source.find(part)) parts.push_back(own);
  parts.push_back(&digests);
  return digest_of(parts);
}

}  // namespace

Json Program::document(Json plans) const {
  Json out = source_;
  out.set("digest", program_digest(source_, plans));
  out.set("plans", std::move(plans));
  return out;
}

Program::Program(const Reader& r, std::vector<const PlanCore*> plans, std::vector<TensorView> constants) {
  r.only({"schema", "kind", "device", "dims", "values", "scalars", "random", "conditions", "plans", "steps", "digest"});
  check_kind(r, "program");
  source_ = Json::object();
  for (const char* part : {"schema", "kind", "device", "dims", "values", "scalars", "random", "conditions", "steps"}) {
    const bool may_lack = part == std::string_view("random") || part == std::string_view("conditions");
    if (!may_lack || r.has(part)) source_.set(part, r.at(part).json());
  }
  // One that was written has its plans with it.
  if ((r.has("digest") || r.has("plans")) && r.at("digest").text() != program_digest(source_, r.at("plans").json()))
    r.at("digest").wrong("that of the rest: it was changed");
  read_device(r.at("device"), backend_, device_);
  const Reader dims = r.at("dims");
  if (!dims.json().is(Json::Kind::Object) || dims.json().members().size() > size_t{kMaxProgramSymbols})
    dims.wrong("an object of at most " + std::to_string(kMaxProgramSymbols) + " names");
  for (const auto& [name, most] : dims.json().members())
    symbols_.push_back({name, Reader(most, dims.where() + "." + name).integer(0, kMaxElements - 1)});
  read_values(r.at("values"), constants);
  for (const Reader& scalar : r.at("scalars").items(kMaxScalars)) scalars_.push_back(read_scalar(scalar));
  scalar_uses_.assign(scalars_.size(), -1);
  if (r.has("random")) read_random(r.at("random"));
  if (r.has("conditions"))
    for (const Reader& given : r.at("conditions").items(kMostValues)) {
      given.only({"size", "want"});
      conditions_.push_back({SizeExpr::read(given.at("size"), symbols_), given.at("want").text()});
    }
  read_steps(r.at("steps"), plans);
  plan_scratch();
  if (backend_ != Backend::Cpu) sites_ = Sites(static_cast<int32_t>(steps_.size()), call_text());
}

Program::~Program() = default;

// Program(ids, targets), so that people know which.
std::string Program::call_text() const {
  constexpr size_t kNamed = 4;
  std::string out;
  for (size_t i = 0; i < std::min(arguments_.size(), kNamed); ++i) out += (i ? ", " : "") + values_[arguments_[i]].name;
  return "Program(" + out + (arguments_.size() > kNamed ? ", ...)" : ")");
}

void Program::read_values(const Reader& r, const std::vector<TensorView>& constants) {
  size_t held = 0;
  int64_t most[kMaxProgramSymbols] = {};
  for (size_t i = 0; i < symbols_.size(); ++i) most[i] = symbols_[i].max;
  for (const Reader& given : r.items(kMostValues)) {
    given.only({"name", "storage", "role", "element", "shape", "strides"});
    ProgramValue v;
    v.name = given.at("name").text();
    v.storage = static_cast<Storage>(given.at("storage").one_of(kStorageNames, 3));
    if (v.storage == Storage::Argument) v.role = static_cast<Role>(given.at("role").one_of(kRoleNames, 3));
    v.element = read_element(given.at("element"));
    v.shape = read_sizes(given.at("shape"), symbols_);
    if (given.has("strides")) v.strides = read_strides(given.at("strides"), symbols_, v.shape.size());
    if (given.has("strides") && v.storage != Storage::Argument) given.at("strides").wrong("none: it is contiguous");
    const auto number = static_cast<int32_t>(values_.size());
    TensorView constant;
    if (v.storage == Storage::Argument) arguments_.push_back(number);
    if (v.storage == Storage::Constant) {
      if (held == constants.size()) r.wrong("as many constants as are given, " + std::to_string(held));
      constant = constants[held++];
    }
    values_.push_back(std::move(v));
    std::vector<int64_t> shape;
    if (!shape_of(number, most, shape)) given.at("shape").wrong("sizes, 0 <= n, of fewer than 2^59 elements");
    ProgramValue& value = values_.back();
    value.most_bytes = size_of(value.element);
    for (const int64_t n : shape) value.most_bytes *= n;
    if (value.storage == Storage::Constant &&
        (!all_fixed(value.shape) || constant.element != value.element || !is_contiguous(constant) ||
         std::vector<int64_t>(constant.shape, constant.shape + constant.rank) != shape || constant.device != backend_ ||
         constant.device_id != device_))
      given.wrong("the constant's own element and shape, contiguous and on the program's device");
    constants_.push_back(constant);
  }
  if (held != constants.size()) r.wrong("as many constants as are given, " + std::to_string(constants.size()));
  // Each symbol is the size of something that the caller gives.
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const bool known = std::any_of(arguments_.begin(), arguments_.end(), [&](int32_t a) {
      const ProgramValue& v = values_[a];
      return v.role != Role::Out && std::any_of(v.shape.begin(), v.shape.end(),
                                                [&](const SizeExpr& e) { return e.symbol() == static_cast<int>(s); });
    });
    if (!known) r.wrong("an input with a dimension of size " + symbols_[s].name);
  }
}

void Program::read_random(const Reader& r) {
  r.only({"seed", "offset", "draws"});
  for (const auto& [name, scalar] : {std::pair("seed", &random_.seed), std::pair("offset", &random_.offset)}) {
    *scalar = static_cast<int32_t>(r.at(name).integer(0, std::ssize(scalars_) - 1));
    if (scalars_[static_cast<size_t>(*scalar)].kind != Scalar::Kind::Unsigned)
      r.at(name).wrong("a scalar of kind unsigned");
  }
  for (const Reader& draw : r.at("draws").items(kMostSteps)) random_.draws.push_back(SizeExpr::read(draw, symbols_));
}

bool Program::blocks(const int64_t* symbols, uint64_t& out, uint64_t* starts) const {
  out = 0;
  for (const SizeExpr& draw : random_.draws) {
    int64_t n = 0;
    if (!draw.eval(symbols, n) || n < 0) return false;
    if (starts) *starts++ = out;
    out += static_cast<uint64_t>(n);
  }
  return true;
}

void Program::read_steps(const Reader& r, const std::vector<const PlanCore*>& plans) {
  const StepReader reader{values_, symbols_, scalars_, random_};
  for (const Reader& given : r.items(kMostSteps)) {
    given.only({"plan", "tensors", "numbers"});
    ProgramStep step;
    step.plan = plans[given.at("plan").integer(0, static_cast<int64_t>(plans.size()) - 1)];
    if (step.plan->row.backend != backend_ || step.plan->question.device != device_)
      given.at("plan").wrong("a plan for the program's device");
    reader.tensors(given.at("tensors"), step);
    reader.numbers(given.at("numbers"), step);
    step.proven = proven(step, values_);
    for (const ProgramNumber& n : step.numbers) {
      const bool given = n.from == ProgramNumber::From::Scalar || n.from == ProgramNumber::From::Draw;
      if (given) scalar_uses_[static_cast<size_t>(n.scalar)] = static_cast<int32_t>(steps_.size());
      step.looks |= n.from == ProgramNumber::From::View && step.plan->looks;
    }
    step.first_view = n_views_;
    step.first_number = n_numbers_;
    n_views_ += static_cast<int32_t>(step.plan->signature.slots.size());
    n_numbers_ += static_cast<int32_t>(step.plan->signature.scalars.size());
    steps_.push_back(std::move(step));
  }
}

void Program::plan_scratch() {
  std::vector<Piece> pieces(values_.size());
  for (size_t v = 0; v < values_.size(); ++v) pieces[v] = {0, -1, -1, &values_[v].offset};
  auto uses = [&](int32_t value, int32_t step, bool writes) {
    Piece& piece = pieces[value];
    if (piece.first < 0 && !writes && values_[value].storage == Storage::Scratch)
      throw DocumentError("steps[" + std::to_string(step) + "]",
                          values_[value].name + ", which nothing has written yet",
                          "a value that an argument, a constant or an earlier step gives");
    if (piece.first < 0) piece.first = step;
    piece.last = step;
    values_[value].last_use = step;
    if (writes && values_[value].first_write < 0) values_[value].first_write = step;
  };
  for (size_t k = 0; k < steps_.size(); ++k) {
    const ProgramStep& step = steps_[k];
    const auto at = static_cast<int32_t>(k);
    const Signature& s = step.plan->signature;
    for (const bool writes : {false, true})  // what is read comes before what is written
      for (const ProgramView& view : step.views)
        if ((s.slots[view.slot].role == Role::Out) == writes) uses(view.value, at, writes);
    for (const ProgramView& view : step.views)
      if (int32_t& first = values_[view.value].first_write; first < 0 && s.slots[view.slot].role == Role::InOut)
        first = at;
    for (const ProgramNumber& n : step.numbers)
      if (n.from == ProgramNumber::From::View) uses(n.view.value, at, false);
  }
  std::vector<Piece> scratch;
  for (size_t v = 0; v < values_.size(); ++v) {
    if (values_[v].storage != Storage::Scratch || pieces[v].first < 0 || values_[v].most_bytes == 0) continue;
    pieces[v].bytes = scratch_of(values_[v].most_bytes, values_[v].name);
    scratch.push_back(pieces[v]);
  }
  for (size_t k = 0; k < steps_.size(); ++k)
    if (steps_[k].plan->workspace_size)
      scratch.push_back({scratch_of(steps_[k].plan->workspace_size, "steps[" + std::to_string(k) + "]"),
                         static_cast<int32_t>(k), static_cast<int32_t>(k), &steps_[k].workspace});
  __int128 all = 0;
  for (const Piece& piece : scratch) all += piece.bytes;
  if (all > kMaxBytes)
    throw DocumentError("values", "more than 2^56 bytes of scratch at the largest sizes",
                        "at most that: smaller sizes, or Dims of a smaller max");
  unplanned_bytes_ = static_cast<int64_t>(all);
  scratch_bytes_ = place(std::move(scratch));
}

bool Program::shape_of(int32_t value, const int64_t* symbols, std::vector<int64_t>& out) const {
  out.clear();
  __int128 elements = 1;
  for (const SizeExpr& e : values_[value].shape) {
    int64_t n = 0;
    if (!e.eval(symbols, n) || n < 0 || n >= kMaxElements) return false;
    elements *= std::max<int64_t>(n, 1);
    if (elements >= kMaxElements) return false;
    out.push_back(n);
  }
  return true;
}

bool Program::solve(const TensorView* arguments, int64_t* symbols, Refusals& out) const {
  bool known[kMaxProgramSymbols] = {};
  for (size_t a = 0; a < arguments_.size(); ++a) {
    const ProgramValue& v = values_[arguments_[a]];
    const TensorView& t = arguments[a];
    if (t.rank != static_cast<int32_t>(v.shape.size())) continue;  // refused where all are compared
    for (int32_t i = 0; i < t.rank; ++i) {
      const int s = v.shape[i].symbol();
      if (s < 0 || known[s]) continue;
      known[s] = true;
      symbols[s] = t.shape[i];
      if (t.shape[i] <= symbols_[s].max) continue;
      out.push_back({Code::Dim, v.name, symbols_[s].name + " = " + std::to_string(t.shape[i]),
                     "at most " + std::to_string(symbols_[s].max),
                     "make the program with a larger bc.Dim(\"" + symbols_[s].name + "\", max=...)", symbols_[s].max,
                     t.shape[i]});
      return false;
    }
  }
  for (size_t s = 0; s < symbols_.size(); ++s) {
    if (known[s]) continue;
    out.push_back({Code::MissingArgument, "", "no input of a size " + symbols_[s].name, "one", ""});
    return false;
  }
  return met(symbols, out);
}

bool Program::met(const int64_t* symbols, Refusals& out) const {
  for (const ProgramCondition& condition : conditions_) {
    int64_t least;
    if (condition.size.eval(symbols, least) && least >= 0) continue;
    std::string sizes;
    for (size_t s = 0; s < symbols_.size(); ++s)
      sizes += (s ? ", " : "") + symbols_[s].name + " = " + std::to_string(symbols[s]);
    out.push_back({Code::Dim, "", sizes, condition.want, ""});
    return false;
  }
  return true;
}

}  // namespace baracuda
