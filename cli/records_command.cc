// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "cli/option_checks.h"
#include "cli/records_lock.h"
#include "cli/records_options.h"
#include "cli/records_show.h"
#include "cli/records_verbs.h"

namespace hone::cli {
namespace {

void AddFilter(CLI::App* command, RecordsOptions& options) {
  command->add_option("--workload", options.filter.workload_digest, "workload digest, or its first characters")
      ->check(NotEmpty);
  command->add_option("--operator", options.filter.operator_label, "part of the operator's label")->check(NotEmpty);
  command
      ->add_option("--device", options.filter.device_fingerprint,
                   "device fingerprint, as stored; with --tracker also AGENT, AGENT/DEVICE, LABEL or NAME=VALUE")
      ->check(NotEmpty);
  command->add_option("--compiler", options.filter.compiler_version, "compiler version, as stored")->check(NotEmpty);
}

void AddModel(CLI::App* command, RecordsOptions& options) {
  options.model.AddOptionalTo(command, ModelOptions::Count::kOne);
  command->add_flag("--require", options.require, "end with exit code 3 if a workload of the model has no record");
}

class VerbAdder {
 public:
  VerbAdder(CLI::App* command, std::shared_ptr<RecordsOptions> options, absl::Status* result)
      : command_(command), options_(std::move(options)), result_(result) {}

  CLI::App* Add(const char* name, const char* description, absl::Status (*run)(const RecordsOptions&)) const {
    CLI::App* sub = command_->add_subcommand(name, description);
    sub->fallthrough();  // --records, --tracker and --json may come before or after its name
    sub->callback([options = options_, result = result_, run] { *result = run(*options); });
    return sub;
  }

  void AddShowing() const {
    RecordsOptions& options = *options_;
    CLI::App* best =
        Add("best", "show the fastest verified schedule of each workload, target, device and compiler", RunBest);
    AddFilter(best, options);
    AddModel(best, options);
    best->add_option("--limit", options.filter.limit, "show at most so many winners")->check(IntegerInRange(INT64_MAX));
    best->add_flag("--csv", options.csv, "print comma-separated values");

    CLI::App* query = Add("query", "list records in the order they were made, with failures", RunQuery);
    AddFilter(query, options);
    AddModel(query, options);
    query->add_option("--failed", options.failure, "only failures of this kind, or any")->check(NotEmpty);
    query->add_flag("--confirmed", options.filter.confirmed_only, "only timings of a final comparison");
    query->add_option("--after", options.filter.after_row, "only rows after this one")
        ->check(IntegerInRange(INT64_MAX));
    query->add_option("--limit", options.filter.limit, "show at most so many records")
        ->check(IntegerInRange(INT64_MAX));
    query->add_flag("--csv", options.csv, "print comma-separated values");

    CLI::App* why =
        Add("why", "show the winner of a workload, the other candidates, and why the winner was chosen", RunWhy);
    AddFilter(why, options);
    AddModel(why, options);
    why->add_option("--limit", options.filter.limit,
                    "show at most so many other candidates for each winner (default 5)")
        ->check(IntegerInRange(INT64_MAX));

    CLI::App* stats = Add("stats", "count records, workloads, devices and failures", RunStats);
    stats->add_flag("--csv", options.csv, "print comma-separated values");
  }

  void AddExchange() const {
    CLI::App* to = Add("export", "write records as lines of JSON", RunExport);
    AddFilter(to, *options_);
    options_->model.AddTargetTo(to, ModelOptions::Count::kOne);
    to->add_option("-o,--output", options_->file, "file to write (default: standard output)")->check(NotEmpty);

    CLI::App* from = Add("import", "add records from lines of JSON; records that exist already are skipped", RunImport);
    from->add_option("file", options_->file, "file to read, or - for standard input")->required();

    Add("verify", "check a records file: its pages, all rows, and whether the winners' schedules apply", RunVerify);
  }

  void AddPrune() const {
    CLI::App* prune = Add("prune", "remove records that decide nothing; without --yes only count them", RunPrune);
    AddFilter(prune, *options_);
    options_->model.AddTargetTo(prune, ModelOptions::Count::kOne);
    prune->add_option("--older-than", options_->older_than, "remove only records older than so many days")
        ->check(IntegerInRange(36500));
    prune
        ->add_option("--keep-best", options_->keep_best,
                     "keep the fastest so many schedules of each workload, target, device and compiler")
        ->check(IntegerInRange(uint64_t{1} << 40));
    prune->add_flag("--yes", options_->yes, "remove the records");
  }

  void AddLock() const {
    CLI::App* lock = Add("lock", "pin the schedules of a model in a text file, for `hone compile --locked`", RunLock);
    options_->model.AddOptionalTo(lock, ModelOptions::Count::kSeveral);
    options_->model.AddPlaceTo(lock);
    lock->get_option("--model")->required();
    lock->add_option("--device", options_->filter.device_fingerprint,
                     "only records of this device, as in hone records best")
        ->check(NotEmpty);
    lock->add_option("--compiler", options_->filter.compiler_version, "compiler version, as stored")->check(NotEmpty);
    lock->add_flag("--require", options_->require,
                   "if a workload has no record, end with exit code 3 and write no file");
    lock->add_option("-o,--output", options_->file, "file to write")->required()->check(NotEmpty)->check(NotDash);
  }

 private:
  CLI::App* const command_;
  const std::shared_ptr<RecordsOptions> options_;
  absl::Status* const result_;
};

}  // namespace

void AddRecordsCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<RecordsOptions>();
  CLI::App* command = app.add_subcommand("records", "show, check, export and import the recorded results");
  command->require_subcommand(1);
  options->source.AddTo(command);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  const VerbAdder verbs(command, options, result);
  verbs.AddShowing();
  verbs.AddExchange();
  verbs.AddLock();
  verbs.AddPrune();
}

}  // namespace hone::cli
