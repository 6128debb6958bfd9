#include "core/number.h"

#include <cstdio>

#include "core/plan.h"

namespace baracuda {
namespace {

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

std::string text_of(__int128 number) {
  if (number >= INT64_MIN && number <= INT64_MAX) return std::to_string(static_cast<int64_t>(number));
  return text_of(static_cast<double>(number));
}

bool refuse(std::unique_ptr<Refusal>& why, Refusal refusal) {
  why = std::make_unique<Refusal>(std::move(refusal));
  return false;
}

// Refuses a number below the parameter's least, and NaN where there is one.
bool in_range(const ScalarParam& param, const Scalar& scalar, std::unique_ptr<Refusal>& why) {
  if (!param.has_least || scalar.as_f64() >= param.least) return true;
  return refuse(why, {Code::ScalarKind, "", text_of(scalar.as_f64()), "a number >= " + text_of(param.least),
                      "pass a number in this range"});
}

}  // namespace

bool take_real(const ScalarParam& param, double number, Scalar& out, std::unique_ptr<Refusal>& why) {
  out.kind = Scalar::Kind::Float;
  out.data = nullptr;
  out.f = number;
  return in_range(param, out, why);
}

bool take_whole(const ScalarParam& param, __int128 number, Scalar& out, std::unique_ptr<Refusal>& why) {
  if (param.kind == Scalar::Kind::Float) return take_real(param, static_cast<double>(number), out, why);
  const WholeRange range = whole_range(param);
  out.kind = param.kind;
  out.data = nullptr;
  if (number < range.least || number > __int128{range.most}) return refuse(why, out_of_range(param, text_of(number)));
  out.u = static_cast<uint64_t>(number);
  // Kernels compute in 64 bits, and are to see the number that the element has for these bits.
  const bool unsigned_element = param.fits != Element::Any && kInts.has(param.fits) && !kSigned.has(param.fits);
  if (number < 0 && unsigned_element) out.u &= ~uint64_t{0} >> (64 - info(param.fits).bits);
  return in_range(param, out, why);
}

bool take_tensor(const ScalarParam& param, const TensorView& view, Backend backend, int32_t device, Scalar& out,
                 std::unique_ptr<Refusal>& why) {
  const bool real = param.kind == Scalar::Kind::Float;
  const bool fits = real ? kReal.has(view.element) : (kInts | kBool).has(view.element);
  if (view.numel() != 1 || view.device != backend || view.device_id != device || !fits)
    return refuse(why, {Code::ScalarKind, "", "a tensor of several elements, of another element, or on another device",
                        real ? "a number or a real 0-d tensor on the plan's device"
                             : "an int or an integer 0-d tensor on the plan's device",
                        "pass x.item()"});
  if (!view.data && !view.unbacked)
    return refuse(why, {Code::NullData, "", "no data", "a number or a 0-d tensor", "pass a number"});
  out.kind = param.kind;
  out.data = view.data;
  out.element = view.element;
  return true;
}

}  // namespace baracuda
