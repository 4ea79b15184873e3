// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite/readers.h"

namespace hone::storage {

absl::StatusOr<Readers::Borrowed> Readers::Borrow() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return available_ > 0; });
    --available_;
    if (!idle_.empty()) {
      Borrowed lent(this, std::move(idle_.back()));
      idle_.pop_back();
      return lent;
    }
  }
  absl::StatusOr<Connection> opened = OpenToRead(path_, kind_, uri_parameters_);
  if (absl::Status held = opened.ok() && snapshot_ ? opened->HoldSnapshot() : absl::OkStatus(); !held.ok()) {
    opened = std::move(held);
  }
  if (opened.ok()) return Borrowed(this, std::make_unique<Connection>(*std::move(opened)));
  Return(nullptr);
  return opened.status();
}

void Readers::Return(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  ++available_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
  returned_.notify_one();
}

}  // namespace hone::storage
