// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/model.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/kernel_abi.h"
#include "deploy/runtime/dtype.h"
#include "deploy/runtime/tensor_copy.h"

namespace hone::runtime {
namespace {

using package::TensorEntry;
using package::TensorKind;

constexpr char kMakeTogether[] = "; compile the package and the program's header of one model, together";
constexpr DLDevice kCpu = {kDLCPU, 0};

// Pinned memory (kDLCUDAHost) is memory of this process, too.
bool IsCpu(DLDevice device) { return device.device_type == kDLCPU || device.device_type == kDLCUDAHost; }

std::string DeviceText(DLDevice device) {
  const bool is_cuda = device.device_type == kDLCUDA || device.device_type == kDLCUDAManaged;
  return (is_cuda ? "CUDA device " : "a device of DLPack type " + std::to_string(device.device_type) + ", number ") +
         std::to_string(device.device_id);
}

Fault CheckThreads(int threads) {
  if (threads >= 0 && threads <= HONE_MAX_THREADS) return {};
  return InvalidArgument("cannot run with " + std::to_string(threads) +
                         " threads; give 0 (one per core of the fastest kind) to " + std::to_string(HONE_MAX_THREADS));
}

std::string Joined(const std::vector<std::string>& texts, const char* between) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : between) + text;
  return joined;
}

std::string TypeText(DLDataType type) {
  if (const package::DTypeTraits* traits = package::FindDType(type)) return std::string(Name(traits->dtype));
  return "DLPack type " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits and " +
         std::to_string(type.lanes) + " lanes";
}

std::span<const int64_t> ShapeOf(const DLTensor& tensor) { return {tensor.shape, static_cast<size_t>(tensor.ndim)}; }
std::span<const int64_t> ShapeOf(const HonePort& port) { return {port.shape, static_cast<size_t>(port.ndim)}; }

// Whether a DLTensor or HonePort from the caller has a valid number of dimensions, and extents if it has any.
template <typename Given>
bool HasShape(const Given& given) {
  return given.ndim == 0 || (given.ndim > 0 && given.shape != nullptr);
}

std::string PortText(const HonePort& port) {
  return "'" + std::string(port.name) + "' " + TypeText(port.dtype) + " " + ShapeText(ShapeOf(port));
}

// "[1..8, 3]", from as many smallest as largest extents.
std::string ShapeRangeText(std::span<const int64_t> least, std::span<const int64_t> largest) {
  std::string text = "[";
  for (size_t d = 0; d < largest.size(); ++d) {
    const std::string low = least[d] == largest[d] ? "" : std::to_string(least[d]) + "..";
    text += (d == 0 ? "" : ", ") + low + std::to_string(largest[d]);
  }
  return text + "]";
}

// Whether two ranges of bytes have a common byte. An empty range overlaps nothing.
bool Overlap(const uint8_t* a, uint64_t a_bytes, const uint8_t* b, uint64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

Fault Model::Load(const std::string& path, const BackendOptions& options, ConstantsCheck check,
                  std::unique_ptr<Model>* model, const BackendLoader& loader) {
  Mapping file;
  HONE_RETURN_IF_FAULT(Mapping::File(path, &file));
  return Load(std::move(file), options, check, model, loader);
}

Fault Model::Load(Mapping file, const BackendOptions& options, ConstantsCheck check, std::unique_ptr<Model>* model,
                  const BackendLoader& loader) {
  HONE_RETURN_IF_FAULT(CheckThreads(options.threads));
  std::unique_ptr<Model> result(new Model);
  result->options_ = options;
  result->loader_ = loader;
  result->file_ = std::move(file);
  HONE_RETURN_IF_FAULT(ViewPackage(result->file_.bytes(), check, &result->package_));
  HONE_RETURN_IF_FAULT(result->LoadPrograms());
  HONE_RETURN_IF_FAULT(result->AllocatePorts());
  const ProgramView& program = *result->program_;
  result->input_set_.assign(program.inputs.size(), false);
  for (const uint32_t id : program.inputs) {
    const std::span<const int64_t> largest = program.Shape(program.tensors[id]);
    result->input_shapes_.emplace_back(largest.begin(), largest.end());
  }
  for (const uint32_t id : program.outputs) {
    const std::span<const int64_t> shape = result->executor().sizes().Shape(id);
    result->output_shapes_.emplace_back(shape.begin(), shape.end());
  }
  result->SetDefaults();
  *model = std::move(result);
  return {};
}

Fault Model::AllocatePorts() {
  const size_t tensors = program_->tensors.size();
  own_offsets_.assign(tensors, 0);
  own_bytes_.assign(tensors, 0);
  uint64_t end = 0;
  for (const std::span<const uint32_t> ids : {program_->inputs, program_->outputs}) {
    for (const uint32_t id : ids) {
      for (const Alternative& a : alternatives_)
        own_bytes_[id] = std::max(own_bytes_[id], a.program->tensors[id].bytes);
      own_offsets_[id] = end;
      end = package::AlignUp(end + own_bytes_[id], package::kTensorAlignment);
    }
  }
  HONE_RETURN_IF_FAULT(Mapping::Pages(end, "inputs and outputs", &io_));
  addresses_.assign(tensors, nullptr);
  devices_.assign(tensors, kCpu);
  for (const std::span<const uint32_t> ids : {program_->inputs, program_->outputs}) {
    for (const uint32_t id : ids) SetPortMemory(id, OwnAddress(id));
  }
  return {};
}

void Model::SetDefaults() {
  for (const package::CopyEntry& copy : program_->defaults) {
    const TensorEntry& source = program_->tensors[copy.source];
    if (source.bytes > 0) {
      std::memcpy(OwnAddress(copy.target), package_.constants.data() + source.offset, source.bytes);
    }
    const auto input = std::find(program_->inputs.begin(), program_->inputs.end(), copy.target);
    input_set_[static_cast<size_t>(input - program_->inputs.begin())] = true;
  }
}

bool Model::InputHasDefault(size_t index) const {
  if (index >= program_->inputs.size()) return false;
  return std::any_of(program_->defaults.begin(), program_->defaults.end(),
                     [&](const package::CopyEntry& copy) { return copy.target == program_->inputs[index]; });
}

int64_t Model::UpdatedInput(size_t output) const {
  if (output >= program_->outputs.size()) return -1;
  for (const package::UpdateEntry& update : program_->updates) {
    if (update.output == program_->outputs[output])
      return static_cast<int64_t>(PositionOf(update.input, program_->inputs));
  }
  return -1;
}

bool Model::IsUpdatedInPlace(uint32_t output, uint32_t input) const {
  return addresses_[output] == addresses_[input] &&
         std::any_of(program_->updates.begin(), program_->updates.end(), [&](const package::UpdateEntry& update) {
           return update.output == output && update.input == input;
         });
}

// A target whose program cannot be loaded is passed over, because memory or a driver may be missing for this one and
// not for the next. Only a damaged program ends the search: then the rest of the file cannot be trusted.
Fault Model::LoadPrograms() {
  Fault fault;
  std::vector<std::string> reasons;
  std::vector<std::string_view> targets;  // those that were tried
  for (const ProgramView& program : package_.programs) {
    const std::string_view target = program.Text(program.target);
    if (std::ranges::find(targets, target) != targets.end()) continue;
    targets.push_back(target);
    Collect(target);
    current_ = &alternatives_.back();
    program_ = current_->program;
    fault = LoadExecutor(*current_, options_);
    if (fault.ok()) {
      passed_over_ = Joined(reasons, "\n");
      return {};
    }
    if (fault.code == HONE_BAD_PACKAGE) return fault;
    std::string& reason = reasons.emplace_back("program for '");
    reason += std::string(target) + "': " + fault.text;
    std::replace(reason.begin(), reason.end(), '\n', ' ');  // a driver's log has several lines; a reason is one line
  }
  if (targets.size() == 1) return fault;
  return {fault.code, "this machine can run none of the package's programs: " + Joined(reasons, "; ")};
}

// Programs for one shape come first, then those with the smallest largest shapes. The last is the current one at first.
void Model::Collect(std::string_view target) {
  std::vector<const ProgramView*> programs;
  for (const ProgramView& program : package_.programs) {
    if (program.Text(program.target) == target) programs.push_back(&program);
  }
  const auto bytes_of = [](const ProgramView& program) {
    uint64_t bytes = 0;
    for (const uint32_t input : program.inputs) bytes += program.tensors[input].bytes;
    return bytes;
  };
  std::ranges::stable_sort(
      programs, {}, [&](const ProgramView* program) { return std::pair(!program->sizes.empty(), bytes_of(*program)); });
  alternatives_.clear();
  alternatives_.reserve(programs.size());
  for (const ProgramView* program : programs) alternatives_.emplace_back(*program);
}

Fault Model::LoadExecutor(Alternative& alternative, const BackendOptions& options) {
  auto executor = std::make_unique<Executor>();
  HONE_RETURN_IF_FAULT(executor->Load(*alternative.program, package_.constants, options, loader_));
  alternative.executor = std::move(executor);
  return {};
}

Fault Model::Use(Alternative& alternative) {
  if (&alternative == current_) return {};
  if (alternative.executor == nullptr) {
    BackendOptions options = options_;
    options.threads = 1;
    options.pool = executor().Pool();
    HONE_RETURN_IF_FAULT(LoadExecutor(alternative, options));
  }
  current_ = &alternative;
  program_ = alternative.program;
  for (const std::span<const uint32_t> ids : {program_->inputs, program_->outputs}) {
    for (const uint32_t id : ids) {
      if (IsCpu(devices_[id])) {
        executor().SetPortMemory(id, addresses_[id]);
      } else {
        executor().PlaceOnDevice(id, devices_[id], addresses_[id]);
      }
    }
  }
  return {};
}

Model::Alternative* Model::FindProgram() {
  const auto found = std::ranges::find_if(alternatives_, [&](Alternative& a) { return a.range.Takes(input_shapes_); });
  return found == alternatives_.end() ? nullptr : &*found;
}

Fault Model::NoProgramTakesShapes() const {
  std::string given;
  std::vector<std::string> taken;
  for (size_t i = 0; i < program_->inputs.size(); ++i) {
    given +=
        (i == 0 ? "'" : ", '") + std::string(PortOf(program_->inputs[i]).name) + "' " + ShapeText(input_shapes_[i]);
  }
  for (const Alternative& alternative : alternatives_) {
    std::string& text = taken.emplace_back();
    for (const uint32_t input : program_->inputs) {
      text += (text.empty() ? "'" : ", '") + std::string(PortOf(input).name) + "' " + RangeText(alternative, input);
    }
  }
  return InvalidArgument("the package does not take inputs of these shapes together: " + given + "; it takes " +
                         Joined(taken, "; or ") + "; compile the model with another --shape in addition");
}

size_t Model::program_number() const { return static_cast<size_t>(program_ - package_.programs.data()); }

uint8_t* Model::OwnAddress(uint32_t tensor) const {
  return own_bytes_[tensor] == 0 ? nullptr : io_.data() + own_offsets_[tensor];
}

void Model::SetPortMemory(uint32_t tensor, uint8_t* address) {
  executor().SetPortMemory(tensor, address);
  SetPortAddress(tensor, kCpu, address);
}

void Model::SetPortAddress(uint32_t tensor, DLDevice device, uint8_t* address) {
  if (addresses_[tensor] != address) known_disjoint_ = false;
  addresses_[tensor] = address;
  devices_[tensor] = device;
}

Fault Model::Bind(uint32_t tensor, const DLTensor* given) {
  if (given == nullptr) {
    SetPortMemory(tensor, OwnAddress(tensor));
    return {};
  }
  HONE_RETURN_IF_FAULT(CheckBindable(tensor, *given));
  uint8_t* const address = static_cast<uint8_t*>(given->data) + given->byte_offset;
  if (IsCpu(given->device)) {
    SetPortMemory(tensor, address);
  } else if (executor().PlaceOnDevice(tensor, given->device, address)) {
    SetPortAddress(tensor, given->device, address);
  } else {
    return WrongPlace(tensor, given->device);
  }
  return {};
}

Fault Model::WrongPlace(uint32_t tensor, DLDevice device) const {
  const std::string bound = executor().DeviceTaken(tensor);
  return InvalidArgument("tensor for '" + std::string(PortOf(tensor).name) + "' is on " + DeviceText(device) +
                         "; the program that runs takes CPU memory" +
                         (bound.empty() ? " alone" : " and, to be bound, that of " + bound));
}

Fault Model::CheckIndex(size_t index, std::span<const uint32_t> ids, const char* what) const {
  if (index < ids.size()) return {};
  return InvalidArgument("no " + std::string(what) + " " + std::to_string(index) + ": the model has " +
                         std::to_string(ids.size()));
}

Fault Model::CheckTensor(uint32_t tensor, const DLTensor& given) const {
  const HonePort port = PortOf(tensor);
  // Only an error makes the text: a run after the first one must not allocate.
  const auto what = [&] { return "tensor for '" + std::string(port.name) + "'"; };
  if (TypeText(given.dtype) != TypeText(port.dtype)) {
    return InvalidArgument(what() + " has type " + TypeText(given.dtype) + ", the model wants " + TypeText(port.dtype));
  }
  if (!HasShape(given)) return InvalidArgument(what() + " has no shape");
  if (!FitsShape(tensor, ShapeOf(given))) return WrongShape(tensor, ShapeOf(given), what() + " has shape");
  uint64_t bytes = given.dtype.bits / 8;
  for (const int64_t extent : ShapeOf(given)) bytes *= static_cast<uint64_t>(extent);
  if (given.data == nullptr && bytes > 0) return InvalidArgument(what() + " has no data");
  return {};
}

// An input may have any shape within the range of a program. An output has the shape that follows from the inputs,
// which may not be known yet: memory for the largest shape is always enough.
int64_t Model::LeastExtent(uint32_t tensor, size_t dimension) const {
  if (program_->tensors[tensor].kind != TensorKind::kInput) return MostExtent(tensor, dimension);
  int64_t least = INT64_MAX;
  for (const Alternative& a : alternatives_) least = std::min(least, a.range.MinExtent(tensor, dimension));
  return least;
}

int64_t Model::MostExtent(uint32_t tensor, size_t dimension) const {
  int64_t most = 0;
  for (const Alternative& a : alternatives_) most = std::max(most, a.range.MaxExtent(tensor, dimension));
  return most;
}

bool Model::FitsShape(uint32_t tensor, std::span<const int64_t> shape) const {
  const TensorEntry& entry = program_->tensors[tensor];
  if (shape.size() != entry.rank) return false;
  const auto fits = [&](const auto& least, const auto& most) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < least(d) || shape[d] > most(d)) return false;
    }
    return true;
  };
  if (entry.kind != TensorKind::kInput) {
    const auto most = [&](size_t d) { return MostExtent(tensor, d); };
    return fits(most, most);
  }
  return std::ranges::any_of(alternatives_, [&](const Alternative& a) {
    return fits([&](size_t d) { return a.range.MinExtent(tensor, d); },
                [&](size_t d) { return a.range.MaxExtent(tensor, d); });
  });
}

std::string Model::RangeText(uint32_t tensor) const {
  std::vector<int64_t> least, most;
  for (size_t d = 0; d < program_->tensors[tensor].rank; ++d) {
    least.push_back(LeastExtent(tensor, d));
    most.push_back(MostExtent(tensor, d));
  }
  return ShapeRangeText(least, most);
}

std::string Model::RangeText(const Alternative& alternative, uint32_t input) {
  std::vector<int64_t> least, most;
  for (size_t d = 0; d < alternative.program->tensors[input].rank; ++d) {
    least.push_back(alternative.range.MinExtent(input, d));
    most.push_back(alternative.range.MaxExtent(input, d));
  }
  return ShapeRangeText(least, most);
}

Fault Model::WrongShape(uint32_t tensor, std::span<const int64_t> shape, const std::string& what) const {
  std::vector<std::string> taken;
  if (program_->tensors[tensor].kind == TensorKind::kInput) {
    for (const Alternative& alternative : alternatives_) taken.push_back(RangeText(alternative, tensor));
  } else {
    taken.push_back(RangeText(tensor));
  }
  return InvalidArgument(what + " " + ShapeText(shape) + ", the model wants " + Joined(taken, " or "));
}

std::span<const int64_t> Model::ShapeOfPort(uint32_t tensor) const {
  if (program_->tensors[tensor].kind == TensorKind::kInput) return input_shapes_[PositionOf(tensor, program_->inputs)];
  return output_shapes_[PositionOf(tensor, program_->outputs)];
}

uint64_t Model::BytesOfPort(uint32_t tensor) const {
  uint64_t bytes = package::SizeOf(program_->tensors[tensor].dtype);
  for (const int64_t extent : ShapeOfPort(tensor)) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

size_t Model::PositionOf(uint32_t port, std::span<const uint32_t> ids) {
  return static_cast<size_t>(std::find(ids.begin(), ids.end(), port) - ids.begin());
}

Fault Model::InputRange(size_t index, int64_t* min, int64_t* max, size_t room) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  const uint32_t id = program_->inputs[index];
  const size_t rank = program_->tensors[id].rank;
  if (room != rank) {
    return InvalidArgument("room for " + std::to_string(room) + " extents, the input has " + std::to_string(rank));
  }
  for (size_t d = 0; d < rank; ++d) {
    min[d] = LeastExtent(id, d);
    max[d] = MostExtent(id, d);
  }
  return {};
}

Fault Model::CheckInputRange(size_t index, std::span<const int64_t> min, std::span<const int64_t> max) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  const std::string wanted = ShapeRangeText(min, max), found = RangeText(program_->inputs[index]);
  if (wanted == found) return {};
  return InvalidArgument("the range of input '" + std::string(PortOf(program_->inputs[index]).name) +
                         "' of the package is " + found + ", this program is made for " + wanted + kMakeTogether);
}

Fault Model::Resize(size_t index, std::span<const int64_t> shape) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  const uint32_t id = program_->inputs[index];
  if (!FitsShape(id, shape)) {
    return WrongShape(id, shape, "input '" + std::string(PortOf(id).name) + "' cannot be resized to");
  }
  SetShape(index, shape);
  return {};
}

void Model::SetShape(size_t index, std::span<const int64_t> shape) {
  if (std::ranges::equal(input_shapes_[index], shape)) return;
  std::ranges::copy(shape, input_shapes_[index].begin());
  sizes_are_set_ = false;
  if (alternatives_.size() == 1) return;
  // The shapes of other inputs may follow: a run tells whether they fit. The calls of the program can be asked for now.
  if (Alternative* const found = FindProgram()) static_cast<void>(Use(*found));
}

Fault Model::CheckBindable(uint32_t tensor, const DLTensor& given) const {
  HONE_RETURN_IF_FAULT(CheckTensor(tensor, given));
  const std::string what = "tensor for '" + std::string(PortOf(tensor).name) + "'";
  if (!IsCompact(given)) return InvalidArgument(what + " has gaps between its elements; copy it to compact memory");
  const uint8_t* start = static_cast<const uint8_t*>(given.data) + given.byte_offset;
  const bool on_cpu = IsCpu(given.device);  // device memory is copied before kernels use it
  const size_t alignment = on_cpu ? HONE_BUFFER_ALIGNMENT : given.dtype.bits / 8;
  if (reinterpret_cast<uintptr_t>(start) % alignment != 0) {
    return InvalidArgument(what + " does not start on a multiple of " + std::to_string(alignment) + " bytes" +
                           (on_cpu ? "; align it, or let the model copy it" : ", the size of an element; align it"));
  }
  return {};
}

Fault Model::CheckDisjoint(uint32_t output, uint32_t other) const {
  const TensorEntry &written = program_->tensors[output], &entry = program_->tensors[other];
  const uint64_t bytes =
      entry.kind == TensorKind::kInput ? BytesOfPort(other) : entry.bytes;  // a run may enlarge outputs
  const auto overlaps = [&](const uint8_t* address) {
    return Overlap(addresses_[output], written.bytes, address, bytes);
  };
  // The model's own buffer of a bound input counts, too, because hone_set_input writes to it and ends the binding.
  const bool is_input = entry.kind == TensorKind::kInput;
  if (output == other || !(overlaps(addresses_[other]) || (is_input && overlaps(OwnAddress(other))))) return {};
  if (is_input && IsUpdatedInPlace(output, other)) return {};
  return InvalidArgument("output '" + std::string(program_->Text(written.name)) + "' overlaps the memory of '" +
                         std::string(program_->Text(entry.name)) + "'; bind other memory to one of them");
}

HonePort Model::PortOf(uint32_t tensor) const {
  const TensorEntry& entry = program_->tensors[tensor];
  return {program_->Text(entry.name).data(), package::FindDType(entry.dtype)->dlpack, entry.rank,
          ShapeOfPort(tensor).data(), BytesOfPort(tensor)};
}

DLTensor Model::ViewOf(uint32_t tensor) const {
  const HonePort port = PortOf(tensor);
  // DLTensor::shape is not const, but the DLPack standard asks readers not to write it.
  return {addresses_[tensor], devices_[tensor], port.ndim, port.dtype, const_cast<int64_t*>(port.shape), nullptr, 0};
}

Fault Model::InputPort(size_t index, HonePort* port) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  *port = PortOf(program_->inputs[index]);
  return {};
}

Fault Model::OutputPort(size_t index, HonePort* port) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->outputs, "output"));
  *port = PortOf(program_->outputs[index]);
  return {};
}

Fault Model::CheckPorts(std::span<const HonePort> wanted, std::span<const uint32_t> ids, const char* what) const {
  if (wanted.size() != ids.size()) {
    return InvalidArgument("the number of " + std::string(what) + "s of the package is " + std::to_string(ids.size()) +
                           ", this program is made for " + std::to_string(wanted.size()) + kMakeTogether);
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (wanted[i].name == nullptr || !HasShape(wanted[i])) {
      return InvalidArgument(std::string(what) + " " + std::to_string(i) +
                             " of those to compare with has no name or no shape");
    }
    HonePort largest = PortOf(ids[i]);
    std::vector<int64_t> shape;
    for (size_t d = 0; d < program_->tensors[ids[i]].rank; ++d) shape.push_back(MostExtent(ids[i], d));
    largest.shape = shape.data();
    const std::string found = PortText(largest);
    if (found == PortText(wanted[i])) continue;
    return InvalidArgument(std::string(what) + " " + std::to_string(i) + " of the package is " + found +
                           ", this program is made for " + PortText(wanted[i]) + kMakeTogether);
  }
  return {};
}

Fault Model::CheckPorts(std::span<const HonePort> inputs, std::span<const HonePort> outputs) const {
  HONE_RETURN_IF_FAULT(CheckPorts(inputs, program_->inputs, "input"));
  return CheckPorts(outputs, program_->outputs, "output");
}

Fault Model::SetInput(size_t index, const DLTensor& tensor) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  const uint32_t id = program_->inputs[index];
  HONE_RETURN_IF_FAULT(CheckTensor(id, tensor));
  if (!IsCpu(tensor.device)) return WrongPlace(id, tensor.device);
  CopyToCompact(tensor, OwnAddress(id));  // first, because it may throw for lack of memory: a failure changes nothing
  SetShape(index, ShapeOf(tensor));
  SetPortMemory(id, OwnAddress(id));
  input_set_[index] = true;
  return {};
}

Fault Model::InputView(size_t index, DLTensor* view) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  const uint32_t id = program_->inputs[index];
  if (!IsBound(id)) input_set_[index] = true;
  *view = ViewOf(id);
  return {};
}

Fault Model::BindInput(size_t index, const DLTensor* tensor) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->inputs, "input"));
  HONE_RETURN_IF_FAULT(Bind(program_->inputs[index], tensor));
  if (tensor != nullptr) SetShape(index, ShapeOf(*tensor));
  return {};
}

Fault Model::BindOutput(size_t index, const DLTensor* tensor) {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->outputs, "output"));
  return Bind(program_->outputs[index], tensor);
}

Fault Model::OutputView(size_t index, DLTensor* view) const {
  HONE_RETURN_IF_FAULT(CheckIndex(index, program_->outputs, "output"));
  *view = ViewOf(program_->outputs[index]);
  return {};
}

Fault Model::CheckReadyToRun() {
  for (size_t i = 0; i < input_set_.size(); ++i) {
    const uint32_t id = program_->inputs[i];
    if (input_set_[i] || IsBound(id) || BytesOfPort(id) == 0) continue;
    return InvalidArgument("input '" + std::string(PortOf(id).name) + "' has never been set");
  }
  if (!sizes_are_set_) {
    if (alternatives_.size() > 1) {
      Alternative* const found = FindProgram();
      if (found == nullptr) return NoProgramTakesShapes();
      HONE_RETURN_IF_FAULT(Use(*found));
    }
    HONE_RETURN_IF_FAULT(executor().sizes().Set(input_shapes_));
    SetOutputShapes();
    sizes_are_set_ = true;
    known_disjoint_ = false;
  }
  if (known_disjoint_) return {};
  for (const uint32_t output : program_->outputs) {
    for (const uint32_t id : program_->inputs) HONE_RETURN_IF_FAULT(CheckDisjoint(output, id));
    for (const uint32_t id : program_->outputs) HONE_RETURN_IF_FAULT(CheckDisjoint(output, id));
  }
  known_disjoint_ = true;
  return {};
}

void Model::SetOutputShapes() {
  for (size_t i = 0; i < output_shapes_.size(); ++i) {
    std::ranges::copy(executor().sizes().Shape(program_->outputs[i]), output_shapes_[i].begin());
  }
}

Fault Model::RunExecutor(std::span<int64_t> nanoseconds, const Executor::Watch& watch) {
  const Fault fault = watch ? executor().RunWatched(watch) : executor().Run(nanoseconds);
  if (!program_->actions.empty()) SetOutputShapes();
  return fault;
}

Fault Model::Run() {
  HONE_RETURN_IF_FAULT(CheckReadyToRun());
  return RunExecutor({});
}

Fault Model::RunProfiled(std::span<int64_t> nanoseconds) {
  HONE_RETURN_IF_FAULT(CheckReadyToRun());
  if (nanoseconds.size() != program_->calls.size()) {
    return InvalidArgument("room for " + std::to_string(nanoseconds.size()) + " times, the model has " +
                           std::to_string(program_->calls.size()) + " calls");
  }
  return RunExecutor(nanoseconds);
}

Fault Model::RunWatched(HoneWatch watch, void* context) {
  HONE_RETURN_IF_FAULT(CheckReadyToRun());
  return RunExecutor({}, [&](uint32_t call, uint32_t tensor, uint8_t* data) {
    const std::span<const int64_t> shape = executor().sizes().Shape(tensor);
    const DLTensor view = {data,
                           kCpu,
                           static_cast<int32_t>(shape.size()),
                           package::FindDType(program_->tensors[tensor].dtype)->dlpack,
                           const_cast<int64_t*>(shape.data()),
                           nullptr,
                           0};
    for (const package::ValueEntry& held : program_->ValuesOf(tensor)) {
      const HoneValue value = {
          program_->Text(held.name).data(),       call, tensor, view, static_cast<int32_t>(held.rank),
          program_->value_axes.data() + held.axes};
      watch(context, &value);
    }
  });
}

Fault Model::Border(size_t index, HoneBorder* border) const {
  if (index >= program_->borders.size()) {
    return InvalidArgument("no border " + std::to_string(index) + ": the program has " +
                           std::to_string(program_->borders.size()));
  }
  const package::BorderEntry& entry = program_->borders[index];
  const TensorEntry &source = program_->tensors[entry.source], &target = program_->tensors[entry.target];
  const auto target_of = [this](uint32_t home) {
    return program_->Text(program_->units[program_->homes[home].units.front()].entry.target).data();
  };
  *border = {target_of(source.home), target_of(target.home), entry.call, source.bytes,
             executor().border_nanoseconds()[index]};
  return {};
}

Fault Model::SetThreads(int threads) {
  HONE_RETURN_IF_FAULT(CheckThreads(threads));
  executor().SetThreads(threads);
  for (Alternative& other : alternatives_) {
    if (&other != current_ && other.executor != nullptr) other.executor->ShareThreads(executor());
  }
  return {};
}

}  // namespace hone::runtime
