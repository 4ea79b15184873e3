// SPDX-License-Identifier: Apache-2.0
// hone-opt: runs passes on a program in text form, for developers of passes and for bug reports. See docs/PASSES.md.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/standard_streams.h"
#include "base/status.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/opt/opt.h"

namespace hone::opt {
namespace {

// Reads the stream to its end. `read` reports errors by its state; an iterator would throw.
absl::StatusOr<std::string> ReadAll(std::istream& input, const std::string& path) {
  std::string text;
  char block[1 << 14];
  do {
    input.read(block, sizeof block);
    text.append(block, static_cast<size_t>(input.gcount()));
  } while (input);
  if (input.eof()) return text;
  return absl::NotFoundError(fmt::format("cannot read {}", path));
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (path == "-") return ReadAll(std::cin, "standard input");
  if (path.ends_with(".onnx")) {
    HONE_ASSIGN_OR_RETURN(const graph::Graph graph, graph::ImportOnnx(path, {}));
    return graph::Print(graph);
  }
  std::ifstream file(path, std::ios::binary);
  return ReadAll(file, path);
}

absl::Status Main(const std::string& path, const std::string& target, OptOptions options) {
  if (!target.empty()) {
    HONE_ASSIGN_OR_RETURN(options.target, target::ParseTarget(target));
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  absl::StatusOr<std::string> result = Opt(text, options);
  if (!result.ok()) return Annotate(result.status(), path);
  return WriteStdout(*result) ? absl::OkStatus() : absl::UnavailableError("cannot write to standard output");
}

}  // namespace
}  // namespace hone::opt

int main(int argc, char** argv) {
  hone::OpenClosedStandardStreams();
  CLI::App app("Runs passes of the compiler on the text of a func, a workload with its schedule, or a graph",
               "hone-opt");
  hone::opt::OptOptions options;
  std::string file;
  std::string target;
  bool all = false, changed = false;
  app.add_option("file", file, "file of the text, an ONNX model (.onnx), or - for standard input")->required();
  app.add_option(
      "--passes", options.passes,
      "names of passes separated by commas, or all (default: those in the file's first lines: # run: passes=...)");
  app.add_flag("--print-after-all", all, "write the program to standard error after every pass");
  app.add_flag("--print-after-change", changed, "write the program to standard error after passes that changed it");
  app.add_option("--target", target,
                 "target to lower for, for example 'x86_64 -mcpu=znver4' (default: no particular machine)");
  app.add_flag("--verify-each", options.verify_each, "check the legality rules after every pass");
  app.add_flag("--interpret", options.interpret,
               "run the program before the passes and after each, and compare the results");
  app.add_option("--seed", options.seed, "seed of the random values for --interpret")->capture_default_str();
  app.add_flag("--time-passes", options.time_passes, "write to standard error how long each pass took");
  app.add_flag("--all-constants", options.all_constants, "write large constants of a graph, not only their digests");
  app.add_option("--reproducers", options.reproducers, "folder for files that reproduce the failure of a pass");
  CLI11_PARSE(app, argc, argv);
  options.show = all ? hone::opt::Show::kAll : changed ? hone::opt::Show::kChanged : hone::opt::Show::kResult;
  options.say = [](std::string_view text) { std::cerr << text; };
  const absl::Status status = hone::opt::Main(file, target, std::move(options));
  if (status.ok()) return 0;
  std::cerr << "hone-opt: " << std::string(status.message()) << "\n";
  return 1;
}
