// SPDX-License-Identifier: Apache-2.0
// Packages that are truncated, damaged, of another version or hostile are rejected with an error and never crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/runtime/checksum.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using package::FileHeader;
using package::ManifestHeader;
using ::testing::HasSubstr;

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class DamagedPackageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    kernels_ = CompileTinyKernels();
    const TemporaryFolder folder = TemporaryFolder::Create().value();
    package::PackageContents contents = TinyContents(kernels_);
    AddProgram(contents, TinyOpenClProgram(), "opencl");
    AddProgram(contents, TinySplitProgram(TinyOpenClProgram(), kernels_), "opencl + cpu");
    WriteTinyPackage(folder / "tiny.hone", contents);
    good_ = ReadWholeFile(folder / "tiny.hone");
  }

  // The sections of a package with three programs, of which the last has two units.
  using Sections = std::array<package::SectionEntry, 9>;
  enum {
    kManifest,
    kCode,
    kSecondManifest,
    kSecondCode,
    kSplitManifest,
    kSplitCode,
    kSplitSecondCode,
    kConstants,
    kMetadata
  };
  static Sections SectionsOf(const std::string& bytes) {
    Sections sections;
    std::memcpy(&sections, bytes.data() + sizeof(FileHeader), sizeof sections);
    return sections;
  }

  // The status of loading `bytes`; the text is then in hone_error().
  HoneStatus Load(const std::string& bytes) {
    const std::string path = folder_ / "damaged.hone";
    WriteWholeFile(path, bytes);
    const HoneLoadOptions options = {sizeof(HoneLoadOptions), 1, 0};
    HoneModel* model = nullptr;
    const HoneStatus status = hone_load(path.c_str(), &options, &model);
    EXPECT_EQ(model == nullptr, status != HONE_OK);
    hone_free(model);
    return status;
  }

  // Corrects all checksums, so that a test reaches the checks after them.
  static void Resum(std::string& bytes) {
    Sections sections = SectionsOf(bytes);
    for (package::SectionEntry& section : sections) {
      if (section.offset > bytes.size() || section.bytes > bytes.size() - section.offset) continue;
      section.checksum = package::ChecksumOf(BytesOf(bytes).subspan(section.offset, section.bytes));
    }
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.checksum = package::HeaderChecksum(header, sections);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &sections, sizeof sections);
  }

  // The valid package after `change` was applied to the T at `offset`, with correct checksums.
  template <typename T>
  static std::string Changed(uint64_t offset, const std::function<void(T&)>& change) {
    std::string bytes = good_;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    change(value);
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    Resum(bytes);
    return bytes;
  }
  static std::string ChangedManifest(const std::function<void(ManifestHeader&)>& change) {
    return Changed<ManifestHeader>(SectionsOf(good_)[kManifest].offset, change);
  }
  // Element `index` of a table of the manifest in section `section`.
  template <typename T>
  static std::string ChangedEntry(package::TableRef ManifestHeader::* table, size_t index,
                                  const std::function<void(T&)>& change, size_t section = kManifest) {
    ManifestHeader manifest;
    const uint64_t start = SectionsOf(good_)[section].offset;
    std::memcpy(&manifest, good_.data() + start, sizeof manifest);
    return Changed<T>(start + (manifest.*table).offset + index * sizeof(T), change);
  }

  // The valid package with `to` instead of the first `from` in the manifest of program 0. Both have the same length.
  static std::string ChangedText(const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    std::string bytes = good_;
    const size_t at = bytes.find(from, SectionsOf(good_)[kManifest].offset);
    EXPECT_LT(at, SectionsOf(good_)[kCode].offset) << from;
    bytes.replace(at, from.size(), to);
    Resum(bytes);
    return bytes;
  }

  static std::string kernels_, good_;
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};
std::string DamagedPackageTest::kernels_, DamagedPackageTest::good_;

TEST_F(DamagedPackageTest, TheUndamagedOneLoads) { EXPECT_EQ(Load(good_), HONE_OK) << hone_error(); }

TEST_F(DamagedPackageTest, EveryFlippedBitIsNoticed) {
  Random random(1);
  std::string bytes = good_;
  for (size_t at = 0; at < bytes.size(); at += 1 + static_cast<size_t>(random.Below(at < 2048 ? 2 : 40))) {
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ (1 << random.Below(8)));
    ASSERT_EQ(Load(bytes), HONE_BAD_PACKAGE) << "byte " << at << ": " << hone_error();
    bytes[at] = before;
  }
}

TEST_F(DamagedPackageTest, EveryTruncationIsNoticed) {
  std::vector<size_t> lengths = {0, 1, 7, 8, 100, sizeof(FileHeader) - 1, sizeof(FileHeader), good_.size() - 1};
  for (const package::SectionEntry& section : SectionsOf(good_)) {
    for (const uint64_t end : {section.offset, section.offset + 1, section.offset + section.bytes / 2}) {
      lengths.push_back(end);
    }
    if (section.offset + section.bytes < good_.size()) lengths.push_back(section.offset + section.bytes);
  }
  for (const size_t length : lengths) {
    ASSERT_LT(length, good_.size());
    EXPECT_EQ(Load(good_.substr(0, length)), HONE_BAD_PACKAGE) << length;
    EXPECT_THAT(hone_error(), HasSubstr("bad package")) << length;
  }
  Load(good_.substr(0, good_.size() - 10));
  EXPECT_THAT(hone_error(), HasSubstr("truncated: " + std::to_string(good_.size()) + " bytes expected"));
}

TEST_F(DamagedPackageTest, BytesAfterTheEndAreNoticed) {
  EXPECT_EQ(Load(good_ + "x"), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("bytes after its end"));
}

TEST_F(DamagedPackageTest, FilesThatAreNoPackagesAreNamedSo) {
  EXPECT_EQ(Load("hello, this is a text file and no package at all"), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("does not start as a .hone package does"));
  HoneModel* model = nullptr;
  EXPECT_EQ(hone_load("/nowhere/at/all.hone", nullptr, &model), HONE_IO_ERROR);
  EXPECT_THAT(hone_error(), HasSubstr("cannot open package '/nowhere/at/all.hone': No such file"));
  EXPECT_EQ(hone_load("/", nullptr, &model), HONE_IO_ERROR);
  EXPECT_THAT(hone_error(), HasSubstr("not a regular file"));
}

TEST_F(DamagedPackageTest, AnotherVersionIsNamed) {
  const std::string newer = Changed<FileHeader>(0, [](FileHeader& header) { header.version = 9; });
  EXPECT_EQ(Load(newer), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("format version 9, this runtime reads versions 2 to 6"));
}

// A package without open sizes and defaults is written in format 3, whose manifest has no tables of sizes.
TEST_F(DamagedPackageTest, Version3IsNotReadAsVersion4) {
  std::string bytes = good_;
  ASSERT_EQ(bytes[offsetof(FileHeader, version)], 3);
  EXPECT_EQ(Load(bytes), HONE_OK) << hone_error();
  bytes[offsetof(FileHeader, version)] = 4;
  Resum(bytes);
  EXPECT_EQ(Load(bytes), HONE_BAD_PACKAGE);
}

TEST_F(DamagedPackageTest, TrustedConstantsAreNotReadOnLoading) {
  std::string bytes = good_;
  bytes[SectionsOf(good_)[kConstants].offset] ^= 1;
  EXPECT_EQ(Load(bytes), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("section constants is damaged"));
  const HoneLoadOptions options = {sizeof(HoneLoadOptions), 1, HONE_LOAD_TRUST_CONSTANTS};
  HoneModel* model = nullptr;
  EXPECT_EQ(hone_load((folder_ / "damaged.hone").c_str(), &options, &model), HONE_OK) << hone_error();
  hone_free(model);
}

TEST_F(DamagedPackageTest, SectionsOutOfPlaceAreRefused) {
  const std::function<void(Sections&)> changes[] = {
      [](Sections& s) { s[kCode].offset = ~uint64_t{0} - 4095; },
      [](Sections& s) { s[kCode].bytes = ~uint64_t{0}; },
      [](Sections& s) { s[kConstants].offset = s[kSecondCode].offset; },
      [](Sections& s) { s[kManifest].offset += 8; },
      [](Sections& s) { s[kMetadata].bytes -= 1; },
      [](Sections& s) { std::swap(s[kCode], s[kConstants]); },
      [](Sections& s) { std::swap(s[kManifest].offset, s[kSecondManifest].offset); },
      [](Sections& s) { s[kSecondManifest].kind = package::SectionKind{9}; },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    EXPECT_EQ(Load(Changed<Sections>(sizeof(FileHeader), changes[i])), HONE_BAD_PACKAGE) << i;
    EXPECT_THAT(hone_error(), ::testing::Not(HasSubstr("header is damaged"))) << i;
  }
}

TEST_F(DamagedPackageTest, NumbersOfSectionsThatMakeNoProgramsAreRefused) {
  for (const uint32_t count : {0u, 2u, 3u, 4u, 5u, 6u, 8u, 10u, 127u, 128u, 0xfffffffeu}) {
    const std::string bytes = Changed<FileHeader>(0, [&](FileHeader& header) { header.section_count = count; });
    EXPECT_EQ(Load(bytes), HONE_BAD_PACKAGE) << count;
  }
  EXPECT_EQ(Load(good_.substr(0, sizeof(FileHeader) + 40)), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("truncated inside its header"));
}

TEST_F(DamagedPackageTest, TablesAndTextsOutOfRangeAreRefused) {
  const std::function<void(ManifestHeader&)> changes[] = {
      [](ManifestHeader& m) { m.tensors.offset = ~uint64_t{0} & ~uint64_t{7}; },
      [](ManifestHeader& m) { m.tensors.count = 1u << 30; },
      [](ManifestHeader& m) { m.tensors.count = ~uint64_t{0} / 32 + 2; },
      [](ManifestHeader& m) { m.calls.offset += 4; },
      [](ManifestHeader& m) { m.shapes.count -= 1; },
      [](ManifestHeader& m) { m.arguments.count -= 1; },
      [](ManifestHeader& m) { m.strings.count = 0; },
      [](ManifestHeader& m) { m.kernels.count += 1u << 20; },
      [](ManifestHeader& m) { m.kernels.count = 1; },
      [](ManifestHeader& m) { m.target.bytes = 0xffffffff; },
      [](ManifestHeader& m) { m.io_bytes -= 64; },
      [](ManifestHeader& m) { m.units.count = 0; },
      [](ManifestHeader& m) { m.units.count = 2; },
      [](ManifestHeader& m) { m.units.offset += 8; },
      [](ManifestHeader& m) { m.homes.count = 0; },
      [](ManifestHeader& m) { m.homes.count = 2; },
      [](ManifestHeader& m) { m.borders.count = 1; },
      [](ManifestHeader& m) { m.inputs.count = 0; },
      [](ManifestHeader& m) { m.outputs.count = 2; },
      [](ManifestHeader& m) { m.sizes.count = 1; },
      [](ManifestHeader& m) { m.size_steps.count = 1u << 30; },
      [](ManifestHeader& m) { m.extents.count = 1; },
      [](ManifestHeader& m) { m.size_arguments.offset = ~uint64_t{7}; },
      [](ManifestHeader& m) { m.size_arguments.count = 1u << 30; },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    EXPECT_EQ(Load(ChangedManifest(changes[i])), HONE_BAD_PACKAGE) << i;
  }
}

TEST_F(DamagedPackageTest, EntriesThatPointAstrayAreRefused) {
  using package::CallEntry;
  using package::CopyEntry;
  using package::KernelEntry;
  using package::TensorEntry;
  using package::UnitEntry;
  using Manifest = ManifestHeader;
  const std::string broken[] = {
      ChangedEntry<TensorEntry>(&Manifest::tensors, 0, [](TensorEntry& t) { t.dtype = package::DType{99}; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 0, [](TensorEntry& t) { t.kind = package::TensorKind{0}; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 0, [](TensorEntry& t) { t.rank = 200; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 0, [](TensorEntry& t) { t.home = 1; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 2, [](TensorEntry& t) { t.home = 1; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 0, [](TensorEntry& t) { t.shape = 0xfffffff0; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 0, [](TensorEntry& t) { t.bytes = 64; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 1, [](TensorEntry& t) { t.offset = 1 << 20; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 1, [](TensorEntry& t) { t.offset = ~uint64_t{63}; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 2, [](TensorEntry& t) { t.offset += 4; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 2, [](TensorEntry& t) { t.name = {0, 0xfffffffe}; }),
      ChangedEntry<TensorEntry>(&Manifest::tensors, 1, [](TensorEntry& t) { ++t.name.offset, --t.name.bytes; }),
      ChangedEntry<int64_t>(&Manifest::shapes, 0, [](int64_t& d) { d = -4; }),
      ChangedEntry<int64_t>(&Manifest::shapes, 0, [](int64_t& d) { d = int64_t{1} << 62; }),
      ChangedEntry<KernelEntry>(&Manifest::kernels, 0, [](KernelEntry& k) { k.interface.bytes = 0; }),
      ChangedEntry<KernelEntry>(&Manifest::kernels, 0, [](KernelEntry& k) { k.interface.bytes += 1; }),
      ChangedEntry<KernelEntry>(&Manifest::kernels, 1, [](KernelEntry& k) { k.interface.offset = 0xfffffff0; }),
      ChangedEntry<KernelEntry>(&Manifest::kernels, 0, [](KernelEntry& k) { k.unit = 1; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.device.offset = 0xffffffff; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.device = u.target; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.target.bytes = 0xffffffff; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.lanes = 8; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.shared_bytes = 1; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.code = CodeKind{5}; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.code = CodeKind{99}; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.code = CodeKind::kOpenCl; }),
      ChangedEntry<UnitEntry>(&Manifest::units, 0, [](UnitEntry& u) { u.home = 1; }),
      ChangedEntry<uint64_t>(&Manifest::homes, 0, [](uint64_t& bytes) { bytes = 0; }),
      ChangedEntry<uint64_t>(&Manifest::homes, 0, [](uint64_t& bytes) { bytes += 1; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 0, [](CallEntry& c) { c.kernel = 2; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 0, [](CallEntry& c) { c.kernel = 1; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 0, [](CallEntry& c) { c.arguments = 0xffffffff; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 1, [](CallEntry& c) { c.arguments = 2; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 1, [](CallEntry& c) { c.workspace_offset = uint64_t{1} << 40; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 1, [](CallEntry& c) { c.workspace_offset = ~uint64_t{63}; }),
      ChangedEntry<CallEntry>(&Manifest::calls, 1, [](CallEntry& c) { c.workspace_offset += 8; }),
      ChangedEntry<uint32_t>(&Manifest::arguments, 0, [](uint32_t& id) { id = package::kNoTensor; }),
      ChangedEntry<uint32_t>(&Manifest::arguments, 1, [](uint32_t& id) { id = 5; }),  // an output for a constant
      ChangedEntry<uint32_t>(&Manifest::arguments, 2, [](uint32_t& id) { id = 0; }),  // an input for an output
      ChangedEntry<uint32_t>(&Manifest::arguments, 0, [](uint32_t& id) { id = 1; }),  // another size
      ChangedEntry<uint32_t>(&Manifest::arguments, 1, [](uint32_t& id) { id = 6; }),
      ChangedEntry<uint32_t>(&Manifest::inputs, 0, [](uint32_t& id) { id = 3; }),
      ChangedEntry<uint32_t>(&Manifest::outputs, 1, [](uint32_t& id) { id = 1000; }),
      ChangedEntry<uint32_t>(&Manifest::outputs, 1, [](uint32_t& id) { id = 3; }),
      ChangedEntry<CopyEntry>(&Manifest::copies, 0, [](CopyEntry& c) { c.source = 77; }),
      ChangedEntry<CopyEntry>(&Manifest::copies, 0, [](CopyEntry& c) { c.target = 2; }),
      ChangedEntry<CopyEntry>(&Manifest::copies, 1, [](CopyEntry& c) { c.target = 0; }),  // a default of another size
      ChangedEntry<CopyEntry>(&Manifest::copies, 0, [](CopyEntry& c) { c.source = 1; }),
  };
  for (size_t i = 0; i < std::size(broken); ++i) EXPECT_EQ(Load(broken[i]), HONE_BAD_PACKAGE) << i;
}

// Damages the program with two units. Its borders lead from the device's home 0 to 1 before call 1, and back before
// call 2.
TEST_F(DamagedPackageTest, UnitsHomesAndBordersThatDoNotFitAreRefused) {
  using package::BorderEntry;
  using package::CopyEntry;
  using package::KernelEntry;
  using package::TensorEntry;
  using package::UnitEntry;
  using Manifest = ManifestHeader;
  const auto split = [](auto table, size_t index, auto change) {
    return ChangedEntry(table, index, std::function(change), kSplitManifest);
  };
  const std::pair<std::string, const char*> splits[] = {
      {split(&Manifest::units, 1, [](UnitEntry& u) { u.home = 2; }), "unit 1 works in a home that is not there"},
      {split(&Manifest::units, 1, [](UnitEntry& u) { u.home = 0; }), "unit 1 works in the home of another device"},
      {split(&Manifest::units, 0, [](UnitEntry& u) { u.home = 1; }), "unit 1 works in the home of another device"},
      {split(&Manifest::kernels, 1, [](KernelEntry& k) { k.unit = 2; }), "kernel 1 is of a unit that is not there"},
      {split(&Manifest::kernels, 1, [](KernelEntry& k) { k.unit = 0; }), "kernel 1 is not launched as its kind"},
      {split(&Manifest::tensors, 2, [](TensorEntry& t) { t.home = 1; }), "call 0 uses a tensor of another home"},
      {split(&Manifest::tensors, 1, [](TensorEntry& t) { t.home = 1; }), "tensor 1 is in a home that is not there"},
      {split(&Manifest::copies, 0, [](CopyEntry& c) { c.source = 7; }), "copy 0 leads to another home"},
      {split(&Manifest::borders, 0, [](BorderEntry& b) { b.call = 3; }), "border 0 is out of order"},
      {split(&Manifest::borders, 1, [](BorderEntry& b) { b.call = 0; }), "border 1 is out of order"},
      {split(&Manifest::borders, 0, [](BorderEntry& b) { b.call = 0; }), "border 0 reads a tensor that nothing has"},
      {split(&Manifest::borders, 0, [](BorderEntry& b) { b.source = 77; }), "border 0 has a tensor that is not there"},
      {split(&Manifest::borders, 0, [](BorderEntry& b) { b.target = 77; }), "border 0 has a tensor that is not there"},
      {split(&Manifest::borders, 0, [](BorderEntry& b) { b.target = b.source; }), "border 0 leads to the home where"},
      {split(&Manifest::borders, 1, [](BorderEntry& b) { b.target = 3; }), "border 1 does not lead to an intermediate"},
  };
  for (const auto& [bytes, message] : splits) {
    EXPECT_EQ(Load(bytes), HONE_BAD_PACKAGE) << message;
    EXPECT_THAT(hone_error(), HasSubstr(std::string("program 2: "))) << message;
    EXPECT_THAT(hone_error(), HasSubstr(message));
  }
}

TEST_F(DamagedPackageTest, DescriptionsOfKernelsThatDoNotFitAreRefused) {
  const std::pair<std::string, std::string> changes[] = {
      {ChangedText("kernel add_bias", "colonel add_bia"), "kernel 0 has a bad description: line 1: 'colonel'"},
      {ChangedText("input f32[4,8]", "input f32[4,9]"), "call 0 has a tensor that is smaller than its kernel's"},
      {ChangedText("input f32[4,8]", "input q32[4,8]"), "kernel 0 has a bad description: line 2: expected a type"},
      {ChangedText("output f32[4,8]", "packed f32[4,8]"),
       "packed buffers need launches of prepare, and launches of prepare need packed buffers"},
      {ChangedText("launch add_bias 0 0", "launch add_bias 1 1"), "kernel 0 is not launched as its kind of code is"},
      {ChangedText("launch scale 0 0", "lunch  scale 0 0"), "kernel 1 has a bad description"},
      {ChangedText("scratch 128 0", "scratch 999 0"), "call 1 has its workspace out of range"},
  };
  for (const auto& [bytes, message] : changes) {
    EXPECT_EQ(Load(bytes), HONE_BAD_PACKAGE) << message;
    EXPECT_THAT(hone_error(), HasSubstr("bad package: program 0: ")) << message;
    EXPECT_THAT(hone_error(), HasSubstr(message));
  }
}

// If all kernels were read before the check, many kernels that share a text of 1 MB would use all memory.
TEST_F(DamagedPackageTest, ASecondKernelOfANameIsRefusedBeforeTheNextIsRead) {
  package::PackageProgram program = TinyProgram(kernels_);
  const KernelInterface kernel = program.kernels[0], nameless;
  program.kernels = {kernel, kernel, nameless};
  package::ConstantSection constants;
  const auto manifest = package::BuildManifest(program, "cpu", package::kFormatVersion, constants);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  runtime::ProgramView view;
  const runtime::Fault fault =
      runtime::ViewProgram({package::kFormatVersion, *manifest, {BytesOf(kernels_)}}, 4096, "", &view);
  EXPECT_EQ(fault.code, HONE_BAD_PACKAGE);
  EXPECT_THAT(fault.text, HasSubstr("two kernels of one name"));
}

// Reads all that a view promises to be readable.
size_t Walk(const runtime::ProgramView& view, std::span<const uint8_t> constants) {
  size_t sum = view.Text(view.target).size();
  for (const runtime::UnitView& unit : view.units) {
    sum += unit.code.size() + view.Text(unit.entry.target).size() + view.homes[unit.entry.home].units.size();
  }
  for (const package::BorderEntry& border : view.borders) {
    sum += view.tensors[border.source].bytes + view.tensors[border.target].bytes + view.Home(view.calls[border.call]);
  }
  for (const runtime::HomeView& home : view.homes) {
    for (const std::vector<uint32_t>* ids : {&home.inputs, &home.outputs, &home.constants}) {
      for (const uint32_t id : *ids) sum += view.tensors[id].bytes;
    }
  }
  for (const package::TensorEntry& tensor : view.tensors) {
    sum += std::strlen(view.Text(tensor.name).data());
    for (const int64_t dimension : view.Shape(tensor)) sum += static_cast<size_t>(dimension);
    if (tensor.kind == package::TensorKind::kConstant && tensor.bytes > 0)
      sum += constants[tensor.offset + tensor.bytes - 1];
  }
  for (const package::CallEntry& call : view.calls) {
    sum += view.Kernel(call).name.size();
    const std::span<const uint32_t> arguments = view.Arguments(call);
    for (size_t a = 0; a < arguments.size(); ++a) {
      const KernelBuffer& buffer = view.Kernel(call).buffers[a];
      if (buffer.role == BufferRole::kSizes) {
        for (int64_t i = 0; i < buffer.shape[0]; ++i) sum += view.size_arguments[arguments[a] + static_cast<size_t>(i)];
      } else {
        sum += arguments[a] == package::kNoTensor ? 0 : view.tensors[arguments[a]].bytes;
      }
    }
    for (const KernelLaunch& launch : view.Kernel(call).main) {
      for (const uint32_t argument : launch.arguments) sum += view.Kernel(call).buffers[argument].shape.size();
    }
  }
  for (const package::CallNodeEntry& entry : view.call_nodes) {
    sum += entry.call + view.Text(view.nodes[entry.node].name).size() + view.Text(view.nodes[entry.node].op).size();
  }
  for (const package::ValueEntry& value : view.values) {
    sum += view.Text(value.name).size() + view.tensors[value.tensor].bytes;
    for (uint32_t i = 0; i < value.rank; ++i) sum += view.value_axes[value.axes + i];
  }
  for (const uint32_t id : view.inputs) sum += view.tensors[id].bytes;
  for (const uint32_t id : view.outputs) sum += view.tensors[id].bytes;
  for (const package::CopyEntry& copy : view.copies)
    sum += view.tensors[copy.source].bytes + view.tensors[copy.target].bytes;
  return sum;
}

TEST_F(DamagedPackageTest, RandomManifestsBehindRightChecksumsNeverCrash) {
  Random random(7);
  runtime::Mapping memory;
  ASSERT_TRUE(runtime::Mapping::Pages(good_.size(), "the test", &memory).ok());
  int refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = good_;
    const size_t manifests[] = {kManifest, kSecondManifest, kSplitManifest};
    const package::SectionEntry manifest = SectionsOf(good_)[manifests[random.Below(3)]];
    for (int64_t i = random.Below(4); i >= 0; --i) {
      const uint64_t at = manifest.offset + static_cast<uint64_t>(random.Below(static_cast<int64_t>(manifest.bytes)));
      bytes[at] = static_cast<char>(random.Below(3) == 0 ? 0xff : random.Next());
    }
    Resum(bytes);
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    runtime::PackageView view;
    if (runtime::ViewPackage(memory.bytes(), runtime::ConstantsCheck::kFull, &view).ok()) {
      for (const runtime::ProgramView& program : view.programs) Walk(program, view.constants);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(DamagedPackageTest, TooLargeAnArenaIsOutOfMemory) {
  package::PackageContents contents = TinyContents(kernels_);
  contents.programs[0].arena_bytes[0] = uint64_t{1} << 60;
  WriteTinyPackage(folder_ / "large.hone", contents);
  EXPECT_EQ(Load(ReadWholeFile(folder_ / "large.hone")), HONE_OUT_OF_MEMORY);
  EXPECT_THAT(hone_error(), HasSubstr("bytes for the arena"));
}

TEST_F(DamagedPackageTest, CodeForAnotherMachineIsRefusedBeforeItIsLoaded) {
  package::PackageContents contents = TinyContents(kernels_);
  CodeKind& kind = contents.programs[0].units[0].kind;
  kind = kind == CodeKind::kX86_64 ? CodeKind::kAArch64 : CodeKind::kX86_64;
  const std::string path = folder_ / "foreign.hone";
  WriteTinyPackage(path, contents);
  EXPECT_EQ(Load(ReadWholeFile(path)), HONE_INCOMPATIBLE);
  EXPECT_THAT(hone_error(), HasSubstr("the code is for " + std::string(FindCodeKind(kind)->name)));
}

TEST_F(DamagedPackageTest, MissingCpuFeaturesAreNamed) {
  package::PackageContents contents = TinyContents(kernels_);
  for (const std::string_view feature : runtime::HostFeatures())
    contents.programs[0].units[0].cpu_features.emplace_back(feature);
  const std::string path = folder_ / "features.hone";
  WriteTinyPackage(path, contents);
  EXPECT_EQ(Load(ReadWholeFile(path)), HONE_OK) << hone_error();
  contents.programs[0].units[0].cpu_features.push_back("warp-drive");
  WriteTinyPackage(path, contents);
  EXPECT_EQ(Load(ReadWholeFile(path)), HONE_INCOMPATIBLE);
  EXPECT_THAT(hone_error(), HasSubstr("the code needs warp-drive (unknown to this runtime), this CPU lacks it"));
}

TEST_F(DamagedPackageTest, BrokenCodeIsRefused) {
  const std::string path = folder_ / "code.hone";
  std::string other_machine = kernels_;
  other_machine[18] = static_cast<char>(0xf3);  // e_machine: RISC-V
  const std::pair<std::string, std::string> codes[] = {
      {"", "not an ELF file"},
      {std::string(1000, 'x'), "not an ELF file"},
      {other_machine, "ELF machine 243"},
      {kernels_.substr(0, 64), "cannot load the package's code"},
  };
  for (const auto& [code, message] : codes) {
    WriteTinyPackage(path, TinyContents(code));
    EXPECT_NE(Load(ReadWholeFile(path)), HONE_OK);
    EXPECT_THAT(hone_error(), HasSubstr(message));
  }
}

TEST_F(DamagedPackageTest, AMissingKernelIsNamed) {
  package::PackageContents contents = TinyContents(kernels_);
  contents.programs[0].kernels[1].main[0].function = "conv_9";
  const std::string path = folder_ / "symbol.hone";
  WriteTinyPackage(path, contents);
  EXPECT_EQ(Load(ReadWholeFile(path)), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("no kernel 'conv_9'"));
}

}  // namespace
}  // namespace hone::tests
