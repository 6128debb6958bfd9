// The attention problem as the kernels see it: sizes, which keys a query may use, and rows in the compute type.
#pragma once
#include <cmath>

#include "baracuda/math/math.h"
#include "core/compute.h"
#include "core/f8.h"
#include "core/launch.h"
#include "core/wanted.h"
#include "host/convert.h"
#include "ops/attention/scratch.h"
#include "ops/attention/skus.h"

namespace baracuda::attention {

// A [batch, heads, seq, dim] tensor by strides, in bytes except for the innermost one.
struct Rows4 {
  char* data = nullptr;
  Element element = Element::F32;
  int64_t batch = 0, head = 0, row = 0, column = 1;

  explicit Rows4(const TensorView& t) : data(t.as<char>()), element(t.element) {
    const int64_t size = size_of(t.element);
    batch = t.strides[0] * size, head = t.strides[1] * size, row = t.strides[2] * size;
    if (t.rank > 3 && t.shape[3] > 1) column = t.strides[3];
  }
  char* at(int64_t b, int64_t h, int64_t s) const { return data + b * batch + h * head + s * row; }
};

// The additive or boolean mask, broadcast to [batch, heads, queries, keys].
struct Mask {
  const char* data = nullptr;  // null: no mask
  Element element = Element::Bool;
  int64_t strides[4] = {};  // bytes, the last one in elements

  Mask() = default;
  explicit Mask(const TensorView& t) {
    if (!t.present()) return;
    data = t.as<const char>(), element = t.element;
    for (int i = 0; i < t.rank; ++i) {
      const int d = 4 - t.rank + i;
      strides[d] = t.shape[i] == 1 ? 0 : t.strides[i] * (d == 3 ? 1 : size_of(t.element));
    }
  }
  const char* at(int64_t b, int64_t h, int64_t q, int64_t k) const {
    return data + b * strides[0] + h * strides[1] + q * strides[2] + k * strides[3] * size_of(element);
  }
  // What is added to the scores of keys [k, k + n) of one query; a boolean mask keeps the keys where it is true.
  template <class C>
  void read(int64_t b, int64_t h, int64_t q, int64_t k, int64_t n, C* out) const {
    load<C>(element, at(b, h, q, k), strides[3], out, n);
    if (element != Element::Bool) return;
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] != C(0) ? C(0) : -C(INFINITY);
  }
};

// Slopes by which the scores of heads fall with the distance.
struct Alibi {
  const char* data = nullptr;  // null: none
  Element element = Element::F32;
  int64_t batch = 0, head = 0;  // in elements

  explicit Alibi(const TensorView& t) {
    if (!t.present()) return;
    data = t.as<const char>(), element = t.element;
    batch = t.rank == 2 ? t.strides[0] : 0, head = t.strides[t.rank - 1];
  }
  // A batch entry's slopes for a batch of one.
  Alibi(const TensorView& t, int64_t b) : Alibi(t) {
    if (data != nullptr) data += b * batch * size_of(element);
  }
  template <class C>
  C slope(int64_t b, int64_t h) const {
    C value;
    load<C>(element, data + (b * batch + h * head) * size_of(element), 1, &value, 1);
    return value;
  }
};

// A logit of each head that its queries' sums of exponentials have besides their keys'; none: -inf.
struct Sinks {
  const char* data = nullptr;
  Element element = Element::F32;
  int64_t head = 0;  // bytes

  Sinks() = default;
  explicit Sinks(const TensorView& t) {
    if (t.present()) data = t.as<const char>(), element = t.element, head = t.strides[0] * size_of(t.element);
  }
  template <class C>
  C logit(int64_t h) const {
    C value = -C(INFINITY);
    if (data != nullptr) load<C>(element, data + h * head, 1, &value, 1);
    return value;
  }
};

// What the codes of a kv head's keys or values are multiplied by: 1 where they are no codes.
struct Scales {
  const float* data = nullptr;
  int64_t head = 0;

  Scales() = default;
  explicit Scales(const TensorView& t) {
    if (t.present()) data = t.as<const float>(), head = t.strides[0];
  }
  double of(int64_t kv_head) const { return data == nullptr ? 1.0 : static_cast<double>(data[kv_head * head]); }
};

// Where the logarithms of the sums of exponentials lie; null: not wanted.
struct Lse {
  char* data = nullptr;
  Element element = Element::F32;
  int64_t batch = 0, head = 0, row = 0;  // bytes

  explicit Lse(const TensorView& t) {
    if (!t.present()) return;
    const int64_t size = size_of(t.element);
    data = t.as<char>(), element = t.element;
    batch = t.strides[0] * size, head = t.strides[1] * size, row = t.strides[2] * size;
  }
  char* at(int64_t b, int64_t h, int64_t s) const { return data + b * batch + h * head + s * row; }
};

struct Sizes {
  int64_t batch, heads, kv_heads, group, q_len, k_len, d, dv;
  int64_t kv_len;       // keys that hold data
  int64_t rows;         // query rows per kv head
  int64_t left, right;  // keys before and after its own that a query uses, -1: all
  int64_t diagonal;     // the own key of the query at position i is i + diagonal
  double scale, softcap;

  void set_keys(int64_t valid, bool bottom_right) { kv_len = valid, diagonal = bottom_right ? valid - q_len : 0; }
  // The first key that a query uses, and where its keys end.
  int64_t start(int64_t position) const {
    return left >= 0 ? std::clamp<int64_t>(position + diagonal - left, 0, kv_len) : 0;
  }
  int64_t limit(int64_t position) const {
    return right >= 0 ? std::clamp<int64_t>(position + diagonal + right + 1, 0, kv_len) : kv_len;
  }
  // Query row r of a kv head: positions outside, the heads of the group inside, so that rows side by side use the same
  // keys.
  int64_t position(int64_t r) const { return r / group; }
  int64_t head(int64_t kv_head, int64_t r) const { return kv_head * group + r % group; }
};

// Scale NaN stands for 1 / sqrt(d).
template <class Attrs>
Sizes set_sizes(const TensorView& q, const TensorView& k, const TensorView& v, const Attrs& attrs, double scale) {
  Sizes s;
  s.batch = q.shape[0], s.heads = q.shape[1], s.kv_heads = k.shape[1], s.q_len = q.shape[2], s.k_len = k.shape[2];
  s.d = q.shape[3], s.dv = v.shape[3];
  s.group = s.kv_heads == 0 ? 1 : std::max<int64_t>(s.heads / s.kv_heads, 1);
  s.rows = s.heads == 0 ? 0 : s.group * s.q_len;
  s.scale = !std::isnan(scale) ? scale : s.d > 0 ? 1.0 / std::sqrt(static_cast<double>(s.d)) : 1.0;
  const Window window(attrs, s.q_len, s.k_len);
  s.left = window.left, s.right = window.right, s.softcap = attrs.softcap;
  s.set_keys(s.k_len, attrs.causal_alignment == 0);
  return s;
}

// kv_len -1 stands for all keys.
template <class Args>
Status sizes_of(const Launch& launch, Sizes* out) {
  const AttentionAttrs attrs = attributes<AttentionAttrs>(launch);
  const TensorView &q = launch[Args::q], &k = launch[Args::k];
  const int64_t heads = q.shape[1], kv_heads = k.shape[1];
  if (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0) return Status::InvalidProblem;
  *out = set_sizes(q, k, launch[Args::v], attrs, launch.scalars[Args::scale].as_f64());
  const int64_t given = launch.scalars[Args::kv_len].as_i64(), kv_len = given == -1 ? out->k_len : given;
  if (kv_len < 0 || kv_len > out->k_len) {
    *launch.failure = {-1, Args::kv_len, kv_len, limit_of(Wanted::Length, out->k_len + 1)};
    return Status::IndexOutOfRange;
  }
  out->set_keys(kv_len, attrs.causal_alignment == 0);
  return Status::Ok;
}

template <class C>
void load_f8(const void* from, int64_t stride, C* to, int64_t n) {
  const auto* codes = static_cast<const uint8_t*>(from);
  if (stride == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(F8<3>::decode(codes[i]));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(F8<3>::decode(codes[i * stride]));
  }
}
// Of keys and values, which may be codes.
template <class C>
LoadFn<C> cache_loader(Element e) {
  return e == Element::F8E4M3 ? load_f8<C> : loader<C>(e);
}

// `rows` rows of `columns` elements in the compute type: the caller's own memory when that is dense, else a copy.
template <class C>
struct Block {
  const C* data;
  int64_t ld;
};
template <class C>
Block<C> fetch(const Rows4& t, const char* first, int64_t rows, int64_t columns, C* copy, bool any_row_stride) {
  const int64_t size = size_of(t.element);
  const bool dense = rows <= 1 || t.row == columns * size;
  if (t.element == element_of<C> && t.column == 1 && (dense || any_row_stride))
    return {reinterpret_cast<const C*>(first), rows <= 1 ? columns : t.row / size};
  const LoadFn<C> load_row = cache_loader<C>(t.element);
  if (dense && t.column == 1) {
    load_row(first, 1, copy, rows * columns);
  } else {
    for (int64_t r = 0; r < rows; ++r) load_row(first + r * t.row, t.column, copy + r * columns, columns);
  }
  return {copy, columns};
}

inline int64_t read_whole(const TensorView& t, int64_t offset) {
  return t.element == Element::I32 ? int64_t{t.as<const int32_t>()[offset]} : t.as<const int64_t>()[offset];
}

// A sequence whose key n is line n % size of page table[n / size] of [pages, size, heads, dim].
struct Pages {
  const TensorView* table = nullptr;  // [sequences, pages of each]; null: keys lie one behind the other
  int64_t sequence = 0, size = 0, count = 0;

  int64_t page(int64_t n) const { return read_whole(*table, sequence * table->strides[0] + n * table->strides[1]); }
};

inline Status out_of_range(const Launch& launch, int arg, int64_t position, int64_t value, int64_t limit) {
  *launch.failure = {arg, position, value, limit};
  return Status::IndexOutOfRange;
}

// Whether entries [first, last) of a sequence's row of the table, which is argument `arg`, name one of `count` pages.
inline Status check_pages(const Launch& launch, int arg, int64_t sequence, int64_t first, int64_t last, int64_t count) {
  const Pages pages{&launch[arg], sequence};
  for (int64_t n = first; n < last; ++n)
    if (const int64_t page = pages.page(n); page < 0 || page >= count)
      return out_of_range(launch, arg, sequence * launch[arg].shape[1] + n, page, count);
  return Status::Ok;
}

// Keys [first, first + n) of a kv head.
template <class C>
Block<C> fetch_keys(const Pages& pages, const Rows4& t, int64_t b, int64_t head, int64_t first, int64_t n,
                    int64_t columns, C* copy) {
  if (pages.table == nullptr) return fetch(t, t.at(b, head, first), n, columns, copy, true);
  const bool one_behind_the_other = t.batch == pages.size * t.row;
  const LoadFn<C> load_row = cache_loader<C>(t.element);
  for (int64_t done = 0; done < n;) {
    const int64_t entry = (first + done) / pages.size, line = (first + done) % pages.size, page = pages.page(entry);
    // Pages before a window may be gone. Nothing uses what stands here for them.
    const bool gone = page < 0 || page >= pages.count;
    int64_t end = std::min(n, done + pages.size - line), next = 1;
    while (one_behind_the_other && !gone && end < n && page + next < pages.count &&
           pages.page(entry + next) == page + next)
      end = std::min(n, end + pages.size), ++next;
    if (!gone && end - done == n) return fetch(t, t.at(page, head, line), n, columns, copy, true);
    for (int64_t r = 0; done < end; ++done, ++r) {
      C* to = copy + done * columns;
      gone ? std::fill(to, to + columns, C(0)) : load_row(t.at(page, head, line + r), t.column, to, columns);
    }
  }
  return {copy, columns};
}

// Softcap, then ALiBi, for queries that lie side by side.
template <class C>
struct Bias {
  C cap = 0;                  // 0: not capped
  const C* slopes = nullptr;  // null: no ALiBi
  const C* own = nullptr;     // the queries' own keys, counted from the first key
};
// scores[key][query], `stride` from a key to the next; slopes (may be null): those of the softcap.
template <class C>
void shape_scores(const Bias<C>& bias, int64_t keys, int64_t columns, int64_t stride, C* scores, C* slopes) {
  if (bias.cap != C(0)) {
    for (int64_t k = 0; k < keys; ++k) {
      C* s = scores + k * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) {
        const C t = math::tanh(s[j] / bias.cap);
        s[j] = bias.cap * t;
        if (slopes != nullptr) slopes[k * stride + j] = C(1) - t * t;
      }
    }
  }
  if (bias.slopes == nullptr) return;
  for (int64_t k = 0; k < keys; ++k) {
    C* s = scores + k * stride;
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) s[j] -= bias.slopes[j] * std::abs(bias.own[j] - static_cast<C>(k));
  }
}

// Work of a parallel chunk below which starting threads does not pay, in multiply-adds.
inline constexpr int64_t kSerialWork = 1 << 16;
inline int64_t grain_for(int64_t work_per_task) {
  return std::max<int64_t>(1, kSerialWork / std::max<int64_t>(work_per_task, 1));
}

}  // namespace baracuda::attention
