// SPDX-License-Identifier: Apache-2.0
// The list of a file's chunks as text, which FileStore keeps beside each file. Only for the room `files`.
//
// Lines: "hone-chunks 1", "owner NAME", a "holder NAME" for each holder, one "DIGEST BYTES" for each chunk, and "sum
// SHA-256 of all lines before", by which a list that a power failure cut or emptied is found out.
#ifndef HONE_FILES_CHUNK_LIST_H_
#define HONE_FILES_CHUNK_LIST_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "files/chunks.h"

namespace hone::files {

// Whose a file is.
struct Ownership {
  std::string owner;              // whose quota the file counts against; "" = of none
  std::set<std::string> holders;  // who has shown that they have the contents
};

struct ChunkList {
  std::vector<ChunkName> chunks;
  Ownership of;
};

std::string ToText(const ChunkList& list);
// nullopt: it is not what ToText wrote.
std::optional<ChunkList> ParseChunkList(std::string_view text);

}  // namespace hone::files

#endif  // HONE_FILES_CHUNK_LIST_H_
