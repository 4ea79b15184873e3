// SPDX-License-Identifier: Apache-2.0
// What statements that lanes have come to without them: a load and a store, one part after the other.
#ifndef HONE_COMPILER_IR_PLAIN_H_
#define HONE_COMPILER_IR_PLAIN_H_

#include "compiler/ir/stmt.h"

namespace hone::ir {

// Where the lane does not go on meanwhile. Of flat indices.
Stmt AsStore(const Copy& copy);
// Where the parts come one after the other.
Stmt OneByOne(const Merge& merge);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_PLAIN_H_
