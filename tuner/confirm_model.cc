// SPDX-License-Identifier: Apache-2.0
#include "tuner/confirm_model.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "base/control_groups.h"
#include "base/inner_path.h"
#include "base/median.h"
#include "base/one_line.h"
#include "base/paired_ratio.h"
#include "base/read_file.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "base/temporary_folder.h"
#include "compiler/target/target.h"
#include "files/transfer.h"
#include "tuner/batch.h"
#include "tuner/child_process.h"
#include "tuner/confirmation_time.h"
#include "tuner/convert.h"
#include "tuner/heartbeat.h"
#include "tuner/model_compiler.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kTellPeriod = absl::Seconds(1);
constexpr absl::Duration kCompileTimeMax = absl::Minutes(30);     // of both packages, without waiting for the host lock
constexpr absl::Duration kHostWaitMax = absl::Hours(2);           // for the host lock; no visit takes that long
constexpr absl::Duration kWatchPeriod = absl::Milliseconds(100);  // of looking whether the job was lost
constexpr absl::Duration kTransferPatience = absl::Minutes(10);   // without any progress of a file
constexpr int kTimesKept = 1000;                                  // of each package, in the job
constexpr char kNoTime[] = "the time of the job (--until) was over before the whole model was measured";
constexpr char kCompiling[] = "compiling the whole model, untuned and tuned";
constexpr char kWaitingForHost[] =
    "waiting to compile the whole model, because a device of the tuner's machine is measuring";
constexpr char kRunId[] = "run";  // of the only candidate of a batch with a run (measure.proto)

// Bytes of memory that the compiler of the model may use.
uint64_t CompilerMemory() { return static_cast<uint64_t>(UsableMemory()) / 2; }

// Leaves at most kTimesKept values, evenly spread.
void Thin(google::protobuf::RepeatedField<double>& values) {
  const int step = (values.size() + kTimesKept - 1) / kTimesKept;
  if (step < 2) return;
  int kept = 0;
  for (int i = 0; i < values.size(); i += step) values[kept++] = values[i];
  values.Truncate(kept);
}

std::vector<double> TimesOf(const v1::PackageReport& report) {
  return {report.seconds().begin(), report.seconds().end()};
}

// What the run of both packages says.
v1::ModelConfirmation Judge(const v1::BatchResult& result) {
  v1::ModelConfirmation confirmation;
  confirmation.set_device(result.device_name());
  const std::string failure = result.outcomes().empty() ? "" : result.outcomes(0).outcome().failure().text();
  const v1::RunReport& run = result.run();
  if (run.packages_size() != 2 || run.packages(0).seconds().empty() || run.packages(1).seconds().empty()) {
    confirmation.set_problem(!result.error().empty() ? result.error() : !failure.empty() ? failure : "no run was made");
    return confirmation;
  }
  const std::vector<double> untuned = TimesOf(run.packages(0)), tuned = TimesOf(run.packages(1));
  confirmation.set_before_seconds(Median(untuned));
  confirmation.set_after_seconds(Median(tuned));
  if (const std::optional<PairedRatio> paired = ComparePaired(tuned, untuned)) {
    confirmation.set_ratio(paired->ratio);
    confirmation.set_ratio_low(paired->low);
    confirmation.set_ratio_high(paired->high);
  } else {
    confirmation.set_ratio(confirmation.before_seconds() / confirmation.after_seconds());
  }
  *confirmation.mutable_run() = run;
  for (v1::PackageReport& package : *confirmation.mutable_run()->mutable_packages()) Thin(*package.mutable_seconds());
  return confirmation;
}

class ModelRun {
 public:
  ModelRun(const v1::Job& leased, const Job& job, FarmClient& farm, const ConfirmOptions& options, Progress& progress)
      : leased_(leased), job_(job), farm_(farm), options_(options), progress_(progress) {}

  absl::StatusOr<v1::ModelConfirmation> Make() {
    const Heartbeat heartbeat(farm_, job_.heartbeat);
    absl::StatusOr<v1::ModelConfirmation> made = Confirm();
    HONE_RETURN_IF_ERROR(lost_);
    if (!made.ok()) {
      const std::string why = IsOver() ? kNoTime : OneLine(std::string(made.status().message()));
      made = v1::ModelConfirmation();
      made->set_problem(why);
    }
    if (!made->problem().empty()) spdlog::warn("the whole model was not measured: {}", made->problem());
    return made;
  }

 private:
  absl::StatusOr<v1::ModelConfirmation> Confirm() {
    HONE_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
    HONE_RETURN_IF_ERROR(Begin("fetching the model to measure it as a whole"));
    HONE_RETURN_IF_ERROR(Transfer([&](files::FileTransfer& transfer) { return FetchModel(folder.path(), transfer); }));
    HONE_RETURN_IF_ERROR(Compile(folder.path()));
    HONE_RETURN_IF_ERROR(Begin("sending the whole model, untuned and tuned"));
    v1::Batch batch;
    HONE_ASSIGN_OR_RETURN(*batch.mutable_run()->add_packages(), Store(folder / kUntunedPackage));
    HONE_ASSIGN_OR_RETURN(*batch.mutable_run()->add_packages(), Store(folder / kTunedPackage));
    HONE_RETURN_IF_ERROR(Begin("measuring the whole model, untuned and tuned in turns"));
    HONE_RETURN_IF_ERROR(SetTask(batch));
    const auto over = [this] { return IsOver(); };
    absl::StatusOr<std::optional<v1::BatchResult>> result = farm_.Run(batch, over);
    if (absl::IsAborted(result.status()) || absl::IsCancelled(result.status()) ||
        absl::IsUnavailable(result.status())) {
      lost_ = result.status();
    }
    HONE_RETURN_IF_ERROR(result.status());
    if (!result->has_value()) return absl::DeadlineExceededError(kNoTime);
    v1::ModelConfirmation confirmation = Judge(**result);
    if (confirmation.ratio() > 0) confirmation.set_kernels_ratio(KernelsRatio());
    return confirmation;
  }

  // The gain by the sums of kernel times. They are comparable with the run if the model has one program without open
  // sizes; else 0.
  double KernelsRatio() const {
    const bool is_open = std::ranges::any_of(job_.workloads, [](const JobWorkload& w) { return !w.sizes.empty(); });
    const bool known = progress_.latency_before_seconds.has_value() && progress_.latency_after_seconds.value_or(0) > 0;
    if (is_open || !known || leased_.spec().model().programs_size() != 1) return 0;
    return *progress_.latency_before_seconds / *progress_.latency_after_seconds;
  }

  bool IsOver() const { return absl::Now() >= job_.until; }

  // Begins a part: the job shows what it does. Errors: those of Tell.
  absl::Status Begin(const std::string& activity) {
    progress_.activity = activity;
    next_report_ = absl::InfinitePast();
    return Tell();
  }

  // Reports the progress if the last report is kTellPeriod ago. Errors: of the farm, or the time is over.
  absl::Status Tell() {
    if (IsOver()) return absl::DeadlineExceededError(kNoTime);
    if (SteadyNow() < next_report_) return absl::OkStatus();
    next_report_ = SteadyNow() + kTellPeriod;
    return lost_ = farm_.Report(progress_);
  }

  // Runs a transfer that ends soon after the job does. While it stalls it tells no progress, so a thread of its own
  // asks whether the job was lost.
  absl::Status Transfer(const std::function<absl::Status(files::FileTransfer&)>& work) {
    std::stop_source stop;
    files::TransferOptions options{.stop = stop.get_token(), .until = job_.until, .patience = kTransferPatience};
    options.progress = [this, &stop](const files::TransferProgress&) {
      if (!Tell().ok()) stop.request_stop();
    };
    absl::Status done;
    {
      const std::jthread watch([this, &stop](const std::stop_token& over) {
        std::mutex mutex;
        std::condition_variable_any woken;
        std::unique_lock lock(mutex);
        while (!over.stop_requested() && !farm_.HasLostJob()) {
          woken.wait_for(lock, over, absl::ToChronoNanoseconds(kWatchPeriod), [] { return false; });
        }
        if (farm_.HasLostJob()) stop.request_stop();
      });
      files::FileTransfer transfer(options_.channel, options);
      done = work(transfer);
    }
    if (farm_.HasLostJob()) {
      next_report_ = absl::InfinitePast();
      HONE_RETURN_IF_ERROR(Tell());
    }
    return done;
  }

  absl::Status FetchModel(const fs::path& folder, files::FileTransfer& transfer) {
    for (const v1::ModelFile& file : leased_.spec().model().files()) {
      if (!IsInnerPath(file.path())) {
        return absl::InvalidArgumentError(
            fmt::format("the model names a file '{}', which is outside its folder", file.path()));
      }
      const fs::path path = folder / kModelFolder / file.path();
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      std::ofstream out(path, std::ios::binary);
      const auto write = [&](std::string_view piece) {
        out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
        return out.good() ? absl::OkStatus()
                          : absl::UnavailableError(fmt::format("cannot write the model to {}", path.string()));
      };
      const absl::Status fetched = transfer.DownloadTo(file.file(), write);
      if (!fetched.ok()) return Annotate(fetched, fmt::format("the file {} of the model", file.path()));
      out.close();
      if (!out.good()) return absl::UnavailableError(fmt::format("cannot write the model to {}", path.string()));
      HONE_RETURN_IF_ERROR(Tell());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::FileName> Store(const fs::path& package) {
    absl::StatusOr<v1::FileName> stored;
    HONE_RETURN_IF_ERROR(Transfer([&](files::FileTransfer& transfer) {
      stored = transfer.Upload(package.string());
      return stored.status();
    }));
    return stored;
  }

  // Describes the job to the child.
  absl::Status WriteJob(const fs::path& folder) const {
    v1::Job job;
    job.mutable_spec()->set_target(leased_.spec().target());
    *job.mutable_spec()->mutable_model() = leased_.spec().model();
    *job.mutable_progress()->mutable_workloads() = ToProto(progress_).workloads();
    std::ofstream out(folder / kJobFile, std::ios::binary);
    job.SerializeToOstream(&out);
    out.close();
    return out.good() ? absl::OkStatus() : absl::UnavailableError(fmt::format("cannot write to {}", folder.string()));
  }

  // Has the child compile both packages.
  absl::Status Compile(const fs::path& folder) {
    HONE_RETURN_IF_ERROR(WriteJob(folder));
    ChildProcess::Options child{.command = options_.compiler, .memory_max = CompilerMemory()};
    child.command.push_back("--compile-model=" + folder.string());
    HONE_ASSIGN_OR_RETURN(ChildProcess compiler, ChildProcess::Start(child));
    HONE_RETURN_IF_ERROR(AwaitCompiler(compiler, folder / kCompilingFile));
    const int status = compiler.Kill();
    if (status == 0) return absl::OkStatus();
    const std::string memory = fmt::format("{:.3g} GiB of memory, half of what the tuner's machine has",
                                           static_cast<double>(CompilerMemory()) / (1 << 30));
    if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemoryCode) {
      return absl::ResourceExhaustedError("compiling the whole model needs more than " + memory);
    }
    const absl::StatusOr<std::string> why = ReadWholeFile((folder / kErrorFile).string());
    if (why.ok()) return absl::InternalError("the whole model does not compile: " + *why);
    // LLVM aborts where it gets no memory.
    const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    return absl::InternalError("the compiler of the whole model " + DescribeEnd(status) +
                               (aborted ? "; it may use " + memory : ""));
  }

  // Waits until the child has ended. compiling: a file that is there while the child compiles; only then its time
  // counts. Meanwhile the job shows whether it compiles or waits.
  absl::Status AwaitCompiler(const ChildProcess& compiler, const fs::path& compiling) {
    HONE_RETURN_IF_ERROR(Begin(kCompiling));
    absl::Duration compiled, waited;  // waited: since it compiled last
    absl::Time seen = SteadyNow();
    for (absl::Duration pause = absl::Milliseconds(5); !compiler.Ended();
         pause = std::min(2 * pause, absl::Milliseconds(200))) {
      absl::SleepFor(pause);
      const absl::Time now = SteadyNow();
      const absl::Duration passed = now - std::exchange(seen, now);
      std::error_code ignored;
      const bool compiles = fs::exists(compiling, ignored);
      compiled += compiles ? passed : absl::ZeroDuration();
      waited = compiles ? absl::ZeroDuration() : waited + passed;
      if (compiled > kCompileTimeMax) {
        return absl::DeadlineExceededError(
            fmt::format("the whole model was not compiled within {}", absl::FormatDuration(kCompileTimeMax)));
      }
      if (waited > kHostWaitMax) {
        return absl::DeadlineExceededError(
            fmt::format("the whole model was not compiled, because devices of the tuner's machine measured for {}",
                        absl::FormatDuration(kHostWaitMax)));
      }
      const char* activity = waited > kTellPeriod ? kWaitingForHost : kCompiling;  // a child takes a moment to start
      HONE_RETURN_IF_ERROR(progress_.activity == activity ? Tell() : Begin(activity));
    }
    return absl::OkStatus();
  }

  // Completes the batch: how the packages run, and on which devices.
  absl::Status SetTask(v1::Batch& batch) const {
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(job_.target));
    Requirements needs = RequirementsOf(target);
    needs.labels = job_.labels;
    needs.devices = job_.devices;
    needs.fingerprint_digest = progress_.device_digest;
    *batch.mutable_requirements() = ToProto(needs);
    batch.set_threads(target.threads);
    batch.add_candidates()->set_id(kRunId);
    v1::RunTask& task = *batch.mutable_run();
    task.set_threads(target.threads);
    task.set_allow_onnx_runtime(leased_.spec().model().fallback());
    const double seconds = ModelSeconds(progress_.seconds, progress_.latency_before_seconds.value_or(0));
    const double left = absl::ToDoubleSeconds(job_.until - absl::Now());
    task.set_seconds(std::max(0.1, std::min(seconds, left / 3)));  // two packages with their warm-up, and two loads
    return absl::OkStatus();
  }

  const v1::Job& leased_;
  const Job& job_;
  FarmClient& farm_;
  const ConfirmOptions& options_;
  Progress& progress_;
  absl::Time next_report_ = absl::InfinitePast();
  absl::Status lost_;  // the error of the farm that ended the run; OK: there is none
};

}  // namespace

absl::StatusOr<v1::ModelConfirmation> ConfirmModel(const v1::Job& leased, const Job& job, FarmClient& farm,
                                                   const ConfirmOptions& options, Progress& progress) {
  return ModelRun(leased, job, farm, options, progress).Make();
}

}  // namespace hone::tuner
