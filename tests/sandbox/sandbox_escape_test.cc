// SPDX-License-Identifier: Apache-2.0
// Kernels that try to escape the sandbox: each must be stopped and recorded with the right kind of failure, as root and
// as an ordinary user, on systems that lack layers. No process may outlive the agent.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/memory_file.h"
#include "base/temporary_folder.h"
#include "device_agent/agent/launcher_process.h"
#include "device_agent/devices/lanes/driver_system_calls.h"
#include "device_agent/launcher/confine_launcher.h"
#include "device_agent/sandbox/sandbox.h"
#include "tests/sandbox/evil_kernels.h"
#include "tests/unit/device_agent/hand_made_kernels.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kSomebody = 54321;  // an ordinary user without files or processes

// How the launcher is started: by whom, and on which system.
struct Circumstances {
  std::string name;
  bool as_root;
  std::string forbidden;  // words of without-calls
  v1::SandboxLevel level;

  friend void PrintTo(const Circumstances& circumstances, std::ostream* out) { *out << circumstances.name; }
};

class SandboxEscapeTest : public testing::TestWithParam<Circumstances> {
 protected:
  void SetUp() override {
    if (getuid() != 0 && GetParam().as_root) GTEST_SKIP() << "needs root";
    // Others than root reach it.
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    victim_ = folder_ / "records";
    std::ofstream(victim_) << "records\n";
    chmod(victim_.c_str(), 0644);
    if (getuid() == 0 && !GetParam().as_root) {
      ASSERT_EQ(chown(victim_.c_str(), kSomebody, kSomebody), 0);
    }
    launcher_ = std::make_unique<Launcher>(Launcher::Options{
        .device = "cpu", .folder = folder_.path(), .program = Program(), .peak_gflops = [] { return 50.0; }});
  }
  // A script that takes the agent's arguments.
  std::string Program() {
    for (const char* binary : {HONE_AGENT_BINARY, HONE_WITHOUT_CALLS_BINARY}) {
      fs::copy_file(binary, folder_ / fs::path(binary).filename().string(), fs::copy_options::overwrite_existing);
    }
    const fs::path script = folder_ / "launch";
    std::string command = "exec";
    if (!GetParam().as_root && getuid() == 0) {
      command += fmt::format(" setpriv --reuid={0} --regid={0} --clear-groups", kSomebody);
    }
    if (!GetParam().forbidden.empty()) {
      command += fmt::format(" {} {} --", (folder_ / "without-calls").string(), GetParam().forbidden);
    }
    std::ofstream(script) << "#!/bin/sh\n" << command << " " << (folder_ / "hone-agent").string() << " \"$@\"\n";
    chmod(script.c_str(), 0755);
    return script;
  }
  v1::Batch Batch(const std::vector<std::string>& kernels, const std::string& constructor = "") {
    v1::Batch batch = HandMadeBatch(kernels);
    batch.set_artifact(EvilArtifact(victim_, constructor));
    return batch;
  }
  v1::BatchResult Run(const v1::Batch& batch) { return launcher_->Run(batch, std::stop_token()); }
  std::map<std::string, v1::Outcome> Measure(const std::vector<std::string>& kernels, double timeout_seconds = 0.3,
                                             double visit_seconds = 0) {
    v1::Batch batch = Batch(kernels);
    batch.mutable_policy()->set_timeout_seconds(timeout_seconds);
    batch.mutable_policy()->set_visit_seconds(visit_seconds);
    const v1::BatchResult result = Run(batch);
    EXPECT_EQ(result.error(), "");
    std::map<std::string, v1::Outcome> outcomes;
    for (const v1::CandidateOutcome& outcome : result.outcomes()) outcomes[outcome.candidate_id()] = outcome.outcome();
    return outcomes;
  }
  void ExpectVictimUnharmed() {
    std::stringstream text;
    text << std::ifstream(victim_).rdbuf();
    EXPECT_EQ(text.str(), "records\n");
    EXPECT_EQ(fs::status(victim_).permissions(), fs::perms(0644));
    EXPECT_FALSE(fs::exists(victim_.string() + ".too"));
    EXPECT_FALSE(fs::exists("/tmp/hone-escaped"));
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  fs::path victim_;
  std::unique_ptr<Launcher> launcher_;
};

TEST_P(SandboxEscapeTest, TheHighestPossibleLevelIsReached) {
  const absl::StatusOr<v1::Sandbox> sandbox = launcher_->Open();
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  EXPECT_EQ(sandbox->level(), GetParam().level) << sandbox->DebugString();
  for (const v1::SandboxLayer& layer : sandbox->layers()) {
    EXPECT_TRUE(layer.holds() || !layer.detail().empty()) << layer.name();
  }
}

TEST_P(SandboxEscapeTest, EveryEvilKernelIsStoppedAndRecordedAsWhatItIs) {
  std::vector<std::string> kernels = {"good"};
  for (const Deed& deed : Deeds()) kernels.push_back(deed.kernel);
  const auto outcomes = Measure(kernels);
  for (const Deed& deed : Deeds()) {
    if (deed.kernel == "do_unshare" && GetParam().forbidden.starts_with("unshare"))
      continue;  // the system refuses it before ours can ask
    ASSERT_TRUE(outcomes.contains(deed.kernel)) << deed.kernel;
    const v1::Outcome& outcome = outcomes.at(deed.kernel);
    ASSERT_TRUE(outcome.has_failure()) << deed.kernel << " was not stopped";
    EXPECT_EQ(outcome.failure().kind(), deed.kind) << deed.kernel << ": " << outcome.failure().text();
    EXPECT_THAT(outcome.failure().text(), HasSubstr(deed.text)) << deed.kernel;
  }
  EXPECT_TRUE(outcomes.at("good").has_timing()) << outcomes.at("good").DebugString();
  ExpectVictimUnharmed();
}

// Whole packages meet the same walls: their code is loaded, which no kernel's child may do, and nothing more.
TEST_P(SandboxEscapeTest, PackagesRunAndAreHeld) {
  const auto run = [&](const std::string& flags) {
    const std::string path = folder_ / "package.hone";
    tests::WriteTinyPackage(path, tests::TinyContents(tests::CompileTinyKernels(flags)));
    const MemoryFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    v1::Batch batch;
    batch.mutable_run()->add_packages()->set_name("package.hone");
    batch.mutable_run()->set_keep_outputs(true);
    return launcher_->RunWithFiles(batch, {file.descriptor()}, std::stop_token());
  };
  const Launcher::RunResult good = run("");
  EXPECT_TRUE(good.result.has_run()) << good.result.DebugString();
  EXPECT_EQ(good.outputs.size(), 1u);
  const std::string path = victim_.string();
  const std::vector<std::string> deeds = {"open(\"" + path + "\", O_RDONLY)",
                                          "open(\"" + path + "\", O_WRONLY)",
                                          "unlink(\"" + path + "\")",
                                          "socket(AF_INET, SOCK_STREAM, 0)",
                                          "fork()",
                                          "(int)write(2, \"x\", 1)",
                                          "memfd_create(\"x\", 0)",
                                          "(int)syscall(SYS_getppid)"};
  for (const std::string& deed : deeds) {
    const v1::BatchResult result = run("-D_GNU_SOURCE -include fcntl.h -include unistd.h -include sys/socket.h "
                                       "-include sys/mman.h -include sys/syscall.h "
                                       "-DSCALE='((float)" +
                                       deed + ")'")
                                       .result;
    ASSERT_EQ(result.outcomes_size(), 1) << deed << ": " << result.DebugString();
    EXPECT_EQ(result.outcomes(0).outcome().failure().kind(), v1::FAILURE_KIND_FORBIDDEN_CALL)
        << deed << ": " << result.outcomes(0).outcome().failure().text();
  }
  ExpectVictimUnharmed();
}

// Each alone: they speak as candidate 0.
TEST_P(SandboxEscapeTest, FalseReportsAreDetected) {
  const std::vector<Deed> lies = {
      {"no_time", v1::FAILURE_KIND_IMPOSSIBLE_TIME, "impossible times"},
      {"time_before_proof", v1::FAILURE_KIND_IMPOSSIBLE_TIME, "impossible times"},
      {"long_time", v1::FAILURE_KIND_IMPOSSIBLE_TIME, "impossible times"},
      {"too_fast", v1::FAILURE_KIND_IMPOSSIBLE_TIME, "reported 1e-12 s for one call"},
      {"stale_proof", v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE, "tampered with the guard zones"},
      {"done_early", v1::FAILURE_KIND_CRASHED, "sent an invalid message"},
      {"extend_time", v1::FAILURE_KIND_RUN_TIMEOUT, "longer than"},
      {"flood", v1::FAILURE_KIND_CRASHED, "sent an invalid message"},
      {"flood_for_none", v1::FAILURE_KIND_CRASHED, "sent an invalid message"},
      {"flood_in_turns", v1::FAILURE_KIND_CRASHED, "sent an invalid message"},
      {"flood_times", v1::FAILURE_KIND_RUN_TIMEOUT, "longer than"},
      {"flood_setup", v1::FAILURE_KIND_CRASHED, "sent an invalid message"},
      {"flood_failures", v1::FAILURE_KIND_COMPILE_ERROR, ""},  // the kind that it reports
      {"unknown_failure", v1::FAILURE_KIND_CRASHED, "sent an invalid message"},
      {"flood_proof", v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE, ""},
  };
  for (const auto& [kernel, kind, text] : lies) {
    if (kernel == "flood_times" && !GetParam().forbidden.empty()) continue;  // takes seconds, and asks nothing of walls
    const bool to_the_end = kernel == "extend_time" || kernel == "flood_times";  // of the time that all calls may take
    const auto outcomes = Measure({kernel}, to_the_end ? 0.05 : 0.3);
    ASSERT_TRUE(outcomes.contains(kernel)) << kernel;
    ASSERT_TRUE(outcomes.at(kernel).has_failure()) << kernel << " was believed";
    EXPECT_EQ(outcomes.at(kernel).failure().kind(), kind) << kernel;
    EXPECT_THAT(outcomes.at(kernel).failure().text(), HasSubstr(text)) << kernel;
  }
  EXPECT_TRUE(Measure({"good"}).at("good").has_timing());
}

TEST_P(SandboxEscapeTest, SwitchingCandidatesGainsNoTime) {
  const auto outcomes = Measure({"flood_for_two", "good"});
  EXPECT_THAT(outcomes.at("flood_for_two").failure().text(), HasSubstr("sent an invalid message"));
  EXPECT_TRUE(outcomes.at("good").has_timing()) << outcomes.at("good").DebugString();
}

TEST_P(SandboxEscapeTest, NoCandidateIsLeftOutWhileTimeIsLeft) {
  const auto outcomes = Measure({"done_early"}, 0.3, 3600);
  ASSERT_TRUE(outcomes.contains("done_early"));
  EXPECT_THAT(outcomes.at("done_early").failure().text(), HasSubstr("sent an invalid message"));
}

// While an artifact is loaded, more calls are allowed.
TEST_P(SandboxEscapeTest, ConstructorsAreConfinedToo) {
  const auto error = [&](const std::string& constructor) { return Run(Batch({"good"}, constructor)).error(); };
  EXPECT_THAT(error("syscall(SYS_ptrace, 16, 1, 0, 0);"), HasSubstr("made the system call ptrace"));
  EXPECT_THAT(error("open(VICTIM, O_WRONLY | O_TRUNC);"), HasSubstr("made the system call openat"));
  EXPECT_THAT(error("fork();"), HasSubstr("made the system call clone"));
  EXPECT_THAT(error("socket(AF_UNIX, SOCK_STREAM, 0);"), HasSubstr("made the system call socket"));
  EXPECT_THAT(error("struct message m = {BEGIN, -1}; for (;;) say(&m);"), HasSubstr("sent an invalid message"));
  EXPECT_THAT(error("struct message m = {BEGIN, 0}; say(&m); for (;;) {}"), HasSubstr("sent an invalid message"));
  ExpectVictimUnharmed();
  if (GetParam().level != v1::SANDBOX_LEVEL_WALL) return;
  for (const char* path : {"VICTIM", "\"/etc/passwd\"", "\"/proc/1/environ\"", "\"/root\"", "\"/home\"", "\"/tmp\""}) {
    const v1::BatchResult result = Run(Batch({"if_opened"}, fmt::format("opened = open({}, O_RDONLY) >= 0;", path)));
    ASSERT_EQ(result.outcomes_size(), 1) << result.error();
    EXPECT_TRUE(result.outcomes(0).outcome().has_failure()) << path;
  }
}

TEST_P(SandboxEscapeTest, OnlyTheChannelIsInherited) {
  constexpr char kCount[] =
      "for (int fd = 3; fd < 1024; ++fd) { char path[64], target[64] = {0}; sprintf(path, \"/proc/self/fd/%d\", fd);"
      " if (readlink(path, target, 63) > 0 && !strncmp(target, \"socket:\", 7)) ++opened; } opened = opened == 1;";
  for (int i = 0; i < 2; ++i) {  // the second time in a child that was started ahead
    const v1::BatchResult result = Run(Batch({"if_opened"}, kCount));
    ASSERT_EQ(result.outcomes_size(), 1) << result.error();
    EXPECT_TRUE(result.outcomes(0).outcome().has_timing()) << "it has other sockets";
  }
}

// On which the agent was started.
TEST_P(SandboxEscapeTest, ATerminalCannotBeRead) {
  int keyboard = -1, terminal = -1;
  if (openpty(&keyboard, &terminal, nullptr, nullptr, nullptr) != 0) GTEST_SKIP() << "this system has no terminals";
  const int before = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  const absl::StatusOr<v1::Sandbox> sandbox = launcher_->Open();
  dup2(before, STDERR_FILENO);
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  ASSERT_EQ(write(keyboard, "secret\n", 7), 7);
  const v1::BatchResult result = Run(Batch({"if_opened"}, "char c; opened = read(2, &c, 1) == 1;"));
  ASSERT_EQ(result.outcomes_size(), 1) << result.error();
  EXPECT_TRUE(result.outcomes(0).outcome().has_failure()) << "it has read a key";
  for (const int file : {keyboard, terminal, before}) close(file);
}

// The agent's environment may hold what opens other doors.
TEST_P(SandboxEscapeTest, TheEnvironmentIsNotInherited) {
  const auto finds = [&](const std::string& name) {
    const auto result = Run(Batch({"if_opened"}, fmt::format("opened = getenv(\"{}\") != 0;", name)));
    return result.outcomes_size() == 1 && result.outcomes(0).outcome().has_timing();
  };
  ASSERT_EQ(setenv("SECRET_OF_THE_AGENT", "x", 1), 0);
  EXPECT_FALSE(finds("SECRET_OF_THE_AGENT"));
  EXPECT_TRUE(finds("PATH"));
}

// Children have a copy of the launcher's memory, and it measures for many.
TEST_P(SandboxEscapeTest, MemoryOfEarlierBatchesIsErased) {
  // Searches the heap from its end downwards. As it is written here, the word is nowhere in this batch itself.
  constexpr char kSearch[] =
      "static const char word[] = \"VDSZ!TFDSFU!TDIFEVMF\"; volatile char less = 1; "
      "for (char *p = (char*)sbrk(0) - 64, *end = p - (1 << 20); p > end && !opened; --p) {"
      " size_t n = 0; while (n < sizeof word - 1 && p[n] == (char)(word[n] - less)) ++n; opened = n == sizeof word - "
      "1; }";
  const auto finds = [&] {
    const auto result = Run(Batch({"if_opened"}, kSearch));
    return result.outcomes_size() == 1 && result.outcomes(0).outcome().has_timing();
  };
  v1::Batch earlier = Batch({"good"});
  earlier.mutable_candidates(0)->set_schedule("UCRY SECRET SCHEDULE");
  EXPECT_EQ(Run(earlier).error(), "");
  EXPECT_FALSE(finds());
}

std::vector<pid_t> PidsWith(const std::string& word) {
  std::vector<pid_t> pids;
  for (const auto& process : fs::directory_iterator("/proc")) {
    std::stringstream text;
    text << std::ifstream(process.path() / "cmdline").rdbuf();
    if (text.str().find(word) != std::string::npos) pids.push_back(std::stoi(process.path().filename().string()));
  }
  return pids;
}
size_t ProcessesWith(const std::string& word) { return PidsWith(word).size(); }

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST_P(SandboxEscapeTest, AStopEndsAFloodOfMessages) {
  v1::Batch batch = Batch({"flood_times"});
  batch.mutable_policy()->set_timeout_seconds(1000);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));  // so that it flows by then
    stop.request_stop();
  });
  EXPECT_EQ(launcher_->Run(batch, stop.get_token()).error(), "cancelled");
  EXPECT_GE(ProcessesWith("--launcher-folder=" + folder_.path().string()), 1U) << "the launcher had to be killed";
}

TEST_P(SandboxEscapeTest, NoProcessOutlivesAKilledAgent) {
  v1::Batch batch = Batch({"endless"});
  batch.mutable_policy()->set_timeout_seconds(1000);
  const pid_t agent = fork();
  if (agent == 0) {
    Run(batch);
    _exit(0);
  }
  const std::string word = "--launcher-folder=" + folder_.path().string();
  // The launcher, and a child of it that calls a kernel; where there is a namespace of processes, also who waits for
  // it.
  ASSERT_TRUE(Eventually([&] { return ProcessesWith(word) >= 2; }));
  kill(agent, SIGKILL);
  waitpid(agent, nullptr, 0);
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(word) == 0; })) << ProcessesWith(word) << " live on";
}

TEST(LauncherThatHangs, IsKilledWhenItsVisitIsToEnd) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  Launcher launcher({.device = "cpu", .folder = folder.path(), .program = HONE_AGENT_BINARY});
  ASSERT_TRUE(launcher.Open().ok());
  const std::string word = "--launcher-folder=" + folder.path().string();
  const std::vector<pid_t> processes = PidsWith(word);
  ASSERT_FALSE(processes.empty());
  for (const pid_t pid : processes) kill(pid, SIGSTOP);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(launcher.Run(HandMadeBatch({"good"}), stop.get_token()).error(), "cancelled");
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(word) == 0; }));
  EXPECT_EQ(launcher.Run(HandMadeBatch({"good"}), std::stop_token()).error(), "");
}

int StatusOfChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Whether a launcher starts whose device has a driver that keeps files there.
bool StartsWith(const fs::path& folder) {
  SandboxPolicy policy;
  policy.writable = {folder.string()};
  policy.calls = kDriverSystemCalls;
  return StatusOfChild([&] { return ConfineLauncher(policy).ok() ? 0 : 1; }) == 0;
}

uid_t OwnerOf(const fs::path& path) {
  struct stat about{};
  EXPECT_EQ(lstat(path.c_str(), &about), 0) << path;
  return about.st_uid;
}

// A kernel that ran as the own user may have put it there, for the next launcher.
TEST(FolderOfADriver, RootGivesAwayNoOtherThatLiesInItsPlace) {
  if (getuid() != 0) GTEST_SKIP() << "only root gives folders away";
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  const fs::path folder = parent / "driver", other = parent / "other";
  fs::create_directory(folder);
  fs::create_directory(other);
  EXPECT_TRUE(StartsWith(folder));
  EXPECT_TRUE(StartsWith(folder)) << "it is the own user's already";
  fs::remove(folder);
  fs::create_directory_symlink(other, folder);
  EXPECT_FALSE(StartsWith(folder));
  EXPECT_EQ(OwnerOf(other), 0U);
  fs::remove(folder);
  fs::rename(other, folder);
  ASSERT_EQ(chown(folder.c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(StartsWith(folder));
  EXPECT_EQ(OwnerOf(folder), kSomebody);
}

TEST(FolderOfADriver, WhoOwnsItCannotRenameIt) {
  if (getuid() != 0) GTEST_SKIP() << "only root gives folders away";
  const TemporaryFolder parent = TemporaryFolder::Create().value();
  const fs::path folder = MakeLauncherFolder(parent).value();
  ASSERT_EQ(chown(folder.c_str(), kSomebody, kSomebody), 0);
  const auto can = [](const std::function<void(std::error_code&)>& deed) {
    return StatusOfChild([&] {
      std::error_code error;
      if (setresgid(kSomebody, kSomebody, kSomebody) != 0 || setresuid(kSomebody, kSomebody, kSomebody) != 0) return 2;
      deed(error);
      return error ? 1 : 0;
    });
  };
  EXPECT_EQ(can([&](std::error_code& error) { fs::create_directory(folder / "cache", error); }), 0);
  EXPECT_EQ(can([&](std::error_code& error) { fs::rename(folder, parent / "moved", error); }), 1);
  EXPECT_EQ(can([&](std::error_code& error) { fs::rename(folder, parent.path().string() + "-moved", error); }), 1);
}

// As emulators of a CPU have it. Who asks for a level gets nothing from such a device; others may measure there.
class WithoutFiltersTest : public SandboxEscapeTest {};

TEST_P(WithoutFiltersTest, KernelsRunAndTheTrackerIsTold) {
  const absl::StatusOr<v1::Sandbox> sandbox = launcher_->Open();
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  EXPECT_EQ(sandbox->level(), v1::SANDBOX_LEVEL_NONE);
  const auto layer = std::ranges::find(sandbox->layers(), "system-calls", &v1::SandboxLayer::name);
  ASSERT_NE(layer, sandbox->layers().end());
  EXPECT_FALSE(layer->holds());
  EXPECT_TRUE(Measure({"good"}).at("good").has_timing());
}

constexpr auto kWall = v1::SANDBOX_LEVEL_WALL;

INSTANTIATE_TEST_SUITE_P(Systems, WithoutFiltersTest,
                         testing::Values(Circumstances{"User", false, "filters", v1::SANDBOX_LEVEL_NONE}),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Systems, SandboxEscapeTest,
    testing::Values(Circumstances{"Root", true, "", kWall}, Circumstances{"User", false, "", kWall},
                    Circumstances{"RootWithoutNamespaces", true, "unshare", kWall},
                    Circumstances{"UserWithoutNamespaces", false, "unshare", v1::SANDBOX_LEVEL_FILTER},
                    Circumstances{"UserWithoutLandlock", false, "landlock_create_ruleset", kWall},
                    Circumstances{"UserWithoutBoth", false, "unshare landlock_create_ruleset",
                                  v1::SANDBOX_LEVEL_FILTER},
                    Circumstances{"UserWithoutListener", false, "listener", kWall},
                    Circumstances{"UserWithoutContinue", false, "continue", kWall},
                    Circumstances{"UserWithoutCloseRange", false, "close_range", kWall}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::agent
