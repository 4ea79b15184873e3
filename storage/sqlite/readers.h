// SPDX-License-Identifier: Apache-2.0
// A pool of connections that only read one file. Several queries run at a time, and none waits for the writer.
//
// A query borrows a connection and returns it. If all are lent, the next query waits. Safe from any thread. Not here:
// limits of a query's answer (records/store.h).
#ifndef HONE_STORAGE_SQLITE_READERS_H_
#define HONE_STORAGE_SQLITE_READERS_H_

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/sqlite/database.h"

namespace hone::storage {

class Readers {
 public:
  // queries_max: how many queries run at a time. uri_parameters: as for Connection::Open. snapshot: every query sees
  // the file as it was at the first one; queries_max must be 1. Opens nothing yet.
  Readers(std::filesystem::path path, const DatabaseKind& kind, std::string uri_parameters, int queries_max,
          bool snapshot = false)
      : path_(std::move(path)),
        kind_(kind),
        uri_parameters_(std::move(uri_parameters)),
        snapshot_(snapshot),
        available_(queries_max) {}

  // A borrowed connection, which goes back to the pool when this is destroyed. The pool must outlive it.
  class Borrowed {
   public:
    Borrowed(Readers* from, std::unique_ptr<Connection> connection) : from_(from), connection_(std::move(connection)) {}
    Borrowed(Borrowed&&) = default;
    ~Borrowed() {
      if (connection_ != nullptr) from_->Return(std::move(connection_));
    }
    const Connection& operator*() const { return *connection_; }

   private:
    Readers* from_;
    std::unique_ptr<Connection> connection_;
  };
  absl::StatusOr<Borrowed> Borrow();

 private:
  void Return(std::unique_ptr<Connection> connection);  // null: it could not be opened

  const std::filesystem::path path_;
  const DatabaseKind& kind_;
  const std::string uri_parameters_;
  const bool snapshot_;
  std::mutex mutex_;
  std::condition_variable returned_;
  int available_;                                  // how many more connections may be lent
  std::vector<std::unique_ptr<Connection>> idle_;  // connections that are open and not lent; at most available_
};

}  // namespace hone::storage

#endif  // HONE_STORAGE_SQLITE_READERS_H_
