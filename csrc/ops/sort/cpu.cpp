// Sorting, and some elements in their order, on the CPU.
#include "ops/sort/cpu.h"

#include "backends/cpu/family.h"
#include "ops/sort/kernels.h"
#include "ops/sort/select.h"

namespace baracuda::sort {
namespace {

void sort_lines(const Launch& launch) {
  const auto attrs = attributes<SortAttrs>(launch);
  const Lines lines(launch, attrs.axis, true);
  const uint64_t flip = attrs.descending ? ~uint64_t{0} : 0;
  with_keys(launch, lines, [&](auto key) {
    using K = decltype(key);
    const Access<K> access = access_of<K>(launch.element);
    each_line<K>(launch, lines, [&](int64_t r, int64_t parts, K* counts, Entry<K>* a, Entry<K>* b) {
      sort_line(lines, access, r, lines.x.length(), flip, parts, counts, a, b);
    });
  });
}

void topk_lines(const Launch& launch) {
  const auto attrs = attributes<TopkAttrs>(launch);
  const Lines lines(launch, attrs.axis, true);
  const uint64_t flip = attrs.largest ? ~uint64_t{0} : 0;
  const int64_t k = lines.values.length();
  if (k == 0) return;
  with_keys(launch, lines, [&](auto key) {
    using K = decltype(key);
    const Access<K> access = access_of<K>(launch.element);
    each_line<K>(launch, lines, [&](int64_t r, int64_t parts, K* counts, Entry<K>* a, Entry<K>* b) {
      if (!few_of(lines.x.length(), k)) return sort_line(lines, access, r, k, flip, parts, counts, a, b);
      sort_first(access, lines.line(r), flip, k, a, b);
      lines.write(access, r, a, 0, k, flip);
    });
  });
}

template <Which kWhich>
void rank_lines(const Launch& launch) {
  const auto attrs = attributes<RankAttrs>(launch);
  const Lines lines(launch, attrs.axis, false);
  const auto place = [k = attrs.k - 1, n = lines.x.length()](int64_t nans) { return place_of(kWhich, k, n, nans); };
  with_keys(launch, lines, [&](auto key) {
    using K = decltype(key);
    const Access<K> access = access_of<K>(launch.element);
    const bool has_nan = kWhich != Which::Kth && is_float(launch.element);
    each_line<K>(launch, lines, [&](int64_t r, int64_t parts, K* counts, Entry<K>* a, Entry<K>* b) {
      if (lines.x.length() <= kDigits) {
        const Entry<K>* sorted = sort_short(access, lines.line(r), 0, a, b);
        int64_t numbers = lines.x.length();
        while (has_nan && numbers > 0 && sorted[numbers - 1].key == access.last()) --numbers;
        return lines.write(access, r, sorted + place(lines.x.length() - numbers), 0, 1, 0);
      }
      K own[kDigits];
      RankSearch<K> search(access, lines.line(r), parts, parts == 1 ? own : counts, a);
      const Entry<K> found = search.run(has_nan, place);
      lines.write(access, r, &found, 0, 1, 0);
    });
  });
}

}  // namespace
}  // namespace baracuda::sort

namespace baracuda {

template <>
struct CpuKernel<sort::Sort> {
  static Status run(const Launch& launch) { return sort::sort_lines(launch), Status::Ok; }
};
template <>
struct CpuKernel<sort::Topk> {
  static Status run(const Launch& launch) { return sort::topk_lines(launch), Status::Ok; }
};
template <sort::Which kWhich>
struct CpuKernel<sort::Rank<kWhich>> {
  static Status run(const Launch& launch) { return sort::rank_lines<kWhich>(launch), Status::Ok; }
};
template <>
struct CpuKernel<sort::Search> {
  static Status run(const Launch& launch) { return sort::search(launch); }
};
template <bool kSorted>
struct CpuKernel<sort::Unique<kSorted>> {
  static Status run(const Launch& launch) { return sort::unique(launch, kSorted), Status::Ok; }
};

}  // namespace baracuda

BCU_CPU_FAMILY(sort)
