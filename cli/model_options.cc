// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/shape_text.h"
#include "compiler/graph/check_onnx.h"
#include "compiler/graph/custom_operators.h"
#include "deploy/package/npy_constant.h"
#include "fmt/ranges.h"

namespace hone::cli {
namespace {

bool IsFile(const std::string& bound) { return bound.ends_with(".npy"); }

absl::StatusOr<NamedText> SplitBinding(const std::string& text) {
  return SplitName("--bind", text, "name=1,2,3 or name=FILE.npy");
}

}  // namespace

void ModelOptions::AddTo(CLI::App* command, Count model_count, Count target_count) {
  CLI::Option* model = command->add_option("MODEL", models, "the model, an ONNX file")->required();
  if (model_count == Count::kOne) model->expected(1);
  AddInputsTo(command);
  AddTargetTo(command, target_count);
}

void ModelOptions::AddOptionalTo(CLI::App* command, Count target_count) {
  command->add_option("--model", models, "only records for the workloads of this model, an ONNX file")
      ->expected(1)
      ->check(NotEmpty);
  AddInputsTo(command);
  AddTargetTo(command, target_count);
}

void ModelOptions::AddMeaningTo(CLI::App* command) {
  // A list would also take the words of further positional options.
  const auto set = [this](const std::string& path) { models = {path}; };
  command->add_option_function<std::string>("MODEL", set, "the model, an ONNX file")->required();
  AddBindingsTo(command);
}

void ModelOptions::AddInputsTo(CLI::App* command) {
  command
      ->add_option(
          "--shape", shapes,
          "shape of an input that the model leaves open: name=1,3,224,224, or name=1..8,3,224,224 with a range; may "
          "be repeated, also for one input")
      ->expected(1)
      ->take_all();
  AddBindingsTo(command);
  command->add_option("--threads", threads, "threads that kernels use (default: the target's)")
      ->check(IntegerInRange(kThreadsMax, 1));
}

void ModelOptions::AddBindingsTo(CLI::App* command) {
  command->add_option("--bind", bindings, "fix an input's value: name=1,2,3 or name=FILE.npy; may be repeated")
      ->expected(1)
      ->take_all();
  command
      ->add_option(
          "--operators", operators,
          "a file that defines operators: an ONNX model with local functions, or a text of tensor expressions; "
          "may be repeated")
      ->expected(1)
      ->take_all()
      ->check(NotEmpty);
  command->add_flag("--defaults-as-constants", constant_defaults,
                    "inputs with a default value in the file are constants, as weights are");
  AddFallbackTo(command, fallback,
                "nodes that Hone cannot compile become parts of the package that ONNX Runtime computes");
  command
      ->add_option("--loop-steps", loop_steps,
                   "the most steps of a loop whose number of steps the model does not state, if memory depends on it "
                   "(default: 1024)")
      ->check(IntegerInRange(uint64_t{1} << 30, 1));
}

void ModelOptions::AddTargetTo(CLI::App* command, Count target_count) {
  const bool several = target_count == Count::kSeveral;
  std::string text =
      "target to compile for, such as 'x86_64 -mcpu=znver4' (default: cpu, this host); one of " + target::TargetWords();
  if (several) {
    text += "; may be repeated; A+B shares the model: B computes what A cannot, or what --place gives it";
  }
  CLI::Option* target = command->add_option("--target", targets, text)->expected(1)->check(NotEmpty);
  if (several) target->take_all();
}

void ModelOptions::AddPlaceTo(CLI::App* command) {
  command
      ->add_option("--place", places,
                   "with --target A+B, the kind of target that computes an operator: softmax=cpu; may be given again")
      ->expected(1)
      ->take_all()
      ->check(NotEmpty);
}

void ModelOptions::AddReproducersTo(CLI::App* command) {
  command
      ->add_option("--reproducers", reproducers,
                   "verify every compiler pass; if one fails, write a file for hone-opt into this folder (hone-opt is "
                   "built only from the sources)")
      ->check(NotEmpty);
}

std::vector<std::string> ModelOptions::Files() const {
  std::vector<std::string> files = models;
  for (const auto& [input, file] : BoundFiles()) files.push_back(file);
  files.insert(files.end(), operators.begin(), operators.end());
  return files;
}

std::map<std::string, std::string> ModelOptions::BoundFiles() const {
  std::map<std::string, std::string> files;
  for (const std::string& text : bindings) {
    const absl::StatusOr<NamedText> binding = SplitBinding(text);
    if (binding.ok() && IsFile(binding->value)) files[binding->name] = binding->value;
  }
  return files;
}

absl::StatusOr<graph::ImportOptions> ModelOptions::Import() const {
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::ImportOptions> imports, Imports());
  if (imports.size() > 1) {
    return UsageError(
        fmt::format("--shape gives an input {} shapes, and this command takes one; give one of them", imports.size()));
  }
  return imports.front();
}

absl::StatusOr<std::vector<graph::ImportOptions>> ModelOptions::Imports() const {
  HONE_ASSIGN_OR_RETURN(const graph::ImportOptions options, ImportWithoutShapes());
  std::map<std::string, std::vector<std::vector<graph::DimRange>>> given;  // by input
  for (const std::string& text : shapes) {
    HONE_ASSIGN_OR_RETURN(const NamedText named, SplitName("--shape", text, "name=1,3,224,224"));
    HONE_ASSIGN_OR_RETURN(std::vector<graph::DimRange> shape, ParseShape("--shape", named.value, text));
    given[named.name].push_back(std::move(shape));
  }
  size_t count = 1;
  for (const auto& [name, alternatives] : given) count = std::max(count, alternatives.size());
  std::vector<graph::ImportOptions> imports(count, options);
  for (const auto& [name, alternatives] : given) {
    if (alternatives.size() != 1 && alternatives.size() != count) {
      return UsageError(fmt::format(
          "--shape gives input '{}' {} shapes and another input {}; give each input one shape, or as many as the other",
          name, alternatives.size(), count));
    }
    for (size_t i = 0; i < count; ++i) imports[i].shapes[name] = alternatives[alternatives.size() == 1 ? 0 : i];
  }
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (imports[i].shapes == imports[j].shapes)
        return UsageError("--shape gives the same shapes twice; give each once");
    }
  }
  return imports;
}

absl::StatusOr<graph::ImportOptions> ModelOptions::ImportWithoutShapes() const {
  graph::ImportOptions options;
  options.loop_steps = loop_steps;
  options.defaults_are_constants = constant_defaults;
  options.fallback = !fallback.empty();
  options.warn = [told = std::make_shared<std::set<std::string>>()](const std::string& text) {
    if (told->insert(text).second) PrintMessage(fmt::format("warning: {}\n", text));  // once, also for several targets
  };
  if (!operators.empty()) {
    HONE_ASSIGN_OR_RETURN(graph::CustomOperators defined, graph::ReadOperators(operators));
    options.operators = std::make_shared<const graph::CustomOperators>(std::move(defined));
  }
  for (const std::string& text : bindings) {
    HONE_ASSIGN_OR_RETURN(const NamedText binding, SplitBinding(text));
    if (options.bound_inputs.contains(binding.name) || options.bound_texts.contains(binding.name)) {
      return UsageError(fmt::format("--bind names '{}' twice", binding.name));
    }
    if (IsFile(binding.value)) {
      HONE_ASSIGN_OR_RETURN(options.bound_inputs[binding.name], package::ReadNpyConstant(binding.value));
    } else {
      options.bound_texts[binding.name] = binding.value;
    }
  }
  return options;
}

absl::StatusOr<std::vector<std::vector<target::Target>>> ModelOptions::TargetLists() const {
  std::vector<std::vector<target::Target>> result;
  std::set<std::string> seen;
  for (const std::string& target : targets.empty() ? std::vector<std::string>{"cpu"} : targets) {
    absl::StatusOr<std::vector<target::Target>> parsed = ParseTargetList(target);
    if (!parsed.ok()) return UsageError(std::string(parsed.status().message()));
    for (target::Target& unit : *parsed) {
      if (threads > 0) unit.threads = threads;  // affects CPU kernels only
    }
    if (!seen.insert(PrintTargetList(*parsed)).second) {
      return UsageError(fmt::format("--target '{}' is given twice; give each target once", target));
    }
    result.push_back(*std::move(parsed));
  }
  return result;
}

absl::StatusOr<std::vector<target::Target>> ModelOptions::Targets() const {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<target::Target>> lists, TargetLists());
  std::vector<target::Target> result;
  for (const std::vector<target::Target>& list : lists) {
    if (list.size() > 1) {
      return UsageError(fmt::format("--target '{}' joins several targets, and this command takes one; name one of them",
                                    PrintTargetList(list)));
    }
    result.push_back(list.front());
  }
  return result;
}

absl::StatusOr<package::Placement> ModelOptions::PlacementOn(const std::vector<target::Target>& units) const {
  package::Placement placement;
  for (const std::string& text : places) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return UsageError(fmt::format("--place {} names no operator and kind; write softmax=cpu", text));
    }
    const std::string op = text.substr(0, equals), kind = text.substr(equals + 1);
    const auto unit = std::ranges::find_if(
        units, [&](const target::Target& target) { return target::KindName(target.kind) == kind; });
    if (unit == units.end()) {
      return UsageError(fmt::format("--place {}: no target of --target '{}' is of the kind '{}'", text,
                                    PrintTargetList(units), kind));
    }
    if (!placement.by_operator.emplace(op, static_cast<int>(unit - units.begin())).second) {
      return UsageError(fmt::format("--place names '{}' twice", op));
    }
  }
  return placement;
}

absl::Status AddDefaultRanges(const std::string& path, graph::ImportOptions& import) {
  HONE_ASSIGN_OR_RETURN(graph::OpenRanges open, graph::ChooseOpenRanges(path, import));
  import.ranges = std::move(open.ranges);
  if (!open.shapes.empty()) {
    PrintMessage(fmt::format("{} leaves dimensions open; they get ranges, which --shape changes: --shape {}\n", path,
                             fmt::join(open.shapes, " --shape ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<target::Target>> ParseTargetList(std::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(target::TargetWords(), ", ");
  const auto begins_target = [&](std::string_view rest) {
    const size_t start = std::min(rest.find_first_not_of(" \t"), rest.size());
    const std::string_view word = rest.substr(start, rest.find_first_of(" \t+", start) - start);
    return std::ranges::find(words, word) != words.end();
  };
  std::vector<target::Target> units;
  std::set<std::string> seen;
  while (true) {
    size_t plus = text.find('+');
    while (plus != std::string_view::npos && !begins_target(text.substr(plus + 1))) plus = text.find('+', plus + 1);
    std::string one(text.substr(0, plus));
    absl::StripAsciiWhitespace(&one);
    if (one.empty()) return absl::InvalidArgumentError("target: the text is empty or begins with '+'; name a target");
    HONE_ASSIGN_OR_RETURN(units.emplace_back(), target::ParseTarget(one));
    if (!seen.insert(target::Print(units.back())).second) {
      return absl::InvalidArgumentError(fmt::format("target: '{}' is joined with itself", one));
    }
    if (plus == std::string_view::npos) return units;
    text.remove_prefix(plus + 1);
  }
}

std::string PrintTargetList(const std::vector<target::Target>& units) {
  std::string text;
  for (const target::Target& unit : units) text += (text.empty() ? "" : " + ") + target::Print(unit);
  return text;
}

}  // namespace hone::cli
