// SPDX-License-Identifier: Apache-2.0
// Archives of arrays: Hone and NumPy read Hone's, Hone reads NumPy's, and damaged ones are errors.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <filesystem>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "cli/npz_file.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::cli {
namespace {

using package::DType;
using run::Array;
using run::ArrayView;
using run::NpyHeader;
using run::NpyPrefix;
using run::NpzReader;
using run::ShapeText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::ReadWholeFile;
using tests::RunCommand;
using tests::WriteWholeFile;

absl::Status Any(const NpyHeader&) { return absl::OkStatus(); }

const std::vector<int64_t> kShape = {2, 3};
const std::vector<uint8_t> kData = {1, 2, 3, 4, 5, 6};

void WriteSample(const std::string& path) {
  const ArrayView arrays[] = {{"b", DType::kUInt8, kShape, kData}, {"a/b c", DType::kBool, {}, {kData.data(), 1}}};
  const absl::Status status = WriteNpz(path, arrays);
  ASSERT_TRUE(status.ok()) << status;
}

// Writes an archive with these members, which need not be valid arrays.
void WriteZip(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members,
              int compression = ZIP_CM_DEFLATE) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const auto& [name, data] : members) {
    const zip_int64_t index =
        zip_file_add(archive, name.c_str(), zip_source_buffer(archive, data.data(), data.size(), 0), 0);
    ASSERT_GE(index, 0);
    ASSERT_EQ(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), compression, 0), 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

std::string OpenError(const std::string& path) { return std::string(NpzReader::Open(path).status().message()); }

// The system's Python, because the Debian package of NumPy belongs to it.
constexpr char kPython[] = "/usr/bin/python3";
bool HaveNumpy() { return RunCommand(fmt::format("{} -c 'import numpy'", kPython)).exit_code == 0; }

TEST(NpzTest, ReadsWhatItWrites) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "a.npz";
  WriteSample(path);
  const absl::StatusOr<NpzReader> reader = NpzReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(reader->names(), ElementsAre("a/b c", "b"));
  const absl::StatusOr<Array> array = reader->Read("b", Any);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->dtype, DType::kUInt8);
  EXPECT_EQ(array->shape, kShape);
  EXPECT_EQ(array->data, kData);
  EXPECT_EQ(reader->Read("a/b c", Any)->shape.size(), 0u);
  WriteSample(folder / "b.npz");
  EXPECT_EQ(ReadWholeFile(path), ReadWholeFile(folder / "b.npz"));
}

TEST(NpzTest, ReplacesAnOldFile) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "a.npz";
  WriteWholeFile(path, "old, and no archive");
  WriteSample(path);
  EXPECT_TRUE(NpzReader::Open(path).ok());
}

TEST(NpzTest, FollowsALink) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  std::filesystem::create_symlink("a.npz", folder / "link");
  WriteSample(folder / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(NpzReader::Open(folder / "a.npz").ok());
}

TEST(NpzTest, WritesIntoAPipe) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // opened for both, so that neither end blocks in open()
  WriteSample(pipe);
  std::string bytes(size_t{64} << 10, '\0');
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(read(reader, bytes.data(), bytes.size()), 0)));
  close(reader);
  WriteSample(folder / "a.npz");
  EXPECT_EQ(bytes, ReadWholeFile(folder / "a.npz"));
}

TEST(NpzTest, ReadsDeflatedMembers) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "a.npz";
  const std::vector<int64_t> shape = {3000000};  // more than one piece of the reader
  WriteZip(path, {{"x.npy", NpyPrefix(DType::kInt8, shape) + std::string(3000000, 'z')}});
  EXPECT_LT(ReadWholeFile(path).size(), 100000u);
  const absl::StatusOr<Array> array = NpzReader::Open(path)->Read("x", Any);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->data.size(), 3000000u);
  EXPECT_EQ(array->data.back(), 'z');
}

TEST(NpzTest, TheHeaderCheckComesBeforeTheData) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  WriteSample(folder / "a.npz");
  const auto refuse = [](const NpyHeader& header) {
    return absl::FailedPreconditionError(fmt::format("no {} please", ShapeText(header.shape)));
  };
  const absl::Status status = NpzReader::Open(folder / "a.npz")->Read("b", refuse).status();
  EXPECT_EQ(std::string(status.message()),
            fmt::format("array 'b' in '{}/a.npz': no [2, 3] please", folder.path().string()));
}

TEST(NpzTest, NamesFilesThatAreNoArchives) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  EXPECT_EQ(NpzReader::Open("/nowhere/a.npz").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(OpenError("/nowhere/a.npz"), HasSubstr("cannot open .npz file '/nowhere/a.npz'"));
  WriteWholeFile(folder / "text", "hello");
  EXPECT_THAT(OpenError(folder / "text"), HasSubstr("Not a zip archive"));
  WriteZip(folder / "other.npz", {{"readme.txt", "hello"}});
  EXPECT_THAT(OpenError(folder / "other.npz"), HasSubstr("contains 'readme.txt', which is not an .npy array"));
}

TEST(NpzTest, NamesTheDamagedArray) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "a.npz";
  WriteZip(path, {{"x.npy", "no array"}});
  EXPECT_EQ(std::string(NpzReader::Open(path)->Read("x", Any).status().message()),
            "array 'x' in '" + path + "': it is not an .npy array");
  WriteZip(path, {{"x.npy", NpyPrefix(DType::kInt8, kShape) + "1234567"}});
  EXPECT_THAT(std::string(NpzReader::Open(path)->Read("x", Any).status().message()),
              HasSubstr("more data than its shape"));
  WriteZip(path, {{"x.npy", NpyPrefix(DType::kInt8, kShape) + "UNIQUE"}}, ZIP_CM_STORE);
  std::string bytes = ReadWholeFile(path);
  bytes[bytes.find("UNIQUE")] ^= 1;
  WriteWholeFile(path, bytes);
  const absl::Status status = NpzReader::Open(path)->Read("x", Any).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CRC error"));
}

TEST(NpzTest, RandomDamageNeverCrashes) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "a.npz";
  WriteSample(path);
  const std::string good = ReadWholeFile(path);
  Random random(11);
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = good;
    bytes[static_cast<size_t>(random.Below(static_cast<int64_t>(bytes.size())))] = static_cast<char>(random.Next());
    if (random.Below(5) == 0) bytes.resize(static_cast<size_t>(random.Below(static_cast<int64_t>(bytes.size()))));
    WriteWholeFile(path, bytes);
    const absl::StatusOr<NpzReader> reader = NpzReader::Open(path);
    if (!reader.ok()) continue;
    for (const std::string& name : reader->names()) {
      const absl::StatusOr<Array> array = reader->Read(name, Any);
      EXPECT_TRUE(!array.ok() || array->data.size() <= kData.size());
    }
  }
}

TEST(NpzTest, ReportsWhereItCannotWrite) {
  const ArrayView arrays[] = {{"b", DType::kUInt8, kShape, kData}};
  EXPECT_THAT(std::string(WriteNpz("/nowhere/a.npz", arrays).message()), HasSubstr("'/nowhere/a.npz'"));
}

TEST(NpzTest, NumpyReadsOurs) {
  if (!HaveNumpy()) GTEST_SKIP() << kPython << " has no numpy";
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  WriteSample(folder / "a.npz");
  const auto result = RunCommand(
      fmt::format("{} -c \"import numpy as n; f = n.load('{}'); print(sorted(f.files), f['b'].dtype, f['b'].tolist(), "
                  "f['a/b c'].item())\"",
                  kPython, (folder / "a.npz").string()));
  EXPECT_EQ(result.output, "['a/b c', 'b'] uint8 [[1, 2, 3], [4, 5, 6]] True\n");
}

TEST(NpzTest, ReadsNumpys) {
  if (!HaveNumpy()) GTEST_SKIP() << kPython << " has no numpy";
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  for (const char* save : {"savez", "savez_compressed"}) {
    const std::string path = folder / fmt::format("{}.npz", save);
    const auto result = RunCommand(fmt::format(
        "{} -c \"import numpy as n; n.{}('{}', c=n.arange(6, dtype='u1').reshape(2, 3), "
        "f=n.asfortranarray(n.arange(6, dtype='u1').reshape(2, 3)), s=n.int64(-7), h=n.zeros((2, 2), 'f2'), "
        "big=n.zeros(2, '>f4'))\"",
        kPython, save, path));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const absl::StatusOr<NpzReader> reader = NpzReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (const char* name : {"c", "f"}) {
      const absl::StatusOr<Array> array = reader->Read(name, Any);
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_EQ(array->shape, kShape);
      EXPECT_THAT(array->data, ElementsAre(0, 1, 2, 3, 4, 5)) << name;
    }
    EXPECT_EQ(reader->Read("s", Any)->data.front(), 0xf9);
    EXPECT_EQ(reader->Read("h", Any)->dtype, DType::kFloat16);
    EXPECT_THAT(std::string(reader->Read("big", Any).status().message()), HasSubstr("array 'big'"));
  }
}

}  // namespace
}  // namespace hone::cli
