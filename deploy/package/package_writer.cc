#include "deploy/package/package_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/status.h"
#include "deploy/package/atomic_file.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/runtime/checksum.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"

namespace hone::package {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A section as the pieces it is written from, so that the constants (gigabytes, maybe) are not gathered in memory.
struct Section {
  SectionKind kind;
  std::vector<std::span<const uint8_t>> pieces;
};

std::vector<std::span<const uint8_t>> ConstantPieces(const PackageContents& contents, const Manifest& manifest) {
  static constexpr uint8_t kZeros[kTensorAlignment] = {};
  std::vector<std::span<const uint8_t>> pieces;
  uint64_t end = 0;
  const auto pad_to = [&](uint64_t offset) {
    if (offset > end) pieces.emplace_back(kZeros, offset - end);
    end = offset;
  };
  for (size_t i = 0; i < contents.tensors.size(); ++i) {
    const PackageTensor& tensor = contents.tensors[i];
    if (tensor.kind != TensorKind::kConstant) continue;
    pad_to(manifest.constant_offsets[i]);
    pieces.push_back(tensor.data);
    end += tensor.data.size();
  }
  pad_to(manifest.constants_bytes);
  return pieces;
}

FileHeader MakeHeader(std::span<const Section> sections) {
  FileHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kFormatVersion;
  header.section_count = kSectionCount;
  uint64_t end = sizeof header;
  for (size_t i = 0; i < sections.size(); ++i) {
    SectionEntry& entry = header.sections[i];
    entry.kind = sections[i].kind;
    entry.offset = AlignUp(end, kSectionAlignment);
    Checksum checksum;
    for (const std::span<const uint8_t> piece : sections[i].pieces) {
      checksum.Update(piece);
      entry.bytes += piece.size();
    }
    entry.checksum = checksum.Value();
    end = entry.offset + entry.bytes;
  }
  header.file_bytes = end;
  header.checksum = ChecksumOf({reinterpret_cast<const uint8_t*>(&header), sizeof header});
  return header;
}

absl::Status WriteFile(const FileHeader& header, std::span<const Section> sections, AtomicFile& file) {
  HONE_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(&header), sizeof header}));
  uint64_t end = sizeof header;
  const std::vector<uint8_t> zeros(kSectionAlignment);
  for (size_t i = 0; i < sections.size(); ++i) {
    HONE_RETURN_IF_ERROR(file.Write({zeros.data(), header.sections[i].offset - end}));
    for (const std::span<const uint8_t> piece : sections[i].pieces) HONE_RETURN_IF_ERROR(file.Write(piece));
    end = header.sections[i].offset + header.sections[i].bytes;
  }
  return absl::OkStatus();
}

// The runtime's own check: what it would refuse never gets the package's name.
absl::Status CheckWritten(const std::string& path) {
  runtime::Mapping mapping;
  runtime::PackageView view;
  runtime::Fault fault = runtime::Mapping::File(path, &mapping);
  if (fault.ok()) fault = runtime::ViewPackage(mapping.bytes(), runtime::ConstantsCheck::kFull, &view);
  if (fault.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("these contents make no valid package: {}", fault.text));
}

}  // namespace

absl::StatusOr<uint64_t> WritePackage(const PackageContents& contents, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const Manifest manifest, BuildManifest(contents));
  std::string metadata = ToJson(contents.metadata);
  metadata.push_back('\0');
  const Section sections[kSectionCount] = {{SectionKind::kManifest, {manifest.section}},
                                           {SectionKind::kSharedObject, {BytesOf(contents.shared_object)}},
                                           {SectionKind::kConstants, ConstantPieces(contents, manifest)},
                                           {SectionKind::kMetadata, {BytesOf(metadata)}}};
  const FileHeader header = MakeHeader(sections);
  HONE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  HONE_RETURN_IF_ERROR(WriteFile(header, sections, file));
  HONE_RETURN_IF_ERROR(CheckWritten(file.temporary_path()));
  HONE_RETURN_IF_ERROR(file.Commit());
  return header.file_bytes;
}

}  // namespace hone::package
