// SPDX-License-Identifier: Apache-2.0
#include "tracker/shell.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "storage/memory/farm_store.h"
#include "storage/memory/record_store.h"
#include "storage/open.h"
#include "tests/farm/builders.h"

namespace hone::tracker {
namespace {

const Present kPresent = [] { return true; };

// Makes a call and waits for its answer.
template <typename Response, typename Call>
absl::StatusOr<Response> Await(const Call& call) {
  const auto promise = std::make_shared<std::promise<absl::StatusOr<Response>>>();
  call(Done<Response>([promise](absl::StatusOr<Response> result) { promise->set_value(std::move(result)); }));
  return promise->get_future().get();
}

absl::StatusOr<v1::Job> Submit(Shell& shell, const std::string& name) {
  return Await<v1::Job>([&](auto done) { shell.SubmitJob(SpecOf(name), done); });
}

absl::StatusOr<v1::Job> GetJob(Shell& shell, const std::string& id) {
  return Await<v1::Job>([&](auto done) { shell.GetJob(id, done); });
}
absl::StatusOr<v1::LeaseJobResponse> LeaseJob(Shell& shell, const v1::LeaseJobRequest& request) {
  return Await<v1::LeaseJobResponse>([&](auto done) { shell.LeaseJob(request, kPresent, done); });
}
absl::StatusOr<v1::SubmitBatchResponse> SubmitBatch(Shell& shell, const v1::SubmitBatchRequest& request) {
  return Await<v1::SubmitBatchResponse>([&](auto done) { shell.SubmitBatch(request, done); });
}
absl::StatusOr<v1::SynchronizeResponse> Synchronize(Shell& shell, const v1::SynchronizeRequest& request) {
  return Await<v1::SynchronizeResponse>([&](auto done) { shell.Synchronize(request, kPresent, done); });
}

FarmState StateInMemory() {
  auto store = std::make_unique<storage::MemoryFarmStore>(std::string(16, 'f'), std::string(64, 'k'));
  return FarmState::BeginRun(std::move(store), absl::Now()).value();
}

class ShellTest : public testing::Test {
 protected:
  ShellTest() { store_ = storage::OpenRecords(folder_ / "records.db", records::OpenMode::kReadWrite).value(); }

  // Runs a batch of two candidates from the job to the acknowledged result, in a farm that keeps its jobs in the file
  // `state`.
  void MeasureTwo(const std::string& state) {
    FarmState opened = FarmState::Open(folder_ / state, absl::Now()).value();
    const auto shell = Shell::Start(FarmOptions(), std::move(opened), store_.get()).value();
    EXPECT_EQ(Measure(*shell, state, kPresent), 1);
  }

  // Does the same in a running farm. Returns the number of acknowledged results.
  static int Measure(Shell& shell, const std::string& name, const Present& present) {
    EXPECT_TRUE(Submit(shell, "job" + name).ok());
    v1::LeaseJobRequest lease_job;
    lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease_job.set_tuner_id("tuner" + name);
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() =
        Await<v1::LeaseJobResponse>([&](auto done) { shell.LeaseJob(lease_job, present, done); })->lease();
    submit.set_client_batch_id("first");
    *submit.mutable_batch() = BatchOf(2);
    EXPECT_TRUE(Await<v1::SubmitBatchResponse>([&](auto done) { shell.SubmitBatch(submit, done); }).ok());
    v1::SynchronizeRequest agent;
    agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
    agent.set_agent_id("agent" + name);
    agent.set_boot_id("boot");
    *agent.add_devices() = DeviceOf();
    int acknowledged = 0;
    for (uint64_t sequence = 1; acknowledged == 0 && sequence < 10 && present(); ++sequence) {
      agent.set_sequence(sequence);
      const auto answer = Await<v1::SynchronizeResponse>([&](auto done) { shell.Synchronize(agent, present, done); });
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) break;
      agent.set_epoch(answer->epoch());
      acknowledged = answer->acked_lease_ids_size();
      for (const v1::Lease& lease : answer->leases()) {
        v1::LeaseResult* finished = agent.add_finished();
        *finished->mutable_lease() = lease.reference();
        *finished->mutable_result() = TimedResult(lease.batch());
      }
    }
    return acknowledged;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<records::Store> store_;
};

TEST_F(ShellTest, AcknowledgedResultsAreInTheRecords) {
  MeasureTwo("jobs");
  EXPECT_EQ(store_->Summarize()->records, 2);
  MeasureTwo("jobs");  // restarted
  EXPECT_EQ(store_->Summarize()->records, 4);
}

// Two farms number their batches alike. Their records meet when one farm imports the other's, or when the file with the
// jobs is removed and the records stay.
TEST_F(ShellTest, FarmsDoNotTakeEachOthersMeasurementsForTheirOwn) {
  MeasureTwo("jobs");
  MeasureTwo("jobs of another farm");
  EXPECT_EQ(store_->Summarize()->records, 4);
}

// The farm's jobs are restored from an older copy. Measurements after that must not be taken for those before it.
TEST_F(ShellTest, AFarmFromAnOlderCopyRepeatsNothing) {
  ASSERT_TRUE(FarmState::Open(folder_ / "jobs", absl::Now()).ok());
  std::filesystem::copy_file(folder_ / "jobs", folder_ / "copy");
  MeasureTwo("jobs");
  std::filesystem::copy_file(folder_ / "copy", folder_ / "jobs", std::filesystem::copy_options::overwrite_existing);
  MeasureTwo("jobs");
  EXPECT_EQ(store_->Summarize()->records, 4);
}

TEST_F(ShellTest, EveryStartIsGreaterThanThoseBefore) {
  const absl::Time day = absl::FromUnixSeconds(60 * 1000);
  const auto start = [&](const std::string& file, absl::Time now) {
    return FarmState::Open(folder_ / file, now)->incarnation();
  };
  EXPECT_EQ(start("jobs", day), 1000u);
  std::filesystem::copy_file(folder_ / "jobs", folder_ / "copy");
  EXPECT_EQ(start("jobs", day), 1001u);
  EXPECT_EQ(start("jobs", day - absl::Hours(1)), 1002u) << "the clock was put back";
  EXPECT_EQ(start("copy", day + absl::Hours(1)), 1060u) << "from an older copy";
}

TEST_F(ShellTest, LeasesCannotBeGuessed) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  std::set<std::string> ids;
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(Submit(*shell, name).ok());
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(name);
    const std::string id =
        Await<v1::LeaseJobResponse>([&](auto done) { shell->LeaseJob(request, kPresent, done); })->lease().lease_id();
    EXPECT_EQ(id.size(), 32u) << "128 bits";
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 2u);
}

// While an object of this class lives, no file can grow, as on a full disk.
class FullDisk {
 public:
  FullDisk() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(ShellTest, AFullDiskLosesNothingAndIsReported) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  const std::string measured = Submit(*shell, "measured")->id();
  v1::LeaseJobRequest lease_job;
  lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
  lease_job.set_tuner_id("tuner");
  v1::SubmitBatchRequest submit;
  *submit.mutable_lease() = LeaseJob(*shell, lease_job)->lease();
  submit.set_client_batch_id("first");
  *submit.mutable_batch() = BatchOf(2);
  ASSERT_TRUE(SubmitBatch(*shell, submit).ok());
  const std::string queued = Submit(*shell, "queued")->id();
  v1::SynchronizeRequest agent;
  agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
  agent.set_agent_id("agent");
  agent.set_boot_id("boot");
  *agent.add_devices() = DeviceOf();
  agent.set_sequence(1);
  const auto leased = Synchronize(*shell, agent);
  ASSERT_EQ(leased->leases_size(), 1);
  agent.set_epoch(leased->epoch());
  v1::LeaseResult* finished = agent.add_finished();
  *finished->mutable_lease() = leased->leases(0).reference();
  *finished->mutable_result() = TimedResult(leased->leases(0).batch());
  {
    const FullDisk full;
    lease_job.set_tuner_id("another");
    for (int i = 0; i < 20; ++i) {
      agent.set_sequence(agent.sequence() + 1);
      const auto answer = Synchronize(*shell, agent);
      if (answer.ok()) {
        EXPECT_EQ(answer->acked_lease_ids_size() + answer->cancelled_lease_ids_size() + answer->leases_size(), 0);
      } else {
        EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
      }
      EXPECT_EQ(LeaseJob(*shell, lease_job).status().code(), absl::StatusCode::kUnavailable);
    }
    EXPECT_EQ(Submit(*shell, "third").status().code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(shell->ListDevices(v1::ListDevicesRequest()).trouble(), "");
    EXPECT_NE(GetJob(*shell, queued)->waiting_for().find("the tracker's disk"), std::string::npos);
    EXPECT_EQ(GetJob(*shell, queued)->state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(GetJob(*shell, queued)->attempts(), 0);
    EXPECT_EQ(GetJob(*shell, measured)->state(), v1::JOB_STATE_RUNNING);
  }
  int acknowledged = 0;
  for (int i = 0; i < 10 && acknowledged == 0; ++i) {
    agent.set_sequence(agent.sequence() + 1);
    const auto answer = Synchronize(*shell, agent);
    if (answer.ok()) acknowledged = answer->acked_lease_ids_size();
  }
  EXPECT_EQ(acknowledged, 1);
  EXPECT_EQ(store_->Summarize()->records, 2);
  EXPECT_EQ(shell->ListDevices(v1::ListDevicesRequest()).trouble(), "");
  EXPECT_EQ(LeaseJob(*shell, lease_job)->job().id(), queued);
  EXPECT_EQ(GetJob(*shell, queued)->attempts(), 1);
  EXPECT_EQ(shell->Counters().leases_lost(), 0);
}

// Holds the lock of a database, so that other connections cannot write: stands in for a slow disk.
class SlowDisk {
 public:
  explicit SlowDisk(const std::filesystem::path& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &connection_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~SlowDisk() { sqlite3_close(connection_); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

 private:
  sqlite3* connection_ = nullptr;
};

// The agent's call is open for longer than a lease lives without calls.
TEST_F(ShellTest, AnAgentIsNotSilentWhileItsResultsAreStored) {
  FarmOptions options;
  options.devices.lease_ttl = absl::Milliseconds(1500);
  options.stall = absl::Seconds(1);  // shorter than the lease, because a stalled tracker ends no lease
  const auto shell =
      Shell::Start(options, FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  std::future<int> acknowledged;
  {
    const SlowDisk slow(folder_ / "records.db");
    acknowledged = std::async(std::launch::async, [&] { return Measure(*shell, "a", kPresent); });
    absl::SleepFor(2 * options.devices.lease_ttl);
    EXPECT_EQ(store_->Summarize()->records, 0);
  }
  EXPECT_EQ(acknowledged.get(), 1);
  EXPECT_EQ(store_->Summarize()->records, 2);
  EXPECT_EQ(shell->Counters().leases_lost(), 0);
}

// Otherwise a restart could take back an end that users have seen.
TEST_F(ShellTest, AnEndIsShownOnceItIsStored) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  const std::string before = Submit(*shell, "before")->id();
  const auto cancel = [&](const std::string& id) {
    return Await<v1::Job>([&](auto done) { shell->CancelJob(id, done); });
  };
  const auto watch = [&](const std::string& id) {
    v1::WatchJobRequest request;
    request.set_job_id(id);
    request.set_after_sequence(1'000'000);  // the request asks for no events
    return Await<v1::WatchJobResponse>([&](auto done) { shell->WatchJob(request, "ann", kPresent, done); })
        ->job()
        .state();
  };
  ASSERT_TRUE(cancel(before).ok());
  const std::string meanwhile = Submit(*shell, "meanwhile")->id();
  {
    const FullDisk full;
    EXPECT_EQ(cancel(meanwhile).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(cancel(meanwhile).status().code(), absl::StatusCode::kUnavailable) << "now it is known";
    const auto shown = GetJob(*shell, meanwhile);
    EXPECT_EQ(shown->state(), v1::JOB_STATE_QUEUED);
    EXPECT_FALSE(shown->has_ended());
    EXPECT_NE(shown->waiting_for().find("the tracker's disk"), std::string::npos);
    EXPECT_EQ(GetJob(*shell, before)->state(), v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(watch(meanwhile), v1::JOB_STATE_QUEUED);
    const auto listed = Await<v1::ListJobsResponse>([&](auto done) { shell->ListJobs(v1::ListJobsRequest(), done); });
    for (const v1::Job& job : listed->jobs()) {
      EXPECT_EQ(job.state(), job.id() == before ? v1::JOB_STATE_CANCELLED : v1::JOB_STATE_QUEUED);
    }
  }
  while (absl::IsUnavailable(cancel(meanwhile).status())) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(GetJob(*shell, meanwhile)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(watch(meanwhile), v1::JOB_STATE_CANCELLED);
}

// The first call that the disk refuses takes effect and is stored later. The calls after it are refused without effect.
TEST_F(ShellTest, ACallRefusedForAFullDiskChangesNothing) {
  const auto shell =
      Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  v1::SynchronizeRequest agent;
  agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
  agent.set_agent_id("agent");
  agent.set_boot_id("boot");
  agent.set_sequence(1);
  *agent.add_devices() = DeviceOf();
  ASSERT_TRUE(Synchronize(*shell, agent).ok());
  const auto drain = [&] {
    return Await<v1::DrainResponse>([&](auto done) { shell->Drain("agent", "hot", done); }).status();
  };
  const auto drained = [&] { return shell->ListDevices(v1::ListDevicesRequest()).devices(0).drained(); };
  {
    const FullDisk full;
    EXPECT_TRUE(absl::IsUnavailable(Submit(*shell, "job").status()));
    EXPECT_TRUE(absl::IsUnavailable(Submit(*shell, "job").status())) << "the same request";
    EXPECT_TRUE(absl::IsUnavailable(Submit(*shell, "another").status()));
    EXPECT_TRUE(absl::IsUnavailable(drain()));
    EXPECT_FALSE(drained());
  }
  while (absl::IsUnavailable(Submit(*shell, "job").status())) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(drain().ok());
  EXPECT_TRUE(drained());
  const auto listed = Await<v1::ListJobsResponse>([&](auto done) { shell->ListJobs(v1::ListJobsRequest(), done); });
  ASSERT_EQ(listed->jobs_size(), 1) << "once, however often it was asked for";
  EXPECT_EQ(listed->jobs(0).spec().name(), "job");
}

// The result was recorded but the acknowledgement was lost. The agent sends it again after every start of the tracker.
TEST_F(ShellTest, ARepeatedResultIsRecordedOnceAfterARestart) {
  const auto start = [&] {
    return Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  };
  v1::SynchronizeRequest agent;
  agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
  agent.set_agent_id("agent");
  agent.set_boot_id("boot");
  agent.set_sequence(1);
  *agent.add_devices() = DeviceOf();
  {
    const auto shell = start();
    ASSERT_TRUE(Submit(*shell, "job").ok());
    v1::LeaseJobRequest lease_job;
    lease_job.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease_job.set_tuner_id("tuner");
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() = LeaseJob(*shell, lease_job)->lease();
    submit.set_client_batch_id("first");
    *submit.mutable_batch() = BatchOf(2);
    ASSERT_TRUE(SubmitBatch(*shell, submit).ok());
    const v1::Lease lease = Synchronize(*shell, agent)->leases(0);
    v1::LeaseResult& finished = *agent.add_finished();
    *finished.mutable_lease() = lease.reference();
    *finished.mutable_result() = TimedResult(lease.batch());
    *finished.mutable_batch() = lease.batch();
    *finished.mutable_receipt() = lease.receipt();
  }
  for (int i = 0; i < 3; ++i) {
    agent.set_boot_id("boot" + std::to_string(i));
    const auto answer = Synchronize(*start(), agent);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->acked_lease_ids_size(), 1);
    EXPECT_EQ(store_->Summarize()->records, 2) << i;
  }
}

TEST_F(ShellTest, TheHealthOfDevicesOutlivesTheTracker) {
  const auto quarantined = [&](Shell& shell, const std::string& boot, bool passed) {
    v1::SynchronizeRequest agent;
    agent.set_protocol_version(v1::PROTOCOL_VERSION_1);
    agent.set_agent_id("agent");
    agent.set_boot_id(boot);
    *agent.add_devices() = DeviceOf();
    for (uint64_t number = 1; number <= 3; ++number) {
      agent.mutable_devices(0)->mutable_golden()->set_number(number);
      agent.mutable_devices(0)->mutable_golden()->set_passed(passed);
      agent.set_sequence(number);
      EXPECT_TRUE(Synchronize(shell, agent).ok());
    }
    return shell.ListDevices(v1::ListDevicesRequest()).devices(0).health() == v1::DEVICE_HEALTH_QUARANTINED;
  };
  const auto start = [&] {
    return Shell::Start(FarmOptions(), FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  };
  EXPECT_TRUE(quarantined(*start(), "first", false));
  EXPECT_TRUE(quarantined(*start(), "second", true)) << "well, and not yet tried again";
  ASSERT_TRUE(Await<v1::UndrainResponse>([shell = start()](auto done) { shell->Undrain("agent", done); }).ok());
  EXPECT_FALSE(quarantined(*start(), "third", true));
}

// Clocks that advance only when the test advances them.
struct FakeTime {
  std::atomic<int64_t> steady = 1'000, wall = 1'800'000'000;
  Clocks clocks() {
    return {[this] { return absl::FromUnixSeconds(steady); }, [this] { return absl::FromUnixSeconds(wall); }};
  }
};

// The job had eight hours, and the machine slept for nine.
TEST_F(ShellTest, AJobEndsByTheWallClock) {
  FakeTime time;
  const auto shell = Shell::Start(FarmOptions(), StateInMemory(), store_.get(), time.clocks()).value();
  v1::JobSpec spec = SpecOf("a");
  spec.set_trials(0);
  spec.mutable_until()->set_seconds(time.wall + 8 * 3600);
  const std::string id = Await<v1::Job>([&](auto done) { shell->SubmitJob(spec, done); })->id();
  time.wall += 9 * 3600;
  for (int i = 0; i < 6000 && GetJob(*shell, id)->state() == v1::JOB_STATE_QUEUED; ++i) {
    ++time.steady;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(GetJob(*shell, id)->state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(GetJob(*shell, id)->ended().seconds(), time.wall);
}

TEST_F(ShellTest, ANegativeLimitOfJobsIsRefused) {
  const auto shell = Shell::Start(FarmOptions(), StateInMemory(), store_.get()).value();
  v1::ListJobsRequest request;
  request.set_limit(-1);
  const auto listed = Await<v1::ListJobsResponse>([&](auto done) { shell->ListJobs(request, done); });
  EXPECT_TRUE(absl::IsInvalidArgument(listed.status())) << listed.status();
}

// Held calls of agents, and the answers they got.
class HeldCallsTest : public ShellTest {
 protected:
  HeldCallsTest() { store_ = std::make_unique<storage::MemoryStore>(); }
  void Start(Clocks clocks = {}) {
    FarmState state = FarmState::Open(folder_ / "jobs", absl::Now()).value();
    shell_ = Shell::Start(FarmOptions(), std::move(state), store_.get(), std::move(clocks)).value();
  }
  // Makes the agent call, learn its epoch, and call again without work to report.
  void Hold(const std::string& agent_id, const std::string& target = "cpu") {
    v1::SynchronizeRequest& request = requests_[agent_id];
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_agent_id(agent_id);
    request.set_boot_id("boot");
    request.mutable_max_wait()->set_seconds(20);
    *request.add_devices() = DeviceOf();
    request.mutable_devices(0)->set_target(target);
    request.set_sequence(1);
    request.set_epoch(
        Await<v1::SynchronizeResponse>([&](auto done) { shell_->Synchronize(request, kPresent, done); })->epoch());
    Call(agent_id, 2);
  }
  void Call(const std::string& agent_id, uint64_t sequence, const Present& present = kPresent) {
    v1::SynchronizeRequest request = requests_[agent_id];
    request.set_sequence(sequence);
    const auto stays = std::make_shared<v1::SynchronizeRequest>(request);
    shell_->Synchronize(*stays, present,
                        [this, stays, agent_id](const absl::StatusOr<v1::SynchronizeResponse>& answer) {
                          const std::lock_guard lock(mutex_);
                          answers_[agent_id].push_back(answer);
                        });
  }
  std::vector<absl::StatusOr<v1::SynchronizeResponse>> Answers(const std::string& agent_id) {
    const std::lock_guard lock(mutex_);
    return answers_[agent_id];
  }
  int Answered() {
    const std::lock_guard lock(mutex_);
    int answered = 0;
    for (const auto& [agent_id, answers] : answers_) answered += static_cast<int>(answers.size());
    return answered;
  }
  v1::JobLease LeaseNewJob(const std::string& user = "ann") {
    v1::JobSpec spec = SpecOf("job of " + user);
    spec.set_submitted_by(user);
    EXPECT_TRUE(Await<v1::Job>([&](auto done) { shell_->SubmitJob(spec, done); }).ok());
    v1::LeaseJobRequest request;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id("tuner of " + user);
    return Await<v1::LeaseJobResponse>([&](auto done) { shell_->LeaseJob(request, kPresent, done); })->lease();
  }
  std::string SubmitBatch(const v1::JobLease& lease, const std::string& id, const std::string& target = "cpu") {
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() = lease;
    submit.set_client_batch_id(id);
    *submit.mutable_batch() = BatchOf(2);
    submit.mutable_batch()->mutable_requirements()->set_target(target);
    return Await<v1::SubmitBatchResponse>([&](auto done) { shell_->SubmitBatch(submit, done); })->batch_id();
  }

  FakeTime time_;
  std::mutex mutex_;
  std::map<std::string, v1::SynchronizeRequest> requests_;
  std::map<std::string, std::vector<absl::StatusOr<v1::SynchronizeResponse>>> answers_;
  std::unique_ptr<Shell> shell_;
};

// The event itself answers the held call; there is no polling.
TEST_F(HeldCallsTest, NewWorkWakesOneAgentThatCanTakeIt) {
  Start();
  for (int i = 0; i < 100; ++i) Hold(fmt::format("cpu{}", i));
  Hold("gpu", "gpu");
  ASSERT_EQ(Answered(), 0);
  const v1::JobLease lease = LeaseNewJob();
  SubmitBatch(lease, "first");
  EXPECT_EQ(Answered(), 1);
  SubmitBatch(lease, "second");
  EXPECT_EQ(Answered(), 2) << "another one, since the first is busy";
  EXPECT_EQ(Answers("gpu").size(), 0u);
  SubmitBatch(lease, "third", "gpu");
  ASSERT_EQ(Answers("gpu").size(), 1u);
  EXPECT_EQ(Answers("gpu")[0]->leases_size(), 1);
  SubmitBatch(lease, "nobody's", "npu");
  EXPECT_EQ(Answered(), 3);
  shell_->Stop();
  EXPECT_EQ(Answered(), 101) << "everyone, once";
  EXPECT_TRUE(absl::IsUnavailable(Answers("cpu99").back().status()));
}

// An agent with two devices stops, so two pieces are queued at once. The shell asks about the first piece, but the
// agent gets the second one, because the second piece's user has had less device time.
TEST_F(HeldCallsTest, APieceIsOfferedUntilAnAgentTakesIt) {
  Start(time_.clocks());
  v1::SynchronizeRequest leaver;
  leaver.set_protocol_version(v1::PROTOCOL_VERSION_1);
  leaver.set_agent_id("leaver");
  leaver.set_boot_id("boot");
  for (const char* id : {"first", "second"}) *leaver.add_devices() = DeviceOf(id);
  const auto call = [&] {
    leaver.set_sequence(leaver.sequence() + 1);
    const v1::SynchronizeResponse answer = Synchronize(*shell_, leaver).value();
    leaver.set_epoch(answer.epoch());
    for (const v1::Lease& lease : answer.leases()) *leaver.add_running() = lease.reference();
  };
  for (const char* user : {"ann", "bob"}) {
    SubmitBatch(LeaseNewJob(user), "batch");
    call();
    ++time_.steady;
  }
  ASSERT_EQ(leaver.running_size(), 2);
  for (const char* id : {"x", "y"}) Hold(id);
  ASSERT_EQ(Answered(), 0);
  leaver.set_leaving(true);
  leaver.clear_running();
  call();
  for (const char* id : {"x", "y"}) {
    ASSERT_EQ(Answers(id).size(), 1u) << id;
    EXPECT_EQ(Answers(id)[0]->leases_size(), 1) << id;
  }
}

TEST_F(HeldCallsTest, ANewerCallEndsTheOlderAndADrainTellsItsAgent) {
  Start();
  Hold("a");
  Hold("b");
  Call("a", 3);
  ASSERT_EQ(Answers("a").size(), 1u);
  EXPECT_TRUE(absl::IsAborted(Answers("a")[0].status())) << Answers("a")[0].status();
  ASSERT_TRUE(Await<v1::DrainResponse>([&](auto done) { shell_->Drain("a", "hot", done); }).ok());
  ASSERT_EQ(Answers("a").size(), 2u);
  EXPECT_TRUE(Answers("a")[1]->drained());
  EXPECT_EQ(Answers("b").size(), 0u);
}

TEST_F(HeldCallsTest, CallsOfGoneOrRevokedCallersEnd) {
  Start();
  Hold("a");
  std::atomic<bool> present = true;
  Call("a", 3, [&present] { return present.load(); });
  ASSERT_EQ(Answers("a").size(), 1u) << "the call before";
  present = false;
  while (Answers("a").size() < 2) absl::SleepFor(absl::Milliseconds(10));
  SubmitBatch(LeaseNewJob(), "first");
  EXPECT_EQ(Answers("a").size(), 2u) << "there is nobody to give it to";
  const auto activity = [this] { return shell_->ListDevices({}).devices(0).activity(); };
  EXPECT_EQ(activity(), v1::DEVICE_ACTIVITY_IDLE) << "it may call again";
  while (activity() == v1::DEVICE_ACTIVITY_IDLE) absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(activity(), v1::DEVICE_ACTIVITY_OFFLINE) << "and not only after offline_after";
}

TEST_F(HeldCallsTest, ResultsAndCancelsWakeTheTunerThatWaitsForThem) {
  Start();
  Hold("a");
  const v1::JobLease lease = LeaseNewJob();
  v1::WaitBatchRequest wait;
  *wait.mutable_lease() = lease;
  wait.add_batch_ids(SubmitBatch(lease, "first"));
  wait.mutable_max_wait()->set_seconds(20);
  std::promise<absl::StatusOr<v1::WaitBatchResponse>> result, cancelled;
  shell_->WaitBatch(wait, kPresent, [&](auto answer) { result.set_value(answer); });
  v1::SynchronizeRequest& agent = requests_["a"];
  const v1::Lease given = Answers("a")[0]->leases(0);
  *agent.add_finished()->mutable_lease() = given.reference();
  *agent.mutable_finished(0)->mutable_result() = TimedResult(given.batch());
  Call("a", 3);
  EXPECT_EQ(result.get_future().get()->finished_size(), 1);
  EXPECT_EQ(store_->Summarize()->records, 2) << "on the disk before anyone hears of it";
  wait.clear_batch_ids();
  shell_->WaitBatch(wait, kPresent, [&](auto answer) { cancelled.set_value(answer); });
  ASSERT_TRUE(Await<v1::Job>([&](auto done) { shell_->CancelJob(lease.job_id(), done); }).ok());
  EXPECT_TRUE(cancelled.get_future().get()->cancelled());
}

TEST_F(HeldCallsTest, LimitsHeldBatchWaitsPerJob) {
  Start();
  v1::WaitBatchRequest wait;
  *wait.mutable_lease() = LeaseNewJob();
  wait.add_batch_ids(SubmitBatch(wait.lease(), "first"));
  wait.mutable_max_wait()->set_seconds(20);
  std::atomic<int> oldest = 0, others = 0;
  shell_->WaitBatch(wait, kPresent, [&](const auto& answer) { oldest += answer.ok() && answer->finished().empty(); });
  for (int i = 1; i < kQuotas.open_batches; ++i) shell_->WaitBatch(wait, kPresent, [&](const auto&) { ++others; });
  EXPECT_EQ(oldest + others, 0);
  shell_->WaitBatch(wait, kPresent, [&](const auto&) { ++others; });
  EXPECT_EQ(oldest, 1);
  EXPECT_EQ(others, 0);
  shell_->Stop();
}

TEST_F(HeldCallsTest, LimitsHeldWatchesPerIdentity) {
  Start();
  v1::WatchJobRequest watch;
  watch.set_job_id(Submit(*shell_, "job")->id());
  watch.set_after_sequence(int64_t{1} << 62);
  watch.mutable_max_wait()->set_seconds(20);
  std::atomic<int> first = 0, others = 0;
  shell_->WatchJob(watch, "ann", kPresent, [&](const auto& told) { first += told.ok() && told->job().id() != ""; });
  for (int i = 1; i < kQuotas.watches; ++i) shell_->WatchJob(watch, "ann", kPresent, [&](const auto&) { ++others; });
  shell_->WatchJob(watch, "bob", kPresent, [&](const auto&) { ++others; });
  EXPECT_EQ(first + others, 0);
  shell_->WatchJob(watch, "ann", kPresent, [&](const auto&) { ++others; });
  // The observer is called once the state that it sees is on disk.
  while (first == 0) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(others, 0);
  shell_->Stop();
}

TEST_F(HeldCallsTest, ReturnsWhetherACallChangedAnything) {
  Start();
  bool changed = false;
  const auto submit = [&](const std::string& name) {
    return Await<v1::Job>([&](auto done) { changed = shell_->SubmitJob(SpecOf(name), done); });
  };
  const std::string id = submit("a")->id();
  EXPECT_TRUE(changed);
  EXPECT_EQ(submit("a")->id(), id);
  EXPECT_FALSE(changed);
  const auto cancel = [&] { return Await<v1::Job>([&](auto done) { changed = shell_->CancelJob(id, done); }); };
  ASSERT_TRUE(cancel().ok());
  EXPECT_TRUE(changed);
  ASSERT_TRUE(cancel().ok());
  EXPECT_FALSE(changed);
}

TEST_F(HeldCallsTest, ANewJobWakesOneTunerAndItsWatcher) {
  Start();
  std::promise<absl::StatusOr<v1::LeaseJobResponse>> leased;
  std::atomic<int> others = 0;
  v1::LeaseJobRequest first, second;
  for (v1::LeaseJobRequest* request : {&first, &second}) {
    request->set_protocol_version(v1::PROTOCOL_VERSION_1);
    request->set_tuner_id(request == &first ? "first" : "second");
    request->mutable_max_wait()->set_seconds(20);
  }
  shell_->LeaseJob(first, kPresent, [&](auto answer) { leased.set_value(answer); });
  shell_->LeaseJob(second, kPresent, [&](const auto&) { ++others; });
  const v1::Job job = *Submit(*shell_, "a");
  const v1::JobLease lease = leased.get_future().get()->lease();
  EXPECT_EQ(lease.job_id(), job.id());
  EXPECT_EQ(others, 0);
  v1::WatchJobRequest watch;
  watch.set_job_id(job.id());
  watch.mutable_max_wait()->set_seconds(20);
  watch.set_after_sequence(Await<v1::WatchJobResponse>([&](auto done) { shell_->WatchJob(watch, "", kPresent, done); })
                               ->events()
                               .rbegin()
                               ->sequence());
  std::promise<absl::StatusOr<v1::WatchJobResponse>> told;
  shell_->WatchJob(watch, "", kPresent, [&](auto answer) { told.set_value(answer); });
  v1::ReportProgressRequest report;
  *report.mutable_lease() = lease;
  report.mutable_progress()->set_trials(7);
  ASSERT_TRUE(Await<v1::ReportProgressResponse>([&](auto done) { shell_->ReportProgress(report, done); }).ok());
  EXPECT_EQ(told.get_future().get()->job().progress().trials(), 7);
  shell_.reset();
  FarmState state = FarmState::Open(folder_ / "jobs", absl::Now()).value();
  EXPECT_EQ((*state.TakeJobs(absl::Now()))[0].progress().trials(), 7);
}

TEST_F(HeldCallsTest, ATunerThatLeavesReturnsItsJobsAndGetsNone) {
  Start();
  const v1::Job job = *Submit(*shell_, "a");
  v1::LeaseJobRequest ask;
  ask.set_protocol_version(v1::PROTOCOL_VERSION_1);
  ask.set_tuner_id("tuner");
  ask.set_boot_id("boot");
  v1::LeaseJobRequest leave = ask;
  leave.set_leaving(true);
  const auto call = [&](const v1::LeaseJobRequest& request, const Present& present) {
    return Await<v1::LeaseJobResponse>([&](auto done) { shell_->LeaseJob(request, present, done); });
  };
  const auto state = [&] { return Await<v1::Job>([&](auto done) { shell_->GetJob(job.id(), done); })->state(); };
  ASSERT_TRUE(call(ask, kPresent)->has_lease());
  EXPECT_EQ(state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(call(leave, kPresent)->has_lease());
  EXPECT_EQ(state(), v1::JOB_STATE_QUEUED);
  EXPECT_FALSE(call(ask, [] { return false; }).ok()) << "cancelled before, looked at after";
  EXPECT_EQ(state(), v1::JOB_STATE_QUEUED);
}

TEST_F(HeldCallsTest, ForgottenJobsAreDeletedFromTheStateFile) {
  FarmOptions options;
  options.jobs.ended_max = 1;
  options.jobs.keep_ended_unseen = absl::ZeroDuration();
  shell_ = Shell::Start(options, FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  for (const char* name : {"a", "b"}) {
    const std::string id = Submit(*shell_, name)->id();
    ASSERT_TRUE(Await<v1::Job>([&](auto done) { shell_->CancelJob(id, done); }).ok());
  }
  const auto jobs = [&] {
    return Await<v1::ListJobsResponse>([&](auto done) { shell_->ListJobs(v1::ListJobsRequest(), done); })->jobs_size();
  };
  while (jobs() > 1) absl::SleepFor(absl::Milliseconds(20));
  shell_.reset();
  FarmState state = FarmState::Open(folder_ / "jobs", absl::Now()).value();
  ASSERT_EQ(state.TakeJobs(absl::Now())->size(), 1u);
  EXPECT_EQ((*state.TakeJobs(absl::Now()))[0].spec().name(), "b");
}

// gRPC's threads call like this: agents and tuners work, viewers watch, and the tracker stops meanwhile. The test waits
// for work to be done, however slow the machine is.
TEST_F(ShellTest, ManyThreadsMayCallAtOnce) {
  const auto shell = Shell::Start(FarmOptions(), StateInMemory(), store_.get()).value();
  std::atomic<bool> ended{false};
  const auto present = [&] { return !ended.load(); };
  std::vector<std::thread> workers, watchers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&, i] { Measure(*shell, std::to_string(i), present); });
    watchers.emplace_back([&, i] {
      v1::WatchJobRequest watch;
      watch.set_job_id(Submit(*shell, "watched" + std::to_string(i))->id());
      while (present()) {
        (void)Await<v1::WatchJobResponse>([&](auto done) { shell->WatchJob(watch, "", present, done); });
        (void)shell->ListDevices(v1::ListDevicesRequest());
        (void)shell->Counters();
        (void)Await<v1::ListJobsResponse>([&](auto done) { shell->ListJobs(v1::ListJobsRequest(), done); });
      }
    });
  }
  absl::SleepFor(absl::Milliseconds(700));  // longer than a tick
  for (std::thread& worker : workers) worker.join();
  shell->Stop();
  ended = true;
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_GT(store_->Summarize()->records, 0);
}

}  // namespace
}  // namespace hone::tracker
