// SPDX-License-Identifier: Apache-2.0
// Writes small ONNX models byte by byte, without ONNX's own classes, so that the importer is tested on independent
// input.
//
// It checks nothing: a test may build models that no exporter would write.
#ifndef HONE_TESTS_UNIT_GRAPH_MODEL_BUILDER_H_
#define HONE_TESTS_UNIT_GRAPH_MODEL_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

namespace hone::graph {

// TensorProto.DataType
inline constexpr int kFloat = 1, kUInt8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9, kHalf = 10,
                     kDouble = 11, kUInt32 = 12, kUInt64 = 13, kBFloat = 16;

// A protobuf message under construction.
class Message {
 public:
  Message& Int(int field, int64_t value);
  Message& Text(int field, const std::string& value);  // strings, bytes and sub-messages
  Message& Float(int field, float value);
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value);
  std::string bytes_;
};

using Dim = std::variant<int64_t, std::string>;  // a number or a symbol
struct Dims : std::vector<Dim> {
  Dims(std::initializer_list<int> numbers) : std::vector<Dim>(numbers.begin(), numbers.end()) {}
  explicit Dims(std::vector<Dim> dims) : std::vector<Dim>(std::move(dims)) {}
};

// Returns a serialized AttributeProto.
std::string Attr(const std::string& name, int64_t value);
std::string Attr(const std::string& name, int value);
std::string Attr(const std::string& name, float value);
std::string Attr(const std::string& name, const char* value);
std::string Attr(const std::string& name, const std::vector<int64_t>& values);
std::string StringsAttr(const std::string& name, const std::vector<std::string>& values);
std::string FloatsAttr(const std::string& name, const std::vector<float>& values);
std::string TensorAttr(const std::string& name, const std::string& tensor);
std::string GraphAttr(const std::string& name, const std::string& graph);
std::string ReferenceAttr(const std::string& name, const std::string& reference, int type);

// Returns a serialized TensorProto with raw_data.
std::string TensorOfBytes(const std::string& name, int dtype, const std::vector<int64_t>& shape,
                          const std::string& raw);
template <typename T>
std::string Tensor(const std::string& name, int dtype, const std::vector<int64_t>& shape,
                   const std::vector<T>& values) {
  std::string raw(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return TensorOfBytes(name, dtype, shape, raw);
}

class GraphBuilder {
 public:
  GraphBuilder& Input(const std::string& name, const Dims& shape, int dtype = kFloat);
  GraphBuilder& InputWithoutShape(const std::string& name, int dtype = kFloat);
  GraphBuilder& Output(const std::string& name);
  GraphBuilder& TypedOutput(const std::string& name, int dtype);
  // An output with a declared type.
  GraphBuilder& Output(const std::string& name, const Dims& shape, int dtype = kFloat);
  // The declared type of a value that is no output.
  GraphBuilder& Declared(const std::string& name, const Dims& shape, int dtype = kFloat);
  GraphBuilder& Initializer(const std::string& tensor);
  GraphBuilder& Floats(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values);
  GraphBuilder& Ints(const std::string& name, const std::vector<int64_t>& values);
  GraphBuilder& Node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                     const std::string& domain = "");
  const std::string& bytes() const { return graph_.bytes(); }
  // Returns the whole file; functions are serialized FunctionProtos.
  std::string Model(int opset = 17, const std::vector<std::string>& functions = {}, int ir_version = 8) const;

 private:
  Message graph_;
};

std::string SerializeNode(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                          const std::string& domain = "");
std::string SerializeOpset(const std::string& domain, int64_t version);
// Returns a serialized FunctionProto of domain "local"; nodes are serialized NodeProtos, default_attribute is an
// AttributeProto or empty.
std::string SerializeFunction(const std::string& name, const std::vector<std::string>& inputs,
                              const std::string& output, const std::vector<std::string>& nodes,
                              const std::string& default_attribute = "");

// Random numbers in [-1, 1), the same on every machine.
std::vector<float> RandomFloats(int64_t count, uint64_t seed);

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_GRAPH_MODEL_BUILDER_H_
