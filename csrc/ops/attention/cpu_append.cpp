// Appending new keys or values to a cache: copies whose positions are checked before anything is written.
#include <cstring>

#include "ops/attention/cpu.h"

namespace baracuda::attention {
namespace {

void copy_row(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n, int64_t size) {
  if ((to_stride == size && from_stride == size) || n == 1) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(size));
}

// The new tokens of the sequences: [batch, tokens, heads, dim], or [total, heads, dim] where cu_seq says.
struct NewTokens {
  const Launch& launch;
  bool packed = launch[PagedAppendArgs::cu_seq].present();
  int64_t sequences = launch[PagedAppendArgs::kv_len].shape[0];
  int64_t each = packed ? 0 : launch[PagedAppendArgs::k].shape[1];

  // How many there are in front of a sequence's.
  int64_t before(int64_t b) const {
    if (!packed) return b * each;
    const TensorView& cu = launch[PagedAppendArgs::cu_seq];
    return read_whole(cu, b * cu.strides[0]);
  }
  int64_t count(int64_t b) const { return before(b + 1) - before(b); }
  int64_t length(int64_t b) const {
    const TensorView& lens = launch[PagedAppendArgs::kv_len];
    return read_whole(lens, b * lens.strides[0]);
  }
  // Token t of sequence b, in elements.
  int64_t offset(const TensorView& x, int64_t b, int64_t t) const {
    return packed ? (before(b) + t) * x.strides[0] : b * x.strides[0] + t * x.strides[1];
  }
};

Status check_append(const Launch& launch, const NewTokens& tokens) {
  using Args = PagedAppendArgs;
  const TensorView& pages = launch[Args::k_pages];
  const int64_t size = pages.shape[1], room = launch[Args::page_table].shape[1] * size;
  for (int64_t b = 0, before = 0; tokens.packed && b <= tokens.sequences; ++b) {
    const int64_t at = tokens.before(b), total = launch[Args::k].shape[0], limit = b == 0 ? 0 : total;
    if (at < before || at > limit || (b == tokens.sequences && at != total))
      return out_of_range(launch, Args::cu_seq, b, at, limit + 1);
    before = at;
  }
  for (int64_t b = 0; b < tokens.sequences; ++b) {
    const int64_t first = tokens.length(b), n = tokens.count(b);
    if (first < 0 || first > room - n)
      return out_of_range(launch, Args::kv_len, b, first, std::max<int64_t>(room - n + 1, 0));
    if (n == 0) continue;
    const Status status =
        check_pages(launch, Args::page_table, b, first / size, blocks_of(first + n, size), pages.shape[0]);
    if (status != Status::Ok) return status;
  }
  return Status::Ok;
}

// Token t of sequence b into its page.
void append_token(const Launch& launch, const NewTokens& tokens, int64_t b, int64_t t, const TensorView& x,
                  const TensorView& pages) {
  const int64_t at = tokens.length(b) + t, page_size = pages.shape[1], heads = pages.shape[2], d = pages.shape[3];
  const int64_t page = Pages{&launch[PagedAppendArgs::page_table], b}.page(at / page_size), size = size_of(x.element);
  const char* from = x.as<char>() + tokens.offset(x, b, t) * size;
  char* to = pages.as<char>() + (page * pages.strides[0] + at % page_size * pages.strides[1]) * size;
  const int64_t from_head = x.strides[x.rank - 2] * size, to_head = pages.strides[2] * size;
  const int64_t from_step = x.strides[x.rank - 1] * size, to_step = pages.strides[3] * size;
  const bool dense = from_head == d * size && to_head == d * size && from_step == size && to_step == size;
  if (dense) return copy_row(to, size, from, size, heads * d, size);
  for (int64_t h = 0; h < heads; ++h) copy_row(to + h * to_head, to_step, from + h * from_head, from_step, d, size);
}

}  // namespace

Status cache_append(const Launch& launch) {
  using Args = CacheAppendArgs;
  const TensorView &cache = launch[Args::cache], &x = launch[Args::x], &positions = launch[Args::positions];
  const int64_t batch = x.shape[0], heads = x.shape[1], n = x.shape[2], d = x.shape[3], size = size_of(x.element);
  const int64_t start = positions.present() ? 0 : launch.scalars[Args::position].as_i64();
  const auto position = [&](int64_t b) {
    if (!positions.present()) return start;
    const int64_t offset = positions.shape[0] == 1 ? 0 : b * positions.strides[0];
    return read_whole(positions, offset);
  };
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t at = position(b), limit = cache.shape[2] - n + 1;
    if (at >= 0 && at < limit) continue;
    return out_of_range(launch, positions.present() ? Args::positions : Args::cache, b, at, limit);
  }
  const auto address = [size](const TensorView& t, int64_t b, int64_t h, int64_t s) {
    return t.as<char>() + (b * t.strides[0] + h * t.strides[1] + s * t.strides[2]) * size;
  };
  parallel_for(batch * heads, grain_for(n * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / heads, h = i % heads, at = position(b);
      for (int64_t s = 0; s < n; ++s)
        copy_row(address(cache, b, h, at + s), cache.strides[3] * size, address(x, b, h, s), x.strides[3] * size, d,
                 size);
    }
  });
  return Status::Ok;
}

Status paged_append(const Launch& launch) {
  using Args = PagedAppendArgs;
  const NewTokens tokens{launch};
  if (const Status status = check_append(launch, tokens); status != Status::Ok) return status;
  const TensorView &key = launch[Args::k], &value = launch[Args::v];
  const int64_t total = tokens.before(tokens.sequences), heads = key.shape[key.rank - 2];
  const int64_t work = heads * (key.shape[key.rank - 1] + value.shape[value.rank - 1]);
  parallel_for(total, grain_for(work), [&](int64_t begin, int64_t end) {
    int64_t b = 0;
    for (int64_t i = begin; i < end; ++i) {
      while (tokens.before(b + 1) <= i) ++b;
      append_token(launch, tokens, b, i - tokens.before(b), key, launch[Args::k_pages]);
      append_token(launch, tokens, b, i - tokens.before(b), value, launch[Args::v_pages]);
    }
  });
  return Status::Ok;
}

}  // namespace baracuda::attention
