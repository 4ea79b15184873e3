// SPDX-License-Identifier: Apache-2.0
// The template of attention on CPUs (attention_tile.cc): two products with work on rows between them. A task computes
// some rows through all stages before it starts the next ones.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_ATTENTION_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_ATTENTION_TILE_H_

#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the stages are two such products with work on rows between them.
bool FitsAttention(const schedule::State& state);
absl::Status ScheduleAttentionTile(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_ATTENTION_TILE_H_
