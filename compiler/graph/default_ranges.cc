// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/default_ranges.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/status.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/onnx_reader.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

constexpr int64_t kBatchMax = 8, kSizeMaxLeast = 32, kSizeMaxMost = 512;
constexpr int64_t kLiveBytesMax = int64_t{1} << 30;
constexpr int kImportsMax = 64;        // tried in search of ranges
constexpr int kProducersMax = 4;       // nodes between a constant and the node whose problem it explains
constexpr size_t kCandidatesMax = 16;  // numbers tried for one problem

// How the ranges of all dimensions but batches begin, in the order of preference.
struct RangeForm {
  int64_t min, step;
  int64_t past_min;  // the least length of a past, such as that of cached keys
};
constexpr RangeForm kForms[] = {{1, 1, 0}, {1, 1, 1}, {8, 1, 8}, {32, 1, 32}, {8, 8, 8}, {32, 32, 32}};

struct OpenDim {
  std::string name;  // of its size
  const RawInput* input;
  size_t dimension;
  bool is_batch;
};

bool NameHas(const RawDimension& dimension, std::string_view word) {
  return absl::StrContains(absl::AsciiStrToLower(dimension.symbol), std::string(word));
}

// A dimension whose name says so; or the first of several, if no other one is named so and its name says nothing else.
bool IsBatch(const RawInput& input, size_t d) {
  const std::vector<RawDimension>& dims = *input.shape;
  if (NameHas(dims[d], "batch") && !absl::StrContains(dims[d].symbol, "+")) return true;
  const bool other = std::ranges::any_of(dims, [](const RawDimension& dim) { return NameHas(dim, "batch"); });
  constexpr std::string_view kLengths[] = {"seq", "len", "time", "frame", "token", "sample", "step"};
  const bool is_length = std::ranges::any_of(kLengths, [&](std::string_view word) { return NameHas(dims[d], word); });
  return d == 0 && dims.size() > 1 && !other && !is_length;
}

int64_t ExampleNumber(const RawInput& input, size_t d) {
  constexpr int64_t kChannels = 3, kImage = 224, kLength = 64;
  if (IsBatch(input, d)) return 1;
  if (input.shape->size() != 4) return kLength;
  return d == 1 ? kChannels : kImage;
}

// The open dimensions that the options do not decide, one for each size.
std::vector<OpenDim> OpenDims(const std::vector<RawInput>& inputs, const ImportOptions& options) {
  std::vector<OpenDim> result;
  const absl::StatusOr<DimRanges> bound = BindSymbols(inputs, options);
  if (!bound.ok()) return result;  // an import says so
  DimRanges known = *bound;
  for (const bool sums : {false, true}) {  // names of sums come last, because they may be sums of others
    for (const RawInput& input : inputs) {
      if (!input.shape || !input.type_error.ok() || IsGiven(input, options)) continue;
      for (size_t d = 0; d < input.shape->size(); ++d) {
        const std::string name = SizeName(input, d);
        const bool is_sum = absl::StrContains(name, "+");
        if ((*input.shape)[d].extent || is_sum != sums || SumOf(name, known).has_value()) continue;
        if (known.emplace(name, DimRange()).second) result.push_back({name, &input, d, IsBatch(input, d)});
      }
    }
  }
  return result;
}

std::vector<RawInput> RunTimeInputs(const RawGraph& graph) {
  std::set<std::string> constants;
  for (const RawInitializer& tensor : graph.initializers) constants.insert(tensor.name);
  std::vector<RawInput> inputs;
  std::ranges::copy_if(graph.inputs, std::back_inserter(inputs),
                       [&](const RawInput& input) { return !constants.contains(input.name); });
  return inputs;
}

class RangeChooser {
 public:
  RangeChooser(const RawModel& model, const ImportOptions& options, const TryImport& import)
      : model_(model), options_(options), import_(import), inputs_(RunTimeInputs(model.graph)) {
    dims_ = OpenDims(inputs_, options);
    for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
      const RawNode& node = model.graph.nodes[i];
      nodes_.emplace(NameOf(node, i), i);
      for (const std::string& output : node.outputs) producers_.emplace(output, i);
    }
    for (const RawInitializer& tensor : model.graph.initializers) constants_.emplace(tensor.name, &tensor);
  }

  absl::StatusOr<DimRanges> Run() {
    if (dims_.empty()) return options_.ranges;
    tried_ = Try(RangesOf(choice_));
    while (const std::optional<ImportProblem> problem = FirstProblem(tried_)) {
      if (!Solve(*problem)) return Refusal(*problem);
    }
    FitMemory();
    return RangesOf(choice_);
  }

 private:
  struct Choice {
    int64_t max = kSizeMaxMost;
    size_t form = 0;                         // index into kForms
    std::map<std::string, int64_t> numbers;  // by name: sizes that are one number
  };

  DimRange RangeOf(const OpenDim& dim, const Choice& choice) const {
    if (const auto number = choice.numbers.find(dim.name); number != choice.numbers.end()) return number->second;
    if (dim.is_batch) return {1, kBatchMax};
    const RangeForm& form = kForms[choice.form];
    const bool is_past = NameHas((*dim.input->shape)[dim.dimension], "past");
    return {is_past ? form.past_min : form.min, choice.max, form.step};
  }

  DimRanges RangesOf(const Choice& choice) const {
    DimRanges ranges = options_.ranges;
    for (const OpenDim& dim : dims_) ranges[dim.name] = RangeOf(dim, choice);
    return ranges;
  }

  TriedImport Try(const DimRanges& ranges) {
    ++imports_;
    ImportOptions options = options_;
    options.ranges = ranges;
    return import_(options);
  }

  // The first problem that other sizes may solve.
  std::optional<ImportProblem> FirstProblem(const TriedImport& tried) {
    std::optional<ImportProblem> first;
    for (const ImportProblem& problem : tried.report.problems) {
      const bool any_size = problem.kind == ProblemKind::kOperator || problem.kind == ProblemKind::kControlFlow ||
                            problem.kind == ProblemKind::kOpset || problem.kind == ProblemKind::kOpenShape;
      if (any_size || Numbered().texts.contains(problem.text)) continue;
      if (!first || PlaceOf(problem) < PlaceOf(*first)) first = problem;
    }
    return first;
  }

  // The problems if every open dimension has its example number.
  struct Problems {
    std::set<std::string> texts, nodes;
  };
  const Problems& Numbered() {
    if (numbered_) return *numbered_;
    numbered_.emplace();
    for (const ImportProblem& problem : Try(AssumedNumbers(model_, options_)).report.problems) {
      numbered_->texts.insert(problem.text);
      numbered_->nodes.insert(problem.node);
    }
    return *numbered_;
  }

  size_t PlaceOf(const ImportProblem& problem) const {
    const auto place = nodes_.find(problem.node);
    return place == nodes_.end() ? 0 : place->second;
  }

  bool Solves(const Choice& choice, const ImportProblem& problem, TriedImport* tried) {
    if (imports_ >= kImportsMax) return false;
    *tried = Try(RangesOf(choice));
    const std::optional<ImportProblem> next = FirstProblem(*tried);
    return !next || PlaceOf(*next) > PlaceOf(problem);
  }

  // Whether the choice solves the problem, and the same with the next number of that size does not: the size can only
  // be this number.
  bool IsOnlyNumber(const Choice& choice, const std::string& name, const ImportProblem& problem, TriedImport* tried) {
    TriedImport of_next;
    Choice next = choice;
    ++next.numbers[name];
    return Solves(choice, problem, tried) && !Solves(next, problem, &of_next) && imports_ < kImportsMax;
  }

  bool Solve(const ImportProblem& problem) {
    TriedImport tried;
    const auto take = [&](const Choice& choice) {
      choice_ = choice;
      tried_ = std::move(tried);
      return true;
    };
    Choice choice = choice_;
    for (choice.form = choice_.form + 1; choice.form < std::size(kForms); ++choice.form) {
      if (Solves(choice, problem, &tried)) return take(choice);
    }
    choice = choice_;
    while ((choice.max /= 2) >= kSizeMaxLeast) {
      if (Solves(choice, problem, &tried)) return take(choice);
    }
    const std::set<int64_t> candidates = CandidatesFor(problem);
    for (size_t form = choice_.form; form < std::size(kForms); ++form) {
      for (const OpenDim& dim : dims_) {
        if (choice_.numbers.contains(dim.name)) continue;
        for (const int64_t number : candidates) {
          choice = choice_;
          choice.form = form;
          choice.numbers[dim.name] = number;
          if (IsOnlyNumber(choice, dim.name, problem, &tried)) return take(choice);
        }
      }
    }
    return false;
  }

  // Numbers to which the node may tie a size: 1, and the extents of the constants that it reads, perhaps by way of a
  // few other nodes.
  std::set<int64_t> CandidatesFor(const ImportProblem& problem) const {
    std::set<int64_t> numbers = {1};
    const auto node = nodes_.find(problem.node);
    std::vector<size_t> layer;
    if (node != nodes_.end()) layer.push_back(node->second);
    for (int depth = 0; depth <= kProducersMax; ++depth) {
      std::vector<size_t> next;
      for (const size_t n : layer) {
        for (const std::string& input : model_.graph.nodes[n].inputs) {
          if (const auto producer = producers_.find(input); producer != producers_.end()) {
            next.push_back(producer->second);
          }
          const auto constant = constants_.find(input);
          if (constant == constants_.end() || !constant->second->constant.ok()) continue;
          for (const ir::Size& extent : constant->second->constant->type.shape) {
            if (numbers.size() < kCandidatesMax) numbers.insert(extent.value());
          }
        }
      }
      layer = std::move(next);
    }
    return numbers;
  }

  absl::Status Refusal(const ImportProblem& problem) {
    DimRanges ranges = ExampleNumbers(model_, RangesOf(choice_));
    std::vector<std::string> culprits;
    const bool numbers_work = !Numbered().nodes.contains(problem.node);
    for (const OpenDim& dim : dims_) {
      DimRanges open = ranges;
      open[dim.name] = RangeOf(dim, choice_);
      const bool works = numbers_work && !FirstProblem(Try(open)).has_value();
      if (works) {
        ranges = std::move(open);
      } else {
        culprits.push_back(fmt::format("dimension {} ('{}') of input '{}'", dim.dimension,
                                       (*dim.input->shape)[dim.dimension].symbol.empty() ? "?" : dim.name,
                                       dim.input->name));
      }
    }
    return absl::InvalidArgumentError(fmt::format("{} cannot be open: {}; give {}, for example with --shape {}",
                                                  fmt::join(culprits, " and "), problem.text,
                                                  culprits.size() == 1 ? "it a number" : "them numbers",
                                                  fmt::join(ShapeTexts(model_, options_, ranges), " --shape ")));
  }

  void FitMemory() {
    const bool adjustable =
        std::ranges::any_of(dims_, [&](const OpenDim& d) { return !d.is_batch && !choice_.numbers.contains(d.name); });
    while (adjustable && tried_.live_bytes > kLiveBytesMax && choice_.max > kSizeMaxLeast) {
      Choice smaller = choice_;
      smaller.max /= 2;
      TriedImport tried = Try(RangesOf(smaller));
      if (FirstProblem(tried)) return;
      choice_ = smaller;
      tried_ = std::move(tried);
    }
  }

  const RawModel& model_;
  const ImportOptions& options_;
  const TryImport& import_;
  std::vector<RawInput> inputs_;
  std::vector<OpenDim> dims_;                        // refer to inputs_
  std::map<std::string, size_t> nodes_, producers_;  // indices of nodes, by name and by output
  std::map<std::string, const RawInitializer*> constants_;
  Choice choice_;
  TriedImport tried_;  // with choice_
  std::optional<Problems> numbered_;
  int imports_ = 0;
};

}  // namespace

absl::StatusOr<DimRanges> ChooseRanges(const RawModel& model, const ImportOptions& options, const TryImport& import) {
  const TryImport proving = [&](const ImportOptions& tried) {
    ImportOptions strict = tried;
    strict.proves_sizes = true;
    return import(strict);
  };
  absl::StatusOr<DimRanges> ranges = RangeChooser(model, options, proving).Run();
  return ranges.ok() ? std::move(ranges) : RangeChooser(model, options, import).Run();
}

DimRanges AssumedNumbers(const RawModel& model, const ImportOptions& options) {
  const std::vector<RawInput> inputs = RunTimeInputs(model.graph);
  DimRanges numbers = options.ranges;
  for (const OpenDim& dim : OpenDims(inputs, options)) numbers[dim.name] = ExampleNumber(*dim.input, dim.dimension);
  return numbers;
}

DimRanges ExampleNumbers(const RawModel& model, const DimRanges& ranges) {
  DimRanges numbers = ranges;
  std::set<std::string> seen;
  for (const RawInput& input : RunTimeInputs(model.graph)) {
    for (size_t d = 0; input.shape && d < input.shape->size(); ++d) {
      const auto range = numbers.find(SizeName(input, d));
      if ((*input.shape)[d].extent || range == numbers.end() || !seen.insert(range->first).second) continue;
      const int64_t number = std::clamp(ExampleNumber(input, d), range->second.min, range->second.max);
      range->second = number / range->second.step * range->second.step;
    }
  }
  return numbers;
}

std::vector<std::string> ShapeTexts(const RawModel& model, const ImportOptions& options, const DimRanges& ranges) {
  const std::vector<RawInput> inputs = RunTimeInputs(model.graph);
  DimRanges known = BindSymbols(inputs, options).value_or(DimRanges());
  known.insert(ranges.begin(), ranges.end());
  std::set<std::string> stated;
  std::vector<std::string> texts;
  for (const RawInput& input : inputs) {
    if (!input.shape || IsGiven(input, options)) continue;
    std::vector<std::string> extents;
    bool states_more = false;
    for (size_t d = 0; d < input.shape->size(); ++d) {
      const std::string name = SizeName(input, d);
      const std::optional<int64_t>& extent = (*input.shape)[d].extent;
      if (const std::optional<ir::Size> sum = SumOf(name, known); !extent && sum.has_value()) {
        extents.push_back(Print(DimRange(sum->min(), sum->max())));
        continue;
      }
      const auto range = known.find(name);
      extents.push_back(extent ? std::to_string(*extent) : range == known.end() ? "?" : Print(range->second));
      if (!extent && ranges.contains(name)) states_more |= stated.insert(name).second;
    }
    if (states_more) texts.push_back(fmt::format("{}={}", input.name, fmt::join(extents, ",")));
  }
  return texts;
}

int64_t LargestLiveBytes(const Graph& graph) {
  const auto bytes_of = [&](ValueId id) {
    const Value& value = graph.values[id];
    if (value.data != nullptr || value.elements != nullptr) return 0.0;
    double bytes = SizeOf(value.type.dtype);
    for (const int64_t extent : ir::MaxValues(value.type.shape)) bytes *= static_cast<double>(extent);
    return bytes;
  };
  std::vector<size_t> last_use(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) {
      if (id != kAbsent) last_use[id] = i;
    }
  }
  for (const std::vector<ValueId>* ports : {&graph.inputs, &graph.outputs}) {
    for (const ValueId id : *ports) last_use[id] = graph.nodes.size();
  }
  double live = 0;
  for (const ValueId id : graph.inputs) live += bytes_of(id);
  double most = live;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const ValueId id : node.outputs) live += id == kAbsent ? 0 : bytes_of(id);
    most = std::max(most, live);
    std::set<ValueId> ended(node.inputs.begin(), node.inputs.end());
    ended.insert(node.outputs.begin(), node.outputs.end());
    for (const ValueId id : ended) live -= id != kAbsent && last_use[id] == i ? bytes_of(id) : 0;
  }
  return static_cast<int64_t>(std::min(most, 1e18));
}

}  // namespace hone::graph
