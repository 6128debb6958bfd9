// Prints Philox4x32-10 of the portable functor for a counter and a key given as six hexadecimal words.
#include <cstdio>
#include <cstdlib>

#include "ops/random/math.h"

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  uint32_t v[6];
  for (int i = 0; i < 6; ++i) v[i] = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 16));
  baracuda::random::Words w = baracuda::random::philox({v[0], v[1], v[2], v[3]}, v[4], v[5]);
  std::printf("%08x %08x %08x %08x\n", w.x, w.y, w.z, w.w);
}
