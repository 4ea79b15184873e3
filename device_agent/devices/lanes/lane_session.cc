// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/lanes/lane_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "device_agent/devices/cold_numbers.h"

namespace hone::agent {
namespace {

// The part of a buffer must start at a multiple of the device's alignment. This is a multiple of all known ones.
constexpr size_t kGuardBytes = 4096;
constexpr int64_t kVariantsMax = 64;
constexpr size_t kPart = 1 << 20;  // of an input that is read back

std::span<const std::byte> BytesAt(const char* data, size_t bytes) {
  return {reinterpret_cast<const std::byte*>(data), bytes};
}
std::span<std::byte> BytesOf(std::vector<char>& memory) {
  return {reinterpret_cast<std::byte*>(memory.data()), memory.size()};
}

// Converts the error of a call that allocates memory or uses it first, as some drivers allocate late. Only errors about
// memory or size concern the kernel's demand.
absl::Status OutOfMemory(const drivers::Error& error) {
  const bool too_much = error.kind == drivers::ErrorKind::kMemory || error.kind == drivers::ErrorKind::kProgram;
  return too_much ? absl::ResourceExhaustedError(error.text) : ToStatus(error);
}

}  // namespace

template <typename Driver>
absl::Status CanaryBuffer<Driver>::StoreCanaries(const typename Driver::Device& device,
                                                 ResultMemory& result_memory) const {
  std::vector<char> front(kGuardBytes), back(kGuardBytes);
  HONE_RETURN_IF_ERROR(ToStatus(device.Read(whole, 0, BytesOf(front))));
  HONE_RETURN_IF_ERROR(ToStatus(device.Read(whole, kGuardBytes + data.bytes(), BytesOf(back))));
  result_memory.StoreGuards(name, {front, back});
  return absl::OkStatus();
}

template <typename Driver>
class LaneSession<Driver>::Kernel : public LoadedKernel {
 public:
  Kernel(LaneSession& session, const VisitKernel& kernel)
      : session_(session), device_(session.device_), interface_(kernel.interface) {
    code_ = session.batch_.artifact;
    if (kernel.code_bytes > 0) {
      code_ = code_.substr(static_cast<size_t>(kernel.code_offset), static_cast<size_t>(kernel.code_bytes));
    }
  }

  absl::Status Load() {
    HONE_RETURN_IF_ERROR(MakeBuffers());
    HONE_RETURN_IF_ERROR(
        ToStatus(device_.Build(code_, {.extra_options = {}, .cache_folder = session_.folder_}, &program_)));
    HONE_RETURN_IF_ERROR(Bind(interface_.prepare, buffers_, 0, prepare_));
    main_.resize(session_.batch_.points.size());
    for (size_t point = 0; point < main_.size(); ++point) {
      HONE_RETURN_IF_ERROR(Bind(interface_.main, buffers_, point, main_[point]));
      all_points_.insert(all_points_.end(), main_[point].begin(), main_[point].end());
    }
    HONE_RETURN_IF_ERROR(BindCold());
    // A driver that compiles at the first launch does it here, before a deadline counts. The slow reference is
    // excepted: its only call has time for both.
    if constexpr (Driver::kCompilesAtLaunch) {
      if (session_.options_.purpose == SessionPurpose::kReference) return absl::OkStatus();
      for (const std::vector<typename Driver::Launch>* launches : {&prepare_, &all_points_}) {
        HONE_RETURN_IF_ERROR(RunWithin(*launches));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Prepare() override { return Run(prepare_); }
  absl::Status CallAt(size_t point) override { return Run(main_[point]); }

  absl::StatusOr<double> Time(int64_t calls) override {
    std::vector<typename Driver::Launch> launches;
    for (int64_t i = 0; i < calls; ++i) {
      const std::vector<typename Driver::Launch>& call =
          cold_.empty() ? all_points_ : cold_[next_cold_++ % cold_.size()];
      launches.insert(launches.end(), call.begin(), call.end());
    }
    drivers::Timing timing;
    HONE_RETURN_IF_ERROR(ToStatus(device_.Time(launches, 1, kNoDeadline, &timing)));
    return SecondsOf(timing) / static_cast<double>(calls);
  }

  absl::Status StoreGuards(ResultMemory& result_memory) override {
    for (const CanaryBuffer<Driver>& buffer : session_.shared_)
      HONE_RETURN_IF_ERROR(buffer.StoreCanaries(device_, result_memory));
    for (const CanaryBuffer<Driver>& buffer : own_) HONE_RETURN_IF_ERROR(buffer.StoreCanaries(device_, result_memory));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<VisitFailure>> FindChangedInput() override {
    for (size_t i = 0; i < session_.shared_.size(); ++i) {
      const VisitBuffer& buffer = session_.batch_.buffers[i];
      if (buffer.role == BufferRole::kOutput) continue;
      HONE_ASSIGN_OR_RETURN(const bool same, session_.IsInputUnchanged(i));
      if (same) continue;
      return VisitFailure{FailureKind::kWrongOutput,
                          fmt::format("wrote into {}, which is read-only", session_.shared_[i].name)};
    }
    return std::nullopt;
  }

 private:
  absl::Status MakeBuffers() {
    if (interface_.workspace_bytes > session_.device_.info().global_bytes) {
      return absl::ResourceExhaustedError(
          fmt::format("the device has no memory for {} bytes of workspace", interface_.workspace_bytes));
    }
    size_t shared = 0;
    for (const KernelBuffer& buffer : interface_.buffers) {
      const bool packed = buffer.role == BufferRole::kPacked;
      if (packed || buffer.role == BufferRole::kWorkspace) {
        HONE_ASSIGN_OR_RETURN(
            own_.emplace_back(),
            session_.Allocate(fmt::format("{} buffer {}", packed ? "packed" : "workspace", own_.size()),
                              buffer.bytes()));
        buffers_.push_back(own_.back().data);
      } else if (buffer.role == BufferRole::kSizes) {
        buffers_.push_back(session_.sizes_.front().data);  // Bind replaces it
      } else {
        buffers_.push_back(session_.shared_[shared++].data);
      }
    }
    return absl::OkStatus();
  }

  // Adds the launches that have work at the point to `bound`.
  absl::Status Bind(const std::vector<KernelLaunch>& launches, std::vector<typename Driver::Buffer> buffers,
                    size_t point, std::vector<typename Driver::Launch>& bound) {
    const std::vector<int64_t> values = interface_.ComputeValues(session_.batch_.points[point]);
    for (const uint32_t i : interface_.Of(BufferRole::kSizes)) buffers[i] = session_.sizes_[point].data;
    for (const KernelLaunch& launch : launches) {
      if (launch.lanes == 0) {
        return absl::InvalidArgumentError(
            fmt::format("'{}' has no grid for its launch, which this device needs", launch.function));
      }
      typename Driver::Kernel& kernel = kernels_.emplace_back();
      HONE_RETURN_IF_ERROR(ToStatus(program_.Find(launch.function, &kernel)));
      if (launch.lanes > kernel.group_lanes_max()) {
        return absl::InvalidArgumentError(fmt::format("'{}' needs {} lanes; the device allows it {}", launch.function,
                                                      launch.lanes, kernel.group_lanes_max()));
      }
      HONE_RETURN_IF_ERROR(ToStatus(kernel.SetShared(launch.shared_bytes)));
      for (size_t i = 0; i < launch.arguments.size(); ++i) {
        HONE_RETURN_IF_ERROR(ToStatus(kernel.SetArg(static_cast<int>(i), buffers[launch.arguments[i]])));
      }
      const int64_t groups = launch.GroupsFor(values);
      if (groups > 0) bound.push_back({&kernel, groups, launch.lanes});
    }
    return absl::OkStatus();
  }

  // Binds the launches of `main` at all points to consecutive stretches of cold numbers, one for each point of a call:
  // the constants that one point has read would be warm for the next.
  absl::Status BindCold() {
    const auto replaced = ColdBuffers(interface_);
    int64_t stretch = 0;
    for (const auto& [index, bytes] : replaced) stretch += Rounded(bytes);
    const auto all = static_cast<int64_t>(session_.cold_.bytes());
    const int64_t call = stretch * static_cast<int64_t>(main_.size());
    if (call == 0 || call > all / 2) return absl::OkStatus();
    cold_.resize(static_cast<size_t>(std::min(all / call, kVariantsMax)));
    int64_t offset = 0;
    std::vector<typename Driver::Buffer> buffers = buffers_;
    for (std::vector<typename Driver::Launch>& launches : cold_) {
      for (size_t point = 0; point < main_.size(); ++point) {
        for (const auto& [index, bytes] : replaced) {
          HONE_RETURN_IF_ERROR(ToStatus(
              device_.Slice(session_.cold_, static_cast<size_t>(offset), static_cast<size_t>(bytes), &buffers[index])));
          offset += Rounded(bytes);
        }
        HONE_RETURN_IF_ERROR(Bind(interface_.main, buffers, point, launches));
      }
    }
    return absl::OkStatus();
  }

  static int64_t Rounded(int64_t bytes) {
    constexpr auto kUnit = static_cast<int64_t>(kGuardBytes);
    return (bytes + kUnit - 1) / kUnit * kUnit;
  }

  absl::Status Run(const std::vector<typename Driver::Launch>& launches) const {
    return ToStatus(device_.Run(launches, kNoDeadline));
  }

  absl::Status RunWithin(const std::vector<typename Driver::Launch>& launches) const {
    const VisitPolicy& policy = session_.batch_.policy;
    const double limit = policy.timeout_seconds;
    const drivers::Error ran = device_.RunEach(launches, std::chrono::duration<double>(2 * limit));
    if (ran.kind != drivers::ErrorKind::kTimeout) return ToStatus(ran);
    return absl::DeadlineExceededError(fmt::format("a call took longer than {:.3g} s", limit));
  }

  LaneSession& session_;
  const typename Driver::Device& device_;
  const KernelInterface& interface_;
  std::string_view code_;
  std::vector<CanaryBuffer<Driver>> own_;         // packed buffers and workspace
  std::vector<typename Driver::Buffer> buffers_;  // as the interface lists them
  typename Driver::Program program_;
  std::deque<typename Driver::Kernel> kernels_;  // launches point at them
  std::vector<typename Driver::Launch> prepare_, all_points_;
  std::vector<std::vector<typename Driver::Launch>> main_;  // by point; all_points_ has them one after the other
  std::vector<std::vector<typename Driver::Launch>> cold_;
  size_t next_cold_ = 0;
};

template <typename Driver>
absl::StatusOr<std::unique_ptr<StartedDevice>> StartedLaneDevice<Driver>::Start(typename Driver::Device device,
                                                                                std::string folder) {
  HONE_ASSIGN_OR_RETURN(ReferenceKernel<Driver> reference,
                        ReferenceKernel<Driver>::Create(device, folder, kNoDeadline));
  return std::unique_ptr<StartedDevice>(
      new StartedLaneDevice(std::move(device), std::move(folder), std::move(reference)));
}

template <typename Driver>
absl::StatusOr<std::unique_ptr<Session>> StartedLaneDevice<Driver>::Open(const SessionOptions& options) {
  auto session =
      std::make_unique<LaneSession<Driver>>(std::move(device_), std::move(folder_), std::move(reference_), options);
  HONE_RETURN_IF_ERROR(session->MakeBuffers());
  return session;
}

template <typename Driver>
absl::StatusOr<CanaryBuffer<Driver>> LaneSession<Driver>::Allocate(const std::string& name, int64_t bytes) const {
  CanaryBuffer<Driver> buffer;
  buffer.name = name;
  const auto size = static_cast<size_t>(bytes);
  HONE_RETURN_IF_ERROR(OutOfMemory(device_.Allocate(size + 2 * kGuardBytes, &buffer.whole)));
  HONE_RETURN_IF_ERROR(OutOfMemory(
      device_.Fill(buffer.whole, 0, size + 2 * kGuardBytes, std::byte{static_cast<unsigned char>(kGuardPattern)})));
  HONE_RETURN_IF_ERROR(ToStatus(device_.Slice(buffer.whole, kGuardBytes, size, &buffer.data)));
  return buffer;
}

template <typename Driver>
absl::Status LaneSession<Driver>::MakeBuffers() {
  layout_ = ComputeDataLayout(batch_);
  for (size_t i = 0; i < batch_.buffers.size(); ++i) {
    const VisitBuffer& buffer = batch_.buffers[i];
    const bool output = buffer.role == BufferRole::kOutput;
    HONE_ASSIGN_OR_RETURN(shared_.emplace_back(),
                          Allocate(fmt::format("{} '{}'", output ? "output" : "input", buffer.name), buffer.bytes));
    if (output) continue;
    const auto given = BytesAt(InputData(i), static_cast<size_t>(buffer.bytes));
    HONE_RETURN_IF_ERROR(ToStatus(device_.Write(shared_.back().data, 0, given)));
  }
  for (const std::vector<int64_t>& point : batch_.points) {
    if (point.empty()) continue;
    const auto values = std::as_bytes(std::span(point));
    HONE_ASSIGN_OR_RETURN(sizes_.emplace_back(), Allocate("sizes", static_cast<int64_t>(values.size())));
    HONE_RETURN_IF_ERROR(ToStatus(device_.Write(sizes_.back().data, 0, values)));
  }
  return MakeColdConstants();
}

template <typename Driver>
absl::Status LaneSession<Driver>::MakeColdConstants() {
  const std::span<char> numbers = options_.cold_numbers;
  if (numbers.empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(OutOfMemory(device_.Allocate(numbers.size(), &cold_)));
  return ToStatus(device_.Write(cold_, 0, BytesAt(numbers.data(), numbers.size())));
}

template <typename Driver>
absl::StatusOr<std::unique_ptr<LoadedKernel>> LaneSession<Driver>::Load(const VisitKernel& kernel) {
  auto loaded = std::make_unique<Kernel>(*this, kernel);
  const absl::Status status = loaded->Load();
  if (status.ok()) return loaded;
  // Freeing the buffers would wait for ever for the running launch. The end of this process ends both.
  if (absl::IsDeadlineExceeded(status)) static_cast<void>(loaded.release());
  return status;
}

template <typename Driver>
absl::Status LaneSession<Driver>::ClearOutputs() {
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (batch_.buffers[i].role != BufferRole::kOutput) continue;
    const typename Driver::Buffer& data = shared_[i].data;
    HONE_RETURN_IF_ERROR(ToStatus(device_.Fill(data, 0, data.bytes(), std::byte{0xff})));
  }
  return absl::OkStatus();
}

// Compares in parts that fit into the cache of the host.
template <typename Driver>
absl::StatusOr<bool> LaneSession<Driver>::IsInputUnchanged(size_t buffer) {
  part_.resize(kPart);
  const auto bytes = static_cast<size_t>(batch_.buffers[buffer].bytes);
  for (size_t offset = 0; offset < bytes; offset += kPart) {
    const size_t count = std::min(kPart, bytes - offset);
    HONE_RETURN_IF_ERROR(ToStatus(device_.Read(shared_[buffer].data, offset, BytesOf(part_).first(count))));
    if (std::memcmp(part_.data(), InputData(buffer) + offset, count) != 0) return false;
  }
  return true;
}

template <typename Driver>
absl::Status LaneSession<Driver>::CopyOutput(int buffer, std::span<char> to) {
  return ToStatus(device_.Read(shared_[static_cast<size_t>(buffer)].data, 0, std::as_writable_bytes(to)));
}

template class StartedLaneDevice<drivers::OpenClDriver>;
template class StartedLaneDevice<drivers::CudaDriver>;

}  // namespace hone::agent
