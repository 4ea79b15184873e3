// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/package_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "deploy/package/atomic_file.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/runtime/checksum.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"

namespace hone::package {
namespace {

std::span<const uint8_t> BytesOfText(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A section as a list of pieces that are written one after another, so that constants of gigabytes are not copied.
struct Section {
  SectionKind kind;
  std::vector<std::span<const uint8_t>> pieces;
};

// Returns the file header and sets *entries to the section table.
FileHeader MakeHeader(std::span<const Section> sections, uint32_t version, std::vector<SectionEntry>* entries) {
  FileHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = version;
  header.section_count = static_cast<uint32_t>(sections.size());
  header.file_bytes = HeaderBytes(sections.size());
  for (const Section& section : sections) {
    SectionEntry entry = {};
    entry.kind = section.kind;
    entry.offset = AlignUp(header.file_bytes, kSectionAlignment);
    Checksum checksum;
    for (const std::span<const uint8_t> piece : section.pieces) {
      checksum.Update(piece);
      entry.bytes += piece.size();
    }
    entry.checksum = checksum.Value();
    header.file_bytes = entry.offset + entry.bytes;
    entries->push_back(entry);
  }
  header.checksum = HeaderChecksum(header, *entries);
  return header;
}

absl::Status WriteFile(const FileHeader& header, std::span<const SectionEntry> entries,
                       std::span<const Section> sections, AtomicFile& file) {
  HONE_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(&header), sizeof header}));
  HONE_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(entries.data()), entries.size_bytes()}));
  uint64_t end = HeaderBytes(entries.size());
  const std::vector<uint8_t> zeros(kSectionAlignment);
  for (size_t i = 0; i < sections.size(); ++i) {
    HONE_RETURN_IF_ERROR(file.Write({zeros.data(), entries[i].offset - end}));
    for (const std::span<const uint8_t> piece : sections[i].pieces) HONE_RETURN_IF_ERROR(file.Write(piece));
    end = entries[i].offset + entries[i].bytes;
  }
  return absl::OkStatus();
}

// Runs the runtime's checks on the written file, so that a file that the runtime would reject never replaces `path`.
absl::Status CheckWritten(const std::string& path) {
  runtime::Mapping mapping;
  runtime::PackageView view;
  runtime::Fault fault = runtime::Mapping::File(path, &mapping);
  if (fault.ok()) fault = runtime::ViewPackage(mapping.bytes(), runtime::ConstantsCheck::kFull, &view);
  if (fault.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("the runtime would refuse the package: {}", fault.text));
}

}  // namespace

void AssignHomes(PackageProgram& program) {
  std::optional<uint32_t> of_cpus;
  uint32_t count = 0;
  for (PackageUnit& unit : program.units) {
    const bool has_lanes = FindCodeKind(unit.kind)->has_lanes;
    unit.home = !has_lanes && of_cpus.has_value() ? *of_cpus : count++;
    if (!has_lanes) of_cpus = unit.home;
  }
  program.arena_bytes.assign(count, 0);
}

uint32_t VersionFor(const PackageProgram& program) {
  const auto has_nodes = [](const PackageCall& call) { return !call.nodes.empty(); };
  if (!program.values.empty() || std::ranges::any_of(program.calls, has_nodes)) return kNodesFormatVersion;
  if (!program.actions.empty() || !program.updates.empty()) return kActionsFormatVersion;
  return program.sizes.empty() && program.defaults.empty() ? kPlainFormatVersion : kSizesFormatVersion;
}

absl::StatusOr<uint64_t> WritePackage(const PackageContents& contents, const std::string& path) {
  const size_t count = contents.programs.size();
  if (count == 0 || count > kProgramsMax || count != contents.metadata.programs.size()) {
    return absl::InvalidArgumentError(fmt::format(
        "a package holds 1 to {} programs, each with its metadata; {} programs and metadata for {} were given",
        kProgramsMax, count, contents.metadata.programs.size()));
  }
  std::set<std::string> targets;
  for (const ProgramMetadata& program : contents.metadata.programs) targets.insert(program.target);
  uint32_t version = targets.size() == count ? kPlainFormatVersion : kSizesFormatVersion;
  for (const PackageProgram& program : contents.programs) version = std::max(version, VersionFor(program));
  ConstantSection constants;
  std::vector<std::vector<uint8_t>> manifests(count);
  std::vector<Section> sections;
  for (size_t i = 0; i < count; ++i) {
    const PackageProgram& program = contents.programs[i];
    HONE_ASSIGN_OR_RETURN(manifests[i],
                          BuildManifest(program, contents.metadata.programs[i].target, version, constants));
    sections.push_back({SectionKind::kManifest, {manifests[i]}});
    for (const PackageUnit& unit : program.units) sections.push_back({SectionKind::kCode, {BytesOfText(unit.code)}});
  }
  std::string metadata = ToJson(contents.metadata);
  metadata.push_back('\0');
  sections.push_back({SectionKind::kConstants, constants.pieces()});
  sections.push_back({SectionKind::kMetadata, {BytesOfText(metadata)}});
  if (sections.size() > kMaxSections) {
    return absl::InvalidArgumentError(fmt::format("the programs have {} units, a package holds {} programs and units",
                                                  sections.size() - 2 - count, kMaxSections - 2));
  }
  std::vector<SectionEntry> entries;
  const FileHeader header = MakeHeader(sections, version, &entries);
  HONE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  HONE_RETURN_IF_ERROR(WriteFile(header, entries, sections, file));
  if (!file.temporary_path().empty()) HONE_RETURN_IF_ERROR(CheckWritten(file.temporary_path()));
  HONE_RETURN_IF_ERROR(file.Commit());
  return header.file_bytes;
}

}  // namespace hone::package
