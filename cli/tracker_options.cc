#include "cli/tracker_options.h"

namespace hone::cli {

void TrackerOptions::AddTo(CLI::App* command, bool required) {
  CLI::Option* option = command->add_option("--tracker", address, "tracker of the farm, HOST:PORT");
  // Only where nothing else is meant: a variable must not turn a local `hone tune` into one of the farm.
  if (required) option->envname("HONE_TRACKER")->required();
  command->add_option("--tls-ca", tls.authority, "certificate authority of the farm (PEM)")->envname("HONE_TLS_CA");
  command->add_option("--tls-cert", tls.certificate, "your certificate (PEM)")->envname("HONE_TLS_CERT");
  command->add_option("--tls-key", tls.key, "key of your certificate (PEM)")->envname("HONE_TLS_KEY");
}

}  // namespace hone::cli
