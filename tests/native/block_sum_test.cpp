// Sums of columns: every column from 0 to the whole block, nothing beside it, and what rounding loses is kept.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "host/block_sum.h"

using namespace baracuda;

#define CHECK(x) \
  if (!(x)) std::printf("line %d: %s\n", __LINE__, #x), std::exit(1)

template <class T>
struct Framed {
  BlockSum<T> sums;
  double after[8];
};

template <class T>
void columns(int64_t n) {
  static Framed<T> f;
  for (double& d : f.after) d = -7;
  std::vector<T> row(n);
  for (int round = 0; round < 2; ++round) {  // the second starts at nothing again
    f.sums.start(n);
    for (int r = 0; r < 5; ++r) {
      for (int64_t j = 0; j < n; ++j) row[j] = static_cast<T>(j % 13 + r);
      const int64_t half = n / 2;
      f.sums.add(row.data(), half);
      f.sums.add(row.data() + half, n - half, half);
    }
    for (int64_t j = 0; j < n; ++j) CHECK(f.sums.result()[j] == 5 * double(j % 13) + 10);
    for (const double d : f.after) CHECK(d == -7);
  }
}

int main() {
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1023}, BlockSum<double>::kBlock}) {
    columns<float>(n);
    columns<double>(n);
  }
  static BlockSum<double> one;
  one.start(1);
  double big = 1e16, small = 1;
  one.add(&big, 1);
  for (int i = 0; i < 1000; ++i) one.add(&small, 1);
  CHECK(one.result()[0] == 1e16 + 1000);
  double infinite = INFINITY;
  one.add(&infinite, 1);
  one.add(&small, 1);
  CHECK(one.result()[0] == INFINITY);
  std::puts("ok");
}
