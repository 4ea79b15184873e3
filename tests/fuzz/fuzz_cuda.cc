// SPDX-License-Identifier: Apache-2.0
// hone-fuzz-cuda: random graphs for a CUDA target, whose kernels run on the simulated machine of tests/ptx.
// HONE_FUZZ_TARGET sets the target; the default is cuda:sm_80.
#include <cstdlib>

#include "tests/fuzz/fuzz.h"
#include "tests/ptx/on_machine.h"

int main(int argc, char** argv) {
  return hone::fuzz::Fuzz(argc, argv, [] {
    const char* const asked = std::getenv("HONE_FUZZ_TARGET");
    hone::fuzz::Machine machine{.name = "PTX",
                                .target = hone::target::ParseTarget(asked != nullptr ? asked : "cuda:sm_80").value()};
    machine.run = [target = machine.target](const auto& workload, const auto& schedule, auto tolerance,
                                            const auto& sizes) {
      return hone::tests::CheckOnPtxMachine(workload, schedule, target, tolerance, nullptr, sizes);
    };
    return machine;
  });
}
