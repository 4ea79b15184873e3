// SPDX-License-Identifier: Apache-2.0
// Prints the descriptor of ONNX's protobuf classes. protoc generates the classes from it for bundled programs, because
// Debian has them only as a shared library, and does not package their source.
#include <google/protobuf/descriptor.pb.h>

#include <iostream>

#include "onnx/onnx_pb.h"

int main() {
  google::protobuf::FileDescriptorSet set;
  ONNX_NAMESPACE::ModelProto::descriptor()->file()->CopyTo(set.add_file());
  return set.SerializeToOstream(&std::cout) ? 0 : 1;
}
