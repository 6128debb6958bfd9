// Lists of tensors on the CPU: one parallel region over fixed chunks of the whole list, so that a thousand small
// tensors cost no more than a large one.
#pragma once
#include "core/parallel.h"
#include "host/runs.h"

namespace baracuda::optim {

inline constexpr int64_t kChunk = 32768;  // elements
inline constexpr int64_t kTile = kStretch;

// Finds the tensor of a list that holds an element counted over the whole list; some starts are kept, the rest is
// walked.
class ListIndex {
 public:
  ListIndex(const TensorView* tensors, int count) : tensors_(tensors), every_((count + kMarks - 1) / kMarks) {
    for (int t = 0; t < count; ++t) {
      if (t % every_ == 0) marks_[used_++] = total_;
      total_ += tensors[t].numel();
    }
  }
  int64_t total() const { return total_; }

  struct Place {
    int tensor;
    int64_t element;  // within that tensor
  };
  Place find(int64_t element) const {
    int low = 0, high = used_;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (marks_[middle] <= element ? low : high) = middle;
    }
    Place place{low * every_, element - marks_[low]};
    for (int64_t n; place.element >= (n = tensors_[place.tensor].numel()); ++place.tensor) place.element -= n;
    return place;
  }

  // f(tensor, from, to) for the pieces of tensors that make up elements [begin, end) of the list.
  template <class F>
  void pieces(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    for (Place at = find(begin); begin < end; at = {at.tensor + 1, 0}) {
      const int64_t left = tensors_[at.tensor].numel() - at.element;
      const int64_t n = left < end - begin ? left : end - begin;
      if (n > 0) f(at.tensor, at.element, at.element + n);
      begin += n;
    }
  }

 private:
  static constexpr int kMarks = 512;
  const TensorView* tensors_;
  int every_;
  int used_ = 0;
  int64_t total_ = 0;
  int64_t marks_[kMarks];
};

}  // namespace baracuda::optim
