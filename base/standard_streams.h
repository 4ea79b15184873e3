// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error: of a process that was started without some of them, and of one that nobody reads.
#ifndef HONE_BASE_STANDARD_STREAMS_H_
#define HONE_BASE_STANDARD_STREAMS_H_

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace hone {

// Whether standard output took all of the text; errno says why it did not. Nothing stays in a buffer.
inline bool WriteOut(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

// Fills the places of those that are closed. A file that is opened takes the first free place: a database in that of
// standard error would get the messages written into it. For the beginning of main, before anything is opened.
inline void FillStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The wrong way round: who reads or writes still learns that it cannot be done. Those before are open, so this is
    // the first free place.
    static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace hone

#endif  // HONE_BASE_STANDARD_STREAMS_H_
