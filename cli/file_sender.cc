// SPDX-License-Identifier: Apache-2.0
#include "cli/file_sender.h"

#include <fmt/format.h>

#include "base/status.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/quantity_text.h"
#include "files/transfer.h"

namespace hone::cli {

absl::StatusOr<v1::FileName> FileSender::Send(const std::string& path) {
  if (const auto sent = sent_.find(path); sent != sent_.end()) return sent->second;
  ProgressLine line;
  const std::string name = FileNameOf(path);
  files::TransferOptions options{.stop = stop_, .until = until_};
  options.progress = [&](const files::TransferProgress& progress) {
    line.Show(fmt::format("sending {}: {} of {}", name, BytesText(static_cast<double>(progress.done)),
                          BytesText(static_cast<double>(progress.total))));
  };
  HONE_ASSIGN_OR_RETURN(v1::FileName sent, files::FileTransfer([&] { return channel_; }, options).Upload(path));
  sent.set_name(name);
  return sent_[path] = std::move(sent);
}

}  // namespace hone::cli
