// SPDX-License-Identifier: Apache-2.0
// A farm in which every field of every answer of the API has a value.
#ifndef HONE_TESTS_UNIT_TRACKER_HTTP_API_FIXTURE_H_
#define HONE_TESTS_UNIT_TRACKER_HTTP_API_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/digest.h"
#include "tests/unit/tracker/http/site_fixture.h"

namespace hone::tracker {

class ApiTest : public SiteTest {
 protected:
  ApiTest() {
    (*device_.mutable_labels())["room"] = "lab";
    v1::SandboxLayer* layer = device_.mutable_sandbox()->add_layers();
    layer->set_name("network");
    layer->set_detail("no namespaces");
    device_.mutable_golden()->set_number(1);
    device_.mutable_golden()->set_passed(true);
    device_.mutable_golden()->set_kernel("k");
    device_.mutable_golden()->set_median_seconds(1e-5);
    device_.mutable_golden()->set_mad_seconds(1e-7);
    job_ = Measure("board");
    ReportProgress();
    MeasureMore();
  }
  void ReportProgress() {
    v1::ReportProgressRequest report;
    *report.mutable_lease() = lease_;
    v1::JobProgress& progress = *report.mutable_progress();
    progress.set_trials(40);
    progress.set_seconds(20);
    progress.set_trials_per_second(2);
    v1::FailureCount* failed = progress.add_failed();
    failed->set_kind(v1::FAILURE_KIND_CRASHED);
    failed->set_count(3);
    v1::WorkloadProgress* workload = progress.add_workloads();
    workload->set_digest(workload_);
    workload->set_trials(40);
    workload->set_default_seconds(0.004);
    workload->set_best_seconds(0.001);
    workload->set_roofline_share(0.25);
    workload->set_best_schedule("split");
    workload->set_trouble("no compiler");
    progress.set_latency_before_seconds(0.004);
    progress.set_latency_after_seconds(0.001);
    v1::ModelConfirmation& confirmation = *progress.mutable_confirmation();
    confirmation.set_device("board/cpu");
    confirmation.set_before_seconds(0.0055);
    confirmation.set_after_seconds(0.005);
    confirmation.set_ratio(1.1);
    confirmation.set_ratio_low(1.09);
    confirmation.set_ratio_high(1.11);
    confirmation.set_kernels_ratio(4);
    *confirmation.mutable_run() = FullReport();
    const auto response = Await<v1::ReportProgressResponse>(
        [&](Done<v1::ReportProgressResponse> done) { shell_->ReportProgress(report, std::move(done)); });
    EXPECT_TRUE(response.ok()) << response.status();
  }
  // Submits another batch, which the device starts to measure.
  void MeasureMore() {
    v1::SubmitBatchRequest submit;
    *submit.mutable_lease() = lease_;
    submit.set_client_batch_id("second");
    *submit.mutable_batch() = BatchOf(1);
    EXPECT_TRUE(Await<v1::SubmitBatchResponse>([&](Done<v1::SubmitBatchResponse> done) {
                  shell_->SubmitBatch(submit, done);
                }).ok());
    EXPECT_EQ(Synchronize("board", 50).leases_size(), 1);
  }
  // Adds a record like that of the first candidate, from another device.
  void AddRecord(const std::string& id, const std::string& fingerprint, const std::string& measured_by) {
    records::Record record = store_->Query({.limit = 1})->rows.at(0).record;
    record.measurement_id = id;
    record.key.device_fingerprint = fingerprint;
    record.measured_by = measured_by;
    const std::vector<records::Record> one = {record};
    const auto report = store_->Append(one);
    ASSERT_TRUE(report.ok() && report->appended == 1) << report.status();
  }

  // A run of two packages, with everything that a report may have. Returns the job's id.
  std::string RunPackages() {
    v1::JobSpec spec;
    spec.set_request_id("run");
    spec.set_name("old.hone");
    spec.add_devices("runner");
    v1::RunTask& task = *spec.mutable_run();
    for (const char* name : {"old.hone", "new.hone"}) *task.add_packages() = FileNamed(name);
    *task.mutable_inputs() = FileNamed("in.npz");
    task.add_shapes("x=1,3");
    task.set_seconds(2);
    task.set_profile(true);
    const std::string id = SubmitJob(spec);
    uint64_t epoch = 0;
    std::vector<v1::LeaseResult> finished;
    for (uint64_t sequence = 1; sequence < 10; ++sequence) {
      const v1::SynchronizeResponse answer = Synchronize("runner", sequence, epoch, finished);
      if (answer.acked_lease_ids_size() > 0) return id;
      epoch = answer.epoch();
      for (const v1::Lease& lease : answer.leases()) {
        v1::LeaseResult& result = finished.emplace_back();
        *result.mutable_lease() = lease.reference();
        *result.mutable_result()->mutable_run() = FullReport();
      }
    }
    ADD_FAILURE() << "the run was not acknowledged";
    return id;
  }
  static v1::FileName FileNamed(const std::string& name) {
    v1::FileName file;
    file.set_digest(Sha256Hex(name));
    file.set_bytes(10);
    file.set_name(name);
    return file;
  }
  // The second package takes 10% longer.
  static v1::RunReport FullReport() {
    v1::RunReport report;
    for (const double seconds : {0.010, 0.011}) {
      v1::PackageReport& package = *report.add_packages();
      package.set_target("cpu");
      package.set_threads(2);
      package.set_load_seconds(0.5);
      package.set_first_run_seconds(0.1);
      for (int i = 0; i < 100; ++i) package.add_seconds(seconds * (1 + 0.001 * (i % 5)));
      package.set_runs(100);
      package.set_peak_memory_bytes(1 << 20);
      v1::KernelTime& kernel = *package.add_kernels();
      kernel.set_symbol("hone_k0_conv2d");
      kernel.set_target("cpu");
      kernel.set_median_seconds(seconds);
      kernel.add_nodes("/conv");
      v1::RunMinute& minute = *package.add_minutes();
      minute.set_runs(100);
      minute.set_median_seconds(seconds);
      minute.set_temperature_c(50);
      minute.set_clock_mhz(1500);
      *package.mutable_outputs() = FileNamed("out.npz");
      package.add_passed_over("cuda: this machine has no such device");
    }
    report.mutable_roofline()->set_flops_per_second(1e11);
    v1::DeviceRoofline::Level& memory = *report.mutable_roofline()->add_levels();
    memory.set_bytes_per_second(1e10);
    report.set_temperature_before_c(40);
    report.set_temperature_after_c(50);
    report.set_clock_before_mhz(1500);
    report.set_clock_after_mhz(1400);
    report.mutable_environment()->set_kernel("6.1.0-18");
    report.mutable_environment()->set_governor("performance");
    return report;
  }
  // Adds a watch "nightly" on the device nightboard/cpu, which calls for the first time.
  void AddWatch() {
    night_epoch_ = Synchronize("nightboard", ++night_sequence_).epoch();
    v1::FleetWatchSpec spec;
    spec.set_name("nightly");
    spec.set_submitted_by("ann");
    spec.add_devices("nightboard");
    spec.set_notify_url("https://hooks.lab/night");
    *spec.mutable_run()->add_packages() = FileNamed("net.hone");
    spec.mutable_run()->add_shapes("x=1,3");
    const auto added =
        Await<v1::FleetWatch>([&](Done<v1::FleetWatch> done) { shell_->AddWatch(spec, std::move(done)); });
    EXPECT_TRUE(added.ok()) << added.status();
  }
  v1::FleetWatch Watch() {
    return Await<v1::FleetWatch>([&](Done<v1::FleetWatch> done) { shell_->GetWatch("nightly", std::move(done)); })
        .value();
  }
  // Measures the watch now, and waits until the night is there.
  void MeasureNight(double seconds = 0.010) {
    const int before = Watch().devices(0).nights_size();
    EXPECT_TRUE(Await<v1::FleetWatch>([&](Done<v1::FleetWatch> done) {
                  shell_->RunWatch("nightly", "ann", std::move(done));
                }).ok());
    std::vector<v1::LeaseResult> finished;
    for (bool acknowledged = false; !acknowledged && night_sequence_ < 1000;) {
      const v1::SynchronizeResponse answer = Synchronize("nightboard", ++night_sequence_, night_epoch_, finished);
      night_epoch_ = answer.epoch();
      acknowledged = answer.acked_lease_ids_size() > 0;
      for (const v1::Lease& lease : answer.leases()) {
        v1::LeaseResult& result = finished.emplace_back();
        *result.mutable_lease() = lease.reference();
        v1::RunReport& report = *result.mutable_result()->mutable_run();
        report = FullReport();
        report.mutable_packages()->RemoveLast();
        for (double& time : *report.mutable_packages(0)->mutable_seconds()) time *= seconds / 0.010;
      }
    }
    for (int i = 0; i < 6000 && Watch().devices(0).nights_size() == before; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(Watch().devices(0).nights_size(), before + 1);
  }
  // Stores a file. Returns its digest.
  std::string StoreFile(const std::string& contents) {
    const std::string digest = Sha256Hex(contents);
    EXPECT_EQ(Put("/api/v1/files/" + digest + "/contents", contents).status, 200);
    return digest;
  }

  std::string job_;
  uint64_t night_sequence_ = 0, night_epoch_ = 0;  // of the agent nightboard
  const std::string workload_ = BatchOf(1).workload_digest();
};

inline v1::JobSpec FullSpec() {
  v1::JobSpec spec = SpecOf("full");
  spec.add_devices("elsewhere");
  spec.set_notify_url("https://hooks.lab/done");
  (*spec.mutable_labels())["room"] = "attic";
  (*spec.mutable_options())["space"] = "all";
  return spec;
}

}  // namespace hone::tracker

#endif  // HONE_TESTS_UNIT_TRACKER_HTTP_API_FIXTURE_H_
