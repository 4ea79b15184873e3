// SPDX-License-Identifier: Apache-2.0
// Conversion between the tuner's values and the messages of the protocol. In the tuner only farm_client.cc,
// confirm_model.cc, model_compiler.cc and main.cc know messages.
#ifndef HONE_TUNER_CONVERT_H_
#define HONE_TUNER_CONVERT_H_

#include "hone/v1/job.pb.h"
#include "hone/v1/measure.pb.h"
#include "hone/v1/record.pb.h"
#include "tuner/batch.h"
#include "tuner/farm.h"
#include "tuner/job.h"

namespace hone::tuner {

Job FromProto(const v1::Job& job);
v1::JobProgress ToProto(const Progress& progress);

v1::Batch ToProto(const Batch& batch);
v1::Requirements ToProto(const Requirements& requirements);
Measured FromProto(const v1::BatchResult& result);

v1::RecordKey ToProto(const RecordKey& key);
PastTrial FromProto(const v1::Record& record);
PastWinner FromProto(const v1::BestRecordResponse& best);
// The record of a failed build, without id and time, which the caller sets.
v1::Record ToProto(const RecordKey& key, const Batch& batch, const BuildFailed& failed);

}  // namespace hone::tuner

#endif  // HONE_TUNER_CONVERT_H_
