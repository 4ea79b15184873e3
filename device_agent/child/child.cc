// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/child.h"

#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device_agent/child/fault_reports.h"
#include "device_agent/sandbox/namespaces.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/visit/pass_files.h"

namespace hone::agent {
namespace {

constexpr double kOpenSeconds = 30;  // to start the device, and for its session

// Closes the launcher's files except the channel and, with keeps_errors, standard error. A terminal as standard error
// is closed in any case, because the child could read what is typed there. An empty file takes the numbers of standard
// files, so that files opened later do not.
absl::Status CloseOtherFiles(int channel, bool keeps_errors) {
  HONE_ASSIGN_OR_RETURN(const MemoryFile nothing, MemoryFile::Holding("hone-nothing", ""));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) dup2(nothing.descriptor(), standard);
  if (!keeps_errors || isatty(STDERR_FILENO) == 1) dup2(nothing.descriptor(), STDERR_FILENO);
  CloseFiles(STDERR_FILENO + 1, channel);
  return absl::OkStatus();
}

}  // namespace

VisitFailure FailureFromStatus(const absl::Status& status) {
  const auto kind = [&] {
    switch (status.code()) {
      case absl::StatusCode::kNotFound:
      case absl::StatusCode::kInvalidArgument:
        return FailureKind::kCompileError;
      case absl::StatusCode::kOutOfRange:
        return FailureKind::kOutOfBoundsWrite;
      case absl::StatusCode::kDeadlineExceeded:
        return FailureKind::kRunTimeout;
      case absl::StatusCode::kResourceExhausted:
        return FailureKind::kLostDevice;
      default:
        return FailureKind::kCrashed;
    }
  };
  return {kind(), std::string(status.message())};
}

bool CanReuseSession(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

absl::Status Child::Confine(SetupCalls setup) {
  const SandboxPolicy policy = origin_.device->sandbox();
  // A child that loads packages may write to its files, which children of drivers may anyway.
  const bool keeps_errors = setup == SetupCalls::kKernels || !policy.calls.empty();
  HONE_RETURN_IF_ERROR(CloseOtherFiles(channel_, keeps_errors));
  const absl::StatusOr<int> listener = ConfineChild(policy, {origin_.memory_limit, channel_, origin_.filter, setup});
  if (origin_.filter != CallFilter::kNone) HONE_RETURN_IF_ERROR(listener.status());
  filtered_ = listener.ok();
  listener_ = listener.value_or(-1);
  launcher_channel_.SendConfined(listener_);
  launcher_channel_.BeginCalling(-1, kOpenSeconds);
  ReportFaults(launcher_channel_, regions_);
  return absl::OkStatus();
}

absl::Status Child::EndSetup() {
  return filtered_ ? agent::EndSetup(origin_.device->sandbox().calls, channel_, listener_) : absl::OkStatus();
}

absl::Status Child::Start() {
  HONE_RETURN_IF_ERROR(Confine(SetupCalls::kKernels));
  HONE_ASSIGN_OR_RETURN(device_, origin_.device->Start(origin_.threads));
  launcher_channel_.SendStarted();
  return absl::OkStatus();
}

std::vector<MemoryFile> Child::ReceiveTaskFiles() const {
  std::byte packet[sizeof kTaskPacket];
  std::vector<int> descriptors;
  ssize_t size = 0;
  while ((size = ReceiveWithFiles(channel_, packet, &descriptors)) < 0 && errno == EINTR) {
  }
  if (size <= 0) _exit(0);
  std::vector<MemoryFile> files;
  for (const int descriptor : descriptors) files.emplace_back(descriptor);
  return files;
}

absl::Status Child::TakeTask() {
  std::vector<MemoryFile> files = ReceiveTaskFiles();
  if (files.size() <= kInputsFile) return absl::InternalError("a child process of the visit received too few files");
  HONE_ASSIGN_OR_RETURN(const Mapping task, files[kTaskFile].Map(MemoryFile::Access::kRead));
  HONE_RETURN_IF_ERROR(Unpack(task.view(), task_, batch_));
  HONE_ASSIGN_OR_RETURN(artifact_, files[kArtifactFile].Map(MemoryFile::Access::kRead));
  batch_.artifact = artifact_.view();
  artifact_file_ = std::move(files[kArtifactFile]);
  HONE_ASSIGN_OR_RETURN(inputs_, files[kInputsFile].Map(MemoryFile::Access::kRead));
  if (files.size() <= kResultFile) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(ResultMemory result_memory, ResultMemory::Open(batch_, std::move(files[kResultFile])));
  result_memory_.emplace(std::move(result_memory));
  return absl::OkStatus();
}

absl::Status Child::Open() {
  HONE_RETURN_IF_ERROR(TakeTask());
  launcher_channel_.BeginCalling(-1, kOpenSeconds);
  std::span<char> cold_numbers;
  if (task_.purpose == SessionPurpose::kTiming) {
    origin_.cold_numbers->RegisterIn(regions_);
    cold_numbers = origin_.cold_numbers->numbers(task_.cold_bytes);
  }
  HONE_ASSIGN_OR_RETURN(session_, device_->Open({&batch_, artifact_file_.descriptor(), inputs_.data(),
                                                 origin_.memory_limit, task_.purpose, &regions_, cold_numbers}));
  HONE_RETURN_IF_ERROR(EndSetup());
  launcher_channel_.SendReady();
  return absl::OkStatus();
}

absl::Status Child::StoreResults(LoadedKernel& kernel) {
  result_memory().ClearGuards();
  for (size_t i = 0; i < batch_.buffers.size(); ++i) {
    if (batch_.buffers[i].role != BufferRole::kOutput) continue;
    HONE_RETURN_IF_ERROR(session_->CopyOutput(static_cast<int>(i), result_memory().OutputBytes(i)));
  }
  return kernel.StoreGuards(result_memory());
}

}  // namespace hone::agent
