// Spaces that 32-bit indices do not reach are cut into parts that they do: all elements, none twice, in order if asked.
#include <cstdio>
#include <cstdlib>

#include "simt/map_launch.h"

using namespace baracuda;

#define CHECK(x) \
  if (!(x)) std::printf("line %d: %s\n", __LINE__, #x), std::exit(1)

using Space = simt::Merged<2>;

// Where the element at a position of the whole space lies.
int64_t offset_of(const IterationSpace& space, const Operand& o, int64_t position) {
  int64_t offset = 0;
  for (int d = space.rank - 1; d >= 0; --d) {
    offset += position % space.shape[d] * o.strides[d];
    position /= space.shape[d];
  }
  return offset * size_of(o.element);
}

int parts_of(const IterationSpace& space, const Operand& a, const Operand& b, bool in_order) {
  const Operand* const operands[] = {&a, &b};
  int64_t count = 0;
  int parts = 0;
  const Space whole = simt::merged<2>(space, operands, 0, in_order);
  CHECK(whole.count() == space.numel());
  simt::for_parts(whole, in_order, [&](const Space& s) {
    for (int k = 0; k < 2; ++k) {
      int64_t reach = 0;
      for (int d = 0; d < s.rank; ++d) reach += std::abs(s.stride[k][d]) * (s.shape[d] - 1);
      CHECK(reach < int64_t{1} << 31);
      if (in_order) {
        CHECK(s.first == count);
        CHECK(s.data[k] - static_cast<char*>(operands[k]->data) == offset_of(space, *operands[k], s.first));
      }
    }
    CHECK(s.count() < int64_t{1} << 31);
    count += s.count();
    ++parts;
    return Status::Ok;
  });
  CHECK(count == space.numel());
  return parts;
}

int main() {
  char base[16];
  auto at = [&](Element e, std::initializer_list<int64_t> strides) {
    Operand o{base, e, {}};
    std::copy(strides.begin(), strides.end(), o.strides);
    return o;
  };
  constexpr int64_t kBig = int64_t{1} << 33;
  for (bool in_order : {false, true}) {
    CHECK(parts_of({1, {1000}}, at(Element::F32, {1}), at(Element::F32, {1}), in_order) == 1);
    CHECK(parts_of({1, {0}}, at(Element::F32, {1}), at(Element::F32, {1}), in_order) == 0);
    CHECK(parts_of({0, {}}, at(Element::F32, {}), at(Element::F32, {}), in_order) == 1);
    CHECK(parts_of({1, {kBig + 5}}, at(Element::F16, {1}), at(Element::F32, {1}), in_order) >= 5);
    // Rows that are far apart; rows that one operand repeats; a backward and a transposed view.
    CHECK(parts_of({2, {3, 7}}, at(Element::F32, {7, 1}), at(Element::F32, {kBig, 1}), in_order) == 3);
    CHECK(parts_of({2, {1 << 20, 1 << 13}}, at(Element::F32, {1 << 13, 1}), at(Element::F32, {0, 1}), in_order) >= 4);
    CHECK(parts_of({2, {5, 9}}, at(Element::F64, {-kBig / 4, -1}), at(Element::F64, {1, 5}), in_order) >= 5);
    CHECK(parts_of({3, {2, 1 << 17, 1 << 16}}, at(Element::U8, {int64_t{1} << 33, 1, 1 << 17}),
                   at(Element::U8, {int64_t{1} << 33, 1 << 16, 1}), in_order) >= 8);
  }
  std::printf("ok\n");
}
