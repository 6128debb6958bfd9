// Lets the real cuDNN build the plans of attention for a card that is not there: the file that builds them is included,
// so that the very graphs are judged. Heuristics, support checks and the compiling of kernels run; nothing is launched.
//
//   plans DEVICE.json ARCH < problems      one problem a line, see read_problem; one answer a line
#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "backends/cuda/cudnn_sdpa.cpp"

namespace baracuda::cuda {

// What the module has besides: libraries by the loader's search, no device.
void* find_symbol(Library which, const char* symbol) {
  static void* const handles[] = {dlopen("libcublasLt.so.13", RTLD_NOW), dlopen("libcudnn.so.9", RTLD_NOW),
                                  dlopen("libnvrtc.so.13", RTLD_NOW)};
  return handles[int(which)] ? dlsym(handles[int(which)], symbol) : nullptr;
}
const char* last_error() { return ""; }
Status failed(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  return Status::Launch;
}
DeviceGuard::DeviceGuard(int) {}
DeviceGuard::~DeviceGuard() = default;

namespace {

void lay_out(SdpaTensor& t, int64_t b, int64_t h, int64_t s, int64_t d) {
  const int64_t shape[] = {b, h, s, d};
  for (int64_t i = 3, step = 1; i >= 0; step *= shape[i--]) t.shape[i] = shape[i], t.strides[i] = step;
}

// "backward deterministic element causal bottom_right lse  batch heads kv_heads q_len k_len d dv"
bool read_problem(int64_t arch, SdpaProblem& p) {
  using namespace sdpa;
  p = {};
  p.arch = arch;
  char element[8];
  long b, h, kv, q_len, k_len, d, dv;
  if (std::scanf("%ld %ld %7s %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", &p.backward, &p.deterministic, element,
                 &p.causal, &p.bottom_right, &p.save_lse, &b, &h, &kv, &q_len, &k_len, &d, &dv) != 13)
    return false;
  p.element = int64_t(std::string(element) == "f16" ? Element::F16 : Element::BF16);
  lay_out(p.tensors[kQ], b, h, q_len, d), lay_out(p.tensors[kK], b, kv, k_len, d);
  lay_out(p.tensors[kV], b, kv, k_len, dv), lay_out(p.tensors[kOut], b, h, q_len, dv);
  if (p.save_lse || p.backward) lay_out(p.tensors[kLse], b, h, q_len, 1);
  if (!p.backward) return true;
  p.tensors[kDq] = p.tensors[kQ], p.tensors[kDk] = p.tensors[kK], p.tensors[kDv] = p.tensors[kV];
  p.tensors[kDout] = p.tensors[kOut];
  return true;
}

int answer(const char* json, int64_t arch) {
  std::ifstream file(json);
  const std::vector<uint8_t> text{std::istreambuf_iterator<char>(file), {}};
  auto device = std::make_shared<fe::DeviceProperties>();
  if (auto e = device->deserialize(text); e.is_bad()) return std::printf("no device: %s\n", e.get_message().c_str()), 1;
  for (SdpaProblem p; read_problem(arch, p);) {
    Graph graph(p);
    auto e = graph.build(nullptr, device);
    std::string what = e.is_bad() ? e.get_message() : "ok " + std::to_string(graph.workspace());
    std::printf("%s\n", what.substr(0, what.find('\n')).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace baracuda::cuda

int main(int argc, char** argv) { return argc == 3 ? baracuda::cuda::answer(argv[1], std::atoi(argv[2])) : 2; }
