// SPDX-License-Identifier: Apache-2.0
// The program hone-tuner leases jobs from a tracker and tunes several at a time. It keeps no state, and many may run.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/identity.h"
#include "base/one_line.h"
#include "base/resource_limit.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "base/thread_pool.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "pki/farm_link.h"
#include "pki/identity_folder.h"
#include "proto/convert.h"
#include "transport/farm_identity.h"
#include "transport/transport.h"
#include "tuner/build_pool.h"
#include "tuner/build_worker.h"
#include "tuner/confirm_model.h"
#include "tuner/convert.h"
#include "tuner/farm_client.h"
#include "tuner/job_clock.h"
#include "tuner/model_compiler.h"
#include "tuner/tune_loop.h"

namespace hone::tuner {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);  // after it, the call itself fails and says why

struct Options {
  std::string tracker, name;
  std::string identity;  // a folder (pki/identity_folder.h)
  BuildOptions build;
  int jobs = 4;  // tuned at a time
  bool die_with_parent = false;
  int build_worker = -1;      // socket of a build worker; negative: the process is none
  std::string compile_model;  // folder of a model to compile (model_compiler.h); empty: the process is a tuner
  std::string reproducers;    // folder for reproducers of pass failures; empty: none are written
};

// Tunes a leased job. Success and errors of the job itself end it. After an error of the farm it stays open and is
// leased again.
absl::Status Tune(const Options& options, pki::FarmLink& link, const v1::LeaseJobResponse& leased,
                  BuildPool& builders) {
  const auto channel = [&link] { return link.AwaitConnectedChannel(kConnectTimeout); };
  JobClock job_clock;
  FarmClient farm(channel, leased.lease(), options.tracker, &job_clock);
  Progress progress;
  Job job = FromProto(leased.job());
  if (leased.has_until_left()) {
    const v1::LeaseJobResponse& l = leased;
    job.until = absl::Now() + hone::FromProto(l.until_left());
  }
  // Every sixth of lease_ttl, twice as often as the protocol demands.
  if (const int64_t ttl = leased.lease_ttl().seconds(); ttl > 0) job.heartbeat = absl::Seconds(ttl) / 6;
  const absl::Status tuned = TuneJob(job, farm, builders, &progress, [&job_clock] { return job_clock.Now(); });
  switch (tuned.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return tuned;
    default:
      break;
  }
  std::optional<v1::ModelConfirmation> confirmation;
  if (tuned.ok() && job.measures_model) {
    HONE_ASSIGN_OR_RETURN(confirmation,
                          ConfirmModel(leased.job(), job, farm, {options.build.command, channel}, progress));
    progress.activity.clear();
  }
  FarmClient closing(channel, leased.lease(), options.tracker, &job_clock);  // the loop may have abandoned `farm`
  HONE_RETURN_IF_ERROR(closing.Complete(progress, tuned.ok() ? "" : std::string(tuned.message()),
                                        confirmation.has_value() ? &*confirmation : nullptr));
  return tuned;
}

v1::LeaseJobRequest RequestOf(const std::string& tuner, const std::string& boot_id) {
  v1::LeaseJobRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_tuner_id(tuner);
  request.set_boot_id(boot_id);
  return request;
}

// The process's tuners and their open calls for a job. When the process ends, the calls are cancelled, so that no job
// is leased any more, and held jobs are returned, so that other tuners get them at once. Thread-safe.
class LeasingCalls {
 public:
  // Registers a call before it is made. False: the process is ending, and the call must not be made.
  bool Begin(const std::string& tuner, grpc::ClientContext* call) {
    const std::lock_guard lock(mutex_);
    if (!leaving_) asking_[tuner] = call;
    return !leaving_;
  }
  // Removes the call after it was answered.
  void End(const std::string& tuner) {
    const std::lock_guard lock(mutex_);
    asking_[tuner] = nullptr;
    answered_.notify_all();
  }
  // Cancels all calls and returns all jobs. Takes at most 2 seconds for both; a tracker that does not answer notices
  // the end of the tuners later by itself.
  void EndAllAndReturnJobs(pki::FarmLink& link, const std::string& boot_id) {
    std::unique_lock lock(mutex_);
    leaving_ = true;
    const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(2);
    for (const auto& [tuner, call] : asking_) {
      if (call != nullptr) call->TryCancel();
    }
    answered_.wait_until(lock, deadline, [this] {
      return std::all_of(asking_.begin(), asking_.end(), [](const auto& entry) { return entry.second == nullptr; });
    });
    // A cancelled call may still have leased a job. So the tracker, which knows the jobs of each tuner, is asked for
    // all.
    for (const auto& [tuner, call] : asking_) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      v1::LeaseJobRequest request = RequestOf(tuner, boot_id);
      request.set_leaving(true);
      v1::LeaseJobResponse response;
      const grpc::Status status = v1::TunerService::NewStub(link.channel())->LeaseJob(&context, request, &response);
      if (!status.ok())
        spdlog::warn("{} could not return its job to the tracker: {}", tuner, OneLine(status.error_message()));
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  bool leaving_ = false;
  std::map<std::string, grpc::ClientContext*> asking_;  // by tuner; null: it has no open call
};

// The parts that all jobs of the process share. They share one build pool, so that one job compiles while another's
// candidates are measured.
struct Shared {
  const Options& options;
  pki::FarmLink& link;
  const std::string boot_id;
  LeasingCalls leasing;
  BuildPool builders;
};

// Takes one job if there is one, and tunes it.
absl::Status TakeJob(const std::string& tuner, Shared& shared) {
  const auto stub = v1::TunerService::NewStub(shared.link.AwaitConnectedChannel(kConnectTimeout));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::LeaseJobRequest request = RequestOf(tuner, shared.boot_id);
  request.mutable_max_wait()->set_seconds(20);
  v1::LeaseJobResponse response;
  if (!shared.leasing.Begin(tuner, &context)) return absl::CancelledError("the tuner is stopping");
  const grpc::Status asked = stub->LeaseJob(&context, request, &response);
  shared.leasing.End(tuner);
  HONE_RETURN_IF_ERROR(FromGrpc(asked));
  if (!response.has_lease()) return absl::OkStatus();
  spdlog::info("job {}: {}", response.job().id(), OneLine(response.job().spec().name()));
  const absl::Status tuned = Tune(shared.options, shared.link, response, shared.builders);
  spdlog::info("job {} ended: {}", response.job().id(), tuned.ok() ? "done" : OneLine(std::string(tuned.message())));
  return absl::OkStatus();
}

// Whether trying again is useless: the tracker has another protocol version, or the certificate is not for a tuner.
bool Hopeless(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

// The loop of one tuner of the process. Returns only a hopeless error.
absl::Status TakeJobs(const std::string& tuner, Shared& shared) {
  absl::Duration pause = absl::Milliseconds(100);
  while (true) {
    const absl::Status status = TakeJob(tuner, shared);
    if (status.ok()) {
      pause = absl::Milliseconds(100);
      continue;
    }
    if (Hopeless(status)) return status;
    spdlog::warn("tracker {}: {}; next try in {}", shared.options.tracker, OneLine(std::string(status.message())),
                 absl::FormatDuration(pause));
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Seconds(10));
  }
}

// Prints the error. Returns the exit code: 2 for wrong arguments, else 1.
int Finish(const absl::Status& status) {
  std::fprintf(stderr, "hone-tuner: %s\n", ReplaceControlCharacters(std::string(status.message())).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// Runs the tuners until a signal or a hopeless error, and then ends the process by _exit. Only jobs must be returned
// before that; all else may be cut off. Returns only an error from before the tuners start.
absl::Status Run(const Options& options, const sigset_t& signals) {
  // Remove folders of killed build workers: their assembler uses the first parent, their linker the second.
  for (const char* parent : {"", "/dev/shm"}) TemporaryFolder::RemoveAbandoned(parent);
  HONE_ASSIGN_OR_RETURN(const auto link, pki::FarmLink::Open(options.tracker, options.identity));
  Shared shared{options, *link, RandomId(), {}, BuildPool(options.build)};
  std::vector<std::thread> tuners;
  for (int i = 1; i <= options.jobs; ++i) {
    tuners.emplace_back([&shared, tuner = fmt::format("{}/{}", options.name, i)] {
      const absl::Status hopeless = TakeJobs(tuner, shared);
      shared.leasing.EndAllAndReturnJobs(shared.link, shared.boot_id);
      _exit(Finish(hopeless));
    });
  }
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("stopping on signal {}", signal);
  shared.leasing.EndAllAndReturnJobs(*link, shared.boot_id);
  _exit(0);
}

// Completes name and tracker from the identity folder. A unix socket needs no identity. Several tuners may share a
// certificate, so a tuner's name is the certificate's name followed by its own. InvalidArgument: there is no tracker,
// or an identity was given for a socket.
absl::Status TakeIdentity(Options& options) {
  if (options.name.empty()) options.name = fmt::format("{}-{}", HostName(), getpid());
  if (SocketPath(options.tracker)) {
    if (options.identity.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--identity: a unix socket uses no certificates; omit it");
  }
  if (options.identity.empty()) {
    HONE_ASSIGN_OR_RETURN(options.identity, pki::DefaultFolder(Role::kTuner));
  }
  HONE_ASSIGN_OR_RETURN(const std::string certified, pki::ReadName(options.identity, Role::kTuner));
  options.name = certified + "/" + options.name;
  HONE_ASSIGN_OR_RETURN(const pki::Settings settings, pki::ReadSettings(options.identity));
  if (options.tracker.empty()) options.tracker = settings.tracker;
  if (!options.tracker.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("no tracker is given; give --tracker HOST:PORT, or join a farm (hone join)");
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Searches for fast schedules for the jobs of a Hone tracker.", "hone-tuner");
  app.add_option("--tracker", options.tracker,
                 "HOST:PORT or unix:/PATH of the tracker (default: the tracker that was joined)");
  app.add_option("--name", options.name, "name of this tuner, unique in the farm (default: host and process)");
  app.add_option("--build-workers", options.build.workers, "processes that compile candidates (default: one per CPU)")
      ->check(CLI::Range(0, kThreadsMax));
  app.add_option("--jobs", options.jobs, "jobs tuned at the same time: one is compiled while another is measured")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--reproducers", options.reproducers,
                 "folder for a file that reproduces the failure of a compiler pass");
  app.add_option("--identity", options.identity, "folder with the tuner's certificate (default: ~/.config/hone/tuner)");
  app.add_flag("--die-with-parent", options.die_with_parent, "end when the process that started this one ends");
  app.add_option("--build-worker", options.build_worker)->group("");
  app.add_option("--compile-model", options.compile_model)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.build_worker >= 0) {
    Builder builder(options.reproducers);
    return ServeBuilds(options.build_worker, [&](const BuildRequest& request) { return builder.Build(request); });
  }
  if (!options.compile_model.empty()) return CompileModelIn(options.compile_model);
  if (!options.reproducers.empty()) options.build.command.push_back("--reproducers=" + options.reproducers);
  if (options.die_with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  // Blocked before any thread starts, so that all threads leave them to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  absl::Status status = TakeIdentity(options);
  if (status.ok()) status = Run(options, signals);
  return Finish(status);
}

}  // namespace
}  // namespace hone::tuner

int main(int argc, char** argv) {
  hone::OpenClosedStandardStreams();
  hone::IgnoreFileSizeSignal();
  return hone::tuner::Main(argc, argv);
}
