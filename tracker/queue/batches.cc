// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/kernel_interface.h"
#include "base/status.h"
#include "tracker/queue/devices.h"
#include "tracker/queue/matches.h"
#include "tracker/queue/memory.h"
#include "tracker/queue/run_task.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

// Rejects a kernel that no device could run. Each device itself checks the interface against the buffers.
absl::Status ValidateKernel(const v1::Batch& batch, const v1::Kernel& kernel, const std::string& whose) {
  std::string error;
  if (!ParseKernelInterface(kernel.interface(), &error).has_value()) {
    return absl::InvalidArgumentError(fmt::format("kernel of {}: its interface: {}", whose, error));
  }
  const auto bytes = static_cast<int64_t>(batch.artifact().size());
  if (kernel.code_offset() < 0 || kernel.code_bytes() < 0 || kernel.code_offset() > bytes - kernel.code_bytes()) {
    return absl::InvalidArgumentError(fmt::format("kernel of {}: its code lies outside the artifact", whose));
  }
  return absl::OkStatus();
}

// The time limit of a visit whose time is already over. It is above 0 because 0 means no limit.
constexpr double kVisitSecondsMin = 0.001;
// The longest time that a policy may ask for, for one call or one finalist. Tuners ask for 20 s; a device is held for
// many times the value.
constexpr double kPolicySecondsMax = 3600;

// Whether the visit may end before all candidates were measured.
bool HasTimeLimit(const v1::Batch& batch) { return batch.useful_seconds() > 0 || batch.policy().visit_seconds() > 0; }

std::map<std::string, const v1::Outcome*> ById(const v1::BatchResult& result) {
  std::map<std::string, const v1::Outcome*> by_id;
  for (const v1::CandidateOutcome& outcome : result.outcomes()) {
    by_id.emplace(outcome.candidate_id(), &outcome.outcome());
  }
  return by_id;
}

v1::Outcome LostDevice(const std::string& why) {
  v1::Outcome outcome;
  outcome.mutable_failure()->set_kind(v1::FAILURE_KIND_LOST_DEVICE);
  outcome.mutable_failure()->set_text(why);
  return outcome;
}

// An outcome that was measured with only a part of the batch. Its repeats do not count as interleaved with those of the
// candidates in other parts.
v1::Outcome WithoutInterleaving(v1::Outcome outcome) {
  if (!outcome.has_timing()) return outcome;
  v1::Timing& timing = *outcome.mutable_timing();
  timing.set_first_interleaved(timing.seconds_size());
  return outcome;
}

}  // namespace

absl::Status Validate(const v1::Batch& batch) {
  if (batch.has_run()) {
    HONE_RETURN_IF_ERROR(CheckRequirements(batch.requirements()));
    if (batch.candidates_size() == 1 && batch.candidates(0).id() == kRunCandidate) return CheckRunTask(batch.run());
    return absl::InvalidArgumentError(fmt::format("a batch with a run has one candidate, '{}'", kRunCandidate));
  }
  for (const auto& [value, name] :
       {std::pair(&batch.workload_digest(), "workload_digest"), std::pair(&batch.target(), "target"),
        std::pair(&batch.compiler_version(), "compiler_version"), std::pair(&batch.workload(), "workload"),
        std::pair(&batch.artifact(), "artifact")}) {
    if (value->empty()) return absl::InvalidArgumentError(fmt::format("batch has no {}", name));
  }
  if (batch.threads() < 1) return absl::InvalidArgumentError("batch asks for less than one thread");
  if (batch.candidates().empty()) return absl::InvalidArgumentError("batch has no candidates");
  HONE_RETURN_IF_ERROR(CheckRequirements(batch.requirements()));
  const v1::TimingPolicy& policy = batch.policy();
  for (const double seconds : {policy.timeout_seconds(), policy.reference_timeout_seconds(), policy.final_seconds()}) {
    if (seconds >= 0 && seconds <= kPolicySecondsMax) continue;  // false for NaN
    return absl::InvalidArgumentError(
        fmt::format("the batch's policy asks for {} seconds; give 0 to {}", seconds, kPolicySecondsMax));
  }
  bool output = false;
  for (const v1::Buffer& buffer : batch.buffers()) {
    if (buffer.role() == v1::Buffer::ROLE_UNSPECIFIED || buffer.dtype() == v1::DTYPE_UNSPECIFIED ||
        buffer.elements() < 0 || buffer.bytes() < buffer.elements()) {
      return absl::InvalidArgumentError(fmt::format("buffer '{}' lacks its role, type or size", buffer.name()));
    }
    if (output && buffer.role() != v1::Buffer::ROLE_OUTPUT) {
      return absl::InvalidArgumentError(
          fmt::format("buffer '{}' comes after an output; outputs go last", buffer.name()));
    }
    output |= buffer.role() == v1::Buffer::ROLE_OUTPUT;
  }
  if (!output) return absl::InvalidArgumentError("batch has no output buffer: there is nothing to verify");
  HONE_RETURN_IF_ERROR(ValidateKernel(batch, batch.reference(), "the reference"));
  std::set<std::string> ids;
  for (const v1::Candidate& candidate : batch.candidates()) {
    if (candidate.id().empty() || !ids.insert(candidate.id()).second) {
      return absl::InvalidArgumentError(fmt::format("candidate id '{}' is empty or used twice", candidate.id()));
    }
    HONE_RETURN_IF_ERROR(ValidateKernel(batch, candidate.kernel(), fmt::format("candidate '{}'", candidate.id())));
  }
  return absl::OkStatus();
}

bool BatchQueue::Order::operator<(const Order& other) const {
  return std::tie(other.priority, user, number, piece) < std::tie(priority, other.user, other.number, other.piece);
}

BatchQueue::Order BatchQueue::OrderOf(const std::string& batch_id, const Entry& entry, int64_t piece) const {
  return Order{entry.batch->priority(), entry.user, entry.number, piece, batch_id};
}

// bytes: the memory of the batch that is to be added.
absl::Status BatchQueue::CheckQuotas(const Owner& owner, int64_t bytes) const {
  int open = 0;
  int64_t of_job = bytes, of_tuner = bytes;
  for (const auto& [id, entry] : batches_) {
    if (entry.tuner == owner.tuner) of_tuner += entry.bytes;
    if (entry.job_id != owner.job_id) continue;
    if (!entry.finished) ++open;
    of_job += entry.bytes;
  }
  if (open >= options_.open_per_job_max) {
    return absl::ResourceExhaustedError(fmt::format(
        "job '{}' has {} open batches, the most a job may have; wait for one to finish", owner.job_id, open));
  }
  const bool is_job = of_job > options_.open_bytes_per_job_max;
  if (!is_job && of_tuner <= options_.open_bytes_per_tuner_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "with this batch, the batches of {} '{}' would take {} MiB of the tracker's memory; the limit is {} MiB. "
      "Acknowledge finished batches, and wait for open ones",
      is_job ? "job" : "all jobs of tuner", is_job ? owner.job_id : owner.tuner, (is_job ? of_job : of_tuner) >> 20,
      (is_job ? options_.open_bytes_per_job_max : options_.open_bytes_per_tuner_max) >> 20));
}

void BatchQueue::ForgetOldResult(const std::string& job_id) {
  int finished = 0;
  auto oldest = batches_.end();
  for (auto batch = batches_.begin(); batch != batches_.end(); ++batch) {
    if (batch->second.job_id != job_id || !batch->second.finished) continue;
    ++finished;
    if (oldest == batches_.end() || batch->second.number < oldest->second.number) oldest = batch;
  }
  if (finished >= options_.finished_per_job_max) Acknowledge(job_id, std::string(oldest->first));
}

absl::StatusOr<std::string> BatchQueue::Submit(const Owner& owner, const std::string& client_id, v1::Batch batch,
                                               absl::Time now, std::set<std::string> lost_by) {
  const std::string& job_id = owner.job_id;
  if (client_id.empty()) return absl::InvalidArgumentError("batch has no client_batch_id");
  HONE_RETURN_IF_ERROR(CheckNameLength("client_batch_id", client_id));
  if (auto known = by_client_id_.find({job_id, client_id}); known != by_client_id_.end()) return known->second;
  HONE_RETURN_IF_ERROR(Validate(batch));
  const auto bytes = static_cast<int64_t>(MemoryOf(batch));
  HONE_RETURN_IF_ERROR(CheckQuotas(owner, bytes));
  ForgetOldResult(job_id);
  const int64_t number = ++next_batch_;
  const std::string id = fmt::format("{}-b{}", job_id, draw_id_().substr(0, 16));
  by_client_id_[{job_id, client_id}] = id;
  Entry& entry = batches_[id];
  entry.job_id = job_id;
  entry.user = owner.user;
  entry.tuner = owner.tuner;
  entry.client_id = client_id;
  entry.number = number;
  entry.bytes = bytes;
  entry.submitted = now;
  entry.waited_before = fair_share_.Waited(job_id);
  entry.outcomes.resize(batch.candidates_size());
  std::vector<int> all(batch.candidates_size());
  std::iota(all.begin(), all.end(), 0);
  files_.Add(id, FilesOf(batch.run()));
  entry.batch = std::make_shared<const v1::Batch>(std::move(batch));
  AddPiece(id, entry, std::move(all), std::move(lost_by), now);
  return id;
}

void BatchQueue::AddPiece(const std::string& batch_id, Entry& entry, std::vector<int> candidates,
                          std::set<std::string> lost_by, absl::Time now) {
  const int64_t number = ++next_piece_;
  entry.pieces[number] = Piece{.candidates = std::move(candidates), .avoid = {std::move(lost_by), {}}};
  Enqueue(batch_id, entry, number, now);
}

void BatchQueue::Enqueue(const std::string& batch_id, Entry& entry, int64_t piece, absl::Time now) {
  entry.pieces.at(piece).lease_id.clear();
  entry.pieces.at(piece).absent_since = now;
  fair_share_.PieceQueued(entry.job_id, entry.user);
  newly_queued_.push_back(*order_.insert(OrderOf(batch_id, entry, piece)).first);
}

std::optional<BatchQueue::Queued> BatchQueue::NewlyQueued() {
  while (!newly_queued_.empty() && !order_.contains(newly_queued_.front())) newly_queued_.pop_front();
  if (newly_queued_.empty()) return std::nullopt;
  const Order& order = newly_queued_.front();
  const Entry& entry = batches_.at(order.batch_id);
  return Queued{entry.batch.get(), &entry.pieces.at(order.piece).avoid};
}

void BatchQueue::RemovePieces(const std::string& batch_id, Entry& entry) {
  for (const auto& [number, piece] : entry.pieces) {
    if (order_.erase(OrderOf(batch_id, entry, number)) > 0) fair_share_.PieceWithdrawn(entry.job_id);
    if (!piece.lease_id.empty()) cancelled_.push_back(EndLease(piece.lease_id));
  }
  entry.pieces.clear();
}

void BatchQueue::DropJob(const std::string& job_id) {
  for (auto batch = batches_.begin(); batch != batches_.end();) {
    if (batch->second.job_id != job_id) {
      ++batch;
      continue;
    }
    RemovePieces(batch->first, batch->second);
    if (!batch->second.finished) files_.Remove(batch->first, FilesOf(batch->second.batch->run()));
    by_client_id_.erase({job_id, batch->second.client_id});
    batch = batches_.erase(batch);
  }
  fair_share_.Forget(job_id);
}

BatchQueue::Lease BatchQueue::EndLease(const std::string& lease_id) {
  const auto found = leases_.find(lease_id);
  Lease lease = std::move(found->second);
  leases_.erase(found);
  fair_share_.PieceEnded(JobOf(lease), lease.fingerprint.digest());
  return lease;
}

const BatchQueue::Lease* BatchQueue::Pick(Lease taker, const Fits& fits, absl::Time now) {
  taker.started = now;
  for (auto level = order_.begin(); level != order_.end();) {
    // order_ keeps the pieces of one priority and user together: `users` gets the first piece of each user.
    const int priority = level->priority;
    std::vector<std::pair<double, std::set<Order>::iterator>> users;
    while (level != order_.end() && level->priority == priority) {
      const std::string& user = level->user;
      users.emplace_back(fair_share_.UsedBy(user, taker.fingerprint.digest()), level);
      level = std::find_if(level, order_.end(),
                           [&](const Order& other) { return other.priority != priority || other.user != user; });
    }
    // The older piece goes first among users with equal use, as when no user has any.
    std::sort(users.begin(), users.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first, a.second->number, a.second->piece) <
             std::tie(b.first, b.second->number, b.second->piece);
    });
    for (const auto& [used, first] : users) {
      for (auto order = first; order != order_.end() && order->priority == priority && order->user == first->user;
           ++order) {
        const Entry& entry = batches_.at(order->batch_id);
        if (fits(*entry.batch, entry.pieces.at(order->piece).avoid)) return LeasePiece(order, std::move(taker));
      }
    }
  }
  return nullptr;
}

const BatchQueue::Lease* BatchQueue::LeasePiece(std::set<Order>::iterator order, Lease lease) {
  Entry& entry = batches_.at(order->batch_id);
  Piece& piece = entry.pieces.at(order->piece);
  piece.lease_id = lease.id = draw_id_();
  piece.attempts += 1;
  lease.batch_id = order->batch_id;
  lease.piece = order->piece;
  lease.attempt = piece.attempts;
  lease.visit = ++entry.visits;
  lease.run_limit = RunLimit(entry, piece);
  lease.waited = lease.started - entry.submitted;
  order_.erase(order);
  fair_share_.PieceStarted(entry.job_id, lease.fingerprint.digest());
  return &(leases_[piece.lease_id] = std::move(lease));
}

absl::Duration BatchQueue::RunLimit(const Entry& entry, const Piece& piece) const {
  if (entry.batch->has_run()) return options_.run_limit_min + RunTimeMax(entry.batch->run());
  const v1::TimingPolicy& policy = entry.batch->policy();
  const double per_candidate =
      4 * (policy.timeout_seconds() > 0 ? policy.timeout_seconds() : 1.0) + 4 * policy.final_seconds();
  const double reference = policy.reference_timeout_seconds() > 0 ? policy.reference_timeout_seconds() : 30.0;
  return options_.run_limit_min +
         absl::Seconds(reference + per_candidate * static_cast<double>(piece.candidates.size()));
}

const BatchQueue::Lease* BatchQueue::FindLease(const std::string& lease_id) const {
  auto found = leases_.find(lease_id);
  return found == leases_.end() ? nullptr : &found->second;
}

v1::Batch BatchQueue::BatchOf(const Lease& lease, absl::Time now) const {
  const Entry& entry = batches_.at(lease.batch_id);
  const Piece& piece = entry.pieces.at(lease.piece);
  v1::Batch batch = *entry.batch;
  if (batch.useful_seconds() > 0) {
    const absl::Duration spent = now - entry.submitted - (fair_share_.Waited(entry.job_id) - entry.waited_before);
    const double left = std::max(kVisitSecondsMin, batch.useful_seconds() - absl::ToDoubleSeconds(spent));
    const double limit = batch.policy().visit_seconds();
    batch.mutable_policy()->set_visit_seconds(limit > 0 ? std::min(limit, left) : left);
  }
  if (static_cast<int>(piece.candidates.size()) == batch.candidates_size()) return batch;
  batch.clear_candidates();
  for (const int index : piece.candidates) *batch.add_candidates() = entry.batch->candidates(index);
  return batch;
}

std::set<std::string> BatchQueue::CandidatesOf(const Lease& lease) const {
  const Entry& entry = batches_.at(lease.batch_id);
  std::set<std::string> ids;
  for (const int index : entry.pieces.at(lease.piece).candidates) ids.insert(entry.batch->candidates(index).id());
  return ids;
}

Recordable BatchQueue::ToRecord(const Lease& lease, const v1::BatchResult& result) const {
  const Entry& entry = batches_.at(lease.batch_id);
  return Recordable{lease.batch_id, entry.job_id, entry.batch, result, VisitId(lease.batch_id, lease.visit)};
}

std::string BatchQueue::IncompleteReason(const Lease& lease, const v1::BatchResult& result) const {
  const Entry& entry = batches_.at(lease.batch_id);
  const std::vector<int>& candidates = entry.pieces.at(lease.piece).candidates;
  if (result.outcomes_size() > static_cast<int>(candidates.size())) {
    return fmt::format("answered with {} outcomes of {} candidates", result.outcomes_size(), candidates.size());
  }
  if (entry.batch->has_run() && result.has_run()) return ReportProblem(entry.batch->run(), result.run());
  const std::map<std::string, const v1::Outcome*> by_id = ById(result);
  for (const int index : candidates) {
    const std::string& id = entry.batch->candidates(index).id();
    const auto found = by_id.find(id);
    if (found == by_id.end() && HasTimeLimit(*entry.batch)) continue;
    if (found == by_id.end() || found->second->result_case() == v1::Outcome::RESULT_NOT_SET) {
      return fmt::format("answered without an outcome for candidate '{}'", id);
    }
  }
  return "";
}

std::map<std::string, std::string> BatchQueue::Finish(const Lease& lease_reference, const v1::BatchResult& result) {
  const Lease lease = EndLease(std::string(lease_reference.id));  // lease_reference dangles from here on
  Entry& entry = batches_.at(lease.batch_id);
  const Piece piece = entry.pieces.at(lease.piece);
  entry.pieces.erase(lease.piece);
  *entry.result.mutable_device() = result.device();
  entry.result.set_device_name(result.device_name());
  entry.result.set_agent_version(result.agent_version());
  entry.result.set_visit_seconds(entry.result.visit_seconds() + result.visit_seconds());
  if (result.has_run()) *entry.result.mutable_run() = result.run();
  const bool whole = static_cast<int>(piece.candidates.size()) == entry.batch->candidates_size();
  const std::map<std::string, const v1::Outcome*> by_id = ById(result);
  for (const int index : piece.candidates) {
    const auto found = by_id.find(entry.batch->candidates(index).id());
    if (found != by_id.end()) entry.outcomes[index] = whole ? *found->second : WithoutInterleaving(*found->second);
  }
  FinishIfDone(lease.batch_id, entry);
  return piece.avoid.devices;
}

void BatchQueue::RejectLease(const Lease& lease_reference, const std::string& why, bool another, absl::Time now) {
  const Lease lease = EndLease(std::string(lease_reference.id));  // lease_reference dangles from here on
  Entry& entry = batches_.at(lease.batch_id);
  Piece& piece = entry.pieces.at(lease.piece);
  piece.lease_id.clear();
  piece.failures += 1;
  piece.avoid.devices[NameOf(lease.agent_id, lease.device_id)] = why;
  const auto tried = static_cast<int>(piece.avoid.devices.size());
  const bool last = tried >= options_.devices_to_blame || (!another && piece.failures >= options_.failures_to_blame);
  if (!last) return Enqueue(lease.batch_id, entry, lease.piece, now);
  std::string reasons;
  for (const auto& [name, reason] : piece.avoid.devices) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, reason);
  }
  FailBatch(lease.batch_id, entry,
            fmt::format("tried {} times on {} device{} with a correct golden kernel: {}", piece.failures, tried,
                        tried == 1 ? "" : "s", reasons));
}

const Avoid& BatchQueue::AvoidedBy(const Lease& lease) const {
  return batches_.at(lease.batch_id).pieces.at(lease.piece).avoid;
}

void BatchQueue::NoteAnswered(const std::string& lease_id) {
  if (const auto found = leases_.find(lease_id); found != leases_.end()) found->second.answered = true;
}

void BatchQueue::Return(const std::string& lease_id, absl::Time now) {
  if (!leases_.contains(lease_id)) return;
  const Lease lease = EndLease(lease_id);
  Entry& entry = batches_.at(lease.batch_id);
  entry.pieces.at(lease.piece).attempts -= 1;
  Enqueue(lease.batch_id, entry, lease.piece, now);
}

void BatchQueue::FinishIfDone(const std::string& batch_id, Entry& entry) {
  if (!entry.pieces.empty() || entry.finished) return;
  for (int i = 0; i < entry.batch->candidates_size(); ++i) {
    if (entry.outcomes[i].result_case() == v1::Outcome::RESULT_NOT_SET) continue;
    v1::CandidateOutcome* outcome = entry.result.add_outcomes();
    outcome->set_candidate_id(entry.batch->candidates(i).id());
    *outcome->mutable_outcome() = std::move(entry.outcomes[i]);
  }
  Close(batch_id, entry);
}

void BatchQueue::Close(const std::string& batch_id, Entry& entry) {
  files_.Remove(batch_id, FilesOf(entry.batch->run()));
  entry.finished = true;
  entry.outcomes.clear();
  entry.batch = nullptr;  // frees the artifact, which is most of the memory; only the result is needed
  entry.bytes = static_cast<int64_t>(MemoryOf(entry.result));
}

void BatchQueue::FailBatch(const std::string& batch_id, Entry& entry, const std::string& error) {
  RemovePieces(batch_id, entry);
  entry.result.set_error(error);
  Close(batch_id, entry);
}

void BatchQueue::Lose(const std::string& lease_id, const std::string& why, absl::Time now) {
  if (!leases_.contains(lease_id)) return;
  const Lease lease = EndLease(lease_id);
  Entry& entry = batches_.at(lease.batch_id);
  Piece& piece = entry.pieces.at(lease.piece);
  piece.lease_id.clear();
  piece.avoid.agents.insert(lease.agent_id);
  entry.losses += 1;
  entry.lost_on.push_back(NameOf(lease.agent_id, lease.device_id));
  const bool whole = static_cast<int>(piece.candidates.size()) == entry.batch->candidates_size();
  // A half that is lost is split at once, because it probably holds the candidate that kills devices, and every loss
  // costs a device's time. A single candidate gets two attempts, because one loss may have another cause.
  const int allowed = whole ? options_.whole_batch_leases_max : piece.candidates.size() > 1 ? 1 : 2;
  if (entry.losses >= options_.losses_max) return GiveUp(lease, entry, why);
  if (piece.attempts < allowed) return Enqueue(lease.batch_id, entry, lease.piece, now);
  if (piece.candidates.size() == 1) return GiveUp(lease, entry, why);
  Split(lease.batch_id, entry, lease.piece, now);
}

// A confirmation compares its finalists in one visit. After a split it is an ordinary batch, because its halves may be
// measured on different devices at different times.
void BatchQueue::Split(const std::string& batch_id, Entry& entry, int64_t number, absl::Time now) {
  if (entry.batch->final()) {
    auto race = std::make_shared<v1::Batch>(*entry.batch);
    race->set_final(false);
    entry.batch = std::move(race);
  }
  const Piece piece = entry.pieces.at(number);
  const auto middle = piece.candidates.begin() + static_cast<int64_t>(piece.candidates.size() / 2);
  entry.pieces.erase(number);
  AddPiece(batch_id, entry, {piece.candidates.begin(), middle}, piece.avoid.agents, now);
  AddPiece(batch_id, entry, {middle, piece.candidates.end()}, piece.avoid.agents, now);
}

void BatchQueue::GiveUp(const Lease& lost, Entry& entry, const std::string& why) {
  const Piece piece = entry.pieces.at(lost.piece);
  Recordable record = ToRecord(lost, {});
  *record.result.mutable_device() = lost.fingerprint;
  record.result.set_device_name(NameOf(lost.agent_id, lost.device_id));
  for (const int index : piece.candidates) {
    entry.outcomes[index] = LostDevice(fmt::format(
        "given up because {} devices were lost while they measured its batch; the last loss: {}", entry.losses, why));
    v1::CandidateOutcome* outcome = record.result.add_outcomes();
    outcome->set_candidate_id(entry.batch->candidates(index).id());
    *outcome->mutable_outcome() = entry.outcomes[index];
  }
  entry.pieces.erase(lost.piece);
  if (!entry.batch->has_run()) given_up_.push_back(std::move(record));
  forgiven_devices_.insert(forgiven_devices_.end(), entry.lost_on.begin(), entry.lost_on.end());
  entry.lost_on.clear();
  given_up_count_ += 1;
  FinishIfDone(lost.batch_id, entry);
}

// Moves the clocks of batches that wait only because their devices are busy with others. Runs once per
// device_check_period, because it compares many pieces with many devices.
void BatchQueue::ExcludeQueueTime(absl::Time now, const Served& served) {
  const absl::Duration gone = devices_checked_ == absl::InfinitePast() ? absl::ZeroDuration() : now - devices_checked_;
  if (devices_checked_ != absl::InfinitePast() && gone < options_.device_check_period) return;
  devices_checked_ = now;
  for (auto& [id, entry] : batches_) {
    bool only_queued = !entry.pieces.empty();
    for (auto& [number, piece] : entry.pieces) {
      const bool waits = piece.lease_id.empty() && served(*entry.batch);
      if (waits) piece.absent_since = now;
      only_queued &= waits;
    }
    if (only_queued) entry.queue_time += std::min(gone, now - entry.submitted - entry.queue_time);
  }
}

std::vector<std::string> BatchQueue::Expire(absl::Time now, const Served& served) {
  ExcludeQueueTime(now, served);
  for (auto& [id, entry] : batches_) {
    if (entry.finished) continue;
    const auto answered = [&](const auto& piece) {
      const Lease* lease = FindLease(piece.second.lease_id);
      return lease != nullptr && lease->answered;
    };
    if (std::any_of(entry.pieces.begin(), entry.pieces.end(), answered)) continue;
    const absl::Duration longer = entry.batch->has_run() ? RunTimeMax(entry.batch->run()) : absl::ZeroDuration();
    if (now - entry.submitted - entry.queue_time > options_.total_limit + longer) {
      FailBatch(id, entry,
                fmt::format("not measured within {} of its submission", absl::FormatDuration(options_.total_limit)));
      continue;
    }
    for (const auto& [number, piece] : entry.pieces) {
      if (!piece.lease_id.empty() || now - piece.absent_since <= options_.absence_limit) continue;
      FailBatch(id, entry,
                fmt::format("no suitable device was online for {}", absl::FormatDuration(options_.absence_limit)));
      break;
    }
  }
  std::vector<std::string> overdue;
  for (const auto& [id, lease] : leases_) {
    if (!lease.answered && now - lease.started > lease.run_limit) overdue.push_back(id);
  }
  return overdue;
}

void BatchQueue::ExcludeStall(absl::Duration stall) {
  for (auto& [id, lease] : leases_) lease.started += stall;
  for (auto& [id, entry] : batches_) {
    entry.submitted += stall;
    for (auto& [number, piece] : entry.pieces) piece.absent_since += stall;
  }
  devices_checked_ += stall;
  fair_share_.ExcludeStall(stall);
}

absl::StatusOr<std::optional<v1::BatchResult>> BatchQueue::Result(const std::string& job_id,
                                                                  const std::string& batch_id) const {
  auto found = batches_.find(batch_id);
  if (found == batches_.end() || found->second.job_id != job_id) {
    return absl::NotFoundError(
        fmt::format("batch '{}' is unknown, or its result was already deleted; submit it again", batch_id));
  }
  if (!found->second.finished) return std::optional<v1::BatchResult>();
  return std::optional(found->second.result);
}

std::optional<v1::BatchResult> BatchQueue::ResultOf(const std::string& job_id, const std::string& client_id) const {
  const auto known = by_client_id_.find({job_id, client_id});
  if (known == by_client_id_.end() || !batches_.at(known->second).finished) return std::nullopt;
  return batches_.at(known->second).result;
}

void BatchQueue::Acknowledge(const std::string& job_id, const std::string& batch_id) {
  auto found = batches_.find(batch_id);
  if (found == batches_.end() || found->second.job_id != job_id || !found->second.finished) return;
  by_client_id_.erase({job_id, found->second.client_id});
  batches_.erase(found);
}

std::vector<Recordable> BatchQueue::TakeGivenUp() { return std::exchange(given_up_, {}); }

std::vector<std::string> BatchQueue::TakeForgivenDevices() { return std::exchange(forgiven_devices_, {}); }

std::vector<BatchQueue::Lease> BatchQueue::TakeCancelled() { return std::exchange(cancelled_, {}); }

std::vector<BatchQueue::Queued> BatchQueue::Waiting(const std::string& job_id) const {
  std::vector<Queued> waiting;
  for (const Order& order : order_) {
    const Entry& entry = batches_.at(order.batch_id);
    if (entry.job_id == job_id) waiting.push_back({entry.batch.get(), &entry.pieces.at(order.piece).avoid});
  }
  return waiting;
}

}  // namespace hone::tracker
