// SPDX-License-Identifier: Apache-2.0
// Writing a package: what is written loads, the same contents give the same bytes, and failures leave the old file.
#include "deploy/package/package_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "deploy/package/atomic_file.h"
#include "deploy/runtime/memory.h"
#include "deploy/runtime/package_view.h"
#include "files/chunks.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::package {
namespace {

using ::hone::tests::AddProgram;
using ::hone::tests::ReadWholeFile;
using ::hone::tests::RunCommand;
using ::hone::tests::TinyContents;
using ::hone::tests::TinyOpenClProgram;
using ::hone::tests::WriteWholeFile;
using ::testing::HasSubstr;

// The code of the test's program. Nothing loads it, so any bytes are sufficient.
const char kCode[] = "code";

std::string MessageOf(const PackageContents& contents) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const absl::StatusOr<uint64_t> written = WritePackage(contents, folder / "p.hone");
  EXPECT_EQ(RunCommand("ls " + folder.path().string()).output, written.ok() ? "p.hone\n" : "");
  return std::string(written.status().message());
}

TEST(PackageWriterTest, WritesWhatTheRuntimeReads) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  PackageContents contents = TinyContents(kCode);
  contents.programs[0].units[0].cpu_features = {"avx2", "fma"};
  const absl::StatusOr<uint64_t> bytes = WritePackage(contents, folder / "p.hone");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, ReadWholeFile(folder / "p.hone").size());

  runtime::Mapping mapping;
  ASSERT_TRUE(runtime::Mapping::File(folder / "p.hone", &mapping).ok());
  runtime::PackageView view;
  ASSERT_TRUE(runtime::ViewPackage(mapping.bytes(), runtime::ConstantsCheck::kFull, &view).ok());
  ASSERT_EQ(view.programs.size(), 1u);
  const runtime::ProgramView& program = view.programs[0];
  EXPECT_EQ(program.Text(program.units[0].entry.cpu_features), "avx2,fma");
  EXPECT_EQ(program.Text(program.target), "cpu");
  EXPECT_EQ(program.homes[0].arena_bytes, 256u);
  EXPECT_EQ(program.kernels, contents.programs[0].kernels);
  EXPECT_EQ(std::string(program.units[0].code.begin(), program.units[0].code.end()), kCode);
  EXPECT_EQ(std::memcmp(view.constants.data() + program.tensors[1].offset, tests::kBias.data(), 32), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.constants.data()) % 4096, 0u);
  EXPECT_EQ(view.metadata, ToJson(contents.metadata));
}

TEST(PackageWriterTest, ConstantsOfOddSizesStayAlignedAndWhole) {
  const std::string first(100, 'a'), second(1, 'b'), third(64, 'c');
  PackageContents contents = {.programs = {{}}, .metadata = {.programs = {{"cpu", {}}}}};
  for (const std::string* data : {&first, &second, &third}) {
    contents.programs[0].tensors.push_back({.name = *data,
                                            .dtype = DType::kUInt8,
                                            .shape = {static_cast<int64_t>(data->size())},
                                            .kind = TensorKind::kConstant,
                                            .data = {reinterpret_cast<const uint8_t*>(data->data()), data->size()}});
  }
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_TRUE(WritePackage(contents, folder / "p.hone").ok());
  runtime::Mapping mapping;
  ASSERT_TRUE(runtime::Mapping::File(folder / "p.hone", &mapping).ok());
  runtime::PackageView view;
  ASSERT_TRUE(runtime::ViewPackage(mapping.bytes(), runtime::ConstantsCheck::kFull, &view).ok());
  for (const TensorEntry& tensor : view.programs[0].tensors) {
    EXPECT_EQ(tensor.offset % 64, 0u);
    const auto data = view.constants.subspan(tensor.offset, tensor.bytes);
    EXPECT_EQ(std::string(data.begin(), data.end()), view.programs[0].Text(tensor.name));
  }
}

// What travels to a device that has another package of the model: code and tables, and the chunk where they meet the
// constants.
TEST(PackageWriterTest, PackagesOfOneModelShareTheChunksOfTheirConstants) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  std::string weights(size_t{24} << 20, '\0');
  Random random(1);
  for (char& byte : weights) byte = static_cast<char>(random.Next());
  const auto describe = [&](const std::string& code) {
    PackageContents contents = TinyContents(code);
    contents.programs[0].tensors.push_back(
        {.name = "weights",
         .dtype = DType::kUInt8,
         .shape = {static_cast<int64_t>(weights.size())},
         .kind = TensorKind::kConstant,
         .data = {reinterpret_cast<const uint8_t*>(weights.data()), weights.size()}});
    const std::string path = folder / "p.hone";
    EXPECT_TRUE(WritePackage(contents, path).ok());
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const files::FileDescription description = files::DescribeFile(file, path).value();
    close(file);
    return description;
  };
  const files::FileDescription first = describe(kCode), second = describe(std::string(300'000, 'c'));
  int64_t travels = 0;
  for (const files::ChunkName& chunk : second.chunks) {
    travels += std::ranges::count(first.chunks, chunk) == 0 ? chunk.bytes : 0;
  }
  EXPECT_GT(travels, 0);
  EXPECT_LT(travels, 300'000 + 2 * files::kChunkBytesMax);
}

TEST(PackageWriterTest, TheSameContentsGiveTheSameBytes) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_TRUE(WritePackage(TinyContents(kCode), folder / "a.hone").ok());
  ASSERT_TRUE(WritePackage(TinyContents(kCode), folder / "b.hone").ok());
  EXPECT_EQ(ReadWholeFile(folder / "a.hone"), ReadWholeFile(folder / "b.hone"));
}

TEST(PackageWriterTest, AnEmptyModelIsAPackage) {
  EXPECT_EQ(MessageOf({.programs = {{}}, .metadata = {.programs = {{"cpu", {}}}}}), "");
}

TEST(PackageWriterTest, ProgramsShareTheirConstants) {
  PackageContents contents = TinyContents(kCode);
  AddProgram(contents, TinyOpenClProgram(), "opencl");
  const std::vector<float> copy(tests::kBias.begin(), tests::kBias.end());  // equal, elsewhere in memory
  contents.programs[1].tensors[1].data = {reinterpret_cast<const uint8_t*>(copy.data()), copy.size() * sizeof(float)};
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_TRUE(WritePackage(contents, folder / "p.hone").ok());
  runtime::Mapping mapping;
  ASSERT_TRUE(runtime::Mapping::File(folder / "p.hone", &mapping).ok());
  runtime::PackageView view;
  ASSERT_TRUE(runtime::ViewPackage(mapping.bytes(), runtime::ConstantsCheck::kFull, &view).ok());
  ASSERT_EQ(view.programs.size(), 2u);
  EXPECT_EQ(view.constants.size(), 64u);
  EXPECT_EQ(view.programs[0].tensors[1].offset, view.programs[1].tensors[1].offset);
  EXPECT_EQ(view.programs[1].units[0].entry.code, CodeKind::kOpenCl);
  EXPECT_EQ(view.programs[1].units[0].entry.lanes, 8u);
}

TEST(PackageWriterTest, RefusesProgramsThatAreNotOneModel) {
  EXPECT_THAT(
      MessageOf({}),
      HasSubstr("a package holds 1 to 32 programs, each with its metadata; 0 programs and metadata for 0 were given"));
  PackageContents contents = TinyContents(kCode);
  AddProgram(contents, TinyOpenClProgram(), "cpu");
  EXPECT_THAT(MessageOf(contents), HasSubstr("two programs for one target that take the same shapes"));
  contents.metadata.programs[1].target = "opencl";
  EXPECT_EQ(MessageOf(contents), "");
  contents.programs[1].tensors[3].name = "z";
  EXPECT_THAT(MessageOf(contents), HasSubstr("its programs have different inputs or outputs"));
  contents.programs[1].tensors[3] = contents.programs[0].tensors[3];
  contents.programs[1].tensors[3].shape = {8, 4};
  EXPECT_THAT(MessageOf(contents), HasSubstr("its programs have different inputs or outputs"));
}

TEST(PackageWriterTest, NamesWhatDoesNotFitTheFormat) {
  PackageContents contents = TinyContents(kCode);
  contents.programs[0].tensors[1].shape = {9};
  EXPECT_THAT(MessageOf(contents),
              HasSubstr("constant 'bias' has 32 bytes of data, but its shape [9] of f32 needs 36"));
  contents = TinyContents(kCode);
  contents.programs[0].tensors[0].shape = {4, -8};
  EXPECT_THAT(MessageOf(contents), HasSubstr("tensor 'x' of shape [4, -8] is too large or has a negative dimension"));
  contents = TinyContents(kCode);
  contents.programs[0].tensors[0].shape.assign(17, 1);
  EXPECT_THAT(MessageOf(contents), HasSubstr("17 dimensions; packages allow up to 16"));
  contents = TinyContents(kCode);
  contents.programs[0].tensors[0].dtype = DType{0};
  EXPECT_THAT(MessageOf(contents), HasSubstr("'x' has no element type"));
}

TEST(PackageWriterTest, RefusesWhatTheRuntimeWouldRefuse) {
  PackageContents contents = TinyContents(kCode);
  contents.programs[0].calls[0].arguments[0] = 77;
  EXPECT_THAT(MessageOf(contents),
              HasSubstr("the runtime would refuse the package: bad package: call 0 uses a tensor that is not there"));
  contents = TinyContents(kCode);
  contents.programs[0].outputs.pop_back();
  EXPECT_THAT(MessageOf(contents), HasSubstr("an unlisted output"));
  contents = TinyContents(kCode);
  contents.programs[0].tensors[4].name = "y";
  EXPECT_THAT(MessageOf(contents), HasSubstr("two of the same name among its outputs"));
  contents = TinyContents(kCode);
  contents.programs[0].kernels[1].name = "add_bias";
  EXPECT_THAT(MessageOf(contents), HasSubstr("two kernels of one name"));
  contents = TinyContents(kCode);
  contents.programs[0].kernels[1].name = "scale it";
  EXPECT_THAT(MessageOf(contents), HasSubstr("kernel 1 has a bad description: line 1: expected one kernel name"));
  contents = TinyContents(kCode);
  contents.programs[0].kernels[1].main[0].groups = contents.programs[0].kernels[1].main[0].lanes = 1;
  EXPECT_THAT(MessageOf(contents), HasSubstr("kernel 1 is not launched as its kind of code is"));
  contents = TinyContents(kCode);
  contents.programs[0].kernels[0].buffers[1].used = false;
  EXPECT_THAT(MessageOf(contents), HasSubstr("call 0 has a tensor for a buffer without use"));
  contents = TinyContents(kCode);
  contents.programs[0].kernels[0].buffers[0].role = BufferRole::kConstant;
  EXPECT_THAT(MessageOf(contents), HasSubstr("call 0 has a tensor that changes where its kernel takes a constant"));
}

TEST(PackageWriterTest, RefusesGridsThatTheRuntimeWouldRefuse) {
  const auto message_of = [](const PackageProgram& program) {
    PackageContents contents = TinyContents(kCode);
    AddProgram(contents, program, "opencl");
    return MessageOf(contents);
  };
  PackageProgram program = TinyOpenClProgram();
  program.units[0].lanes = 7;
  EXPECT_THAT(message_of(program), HasSubstr("program 1: kernel 0 has more lanes than its program asks for"));
  program = TinyOpenClProgram();
  program.kernels[0].main[0].shared_bytes = 64;
  EXPECT_THAT(message_of(program), HasSubstr("program 1: kernel 0 asks for more shared memory than its program"));
  program = TinyOpenClProgram();
  program.units[0].cpu_features = {"avx2"};
  EXPECT_THAT(message_of(program), HasSubstr("program 1: its code asks for what code of its kind does not have"));
  program = TinyOpenClProgram();
  program.kernels[1].main[0].lanes = program.kernels[1].main[0].groups = 0;
  EXPECT_THAT(message_of(program), HasSubstr("program 1: kernel 1 is not launched as its kind of code is"));
  program = TinyOpenClProgram();
  program.kernels[0].buffers[1].used = false;
  EXPECT_THAT(message_of(program), HasSubstr("program 1: kernel 0 passes a buffer that it does not use"));
}

TEST(PackageWriterTest, AFolderThatIsNotThereIsNamed) {
  const absl::Status status = WritePackage(TinyContents(kCode), "/nowhere/p.hone").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'/nowhere/p.hone': No such file or directory"));
}

TEST(PackageWriterTest, ReplacesAnOldFileAndFollowsTheUmask) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "p.hone";
  WriteWholeFile(path, "old");
  const mode_t before = umask(027);
  const bool written = WritePackage(TinyContents(kCode), path).ok();
  umask(before);
  ASSERT_TRUE(written);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_GT(status.st_size, 3);
}

// Runs `body` in a child process and returns what it printed on its standard output.
template <typename Body>
std::string InChild(const Body& body) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const bool sent = write(pipe_ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(sent ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count; (count = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, count);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return text;
}

TEST(PackageWriterTest, AFailureInTheMiddleOfWritingLeavesTheOldFile) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "p.hone";
  WriteWholeFile(path, "old");
  const PackageContents contents = TinyContents(std::string(100000, 'c'));
  const std::string message = InChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WritePackage(contents, path).status();
    return std::string(status.message());
  });
  EXPECT_THAT(message, HasSubstr("cannot write '" + path + "': File too large; raise the limit (ulimit -f"));
  EXPECT_EQ(ReadWholeFile(path), "old");
  EXPECT_EQ(RunCommand("ls " + folder.path().string()).output, "p.hone\n");
}

// Enters a private mount namespace, as root or as root of a new user namespace. Returns whether mounting is allowed
// there.
bool EnterMountNamespace() {
  if (unshare(CLONE_NEWNS) == 0) return true;
  const std::string user = std::to_string(getuid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  WriteWholeFile("/proc/self/uid_map", "0 " + user + " 1");
  return true;
}

TEST(PackageWriterTest, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const PackageContents contents = TinyContents(std::string(1 << 20, 'c'));
  const std::string report = InChild([&]() -> std::string {
    // A disk of 64 KiB, in a mount namespace that ends with this child.
    if (!EnterMountNamespace()) return "skip";
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) return "skip";
    const std::string path = folder / "p.hone";
    WriteWholeFile(path, "old");
    const absl::Status status = WritePackage(contents, path).status();
    const std::string left = RunCommand("ls " + folder.path().string()).output;
    return std::string(status.message()) + " | " + absl::StatusCodeToString(status.code()) + " | " +
           ReadWholeFile(path) + " | " + left;
  });
  if (report == "skip") GTEST_SKIP() << "this system lets no test mount a small disk";
  EXPECT_THAT(report, HasSubstr("No space left on device; free some space and try again, the old file is untouched"));
  EXPECT_THAT(report, HasSubstr("| RESOURCE_EXHAUSTED | old | p.hone\n"));
}

TEST(AtomicFileTest, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(folder / "f");
    ASSERT_TRUE(file.ok());
    const uint8_t byte[] = {1};
    ASSERT_TRUE(file->Write(byte).ok());
    // If the file system has files without a name, a file that is being written has none, so a killed program leaves
    // nothing.
    const int nameless = open(folder.path().c_str(), O_TMPFILE | O_RDWR, 0600);
    EXPECT_EQ(RunCommand("ls " + folder.path().string()).output.empty(), nameless >= 0);
    close(nameless);
  }
  EXPECT_EQ(RunCommand("ls " + folder.path().string()).output, "");
}

// The file to which a link leads is replaced. A device is written to directly and stays a device.
TEST(AtomicFileTest, FollowsLinksAndKeepsDevices) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const fs::path link = folder / "link", chain = folder / "chain", device = folder / "device";
  ASSERT_TRUE(WriteTextFile("old", folder / "file").ok());
  fs::create_symlink("file", link);
  fs::create_symlink(link, chain);
  for (const auto& [path, text] : {std::pair(link, "new"), {chain, "newer"}}) {
    ASSERT_TRUE(WriteTextFile(text, path).ok());
    EXPECT_TRUE(fs::is_symlink(path));
    EXPECT_EQ(RunCommand("cat " + (folder / "file").string()).output, text);
  }
  fs::create_symlink("nothing yet", folder / "dangling");
  ASSERT_TRUE(WriteTextFile("first", folder / "dangling").ok());
  EXPECT_TRUE(fs::exists(folder / "nothing yet"));
  fs::create_symlink("/dev/null", device);
  EXPECT_TRUE(WriteTextFile("gone", device).ok());
  EXPECT_TRUE(fs::is_symlink(device));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { EXPECT_TRUE(WriteTextFile("through", folder / "pipe").ok()); });
  EXPECT_EQ(RunCommand("cat " + (folder / "pipe").string()).output, "through");
  writer.join();
}

TEST(AtomicFileTest, ANameMayBeAsLongAsTheSystemLetsIt) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string name(NAME_MAX, 'n');
  const absl::Status written = WriteTextFile("text", folder / name);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(ReadWholeFile(folder / name), "text");
  EXPECT_EQ(RunCommand("ls " + folder.path().string()).output, name + "\n");
  const std::string longer = folder / (name + "n");
  EXPECT_THAT(std::string(AtomicFile::Create(longer).status().message()),
              HasSubstr("cannot create '" + longer + "': File name too long"));
}

TEST(AtomicFileTest, CannotReplaceAFolder) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_EQ(mkdir((folder / "taken").c_str(), 0755), 0);
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(folder / "taken");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(std::string(file->Commit().message()), HasSubstr("cannot replace"));
}

}  // namespace
}  // namespace hone::package
