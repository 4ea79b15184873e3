// SPDX-License-Identifier: Apache-2.0
// Connections that only read one file: several questions at a time, none of which waits for whoever writes.
//
// A connection is lent to one question and comes back; where all are lent, the next question waits. Safe from any
// thread. Not here: limits of a question's answer (store.h).
#ifndef HONE_RECORDS_READERS_H_
#define HONE_RECORDS_READERS_H_

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "records/database.h"

namespace hone::records {

class Readers {
 public:
  // most: how many questions at a time. uri_parameters: as for Connection::Open. Opens nothing yet.
  Readers(std::filesystem::path path, const DatabaseKind& kind, std::string uri_parameters, int most)
      : path_(std::move(path)), kind_(kind), uri_parameters_(std::move(uri_parameters)), left_(most) {}

  // One connection, for as long as it lives; goes back where it came from, which must outlive it.
  class Lent {
   public:
    Lent(Readers* from, std::unique_ptr<Connection> connection) : from_(from), connection_(std::move(connection)) {}
    Lent(Lent&&) = default;
    ~Lent() {
      if (connection_ != nullptr) from_->GiveBack(std::move(connection_));
    }
    const Connection& operator*() const { return *connection_; }

   private:
    Readers* from_;
    std::unique_ptr<Connection> connection_;
  };
  absl::StatusOr<Lent> Take();

 private:
  void GiveBack(std::unique_ptr<Connection> connection);  // null: it could not be opened

  const std::filesystem::path path_;
  const DatabaseKind& kind_;
  const std::string uri_parameters_;
  std::mutex mutex_;
  std::condition_variable back_;
  int left_;                                       // to be lent
  std::vector<std::unique_ptr<Connection>> idle_;  // open ones among them
};

}  // namespace hone::records

#endif  // HONE_RECORDS_READERS_H_
