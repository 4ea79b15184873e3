// hone-plain-package MODEL.onnx OUT.hone [--target SPEC]: the model compiled with plain schedules, one element per
// lane. What compare_with_plain holds tuned packages against.
#include <iostream>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "compiler/codegen/kernel.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_model.h"

namespace {

absl::Status Write(const std::string& model, const std::string& out, const std::string& target_text) {
  HONE_ASSIGN_OR_RETURN(const hone::target::Target target, hone::target::ParseTarget(target_text));
  HONE_ASSIGN_OR_RETURN(const hone::graph::Plan plan, hone::graph::BuildPlan(model, {}, target));
  std::map<std::string, std::string> schedules;
  for (const hone::ir::Workload& workload : plan.workloads) {
    schedules[hone::ir::WorkloadDigest(workload)] =
        hone::schedule::Print(hone::codegen::PlainSchedule(workload, target));
  }
  hone::package::KernelOptions options{.target = target};
  options.lookup = [&](const std::string& digest) {
    return std::vector<hone::package::RecordedSchedule>{{schedules.at(digest), "plain"}};
  };
  return hone::package::CompileModel(model, {}, {&options, 1}, out).status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("compiles a model with plain schedules, to compare others with");
  std::string model, out, target = "opencl";
  app.add_option("model", model, "ONNX file")->required();
  app.add_option("out", out, "package to write")->required();
  app.add_option("--target", target, "what to compile for")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Write(model, out, target);
  if (status.ok()) return 0;
  std::cerr << "hone-plain-package: " << std::string(status.message()) << "\n";
  return 1;
}
