// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/device/fake_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "device_agent/devices/cpu/reference_loop.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

constexpr size_t kCanary = 64;
constexpr int64_t kBytesMax = 1 << 30;

class FakeBuffer {
 public:
  FakeBuffer(std::string name, int64_t bytes)
      : name_(std::move(name)), memory_(static_cast<size_t>(bytes) + 2 * kCanary, kGuardPattern) {}
  float* floats() { return reinterpret_cast<float*>(data()); }
  char* data() { return memory_.data() + kCanary; }
  size_t bytes() const { return memory_.size() - 2 * kCanary; }
  GuardZones guards() const {
    const std::span<const char> all(memory_);
    return {all.first(kCanary), all.last(kCanary)};
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::vector<char> memory_;
};

using Arguments = std::vector<FakeBuffer*>;
using Function = std::function<void(const Arguments&)>;

void Compute(const Arguments& a, size_t count) {
  for (size_t i = 0; i < count; ++i) a[2]->floats()[i] = 2 * a[0]->floats()[i] + a[1]->floats()[i];
}

size_t OpenSize(const Arguments& a) {
  int64_t size = 0;
  memcpy(&size, a[3]->data(), sizeof size);
  return static_cast<size_t>(size);
}

// By name. A function takes x, w, y unless its comment names other buffers.
const std::map<std::string, Function>& Functions() {
  constexpr size_t kN = 1000;
  const auto good = [](const Arguments& a) { Compute(a, kN); };
  const auto then = [good](auto change) {  // computes the good result and then changes it
    return [good, change](const Arguments& a) {
      good(a);
      change(a);
    };
  };
  static const std::map<std::string, Function>& functions = *new std::map<std::string, Function>{
      {"reference", good},
      {"good", good},
      {"beside", good},
      {"breaks", good},
      {"slowly_built", good},
      {"aligned", good},
      {"slow",
       [good](const Arguments& a) {
         usleep(1000);
         good(a);
       }},
      {"first_of_two",  // x, scratch
       [](const Arguments& a) {
         for (size_t i = 0; i < kN; ++i) a[1]->floats()[i] = 2 * a[0]->floats()[i];
       }},
      {"second_of_two",  // scratch, w, y
       [](const Arguments& a) {
         for (size_t i = 0; i < kN; ++i) a[2]->floats()[i] = a[0]->floats()[i] + a[1]->floats()[i];
       }},
      {"prepare",  // w, packed
       [](const Arguments& a) {
         for (size_t i = 0; i < kN; ++i) a[1]->floats()[i] = a[0]->floats()[kN - 1 - i];
       }},
      {"packed_double",  // x, packed, y
       [](const Arguments& a) {
         for (size_t i = 0; i < kN; ++i) a[2]->floats()[i] = 2 * a[0]->floats()[i] + a[1]->floats()[kN - 1 - i];
       }},
      {"wrong", then([](const Arguments& a) { a[2]->floats()[17] += 0.5F; })},
      {"incomplete", [](const Arguments& a) { Compute(a, kN - 1); }},
      {"past_end", then([](const Arguments& a) { a[2]->floats()[kN] = 1; })},
      {"before_begin", then([](const Arguments& a) { a[2]->floats()[-2] = 1; })},
      {"wrong_and_write_input", [](const Arguments& a) { a[0]->floats()[3] = a[2]->floats()[3] = 0; }},
      {"write_input", then([](const Arguments& a) { a[0]->floats()[3] = 0; })},
      // x, w, y, sizes
      {"open_size", [](const Arguments& a) { Compute(a, OpenSize(a)); }},
      {"open_past_length", [](const Arguments& a) { Compute(a, kN); }},
      {"open_wrong_when_short",
       [](const Arguments& a) {
         Compute(a, OpenSize(a));
         if (OpenSize(a) < kN) a[2]->floats()[17] += 0.5F;
       }},
      {"crash", [](const Arguments&) { std::raise(SIGSEGV); }},
      {"hang",
       [](const Arguments&) {
         for (volatile bool forever = true; forever;) {
         }
       }},
  };
  return functions;
}

class FakeSession : public Session {
 public:
  FakeSession(const SessionOptions& options, std::string folder, const FakeNature& nature)
      : options_(options), batch_(*options.batch), folder_(std::move(folder)), nature_(nature) {
    for (const VisitBuffer& buffer : batch_.buffers) shared_.emplace_back(buffer.name, buffer.bytes);
    layout_ = ComputeDataLayout(batch_);
    for (size_t i = 0; i < shared_.size(); ++i) {
      if (batch_.buffers[i].role != BufferRole::kOutput) memcpy(shared_[i].data(), InputData(i), shared_[i].bytes());
    }
  }

  absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const VisitKernel& kernel) override;
  absl::Status ClearOutputs() override {
    for (size_t i = 0; i < shared_.size(); ++i) {
      if (batch_.buffers[i].role == BufferRole::kOutput) memset(shared_[i].data(), 0xff, shared_[i].bytes());
    }
    return absl::OkStatus();
  }
  absl::Status CopyOutput(int buffer, std::span<char> to) override {
    memcpy(to.data(), shared_[static_cast<size_t>(buffer)].data(), to.size());
    return absl::OkStatus();
  }
  absl::StatusOr<double> TimeReference() override {
    const FakeNature::Asked asked{.calls = 1, .timed = timed_, .references = references_++};
    return nature_.seconds ? nature_.seconds(asked) : ReferenceLoopSeconds();
  }

  // The reported seconds per call, for `calls` calls that took `seconds` each.
  double Told(int64_t calls, double seconds) {
    const FakeNature::Asked asked{.calls = calls, .timed = timed_++, .references = references_};
    return nature_.seconds ? nature_.seconds(asked) : seconds;
  }
  int& loaded() { return loaded_; }
  const char* InputData(size_t buffer) const { return options_.data + layout_.offsets[buffer]; }
  const VisitBatch& batch() const { return batch_; }
  std::vector<FakeBuffer>& shared() { return shared_; }

 private:
  const SessionOptions options_;
  const VisitBatch& batch_;
  const std::string folder_;
  const FakeNature& nature_;
  int loaded_ = 0;  // number of loaded kernels
  int64_t timed_ = 0, references_ = 0;
  DataLayout layout_;
  std::vector<FakeBuffer> shared_;
};

class FakeKernel : public LoadedKernel {
 public:
  FakeKernel(FakeSession& session, const KernelInterface& interface) : session_(session) {
    size_t shared = 0;
    for (const KernelBuffer& buffer : interface.buffers) {
      const bool sizes = buffer.role == BufferRole::kSizes;
      const bool own = sizes || buffer.role == BufferRole::kPacked || buffer.role == BufferRole::kWorkspace;
      if (own) own_.push_back(std::make_unique<FakeBuffer>("its own", buffer.bytes()));
      buffers_.push_back(own ? own_.back().get() : &session.shared()[shared++]);
      if (sizes) sizes_ = own_.back().get();
    }
    for (const KernelLaunch& launch : interface.prepare) prepare_.push_back(Bind(launch));
    for (const KernelLaunch& launch : interface.main) main_.push_back(Bind(launch));
    ++session_.loaded();
  }
  ~FakeKernel() override { --session_.loaded(); }

  absl::Status Prepare() override { return Run(prepare_); }
  absl::Status CallAt(size_t point) override {
    if (sizes_ != nullptr) memcpy(sizes_->data(), session_.batch().points[point].data(), sizes_->bytes());
    return Run(main_);
  }
  absl::StatusOr<double> Time(int64_t calls) override {
    const double start = SecondsNow();
    for (int64_t i = 0; i < calls; ++i) {
      for (size_t point = 0; point < session_.batch().points.size(); ++point) HONE_RETURN_IF_ERROR(CallAt(point));
    }
    return session_.Told(calls, (SecondsNow() - start) / static_cast<double>(calls));
  }
  absl::Status StoreGuards(ResultMemory& result_memory) override {
    for (const FakeBuffer* buffer : buffers_)
      result_memory.StoreGuards(fmt::format("'{}'", buffer->name()), buffer->guards());
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<VisitFailure>> FindChangedInput() override {
    for (size_t i = 0; i < session_.shared().size(); ++i) {
      FakeBuffer& buffer = session_.shared()[i];
      if (session_.batch().buffers[i].role == BufferRole::kOutput) continue;
      if (memcmp(buffer.data(), session_.InputData(i), buffer.bytes()) == 0) continue;
      return VisitFailure{FailureKind::kWrongOutput, fmt::format("wrote into input '{}'", buffer.name())};
    }
    return std::nullopt;
  }

 private:
  std::function<void()> Bind(const KernelLaunch& launch) {
    Arguments arguments;
    for (const uint32_t i : launch.arguments) arguments.push_back(buffers_[i]);
    return [function = Functions().at(launch.function), arguments] { function(arguments); };
  }
  static absl::Status Run(const std::vector<std::function<void()>>& launches) {
    for (const auto& launch : launches) launch();
    return absl::OkStatus();
  }

  FakeSession& session_;
  std::vector<std::unique_ptr<FakeBuffer>> own_;
  std::vector<FakeBuffer*> buffers_;
  FakeBuffer* sizes_ = nullptr;  // one of own_; null if the kernel has no open sizes
  std::vector<std::function<void()>> prepare_, main_;
};

// System calls of AwaitAnother and of the kernels that end badly.
constexpr SystemCall kFakeCalls[] = {{"openat", "leaves a file"},
                                     {"write", "leaves a file"},
                                     {"writev", "leaves a file"},
                                     {"getdents64", "looks for others' files"},
                                     {"fcntl", "looks for others' files"},
                                     {"clock_nanosleep", "waits"},
                                     {"pause", "a compiler that never ends"},
                                     {"ppoll", "a compiler that never ends"}};

size_t FilesOf(const std::string& folder, std::string_view prefix) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
  }
  return count;
}

// Waits until another process builds too.
void AwaitAnother(const std::string& folder) {
  namespace fs = std::filesystem;
  std::ofstream(fs::path(folder) / fmt::format("building-{}", getpid())).put('x');
  while (FilesOf(folder, "building-") < 2) usleep(1000);
}

absl::StatusOr<std::unique_ptr<LoadedKernel>> FakeSession::Load(const VisitKernel& kernel) {
  for (const auto* launches : {&kernel.interface.prepare, &kernel.interface.main}) {
    for (const KernelLaunch& launch : *launches) {
      if (launch.function == "never_built") pause();  // stands for a compiler that never ends
      if (launch.function == "beside") AwaitAnother(folder_);
      if (launch.function == "breaks") std::ofstream(std::filesystem::path(folder_) / "broken").put('x');
      if (launch.function == "slowly_built") usleep(300'000);
      if (launch.lanes == 0) {
        return absl::InvalidArgumentError(fmt::format("'{}' is not to be launched on a grid", launch.function));
      }
      if (!Functions().contains(launch.function))
        return absl::NotFoundError(fmt::format("the artifact has no function '{}'", launch.function));
    }
  }
  const bool fits = kernel.interface.workspace_bytes <= kBytesMax && loaded_ < nature_.room;
  if (!fits) return absl::ResourceExhaustedError("no memory for the workspace");
  return std::make_unique<FakeKernel>(*this, kernel.interface);
}

class StartedFake : public StartedDevice {
 public:
  StartedFake(std::string folder, const FakeNature& nature) : folder_(std::move(folder)), nature_(nature) {}
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) override {
    return std::make_unique<FakeSession>(options, folder_, nature_);
  }

 private:
  const std::string folder_;
  const FakeNature& nature_;
};

}  // namespace

SandboxPolicy FakeDevice::sandbox() const {
  SandboxPolicy policy;
  if (!folder_.empty()) policy.writable = {folder_};
  policy.calls = kFakeCalls;
  return policy;
}

absl::StatusOr<DeviceFingerprint> FakeDevice::Fingerprint() {
  DeviceFingerprint fingerprint;
  fingerprint.architecture = "fake";
  fingerprint.text = "fake device";
  fingerprint.digest = Sha256Hex(fingerprint.text);
  return fingerprint;
}

SelfTestResult FakeDevice::SelfTest(int) {
  SelfTestResult test;
  test.passed = true;
  test.reference_seconds = ReferenceLoopSeconds();
  return test;
}

absl::StatusOr<std::unique_ptr<StartedDevice>> FakeDevice::Start(int) const {
  if (!folder_.empty()) {
    const std::filesystem::path folder = folder_;
    if (std::filesystem::exists(folder / "broken")) return absl::UnavailableError("the fake device is broken");
    std::ofstream(folder / fmt::format("started-{}", getpid())).put('x');
  }
  return std::make_unique<StartedFake>(folder_, nature_);
}

}  // namespace hone::agent
