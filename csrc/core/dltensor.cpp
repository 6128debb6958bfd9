#include "core/dltensor.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/checked.h"
#include "core/devices.h"

namespace baracuda {
namespace {

constexpr uint8_t kUnknown = 255;
constexpr int kCodes = 16, kWidths = 8;  // widths: the logarithm of the bits

using ByType = std::array<std::array<uint8_t, kWidths>, kCodes>;
constexpr ByType by_type() {
  ByType out{};
  for (auto& widths : out) widths.fill(kUnknown);
  for (int i = 0; i < kElementCount; ++i) {
    const ElementInfo& e = kElementInfo[i];
    if (e.bits >= 8) out[e.dl_code][std::countr_zero(e.dl_bits)] = static_cast<uint8_t>(i);
  }
  return out;
}
constexpr ByType kByType = by_type();

uint8_t element_of(DLDataType t) {
  // std::has_single_bit would be a call: the engine is compiled for processors without a popcount.
  const bool power = t.bits && !(t.bits & (t.bits - 1));
  if (t.lanes != 1 || t.code >= kCodes || !power) return kUnknown;
  return kByType[t.code][std::countr_zero(t.bits)];
}

Backend backend_of(DLDeviceType type) {
  switch (type) {
    case kDLCPU:
    case kDLCUDAHost:
      return Backend::Cpu;
    case kDLCUDA:
    case kDLCUDAManaged:
      return Backend::Cuda;
    case kDLMetal:
      return Backend::Metal;
    default:
      return Backend::Any;
  }
}

bool refuse(std::unique_ptr<Refusal>& why, Code code, std::string got, const char* want, const char* hint) {
  why = std::make_unique<Refusal>(Refusal{code, "", std::move(got), want, hint});
  return false;
}

}  // namespace

bool read_dltensor(const DLTensor& t, TensorView& view, std::unique_ptr<Refusal>& why) {
  const uint8_t element = element_of(t.dtype);
  if (element == kUnknown)
    return refuse(why, Code::ElementKind,
                  "DLPack type code " + std::to_string(t.dtype.code) + ", " + std::to_string(t.dtype.bits) + " bits, " +
                      std::to_string(t.dtype.lanes) + " lanes",
                  "an element that baracuda knows", "cast it first");
  if (t.ndim < 0 || t.ndim > kMaxRank)
    return refuse(why, Code::Rank, "rank " + std::to_string(t.ndim), "at most 8", "merge dimensions with reshape()");
  view.device = backend_of(t.device.device_type);
  if (view.device == Backend::Any)
    return refuse(why, Code::Device, "a device that baracuda has no backend for", "cpu, cuda or metal",
                  "copy it to one of these");
  if (t.ndim > 0 && !t.shape)
    return refuse(why, Code::Shape, "no sizes", "a size for each dimension", "the tensor's producer is at fault");
  view.device_id = view.device == Backend::Cpu ? 0 : t.device.device_id;
  view.unbacked = false;
  view.data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
  view.rank = t.ndim;
  view.element = static_cast<Element>(element);
  int64_t dense = 1, below = 1;  // the elements of the dimensions below, and those that they would have without zeros
  for (int i = t.ndim - 1; i >= 0; --i) {
    view.shape[i] = t.shape[i];
    view.strides[i] = t.strides ? t.strides[i] : dense;
    const bool counted = !__builtin_mul_overflow(below, std::max<int64_t>(t.shape[i], 1), &below);
    if (t.shape[i] < 0 || !counted || below >= kMaxElements)
      return refuse(why, Code::Shape, "a negative size, or 2^59 elements or more", "sizes 0 <= n of fewer elements",
                    "pass a smaller view");
    dense *= t.shape[i];
  }
  return true;
}

bool adopt(const DLTensor& t, TensorView& view, Adopted& out, std::unique_ptr<Refusal>& why) {
  std::string reason;
  const DeviceModule* module = device_module(view.device, reason);
  if (!module || !module->objects) return true;  // who uses it is told that there is no such device
  if (view.numel() == 0) return view.data = nullptr, true;
  if (!t.data)
    return refuse(why, Code::NullData, "no buffer", "the object that holds the memory, as DLPack has it",
                  "the tensor's producer is at fault");
  int64_t bytes = 0;
  if (module->objects->adopt(view.device_id, t.data, &out.address, &bytes) != Status::Ok)
    return refuse(why, Code::Device, module->last_error(), "a buffer of this device",
                  "copy it to the cpu first, or ask its library for a newer release");
  out.module = module, out.device = view.device_id;
  view.data = static_cast<char*>(out.address) + t.byte_offset;
  __int128 low = t.byte_offset, high = low + size_of(view.element);
  for (int i = 0; i < view.rank; ++i) {
    const __int128 step = static_cast<__int128>(view.shape[i] - 1) * view.strides[i] * size_of(view.element);
    (step < 0 ? low : high) += step;
  }
  if (low >= 0 && high <= bytes) return true;
  out.give_up();
  return refuse(why, Code::BufferTooSmall,
                "a view at byte " + std::to_string(t.byte_offset) + " that reaches out of its buffer of " +
                    std::to_string(bytes) + " bytes",
                "one inside the buffer", "the tensor's producer is at fault");
}

void Adopted::give_up() {
  if (module) module->objects->give_up(device, address);
  module = nullptr;
}

}  // namespace baracuda
