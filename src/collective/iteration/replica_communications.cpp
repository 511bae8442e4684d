#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/iteration/weight_units.hpp"

namespace longhaul::collective {
namespace {

/// Consecutive operators of a chunk whose gradients, or weights, go together.
struct ReplicaBucket {
  ChunkId chunk{};
  std::vector<std::int32_t> places;
  Bytes weights, gradients;
};

class Replicated {
public:
  Replicated(const IterationPlan& plan, DeviceId stage, StageWork& work)
      : plan_{plan}, parallel_{plan.scenario->parallel}, work_{work} {
    for (const ChunkId chunk : chunks_on(*plan.schedule, stage)) fill_buckets(chunk);
    const IndexedVector<OperationId, bool> makes_gradients = gradient_makers(work);
    for (const OperationId id : work.order) {
      const Operation& operation = work.operations[id];
      if (operation.place < 0) continue;
      auto& of_operator = operations_of_[{operation.chunk, operation.place}];
      if (operation.work == BlockKind::F && operation.has_weights &&
          of_operator.first_forward.empty())
        of_operator.first_forward.push_back(id);
      if (makes_gradients[id]) of_operator.gradients[operation.microbatch].push_back(id);
    }
  }

  void run() {
    const GradientSync sync = parallel_.gradient_sync;
    if (divides_optimizer(sync)) add_gathers();
    for (const ReplicaBucket& bucket : buckets_) {
      if (sync != GradientSync::zero2) {
        add_sum(bucket, kNoMicrobatch);
        continue;
      }
      for (const MicrobatchId microbatch : plan_.schedule->microbatch_ids())
        add_sum(bucket, microbatch);
    }
  }

private:
  struct OfOperator {
    std::vector<OperationId> first_forward;
    std::map<MicrobatchId, std::vector<OperationId>> gradients;
  };
  static constexpr MicrobatchId kNoMicrobatch{-1};

  /// From the last operator on, as gradients come; a bucket is full when it has that many bytes.
  void fill_buckets(ChunkId chunk) {
    const std::vector<Bytes> weights = weights_of_operators(plan_, chunk);
    bool full = true;
    for (std::size_t place = weights.size(); place-- > 0;) {
      if (weights[place] == Bytes{}) continue;
      if (full) buckets_.push_back({chunk, {}, {}, {}});
      ReplicaBucket& bucket = buckets_.back();
      bucket.places.push_back(static_cast<std::int32_t>(place));
      bucket.weights += weights[place];
      bucket.gradients += gradients_of(weights[place], *plan_.scenario);
      full = parallel_.sharding.bucket && bucket.gradients >= *parallel_.sharding.bucket;
    }
  }

  /// In the order of the first forwards.
  void add_gathers() {
    for (const ReplicaBucket& bucket : buckets_ | std::views::reverse) {
      Communication gather{.traffic = Traffic::dp,
                           .kind = CollectiveKind::all_gather,
                           .size = bucket.weights,
                           .chunk = bucket.chunk};
      for (const std::int32_t place : bucket.places)
        for (const OperationId id : operations_of_[{bucket.chunk, place}].first_forward)
          gather.needed_by.push_back(id);
      work_.add(std::move(gather));
    }
  }

  /// `microbatch`: whose gradients are summed; none: those of all, after the last.
  void add_sum(const ReplicaBucket& bucket, MicrobatchId microbatch) {
    const GradientSync sync = parallel_.gradient_sync;
    Communication sum{.traffic = Traffic::dp,
                      .kind = sync == GradientSync::all_reduce ? CollectiveKind::all_reduce
                                                               : CollectiveKind::reduce_scatter,
                      .size = bucket.gradients,
                      .chunk = bucket.chunk,
                      .microbatch = microbatch,
                      .holds = sync == GradientSync::zero2 ? Holds::gradients : Holds::nothing};
    for (const std::int32_t place : bucket.places)
      for (const auto& [of, operations] : operations_of_[{bucket.chunk, place}].gradients)
        if (microbatch == kNoMicrobatch || of == microbatch)
          sum.needs.insert(sum.needs.end(), operations.begin(), operations.end());
    if (sum.needs.empty()) return;
    for (const OperationId id : work_.order)
      if (work_.operations[id].chunk == bucket.chunk && number(work_.operations[id].microbatch) < 0)
        sum.needed_by.push_back(id);
    work_.add(std::move(sum));
  }

  const IterationPlan& plan_;
  const Parallel& parallel_;
  StageWork& work_;
  std::vector<ReplicaBucket> buckets_;
  std::map<std::pair<ChunkId, std::int32_t>, OfOperator> operations_of_;
};

}  // namespace

void add_replica_communications(const IterationPlan& plan, DeviceId stage, StageWork& work) {
  Replicated{plan, stage, work}.run();
}

}  // namespace longhaul::collective
