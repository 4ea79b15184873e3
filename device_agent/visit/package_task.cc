// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/package_task.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/run_limits.h"
#include "base/status.h"
#include "device_agent/visit/packing.h"

namespace hone::agent {
namespace {

constexpr int64_t kReportBytes = 16 << 20;  // only the pages that are written take memory

}  // namespace

void Fields(auto& ends, Like<PackageTask> auto& t) {
  ends.All(t.purpose, t.names, t.has_inputs, t.shapes, t.threads, t.seconds, t.profile, t.keep_outputs, t.keep_values,
           t.allows_onnx_runtime);
}

void Fields(auto& ends, Like<KernelRun> auto& k) { ends.All(k.symbol, k.target, k.median_seconds, k.nodes); }

void Fields(auto& ends, Like<PackageRun> auto& r) {
  ends.All(r.target, r.threads, r.load_seconds, r.first_run_seconds, r.seconds, r.runs, r.peak_memory_bytes, r.kernels,
           r.output_bytes, r.minutes, r.passed_over, r.work, r.work_unknown);
}

void Fields(auto& ends, Like<PackageFindings> auto& f) {
  ends.All(f.failed, f.failure.kind, f.failure.text, f.packages);
}

std::string Pack(const PackageTask& task) {
  Packer packer;
  packer.All(task);
  return packer.Take();
}

absl::StatusOr<PackageTask> UnpackPackageTask(std::string_view bytes) {
  PackageTask task;
  Unpacker unpacker(bytes);
  unpacker.All(task);
  if (unpacker.good()) return task;
  return absl::InternalError("a child process of the run cannot read its task");
}

struct ReportMemory::Header {
  std::atomic<uint64_t> steps;
  std::atomic<uint64_t> package;
  std::atomic<uint64_t> bytes;  // of the findings, which follow; 0: none yet
};

ReportMemory::ReportMemory(MemoryFile file, Mapping memory) : file_(std::move(file)), memory_(std::move(memory)) {}

absl::StatusOr<ReportMemory> ReportMemory::Create() {
  HONE_ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("hone-report", kReportBytes));
  return Open(std::move(file));
}

absl::StatusOr<ReportMemory> ReportMemory::Open(MemoryFile file) {
  HONE_ASSIGN_OR_RETURN(Mapping memory, file.Map(MemoryFile::Access::kReadAndWrite));
  if (memory.bytes() != static_cast<size_t>(kReportBytes)) {
    return absl::InternalError("the memory of a run's report has the wrong size");
  }
  return ReportMemory(std::move(file), std::move(memory));
}

ReportMemory::Header& ReportMemory::header() const { return *reinterpret_cast<Header*>(memory_.data()); }

void ReportMemory::BeginStep(size_t package) {
  header().package.store(package, std::memory_order_relaxed);
  header().steps.fetch_add(1, std::memory_order_relaxed);
}

bool ReportMemory::Store(const PackageFindings& findings) {
  Packer packer;
  packer.All(findings);
  const std::string bytes = packer.Take();
  if (bytes.size() > static_cast<size_t>(kReportBytes) - sizeof(Header)) return false;
  std::memcpy(memory_.data() + sizeof(Header), bytes.data(), bytes.size());
  header().bytes.store(bytes.size(), std::memory_order_release);
  return true;
}

uint64_t ReportMemory::steps() const { return header().steps.load(std::memory_order_relaxed); }

size_t ReportMemory::package() const {
  return static_cast<size_t>(std::min<uint64_t>(header().package.load(std::memory_order_relaxed), kRunPackagesMax));
}

absl::StatusOr<PackageFindings> ReportMemory::findings() const {
  const uint64_t bytes = header().bytes.load(std::memory_order_acquire);
  PackageFindings findings;
  if (bytes > 0 && bytes <= kReportBytes - sizeof(Header)) {
    // A copy, because a child that runs can change the memory while it is read.
    const std::string copy(memory_.data() + sizeof(Header), static_cast<size_t>(bytes));
    Unpacker unpacker(copy);
    unpacker.All(findings);
    if (unpacker.good()) return findings;
  }
  return absl::InternalError("it has stored no report");
}

}  // namespace hone::agent
