// SPDX-License-Identifier: Apache-2.0
// The ways to run a conformance case: interpreted, or compiled for this machine, an emulated machine, OpenCL or CUDA.
//
// Start with RunCase, which imports the case's model and passes it to one of them.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_EXECUTION_H_
#define HONE_TESTS_CONFORMANCE_ONNX_EXECUTION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "tests/conformance/onnx/conformance_case.h"

namespace hone::conformance {

// A case whose model was imported. Inputs that decide shapes are bound; the others are passed at run time.
struct ImportedCase {
  ConformanceCase content;
  graph::ImportOptions options;
  graph::Plan plan;

  // Returns the value of an input that was not bound; nullptr if the case has no input of that name.
  const graph::Constant* FindInput(const std::string& name) const;
};

// Returns the model's outputs in the model's order.
using Execution = std::function<absl::StatusOr<std::vector<graph::Constant>>(const ImportedCase&)>;

absl::StatusOr<std::vector<graph::Constant>> Interpret(const ImportedCase& imported);
// Compiles into a package and runs it through the runtime's C interface with two threads.
absl::StatusOr<std::vector<graph::Constant>> CompileAndRun(const ImportedCase& imported);
// A machine of another architecture, as qemu-user emulates it.
struct EmulatedMachine {
  std::string target;     // the target that cases are compiled for
  std::string emulator;   // qemu-user for the architecture
  std::string libraries;  // folder with the architecture's C library, the argument of the emulator's -L
  std::string runner;     // hone-run, built for the architecture
};
// Compiles each case and runs its package on `machine` with two threads.
Execution CompileAndEmulate(const EmulatedMachine& machine);
// Compiles for this machine's first OpenCL device and runs the package in this process. The device stays open for later
// cases.
Execution CompileForOpenCl();
// Does the same for this machine's first CUDA device; `target` must be one that it can run.
Execution CompileForCuda(const std::string& target);
// Compiles every kernel for `target`, for example "cuda:sm_87". Unless `assembler` is empty, this ptxas must accept the
// PTX. No kernel runs: the outputs are the interpreter's.
Execution CompileToPtx(const std::string& target, const std::string& assembler);

// Imports the case's model, with as few of its inputs bound as possible.
absl::StatusOr<ImportedCase> ImportCase(ConformanceCase content);

// Returns OK if the case's outputs are as expected, otherwise the reason. rounded: as for CompareTensors.
absl::Status RunCase(const std::string& data, const std::string& name, const Execution& execution, bool rounded);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_EXECUTION_H_
