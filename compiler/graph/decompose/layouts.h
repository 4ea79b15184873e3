// SPDX-License-Identifier: Apache-2.0
// Rules for operators whose data may have the channels last: ONNX's operators have them at dimension 1.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_LAYOUTS_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_LAYOUTS_H_

#include "compiler/graph/decompose/decomposition.h"

namespace hone::graph::decompose {

// Returns x with its last dimension moved to place 1, or x itself unless channels_last.
ValueId ChannelsFirst(Decomposition& b, ValueId x, bool channels_last);
// The inverse.
ValueId ChannelsBack(Decomposition& b, ValueId x, bool channels_last);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_LAYOUTS_H_
