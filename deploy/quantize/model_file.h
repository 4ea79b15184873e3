// SPDX-License-Identifier: Apache-2.0
// An ONNX model that is rewritten: its nodes in memory, and the data of its constants in a file of a temporary folder.
//
// So many versions of one model cost little memory: they share the data. Only this room and compiler/graph use ONNX's
// protobuf classes. Not here: what the nodes mean (compiler/graph). Start with Read.
#ifndef HONE_DEPLOY_QUANTIZE_MODEL_FILE_H_
#define HONE_DEPLOY_QUANTIZE_MODEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/element_type.h"
#include "base/temporary_folder.h"
#include "compiler/graph/onnx_proto.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::quantize {

// A constant of the model: an initializer that no run can replace.
struct ConstantType {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> dims;
  int64_t elements() const;
};

class ModelFile {
 public:
  // Reads the file, and its external data. Values of Constant nodes become initializers. constant_defaults: inputs with
  // a default value are constants. may_read: as graph::ReadOptions. Errors name the path, and are those of
  // graph::ReadOnnxFile.
  static absl::StatusOr<ModelFile> Read(const std::string& path, bool constant_defaults,
                                        const graph::ReadCheck& may_read = {});

  // A copy with nodes of its own. It shares the data.
  ModelFile(const ModelFile&) = default;
  ModelFile& operator=(const ModelFile&) = default;

  onnx::GraphProto& graph() { return *proto_.mutable_graph(); }
  const onnx::GraphProto& graph() const { return proto_.graph(); }
  int64_t opset() const;  // of ai.onnx
  // States that the model uses operators of this domain.
  void UseDomain(std::string_view domain, int64_t version);
  // The inputs that a run gives, without constants.
  const std::vector<graph::RawInput>& inputs() const { return *inputs_; }

  // The constant of this name among those of the outermost graph; nullopt if there is none.
  std::optional<ConstantType> FindConstant(const std::string& name) const;
  // Reads the elements of a constant of f32. FailedPrecondition: one is NaN or infinite. Unavailable: the temporary
  // file cannot be read.
  absl::StatusOr<std::vector<float>> ReadFloats(const std::string& name) const;
  // Adds a constant under an unused name, which it returns. data: row-major elements. type: a number of
  // onnx::TensorProto::DataType; 0 = that of dtype.
  std::string AddConstant(std::string_view hint, const ConstantType& type, std::span<const std::byte> data,
                          int onnx_type = 0);
  // A name for a value that the outermost graph does not have: the hint, or the hint with a number.
  std::string NewName(std::string_view hint);
  // A node of ai.onnx with a name of its own, which is not yet in the graph.
  onnx::NodeProto NewNode(std::string_view op, std::vector<std::string> inputs, const std::string& output);

  uint64_t bytes() const { return bytes_; }  // of the file that was read and its external data

  // Writes the model for use by this process, and returns its path. It is valid as long as a ModelFile shares the data.
  absl::StatusOr<std::string> WriteTemporary() const;
  // The status with the path that was read in the place of WriteTemporary's.
  absl::Status NamedAsRead(const absl::Status& status) const;
  // Writes the model as a file for others, without constants that no node reads. A model of 2 GiB or more has its data
  // in a file beside it, PATH.data. The files appear whole or not at all; errors as package::AtomicFile. Call it last:
  // the constants of this object cannot be read any more.
  // Returns the bytes that were written.
  absl::StatusOr<uint64_t> Write(const std::string& path);

 private:
  ModelFile() = default;
  // Moves the data of the proto's initializers into the file of the folder.
  absl::Status MoveData(const graph::RawGraph& raw);
  // Takes external data of tensors inside of nodes into the proto. files: paths, by location.
  absl::Status TakeInnerData(const std::map<std::string, std::string>& files);
  void IndexNames();
  void RemoveUnused();

  std::string path_;  // that was read
  onnx::ModelProto proto_;
  std::shared_ptr<TemporaryFolder> folder_;
  std::shared_ptr<const std::vector<graph::RawInput>> inputs_;
  uint64_t bytes_ = 0;
  std::set<std::string> readable_;            // constants whose data has the size that their type needs
  std::map<std::string, int> constants_;      // of these, by name: the index of the initializer
  std::set<std::string, std::less<>> names_;  // of values of all graphs
  std::set<std::string, std::less<>> node_names_;
};

bool IsOnnx(const onnx::NodeProto& node);                                                       // of the domain ai.onnx
const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, std::string_view name);  // null: there is none
int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, int64_t fallback);
void SetInt(onnx::NodeProto& node, std::string_view name, int64_t value);

// The elements as AddConstant takes them.
template <typename T>
std::span<const std::byte> BytesOf(const std::vector<T>& elements) {
  return {reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)};
}

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_MODEL_FILE_H_
