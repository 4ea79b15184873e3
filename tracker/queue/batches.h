// SPDX-License-Identifier: Apache-2.0
// The queue of batches: batches that wait for a device, the leases under which devices measure them, and the results.
//
// A batch starts as one piece that holds all its candidates. A lease gives one piece to one device.
// - The device is lost during the lease: the piece is queued again. A piece that is lost repeatedly is split in halves,
//   so that the candidate that kills devices is found and the others are measured. The number of losses per batch is
//   bounded; the candidates of a piece that is given up get the outcome LOST_DEVICE.
// - The device answers that it cannot measure the piece: the piece is tried on other devices. If one of them can, the
//   earlier devices failed; if several cannot, the batch fails.
// Pure state: no threads, no input or output; calls that depend on time take `now`, which must not go back. Devices are
// known by name only. Not here: which device may take which batch (farm.h). Start at Submit, Pick and Finish. Not
// thread-safe.
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
#include "tracker/queue/fair_share.h"
#include "tracker/queue/file_uses.h"
#include "tracker/queue/limits.h"
#include "tracker/queue/receipt.h"

namespace hone::tracker {

// Devices that get a piece again only if no other device could take it.
struct Avoid {
  std::set<std::string> agents;                // ids of agents whose devices were lost with the piece
  std::map<std::string, std::string> devices;  // devices that could not measure the piece: "agent/device" to the reason
};

class BatchQueue {
 public:
  // The right of one device to measure one piece. It lasts until Finish, RejectLease, Return or Lose, or until its
  // batch fails or its job ends.
  struct Lease {
    std::string id;
    std::string batch_id;
    int64_t piece = 0;  // key in Entry::pieces
    std::string agent_id, device_id;
    v1::DeviceFingerprint fingerprint;  // of the device; its digest is the kind of device
    uint64_t epoch = 0;                 // of the agent
    int attempt = 0;                    // number of this lease among those of its piece, from 1; returned ones excluded
    int visit = 0;                      // number of this lease among all of its batch, from 1; returned ones included
    absl::Time started;
    absl::Duration run_limit;  // Expire reports the lease when it has run for longer
    absl::Duration waited;     // from the batch's submission to this lease
    bool answered = false;     // the result arrived and waits to be stored: neither the lease nor its batch expires
  };

  BatchQueue(BatchOptions options, DrawId draw_id)
      : options_(options), draw_id_(std::move(draw_id)), fair_share_(options.share_half_life) {}

  // Who a batch belongs to. Quotas and fair sharing count by these names.
  struct Owner {
    std::string job_id, user, tuner;  // tuner: the identity's name, which several tuner processes may share
  };
  // Queues a batch and returns its id. Idempotent by (job, client id) until the batch is forgotten (Acknowledge).
  // lost_by: agents whose devices were lost with the batch before. Errors as in tuner.proto.
  absl::StatusOr<std::string> Submit(const Owner& owner, const std::string& client_id, v1::Batch batch, absl::Time now,
                                     std::set<std::string> lost_by = {});
  // Whether Submit would return a known batch.
  bool Has(const std::string& job_id, const std::string& client_id) const {
    return by_client_id_.contains({job_id, client_id});
  }
  // Removes all batches and results of the job and ends its leases (see TakeCancelled).
  void DropJob(const std::string& job_id);

  // Charges the time until `now` to users and jobs. Must be called before anything changes at `now`.
  void AdvanceTo(absl::Time now) { fair_share_.AdvanceTo(now); }
  const FairShare& fair_share() const { return fair_share_; }

  // Leases the first queued piece that `fits` accepts, or returns nullptr. The order: highest priority; then the user
  // with the least recent use of this kind of device; then the oldest piece of that user.
  // taker: names the device (agent, device, fingerprint, epoch); Pick fills in the rest.
  using Fits = std::function<bool(const v1::Batch& batch, const Avoid& avoid)>;
  const Lease* Pick(Lease taker, const Fits& fits, absl::Time now);
  // The live lease with this id, or nullptr. Pointers to leases are valid until the lease ends.
  const Lease* FindLease(const std::string& lease_id) const;
  const std::string& JobOf(const Lease& lease) const { return batches_.at(lease.batch_id).job_id; }
  // The batch to send to the agent: only the candidates of the leased piece. If the batch has useful_seconds, the time
  // limit of the visit is lowered to what is left of them; the wait for devices does not use them up.
  v1::Batch BatchOf(const Lease& lease, absl::Time now) const;

  // Why a result without an error does not answer for every candidate of the lease; "" if it does. A candidate may be
  // missing where the visit had a time limit.
  std::string IncompleteReason(const Lease& lease, const v1::BatchResult& result) const;
  // Takes the outcomes of a live lease and ends it, which destroys `lease`. Returns the devices that failed on the
  // piece before, with their reasons: because this device measured it, they were wrong.
  std::map<std::string, std::string> Finish(const Lease& lease, const v1::BatchResult& result);
  // Ends the lease, which destroys `lease`, because the device could not measure the piece. The piece is queued again,
  // for other devices if there are any, else for the same one. After devices_to_blame devices the batch fails with
  // their reasons, or after failures_to_blame failures if no other device exists. another: whether a device exists that
  // has not tried the piece.
  void RejectLease(const Lease& lease, const std::string& why, bool another, absl::Time now);
  const Avoid& AvoidedBy(const Lease& lease) const;
  // The batch with the candidates of all its pieces.
  const v1::Batch& WholeBatch(const Lease& lease) const { return *batches_.at(lease.batch_id).batch; }
  std::set<std::string> CandidatesOf(const Lease& lease) const;  // ids of the candidates of the leased piece
  // Converts a result for the records. Changes nothing.
  Recordable ToRecord(const Lease& lease, const v1::BatchResult& result) const;
  // NoteAnswered, Return and Lose ignore a lease that is unknown or has ended.
  // The lease's result arrived but cannot be stored yet. Until it is, neither the lease nor its batch expires.
  void NoteAnswered(const std::string& lease_id);
  // The device returns the lease unused. Its piece is queued again and the attempt is not counted.
  void Return(const std::string& lease_id, absl::Time now);
  // Ends a lease whose device is gone, or that ran for too long. The piece is queued again, split or given up.
  void Lose(const std::string& lease_id, const std::string& why, absl::Time now);
  // Fails batches with a piece that no device could take for BatchOptions::absence_limit without a break, and batches
  // that were not measured within total_limit. Returns the ids of leases past their run limit; these stay live.
  // served: returns true while a device exists that could take the batch, even if it is busy; also while no work is
  // given out at all, because the batch then waits for the tracker. Each time it returns true for a queued piece, the
  // piece's absence_limit starts anew. Time in which all pieces of a batch are queued and `served` does not count
  // against total_limit.
  using Served = std::function<bool(const v1::Batch& batch)>;
  std::vector<std::string> Expire(absl::Time now, const Served& served);
  // The tracker stood still for `stall`: that time counts against no limit.
  void ExcludeStall(absl::Duration stall);

  // The result of a batch; nullopt while it is unfinished. kNotFound: no such batch of this job.
  absl::StatusOr<std::optional<v1::BatchResult>> Result(const std::string& job_id, const std::string& batch_id) const;
  // The result of the job's finished batch with this client id; nullopt: it is unfinished or unknown.
  std::optional<v1::BatchResult> ResultOf(const std::string& job_id, const std::string& client_id) const;
  // The tuner has the result: the batch is forgotten, and Submit would queue its client id anew. Unfinished and unknown
  // batches are ignored.
  void Acknowledge(const std::string& job_id, const std::string& batch_id);

  // Each returns what was gathered since its last call.
  std::vector<Recordable> TakeGivenUp();  // candidates that got LOST_DEVICE
  // Devices that were lost with candidates that were then given up, one entry per loss. The candidates are to blame.
  std::vector<std::string> TakeForgivenDevices();
  std::vector<Lease> TakeCancelled();  // leases ended by DropJob or by the failure of their batch

  // The oldest queued piece that was not yet skipped since it was queued; nullopt: there is none. The caller looks for
  // a device for it, and calls SkipNewlyQueued if no device takes it: the piece then stays in the queue, but is not
  // returned here again. The pointers are valid until the next change.
  struct Queued {
    const v1::Batch* batch;
    const Avoid* avoid;
  };
  std::optional<Queued> NewlyQueued();
  void SkipNewlyQueued() { newly_queued_.pop_front(); }

  int queued() const { return static_cast<int>(order_.size()); }    // pieces
  int running() const { return static_cast<int>(leases_.size()); }  // pieces
  int64_t given_up() const { return given_up_count_; }              // pieces, since the start
  const std::map<std::string, Lease>& leases() const { return leases_; }
  const FileUses& files() const { return files_; }  // of the runs among the batches that are not finished
  // The job's queued pieces. The pointers are valid until the next change.
  std::vector<Queued> Waiting(const std::string& job_id) const;

 private:
  struct Piece {
    std::vector<int> candidates;  // indices into the batch
    int attempts = 0;             // leases, without those that were returned
    int failures = 0;             // calls of RejectLease
    Avoid avoid;
    std::string lease_id;     // "" while queued
    absl::Time absent_since;  // while queued: since when no device could take it
  };
  struct Entry {
    std::string job_id, user, tuner, client_id;
    int64_t number = 0;
    std::shared_ptr<const v1::Batch> batch;  // null once finished
    absl::Time submitted;
    absl::Duration queue_time;          // since `submitted`: when devices existed but were busy with others
    absl::Duration waited_before;       // FairShare::Waited of the job at submission
    int64_t bytes = 0;                  // memory of the batch, or of the result once finished
    std::map<int64_t, Piece> pieces;    // unfinished pieces, by number
    std::vector<v1::Outcome> outcomes;  // by candidate; unset while unknown
    int visits = 0, losses = 0;         // leases given; leases lost
    std::vector<std::string> lost_on;   // the devices of `losses` ("agent/device")
    v1::BatchResult result;             // gets its outcomes when the batch is finished
    bool finished = false;
  };
  // The sort key of a queued piece: higher priority first, then by user, then older batches and pieces first.
  struct Order {
    int priority;
    std::string user;
    int64_t number, piece;
    std::string batch_id;
    bool operator<(const Order& other) const;
  };

  void ExcludeQueueTime(absl::Time now, const Served& served);
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
  void FinishIfDone(const std::string& batch_id, Entry& entry);
  void Close(const std::string& batch_id, Entry& entry);
  void RemovePieces(const std::string& batch_id, Entry& entry);
  absl::Duration RunLimit(const Entry& entry, const Piece& piece) const;

  const BatchOptions options_;
  const DrawId draw_id_;
  int64_t next_batch_ = 0, next_piece_ = 0, given_up_count_ = 0;
  std::map<std::string, Entry> batches_;
  std::map<std::pair<std::string, std::string>, std::string> by_client_id_;
  std::set<Order> order_;           // queued pieces
  std::deque<Order> newly_queued_;  // in the order they were queued; may name pieces that have left the queue
  std::map<std::string, Lease> leases_;
  FileUses files_;                                     // by batch; not of finished ones
  absl::Time devices_checked_ = absl::InfinitePast();  // when ExcludeQueueTime last looked for devices
  FairShare fair_share_;
  std::vector<Recordable> given_up_;
  std::vector<std::string> forgiven_devices_;
  std::vector<Lease> cancelled_;
};

// Checks a batch before it is queued. kInvalidArgument: a field is missing or out of range; the text names it.
absl::Status Validate(const v1::Batch& batch);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_BATCHES_H_
