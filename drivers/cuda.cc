// SPDX-License-Identifier: Apache-2.0
#include "drivers/cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/seconds_since.h"
#include "drivers/binary_cache.h"
#include "drivers/choose_device.h"
#include "drivers/cuda_api.h"
#include "drivers/poll_pause.h"

namespace hone::drivers::cuda {

// An open device: its primary context, which the whole process shares, and a stream, in which work is done in order.
struct Context {
  std::shared_ptr<const Api> api;
  Ordinal device = 0;
  Handle context = nullptr, stream = nullptr;
  // kStage bytes of pinned memory for long reads (Device::Read); owned; null until the first such read.
  mutable std::byte* staging = nullptr;
  bool reads_pinned_fast = true;  // this machine's CPUs cache pinned memory
  mutable bool launched = false;  // the last enqueued work is a launch, so that the next launch may overlap with it

  // Calls a function of the driver and returns its result. The function acts on the thread's current context, which
  // other code of the process sets for itself. Therefore this context is made current for the call only. If that fails,
  // as for a context that was destroyed, the function is not called.
  // While another thread records a graph in the global mode, allocations and loads fail in every thread and invalidate
  // that recording. A thread in the thread-local mode is exempt, so this thread is in that mode during the call.
  template <typename... P>
  int Call(int (*Api::*function)(P...), std::type_identity_t<P>... arguments) const {
    launched = false;
    if (const int code = api->cuCtxPushCurrent_v2(context); code != kSuccess) return code;
    int mode = kCaptureOfThisThread;
    api->cuThreadExchangeStreamCaptureMode(&mode);
    // A relaxed mode of the caller restricts even less: it is kept.
    if (int asked = mode; asked > kCaptureOfThisThread) api->cuThreadExchangeStreamCaptureMode(&asked);
    const int code = ((*api).*function)(arguments...);
    api->cuThreadExchangeStreamCaptureMode(&mode);
    Handle same = nullptr;
    api->cuCtxPopCurrent_v2(&same);
    return code;
  }
  Error Check(int code, const std::string& what) const { return cuda::Check(*api, code, what); }
  ~Context() {
    if (context == nullptr) return;
    if (staging != nullptr) Call(&Api::cuMemFreeHost, staging);
    if (stream != nullptr) Call(&Api::cuStreamDestroy_v2, stream);
    api->cuDevicePrimaryCtxRelease_v2(device);
  }
};

namespace {

constexpr size_t kStage = 2 << 20;       // bytes of pinned memory through which long reads go
constexpr size_t kShortRead = 64 << 10;  // bytes; longer reads go through it

// Owns a handle or an address: `destroy` is called when the last copy of the pointer is gone.
template <typename Owned>
std::shared_ptr<void> Own(std::shared_ptr<const Context> context, Owned handle, int (*Api::*destroy)(Owned)) {
  return {reinterpret_cast<void*>(handle), [context = std::move(context), destroy](void* owned) {
            context->Call(destroy, reinterpret_cast<Owned>(owned));
          }};
}

// The value of a device attribute; 0 if the driver does not know it.
int Ask(const Api& api, Ordinal device, Attribute attribute) {
  int value = 0;
  return api.cuDeviceGetAttribute(&value, attribute, device) == kSuccess ? value : 0;
}

// Whether the CPUs of this machine cache pinned memory. Boards with one memory for CPU and GPU do not before Xavier
// (sm_72).
bool ReadsPinnedFast(const Api& api, Ordinal device) {
  const int architecture = 10 * Ask(api, device, kMajor) + Ask(api, device, kMinor);
  return Ask(api, device, kIntegrated) == 0 || architecture >= 72;
}

DeviceInfo Describe(const Api& api, Ordinal device) {
  const auto ask = [&](Attribute attribute) { return Ask(api, device, attribute); };
  DeviceInfo info;
  std::array<char, 256> name = {};
  api.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device);
  info.name = name.data();
  std::array<char, 32> address = {};
  if (api.cuDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()) - 1, device) == kSuccess) {
    info.pci_address = address.data();
  }
  info.architecture = "sm_" + std::to_string(ask(kMajor)) + std::to_string(ask(kMinor));
  int version = 0;
  api.cuDriverGetVersion(&version);
  info.driver_version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  info.compute_units = ask(kUnits);
  info.group_lanes_max = ask(kMaxLanes);
  info.preferred_multiple = ask(kLaneWidth);
  info.local_bytes = std::max(ask(kSharedBytes), ask(kSharedBytesIfAsked));
  info.cache_bytes = ask(kL2Bytes);
  size_t bytes = 0;
  api.cuDeviceTotalMem_v2(&bytes, device);
  info.global_bytes = static_cast<int64_t>(bytes);
  return info;
}

// Joins the modules of `ptx` to one: keeps the first .version, .target and .address_size line and drops the others.
std::string OneModule(std::string_view ptx) {
  constexpr std::string_view kHeads[] = {".version", ".target", ".address_size"};
  std::array<bool, std::size(kHeads)> seen = {};
  std::string module;
  module.reserve(ptx.size());
  while (!ptx.empty()) {
    const size_t end = std::min(ptx.find('\n'), ptx.size() - 1) + 1;
    const std::string_view line = ptx.substr(0, end);
    bool again = false;
    for (size_t i = 0; i < std::size(kHeads); ++i) {
      if (line.starts_with(kHeads[i])) again = std::exchange(seen[i], true);
    }
    if (!again) module += line;
    ptx.remove_prefix(end);
  }
  return module;
}

// The modules of machine code in the bytes after the PTX text: a NUL, then each module after its length
// (base/code_kind.h). Empty if the bytes do not have this format.
std::vector<std::string> MachineCode(std::string_view bytes) {
  std::vector<std::string> modules;
  if (!bytes.empty()) bytes.remove_prefix(1);
  while (!bytes.empty()) {
    uint64_t length = 0;
    for (size_t i = 0; i < sizeof length && i < bytes.size(); ++i) {
      length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    if (bytes.size() < sizeof length || length > bytes.size() - sizeof length) return {};
    modules.emplace_back(bytes.substr(sizeof length, length));
    bytes.remove_prefix(sizeof length + length);
  }
  return modules;
}

// Compiles one PTX module to machine code. *log: the compiler's warnings.
Error Compile(const Context& context, const std::string& ptx, const std::string& device, std::string* binary,
              std::string* log) {
  std::vector<char> info(1 << 14), errors(1 << 14);
  const auto size = [](const std::vector<char>& buffer) { return reinterpret_cast<void*>(buffer.size()); };
  std::array<int, 4> options = {kInfoLog, kInfoLogBytes, kErrorLog, kErrorLogBytes};
  std::array<void*, 4> values = {info.data(), size(info), errors.data(), size(errors)};
  Handle link = nullptr;
  const int begun = context.Call(&Api::cuLinkCreate_v2, 4, options.data(), values.data(), &link);
  if (Error e = context.Check(begun, "cannot start the PTX compiler"); !e.ok()) return e;
  void* code = nullptr;
  size_t bytes = 0;
  int result = context.Call(&Api::cuLinkAddData_v2, link, kInputPtx, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                            "hone", 0, nullptr, nullptr);
  if (result == kSuccess) result = context.Call(&Api::cuLinkComplete, link, &code, &bytes);
  if (result == kSuccess) binary->assign(static_cast<const char*>(code), bytes);
  context.Call(&Api::cuLinkDestroy, link);
  *log = info.data();
  Error e = context.Check(result, "the driver's compiler for '" + device + "' rejects the program");
  if (!e.ok() && errors[0] != 0) e.text += std::string("\n") + errors.data();
  return e;
}

// Loads machine code and appends it to *modules.
Error Load(const std::shared_ptr<const Context>& context, const std::string& device, const std::string& module,
           std::vector<std::shared_ptr<void>>* modules) {
  Handle handle = nullptr;
  const int code = context->Call(&Api::cuModuleLoadData, &handle, module.data());
  if (Error e = context->Check(code, "cannot load the program on '" + device + "'"); !e.ok()) return e;
  modules->push_back(Own(context, handle, &Api::cuModuleUnload));
  return {};
}

}  // namespace

Error Library::Load(Library* library, const char* file) {
  std::shared_ptr<const Api> api;
  if (Error e = LoadApi(file, &api); !e.ok()) return e;
  if (Error e = Check(*api, api->cuInit(0), "NVIDIA's driver does not start"); !e.ok()) return e;
  library->api_ = std::move(api);
  return {};
}

Error Library::ListDevices(std::vector<DeviceInfo>* devices) const {
  devices->clear();
  int count = 0;
  if (Error e = Check(*api_, api_->cuDeviceGetCount(&count), "cannot list CUDA devices"); !e.ok()) return e;
  for (int i = 0; i < count; ++i) {
    Ordinal device = 0;
    if (Error e = Check(*api_, api_->cuDeviceGet(&device, i), "cannot query a CUDA device"); !e.ok()) return e;
    devices->push_back(Describe(*api_, device));
  }
  return count > 0 ? Error{} : Error{ErrorKind::kAbsent, "NVIDIA's driver found no device"};
}

namespace {

// Lists all devices and sets *chosen to the index of the one that `selector` names.
Error Choose(const Library& library, std::string_view selector, std::vector<DeviceInfo>* devices, size_t* chosen) {
  if (Error e = library.ListDevices(devices); !e.ok()) return e;
  std::vector<std::string> names;
  for (const DeviceInfo& info : *devices) names.push_back(info.name);
  return ChooseDevice("CUDA", selector, names, chosen);
}

}  // namespace

Error Library::Find(std::string_view selector, DeviceInfo* info) const {
  std::vector<DeviceInfo> devices;
  size_t chosen = 0;
  if (Error e = Choose(*this, selector, &devices, &chosen); !e.ok()) return e;
  *info = std::move(devices[chosen]);
  return {};
}

Error Library::Open(std::string_view selector, Device* device) const {
  std::vector<DeviceInfo> devices;
  size_t chosen = 0;
  if (Error e = Choose(*this, selector, &devices, &chosen); !e.ok()) return e;
  const std::string what = "cannot open the CUDA device '" + devices[chosen].name + "'";
  auto context = std::make_shared<Context>();
  context->api = api_;
  if (Error e = Check(*api_, api_->cuDeviceGet(&context->device, static_cast<int>(chosen)), what); !e.ok()) return e;
  if (Error e = Check(*api_, api_->cuDevicePrimaryCtxRetain(&context->context, context->device), what); !e.ok()) {
    return e;
  }
  context->reads_pinned_fast = ReadsPinnedFast(*api_, context->device);
  const int code = context->Call(&Api::cuStreamCreate, &context->stream, kStreamAlone);
  if (Error e = Check(*api_, code, what); !e.ok()) return e;
  device->context_ = std::move(context);
  device->info_ = devices[chosen];
  return {};
}

namespace {

// Whether reads can go through pinned memory, which is allocated at the first call.
bool HasStaging(const Context& context) {
  if (!context.reads_pinned_fast) return false;
  void* place = context.staging;
  if (place == nullptr && context.Call(&Api::cuMemHostAlloc, &place, kStage, kPortable) == kSuccess) {
    context.staging = static_cast<std::byte*>(place);
  }
  return context.staging != nullptr;
}

// For every kernel of the PTX, ".entry NAME(.param ..., .param ...)" and its body: the name, the number of parameters,
// and whether it waits for the launch before it (griddepcontrol.wait).
std::vector<std::tuple<std::string, size_t, bool>> EntriesOf(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry ", kParameter = ".param ";
  std::vector<std::tuple<std::string, size_t, bool>> entries;
  for (size_t at = ptx.find(kEntry), next = 0; at != std::string_view::npos; at = next) {
    next = ptx.find(kEntry, at + kEntry.size());
    const std::string_view text = ptx.substr(at, next - at).substr(kEntry.size());
    const size_t open = std::min(text.find('('), text.size()), close = std::min(text.find(')', open), text.size());
    size_t parameters = 0;
    for (size_t p = text.find(kParameter, open); p < close; p = text.find(kParameter, p + 1)) ++parameters;
    entries.emplace_back(text.substr(0, open), parameters,
                         text.find("griddepcontrol.wait", close) != std::string_view::npos);
  }
  return entries;
}

}  // namespace

Error Device::Build(std::string_view code, const BuildOptions& options, Program* program) const {
  const std::string_view ptx = code.substr(0, code.find('\0'));
  const std::vector<std::string> machine_code = MachineCode(code.substr(ptx.size()));
  Program assembled;
  assembled.context_ = context_;
  assembled.entries_ = EntriesOf(ptx);
  const bool runs = std::ranges::all_of(machine_code, [&](const std::string& module) {
    return Load(context_, info_.name, module, &assembled.modules_).ok();
  });
  if (runs && !machine_code.empty()) {
    *program = std::move(assembled);
    return {};
  }
  std::string key;
  for (const std::string_view part :
       {std::string_view("cuda"), std::string_view(info_.name), std::string_view(info_.architecture),
        std::string_view(info_.driver_version), ptx}) {
    key += std::to_string(part.size()) + ":" + std::string(part);
  }
  const BinaryCache cache(options.cache_folder);
  Program built;
  built.context_ = context_;
  built.entries_ = assembled.entries_;
  // The driver may reject a cached binary, for example after an update that kept its version: then it compiles again.
  if (const auto binary = cache.Find(key)) {
    const Error loaded = Load(context_, info_.name, *binary, &built.modules_);
    if (!loaded.ok() && loaded.kind != ErrorKind::kProgram) return loaded;
    built.from_cache_ = loaded.ok();
  }
  if (!built.from_cache_) {
    std::string binary;
    if (Error e = Compile(*context_, OneModule(ptx), info_.name, &binary, &built.log_); !e.ok()) return e;
    if (Error e = Load(context_, info_.name, binary, &built.modules_); !e.ok()) return e;
    cache.Store(key, binary);
  }
  *program = std::move(built);
  return {};
}

Error Program::Find(const std::string& name, Kernel* kernel) const {
  Kernel found;
  const std::string what = "no kernel '" + name + "' in the program";
  Error absent = {ErrorKind::kProgram, what};
  for (size_t i = 0; i < modules_.size() && !absent.ok(); ++i) {
    found.module_ = modules_[i];
    const Handle module = modules_[i].get();
    absent = context_->Check(context_->Call(&Api::cuModuleGetFunction, &found.function_, module, name.c_str()), what);
  }
  if (!absent.ok()) return absent;
  found.context_ = context_;
  found.name_ = name;
  for (const auto& [kernel_name, parameters, waits] : entries_) {
    if (kernel_name != name) continue;
    found.args_.resize(parameters);
    found.waits_for_previous_ = waits;
  }
  int max_lanes = 0;
  const int code = context_->Call(&Api::cuFuncGetAttribute, &max_lanes, kFunctionMaxLanes, found.function_);
  found.group_lanes_max_ = code == kSuccess ? max_lanes : 0;
  *kernel = std::move(found);
  return {};
}

Error Kernel::SetArg(int index, const Buffer& buffer) {
  if (args_.size() <= static_cast<size_t>(index)) args_.resize(static_cast<size_t>(index) + 1);
  args_[static_cast<size_t>(index)] = buffer;
  return {};
}

Error Kernel::SetShared(int64_t bytes) {
  if (bytes == shared_bytes_) return {};
  const std::string what = std::to_string(bytes) + " bytes of shared memory for kernel '" + name_ + "'";
  if (bytes < 0 || bytes > std::numeric_limits<int>::max())
    return {ErrorKind::kProgram, what + ": more than any device has"};
  const int code = context_->Call(&Api::cuFuncSetAttribute, function_, kFunctionAskedShared, static_cast<int>(bytes));
  if (code == kSuccess) shared_bytes_ = bytes;
  return context_->Check(code, what);
}

Error Device::Allocate(size_t bytes, Buffer* buffer) const {
  const size_t at_least_one = std::max<size_t>(bytes, 1);
  Pointer place = 0;
  const int code = context_->Call(&Api::cuMemAlloc_v2, &place, at_least_one);
  const std::string what = "cannot allocate " + std::to_string(at_least_one) + " bytes on '" + info_.name + "'";
  if (Error e = context_->Check(code, what); !e.ok()) return e;
  buffer->memory_ = Own(context_, place, &Api::cuMemFree_v2);
  buffer->address_ = place;
  buffer->bytes_ = bytes;
  return {};
}

Error Device::AllocatePinned(size_t bytes, PinnedMemory* memory) const {
  const size_t at_least_one = std::max<size_t>(bytes, 1);
  void* place = nullptr;
  const int code = context_->Call(&Api::cuMemHostAlloc, &place, at_least_one, kPortable);
  const std::string what =
      "cannot allocate " + std::to_string(at_least_one) + " bytes of pinned memory for '" + info_.name + "'";
  if (Error e = context_->Check(code, what); !e.ok()) return e;
  memory->memory_ = Own(context_, place, &Api::cuMemFreeHost);
  memory->bytes_ = bytes;
  return {};
}

int Device::number() const { return context_->device; }

Buffer Device::Adopt(void* memory, size_t bytes) const {
  Buffer buffer;
  buffer.memory_ = std::shared_ptr<void>(nullptr, [](void*) {});  // frees nothing, but counts as a set buffer
  buffer.address_ = reinterpret_cast<Pointer>(memory);
  buffer.bytes_ = bytes;
  return buffer;
}

Error Device::CheckRange(const Buffer& buffer, size_t offset, size_t bytes) const {
  if (offset <= buffer.bytes_ && bytes <= buffer.bytes_ - offset) return {};
  return {ErrorKind::kProgram, "out of range: " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                                   " of a buffer of " + std::to_string(buffer.bytes_) + " bytes on '" + info_.name +
                                   "'"};
}

Error Device::Slice(const Buffer& whole, size_t offset, size_t bytes, Buffer* slice) const {
  if (Error e = CheckRange(whole, offset, bytes); !e.ok()) return e;
  if (offset % static_cast<size_t>(info_.slice_alignment) != 0) {
    return {ErrorKind::kProgram, "a slice begins at byte " + std::to_string(offset) + ", but '" + info_.name +
                                     "' needs a multiple of " + std::to_string(info_.slice_alignment)};
  }
  slice->memory_ = whole.memory_;
  slice->address_ = whole.address_ + offset;
  slice->bytes_ = bytes;
  return {};
}

Error Device::EnqueueWrite(const Buffer& buffer, std::span<const std::byte> from) const {
  if (from.empty()) return {};
  if (Error e = CheckRange(buffer, 0, from.size()); !e.ok()) return e;
  const int code =
      context_->Call(&Api::cuMemcpyHtoDAsync_v2, buffer.address_, from.data(), from.size(), context_->stream);
  return context_->Check(code, "cannot write " + std::to_string(from.size()) + " bytes to a buffer");
}

Error Device::EnqueueRead(const Buffer& buffer, std::span<std::byte> to) const {
  if (to.empty()) return {};
  if (Error e = CheckRange(buffer, 0, to.size()); !e.ok()) return e;
  const int code = context_->Call(&Api::cuMemcpyDtoHAsync_v2, to.data(), buffer.address_, to.size(), context_->stream);
  return context_->Check(code, "cannot read " + std::to_string(to.size()) + " bytes of a buffer");
}

Error Device::EnqueueCopy(const Buffer& from, const Buffer& to, size_t bytes, size_t offset) const {
  if (bytes == 0) return {};
  const int code =
      context_->Call(&Api::cuMemcpyDtoDAsync_v2, to.address_ + offset, from.address_, bytes, context_->stream);
  return context_->Check(code, "cannot copy " + std::to_string(bytes) + " bytes between buffers");
}

Error Device::EnqueueLaunch(const Launch& launch) const {
  const bool overlaps =
      context_->launched && launch.kernel->waits_for_previous_ && context_->api->cuLaunchKernelEx != nullptr;
  const Kernel& kernel = *launch.kernel;
  std::vector<Pointer> places;
  std::vector<void*> arguments;
  for (const Buffer& buffer : kernel.args_) {
    if (buffer.memory_.use_count() == 0) {
      const std::string index = std::to_string(places.size());
      return {ErrorKind::kProgram, "buffer " + index + " of kernel '" + kernel.name_ + "' is not set"};
    }
    places.push_back(buffer.address_);
  }
  for (Pointer& place : places) arguments.push_back(&place);
  const auto groups = static_cast<unsigned>(launch.groups), lanes = static_cast<unsigned>(launch.lanes),
             shared = static_cast<unsigned>(kernel.shared_bytes_);
  int code = kSuccess;
  if (overlaps) {
    const LaunchAttribute attribute{kOverlaps, {1}};
    const LaunchConfig config{{groups, 1, 1}, {lanes, 1, 1}, shared, context_->stream, &attribute, 1};
    code = context_->Call(&Api::cuLaunchKernelEx, &config, kernel.function_, arguments.data(), nullptr);
  } else {
    code = context_->Call(&Api::cuLaunchKernel, kernel.function_, groups, 1, 1, lanes, 1, 1, shared, context_->stream,
                          arguments.data(), nullptr);
  }
  context_->launched = true;
  if (code == kSuccess) return {};  // returns early: building the error's text would take as long as the launch
  return context_->Check(code, "cannot launch kernel '" + kernel.name_ + "' with " + std::to_string(launch.groups) +
                                   " groups of " + std::to_string(launch.lanes) + " lanes");
}

Error Device::EnqueueGraph(const Graph& graph) const {
  const int code = context_->Call(&Api::cuGraphLaunch, graph.graph_.get(), context_->stream);
  return context_->Check(code, "cannot launch the recorded graph");
}

Error Device::Finish() const {
  const int code = context_->Call(&Api::cuStreamSynchronize, context_->stream);
  return context_->Check(code, "the work on '" + info_.name + "' failed");
}

Error Device::BeginGraph() const {
  if (context_->api->cuGraphInstantiateWithFlags == nullptr) {
    return {ErrorKind::kAbsent, "the driver is too old for CUDA graphs"};
  }
  const int code = context_->Call(&Api::cuStreamBeginCapture_v2, context_->stream, kCaptureOfThisThread);
  return context_->Check(code, "cannot begin to record a graph");
}

Error Device::EndGraph(Graph* graph) const {
  Handle recorded = nullptr, made = nullptr;
  int code = context_->Call(&Api::cuStreamEndCapture, context_->stream, &recorded);
  if (code == kSuccess) code = context_->Call(&Api::cuGraphInstantiateWithFlags, &made, recorded, 0);
  if (recorded != nullptr) context_->Call(&Api::cuGraphDestroy, recorded);
  if (Error e = context_->Check(code, "cannot record the model's launches as a graph"); !e.ok()) return e;
  graph->graph_ = Own(context_, made, &Api::cuGraphExecDestroy);
  return {};
}

Error Device::Write(const Buffer& buffer, size_t offset, std::span<const std::byte> from) const {
  if (Error e = CheckRange(buffer, offset, from.size()); !e.ok()) return e;
  Buffer part = buffer;
  part.address_ += offset;
  part.bytes_ -= offset;
  if (Error e = EnqueueWrite(part, from); !e.ok()) return e;
  return Finish();
}

// Long reads go through pinned memory, to which the device writes directly. To other memory the driver copies, which
// takes many times as long.
Error Device::Read(const Buffer& buffer, size_t offset, std::span<std::byte> to) const {
  if (Error e = CheckRange(buffer, offset, to.size()); !e.ok()) return e;
  const bool staged = to.size() > kShortRead && HasStaging(*context_);
  Buffer rest = buffer;
  rest.address_ += offset;
  rest.bytes_ -= offset;
  do {
    const size_t count = staged ? std::min(kStage, to.size()) : to.size();
    const std::span<std::byte> part = staged ? std::span(context_->staging, count) : to;
    if (Error e = EnqueueRead(rest, part); !e.ok()) return e;
    if (Error e = Finish(); !e.ok()) return e;
    if (staged) std::memcpy(to.data(), part.data(), count);
    to = to.subspan(count);
    rest.address_ += count;
    rest.bytes_ -= count;
  } while (!to.empty());
  return {};
}

Error Device::Fill(const Buffer& buffer, size_t offset, size_t bytes, std::byte value) const {
  if (bytes == 0) return {};
  if (Error e = CheckRange(buffer, offset, bytes); !e.ok()) return e;
  const int code = context_->Call(&Api::cuMemsetD8Async, buffer.address_ + offset, static_cast<unsigned char>(value),
                                  bytes, context_->stream);
  if (Error e = context_->Check(code, "cannot fill " + std::to_string(bytes) + " bytes of a buffer"); !e.ok()) return e;
  return Finish();
}

// Polls the event with growing pauses of up to 1 ms, because cuEventSynchronize has no deadline.
Error Device::Wait(void* event, Deadline deadline) const {
  PollPause pause;
  while (true) {
    const int code = context_->Call(&Api::cuEventQuery, event);
    if (code != kNotReady) return context_->Check(code, "a launch failed on '" + info_.name + "'");
    if (std::chrono::steady_clock::now() >= deadline) {
      return {ErrorKind::kTimeout, "the launches on '" + info_.name + "' did not end in time"};
    }
    pause.Wait();
  }
}

Error Device::Run(std::span<const Launch> launches, Deadline deadline) const {
  Timing ignored;
  return Time(launches, 1, deadline, &ignored);
}

Error Device::RunEach(std::span<const Launch> launches, std::chrono::duration<double> launch_time_max) const {
  const auto limit = std::chrono::duration_cast<Deadline::duration>(launch_time_max);
  for (const Launch& launch : launches) {
    if (Error e = Run({&launch, 1}, std::chrono::steady_clock::now() + limit); !e.ok()) return e;
  }
  return {};
}

Error Device::Time(std::span<const Launch> launches, int repeats, Deadline deadline, Timing* timing) const {
  *timing = {};
  if (launches.empty() || repeats <= 0) return {};
  std::vector<std::shared_ptr<void>> events;  // one before the first repeat and one after each repeat
  const auto record = [&]() -> Error {
    Handle event = nullptr;
    const int made = context_->Call(&Api::cuEventCreate, &event, 0);
    if (Error e = context_->Check(made, "cannot make an event"); !e.ok()) return e;
    events.push_back(Own(context_, event, &Api::cuEventDestroy_v2));
    return context_->Check(context_->Call(&Api::cuEventRecord, event, context_->stream), "cannot record an event");
  };
  const auto begin = std::chrono::steady_clock::now();
  if (Error e = record(); !e.ok()) return e;
  for (int i = 0; i < repeats; ++i) {
    for (const Launch& launch : launches) {
      if (Error e = EnqueueLaunch(launch); !e.ok()) return e;
    }
    if (Error e = record(); !e.ok()) return e;
  }
  if (Error e = Wait(events.back().get(), deadline); !e.ok()) return e;
  timing->wall_seconds = SecondsSince(begin);
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    float milliseconds = 0;
    const int code = context_->Call(&Api::cuEventElapsedTime, &milliseconds, events[i].get(), events[i + 1].get());
    if (Error e = context_->Check(code, "cannot read the time between two events"); !e.ok()) return e;
    timing->device_seconds.push_back(1e-3 * static_cast<double>(milliseconds));
  }
  return {};
}

}  // namespace hone::drivers::cuda
