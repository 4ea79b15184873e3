// SPDX-License-Identifier: Apache-2.0
// The template of attention on CPUs (attention_tile.cc): two products with work on rows between them. Some rows go
// through all of it before the next ones.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_ATTENTION_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_ATTENTION_TILE_H_

#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the stages are such products.
bool FitsAttention(const schedule::State& state);
absl::Status ScheduleAttentionTile(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_ATTENTION_TILE_H_
