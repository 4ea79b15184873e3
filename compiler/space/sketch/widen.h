// SPDX-License-Identifier: Apache-2.0
// Copies in f32 of the f16 and bf16 operands of products, for cores.
//
// A core converts a vector of these types about as fast as it loads it. A single number that is broadcast to a vector
// takes a conversion for itself, as long as two multiply-adds of vectors. So operands that are read one number at a
// time are copied once, vector by vector. On targets with lanes nothing is done: each lane converts what it loads.
#ifndef HONE_COMPILER_SPACE_SKETCH_WIDEN_H_
#define HONE_COMPILER_SPACE_SKETCH_WIDEN_H_

#include "absl/status/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {

// Makes every product whose sums are f32 read a copy of the operand that does not vary along its last axis, which
// becomes the axis of the vectors. A copy of a constant is made before the kernel runs. A producer that only the
// product reads, such as padding, is computed by the copy.
absl::Status WidenBroadcasts(Sketch& sketch);
// Makes every product that Winograd's algorithm could compute in f32 read copies of both operands.
absl::Status WidenConvolutions(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_WIDEN_H_
