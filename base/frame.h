// SPDX-License-Identifier: Apache-2.0
// Byte messages over a stream socket between two processes of one machine. A message is its length (8 bytes, in the
// machine's byte order), then its bytes.
#ifndef HONE_BASE_FRAME_H_
#define HONE_BASE_FRAME_H_

#include <string>
#include <string_view>

namespace hone {

// Blocks until all bytes are sent. False if the other end has closed the socket. Never raises SIGPIPE.
bool SendFrame(int socket, std::string_view bytes);
// Blocks until a whole message has arrived. False if the other end has closed the socket, or announces more than
// 256 MiB.
bool ReceiveFrame(int socket, std::string* bytes);

}  // namespace hone

#endif  // HONE_BASE_FRAME_H_
