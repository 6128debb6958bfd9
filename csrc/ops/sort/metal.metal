#include "ops/sort/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(sort_count_digits, (simt::CountDigits))
BCU_METAL_KERNEL(sort_sum_counts, (simt::SumCounts))
BCU_METAL_KERNEL(sort_move_entries, (simt::MoveEntries))
BCU_METAL_KERNEL(sort_make_entries, (sort::MakeEntries))
BCU_METAL_KERNEL(sort_number_lines, (sort::NumberLines))
BCU_METAL_KERNEL(sort_write, (sort::WriteSorted))
BCU_METAL_KERNEL(sort_search, (sort::SearchSorted))
