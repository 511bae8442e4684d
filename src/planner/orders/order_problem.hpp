#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// A block of the search, whole: F, gradient G (D or B, including the R before it) or W of one
/// chunk and microbatch. OrderProblem::none() stands in where there is none.
using BlockId = std::int32_t;

/// Everything about orders of one layout that no order changes, as flat numbers: times in ns, sizes
/// in bytes. Blocks are numbered kind by kind, chunk by chunk, microbatch by microbatch, with one
/// more at the end that stands for "none": it takes no time and has nothing after it.
class OrderProblem {
public:
  enum class Kind : std::uint8_t { F, G, W };

  /// Times of a message on its link, in one replica.
  struct MessageTime {
    std::int64_t transfer = 0;
    std::int64_t latency = 0;
    friend bool operator==(const MessageTime&, const MessageTime&) = default;
  };
  /// Links of one replica, by [kind F or G][chunk of the producer]. Replicas with equal links count
  /// once.
  struct Links {
    IndexedVector<ChunkId, MessageTime> messages[2];
    /// Queue that the chunk's messages take, by [kind][chunk]; -1: none, the link is always free
    /// again before the next message.
    IndexedVector<ChunkId, std::int32_t> queue[2];
    friend bool operator==(const Links&, const Links&) = default;
  };
  struct OfChunk {
    DeviceId device{};
    std::int64_t time[4] = {};   ///< of F, D, W, B; with recomputation R is part of D and B
    std::int64_t taken = 0;      ///< by F
    std::int64_t again = 0;      ///< taken by R
    std::int64_t freed[4] = {};  ///< by F (0), D, W, B
    std::int64_t gathered = 0;   ///< when its weights are there: its first F waits for it
    std::int64_t reduction = 0;  ///< time of the collective after its last gradient
    bool input_here = false;     ///< the chunk before it is on the same device
    bool is_first = false, is_last = false;  ///< of its copy of the model
  };

  /// `like` gives the layout; its rows must be whole blocks of it (see whole_blocks()).
  OrderProblem(const Schedule& like, const Scenario& scenario,
               Arrangement arrangement = Arrangement::decoupled);

  [[nodiscard]] int devices() const { return devices_; }
  [[nodiscard]] IdRange<DeviceId> device_ids() const { return ids<DeviceId>(devices_); }
  [[nodiscard]] int chunks() const { return chunks_.count(); }
  [[nodiscard]] int microbatches() const { return microbatches_; }
  [[nodiscard]] bool recomputes() const { return recomputes_; }
  [[nodiscard]] const OfChunk& chunk(ChunkId c) const { return chunks_[c]; }
  [[nodiscard]] const std::vector<Links>& links() const { return links_; }
  /// Activation memory that the device may hold: budget and capacity.
  [[nodiscard]] std::int64_t memory_limit(DeviceId device) const { return limit_[device]; }
  [[nodiscard]] const std::vector<ChunkId>& chunks_on(DeviceId device) const {
    return chunks_on_[device];
  }

  [[nodiscard]] BlockId blocks() const { return 3 * chunks() * microbatches_; }
  [[nodiscard]] BlockId none() const { return blocks(); }
  [[nodiscard]] BlockId id(Kind kind, ChunkId chunk, MicrobatchId microbatch) const {
    return (static_cast<int>(kind) * chunks() + chunk) * microbatches_ + microbatch;
  }
  [[nodiscard]] Kind kind_of(BlockId block) const { return info(block).kind; }
  [[nodiscard]] ChunkId chunk_of(BlockId block) const { return info(block).chunk; }
  [[nodiscard]] MicrobatchId microbatch_of(BlockId block) const { return info(block).microbatch; }
  [[nodiscard]] DeviceId device_of(BlockId block) const { return chunk(chunk_of(block)).device; }
  /// Must `a` stay before `b` in their row: because `b` needs it, or because the two are equal
  /// and go by microbatch?
  [[nodiscard]] bool must_precede(BlockId a, BlockId b) const {
    const Info& of_b = info(b);
    return of_b.needs[0] == a || of_b.needs[1] == a ||
           (of_b.kind == info(a).kind && of_b.chunk == info(a).chunk);
  }
  /// Do these numbers say all? Not where messages wait for more than their producer and the message
  /// before them on a link of their own: where pairs share a link or interface, where receives
  /// are posted late (grouped), where copies of the model sum their gradients, where blocks slow
  /// beside messages. There they give times too short.
  [[nodiscard]] bool is_exact() const { return exact_; }
  /// Is there data-parallel communication after the last gradients?
  [[nodiscard]] bool reduces() const { return reduces_; }

private:
  struct Info {
    Kind kind = Kind::F;
    ChunkId chunk{};
    MicrobatchId microbatch{};
    BlockId needs[2] = {-1, -1};  ///< in the same row
  };
  [[nodiscard]] const Info& info(BlockId block) const { return infos_[at(block)]; }
  void fill_infos();
  void read_costs(const Schedule& like, const Scenario& scenario);
  void read_limits(const Schedule& like, const Scenario& scenario);
  void read_plan(const Schedule& like, const Plan& plan);
  void read_collectives(const Plan& plan);
  [[nodiscard]] Links links_of(const Schedule& like, const Plan& plan, ReplicaId replica) const;
  void drop_idle_queues(Links& links) const;

  int devices_;
  int microbatches_;
  bool recomputes_ = false;
  bool reduces_ = false;
  bool exact_ = true;
  IndexedVector<ChunkId, OfChunk> chunks_;
  std::vector<Info> infos_;
  IndexedVector<DeviceId, std::vector<ChunkId>> chunks_on_;
  IndexedVector<DeviceId, std::int64_t> limit_;
  std::vector<Links> links_;
};

}  // namespace longhaul::planner
