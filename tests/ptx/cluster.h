// SPDX-License-Identifier: Apache-2.0
// Runs the groups of one cluster at the same time: they reach each other's shared memory. Most kernels have clusters of
// one group.
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
  // Runs the cluster whose first group has that number, from the first instruction to the last.
  absl::Status Run(uint32_t first);
  // To be called after all clusters have run: fails if a buffer that was read as read-only was also written.
  absl::Status CheckReadOnly();

 private:
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_CLUSTER_H_
