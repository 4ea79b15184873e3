// SPDX-License-Identifier: Apache-2.0
#include "cli/lock_file.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/read_file.h"
#include "base/status.h"
#include "deploy/package/atomic_file.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace hone::cli {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kFormat = 1;  // version of the format, the field "hone_lock"

ordered_json LockedToJson(const LockedWorkload& workload) {
  ordered_json fields = {{"workload", workload.digest}, {"operator", workload.op}, {"calls", workload.calls}};
  if (!workload.target.empty()) fields["target"] = workload.target;
  if (const auto& record = workload.record; record.has_value()) {
    fields["record"] = {{"measurement", record->measurement},
                        {"median_ms", record->median_ms},
                        {"default_ms", record->default_ms.has_value() ? ordered_json(*record->default_ms) : nullptr},
                        {"device", record->device},
                        {"compiler", record->compiler},
                        {"measured_at", record->measured_at},
                        {"match", record->closeness}};
  } else {
    fields["record"] = nullptr;
  }
  fields["schedule"] = ordered_json::array();
  const std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(workload.schedule, "\n"), '\n');
  if (!workload.schedule.empty()) fields["schedule"] = lines;
  return fields;
}

// Reads fields of JSON objects. The first missing or wrong field becomes the error; later ones are ignored.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  template <typename Value>
  Value Take(const json& object, const std::string& where, const char* name, bool (json::*is)() const noexcept) {
    const json* field = Find(object, where, name, is);
    return field == nullptr ? Value() : field->get<Value>();
  }
  // Returns a reference, because copying a deeply nested document could overflow the stack.
  const json& List(const json& object, const std::string& where, const char* name) {
    const json* list = Find(object, where, name, &json::is_array);
    return list == nullptr ? empty_ : *list;
  }
  // For fields that only inform the reader of the file and may be missing.
  template <typename Value>
  Value TakeIfThere(const json& object, const std::string& where, const char* name, bool (json::*is)() const noexcept) {
    if (object.is_object() && (!object.contains(name) || object[name].is_null())) return Value();
    return Take<Value>(object, where, name, is);
  }
  std::string Text(const json& object, const std::string& where, const char* name) {
    return Take<std::string>(object, where, name, &json::is_string);
  }
  std::string TextIfThere(const json& object, const std::string& where, const char* name) {
    return TakeIfThere<std::string>(object, where, name, &json::is_string);
  }
  void Complain(const std::string& what) {
    if (!status_.ok()) return;
    status_ =
        absl::DataLossError(fmt::format("lock file {} is damaged: {}; take it from your version control, or make "
                                        "it anew with `hone records lock`",
                                        path_, what));
  }
  const absl::Status& status() const { return status_; }

 private:
  const json* Find(const json& object, const std::string& where, const char* name, bool (json::*is)() const noexcept) {
    const auto field = object.is_object() ? object.find(name) : object.end();
    if (object.is_object() && field != object.end() && ((*field).*is)()) return &*field;
    Complain(fmt::format("{}{} is missing or of the wrong type", where, name));
    return nullptr;
  }

  std::string path_;
  const json empty_ = json::array();
  absl::Status status_;
};

LockedRecord ReadRecord(const json& fields, const std::string& where, Reader& reader) {
  LockedRecord record;
  record.measurement = reader.TextIfThere(fields, where, "measurement");
  record.median_ms = reader.TakeIfThere<double>(fields, where, "median_ms", &json::is_number);
  if (fields.is_object() && fields.contains("default_ms") && !fields["default_ms"].is_null()) {
    record.default_ms = reader.Take<double>(fields, where, "default_ms", &json::is_number);
  }
  record.device = reader.TextIfThere(fields, where, "device");
  record.compiler = reader.TextIfThere(fields, where, "compiler");
  record.measured_at = reader.TextIfThere(fields, where, "measured_at");
  record.closeness = reader.TextIfThere(fields, where, "match");
  return record;
}

LockedWorkload ReadWorkload(const json& fields, const std::string& where, Reader& reader) {
  LockedWorkload workload;
  workload.digest = reader.Text(fields, where, "workload");
  workload.op = reader.TextIfThere(fields, where, "operator");
  workload.calls = reader.TakeIfThere<int64_t>(fields, where, "calls", &json::is_number_integer);
  workload.target = reader.TextIfThere(fields, where, "target");
  const json& lines = reader.List(fields, where, "schedule");
  for (const json& line : lines) {
    if (line.is_string()) {
      workload.schedule += line.get<std::string>() + "\n";
    } else {
      reader.Complain(where + "schedule has something else than texts");
    }
  }
  if (fields.is_object() && fields.contains("record") && !fields["record"].is_null()) {
    workload.record = ReadRecord(fields["record"], where + "record.", reader);
  }
  return workload;
}

LockedProgram ReadProgram(const json& fields, const std::string& where, Reader& reader) {
  LockedProgram program;
  program.target = reader.Text(fields, where, "target");
  const json& workloads = reader.List(fields, where, "workloads");
  std::set<std::string> seen;
  for (size_t i = 0; i < workloads.size(); ++i) {
    program.workloads.push_back(ReadWorkload(workloads[i], fmt::format("{}workloads[{}].", where, i), reader));
    if (!seen.insert(program.workloads.back().digest).second) {
      reader.Complain(fmt::format("{}workloads[{}] is there twice", where, i));
    }
  }
  return program;
}

// The number of the first line with the mark of a merge conflict, counted from 1; 0 if there is none.
int64_t LineOfConflict(std::string_view text) {
  const std::string lines = "\n" + std::string(text);
  const size_t at = lines.find("\n<<<<<<<");
  return at == std::string::npos ? 0 : std::count(lines.data(), lines.data() + at + 1, '\n');
}

json ParseJson(std::string_view text, Reader& reader) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {  // its text has the line
    const int64_t conflict = LineOfConflict(text);
    reader.Complain(conflict > 0 ? fmt::format("it is not JSON: line {} looks like a merge conflict", conflict)
                                 : fmt::format("it is not JSON: {}", error.what()));
    return json();
  }
}

}  // namespace

std::string ToText(const LockFile& lock) {
  ordered_json document = {{"hone_lock", kFormat}, {"compiler", lock.compiler}, {"model", lock.model}};
  document["programs"] = ordered_json::array();
  for (const LockedProgram& program : lock.programs) {
    ordered_json workloads = ordered_json::array();
    for (const LockedWorkload& workload : program.workloads) workloads.push_back(LockedToJson(workload));
    document["programs"].push_back({{"target", program.target}, {"workloads", std::move(workloads)}});
  }
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<LockFile> ParseLockFile(std::string_view text, const std::string& path) {
  Reader reader(path);
  const json document = ParseJson(text, reader);
  const int64_t format = reader.Take<int64_t>(document, "", "hone_lock", &json::is_number_integer);
  HONE_RETURN_IF_ERROR(reader.status());
  if (format != kFormat) {
    return absl::FailedPreconditionError(
        fmt::format("lock file {} has format {}, and this Hone reads {}; use the Hone that wrote it, or make it anew "
                    "with `hone records lock`",
                    path, format, kFormat));
  }
  LockFile lock;
  lock.compiler = reader.Text(document, "", "compiler");
  lock.model = reader.TextIfThere(document, "", "model");
  const json& programs = reader.List(document, "", "programs");
  std::set<std::string> seen;
  for (size_t i = 0; i < programs.size(); ++i) {
    lock.programs.push_back(ReadProgram(programs[i], fmt::format("programs[{}].", i), reader));
    const std::string& target = lock.programs.back().target;
    if (!seen.insert(target).second) {
      reader.Complain(
          fmt::format("programs[{}] is a second one for target {}, as a merge leaves it that kept both", i, target));
    }
  }
  if (lock.programs.empty()) reader.Complain("programs is empty");
  HONE_RETURN_IF_ERROR(reader.status());
  return lock;
}

absl::StatusOr<LockFile> ReadLockFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(fmt::format("cannot read lock file {}: {}; `hone records lock` makes one", path,
                                           std::string(text.status().message())));
  }
  return ParseLockFile(*text, path);
}

absl::Status WriteLockFile(const LockFile& lock, const std::string& path) {
  return package::WriteTextFile(ToText(lock), path);
}

}  // namespace hone::cli
