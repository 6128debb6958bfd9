// Appending new keys or values to a cache: copies whose positions are checked before anything is written.
#include <cstring>

#include "ops/attention/sequences.h"
#include "ops/quant/affine.h"

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
  if (tokens.packed) {
    const int64_t total = launch[Args::k].shape[0];
    if (const Status status = check_places(launch, Args::cu_seq, total, total); status != Status::Ok) return status;
  }
  for (int64_t b = 0; b < tokens.sequences; ++b) {
    const int64_t first = tokens.length(b), n = tokens.count(b);
    if (first < 0 || first > room - n)
      return out_of_range(launch, Args::kv_len, b, first, limit_of(Wanted::Length, std::max<int64_t>(room - n + 1, 0)));
    if (n == 0) continue;
    const Status status =
        check_pages(launch, Args::page_table, b, first / size, blocks_of(first + n, size), pages.shape[0]);
    if (status != Status::Ok) return status;
  }
  return Status::Ok;
}

// One of the tensors of new tokens, and where it goes.
struct Part {
  const TensorView &x, &pages;
  Scales scales;
};

// A head's numbers as codes, as op quantize_linear makes them.
void put_codes(const Part& part, int64_t head, const char* from, int64_t from_stride, uint8_t* to, int64_t to_stride,
               int64_t n) {
  constexpr int64_t kStretch = 256;
  const float scale = static_cast<float>(part.scales.of(head));
  const bool eight = part.pages.element == Element::F8E4M3;
  float values[kStretch];
  for (int64_t done = 0; done < n; done += kStretch) {
    const int64_t count = std::min(kStretch, n - done);
    load<float>(part.x.element, from + done * from_stride * size_of(part.x.element), from_stride, values, count);
    if (eight) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) values[i] = quant::CodedF8<3>::f(values[i], scale, 1);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) values[i] = quant::Coded::f(values[i], scale, 0, -128, 127);
    }
    for (int64_t i = 0; i < count; ++i) to[(done + i) * to_stride] = static_cast<uint8_t>(static_cast<int>(values[i]));
  }
}

// A token, which begins at element `offset` of the new ones, into a line of a page.
void put_token(const Part& part, int64_t offset, int64_t page, int64_t line) {
  const TensorView &x = part.x, &pages = part.pages;
  const int64_t heads = pages.shape[2], d = pages.shape[3], size = size_of(x.element), to_size = size_of(pages.element);
  const char* from = x.as<char>() + offset * size;
  char* to = pages.as<char>() + (page * pages.strides[0] + line * pages.strides[1]) * to_size;
  const int64_t from_head = x.strides[x.rank - 2] * size, to_head = pages.strides[2] * to_size;
  const int64_t from_step = x.strides[x.rank - 1], to_step = pages.strides[3];
  if (pages.element != x.element) {
    for (int64_t h = 0; h < heads; ++h)
      put_codes(part, h, from + h * from_head, from_step, reinterpret_cast<uint8_t*>(to) + h * to_head, to_step, d);
    return;
  }
  const bool dense = from_head == d * size && to_head == d * size && from_step == 1 && to_step == 1;
  if (dense) return copy_row(to, size, from, size, heads * d, size);
  for (int64_t h = 0; h < heads; ++h)
    copy_row(to + h * to_head, to_step * size, from + h * from_head, from_step * size, d, size);
}

template <class Args>
Part key_part(const Launch& launch) {
  return {launch[Args::k], launch[Args::k_pages], Scales(launch[Args::k_scale])};
}
template <class Args>
Part value_part(const Launch& launch) {
  return {launch[Args::v], launch[Args::v_pages], Scales(launch[Args::v_scale])};
}
// Of a token, in multiply-adds.
int64_t work_of(const Part& key, const Part& value) {
  return key.pages.shape[2] * (key.pages.shape[3] + value.pages.shape[3]);
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
    return positions.present() ? out_of_range(launch, Args::positions, b, at, limit)
                               : out_of_range(launch, -1, Args::position, at, limit);
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
  const Part key = key_part<Args>(launch), value = value_part<Args>(launch);
  const int64_t page_size = key.pages.shape[1];
  parallel_for(tokens.before(tokens.sequences), grain_for(work_of(key, value)), [&](int64_t begin, int64_t end) {
    int64_t b = 0;
    for (int64_t i = begin; i < end; ++i) {
      while (tokens.before(b + 1) <= i) ++b;
      const int64_t t = i - tokens.before(b), at = tokens.length(b) + t;
      const int64_t page = Pages{&launch[Args::page_table], b}.page(at / page_size);
      put_token(key, tokens.offset(key.x, b, t), page, at % page_size);
      put_token(value, tokens.offset(value.x, b, t), page, at % page_size);
    }
  });
  return Status::Ok;
}

Status slot_append(const Launch& launch) {
  using Args = SlotAppendArgs;
  const TensorView& slots = launch[Args::slots];
  const Part key = key_part<Args>(launch), value = value_part<Args>(launch);
  const int64_t total = slots.shape[0], size = key.pages.shape[1], room = key.pages.shape[0] * size;
  const auto slot = [&](int64_t t) { return read_whole(slots, t * slots.strides[0]); };
  for (int64_t t = 0; t < total; ++t)
    if (slot(t) < -1 || slot(t) >= room)
      return out_of_range(launch, Args::slots, t, slot(t), limit_of(Wanted::Slot, room));
  parallel_for(total, grain_for(work_of(key, value)), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = slot(t);
      if (at < 0) continue;
      put_token(key, t * key.x.strides[0], at / size, at % size);
      put_token(value, t * value.x.strides[0], at / size, at % size);
    }
  });
  return Status::Ok;
}

}  // namespace baracuda::attention
