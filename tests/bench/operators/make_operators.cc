// hone-make-operators OUTDIR [--random COUNT [--seed N]] writes models of one operator each (OUTDIR/NAME.onnx), and
// what is known of them in OUTDIR/operators.json: [{name, type and shape of the only input, flops}]. Those of a fixed
// list, or as many by chance. compare_operators.js times them.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tests/bench/operators/operator.h"
#include "tests/bench/operators/random_operators.h"

namespace hone::models {
namespace {

namespace fs = std::filesystem;

// What people run, and the odd sizes they run it on.
std::vector<Operator> FixedList() {
  return {
      Convolution("Conv", 64, 256, {56, 56}, Window::Of(2, 1)),
      Convolution("Conv", 256, 64, {56, 56}, Window::Of(2, 1)),
      Convolution("Conv", 64, 128, {57, 57}, Window::Of(2, 1)),
      Convolution("Conv", 64, 64, {56, 56}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 128, 128, {28, 28}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 256, 256, {14, 14}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 512, 512, {7, 7}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 64, 128, {56, 56}, Window::Of(2, 3, 2, 1)),
      Convolution("Conv", 16, 16, {257, 513}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 32, 32, {257, 513}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 64, 64, {257, 513}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 16, 16, {256, 512}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 64, 64, {256, 512}, Window::Of(2, 3, 1, 1)),
      Convolution("Conv", 3, 64, {224, 224}, Window::Of(2, 7, 2, 3)),
      Convolution("Conv", 3, 32, {224, 224}, Window::Of(2, 3, 2, 1)),
      Convolution("Conv", 3, 64, {257, 513}, Window::Of(2, 7, 2, 3)),
      Convolution("Conv", 144, 144, {56, 56}, Window::Of(2, 3, 1, 1), 144),
      Convolution("Conv", 144, 144, {56, 56}, Window::Of(2, 3, 2, 1), 144),
      Convolution("Conv", 512, 512, {14, 14}, Window::Of(2, 3, 1, 1), 512),
      Convolution("Conv", 64, 64, {1000}, Window::Of(1, 3, 1, 1)),
      Convolution("Conv", 64, 64, {16000}, Window::Of(1, 3, 1, 1)),
      Convolution("Conv", 64, 64, {1000}, Window::Of(1, 9, 1, 4)),
      Convolution("Conv", 64, 64, {16000}, Window::Of(1, 9, 1, 4)),
      Convolution("Conv", 256, 256, {100}, Window::Of(1, 3, 1, 1)),
      Convolution("Conv", 128, 128, {1000}, Window::Of(1, 7, 1, 3), 128),
      Convolution("Conv", 16, 32, {16, 56, 56}, Window::Of(3, 3, 1, 1)),
      Convolution("Conv", 64, 64, {8, 28, 28}, Window::Of(3, 3, 1, 1)),
      Convolution("Conv", 128, 128, {4, 14, 14}, Window::Of(3, 3, 1, 1)),
      Convolution("Conv", 128, 256, {4, 14, 14}, Window::Of(3, 1)),
      Convolution("ConvTranspose", 128, 64, {28, 28}, Window::Of(2, 4, 2, 1)),
      Convolution("ConvTranspose", 512, 256, {8, 8}, Window::Of(2, 4, 2, 1)),
      Convolution("ConvTranspose", 128, 64, {56, 56}, Window::Of(2, 2, 2)),
      Convolution("ConvTranspose", 128, 64, {500}, Window::Of(1, 16, 8, 4)),
      Convolution("ConvTranspose", 64, 32, {8, 14, 14}, Window::Of(3, 2, 2)),
      Pool("MaxPool", 64, {112, 112}, Window::Of(2, 3, 2, 1)),
      Pool("MaxPool", 64, {112, 112}, Window::Of(2, 2, 2)),
      Pool("MaxPool", 64, {257, 513}, Window::Of(2, 3, 2, 1)),
      Pool("MaxPool", 192, {28, 28}, Window::Of(2, 3, 1, 1)),
      Pool("AveragePool", 64, {56, 56}, Window::Of(2, 3, 1, 1)),
      Pool("AveragePool", 64, {56, 56}, Window::Of(2, 2, 2)),
      GlobalAveragePool(512, {7, 7}),
      GlobalAveragePool(64, {56, 56}),
      QuantizedMatrix(512, 512, 512),
      QuantizedMatrix(19, 37, 45),
      QuantizedMatrix(128, 768, 3072),
      QuantizedConvolution(64, 256, {56, 56}, Window::Of(2, 1)),
      QuantizedConvolution(9, 21, {11, 13}, Window::Of(2, 3, 1, 1)),
      QuantizedConvolution(64, 64, {56, 56}, Window::Of(2, 3, 1, 1)),
      QuantizedConvolution(256, 256, {14, 14}, Window::Of(2, 3, 1, 1)),
      QuantizedConvolution(3, 64, {224, 224}, Window::Of(2, 7, 2, 3)),
  };
}

bool Write(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) std::cerr << fmt::format("hone-make-operators: cannot write {}\n", path.string());
  return static_cast<bool>(file);
}

bool WriteAll(const fs::path& folder, const std::vector<Operator>& operators) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::vector<std::string> entries;
  for (const Operator& o : operators) {
    if (!Write(folder / (o.name + ".onnx"), o.model.SerializeAsString())) return false;
    entries.push_back(fmt::format(R"({{"name": "{}", "type": "{}", "shape": [{}], "flops": {}}})", o.name,
                                  o.bytes ? "uint8" : "float32", fmt::join(o.shape, ", "), o.flops));
  }
  return Write(folder / "operators.json", fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n")));
}

struct Options {
  std::string folder;
  std::optional<int64_t> random;  // how many by chance; none: the fixed list
  int64_t seed = 1;
};

std::optional<Options> Parse(const std::vector<std::string_view>& args) {
  Options options;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] != "--random" && args[i] != "--seed") {
      if (!options.folder.empty() || args[i].starts_with("-")) return std::nullopt;
      options.folder = args[i];
      continue;
    }
    int64_t value = 0;
    if (++i == args.size()) return std::nullopt;
    const char* const end = args[i].data() + args[i].size();
    if (std::from_chars(args[i].data(), end, value).ptr != end || value < 0) return std::nullopt;
    (args[i - 1] == "--random" ? options.random.emplace() : options.seed) = value;
  }
  if (options.folder.empty()) return std::nullopt;
  return options;
}

}  // namespace
}  // namespace hone::models

int main(int argc, char** argv) {
  const auto options = hone::models::Parse({argv + 1, argv + argc});
  if (!options.has_value()) {
    std::cerr << "usage: hone-make-operators OUTDIR [--random COUNT [--seed N]]\n";
    return 2;
  }
  const auto operators = options->random.has_value()
                             ? hone::models::RandomOperators(*options->random, static_cast<uint64_t>(options->seed))
                             : hone::models::FixedList();
  return hone::models::WriteAll(options->folder, operators) ? 0 : 1;
}
