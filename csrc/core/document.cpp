#include "core/document.h"

#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/devices.h"

namespace baracuda {
namespace {

constexpr int64_t kMostSlots = int64_t{1} << 20;
constexpr int kMostFactor = INT32_MAX;  // of a size that follows another

Json write_dim(const Signature& s, const DimExpr& d) {
  if (d.symbol < 0) return d.value;
  Json out = Json::object();
  out.set("dim", s.symbols[d.symbol].name);
  if (d.mul != 1) out.set("mul", d.mul);
  if (d.div != 1) out.set("div", d.div);
  if (d.add != 0) out.set("add", d.add);
  return out;
}

Json write_shape(const Signature& s, const Slot& slot) {
  Json out = Json::list();
  for (int i = 0; i < slot.rank; ++i) out.add(write_dim(s, slot.dims[i]));
  return out;
}

Json write_tensor(const Signature& s, const Param& p, const ParamMeta& meta) {
  Json out = Json::object();
  out.set("name", p.name);
  out.set("role", kRoleNames[static_cast<int>(p.role)]);
  out.set("element", name(p.count ? s.slots[p.first].element : meta.element));
  if (!p.present) return out;
  if (!p.variadic) {
    out.set("shape", write_shape(s, s.slots[p.first]));
  } else {
    Json& shapes = out.set("shapes", Json::list());
    for (int i = 0; i < p.count; ++i) shapes.add(write_shape(s, s.slots[p.first + i]));
  }
  if (meta.strided) {
    Json& strides = out.set("strides", Json::list());
    for (int i = 0; i < meta.rank; ++i) strides.add(meta.strides[i]);
  }
  return out;
}

Json number_of(const Scalar& v) {
  return v.kind == Scalar::Kind::Float ? Json(v.f) : v.kind == Scalar::Kind::Int ? Json(v.i) : Json(v.u);
}

Json write_scalar(const ScalarParam& p) {
  Json out = Json::object();
  out.set("name", p.name);
  out.set("kind", kScalarKindNames[static_cast<int>(p.kind)]);
  if (!p.present) out.set("absent", true);
  if (p.has_default) out.set("default", number_of(p.value));
  if (p.has_least) out.set("least", p.least);
  if (p.fits != Element::Any) out.set("fits", name(p.fits));
  return out;
}

Json write_signature(const PlanCore& plan) {
  const Signature& s = plan.signature;
  Json out = Json::object();
  Json tensors = Json::list(), scalars = Json::list(), dims = Json::object();
  for (size_t p = 0; p < s.params.size(); ++p) tensors.add(write_tensor(s, s.params[p], plan.question.params[p]));
  for (const ScalarParam& p : s.scalars) scalars.add(write_scalar(p));
  for (const Symbol& symbol : s.symbols) dims.set(symbol.name, symbol.max);
  out.set("tensors", std::move(tensors));
  out.set("scalars", std::move(scalars));
  out.set("dims", std::move(dims));
  return out;
}

bool is_double(const AttrField& field) { return std::strcmp(field.type, "f64") == 0; }
bool is_text(const AttrField& field) { return std::strcmp(field.type, "text") == 0; }

Json write_attributes(const PlanCore& plan) {
  Json out = Json::object();
  for (size_t i = 0; i < plan.row.attrs.size(); ++i) {
    const int64_t slot = plan.question.attrs[i];
    const AttrField& field = plan.row.attrs[i];
    out.set(field.name, is_text(field)     ? Json(text_at(&plan.question.attrs[i]))
                        : is_double(field) ? Json(std::bit_cast<double>(slot))
                                           : Json(slot));
  }
  return out;
}

Json write_preference(const Preference& p, int32_t threads) {
  Json out = Json::object();
  out.set("deterministic", p.deterministic);
  out.set("batch_invariant", p.batch_invariant);
  out.set("math_precision", kMathNames[static_cast<int>(p.math)]);
  out.set("max_error", p.max_error);
  out.set("max_workspace_bytes", p.max_workspace_bytes);
  out.set("threads", threads);
  return out;
}

Json write_question(const PlanCore& plan) {
  const Question& q = plan.question;
  Json out = Json::object();
  out.set("op", q.op);
  out.set("direction", kDirectionNames[static_cast<int>(q.direction)]);
  out.set("device", device_name(q.backend, q.device));
  out.set("element", name(q.element));
  if (q.aux != Element::Any) out.set("aux", name(q.aux));
  Json& reads = out.set("reads", Json::list());
  for (const Element e : q.reads) reads.add(name(e));
  out.set("alignment", q.alignment);
  out.set("attributes", write_attributes(plan));
  out.set("preference", write_preference(q.preference, plan.threads));
  return out;
}

void read_preference(const Reader& r, PlanDocument& out) {
  r.only({"deterministic", "batch_invariant", "math_precision", "max_error", "max_workspace_bytes", "threads"});
  Preference& p = out.question.preference;
  p.deterministic = r.at("deterministic").boolean();
  p.batch_invariant = r.at("batch_invariant").boolean();
  p.math =
      static_cast<MathPrecision>(r.at("math_precision").one_of(kMathNames, static_cast<int>(MathPrecision::Count)));
  p.max_error = r.at("max_error").number();
  if (!(p.max_error >= 0)) r.at("max_error").wrong("a number of at least 0");
  p.max_workspace_bytes = r.at("max_workspace_bytes").integer(0);
  out.threads = static_cast<int32_t>(r.at("threads").integer(0, INT32_MAX));
}

// The op's row, whose names of arguments and attributes all rows of the op share.
const Row& row_of(const Reader& r, const Question& q) {
  const auto rows = rows_of(q.op, q.direction);
  if (q.op.empty() || rows.empty()) r.at("op").wrong("an op of the SKU table with this direction");
  return row_at(rows.front());
}

void read_attributes(const Reader& r, const Row& row, Question& q) {
  for (const AttrField& field : row.attrs) {
    const Reader value = r.at(field.name);
    if (is_text(field)) {
      append_text(q.attrs, value.text());
      continue;
    }
    q.attrs.push_back(is_double(field) ? std::bit_cast<int64_t>(value.number()) : value.integer());
  }
  if (r.json().members().size() != row.attrs.size()) r.wrong("no other attributes than the op's");
}

void read_question(const Reader& r, PlanDocument& out) {
  r.only({"op", "direction", "device", "element", "aux", "reads", "alignment", "attributes", "preference"});
  Question& q = out.question;
  q.op = r.at("op").text();
  q.direction = static_cast<Direction>(r.at("direction").one_of(kDirectionNames, 2));
  read_device(r.at("device"), q.backend, q.device);
  q.element = read_element(r.at("element"));
  if (r.has("aux")) q.aux = read_element(r.at("aux"));
  for (const Reader& e : r.at("reads").items(kElementCount)) q.reads.push_back(read_element(e));
  q.alignment = static_cast<int32_t>(r.at("alignment").integer(0, INT32_MAX));
  read_attributes(r.at("attributes"), row_of(r, q), q);
  read_preference(r.at("preference"), out);
}

DimExpr read_dim(const Reader& r, const Signature& s) {
  DimExpr d;
  if (!r.json().is(Json::Kind::Object)) {
    d.value = r.integer(0, kMaxElements - 1);
    return d;
  }
  r.only({"dim", "mul", "div", "add"});
  const std::string& symbol = r.at("dim").text();
  for (size_t i = 0; i < s.symbols.size(); ++i)
    if (s.symbols[i].name == symbol) d.symbol = static_cast<int32_t>(i);
  if (d.symbol < 0) r.at("dim").wrong("one of the signature's dims");
  if (r.has("mul")) d.mul = static_cast<int32_t>(r.at("mul").integer(1, kMostFactor));
  if (r.has("div")) d.div = static_cast<int32_t>(r.at("div").integer(1, kMostFactor));
  if (r.has("add")) d.add = r.at("add").integer(1 - kMaxElements, kMaxElements - 1);
  return d;
}

void read_shape(const Reader& r, Slot& slot, const Signature& s) {
  __int128 elements = 1;
  for (const Reader& dim : r.items(kMaxRank)) {
    const DimExpr d = read_dim(dim, s);
    const __int128 most = d.symbol < 0 ? __int128{d.value} : __int128{s.symbols[d.symbol].max} * d.mul / d.div + d.add;
    if (most < 0 || most >= kMaxElements) dim.wrong("a size, 0 <= n < 2^59");
    elements *= most > 0 ? most : 1;
    if (elements >= kMaxElements) r.wrong("fewer than 2^59 elements");
    slot.dims[slot.rank++] = d;
  }
}

void read_tensor(const Reader& r, std::string_view wanted, Signature& s, std::vector<NamedStrides>& promised) {
  r.only({"name", "role", "element", "shape", "shapes", "strides"});
  Param p;
  p.name = r.at("name").text();
  if (p.name != wanted) r.at("name").wrong("'" + std::string(wanted) + "', as the op's arguments are called");
  p.role = static_cast<Role>(r.at("role").one_of(kRoleNames, 3));
  const Element element = read_element(r.at("element"));
  p.variadic = r.has("shapes");
  p.present = p.variadic || r.has("shape");
  if (p.variadic && r.has("shape")) r.wrong("either a shape or shapes");
  p.first = static_cast<int32_t>(s.slots.size());
  const std::vector<Reader> shapes = p.variadic ? r.at("shapes").items(kMostSlots) : std::vector<Reader>();
  p.count = p.variadic ? static_cast<int32_t>(shapes.size()) : 1;
  for (int i = 0; i < p.count; ++i) {
    Slot slot;
    slot.param = static_cast<int32_t>(s.params.size());
    slot.role = p.role;
    slot.element = element;
    if (p.present) read_shape(p.variadic ? shapes[i] : r.at("shape"), slot, s);
    s.slots.push_back(slot);
  }
  if (r.has("strides")) {
    NamedStrides given{p.name, {}};
    constexpr int64_t kMost = int64_t{1} << 62;
    const std::vector<Reader> strides = r.at("strides").items(kMaxRank);
    if (!p.present || p.count == 0 || static_cast<int32_t>(strides.size()) != s.slots[p.first].rank)
      r.at("strides").wrong("one stride per dimension");
    for (const Reader& stride : strides) given.strides.push_back(stride.integer(1 - kMost, kMost - 1));
    promised.push_back(std::move(given));
  }
  s.params.push_back(std::move(p));
}

void read_number(const Reader& r, std::string_view wanted, Signature& s) {
  s.scalars.push_back(read_scalar(r));
  if (s.scalars.back().name != wanted)
    r.at("name").wrong("'" + std::string(wanted) + "', as the op's arguments are called");
}

void read_signature(const Reader& r, const Row& row, PlanDocument& out) {
  r.only({"tensors", "scalars", "dims"});
  Signature& s = out.signature;
  const Reader dims = r.at("dims"), tensors = r.at("tensors"), scalars = r.at("scalars");
  if (!dims.json().is(Json::Kind::Object) || dims.json().members().size() > size_t{kMaxSymbols})
    dims.wrong("an object of at most " + std::to_string(kMaxSymbols) + " names");
  for (const auto& [name, most] : dims.json().members())
    s.symbols.push_back({name, Reader(most, dims.where() + "." + name).integer(0, kMaxElements - 1)});
  const std::vector<Reader> params = tensors.items(kMaxArgs), numbers = scalars.items(kMaxScalars);
  std::vector<NamedStrides> promised;
  for (size_t i = 0; i < params.size(); ++i)
    read_tensor(params[i], ArgList::at(row.args.tensors, static_cast<int>(i)), s, promised);
  for (size_t i = 0; i < numbers.size(); ++i)
    read_number(numbers[i], ArgList::at(row.args.scalars, static_cast<int>(i)), s);
  if (!ArgList::at(row.args.tensors, static_cast<int>(params.size())).empty() ||
      params.size() + numbers.size() > size_t{kMaxArgs})
    tensors.wrong("all of the op's tensors");
  if (!ArgList::at(row.args.scalars, static_cast<int>(numbers.size())).empty())
    scalars.wrong("all of the op's scalars");
  if (s.slots.size() > size_t{kMostSlots}) tensors.wrong("at most 2^20 tensors");
  take_signature(out.question, s, promised);
}

}  // namespace

std::string digest_of(const std::vector<const Json*>& parts) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const Json* part : parts)
    for (const char c : part->write()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Element read_element(const Reader& r) {
  for (int i = 0; i < kElementCount; ++i)
    if (r.text() == kElementInfo[i].name) return static_cast<Element>(i);
  r.wrong("an element, such as 'f32'");
}

void read_device(const Reader& r, Backend& backend, int32_t& device) {
  const std::string& text = r.text();
  const size_t colon = text.find(':');
  int number = 0;
  if (colon != text.npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
  for (const Backend b : {Backend::Cpu, Backend::Cuda, Backend::Metal}) {
    if (text != device_name(b, number)) continue;
    backend = b, device = number;
    return;
  }
  r.wrong("'cpu', 'cuda:0' or 'metal'");
}

ScalarParam read_scalar(const Reader& r) {
  r.only({"name", "kind", "absent", "default", "least", "fits"});
  ScalarParam p;
  p.name = r.at("name").text();
  p.kind = static_cast<Scalar::Kind>(r.at("kind").one_of(kScalarKindNames, 3));
  p.present = !r.has("absent");
  p.value.kind = p.kind;
  p.has_default = r.has("default");
  if (p.has_default && p.kind == Scalar::Kind::Float) p.value.f = r.at("default").number();
  if (p.has_default && p.kind == Scalar::Kind::Int) p.value.i = r.at("default").integer();
  if (p.has_default && p.kind == Scalar::Kind::Unsigned) p.value.u = r.at("default").whole();
  p.has_least = r.has("least");
  if (p.has_least) p.least = r.at("least").number();
  if (r.has("fits")) p.fits = read_element(r.at("fits"));
  return p;
}

void check_kind(const Reader& r, const char* kind) {
  if (!r.has("schema") || !r.at("schema").json().is(Json::Kind::Int) || r.at("schema").json().integer() != kSchema)
    throw DocumentError("schema", r.has("schema") ? r.at("schema").json().shown() : "nothing",
                        std::to_string(kSchema) + ": make it anew with this version");
  if (r.at("kind").text() != kind) r.at("kind").wrong("'" + std::string(kind) + "'");
}

Json write_plan(const PlanCore& plan, Json descriptor) {
  Json out = Json::object(), question = write_question(plan), signature = write_signature(plan);
  std::string digest = digest_of({&question, &signature});
  out.set("schema", kSchema);
  out.set("kind", "plan");
  out.set("sku", sku_name(plan.row, plan.question.element));
  out.set("question", std::move(question));
  out.set("signature", std::move(signature));
  out.set("digest", std::move(digest));
  out.set("descriptor", std::move(descriptor));
  return out;
}

PlanDocument read_plan(const Reader& r) {
  PlanDocument out;
  check_kind(r, "plan");
  r.only({"schema", "kind", "sku", "question", "signature", "digest", "descriptor"});
  out.sku = r.at("sku").text();
  read_question(r.at("question"), out);
  read_signature(r.at("signature"), row_of(r.at("question"), out.question), out);
  out.question.has_problem = true;
  const std::string digest = digest_of({&r.at("question").json(), &r.at("signature").json()});
  if (r.at("digest").text() != digest) r.at("digest").wrong("that of the question and signature: they were changed");
  if (r.has("descriptor")) out.descriptor = r.at("descriptor").json();
  return out;
}

}  // namespace baracuda
