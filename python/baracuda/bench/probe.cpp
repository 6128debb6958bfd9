// What this machine can do at most: bandwidths and multiply-add rates. Compiled by the benchmark with -march=native.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
typedef float Vec __attribute__((vector_size(kBytes)));
typedef double Vec64 __attribute__((vector_size(kBytes)));

void stream(Vec* to, Vec v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(reinterpret_cast<float*>(to), (__m512)v);
#elif defined(__AVX__)
  _mm256_stream_ps(reinterpret_cast<float*>(to), (__m256)v);
#else
  *to = v;
#endif
}

// Four streams at a time, as the hardware's prefetchers like it.
template <class Body>
void four(int64_t n, Body body) {
  const int64_t q = n / 4;
  for (int64_t i = 0; i < q; ++i)
    for (int s = 0; s < 4; ++s) body(s * q + i);
}

void copy(Vec* to, const Vec* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}
void nt_copy(Vec* to, const Vec* from, int64_t n) {
  four(n, [&](int64_t i) { stream(to + i, from[i]); });
}
void nt_fill(Vec* to, const Vec*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) stream(to + i, Vec{});
}
void read(Vec* to, const Vec* from, int64_t n) {
  Vec sum[4] = {};
  const int64_t q = n / 4;
  for (int64_t i = 0; i < q; ++i)
    for (int s = 0; s < 4; ++s) sum[s] += from[s * q + i];
  *to = sum[0] + sum[1] + sum[2] + sum[3];
}

// Ten independent chains hide the latency of two pipes.
template <class V>
void fma(V* to, int64_t n) {
  V acc[10], x = *to, y = *to;
  for (int k = 0; k < 10; ++k) acc[k] = *to;
  asm volatile("" : "+m"(x), "+m"(y));
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < 10; ++k) acc[k] = acc[k] * x + y;
  for (int k = 1; k < 10; ++k) acc[0] += acc[k];
  *to = acc[0];
}

#if defined(__AVX512BF16__)
void dot_bf16(Vec* to, int64_t n) {
  __m512 acc[10];
  __m512bh x = (__m512bh)_mm512_loadu_si512(to), y = x;
  asm volatile("" : "+v"(x), "+v"(y));
  for (int k = 0; k < 10; ++k) acc[k] = (__m512)*to;
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < 10; ++k) acc[k] = _mm512_dpbf16_ps(acc[k], x, y);
  for (int k = 1; k < 10; ++k) acc[0] = _mm512_add_ps(acc[0], acc[k]);
  *to = (Vec)acc[0];
}
#endif

void work(int kind, Vec* to, const Vec* from, int64_t n) {
  switch (kind) {
    case 0: return copy(to, from, n);
    case 1: return nt_copy(to, from, n);
    case 2: return nt_fill(to, from, n);
    case 3: return read(to, from, n);
    case 4: return fma(to, n);
    case 5: return fma(reinterpret_cast<Vec64*>(to), n);
#if defined(__AVX512BF16__)
    case 6: return dot_bf16(to, n);
#endif
  }
}

}  // namespace

// Seconds of one pass over `bytes` (kinds 0-3), or of `bytes / kBytes` rounds of 10 operations per thread (kinds 4-6).
extern "C" double probe(int kind, char* to, const char* from, int64_t bytes, int threads, int passes) {
  const bool rates = kind >= 4;
  const int64_t n = bytes / kBytes / (rates ? 1 : threads);
  auto job = [=](int t) {
    const int64_t offset = rates ? t * 4096 : t * n * kBytes;
    for (int p = 0; p < passes; ++p)
      work(kind, reinterpret_cast<Vec*>(to + offset), reinterpret_cast<const Vec*>(from + offset), n);
  };
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> team;
  for (int t = 1; t < threads; ++t) team.emplace_back(job, t);
  job(0);
  for (auto& member : team) member.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / passes;
}

// Elements that one operation of a rate kind computes, counted as multiply and add; 0: not available here.
extern "C" int probe_flops(int kind) {
  if (kind == 4) return 2 * kBytes / 4;
  if (kind == 5) return 2 * kBytes / 8;
#if defined(__AVX512BF16__)
  if (kind == 6) return 2 * kBytes / 2;
#endif
  return 0;
}
extern "C" int probe_bytes() { return kBytes; }
