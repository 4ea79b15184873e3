#include "cli/model_options.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/status.h"
#include "cli/command.h"

namespace hone::cli {
namespace {

absl::StatusOr<std::vector<int64_t>> ParseShape(std::string_view text) {
  std::vector<int64_t> shape;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    int64_t dimension = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + end, dimension);
    if (error != std::errc() || last != text.data() + end || dimension < 0) {
      return absl::InvalidArgumentError(fmt::format("'{}' is no dimension", std::string(text.substr(0, end))));
    }
    shape.push_back(dimension);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shape;
}

}  // namespace

void ModelOptions::AddTo(CLI::App* command) {
  command->add_option("MODEL", model, "the model, an ONNX file")->required();
  command->add_option("--shape", shapes, "shape of an input whose shape the model leaves open: name=1,3,224,224")
      ->expected(1)
      ->take_all();
  command->add_option("--target", target, "what to compile for: cpu (this host), 'x86_64 -mcpu=znver4', 'arm64 ...'");
  command->add_option("--threads", threads, "threads that kernels use (default: the target's)")
      ->check(CLI::Range(1, 1024));
}

absl::StatusOr<graph::ImportOptions> ModelOptions::Import() const {
  graph::ImportOptions options;
  for (const std::string& text : shapes) {
    // Input names may contain an equals sign; shapes do not.
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return UsageError(fmt::format("--shape {} lacks the input's name; write name=1,3,224,224", text));
    }
    absl::StatusOr<std::vector<int64_t>> shape = ParseShape(std::string_view(text).substr(equals + 1));
    if (!shape.ok()) return UsageError(fmt::format("--shape {}: {}", text, std::string(shape.status().message())));
    if (!options.shapes.emplace(text.substr(0, equals), *std::move(shape)).second) {
      return UsageError(fmt::format("--shape names '{}' twice", text.substr(0, equals)));
    }
  }
  return options;
}

absl::StatusOr<codegen::Target> ModelOptions::Target() const {
  const std::string text = threads > 0 ? fmt::format("{} -threads={}", target, threads) : target;
  absl::StatusOr<codegen::Target> parsed = codegen::ParseTarget(text);
  if (!parsed.ok()) return UsageError(std::string(parsed.status().message()));
  return parsed;
}

}  // namespace hone::cli
