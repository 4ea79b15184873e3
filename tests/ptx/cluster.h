// SPDX-License-Identifier: Apache-2.0
// Groups that run at once and reach each other's shared memory; of most kernels one alone.
#ifndef HONE_TESTS_PTX_CLUSTER_H_
#define HONE_TESTS_PTX_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "tests/ptx/group.h"

namespace hone::ptx {

class Cluster {
 public:
  Cluster(const Kernel& kernel, const Launch& launch);
  // The groups from that number on, from their first instructions to their last.
  absl::Status Run(uint32_t first);
  // After all of them: nothing was written that was read as what nobody writes.
  absl::Status CheckReadOnly();

 private:
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_CLUSTER_H_
