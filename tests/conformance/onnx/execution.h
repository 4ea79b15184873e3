// SPDX-License-Identifier: Apache-2.0
// The ways in which a conformance case can be run: interpreted, compiled for this machine, for AArch64, for OpenCL.
//
// Start with RunCase, which imports the case's model and hands it to one of them.
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

// A case whose model imports: the inputs that decide shapes are bound, the others are left to be given at run time.
struct ImportedCase {
  ConformanceCase content;
  graph::ImportOptions options;
  graph::Plan plan;

  // The value of an input that was not bound; nullptr if the case has none of that name.
  const graph::Constant* FindInput(const std::string& name) const;
};

// Gives the model's outputs in the model's order.
using Execution = std::function<absl::StatusOr<std::vector<graph::Constant>>(const ImportedCase&)>;

absl::StatusOr<std::vector<graph::Constant>> Interpret(const ImportedCase& imported);
// Compiles into a package and runs it with the runtime's C interface, two threads.
absl::StatusOr<std::vector<graph::Constant>> CompileAndRun(const ImportedCase& imported);
// Compiles for AArch64 and runs the package with `runner`, a cross-built hone-run, under qemu-user.
Execution CompileAndEmulate(const std::string& emulator, const std::string& runner);
// Compiles for this machine's first OpenCL device and runs the package there, in this process; the device stays open
// for the next case.
Execution CompileForOpenCl();
// The same for its first CUDA device and a target that it can run.
Execution CompileForCuda(const std::string& target);
// Compiles every kernel for `target`, "cuda:sm_87", and has `assembler`, a ptxas, make machine code of it unless that
// is empty. Nothing runs: the outputs are the interpreter's.
Execution CompileToPtx(const std::string& target, const std::string& assembler);

// OK if the case's outputs are what they should be; otherwise the reason.
absl::Status RunCase(const std::string& data, const std::string& name, const Execution& execution);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_EXECUTION_H_
