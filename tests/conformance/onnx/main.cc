// SPDX-License-Identifier: Apache-2.0
// hone-onnx-conformance: runs ONNX's own conformance cases through Hone.
//
//   hone-onnx-conformance --mode interpret|compile|emulate|opencl|cuda|ptx [--target TARGET] [--runner HONE_RUN]
//                         [--assembler PTXAS] [--cases LIST] [--only TEXT] [--every N] [--at-least N]
//                         [--reasons] [--bless FOLDER] [--elements f16|bf16]
//
// With --cases, exit code 0 means that every listed case passed; with --reasons too, that every one failed for the
// reason in the list. Without --cases, all cases run and failures are printed with their reasons.
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "compiler/target/target.h"
#include "fmt/format.h"
#include "tests/conformance/onnx/case_lists.h"
#include "tests/conformance/onnx/conformance_case.h"
#include "tests/conformance/onnx/execution.h"
#include "tests/conformance/onnx/forked_run.h"
#include "tests/conformance/onnx/short_floats.h"

namespace hone::conformance {
namespace {

struct Arguments {
  std::string mode = "compile", data = HONE_ONNX_TESTDATA, cases, only, bless;
  std::string target, assembler, elements;
  EmulatedMachine machine;
  size_t at_least = 0, every = 1;
  bool reasons = false;
  ForkedRunOptions forking;
};

absl::StatusOr<std::vector<std::string>> ChooseCases(const Arguments& arguments) {
  std::vector<std::string> names;
  if (arguments.cases.empty()) {
    HONE_ASSIGN_OR_RETURN(names, ListCases(arguments.data));
  } else {
    HONE_ASSIGN_OR_RETURN(names, ReadCaseList(arguments.cases));
  }
  std::erase_if(names, [&](const std::string& name) { return name.find(arguments.only) == std::string::npos; });
  size_t place = 0;
  std::erase_if(names, [&](const std::string&) { return place++ % arguments.every != 0; });
  if (arguments.elements.empty()) return names;
  return OneNodeFloatCases(arguments.data, std::move(names));
}

absl::StatusOr<Execution> ChooseExecution(const Arguments& arguments) {
  if (arguments.mode == "interpret") return Execution(Interpret);
  if (arguments.mode == "compile") return Execution(CompileAndRun);
  const auto target_or = [&](const char* other) {
    return arguments.target.empty() ? std::string(other) : arguments.target;
  };
  if (arguments.mode == "cuda") return CompileForCuda(target_or("cuda"));
  if (arguments.mode == "ptx") return CompileToPtx(target_or("cuda:sm_53"), arguments.assembler);
  if (arguments.mode == "opencl") return CompileForOpenCl();
  EmulatedMachine machine = arguments.machine;
  machine.target = arguments.target;
  if (machine.target.empty() || machine.emulator.empty() || machine.libraries.empty() || machine.runner.empty()) {
    return absl::InvalidArgumentError("--mode emulate needs --target, --emulator, --libraries and --runner");
  }
  return CompileAndEmulate(machine);
}

absl::Status CompareReasons(const std::string& path, const std::map<std::string, absl::Status>& results) {
  HONE_ASSIGN_OR_RETURN(const auto reasons, ReadReasons(path));
  size_t others = 0;
  for (const auto& [name, status] : results) {
    if (!status.ok() && ReasonOf(status) == reasons.at(name)) continue;
    ++others;
    std::cout << fmt::format("{}: the list says: {}\n", name, reasons.at(name));
  }
  if (others == 0) return absl::OkStatus();
  return absl::InternalError(fmt::format("{} cases of {} pass or fail for another reason; see --bless", others, path));
}

absl::Status Run(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ChooseCases(arguments));
  HONE_ASSIGN_OR_RETURN(const Execution execution, ChooseExecution(arguments));
  std::map<std::string, absl::Status> results;
  size_t passed = 0;
  bool rounded = false;
  if (!arguments.target.empty()) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(arguments.target));
    rounded = target::AllowsTf32(target);
  }
  const ir::DType dtype = arguments.elements == "f16" ? ir::DType::kFloat16 : ir::DType::kBFloat16;
  const auto run = [&](size_t i) {
    return arguments.elements.empty() ? RunCase(arguments.data, names[i], execution, rounded)
                                      : RunShortCase(arguments.data, names[i], execution, dtype);
  };
  const auto done = [&](size_t i, const absl::Status& status) {
    results[names[i]] = status;
    passed += status.ok() ? 1 : 0;
    if (!status.ok()) std::cout << fmt::format("{}: {}\n", names[i], std::string(status.message())) << std::flush;
  };
  if (arguments.forking.jobs > 0) {
    ForkedRun(names.size(), arguments.forking, run, done);
  } else {
    for (size_t i = 0; i < names.size(); ++i) done(i, run(i));
  }
  std::cout << fmt::format("{} of {} cases pass ({})\n", passed, names.size(), arguments.mode);
  if (!arguments.bless.empty()) return WriteCaseLists(arguments.bless, results);
  if (arguments.reasons) return CompareReasons(arguments.cases, results);
  if (passed < names.size() && !arguments.cases.empty()) {
    return absl::InternalError(fmt::format("{} cases of {} fail", names.size() - passed, arguments.cases));
  }
  if (passed < arguments.at_least) {
    return absl::InternalError(fmt::format("{} cases pass, and {} must", passed, arguments.at_least));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace hone::conformance

int main(int argc, char** argv) {
  hone::conformance::Arguments arguments;
  CLI::App app("Runs ONNX's conformance cases through Hone");
  app.add_option("--mode", arguments.mode, "how to run a case")
      ->check(CLI::IsMember({"interpret", "compile", "emulate", "opencl", "cuda", "ptx"}));
  app.add_option("--target", arguments.target, "of the modes cuda, ptx (without it cuda and cuda:sm_53) and emulate");
  app.add_option("--assembler", arguments.assembler, "of mode ptx: a ptxas that makes machine code of it");
  app.add_option("--elements", arguments.elements, "run the cases of one node in this type instead of f32")
      ->check(CLI::IsMember({"f16", "bf16"}));
  app.add_option("--data", arguments.data, "the folder with the cases");
  auto* cases = app.add_option("--cases", arguments.cases, "a list of cases that must all pass");
  cases->check(CLI::ExistingFile);
  app.add_flag("--reasons", arguments.reasons, "they must all fail, for the reasons in the list")->needs(cases);
  app.add_option("--only", arguments.only, "only cases whose name has this text in it");
  app.add_option("--every", arguments.every, "only every so many of them")->check(CLI::PositiveNumber);
  app.add_option("--at-least", arguments.at_least, "fail when fewer cases pass");
  app.add_option("--bless", arguments.bless, "write supported.txt and unsupported.txt into this folder");
  app.add_option("--jobs", arguments.forking.jobs, "cases at a time, in processes of their own; 0: all in this one")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--timeout", arguments.forking.timeout_seconds, "seconds for one case")->check(CLI::PositiveNumber);
  app.add_option("--emulator", arguments.machine.emulator, "of mode emulate: qemu-user for the architecture");
  app.add_option("--libraries", arguments.machine.libraries, "of mode emulate: a folder with its C library");
  app.add_option("--runner", arguments.machine.runner, "of mode emulate: a hone-run that is built for it");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hone::conformance::Run(arguments);
  if (status.ok()) return 0;
  std::cerr << "hone-onnx-conformance: " << std::string(status.message()) << "\n";
  return 1;
}
