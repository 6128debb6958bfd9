#include "ops/sort/simt_unique.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(sort_count_digits, (simt::CountDigits))
BCU_METAL_KERNEL(sort_sum_counts, (simt::SumCounts))
BCU_METAL_KERNEL(sort_move_entries, (simt::MoveEntries))
BCU_METAL_KERNEL(sort_make_entries, (sort::MakeEntries))
BCU_METAL_KERNEL(sort_number_lines, (sort::NumberLines))
BCU_METAL_KERNEL(sort_write, (sort::WriteSorted))
BCU_METAL_KERNEL(sort_search, (sort::SearchSorted))
BCU_METAL_KERNEL(sort_count_runs, (sort::CountRuns))
BCU_METAL_KERNEL(sort_sum_runs, (sort::SumRuns))
BCU_METAL_KERNEL(sort_write_runs, (sort::WriteRuns))
BCU_METAL_KERNEL(sort_finish_runs, (sort::FinishRuns))
