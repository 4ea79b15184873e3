// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/program_view.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "deploy/runtime/dtype.h"

namespace hone::runtime {
namespace {

using package::CallEntry;
using package::CopyEntry;
using package::ManifestHeader;
using package::TableRef;
using package::TensorEntry;
using package::TensorKind;
using package::TextRef;

// Whether [offset, offset + count) lies in [0, limit), without overflow.
bool Inside(uint64_t offset, uint64_t count, uint64_t limit) { return offset <= limit && count <= limit - offset; }

std::string Numbered(const char* what, size_t index) { return std::string(what) + " " + std::to_string(index); }

// Reads and checks one manifest section. Each function relies on those that ViewProgram calls before it.
class ManifestReader {
 public:
  ManifestReader(std::span<const uint8_t> section, uint64_t constants_bytes, const std::string& where,
                 ProgramView* view)
      : section_(section), constants_bytes_(constants_bytes), where_(where), view_(*view) {}

  Fault Read() {
    if (section_.size() < sizeof(ManifestHeader)) return Bad("manifest is too small");
    view_.manifest = reinterpret_cast<const ManifestHeader*>(section_.data());
    const ManifestHeader& manifest = *view_.manifest;
    HONE_RETURN_IF_FAULT(Table(manifest.tensors, "tensors", &view_.tensors));
    HONE_RETURN_IF_FAULT(Table(manifest.shapes, "shapes", &view_.shapes));
    HONE_RETURN_IF_FAULT(Table(manifest.kernels, "kernels", &kernel_texts_));
    HONE_RETURN_IF_FAULT(Table(manifest.calls, "calls", &view_.calls));
    HONE_RETURN_IF_FAULT(Table(manifest.arguments, "arguments", &view_.arguments));
    HONE_RETURN_IF_FAULT(Table(manifest.inputs, "inputs", &view_.inputs));
    HONE_RETURN_IF_FAULT(Table(manifest.outputs, "outputs", &view_.outputs));
    HONE_RETURN_IF_FAULT(Table(manifest.copies, "copies", &view_.copies));
    HONE_RETURN_IF_FAULT(Table(manifest.strings, "strings", &view_.strings));
    for (size_t i = 0; i < view_.strings.size(); ++i) {
      if (view_.strings[i] == '\0') text_ends_.push_back(static_cast<uint32_t>(i));
    }
    for (const TextRef text : {manifest.cpu_features, manifest.device, manifest.target}) {
      HONE_RETURN_IF_FAULT(CheckText(text, "manifest"));
    }
    for (const uint64_t bytes : {manifest.io_bytes, manifest.arena_bytes}) {
      if (bytes % package::kTensorAlignment != 0) return Bad("size of a memory region is odd");
    }
    return {};
  }

  Fault CheckTensors() const {
    for (size_t i = 0; i < view_.tensors.size(); ++i) {
      const TensorEntry& tensor = view_.tensors[i];
      const std::string which = Numbered("tensor", i);
      HONE_RETURN_IF_FAULT(CheckText(tensor.name, which));
      if (package::FindDType(tensor.dtype) == nullptr) return Bad(which + " has an unknown element type");
      if (tensor.rank > package::kRankMax || !Inside(tensor.shape, tensor.rank, view_.shapes.size())) {
        return Bad(which + " has its shape out of range");
      }
      if (BytesOf(tensor) != tensor.bytes) return Bad(which + " has a size that is not its shape's");
      const std::optional<uint64_t> space = SpaceOf(tensor.kind);
      if (!space) return Bad(which + " is of an unknown kind");
      if (tensor.offset % package::kTensorAlignment != 0 || !Inside(tensor.offset, tensor.bytes, *space)) {
        return Bad(which + " is out of place");
      }
    }
    return {};
  }

  Fault CheckRequirements() const {
    const ManifestHeader& manifest = *view_.manifest;
    const std::optional<CodeKindEntry> code = FindCodeKind(manifest.code);
    if (!code) return Bad("its code is of an unknown kind");
    const bool needs_lanes = manifest.lanes != 0 || manifest.shared_bytes != 0 || manifest.device.bytes != 0;
    const bool needs_features = manifest.cpu_features.bytes != 0;
    if ((needs_lanes && !code->has_lanes) || (needs_features && code->cpu_features.empty())) {
      return Bad("its code asks for what code of its kind does not have");
    }
    return {};
  }

  Fault ReadKernels() {
    std::set<std::string> names;
    view_.kernels.reserve(kernel_texts_.size());
    for (size_t i = 0; i < kernel_texts_.size(); ++i) {
      const std::string which = Numbered("kernel", i);
      HONE_RETURN_IF_FAULT(CheckText(kernel_texts_[i], which));
      std::string error;
      std::optional<KernelInterface> kernel = ParseKernelInterface(view_.Text(kernel_texts_[i]), &error);
      if (!kernel.has_value()) return Bad(which + " has a bad description: " + error);
      // Checked before the kernel is kept: many kernels that share one text would need far more memory than the file.
      if (!names.insert(kernel->name).second) return Bad("two kernels of one name");
      HONE_RETURN_IF_FAULT(CheckLaunches(*kernel, which));
      view_.kernels.push_back(*std::move(kernel));
    }
    return {};
  }

  Fault CheckCalls() const {
    uint64_t next_argument = 0;  // the arguments of the calls are consecutive and use the whole table
    for (size_t i = 0; i < view_.calls.size(); ++i) {
      const CallEntry& call = view_.calls[i];
      const std::string which = Numbered("call", i);
      if (call.kernel >= view_.kernels.size()) return Bad(which + " runs a kernel that is not there");
      const KernelInterface& kernel = view_.Kernel(call);
      const size_t count = kernel.argument_count();
      if (call.arguments != next_argument || !Inside(call.arguments, count, view_.arguments.size())) {
        return Bad(which + " has its arguments out of range");
      }
      next_argument += count;
      const std::span<const uint32_t> arguments = view_.Arguments(call);
      for (size_t a = 0; a < count; ++a) HONE_RETURN_IF_FAULT(CheckArgument(arguments[a], kernel.buffers[a], which));
      if (call.workspace_offset % package::kTensorAlignment != 0 ||
          !Inside(call.workspace_offset, static_cast<uint64_t>(kernel.workspace_bytes), view_.manifest->arena_bytes)) {
        return Bad(which + " has its workspace out of range");
      }
    }
    return next_argument == view_.arguments.size() ? Fault{} : Bad("arguments after those of the last call");
  }

  // Checks the list of inputs or of outputs: ids are in range and of that kind, no tensor or name is listed twice, and
  // every tensor of that kind is listed.
  Fault CheckPorts(std::span<const uint32_t> ids, TensorKind kind, const char* what) const {
    std::set<std::string_view> names;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= view_.tensors.size() || view_.tensors[ids[i]].kind != kind) {
        return Bad(Numbered(what, i) + " is not such a tensor");
      }
      if (!names.insert(view_.Text(view_.tensors[ids[i]].name)).second) {
        return Bad(std::string("two of the same name among its ") + what + "s");
      }
    }
    const auto total = std::count_if(view_.tensors.begin(), view_.tensors.end(),
                                     [kind](const TensorEntry& tensor) { return tensor.kind == kind; });
    if (static_cast<size_t>(total) != ids.size()) return Bad(std::string("an unlisted ") + what);
    return {};
  }

  Fault CheckCopies() const {
    for (size_t i = 0; i < view_.copies.size(); ++i) {
      const CopyEntry& copy = view_.copies[i];
      const size_t count = view_.tensors.size();
      if (copy.source >= count || copy.target >= count || copy.source == copy.target ||
          view_.tensors[copy.target].kind != TensorKind::kOutput ||
          view_.tensors[copy.source].bytes != view_.tensors[copy.target].bytes) {
        return Bad(Numbered("copy", i) + " does not lead from a tensor to an output of its size");
      }
    }
    return {};
  }

 private:
  Fault Bad(const std::string& text) const { return BadPackage(where_ + text); }

  // Checks that every launch of `main` is a grid exactly if the code's kind has lanes, and that it needs no more lanes
  // and shared memory than the program's manifest states.
  Fault CheckLaunches(const KernelInterface& kernel, const std::string& which) const {
    const bool is_grid = FindCodeKind(view_.manifest->code)->has_lanes;
    for (const KernelLaunch& launch : kernel.main) {
      if ((launch.lanes != 0) != is_grid) return Bad(which + " is not launched as its kind of code is");
      if (launch.lanes > view_.manifest->lanes) return Bad(which + " has more lanes than its program asks for");
      if (static_cast<uint64_t>(launch.shared_bytes) > view_.manifest->shared_bytes) {
        return Bad(which + " asks for more shared memory than its program");
      }
      if (!is_grid) continue;  // a function on a CPU takes all buffers, and null for an unused one
      for (const uint32_t argument : launch.arguments) {
        const KernelBuffer& buffer = kernel.buffers[argument];
        if (!buffer.used) return Bad(which + " passes a buffer that it does not use");
        if (buffer.role == BufferRole::kWorkspace && buffer.offset + buffer.bytes() > kernel.workspace_bytes) {
          return Bad(which + " passes a buffer that ends behind its workspace");
        }
      }
    }
    return {};
  }

  Fault CheckArgument(uint32_t id, const KernelBuffer& buffer, const std::string& which) const {
    if (!buffer.used) {
      const bool unread = buffer.role == BufferRole::kInput || buffer.role == BufferRole::kConstant;
      return unread && id == package::kNoTensor ? Fault{} : Bad(which + " has a tensor for a buffer without use");
    }
    if (id >= view_.tensors.size()) return Bad(which + " uses a tensor that is not there");
    const TensorEntry& tensor = view_.tensors[id];
    if (tensor.bytes != static_cast<uint64_t>(buffer.bytes())) {
      return Bad(which + " has a tensor of another size than its kernel's");
    }
    const bool constant = tensor.kind == TensorKind::kConstant;
    switch (buffer.role) {
      case BufferRole::kInput:
        return {};
      case BufferRole::kConstant:
      case BufferRole::kPacked:
        return constant ? Fault{} : Bad(which + " has a tensor that changes where its kernel takes a constant");
      case BufferRole::kOutput:
        return constant || tensor.kind == TensorKind::kInput ? Bad(which + " writes an input or a constant") : Fault{};
      case BufferRole::kWorkspace:
        break;  // slices of the workspace are no arguments
    }
    return Bad(which + " has a tensor for a slice of its workspace");
  }

  template <typename T>
  Fault Table(TableRef ref, const char* what, std::span<const T>* table) const {
    if (ref.offset % 8 != 0 || ref.count > std::numeric_limits<uint32_t>::max() ||
        !Inside(ref.offset, ref.count * sizeof(T), section_.size())) {
      return Bad(std::string("table of ") + what + " is out of range");
    }
    *table = {reinterpret_cast<const T*>(section_.data() + ref.offset), static_cast<size_t>(ref.count)};
    return {};
  }

  // A text must be all bytes between two zero bytes. Therefore two texts are identical or disjoint, and the check does
  // not read the bytes: a binary search among text_ends_ is enough, however many refs share one text.
  Fault CheckText(TextRef text, const std::string& whose) const {
    const auto end = std::lower_bound(text_ends_.begin(), text_ends_.end(), text.offset);
    if (end == text_ends_.end() || *end != uint64_t{text.offset} + text.bytes) {
      return Bad(whose + " has a text out of range or without an end");
    }
    const bool begins = text.offset == 0 || view_.strings[text.offset - 1] == '\0';
    return begins ? Fault{} : Bad(whose + " has a text without a beginning");
  }

  // The size by type and shape. Empty if a dimension is negative or the product overflows.
  std::optional<uint64_t> BytesOf(const TensorEntry& tensor) const {
    uint64_t bytes = package::SizeOf(tensor.dtype);
    for (const int64_t dimension : view_.Shape(tensor)) {
      if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) return std::nullopt;
    }
    return bytes;
  }

  // The size of the address space of a kind of tensor; empty for an unknown kind.
  std::optional<uint64_t> SpaceOf(TensorKind kind) const {
    switch (kind) {
      case TensorKind::kInput:
      case TensorKind::kOutput:
        return view_.manifest->io_bytes;
      case TensorKind::kConstant:
        return constants_bytes_;
      case TensorKind::kIntermediate:
        return view_.manifest->arena_bytes;
    }
    return std::nullopt;
  }

  std::span<const uint8_t> section_;
  uint64_t constants_bytes_;
  const std::string& where_;
  std::span<const TextRef> kernel_texts_;
  std::vector<uint32_t> text_ends_;  // offsets of the zero bytes in the string table, ascending
  ProgramView& view_;
};

}  // namespace

Fault ViewProgram(std::span<const uint8_t> manifest, std::span<const uint8_t> code, uint64_t constants_bytes,
                  const std::string& where, ProgramView* view) {
  ProgramView result;
  result.code = code;
  ManifestReader reader(manifest, constants_bytes, where, &result);
  HONE_RETURN_IF_FAULT(reader.Read());
  HONE_RETURN_IF_FAULT(reader.CheckRequirements());
  HONE_RETURN_IF_FAULT(reader.ReadKernels());
  HONE_RETURN_IF_FAULT(reader.CheckTensors());
  HONE_RETURN_IF_FAULT(reader.CheckCalls());
  HONE_RETURN_IF_FAULT(reader.CheckPorts(result.inputs, TensorKind::kInput, "input"));
  HONE_RETURN_IF_FAULT(reader.CheckPorts(result.outputs, TensorKind::kOutput, "output"));
  HONE_RETURN_IF_FAULT(reader.CheckCopies());
  *view = std::move(result);
  return {};
}

}  // namespace hone::runtime
