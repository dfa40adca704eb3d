// SPDX-License-Identifier: Apache-2.0
#include "../kernels/conv_narrow.hpp"
#include "../kernels/conv_tile.hpp"

namespace VG_NAMESPACE::conv {

template Tile<float> tile_of<float>(int64_t, int64_t, int64_t, int64_t);
template Tile<float> listed_of<float>(int64_t, int64_t);
template Narrow<float> narrow_of<float>(int64_t, int64_t);

}  // namespace VG_NAMESPACE::conv
