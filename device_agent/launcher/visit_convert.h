// SPDX-License-Identifier: Apache-2.0
// Converts the messages of a visit to the plain values of visit/batch.h and back, and validates received batches. No
// other file of a visit knows both forms.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_VISIT_CONVERT_H_
#define HONE_DEVICE_AGENT_LAUNCHER_VISIT_CONVERT_H_

#include "absl/status/statusor.h"
#include "device_agent/launcher/visit_runner.h"
#include "device_agent/visit/batch.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// The result refers to batch.artifact(), so `batch` must outlive it. kInvalidArgument: a fault that the tracker does
// not check: sizes that disagree, unknown types, or kernels whose parameters differ from the batch's buffers.
absl::StatusOr<VisitBatch> ToVisit(const v1::Batch& batch);
v1::BatchResult ToProto(const VisitBatch& batch, const VisitResult& result);

// Runs one whole visit. All failures are in BatchResult.error. cancel_fd: as for VisitRunner::Run. peak_gflops: as for
// CallSecondsMin (plausible.h).
v1::BatchResult MeasureBatch(VisitRunner& visit_runner, const v1::Batch& batch, int cancel_fd, double peak_gflops = 0);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_VISIT_CONVERT_H_
