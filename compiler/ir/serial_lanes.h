// SPDX-License-Identifier: Apache-2.0
// Statements for lanes rewritten for a machine without lanes, which runs the lanes' work one after the other.
#ifndef HONE_COMPILER_IR_SERIAL_LANES_H_
#define HONE_COMPILER_IR_SERIAL_LANES_H_

#include "compiler/ir/stmt.h"

namespace hone::ir {

// The copy as a load and a store that complete at once. Indices must be flat.
Stmt CopyAsStore(const Copy& copy);
// The lane reduction as one step of a serial reduction, for one part.
Stmt SerialReduceStep(const LaneReduce& reduce);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SERIAL_LANES_H_
