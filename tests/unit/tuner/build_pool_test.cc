// SPDX-License-Identifier: Apache-2.0
#include "tuner/build_pool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "compiler/space/space.h"
#include "deploy/runtime/code_object.h"
#include "tests/unit/codegen/fake_ptxas.h"
#include "tests/unit/tuner/starter.h"
#include "tuner/build_worker.h"

namespace {

std::atomic<int> signals_to_nobody = 0;

}  // namespace

// Replaces the C library's kill in the whole program.
extern "C" int kill(pid_t pid, int signal) noexcept {
  const auto result = static_cast<int>(syscall(SYS_kill, pid, signal));
  if (result != 0 && errno == ESRCH) ++signals_to_nobody;
  return result;
}

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;

BuildOptions Pretending(int workers, absl::Duration limit = absl::Seconds(10)) {
  return {{"/proc/self/exe", "--pretend"}, workers, limit};
}

TEST(BuildPoolTest, AnswersComeInTheOrderOfTheCandidates) {
  BuildPool pool(Pretending(2));
  const auto batch = pool.Build({"w", "t", {"a", "illegal", "ccc"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->candidates.size(), 3u);
  EXPECT_TRUE(batch->candidates[0].ok);
  EXPECT_EQ(batch->candidates[0].kernel.workspace_bytes, 1);
  EXPECT_FALSE(batch->candidates[1].ok);
  EXPECT_EQ(batch->candidates[1].failure, FailureKind::kScheduleIllegal);
  EXPECT_EQ(batch->candidates[1].text, "no loop of that name");
  EXPECT_EQ(batch->candidates[2].kernel.workspace_bytes, 3);
  EXPECT_GT(batch->seconds, 0);
  // The artifact holds the candidates that compiled, and the reference.
  EXPECT_EQ(std::count(batch->artifact.begin(), batch->artifact.end(), '\n'), 3);
  EXPECT_THAT(batch->artifact, HasSubstr(batch->reference.name + "@"));
  EXPECT_THAT(batch->artifact, HasSubstr(batch->candidates[2].kernel.name + "@"));
}

TEST(BuildPoolTest, ACrashIsTheFailureOfOneCandidate) {
  BuildPool pool(Pretending(1));
  const auto batch = pool.Build({"w", "t", {"a", "crash", "b", "leave", "c"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (const size_t good : {0, 2, 4}) EXPECT_TRUE(batch->candidates[good].ok) << good;
  EXPECT_EQ(batch->candidates[1].failure, FailureKind::kCompileError);
  EXPECT_THAT(batch->candidates[1].text, HasSubstr("killed by signal 11"));
  EXPECT_THAT(batch->candidates[3].text, HasSubstr("ended with status 3"));
  EXPECT_EQ(signals_to_nobody, 0) << "by then its number may be another process's";
}

// Starting a process may fail, and a worker may be killed while it is idle.
class BuildPoolStartTest : public ::testing::Test {
 protected:
  BuildPool Pool(absl::Duration patience) const {
    return BuildPool({starter_.command(), 1, absl::Seconds(10), patience});
  }
  static pid_t WorkerOf(const BuiltBatch& batch) {
    return std::atoi(batch.artifact.c_str() + batch.artifact.rfind('@') + 1);
  }

  const Starter starter_;
};

TEST_F(BuildPoolStartTest, ACandidateThatNoWorkerBeganIsNoFailure) {
  BuildPool pool = Pool(absl::ZeroDuration());
  ASSERT_TRUE(pool.Build({"w", "t", {}}).ok());
  starter_.FailOnce();
  const auto batch = pool.Build({"w", "t", {"crash", "a", "b"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->candidates[0].tried);
  EXPECT_EQ(batch->candidates[0].failure, FailureKind::kCompileError);
  EXPECT_FALSE(batch->candidates[1].tried);
  EXPECT_FALSE(batch->candidates[1].ok);
  EXPECT_THAT(batch->candidates[1].text, HasSubstr("ended with status 1 before it began"));
  EXPECT_TRUE(batch->candidates[2].ok) << batch->candidates[2].text;
}

TEST_F(BuildPoolStartTest, AWorkerIsStartedAgainForAWhile) {
  BuildPool pool = Pool(absl::Minutes(10));
  const auto first = pool.Build({"w", "t", {"a"}});
  ASSERT_TRUE(first.ok()) << first.status();
  starter_.FailOnce();
  kill(WorkerOf(*first), SIGKILL);
  const auto batch = pool.Build({"w", "t", {"b"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->candidates[0].ok) << batch->candidates[0].text;
}

TEST_F(BuildPoolStartTest, ABatchThatNoWorkerBeganIsAnErrorOfTheMachine) {
  BuildPool pool = Pool(absl::ZeroDuration());
  const auto first = pool.Build({"w", "t", {"a"}});
  ASSERT_TRUE(first.ok()) << first.status();
  starter_.FailFromNowOn();
  kill(WorkerOf(*first), SIGKILL);
  const absl::Status status = pool.Build({"w", "t", {"a", "b"}}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no candidate was compiled: the compiler"));
}

TEST_F(BuildPoolStartTest, AWorkerThatCouldNotLinkLinksNoMore) {
  BuildPool pool = Pool(absl::Minutes(10));
  const auto first = pool.Build({"w", "t", {"a"}});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(std::string(pool.Build({"w", "no linker", {"a"}}).status().message()), HasSubstr("linking a batch"));
  const auto second = pool.Build({"w", "t", {"a"}});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(WorkerOf(*second), WorkerOf(*first));
}

TEST(BuildPoolTest, RequestsOfACancelledJobAreNotBuilt) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  setenv("HONE_FAKE_UNTIL", (folder / "file").c_str(), 1);
  BuildPool pool(Pretending(1, absl::Minutes(10)));
  ASSERT_TRUE(pool.Build({"w", "t", {}}).ok());
  unsetenv("HONE_FAKE_UNTIL");
  EXPECT_TRUE(absl::IsCancelled(pool.Build({"w", "t", {"a", "leave"}, {}, [] { return true; }}).status()));
  std::ofstream(folder / "file") << "go on";
  const auto next = pool.Build({"w", "t", {"b"}});
  ASSERT_TRUE(next.ok()) << next.status();
  const std::string& lines = next->artifact;  // names and processes of the reference and the candidate
  EXPECT_EQ(lines.substr(lines.find('@'), lines.find('\n') - lines.find('@') + 1), lines.substr(lines.rfind('@')))
      << "another one would have left";
}

TEST(BuildPoolTest, AHangIsATimeoutAndTheOthersAreBuilt) {
  BuildPool pool(Pretending(1, absl::Milliseconds(200)));
  const auto batch = pool.Build({"w", "t", {"hang", "b"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->candidates[0].failure, FailureKind::kCompileTimeout);
  EXPECT_THAT(batch->candidates[0].text, HasSubstr("0.2 s"));
  EXPECT_TRUE(batch->candidates[1].ok);
}

// An assembler that hangs, or that a worker leaves running when it dies.
TEST(BuildPoolTest, NoProgramOutlivesTheWorkerThatRanIt) {
  for (const auto& [deed, text] : {std::pair("crash beside a program", "killed by signal 11"),
                                   std::pair("hang beside a program", "not compiled after")}) {
    int living[2];  // end of file once no process has it open for writing
    ASSERT_EQ(pipe(living), 0);
    {
      BuildPool pool(Pretending(1, absl::Seconds(3)));
      const auto batch = pool.Build({"w", "t", {deed}});
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_THAT(batch->candidates[0].text, HasSubstr(text)) << "the program may not have the worker's socket";
    }
    close(living[1]);
    pollfd end{living[0], POLLIN, 0};
    EXPECT_EQ(poll(&end, 1, 20'000), 1) << deed << ": the program lives on";
    close(living[0]);
  }
}

TEST(BuildPoolTest, SeveralBatchesAtOnce) {
  BuildPool pool(Pretending(3));
  std::vector<std::thread> threads;
  std::vector<absl::StatusOr<BuiltBatch>> results(6, absl::UnknownError("not run"));
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = pool.Build({"w", "t", std::vector<std::string>(i + 1, std::string(i + 1, 's'))}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].ok()) << results[i].status();
    ASSERT_EQ(results[i]->candidates.size(), i + 1);
    for (const BuiltCandidate& c : results[i]->candidates) {
      EXPECT_EQ(c.kernel.workspace_bytes, static_cast<int64_t>(i + 1));
    }
  }
}

TEST(BuildPoolTest, AReferenceThatDoesNotCompileFailsTheBatch) {
  BuildPool pool(Pretending(1));
  const auto batch = pool.Build({"no reference", "t", {"a"}});
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("reference kernel was not compiled"));
}

TEST(BuildPoolTest, AReferenceThatDidNotCompileIsTriedAgain) {
  BuildPool pool(Pretending(1));
  const std::string file = ::testing::TempDir() + "reference_compiles_now";
  unlink(file.c_str());
  const BuildJob job = {"no reference until " + file, "t", {"a"}};
  EXPECT_EQ(pool.Build(job).status().code(), absl::StatusCode::kInternal);
  std::ofstream(file) << "yes";
  EXPECT_TRUE(pool.Build(job).ok()) << "whatever was wrong with the compiler then is not wrong for ever";
}

TEST(BuildPoolTest, ReferencesAreKeptButNotForEver) {
  BuildPool pool(Pretending(1));
  const auto reference_of = [](const absl::StatusOr<BuiltBatch>& batch) {
    return batch->artifact.substr(0, batch->artifact.find('\n'));  // its name and the process that compiled it
  };
  const std::string first = reference_of(pool.Build({"w", "t", {"crash"}}));  // the next worker is another process
  EXPECT_EQ(reference_of(pool.Build({"w", "t", {"a"}})), first);
  for (int i = 0; i < kReferencesKeptMax; ++i) ASSERT_TRUE(pool.Build({std::to_string(i), "t", {}}).ok());
  EXPECT_NE(reference_of(pool.Build({"w", "t", {"a"}})), first) << "a tuner that runs for months grows and grows";
}

TEST(BuildPoolTest, AProgramThatDoesNotExistIsReported) {
  BuildPool pool({{"/no/such/program"}, 1, absl::Seconds(5), absl::ZeroDuration()});
  const auto batch = pool.Build({"w", "t", {"a"}});
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("127"));
}

TEST(BuildMessageTest, RoundTrip) {
  BuildRequest request{BuildRequest::Kind::kLink, "w", "t", "s", "k", {"one", std::string("\0two", 4)}};
  const auto decoded = DecodeRequest(Encode(request));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->kind, request.kind);
  EXPECT_EQ(decoded->objects, request.objects);
  BuildReply reply;
  reply.kind = BuildReply::Kind::kFailed;
  reply.failure = FailureKind::kCompileTimeout;
  reply.kernel.name = "k";
  reply.drawback = "it spills";
  reply.prepare = "an object";
  reply.kernel.workspace_bytes = 77;
  reply.kernel.main.push_back({"k", 0, 0, {}});
  const auto answered = DecodeReply(Encode(reply));
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(answered->failure, FailureKind::kCompileTimeout);
  EXPECT_EQ(answered->kernel, reply.kernel);
  EXPECT_EQ(answered->drawback, "it spills");
  EXPECT_EQ(answered->prepare, "an object");
  EXPECT_TRUE(DecodeReply(Encode(BuildReply{}))->kernel.name.empty()) << "nothing was compiled";
}

TEST(BuildMessageTest, DamagedMessagesAreNoMessages) {
  const std::string good = Encode(BuildRequest{BuildRequest::Kind::kLink, "w", "t", "s", "k", {"one"}});
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(DecodeRequest(std::string_view(good).substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(DecodeRequest(good + "x").has_value());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x80);
    DecodeRequest(bad);  // must not crash, whatever the bytes are
  }
}

constexpr char kWorkload[] = R"(workload "matmul"
input x: f32[24,40] in [-1, 1]
const w: f32[40,48] in [-1, 1]
t: f32[24,48] over i:24, j:48 = sum k:40 of x[i, k] * w[k, j]
output t
)";

TEST(BuildPoolTest, RealCandidatesCompileAndLink) {
  const auto target = target::ParseTarget("cpu").value();
  const auto default_candidate = space::Default(ir::ParseWorkload(kWorkload).value(), target);
  ASSERT_TRUE(default_candidate.ok());
  BuildPool pool({{"/proc/self/exe"}, 2, absl::Seconds(60)});
  const auto batch =
      pool.Build({kWorkload,
                  target::Print(target),
                  {schedule::Print(default_candidate->schedule), "vectorize nothing\n", "not a step\n", ""}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->candidates[0].ok) << batch->candidates[0].text;
  EXPECT_EQ(batch->candidates[1].failure, FailureKind::kScheduleIllegal);
  EXPECT_THAT(batch->candidates[1].text, HasSubstr("nothing"));
  EXPECT_EQ(batch->candidates[2].failure, FailureKind::kScheduleIllegal);
  EXPECT_TRUE(batch->candidates[3].ok) << "no step at all is a schedule too";
  runtime::CodeObject code;
  const auto fault = runtime::CodeObject::Load(
      {reinterpret_cast<const uint8_t*>(batch->artifact.data()), batch->artifact.size()}, &code);
  ASSERT_TRUE(fault.ok()) << fault.text;
  EXPECT_NE(code.Find(batch->reference.name.c_str()), nullptr);
  EXPECT_NE(code.Find(batch->candidates[0].kernel.name.c_str()), nullptr);
  EXPECT_NE(code.Find(batch->candidates[3].kernel.name.c_str()), nullptr);
}

TEST(BuildPoolTest, CandidatesForCudaTravelWithTheMachineCodeOfAToolkit) {
  const auto target = target::ParseTarget("cuda:sm_90").value();
  const auto default_candidate = space::Default(ir::ParseWorkload(kWorkload).value(), target);
  ASSERT_TRUE(default_candidate.ok());
  const BuildJob job = {kWorkload, target::Print(target), {schedule::Print(default_candidate->schedule)}};
  const auto ends = [](const BuiltBatch& batch, const CodeRange& code, std::string_view end) {
    return std::string_view(batch.artifact)
        .substr(static_cast<size_t>(code.offset), static_cast<size_t>(code.bytes))
        .ends_with(end);
  };
  {
    const codegen::FakePtxas ptxas("Used 64 registers\n", "machine code");
    BuildPool pool({{"/proc/self/exe"}, 1, absl::Seconds(60)});
    const auto batch = pool.Build(job);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const std::string_view end("\0\14\0\0\0\0\0\0\0machine code", 21);
    EXPECT_TRUE(ends(*batch, batch->candidates[0].code, end)) << batch->candidates[0].text;
    EXPECT_TRUE(ends(*batch, batch->reference_code, end)) << "it runs there, too";
  }
  const codegen::FakePtxas old("unknown architecture\n", "", 255);
  BuildPool pool({{"/proc/self/exe"}, 1, absl::Seconds(60)});
  const auto batch = pool.Build(job);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->artifact.find('\0'), std::string::npos) << "the driver compiles what is text alone";
}

TEST(BuildPoolTest, CandidatesThatPackAlikeHaveOnePrepare) {
  const auto target = target::ParseTarget("cpu").value();
  BuildPool pool({{"/proc/self/exe"}, 2, absl::Seconds(60)});
  const auto batch = pool.Build({kWorkload,
                                 target::Print(target),
                                 {"pack w t 1/16 0 1%16\n", "pack w t 1/16 0 1%16\nunroll k\n", "pack w t 1/8 0 1%8\n",
                                  "pack w t 1/16 0 1%16\nreorder j i k\n"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  std::vector<std::string> prepares;
  runtime::CodeObject code;
  const auto fault = runtime::CodeObject::Load(
      {reinterpret_cast<const uint8_t*>(batch->artifact.data()), batch->artifact.size()}, &code);
  ASSERT_TRUE(fault.ok()) << fault.text;
  for (const BuiltCandidate& candidate : batch->candidates) {
    ASSERT_TRUE(candidate.ok) << candidate.text;
    EXPECT_NE(code.Find(candidate.kernel.name.c_str()), nullptr);
    ASSERT_EQ(candidate.kernel.prepare.size(), 1u);
    prepares.push_back(candidate.kernel.prepare.front().function);
    EXPECT_NE(code.Find(prepares.back().c_str()), nullptr) << prepares.back();
  }
  EXPECT_EQ(prepares[1], prepares[0]);
  EXPECT_NE(prepares[2], prepares[0]) << "it packs in another way";
  EXPECT_EQ(prepares[3], prepares[0]);
}

}  // namespace
}  // namespace hone::tuner
