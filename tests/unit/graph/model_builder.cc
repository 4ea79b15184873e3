// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/graph/model_builder.h"

#include "base/random.h"

namespace hone::graph {
namespace {

constexpr int kFloatAttribute = 1, kIntAttribute = 2, kStringAttribute = 3, kTensorAttribute = 4, kGraphAttribute = 5,
              kFloatsAttribute = 6, kIntsAttribute = 7, kStringsAttribute = 8;

Message NamedAttribute(const std::string& name, int type) {
  Message attribute;
  attribute.Text(1, name).Int(20, type);
  return attribute;
}

std::string TensorTypeMessage(int dtype, const Dims* shape) {
  Message tensor_type;
  tensor_type.Int(1, dtype);
  if (shape != nullptr) {
    Message dims;
    for (const Dim& dim : *shape) {
      Message d;
      if (const auto* number = std::get_if<int64_t>(&dim)) {
        d.Int(1, *number);
      } else {
        d.Text(2, std::get<std::string>(dim));
      }
      dims.Text(1, d.bytes());
    }
    tensor_type.Text(2, dims.bytes());
  }
  return Message().Text(1, tensor_type.bytes()).bytes();
}

}  // namespace

void Message::Varint(uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
  bytes_.push_back(static_cast<char>(value));
}

Message& Message::Int(int field, int64_t value) {
  Varint(static_cast<uint64_t>(field) << 3);
  Varint(static_cast<uint64_t>(value));
  return *this;
}

Message& Message::Text(int field, const std::string& value) {
  Varint(static_cast<uint64_t>(field) << 3 | 2);
  Varint(value.size());
  bytes_ += value;
  return *this;
}

Message& Message::Float(int field, float value) {
  Varint(static_cast<uint64_t>(field) << 3 | 5);
  char raw[4];
  std::memcpy(raw, &value, 4);
  bytes_.append(raw, 4);
  return *this;
}

std::string Attr(const std::string& name, int64_t value) {
  return NamedAttribute(name, kIntAttribute).Int(3, value).bytes();
}
std::string Attr(const std::string& name, int value) { return Attr(name, static_cast<int64_t>(value)); }
std::string Attr(const std::string& name, float value) {
  return NamedAttribute(name, kFloatAttribute).Float(2, value).bytes();
}
std::string Attr(const std::string& name, const char* value) {
  return NamedAttribute(name, kStringAttribute).Text(4, value).bytes();
}
std::string Attr(const std::string& name, const std::vector<int64_t>& values) {
  Message attribute = NamedAttribute(name, kIntsAttribute);
  for (int64_t value : values) attribute.Int(8, value);
  return attribute.bytes();
}
std::string StringsAttr(const std::string& name, const std::vector<std::string>& values) {
  Message attribute = NamedAttribute(name, kStringsAttribute);
  for (const std::string& value : values) attribute.Text(9, value);
  return attribute.bytes();
}
std::string FloatsAttr(const std::string& name, const std::vector<float>& values) {
  Message attribute = NamedAttribute(name, kFloatsAttribute);
  for (float value : values) attribute.Float(7, value);
  return attribute.bytes();
}
std::string TensorAttr(const std::string& name, const std::string& tensor) {
  return NamedAttribute(name, kTensorAttribute).Text(5, tensor).bytes();
}
std::string GraphAttr(const std::string& name, const std::string& graph) {
  return NamedAttribute(name, kGraphAttribute).Text(6, graph).bytes();
}
std::string ReferenceAttr(const std::string& name, const std::string& reference, int type) {
  return NamedAttribute(name, type).Text(21, reference).bytes();
}

std::string TensorOfBytes(const std::string& name, int dtype, const std::vector<int64_t>& shape,
                          const std::string& raw) {
  Message tensor;
  for (int64_t extent : shape) tensor.Int(1, extent);
  return tensor.Int(2, dtype).Text(8, name).Text(9, raw).bytes();
}

GraphBuilder& GraphBuilder::Input(const std::string& name, const Dims& shape, int dtype) {
  graph_.Text(11, Message().Text(1, name).Text(2, TensorTypeMessage(dtype, &shape)).bytes());
  return *this;
}

GraphBuilder& GraphBuilder::InputWithoutShape(const std::string& name, int dtype) {
  graph_.Text(11, Message().Text(1, name).Text(2, TensorTypeMessage(dtype, nullptr)).bytes());
  return *this;
}

GraphBuilder& GraphBuilder::Output(const std::string& name) {
  graph_.Text(12, Message().Text(1, name).bytes());
  return *this;
}

GraphBuilder& GraphBuilder::TypedOutput(const std::string& name, int dtype) {
  graph_.Text(12, Message().Text(1, name).Text(2, TensorTypeMessage(dtype, nullptr)).bytes());
  return *this;
}

GraphBuilder& GraphBuilder::Output(const std::string& name, const Dims& shape, int dtype) {
  graph_.Text(12, Message().Text(1, name).Text(2, TensorTypeMessage(dtype, &shape)).bytes());
  return *this;
}

GraphBuilder& GraphBuilder::Declared(const std::string& name, const Dims& shape, int dtype) {
  graph_.Text(13, Message().Text(1, name).Text(2, TensorTypeMessage(dtype, &shape)).bytes());
  return *this;
}

GraphBuilder& GraphBuilder::Initializer(const std::string& tensor) {
  graph_.Text(5, tensor);
  return *this;
}

GraphBuilder& GraphBuilder::Floats(const std::string& name, const std::vector<int64_t>& shape,
                                   const std::vector<float>& values) {
  return Initializer(Tensor(name, kFloat, shape, values));
}

GraphBuilder& GraphBuilder::Ints(const std::string& name, const std::vector<int64_t>& values) {
  return Initializer(Tensor(name, kInt64, {static_cast<int64_t>(values.size())}, values));
}

std::string SerializeNode(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::vector<std::string>& attributes,
                          const std::string& domain) {
  Message node;
  for (const std::string& input : inputs) node.Text(1, input);
  for (const std::string& output : outputs) node.Text(2, output);
  node.Text(3, "node_of_" + (outputs.empty() ? "nothing" : outputs[0])).Text(4, op);
  for (const std::string& attribute : attributes) node.Text(5, attribute);
  return node.Text(7, domain).bytes();
}

GraphBuilder& GraphBuilder::Node(const std::string& op, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, const std::vector<std::string>& attributes,
                                 const std::string& domain) {
  graph_.Text(1, SerializeNode(op, inputs, outputs, attributes, domain));
  return *this;
}

std::string SerializeOpset(const std::string& domain, int64_t version) {
  return Message().Text(1, domain).Int(2, version).bytes();
}

std::string SerializeFunction(const std::string& name, const std::vector<std::string>& inputs,
                              const std::string& output, const std::vector<std::string>& nodes,
                              const std::string& default_attribute) {
  Message f;
  f.Text(1, name).Text(5, output).Text(9, SerializeOpset("", 17)).Text(9, SerializeOpset("local", 1)).Text(10, "local");
  for (const std::string& input : inputs) f.Text(4, input);
  for (const std::string& node : nodes) f.Text(7, node);
  if (!default_attribute.empty()) f.Text(11, default_attribute);
  return f.bytes();
}

std::string GraphBuilder::Model(int opset, const std::vector<std::string>& functions, int ir_version) const {
  Message model;
  model.Int(1, ir_version)
      .Text(8, SerializeOpset("", opset))
      .Text(8, SerializeOpset("local", 1))
      .Text(7, graph_.bytes());
  for (const std::string& function : functions) model.Text(25, function);
  return model.bytes();
}

std::vector<float> RandomFloats(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random.Uniform() * 2 - 1));
  return values;
}

}  // namespace hone::graph
