// Reading a scalar argument: a value, or a 0-d tensor's contents at launch time.
#include <bit>
#include <cmath>

#include "core/launch.h"

namespace baracuda {
namespace {

template <class T>
T read(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

double half_to_double(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double sign = h & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

template <class To>
To read_as(Element e, const void* p) {
  switch (e) {
    case Element::Bool:
      return read<uint8_t>(p) != 0;
    case Element::U8:
      return static_cast<To>(read<uint8_t>(p));
    case Element::U16:
      return static_cast<To>(read<uint16_t>(p));
    case Element::U32:
      return static_cast<To>(read<uint32_t>(p));
    case Element::U64:
      return static_cast<To>(read<uint64_t>(p));
    case Element::I8:
      return static_cast<To>(read<int8_t>(p));
    case Element::I16:
      return static_cast<To>(read<int16_t>(p));
    case Element::I32:
      return static_cast<To>(read<int32_t>(p));
    case Element::I64:
      return static_cast<To>(read<int64_t>(p));
    case Element::F16:
      return static_cast<To>(half_to_double(read<uint16_t>(p)));
    case Element::BF16:
      return static_cast<To>(std::bit_cast<float>(uint32_t(read<uint16_t>(p)) << 16));
    case Element::F32:
      return static_cast<To>(read<float>(p));
    default:
      return static_cast<To>(read<double>(p));
  }
}

}  // namespace

double Scalar::as_f64() const {
  if (data) return read_as<double>(element, data);
  return kind == Kind::Float ? f : kind == Kind::Int ? static_cast<double>(i) : static_cast<double>(u);
}

int64_t Scalar::as_i64() const {
  if (data) return read_as<int64_t>(element, data);
  return kind == Kind::Float ? static_cast<int64_t>(f) : i;
}

uint64_t Scalar::as_u64() const {
  if (data) return read_as<uint64_t>(element, data);
  return kind == Kind::Float ? static_cast<uint64_t>(f) : u;
}

}  // namespace baracuda
