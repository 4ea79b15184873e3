// SPDX-License-Identifier: Apache-2.0
// Samples of a model's inputs, from a .npz file or from a folder of them: each gives every input once.
//
// The arrays of a file have the names of the inputs. A file has several samples if the first dimension of its arrays is
// a multiple of the model's. Start with Open.
#ifndef HONE_DEPLOY_QUANTIZE_SAMPLES_H_
#define HONE_DEPLOY_QUANTIZE_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"
#include "deploy/run/npz.h"

namespace hone::quantize {

class Samples {
 public:
  // inputs: those that the samples give. Errors name the file, the array, and what to do. NotFound: there is no file,
  // or the folder has none that ends with .npz. FailedPrecondition: an input has no array, an array is for no input or
  // has another type or shape, an f32 or f64 is NaN or infinite, or no array varies. kDataLoss: a file is damaged.
  static absl::StatusOr<Samples> Open(const std::string& path, const std::vector<graph::RawInput>& inputs);

  size_t size() const { return count_; }
  // The range of each dimension of each input over all samples, by input, as for graph::ImportOptions::shapes. Its step
  // is the largest that divides all sizes. Inputs whose dimensions the model states are left out.
  const std::map<std::string, std::vector<graph::DimRange>>& open_shapes() const { return open_shapes_; }

  // Calls `use` with each sample, in the order of the files' names and of the rows in them. The arrays are valid during
  // the call. An error of `use` ends it.
  using Use = std::function<absl::Status(size_t sample, std::span<const run::ArrayView> arrays)>;
  absl::Status ForEach(const Use& use) const;

 private:
  struct File {
    std::string path;
    size_t samples = 1;
  };

  absl::StatusOr<File> Check(const std::string& path);
  void NoteShape(const graph::RawInput& input, const std::vector<int64_t>& shape);

  std::vector<graph::RawInput> inputs_;
  std::vector<File> files_;
  size_t count_ = 0;
  std::map<std::string, std::vector<graph::DimRange>> open_shapes_;
  bool varies_ = false;                                         // whether two elements of an input differ
  std::map<std::string, std::vector<uint8_t>> first_elements_;  // by input: of the first file
};

// The .npz files that `path` names: the file itself, or those in the folder, sorted. NotFound: the folder has none.
absl::StatusOr<std::vector<std::string>> SampleFiles(const std::string& path);

// The ranges over all samples together.
std::map<std::string, std::vector<graph::DimRange>> OpenShapesOf(const std::vector<const Samples*>& all);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_SAMPLES_H_
