// SPDX-License-Identifier: Apache-2.0
// Reads an ONNX file into plain structs. Names are not resolved and nothing is inferred; importer.h makes a Graph
// of these structs. In this room, only onnx_reader.cc and foreign_model.cc use ONNX's protobuf classes (onnx_proto.h).
//
// Files are untrusted and may be damaged: every size is checked against the bytes that the file really has before
// anything is allocated. Start with ReadOnnxFile.
#ifndef HONE_COMPILER_GRAPH_ONNX_READER_H_
#define HONE_COMPILER_GRAPH_ONNX_READER_H_

#include <cstdint>
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
#include "compiler/graph/small_types.h"

namespace hone::graph {

struct RawGraph;
struct RawPart;  // fallback.h

// An attribute's value. An unsupported kind (a tensor of strings, say) is stored as an Unimplemented status, so that it
// is an error only for a node that reads it.
struct RawAttribute {
  std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
               Constant, std::shared_ptr<const RawGraph>, absl::Status>
      value;
  std::string reference;  // inside a function's body: the name of the calling node's attribute to use instead of
                          // `value`; else empty
  const SmallType* small = nullptr;  // the type in the file if `value` is a tensor unpacked from it
};

struct RawNode {
  std::string name, op, domain, overload;    // domain "" means ai.onnx; overload selects among functions of one name
  std::vector<std::string> inputs, outputs;  // "" for an omitted one
  std::map<std::string, RawAttribute> attributes;
  std::string source = {};                   // its bytes in the file, if ReadOptions::keeps_sources
  std::shared_ptr<const RawPart> part = {};  // set if the node stands for nodes that ONNX Runtime computes
};
// The node's name. A node without a name is named by its operator and index.
std::string NameOf(const RawNode& node, size_t index);
// The node in error messages: "node 'conv1' (Conv)".
std::string Describe(const RawNode& node, size_t index);

// Reads the bytes of a tensor that was left in its file. Errors are those of ReadOnnxFile.
using DeferredRead = std::function<absl::StatusOr<TensorData>()>;

struct DeferredData {
  DeferredRead read;        // empty: the data is not deferred
  absl::Status unreadable;  // why the file does not have the data: it is missing or too short
};

// An initializer. An unsupported kind of tensor is stored as an Unimplemented status, so that it is an error only if it
// is used. Damaged data is an error of the reader at once.
struct RawInitializer {
  std::string name;
  absl::StatusOr<Constant> constant;  // its data is null if `later.read` is set
  DeferredData later;                 // set if ReadOptions leaves the data in its file
  const SmallType* small = nullptr;   // the type in the file if the constant has been unpacked from it
  std::string source = {};  // its bytes in the file if ReadOptions::keeps_sources and the constant is another tensor
};

struct RawDimension {
  std::optional<int64_t> extent;
  // The dimension's symbolic name if extent is not set. Empty if it has none: also for "?", "unk__7" and the like,
  // which exporters write for different sizes.
  std::string symbol;
};

// An input, or the declared type of another value.
struct RawInput {
  // What a value that is no tensor consists of; dtype and shape are those of its tensors then, and type_error says that
  // it is no tensor.
  enum class Container : uint8_t { kNone, kSequence, kOptional, kOptionalSequence };

  std::string name;
  ir::DType dtype = ir::DType::kFloat32;  // meaningless unless type_error is OK
  std::optional<std::vector<RawDimension>> shape;
  absl::Status type_error;           // Unimplemented: not a tensor, or of an unsupported element type
  const SmallType* small = nullptr;  // the type in the file if it is a small one; dtype is that of its bytes then, u8
  Container container = Container::kNone;
  bool IsSequence() const { return container == Container::kSequence || container == Container::kOptionalSequence; }
};

struct RawGraph {
  std::vector<RawNode> nodes;
  std::vector<RawInitializer> initializers;
  std::vector<RawInput> inputs;
  std::vector<std::string> outputs;
  std::vector<RawInput> declared;  // the types that the file states for outputs and other values, if it states any
};

struct RawFunction {
  std::vector<std::string> inputs, outputs;
  std::map<std::string, RawAttribute> defaults;  // values of attributes that the calling node leaves out
  std::vector<RawNode> nodes;
  std::map<std::string, int64_t> opsets;  // by domain
};

using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

struct RawModel {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // by domain
  std::map<FunctionKey, RawFunction> functions;
  RawGraph graph;
  std::vector<std::string> function_sources;  // the bytes of the functions in the file, if ReadOptions::keeps_sources
};

// Called before the external data of a tensor is read, with the path of its file: several times for a file with several
// tensors. An error stops the reading.
using ReadCheck = std::function<absl::Status(const std::string& path)>;

struct ReadOptions {
  ReadCheck may_read;  // empty: every file may be read
  // External data of tensors larger than this stays in its file. Whether the file has the bytes is still checked; if
  // not, the tensor says so, and reading goes on.
  int64_t external_bytes_max = INT64_MAX;
  // Keeps the bytes of nodes and functions, and of tensors that Constant cannot hold, so that another runtime can read
  // them.
  bool keeps_sources = false;
  // Gets the path of each file of external data, by the location that the model states. Null: not wanted.
  std::map<std::string, std::string>* external_files = nullptr;
  bool defers() const { return external_bytes_max < INT64_MAX; }
};

// Reads the file at `path`. Errors: NotFound (no such file), InvalidArgument (damaged, or not a model),
// ResourceExhausted (not enough memory for the external data). External data must lie in the folder of the file, or, if
// the file is a symbolic link, in the folder of the link's target.
absl::StatusOr<RawModel> ReadOnnxFile(const std::string& path, const ReadOptions& options = {});
// The same for a model in memory. External data must lie in `folder`; no path out of it is followed.
absl::StatusOr<RawModel> ReadOnnxBytes(std::string_view bytes, const std::string& folder,
                                       const ReadOptions& options = {});

// The local functions of a model in memory, whose graph is not read and may be missing. InvalidArgument if it has none,
// or if the bytes are no model. A tensor in a function must not be external.
absl::StatusOr<std::map<FunctionKey, RawFunction>> ReadFunctions(std::string_view bytes);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_ONNX_READER_H_
