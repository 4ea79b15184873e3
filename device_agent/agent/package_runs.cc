// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/package_runs.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace hone::agent {
namespace {

v1::BatchResult BatchErrorOf(const absl::Status& status) {
  v1::BatchResult result;
  result.set_error(std::string(status.message()));
  return result;
}

// The run's own failure, which no other device would cure.
v1::BatchResult FailureOf(const v1::Batch& batch, const std::string& text) {
  v1::BatchResult result;
  v1::CandidateOutcome* outcome = result.add_outcomes();
  outcome->set_candidate_id(batch.candidates(0).id());
  outcome->mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_COMPILE_ERROR);
  outcome->mutable_outcome()->mutable_failure()->set_text(text);
  return result;
}

// The packages in order, then the inputs.
std::vector<v1::FileName> FilesOfRun(const v1::RunTask& task) {
  std::vector<v1::FileName> files(task.packages().begin(), task.packages().end());
  if (task.has_inputs()) files.push_back(task.inputs());
  return files;
}

absl::StatusOr<std::vector<OpenedFile>> Fetch(const v1::RunTask& task, files::FileTransfer& transfer,
                                              files::FileStore& cache) {
  std::vector<OpenedFile> opened;
  for (const v1::FileName& file : FilesOfRun(task)) {
    HONE_RETURN_IF_ERROR(Annotate(transfer.Download(file, cache), fmt::format("cannot fetch {}", file.name())));
    HONE_ASSIGN_OR_RETURN(OpenedFile local, cache.OpenFile(file.digest()));
    opened.push_back(std::move(local));
  }
  return opened;
}

// Sends the outputs and names them in the report: "net.outputs.npz" of net.hone.
absl::Status SendOutputs(const v1::RunTask& task, const std::vector<MemoryFile>& outputs, files::FileTransfer& transfer,
                         v1::RunReport& report) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto index = static_cast<int>(i);
    absl::StatusOr<v1::FileName> sent = transfer.Upload(outputs[i].path());
    const std::string stem = std::filesystem::path(task.packages(index).name()).stem().string();
    HONE_RETURN_IF_ERROR(Annotate(sent.status(), fmt::format("cannot send the outputs of {}", stem)));
    sent->set_name(stem + ".outputs.npz");
    *report.mutable_packages(index)->mutable_outputs() = *std::move(sent);
  }
  return absl::OkStatus();
}

}  // namespace

v1::BatchResult RunPackages(const v1::Batch& batch, const FileAccess& access, const RunWithFiles& run,
                            const std::stop_token& stop) {
  files::TransferOptions options;
  options.stop = stop;
  files::FileTransfer transfer(access.connect, options);
  std::vector<std::string> digests;
  for (const v1::FileName& file : FilesOfRun(batch.run())) digests.push_back(file.digest());
  // Until the files are open, a run of another device of this agent could make the cache delete them.
  std::optional<files::FileStore::Hold> hold(std::in_place, *access.cache, std::move(digests));
  const absl::StatusOr<std::vector<OpenedFile>> opened = Fetch(batch.run(), transfer, *access.cache);
  if (absl::IsNotFound(opened.status())) {
    return FailureOf(batch, fmt::format("{}; start the run again, which sends the file again",
                                        std::string(opened.status().message())));
  }
  if (!opened.ok()) return BatchErrorOf(opened.status());
  std::vector<int> descriptors;
  for (const OpenedFile& file : *opened) descriptors.push_back(file.descriptor());
  hold.reset();
  Launcher::RunResult ran = run(batch, descriptors, stop);
  access.cache->DeleteBeyondQuota();  // what this run needed, too, if there is no room for it
  if (!ran.result.has_run()) return std::move(ran.result);
  const absl::Status sent = SendOutputs(batch.run(), ran.outputs, transfer, *ran.result.mutable_run());
  return sent.ok() ? std::move(ran.result) : BatchErrorOf(sent);
}

}  // namespace hone::agent
