// SPDX-License-Identifier: Apache-2.0
// The messages of a visit as the plain values of visit/batch.h, and back. The only place of a visit that knows both,
// and the one that checks what others have sent.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_VISIT_CONVERT_H_
#define HONE_DEVICE_AGENT_LAUNCHER_VISIT_CONVERT_H_

#include "absl/status/statusor.h"
#include "device_agent/launcher/visit_runner.h"
#include "device_agent/visit/batch.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Refers to batch.artifact(). kInvalidArgument: what is wrong with the batch beyond what the tracker checks: sizes that
// do not agree, types not known here, kernels that are called otherwise than the batch's buffers say.
absl::StatusOr<VisitBatch> ToVisit(const v1::Batch& batch);
v1::BatchResult ToProto(const VisitBatch& batch, const VisitResult& result);

// One whole visit; never fails as a call: see BatchResult.error. peak_gflops: as for CallSecondsMin (plausible.h).
v1::BatchResult MeasureBatch(VisitRunner& visit_runner, const v1::Batch& batch, int cancel_fd, double peak_gflops = 0);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_VISIT_CONVERT_H_
