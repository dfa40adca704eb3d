// SPDX-License-Identifier: Apache-2.0
#include "../kernels/conv3d_filter.hpp"
#include "../table.hpp"

namespace VG_NAMESPACE::conv {

extern template class Slab<f16>;  // units/conv3d.cpp
extern template class Slab<bf16>;
extern template class Slab<float>;
extern template class Slab<double>;

}  // namespace VG_NAMESPACE::conv

namespace VG_NAMESPACE {
VG_UNIT_CONV3D_FILTER(VG_EXPORT)
}
