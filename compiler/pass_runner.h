// SPDX-License-Identifier: Apache-2.0
// Runs passes over a program: names, times, verifies, compares and reports them, and writes a reproducer when one
// breaks something. One runner for the graph and for funcs.
//
// Not here: which passes there are. compiler/graph/passes/pipeline.cc and compiler/passes/pipeline.cc each have one
// table. A Program is a value with three functions beside it in its namespace: Print (text that parses back), Verify
// and Equal. Start with RunPasses; docs/PASSES.md says how to add a pass.
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

// Developers' builds check the legality rules after every pass; release builds where it is asked for.
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

// What is known of one pass after it ran.
struct PassRun {
  std::string_view pass;
  std::chrono::duration<double, std::milli> took;
  std::optional<bool> changed;  // set with PassOptions::compare
};

// A reproducer is a text file for hone-opt: the passes from the failing one on, and the program before them.
struct ReproducerOptions {
  std::string folder;                   // made when the first is written; empty: none is written
  std::string flags = "--verify-each";  // what hone-opt needs besides the file to see the failure again
  // None for FailedPrecondition: there a pass refuses what a schedule asks for, which in a search is no news.
  bool only_bugs = false;
};

template <typename Program>
struct PassOptions {
  bool verify = kDevBuild;                 // the program before the first pass, and after every pass
  bool compare = false;                    // find out whether each pass changed the program; costs a copy of it
  std::string_view made_by = "its maker";  // who is to blame if the program is illegal before the first pass
  // Called after every pass, if set. An error is the pass's failure.
  std::function<absl::Status(const PassRun& run, const Program& program)> after;
  ReproducerOptions reproducer;
};

// What --reproducers DIR of `hone` asks for: every pass is verified, and a reproducer written where one is at fault.
// The plain options if the folder is empty.
template <typename Program>
PassOptions<Program> Reproducing(const std::string& folder) {
  PassOptions<Program> options;
  options.verify |= !folder.empty();
  options.reproducer = {.folder = folder, .only_bugs = true};
  return options;
}

// Internal, "the program is illegal after <pass>: <why>", unless the verdict is OK.
absl::Status IllegalAfter(std::string_view pass, const absl::Status& verdict);
// The status with where the reproducer is and how to replay it in its message. `passes`: the failing one and those that
// were to follow, with commas between. No other error hides that of the pass: where the file cannot be written, it says
// so.
absl::Status WithReproducer(const absl::Status& status, std::string_view passes, std::string_view program,
                            const ReproducerOptions& options);

template <typename Program>
std::string JoinNames(std::span<const Pass<Program>> passes) {
  std::string names;
  for (const Pass<Program>& pass : passes) names.append(names.empty() ? "" : ",").append(pass.name);
  return names;
}

// Runs the passes in order and stops at the first that fails. Errors: that of the pass, its name before it; Internal if
// a pass left an illegal program. The program is then as the pass left it.
template <typename Program>
absl::Status RunPasses(std::span<const Pass<Program>> passes, Program& program,
                       const PassOptions<Program>& options = {}) {
  using Clock = std::chrono::steady_clock;
  if (options.verify) HONE_RETURN_IF_ERROR(IllegalAfter(options.made_by, Verify(program)));
  for (size_t i = 0; i < passes.size(); ++i) {
    std::optional<Program> before;
    if (options.compare || !options.reproducer.folder.empty()) before = program;
    const Clock::time_point start = Clock::now();
    absl::Status status = Annotate(passes[i].run(program), "pass " + std::string(passes[i].name));
    PassRun run{.pass = passes[i].name, .took = Clock::now() - start};
    if (status.ok() && options.compare) run.changed = !Equal(*before, program);
    if (status.ok() && options.verify) status = IllegalAfter(run.pass, Verify(program));
    if (status.ok() && options.after) {
      status = Annotate(options.after(run, program), "after pass " + std::string(run.pass));
    }
    if (status.ok()) continue;
    const bool wanted = !options.reproducer.only_bugs || !absl::IsFailedPrecondition(status);
    if (options.reproducer.folder.empty() || !wanted) return status;
    return WithReproducer(status, JoinNames(passes.subspan(i)), Print(*before), options.reproducer);
  }
  return absl::OkStatus();
}

// InvalidArgument naming the unknown pass and listing, once each, those that are known (names with commas between).
absl::Status UnknownPass(std::string_view name, std::string_view known);
// The names of a list with commas between them; blanks and empty names are skipped.
std::vector<std::string_view> SplitNames(std::string_view list);

// The passes of those names from the table or from `others`, in the order of the list; "all" stands for the whole
// table.
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
    if (at == known.size()) return UnknownPass(name, JoinNames<Program>(known));
    selected.push_back(known[at]);
  }
  return selected;
}

}  // namespace hone

#endif  // HONE_COMPILER_PASS_RUNNER_H_
