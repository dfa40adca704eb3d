// SPDX-License-Identifier: Apache-2.0
#include "../kernels/conv_narrow.hpp"
#include "../kernels/conv_tile.hpp"

namespace VG_NAMESPACE::conv {

template Tile<double> tile_of<double>(int64_t, int64_t, int64_t, int64_t);
template Tile<double> listed_of<double>(int64_t, int64_t);
template Narrow<double> narrow_of<double>(int64_t, int64_t);

}  // namespace VG_NAMESPACE::conv
