// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/package_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/cpu_cores.h"
#include "base/status.h"
#include "device_agent/child/run_child.h"
#include "device_agent/launcher/child_blame.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/launcher/package_convert.h"
#include "device_agent/visit/package_task.h"
#include "device_agent/visit/seconds_now.h"
#include "device_agent/visit/task.h"
#include "proto/convert.h"

namespace hone::agent {
namespace {

using Purpose = PackageTask::Purpose;

// The time of a measurement by the launcher's clock, in multiples of the time that was asked for. The warm-up takes a
// tenth of it, and profiles half of it at most.
constexpr double kMeasuringFactor = 1.7;
constexpr double kGlanceSeconds = 2;  // between looks at how far the child is

// A child whose findings cannot be used: a package failed, or the run ended early.
struct Cancelled {};
using ChildOutcome = std::variant<PackageFindings, VisitFailure, absl::Status, Cancelled>;

// What limits a child, in seconds of the launcher's clock.
struct Limits {
  double load_seconds, run_seconds;  // of one package
  double kill_at;                    // SecondsNow
  double visit_seconds;              // of the whole visit, for texts; 0: no such limit ends it
};

// Follows one child to its end.
class PackageSupervisor {
 public:
  PackageSupervisor(ChildProcess& child, const PackageTask& task, const ReportMemory& report, const Limits& limits,
                    int cancel_fd)
      : child_(child), task_(task), report_(report), limits_(limits), cancel_fd_(cancel_fd), moved_(SecondsNow()) {}

  ChildOutcome Supervise() {
    VisitMessage message;
    for (;;) {
      const double wait =
          std::clamp(std::min(limits_.kill_at, moved_ + StepSeconds()) - SecondsNow(), 0.0, kGlanceSeconds);
      switch (child_.Next(message, wait, cancel_fd_)) {
        case ChildProcess::Event::kCancelled:
          return Cancelled{};
        case ChildProcess::Event::kForbidden:
          child_.Kill();
          return Blame(ForbiddenCallFailure(child_.forbidden()));
        case ChildProcess::Event::kEnded:
          return Blame(FailureForEnd(child_));
        case ChildProcess::Event::kMessage:
          if (std::optional<ChildOutcome> end = Handle(message, SecondsNow() - child_.begun())) return *std::move(end);
          break;
        case ChildProcess::Event::kSilent:
          break;
      }
      if (std::optional<VisitFailure> late = FindTimeout()) {
        child_.Kill();
        return *std::move(late);
      }
    }
  }

 private:
  double StepSeconds() const { return ready_ ? limits_.run_seconds : limits_.load_seconds; }

  std::string Name() const {
    const size_t package = std::min(report_.package(), task_.names.size() - 1);
    return fmt::format("package '{}'", task_.names[package]);
  }

  VisitFailure Blame(VisitFailure failure) const {
    failure.text = fmt::format("{}: {}", Name(), failure.text);
    return failure;
  }

  std::optional<ChildOutcome> Handle(const VisitMessage& message, double seconds) {
    using Type = VisitMessage::Type;
    if (++messages_ <= kMessagesMax) {
      switch (message.type) {
        case Type::kConfined:
        case Type::kBegin:
          return std::nullopt;
        case Type::kReady:
          if (ready_) break;
          ready_ = true;
          moved_ = SecondsNow();
          child_.EndSetup();
          return std::nullopt;
        case Type::kFault:
          child_.Kill();
          return Blame(FailureForFault(message));
        case Type::kFailed:  // before there is a package
          if (report_.steps() > 0) break;
          return absl::InternalError(Clean(message.text, sizeof(message.text)));
        case Type::kDone:
          child_.Kill();
          return Judge(seconds);
        default:
          break;
      }
    }
    child_.Kill();
    return Blame({FailureKind::kCrashed, "broke the measuring process: it sent an invalid message"});
  }

  ChildOutcome Judge(double seconds) const {
    absl::StatusOr<PackageFindings> findings = report_.findings();
    absl::Status valid = findings.status();
    if (valid.ok() && findings->failed) {
      const bool known = FailureKindFromNumber(static_cast<int32_t>(findings->failure.kind)).has_value();
      return VisitFailure{known ? findings->failure.kind : FailureKind::kCrashed,
                          Clean(findings->failure.text.substr(0, kTextBytesMax))};
    }
    if (valid.ok()) valid = CheckFindings(*findings, task_, seconds);
    if (valid.ok()) return *std::move(findings);
    return Blame({FailureKind::kImpossibleTime,
                  fmt::format("broke the measuring process: it {}", std::string(valid.message()))});
  }

  // Whether the child or one step of it has taken too long.
  std::optional<VisitFailure> FindTimeout() {
    const double now = SecondsNow();
    if (const uint64_t steps = report_.steps(); steps != steps_) {
      steps_ = steps;
      moved_ = now;
    }
    const FailureKind kind = ready_ ? FailureKind::kRunTimeout : FailureKind::kCompileTimeout;
    if (now >= limits_.kill_at) {
      if (limits_.visit_seconds <= 0) return Blame({kind, "the run took far longer than it was to take"});
      return Blame({kind, fmt::format("the visit, which may take {:.3g} s, ended before the run; give it more time",
                                      limits_.visit_seconds)});
    }
    if (now - moved_ < StepSeconds()) return std::nullopt;
    if (ready_) return Blame({kind, fmt::format("one run took longer than {:.3g} s", limits_.run_seconds)});
    return Blame({kind, fmt::format("it was not loaded within {:.3g} s", limits_.load_seconds)});
  }

  static constexpr int kMessagesMax = 100;
  static constexpr size_t kTextBytesMax = 2000;

  ChildProcess& child_;
  const PackageTask& task_;
  const ReportMemory& report_;
  const Limits limits_;
  const int cancel_fd_;
  double moved_;  // SecondsNow when the child's present step began, as far as it is known
  uint64_t steps_ = 0;
  int messages_ = 0;
  bool ready_ = false;
};

// A file into which a child writes outputs. Its size is sealed after that, because the child uses less of it.
absl::StatusOr<MemoryFile> MakeOutputsFile() {
  MemoryFile file(memfd_create("hone-outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.descriptor() >= 0 && ftruncate(file.descriptor(), kOutputBytesMax) == 0) return file;
  return absl::ResourceExhaustedError(fmt::format("cannot make a file for outputs: {}", strerror(errno)));
}

absl::Status SealOutputs(const MemoryFile& file, int64_t bytes) {
  if (ftruncate(file.descriptor(), bytes) == 0 &&
      fcntl(file.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(fmt::format("cannot seal the outputs: {}", strerror(errno)));
}

// One run.
class PackageVisitState {
 public:
  PackageVisitState(const Device& device, const PackageRunner::Options& options, const PackageTask& task,
                    const std::vector<MemoryFile>& files, double visit_seconds, int cancel_fd)
      : device_(device),
        options_(options),
        task_(task),
        files_(files),
        visit_seconds_(visit_seconds),
        deadline_(visit_seconds > 0 ? SecondsNow() + visit_seconds : std::numeric_limits<double>::infinity()),
        cancel_fd_(cancel_fd) {}

  PackageVisit Run() {
    for (size_t i = 0; i < task_.names.size(); ++i) {
      if (!RunFirst(i)) return std::move(visit_);
    }
    if ((task_.seconds > 0 || task_.profile) && !Measure()) return std::move(visit_);
    *visit_.result.mutable_run() = std::move(report_);
    return std::move(visit_);
  }

 private:
  // These return false if the visit is over; visit_ then says why.
  bool RunFirst(size_t package) {
    PackageTask task = task_;
    task.purpose = Purpose::kFirstRun;
    task.names = {task_.names[package]};
    std::optional<MemoryFile> outputs;
    if (task.keep_outputs) {
      absl::StatusOr<MemoryFile> made = MakeOutputsFile();
      if (!made.ok()) return End(made.status());
      outputs.emplace(*std::move(made));
    }
    std::vector<int> given = {files_[package].descriptor()};
    if (task.has_inputs) given.push_back(files_.back().descriptor());
    if (outputs.has_value()) given.push_back(outputs->descriptor());
    PackageFindings findings;
    if (!RunChildWith(task, given, options_.load_seconds + options_.run_seconds, findings)) return false;
    AddFirstRun(findings.packages.front(), *report_.add_packages());
    if (!outputs.has_value()) return true;
    if (const absl::Status sealed = SealOutputs(*outputs, findings.packages.front().output_bytes); !sealed.ok()) {
      // The child may have sealed or kept the file itself.
      return End(VisitFailure{FailureKind::kCrashed,
                              fmt::format("package '{}': {}", task.names.front(), std::string(sealed.message()))});
    }
    visit_.outputs.push_back(*std::move(outputs));
    return true;
  }

  bool Measure() {
    PackageTask task = task_;
    task.purpose = Purpose::kMeasure;
    task.keep_outputs = false;
    std::vector<int> given;
    for (const MemoryFile& file : files_) given.push_back(file.descriptor());
    const double count = static_cast<double>(task.names.size());
    const double most = count * (options_.load_seconds + options_.run_seconds + kMeasuringFactor * task.seconds);
    PackageFindings findings;
    if (!RunChildWith(task, given, most, findings)) return false;
    for (size_t i = 0; i < findings.packages.size(); ++i) {
      AddMeasurement(findings.packages[i], task, *report_.mutable_packages(static_cast<int>(i)));
    }
    return true;
  }

  bool RunChildWith(const PackageTask& task, const std::vector<int>& given, double seconds, PackageFindings& findings) {
    absl::StatusOr<ReportMemory> report = ReportMemory::Create();
    if (!report.ok()) return End(report.status());
    const absl::StatusOr<MemoryFile> packed = MemoryFile::Holding("hone-task", Pack(task));
    if (!packed.ok()) return End(packed.status());
    absl::StatusOr<ChildProcess> child = Fork();
    if (!child.ok()) return End(child.status());
    std::vector<int> files = {packed->descriptor(), report->file().descriptor()};
    files.insert(files.end(), given.begin(), given.end());
    child->SendTask(kTaskPacket, files);
    const double kill_at = SecondsNow() + seconds;
    const Limits limits{.load_seconds = options_.load_seconds,
                        .run_seconds = options_.run_seconds,
                        .kill_at = std::min(kill_at, deadline_),
                        .visit_seconds = deadline_ < kill_at ? visit_seconds_ : 0};
    ChildOutcome outcome = PackageSupervisor(*child, task, *report, limits, cancel_fd_).Supervise();
    if (const auto* failure = std::get_if<VisitFailure>(&outcome)) return End(*failure);
    if (const auto* status = std::get_if<absl::Status>(&outcome)) return End(*status);
    if (std::holds_alternative<Cancelled>(outcome)) return End(absl::CancelledError(kCancelled));
    findings = std::get<PackageFindings>(std::move(outcome));
    return true;
  }

  absl::StatusOr<ChildProcess> Fork() const {
    SetCpuAffinity(options_.cpus);  // a child with a driver may have moved this process to others
    return ChildProcess::Start(
        [&](int channel) {
          const ChildOrigin origin{
              .device = &device_, .memory_limit = options_.memory_limit, .filter = options_.filter};
          RunPackageChild(origin, channel);
        },
        SetupCalls::kPackages);
  }

  bool End(const absl::Status& status) {
    visit_.result.set_error(std::string(status.message()));
    visit_.outputs.clear();
    return false;
  }
  bool End(const VisitFailure& failure) {
    v1::Failure& added = *visit_.result.add_outcomes()->mutable_outcome()->mutable_failure();
    added.set_kind(ToProto(failure.kind));
    added.set_text(failure.text);
    visit_.outputs.clear();
    return false;
  }

  const Device& device_;
  const PackageRunner::Options& options_;
  const PackageTask& task_;
  const std::vector<MemoryFile>& files_;
  const double visit_seconds_, deadline_;
  const int cancel_fd_;
  v1::RunReport report_;
  PackageVisit visit_;
};

}  // namespace

PackageVisit PackageRunner::Run(const v1::Batch& batch, const std::vector<MemoryFile>& files, int cancel_fd) const {
  const double begun = SecondsNow();
  PackageVisit visit;
  const absl::StatusOr<PackageTask> task = ToPackageTask(batch, files.size());
  if (task.ok()) {
    visit = PackageVisitState(device_, options_, *task, files, batch.policy().visit_seconds(), cancel_fd).Run();
  } else {
    visit.result.set_error(std::string(task.status().message()));
  }
  for (v1::CandidateOutcome& outcome : *visit.result.mutable_outcomes()) {
    outcome.set_candidate_id(batch.candidates_size() > 0 ? batch.candidates(0).id() : "run");
  }
  visit.result.set_visit_seconds(SecondsNow() - begun);
  return visit;
}

}  // namespace hone::agent
