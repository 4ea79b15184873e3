// SPDX-License-Identifier: Apache-2.0
// The parts of the runtime that can be tested without a package: checksum, element types, CPU features, code, memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/kernel_abi.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "deploy/runtime/checksum.h"
#include "deploy/runtime/code_object.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/dtype.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/tensor_copy.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<uint8_t> RandomBytes(size_t count) {
  Random random(count);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  return bytes;
}

TEST(ChecksumTest, DoesNotDependOnUpdateBoundaries) {
  const std::vector<uint8_t> bytes = RandomBytes(777);
  const std::span<const uint8_t> all = bytes;
  for (const size_t piece : {1, 3, 31, 32, 33, 64, 500}) {
    package::Checksum checksum;
    for (size_t at = 0; at < all.size(); at += piece)
      checksum.Update(all.subspan(at, std::min(piece, all.size() - at)));
    EXPECT_EQ(checksum.Value(), package::ChecksumOf(all)) << piece;
  }
}

TEST(ChecksumTest, IsPartOfTheFormat) {
  // These values are in every package ever written: a change is a new format version.
  EXPECT_EQ(package::ChecksumOf({}), package::Checksum().Value());
  std::vector<uint8_t> bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(package::ChecksumOf(bytes), 0xb8fec63c2c41ff9eULL);
}

TEST(ChecksumTest, NoticesEveryFlippedBitAndEveryZeroAtTheEnd) {
  std::vector<uint8_t> bytes = RandomBytes(100);
  const uint64_t before = package::ChecksumOf(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_NE(package::ChecksumOf(bytes), before) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
  }
  const std::vector<uint8_t> zeros(64);
  EXPECT_NE(package::ChecksumOf({zeros.data(), 40}), package::ChecksumOf({zeros.data(), 41}));
}

TEST(DTypeTest, DlpackDescribesEveryType) {
  for (const package::DTypeTraits& traits : package::kDTypes) {
    EXPECT_EQ(package::FindDType(traits.dlpack), &traits) << package::Name(traits.dtype);
    EXPECT_EQ(package::FindDType(traits.dtype), &traits) << package::Name(traits.dtype);
  }
  EXPECT_EQ(package::FindDType(DLDataType{kDLFloat, 32, 4}), nullptr);
  EXPECT_EQ(package::SizeOf(package::DType::kBool), 1u);
  EXPECT_EQ(package::SizeOf(package::DType::kBFloat16), 2u);
}

TEST(CpuFeaturesTest, ThisMachineHasOnlyKnownFeatures) {
  const CodeKind code = *runtime::HostCode();
  std::string all;
  for (const std::string_view feature : runtime::HostFeatures()) {
    EXPECT_TRUE(runtime::IsKnownFeature(code, feature)) << feature;
    all += std::string(feature) + ",";
  }
  EXPECT_TRUE(runtime::CheckHostRuns(code, all).ok());
  EXPECT_TRUE(runtime::CheckHostRuns(code, "").ok());
#if defined(__x86_64__)
  EXPECT_THAT(runtime::HostFeatures(), Contains("sse3"));
  EXPECT_EQ(__builtin_cpu_supports("avx2") != 0, all.find("avx2,") != std::string::npos);
  EXPECT_EQ(__builtin_cpu_supports("avx512f") != 0, all.find("avx512f,") != std::string::npos);
#endif
}

TEST(CpuFeaturesTest, KnowsTheFeaturesOfOtherMachines) {
  EXPECT_TRUE(runtime::IsKnownFeature(CodeKind::kX86_64, "avx512vnni"));
  EXPECT_TRUE(runtime::IsKnownFeature(CodeKind::kAArch64, "dotprod"));
  EXPECT_TRUE(runtime::IsKnownFeature(CodeKind::kArm, "neon"));
  EXPECT_FALSE(runtime::IsKnownFeature(CodeKind::kAArch64, "avx2"));
  EXPECT_FALSE(runtime::IsKnownFeature(CodeKind::kOpenCl, "neon"));
}

TEST(CodeObjectTest, LoadsFromMemoryAndFromATemporaryFile) {
  using runtime::CodeObject;
  const std::string elf = CompileTinyKernels();
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(elf.data()), elf.size());
  for (const auto placement : {CodeObject::Placement::kSealedMemory, CodeObject::Placement::kTemporaryFile}) {
    CodeObject code;
    const runtime::Fault fault = CodeObject::LoadFrom(placement, bytes, &code);
    ASSERT_TRUE(fault.ok()) << fault.text;
    EXPECT_NE(code.Find("add_bias"), nullptr);
    EXPECT_EQ(code.Find("subtract_bias"), nullptr);
  }
}

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) != -1) open.push_back(fd);
  }
  return open;
}

TEST(CodeObjectTest, EachLoadIsItsOwnCodeAndKeepsNoDescriptor) {
  using runtime::CodeObject;
  const std::string elf = CompileTinyKernels();
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(elf.data()), elf.size());
  for (const auto placement : {CodeObject::Placement::kSealedMemory, CodeObject::Placement::kTemporaryFile}) {
    const std::vector<int> before = OpenDescriptors();
    std::vector<CodeObject> codes(3);
    std::set<void*> kernels;
    for (CodeObject& code : codes) {
      ASSERT_TRUE(CodeObject::LoadFrom(placement, bytes, &code).ok());
      kernels.insert(code.Find("add_bias"));
      EXPECT_EQ(OpenDescriptors(), before) << "a program may close and use again what it does not know";
    }
    EXPECT_EQ(kernels.size(), codes.size());
  }
}

TEST(CodeObjectTest, ALimitOfFileSizesIsAnErrorAndNoSignal) {
  using runtime::CodeObject;
  const std::string elf = CompileTinyKernels();
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(elf.data()), elf.size());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {elf.size() - 1, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  CodeObject code;
  const runtime::Fault fault = CodeObject::Load(bytes, &code);
  const rlimit enough = {elf.size(), before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &enough);
  const runtime::Fault fits = CodeObject::Load(bytes, &code);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(fault.code, HONE_IO_ERROR);
  EXPECT_EQ(fault.text, "the package's code is to be placed in a file of " + std::to_string(elf.size()) +
                            " bytes, this process may write no more than " + std::to_string(elf.size() - 1) +
                            "; raise its limit (ulimit -f, LimitFSIZE= of systemd)");
  EXPECT_TRUE(fits.ok()) << fits.text;
}

TEST(CodeObjectTest, LeavesNoTemporaryFile) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string elf = CompileTinyKernels();
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.path().c_str(), 1);
  runtime::CodeObject code;
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(elf.data()), elf.size());
  EXPECT_TRUE(runtime::CodeObject::LoadFrom(runtime::CodeObject::Placement::kTemporaryFile, bytes, &code).ok());
  setenv("TMPDIR", "/nowhere", 1);
  const runtime::Fault fault =
      runtime::CodeObject::LoadFrom(runtime::CodeObject::Placement::kTemporaryFile, bytes, &code);
  if (before == nullptr)
    unsetenv("TMPDIR");
  else
    setenv("TMPDIR", restored.c_str(), 1);
  EXPECT_THAT(fault.text, HasSubstr("cannot create the temporary file /nowhere/hone-kernels-"));
  EXPECT_EQ(RunCommand("ls " + folder.path().string()).output, "");
}

TEST(MemoryTest, AFifoIsRefusedAtOnce) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  runtime::Mapping mapping;
  EXPECT_THAT(runtime::Mapping::File(fifo, &mapping).text, HasSubstr("'" + fifo + "' is not a regular file"));
}

TEST(MemoryTest, PagesAreZeroAndAligned) {
  runtime::Mapping pages;
  ASSERT_TRUE(runtime::Mapping::Pages(5 << 20, "the test", &pages).ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.data()) % 4096, 0u);
  EXPECT_EQ(pages.data()[(5 << 20) - 1], 0);
  EXPECT_EQ(runtime::Mapping::Pages(uint64_t{1} << 60, "the test", &pages).code, HONE_OUT_OF_MEMORY);
  EXPECT_EQ(pages.bytes().size(), size_t{5 << 20}) << "a failure changed the mapping";
}

TEST(MemoryTest, MemoryAroundPagesIsReadable) {
  runtime::Mapping pages;
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{5} << 20}) {
    ASSERT_TRUE(runtime::Mapping::Pages(bytes, "the test", &pages).ok());
    const volatile uint8_t* data = pages.data();
    EXPECT_EQ(data[-HONE_REACH_BYTES] + data[bytes - 1 + HONE_REACH_BYTES], 0);
    unsigned char there = 0;
    EXPECT_EQ(mincore(pages.data() - HONE_REACH_BYTES, 1, &there), 0) << "nothing is mapped there";
  }
}

TEST(TensorCopyTest, CompactnessIgnoresDimensionsOfOneAndEmptyTensors) {
  int64_t shape[] = {1, 3, 1, 2}, strides[] = {99, 2, -5, 1};
  DLTensor tensor = {nullptr, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, strides, 0};
  EXPECT_TRUE(runtime::IsCompact(tensor));
  strides[1] = 4;
  EXPECT_FALSE(runtime::IsCompact(tensor));
  shape[3] = 0;
  EXPECT_TRUE(runtime::IsCompact(tensor));
}

TEST(TensorCopyTest, FollowsNegativeAndZeroStrides) {
  const int16_t data[] = {1, 2, 3};
  int64_t shape[] = {2, 3}, strides[] = {0, -1};
  const DLTensor tensor = {const_cast<int16_t*>(data), {kDLCPU, 0}, 2, {kDLInt, 16, 1}, shape, strides, 4};
  int16_t copy[6];
  runtime::CopyToCompact(tensor, reinterpret_cast<uint8_t*>(copy));
  EXPECT_THAT(copy, ::testing::ElementsAre(3, 2, 1, 3, 2, 1));
}

TEST(TensorCopyTest, TakesAViewOfWhatItWrites) {
  int16_t data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3}, strides[] = {1, 2};  // transposed
  DLTensor tensor = {data, {kDLCPU, 0}, 2, {kDLInt, 16, 1}, shape, strides, 0};
  runtime::CopyToCompact(tensor, reinterpret_cast<uint8_t*>(data));
  EXPECT_THAT(data, ::testing::ElementsAre(1, 3, 5, 2, 4, 6));
  strides[0] = -3, strides[1] = -1, tensor.byte_offset = 10;  // from its end
  runtime::CopyToCompact(tensor, reinterpret_cast<uint8_t*>(data));
  EXPECT_THAT(data, ::testing::ElementsAre(6, 4, 2, 5, 3, 1));
}

}  // namespace
}  // namespace hone::tests
