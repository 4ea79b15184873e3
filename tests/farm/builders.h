// SPDX-License-Identifier: Apache-2.0
// Builders of valid protocol messages for tests of the farm: job specs, batches, device states and results. A test that
// needs an invalid message changes the one field in question.
#ifndef HONE_TESTS_FARM_BUILDERS_H_
#define HONE_TESTS_FARM_BUILDERS_H_

#include <fmt/format.h>

#include <string>

#include "base/digest.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/measure.pb.h"
#include "hone/v1/tuner.pb.h"
#include "tracker/queue/draw_id.h"

namespace hone::tracker {

// Returns a source of ids that counts from 1. Each id has 32 digits. Its first 8 and its first 16 digits are unique
// too, because shorter ids are cut from it.
inline DrawId CountingIds() {
  return [count = 0]() mutable { return fmt::format("{0:08}{0:08}{0:016}", ++count); };
}

// Sets the workload's text and the matching digest. The tracker compares the two and never parses the text, so any text
// will do.
inline void SetWorkload(v1::WorkloadSpec& workload, const std::string& text) {
  workload.set_digest(Sha256Hex(text));
  workload.set_text(text);
  workload.set_count(1);
}

inline v1::JobSpec SpecOf(const std::string& name, int priority = 0) {
  v1::JobSpec spec;
  spec.set_request_id("request-" + name);
  spec.set_name(name);
  spec.set_target("cpu");
  spec.set_threads(1);
  spec.set_trials(100);
  spec.set_priority(priority);
  SetWorkload(*spec.add_workloads(), "w");
  spec.mutable_workloads(0)->set_title("conv2d 8x8x4");
  for (const char* node : {"conv1", "relu1"}) spec.mutable_workloads(0)->add_nodes(node);
  return spec;
}

inline v1::Batch BatchOf(int candidates, const std::string& prefix = "c") {
  v1::Batch batch;
  batch.set_workload_digest(Sha256Hex("w"));
  batch.set_workload("w");
  batch.set_target("cpu");
  batch.set_compiler_version("1");
  batch.set_artifact("elf");
  batch.set_threads(1);
  v1::Buffer* output = batch.add_buffers();
  output->set_name("y");
  output->set_dtype(v1::DTYPE_F32);
  output->set_elements(1);
  output->set_bytes(4);
  output->set_role(v1::Buffer::ROLE_OUTPUT);
  batch.mutable_reference()->set_interface("kernel reference\noutput f32[1]\nlaunch reference 0 0\n");
  for (int i = 0; i < candidates; ++i) {
    v1::Candidate* candidate = batch.add_candidates();
    candidate->set_id(fmt::format("{}{}", prefix, i));
    candidate->mutable_kernel()->set_interface("kernel k\noutput f32[1]\nlaunch k 0 0\n");
  }
  return batch;
}

// Gives the job a model of one file, which its tuner may have run.
inline void SetModel(v1::JobSpec& spec) {
  v1::ModelFile& file = *spec.mutable_model()->add_files();
  file.set_path("net.onnx");
  file.mutable_file()->set_digest(std::string(64, 'e'));
  file.mutable_file()->set_bytes(1000);
  spec.mutable_model()->add_programs();
}

// The batch that runs the model of a job, untuned and tuned.
inline v1::Batch ModelBatch() {
  v1::Batch batch;
  for (const char digit : {'b', 'c'}) batch.mutable_run()->add_packages()->set_digest(std::string(64, digit));
  batch.mutable_run()->set_seconds(2);
  batch.set_threads(1);
  batch.add_candidates()->set_id("run");
  return batch;
}

// A report of the packages, of one run each.
inline v1::BatchResult ReportOf(const v1::RunTask& task) {
  v1::BatchResult result;
  result.set_visit_seconds(3);
  for (int i = 0; i < task.packages_size(); ++i) {
    v1::PackageReport* package = result.mutable_run()->add_packages();
    package->set_target("cpu");
    package->add_seconds(0.001);
  }
  return result;
}

inline v1::DeviceState DeviceOf(const std::string& id = "cpu") {
  v1::DeviceState device;
  device.set_device_id(id);
  device.set_target("cpu");
  device.set_threads(4);
  device.mutable_fingerprint()->set_architecture("x86_64");
  device.mutable_fingerprint()->add_cpu_features("avx2");
  device.mutable_fingerprint()->set_text("x86_64 test");
  device.mutable_fingerprint()->set_digest("f");
  device.mutable_self_test()->set_passed(true);
  return device;
}

inline v1::BatchResult TimedResult(const v1::Batch& batch) {
  v1::BatchResult result;
  for (const v1::Candidate& candidate : batch.candidates()) {
    v1::CandidateOutcome* outcome = result.add_outcomes();
    outcome->set_candidate_id(candidate.id());
    outcome->mutable_outcome()->mutable_timing()->add_seconds(0.001);
  }
  return result;
}

}  // namespace hone::tracker

#endif  // HONE_TESTS_FARM_BUILDERS_H_
