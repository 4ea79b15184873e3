// SPDX-License-Identifier: Apache-2.0
// The pass runner: runs passes over a program, names, times and verifies them, reports what changed, and writes a
// reproducer when a pass fails. It serves graphs and funcs alike.
//
// Not here: the lists of passes. compiler/graph/passes/pipeline.cc and compiler/passes/pipeline.cc have one table each.
// A Program is a value type with three functions in its namespace: Print (text that parses back), Verify and Equal.
// Start with RunPasses; docs/PASSES.md says how to add a pass.
#ifndef HONE_COMPILER_PASS_RUNNER_H_
#define HONE_COMPILER_PASS_RUNNER_H_

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"

namespace hone {

// Developer builds verify the program after every pass; release builds only on request.
#ifdef NDEBUG
inline constexpr bool kDevBuild = false;
#else
inline constexpr bool kDevBuild = true;
#endif

template <typename Program>
struct Pass {
  std::string_view name;  // snake_case; a table may hold a pass several times, always under the same name
  absl::Status (*run)(Program& program);
};

// Facts about one pass after it ran.
struct PassRun {
  std::string_view pass;
  std::chrono::duration<double, std::milli> took;
  std::optional<bool> changed;  // set only with PassOptions::compare
};

// Where and when to write reproducers. A reproducer is a text file for hone-opt with the program before the failing
// pass and the list of passes from that one on.
struct ReproducerOptions {
  std::string folder;                   // created with the first reproducer; empty: no reproducers
  std::string flags = "--verify-each";  // hone-opt flags that show the failure again
  // If true, no reproducer is written for FailedPrecondition. This error means that a pass rejects a schedule, which is
  // normal during a search.
  bool only_bugs = false;
};

template <typename Program>
struct PassOptions {
  bool verify = kDevBuild;  // verify the program before the first pass and after every pass
  bool compare = false;     // find out whether each pass changed the program; costs a copy of the program per pass
  std::string_view producer = "its maker";  // named in the error if the program is illegal before the first pass
  // Called after every pass, if set. An error counts as a failure of the pass.
  std::function<absl::Status(const PassRun& run, const Program& program)> after;
  ReproducerOptions reproducer;
};

// The options for `hone --reproducers DIR`: every pass is verified, and reproducers of bugs are written to `folder`.
// Returns the default options if the folder is empty.
template <typename Program>
PassOptions<Program> ReproducerPassOptions(const std::string& folder) {
  PassOptions<Program> options;
  options.verify |= !folder.empty();
  options.reproducer = {.folder = folder, .only_bugs = true};
  return options;
}

// Returns OK if `verdict` is OK, else Internal: "the program is illegal after <pass>: <why>".
absl::Status CheckLegalAfter(std::string_view pass, const absl::Status& verdict);
// Writes a reproducer and returns `status` with the reproducer's path and the command to replay it appended to its
// message. `passes` names the failing pass and those after it, separated by commas. The pass's error is never replaced:
// if the file cannot be written, the message says so.
absl::Status WriteReproducer(const absl::Status& status, std::string_view passes, std::string_view program,
                             const ReproducerOptions& options);

template <typename Program>
std::string JoinNames(std::span<const Pass<Program>> passes) {
  std::string names;
  for (const Pass<Program>& pass : passes) names.append(names.empty() ? "" : ",").append(pass.name);
  return names;
}

// Runs the passes in order and stops at the first failure, leaving the program as the failing pass left it. Errors: the
// error of the pass, prefixed with its name; Internal if a pass left an illegal program.
template <typename Program>
absl::Status RunPasses(std::span<const Pass<Program>> passes, Program& program,
                       const PassOptions<Program>& options = {}) {
  using Clock = std::chrono::steady_clock;
  if (options.verify) HONE_RETURN_IF_ERROR(CheckLegalAfter(options.producer, Verify(program)));
  for (size_t i = 0; i < passes.size(); ++i) {
    std::optional<Program> before;
    if (options.compare || !options.reproducer.folder.empty()) before = program;
    const Clock::time_point start = Clock::now();
    absl::Status status = Annotate(passes[i].run(program), "pass " + std::string(passes[i].name));
    PassRun run{.pass = passes[i].name, .took = Clock::now() - start};
    if (status.ok() && options.compare) run.changed = !Equal(*before, program);
    if (status.ok() && options.verify) status = CheckLegalAfter(run.pass, Verify(program));
    if (status.ok() && options.after) {
      status = Annotate(options.after(run, program), "after pass " + std::string(run.pass));
    }
    if (status.ok()) continue;
    const bool wanted = !options.reproducer.only_bugs || !absl::IsFailedPrecondition(status);
    if (options.reproducer.folder.empty() || !wanted) return status;
    return WriteReproducer(status, JoinNames(passes.subspan(i)), Print(*before), options.reproducer);
  }
  return absl::OkStatus();
}

// Returns InvalidArgument that names the unknown pass and lists each known pass once. `known`: names separated by
// commas.
absl::Status UnknownPassError(std::string_view name, std::string_view known);
// Splits a list at commas. Blanks around names and empty names are dropped.
std::vector<std::string_view> SplitNames(std::string_view list);

// Returns the passes named in `list` (separated by commas), in its order, from the table or from `others`. "all" stands
// for the whole table. InvalidArgument for an unknown name.
template <typename Program>
absl::StatusOr<std::vector<Pass<Program>>> SelectPasses(std::span<const Pass<Program>> table, std::string_view list,
                                                        std::span<const Pass<Program>> others = {}) {
  std::vector<Pass<Program>> selected, known(table.begin(), table.end());
  known.insert(known.end(), others.begin(), others.end());
  for (const std::string_view name : SplitNames(list)) {
    if (name == "all") {
      selected.insert(selected.end(), table.begin(), table.end());
      continue;
    }
    size_t at = 0;
    while (at < known.size() && known[at].name != name) ++at;
    if (at == known.size()) return UnknownPassError(name, JoinNames<Program>(known));
    selected.push_back(known[at]);
  }
  return selected;
}

}  // namespace hone

#endif  // HONE_COMPILER_PASS_RUNNER_H_
