// SPDX-License-Identifier: Apache-2.0
// The small networks that the tests and the demo run: relatives of the networks people deploy, with random weights.
//
// No files are touched here; make_models.cc writes them. Start with SampleModels.
#ifndef HONE_TESTS_MODELS_SAMPLE_MODELS_H_
#define HONE_TESTS_MODELS_SAMPLE_MODELS_H_

#include <string>
#include <vector>

#include "compiler/graph/onnx_proto.h"

namespace hone::models {

struct SampleModel {
  std::string name;  // the file is NAME.onnx
  onnx::ModelProto model;
};

// Every sample model, super_resolution first. The same bytes at every call and on every platform.
std::vector<SampleModel> SampleModels();

}  // namespace hone::models

#endif  // HONE_TESTS_MODELS_SAMPLE_MODELS_H_
