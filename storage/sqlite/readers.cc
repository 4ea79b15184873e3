// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/readers.h"

namespace hone::storage {

absl::StatusOr<Readers::Lent> Readers::Take() {
  {
    std::unique_lock lock(mutex_);
    back_.wait(lock, [this] { return left_ > 0; });
    --left_;
    if (!idle_.empty()) {
      Lent lent(this, std::move(idle_.back()));
      idle_.pop_back();
      return lent;
    }
  }
  absl::StatusOr<Connection> opened = OpenToRead(path_, kind_, uri_parameters_);
  if (opened.ok()) return Lent(this, std::make_unique<Connection>(*std::move(opened)));
  GiveBack(nullptr);
  return opened.status();
}

void Readers::GiveBack(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  ++left_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
  back_.notify_one();
}

}  // namespace hone::storage
