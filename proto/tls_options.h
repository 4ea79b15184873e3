// The command-line options behind TlsFiles, the same for every program of a farm.
#ifndef HONE_PROTO_TLS_OPTIONS_H_
#define HONE_PROTO_TLS_OPTIONS_H_

#include "proto/transport.h"

namespace CLI {
class App;
}

namespace hone {

// --tls-cert, --tls-key and --tls-ca. `files` must outlive the parsing.
void AddTlsOptions(CLI::App& app, TlsFiles& files);

}  // namespace hone

#endif  // HONE_PROTO_TLS_OPTIONS_H_
