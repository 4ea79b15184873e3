// SPDX-License-Identifier: Apache-2.0
// The last step of a job with JobSpec.model: the whole model runs untuned and tuned, in turns, on a device of the kind
// that measured. Sums of kernel times leave out what happens between kernels, and the chosen kernel is the one that
// looked fastest; a run of the model is free of both.
//
// The step fetches the model's files, has them compiled in a child process (model_compiler.h), stores the packages at
// the tracker, and submits one batch with a run. A step that fails is no failure of the job. Nothing of it must
// survive: the next tuner makes it again. Start with ConfirmModel.
#ifndef HONE_TUNER_CONFIRM_MODEL_H_
#define HONE_TUNER_CONFIRM_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/job.pb.h"
#include "tuner/farm_client.h"
#include "tuner/job.h"

namespace hone::tuner {

struct ConfirmOptions {
  std::vector<std::string> compiler;  // program and arguments of the child; "--compile-model=FOLDER" is added
  FarmClient::Channel channel;        // to the tracker, for files
};

// Blocks for as long as the run takes, but ends at Job::until. leased: the job as leased, with a model. job: the same
// as a value. progress: of the search, which has ended; its activity is set and reported meanwhile.
// Aborted, Cancelled, Unavailable: errors of the farm, after which the job is not over or belongs to another tuner. All
// other failures are ModelConfirmation.problem.
absl::StatusOr<v1::ModelConfirmation> ConfirmModel(const v1::Job& leased, const Job& job, FarmClient& farm,
                                                   const ConfirmOptions& options, Progress& progress);

}  // namespace hone::tuner

#endif  // HONE_TUNER_CONFIRM_MODEL_H_
