// SPDX-License-Identifier: Apache-2.0
// Reads and writes zip archives in memory: as much of the format as .npz files use (npz.h).
//
// Members are stored or deflated, with 32-bit or 64-bit sizes; encrypted and split archives are errors. Reading trusts
// no byte of the archive. It makes no system call, so that a confined process can read an archive that it has mapped.
// The format is PKWARE's APPNOTE.TXT, version 6.3.
#ifndef HONE_DEPLOY_RUN_ZIP_ARCHIVE_H_
#define HONE_DEPLOY_RUN_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::run {

class ZipReader {
 public:
  // `archive` must outlive the reader. kDataLoss: it is no archive, or its list of members is damaged.
  static absl::StatusOr<ZipReader> Open(std::span<const uint8_t> archive);

  size_t size() const { return members_.size(); }
  const std::string& name(size_t member) const { return members_[member].name; }

  // Unpacks the member and calls take(bytes) with each piece of it, in order, until take fails. The checksum is
  // compared after the last piece. kDataLoss: the member is damaged. kUnimplemented: it is encrypted, or packed
  // otherwise. Other errors are those of `take`.
  using Take = std::function<absl::Status(std::span<const uint8_t>)>;
  absl::Status Read(size_t member, const Take& take) const;

 private:
  struct Member {
    std::string name;
    uint16_t flags = 0, method = 0;
    uint32_t checksum = 0;
    uint64_t packed_bytes = 0, bytes = 0, offset = 0;  // offset: of the member's own header
  };

  absl::Status ReadMembers();
  // The 64-bit values that replace those of `member` that have no room in 32 bits.
  static bool ReadLongValues(std::span<const uint8_t> extra, Member& member);
  absl::StatusOr<std::span<const uint8_t>> PackedBytes(const Member& member) const;

  std::span<const uint8_t> archive_;
  std::vector<Member> members_;
};

// Builds an archive of stored members. The same members always give the same bytes. Nothing is copied: the caller
// writes the pieces one after the other.
class ZipWriter {
 public:
  // `parts`, one after the other, are the member's contents. They must stay valid as long as the pieces are used.
  void Add(std::string_view name, std::span<const std::span<const uint8_t>> parts);
  // The archive. Call it once, after the last Add. The pieces are valid as long as the writer.
  const std::vector<std::span<const uint8_t>>& Finish();
  uint64_t bytes() const { return bytes_; }  // of all pieces so far

 private:
  void Append(std::string bytes);

  std::list<std::string> headers_;  // own bytes, to which pieces refer
  std::vector<std::span<const uint8_t>> pieces_;
  std::string directory_;
  uint64_t bytes_ = 0, members_ = 0;
};

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_ZIP_ARCHIVE_H_
