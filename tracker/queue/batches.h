// SPDX-License-Identifier: Apache-2.0
// Batches waiting for a device, the leases under which pieces of them are measured, and their results.
//
// A batch starts as one piece with all candidates. A piece that was lost with its device is queued again; one that is
// lost again and again is split, so that the candidate that kills devices is found and the others are measured. Losses
// per batch are bounded; what is left then gets LOST_DEVICE. A piece that a device cannot measure is tried on others;
// when one of these can, the first are to blame, and when several cannot, the batch is.
// Pure state: no threads, no input or output; every call takes `now`, which must not go back. Knows devices only by
// name. Start at Submit, Pick and Finish. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_BATCHES_H_
#define HONE_TRACKER_QUEUE_BATCHES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/measure.pb.h"
#include "tracker/queue/draw_id.h"
#include "tracker/queue/limits.h"
#include "tracker/queue/receipt.h"
#include "tracker/queue/turns.h"

namespace hone::tracker {

// Devices that a piece should not go to again while another could take it.
struct Avoid {
  std::set<std::string> agents;                // lost it
  std::map<std::string, std::string> devices;  // could not measure it: NameOf the device, and why
};

class BatchQueue {
 public:
  struct Lease {
    std::string id;
    std::string batch_id;
    int64_t piece = 0;
    std::string agent_id, device_id;
    v1::DeviceFingerprint fingerprint;  // whose digest is the kind of device
    uint64_t epoch = 0;
    int attempt = 0, visit = 0;  // the second: which one for its batch, from 1
    absl::Time started;
    absl::Duration run_limit, waited;  // the second: since its batch was submitted
    bool answered = false;             // its result is there, and waits to be stored
  };

  BatchQueue(BatchOptions options, DrawId draw_id)
      : options_(options), draw_id_(std::move(draw_id)), turns_(options.share_half_life) {}

  struct Owner {
    std::string job_id, user, tuner;  // tuner: the name that it shares with others
  };
  // Idempotent by (job, client id). Errors as in tuner.proto.
  absl::StatusOr<std::string> Submit(const Owner& owner, const std::string& client_id, v1::Batch batch, absl::Time now);
  void DropJob(const std::string& job_id);  // its leases end too; see TakeCancelled

  // Time goes by: to be called before anything changes at `now`.
  void Pass(absl::Time now) { turns_.Pass(now); }
  const Turns& turns() const { return turns_; }

  // Leases the first piece that `fits` accepts: by priority; of equals one of the user who has had least of this kind
  // of device lately; of one user's the oldest. taker: a lease that says which device it is.
  using Fits = std::function<bool(const v1::Batch& batch, const Avoid& avoid)>;
  const Lease* Pick(Lease taker, const Fits& fits, absl::Time now);
  const Lease* FindLease(const std::string& lease_id) const;  // nullptr: not live
  const std::string& JobOf(const Lease& lease) const { return batches_.at(lease.batch_id).job_id; }
  // The batch an agent gets: the candidates of the leased piece, and the time that is left for them.
  v1::Batch BatchOf(const Lease& lease, absl::Time now) const;

  // What is wrong with an answer that is neither an error nor one outcome for each candidate it should have; or "".
  std::string Missing(const Lease& lease, const v1::BatchResult& result) const;
  // Takes the outcomes of a live lease and ends it. Returns the devices that could not measure the piece before, and
  // why: they are to blame.
  std::map<std::string, std::string> Finish(const Lease& lease, const v1::BatchResult& result);
  // The device could not measure the piece: it is queued again for others, or the batch ends with the reasons of all.
  // another: whether there is a device that has not tried it.
  void FailOn(const Lease& lease, const std::string& why, bool another, absl::Time now);
  const Avoid& AvoidedBy(const Lease& lease) const;
  const v1::Batch& Leased(const Lease& lease) const { return *batches_.at(lease.batch_id).batch; }
  std::set<std::string> CandidatesOf(const Lease& lease) const;  // ids of those of the leased piece
  // The result in the form it is recorded in, without taking it.
  Recordable ToRecord(const Lease& lease, const v1::BatchResult& result) const;
  // Its result has come, and cannot be stored now: it is not late, however long that lasts.
  void NoteAnswered(const std::string& lease_id);
  // Ends the lease of a device that gives it back. As if it had never been taken.
  void Return(const std::string& lease_id, absl::Time now);
  // Ends the lease: its device is gone, or it took too long. The piece is queued again, split or given up.
  void Lose(const std::string& lease_id, const std::string& why, absl::Time now);
  // Ends batches whose device is away for too long, or that took too long. Returns leases past their run limit, still
  // live. served: whether a device is there that could take the batch, or no device can be asked: one that only waits
  // for its turn is never too late.
  using Served = std::function<bool(const v1::Batch& batch)>;
  std::vector<std::string> Expire(absl::Time now, const Served& served);
  // The tracker stood still for so long: no clock ran.
  void GiveBack(absl::Duration stall);

  // nullopt while unfinished. kNotFound.
  absl::StatusOr<std::optional<v1::BatchResult>> Result(const std::string& job_id, const std::string& batch_id) const;
  void Acknowledge(const std::string& job_id, const std::string& batch_id);

  std::vector<Recordable> TakeGivenUp();    // candidates that became LOST_DEVICE since the last call
  std::vector<std::string> TakeInnocent();  // the devices that were lost with these, once for each loss
  std::vector<Lease> TakeCancelled();       // leases ended by DropJob or a total limit since the last call

  // The first of the pieces that wait and that nobody has passed by since they were queued; nullopt: there is none.
  // Valid until the next change.
  struct Queued {
    const v1::Batch* batch;
    const Avoid* avoid;
  };
  std::optional<Queued> NewlyQueued();
  void PassBy() { newly_queued_.pop_front(); }  // that one

  int queued() const { return static_cast<int>(order_.size()); }  // pieces
  int running() const { return static_cast<int>(leases_.size()); }
  int64_t given_up() const { return given_up_; }
  const std::map<std::string, Lease>& leases() const { return leases_; }
  // The job's pieces that wait. Valid until the next change.
  std::vector<Queued> Waiting(const std::string& job_id) const;

 private:
  struct Piece {
    std::vector<int> candidates;  // indices into the batch
    int attempts = 0, failures = 0;
    Avoid avoid;
    std::string lease_id;     // "" while queued
    absl::Time absent_since;  // while queued: since when no device is there for it
  };
  struct Entry {
    std::string job_id, user, tuner, client_id;
    int64_t number = 0;
    std::shared_ptr<const v1::Batch> batch;  // null once finished
    absl::Time submitted;
    // Of the time since, when it only waited for its turn; what its job had waited, when it was submitted.
    absl::Duration turns, waited_before;
    int64_t bytes = 0;                  // of memory: the batch's, and of a finished one the result's
    std::map<int64_t, Piece> pieces;    // unfinished
    std::vector<v1::Outcome> outcomes;  // by candidate; unset while unknown
    int visits = 0, losses = 0;
    std::vector<std::string> lost_on;  // names of the devices
    v1::BatchResult result;            // outcomes filled in when finished
    bool finished = false;
  };
  struct Order {
    int priority;
    std::string user;
    int64_t number, piece;
    std::string batch_id;
    bool operator<(const Order& other) const;
  };

  void StopClocks(absl::Time now, const Served& served);
  const Lease* LeasePiece(std::set<Order>::iterator order, Lease lease);
  Lease EndLease(const std::string& lease_id);
  Order OrderOf(const std::string& batch_id, const Entry& entry, int64_t piece) const;
  void Enqueue(const std::string& batch_id, Entry& entry, int64_t piece, absl::Time now);
  absl::Status CheckQuotas(const Owner& owner, int64_t bytes) const;
  void ForgetOldResult(const std::string& job_id);
  void AddPiece(const std::string& batch_id, Entry& entry, std::vector<int> candidates, std::set<std::string> lost_by,
                absl::Time now);
  void Split(const std::string& batch_id, Entry& entry, int64_t piece, absl::Time now);
  void GiveUp(const Lease& lost, Entry& entry, const std::string& why);
  void FailBatch(const std::string& batch_id, Entry& entry, const std::string& error);
  void FinishIfDone(Entry& entry);
  static void Close(Entry& entry);
  void RemovePieces(const std::string& batch_id, Entry& entry);
  absl::Duration RunLimit(const Entry& entry, const Piece& piece) const;

  const BatchOptions options_;
  const DrawId draw_id_;
  int64_t next_batch_ = 0, next_piece_ = 0, given_up_ = 0;
  std::map<std::string, Entry> batches_;
  std::map<std::pair<std::string, std::string>, std::string> by_client_id_;
  std::set<Order> order_;           // queued pieces
  std::deque<Order> newly_queued_;  // may name pieces that are queued no more
  std::map<std::string, Lease> leases_;
  absl::Time looked_ = absl::InfinitePast();  // which pieces have a device
  Turns turns_;
  std::vector<Recordable> gave_up_;
  std::vector<std::string> innocent_;
  std::vector<Lease> cancelled_;
};

// What makes no sense in a batch, before it is queued.
absl::Status Validate(const v1::Batch& batch);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_BATCHES_H_
