// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/child_supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "device_agent/launcher/child_blame.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

constexpr int kStepsMax = 1000;       // of one candidate in one child; all rounds together need fewer than 100
constexpr double kSetUpSeconds = 31;  // of one step before there is a candidate, a reference's timeout not counted
// The time for all loads of one candidate in one child, in multiples of Device::load_seconds. If memory is short, it is
// loaded in every round, mostly much faster than that.
constexpr double kLoadsMax = 3;

}  // namespace

ChildSupervisor::ChildSupervisor(Progress& progress, const VisitBatch& batch, const Device& device,
                                 const Options& options)
    : progress_(progress),
      batch_(batch),
      load_seconds_(device.load_seconds()),
      options_(options),
      begun_(SecondsNow()),
      spent_(batch.candidates.size() + 1) {}

ChildEnd ChildSupervisor::Supervise(ChildProcess& child) {
  candidate_begun_ = child.begun();
  VisitMessage message;
  for (;;) {
    switch (child.Next(message, std::max(0.0, SecondsLeft()), options_.cancel_fd)) {
      case ChildProcess::Event::kCancelled:
        return {ChildEnd::kCancelled, ""};
      case ChildProcess::Event::kForbidden:
        return BlameForbiddenCall(child);
      case ChildProcess::Event::kEnded:
        return JudgeEnd(child);
      case ChildProcess::Event::kMessage:
        if (const std::optional<ChildEnd> end = HandleMessage(message, child)) return *end;
        if (SecondsLeft() > 0) break;
        [[fallthrough]];  // a child that sends without pause gets no more time than a silent one
      case ChildProcess::Event::kSilent:
        child.Kill();
        if (SecondsNow() >= options_.kill_at) return {ChildEnd::kOutOfTime, ""};
        return BlameCandidate(TimeoutFailure());
    }
  }
}

ChildEnd ChildSupervisor::BlameForbiddenCall(ChildProcess& child) {
  child.Kill();
  return BlameCandidate(ForbiddenCallFailure(child.forbidden()));
}

// A child that reported a failure has been judged. Otherwise its exit status tells what happened.
ChildEnd ChildSupervisor::JudgeEnd(ChildProcess& child) {
  if (failed_one_) return {ChildEnd::kReplace, ""};
  return BlameCandidate(FailureForEnd(child));
}

VisitFailure ChildSupervisor::TimeoutFailure() const {
  if (current_ < 0)
    return {FailureKind::kRunTimeout, fmt::format("the measuring process sent nothing for {:.3g} s", limit_)};
  if (loading_) return {FailureKind::kCompileTimeout, fmt::format("the kernel was not built within {:.3g} s", limit_)};
  return {FailureKind::kRunTimeout, fmt::format("a call took longer than {:.3g} s", batch_.policy.timeout_seconds)};
}

ChildEnd ChildSupervisor::BlameCandidate(const VisitFailure& blame) {
  if (!progress_.IsKnown(current_)) return {ChildEnd::kBatchFailed, blame.text};
  if (!progress_.HasFailed(current_)) progress_.Fail(current_, blame);
  return {ChildEnd::kReplace, ""};
}

std::optional<ChildEnd> ChildSupervisor::HandleMessage(const VisitMessage& message, ChildProcess& child) {
  using Type = VisitMessage::Type;
  switch (message.type) {
    case Type::kConfined:
    case Type::kStarted:
    case Type::kReady:
      if (message.type <= set_up_) break;  // each once
      set_up_ = message.type;
      if (message.type == Type::kReady) child.EndSetup();
      return std::nullopt;
    case Type::kBegin:
      if (!BeginStep(message)) break;
      return std::nullopt;
    case Type::kFailed:
      if (message.candidate < 0) return ChildEnd{ChildEnd::kBatchFailed, Clean(message.text, sizeof(message.text))};
      if (message.candidate != current_ || failed_one_ || !FailureKindFromNumber(message.failure_kind).has_value())
        break;
      progress_.Fail(current_,
                     {static_cast<FailureKind>(message.failure_kind), Clean(message.text, sizeof(message.text))});
      failed_one_ = true;
      return std::nullopt;
    case Type::kFault:
      child.Kill();
      return BlameCandidate(FailureForFault(message));
    case Type::kResultsStored:
      if (set_up_ < Type::kReady || message.candidate != current_ || failed_one_) break;
      if (options_.result_memory == nullptr) break;
      return JudgeResults(message, child);
    case Type::kTimes:
      return JudgeTimes(message, child);
    case Type::kReference:
      if (!progress_.AddReference(message)) break;
      return std::nullopt;
    case Type::kDone:
      if (const auto end = JudgeDone()) return end;
      break;
  }
  child.Kill();
  return BlameCandidate({FailureKind::kCrashed, "broke the measuring process: it sent an invalid message"});
}

// Starts a step. False: the message is invalid, or the candidate has taken too many steps.
bool ChildSupervisor::BeginStep(const VisitMessage& message) {
  // After its first candidate a child must work on candidates only, and not on failed ones. A child that ends during a
  // failed candidate would be replaced for ever.
  if (!progress_.IsKnown(message.candidate) && (message.candidate != -1 || current_ >= 0)) return false;
  if (message.candidate >= 0 && set_up_ < VisitMessage::Type::kReady)
    return false;  // otherwise the setup phase would never end
  if (progress_.HasFailed(message.candidate)) return false;
  const double now = SecondsNow(), seconds = now - begun_;
  Spent& last = spent_[static_cast<size_t>(current_ + 1)];
  (loading_ ? last.loading : last.calling) += seconds;
  if (loading_ && message.candidate == current_ && current_ >= 0 && options_.result_memory != nullptr) {
    progress_.AddLoadSeconds(seconds);
  }
  begun_ = now;
  current_ = message.candidate;
  failed_one_ = false;
  loading_ = message.loading != 0;
  limit_ = ClampLimit(message.limit_seconds);
  return ++spent_[static_cast<size_t>(current_ + 1)].steps <= kStepsMax;
}

// Limits the time that a message asks for, because a broken child could ask for any time.
double ChildSupervisor::ClampLimit(double seconds) const {
  const VisitPolicy& policy = batch_.policy;
  const double most = loading_       ? load_seconds_
                      : current_ < 0 ? kSetUpSeconds + policy.reference_timeout_seconds
                                     : 2 + 16 * policy.timeout_seconds + 8 * policy.min_seconds_first;
  return seconds > 0 && seconds < most ? seconds : most;
}

// The time for all calls of a candidate in one child: a generous limit for the repeats of both rounds.
double ChildSupervisor::AllowedCallSeconds() const {
  const VisitPolicy& policy = batch_.policy;
  return 3 + 40 * policy.timeout_seconds + 16 * (policy.min_seconds_first + policy.final_seconds) +
         static_cast<double>(ComputeDataLayout(batch_).output_bytes) * 1e-8;
}

// The time for all steps of the present kind, for the same candidate (or none) in one child.
double ChildSupervisor::AllowedSeconds() const {
  if (loading_) return kLoadsMax * load_seconds_;
  // Three steps: start the device, open a session, call the reference.
  if (current_ < 0) return 3 * (kSetUpSeconds + batch_.policy.reference_timeout_seconds);
  return AllowedCallSeconds();
}

double ChildSupervisor::SecondsLeft() const {
  const double now = SecondsNow();
  const double before = loading_ ? spent().loading : spent().calling;
  return std::min({limit_, options_.kill_at - now, AllowedSeconds() - before - (now - begun_)});
}

std::optional<VisitFailure> ChildSupervisor::CheckGuards(const VisitMessage& message) {
  const bool reference = message.candidate < 0;
  const VisitKernel& kernel =
      reference ? batch_.reference : batch_.candidates[static_cast<size_t>(message.candidate)].kernel;
  return options_.result_memory->CheckGuards(kernel.interface);
}

std::optional<ChildEnd> ChildSupervisor::JudgeResults(const VisitMessage& message, ChildProcess& child) {
  const bool reference = options_.expected == nullptr;
  if (message.candidate != shown_candidate_) {
    shown_candidate_ = message.candidate;
    points_shown_ = 0;
    max_error_ = 0;
  }
  if (reference != (message.candidate < 0) || points_shown_ == batch_.points.size()) {
    child.Kill();
    return BlameCandidate(
        {FailureKind::kCrashed, "broke the measuring process: it sent results that were not requested"});
  }
  if (std::optional<VisitFailure> beside = CheckGuards(message)) {
    child.Answer(VisitAnswer::kMustExit);
    failed_one_ = true;
    beside->text = Clean(beside->text);
    return BlameCandidate(*beside);
  }
  const size_t offset = points_shown_++ * static_cast<size_t>(ComputeDataLayout(batch_).output_bytes);
  if (reference) {
    options_.result_memory->MoveOutputs(options_.computed + offset);
    child.Answer(VisitAnswer::kGood);
    return std::nullopt;
  }
  const std::optional<VisitFailure> differs =
      options_.result_memory->CompareOutputs(options_.expected + offset, max_error_);
  if (!differs.has_value()) {
    if (points_shown_ == batch_.points.size()) progress_.MarkVerified(current_, max_error_);
    child.Answer(VisitAnswer::kGood);
    return std::nullopt;
  }
  if (options_.expected_from_other_batch) {
    child.Kill();
    return ChildEnd{ChildEnd::kRecheckReference, ""};
  }
  progress_.Fail(current_, *differs);
  failed_one_ = true;
  candidate_begun_ = SecondsNow();
  child.Answer(VisitAnswer::kFailed);
  return std::nullopt;
}

std::optional<ChildEnd> ChildSupervisor::JudgeTimes(const VisitMessage& message, ChildProcess& child) {
  const bool first = progress_.IsUntimed(message.candidate);
  if (first && (message.candidate != current_ || options_.result_memory == nullptr)) {
    child.Kill();
    return BlameCandidate({FailureKind::kCrashed, "broke the measuring process: it sent times for another candidate"});
  }
  // The first times were taken since candidate_begun_. Times of later rounds are reported after the whole round.
  if (!progress_.AddTimes(message, SecondsNow() - (first ? candidate_begun_ : child.begun()))) {
    child.Kill();
    return BlameCandidate({FailureKind::kImpossibleTime, "reported impossible times"});
  }
  const double fastest = *std::min_element(message.seconds, message.seconds + message.count);
  if (fastest < batch_.call_seconds_min) {
    child.Kill();
    progress_.Fail(
        message.candidate,
        {FailureKind::kImpossibleTime,
         fmt::format("reported {:.3g} s for one call; at its measured peak the device needs more than {:.3g} s",
                     fastest, batch_.call_seconds_min)});
    return ChildEnd{ChildEnd::kReplace, ""};
  }
  if (first) {
    if (std::optional<VisitFailure> beside = CheckGuards(message)) {
      child.Answer(VisitAnswer::kMustExit);
      failed_one_ = true;
      beside->text = Clean(beside->text);
      return BlameCandidate(*beside);
    }
  }
  if (!first) return std::nullopt;
  candidate_begun_ = SecondsNow();
  child.Answer(VisitAnswer::kGood);
  return std::nullopt;
}

// A child may leave candidates out only if the time of the visit is over, or would be after one more.
std::optional<ChildEnd> ChildSupervisor::JudgeDone() const {
  const bool complete =
      options_.result_memory == nullptr ||
      (options_.expected == nullptr ? points_shown_ == batch_.points.size() : progress_.PendingCandidates().empty());
  const double next = SecondsNow() + load_seconds_ + AllowedCallSeconds();
  if (complete || (options_.expected != nullptr && next >= options_.deadline)) return ChildEnd{ChildEnd::kDone, ""};
  return std::nullopt;
}

}  // namespace hone::agent
