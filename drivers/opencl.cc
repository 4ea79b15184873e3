// SPDX-License-Identifier: Apache-2.0
#include "drivers/opencl.h"

#include <algorithm>
#include <cctype>

#include "base/seconds_since.h"
#include "drivers/binary_cache.h"
#include "drivers/choose_device.h"
#include "drivers/opencl_api.h"
#include "drivers/poll_pause.h"

namespace hone::drivers::opencl {
namespace {

// Owns an OpenCL object: `release` is called when the last copy of the pointer is gone.
template <typename Handle>
std::shared_ptr<void> Own(std::shared_ptr<const Api> api, Handle handle, cl_int (*Api::*release)(Handle)) {
  return {handle, [api = std::move(api), release](void* owned) { ((*api).*release)(static_cast<Handle>(owned)); }};
}
// The OpenCL handle of an owned object.
template <typename Handle>
Handle As(const std::shared_ptr<void>& owned) {
  return static_cast<Handle>(owned.get());
}

// The answer of a clGet*Info function as text or as a number; empty or 0 if the device does not answer.
template <typename Get, typename Object, typename Param>
std::string Text(Get get, Object object, Param param) {
  size_t bytes = 0;
  if (get(object, param, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string text(bytes, '\0');
  if (get(object, param, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}
template <typename T>
T DeviceValue(const Api& api, cl_device_id device, cl_device_info param) {
  T value{};
  if (api.clGetDeviceInfo(device, param, sizeof value, &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}
template <typename T>
int64_t KernelValue(const Api& api, cl_kernel kernel, void* device, cl_kernel_work_group_info param) {
  T value{};
  const cl_int code =
      api.clGetKernelWorkGroupInfo(kernel, static_cast<cl_device_id>(device), param, sizeof value, &value, nullptr);
  return code == CL_SUCCESS ? static_cast<int64_t>(value) : 0;
}

struct Found {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  int number = 0;  // its index among the devices of all platforms
};

DeviceInfo Describe(const Api& api, const Found& found) {
  const cl_device_id device = found.device;
  const auto text = [&](cl_device_info param) { return Text(api.clGetDeviceInfo, device, param); };
  DeviceInfo info;
  info.number = found.number;
  info.platform = Text(api.clGetPlatformInfo, found.platform, CL_PLATFORM_NAME);
  info.platform_version = Text(api.clGetPlatformInfo, found.platform, CL_PLATFORM_VERSION);
  info.name = text(CL_DEVICE_NAME);
  info.vendor = text(CL_DEVICE_VENDOR);
  info.driver_version = text(CL_DRIVER_VERSION);
  info.is_cpu = (DeviceValue<cl_device_type>(api, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  info.compute_units = DeviceValue<cl_uint>(api, device, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.group_lanes_max = static_cast<int64_t>(DeviceValue<size_t>(api, device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  constexpr cl_device_info kPreferredMultiple = 0x1067;  // CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE of OpenCL 3.0
  info.preferred_multiple =
      std::max<int64_t>(1, static_cast<int64_t>(DeviceValue<size_t>(api, device, kPreferredMultiple)));
  info.local_bytes = static_cast<int64_t>(DeviceValue<cl_ulong>(api, device, CL_DEVICE_LOCAL_MEM_SIZE));
  info.has_local_memory = DeviceValue<cl_device_local_mem_type>(api, device, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  info.global_bytes = static_cast<int64_t>(DeviceValue<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_SIZE));
  info.cache_bytes = static_cast<int64_t>(DeviceValue<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE));
  info.buffer_bytes_max = static_cast<int64_t>(DeviceValue<cl_ulong>(api, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  info.slice_alignment = std::max<int64_t>(
      1, DeviceValue<cl_uint>(api, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);  // the device reports bits
  info.caches_builds = info.platform == "Portable Computing Language";
  info.rounds_divide_and_sqrt = (DeviceValue<cl_device_fp_config>(api, device, CL_DEVICE_SINGLE_FP_CONFIG) &
                                 CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  return info;
}

Error FindDevices(const Api& api, std::vector<Found>* found) {
  const Error none = {ErrorKind::kAbsent,
                      "OpenCL is installed but has no device; install the driver of the device (its .icd file belongs "
                      "in /etc/OpenCL/vendors)"};
  cl_uint count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return none;
  std::vector<cl_platform_id> platforms(count);
  if (Error e = Check(api.clGetPlatformIDs(count, platforms.data(), nullptr), "cannot list the OpenCL platforms");
      !e.ok()) {
    return e;
  }
  for (const cl_platform_id platform : platforms) {
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    std::vector<cl_device_id> devices(count);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) continue;
    for (const cl_device_id device : devices) {
      found->push_back({platform, device, static_cast<int>(found->size())});
    }
  }
  return found->empty() ? none : Error{};
}

// Sets *chosen to the device that `selector` names.
Error Choose(const Api& api, std::string_view selector, Found* chosen) {
  std::vector<Found> found;
  if (Error e = FindDevices(api, &found); !e.ok()) return e;
  std::vector<std::string> names;
  for (const Found& one : found) names.push_back(Text(api.clGetDeviceInfo, one.device, CL_DEVICE_NAME));
  size_t place = 0;
  if (Error e = ChooseDevice("OpenCL", selector, names, &place); !e.ok()) return e;
  *chosen = found[place];
  return {};
}

std::string BuildLog(const Api& api, cl_program program, cl_device_id device) {
  size_t bytes = 0;
  if (api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string log(bytes, '\0');
  api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

// The binary of a program that was built for one device; empty if the driver does not give it.
std::string BinaryOf(const Api& api, cl_program program) {
  size_t bytes = 0;
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::string binary(bytes, '\0');
  char* place = binary.data();
  if (api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr) != CL_SUCCESS) return {};
  return binary;
}

// The time of an event by the device's clock. It may count from 1970; a double of seconds would then be too coarse for
// a short kernel, so the result is an integer. An error is stored in *error.
int64_t NanosecondsAt(const Api& api, const std::shared_ptr<void>& event, cl_profiling_info what, Error* error) {
  cl_ulong nanoseconds = 0;
  const cl_int code = api.clGetEventProfilingInfo(As<cl_event>(event), what, sizeof nanoseconds, &nanoseconds, nullptr);
  if (Error e = Check(code, "cannot read the device's clock"); !e.ok()) *error = e;
  return static_cast<int64_t>(nanoseconds);
}

}  // namespace

Error Library::Load(Library* library, const char* file) { return LoadApi(file, &library->api_); }

Error Library::ListDevices(std::vector<DeviceInfo>* devices) const {
  std::vector<Found> found;
  if (Error e = FindDevices(*api_, &found); !e.ok()) return e;
  devices->clear();
  for (const Found& f : found) devices->push_back(Describe(*api_, f));
  return {};
}

Error Library::Find(std::string_view selector, DeviceInfo* info) const {
  Found found;
  if (Error e = Choose(*api_, selector, &found); !e.ok()) return e;
  *info = Describe(*api_, found);
  return {};
}

Error Library::Open(std::string_view selector, Device* device) const {
  Found found;
  if (Error e = Choose(*api_, selector, &found); !e.ok()) return e;
  const cl_device_id id = found.device;
  Device opened;
  opened.api_ = api_;
  opened.device_ = id;
  opened.info_ = Describe(*api_, found);
  cl_int code = CL_SUCCESS;
  const cl_context context = api_->clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  if (Error e = Check(code, "cannot open the OpenCL device '" + opened.info_.name + "'"); !e.ok()) return e;
  opened.context_ = Own(api_, context, &Api::clReleaseContext);
  const cl_command_queue queue = api_->clCreateCommandQueue(context, id, CL_QUEUE_PROFILING_ENABLE, &code);
  if (Error e = Check(code, "cannot make a queue for '" + opened.info_.name + "'"); !e.ok()) return e;
  opened.queue_ = Own(api_, queue, &Api::clReleaseCommandQueue);
  *device = std::move(opened);
  return {};
}

Error Device::Build(std::string_view source, const BuildOptions& options, Program* program) const {
  std::string flags = "-cl-std=CL1.2";
  if (info_.rounds_divide_and_sqrt) flags += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (!options.extra_options.empty()) flags += " " + options.extra_options;
  std::string key;
  for (const std::string_view part :
       {std::string_view(info_.platform), std::string_view(info_.platform_version), std::string_view(info_.name),
        std::string_view(info_.driver_version), std::string_view(flags), source}) {
    key += std::to_string(part.size()) + ":" + std::string(part);
  }
  Program built;
  built.api_ = api_;
  built.device_ = device_;
  cl_device_id id = static_cast<cl_device_id>(device_);
  cl_int code = CL_SUCCESS;
  const auto finish = [&](cl_program made) {
    if (code != CL_SUCCESS) return Check(code, "cannot make a program");
    built.program_ = Own(api_, made, &Api::clReleaseProgram);
    code = api_->clBuildProgram(made, 1, &id, flags.c_str(), nullptr, nullptr);
    built.log_ = BuildLog(*api_, made, id);
    Error e = Check(code, "the OpenCL compiler of '" + info_.name + "' rejects the program");
    if (!e.ok() && !built.log_.empty()) e.text += "\n" + built.log_;
    return e;
  };
  // A driver with its own cache is not asked for the binary: PoCL would compile everything a second time for it.
  const BinaryCache cache(info_.caches_builds ? std::filesystem::path() : options.cache_folder);
  if (const auto binary = cache.Find(key)) {
    const size_t bytes = binary->size();
    const auto* place = reinterpret_cast<const unsigned char*>(binary->data());
    cl_int status = CL_SUCCESS;
    built.from_cache_ =
        finish(api_->clCreateProgramWithBinary(As<cl_context>(context_), 1, &id, &bytes, &place, &status, &code)).ok();
  }
  if (!built.from_cache_) {
    const char* text = source.data();
    const size_t length = source.size();
    if (Error e = finish(api_->clCreateProgramWithSource(As<cl_context>(context_), 1, &text, &length, &code));
        !e.ok()) {
      return e;
    }
    cache.Store(key, BinaryOf(*api_, As<cl_program>(built.program_)));
  }
  *program = std::move(built);
  return {};
}

Error Program::Find(const std::string& name, Kernel* kernel) const {
  cl_int code = CL_SUCCESS;
  const cl_kernel made = api_->clCreateKernel(As<cl_program>(program_), name.c_str(), &code);
  if (Error e = Check(code, "no kernel '" + name + "' in the program"); !e.ok()) return e;
  Kernel found;
  found.api_ = api_;
  found.kernel_ = Own(api_, made, &Api::clReleaseKernel);
  found.name_ = name;
  found.group_lanes_max_ = KernelValue<size_t>(*api_, made, device_, CL_KERNEL_WORK_GROUP_SIZE);
  *kernel = std::move(found);
  return {};
}

Error Kernel::SetArg(int index, size_t bytes, const void* value) {
  return Check(api_->clSetKernelArg(As<cl_kernel>(kernel_), static_cast<cl_uint>(index), bytes, value),
               "cannot set argument " + std::to_string(index) + " of kernel '" + name_ + "'");
}

Error Kernel::SetShared(int64_t bytes) {
  if (bytes == 0) return {};
  return {ErrorKind::kProgram,
          "kernel '" + name_ + "' requests shared memory at launch, which OpenCL does not support"};
}

Error Kernel::SetArg(int index, float value) { return SetArg(index, sizeof value, &value); }
Error Kernel::SetArg(int index, int32_t value) { return SetArg(index, sizeof value, &value); }

Error Kernel::SetArg(int index, const Buffer& buffer) {
  const cl_mem memory = As<cl_mem>(buffer.memory_);
  if (Error e = SetArg(index, sizeof(cl_mem), &memory); !e.ok()) return e;
  if (args_.size() <= static_cast<size_t>(index)) args_.resize(static_cast<size_t>(index) + 1);
  args_[static_cast<size_t>(index)] = buffer;
  return {};
}

Error Device::Allocate(size_t bytes, Buffer* buffer) const {
  cl_int code = CL_SUCCESS;
  const size_t at_least_one = std::max<size_t>(bytes, 1);
  const cl_mem memory = api_->clCreateBuffer(As<cl_context>(context_), CL_MEM_READ_WRITE, at_least_one, nullptr, &code);
  if (Error e = Check(code, "cannot allocate " + std::to_string(at_least_one) + " bytes on '" + info_.name + "'");
      !e.ok()) {
    return e;
  }
  buffer->memory_ = Own(api_, memory, &Api::clReleaseMemObject);
  buffer->bytes_ = bytes;
  return {};
}

Error Device::Slice(const Buffer& whole, size_t offset, size_t bytes, Buffer* slice) const {
  cl_int code = CL_SUCCESS;
  const cl_buffer_region region = {offset, std::max<size_t>(bytes, 1)};
  const cl_mem memory = api_->clCreateSubBuffer(As<cl_mem>(whole.memory_), CL_MEM_READ_WRITE,
                                                CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (Error e = Check(code, "cannot slice " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                                " of a buffer of " + std::to_string(whole.bytes_) + " bytes on '" + info_.name +
                                "', which needs a multiple of " + std::to_string(info_.slice_alignment));
      !e.ok()) {
    return e;
  }
  slice->memory_ = Own(api_, memory, &Api::clReleaseMemObject);
  slice->bytes_ = bytes;
  return {};
}

Error Device::EnqueueWrite(const Buffer& buffer, std::span<const std::byte> from) const {
  if (from.empty()) return {};
  return Check(api_->clEnqueueWriteBuffer(As<cl_command_queue>(queue_), As<cl_mem>(buffer.memory_), CL_FALSE, 0,
                                          from.size(), from.data(), 0, nullptr, nullptr),
               "cannot write " + std::to_string(from.size()) + " bytes to a buffer");
}

Error Device::EnqueueRead(const Buffer& buffer, std::span<std::byte> to) const {
  if (to.empty()) return {};
  return Check(api_->clEnqueueReadBuffer(As<cl_command_queue>(queue_), As<cl_mem>(buffer.memory_), CL_FALSE, 0,
                                         to.size(), to.data(), 0, nullptr, nullptr),
               "cannot read " + std::to_string(to.size()) + " bytes of a buffer");
}

Error Device::EnqueueCopy(const Buffer& from, const Buffer& to, size_t bytes, size_t offset) const {
  if (bytes == 0) return {};
  return Check(api_->clEnqueueCopyBuffer(As<cl_command_queue>(queue_), As<cl_mem>(from.memory_), As<cl_mem>(to.memory_),
                                         0, offset, bytes, 0, nullptr, nullptr),
               "cannot copy " + std::to_string(bytes) + " bytes between buffers");
}

Error Device::Finish() const {
  return CheckDone(api_->clFinish(As<cl_command_queue>(queue_)), "the work on '" + info_.name + "' failed");
}

Error Device::Write(const Buffer& buffer, size_t offset, std::span<const std::byte> from) const {
  if (from.empty()) return {};
  return CheckDone(
      api_->clEnqueueWriteBuffer(As<cl_command_queue>(queue_), As<cl_mem>(buffer.memory_), CL_TRUE, offset, from.size(),
                                 from.data(), 0, nullptr, nullptr),
      "cannot write " + std::to_string(from.size()) + " bytes to a buffer of " + std::to_string(buffer.bytes_));
}

Error Device::Read(const Buffer& buffer, size_t offset, std::span<std::byte> to) const {
  if (to.empty()) return {};
  return CheckDone(
      api_->clEnqueueReadBuffer(As<cl_command_queue>(queue_), As<cl_mem>(buffer.memory_), CL_TRUE, offset, to.size(),
                                to.data(), 0, nullptr, nullptr),
      "cannot read " + std::to_string(to.size()) + " bytes of a buffer of " + std::to_string(buffer.bytes_));
}

Error Device::Fill(const Buffer& buffer, size_t offset, size_t bytes, std::byte value) const {
  if (bytes == 0) return {};
  const cl_int code = api_->clEnqueueFillBuffer(As<cl_command_queue>(queue_), As<cl_mem>(buffer.memory_), &value, 1,
                                                offset, bytes, 0, nullptr, nullptr);
  const std::string what =
      "cannot fill " + std::to_string(bytes) + " bytes of a buffer of " + std::to_string(buffer.bytes_);
  if (Error e = Check(code, what); !e.ok()) return e;
  return CheckDone(api_->clFinish(As<cl_command_queue>(queue_)), what);
}

Error Device::Enqueue(const Launch& launch, std::shared_ptr<void>* event) const {
  const size_t lanes = static_cast<size_t>(launch.lanes), all = static_cast<size_t>(launch.groups) * lanes;
  cl_event made = nullptr;
  const cl_int code =
      api_->clEnqueueNDRangeKernel(As<cl_command_queue>(queue_), As<cl_kernel>(launch.kernel->kernel_), 1, nullptr,
                                   &all, &lanes, 0, nullptr, event != nullptr ? &made : nullptr);
  if (code == CL_SUCCESS) {  // returns early: building the error's text would take as long as the launch
    if (event != nullptr) *event = Own(api_, made, &Api::clReleaseEvent);
    return {};
  }
  // The code means that this kernel needs too many resources, or that an earlier launch has faulted. In the second case
  // Finish returns the fault.
  if (code == CL_OUT_OF_RESOURCES) {
    if (Error e = Finish(); !e.ok()) return e;
  }
  return Check(code, "cannot launch kernel '" + launch.kernel->name_ + "' with " + std::to_string(launch.groups) +
                         " groups of " + std::to_string(launch.lanes) + " lanes");
}

// Polls the event with growing pauses of up to 1 ms, because clWaitForEvents has no deadline.
Error Device::Wait(void* event, Until until, Deadline deadline) const {
  const cl_int awaited = until == Until::kBegun ? CL_RUNNING : CL_COMPLETE;  // later states have lower numbers
  const cl_int handed_over = api_->clFlush(As<cl_command_queue>(queue_));
  if (Error e = CheckDone(handed_over, "cannot submit the launches"); !e.ok()) return e;
  PollPause pause;
  while (true) {
    cl_int state = CL_QUEUED;
    if (Error e = Check(api_->clGetEventInfo(static_cast<cl_event>(event), CL_EVENT_COMMAND_EXECUTION_STATUS,
                                             sizeof state, &state, nullptr),
                        "cannot query the state of a launch");
        !e.ok()) {
      return e;
    }
    if (state < 0) {  // the launch was accepted and then failed, whatever the code is
      Error failed = Check(state, "a launch failed on '" + info_.name + "'");
      if (failed.kind != ErrorKind::kMemory) failed.kind = ErrorKind::kFault;
      return failed;
    }
    if (state <= awaited) return {};
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
  for (const Launch& launch : launches) {
    std::shared_ptr<void> event;
    if (Error e = Enqueue(launch, &event); !e.ok()) return e;
    if (Error e = Wait(event.get(), Until::kBegun, Deadline::max()); !e.ok()) return e;
    const auto limit = std::chrono::duration_cast<Deadline::duration>(launch_time_max);
    if (Error e = Wait(event.get(), Until::kDone, std::chrono::steady_clock::now() + limit); !e.ok()) return e;
  }
  return {};
}

Error Device::Time(std::span<const Launch> launches, int repeats, Deadline deadline, Timing* timing) const {
  struct Repeat {
    std::shared_ptr<void> first, last;
  };
  *timing = {};
  if (launches.empty() || repeats <= 0) return {};
  std::vector<Repeat> done(static_cast<size_t>(repeats));
  const auto begin = std::chrono::steady_clock::now();
  for (Repeat& repeat : done) {
    for (size_t i = 0; i < launches.size(); ++i) {
      const bool first = i == 0, last = i + 1 == launches.size();
      std::shared_ptr<void>* event = first ? &repeat.first : last ? &repeat.last : nullptr;
      if (Error e = Enqueue(launches[i], event); !e.ok()) return e;
    }
    if (repeat.last == nullptr) repeat.last = repeat.first;
  }
  if (Error e = Wait(done.back().last.get(), Until::kDone, deadline); !e.ok()) return e;
  timing->wall_seconds = SecondsSince(begin);
  Error failed;
  for (const Repeat& repeat : done) {
    const int64_t end = NanosecondsAt(*api_, repeat.last, CL_PROFILING_COMMAND_END, &failed),
                  start = NanosecondsAt(*api_, repeat.first, CL_PROFILING_COMMAND_START, &failed);
    timing->device_seconds.push_back(1e-9 * static_cast<double>(end - start));
  }
  return failed;
}

}  // namespace hone::drivers::opencl
