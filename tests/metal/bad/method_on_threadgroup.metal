// refused: a member function of an object that is not in thread memory
#include <metal_stdlib>
using namespace metal;

struct Box {
  int n;
  int get() const { return n; }
};
inline int read(threadgroup const Box& b) { return b.get(); }
