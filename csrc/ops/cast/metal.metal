#include "ops/cast/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_MAP_REAL(cast_from, (Same), 1, 1)
BCU_METAL_MAP(cast_from_f8e4m3, (cast::Decode<3>), float, 1, 1)
BCU_METAL_MAP(cast_from_f8e5m2, (cast::Decode<2>), float, 1, 1)
BCU_METAL_MAP(cast_f8e4m3_to_f8e5m2, (cast::Recode<3, 2>), float, 2, 1)
BCU_METAL_MAP(cast_f8e5m2_to_f8e4m3, (cast::Recode<2, 3>), float, 2, 1)
BCU_METAL_MAP_REAL(cast_to_f8e4m3, (cast::Encode<3>), 2, 1)
BCU_METAL_MAP_REAL(cast_to_f8e5m2, (cast::Encode<2>), 2, 1)
BCU_METAL_MAP_REAL(cast_pack_s4, (cast::PackInt4<true>), 2, 1)
BCU_METAL_MAP_REAL(cast_pack_u4, (cast::PackInt4<false>), 2, 1)
BCU_METAL_MAP_REAL(cast_unpack_s4, (cast::UnpackInt4<true>), 1, 2)
BCU_METAL_MAP_REAL(cast_unpack_u4, (cast::UnpackInt4<false>), 1, 2)
