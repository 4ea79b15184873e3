// SPDX-License-Identifier: Apache-2.0
// hone-npz: makes inputs for a model, and says how far two sets of outputs are apart.
//
//   hone-npz random MODEL.onnx OUT.npz [--seed N] [--shape NAME=1,3,224,224]...
//   hone-npz compare A.npz B.npz [--tolerance T]
//   hone-npz check OUT.npz EXPECTED.txt MODEL [--tolerance T]
//
// compare prints one JSON document: largest_difference, largest_value, relative. With --tolerance it fails (exit code
// 1) when relative is larger, and always when the files do not hold the same arrays.
// check does the same against the values in expected_outputs.txt, and prints relative.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/random.h"
#include "base/status.h"
#include "compiler/graph/plan.h"
#include "fmt/format.h"
#include "tests/models/expected_outputs.h"
#include "tests/models/npz_file.h"

namespace hone::models {
namespace {

using ir::DType;

const char* DescrOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kInt8:
      return "|i1";
    case DType::kUInt8:
      return "|u1";
    case DType::kInt16:
      return "<i2";
    case DType::kUInt16:
      return "<u2";
    case DType::kInt32:
      return "<i4";
    case DType::kUInt32:
      return "<u4";
    case DType::kInt64:
      return "<i8";
    case DType::kUInt64:
      return "<u8";
    case DType::kFloat16:
      return "<f2";
    case DType::kFloat32:
      return "<f4";
    case DType::kFloat64:
      return "<f8";
    case DType::kBFloat16:
      return nullptr;  // NumPy has none
  }
  return nullptr;
}

// The values that make sense for an input: what the kernels that read it say, together.
std::pair<double, double> RangeOf(const graph::Plan& plan, graph::TensorId input) {
  double low = -1, high = 1;
  bool narrowed = false;
  for (const graph::PlanCall& call : plan.calls) {
    const ir::Workload& workload = plan.workloads[call.workload];
    for (size_t i = 0; i < workload.params.size(); ++i) {
      const graph::PlanTensor& tensor = plan.tensors[call.arguments[i]];
      if (call.arguments[i] != input && tensor.alias_of != input) continue;
      low = narrowed ? std::max(low, workload.params[i].low) : workload.params[i].low;
      high = narrowed ? std::min(high, workload.params[i].high) : workload.params[i].high;
      narrowed = true;
    }
  }
  return {low, high};
}

template <typename T>
void Fill(std::vector<std::byte>& bytes, double low, double high, Random& random) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const double real = low + (high - low) * random.Uniform();
    const T value = static_cast<T>(std::is_integral_v<T> ? std::floor(real) : real);
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

absl::Status FillRandom(DType dtype, std::pair<double, double> range, Random& random, std::vector<std::byte>& bytes) {
  // Integers are drawn from low to high with both ends; floor(low + (high + 1 - low) * uniform) does that.
  const auto [low, high] = range;
  switch (dtype) {
    case DType::kBool:
      Fill<uint8_t>(bytes, 0, 2, random);
      break;
    case DType::kInt8:
      Fill<int8_t>(bytes, low, high + 1, random);
      break;
    case DType::kUInt8:
      Fill<uint8_t>(bytes, std::max(0.0, low), high + 1, random);
      break;
    case DType::kInt32:
      Fill<int32_t>(bytes, low, high + 1, random);
      break;
    case DType::kInt64:
      Fill<int64_t>(bytes, low, high + 1, random);
      break;
    case DType::kFloat32:
      Fill<float>(bytes, low, high, random);
      break;
    case DType::kFloat64:
      Fill<double>(bytes, low, high, random);
      break;
    default:
      return absl::UnimplementedError(fmt::format("cannot make random values of type {}", Name(dtype)));
  }
  return absl::OkStatus();
}

absl::Status MakeRandom(const std::string& model, const std::string& output, uint64_t seed,
                        const graph::ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(model, options, {}));
  Random random(seed);
  NpzArrays arrays;
  for (const graph::TensorId input : plan.inputs) {
    const graph::PlanTensor& tensor = plan.tensors[input];
    NpyArray array;
    const char* descr = DescrOf(tensor.type.dtype);
    if (descr == nullptr) return absl::UnimplementedError(fmt::format("input '{}' has no .npy type", tensor.name));
    array.descr = descr;
    array.shape = ir::Values(tensor.type.shape);
    array.bytes.resize(static_cast<size_t>(tensor.type.elements().value()) * ir::SizeOf(tensor.type.dtype));
    HONE_RETURN_IF_ERROR(FillRandom(tensor.type.dtype, RangeOf(plan, input), random, array.bytes));
    arrays[tensor.name] = std::move(array);
  }
  return WriteNpz(output, arrays);
}

template <typename T>
std::vector<double> Numbers(const NpyArray& array) {
  std::vector<double> numbers(array.bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, array.bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

absl::StatusOr<std::vector<double>> ToDoubles(const NpyArray& array) {
  if (array.descr == "<f4") return Numbers<float>(array);
  if (array.descr == "<f8") return Numbers<double>(array);
  if (array.descr == "<i8") return Numbers<int64_t>(array);
  if (array.descr == "<i4") return Numbers<int32_t>(array);
  if (array.descr == "|i1") return Numbers<int8_t>(array);
  if (array.descr == "|u1" || array.descr == "|b1") return Numbers<uint8_t>(array);
  return absl::UnimplementedError(fmt::format("cannot compare arrays of type {}", array.descr));
}

struct Distance {
  double difference = 0, value = 0;  // the largest
};

absl::Status AddDistance(const std::string& name, const NpyArray& a, const NpyArray& b, Distance* distance) {
  if (a.descr != b.descr || a.shape != b.shape || a.bytes.size() != b.bytes.size()) {
    return absl::InvalidArgumentError(fmt::format("array '{}' is not of the same type and shape in both", name));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<double> left, ToDoubles(a));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> right, ToDoubles(b));
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]))) continue;
    const double difference = std::abs(left[i] - right[i]);
    if (!std::isfinite(difference)) {
      return absl::InvalidArgumentError(fmt::format("array '{}': element {} is {} and {}", name, i, left[i], right[i]));
    }
    distance->difference = std::max(distance->difference, difference);
  }
  for (const double value : left) {
    if (std::isfinite(value)) distance->value = std::max(distance->value, std::abs(value));
  }
  return absl::OkStatus();
}

absl::Status Compare(const std::string& a, const std::string& b, double tolerance) {
  HONE_ASSIGN_OR_RETURN(const NpzArrays left, ReadNpz(a));
  HONE_ASSIGN_OR_RETURN(const NpzArrays right, ReadNpz(b));
  Distance distance;
  for (const auto& [name, array] : left) {
    const auto other = right.find(name);
    if (other == right.end() || left.size() != right.size()) {
      return absl::InvalidArgumentError(fmt::format("{} and {} do not hold the same arrays", a, b));
    }
    HONE_RETURN_IF_ERROR(AddDistance(name, array, other->second, &distance));
  }
  if (left.empty()) return absl::InvalidArgumentError(fmt::format("{} holds no arrays", a));
  const double relative = distance.difference == 0 ? 0 : distance.difference / distance.value;
  std::cout << fmt::format("{{\"largest_difference\": {:g}, \"largest_value\": {:g}, \"relative\": {:g}}}\n",
                           distance.difference, distance.value, relative);
  if (relative <= tolerance) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("the arrays are further apart than {:g}", tolerance));
}

absl::Status Check(const std::string& output, const std::string& expected, const std::string& model, double tolerance) {
  HONE_ASSIGN_OR_RETURN(const NpzArrays outputs, ReadNpz(output));
  HONE_ASSIGN_OR_RETURN(const double relative, LargestDeviation(outputs, expected, model));
  std::cout << fmt::format("{{\"relative\": {:g}}}\n", relative);
  if (relative <= tolerance) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} is further than {:g} from the expected values", output, tolerance));
}

absl::StatusOr<graph::ImportOptions> ParseShapes(const std::vector<std::string>& shapes) {
  graph::ImportOptions options;
  for (const std::string& text : shapes) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) return absl::InvalidArgumentError(fmt::format("'{}' is not NAME=1,2,3", text));
    std::vector<graph::DimRange>& shape = options.shapes[text.substr(0, equals)];
    for (const std::string& extent : CLI::detail::split(text.substr(equals + 1), ',')) {
      shape.emplace_back(std::strtoll(extent.c_str(), nullptr, 10));
    }
  }
  return options;
}

}  // namespace
}  // namespace hone::models

int main(int argc, char** argv) {
  CLI::App app("Makes inputs for a model, and compares outputs");
  app.require_subcommand(1);
  std::string first, second, model;
  std::vector<std::string> shapes;
  uint64_t seed = 1;
  double tolerance = std::numeric_limits<double>::infinity();
  CLI::App* random = app.add_subcommand("random", "write random inputs for a model");
  random->add_option("MODEL", first)->required()->check(CLI::ExistingFile);
  random->add_option("OUT", second)->required();
  random->add_option("--seed", seed);
  random->add_option("--shape", shapes, "NAME=1,3,224,224");
  CLI::App* compare = app.add_subcommand("compare", "the largest difference of two files of arrays");
  CLI::App* check = app.add_subcommand("check", "the largest difference from values in a list");
  for (CLI::App* command : {compare, check}) {
    command->add_option("A", first)->required()->check(CLI::ExistingFile);
    command->add_option("B", second)->required()->check(CLI::ExistingFile);
    command->add_option("--tolerance", tolerance, "of the largest value");
  }
  check->add_option("MODEL", model)->required();
  CLI11_PARSE(app, argc, argv);
  absl::Status status;
  if (*random) {
    const auto options = hone::models::ParseShapes(shapes);
    status = options.ok() ? hone::models::MakeRandom(first, second, seed, *options) : options.status();
  } else if (*compare) {
    status = hone::models::Compare(first, second, tolerance);
  } else {
    status = hone::models::Check(first, second, model, tolerance);
  }
  if (status.ok()) return 0;
  std::cerr << "hone-npz: " << std::string(status.message()) << "\n";
  return 1;
}
