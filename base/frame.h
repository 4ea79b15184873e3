// SPDX-License-Identifier: Apache-2.0
// Messages of bytes over a stream socket between two processes of one machine: the length (8 bytes, in this machine's
// order), then the bytes.
#ifndef HONE_BASE_FRAME_H_
#define HONE_BASE_FRAME_H_

#include <string>
#include <string_view>

namespace hone {

// Blocks until all is sent. False when the other end is gone. Never raises SIGPIPE.
bool SendFrame(int socket, std::string_view bytes);
// Blocks until a whole message is there. False when the other end is gone, or says nonsense (more than 256 MiB).
bool ReceiveFrame(int socket, std::string* bytes);

}  // namespace hone

#endif  // HONE_BASE_FRAME_H_
