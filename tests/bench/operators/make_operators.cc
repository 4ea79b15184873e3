// SPDX-License-Identifier: Apache-2.0
// hone-make-operators OUTDIR [--list NAME | --random COUNT [--seed N]] writes models of one operator each
// (OUTDIR/NAME.onnx): those of a list, or COUNT random ones. OUTDIR/operators.json describes them: [{name, type and
// shape of the only input, flops, bytes of the constants, and for an odd shape the name of the round one}].
// compare_operators.js times the models.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tests/bench/operators/operator.h"
#include "tests/bench/operators/operator_lists.h"
#include "tests/bench/operators/random_operators.h"

namespace hone::models {
namespace {

namespace fs = std::filesystem;

bool Write(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) std::cerr << fmt::format("hone-make-operators: cannot write {}\n", path.string());
  return static_cast<bool>(file);
}

size_t ConstantBytes(const onnx::ModelProto& model) {
  size_t bytes = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) bytes += tensor.raw_data().size();
  return bytes;
}

bool WriteAll(const fs::path& folder, const std::vector<Operator>& operators) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::vector<std::string> entries;
  for (const Operator& o : operators) {
    if (!Write(folder / (o.name + ".onnx"), o.model.SerializeAsString())) return false;
    entries.push_back(
        fmt::format(R"({{"name": "{}", "type": "{}", "shape": [{}], "flops": {}, "constant_bytes": {}{}}})", o.name,
                    o.bytes ? "uint8" : "float32", fmt::join(o.shape, ", "), o.flops, ConstantBytes(o.model),
                    o.round.empty() ? "" : fmt::format(R"(, "round": "{}")", o.round)));
  }
  return Write(folder / "operators.json", fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n")));
}

std::vector<Operator> ListOf(const std::string& name) {
  if (name == "libraries") return LibraryOperators();
  if (name == "odd") return OddOperators();
  if (name == "roofs") return RoofOperators();
  if (name == "lines") return LineOperators();
  return UsualOperators();
}

int Main(int argc, char** argv) {
  std::string folder, list = "usual";
  int64_t count = 0;
  uint64_t seed = 1;
  CLI::App app("Writes models of one operator each.", "hone-make-operators");
  app.add_option("OUTDIR", folder, "where to write them")->required();
  CLI::Option* const listed = app.add_option("--list", list,
                                             "which ones: usual, libraries (what oneDNN and OpenBLAS "
                                             "are compared on), odd (shapes, beside round ones), roofs, lines")
                                  ->check(CLI::IsMember({"usual", "libraries", "odd", "roofs", "lines"}))
                                  ->capture_default_str();
  app.add_option("--random", count, "so many by chance instead")->check(CLI::PositiveNumber)->excludes(listed);
  app.add_option("--seed", seed, "of chance")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return WriteAll(folder, count > 0 ? RandomOperators(count, seed) : ListOf(list)) ? 0 : 1;
}

}  // namespace
}  // namespace hone::models

int main(int argc, char** argv) { return hone::models::Main(argc, argv); }
