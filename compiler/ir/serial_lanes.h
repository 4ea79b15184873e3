// SPDX-License-Identifier: Apache-2.0
// Statements for lanes rewritten for a machine without lanes, which runs the lanes' work one after the other.
#ifndef HONE_COMPILER_IR_SERIAL_LANES_H_
#define HONE_COMPILER_IR_SERIAL_LANES_H_

#include "compiler/ir/stmt.h"

namespace hone::ir {

// The copy as one vector store of `count` loaded elements, which completes at once; zeros where its mask is false.
// Indices must be flat.
Stmt CopyAsStore(const Copy& copy);
// The lane reduction as one step of a serial reduction: a store of `value` for part 0, and of the combination of place
// and `value` for every later part. The caller runs it for the parts in order.
Stmt SerialReduceStep(const LaneReduce& reduce);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SERIAL_LANES_H_
