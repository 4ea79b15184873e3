// SPDX-License-Identifier: Apache-2.0
// Prints what ONNX's protobuf classes are made of, so that protoc makes them again for bundled programs: Debian has the
// classes as a shared library alone, and their source not at all.
#include <google/protobuf/descriptor.pb.h>

#include <iostream>

#include "onnx/onnx_pb.h"

int main() {
  google::protobuf::FileDescriptorSet set;
  ONNX_NAMESPACE::ModelProto::descriptor()->file()->CopyTo(set.add_file());
  return set.SerializeToOstream(&std::cout) ? 0 : 1;
}
