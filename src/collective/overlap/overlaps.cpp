#include "collective/overlap/overlaps.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_memory.hpp"
#include "collective/iteration/iteration_of.hpp"
#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

/// PyTorch's DistributedDataParallel.
constexpr Bytes kBucket = 25_MiB;

Parallel as_given(Parallel parallel) { return parallel; }

Parallel with_whole_weights(Parallel parallel, GradientSync sync) {
  parallel.gradient_sync = sync;
  parallel.shard = 1;
  return parallel;
}

Parallel in_buckets(Parallel parallel) {
  if (!parallel.sharding.bucket && !parallel.sharding.no_buckets)
    parallel.sharding.bucket = kBucket;
  return with_whole_weights(parallel, GradientSync::all_reduce);
}

Parallel zero1(Parallel parallel) { return with_whole_weights(parallel, GradientSync::zero1); }
Parallel zero2(Parallel parallel) { return with_whole_weights(parallel, GradientSync::zero2); }

/// Over the scenario's shards, or all replicas.
Parallel zero3(Parallel parallel) {
  if (parallel.gradient_sync != GradientSync::zero3) parallel.shard = parallel.replicas;
  parallel.gradient_sync = GradientSync::zero3;
  return parallel;
}

Parallel fsdp2(Parallel parallel) {
  parallel = zero3(parallel);
  parallel.sharding.unit_layers = 1;
  parallel.sharding.regather = Regather::all_but_last;
  return parallel;
}

/// Megatron's buckets of 40 million numbers, where gradients are whole.
Parallel megatron(Parallel parallel) {
  constexpr std::int64_t kNumbers = 40'000'000;
  if (!parallel.sharding.bucket && !parallel.sharding.no_buckets)
    parallel.sharding.bucket = Bytes{kNumbers * parallel.sharding.gradient_bytes};
  return parallel;
}

Parallel in_given_buckets(Parallel parallel) {
  if (!parallel.sharding.bucket && !parallel.sharding.no_buckets)
    parallel.sharding.bucket = kBucket;
  return parallel;
}

/// By the scenario's sharding.
IterationPlan as_sharded(IterationPlan plan) {
  if (plan.scenario->parallel.gradient_sync == GradientSync::zero3)
    return prefetched(std::move(plan), ShardedLanes::apart);
  return eager(std::move(plan));
}

constexpr std::array kOverlaps{
    Overlap{"serial", "nothing overlaps: collectives and blocks of a rank take turns", as_given,
            serialized},
    Overlap{"ddp", "gradients all-reduced in buckets of 25 MiB as they fill (PyTorch DDP)",
            in_buckets, eager},
    Overlap{"ooo", "as ddp, dgrads of all operators ahead of wgrads (out-of-order backward)",
            in_buckets, [](IterationPlan plan) { return eager(dgrads_first(std::move(plan))); }},
    Overlap{"zero1", "weights gathered before the first F, gradients scattered after the last W",
            zero1, eager},
    Overlap{"zero2", "as zero1, gradients scattered after each microbatch", zero2, eager},
    Overlap{"zero3", "units gathered one ahead, gradients scattered, all on one lane (DeepSpeed)",
            zero3,
            [](IterationPlan plan) { return prefetched(std::move(plan), ShardedLanes::one); }},
    Overlap{"fsdp2", "a layer at a time, the last one kept, gathers and scatters apart (PyTorch)",
            fsdp2,
            [](IterationPlan plan) { return prefetched(std::move(plan), ShardedLanes::apart); }},
    Overlap{"zeropp", "as zero3, backwards gather from a second copy in the node (ZeRO++ hpZ)",
            zero3,
            [](IterationPlan plan) {
              return prefetched(backward_from_node(std::move(plan)), ShardedLanes::one);
            }},
    Overlap{"megatron", "tensor ranks' collectives beside wgrads, gradients in buckets (Megatron)",
            megatron, as_sharded},
    Overlap{"breadth-first", "all microbatches of a chunk one after the other, then as they come",
            in_given_buckets, as_sharded, breadth_first},
    Overlap{"syndicate", "all-reduces in two on two lanes (Better Together)", in_given_buckets,
            [](IterationPlan plan) {
              return on_lanes(sums_in_two(as_sharded(std::move(plan))), Traffic::dp, 2);
            }},
    Overlap{"coconet", "each collective beside its one product, in max_chunks pieces (CoCoNet)",
            in_given_buckets,
            [](IterationPlan plan) {
              const int pieces = plan.scenario->pieces.most;
              return in_pieces(std::move(plan), pieces);
            }},
    Overlap{"dist-einsum", "the same, a piece for each step of the ring (Wang et al.)",
            in_given_buckets, [](IterationPlan plan) { return in_pieces(std::move(plan), 0); }},
};

constexpr std::array kSearched{
    Overlap{"centauri-rules",
            "partitioned, by Centauri's three rules on costs of collectives alone", as_given},
    Overlap{"centauri", "Centauri's partitions, tier by tier, decided by simulation", as_given},
    Overlap{"best", "joint search, never slower than those of the same sharding", as_given},
};

const Overlap& overlap_at(std::size_t place) {
  return place < kOverlaps.size() ? kOverlaps[place] : kSearched[place - kOverlaps.size()];
}

}  // namespace

std::span<const Overlap> overlaps() { return kOverlaps; }
std::span<const Overlap> searched_overlaps() { return kSearched; }

std::vector<std::string> overlap_names() {
  std::vector<std::string> names;
  for (const Overlap& each : kOverlaps) names.emplace_back(each.name);
  for (const Overlap& each : kSearched) names.emplace_back(each.name);
  return names;
}

std::vector<const Overlap*> parse_overlaps(std::string_view list) {
  const std::vector<std::string> names = overlap_names();
  std::vector<const Overlap*> chosen;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view name = list.substr(begin, end - begin);
    begin = end + 1;
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      fail("--overlap: there is no overlap \"{}\". {}", name, suggestion(name, names));
    const Overlap* const overlap = &overlap_at(to_size(found - names.begin()));
    if (std::ranges::find(chosen, overlap) != chosen.end())
      fail("--overlap: {} is named twice. Name it once.", name);
    chosen.push_back(overlap);
  }
  return chosen;
}

Result<IterationPlan> overlapped(const Overlap& overlap, const Schedule& schedule,
                                 const Scenario& scenario, Arrangement arrangement) {
  LONGHAUL_ASSERT(!overlap.is_searched(), "{} has no pass of its own", overlap.name);
  Scenario sharded = scenario;
  sharded.parallel = overlap.sharded(scenario.parallel);
  Result<IterationPlan> operations = iteration_of(
      overlap.reordered != nullptr ? overlap.reordered(schedule) : schedule, sharded, arrangement);
  if (!operations) return operations.refusal();
  Result<IterationPlan> plan = with_communications(*std::move(operations));
  if (!plan) return plan.refusal();
  if (auto why = why_no_unit_fits(*plan)) return *std::move(why);
  return overlap.rewrite(*std::move(plan));
}

}  // namespace longhaul::collective
