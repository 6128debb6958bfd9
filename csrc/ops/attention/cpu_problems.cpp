// The tasks of all problems of a call in one parallel region, so that many short sequences are as quick as a long one.
#include "ops/attention/cpu.h"

namespace baracuda::attention {
namespace {

// Where the tasks and the partial results of each problem begin.
struct Place {
  int64_t tasks, more_tasks, partials;
};
static_assert(sizeof(Place) == kPlaceBytes);

// A stretch of problems, in the workspace: the threads' scratch, then places, then partial results.
class Schedule {
 public:
  Schedule(void* workspace, int64_t thread_bytes, int64_t most) : thread_bytes_(thread_bytes) {
    Carver memory(workspace);
    scratch_ = memory.take<char>(max_threads() * thread_bytes);
    places_ = memory.take<Place>(most + 1);
    partials_ = memory.take<char>(0);
  }
  void clear(int64_t first) {
    first_ = first, count_ = 0, work_ = more_work_ = 0;
    places_[0] = {};
  }
  void add(const Tasks& tasks, const Tasks& more, int64_t partials) {
    const Place& at = places_[count_];
    places_[++count_] = {at.tasks + tasks.count, at.more_tasks + more.count, at.partials + partials};
    work_ += static_cast<double>(tasks.count) * static_cast<double>(tasks.work);
    more_work_ += static_cast<double>(more.count) * static_cast<double>(more.work);
  }
  int64_t partials() const { return places_[count_].partials; }

  // f(problem, first task, last task, its partial results, scratch), over all tasks, then over all that come after.
  template <class C, class F>
  void run(F&& f) const {
    spread<C, &Place::tasks>(work_, f);
  }
  template <class C, class F>
  void run_more(F&& f) const {
    spread<C, &Place::more_tasks>(more_work_, f);
  }

 private:
  template <class C, int64_t Place::* kNumber, class F>
  void spread(double work, F&& f) const {
    const int64_t total = places_[count_].*kNumber;
    const double each = work / static_cast<double>(std::max<int64_t>(total, 1));
    const int64_t grain = grain_for(static_cast<int64_t>(std::min(each, 1e15)));
    parallel_for(total, grain, [&](int64_t begin, int64_t end) {
      const auto before = [](int64_t task, const Place& place) { return task < place.*kNumber; };
      const Place* at = std::upper_bound(places_, places_ + count_ + 1, begin, before) - 1;
      for (; begin < end; ++at) {
        const int64_t last = std::min(end, at[1].*kNumber), start = at->*kNumber;
        if (begin == last) continue;
        f(first_ + (at - places_), begin - start, last - start, reinterpret_cast<C*>(partials_) + at->partials,
          scratch_ + thread_index() * thread_bytes_);
        begin = last;
      }
    });
  }

  int64_t thread_bytes_, first_ = 0, count_ = 0;
  double work_ = 0, more_work_ = 0;
  char *scratch_, *partials_;
  Place* places_;
};

// Few queries are computed in another order than many, which a row that promises each query its own bits may not do.
template <class C>
void forward_as(const Problems<ForwardProblem>& problems) {
  const Extent& e = problems.largest;
  const auto decodes = [alone = problems.launch.batch_invariant](const Sizes& s) {
    return !alone && is_decode(s.rows, s.q_len);
  };
  Schedule schedule(problems.launch.workspace, forward_thread_bytes<C>(e.d, e.dv, decode_rows(e)), problems.count);
  schedule.clear(0);
  for (int64_t i = 0; i < problems.count; ++i) {
    const Sizes s = problems.at(problems.launch, i).sizes;
    if (s.batch == 0 || s.rows == 0) {
      schedule.add({}, {}, 0);
    } else if (!decodes(s)) {
      schedule.add(blocked_tasks(s), {}, 0);
    } else if (const Tasks tasks = decode_tasks(s); decode_chunks(s) == 1) {
      schedule.add(tasks, {}, 0);
    } else {
      schedule.add(tasks, {s.batch * s.heads * s.q_len, decode_chunks(s) * s.dv * 4},
                   tasks.count * partial_size(s.rows, s.dv));
    }
  }
  schedule.run<C>([&](int64_t i, int64_t first, int64_t last, C* partials, char* scratch) {
    const ForwardProblem problem = problems.at(problems.launch, i);
    decodes(problem.sizes) ? run_decode<C>(problem, first, last, partials, scratch)
                           : run_blocked<C>(problem, first, last, scratch);
  });
  schedule.run_more<C>([&](int64_t i, int64_t first, int64_t last, const C* partials, char* scratch) {
    merge_chunks<C>(problems.at(problems.launch, i), first, last, partials, scratch);
  });
}

// As many problems at once as there is room for their partial sums.
template <class C>
void backward_as(const Problems<BackwardProblem>& problems) {
  const Extent& e = problems.largest;
  const int64_t room = gradient_room<C>(e, problems.count);
  Schedule schedule(problems.launch.workspace, backward_thread_bytes<C>(e.d, e.dv), problems.count);
  for (int64_t i = 0; i < problems.count;) {
    for (schedule.clear(i); i < problems.count; ++i) {
      const Sizes s = problems.at(problems.launch, i).sizes;
      const Tasks tasks = gradient_tasks(s);
      const int64_t partials = tasks.count * gradient_partial_size(s.k_len, s.d, s.dv);
      if (schedule.partials() > 0 && schedule.partials() + partials > room) break;
      schedule.add(tasks, gradient_sum_tasks(s), partials);
    }
    schedule.run<C>([&](int64_t at, int64_t first, int64_t last, C* partials, char* scratch) {
      run_gradients<C>(problems.at(problems.launch, at), first, last, partials, scratch);
    });
    schedule.run_more<C>([&](int64_t at, int64_t first, int64_t last, C* partials, char*) {
      sum_gradients<C>(problems.at(problems.launch, at), first, last, partials);
    });
  }
}

}  // namespace

void forward(const Problems<ForwardProblem>& problems) {
  problems.launch.element == Element::F64 ? forward_as<double>(problems) : forward_as<float>(problems);
}
void backward(const Problems<BackwardProblem>& problems) {
  problems.launch.element == Element::F64 ? backward_as<double>(problems) : backward_as<float>(problems);
}

}  // namespace baracuda::attention
