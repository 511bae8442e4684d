#include "harness/trace_cost/synthetic_run.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::harness {
namespace {

constexpr std::int64_t kForward = 200'000, kBackward = 400'000;  // slots, ns
constexpr std::int64_t kLatency = 5'000'000, kLateness = 50'000;
constexpr std::int64_t kCollective = 8'000'000;
constexpr std::int64_t kActivationBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMessageBytes = std::int64_t{8} << 20;
constexpr std::int64_t kStamp = 1'700'000'000'000'000'000;
constexpr int kDatacenters = 4;

/// From the end of a block's slot to the slot of the next stage's: transfer, latency, lateness.
constexpr std::int64_t hop(std::int64_t slot) { return 2 * slot + kLatency + kLateness; }

}  // namespace

/// Makes the rows of one rank.
class SyntheticRun::Maker {
public:
  Maker(const SyntheticRun& run, int rank, int iteration, Timeline& timeline)
      : run_{run},
        rank_{rank},
        stage_{run.stage_of(rank)},
        iteration_{iteration},
        timeline_{timeline},
        lanes_{timeline.lanes},
        resources_{timeline.resources} {
    base_.iteration = iteration;
    base_.rank = rank;
    base_.replica = base_.owner = rank / run.shape_.stages;
    base_.device = stage_;
    base_.datacenter = trace::NameTable{timeline.datacenters}.index_of(
        "datacenter " + std::to_string(stage_ * kDatacenters / run.shape_.stages));
  }

  void run() {
    blocks(RowKind::F);
    blocks(RowKind::B);
    for (const Lane lane : {send_on, send_back, recv_on, recv_back})
      if (run_.has(stage_, lane)) messages(lane);
    all_reduce();
  }

private:
  /// The same number for both sides of a message: below `most`.
  [[nodiscard]] std::int64_t noise(int rank, int what, std::int64_t microbatch,
                                   std::int64_t most) const {
    const auto name = static_cast<std::uint64_t>(rank) * 16 + static_cast<std::uint64_t>(what);
    const auto when =
        static_cast<std::uint64_t>(iteration_) << 40 | static_cast<std::uint64_t>(microbatch);
    return static_cast<std::int64_t>(derived_seed(run_.shape_.seed, name, when) %
                                     static_cast<std::uint64_t>(most));
  }

  /// A block fills most of its slot; the transfer after it most of the next one.
  [[nodiscard]] Interval within(std::int64_t slot_ns, std::int64_t length_ns, int rank, int what,
                                std::int64_t microbatch) const {
    const std::int64_t late = noise(rank, what, microbatch, length_ns / 16);
    const std::int64_t early = noise(rank, what + 1, microbatch, length_ns / 16);
    return {slot_ns + late, slot_ns + length_ns - early};
  }

  void add(Lane lane, std::int64_t position, TimelineRow row, Interval times) {
    row.schedule = base_.schedule;
    row.op = run_.op(rank_, lane, position);
    row.planned_ns = row.planned_ns > 0 ? row.planned_ns : times.end_ns - times.start_ns;
    row.ready_ns = kStamp + times.start_ns - noise(rank_, 12, row.op, 2'000);
    row.start_ns = kStamp + times.start_ns;
    row.end_ns = kStamp + times.end_ns;
    row.bound_kind = row.bound_by < 0 ? BoundKind::start : BoundKind::dependency;
    timeline_.rows.push_back(row);
  }

  void blocks(RowKind kind) {
    const bool forward = kind == RowKind::F;
    TimelineRow row = base_;
    row.kind = kind;
    row.lane = lanes_.index_of("compute");
    row.resource = resources_.index_of("device " + std::to_string(rank_));
    row.chunk = stage_;
    row.size_bytes = forward ? kActivationBytes : -kActivationBytes;
    const Lane input = forward ? recv_on : recv_back;
    for (std::int64_t m = 0; m < run_.microbatches(); ++m) {
      const std::int64_t position = forward ? m : run_.microbatches() + m;
      row.microbatch = static_cast<std::int32_t>(m);
      row.bound_by = run_.has(stage_, input) ? run_.op(rank_, input, m)
                     : position > 0          ? run_.op(rank_, compute, position - 1)
                                             : -1;
      const std::int64_t slot = forward ? run_.forward_ns(stage_, m) : run_.backward_ns(stage_, m);
      add(compute, position, row,
          within(slot, forward ? kForward : kBackward, rank_, forward ? 0 : 2, m));
    }
  }

  void messages(Lane lane) {
    const bool sends = lane == send_on || lane == send_back;
    const bool forward = lane == send_on || lane == recv_on;
    const int peer = rank_ + (sends == forward ? 1 : -1);
    const int from = sends ? rank_ : peer;
    const StageId producer = run_.stage_of(from);
    TimelineRow row = base_;
    row.kind = sends ? RowKind::send : RowKind::recv;
    row.lane =
        lanes_.index_of((sends ? "send>" : "recv<") + std::to_string(number(run_.stage_of(peer))));
    row.chunk = producer;
    row.peer = peer;
    row.size_bytes = kMessageBytes;
    if (sends)
      row.resource =
          resources_.index_of("link " + std::to_string(from) + ">" + std::to_string(peer));
    for (std::int64_t m = 0; m < run_.microbatches(); ++m) {
      row.microbatch = static_cast<std::int32_t>(m);
      row.bound_by = sends ? run_.op(rank_, compute, forward ? m : run_.microbatches() + m)
                           : run_.op(from, forward ? send_on : send_back, m);
      Interval times = transfer(from, producer, forward, m);
      if (!sends) {
        row.planned_ns = kLatency;
        times.end_ns += kLatency + noise(rank_, 10, m, kLateness);
      }
      add(lane, m, row, times);
    }
  }

  [[nodiscard]] Interval transfer(int from, StageId producer, bool forward, std::int64_t m) const {
    const std::int64_t slot = forward ? run_.forward_ns(producer, m) + kForward
                                      : run_.backward_ns(producer, m) + kBackward;
    return within(slot, forward ? kForward : kBackward, from, forward ? 4 : 6, m);
  }

  void all_reduce() {
    TimelineRow row = base_;
    row.kind = RowKind::all_reduce;
    row.lane = lanes_.index_of("collective");
    row.resource = resources_.index_of("collective " + std::to_string(number(stage_)));
    row.peer = stage_;
    row.size_bytes = kActivationBytes;
    row.bound_by = run_.op(rank_, compute, 2 * run_.microbatches() - 1);
    add(collective, 0, row, within(run_.collective_ns(), kCollective, stage_, 8, 0));
  }

  const SyntheticRun& run_;
  int rank_;
  StageId stage_;
  int iteration_;
  Timeline& timeline_;
  trace::NameTable lanes_, resources_;
  TimelineRow base_;
};

SyntheticRun::SyntheticRun(const SyntheticShape& shape) : shape_{shape} {
  LONGHAUL_ASSERT(shape.ranks % shape.stages == 0, "{} ranks in pipelines of {} stages",
                  shape.ranks, shape.stages);
  std::int64_t lanes = 0;
  for (const StageId stage : ids<StageId>(shape.stages)) lanes += lanes_of_stage(stage);
  const std::int64_t rows = (shape.events / shape.iterations) * shape.stages;  // of a pipeline
  microbatches_ = std::max<std::int64_t>(1, (rows + lanes - 1) / lanes);
  first_op_.push_back(0);
  for (const StageId stage : ids<StageId>(shape.stages))
    first_op_.push_back(first_op_.back() + lanes_of_stage(stage) * microbatches_ + 1);
}

std::int64_t SyntheticRun::rows_of_iteration() const {
  return first_op_.back() * (shape_.ranks / shape_.stages);
}

Timeline SyntheticRun::rows_of(std::span<const int> ranks, int iteration) const {
  Timeline timeline;
  timeline.schedules = {"synthetic"};
  for (const int rank : ranks) Maker{*this, rank, iteration, timeline}.run();
  return timeline;
}

bool SyntheticRun::has(StageId stage, Lane lane) const {
  if (lane == send_on || lane == recv_back) return stage + 1 < shape_.stages;
  if (lane == send_back || lane == recv_on) return stage > 0;
  return true;
}

std::int64_t SyntheticRun::lanes_of_stage(StageId stage) const {
  std::int64_t lanes = 2;
  for (const Lane lane : {send_on, send_back, recv_on, recv_back})
    lanes += has(stage, lane) ? 1 : 0;
  return lanes;
}

std::int64_t SyntheticRun::op(int rank, Lane lane, std::int64_t position) const {
  const StageId stage = stage_of(rank);
  std::int64_t before = lane == compute ? 0 : 2;
  for (const Lane other : {send_on, send_back, recv_on, recv_back})
    if (other < lane && has(stage, other)) ++before;
  return rank / shape_.stages * first_op_.back() + first_op_[stage] + before * microbatches_ +
         position;
}

std::int64_t SyntheticRun::forward_ns(StageId stage, std::int64_t microbatch) const {
  return stage * hop(kForward) + microbatch * kForward;
}

std::int64_t SyntheticRun::backward_ns(StageId stage, std::int64_t microbatch) const {
  const StageId last{shape_.stages - 1};
  return forward_ns(last, microbatches_) + (last - stage) * hop(kBackward) + microbatch * kBackward;
}

std::int64_t SyntheticRun::collective_ns() const { return backward_ns(StageId{}, microbatches_); }

}  // namespace longhaul::harness
