// refused: a float literal without f
#include <metal_stdlib>
using namespace metal;

template <class T>
inline T half_of(T v) {
  return v * 0.5;
}
