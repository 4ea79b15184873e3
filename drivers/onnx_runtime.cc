// SPDX-License-Identifier: Apache-2.0
#include "drivers/onnx_runtime.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/signals_blocked.h"

namespace hone::drivers::onnx_runtime {
namespace {

// ONNX Runtime's C interface is a table of function pointers to which every version only appends, so that a function's
// place never changes. The source is onnxruntime_c_api.h (struct OrtApi, and the rules for its versions) in the
// project's repository, github.com/microsoft/onnxruntime, include/onnxruntime/core/session. Its onnxruntime_c_api.cc
// asserts the number of functions of each version: 102 of version 1, 150 of version 5.
using Status = void*;  // OrtStatus; null: success
enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kDisableTelemetryEvents = 6,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kSessionGetInputCount = 30,
  kSessionGetOutputCount = 31,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensorWithDataAsOrtValue = 49,
  kCreateCpuMemoryInfo = 69,
  kAllocatorFree = 76,
  kGetAllocatorWithDefaultOptions = 78,
  kReleaseStatus = 93,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseSessionOptions = 100,
  kAddSessionConfigEntry = 130,
};
constexpr uint32_t kApiVersion = 5;  // the oldest with AddSessionConfigEntry
constexpr int kLogFatal = 4;         // ORT_LOGGING_LEVEL_FATAL: errors are told by a status
constexpr int kArenaAllocator = 1;   // OrtArenaAllocator
constexpr int kDefaultMemory = 0;    // OrtMemTypeDefault

struct ApiBase {
  const void* (*get_api)(uint32_t version);
  const char* (*version)();
};

}  // namespace

struct Library {
  void* const* api = nullptr;
  std::string name;             // file and version, for error texts
  void* env = nullptr;          // OrtEnv: one for the process, as long as it runs
  void* memory_info = nullptr;  // OrtMemoryInfo of memory of this process
  void* allocator = nullptr;    // OrtAllocator that names come from

  // Calls the function at a place of the table, whose result is a status.
  template <typename... Parameters>
  Error Call(Place place, const char* what, std::type_identity_t<Parameters>... arguments) const {
    const auto function = reinterpret_cast<Status (*)(Parameters...)>(api[place]);
    const Status status = function(arguments...);
    if (status == nullptr) return {};
    const auto message = reinterpret_cast<const char* (*)(Status)>(api[kGetErrorMessage]);
    Error error{ErrorKind::kProgram, name + ": " + what + ": " + message(status)};
    Release(kReleaseStatus, status);
    return error;
  }
  void Release(Place place, void* object) const { reinterpret_cast<void (*)(void*)>(api[place])(object); }
};

namespace {

#define HONE_RETURN_IF_FAILED(expr)                         \
  do {                                                      \
    if (Error error_ = (expr); !error_.ok()) return error_; \
  } while (0)

Error LoadFile(const std::string& file, Library* library) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return {ErrorKind::kAbsent, "cannot load ONNX Runtime: " + std::string(reason != nullptr ? reason : file) +
                                    "; install its C library, or name the file with " + kLibraryVariable};
  }
  const auto base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (base == nullptr) return {ErrorKind::kAbsent, file + " is not ONNX Runtime: it lacks OrtGetApiBase"};
  library->name = "ONNX Runtime " + std::string(base()->version()) + " (" + file + ")";
  library->api = static_cast<void* const*>(base()->get_api(kApiVersion));
  if (library->api != nullptr) return {};
  return {ErrorKind::kAbsent, library->name + " does not have version " + std::to_string(kApiVersion) +
                                  " of its C interface; install ONNX Runtime 1.5 or newer"};
}

// Tries the files in order. The error is that of the first.
Error LoadAny(const std::vector<std::string>& files, Library* library) {
  Error first;
  for (const std::string& file : files) {
    Error error = LoadFile(file, library);
    if (error.ok()) return error;
    if (first.ok()) first = std::move(error);
  }
  return first;
}

Error Start(Library& library) {
  HONE_RETURN_IF_FAILED(
      (library.Call<int, const char*, void**>(kCreateEnv, "cannot start", kLogFatal, "hone", &library.env)));
  HONE_RETURN_IF_FAILED(library.Call<const void*>(kDisableTelemetryEvents, "cannot start", library.env));
  HONE_RETURN_IF_FAILED((library.Call<int, int, void**>(kCreateCpuMemoryInfo, "cannot start", kArenaAllocator,
                                                        kDefaultMemory, &library.memory_info)));
  return library.Call<void**>(kGetAllocatorWithDefaultOptions, "cannot start", &library.allocator);
}

// The library, loaded once. It stays loaded, because it may have threads of its own.
Error FindLibrary(std::shared_ptr<const Library>* library) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Library>>* const loaded =
      new std::map<std::string, std::shared_ptr<const Library>>;
  const char* const named = NamedLibrary();
  const std::string file = named != nullptr ? named : "";
  const std::lock_guard lock(mutex);
  if (const auto known = loaded->find(file); known != loaded->end()) {
    *library = known->second;
    return {};
  }
  auto found = std::make_shared<Library>();
  HONE_RETURN_IF_FAILED(
      LoadAny(file.empty() ? std::vector<std::string>{"libonnxruntime.so.1", "libonnxruntime.so"} : std::vector{file},
              found.get()));
  HONE_RETURN_IF_FAILED(Start(*found));
  *library = (*loaded)[file] = std::move(found);
  return {};
}

// Releases the values when it goes.
struct Values {
  const Library& library;
  std::vector<void*> values = {};  // OrtValue
  ~Values() {
    for (void* const value : values) library.Release(kReleaseValue, value);
  }
  Error Add(const Tensor& tensor) {
    if (tensor.data == nullptr && tensor.bytes > 0) {
      return {ErrorKind::kDevice, "a tensor has a shape but no memory; give every tensor with elements its memory"};
    }
    static int64_t nothing;  // an address for tensors without bytes
    void* value = nullptr;
    HONE_RETURN_IF_FAILED((library.Call<const void*, void*, size_t, const int64_t*, size_t, int, void**>(
        kCreateTensorWithDataAsOrtValue, "a tensor", library.memory_info,
        tensor.data != nullptr ? tensor.data : &nothing, tensor.bytes, tensor.shape.data(), tensor.shape.size(),
        tensor.element_type, &value)));
    values.push_back(value);
    return {};
  }
};

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

const char* NamedLibrary() {
  const char* const value = secure_getenv(kLibraryVariable);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

Session& Session::operator=(Session&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(session_, other.session_);
  std::swap(process_, other.process_);
  std::swap(input_names_, other.input_names_);
  std::swap(output_names_, other.output_names_);
  return *this;
}

Session::~Session() {
  if (session_ != nullptr && IsOfThisProcess()) library_->Release(kReleaseSession, session_);
}

bool Session::IsOfThisProcess() const { return process_ == getpid(); }

Error Session::Open(std::span<const uint8_t> model, int threads, Session* session) {
  Session made;
  HONE_RETURN_IF_FAILED(FindLibrary(&made.library_));
  made.process_ = getpid();
  const Library& api = *made.library_;
  [[maybe_unused]] const SignalsBlocked until_threads_are_made;
  void* raw = nullptr;
  HONE_RETURN_IF_FAILED(api.Call<void**>(kCreateSessionOptions, "cannot load a model", &raw));
  const auto release = [&](void* options) { api.Release(kReleaseSessionOptions, options); };
  const std::unique_ptr<void, decltype(release)> options(raw, release);
  HONE_RETURN_IF_FAILED((api.Call<void*, int>(kSetIntraOpNumThreads, "cannot load a model", options.get(), threads)));
  HONE_RETURN_IF_FAILED((api.Call<void*, const char*, const char*>(
      kAddSessionConfigEntry, "cannot load a model", options.get(), "session.intra_op.allow_spinning", "0")));
  HONE_RETURN_IF_FAILED((api.Call<const void*, const void*, size_t, const void*, void**>(
      kCreateSessionFromArray, "cannot load a part of the model", api.env, model.data(), model.size(), options.get(),
      &made.session_)));
  HONE_RETURN_IF_FAILED(made.ReadNames(true, &made.input_names_));
  HONE_RETURN_IF_FAILED(made.ReadNames(false, &made.output_names_));
  *session = std::move(made);
  return {};
}

Error Session::ReadNames(bool of_inputs, std::vector<std::string>* names) const {
  size_t count = 0;
  HONE_RETURN_IF_FAILED((library_->Call<const void*, size_t*>(
      of_inputs ? kSessionGetInputCount : kSessionGetOutputCount, "cannot read a model", session_, &count)));
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    HONE_RETURN_IF_FAILED((library_->Call<const void*, size_t, void*, char**>(
        of_inputs ? kSessionGetInputName : kSessionGetOutputName, "cannot read a model", session_, i,
        library_->allocator, &name)));
    names->emplace_back(name);
    HONE_RETURN_IF_FAILED(
        (library_->Call<void*, void*>(kAllocatorFree, "cannot read a model", library_->allocator, name)));
  }
  return {};
}

Error Session::Run(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
  Values given{*library_}, made{*library_};
  for (const Tensor& tensor : inputs) HONE_RETURN_IF_FAILED(given.Add(tensor));
  for (const Tensor& tensor : outputs) HONE_RETURN_IF_FAILED(made.Add(tensor));
  const std::vector<const char*> input_names = Pointers(input_names_), output_names = Pointers(output_names_);
  return library_
      ->Call<void*, const void*, const char* const*, const void* const*, size_t, const char* const*, size_t, void**>(
          kRun, "cannot compute a part of the model", session_, nullptr, input_names.data(), given.values.data(),
          given.values.size(), output_names.data(), output_names.size(), made.values.data());
}

}  // namespace hone::drivers::onnx_runtime
