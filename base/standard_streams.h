// SPDX-License-Identifier: Apache-2.0
// Writes to standard output with errors reported, and replaces standard streams that are closed when a program starts.
#ifndef HONE_BASE_STANDARD_STREAMS_H_
#define HONE_BASE_STANDARD_STREAMS_H_

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace hone {

// Writes the text to standard output and flushes it. False if not all of it was written, for example because the reader
// has closed the pipe; errno has the reason.
inline bool WriteStdout(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

// Opens /dev/null for each standard stream that is closed. Otherwise the next opened file would get the stream's
// descriptor: messages for standard error would then be written into a database. Call it at the start of main, before
// any file is opened.
inline void OpenClosedStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Standard input is opened for writing only, and the others for reading only, so using the stream still fails. All
    // lower descriptors are open at this point, so open() returns `stream`.
    static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace hone

#endif  // HONE_BASE_STANDARD_STREAMS_H_
