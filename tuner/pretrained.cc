// SPDX-License-Identifier: Apache-2.0
#include "tuner/pretrained.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/embedded_file.h"
#include "base/status.h"

namespace hone {

// The files of the folder tuner/pretrained. A kind of target that has a model has a file KIND.ubj there.
const std::vector<EmbeddedFile>& PretrainedFiles();

namespace tuner {

absl::StatusOr<std::shared_ptr<const CostModel>> PretrainedModel(const target::Target& target) {
  const std::string name = std::string(target::KindName(target.kind)) + ".ubj";
  const auto file = std::ranges::find(PretrainedFiles(), name, &EmbeddedFile::name);
  if (file == PretrainedFiles().end()) return std::shared_ptr<const CostModel>();
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const CostModel> model, BoostedModel::Load(file->bytes));
  return model;
}

}  // namespace tuner
}  // namespace hone
