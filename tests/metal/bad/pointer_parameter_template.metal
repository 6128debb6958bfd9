// refused: a pointer or reference without an address space
#include <metal_stdlib>
using namespace metal;

template <class T>
inline T load(const T* p, uint i) {
  return p[i];
}
