// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/copy.h"

#include <algorithm>

#include "compiler/ir/match.h"

namespace hone::ir {

bool IsBulkCopy(const Copy& copy) {
  return copy.groups != 1 || copy.count > std::ranges::max(kCopyBytes) / SizeOf(copy.buffer->dtype);
}

bool HasBulkCopies(const Stmt& s) {
  return AnyStmt(s, [](const Stmt& x) {
    const Copy* copy = x.As<Copy>();
    return copy != nullptr && IsBulkCopy(*copy);
  });
}

int64_t CountSharingGroups(const Stmt& s) {
  int64_t groups = 1;
  AnyStmt(s, [&](const Stmt& x) {
    const Copy* copy = x.As<Copy>();
    if (copy != nullptr && copy->groups > 1) groups = groups == 1 || groups == copy->groups ? copy->groups : 0;
    return false;
  });
  return groups;
}

}  // namespace hone::ir
