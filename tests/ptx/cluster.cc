// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/cluster.h"

#include <algorithm>

#include "base/status.h"

namespace hone::ptx {

Cluster::Cluster(const Kernel& kernel, const Launch& launch) {
  for (uint32_t n = 0; n < kernel.cluster; ++n) groups_.push_back(std::make_unique<Group>(kernel, launch));
}

// Each group runs as far as it can before the next one does, so a missing wait for another group is found. A group is
// far ahead of the others at one barrier, and far behind at the next.
absl::Status Cluster::Run(uint32_t first) {
  for (size_t n = 0; n < groups_.size(); ++n) {
    HONE_RETURN_IF_ERROR(groups_[n]->Begin(first + static_cast<uint32_t>(n), groups_));
  }
  const auto ended = [](const auto& group) { return group->Ended(); };
  while (!std::ranges::all_of(groups_, ended)) {
    bool advanced = false;
    for (const auto& group : groups_) {
      for (bool more = !group->Ended(); more;) {
        HONE_ASSIGN_OR_RETURN(more, group->Advance());
        advanced |= more;
      }
    }
    if (!advanced) return (*std::ranges::find_if_not(groups_, ended))->DeadlockError();
  }
  for (const auto& group : groups_) HONE_RETURN_IF_ERROR(group->CheckArrived());
  return absl::OkStatus();
}

absl::Status Cluster::CheckReadOnly() {
  for (const auto& group : groups_) groups_[0]->TakeUses(*group);
  return groups_[0]->CheckReadOnly();
}

}  // namespace hone::ptx
