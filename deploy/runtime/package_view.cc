#include "deploy/runtime/package_view.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "deploy/runtime/checksum.h"
#include "deploy/runtime/dtype.h"

namespace hone::runtime {
namespace {

using package::CallEntry;
using package::CopyEntry;
using package::FileHeader;
using package::ManifestHeader;
using package::SectionEntry;
using package::SectionKind;
using package::TableRef;
using package::TensorEntry;
using package::TensorKind;
using package::TextRef;

// Whether [offset, offset + count) lies in [0, limit), without overflow.
bool Inside(uint64_t offset, uint64_t count, uint64_t limit) { return offset <= limit && count <= limit - offset; }

bool IsZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

std::string Numbered(const char* what, size_t index) { return std::string(what) + " " + std::to_string(index); }

const char* SectionName(SectionKind kind) {
  switch (kind) {
    case SectionKind::kManifest:
      return "manifest";
    case SectionKind::kSharedObject:
      return "code";
    case SectionKind::kConstants:
      return "constants";
    case SectionKind::kMetadata:
      return "metadata";
  }
  return "unknown";
}

Fault CheckHeader(std::span<const uint8_t> file, FileHeader* header) {
  if (file.size() < sizeof package::kMagic || std::memcmp(file.data(), package::kMagic, sizeof package::kMagic) != 0) {
    return BadPackage("the file does not start as a .hone package does");
  }
  if (file.size() < sizeof(FileHeader)) return BadPackage("truncated inside its header");
  std::memcpy(header, file.data(), sizeof *header);
  if (header->version != package::kFormatVersion) {
    return BadPackage("format version " + std::to_string(header->version) + ", this runtime reads version " +
                      std::to_string(package::kFormatVersion) + "; compile the model again with a matching hone");
  }
  FileHeader unsummed = *header;
  unsummed.checksum = 0;
  if (package::ChecksumOf({reinterpret_cast<const uint8_t*>(&unsummed), sizeof unsummed}) != header->checksum) {
    return BadPackage("its header is damaged (checksum mismatch); copy or compile it again");
  }
  if (header->file_bytes != file.size()) {
    return BadPackage((file.size() < header->file_bytes ? "truncated: " : "bytes after its end: ") +
                      std::to_string(header->file_bytes) + " bytes expected, " + std::to_string(file.size()) +
                      " found; copy it again");
  }
  if (header->section_count != package::kSectionCount) return BadPackage("wrong number of sections");
  return {};
}

Fault CheckSections(std::span<const uint8_t> file, const FileHeader& header, ConstantsCheck check) {
  uint64_t end = sizeof(FileHeader);
  for (uint32_t i = 0; i < package::kSectionCount; ++i) {
    const SectionEntry& section = header.sections[i];
    if (section.kind != static_cast<SectionKind>(i + 1)) return BadPackage(Numbered("wrong kind of section", i));
    const std::string name = SectionName(section.kind);
    if (section.offset < end || section.offset % package::kSectionAlignment != 0 ||
        !Inside(section.offset, section.bytes, file.size())) {
      return BadPackage("section " + name + " is out of place");
    }
    if (!IsZero(file.subspan(end, section.offset - end))) return BadPackage("damaged just before section " + name);
    end = section.offset + section.bytes;
    if (section.kind == SectionKind::kConstants && check == ConstantsCheck::kTrust) continue;
    if (package::ChecksumOf(file.subspan(section.offset, section.bytes)) != section.checksum) {
      return BadPackage("section " + name + " is damaged (checksum mismatch); copy or compile it again");
    }
  }
  return end == file.size() ? Fault{} : BadPackage("bytes after its last section");
}

// Reads the tables of one manifest section; the element checks follow in the functions below.
class ManifestReader {
 public:
  ManifestReader(std::span<const uint8_t> section, PackageView* view) : section_(section), view_(*view) {}

  Fault Read() {
    if (section_.size() < sizeof(ManifestHeader)) return BadPackage("manifest is too small");
    view_.manifest = reinterpret_cast<const ManifestHeader*>(section_.data());
    const ManifestHeader& manifest = *view_.manifest;
    HONE_RETURN_IF_FAULT(Table(manifest.tensors, "tensors", &view_.tensors));
    HONE_RETURN_IF_FAULT(Table(manifest.shapes, "shapes", &view_.shapes));
    HONE_RETURN_IF_FAULT(Table(manifest.calls, "calls", &view_.calls));
    HONE_RETURN_IF_FAULT(Table(manifest.arguments, "arguments", &view_.arguments));
    HONE_RETURN_IF_FAULT(Table(manifest.inputs, "inputs", &view_.inputs));
    HONE_RETURN_IF_FAULT(Table(manifest.outputs, "outputs", &view_.outputs));
    HONE_RETURN_IF_FAULT(Table(manifest.copies, "copies", &view_.copies));
    HONE_RETURN_IF_FAULT(Table(manifest.strings, "strings", &view_.strings));
    for (const TextRef text :
         {manifest.cpu_features, manifest.model_name, manifest.target, manifest.compiler_version}) {
      HONE_RETURN_IF_FAULT(CheckText(text, "manifest"));
    }
    for (const uint64_t bytes : {manifest.io_bytes, manifest.arena_bytes}) {
      if (bytes % package::kTensorAlignment != 0) return BadPackage("size of a memory region is odd");
    }
    return {};
  }

  Fault CheckTensors() const {
    for (size_t i = 0; i < view_.tensors.size(); ++i) {
      const TensorEntry& tensor = view_.tensors[i];
      const std::string which = Numbered("tensor", i);
      HONE_RETURN_IF_FAULT(CheckText(tensor.name, which));
      if (package::FindDType(tensor.dtype) == nullptr) return BadPackage(which + " has an unknown element type");
      if (tensor.rank > package::kMaxRank || !Inside(tensor.shape, tensor.rank, view_.shapes.size())) {
        return BadPackage(which + " has its shape out of range");
      }
      if (BytesOf(tensor) != tensor.bytes) return BadPackage(which + " has a size that is not its shape's");
      const std::optional<uint64_t> space = SpaceOf(tensor.kind);
      if (!space) return BadPackage(which + " is of an unknown kind");
      if (tensor.offset % package::kTensorAlignment != 0 || !Inside(tensor.offset, tensor.bytes, *space)) {
        return BadPackage(which + " is out of place");
      }
    }
    return {};
  }

  Fault CheckCalls() const {
    uint64_t next_argument = 0;  // the calls' arguments follow one another and leave none over
    for (size_t i = 0; i < view_.calls.size(); ++i) {
      const CallEntry& call = view_.calls[i];
      const std::string which = Numbered("call", i);
      HONE_RETURN_IF_FAULT(CheckText(call.symbol, which));
      if (call.symbol.bytes == 0) return BadPackage(which + " names no symbol");
      if (call.arguments != next_argument || !Inside(call.arguments, call.argument_count, view_.arguments.size()) ||
          call.output_count > call.argument_count) {
        return BadPackage(which + " has its arguments out of range");
      }
      next_argument += call.argument_count;
      const std::span<const uint32_t> arguments = view_.Arguments(call);
      for (size_t a = 0; a < arguments.size(); ++a) {
        if (arguments[a] >= view_.tensors.size()) return BadPackage(which + " uses a tensor that is not there");
        const TensorKind kind = view_.tensors[arguments[a]].kind;
        const bool written = a >= arguments.size() - call.output_count;
        if (written && (kind == TensorKind::kInput || kind == TensorKind::kConstant)) {
          return BadPackage(which + " writes an input or a constant");
        }
      }
      if (call.workspace_offset % package::kTensorAlignment != 0 ||
          !Inside(call.workspace_offset, call.workspace_bytes, view_.manifest->arena_bytes)) {
        return BadPackage(which + " has its workspace out of range");
      }
    }
    return next_argument == view_.arguments.size() ? Fault{} : BadPackage("arguments after those of the last call");
  }

  // Inputs or outputs: ids in range, of that kind, each tensor and each name once, and every such tensor listed.
  Fault CheckPorts(std::span<const uint32_t> ids, TensorKind kind, const char* what) const {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= view_.tensors.size() || view_.tensors[ids[i]].kind != kind) {
        return BadPackage(Numbered(what, i) + " is not such a tensor");
      }
      names.push_back(view_.Text(view_.tensors[ids[i]].name));
    }
    std::sort(names.begin(), names.end());
    if (std::adjacent_find(names.begin(), names.end()) != names.end()) {
      return BadPackage(std::string("two of the same name among its ") + what + "s");
    }
    const auto total = std::count_if(view_.tensors.begin(), view_.tensors.end(),
                                     [kind](const TensorEntry& tensor) { return tensor.kind == kind; });
    if (static_cast<size_t>(total) != ids.size()) return BadPackage(std::string("an unlisted ") + what);
    return {};
  }

  Fault CheckCopies() const {
    for (size_t i = 0; i < view_.copies.size(); ++i) {
      const CopyEntry& copy = view_.copies[i];
      const size_t count = view_.tensors.size();
      if (copy.source >= count || copy.target >= count || copy.source == copy.target ||
          view_.tensors[copy.target].kind != TensorKind::kOutput ||
          view_.tensors[copy.source].bytes != view_.tensors[copy.target].bytes) {
        return BadPackage(Numbered("copy", i) + " does not lead from a tensor to an output of its size");
      }
    }
    return {};
  }

 private:
  template <typename T>
  Fault Table(TableRef ref, const char* what, std::span<const T>* table) const {
    if (ref.offset % 8 != 0 || ref.count > std::numeric_limits<uint32_t>::max() ||
        !Inside(ref.offset, ref.count * sizeof(T), section_.size())) {
      return BadPackage(std::string("table of ") + what + " is out of range");
    }
    *table = {reinterpret_cast<const T*>(section_.data() + ref.offset), static_cast<size_t>(ref.count)};
    return {};
  }

  Fault CheckText(TextRef text, const std::string& whose) const {
    if (!Inside(text.offset, uint64_t{text.bytes} + 1, view_.strings.size())) {
      return BadPackage(whose + " has a text out of range");
    }
    const std::string_view content = view_.Text(text);
    if (content.find('\0') != std::string_view::npos || view_.strings[text.offset + text.bytes] != '\0') {
      return BadPackage(whose + " has a text without an end");
    }
    return {};
  }

  // Empty if a dimension is negative or the product overflows.
  std::optional<uint64_t> BytesOf(const TensorEntry& tensor) const {
    uint64_t bytes = package::SizeOf(tensor.dtype);
    for (const int64_t dimension : view_.Shape(tensor)) {
      if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) return std::nullopt;
    }
    return bytes;
  }

  std::optional<uint64_t> SpaceOf(TensorKind kind) const {
    switch (kind) {
      case TensorKind::kInput:
      case TensorKind::kOutput:
        return view_.manifest->io_bytes;
      case TensorKind::kConstant:
        return view_.constants.size();
      case TensorKind::kIntermediate:
        return view_.manifest->arena_bytes;
    }
    return std::nullopt;
  }

  std::span<const uint8_t> section_;
  PackageView& view_;
};

}  // namespace

Fault ViewPackage(std::span<const uint8_t> file, ConstantsCheck check, PackageView* view) {
  FileHeader header;
  HONE_RETURN_IF_FAULT(CheckHeader(file, &header));
  HONE_RETURN_IF_FAULT(CheckSections(file, header, check));
  const auto section = [&](SectionKind kind) {
    const SectionEntry& entry = header.sections[static_cast<uint32_t>(kind) - 1];
    return file.subspan(entry.offset, entry.bytes);
  };
  PackageView result;
  result.shared_object = section(SectionKind::kSharedObject);
  result.constants = section(SectionKind::kConstants);
  const std::span<const uint8_t> metadata = section(SectionKind::kMetadata);
  if (metadata.empty() || metadata.back() != 0) return BadPackage("its metadata has no end");
  result.metadata = {reinterpret_cast<const char*>(metadata.data()), metadata.size() - 1};

  ManifestReader reader(section(SectionKind::kManifest), &result);
  HONE_RETURN_IF_FAULT(reader.Read());
  HONE_RETURN_IF_FAULT(reader.CheckTensors());
  HONE_RETURN_IF_FAULT(reader.CheckCalls());
  HONE_RETURN_IF_FAULT(reader.CheckPorts(result.inputs, TensorKind::kInput, "input"));
  HONE_RETURN_IF_FAULT(reader.CheckPorts(result.outputs, TensorKind::kOutput, "output"));
  HONE_RETURN_IF_FAULT(reader.CheckCopies());
  *view = result;
  return {};
}

}  // namespace hone::runtime
