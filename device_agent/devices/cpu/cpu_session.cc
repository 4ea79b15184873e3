// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/cpu_session.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/cpu_cores.h"
#include "base/status.h"
#include "device_agent/devices/cold_numbers.h"
#include "device_agent/devices/cpu/reference_loop.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

// Pins this thread to the CPU that the pool leaves free; the pool pins its workers to the others.
void PinToFirstCpu() {
  const std::vector<CoreGroup> groups = FindCoreGroups(UsableCpus());
  if (!groups.empty()) SetCpuAffinity({groups.front().cores.front()});
}

constexpr int64_t kLineBytes = 64;
constexpr int64_t kWrittenBytesMax = 4 << 20;  // bytes; most of what is longer lies in no core's own cache
constexpr int64_t kWriters = 16;               // tasks: about as finely as kernels share out what they write
constexpr int kStale = 0xff;  // what a workspace holds before the first kernel writes it: NaN, if floats

struct Lines {
  char* data;
  int64_t count;
};

// One of kWriters tasks: rewrites a byte of each cache line of its share with the same value, so that its core owns the
// line.
void WriteSomeLines(void* closure, int64_t task) {
  const Lines& lines = *static_cast<const Lines*>(closure);
  for (int64_t i = lines.count * task / kWriters; i < lines.count * (task + 1) / kWriters; ++i) {
    volatile char& byte = lines.data[i * kLineBytes];
    byte = byte;
  }
}

}  // namespace

// Packed constants, shared by all kernels that pack in the same way; read-only once they are filled.
struct CpuSession::Packed {
  std::vector<GuardedBuffer> buffers;
  bool filled = false;
};

class CpuSession::Kernel : public LoadedKernel {
 public:
  Kernel(CpuSession& session, const KernelInterface& interface) : session_(session), interface_(interface) {}

  absl::Status Load() {
    for (const KernelLaunch& launch : interface_.prepare) {
      HONE_ASSIGN_OR_RETURN(prepare_.emplace_back(), session_.Find(launch));
    }
    for (const KernelLaunch& launch : interface_.main) {
      HONE_ASSIGN_OR_RETURN(main_.emplace_back(), session_.Find(launch));
    }
    std::vector<void*> outputs;
    for (size_t i = 0; i < session_.shared_.size(); ++i) {
      const bool output = session_.batch_.buffers[i].role == BufferRole::kOutput;
      (output ? outputs : buffers_).push_back(session_.shared_[i].data());
    }
    PackedKey key{prepare_, {}};
    for (const uint32_t i : interface_.Of(BufferRole::kPacked)) key.second.push_back(interface_.buffers[i].bytes());
    HONE_ASSIGN_OR_RETURN(packed_, session_.PackedOf(key));
    for (const GuardedBuffer& memory : packed_->buffers) buffers_.push_back(memory.data());
    buffers_.insert(buffers_.end(), outputs.begin(), outputs.end());
    if (interface_.size_count() > 0) buffers_.push_back(nullptr);  // the sizes of a point, which a call puts here
    if (interface_.workspace_bytes > 0) {
      HONE_ASSIGN_OR_RETURN(workspace_, Workspace("workspace", interface_.workspace_bytes));
    }
    FindCold();
    return absl::OkStatus();
  }

  absl::Status Prepare() override {
    if (std::exchange(packed_->filled, true)) return absl::OkStatus();
    if (!prepare_.empty()) {
      HONE_ASSIGN_OR_RETURN(const GuardedBuffer workspace,
                            Workspace("workspace of prepare", interface_.prepare_workspace_bytes));
      for (const HoneKernel launch : prepare_) launch(buffers_.data(), workspace.data(), session_.pool_->parallel());
      if (const auto at = FindOverwrittenByte(workspace.guards())) {
        return absl::OutOfRangeError(OutOfBoundsWrite("workspace of prepare", *at).text);
      }
    }
    for (GuardedBuffer& packed : packed_->buffers) HONE_RETURN_IF_ERROR(packed.Protect());
    return absl::OkStatus();
  }

  absl::Status CallAt(size_t point) override {
    Run(buffers_, point);
    return absl::OkStatus();
  }

  absl::StatusOr<double> Time(int64_t calls) override {
    std::vector<void*> buffers = buffers_;
    for (const auto& [place, memory] : session_.timed_inputs_) buffers[place] = memory.data();
    double seconds = 0;
    for (int64_t i = 0; i < calls; ++i) {
      for (size_t point = 0; point < session_.batch_.points.size(); ++point) {
        for (const auto& [place, bytes] : cold_) buffers[place] = session_.cold_constants_.Next(bytes);
        session_.WriteTimedBuffers();
        const double start = SecondsNow();
        Run(buffers, point);
        seconds += SecondsNow() - start;
      }
    }
    return seconds / static_cast<double>(calls);
  }

  absl::Status StoreGuards(ResultMemory& result_memory) override {
    for (size_t i = 0; i < session_.shared_.size(); ++i) {
      const VisitBuffer& buffer = session_.batch_.buffers[i];
      if (buffer.role != BufferRole::kOutput) continue;
      result_memory.StoreGuards(fmt::format("output '{}'", buffer.name), session_.shared_[i].guards());
    }
    for (size_t i = 0; i < packed_->buffers.size(); ++i) {
      result_memory.StoreGuards(fmt::format("packed buffer {}", i), packed_->buffers[i].guards());
    }
    if (workspace_.has_value()) result_memory.StoreGuards("workspace", workspace_->guards());
    return absl::OkStatus();
  }

  // Inputs and their guard zones are read-only, so a write faults.
  absl::StatusOr<std::optional<VisitFailure>> FindChangedInput() override { return std::nullopt; }

 private:
  // Not zeros: in a package the workspace is a part of the arena, which other kernels used before.
  absl::StatusOr<GuardedBuffer> Workspace(const std::string& name, int64_t bytes) const {
    HONE_ASSIGN_OR_RETURN(GuardedBuffer workspace, GuardedBuffer::Create(*session_.options_.regions, name, bytes));
    memset(workspace.data(), kStale, static_cast<size_t>(bytes));
    return workspace;
  }

  void Run(std::vector<void*>& buffers, size_t point) {
    if (interface_.size_count() > 0) buffers.back() = session_.sizes_[point].data();
    void* const workspace = workspace_.has_value() ? workspace_->data() : nullptr;
    for (const HoneKernel launch : main_) launch(buffers.data(), workspace, session_.pool_->parallel());
  }

  void FindCold() {
    int64_t sum = 0;
    for (const auto& [index, bytes] : ColdBuffers(interface_)) {
      cold_.emplace_back(index, bytes);
      sum += bytes;
    }
    if (!session_.cold_constants_.CanServe(sum)) cold_.clear();  // they displace one another as it is
  }

  CpuSession& session_;
  const KernelInterface& interface_;
  std::vector<HoneKernel> prepare_, main_;
  std::shared_ptr<Packed> packed_;
  std::optional<GuardedBuffer> workspace_;
  std::vector<void*> buffers_;
  // Index and bytes of the buffers that are cold in timed calls; may be empty.
  std::vector<std::pair<size_t, int64_t>> cold_;
};

absl::StatusOr<std::unique_ptr<Session>> CpuSession::Open(const SessionOptions& options) {
  std::unique_ptr<CpuSession> session(new CpuSession(options));
  HONE_RETURN_IF_ERROR(session->LoadArtifact());
  HONE_RETURN_IF_ERROR(session->MakeBuffers());
  session->pool_ = std::make_unique<ThreadPool>(session->batch_.threads);
  if (session->pool_->threads() < session->batch_.threads)
    return absl::ResourceExhaustedError("cannot start the batch's threads");
  PinToFirstCpu();
  return session;
}

absl::Status CpuSession::LoadArtifact() {
  artifact_ = dlopen(fmt::format("/proc/self/fd/{}", options_.artifact_fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (artifact_ == nullptr) return absl::InvalidArgumentError(fmt::format("the artifact does not load: {}", dlerror()));
  return absl::OkStatus();
}

absl::Status CpuSession::MakeBuffers() {
  const DataLayout layout = ComputeDataLayout(batch_);
  size_t place = 0;
  for (size_t i = 0; i < batch_.buffers.size(); ++i) {
    const VisitBuffer& buffer = batch_.buffers[i];
    const bool output = buffer.role == BufferRole::kOutput;
    const std::string name = fmt::format("{} '{}'", output ? "output" : "input", buffer.name);
    HONE_ASSIGN_OR_RETURN(GuardedBuffer memory, GuardedBuffer::Create(*options_.regions, name, buffer.bytes));
    if (!output) {
      memcpy(memory.data(), options_.data + layout.offsets[i], static_cast<size_t>(buffer.bytes));
      HONE_RETURN_IF_ERROR(memory.Protect());
    }
    if (buffer.role == BufferRole::kInput) {
      HONE_ASSIGN_OR_RETURN(GuardedBuffer copy, GuardedBuffer::Create(*options_.regions, name, buffer.bytes));
      memcpy(copy.data(), options_.data + layout.offsets[i], static_cast<size_t>(buffer.bytes));
      HONE_RETURN_IF_ERROR(copy.OpenGuards());
      timed_inputs_.emplace_back(place, std::move(copy));
    }
    if (!output) ++place;
    shared_.push_back(std::move(memory));
  }
  for (const std::vector<int64_t>& point : batch_.points) {
    if (point.empty()) continue;
    const auto bytes = static_cast<int64_t>(point.size() * sizeof(int64_t));
    HONE_ASSIGN_OR_RETURN(GuardedBuffer sizes, GuardedBuffer::Create(*options_.regions, "sizes", bytes));
    std::ranges::copy(point, reinterpret_cast<int64_t*>(sizes.data()));
    HONE_RETURN_IF_ERROR(sizes.Protect());
    sizes_.push_back(std::move(sizes));
  }
  return absl::OkStatus();
}

void CpuSession::WriteTimedBuffers() {
  const auto write = [&](const GuardedBuffer& memory) {
    if (memory.bytes() > kWrittenBytesMax) return;
    Lines lines{memory.data(), memory.bytes() / kLineBytes};
    pool_->parallel()->parallel_for(pool_->parallel(), WriteSomeLines, &lines, kWriters);
  };
  for (const auto& [place, memory] : timed_inputs_) write(memory);
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (batch_.buffers[i].role == BufferRole::kOutput) write(shared_[i]);
  }
}

absl::StatusOr<HoneKernel> CpuSession::Find(const KernelLaunch& launch) const {
  if (launch.groups != 0) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' needs a launch with a grid, which CPUs do not support", launch.function));
  }
  if (void* function = dlsym(artifact_, launch.function.c_str())) return reinterpret_cast<HoneKernel>(function);
  return absl::NotFoundError(fmt::format("the artifact has no function '{}'", launch.function));
}

absl::StatusOr<std::shared_ptr<CpuSession::Packed>> CpuSession::PackedOf(const PackedKey& key) {
  std::weak_ptr<Packed>& known = packed_[key];
  if (auto packed = known.lock()) return packed;
  auto packed = std::make_shared<Packed>();
  for (const int64_t bytes : key.second) {
    const std::string name = fmt::format("packed buffer {}", packed->buffers.size());
    HONE_ASSIGN_OR_RETURN(GuardedBuffer memory, GuardedBuffer::Create(*options_.regions, name, bytes));
    packed->buffers.push_back(std::move(memory));
  }
  known = packed;
  return packed;
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> CpuSession::Load(const VisitKernel& kernel) {
  auto loaded = std::make_unique<Kernel>(*this, kernel.interface);
  HONE_RETURN_IF_ERROR(loaded->Load());
  return loaded;
}

absl::Status CpuSession::ClearOutputs() {
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (batch_.buffers[i].role != BufferRole::kOutput) continue;
    memset(shared_[i].data(), 0xff, static_cast<size_t>(shared_[i].bytes()));
  }
  return absl::OkStatus();
}

absl::Status CpuSession::CopyOutput(int buffer, std::span<char> to) {
  memcpy(to.data(), shared_[static_cast<size_t>(buffer)].data(), to.size());
  return absl::OkStatus();
}

// Runs the loop on all cores at once. The slowest counts, because a kernel waits for it.
absl::StatusOr<double> CpuSession::TimeReference() {
  std::vector<double> seconds(static_cast<size_t>(pool_->threads()));
  pool_->parallel()->parallel_for(
      pool_->parallel(),
      [](void* closure, int64_t thread) { static_cast<double*>(closure)[thread] = ReferenceLoopSeconds(); },
      seconds.data(), pool_->threads());
  return *std::ranges::max_element(seconds);
}

}  // namespace hone::agent
