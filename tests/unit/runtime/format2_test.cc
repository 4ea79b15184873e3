// SPDX-License-Identifier: Apache-2.0
// Packages of format 2, which earlier versions of Hone wrote: they load, compute, and are checked as others are.
//
// format2.hone is the package of x -> y = relu(x w) w, x_out = x with x f32[4, 8] and w[i, j] = ((8 i + j) mod 7 - 3) /
// 4, for x86_64 -mcpu=haswell, arm64 -mcpu=cortex-a72 and OpenCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/random.h"
#include "deploy/runtime/checksum.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using package::FileHeader;
using package::ManifestHeader2;
using package::SectionEntry;
using runtime::PackageView;
using runtime::ProgramView;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::string kPath = HONE_TEST_SOURCE_DIR "/format2.hone";

class Format2Test : public ::testing::Test {
 protected:
  // Checks `bytes` after their checksums were corrected. The text of the error; empty if they are a package.
  std::string Check(const std::string& bytes, PackageView* view) {
    EXPECT_TRUE(runtime::Mapping::Pages(bytes.size(), "the test", &memory_).ok());
    std::memcpy(memory_.data(), bytes.data(), bytes.size());
    FileHeader header;
    std::memcpy(&header, memory_.data(), sizeof header);
    std::vector<SectionEntry> sections(header.section_count);
    uint8_t* const table = memory_.data() + sizeof header;
    std::memcpy(sections.data(), table, sections.size() * sizeof(SectionEntry));
    for (SectionEntry& section : sections) {
      section.checksum = package::ChecksumOf(memory_.bytes().subspan(section.offset, section.bytes));
    }
    header.checksum = package::HeaderChecksum(header, sections);
    std::memcpy(memory_.data(), &header, sizeof header);
    std::memcpy(table, sections.data(), sections.size() * sizeof(SectionEntry));
    return runtime::ViewPackage(memory_.bytes(), runtime::ConstantsCheck::kFull, view).text;
  }
  // The error after `change` of the first program's manifest.
  std::string ErrorOf(const std::function<void(ManifestHeader2&)>& change) {
    std::string bytes = good_;
    SectionEntry first;
    std::memcpy(&first, bytes.data() + sizeof(FileHeader), sizeof first);
    ManifestHeader2 manifest;
    std::memcpy(&manifest, bytes.data() + first.offset, sizeof manifest);
    change(manifest);
    std::memcpy(bytes.data() + first.offset, &manifest, sizeof manifest);
    PackageView view;
    return Check(bytes, &view);
  }

  const std::string good_ = ReadWholeFile(kPath);
  runtime::Mapping memory_;
};

TEST_F(Format2Test, ComputesAsItDid) {
  const LoadedModel model(kPath);
  const std::vector<float> x = TinyInput();
  const FloatTensor input(x.data(), {4, 8});
  ASSERT_EQ(hone_set_input(model, 0, &input.tensor), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  const auto times_w = [](const std::vector<float>& rows) {
    std::vector<float> product(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t k = 0; k < 8; ++k) {
        const auto w = static_cast<float>((8 * k + i % 8) % 7);
        product[i] += rows[i / 8 * 8 + k] * (w - 3) / 4;
      }
    }
    return product;
  };
  std::vector<float> hidden = times_w(x);
  for (float& value : hidden) value = std::max(value, 0.0f);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(times_w(hidden))) << "sums of small multiples of 1/32 are exact";
  EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x));
  EXPECT_EQ(hone_call_count(model), 2u);
  EXPECT_STREQ(hone_call_target(model, 0), hone_target(model));
  EXPECT_EQ(hone_border_count(model), 0u);
}

TEST_F(Format2Test, IsSeenAsProgramsOfOneUnit) {
  PackageView view;
  ASSERT_EQ(Check(good_, &view), "");
  ASSERT_EQ(view.programs.size(), 3u);
  for (const ProgramView& program : view.programs) {
    ASSERT_EQ(program.units.size(), 1u);
    ASSERT_EQ(program.homes.size(), 1u);
    EXPECT_EQ(program.Text(program.units[0].entry.target), program.Text(program.target));
    EXPECT_EQ(program.homes[0].inputs.size(), 1u);
    EXPECT_EQ(program.homes[0].outputs.size(), 2u);
    EXPECT_EQ(program.homes[0].copies.size(), 1u);
    EXPECT_GT(program.homes[0].arena_bytes, 0u);
  }
  EXPECT_EQ(view.programs[0].units[0].entry.code, CodeKind::kX86_64);
  EXPECT_THAT(std::string(view.programs[0].Text(view.programs[0].units[0].entry.cpu_features)), HasSubstr("avx2"));
  EXPECT_EQ(view.programs[2].units[0].entry.code, CodeKind::kOpenCl);
  EXPECT_GT(view.programs[2].units[0].entry.lanes, 0u);
}

TEST_F(Format2Test, IsCheckedAsOthersAre) {
  using Change = std::function<void(ManifestHeader2&)>;
  const std::pair<Change, const char*> cases[] = {
      {[](ManifestHeader2& m) { m.code = CodeKind{99}; }, "program 0: its code is of an unknown kind"},
      {[](ManifestHeader2& m) { m.lanes = 8; }, "program 0: its code asks for what code of its kind does not have"},
      {[](ManifestHeader2& m) { m.device = m.target; }, "its code asks for what code of its kind does not have"},
      {[](ManifestHeader2& m) { m.cpu_features.bytes = 1; }, "its code has a text out of range"},
      {[](ManifestHeader2& m) { m.target.bytes += 1; }, "manifest has a text out of range"},
      {[](ManifestHeader2& m) { m.arena_bytes = 0; }, "is out of place"},
      {[](ManifestHeader2& m) { m.arena_bytes += 1; }, "size of a memory region is odd"},
      {[](ManifestHeader2& m) { m.io_bytes += 1; }, "size of a memory region is odd"},
      {[](ManifestHeader2& m) { m.kernels.count = 1; }, "runs a kernel that is not there"},
      {[](ManifestHeader2& m) { m.kernels.count = 1u << 30; }, "table of kernels is out of range"},
      {[](ManifestHeader2& m) { m.arguments.count -= 1; }, "has its arguments out of range"},
      {[](ManifestHeader2& m) { m.outputs.count = 1; }, "an unlisted output"},
  };
  for (const auto& [change, message] : cases) EXPECT_THAT(ErrorOf(change), HasSubstr(message));
}

TEST_F(Format2Test, RandomManifestsNeverCrash) {
  Random random(3);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good_;
    const auto number = static_cast<size_t>(2 * random.Below(3));
    SectionEntry manifest;
    std::memcpy(&manifest, bytes.data() + sizeof(FileHeader) + number * sizeof manifest, sizeof manifest);
    for (int64_t i = random.Below(4); i >= 0; --i) {
      const uint64_t at = manifest.offset + static_cast<uint64_t>(random.Below(static_cast<int64_t>(manifest.bytes)));
      bytes[at] = static_cast<char>(random.Below(3) == 0 ? 0xff : random.Next());
    }
    PackageView view;
    refused += Check(bytes, &view).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 500);
}

// The manifest says what the sections are: a package of another version in the header is no package.
TEST_F(Format2Test, AWrongVersionInTheHeaderIsNoticed) {
  std::string bytes = good_;
  for (const char version : {3, 4}) {
    bytes[offsetof(FileHeader, version)] = version;
    PackageView view;
    EXPECT_THAT(Check(bytes, &view), HasSubstr("bad package"));
  }
}

}  // namespace
}  // namespace hone::tests
