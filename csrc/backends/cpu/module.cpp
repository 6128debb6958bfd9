// The one exported entry of a CPU level's module: the kernels of its families, compiled for that level. A family that
// is compiled in slices is there once per slice.
#include "backends/cpu/module.h"

#include "host/in_range.h"
#include "host/runs.h"
#include "host/short_rows.h"
#include "host/strip_sums.h"
#include "host/tile_small.h"
#include "ops/attention/scratch.h"
#include "ops/embedding/cpu_rows.h"
#include "ops/indexing/skus.h"
#include "ops/loss/skus.h"
#include "ops/matmul/blocking.h"
#include "ops/matmul/micro.h"
#include "ops/random/words.h"
#include "ops/reduce/driver.h"
#include "ops/scan/skus.h"

#define BCU_FAMILY(name, slice)                            \
  namespace baracuda::name {                               \
  extern const ::baracuda::FamilyKernels kCpuSlice##slice; \
  }
#include "level_families.inc"
#undef BCU_FAMILY

namespace baracuda {
namespace {

#define BCU_FAMILY(name, slice) &name::kCpuSlice##slice,
constexpr const FamilyKernels* kFamilies[] = {
#include "level_families.inc"
};
#undef BCU_FAMILY
// Where kernels of this level change what they do.
constexpr Threshold kThresholds[] = {
    {"", "lanes", Lanes<float>::kLanes},
    {"", "row_tile", kRowTile<float>},
    {"", "row_tile_f64", kRowTile<double>},
    {"", "short_row", kShortRow},
    {"", "columns", kColumns},
    {"", "parallel_grain", kParallelGrain},
    {"", "stretch", kStretch},
    {"", "small", tile::kSmall},
    {"", "strip_block", kStripBlock},
    {"", "ids", kIds},
    {"attention", "panel", attention::kPanel},
    {"attention", "task_rows", attention::kPanels * attention::kPanel},
    {"attention", "keys", attention::kKeys},
    {"attention", "decode_keys", attention::kDecodeKeys},
    {"attention", "decode_rows", attention::kDecodeRows},
    {"attention", "back_rows", attention::kBackRows},
    {"attention", "back_split", attention::kBackSplit},
    {"embedding", "strip", embedding::kStrip},
    {"embedding", "block", embedding::kBlock},
    {"embedding", "width", embedding::kWidth},
    {"indexing", "chunk", indexing::kChunk},
    {"indexing", "row_sums", indexing::kRowSums},
    {"loss", "short_row", loss::kShortRow},
    {"matmul", "tile_rows", matmul::kTileRows},
    {"matmul", "tile_columns", matmul::kTileVectors * matmul::kVectorBytes / 4},
    {"matmul", "sum_block", matmul::kSumBlock},
    {"matmul", "block_rows", matmul::kBlockRows},
    {"matmul", "block_columns", matmul::kBlockCols},
    {"matmul", "block_depth", matmul::kBlockDepth},
    {"matmul", "thin", matmul::kMaxThin},
    {"random", "tile", random::kTile},
    {"reduce", "piece", reduce::kPiece},
    {"reduce", "bf16_piece", 4 * reduce::kBf16Piece},
    {"reduce", "column_tile", reduce::kColumnTile},
    {"reduce", "split_from", reduce::kSplitFrom},
    {"scan", "tile", scan::kTile},
};

constexpr CpuModule kModule = {kModuleAbi,
                               BCU_CPU_LEVEL_NAME,
                               kFamilies,
                               sizeof kFamilies / sizeof *kFamilies,
                               BCU_CPU_LEVEL_COMPLETE,
                               kThresholds,
                               sizeof kThresholds / sizeof *kThresholds};

}  // namespace
}  // namespace baracuda

extern "C" BCU_API const baracuda::CpuModule* baracuda_cpu_module() { return &baracuda::kModule; }
