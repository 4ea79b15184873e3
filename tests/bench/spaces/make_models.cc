// SPDX-License-Identifier: Apache-2.0
// hone-make-space-models OUTDIR writes models of one operator each (OUTDIR/NAME.onnx): some with a template, some
// without one. compare_spaces tunes them.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "tests/models/model_builder.h"

namespace hone::models {
namespace {

namespace fs = std::filesystem;
using Ints = std::vector<int64_t>;

struct Convolution {
  int64_t in, out;  // channels
  Ints space;       // of the input
  int64_t kernel, pad, groups = 1, dilation = 1;
};

std::string Convolve(ModelBuilder& b, const Convolution& c) {
  Ints input = {1, c.in};
  input.insert(input.end(), c.space.begin(), c.space.end());
  const size_t rank = c.space.size();
  Ints weights = {c.out, c.in / c.groups};
  weights.insert(weights.end(), rank, c.kernel);
  return b.Node("Conv", {b.Input("x", input), b.Weight(weights, c.in / c.groups)},
                {{"kernel_shape", Ints(rank, c.kernel)},
                 {"pads", Ints(2 * rank, c.pad)},
                 {"dilations", Ints(rank, c.dilation)},
                 {"group", c.groups}});
}

std::string Normalize(ModelBuilder& b) {
  return b.Node("LayerNormalization", {b.Input("x", {256, 768}), b.Uniform({768}, 0.5, 1), b.Uniform({768}, -0.1, 0.1)},
                {{"axis", int64_t{-1}}});
}

struct Model {
  std::string_view name;
  std::function<std::string(ModelBuilder&)> build;  // returns the name of the output
};

std::vector<Model> Models() {
  const auto conv = [](Convolution c) { return [c](ModelBuilder& b) { return Convolve(b, c); }; };
  return {
      {"matmul",
       [](ModelBuilder& b) { return b.Node("MatMul", {b.Input("x", {512, 512}), b.Weight({512, 512}, 512)}); }},
      {"conv3x3", conv({64, 64, {56, 56}, 3, 1})},
      {"conv1x1", conv({64, 256, {56, 56}, 1, 0})},
      {"depthwise", conv({144, 144, {56, 56}, 3, 1, 144})},
      {"grouped", conv({128, 128, {28, 28}, 3, 1, 4})},
      {"dilated", conv({64, 64, {28, 28}, 3, 2, 1, 2})},
      {"conv3d", conv({16, 32, {8, 28, 28}, 3, 1})},
      {"max_pool",
       [](ModelBuilder& b) {
         return b.Node("MaxPool", {b.Input("x", {1, 64, 112, 112})},
                       {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
       }},
      {"softmax", [](ModelBuilder& b) { return b.Node("Softmax", {b.Input("x", {512, 512})}); }},
      {"layer_norm", Normalize},
      {"long_sum",
       [](ModelBuilder& b) {
         return b.Node("ReduceSum", {b.Input("x", {4, 512, 1024}), b.Int64s({1, 2})}, {{"keepdims", int64_t{0}}});
       }},
      {"sum_all",
       [](ModelBuilder& b) { return b.Node("ReduceSum", {b.Input("x", {1 << 20})}, {{"keepdims", int64_t{0}}}); }},
  };
}

bool WriteAll(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (const Model& model : Models()) {
    ModelBuilder b(model.name, 17);
    b.Output(model.build(b));
    const fs::path path = folder / fmt::format("{}.onnx", model.name);
    std::ofstream file(path, std::ios::binary);
    file << b.model().SerializeAsString();
    file.close();
    if (!file) {
      std::cerr << fmt::format("hone-make-space-models: cannot write {}\n", path.string());
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace hone::models

int main(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]).starts_with("-")) {
    std::cerr << "usage: hone-make-space-models OUTDIR\n";
    return 2;
  }
  return hone::models::WriteAll(argv[1]) ? 0 : 1;
}
