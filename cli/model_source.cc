// SPDX-License-Identifier: Apache-2.0
#include "cli/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/inner_path.h"
#include "base/run_limits.h"
#include "base/status.h"
#include "cli/file_sender.h"
#include "cli/output.h"
#include "cli/quantity_text.h"
#include "cli/shape_text.h"
#include "compiler/graph/check_onnx.h"
#include "proto/convert.h"

namespace hone::cli {
namespace {

// Adds a file of this machine that is to be at `name` beside the model, and returns that name.
std::string AddFile(const std::string& path, std::string name, v1::ModelSource& source) {
  v1::ModelFile& file = *source.add_files();
  file.set_path(std::move(name));
  file.mutable_file()->set_name(path);
  return file.path();
}

v1::ModelShapes ShapesOf(const graph::ImportOptions& import) {
  v1::ModelShapes shapes;
  for (const auto& [input, dimensions] : import.shapes) {
    v1::InputShape& shape = *shapes.add_inputs();
    shape.set_input(input);
    for (const graph::DimRange& range : dimensions) {
      v1::DimensionRange& dimension = *shape.add_dimensions();
      dimension.set_min(range.min);
      dimension.set_max(range.max);
      dimension.set_step(range.step);
    }
  }
  return shapes;
}

// Adds the files of the model's external data where the model expects them.
absl::Status AddExternalFiles(const std::string& path, v1::ModelSource& source) {
  HONE_ASSIGN_OR_RETURN(const auto files, graph::ExternalFiles(path));
  std::map<std::string, std::string> by_place;
  for (const auto& [location, file] : files) {
    by_place.emplace(std::filesystem::path(location).lexically_normal().string(), file);
  }
  for (const auto& [place, file] : by_place) {
    if (!IsInnerPath(place)) {
      return absl::UnimplementedError(fmt::format("its external data '{}' is not below its folder", place));
    }
    AddFile(file, place, source);
  }
  return absl::OkStatus();
}

// Why the tracker would refuse the job because of its model, whose files were not sent yet.
absl::Status CheckLimits(const v1::JobSpec& spec) {
  if (spec.model().files_size() > kModelFilesMax) {
    return absl::ResourceExhaustedError(fmt::format("{} consists of {} files; a tracker takes up to {}", spec.name(),
                                                    spec.model().files_size(), kModelFilesMax));
  }
  for (const v1::ModelFile& file : spec.model().files()) {
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(file.file().name(), error);
    if (error || bytes <= static_cast<uintmax_t>(kRunFileBytesMax)) continue;  // sending it tells the error
    return absl::ResourceExhaustedError(fmt::format("{} has {}; a tracker takes up to {}", file.file().name(),
                                                    BytesText(static_cast<double>(bytes)),
                                                    BytesText(static_cast<double>(kRunFileBytesMax))));
  }
  constexpr size_t kNameBytes = 80;  // what a digest and a size add to the message of a file
  const size_t bytes = spec.ByteSizeLong() + kNameBytes * static_cast<size_t>(spec.model().files_size());
  if (bytes <= kJobSpecificationBytesMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("the description of {} has {} with its {} files; a tracker takes up to {}", spec.name(),
                  BytesText(static_cast<double>(bytes)), spec.model().files_size(),
                  BytesText(static_cast<double>(kJobSpecificationBytesMax))));
}

void TellNotMeasured(const absl::Status& why) {
  PrintMessage(fmt::format("the whole model will not be measured: {}\n", std::string(why.message())));
}

}  // namespace

absl::StatusOr<v1::ModelSource> SourceOf(const ModelOptions& model, const std::string& path) {
  v1::ModelSource source;
  AddFile(path, FileNameOf(path), source);
  HONE_RETURN_IF_ERROR(AddExternalFiles(path, source));
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::ImportOptions> imports, model.Imports());
  for (const graph::ImportOptions& import : imports) *source.add_programs() = ShapesOf(import);
  source.mutable_bound_texts()->insert(imports.front().bound_texts.begin(), imports.front().bound_texts.end());
  for (const auto& [input, file] : model.BoundFiles()) {
    (*source.mutable_bound_files())[input] =
        AddFile(file, fmt::format("hone.bound.{}.npy", source.bound_files_size()), source);
  }
  for (const std::string& file : model.operators) {
    source.add_operators(AddFile(file, fmt::format("hone.operators.{}", source.operators_size()), source));
  }
  source.set_defaults_as_constants(model.constant_defaults);
  source.set_fallback(!model.fallback.empty());
  source.set_loop_steps(model.loop_steps);
  return source;
}

absl::Status SendModels(const std::shared_ptr<grpc::Channel>& channel, std::vector<v1::JobSpec>& specs,
                        std::stop_token stop) {
  absl::Time until = absl::InfiniteFuture();
  for (const v1::JobSpec& spec : specs) {
    if (spec.has_until()) until = std::min(until, FromProto(spec.until()));
  }
  FileSender sender(channel, std::move(stop), until);
  for (v1::JobSpec& spec : specs) {
    if (const absl::Status within = CheckLimits(spec); !within.ok()) {
      TellNotMeasured(within);
      spec.clear_model();
      continue;
    }
    for (v1::ModelFile& file : *spec.mutable_model()->mutable_files()) {
      absl::StatusOr<v1::FileName> sent = sender.Send(file.file().name());
      if (absl::IsCancelled(sent.status())) return sent.status();
      if (absl::Now() >= until) {
        return absl::DeadlineExceededError("the time to end (--until) came before the model was sent to the tracker");
      }
      if (!sent.ok()) {
        TellNotMeasured(sent.status());
        for (v1::JobSpec& other : specs) other.clear_model();
        return absl::OkStatus();
      }
      *file.mutable_file() = *std::move(sent);
    }
    if (spec.model().files().empty()) spec.clear_model();
  }
  return absl::OkStatus();
}

}  // namespace hone::cli
