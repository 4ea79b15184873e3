// SPDX-License-Identifier: Apache-2.0
// hone-fuzz: random graphs for this host's CPU.
#include "tests/fuzz/fuzz.h"
#include "tests/unit/space/compiled.h"

int main(int argc, char** argv) {
  return hone::fuzz::Fuzz(argc, argv, [] {
    hone::fuzz::Machine machine{.name = "this CPU", .target = hone::target::ParseTarget("cpu -threads=2").value()};
    machine.run = [target = machine.target](const auto& workload, const auto& schedule, auto tolerance,
                                            const auto& sizes) {
      constexpr auto kEffort = hone::codegen::Effort::kKernel;
      return hone::tests::CheckCompiled(workload, schedule, target, tolerance, /*threads=*/2, kEffort, sizes);
    };
    return machine;
  });
}
