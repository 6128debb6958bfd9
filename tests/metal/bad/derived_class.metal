// refused: a derived class
#include <metal_stdlib>
using namespace metal;

struct A {
  int a;
};
struct B : A {
  int b;
};
