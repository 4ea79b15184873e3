// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/package_view.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "deploy/runtime/checksum.h"

namespace hone::runtime {
namespace {

using package::FileHeader;
using package::SectionEntry;
using package::SectionKind;
using package::TensorEntry;

using Bytes = std::span<const uint8_t>;

bool IsZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

const char* SectionName(SectionKind kind) {
  switch (kind) {
    case SectionKind::kManifest:
      return "manifest";
    case SectionKind::kCode:
      return "code";
    case SectionKind::kConstants:
      return "constants";
    case SectionKind::kMetadata:
      return "metadata";
  }
  return "unknown";
}

// Whether the kinds are those of a package: manifest, code, code, ..., manifest, code, ..., constants, metadata.
bool AreInOrder(std::span<const SectionEntry> sections) {
  const size_t programs_end = sections.size() - 2;
  for (size_t i = 0; i < programs_end; ++i) {
    const bool after_manifest = i > 0 && sections[i - 1].kind == SectionKind::kManifest;
    const bool is_manifest = sections[i].kind == SectionKind::kManifest;
    if (i == 0 ? !is_manifest : after_manifest && is_manifest) return false;
    if (!is_manifest && sections[i].kind != SectionKind::kCode) return false;
  }
  return sections[programs_end - 1].kind == SectionKind::kCode &&
         sections[programs_end].kind == SectionKind::kConstants &&
         sections[programs_end + 1].kind == SectionKind::kMetadata;
}

// Checks the header and copies it to *result and the section table to *sections.
Fault CheckHeader(Bytes file, FileHeader* result, std::vector<SectionEntry>* sections) {
  if (file.size() < sizeof package::kMagic || std::memcmp(file.data(), package::kMagic, sizeof package::kMagic) != 0) {
    return BadPackage("the file does not start as a .hone package does");
  }
  FileHeader header;
  if (file.size() < sizeof header) return BadPackage("truncated inside its header");
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version < package::kOldestFormatVersion || header.version > package::kFormatVersion) {
    return BadPackage("format version " + std::to_string(header.version) + ", this runtime reads versions " +
                      std::to_string(package::kOldestFormatVersion) + " to " + std::to_string(package::kFormatVersion) +
                      "; compile the model again with a matching hone");
  }
  if (header.section_count < 4 || header.section_count > package::kMaxSections) {
    return BadPackage("wrong number of sections");
  }
  if (file.size() < package::HeaderBytes(header.section_count)) return BadPackage("truncated inside its header");
  sections->resize(header.section_count);
  std::memcpy(sections->data(), file.data() + sizeof header, sections->size() * sizeof(SectionEntry));
  if (package::HeaderChecksum(header, *sections) != header.checksum) {
    return BadPackage("its header is damaged (checksum mismatch); copy or compile it again");
  }
  if (header.file_bytes != file.size()) {
    return BadPackage((file.size() < header.file_bytes ? "truncated: " : "bytes after its end: ") +
                      std::to_string(header.file_bytes) + " bytes expected, " + std::to_string(file.size()) +
                      " found; copy it again");
  }
  *result = header;
  return {};
}

// Checks kind, place and checksum of every section, and that the bytes between sections are zero.
Fault CheckSections(Bytes file, std::span<const SectionEntry> sections, ConstantsCheck check) {
  if (!AreInOrder(sections)) return BadPackage("sections of the wrong kinds");
  uint64_t end = package::HeaderBytes(sections.size());
  for (const SectionEntry& section : sections) {
    const std::string name = SectionName(section.kind);
    if (section.offset < end || section.offset % package::kSectionAlignment != 0 || section.offset > file.size() ||
        section.bytes > file.size() - section.offset) {
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

bool SameTarget(const ProgramView& a, const ProgramView& b) { return a.Text(a.target) == b.Text(b.target); }

bool SameShape(const ProgramView& a, uint32_t x, const ProgramView& b, uint32_t y) {
  return std::ranges::equal(a.Shape(a.tensors[x]), b.Shape(b.tensors[y]));
}

// Whether two lists of inputs or outputs have equal names, types and ranks, in order, and with `shapes` equal shapes.
bool SamePorts(const ProgramView& a, std::span<const uint32_t> a_ids, const ProgramView& b,
               std::span<const uint32_t> b_ids, bool shapes) {
  return std::equal(a_ids.begin(), a_ids.end(), b_ids.begin(), b_ids.end(), [&](uint32_t x, uint32_t y) {
    const TensorEntry &left = a.tensors[x], &right = b.tensors[y];
    return a.Text(left.name) == b.Text(right.name) && left.dtype == right.dtype && left.rank == right.rank &&
           (!shapes || SameShape(a, x, b, y));
  });
}

// Whether two programs take the same shapes of inputs, as far as their largest shapes and their open sizes say.
bool SameRange(const ProgramView& a, const ProgramView& b) {
  const auto same_size = [](const package::SizeEntry& x, const package::SizeEntry& y) {
    return x.min == y.min && x.max == y.max && x.tensor == y.tensor && x.dimension == y.dimension;
  };
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (!SameShape(a, a.inputs[i], b, b.inputs[i])) return false;
  }
  return std::ranges::equal(a.sizes, b.sizes, same_size);
}

// Checks that all programs have the same inputs and outputs. Programs of one target take different shapes, and number
// their inputs and outputs alike, so that the runtime can change from one to another. If every target has one program,
// all have the same shapes.
Fault CheckProgramsAgree(std::span<const ProgramView> programs) {
  bool several = false;  // for one target
  for (size_t i = 0; i < programs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) several |= SameTarget(programs[i], programs[j]);
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    const ProgramView& program = programs[i];
    if (!SamePorts(program, program.inputs, programs[0], programs[0].inputs, !several) ||
        !SamePorts(program, program.outputs, programs[0], programs[0].outputs, !several)) {
      return BadPackage("its programs have different inputs or outputs");
    }
    for (size_t j = 0; j < i; ++j) {
      if (!SameTarget(program, programs[j])) continue;
      if (!std::ranges::equal(program.inputs, programs[j].inputs) ||
          !std::ranges::equal(program.outputs, programs[j].outputs)) {
        return BadPackage("programs of one target number their inputs or outputs differently");
      }
      if (SameRange(program, programs[j])) return BadPackage("two programs for one target that take the same shapes");
    }
  }
  return {};
}

}  // namespace

Fault ViewPackage(Bytes file, ConstantsCheck check, PackageView* view) {
  FileHeader header;
  std::vector<SectionEntry> sections;
  HONE_RETURN_IF_FAULT(CheckHeader(file, &header, &sections));
  HONE_RETURN_IF_FAULT(CheckSections(file, sections, check));
  const auto section = [&](size_t index) { return file.subspan(sections[index].offset, sections[index].bytes); };
  PackageView result;
  const Bytes metadata = section(sections.size() - 1);
  if (metadata.empty() || metadata.back() != 0) return BadPackage("its metadata has no end");
  result.metadata = {reinterpret_cast<const char*>(metadata.data()), metadata.size() - 1};
  result.constants = section(sections.size() - 2);
  std::vector<ProgramSections> programs;
  for (size_t i = 0; i + 2 < sections.size(); ++i) {
    if (sections[i].kind == SectionKind::kManifest) {
      programs.push_back({header.version, section(i), {}});
    } else {
      programs.back().codes.push_back(section(i));
    }
  }
  if (programs.size() > package::kProgramsMax) return BadPackage("too many programs");
  for (size_t i = 0; i < programs.size(); ++i) {
    const std::string where = programs.size() > 1 ? "program " + std::to_string(i) + ": " : "";
    HONE_RETURN_IF_FAULT(ViewProgram(programs[i], result.constants.size(), where, &result.programs.emplace_back()));
  }
  HONE_RETURN_IF_FAULT(CheckProgramsAgree(result.programs));
  *view = std::move(result);
  return {};
}

}  // namespace hone::runtime
