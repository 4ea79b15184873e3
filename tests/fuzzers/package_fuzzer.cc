// SPDX-License-Identifier: Apache-2.0
// A package's bytes, as the runtime looks at them before it uses any: as they are, and with the checksums made right,
// which keep nobody out who wants in.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "deploy/runtime/checksum.h"
#include "deploy/runtime/package_view.h"

namespace hone::runtime {
namespace {

using package::FileHeader;
using package::SectionEntry;

void MakeChecksumsRight(std::span<uint8_t> file) {
  FileHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  const size_t room = (file.size() - sizeof header) / sizeof(SectionEntry);
  if (header.section_count == 0 || room == 0) return;
  std::vector<SectionEntry> sections(std::min<size_t>(header.section_count, room));
  std::memcpy(sections.data(), file.data() + sizeof header, sections.size() * sizeof(SectionEntry));
  for (SectionEntry& section : sections) {
    if (section.offset > file.size() || section.bytes > file.size() - section.offset) continue;
    section.checksum = package::ChecksumOf(file.subspan(section.offset, section.bytes));
  }
  header.file_bytes = file.size();
  header.checksum = package::HeaderChecksum(header, sections);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, sections.data(), sections.size() * sizeof(SectionEntry));
}

// What is promised after the checks, used as the runtime does.
uint64_t Use(const PackageView& view) {
  uint64_t sum = view.metadata.size();
  for (const ProgramView& program : view.programs) {
    for (const package::TensorEntry& tensor : program.tensors) {
      sum += program.Text(tensor.name).size();
      for (const int64_t extent : program.Shape(tensor)) sum += static_cast<uint64_t>(extent);
    }
    for (const package::CallEntry& call : program.calls) {
      for (const uint32_t id : program.Arguments(call)) {
        if (id != package::kNoTensor) sum += program.tensors[id].rank;
      }
    }
    for (const UnitView& unit : program.units) {
      sum += unit.code.size() + program.Text(unit.entry.target).size() + program.homes[unit.entry.home].arena_bytes;
    }
    for (const package::BorderEntry& border : program.borders) {
      sum += program.tensors[border.source].bytes + program.tensors[border.target].bytes;
      sum += program.Home(program.calls[border.call]);
    }
    for (const HomeView& home : program.homes) {
      for (const std::vector<uint32_t>* ids : {&home.inputs, &home.outputs, &home.constants}) {
        for (const uint32_t id : *ids) sum += program.tensors[id].rank;
      }
    }
    for (const uint32_t id : program.inputs) sum += program.tensors[id].rank;
    for (const uint32_t id : program.outputs) sum += program.tensors[id].rank;
  }
  return sum;
}

}  // namespace
}  // namespace hone::runtime

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone::runtime;  // NOLINT: one function
  constexpr size_t kPage = 4096;
  const size_t whole = (size + kPage) / kPage * kPage;
  const std::unique_ptr<uint8_t, void (*)(void*)> page(static_cast<uint8_t*>(std::aligned_alloc(kPage, whole)),
                                                       std::free);
  const std::span<uint8_t> file(page.get(), size);
  std::memcpy(file.data(), data, size);
  for (const bool right : {false, true}) {
    if (right) MakeChecksumsRight(file);
    PackageView view;
    if (ViewPackage(file, ConstantsCheck::kFull, &view).ok()) {
      volatile uint64_t used = Use(view);
      static_cast<void>(used);
    }
  }
  return 0;
}
