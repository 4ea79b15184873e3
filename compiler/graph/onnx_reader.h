// SPDX-License-Identifier: Apache-2.0
// An ONNX file as plain structs: names are still names, nothing is inferred. The only file that knows ONNX's protobuf
// classes is onnx_reader.cc; onnx_import.cc makes a Graph of what is here.
//
// Damaged files are the normal case for which this is written: every size is checked against what the file really
// holds before anything is allocated. Start with ReadOnnxFile.
#ifndef HONE_COMPILER_GRAPH_ONNX_READER_H_
#define HONE_COMPILER_GRAPH_ONNX_READER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

struct RawGraph;

// What we do not have (a tensor of strings, say) is no error until something reads it: it stands there as
// Unimplemented.
struct RawAttribute {
  std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
               Constant, std::shared_ptr<const RawGraph>, absl::Status>
      value;
  std::string reference;  // in a function's body: the attribute of the calling node that stands here; else empty
};

struct RawNode {
  std::string name, op, domain, overload;    // domain "" is ai.onnx; overload: of a function
  std::vector<std::string> inputs, outputs;  // "" where left out
  std::map<std::string, RawAttribute> attributes;
};
// As errors name it: "node 'conv1' (Conv)", by its place among the nodes where the model gives it no name.
std::string Describe(const RawNode& node, size_t index);

struct RawTensor {
  std::string name;
  absl::StatusOr<Constant> constant;
};

struct RawDimension {
  std::optional<int64_t> extent;
  std::string symbol;  // where the extent is not given; may be empty
};

struct RawInput {
  std::string name;
  ir::DType dtype;
  std::optional<std::vector<RawDimension>> shape;
};

struct RawGraph {
  std::vector<RawNode> nodes;
  std::vector<RawTensor> initializers;
  std::vector<RawInput> inputs;
  std::vector<std::string> outputs;
};

struct RawFunction {
  std::vector<std::string> inputs, outputs;
  std::map<std::string, RawAttribute> defaults;  // of attributes that a caller may leave out
  std::vector<RawNode> nodes;
  std::map<std::string, int64_t> opsets;  // by domain
};

struct RawModel {
  std::map<std::string, int64_t> opsets;                                               // by domain
  std::map<std::tuple<std::string, std::string, std::string>, RawFunction> functions;  // by domain, name and overload
  RawGraph graph;
};

// Asked before a file with external data is read; its error ends the reading.
using ReadCheck = std::function<absl::Status(const std::string& path)>;

// Errors: NotFound (no such file), InvalidArgument (damaged, or not a model), Unimplemented (an input that is no tensor
// or of a type we do not have), ResourceExhausted (no memory for the external data).
// External data lies in the folder of the file, or in the folder of what the file is a link to.
absl::StatusOr<RawModel> ReadOnnxFile(const std::string& path, const ReadCheck& may_read = {});
// The same from memory; external data is looked for in `folder` and nowhere above it.
absl::StatusOr<RawModel> ReadOnnxBytes(std::string_view bytes, const std::string& folder,
                                       const ReadCheck& may_read = {});

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_ONNX_READER_H_
