// SPDX-License-Identifier: Apache-2.0
#include "../kernels/conv3d.hpp"
#include "../kernels/conv3d_input.hpp"
#include "../table.hpp"

namespace VG_NAMESPACE::conv {

// The innermost loops, which take longest to compile, are units of their own: conv_tiles_*.cpp.
extern template Tile<float> tile_of<float>(int64_t, int64_t, int64_t, int64_t);
extern template Tile<float> listed_of<float>(int64_t, int64_t);
extern template Narrow<float> narrow_of<float>(int64_t, int64_t);
extern template Tile<double> tile_of<double>(int64_t, int64_t, int64_t, int64_t);
extern template Tile<double> listed_of<double>(int64_t, int64_t);
extern template Narrow<double> narrow_of<double>(int64_t, int64_t);

template class Slab<f16>;
template class Slab<bf16>;
template class Slab<float>;
template class Slab<double>;

}  // namespace VG_NAMESPACE::conv

namespace VG_NAMESPACE {
VG_UNIT_CONV3D(VG_EXPORT)
}
