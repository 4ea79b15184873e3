// SPDX-License-Identifier: Apache-2.0
// Runs a compiled model on an image of raw floats and prints where its output is largest.
//
//   find_peak PACKAGE.hone IMAGE.raw
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "channel_shuffle.h"

int main(int argc, char** argv) {
  using channel_shuffle::Model;
  if (argc != 3) {
    std::fprintf(stderr, "usage: find_peak PACKAGE.hone IMAGE.raw\n");
    return 2;
  }
  Model model;
  if (model.Load(argv[1]) != HONE_OK) {
    std::fprintf(stderr, "find_peak: cannot load %s: %s\n", argv[1], hone_error());
    return 1;
  }
  std::ifstream file(argv[2], std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(model.input_image()), Model::kInputImageSize * sizeof(float))) {
    std::fprintf(stderr, "find_peak: %s has no %zu floats\n", argv[2], Model::kInputImageSize);
    return 1;
  }
  if (model.Run() != HONE_OK) {
    std::fprintf(stderr, "find_peak: %s\n", hone_error());
    return 1;
  }
  const float* output = model.output_Reshape_18_output();
  const float* peak = std::max_element(output, output + Model::kOutputReshape18OutputSize);
  std::printf("%td %.6f\n", peak - output, *peak);
}
