// The legality rules of the IR, checked between passes.
#ifndef HONE_COMPILER_IR_VERIFY_H_
#define HONE_COMPILER_IR_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

// Every variable bound before use and not again inside its own scope; loads and stores only of params and enclosing
// Allocs, with one index per dimension (or one flat index once flattened); types and lanes agree; masks are bool; no
// kParallel in kParallel.
absl::Status Verify(const Func& func);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_VERIFY_H_
