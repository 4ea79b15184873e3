// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/hone.h"

#include <pthread.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "deploy/runtime/model.h"

struct HoneModel {
  std::unique_ptr<hone::runtime::Model> model;
};

namespace {

using hone::runtime::ConstantsCheck;
using hone::runtime::Fault;
using hone::runtime::InvalidArgument;
using hone::runtime::Mapping;

// The text of hone_error, one per thread as errno is, so that a thread sees only its own failures.
thread_local std::string last_error;

// Disables pthread_cancel for its lifetime. A cancelled thread unwinds from the point where it waits. That point may be
// in a destructor, which must not unwind. And a device may still use memory that the caller then frees.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Stores the text of a failure for hone_error.
HoneStatus Report(Fault fault) {
  if (!fault.ok()) last_error = std::move(fault.text);
  return fault.code;
}

// Runs the body of a C function and turns exceptions into a status. The runtime throws none itself; those of the
// standard library mean that the system lacks memory or another resource.
template <typename Body>
HoneStatus Guard(const Body& body) {
  const NotCancelled until_it_ends;
  try {
    return Report(body());
  } catch (const std::bad_alloc&) {
    return Report({HONE_OUT_OF_MEMORY, "out of memory"});
  } catch (const std::exception& error) {
    return Report({HONE_OUT_OF_MEMORY, std::string("the system refused a resource: ") + error.what()});
  }
}

Fault NullPointer(const char* what) { return InvalidArgument(std::string(what) + " is null"); }

// map(mapping) maps the package.
template <typename Map>
Fault Load(const Map& map, const HoneLoadOptions* options, HoneModel** model) {
  constexpr size_t kFirstVersionBytes = offsetof(HoneLoadOptions, flags) + sizeof(HoneLoadOptions::flags);
  HoneLoadOptions chosen = {};
  if (options != nullptr) {
    if (options->struct_bytes < kFirstVersionBytes) {
      return InvalidArgument("struct_bytes of the options is not set to their size");
    }
    std::memcpy(&chosen, options, options->struct_bytes < sizeof chosen ? kFirstVersionBytes : sizeof chosen);
  }
  constexpr uint32_t kFlags = HONE_LOAD_TRUST_CONSTANTS | HONE_LOAD_ALLOW_ONNX_RUNTIME;
  if ((chosen.flags & ~kFlags) != 0) return InvalidArgument("unknown flag in the load options");
  const bool trust = (chosen.flags & HONE_LOAD_TRUST_CONSTANTS) != 0;
  auto result = std::make_unique<HoneModel>();
  const hone::runtime::BackendOptions backends = {
      .threads = chosen.threads,
      .allows_onnx_runtime = (chosen.flags & HONE_LOAD_ALLOW_ONNX_RUNTIME) != 0,
      .device = chosen.device == nullptr ? "" : chosen.device};
  Mapping file;
  HONE_RETURN_IF_FAULT(map(&file));
  HONE_RETURN_IF_FAULT(hone::runtime::Model::Load(
      std::move(file), backends, trust ? ConstantsCheck::kTrust : ConstantsCheck::kFull, &result->model));
  *model = result.release();
  return {};
}

}  // namespace

const char* hone_error(void) { return last_error.c_str(); }

const char* hone_version(void) { return HONE_VERSION; }

HoneStatus hone_load(const char* path, const HoneLoadOptions* options, HoneModel** model) {
  return Guard([&]() -> Fault {
    if (path == nullptr || model == nullptr) return NullPointer("path or model");
    return Load([&](Mapping* file) { return Mapping::File(path, file); }, options, model);
  });
}

HoneStatus hone_load_file(int file, const char* name, const HoneLoadOptions* options, HoneModel** model) {
  return Guard([&]() -> Fault {
    if (model == nullptr) return NullPointer("model");
    const std::string shown = name == nullptr ? "the package" : "package '" + std::string(name) + "'";
    return Load([&](Mapping* mapping) { return Mapping::OpenFile(file, shown, mapping); }, options, model);
  });
}

void hone_free(HoneModel* model) {
  const NotCancelled until_it_ends;
  delete model;
}

const char* hone_target(const HoneModel* model) {
  const hone::runtime::ProgramView& program = model->model->program();
  return program.Text(program.target).data();
}

const char* hone_passed_over(const HoneModel* model) { return model->model->passed_over().c_str(); }

size_t hone_program(const HoneModel* model) { return model->model->program_number(); }

size_t hone_input_count(const HoneModel* model) { return model->model->program().inputs.size(); }

size_t hone_output_count(const HoneModel* model) { return model->model->program().outputs.size(); }

HoneStatus hone_input(const HoneModel* model, size_t index, HonePort* port) {
  return Guard([&] { return port == nullptr ? NullPointer("port") : model->model->InputPort(index, port); });
}

HoneStatus hone_output(const HoneModel* model, size_t index, HonePort* port) {
  return Guard([&] { return port == nullptr ? NullPointer("port") : model->model->OutputPort(index, port); });
}

HoneStatus hone_input_range(const HoneModel* model, size_t index, int64_t* min, int64_t* max, int32_t ndim) {
  return Guard([&] {
    if (ndim < 0) return InvalidArgument("an input cannot have " + std::to_string(ndim) + " dimensions");
    if (ndim > 0 && (min == nullptr || max == nullptr)) return NullPointer(min == nullptr ? "min" : "max");
    return model->model->InputRange(index, min, max, static_cast<size_t>(ndim));
  });
}

HoneStatus hone_check_input_range(const HoneModel* model, size_t index, const int64_t* min, const int64_t* max,
                                  int32_t ndim) {
  return Guard([&] {
    if (ndim < 0) return InvalidArgument("an input cannot have " + std::to_string(ndim) + " dimensions");
    if (ndim > 0 && (min == nullptr || max == nullptr)) return NullPointer(min == nullptr ? "min" : "max");
    const auto rank = static_cast<size_t>(ndim);
    return model->model->CheckInputRange(index, {min, rank}, {max, rank});
  });
}

HoneStatus hone_resize(HoneModel* model, size_t index, const int64_t* shape, int32_t ndim) {
  return Guard([&] {
    if (ndim < 0) return InvalidArgument("an input cannot have " + std::to_string(ndim) + " dimensions");
    if (ndim > 0 && shape == nullptr) return NullPointer("shape");
    return model->model->Resize(index, {shape, static_cast<size_t>(ndim)});
  });
}

int32_t hone_input_has_default(const HoneModel* model, size_t index) {
  return model->model->InputHasDefault(index) ? 1 : 0;
}

int64_t hone_updated_input(const HoneModel* model, size_t output) { return model->model->UpdatedInput(output); }

HoneStatus hone_check_ports(const HoneModel* model, const HonePort* inputs, size_t input_count, const HonePort* outputs,
                            size_t output_count) {
  return Guard([&] {
    if ((inputs == nullptr && input_count > 0) || (outputs == nullptr && output_count > 0)) {
      return NullPointer("inputs or outputs");
    }
    return model->model->CheckPorts(std::span(inputs, input_count), std::span(outputs, output_count));
  });
}

HoneStatus hone_set_input(HoneModel* model, size_t index, const DLTensor* tensor) {
  return Guard([&] { return tensor == nullptr ? NullPointer("tensor") : model->model->SetInput(index, *tensor); });
}

HoneStatus hone_get_input(HoneModel* model, size_t index, DLTensor* view) {
  return Guard([&] { return view == nullptr ? NullPointer("view") : model->model->InputView(index, view); });
}

HoneStatus hone_bind_input(HoneModel* model, size_t index, const DLTensor* tensor) {
  return Guard([&] { return model->model->BindInput(index, tensor); });
}

HoneStatus hone_bind_output(HoneModel* model, size_t index, const DLTensor* tensor) {
  return Guard([&] { return model->model->BindOutput(index, tensor); });
}

HoneStatus hone_prepare(HoneModel* model) {
  return Guard([&] { return model->model->Prepare(); });
}

HoneStatus hone_run(HoneModel* model) {
  return Guard([&] { return model->model->Run(); });
}

HoneStatus hone_get_output(const HoneModel* model, size_t index, DLTensor* view) {
  return Guard([&] { return view == nullptr ? NullPointer("view") : model->model->OutputView(index, view); });
}

HoneStatus hone_set_threads(HoneModel* model, int32_t threads) {
  return Guard([&] { return model->model->SetThreads(threads); });
}

int32_t hone_threads(const HoneModel* model) { return model->model->threads(); }

size_t hone_call_count(const HoneModel* model) { return model->model->program().calls.size(); }

const char* hone_call_symbol(const HoneModel* model, size_t index) {
  const hone::runtime::ProgramView& program = model->model->program();
  return index < program.calls.size() ? program.Kernel(program.calls[index]).name.c_str() : nullptr;
}

const char* hone_call_target(const HoneModel* model, size_t index) {
  const hone::runtime::ProgramView& program = model->model->program();
  if (index >= program.calls.size()) return nullptr;
  return program.Text(program.Unit(program.calls[index]).entry.target).data();
}

size_t hone_call_node_count(const HoneModel* model, size_t call) {
  return model->model->program().NodesOf(call).size();
}

const char* hone_call_node(const HoneModel* model, size_t call, size_t index) {
  const hone::runtime::ProgramView& program = model->model->program();
  const auto nodes = program.NodesOf(call);
  return index < nodes.size() ? program.Text(program.nodes[nodes[index].node].name).data() : nullptr;
}

const char* hone_call_node_operator(const HoneModel* model, size_t call, size_t index) {
  const hone::runtime::ProgramView& program = model->model->program();
  const auto nodes = program.NodesOf(call);
  return index < nodes.size() ? program.Text(program.nodes[nodes[index].node].op).data() : nullptr;
}

size_t hone_border_count(const HoneModel* model) { return model->model->program().borders.size(); }

HoneStatus hone_border(const HoneModel* model, size_t index, HoneBorder* border) {
  return Guard([&] { return border == nullptr ? NullPointer("border") : model->model->Border(index, border); });
}

HoneStatus hone_run_profiled(HoneModel* model, int64_t* nanoseconds, size_t count) {
  return Guard([&]() -> Fault {
    if (nanoseconds == nullptr && count > 0) return NullPointer("nanoseconds");
    return model->model->RunProfiled({nanoseconds, count});
  });
}

HoneStatus hone_run_watched(HoneModel* model, HoneWatch watch, void* context) {
  return Guard([&] { return watch == nullptr ? NullPointer("watch") : model->model->RunWatched(watch, context); });
}

const char* hone_metadata(const HoneModel* model, size_t* bytes) {
  const std::string_view metadata = model->model->metadata();
  if (bytes != nullptr) *bytes = metadata.size();
  return metadata.data();
}
