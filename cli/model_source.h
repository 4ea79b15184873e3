// SPDX-License-Identifier: Apache-2.0
// Sends models with the tuning jobs that `tune` and `submit` make, so that a job can end with a run of the whole model.
//
// Not here: the workloads of a model (model_workloads.h), and the run (tuner/confirm_model.h). Start at SendModels.
#ifndef HONE_CLI_MODEL_SOURCE_H_
#define HONE_CLI_MODEL_SOURCE_H_

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/model_options.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/model.pb.h"

namespace hone::cli {

// What a tuner needs to compile the model at `path`, one of model.models. Until SendModels, its files have no digests,
// and FileName.name is the path of the file on this machine. Errors: those of ModelOptions::Imports, a file that cannot
// be read, and external data that is not below the model's folder.
absl::StatusOr<v1::ModelSource> SourceOf(const ModelOptions& model, const std::string& path);

// Sends the files of the jobs' models, each once, and completes their names. If the tracker does not take them, the
// jobs get no model and a message says why: the jobs are then submitted without a run of the whole model. So is a job
// whose model is beyond a limit (base/run_limits.h), of which nothing is sent. kCancelled:
// after a stop. kDeadlineExceeded: a job's time to end (JobSpec.until) came first.
absl::Status SendModels(const std::shared_ptr<grpc::Channel>& channel, std::vector<v1::JobSpec>& specs,
                        std::stop_token stop);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_SOURCE_H_
