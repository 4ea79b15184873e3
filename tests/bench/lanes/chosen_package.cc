// SPDX-License-Identifier: Apache-2.0
// hone-chosen-package MODEL.onnx OUT.hone [--target SPEC] [--plain] [NAME=VALUE...]: compiles the model with the
// default schedules, changed by the given choices. A kernel with a decision of that NAME gets the VALUE. With --plain,
// schedules have one element per lane. compare_with_pytorch and compare_with_plain compare against such packages.
// Standard output has a line per kernel: its title and its decisions.
#include <charconv>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "compiler/codegen/kernel.h"
#include "compiler/execution/model.h"
#include "compiler/graph/plan.h"
#include "compiler/space/space.h"
#include "deploy/package/compile_model.h"
#include "fmt/format.h"

namespace hone {
namespace {

absl::StatusOr<space::Decisions> Read(const std::vector<std::string>& texts) {
  space::Decisions chosen;
  for (const std::string& text : texts) {
    const size_t mark = std::min(text.find('='), text.size());
    const char *const first = text.data() + std::min(mark + 1, text.size()), *const end = text.data() + text.size();
    int64_t value = 0;
    if (const auto [at, error] = std::from_chars(first, end, value); error != std::errc() || at != end) {
      return absl::InvalidArgumentError(fmt::format("'{}' is not NAME=VALUE, of a whole number", text));
    }
    chosen.push_back({text.substr(0, mark), value, {}});
  }
  return chosen;
}

absl::StatusOr<std::string> Schedule(const ir::Workload& workload, const target::Target& target,
                                     const space::Decisions& chosen) {
  space::Chooser chooser(&chosen);
  HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                        space::Build(workload, target, space::ApplicableEntries(workload, target), chooser));
  std::string made;
  for (const space::Decision& decision : candidate.decisions)
    made += fmt::format(" {}={}", decision.name, decision.value);
  std::cout << workload.op << ":" << made << "\n";
  return schedule::Print(candidate.schedule);
}

absl::Status Write(const std::string& model, const std::string& out, const std::string& target_text, bool plain,
                   const std::vector<std::string>& choices) {
  HONE_ASSIGN_OR_RETURN(const space::Decisions chosen, Read(choices));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(target_text));
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(model, {}, target));
  std::map<std::string, std::string> schedules;
  for (const ir::Workload& workload : plan.workloads) {
    std::string& schedule = schedules[ir::WorkloadDigest(workload)];
    if (plain) {
      schedule = schedule::Print(execution::ModelOf(target).naive_schedule(workload, target));
    } else {
      HONE_ASSIGN_OR_RETURN(schedule, Schedule(workload, target, chosen));
    }
  }
  package::KernelOptions options{.target = target};
  options.lookup = [&](const std::string& digest) {
    return std::vector<package::RecordedSchedule>{{schedules.at(digest), "chosen"}};
  };
  return package::CompileModel(model, graph::ImportOptions{}, {&options, 1}, out).status();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  CLI::App app("compiles a model with schedules of which something is chosen, to compare others with");
  std::string model, out, target = "opencl";
  std::vector<std::string> choices;
  bool plain = false;
  app.add_option("model", model, "ONNX file")->required();
  app.add_option("out", out, "package to write")->required();
  app.add_option("choices", choices, "NAME=VALUE of decisions, as records have them");
  app.add_option("--target", target, "what to compile for")->capture_default_str();
  app.add_flag("--plain", plain, "one element per lane");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hone::Write(model, out, target, plain, choices);
  if (status.ok()) return 0;
  std::cerr << "hone-chosen-package: " << std::string(status.message()) << "\n";
  return 1;
}
