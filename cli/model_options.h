// SPDX-License-Identifier: Apache-2.0
// The options that `tune`, `compile`, `submit` and `records` share: the model, its shapes and fixed inputs, and the
// targets to compile for.
#ifndef HONE_CLI_MODEL_OPTIONS_H_
#define HONE_CLI_MODEL_OPTIONS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "compiler/target/target.h"
#include "deploy/package/compile_kernels.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct ModelOptions {
  std::vector<std::string> models;     // paths of ONNX files
  std::vector<std::string> shapes;     // "name=1,3,224,224"; several for one name are alternatives
  std::vector<std::string> bindings;   // "name=1,2,3" or "name=FILE.npy"
  std::vector<std::string> targets;    // as given, each a target or several joined by '+'; empty = this host
  std::vector<std::string> places;     // "softmax=cpu": an operator, and the kind of the target that computes it
  std::vector<std::string> operators;  // files that define operators
  std::string reproducers;             // folder for reproducers of compiler bugs; empty = none are written
  bool constant_defaults = false;      // inputs with a default value are constants
  std::string fallback;                // "onnxruntime": computes what Hone cannot compile; empty: nothing does
  int64_t loop_steps = graph::ImportOptions().loop_steps;
  int threads = 0;  // overrides the targets' number of threads; 0 = the targets' own

  enum class Count { kOne, kSeveral };  // whether an option may be given once or several times
  void AddTo(CLI::App* command, Count models, Count targets);
  // As AddTo, for a command that also works without a model: the model is the option --model.
  void AddOptionalTo(CLI::App* command, Count targets);
  // Adds the model and what it means, without its shapes and targets: for commands that also have a package of it.
  void AddMeaningTo(CLI::App* command);
  void AddTargetTo(CLI::App* command, Count targets);
  // Adds --place, for commands whose --target may join several targets (TargetLists).
  void AddPlaceTo(CLI::App* command);
  bool given() const { return !models.empty(); }

  // Adds --reproducers, for commands that run the compiler in this process.
  void AddReproducersTo(CLI::App* command);

  // The paths of all input files: the models and the files of --bind and --operators.
  std::vector<std::string> Files() const;
  // The .npy files of --bind, by input. A text without a name is left out: Imports refuses it.
  std::map<std::string, std::string> BoundFiles() const;
  // The import options; reads the files of --bind and --operators. Warnings are printed, each once. Usage errors name
  // the wrong option; one is that an input has several shapes.
  absl::StatusOr<graph::ImportOptions> Import() const;
  // The same for commands that take several shapes of an input: one entry for each. The first has the first shape that
  // is given for each input, and so on. An input with one shape has it in all. Usage error: two inputs have several
  // shapes, but not as many.
  absl::StatusOr<std::vector<graph::ImportOptions>> Imports() const;
  // The targets in the order given, or this host's CPU; at least one. Usage error: a target is unknown or given twice,
  // or several are joined.
  absl::StatusOr<std::vector<target::Target>> Targets() const;
  // The same for commands that share a model among several targets: for each --target the targets that it joins, at
  // least one. The model is planned for the first of them, and the others compute what that one cannot.
  absl::StatusOr<std::vector<std::vector<target::Target>>> TargetLists() const;
  // The operators of --place, by the numbers of `units`, a list of TargetLists. Usage error: a text has the wrong form,
  // or no unit is of that kind.
  absl::StatusOr<package::Placement> PlacementOn(const std::vector<target::Target>& units) const;

 private:
  void AddInputsTo(CLI::App* command);
  void AddBindingsTo(CLI::App* command);
  absl::StatusOr<graph::ImportOptions> ImportWithoutShapes() const;
};

// Adds ranges for the dimensions that the model at `path` and the options leave open (graph::ChooseOpenRanges), and
// prints them.
absl::Status AddDefaultRanges(const std::string& path, graph::ImportOptions& import);

// Parses targets joined by '+', as in "opencl + cpu -mattr=+avx2". A '+' separates two targets only if the first word
// of one follows it. InvalidArgument: one of them is unknown, or two are equal.
absl::StatusOr<std::vector<target::Target>> ParseTargetList(std::string_view text);
// The canonical text of the list, which ParseTargetList reads.
std::string PrintTargetList(const std::vector<target::Target>& units);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_OPTIONS_H_
