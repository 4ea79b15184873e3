// SPDX-License-Identifier: Apache-2.0
// A fake libcuda.so.1 for tests, with one device. A kernel in PTX with the name of a function of this file runs that
// function; every other kernel is interpreted by tests/ptx.
//
// Device memory is memory of this process. Enqueued work is done at once, unless a graph is being recorded. As with the
// real driver, access to an address that was not allocated destroys the context, and every later call fails. Each error
// of the interpreter does the same and is printed on standard error. A kernel named `hang` never ends. Machine code is
// text that begins with "machine code for sm_87". A call that needs the context fails in a thread with another current
// context or none. A call that might wait for the device invalidates a recording.
//
// Environment variables:
//   HONE_FAKE_CUDA_ARCH        the device's architecture, "90"; default 87
//   HONE_FAKE_CUDA_VERSION     the CUDA version, "11080"; before 12.0 PTX 8.0 and later is refused
//   HONE_FAKE_CUDA_SHARED      most bytes of shared memory of a group; default: those of the architecture
//   HONE_FAKE_CUDA_MEMORY      most bytes of an allocation
//   HONE_FAKE_CUDA_INIT        the result of cuInit
//   HONE_FAKE_CUDA_RETAIN      the result of a request for the device's context
//   HONE_FAKE_CUDA_HANG        the name of another kernel that never ends
//   HONE_FAKE_CUDA_CRASH       the name of a kernel that destroys the context
//   HONE_FAKE_CUDA_CAPTURE     the result of ending a recording
//   HONE_FAKE_CUDA_BROKEN      if set, hone_reference computes wrong results
//   HONE_FAKE_CUDA_INTEGRATED  if set, the device has no memory but this machine's
//
// Compiled with HONE_FAKE_OLD_CUDA it has the functions of CUDA 10.2's driver.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cuda_api.h"
#include "tests/ptx/program.h"

namespace {

using Clock = std::chrono::steady_clock;
using Work = std::function<int()>;
using Handle = void*;

constexpr int kInvalidValue = 1, kInvalidContext = 201, kNoBinary = 209, kInvalidPtx = 218, kNewerPtx = 222,
              kIllegalState = 401, kIllegalAddress = 700, kDestroyed = 709, kMisalignedAddress = 716,
              kLaunchFailed = 719, kNotWhileRecording = 900, kRecordingSpoiled = 901;
constexpr unsigned kUnaskedShared = 48 << 10;

struct Grid {
  unsigned groups, lanes, shared;
};
// Runs a kernel for all its lanes.
using Function = std::function<int(const Grid& grid, void* const* arguments)>;
struct Kernel {
  Function run;
  int arguments = 3;
  bool waits = false;       // its code waits for the launch before it
  unsigned lanes = 0;       // the lanes that a group must have; 0: any number
  unsigned own_shared = 0;  // bytes of shared memory that the code declares per group
};

struct Module {
  std::map<std::string, Kernel> kernels;
};
struct Graph {
  std::vector<Work> work;
};

// The state of the device, one per process as with the real driver.
struct State {
  int sticky = 0;              // the error of a kernel that failed, which every later call returns; 0: none
  bool destroyed = false;      // other code has destroyed the context
  bool hangs = false;          // a kernel that never ends was launched
  bool launched = false;       // the last enqueued work is a launch
  int overlapping = 0;         // launches so far that may overlap with the one before them
  Graph* recording = nullptr;  // the graph that is being recorded; null: none
  bool spoiled = false;        // that recording is invalid
  bool others_record = false;  // another thread records in the global mode
  int pinned = 0;              // allocations of pinned memory so far
  int launches = 0;            // launches so far that were not recorded
  int graphs_made = 0, graphs_launched = 0;
  int alive = 0;  // objects that were not released: references to the context, modules, events and graphs
  std::map<uintptr_t, size_t> memory;       // size of each allocation by address
  std::map<Handle, unsigned> asked_shared;  // by function: the limit that was set on its shared memory, in bytes
};
State& TheState() {
  static State state;
  return state;
}

// The stack of this thread's contexts; the last one is current. The context of the device is &TheState().
constexpr int kContextsMax = 8;
thread_local Handle the_contexts[kContextsMax];
thread_local int context_count = 0;
thread_local int the_mode = 0;  // this thread's capture mode; 0 is global: recordings of other threads restrict it

// Called first by every function that needs the context: an error if it is not current, or if a kernel failed in it.
int Enter() {
  const bool is_current = context_count > 0 && the_contexts[context_count - 1] == &TheState();
  return is_current ? TheState().sticky : kInvalidContext;
}

// Called instead of Enter by every function that might wait for the device: also an error during a recording.
int EnterWaiting() {
  State& state = TheState();
  if (const int error = Enter(); error != 0) return error;
  state.spoiled = state.recording != nullptr;
  return state.spoiled || (state.others_record && the_mode == 0) ? kNotWhileRecording : 0;
}

float* Floats(void* const* arguments, int i) { return *static_cast<float**>(arguments[i]); }

constexpr unsigned kElements = 1000;  // elements of the workload in tests/conformance/device

// y = 2 x + w for the first `count` elements; the arguments are x, w and y.
int Compute(const Grid& grid, void* const* a, unsigned count = kElements) {
  for (unsigned i = 0; i < grid.groups * grid.lanes && i < count; ++i) {
    Floats(a, 2)[i] = 2 * Floats(a, 0)[i] + Floats(a, 1)[i];
  }
  return 0;
}
int Good(const Grid& grid, void* const* a) { return Compute(grid, a); }
// Computes correctly and then calls `change`.
template <typename Change>
int GoodThen(const Grid& grid, void* const* a, Change change) {
  Compute(grid, a);
  change();
  return 0;
}
int Multiply(const Grid& grid, void* const* a) {
  for (unsigned i = 0; i < grid.groups; ++i) {
    for (unsigned j = 0; j < grid.lanes; ++j) {
      float sum = 0;
      for (unsigned k = 0; k < 64; ++k) sum += Floats(a, 0)[i * 64 + k] * Floats(a, 1)[k * 64 + j];
      Floats(a, 2)[i * 64 + j] = sum;
    }
  }
  return 0;
}
// The kernel hone_reference (device_agent/devices/lanes/reference_kernel.cc).
int Reference(const Grid& grid, void* const* a) {
  const uint32_t broken = std::getenv("HONE_FAKE_CUDA_BROKEN") != nullptr ? 1 : 0;
  for (unsigned lane = 0; lane < grid.groups * grid.lanes; ++lane) {
    uint32_t value = lane;
    for (uint32_t i = 0; i < 20000; ++i) value = value * 1664525U + (value >> 7) + i;
    (*static_cast<uint32_t**>(a[0]))[lane] = value + broken;
  }
  return 0;
}

// The kernels of the runtime's tiny package (tests/unit/runtime/tiny_package.h).
int AddBias(const Grid& grid, void* const* a) {
  for (unsigned i = 0; i < grid.groups * grid.lanes; ++i)
    Floats(a, 2)[i] = Floats(a, 0)[i] + Floats(a, 1)[i % grid.lanes];
  return 0;
}
int ScaleUp(const Grid& grid, void* const* a) {
  for (unsigned i = 0; i < grid.groups * grid.lanes; ++i) Floats(a, 1)[i] = 2 * Floats(a, 0)[i];
  return 0;
}
int ScaleOut(const Grid& grid, void* const* a) {
  for (unsigned i = 0; i < grid.groups * grid.lanes; ++i) Floats(a, 1)[i] = Floats(a, 0)[i];
  return 0;
}

const std::map<std::string, Kernel>& Kernels() {
  static const std::map<std::string, Kernel> kernels = {
      {"reference", {Good}},
      {"good", {Good}},
      {"hone_reference", {Reference, 1}},
      {"hone_compute", {[](const Grid&, void* const*) { return usleep(100); }, 1}},
      {"hone_read", {[](const Grid&, void* const*) { return usleep(100); }}},
      {"golden", {Multiply}},
      {"golden_reference", {Multiply}},
      {"aligned", {[](const Grid& grid, void* const* a) {
         uintptr_t all = 0;
         for (int i = 0; i < 3; ++i) all |= reinterpret_cast<uintptr_t>(Floats(a, i));
         return all % 64 == 0 ? Compute(grid, a) : 0;
       }}},
      {"slow", {[](const Grid& grid, void* const* a) { return GoodThen(grid, a, [] { usleep(200); }); }}},
      {"first_of_two",
       {[](const Grid&, void* const* a) {
          for (unsigned i = 0; i < kElements; ++i) Floats(a, 1)[i] = 2 * Floats(a, 0)[i];
          return 0;
        },
        2}},
      {"second_of_two", {[](const Grid&, void* const* a) {
         for (unsigned i = 0; i < kElements; ++i) Floats(a, 2)[i] = Floats(a, 0)[i] + Floats(a, 1)[i];
         return 0;
       }}},
      {"prepare",
       {[](const Grid&, void* const* a) {
          for (unsigned i = 0; i < kElements; ++i) Floats(a, 1)[i] = Floats(a, 0)[kElements - 1 - i];
          return 0;
        },
        2}},
      {"packed_double", {[](const Grid&, void* const* a) {
         for (unsigned i = 0; i < kElements; ++i)
           Floats(a, 2)[i] = 2 * Floats(a, 0)[i] + Floats(a, 1)[kElements - 1 - i];
         return 0;
       }}},
      {"wrong", {[](const Grid& g, void* const* a) { return GoodThen(g, a, [&] { Floats(a, 2)[17] += 0.5F; }); }}},
      {"incomplete", {[](const Grid& g, void* const* a) { return Compute(g, a, kElements - 1); }}},
      {"past_end",
       {[](const Grid& g, void* const* a) { return GoodThen(g, a, [&] { Floats(a, 2)[kElements] = 1; }); }}},
      {"before_begin", {[](const Grid& g, void* const* a) { return GoodThen(g, a, [&] { Floats(a, 2)[-2] = 1; }); }}},
      {"write_input", {[](const Grid& g, void* const* a) { return GoodThen(g, a, [&] { Floats(a, 0)[3] = 0; }); }}},
      {"crash", {[](const Grid&, void* const*) { return kIllegalAddress; }}},
      {"hang", {[](const Grid&, void* const*) {
         TheState().hangs = true;
         return 0;
       }}},
      {"add_bias", {AddBias}},
      {"scale_up", {ScaleUp, 2}},
      {"scale_out", {ScaleOut, 2}},
  };
  return kernels;
}

int Do(const Work& work, bool is_launch = false) {
  if (const int error = Enter(); error != 0) return error;
  State& state = TheState();
  state.launched = is_launch;
  if (state.recording != nullptr) {
    state.recording->work.push_back(work);
    return 0;
  }
  if (!state.hangs) state.sticky = work();
  return 0;  // an error of the launch is returned by later calls
}

// Waits as the driver does before it frees something that a kernel may use. Never returns if a kernel hangs.
void WaitForAll() {
  while (TheState().hangs) sleep(1);
}

bool IsAllocated(uint64_t place, size_t bytes) {
  const auto& memory = TheState().memory;
  auto after = memory.upper_bound(place);
  if (after == memory.begin()) return false;
  --after;
  return place + bytes <= after->first + after->second;
}

int Move(void* to, const void* from, size_t bytes, uint64_t on_device) {
  return Do([=] {
    if (!IsAllocated(on_device, bytes)) return kIllegalAddress;
    std::memcpy(to, from, bytes);
    return 0;
  });
}

// The driver's error code for an error of the PTX interpreter.
int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kOutOfRange:
      return kIllegalAddress;
    case absl::StatusCode::kDataLoss:
      return kMisalignedAddress;
    default:
      return kLaunchFailed;
  }
}

int RunOnMachine(const hone::ptx::Kernel& kernel, const Grid& grid, void* const* arguments) {
  hone::ptx::Launch launch{.groups = grid.groups, .lanes = grid.lanes, .shared_bytes = grid.shared};
  for (uint32_t i = 0; i < kernel.parameters; ++i) launch.arguments.push_back(*static_cast<uint64_t*>(arguments[i]));
  for (const auto& [begin, bytes] : TheState().memory) launch.memory.push_back({begin, bytes});
  const absl::Status status = hone::ptx::Run(kernel, launch);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return CodeOf(status);
}

bool HasFunction(std::string_view name) { return Kernels().contains(std::string(name)); }

// Adds the kernels of the PTX text: functions of this file, or else interpreted ones. False if the text is not valid.
bool AddKernels(const std::string& text, Module* module) {
  constexpr char kEntry[] = ".entry ";
  for (size_t at = text.find(kEntry); at != std::string::npos; at = text.find(kEntry, at + 1)) {
    const size_t begin = at + sizeof kEntry - 1;
    const auto known = Kernels().find(text.substr(begin, text.find('(', begin) - begin));
    const bool waits = text.substr(at, text.find(kEntry, at + 1) - at).find("griddepcontrol.wait") != std::string::npos;
    if (known == Kernels().end()) continue;
    const auto is_named = [&](const char* variable) {
      const char* const name = std::getenv(variable);
      return name != nullptr && name == known->first;
    };
    const char* const run = is_named("HONE_FAKE_CUDA_HANG")    ? "hang"
                            : is_named("HONE_FAKE_CUDA_CRASH") ? "crash"
                                                               : known->first.c_str();
    module->kernels[known->first] = {Kernels().at(run).run, known->second.arguments, waits};
  }
  if (text.starts_with("machine code")) return true;
  auto program = hone::ptx::Parse(text, [](std::string_view name) { return !HasFunction(name); });
  if (!program.ok()) {
    std::fprintf(stderr, "%s\n", std::string(program.status().message()).c_str());
    return false;
  }
  const auto kept = std::make_shared<const hone::ptx::Program>(*std::move(program));
  for (const hone::ptx::Kernel& kernel : kept->kernels) {
    const auto run = [kept, &kernel](const Grid& grid, void* const* arguments) {
      return RunOnMachine(kernel, grid, arguments);
    };
    if (kernel.shared_bytes > kUnaskedShared) return false;
    module->kernels[kernel.name] = {run, static_cast<int>(kernel.parameters), kernel.waits_for_grids, kernel.lanes,
                                    static_cast<unsigned>(kernel.shared_bytes)};
  }
  return true;
}

// The architecture that the device reports: "87".
int Architecture() {
  const char* const asked = std::getenv("HONE_FAKE_CUDA_ARCH");
  return asked != nullptr ? std::atoi(asked) : 87;
}
int Version() {
#ifdef HONE_FAKE_OLD_CUDA
  return 10020;
#else
  const char* const asked = std::getenv("HONE_FAKE_CUDA_VERSION");
  return asked != nullptr ? std::atoi(asked) : 12040;
#endif
}
int MostShared() {
  if (const char* const asked = std::getenv("HONE_FAKE_CUDA_SHARED")) return std::atoi(asked);
  const int architecture = Architecture();
  return (architecture >= 90 ? 227 : architecture >= 80 ? 163 : architecture >= 70 ? 64 : 48) << 10;
}

void* At(unsigned long long place) { return reinterpret_cast<void*>(place); }

int GiveContextBack() { return --TheState().alive, 0; }

}  // namespace

extern "C" {

int cuInit(unsigned) {
  const char* const asked = std::getenv("HONE_FAKE_CUDA_INIT");
  return asked != nullptr ? std::atoi(asked) : 0;
}
int cuDriverGetVersion(int* version) { return *version = Version(), 0; }
int cuGetErrorName(int code, const char** name) {
  *name = code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == kInvalidPtx   ? "CUDA_ERROR_INVALID_PTX"
          : code == kNewerPtx     ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : code == kDestroyed    ? "CUDA_ERROR_CONTEXT_IS_DESTROYED"
                                  : "an error";
  return 0;
}
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake CUDA device", static_cast<size_t>(bytes));
  return 0;
}
int cuDeviceGetPCIBusId(char* address, int bytes, int) {
  std::strncpy(address, "0000:65:00.0", static_cast<size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const std::map<int, int> values = {{1, 1024},
                                     {8, 48 << 10},
                                     {10, 32},
                                     {16, 4},
                                     {18, std::getenv("HONE_FAKE_CUDA_INTEGRATED") != nullptr},
                                     {38, 4 << 20},
                                     {75, Architecture() / 10},
                                     {76, Architecture() % 10},
                                     {97, MostShared()}};
  const auto it = values.find(attribute);
  return *value = it == values.end() ? 0 : it->second, 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t{1} << 30, 0; }
int cuDevicePrimaryCtxRetain(Handle* context, int) {
  if (const char* const asked = std::getenv("HONE_FAKE_CUDA_RETAIN")) return std::atoi(asked);
  TheState().destroyed = false;
  ++TheState().alive;
  return *context = &TheState(), 0;
}
#ifdef HONE_FAKE_OLD_CUDA
int cuDevicePrimaryCtxRelease(int) { return GiveContextBack(); }
#else
int cuDevicePrimaryCtxRelease_v2(int) { return GiveContextBack(); }
#endif
int cuDevicePrimaryCtxReset_v2(int) { return TheState().destroyed = true, 0; }
int cuCtxPushCurrent_v2(Handle context) {
  if (context == &TheState() && TheState().destroyed) return kDestroyed;
  if (context_count == kContextsMax) return kInvalidContext;
  return the_contexts[context_count++] = context, 0;
}
int cuCtxPopCurrent_v2(Handle* context) {
  if (context_count == 0) return kInvalidContext;
  return *context = the_contexts[--context_count], 0;
}
int cuCtxGetCurrent(Handle* context) {
  return *context = context_count == 0 ? nullptr : the_contexts[context_count - 1], 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) { return std::swap(*mode, the_mode), 0; }

int cuLinkCreate_v2(unsigned, int*, void** values, Handle* link) {
  if (const int error = Enter(); error != 0) return error;
  static_cast<char*>(values[0])[0] = 0;
  std::strcpy(static_cast<char*>(values[2]), "");
  return *link = new std::string(), 0;
}
int cuLinkAddData_v2(Handle link, int, void* data, size_t, const char*, unsigned, int*, void**) {
  if (const int error = Enter(); error != 0) return error;
  const std::string text = static_cast<const char*>(data);
  const size_t version = text.find(".version");
  if (version == std::string::npos || text.find(".version", version + 1) != std::string::npos) return kInvalidPtx;
  if (Version() < 12000 && std::atof(text.c_str() + version + std::strlen(".version")) >= 8) return kNewerPtx;
  return *static_cast<std::string*>(link) = text, 0;
}
int cuLinkComplete(Handle link, void** code, size_t* bytes) {
  if (const int error = Enter(); error != 0) return error;
  auto& text = *static_cast<std::string*>(link);
  *code = text.data();
  *bytes = text.size() + 1;
  return 0;
}
int cuLinkDestroy(Handle link) { return delete static_cast<std::string*>(link), 0; }
int cuModuleLoadData(Handle* module, const void* code) {
  if (const int error = EnterWaiting(); error != 0) return error;
  const std::string text = static_cast<const char*>(code);
  if (text.starts_with("machine code") && !text.starts_with("machine code for sm_87")) return kNoBinary;
  if (text.starts_with("\x7f")) return kNoBinary;  // an ELF file, real machine code of a toolkit
  auto made = std::make_unique<Module>();
  if (!AddKernels(text, made.get())) return kInvalidPtx;
  ++TheState().alive;
  return *module = made.release(), 0;
}
int cuModuleUnload(Handle module) {
  if (const int error = EnterWaiting(); error != 0) return error;
  WaitForAll();
  auto* const made = static_cast<Module*>(module);
  for (auto& [name, kernel] : made->kernels) TheState().asked_shared.erase(&kernel);
  --TheState().alive;
  return delete made, 0;
}
int cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  if (const int error = Enter(); error != 0) return error;
  auto& kernels = static_cast<Module*>(module)->kernels;
  const auto it = kernels.find(name);
  if (it == kernels.end()) return 500;
  return *function = &it->second, 0;
}
int cuFuncGetAttribute(int* value, int attribute, Handle function) {
  if (const int error = Enter(); error != 0) return error;
  const Kernel& kernel = *static_cast<const Kernel*>(function);
  const unsigned most_lanes = kernel.lanes != 0 ? kernel.lanes : 1024;
  return *value = static_cast<int>(attribute == 0 ? most_lanes : attribute == 1 ? kernel.own_shared : 0), 0;
}

int cuFuncSetAttribute(Handle function, int attribute, int value) {
  if (const int error = Enter(); error != 0) return error;
  const int own = static_cast<int>(static_cast<const Kernel*>(function)->own_shared);
  if (attribute != 8 || value < 0 || value > MostShared() - own) return kInvalidValue;
  TheState().asked_shared[function] = static_cast<unsigned>(value);
  return 0;
}

int cuMemAlloc_v2(unsigned long long* place, size_t bytes) {
  if (const int error = EnterWaiting(); error != 0) return error;
  const char* const most = std::getenv("HONE_FAKE_CUDA_MEMORY");
  if (bytes > (most != nullptr ? std::strtoull(most, nullptr, 0) : 1ULL << 30)) return 2;
  const size_t rounded = (bytes + 511) / 512 * 512;
  void* const memory = std::aligned_alloc(512, rounded);
  *place = reinterpret_cast<unsigned long long>(memory);
  TheState().memory[*place] = bytes;  // not `rounded`, so that an access beyond `bytes` is an error
  return 0;
}
int cuMemFree_v2(unsigned long long place) {
  if (const int error = EnterWaiting(); error != 0) return error;
  WaitForAll();
  TheState().memory.erase(place);
  return std::free(At(place)), 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  if (const int error = EnterWaiting(); error != 0) return error;
  ++TheState().pinned;
  return *memory = std::malloc(bytes), 0;
}
int cuMemFreeHost(void* memory) {
  if (const int error = EnterWaiting(); error != 0) return error;
  return std::free(memory), 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, Handle) {
  return Move(At(to), from, bytes, to);
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, Handle) {
  return Move(to, At(from), bytes, from);
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, Handle) {
  return IsAllocated(from, bytes) ? Move(At(to), At(from), bytes, to) : kIllegalAddress;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, Handle) {
  return Do([=] {
    if (!IsAllocated(to, bytes)) return kIllegalAddress;
    std::memset(At(to), value, bytes);
    return 0;
  });
}

int cuStreamCreate(Handle* stream, unsigned) { return *stream = &TheState(), Enter(); }
int cuStreamDestroy_v2(Handle) { return Enter(); }
int cuStreamSynchronize(Handle) {
  if (const int error = EnterWaiting(); error != 0) return error;
  WaitForAll();
  return 0;
}
int cuEventCreate(Handle* event, unsigned) {
  if (const int error = Enter(); error != 0) return error;
  ++TheState().alive;
  return *event = new Clock::time_point(), 0;
}
int cuEventDestroy_v2(Handle event) {
  if (const int error = Enter(); error != 0) return error;
  --TheState().alive;
  return delete static_cast<Clock::time_point*>(event), 0;
}
int cuEventRecord(Handle event, Handle) {
  if (const int error = Enter(); error != 0) return error;
  TheState().launched = false;
  return *static_cast<Clock::time_point*>(event) = Clock::now(), 0;
}
int cuEventQuery(Handle) {
  if (const int error = EnterWaiting(); error != 0) return error;
  return TheState().hangs ? 600 : 0;
}
int cuEventElapsedTime(float* milliseconds, Handle first, Handle last) {
  if (const int error = Enter(); error != 0) return error;
  const auto took = *static_cast<Clock::time_point*>(last) - *static_cast<Clock::time_point*>(first);
  return *milliseconds = std::chrono::duration<float, std::milli>(took).count(), 0;
}

int cuLaunchKernel(Handle function, unsigned groups, unsigned, unsigned, unsigned lanes, unsigned, unsigned,
                   unsigned shared, Handle, void** arguments, void**) {
  if (const int error = Enter(); error != 0) return error;
  const Kernel& kernel = *static_cast<const Kernel*>(function);
  const auto asked = TheState().asked_shared.find(function);
  const unsigned most_shared =
      asked == TheState().asked_shared.end() ? kUnaskedShared - kernel.own_shared : asked->second;
  if (groups == 0 || lanes == 0 || lanes > 1024 || shared > most_shared) return kInvalidValue;
  if (kernel.lanes != 0 && lanes != kernel.lanes) return kInvalidValue;
  if (TheState().recording == nullptr) ++TheState().launches;
  std::vector<uint64_t> places;  // the arguments are copied at the call, as by the real driver
  for (int i = 0; i < kernel.arguments; ++i) places.push_back(*static_cast<uint64_t*>(arguments[i]));
  return Do(
      [places, groups, lanes, shared, run = kernel.run]() mutable {
        std::vector<void*> copies;
        for (uint64_t& place : places) {
          if (!IsAllocated(place, 1)) return kIllegalAddress;
          copies.push_back(&place);
        }
        return run({groups, lanes, shared}, copies.data());
      },
      true);
}

#ifndef HONE_FAKE_OLD_CUDA
// Takes exactly one attribute, the one that lets a launch overlap the launch before it, and requires such a launch.
int cuLaunchKernelEx(const hone::drivers::cuda::LaunchConfig* config, Handle function, void** arguments, void** extra) {
  const bool overlaps =
      config->attribute_count == 1 && config->attributes[0].id == 6 && config->attributes[0].value[0] == 1;
  if (!overlaps || !TheState().launched || !static_cast<const Kernel*>(function)->waits) return kInvalidValue;
  ++TheState().overlapping;
  return cuLaunchKernel(function, config->groups[0], config->groups[1], config->groups[2], config->lanes[0],
                        config->lanes[1], config->lanes[2], config->shared_bytes, config->stream, arguments, extra);
}
int cuGraphInstantiateWithFlags(Handle* made, Handle graph, unsigned long long) {
  if (const int error = Enter(); error != 0) return error;
  ++TheState().graphs_made;
  ++TheState().alive;
  return *made = new Graph(*static_cast<Graph*>(graph)), 0;
}
#endif

int hone_fake_cuda_overlapping() { return TheState().overlapping; }
int hone_fake_cuda_launches() { return TheState().launches; }
int hone_fake_cuda_graphs_made() { return TheState().graphs_made; }
int hone_fake_cuda_graphs_launched() { return TheState().graphs_launched; }
int hone_fake_cuda_alive() { return TheState().alive; }
int hone_fake_cuda_pinned() { return TheState().pinned; }
int hone_fake_cuda_others_record(int whether) { return TheState().others_record = whether != 0, 0; }

int cuStreamBeginCapture_v2(Handle, int) {
  if (const int error = Enter(); error != 0) return error;
  if (TheState().recording != nullptr) return kIllegalState;
  TheState().launched = TheState().spoiled = false;
  ++TheState().alive;
  return TheState().recording = new Graph(), 0;
}
int cuStreamEndCapture(Handle, Handle* graph) {
  *graph = nullptr;
  if (const int error = Enter(); error != 0) return error;
  if (TheState().recording == nullptr) return kIllegalState;
  Graph* const recorded = std::exchange(TheState().recording, nullptr);
  const char* const asked = std::getenv("HONE_FAKE_CUDA_CAPTURE");
  const int error = TheState().spoiled ? kRecordingSpoiled : asked != nullptr ? std::atoi(asked) : 0;
  if (error == 0) return *graph = recorded, 0;
  --TheState().alive;
  return delete recorded, error;
}
int cuGraphLaunch(Handle graph, Handle) {
  if (const int error = Enter(); error != 0) return error;
  ++TheState().graphs_launched;
  for (const Work& work : static_cast<Graph*>(graph)->work) {
    if (const int error = Do(work); error != 0) return error;
  }
  return 0;
}
int cuGraphExecDestroy(Handle graph) {
  --TheState().alive;
  return delete static_cast<Graph*>(graph), 0;
}
int cuGraphDestroy(Handle graph) { return cuGraphExecDestroy(graph); }

}  // extern "C"
