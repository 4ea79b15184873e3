// SPDX-License-Identifier: Apache-2.0
// The conditions in the table of spaces: whether a space applies to a workload, and whether it should be the default.
// Private to space.cc and builds.cc.
#ifndef HONE_COMPILER_SPACE_CONDITIONS_H_
#define HONE_COMPILER_SPACE_CONDITIONS_H_

#include "compiler/ir/workload.h"
#include "compiler/target/target.h"

namespace hone::space {

bool IsAny(const ir::Workload& workload, const target::Target& target);
// Whether the workload has a sum of products, for which there are register tiles and lane tiles.
bool HasProduct(const ir::Workload& workload, const target::Target& target);
// Whether the workload has a product with constant weights of few bits, which a tile can unpack in registers.
bool HasQuantizedProduct(const ir::Workload& workload, const target::Target& target);
// Whether the workload has a 3x3 convolution that can be computed from transformed tiles.
bool HasWinograd(const ir::Workload& workload, const target::Target& target);
bool HasAttention(const ir::Workload& workload, const target::Target& target);

bool PrefersRegisterTiles(const ir::Workload& workload, const target::Target& target);
bool PrefersWinograd(const ir::Workload& workload, const target::Target& target);
bool PrefersLaneTiles(const ir::Workload& workload, const target::Target& target);
bool PrefersWinogradLanes(const ir::Workload& workload, const target::Target& target);

// Whether a stage of the workload, as it is written, is a sum of products of two loads (IsContraction). HasProduct is
// the same in the form that the table wants.
bool HasContraction(const ir::Workload& workload);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_CONDITIONS_H_
