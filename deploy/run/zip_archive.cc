// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

#include "base/status.h"

namespace hone::run {
namespace {

constexpr uint32_t kMemberMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kLongEndMark = 0x06064b50, kLongEndPlaceMark = 0x07064b50;
constexpr size_t kMemberHeader = 30, kDirectoryHeader = 46, kEnd = 22, kLongEnd = 56, kLongEndPlace = 20;
constexpr uint16_t kLongValues = 1;  // the kind of extra data that holds 64-bit values
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kEncrypted = 1, kUtf8 = 1 << 11;   // flags
constexpr uint16_t kVersion = 20, kLongVersion = 45;  // of the format that a reader must know
constexpr uint16_t kFirstDay = 0x21;                  // 1980-01-01, so that the same arrays give the same bytes
constexpr uint32_t kMost32 = std::numeric_limits<uint32_t>::max();  // stands for a 64-bit value elsewhere
constexpr uint16_t kMost16 = std::numeric_limits<uint16_t>::max();
constexpr size_t kPieceBytes = size_t{1} << 18;  // of unpacked data
constexpr size_t kCommentBytesMax = kMost16;

using Bytes = std::span<const uint8_t>;

// Reads little-endian numbers. Beyond the end all are 0 and good() is false.
class Fields {
 public:
  explicit Fields(Bytes bytes) : bytes_(bytes) {}
  template <std::unsigned_integral Number>
  Number Next() {
    const Bytes taken = Take(sizeof(Number));
    uint64_t number = 0;
    for (size_t i = taken.size(); i > 0; --i) number = number << 8 | taken[i - 1];
    return static_cast<Number>(number);
  }
  Bytes Take(size_t bytes) {
    good_ &= bytes <= bytes_.size();
    if (!good_) return {};
    const Bytes taken = bytes_.first(bytes);
    bytes_ = bytes_.subspan(bytes);
    return taken;
  }
  bool good() const { return good_; }
  bool empty() const { return bytes_.empty(); }

 private:
  Bytes bytes_;
  bool good_ = true;
};

template <std::unsigned_integral Number>
void Put(std::string& bytes, Number number) {
  for (size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
}

Bytes From(Bytes bytes, uint64_t offset) {
  return offset > bytes.size() ? Bytes() : bytes.subspan(static_cast<size_t>(offset));
}

absl::Status Damaged(std::string_view what) { return absl::DataLossError(fmt::format("Not a zip archive: {}", what)); }

// The offset of the record at the archive's end; npos if there is none.
size_t FindEnd(Bytes archive) {
  if (archive.size() < kEnd) return std::string_view::npos;
  const size_t last = archive.size() - kEnd, first = last - std::min(last, kCommentBytesMax);
  for (size_t at = last + 1; at > first; --at) {
    if (Fields(archive.subspan(at - 1)).Next<uint32_t>() == kEndMark) return at - 1;
  }
  return std::string_view::npos;
}

uint32_t ChecksumOf(uint32_t before, Bytes bytes) {
  if (bytes.empty()) return before;  // zlib begins anew at a null pointer
  return static_cast<uint32_t>(crc32_z(before, bytes.data(), bytes.size()));
}

// Unpacks deflated data.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }

  absl::Status Inflate(Bytes packed, const ZipReader::Take& take) {
    if (!ready_) return absl::ResourceExhaustedError("no memory to unpack it");
    std::vector<uint8_t> piece(kPieceBytes);
    for (int state = Z_OK; state != Z_STREAM_END;) {
      if (stream_.avail_in == 0) {
        const size_t next = std::min<size_t>(packed.size(), std::numeric_limits<uInt>::max());
        stream_.next_in = const_cast<Bytef*>(packed.data());
        stream_.avail_in = static_cast<uInt>(next);
        packed = packed.subspan(next);
      }
      stream_.next_out = piece.data();
      stream_.avail_out = static_cast<uInt>(piece.size());
      state = inflate(&stream_, Z_NO_FLUSH);
      const size_t unpacked = piece.size() - stream_.avail_out;
      if (state != Z_OK && state != Z_STREAM_END) return absl::DataLossError("it is damaged: Zlib error");
      HONE_RETURN_IF_ERROR(take(Bytes(piece).first(unpacked)));
    }
    return absl::OkStatus();
  }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
};

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(std::span<const uint8_t> archive) {
  ZipReader reader;
  reader.archive_ = archive;
  HONE_RETURN_IF_ERROR(reader.ReadMembers());
  return reader;
}

absl::Status ZipReader::ReadMembers() {
  const size_t end = FindEnd(archive_);
  if (end == std::string_view::npos) return Damaged("its end is missing");
  Fields fields(archive_.subspan(end + 4));
  const auto disk = fields.Next<uint16_t>(), start_disk = fields.Next<uint16_t>();
  fields.Take(2);
  uint64_t count = fields.Next<uint16_t>();
  fields.Take(4);
  uint64_t offset = fields.Next<uint32_t>();
  if (disk != start_disk) return absl::UnimplementedError("it is one part of a split archive");
  if ((count == kMost16 || offset == kMost32) && end >= kLongEndPlace) {
    Fields place(archive_.subspan(end - kLongEndPlace));
    if (place.Next<uint32_t>() == kLongEndPlaceMark) {
      place.Take(4);
      Fields record(From(archive_, place.Next<uint64_t>()));
      if (record.Next<uint32_t>() != kLongEndMark) return Damaged("its end is damaged");
      record.Take(28);
      count = record.Next<uint64_t>();
      record.Take(8);
      offset = record.Next<uint64_t>();
      if (!record.good()) return Damaged("its end is damaged");
    }
  }
  Fields directory(From(archive_, offset));
  for (uint64_t i = 0; i < count; ++i) {
    Member member;
    const auto mark = directory.Next<uint32_t>();
    directory.Take(4);
    member.flags = directory.Next<uint16_t>();
    member.method = directory.Next<uint16_t>();
    directory.Take(4);
    member.checksum = directory.Next<uint32_t>();
    member.packed_bytes = directory.Next<uint32_t>();
    member.bytes = directory.Next<uint32_t>();
    const auto name = directory.Next<uint16_t>(), extra = directory.Next<uint16_t>(),
               comment = directory.Next<uint16_t>();
    directory.Take(8);
    member.offset = directory.Next<uint32_t>();
    const Bytes text = directory.Take(name);
    if (mark != kDirectoryMark || !ReadLongValues(directory.Take(extra), member)) directory.Take(archive_.size() + 1);
    directory.Take(comment);
    if (!directory.good()) return Damaged("its list of members is damaged");
    member.name.assign(text.begin(), text.end());
    members_.push_back(std::move(member));
  }
  return absl::OkStatus();
}

bool ZipReader::ReadLongValues(std::span<const uint8_t> extra, Member& member) {
  for (Fields fields(extra); !fields.empty();) {
    const auto kind = fields.Next<uint16_t>();
    Fields values(fields.Take(fields.Next<uint16_t>()));
    if (!fields.good()) return true;  // other programs write data of other forms
    if (kind != kLongValues) continue;
    for (uint64_t* value : {&member.bytes, &member.packed_bytes, &member.offset}) {
      if (*value == kMost32) *value = values.Next<uint64_t>();
    }
    return values.good();
  }
  return true;
}

absl::StatusOr<std::span<const uint8_t>> ZipReader::PackedBytes(const Member& member) const {
  Fields fields(From(archive_, member.offset));
  const auto mark = fields.Next<uint32_t>();
  fields.Take(22);
  const auto name = fields.Next<uint16_t>(), extra = fields.Next<uint16_t>();
  fields.Take(name);
  fields.Take(extra);
  const uint64_t begin = member.offset + kMemberHeader + name + extra;
  if (mark != kMemberMark || !fields.good() || member.packed_bytes > archive_.size() - begin) {
    return absl::DataLossError("it is damaged: it lies outside the archive");
  }
  return archive_.subspan(static_cast<size_t>(begin), static_cast<size_t>(member.packed_bytes));
}

absl::Status ZipReader::Read(size_t index, const Take& take) const {
  const Member& member = members_[index];
  if ((member.flags & kEncrypted) != 0) return absl::UnimplementedError("it is encrypted");
  HONE_ASSIGN_OR_RETURN(const Bytes packed, PackedBytes(member));
  uint32_t checksum = ChecksumOf(0, {});
  uint64_t bytes = 0;
  const auto pass_on = [&](Bytes piece) {
    bytes += piece.size();
    if (bytes > member.bytes) return absl::DataLossError("it is damaged: more data than its size says");
    checksum = ChecksumOf(checksum, piece);
    return take(piece);
  };
  if (member.method == kStored) {
    for (size_t at = 0; at < packed.size(); at += kPieceBytes) {
      HONE_RETURN_IF_ERROR(pass_on(packed.subspan(at, std::min(kPieceBytes, packed.size() - at))));
    }
  } else if (member.method == kDeflated) {
    HONE_RETURN_IF_ERROR(Inflater().Inflate(packed, pass_on));
  } else {
    return absl::UnimplementedError(fmt::format("it is packed by method {}, not stored or deflated", member.method));
  }
  if (checksum == member.checksum && bytes == member.bytes) return absl::OkStatus();
  return absl::DataLossError("it is damaged: CRC error");
}

void ZipWriter::Append(std::string bytes) {
  const std::string& own = headers_.emplace_back(std::move(bytes));
  pieces_.emplace_back(reinterpret_cast<const uint8_t*>(own.data()), own.size());
  bytes_ += own.size();
}

void ZipWriter::Add(std::string_view name, std::span<const std::span<const uint8_t>> parts) {
  uint64_t bytes = 0;
  uint32_t checksum = ChecksumOf(0, {});
  for (const Bytes part : parts) {
    bytes += part.size();
    checksum = ChecksumOf(checksum, part);
  }
  const uint64_t offset = bytes_;
  const bool is_long = bytes >= kMost32, is_far = offset >= kMost32;
  const auto put_common = [&](std::string& header) {
    Put(header, is_long || is_far ? kLongVersion : kVersion);
    Put(header, kUtf8);
    Put(header, kStored);
    Put(header, uint16_t{0});  // the time of the day
    Put(header, kFirstDay);
    Put(header, checksum);
    for (int i = 0; i < 2; ++i) Put(header, is_long ? kMost32 : static_cast<uint32_t>(bytes));
    Put(header, static_cast<uint16_t>(name.size()));
  };
  const auto put_long_values = [&](std::string& header, bool with_offset) {
    const int values = (is_long ? 2 : 0) + (with_offset ? 1 : 0);
    if (values == 0) return;
    Put(header, kLongValues);
    Put(header, static_cast<uint16_t>(8 * values));
    for (int i = 0; is_long && i < 2; ++i) Put(header, bytes);
    if (with_offset) Put(header, offset);
  };
  std::string extra, header;
  put_long_values(extra, false);
  Put(header, kMemberMark);
  put_common(header);
  Put(header, static_cast<uint16_t>(extra.size()));
  Append(header.append(name) + extra);
  extra.clear();
  put_long_values(extra, is_far);
  Put(directory_, kDirectoryMark);
  Put(directory_, kLongVersion);
  put_common(directory_);
  Put(directory_, static_cast<uint16_t>(extra.size()));
  directory_.append(10, '\0');  // no comment, the first disk, no attributes
  Put(directory_, is_far ? kMost32 : static_cast<uint32_t>(offset));
  directory_.append(name) += extra;
  ++members_;
  for (const Bytes part : parts) {
    pieces_.push_back(part);
    bytes_ += part.size();
  }
}

const std::vector<std::span<const uint8_t>>& ZipWriter::Finish() {
  const uint64_t offset = bytes_, directory_bytes = directory_.size();
  Append(std::exchange(directory_, {}));
  const bool is_long = offset >= kMost32 || directory_bytes >= kMost32 || members_ >= kMost16;
  std::string end;
  if (is_long) {
    const uint64_t record = bytes_;
    Put(end, kLongEndMark);
    Put(end, uint64_t{kLongEnd - 12});
    for (int i = 0; i < 2; ++i) Put(end, kLongVersion);
    Put(end, uint64_t{0});  // both numbers of disks
    for (int i = 0; i < 2; ++i) Put(end, members_);
    Put(end, directory_bytes);
    Put(end, offset);
    Put(end, kLongEndPlaceMark);
    Put(end, uint32_t{0});
    Put(end, record);
    Put(end, uint32_t{1});
  }
  Put(end, kEndMark);
  Put(end, uint32_t{0});  // both numbers of disks
  for (int i = 0; i < 2; ++i) Put(end, is_long ? kMost16 : static_cast<uint16_t>(members_));
  Put(end, is_long ? kMost32 : static_cast<uint32_t>(directory_bytes));
  Put(end, is_long ? kMost32 : static_cast<uint32_t>(offset));
  Put(end, uint16_t{0});  // no comment
  Append(std::move(end));
  return pieces_;
}

}  // namespace hone::run
