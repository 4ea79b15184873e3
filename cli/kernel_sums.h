// SPDX-License-Identifier: Apache-2.0
// The calls of a profiled run, summed by kernel: for `profile` on this machine and on devices. Pure.
#ifndef HONE_CLI_KERNEL_SUMS_H_
#define HONE_CLI_KERNEL_SUMS_H_

#include <string>
#include <vector>

namespace hone::cli {

// One call of a kernel.
struct KernelCall {
  std::string symbol;
  std::vector<std::string> nodes;  // names of nodes of the model's file: those that the call computes
  double seconds = 0;              // per run of the model
};

// All calls of one kernel.
struct KernelSum {
  std::string symbol;
  int calls = 0;
  std::vector<std::string> nodes;  // of all calls, in their order
  double seconds = 0;              // per run of the model
};

// The slowest first. *all: the seconds of all calls.
std::vector<KernelSum> SumByKernel(const std::vector<KernelCall>& calls, double* all);

// The names as "Conv_0, Relu_1"; "-" if there are none.
std::string NodesText(const std::vector<std::string>& nodes);

}  // namespace hone::cli

#endif  // HONE_CLI_KERNEL_SUMS_H_
