// The CPU kernels of attention, and how the problems of a call share the threads.
#pragma once
#include "ops/attention/dropout.h"
#include "ops/attention/problem.h"

namespace baracuda::attention {

// A batch of one shape, or one sequence.
struct ForwardProblem {
  Sizes sizes;
  Rows4 q, k, v, out;
  Mask mask;
  Alibi alibi;
  Sinks sinks;
  Lse lse;
  Pages pages{};  // of k and v
  Dropout dropout{};
  Scales k_scale{}, v_scale{};  // of pages' codes
};

struct BackwardProblem {
  Sizes sizes;
  Rows4 dout, q, k, v, out, dq, dk, dv;
  Mask mask;
  Alibi alibi;
  Lse lse;
  Dropout dropout{};
};

// The problems of a call, whose tasks the threads share.
template <class Problem>
struct Problems {
  const Launch& launch;
  int64_t count;
  Problem (*at)(const Launch& launch, int64_t i);
  Extent largest;  // no problem's sizes are above these
};
void forward(const Problems<ForwardProblem>& problems);
void backward(const Problems<BackwardProblem>& problems);

// Numbers of a problem's tasks, of which each problem has its own stretch.
struct Tasks {
  int64_t count;
  int64_t work;  // of one, in multiply-adds
};

// Blocks of queries against blocks of keys.
Tasks blocked_tasks(const Sizes& s);
template <class C>
void run_blocked(const ForwardProblem& problem, int64_t first, int64_t last, char* scratch);
extern template void run_blocked<float>(const ForwardProblem&, int64_t, int64_t, char*);
extern template void run_blocked<double>(const ForwardProblem&, int64_t, int64_t, char*);

// Few queries against many keys, split over fixed chunks of keys. Where there are several, their partial results are
// merged afterwards, row by row; else at once.
int64_t decode_chunks(const Sizes& s);
Tasks decode_tasks(const Sizes& s);
template <class C>
void run_decode(const ForwardProblem& problem, int64_t first, int64_t last, C* partials, char* scratch);
template <class C>
void merge_chunks(const ForwardProblem& problem, int64_t first, int64_t last, const C* partials, char* scratch);
extern template void run_decode<float>(const ForwardProblem&, int64_t, int64_t, float*, char*);
extern template void run_decode<double>(const ForwardProblem&, int64_t, int64_t, double*, char*);
extern template void merge_chunks<float>(const ForwardProblem&, int64_t, int64_t, const float*, char*);
extern template void merge_chunks<double>(const ForwardProblem&, int64_t, int64_t, const double*, char*);

// A task adds to its own partial dk and dv; a second pass sums them, in tasks of blocks of keys.
Tasks gradient_tasks(const Sizes& s);
Tasks gradient_sum_tasks(const Sizes& s);
template <class C>
void run_gradients(const BackwardProblem& problem, int64_t first, int64_t last, C* partials, char* scratch);
template <class C>
void sum_gradients(const BackwardProblem& problem, int64_t first, int64_t last, C* partials);
extern template void run_gradients<float>(const BackwardProblem&, int64_t, int64_t, float*, char*);
extern template void run_gradients<double>(const BackwardProblem&, int64_t, int64_t, double*, char*);
extern template void sum_gradients<float>(const BackwardProblem&, int64_t, int64_t, float*);
extern template void sum_gradients<double>(const BackwardProblem&, int64_t, int64_t, double*);

// dsink = -sum over a head's query rows of exp(sink - lse) rowsum(dout out): of [batch, heads, rows, dim].
struct SinkProblem {
  Rows4 dout, out;
  Lse lse;
  Sinks sinks;
  const TensorView& dsinks;
  int64_t batch, heads, rows, dv;
};
void sink_gradients(const SinkProblem& problem);

Status cache_append(const Launch& launch);
Status paged_append(const Launch& launch);
Status slot_append(const Launch& launch);
Status packed_forward(const Launch& launch);
Status packed_backward(const Launch& launch);
Status paged_forward(const Launch& launch);
void merge(const Launch& launch);
void merge_backward(const Launch& launch);

}  // namespace baracuda::attention
