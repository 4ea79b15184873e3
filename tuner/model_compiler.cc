// SPDX-License-Identifier: Apache-2.0
#include "tuner/model_compiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "base/host_lock.h"
#include "base/inner_path.h"
#include "base/read_file.h"
#include "base/status.h"
#include "compiler/graph/check_onnx.h"
#include "compiler/graph/custom_operators.h"
#include "compiler/target/target.h"
#include "deploy/package/compile_model.h"
#include "deploy/package/npy_constant.h"
#include "hone/v1/job.pb.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

// The schedules of the job, by workload. A workload that was not measured has an empty one.
using Schedules = std::map<std::string, std::string>;

// The path of a file that the message names.
absl::StatusOr<std::string> PathOf(const fs::path& folder, const std::string& name) {
  if (!IsInnerPath(name)) {
    return absl::InvalidArgumentError(fmt::format("the model names a file '{}', which is outside its folder", name));
  }
  return (folder / name).string();
}

absl::StatusOr<graph::ImportOptions> WithoutShapes(const v1::ModelSource& model, const fs::path& folder) {
  graph::ImportOptions options;
  options.loop_steps = model.loop_steps();
  options.defaults_are_constants = model.defaults_as_constants();
  options.fallback = model.fallback();
  options.bound_texts.insert(model.bound_texts().begin(), model.bound_texts().end());
  for (const auto& [input, name] : model.bound_files()) {
    HONE_ASSIGN_OR_RETURN(const std::string path, PathOf(folder, name));
    HONE_ASSIGN_OR_RETURN(options.bound_inputs[input], package::ReadNpyConstant(path));
  }
  if (model.operators().empty()) return options;
  std::vector<std::string> paths;
  for (const std::string& name : model.operators()) {
    HONE_ASSIGN_OR_RETURN(paths.emplace_back(), PathOf(folder, name));
  }
  HONE_ASSIGN_OR_RETURN(graph::CustomOperators defined, graph::ReadOperators(paths));
  options.operators = std::make_shared<const graph::CustomOperators>(std::move(defined));
  return options;
}

// The import options of each program. path: of the ONNX file.
absl::StatusOr<std::vector<graph::ImportOptions>> ImportsOf(const v1::ModelSource& model, const fs::path& folder,
                                                            const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions common, WithoutShapes(model, folder));
  std::vector<graph::ImportOptions> imports;
  for (const v1::ModelShapes& program : model.programs()) {
    graph::ImportOptions& import = imports.emplace_back(common);
    for (const v1::InputShape& input : program.inputs()) {
      std::vector<graph::DimRange>& shape = import.shapes[input.input()];
      for (const v1::DimensionRange& dimension : input.dimensions()) {
        shape.emplace_back(dimension.min(), dimension.max(), dimension.step());
      }
    }
    HONE_ASSIGN_OR_RETURN(graph::OpenRanges open, graph::ChooseOpenRanges(path, import));
    import.ranges = std::move(open.ranges);
  }
  return imports;
}

// The packages must have the kernels that were tuned. A tuner of another version than the client may fuse others.
absl::Status CheckKernels(std::span<const package::ProgramSummary> programs, const Schedules& schedules) {
  for (const package::ProgramSummary& program : programs) {
    for (const package::KernelSummary& kernel : program.per_kernel) {
      if (schedules.contains(kernel.digest)) continue;
      return absl::FailedPreconditionError(
          fmt::format("this tuner makes other kernels of the model than the command that submitted it: {} is not "
                      "among the job's workloads; update both to one version",
                      kernel.name));
    }
  }
  return absl::OkStatus();
}

// Holds the shared side of the host lock while a package is compiled. Meanwhile kCompilingFile is in the folder.
class Compiling {
 public:
  Compiling(const fs::path& folder, HostLock* host) : file_(folder / kCompilingFile) {
    if (host != nullptr) lock_.emplace(*host, HostLock::Mode::kShared);
    std::ofstream(file_).put('\n');
  }
  ~Compiling() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;

 private:
  const fs::path file_;
  std::optional<ScopedHostLock> lock_;
};

}  // namespace

absl::Status CompilePackages(const fs::path& folder, HostLock* host) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile((folder / kJobFile).string()));
  v1::Job job;
  if (!job.ParseFromString(bytes) || job.spec().model().files().empty()) {
    return absl::DataLossError("the description of the model is damaged");
  }
  const v1::ModelSource& model = job.spec().model();
  const fs::path files = folder / kModelFolder;
  std::optional<Compiling> compiling(std::in_place, folder, host);
  HONE_ASSIGN_OR_RETURN(const std::string path, PathOf(files, model.files(0).path()));
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::ImportOptions> imports, ImportsOf(model, files, path));
  Schedules schedules;
  for (const v1::WorkloadProgress& workload : job.progress().workloads()) {
    schedules[workload.digest()] = workload.best_schedule();
  }
  const auto accept = [&](const auto& programs) { return CheckKernels(programs, schedules); };
  package::KernelOptions options;
  HONE_ASSIGN_OR_RETURN(options.target, target::ParseTarget(job.spec().target()));
  const auto compile = [&](const char* name) {
    return package::CompileModel(path, imports, {&options, 1}, (folder / name).string(), "", accept).status();
  };
  HONE_RETURN_IF_ERROR(compile(kUntunedPackage));
  options.lookup = [&](const std::string& digest) -> absl::StatusOr<std::vector<package::RecordedSchedule>> {
    const auto found = schedules.find(digest);
    if (found == schedules.end() || found->second.empty()) return std::vector<package::RecordedSchedule>();
    return std::vector<package::RecordedSchedule>{{found->second, "of this job"}};
  };
  compiling.reset();
  compiling.emplace(folder, host);
  return compile(kTunedPackage);
}

int CompileModelIn(const fs::path& folder) {
  // At once, on whatever thread: nothing that needs memory can be done any more.
  std::set_new_handler([] { _exit(kOutOfMemoryCode); });
  // Without the lock, compiling may disturb timings on this machine, but all else works.
  absl::StatusOr<HostLock> lock = HostLock::Open();
  const absl::Status status = CompilePackages(folder, lock.ok() ? &*lock : nullptr);
  if (status.ok()) return 0;
  // The folder is a name that means nothing to the reader of the job.
  const std::string files = (folder / kModelFolder).string() + "/";
  std::ofstream(folder / kErrorFile) << absl::StrReplaceAll(std::string(status.message()), {{files, ""}});
  return 1;
}

}  // namespace hone::tuner
