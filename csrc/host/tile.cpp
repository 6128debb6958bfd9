#include "host/tile.h"

#include <algorithm>
#include <cstring>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/convert.h"
#include "host/stream.h"
#include "host/tile_plan.h"
#include "host/tile_small.h"
#include "host/tile_transpose.h"

namespace baracuda {
namespace tile {
namespace {

struct Raw16 {
  uint64_t low, high;
};

template <int64_t kSize>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};
template <>
struct UnsignedOf<16> {
  using type = Raw16;
};

template <class C>
void load_native(const void* src, int64_t stride, C* dst, int64_t n) {
  const C* s = static_cast<const C*>(src);
  if (stride == 1) {
    std::memcpy(dst, s, n * sizeof(C));
  } else if (stride == 0) {
    std::fill_n(dst, n, *s);
  } else if (stride == 2) {  // a constant that the compiler knows how to shuffle
    for (int64_t i = 0; i < n; ++i) dst[i] = s[i * 2];
  } else if (stride == -1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = s[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = s[i * stride];
  }
}
template <class C>
void store_native(void* dst, int64_t stride, const C* src, int64_t n) {
  C* d = static_cast<C*>(dst);
  if (stride == 1) {
    std::memcpy(d, src, n * sizeof(C));
    return;
  }
  for (int64_t i = 0; i < n; ++i) d[i * stride] = src[i];
}

// Each value at `offsets` of every `run` columns, as often. Whole vectors are stored, over which the next value goes.
template <class C>
void repeat_runs(const char* base, const int64_t* offsets, int64_t run, C* dst, int64_t n) {
  constexpr int64_t kVector = 16;
  const int64_t whole = (run + kVector - 1) / kVector * kVector;
  int64_t i = 0;
  for (; i + whole <= n; i += run) {
    const C value = *reinterpret_cast<const C*>(base + offsets[i]);
    for (int64_t j = 0; j < whole; j += kVector)
      for (int64_t v = 0; v < kVector; ++v) dst[i + j + v] = value;
  }
  for (; i < n; i += run) std::fill_n(dst + i, std::min(run, n - i), *reinterpret_cast<const C*>(base + offsets[i]));
}

template <class T>
void gather(const char* base, const int64_t* offsets, void* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(static_cast<char*>(dst) + i * sizeof(T), base + offsets[i], sizeof(T));
}
template <class T>
void scatter(const void* src, char* base, const int64_t* offsets, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(base + offsets[i], static_cast<const char*>(src) + i * sizeof(T), sizeof(T));
}
void gather_bytes(int64_t size, const char* base, const int64_t* offsets, void* dst, int64_t n) {
  switch (size) {
    case 1:
      return gather<uint8_t>(base, offsets, dst, n);
    case 2:
      return gather<uint16_t>(base, offsets, dst, n);
    case 4:
      return gather<uint32_t>(base, offsets, dst, n);
    case 8:
      return gather<uint64_t>(base, offsets, dst, n);
    default:
      return gather<Raw16>(base, offsets, dst, n);
  }
}
void scatter_bytes(int64_t size, const void* src, char* base, const int64_t* offsets, int64_t n) {
  switch (size) {
    case 1:
      return scatter<uint8_t>(src, base, offsets, n);
    case 2:
      return scatter<uint16_t>(src, base, offsets, n);
    case 4:
      return scatter<uint32_t>(src, base, offsets, n);
    case 8:
      return scatter<uint64_t>(src, base, offsets, n);
    default:
      return scatter<Raw16>(src, base, offsets, n);
  }
}

// Everything that the threads of one launch share.
template <class C>
struct Job {
  TilePlan plan;
  int n_outputs;
  TileLoops<C> loops;  // null: the one output is the one input
  const void* params;
  LoadFn<C> load[kMaxOperands];
  StoreFn<C> store[kMaxOperands];

  TileLoop<C> loop() const { return plan.repeated < 0 ? loops.loop : loops.repeated[plan.repeated - n_outputs]; }
  TileLoop<C> streamed() const { return plan.repeated < 0 ? loops.streamed : nullptr; }
};

// One thread's walk over a range of tiles.
template <class C>
class Walk {
 public:
  explicit Walk(const Job<C>& job) : job_(job), plan_(job.plan), loop_(job.loop()), streamed_(job.streamed()) {}

  void run(int64_t begin, int64_t end) {
    seek(begin);
    // Half a page between what is read and what is written: a load waits for recent stores whose last 12 bits are the
    // same.
    const char* reads = plan_.operands[plan_.n_operands - 1].data;
    shift_ = (reads + 2048 - buffers_) & 4095 & ~int64_t{63};
    int64_t tile_at = 0;
    for (int k = 0; k < plan_.n_operands; ++k)
      if (plan_.operands[k].access == Access::Transposed)
        tile_[k] = reinterpret_cast<C*>(tiles_) + plan_.rows * plan_.columns * tile_at++;
    for (int64_t t = begin; t < end; ++t) {
      if (plan_.rows > 1) look_ahead();
      one_tile();
      advance();
    }
    if (plan_.fences) stream_fence();
  }

 private:
  void seek(int64_t index) {
    for (int k = 0; k < plan_.n_operands; ++k) at_[k] = plan_.operands[k].data;
    for (int d = plan_.rank - 1; d >= 0; --d) {
      const int64_t count = (plan_.shape[d] + plan_.step[d] - 1) / plan_.step[d];
      position_[d] = index % count * plan_.step[d];
      index /= count;
      for (int k = 0; k < plan_.n_operands; ++k) at_[k] += position_[d] * plan_.operands[k].strides[d];
    }
  }

  void advance() {
    for (int d = plan_.rank - 1; d >= 0; --d) {
      const int64_t step = plan_.step[d];
      if (position_[d] + step < plan_.shape[d]) {
        for (int k = 0; k < plan_.n_operands; ++k) at_[k] += step * plan_.operands[k].strides[d];
        position_[d] += step;
        return;
      }
      if (position_[d] == 0) continue;
      for (int k = 0; k < plan_.n_operands; ++k) at_[k] -= position_[d] * plan_.operands[k].strides[d];
      position_[d] = 0;
    }
  }

  // Where each operand's next tile starts, roughly at the end of a dimension.
  void look_ahead() {
    const int inner = plan_.rank - 1;
    for (int k = 0; k < plan_.n_operands; ++k) next_[k] = at_[k] + plan_.step[inner] * plan_.operands[k].strides[inner];
  }

  // Fetches n elements that the next tile has where this one has those at `here`. The short runs of a tile's rows come
  // too fast for the processor to see where they go.
  void fetch_next(int k, const char* here, int64_t n) const {
    const char* there = here + (next_[k] - at_[k]);
    for (int64_t b = 0; b < n * plan_.operands[k].size; b += kLine) __builtin_prefetch(there + b, 0, 2);
  }

  int64_t extent(int d) const { return std::min(plan_.step[d], plan_.shape[d] - position_[d]); }

  void one_tile() {
    const int64_t columns = plan_.column_unit * extent(plan_.column_split);
    const int64_t rows = plan_.row_split < 0 ? 1 : plan_.row_unit * extent(plan_.row_split);
    if (turns_in_place()) {
      for (int64_t r = 0; r < rows; ++r) turned_[r] = reinterpret_cast<Word*>(row_of(0, r));
      return transpose(1, rows, columns, plan_.operands[0].stream);
    }
    for (int k = job_.n_outputs; k < plan_.n_operands; ++k) {
      if (plan_.operands[k].access != Access::Transposed) continue;
      for (int64_t r = 0; r < rows; ++r) turned_[r] = reinterpret_cast<Word*>(tile_[k] + r * plan_.columns);
      transpose(k, rows, columns, false);
    }
    const C* in[kMaxOperands];
    C* out[kMaxOperands];
    for (int64_t r = 0; r < rows; ++r) {
      for (int k = job_.n_outputs; k < plan_.n_operands; ++k) in[k - job_.n_outputs] = input(k, r, columns);
      for (int k = 0; k < job_.n_outputs; ++k)
        out[k] = plan_.operands[k].access == Access::Direct ? reinterpret_cast<C*>(row_of(k, r)) : buffer(k);
      if (!loop_) {
        copy_row(in[0], r, columns);
        continue;
      }
      if (plan_.streams && streamed_)
        run_lines(in, out[0], columns);
      else if (plan_.streams)
        run_streamed(in, out, columns);
      else
        loop_(in, out, columns, job_.params);
      for (int k = 0; k < job_.n_outputs; ++k)
        if (plan_.operands[k].access > Access::Discard) put(k, buffer(k), row_of(k, r), columns);
    }
  }

  // The loop stores whole lines past the caches itself; what is left before and behind them is not worth it.
  void run_lines(const C** in, C* out, int64_t n) {
    constexpr int64_t kValues = kLine / int64_t{sizeof(C)};
    const int64_t head = std::min(n, (-reinterpret_cast<intptr_t>(out) & (kLine - 1)) / int64_t{sizeof(C)});
    const int64_t lines = (n - head) / kValues * kValues;
    const auto part = [&](TileLoop<C> loop, int64_t count) {
      if (count == 0) return;
      loop(in, &out, count, job_.params);
      out += count;
      for (int k = job_.n_outputs; k < plan_.n_operands; ++k) in[k - job_.n_outputs] += count;
    };
    part(loop_, head);
    part(streamed_, lines);
    part(loop_, n - head - lines);
  }

  // Most loops cannot store past the caches themselves. Their results pass through a buffer of a few lines: with more,
  // reading and writing memory would take turns instead of overlapping (add of 64M f32: 27 ms by 4 KB, 20 ms by 512
  // bytes).
  void run_streamed(const C** in, C** out, int64_t n) {
    alignas(64) C buffers[kMaxOperands][kStreamPiece / sizeof(C)];
    C* piece[kMaxOperands];
    int first = 0;
    while (!plan_.operands[first].stream) ++first;
    const int64_t head = (-reinterpret_cast<intptr_t>(out[first]) & (kLine - 1)) / int64_t{sizeof(C)};
    for (int64_t at = 0; at < n;) {
      const int64_t want = at == 0 && head > 0 ? head : kStreamPiece / int64_t{sizeof(C)};
      const int64_t count = std::min(want, n - at);
      for (int k = 0; k < job_.n_outputs; ++k) piece[k] = plan_.operands[k].stream ? buffers[k] : out[k];
      loop_(in, piece, count, job_.params);
      for (int k = 0; k < job_.n_outputs; ++k) {
        if (plan_.operands[k].stream)
          stream_bytes(reinterpret_cast<char*>(out[k]), reinterpret_cast<const char*>(buffers[k]), count * sizeof(C));
        out[k] += count;
      }
      for (int k = job_.n_outputs; k < plan_.n_operands; ++k)
        if (k != plan_.repeated) in[k - job_.n_outputs] += count;
      at += count;
    }
  }

  char* row_of(int k, int64_t r) const { return at_[k] + plan_.row_offset[k][r]; }
  C* buffer(int k) { return reinterpret_cast<C*>(buffers_ + shift_ + k * kRowBytes); }

  const C* input(int k, int64_t r, int64_t n) {
    const PlannedOperand& op = plan_.operands[k];
    if (op.access == Access::Transposed) return tile_[k] + r * plan_.columns;
    const char* src = row_of(k, r);
    if (op.access == Access::Direct) {
      if (op.apart) fetch_next(k, src, n);
      return reinterpret_cast<const C*>(src);
    }
    // A broadcast operand comes back to the same memory, and its buffer still holds it.
    if (src == loaded_[k] && n <= loaded_n_[k]) return buffer(k);
    if (op.access == Access::Repeated) {
      if (op.native) return reinterpret_cast<const C*>(src);
      n = 1;
    }
    get(k, src, n);
    loaded_[k] = src;
    loaded_n_[k] = n;
    return buffer(k);
  }

  void get(int k, const char* src, int64_t n) {
    const PlannedOperand& op = plan_.operands[k];
    const int64_t* offsets = plan_.column_offset[k];
    C* to = buffer(k);
    if (!op.irregular_columns) {
      job_.load[k](src, op.column / op.size, to, n);
      // What is converted next arrives while the loop computes.
      if (op.column == op.size)
        for (int64_t b = n * op.size; b < 2 * n * op.size; b += kLine) __builtin_prefetch(src + b);
      return;
    }
    if (op.native && op.column == 0) {
      repeat_runs(src, offsets, plan_.run, to, n);
    } else if (plan_.run >= kRunOfCalls) {
      for (int64_t i = 0; i < n; i += plan_.run)
        job_.load[k](src + offsets[i], op.column / op.size, to + i, std::min(plan_.run, n - i));
    } else if (op.native) {
      gather_bytes(op.size, src, offsets, to, n);
    } else {
      gather_bytes(op.size, src, offsets, staging_, n);
      job_.load[k](staging_, 1, to, n);
    }
  }

  void copy_row(const C* from, int64_t r, int64_t n) {
    if (plan_.operands[0].access == Access::Direct)
      std::memcpy(row_of(0, r), from, n * sizeof(C));
    else
      put(0, from, row_of(0, r), n);
  }

  void put(int k, const C* from, char* dst, int64_t n) {
    const PlannedOperand& op = plan_.operands[k];
    const int64_t* offsets = plan_.column_offset[k];
    if (op.stream) return put_streamed(k, from, dst, n);
    if (!op.irregular_columns) return job_.store[k](dst, op.column / op.size, from, n);
    if (plan_.run >= kRunOfCalls) {
      for (int64_t i = 0; i < n; i += plan_.run)
        job_.store[k](dst + offsets[i], op.column / op.size, from + i, std::min(plan_.run, n - i));
    } else if (op.native) {
      scatter_bytes(op.size, from, dst, offsets, n);
    } else {
      job_.store[k](staging_, 1, from, n);
      scatter_bytes(op.size, staging_, dst, offsets, n);
    }
  }

  void put_streamed(int k, const C* from, char* dst, int64_t n) {
    const PlannedOperand& op = plan_.operands[k];
    if (op.native) return stream_bytes(dst, reinterpret_cast<const char*>(from), n * op.size);
    for (int64_t i = 0; i < n; i += kMaxTable) {
      const int64_t count = std::min(kMaxTable, n - i);
      job_.store[k](staging_, 1, from + i, count);
      stream_bytes(dst + i * op.size, staging_, count * op.size);
    }
  }

  // A copy that only has to be turned: straight from the input into the output.
  bool turns_in_place() const {
    const PlannedOperand& out = plan_.operands[0];
    return !loop_ && plan_.operands[1].access == Access::Transposed && out.native && !out.irregular_columns &&
           out.column == out.size;
  }

  // The rows of this operand are its own runs: a strip of columns at a time are read along them, and turned into the
  // rows turned_[r].
  void transpose(int k, int64_t rows, int64_t columns, bool stream) {
    const PlannedOperand& op = plan_.operands[k];
    const int64_t along = plan_.rows > 1 ? plan_.row_offset[k][1] : op.size;
    const bool in_place = op.native && along == op.size;
    for (int64_t r = 0; stream && r < rows; ++r) stream = reinterpret_cast<uintptr_t>(turned_[r]) % kStreamLine == 0;
    const Word* source[kHeight];
    for (int64_t c = 0; c < columns; c += kHeight) {
      const int height = static_cast<int>(std::min<int64_t>(kHeight, columns - c));
      for (int i = 0; i < height; ++i) {
        const char* src = at_[k] + (op.irregular_columns ? plan_.column_offset[k][c + i] : (c + i) * op.column);
        C* strip = reinterpret_cast<C*>(strip_) + i * kMaxRows;
        if (!in_place) job_.load[k](src, along / op.size, strip, rows);
        if (along == op.size) fetch_next(k, src, rows);
        source[i] = in_place ? reinterpret_cast<const Word*>(src) : reinterpret_cast<const Word*>(strip);
      }
      transpose_strip<Word>(source, height, rows, turned_, c, stream);
    }
  }

  static constexpr int64_t kRunOfCalls = 16;
  static constexpr int kHeight = kStripRows<sizeof(C)>;

  using Word = typename UnsignedOf<sizeof(C)>::type;

  const Job<C>& job_;
  const TilePlan& plan_;
  const TileLoop<C> loop_, streamed_;
  Word* turned_[kMaxRows];
  char* at_[kMaxOperands];
  char* next_[kMaxOperands];  // where plan_.rows > 1
  int64_t position_[kMaxRank];
  const char* loaded_[kMaxOperands] = {};
  int64_t loaded_n_[kMaxOperands] = {};
  C* tile_[kMaxOperands];
  int64_t shift_ = 0;
  alignas(64) char buffers_[(kMaxOperands + 1) * kRowBytes];
  alignas(64) char tiles_[kTileBytes];
  alignas(64) char strip_[kHeight * kMaxRows * sizeof(C)];
  alignas(64) char staging_[kMaxTable * 8];
};

template <class C>
void run_job(Job<C>& job, const IterationSpace& space, std::span<const Operand> inputs,
             std::span<const Operand> outputs, const bool* native) {
  if (!make_plan(space, inputs, outputs, native, sizeof(C), job.plan)) return;
  const int64_t grain = std::max<int64_t>(1, grain_of(job.plan) / (job.plan.columns * job.plan.rows));
  parallel_for(job.plan.tiles, grain, [&job](int64_t begin, int64_t end) {
    Walk<C> walk(job);
    walk.run(begin, end);
  });
}

// A job whose operands all hold C and are moved bit for bit.
template <class C>
void run_native(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
                TileLoops<C> loops, const void* params) {
  Job<C> job;
  job.loops = loops;
  job.n_outputs = static_cast<int>(outputs.size());
  job.plan.turns = !loops.loop;
  job.plan.repeatable = loops.repeatable();
  job.params = params;
  bool native[kMaxOperands];
  std::fill_n(native, kMaxOperands, true);
  std::fill_n(job.load, kMaxOperands, &load_native<C>);
  std::fill_n(job.store, kMaxOperands, &store_native<C>);
  run_job(job, space, inputs, outputs, native);
}

template <class C>
void copy_as(const IterationSpace& space, const Operand& from, const Operand& to) {
  run_native<C>(space, {&from, 1}, {&to, 1}, nullptr, nullptr);
}

}  // namespace
}  // namespace tile

template <class C>
void run_tiles(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
               TileLoops<C> loops, const void* params) {
  if (tile::SmallRun<C>::run(space, inputs, outputs, loops, params)) return;
  tile::Job<C> job;
  job.loops = loops;
  bool native[tile::kMaxOperands];
  job.n_outputs = static_cast<int>(outputs.size());
  job.plan.repeatable = loops.repeatable();
  job.params = params;
  int k = 0;
  for (const Operand& o : outputs) {
    native[k] = o.element == element_of<C>;
    job.store[k++] = storer<C>(o.element);
  }
  for (const Operand& i : inputs) {
    native[k] = i.element == element_of<C>;
    job.load[k++] = loader<C>(i.element);
  }
  tile::run_job(job, space, inputs, outputs, native);
}

template void run_tiles<float>(const IterationSpace&, std::span<const Operand>, std::span<const Operand>,
                               TileLoops<float>, const void*);
template void run_tiles<double>(const IterationSpace&, std::span<const Operand>, std::span<const Operand>,
                                TileLoops<double>, const void*);
template void run_tiles<int64_t>(const IterationSpace&, std::span<const Operand>, std::span<const Operand>,
                                 TileLoops<int64_t>, const void*);
template void run_tiles<uint64_t>(const IterationSpace&, std::span<const Operand>, std::span<const Operand>,
                                  TileLoops<uint64_t>, const void*);

void run_half_tiles(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
                    TileLoops<uint16_t> loops, const void* params) {
  tile::run_native<uint16_t>(space, inputs, outputs, loops, params);
}

void copy_tiles(const IterationSpace& space, const Operand& from, const Operand& to) {
  switch (size_of(to.element)) {
    case 1:
      return tile::copy_as<uint8_t>(space, from, to);
    case 2:
      return tile::copy_as<uint16_t>(space, from, to);
    case 4:
      return tile::copy_as<uint32_t>(space, from, to);
    case 8:
      return tile::copy_as<uint64_t>(space, from, to);
    default:
      return tile::copy_as<tile::Raw16>(space, from, to);
  }
}

}  // namespace baracuda
