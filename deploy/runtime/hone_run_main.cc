// SPDX-License-Identifier: Apache-2.0
// hone-run: runs a package once or several times on raw files. For boards and emulators that have only the runtime.
//
//   hone-run PACKAGE [--shape NAME=EXTENT,...]... [--raw-in NAME=FILE]... [--raw-out NAME=FILE]... [--threads N]
//                    [--repeat N] [--fallback onnxruntime]
//
// A raw file holds exactly the tensor's bytes, row-major and little-endian. An input with open dimensions has its
// largest shape unless --shape gives it another one. Standard output gets a line for each --raw-out with the shape of
// the output, "output NAME f32[2,3]", then the times of the fastest and the median run, and the target of the program
// that ran. Standard error gets why the programs before it in the package could not be
// loaded. Exit status: 0, 1 if something failed, 2 for wrong arguments.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/resource_limit.h"
#include "base/standard_streams.h"
#include "deploy/runtime/hone.h"

namespace {

constexpr int kWorkFailed = 1, kWrongUsage = 2;
constexpr char kUsage[] =
    "usage: hone-run PACKAGE [--shape NAME=EXTENT,...]... [--raw-in NAME=FILE]... [--raw-out NAME=FILE]...\n"
    "                        [--threads N] [--repeat N] [--fallback onnxruntime]\n";

using NamedFile = std::pair<std::string, std::string>;
using NamedShape = std::pair<std::string, std::vector<int64_t>>;

struct Arguments {
  std::string package;
  std::vector<NamedFile> inputs, outputs;
  std::vector<NamedShape> shapes;
  int threads = 0;
  int repeat = 1;
  bool allows_onnx_runtime = false;  // --fallback onnxruntime: a package may load its library
};

bool ParseNumber(std::string_view text, int lowest, int highest, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= lowest && *number <= highest;
}

bool ParseNamedFile(std::string_view text, std::vector<NamedFile>* files) {
  // The last '=' separates: tensor names contain '=' more often than file names do.
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) return false;
  files->emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return true;
}

// Parses "ids=1,128"; "scalar=" is the shape without dimensions.
bool ParseNamedShape(std::string_view text, std::vector<NamedShape>* shapes) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  NamedShape& shape = shapes->emplace_back(text.substr(0, equals), std::vector<int64_t>());
  for (const char *at = text.data() + equals + 1, *end = text.data() + text.size(); at != end;) {
    const auto [next, error] = std::from_chars(at, end, shape.second.emplace_back());
    if (error != std::errc() || (next != end && (*next != ',' || next + 1 == end))) return false;
    at = next == end ? end : next + 1;
  }
  return true;
}

bool ParseArguments(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option.substr(0, 2) != "--") {
      if (!arguments->package.empty()) return false;
      arguments->package = option;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string_view value = argv[++i];
    if (option == "--fallback" && value == "onnxruntime") {
      arguments->allows_onnx_runtime = true;
      continue;
    }
    const bool good = option == "--shape"     ? ParseNamedShape(value, &arguments->shapes)
                      : option == "--raw-in"  ? ParseNamedFile(value, &arguments->inputs)
                      : option == "--raw-out" ? ParseNamedFile(value, &arguments->outputs)
                      : option == "--threads" ? ParseNumber(value, 0, HONE_MAX_THREADS, &arguments->threads)
                      : option == "--repeat"  ? ParseNumber(value, 1, INT_MAX, &arguments->repeat)
                                              : false;
    if (!good) return false;
  }
  return !arguments->package.empty();
}

int Fail(const std::string& message, int code = kWorkFailed) {
  std::fprintf(stderr, "hone-run: %s\n", message.c_str());
  return code;
}

// Prints why the programs before the one that runs could not be loaded, one line for each.
void PrintPassedOver(const HoneModel* model) {
  std::istringstream lines(hone_passed_over(model));
  for (std::string line; std::getline(lines, line);) std::fprintf(stderr, "hone-run: passed over: %s\n", line.c_str());
}

// Flushes standard output and returns the exit status. A full disk is noticed only when the buffer is written.
int FinishPrinting() {
  const bool good = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return good ? 0 : Fail(std::string("cannot write to standard output: ") + std::strerror(errno));
}

// Whether `path` is a file that this program reads: the package, which stays mapped, or an input.
bool IsRead(const std::string& path, const Arguments& arguments) {
  std::error_code missing;
  const auto same = [&](const std::string& read) { return std::filesystem::equivalent(path, read, missing); };
  return same(arguments.package) || std::any_of(arguments.inputs.begin(), arguments.inputs.end(),
                                                [&](const NamedFile& input) { return same(input.second); });
}

// The absolute path of the file to which `path` leads when links are followed. The file need not exist.
std::filesystem::path ResolvePath(std::filesystem::path path) {
  constexpr int kLinksMax = 40;  // the limit of the Linux kernel
  std::error_code error;
  for (int i = 0; i < kLinksMax && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  const std::filesystem::path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : whole;
}

// Whether `path` exists and is a pipe, a device or the like: neither a regular file nor a folder.
bool IsNoFile(const std::string& path) {
  std::error_code missing;
  const std::filesystem::file_status status = std::filesystem::status(path, missing);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

// The error if an output would overwrite a file that is read or another output; empty if none does.
std::string FindOverwritten(const Arguments& arguments) {
  for (auto output = arguments.outputs.begin(); output != arguments.outputs.end(); ++output) {
    const auto& [name, file] = *output;
    const std::string given = "--raw-out " + name + "=" + file + " would overwrite ";
    if (IsRead(file, arguments)) return given + "what is read; give another file";
    if (IsNoFile(file)) continue;
    const std::filesystem::path meant = ResolvePath(file);
    const auto other = std::find_if(arguments.outputs.begin(), output,
                                    [&](const NamedFile& each) { return ResolvePath(each.second) == meant; });
    if (other != output) return given + "output '" + other->first + "'; give each output a file of its own";
  }
  return "";
}

// The index of the port called `name`, or `count`.
size_t FindPort(const HoneModel* model, size_t count, HoneStatus (*port_of)(const HoneModel*, size_t, HonePort*),
                const std::string& name, HonePort* port) {
  for (size_t i = 0; i < count; ++i) {
    if (port_of(model, i, port) == HONE_OK && name == port->name) return i;
  }
  return count;
}

int Resize(HoneModel* model, const NamedShape& shape) {
  HonePort port;
  const size_t count = hone_input_count(model);
  const size_t index = FindPort(model, count, hone_input, shape.first, &port);
  if (index == count) return Fail("the model has no input '" + shape.first + "'");
  const auto rank = static_cast<int32_t>(shape.second.size());
  return hone_resize(model, index, shape.second.data(), rank) == HONE_OK ? 0 : Fail(hone_error());
}

int ReadInput(HoneModel* model, const NamedFile& file) {
  HonePort port;
  const size_t count = hone_input_count(model);
  const size_t index = FindPort(model, count, hone_input, file.first, &port);
  if (index == count) return Fail("the model has no input '" + file.first + "'");
  DLTensor view;
  if (hone_get_input(model, index, &view) != HONE_OK) return Fail(hone_error());
  std::error_code missing;
  const std::filesystem::file_status status = std::filesystem::status(file.second, missing);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Fail("'" + file.second + "' is " + (std::filesystem::is_directory(status) ? "a folder" : "no regular file") +
                "; give a file with the bytes of input '" + file.first + "'");
  }
  std::ifstream stream(file.second, std::ios::binary | std::ios::ate);
  if (!stream) return Fail("cannot open '" + file.second + "': " + std::strerror(errno));
  const std::streamoff bytes = stream.tellg();
  if (bytes < 0 || static_cast<uint64_t>(bytes) != port.bytes) {
    return Fail("'" + file.second + "' has " + std::to_string(bytes) + " bytes, input '" + file.first + "' has " +
                std::to_string(port.bytes));
  }
  stream.seekg(0);
  if (bytes > 0 && !stream.read(static_cast<char*>(view.data), bytes)) return Fail("cannot read '" + file.second + "'");
  return 0;
}

bool WriteAndClose(std::FILE* stream, const void* data, size_t bytes) {
  if (stream == nullptr) return false;
  const bool written = bytes == 0 || std::fwrite(data, 1, bytes, stream) == bytes;
  return std::fclose(stream) == 0 && written;
}

// Writes the file whole or not at all: to a new file in the same folder, which is then renamed. Writes into the old
// file itself only if no file can be created beside it or renamed over it. On failure returns false, and errno has the
// reason.
bool WriteFile(const std::string& path, const void* data, size_t bytes) {
  const auto in_place = [&] { return WriteAndClose(std::fopen(path.c_str(), "wb"), data, bytes); };
  if (IsNoFile(path)) return in_place();
  const std::filesystem::path file = ResolvePath(path);
  std::string beside = file.parent_path() / ".hone-run.XXXXXX";
  const int opened = mkstemp(beside.data());
  if (opened < 0) return (errno == EACCES || errno == EROFS) && in_place();
  const mode_t mask = umask(0);  // mkstemp creates a private file; chmod below gives it the usual permissions
  umask(mask);
  const bool good = WriteAndClose(fdopen(opened, "wb"), data, bytes) && chmod(beside.c_str(), 0666 & ~mask) == 0 &&
                    std::rename(beside.c_str(), file.c_str()) == 0;
  const int reason = errno;
  if (!good) unlink(beside.c_str());
  errno = reason;
  return good || (reason == EBUSY && in_place());  // EBUSY: the file is a mount point, as in a container
}

// "f32[2,3]"
std::string TypeText(const HonePort& port) {
  const DLDataType& type = port.dtype;
  const char* const code = type.code == kDLFloat    ? "f"
                           : type.code == kDLBfloat ? "bf"
                           : type.code == kDLUInt   ? "u"
                           : type.code == kDLInt    ? "i"
                                                    : "bool";
  std::string text = type.code == kDLBool ? code : code + std::to_string(type.bits);
  for (int32_t d = 0; d < port.ndim; ++d) text += (d == 0 ? "[" : ",") + std::to_string(port.shape[d]);
  return text + (port.ndim == 0 ? "[]" : "]");
}

int WriteOutput(const HoneModel* model, const NamedFile& file) {
  HonePort port;
  const size_t count = hone_output_count(model);
  const size_t index = FindPort(model, count, hone_output, file.first, &port);
  if (index == count) return Fail("the model has no output '" + file.first + "'");
  DLTensor view;
  if (hone_get_output(model, index, &view) != HONE_OK) return Fail(hone_error());
  if (WriteFile(file.second, view.data, port.bytes)) {
    std::printf("output %s %s\n", file.first.c_str(), TypeText(port).c_str());
    return 0;
  }
  return Fail("cannot write '" + file.second + "': " + std::strerror(errno));
}

int RunModel(HoneModel* model, const Arguments& arguments) {
  for (const NamedShape& shape : arguments.shapes) {
    if (const int code = Resize(model, shape); code != 0) return code;
  }
  for (const NamedFile& file : arguments.inputs) {
    if (const int code = ReadInput(model, file); code != 0) return code;
  }
  std::vector<double> milliseconds;
  for (int i = 0; i < arguments.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (hone_run(model) != HONE_OK) return Fail(hone_error());
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  for (const NamedFile& file : arguments.outputs) {
    if (const int code = WriteOutput(model, file); code != 0) return code;
  }
  std::printf("runs %d, threads %d, min %.3f ms, median %.3f ms, target %s\n", arguments.repeat, hone_threads(model),
              *std::min_element(milliseconds.begin(), milliseconds.end()), hone::Median(milliseconds),
              hone_target(model));
  return FinishPrinting();
}

}  // namespace

int main(int argc, char** argv) {
  hone::OpenClosedStandardStreams();
  hone::IgnoreFileSizeSignal();
  const std::string_view asked = argc == 2 ? argv[1] : "";
  if (asked == "--version" || asked == "--help") {
    std::fputs(asked == "--help" ? kUsage : ("hone-run " + std::string(hone_version()) + "\n").c_str(), stdout);
    return FinishPrinting();
  }
  Arguments arguments;
  if (!ParseArguments(argc, argv, &arguments)) {
    std::fputs(kUsage, stderr);
    return kWrongUsage;
  }
  if (const std::string wrong = FindOverwritten(arguments); !wrong.empty()) return Fail(wrong, kWrongUsage);
  const HoneLoadOptions options = {sizeof(HoneLoadOptions), arguments.threads,
                                   arguments.allows_onnx_runtime ? HONE_LOAD_ALLOW_ONNX_RUNTIME : 0};
  HoneModel* model = nullptr;
  if (hone_load(arguments.package.c_str(), &options, &model) != HONE_OK) {
    return Fail("'" + arguments.package + "': " + hone_error());
  }
  PrintPassedOver(model);
  const int code = RunModel(model, arguments);
  hone_free(model);
  return code;
}
