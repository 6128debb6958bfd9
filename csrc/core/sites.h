// Steps of programs, by numbers that their kernels carry: what a kernel finds in the data is raised later, by whoever
// asks the device, who no longer knows whose launch it was.
#pragma once
#include <cstdint>
#include <string>

#include "core/api.h"

namespace baracuda {

// A number for each of so many steps, none of them 0, for as long as this lives.
class Sites {
 public:
  Sites() = default;
  Sites(int32_t steps, std::string program);
  ~Sites();
  Sites(const Sites&) = delete;
  Sites& operator=(Sites&& other) noexcept;

  // What a launch of a step is told: its row with the step's number above.
  int64_t of(int32_t step, int64_t row) const { return first_ ? int64_t{first_ + step} << 32 | row : row; }

 private:
  int32_t first_ = 0;
};

// "step 3 of Program(ids, targets)"; of a program that is gone, that; empty where `site` is 0.
BCU_API std::string site_text(int32_t site);

}  // namespace baracuda
