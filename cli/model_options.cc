// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/npy.h"
#include "cli/option_checks.h"
#include "deploy/runtime/dtype.h"

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

struct NamedText {
  std::string name, value;
};

// Splits NAME=VALUE at the last equals sign, because names of inputs may contain one.
absl::StatusOr<NamedText> SplitName(std::string_view option, const std::string& text, std::string_view form) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    return UsageError(fmt::format("{} {} lacks the input's name; write {}", option, text, form));
  }
  return NamedText{text.substr(0, equals), text.substr(equals + 1)};
}

bool IsFile(const std::string& bound) { return bound.ends_with(".npy"); }

absl::StatusOr<graph::Constant> ReadConstant(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();  // also fails for an empty file
  if (!file || !content) {
    const char* reason = errno != 0 ? std::strerror(errno) : "it is empty";
    return absl::NotFoundError(fmt::format("cannot read an array from {}: {}", path, reason));
  }
  const std::string bytes_of_file = std::move(content).str();
  const absl::StatusOr<Array> array =
      ParseNpy({reinterpret_cast<const uint8_t*>(bytes_of_file.data()), bytes_of_file.size()});
  if (!array.ok()) return Annotate(array.status(), path);
  const auto* bytes = reinterpret_cast<const std::byte*>(array->data.data());
  return graph::Constant{{array->dtype, array->shape},
                         std::make_shared<const std::vector<std::byte>>(bytes, bytes + array->data.size())};
}

}  // namespace

void ModelOptions::AddTo(CLI::App* command, Count model_count, Count target_count) {
  CLI::Option* model = command->add_option("MODEL", models, "the model, an ONNX file")->required();
  if (model_count == Count::kOne) model->expected(1);
  AddInputsTo(command);
  AddTargetTo(command, target_count);
}

void ModelOptions::AddOptionalTo(CLI::App* command, Count target_count) {
  command->add_option("--model", models, "only what this model needs, an ONNX file")->expected(1)->check(NotEmpty);
  AddInputsTo(command);
  AddTargetTo(command, target_count);
}

void ModelOptions::AddInputsTo(CLI::App* command) {
  command->add_option("--shape", shapes, "shape of an input whose shape the model leaves open: name=1,3,224,224")
      ->expected(1)
      ->take_all();
  command->add_option("--bind", bindings, "fix an input's value: name=1,2,3 or name=FILE.npy; it may be repeated")
      ->expected(1)
      ->take_all();
  command->add_option("--threads", threads, "threads that kernels use (default: the target's)")
      ->check(IntegerInRange(kThreadsMax, 1));
}

void ModelOptions::AddTargetTo(CLI::App* command, Count target_count) {
  const bool several = target_count == Count::kSeveral;
  std::string text =
      "what to compile for, as 'x86_64 -mcpu=znver4' (default: cpu, this host); one of " + target::TargetWords();
  if (several) text += "; may be given again";
  CLI::Option* target = command->add_option("--target", targets, text)->expected(1)->check(NotEmpty);
  if (several) target->take_all();
}

void ModelOptions::AddReproducersTo(CLI::App* command) {
  command
      ->add_option("--reproducers", reproducers,
                   "verify every pass of the compiler, and write a file into this folder if one fails, for hone-opt, "
                   "which is only in what is built from the sources")
      ->check(NotEmpty);
}

std::vector<std::string> ModelOptions::Files() const {
  std::vector<std::string> files = models;
  for (const std::string& text : bindings) {
    const std::string value = text.substr(text.rfind('=') + 1);
    if (IsFile(value)) files.push_back(value);
  }
  return files;
}

absl::StatusOr<graph::ImportOptions> ModelOptions::Import() const {
  graph::ImportOptions options;
  for (const std::string& text : shapes) {
    HONE_ASSIGN_OR_RETURN(const NamedText shape_text, SplitName("--shape", text, "name=1,3,224,224"));
    absl::StatusOr<std::vector<int64_t>> shape = ParseShape(shape_text.value);
    if (!shape.ok()) return UsageError(fmt::format("--shape {}: {}", text, std::string(shape.status().message())));
    if (!options.shapes.emplace(shape_text.name, *std::move(shape)).second) {
      return UsageError(fmt::format("--shape names '{}' twice", shape_text.name));
    }
  }
  for (const std::string& text : bindings) {
    HONE_ASSIGN_OR_RETURN(const NamedText binding, SplitName("--bind", text, "name=1,2,3 or name=FILE.npy"));
    if (options.bound_inputs.contains(binding.name) || options.bound_texts.contains(binding.name)) {
      return UsageError(fmt::format("--bind names '{}' twice", binding.name));
    }
    if (IsFile(binding.value)) {
      HONE_ASSIGN_OR_RETURN(options.bound_inputs[binding.name], ReadConstant(binding.value));
    } else {
      options.bound_texts[binding.name] = binding.value;
    }
  }
  return options;
}

absl::StatusOr<std::vector<target::Target>> ModelOptions::Targets() const {
  std::vector<target::Target> result;
  std::set<std::string> seen;
  for (const std::string& target : targets.empty() ? std::vector<std::string>{"cpu"} : targets) {
    absl::StatusOr<target::Target> parsed = target::ParseTarget(target);
    if (!parsed.ok()) return UsageError(std::string(parsed.status().message()));
    if (threads > 0) parsed->threads = threads;  // affects CPU kernels only
    if (!seen.insert(target::Print(*parsed)).second) {
      return UsageError(fmt::format("--target '{}' is there twice; give each target once", target));
    }
    result.push_back(*std::move(parsed));
  }
  return result;
}

}  // namespace hone::cli
