#include "device_agent/kernel_host.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "device_agent/reference_loop.h"
#include "device_agent/sandbox.h"

namespace hone::agent {
namespace {

constexpr int kExitAfterFault = 70;
constexpr size_t kFaultStack = 64 * 1024;
constexpr int64_t kMostColdBytes = 64 << 20;  // beyond any cache that one model has for itself

bool IsFloat(v1::DType dtype) {
  return dtype == v1::DTYPE_F16 || dtype == v1::DTYPE_BF16 || dtype == v1::DTYPE_F32 || dtype == v1::DTYPE_F64;
}

// A signal handler is given nothing but the signal: what it needs is found here. Set once per child, before any kernel.
struct FaultContext {
  const RegionTable* regions = nullptr;
  const Voice* voice = nullptr;
};
FaultContext fault_context;

int IsWrite([[maybe_unused]] const void* context) {
#ifdef __x86_64__
  constexpr greg_t kWriteAccess = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteAccess) != 0;
#else
  return -1;
#endif
}

void OnFault(int signal, siginfo_t* details, void* context) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kFault;
  message.candidate = fault_context.voice->candidate();
  message.signal = signal;
  if (signal == SIGSEGV || signal == SIGBUS) {
    message.is_write = IsWrite(context);
    if (const auto hit = fault_context.regions->Locate(details->si_addr)) {
      message.place = static_cast<int32_t>(hit->place);
      message.distance = hit->distance;
      memcpy(message.text, hit->region->name, sizeof(hit->region->name));
    }
  }
  fault_context.voice->Send(message);
  _exit(kExitAfterFault);
}

// The first CPU this process may use: the pool pins its workers to the others.
void PinToFirstCpu() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

// Nothing of the launcher's is left open but what the task names and standard error.
void CloseOtherFiles(int first, int second) {
  const int low = std::min(first, second), high = std::max(first, second);
  const auto close_range = [](unsigned from, unsigned to) {
    if (from <= to) syscall(SYS_close_range, from, to, 0);
  };
  close_range(0, 1);
  close_range(3, low - 1);
  close_range(low + 1, high - 1);
  close_range(high + 1, ~0u);
}

}  // namespace

void Voice::Send(const VisitMessage& message) const { send(channel_, &message, sizeof(message), MSG_NOSIGNAL); }

void Voice::Begin(int candidate, double limit_seconds) {
  candidate_ = candidate;
  VisitMessage message{};
  message.type = VisitMessage::Type::kBegin;
  message.candidate = candidate;
  message.limit_seconds = limit_seconds;
  Send(message);
}

void Voice::Failed(int candidate, v1::FailureKind kind, const std::string& text) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kFailed;
  message.candidate = candidate;
  message.failure_kind = kind;
  text.copy(message.text, sizeof(message.text) - 1);
  Send(message);
}

void Voice::Times(int candidate, int64_t calls, bool interleaved, const std::vector<double>& seconds,
                  double max_error) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kTimes;
  message.candidate = candidate;
  message.calls = calls;
  message.interleaved = interleaved;
  message.max_error = max_error;
  message.count = static_cast<int32_t>(std::min<size_t>(seconds.size(), kMaxRepeats));
  std::copy_n(seconds.begin(), message.count, message.seconds);
  Send(message);
}

void Voice::Reference(const std::vector<double>& seconds) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kReference;
  message.count = static_cast<int32_t>(std::min<size_t>(seconds.size(), kMaxRepeats));
  std::copy_n(seconds.begin(), message.count, message.seconds);
  Send(message);
}

void Voice::Done() {
  VisitMessage message{};
  message.type = VisitMessage::Type::kDone;
  Send(message);
}

KernelHost::KernelHost(const ChildTask& task) : task_(task), voice_(task.channel) {}

absl::Status KernelHost::SetUp() {
  voice_.Begin(-1, 30);
  CloseOtherFiles(task_.channel, task_.artifact_fd);
  ChildLimits limits;
  limits.memory_bytes = task_.memory_limit;
  ConfineChild(limits);
  CatchFaults();
  HONE_RETURN_IF_ERROR(LoadArtifact());
  const DataLayout layout = LayOut(*task_.batch);
  for (int i = 0; i < task_.batch->buffers_size(); ++i) {
    const v1::Buffer& buffer = task_.batch->buffers(i);
    const std::string role = buffer.role() == v1::Buffer::ROLE_OUTPUT ? "output" : "input";
    HONE_ASSIGN_OR_RETURN(GuardedBuffer memory,
                          GuardedBuffer::Create(regions_, fmt::format("{} '{}'", role, buffer.name()), buffer.bytes()));
    if (buffer.role() != v1::Buffer::ROLE_OUTPUT) {
      memcpy(memory.data(), task_.data + layout.offsets[i], buffer.bytes());
      HONE_RETURN_IF_ERROR(memory.Protect());
    }
    shared_.push_back(std::move(memory));
  }
  pool_ = std::make_unique<ThreadPool>(std::max(1, task_.batch->threads()));
  if (pool_->threads() < task_.batch->threads())
    return absl::ResourceExhaustedError("cannot start the batch's threads");
  PinToFirstCpu();
  return absl::OkStatus();
}

// No more than would leave a small board without memory for the kernels themselves.
absl::Status KernelHost::MakeColdConstants() {
  int64_t bytes = std::min(task_.batch->policy().constant_bytes_between_runs(), kMostColdBytes);
  if (task_.memory_limit > 0) bytes = std::min(bytes, task_.memory_limit / 16);
  if (bytes <= 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(cold_constants_, ColdConstants::Create(regions_, bytes));
  return absl::OkStatus();
}

// Integers stay what they are: they may be indices.
void KernelHost::FindCold(const v1::Kernel& kernel, LoadedKernel& loaded) const {
  if (!cold_constants_.has_value()) return;
  bool only_floats = true;
  size_t place = 0;
  for (const v1::Buffer& buffer : task_.batch->buffers()) {
    if (buffer.role() == v1::Buffer::ROLE_OUTPUT) continue;
    if (buffer.role() == v1::Buffer::ROLE_CONSTANT) {
      if (IsFloat(buffer.dtype())) loaded.cold.emplace_back(place, buffer.bytes());
      only_floats &= IsFloat(buffer.dtype());
    }
    ++place;
  }
  for (const int64_t bytes : kernel.packed_bytes()) {
    if (only_floats) loaded.cold.emplace_back(place, bytes);
    ++place;
  }
  int64_t sum = 0;
  for (const auto& [at, bytes] : loaded.cold) sum += bytes;
  if (!cold_constants_->Serve(sum)) loaded.cold.clear();  // they displace one another as it is
}

void KernelHost::CatchFaults() {
  fault_context = {&regions_, &voice_};
  stack_t stack{};
  stack.ss_sp = ::operator new(kFaultStack);  // lives as long as the process
  stack.ss_size = kFaultStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    sigaction(signal, &action, nullptr);
  }
}

absl::Status KernelHost::LoadArtifact() {
  artifact_ = dlopen(fmt::format("/proc/self/fd/{}", task_.artifact_fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (artifact_ == nullptr) return absl::InvalidArgumentError(fmt::format("the artifact does not load: {}", dlerror()));
  return absl::OkStatus();
}

absl::StatusOr<LoadedKernel> KernelHost::Load(const v1::Kernel& kernel) {
  const auto find = [&](const std::string& symbol) -> absl::StatusOr<HoneKernel> {
    if (void* function = dlsym(artifact_, symbol.c_str())) return reinterpret_cast<HoneKernel>(function);
    return absl::NotFoundError(fmt::format("the artifact has no function '{}'", symbol));
  };
  LoadedKernel loaded;
  HONE_ASSIGN_OR_RETURN(loaded.main, find(kernel.symbol()));
  std::vector<void*> outputs;
  for (int i = 0; i < task_.batch->buffers_size(); ++i) {
    const bool output = task_.batch->buffers(i).role() == v1::Buffer::ROLE_OUTPUT;
    (output ? outputs : loaded.buffers).push_back(shared_[i].data());
  }
  for (int i = 0; i < kernel.packed_bytes_size(); ++i) {
    HONE_ASSIGN_OR_RETURN(GuardedBuffer memory,
                          GuardedBuffer::Create(regions_, fmt::format("packed buffer {}", i), kernel.packed_bytes(i)));
    loaded.buffers.push_back(memory.data());
    loaded.packed.push_back(std::move(memory));
  }
  if (!kernel.prepare_symbol().empty()) {
    HONE_ASSIGN_OR_RETURN(const HoneKernel prepare, find(kernel.prepare_symbol()));
    HONE_ASSIGN_OR_RETURN(GuardedBuffer workspace,
                          GuardedBuffer::Create(regions_, "workspace of prepare", kernel.prepare_workspace_bytes()));
    prepare(loaded.buffers.data(), workspace.data(), pool_->parallel());
    if (const auto offset = workspace.BrokenCanary()) {
      return absl::OutOfRangeError(fmt::format("prepare wrote at byte {} of its workspace", *offset));
    }
  }
  for (GuardedBuffer& packed : loaded.packed) HONE_RETURN_IF_ERROR(packed.Protect());
  if (kernel.workspace_bytes() > 0) {
    HONE_ASSIGN_OR_RETURN(loaded.workspace, GuardedBuffer::Create(regions_, "workspace", kernel.workspace_bytes()));
    loaded.workspace_pointer = loaded.workspace->data();
  }
  loaded.buffers.insert(loaded.buffers.end(), outputs.begin(), outputs.end());
  FindCold(kernel, loaded);
  return loaded;
}

double KernelHost::Time(const LoadedKernel& kernel, int64_t calls) {
  std::vector<void*> buffers = kernel.buffers;
  const double start = SecondsNow();
  for (int64_t i = 0; i < calls; ++i) {
    for (const auto& [place, bytes] : kernel.cold) buffers[place] = cold_constants_->Next(bytes);
    kernel.main(buffers.data(), kernel.workspace_pointer, pool_->parallel());
  }
  return (SecondsNow() - start) / static_cast<double>(calls);
}

void KernelHost::ClearOutputs() {
  for (int i = 0; i < task_.batch->buffers_size(); ++i) {
    if (task_.batch->buffers(i).role() == v1::Buffer::ROLE_OUTPUT) memset(shared_[i].data(), 0xff, shared_[i].bytes());
  }
}

std::string KernelHost::BrokenCanary(const LoadedKernel& kernel) const {
  const auto words = [](const std::string& name, int64_t offset) {
    return offset < 0 ? fmt::format("wrote {} bytes before {}", -offset, name)
                      : fmt::format("wrote {} bytes past the end of {}", offset + 1, name);
  };
  for (int i = 0; i < task_.batch->buffers_size(); ++i) {
    const v1::Buffer& buffer = task_.batch->buffers(i);
    if (buffer.role() != v1::Buffer::ROLE_OUTPUT) continue;  // inputs are read-only, canaries included
    if (const auto offset = shared_[i].BrokenCanary()) return words(fmt::format("output '{}'", buffer.name()), *offset);
  }
  for (size_t i = 0; i < kernel.packed.size(); ++i) {
    if (const auto offset = kernel.packed[i].BrokenCanary()) return words(fmt::format("packed buffer {}", i), *offset);
  }
  if (kernel.workspace) {
    if (const auto offset = kernel.workspace->BrokenCanary()) return words("workspace", *offset);
  }
  return "";
}

}  // namespace hone::agent
