// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace hone::runtime {

using package::ActionEntry;
using package::ActionOp;
using package::BorderEntry;

Fault Executor::Load(const ProgramView& program, std::span<const uint8_t> constants, const BackendOptions& options,
                     const BackendLoader& loader) {
  program_ = &program;
  backends_.clear();
  sizes_ = std::make_unique<SizeValues>(program);
  for (uint32_t home = 0; home < program.homes.size(); ++home) {
    Fault fault = loader(program, home, constants, options, &backends_.emplace_back());
    if (fault.ok()) fault = backends_.back()->SetSizes(*sizes_);
    if (fault.ok()) continue;
    if (program.homes.size() > 1 && fault.code != HONE_BAD_PACKAGE) {
      const package::UnitEntry& unit = program.units[program.homes[home].units.front()].entry;
      fault.text = "unit for '" + std::string(program.Text(unit.target)) + "': " + fault.text;
    }
    return fault;
  }
  MakeParts();
  border_nanoseconds_.assign(program.borders.size(), 0);
  return AllocateStaging();
}

// A segment ends where the next call is another home's, or where a border or an action comes before the next call.
void Executor::MakeParts() {
  parts_.clear();
  std::vector<uint32_t> segments(backends_.size(), 0);
  uint32_t border = 0, action = 0;
  // Actions may read inputs and jump over calls, so inputs are handed over before all of them.
  for (uint32_t home = 0; home < backends_.size() && !program_->actions.empty(); ++home) {
    parts_.push_back({home, 0, 0, 0, 0, {segments[home]++, 0, 0, /*begins=*/true, /*ends=*/false}});
  }
  for (uint32_t call = 0; call < program_->calls.size(); ++call) {
    const uint32_t home = program_->Home(program_->calls[call]);
    uint32_t end_border = border, end_action = action;
    while (end_border < program_->borders.size() && program_->borders[end_border].call == call) ++end_border;
    while (end_action < program_->actions.size() && program_->actions[end_action].call == call) ++end_action;
    if (call == 0 || parts_.back().home != home || end_border > border || end_action > action) {
      const uint32_t number = segments[home]++;
      parts_.push_back(
          {home, action, end_action, border, end_border, {number, call, call, /*begins=*/number == 0, /*ends=*/false}});
    }
    parts_.back().segment.end = call + 1;
    border = end_border;
    action = end_action;
  }
  CompleteParts(segments, border);
  part_of_action_.clear();
  for (uint32_t part = 0; part < parts_.size(); ++part) {
    part_of_action_.insert(part_of_action_.end(), parts_[part].end_action - parts_[part].first_action, part);
  }
}

void Executor::CompleteParts(std::vector<uint32_t>& segments, uint32_t border) {
  const auto actions = static_cast<uint32_t>(program_->actions.size()),
             calls = static_cast<uint32_t>(program_->calls.size());
  for (uint32_t home = 0; home < backends_.size() && actions > 0; ++home) {  // a jump may pass over its last call
    const uint32_t first = parts_.back().end_action;
    parts_.push_back(
        {home, first, actions, border, border, {segments[home]++, calls, calls, /*begins=*/false, /*ends=*/false}});
  }
  for (uint32_t home = 0; home < backends_.size(); ++home) {
    const auto last = std::find_if(parts_.rbegin(), parts_.rend(), [home](const Part& p) { return p.home == home; });
    if (last != parts_.rend()) {
      last->segment.ends = true;
    } else {  // without calls, it may still have copies
      parts_.push_back({home, actions, actions, border, border, {0, 0, 0, /*begins=*/true, /*ends=*/true}});
    }
  }
}

Fault Executor::AllocateStaging() {
  uint64_t bytes = 0;
  for (const BorderEntry& border : program_->borders) {
    const package::TensorEntry &source = program_->tensors[border.source], &target = program_->tensors[border.target];
    const bool between_devices = program_->homes[source.home].has_lanes && program_->homes[target.home].has_lanes;
    if (between_devices) bytes = std::max(bytes, source.bytes);
  }
  for (const ActionEntry& action : program_->actions) {
    if (action.op == ActionOp::kCopy || action.op == ActionOp::kCopyRow) {
      bytes = std::max(bytes, CrossesDevices(action) ? program_->tensors[action.b].bytes : 0);
    }
  }
  return Mapping::Pages(bytes, "copies between devices", &staging_);
}

bool Executor::CrossesDevices(const ActionEntry& copy) const {
  const uint32_t from = program_->tensors[copy.b].home, to = program_->tensors[copy.a].home;
  return from != to && program_->homes[from].has_lanes && program_->homes[to].has_lanes;
}

bool Executor::Uses(uint32_t home, uint32_t port) const {
  const HomeView& view = program_->homes[home];
  const auto& ports = program_->tensors[port].kind == package::TensorKind::kInput ? view.inputs : view.outputs;
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

std::optional<uint32_t> Executor::OnlyHomeOf(uint32_t port) const {
  std::optional<uint32_t> only;
  for (uint32_t home = 0; home < backends_.size(); ++home) {
    if (!Uses(home, port)) continue;
    if (only.has_value()) return std::nullopt;
    only = home;
  }
  return only;
}

void Executor::SetPortMemory(uint32_t tensor, uint8_t* host) {
  for (uint32_t home = 0; home < backends_.size(); ++home) {
    if (Uses(home, tensor)) backends_[home]->SetPortMemory(tensor, host);
  }
}

bool Executor::PlaceOnDevice(uint32_t tensor, DLDevice device, void* memory) {
  const std::optional<uint32_t> home = OnlyHomeOf(tensor);
  return home.has_value() && backends_[*home]->PlaceOnDevice(tensor, device, memory);
}

std::string Executor::DeviceTaken(uint32_t tensor) const {
  const std::optional<uint32_t> home = OnlyHomeOf(tensor);
  return home.has_value() ? backends_[*home]->DeviceTaken() : "";
}

Fault Executor::Run(std::span<int64_t> nanoseconds) { return RunOrWait(nanoseconds, nullptr); }

Fault Executor::RunWatched(const Watch& watch) { return RunOrWait({}, &watch); }

// Calls that are timed run by themselves on every back end, also on one that else records a graph of a segment.
Fault Executor::WatchSegment(const Part& part, const Watch& watch) {
  std::vector<int64_t> nanoseconds(program_->calls.size());
  Segment one = part.segment;
  one.ends = false;
  for (uint32_t call = part.segment.first; call < part.segment.end; ++call) {
    one.first = call;
    one.end = call + 1;
    HONE_RETURN_IF_FAULT(backends_[part.home]->Run(one, nanoseconds));
    HONE_RETURN_IF_FAULT(Show(call, watch));
    one.begins = false;
  }
  one.first = one.end;
  one.ends = part.segment.ends;
  return backends_[part.home]->Run(one, nanoseconds);
}

Fault Executor::Show(uint32_t call, const Watch& watch) {
  const KernelInterface& kernel = program_->Kernel(program_->calls[call]);
  const std::span<const uint32_t> arguments = program_->Arguments(program_->calls[call]);
  std::vector<uint8_t> copy;
  for (const uint32_t a : kernel.Of(BufferRole::kOutput)) {
    const uint32_t tensor = arguments[a];
    if (tensor == package::kNoTensor || program_->ValuesOf(tensor).empty()) continue;
    Backend& backend = *backends_[program_->tensors[tensor].home];
    uint8_t* data = backend.HostMemory(tensor);
    if (data == nullptr) {
      copy.resize(sizes_->Bytes(tensor));
      HONE_RETURN_IF_FAULT(backend.ReadBytes(tensor, copy));
      data = copy.data();
    }
    if (sizes_->Bytes(tensor) == 0) data = nullptr;
    watch(call, tensor, data);
  }
  return {};
}

Fault Executor::RunOrWait(std::span<int64_t> nanoseconds, const Watch* watch) {
  Fault fault;
  try {
    fault = RunParts(nanoseconds, watch);
  } catch (...) {  // of a watch, or for want of memory
    WaitForAll();
    throw;
  }
  if (!fault.ok()) WaitForAll();
  return fault;
}

// After an error. Other back ends may still use memory of the caller, who may then free it.
void Executor::WaitForAll() {
  for (const std::unique_ptr<Backend>& backend : backends_) static_cast<void>(backend->Wait());
}

Fault Executor::RunParts(std::span<int64_t> nanoseconds, const Watch* watch) {
  std::ranges::fill(nanoseconds, 0);
  for (uint32_t next = 0; next < parts_.size(); ++next) {
    HONE_RETURN_IF_FAULT(DoActions(&next));
    const Part& part = parts_[next];
    for (uint32_t b = part.first_border; b < part.end_border; ++b) {
      const auto start = std::chrono::steady_clock::now();
      HONE_RETURN_IF_FAULT(Cross(program_->borders[b]));
      if (nanoseconds.empty()) continue;
      const auto time = std::chrono::steady_clock::now() - start;
      border_nanoseconds_[b] = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    }
    HONE_RETURN_IF_FAULT(watch == nullptr ? backends_[part.home]->Run(part.segment, nanoseconds)
                                          : WatchSegment(part, *watch));
  }
  return {};
}

Fault Executor::DoActions(uint32_t* part) {
  for (uint32_t action = parts_[*part].first_action; action != parts_[*part].end_action;) {
    const ActionEntry& entry = program_->actions[action];
    if (entry.op == ActionOp::kJump || (entry.op == ActionOp::kJumpIfZero && sizes_->Value(entry.a) == 0)) {
      action = entry.c;
      *part = part_of_action_[action];
    } else {
      HONE_RETURN_IF_FAULT(Do(entry));
      ++action;
    }
  }
  return {};
}

Fault Executor::Do(const ActionEntry& action) {
  switch (action.op) {
    case ActionOp::kReadSize: {
      int64_t value = 0;
      HONE_RETURN_IF_FAULT(ReadElement(action.b, &value));
      return sizes_->SetSize(action.a, value);
    }
    case ActionOp::kSetSize:
      return sizes_->SetSize(action.a, sizes_->Value(action.b));
    case ActionOp::kCopy: {
      const uint64_t bytes = std::min(sizes_->Bytes(action.b), program_->tensors[action.a].bytes);
      return CopyBytes(action.b, action.a, 0, bytes);
    }
    case ActionOp::kCopyRow:
      return CopyRow(action);
    case ActionOp::kSwap:
      return backends_[program_->tensors[action.a].home]->SwapMemory(action.a, action.b);
    case ActionOp::kRequire:
      if (sizes_->Value(action.a) == 0) return {};
      return InvalidArgument("a dimension of '" + std::string(program_->Text(program_->tensors[action.b].name)) +
                             "' is larger by " + std::to_string(sizes_->Value(action.a)) +
                             " than that of a tensor which the model uses it with; the package takes equal ones only");
    case ActionOp::kLabel:
    case ActionOp::kJump:
    case ActionOp::kJumpIfZero:
      return {};
  }
  return {};
}

Fault Executor::CopyRow(const ActionEntry& action) {
  const uint64_t bytes = sizes_->Bytes(action.b), room = program_->tensors[action.a].bytes;
  const auto row = static_cast<uint64_t>(std::max<int64_t>(sizes_->Value(action.c), 0));
  if (bytes == 0) return {};
  if (row >= room / bytes) {
    return InvalidArgument("a loop of the model made more than " + std::to_string(room / bytes) +
                           " steps, for which the package has memory");
  }
  return CopyBytes(action.b, action.a, row * bytes, bytes);
}

Fault Executor::CopyBytes(uint32_t source, uint32_t target, uint64_t offset, uint64_t bytes) {
  const package::TensorEntry& from_entry = program_->tensors[source];
  const bool is_written =
      from_entry.kind == package::TensorKind::kIntermediate || from_entry.kind == package::TensorKind::kOutput;
  Backend& to = *backends_[program_->tensors[target].home];
  Backend& from =
      is_written ? *backends_[from_entry.home] : to;  // inputs and constants are in all homes that read them
  if (&from == &to) return to.CopyBytes(source, target, offset, bytes);
  if (bytes == 0) return {};
  if (uint8_t* const host = to.HostMemory(target)) return from.ReadBytes(source, std::span(host + offset, bytes));
  if (const uint8_t* const host = from.HostMemory(source)) return to.WriteBytes(target, offset, std::span(host, bytes));
  const std::span<uint8_t> staged(staging_.data(), bytes);
  HONE_RETURN_IF_FAULT(from.ReadBytes(source, staged));
  return to.WriteBytes(target, offset, staged);
}

Fault Executor::ReadElement(uint32_t tensor, int64_t* value) {
  uint8_t bytes[sizeof(int64_t)] = {};
  const DType dtype = program_->tensors[tensor].dtype;
  HONE_RETURN_IF_FAULT(backends_[program_->tensors[tensor].home]->ReadBytes(
      tensor, std::span(bytes).first(static_cast<size_t>(SizeOf(dtype)))));
  int32_t narrow = 0;
  std::memcpy(&narrow, bytes, sizeof narrow);
  if (dtype == DType::kInt64) {
    std::memcpy(value, bytes, sizeof *value);
  } else {
    *value = dtype == DType::kInt32 ? narrow : bytes[0] != 0;
  }
  return {};
}

// One copy if a side is in this process, else two by way of the staging memory.
Fault Executor::Cross(const BorderEntry& border) {
  const package::TensorEntry &source = program_->tensors[border.source], &target = program_->tensors[border.target];
  if (source.bytes == 0) return {};
  Backend &from = *backends_[source.home], &to = *backends_[target.home];
  if (const uint8_t* const host = from.HostMemory(border.source)) return to.Write(border.target, host);
  if (uint8_t* const host = to.HostMemory(border.target)) return from.Read(border.source, host);
  HONE_RETURN_IF_FAULT(from.Read(border.source, staging_.data()));
  return to.Write(border.target, staging_.data());
}

void Executor::SetThreads(int threads) {
  for (const std::unique_ptr<Backend>& backend : backends_) backend->SetThreads(threads);
}

std::shared_ptr<ThreadPool> Executor::Pool() const {
  for (const std::unique_ptr<Backend>& backend : backends_) {
    if (std::shared_ptr<ThreadPool> pool = backend->Pool(); pool != nullptr) return pool;
  }
  return nullptr;
}

void Executor::ShareThreads(const Executor& other) {
  const std::shared_ptr<ThreadPool> pool = other.Pool();
  if (pool == nullptr) return;
  for (const std::unique_ptr<Backend>& backend : backends_) backend->SharePool(pool);
}

int Executor::threads() const {
  int most = 1;
  for (const std::unique_ptr<Backend>& backend : backends_) most = std::max(most, backend->threads());
  return most;
}

}  // namespace hone::runtime
