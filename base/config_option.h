// SPDX-License-Identifier: Apache-2.0
// The option --config FILE of a program: every option of the program may be a key of the file. An option on the command
// line overrides the same key of the file.
//
// Header only, so that the library base does not link CLI11. config_file.h describes the format of the file.
#ifndef HONE_BASE_CONFIG_OPTION_H_
#define HONE_BASE_CONFIG_OPTION_H_

#include <CLI/CLI.hpp>
#include <istream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/config_file.h"

namespace hone {

// Reads files for `app`, which must outlive it.
class ConfigReader final : public CLI::Config {
 public:
  explicit ConfigReader(const CLI::App* app) : app_(app) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }
  // Throws CLI::ConfigError, because CLI11 reports errors of a configuration file by exceptions.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string text{std::istreambuf_iterator<char>(input), {}};
    const auto entries = ParseConfig(app_->get_config_ptr()->as<std::string>(), text, Keys());
    if (!entries.ok()) throw CLI::ConfigError(std::string(entries.status().message()), CLI::ExitCodes::ConfigError);
    std::vector<CLI::ConfigItem> items;
    for (const ConfigEntry& entry : *entries) items.push_back({.name = entry.key, .inputs = entry.values});
    return items;
  }

 private:
  // The option names that a file may use. Hidden options (without a help group) are excluded.
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const CLI::Option* option : app_->get_options()) {
      if (!option->get_configurable() || option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) keys.push_back(name);
    }
    return keys;
  }

  const CLI::App* const app_;
};

// usual: the file that is read if --config is not given; "" = no file. If it does not exist, nothing is read. A file
// given with --config must exist.
inline void AddConfigOption(CLI::App& app, const std::string& usual, const std::string& help) {
  app.set_config("--config", usual, help)->check(CLI::ExistingFile);
  app.config_formatter(std::make_shared<ConfigReader>(&app));
}

}  // namespace hone

#endif  // HONE_BASE_CONFIG_OPTION_H_
