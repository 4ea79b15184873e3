// SPDX-License-Identifier: Apache-2.0
// ONNX files with one thing wrong each, for the tests of what Hone says about them.
//
// Whole files as bytes, since some of them are not models at all. Start with BrokenModels.
#ifndef HONE_TESTS_MODELS_BROKEN_MODELS_H_
#define HONE_TESTS_MODELS_BROKEN_MODELS_H_

#include <string>
#include <vector>

namespace hone::models {

struct BrokenModel {
  std::string name;  // the file is NAME.onnx
  std::string bytes;
  std::string wrong;  // what is wrong with it, for the reader of a failed test
};

std::vector<BrokenModel> BrokenModels();

// Copies of `model_bytes` with one random bit flipped in each, the same at every call. Some still are models.
std::vector<std::string> BitFlips(const std::string& model_bytes, int count);

}  // namespace hone::models

#endif  // HONE_TESTS_MODELS_BROKEN_MODELS_H_
