// hone-fuzz-cuda: random graphs for a CUDA device, whose kernels run on the machine of tests/ptx.
#include "tests/fuzz/fuzz.h"
#include "tests/ptx/on_machine.h"

int main(int argc, char** argv) {
  return hone::fuzz::Fuzz(argc, argv, [] {
    hone::fuzz::Machine machine{.name = "PTX", .target = hone::target::ParseTarget("cuda:sm_80").value()};
    machine.run = [target = machine.target](const auto& workload, const auto& schedule, auto tolerance) {
      return hone::testing::CheckOnMachine(workload, schedule, target, tolerance);
    };
    return machine;
  });
}
