// SPDX-License-Identifier: Apache-2.0
#include "tuner/pretrained.h"

#include <algorithm>
#include <vector>

#include "base/embedded_file.h"
#include "base/status.h"

namespace hone {

// The folder tuner/pretrained: for some kinds of target KIND.ubj.
const std::vector<EmbeddedFile>& PretrainedFiles();

namespace tuner {

absl::StatusOr<std::shared_ptr<const CostModel>> PretrainedModel(const target::Target& target) {
  if (target.kind != target::Kind::kCpu) return std::shared_ptr<const CostModel>();
  const auto file = std::ranges::find(PretrainedFiles(), "cpu.ubj", &EmbeddedFile::name);
  HONE_CHECK(file != PretrainedFiles().end());
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const CostModel> model, BoostedModel::Load(file->bytes));
  return model;
}

}  // namespace tuner
}  // namespace hone
