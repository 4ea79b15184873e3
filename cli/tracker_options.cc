#include "cli/tracker_options.h"

#include "transport/tls_options.h"

namespace hone::cli {

void TrackerOptions::AddTo(CLI::App* command, bool required) {
  CLI::Option* option = command->add_option("--tracker", address, "tracker of the farm, HOST:PORT or unix:/PATH");
  // Only where nothing else is meant: a variable must not turn a local `hone tune` into one of the farm.
  if (required) option->envname("HONE_TRACKER")->required();
  AddTlsOptions(*command, tls);
  // Not in AddTlsOptions: the programs of a local farm inherit the environment, and it is not meant for them.
  command->get_option("--tls-cert")->envname("HONE_TLS_CERT");
  command->get_option("--tls-key")->envname("HONE_TLS_KEY");
  command->get_option("--tls-ca")->envname("HONE_TLS_CA");
}

}  // namespace hone::cli
