// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/run_child.h"

#include <malloc.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/status.h"
#include "device_agent/child/child.h"
#include "device_agent/child/race.h"
#include "device_agent/child/run_packages.h"

namespace hone::agent {
namespace {

absl::Status CallReference(Child& child) {
  const VisitBatch& batch = child.batch();
  child.launcher_channel().BeginLoading(-1, child.device().load_seconds());
  HONE_ASSIGN_OR_RETURN(const auto kernel, child.session().Load(batch.reference));
  child.launcher_channel().BeginCalling(-1, 1 + batch.policy.reference_timeout_seconds);
  HONE_RETURN_IF_ERROR(kernel->Prepare());
  for (size_t point = 0; point < batch.points.size(); ++point) {
    HONE_RETURN_IF_ERROR(child.session().ClearOutputs());
    HONE_RETURN_IF_ERROR(kernel->CallAt(point));
    HONE_ASSIGN_OR_RETURN(const std::optional<VisitFailure> changed, kernel->FindChangedInput());
    if (changed.has_value()) return absl::OutOfRangeError(changed->text);
    HONE_RETURN_IF_ERROR(child.StoreResults(*kernel));
    child.launcher_channel().SendResultsStored(-1);
    (void)child.launcher_channel().ReceiveAnswer();
  }
  return absl::OkStatus();
}

void RunReference(Child& child) {
  if (const absl::Status status = CallReference(child); !status.ok()) {
    child.launcher_channel().SendBatchFailure(std::string(status.message()));
    return;
  }
  child.launcher_channel().SendDone();
}

void BuildAll(Child& child) {
  absl::Status status;
  for (const int candidate : child.task().to_verify) {
    if (!status.ok() && !CanReuseSession(status)) break;  // the measuring child will find the cause
    child.launcher_channel().BeginLoading(candidate, child.device().load_seconds());
    status = child.session().Load(child.batch().candidates[static_cast<size_t>(candidate)].kernel).status();
    // A lack of memory is not reported: it may come only from the builders that run in parallel.
    if (CanReuseSession(status) && !absl::IsResourceExhausted(status))
      child.launcher_channel().SendFailure(candidate, FailureFromStatus(status));
  }
  child.launcher_channel().SendDone();
}

void Work(Child& child) {
  switch (child.task().purpose) {
    case SessionPurpose::kReference:
      return RunReference(child);
    case SessionPurpose::kBuilding:
      return BuildAll(child);
    case SessionPurpose::kTiming:
      RunRace(child);
  }
}

}  // namespace

void RunChild(const ChildOrigin& origin, int channel) {
  mallopt(M_PERTURB, 0);  // the launcher wipes its memory, which compilers of drivers would wait for
  Child child(origin, channel);
  absl::Status status = child.Start();
  if (status.ok()) status = child.Open();
  if (status.ok()) {
    Work(child);
  } else {
    child.launcher_channel().SendBatchFailure(std::string(status.message()));
  }
  _exit(0);
}

void RunPackageChild(const ChildOrigin& origin, int channel) {
  mallopt(M_PERTURB, 0);  // as above
  Child child(origin, channel);
  if (const absl::Status confined = child.Confine(SetupCalls::kPackages); confined.ok()) {
    RunPackages(child);
  } else {
    child.launcher_channel().SendBatchFailure(std::string(confined.message()));
  }
  _exit(0);
}

}  // namespace hone::agent
