// SPDX-License-Identifier: Apache-2.0
// ONNX's protobuf classes, with the two settings that Debian's libonnx is built with.
//
// All files include this and never onnx_pb.h itself, so that the settings stand in one place.
#ifndef HONE_COMPILER_GRAPH_ONNX_PROTO_H_
#define HONE_COMPILER_GRAPH_ONNX_PROTO_H_

#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>

#endif  // HONE_COMPILER_GRAPH_ONNX_PROTO_H_
