// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "fmt/format.h"

namespace hone::fuzz {
namespace {

struct Options {
  int64_t graphs = 200;
  uint64_t seed = 1;
  bool open = false;
  std::string reproducers = "fuzz-reproducers";
};

// A string in shared memory that survives a crash of its writer.
template <size_t capacity>
class SharedText {
 public:
  void Set(std::string_view text) {
    length_ = std::min(text.size(), capacity);
    std::memcpy(bytes_, text.data(), length_);
  }
  std::string_view Get() const { return {bytes_, length_}; }

 private:
  size_t length_;
  char bytes_[capacity];
};

// A device's driver may keep every kernel that it has loaded: PoCL reaches the system's limit of mappings after 13,000.
constexpr uint64_t kGraphsOfAProcess = 1000;

uint64_t EndOf(const Options& options) { return options.seed + static_cast<uint64_t>(options.graphs); }

// Shared memory of parent and child.
struct Progress {
  uint64_t seed;  // the seed being checked; all seeds before it are done
  int64_t failures;
  Counts counts;
  SharedText<4096> what, flags;
  SharedText<(1 << 22)> text;
};

void Report(Progress& progress, std::string_view why, const Options& options, std::string_view program) {
  ++progress.failures;
  std::filesystem::create_directories(options.reproducers);
  const std::string file = fmt::format("{}/{}-{}.txt", options.reproducers, program, progress.seed);
  std::ofstream(file) << progress.text.Get();
  fmt::print("seed {}: {}: {}\n  the text for hone-opt:\n{}\n  {} {}--only-seed {}\n", progress.seed,
             progress.what.Get(), why, progress.text.Get(), program, options.open ? "--open-sizes " : "",
             progress.seed);
  if (!progress.text.Get().empty()) fmt::print("  hone-opt {} {}\n", file, progress.flags.Get());
  std::fflush(stdout);
}

void CheckAll(Progress& progress, const Machine& machine, const Options& options, std::string_view program) {
  const Watch watch = [&](const Attempt& attempt) {
    progress.what.Set(attempt.what);
    progress.text.Set(attempt.text);
    progress.flags.Set(attempt.flags);
  };
  const uint64_t end = std::min(EndOf(options), progress.seed + kGraphsOfAProcess);
  for (; progress.seed < end; ++progress.seed) {
    const absl::Status status = CheckGraph(progress.seed, options.open, machine, watch, progress.counts);
    if (!status.ok()) Report(progress, std::string(status.message()), options, program);
  }
}

// Set by the signal handler, which may do nothing else.
volatile sig_atomic_t stopped = 0;

void OnStop(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

// Waits for the child, or kills it if this process is asked to stop.
int StatusOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
    HONE_CHECK(errno == EINTR);
    if (stopped) kill(child, SIGKILL);
  }
  return status;
}

// Runs one child. Returns true if all seeds are done or the run is to end.
bool RunChild(Progress& progress, const std::function<Machine()>& open, const Options& options,
              std::string_view program) {
  const pid_t child = fork();
  if (child == 0) {
    OnStop(SIG_DFL);
    CheckAll(progress, open(), options, program);
    std::fflush(stdout);
    _exit(0);  // drivers leave threads behind
  }
  HONE_CHECK(child > 0);
  const int status = StatusOf(child);
  if (stopped) return true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return progress.seed == EndOf(options);
  Report(progress, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the process ended", options, program);
  ++progress.seed;
  return false;
}

}  // namespace

int Fuzz(int argc, char** argv, const std::function<Machine()>& open) {
  Options options;
  const std::string program = std::filesystem::path(argv[0]).filename();
  CLI::App app("Checks the compiler on random graphs and schedules against the interpreter", program);
  app.add_option("--graphs", options.graphs, "how many")->capture_default_str();
  app.add_option("--seed", options.seed, "of the first graph; the others have the seeds after it")
      ->capture_default_str();
  app.add_option_function<uint64_t>(
      "--only-seed",
      [&](const uint64_t& seed) {
        options.seed = seed;
        options.graphs = 1;
      },
      "check only the graph of this seed");
  app.add_flag("--open-sizes", options.open,
               "graphs with open sizes, which are compiled once and run at several sizes");
  app.add_option("--reproducers", options.reproducers, "folder for the texts of what fails")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HONE_CHECK(shared != MAP_FAILED);
  Progress& progress = *static_cast<Progress*>(shared);  // all zero
  progress.seed = options.seed;
  OnStop([](int) { stopped = 1; });
  while (!RunChild(progress, open, options, program)) continue;
  const Counts& counts = progress.counts;
  if (stopped) fmt::print("stopped at seed {}\n", progress.seed);
  fmt::print(
      "{}: {} graphs from seed {}: {} nodes, {} workloads, {} of them with open sizes; {} schedules lowered and "
      "interpreted, {} of them "
      "compiled and run, {} dropped; {} failures\n",
      program, counts.graphs, options.seed, counts.nodes, counts.workloads, counts.open, counts.lowered, counts.run,
      counts.dropped, progress.failures);
  return progress.failures == 0 && !stopped ? 0 : 1;
}

}  // namespace hone::fuzz
