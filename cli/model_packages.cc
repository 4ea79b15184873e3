// SPDX-License-Identifier: Apache-2.0
#include "cli/model_packages.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "cli/farm_devices.h"
#include "cli/model_compilation.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/record_source.h"
#include "deploy/package/compile_model.h"

namespace hone::cli {
namespace {

constexpr char kAdvice[] = "`hone tune` measures them";

ModelOptions ModelOf(const std::string& path, const ModelPackageOptions& options) {
  ModelOptions model;
  model.models = {path};
  model.shapes = options.shapes;
  model.threads = options.threads;
  if (options.fallback) model.fallback = "onnxruntime";
  return model;
}

}  // namespace

bool IsModel(const std::string& path) { return path.ends_with(".onnx"); }

absl::StatusOr<std::string> ModelPackages::ForThisMachine(const std::string& path) {
  if (!IsModel(path)) return path;
  const Key key = {path};
  if (const auto made = made_.find(key); made != made_.end()) return made->second;
  const RecordSourceOptions source{.records = "", .tracker = tracker_};
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const records::Source> records, source.OpenIfAny());
  HONE_ASSIGN_OR_RETURN(std::vector<package::KernelOptions> targets,
                        RecordedTargets(ModelOf(path, options_), records, OtherTargets::kUsed));
  return Make(key, std::move(targets), /*warns=*/tracker_.given());
}

absl::StatusOr<std::string> ModelPackages::ForDevices(const std::string& path, const std::vector<v1::Device>& known,
                                                      const std::string& words) {
  if (!IsModel(path)) return path;
  HONE_ASSIGN_OR_RETURN(const std::vector<DevicePlace> places, SelectDevicePlaces(known, {words}, options_.threads));
  Key key = {path};
  for (const DevicePlace& place : places) {
    key.push_back(target::Print(place.target));
    key.push_back(place.fingerprint);
  }
  if (const auto made = made_.find(key); made != made_.end()) return made->second;
  if (records_ == nullptr) {
    const RecordSourceOptions source{.records = "", .tracker = tracker_};
    HONE_ASSIGN_OR_RETURN(records_, source.Open(records::OpenMode::kReadOnly));
  }
  return Make(key, RecordedTargets(places, records_, OtherTargets::kUsed), /*warns=*/true);
}

// warns: whether the user expects that records are used.
absl::StatusOr<std::string> ModelPackages::Make(const Key& key, std::vector<package::KernelOptions> targets,
                                                bool warns) {
  const std::string& path = key.front();
  if (!folder_.has_value()) {
    TemporaryFolder::RemoveAbandoned();  // of commands that were ended while they compiled
    HONE_ASSIGN_OR_RETURN(folder_, TemporaryFolder::Create());
  }
  const std::filesystem::path place = *folder_ / std::to_string(made_.size());
  std::error_code error;
  std::filesystem::create_directory(place, error);
  if (error)
    return absl::UnavailableError(fmt::format("cannot make the folder {}: {}", place.string(), error.message()));
  const std::string output = place / (std::filesystem::path(path).stem().string() + ".hone");
  HONE_ASSIGN_OR_RETURN(std::vector<graph::ImportOptions> imports, ModelOf(path, options_).Imports());
  for (graph::ImportOptions& import : imports) HONE_RETURN_IF_ERROR(AddDefaultRanges(path, import));
  ProgressLine line;
  ShowKernels(line, targets);
  HONE_ASSIGN_OR_RETURN(const package::CompileSummary summary, package::CompileModel(path, imports, targets, output));
  line.Finish();
  for (const std::string& warning : summary.warnings) PrintMessage(fmt::format("warning: {}\n", warning));
  if (warns) WarnIfUntuned(path, summary.programs, kAdvice);
  made_[key] = output;
  return output;
}

}  // namespace hone::cli
