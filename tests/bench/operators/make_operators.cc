// hone-make-operators OUTDIR writes models of one operator each (OUTDIR/NAME.onnx), NCHW in and out, and what is known
// of them in OUTDIR/operators.json: [{name, type and shape of the only input, flops}]. compare_operators.js times them.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tests/models/model_builder.h"

namespace hone::models {
namespace {

namespace fs = std::filesystem;
using Ints = std::vector<int64_t>;

struct Operator {
  std::string_view op;
  int64_t in = 0, out = 0;  // channels
  Ints space;               // of the input
  int64_t kernel = 1;       // in every spatial dimension; 0: the whole image
  int64_t stride = 1;
  int64_t pad = 0;  // on every side
  int64_t groups = 1;
};

// What people run, and the odd sizes they run it on.
std::vector<Operator> FixedList() {
  return {
      {"Conv", 64, 256, {56, 56}},
      {"Conv", 256, 64, {56, 56}},
      {"Conv", 64, 128, {57, 57}},
      {"Conv", 64, 64, {56, 56}, 3, 1, 1},
      {"Conv", 128, 128, {28, 28}, 3, 1, 1},
      {"Conv", 256, 256, {14, 14}, 3, 1, 1},
      {"Conv", 512, 512, {7, 7}, 3, 1, 1},
      {"Conv", 64, 128, {56, 56}, 3, 2, 1},
      {"Conv", 16, 16, {257, 513}, 3, 1, 1},
      {"Conv", 32, 32, {257, 513}, 3, 1, 1},
      {"Conv", 64, 64, {257, 513}, 3, 1, 1},
      {"Conv", 16, 16, {256, 512}, 3, 1, 1},
      {"Conv", 64, 64, {256, 512}, 3, 1, 1},
      {"Conv", 3, 64, {224, 224}, 7, 2, 3},
      {"Conv", 3, 32, {224, 224}, 3, 2, 1},
      {"Conv", 3, 64, {257, 513}, 7, 2, 3},
      {"Conv", 144, 144, {56, 56}, 3, 1, 1, 144},
      {"Conv", 144, 144, {56, 56}, 3, 2, 1, 144},
      {"Conv", 512, 512, {14, 14}, 3, 1, 1, 512},
      {"Conv", 64, 64, {1000}, 3, 1, 1},
      {"Conv", 64, 64, {16000}, 3, 1, 1},
      {"Conv", 64, 64, {1000}, 9, 1, 4},
      {"Conv", 64, 64, {16000}, 9, 1, 4},
      {"Conv", 256, 256, {100}, 3, 1, 1},
      {"Conv", 128, 128, {1000}, 7, 1, 3, 128},
      {"Conv", 16, 32, {16, 56, 56}, 3, 1, 1},
      {"Conv", 64, 64, {8, 28, 28}, 3, 1, 1},
      {"Conv", 128, 128, {4, 14, 14}, 3, 1, 1},
      {"Conv", 128, 256, {4, 14, 14}},
      {"ConvTranspose", 128, 64, {28, 28}, 4, 2, 1},
      {"ConvTranspose", 512, 256, {8, 8}, 4, 2, 1},
      {"ConvTranspose", 128, 64, {56, 56}, 2, 2},
      {"ConvTranspose", 128, 64, {500}, 16, 8, 4},
      {"ConvTranspose", 64, 32, {8, 14, 14}, 2, 2},
      {"MaxPool", 64, 64, {112, 112}, 3, 2, 1},
      {"MaxPool", 64, 64, {112, 112}, 2, 2},
      {"MaxPool", 64, 64, {257, 513}, 3, 2, 1},
      {"MaxPool", 192, 192, {28, 28}, 3, 1, 1},
      {"AveragePool", 64, 64, {56, 56}, 3, 1, 1},
      {"AveragePool", 64, 64, {56, 56}, 2, 2},
      {"GlobalAveragePool", 512, 512, {7, 7}, 0},
      {"GlobalAveragePool", 64, 64, {56, 56}, 0},
      {"MatMulInteger", 512, 512, {512}},
      {"MatMulInteger", 37, 45, {19}},
      {"MatMulInteger", 768, 3072, {128}},
      {"QLinearConv", 64, 256, {56, 56}},
      {"QLinearConv", 9, 21, {11, 13}, 3, 1, 1},
      {"QLinearConv", 64, 64, {56, 56}, 3, 1, 1},
      {"QLinearConv", 256, 256, {14, 14}, 3, 1, 1},
      {"QLinearConv", 3, 64, {224, 224}, 7, 2, 3},
  };
}

bool HasWeights(const Operator& o) { return o.op.starts_with("Conv"); }
// Of 8-bit integers. A matrix has the rows that `space` says.
bool IsMatrix(const Operator& o) { return o.op == "MatMulInteger"; }
bool IsQuantized(const Operator& o) { return IsMatrix(o) || o.op == "QLinearConv"; }

// conv_64x56x56_to_256_k3s2
std::string NameOf(const Operator& o) {
  std::string name = fmt::format("{}_{}x{}", o.op, o.in, fmt::join(o.space, "x"));
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  if (o.out != o.in) name += fmt::format("_to_{}", o.out);
  if (o.kernel > 0) name += fmt::format("_k{}s{}", o.kernel, o.stride);
  if (o.groups > 1) name += fmt::format("_g{}", o.groups);
  return name;
}

Ints InputShape(const Operator& o) {
  if (IsMatrix(o)) return {o.space[0], o.in};
  Ints shape = {1, o.in};
  shape.insert(shape.end(), o.space.begin(), o.space.end());
  return shape;
}

// Operations: a multiplication and an addition per weight, or one operation per element under a window.
double FlopsOf(const Operator& o) {
  double input = 1, output = 1, taps = 1;
  for (const int64_t size : o.space) {
    input *= static_cast<double>(size);
    output *= static_cast<double>((size + 2 * o.pad - o.kernel) / o.stride + 1);
    taps *= static_cast<double>(o.kernel);
  }
  if (o.kernel == 0) return static_cast<double>(o.in) * input;
  if (!HasWeights(o) && !IsQuantized(o)) return static_cast<double>(o.out) * output * taps;
  const double pixels = o.op == "ConvTranspose" ? input : output;
  return 2 * pixels * taps * static_cast<double>(o.in) * static_cast<double>(o.out) / static_cast<double>(o.groups);
}

Attributes WindowOf(const Operator& o) {
  const size_t rank = o.space.size();
  return {{"kernel_shape", Ints(rank, o.kernel)}, {"strides", Ints(rank, o.stride)}, {"pads", Ints(2 * rank, o.pad)}};
}

// Activations u8 with a zero point, weights i8 without, as tools that quantize models make them.
onnx::ModelProto QuantizedModelOf(const Operator& o) {
  constexpr auto kU8 = onnx::TensorProto::UINT8, kI8 = onnx::TensorProto::INT8;
  ModelBuilder b(NameOf(o), 13);
  const std::string x = b.Input("x", InputShape(o), kU8), x_zero = b.Bytes({}, kU8, 113, 113);
  if (IsMatrix(o)) {
    b.Output(b.Node(o.op, {x, b.Bytes({o.in, o.out}, kI8, -127, 127), x_zero}), onnx::TensorProto::INT32);
    return b.model();
  }
  Ints shape = {o.out, o.in};
  shape.insert(shape.end(), o.space.size(), o.kernel);
  const std::string weights = b.Bytes(shape, kI8, -127, 127), none = b.Bytes({}, kI8, 0, 0);
  const std::string scales = b.Uniform({o.out}, 0.001, 0.002);
  b.Output(b.Node(o.op, {x, b.Scalar(0.05F), x_zero, weights, scales, none, b.Scalar(0.1F), b.Bytes({}, kU8, 120, 120)},
                  WindowOf(o)),
           kU8);
  return b.model();
}

onnx::ModelProto ModelOf(const Operator& o) {
  if (IsQuantized(o)) return QuantizedModelOf(o);
  ModelBuilder b(NameOf(o), 13);
  std::vector<std::string> inputs = {b.Input("x", InputShape(o))};
  const size_t rank = o.space.size();
  if (HasWeights(o)) {
    Ints shape = {o.op == "Conv" ? o.out : o.in, (o.op == "Conv" ? o.in : o.out) / o.groups};
    shape.insert(shape.end(), rank, o.kernel);
    inputs.push_back(b.Weight(shape, shape[1]));
    inputs.push_back(b.Uniform({o.out}, -0.1, 0.1));
  }
  Attributes attributes;
  if (o.kernel > 0) attributes = WindowOf(o);
  if (HasWeights(o)) attributes.emplace_back("group", o.groups);
  b.Output(b.Node(o.op, inputs, attributes));
  return b.model();
}

bool Write(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) std::cerr << fmt::format("hone-make-operators: cannot write {}\n", path.string());
  return static_cast<bool>(file);
}

bool WriteAll(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::vector<std::string> entries;
  for (const Operator& o : FixedList()) {
    if (!Write(folder / (NameOf(o) + ".onnx"), ModelOf(o).SerializeAsString())) return false;
    entries.push_back(fmt::format(R"({{"name": "{}", "type": "{}", "shape": [{}], "flops": {}}})", NameOf(o),
                                  IsQuantized(o) ? "uint8" : "float32", fmt::join(InputShape(o), ", "), FlopsOf(o)));
  }
  return Write(folder / "operators.json", fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n")));
}

}  // namespace
}  // namespace hone::models

int main(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]).starts_with("-")) {
    std::cerr << "usage: hone-make-operators OUTDIR\n";
    return 2;
  }
  return hone::models::WriteAll(argv[1]) ? 0 : 1;
}
