// SPDX-License-Identifier: Apache-2.0
// .npy headers and data: files that NumPy writes are read; damaged and unsupported files give an error that names the
// fault.
#include "deploy/run/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "deploy/runtime/dtype.h"

namespace hone::cli {
namespace {

using package::DType;
using run::Array;
using run::NpyPrefix;
using run::ParseNpy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A .npy file of that version with the header text `header`.
std::string Npy(const std::string& header, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

std::string ErrorOf(const std::string& file) { return std::string(ParseNpy(BytesOf(file)).status().message()); }

TEST(NpyTest, EveryTypeAndShapeSurvivesTheRoundTrip) {
  for (const package::DTypeTraits& traits : package::kDTypes) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 0, 4}, {2, 3, 4, 5}}) {
      uint64_t bytes = package::SizeOf(traits.dtype);
      for (const int64_t dimension : shape) bytes *= static_cast<uint64_t>(dimension);
      const std::string prefix = NpyPrefix(traits.dtype, shape);
      EXPECT_EQ(prefix.size() % 64, 0u);
      std::string data(bytes, '\0');
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7);
      const absl::StatusOr<Array> array = ParseNpy(BytesOf(prefix + data));
      ASSERT_TRUE(array.ok()) << package::Name(traits.dtype) << ": " << array.status();
      EXPECT_EQ(array->dtype, traits.dtype);
      EXPECT_EQ(array->shape, shape);
      EXPECT_EQ(std::string(array->data.begin(), array->data.end()), data);
    }
  }
}

TEST(NpyTest, ReadsAllHeaderVersionsAndSpacings) {
  const std::string data(8, 'x');
  const std::string headers[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
                                 "{ \"shape\" :( 2 , ) ,\"fortran_order\":False,\"descr\":\"<f4\"}",
                                 "{'fortran_order': False, 'shape': (2, 1), 'descr': '<f4'}         \n"};
  for (const std::string& header : headers) {
    for (const char version : {1, 2, 3}) {
      const absl::StatusOr<Array> array = ParseNpy(BytesOf(Npy(header, data, version)));
      ASSERT_TRUE(array.ok()) << header << array.status();
      EXPECT_EQ(array->shape[0], 2);
    }
  }
}

TEST(NpyTest, TurnsColumnMajorToRowMajor) {
  // [[1, 2, 3], [4, 5, 6]] column by column.
  const std::string file = Npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "\1\4\2\5\3\6");
  const absl::StatusOr<Array> array = ParseNpy(BytesOf(file));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->data, ElementsAre(1, 2, 3, 4, 5, 6));
  const std::string cube = Npy("{'descr': '<u2', 'fortran_order': True, 'shape': (2, 2, 2)}",
                               std::string("\0\0\4\0\2\0\6\0\1\0\5\0\3\0\7\0", 16));
  const absl::StatusOr<Array> turned = ParseNpy(BytesOf(cube));
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_THAT(turned->data, ElementsAre(0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0));
}

TEST(NpyTest, NamesWhatItDoesNotSupport) {
  const auto of_type = [](const std::string& descr) {
    return ErrorOf(Npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,)}", "12345678"));
  };
  EXPECT_THAT(of_type("'>f4'"), HasSubstr("'>f4' is big-endian; save it with .astype('<f4')"));
  EXPECT_THAT(of_type("'|O'"), HasSubstr("type '|O' is not supported by packages"));
  EXPECT_THAT(of_type("'<c8'"), HasSubstr("type '<c8' is not supported"));
  EXPECT_THAT(of_type("'<U4'"), HasSubstr("type '<U4' is not supported"));
  EXPECT_THAT(of_type("''"), HasSubstr("type '' is not supported"));
  EXPECT_THAT(of_type("[('a', '<f4')]"), HasSubstr("array of records"));
}

TEST(NpyTest, NamesDamage) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_THAT(ErrorOf("PK\x03\x04 something else"), HasSubstr("not an .npy array"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("ends inside its .npy header"));
  EXPECT_THAT(ErrorOf(Npy(good, "").substr(0, 30)), HasSubstr("ends inside its .npy header"));
  EXPECT_THAT(ErrorOf(Npy(good, "12345678", 9)), HasSubstr(".npy array of version 9"));
  EXPECT_THAT(ErrorOf(Npy(good, "1234567")), HasSubstr("7 bytes of data, its shape [2] of f32 needs 8"));
  EXPECT_THAT(ErrorOf(Npy(good, "123456789")), HasSubstr("9 bytes of data"));
  EXPECT_THAT(ErrorOf(Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "")),
              HasSubstr("is too large"));
  for (const char* header :
       {"", "{", "{}", "{'descr'}", "{'descr': '<f4}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "{'colour': 'red'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}"}) {
    EXPECT_THAT(ErrorOf(Npy(header, "1234")), HasSubstr(".npy header is damaged")) << header;
  }
  std::string endless = Npy(good, "", 2);
  endless[11] = '\x7f';  // the length of the header is 2 GB
  EXPECT_THAT(ErrorOf(endless), HasSubstr("far too long"));
}

TEST(NpyTest, RandomDamageNeverCrashes) {
  Random random(5);
  const std::string good = Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", std::string(24, 'x'));
  for (int round = 0; round < 20000; ++round) {
    std::string file = good;
    for (int64_t i = random.Below(4); i >= 0; --i) {
      file[static_cast<size_t>(random.Below(static_cast<int64_t>(file.size())))] = static_cast<char>(random.Next());
    }
    if (random.Below(4) == 0) file.resize(static_cast<size_t>(random.Below(static_cast<int64_t>(file.size()))));
    const absl::StatusOr<Array> array = ParseNpy(BytesOf(file));
    EXPECT_TRUE(!array.ok() || array->data.size() <= file.size());
  }
}

}  // namespace
}  // namespace hone::cli
