// Properties over random instances: every schedule, uneven stages, replicas and datacenters.
#include "support/prefills/heterogeneous.hpp"

#include <functional>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "prefill/bounds.hpp"
#include "prefill/lowering/filled_plan.hpp"
#include "schedule/generators/registry.hpp"
#include "support/prefills/quadratic_oracle.hpp"

namespace longhaul::prefill {
namespace {

using testing::Heterogeneous;
using testing::HeterogeneousOptions;

/// Seeds of each generator.
constexpr std::uint64_t kInstances = 24;

/// How many instances there were; every generator has some.
int for_each_instance(int iterations, const HeterogeneousOptions& options,
                      const std::function<void(const Heterogeneous&, std::uint64_t)>& check) {
  int count = 0;
  for (const schedule::Generator& generator : schedule::generators()) {
    int own = 0;
    for (std::uint64_t seed = 1; seed <= kInstances; ++seed) {
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      const auto instance = testing::heterogeneous(seed, generator, iterations, options);
      if (!instance) continue;
      ++own;
      check(*instance, seed);
      if (::testing::Test::HasFailure()) return count;
    }
    EXPECT_GE(own, 5) << generator.name;
    count += own;
  }
  return count;
}

constexpr PlacementPolicy policy_of(std::uint64_t seed) {
  return seed % 2 == 0 ? PlacementPolicy::best_fit : PlacementPolicy::earliest;
}
constexpr KvSending sending_of(std::uint64_t seed) {
  return seed % 3 == 0 ? KvSending::whole : KvSending::layerwise;
}

/// [start, end) of a stage on its GPU.
struct Computed {
  Duration start{}, end{};
  std::int64_t request = 0;
};
std::vector<std::vector<Computed>> computed_by_gpu(const Heterogeneous& instance,
                                                   const std::vector<Decision>& decisions) {
  std::vector<std::vector<Computed>> all(to_size(instance.bubbles.gpus));
  for (const PlacedStage& stage : placed_stages(instance.served, decisions))
    all[index(stage.rank)].push_back({stage.start, stage.end(), decisions[stage.decision].request});
  for (auto& own : all) std::ranges::sort(own, {}, &Computed::start);
  return all;
}

/// Is [start, end + guard) free of blocks, of which an iteration begins each period from 0 on?
bool is_idle(const Heterogeneous& instance, std::size_t gpu, Duration start, Duration end) {
  const Duration period = instance.bubbles.period;
  for (std::size_t i = 0; i < instance.plan.ops.size(); ++i) {
    const OpId op{static_cast<std::uint32_t>(i)};
    const OpTime& time = instance.times[i];
    if (instance.plan.ops[i].kind != OpKind::compute || time.end <= time.start ||
        index(instance.plan.rank_of(op)) != gpu)
      continue;
    for (std::int64_t k = std::max<std::int64_t>(0, start / period - 1); k <= end / period; ++k)
      if (time.start + k * period < end && time.end + k * period > start) return false;
  }
  return true;
}

TEST(RandomPlacements, NeitherOverlapNorLeaveABubble) {
  std::size_t stages = 0;
  const int instances =
      for_each_instance(1, {}, [&](const Heterogeneous& instance, std::uint64_t seed) {
        const auto decisions = instance.place(policy_of(seed), {}, sending_of(seed));
        ASSERT_EQ(decisions.size(), instance.requests.size());
        for (std::size_t i = 0; i < decisions.size(); ++i)
          ASSERT_EQ(decisions[i].request, instance.requests[i].id);
        for (const Decision& each : decisions)
          ASSERT_TRUE(each.refused || each.start >= each.arrival);
        const auto computed = computed_by_gpu(instance, decisions);
        for (std::size_t gpu = 0; gpu < computed.size(); ++gpu)
          for (std::size_t i = 0; i < computed[gpu].size(); ++i) {
            const Computed& own = computed[gpu][i];
            const Duration guard =
                instance.served[decisions[to_size(own.request)].model].model.guard;
            ++stages;
            ASSERT_TRUE(i == 0 || computed[gpu][i - 1].end <= own.start)
                << "requests " << computed[gpu][i - 1].request << " and " << own.request;
            ASSERT_TRUE(is_idle(instance, gpu, own.start, own.end + guard))
                << "request " << own.request << " on GPU " << gpu;
          }
      });
  EXPECT_GT(instances, 250);
  EXPECT_GT(stages, 5'000U);
}

/// Changes of what is used of a GPU, by time; what is released at an instant goes before what is
/// taken at it.
using Changes = std::multiset<std::pair<Duration, std::int64_t>>;

void add_training(const Heterogeneous& instance, std::int64_t iterations,
                  std::vector<Changes>& changes) {
  const schedule::ActivationModel model{instance.schedule, instance.scenario};
  for (std::size_t i = 0; i < instance.plan.ops.size(); ++i) {
    const Op& op = instance.plan.ops[i];
    if (op.kind != OpKind::compute || is_optimizer_step(op)) continue;
    const std::size_t gpu = index(instance.plan.rank_of(OpId{static_cast<std::uint32_t>(i)}));
    if (gpu >= changes.size()) continue;
    const schedule::MemoryEffect effect = model.effect(op.block());
    for (std::int64_t k = 0; k < iterations; ++k) {
      const Duration begin = k * instance.bubbles.period;
      changes[gpu].insert({begin + instance.times[i].start, effect.at_start.count()});
      changes[gpu].insert({begin + instance.times[i].end, effect.at_end.count()});
    }
  }
}

/// Of prompts, from their start until their keys and values have left, in the order of answers.
void add_prompts(const Heterogeneous& instance, const std::vector<Decision>& decisions,
                 KvSending sending, std::vector<Changes>& changes) {
  KvLink link{instance.bubbles.period,
              interface_holds(instance.plan, instance.times, instance.bubbles.gpus)};
  for (const Decision& decision : decisions) {
    if (decision.refused) continue;
    const Served& by = instance.served[decision.model];
    std::map<int, std::vector<ReadyBytes>> ready;
    std::map<int, std::size_t> gpus;
    for (const PlacedStage& stage : placed_stages(instance.served, {decision})) {
      gpus[stage.stage] = index(stage.rank);
      const auto layers = ready_layers(stage_kv(by.model, stage.tokens, stage.stage),
                                       layers_of_stage(by.model, stage.stage), stage.start,
                                       stage.duration, sending);
      ready[stage.stage].insert(ready[stage.stage].end(), layers.begin(), layers.end());
    }
    const std::int64_t widest =
        by.model.chunk > 0 ? std::min(by.model.chunk, decision.tokens) : decision.tokens;
    for (auto& [stage, parts] : ready) {
      if (sending == KvSending::whole)
        for (ReadyBytes& part : parts) part.at = parts.back().at;
      const auto gpu = static_cast<std::int32_t>(gpus[stage]);
      const Duration until = by.model.decode
                                 ? std::max(decision.end, link.send(gpu, parts, *by.model.decode))
                                 : decision.end;
      const Bytes bytes = prompt_memory(by.model, decision.tokens, widest, stage);
      changes[at(gpu)].insert({decision.start, bytes.count()});
      changes[at(gpu)].insert({until, -bytes.count()});
    }
  }
}

/// Weights of training and of what is served.
std::int64_t fixed_bytes(const Heterogeneous& instance, std::size_t gpu,
                         const schedule::DeviceNeed& need) {
  std::int64_t bytes = (need.weights + need.gradients + need.optimizer + need.buffers).count();
  for (const Served& each : instance.served)
    for (const Pipeline& pipeline : each.serving.pipelines)
      for (std::size_t stage = 0; stage < pipeline.ranks.size(); ++stage)
        if (at(pipeline.ranks[stage]) == gpu) {
          const std::int64_t all = each.model.dimensions->weights().count();
          bytes += all / each.model.stages + (stage == 0 ? all % each.model.stages : 0);
        }
  return bytes;
}

TEST(RandomPlacements, NeverBreakMemory) {
  std::size_t refused = 0, waited = 0, placed = 0;
  for_each_instance(1, {}, [&](const Heterogeneous& instance, std::uint64_t seed) {
    if (!limits_memory(instance.scenario)) return;
    const auto decisions = instance.place(policy_of(seed), {}, sending_of(seed));
    Duration end{};
    for (const Decision& each : decisions) {
      refused += each.refused == RefusalReason::memory ? 1 : 0;
      waited += each.waited_for_memory ? 1 : 0;
      placed += each.refused ? 0 : 1;
      EXPECT_EQ(each.refused == RefusalReason::memory, each.lacks > Bytes{});
      if (!each.refused) end = std::max(end, each.end + each.kv);
    }
    std::vector<Changes> changes(to_size(instance.bubbles.gpus));
    add_training(instance, end / instance.bubbles.period + 1, changes);
    add_prompts(instance, decisions, sending_of(seed), changes);
    const auto needs = schedule::device_memory(instance.schedule, instance.scenario);
    for (std::size_t gpu = 0; gpu < changes.size(); ++gpu) {
      const auto device = instance.scenario.place_of(Rank{static_cast<std::int32_t>(gpu)}).stage;
      const schedule::DeviceNeed& need = needs[index(device)];
      std::int64_t used = fixed_bytes(instance, gpu, need);
      for (const auto& [time, bytes] : changes[gpu]) {
        used += bytes;
        ASSERT_LE(used, need.capacity->count()) << "GPU " << gpu << " at " << time.count();
      }
    }
  });
  EXPECT_GT(refused, 100U);
  EXPECT_GT(waited, 300U);
  EXPECT_GT(placed, 1'500U);
}

TEST(RandomPlacements, LeaveTrainingsTimelineAlone) {
  std::size_t stages = 0;
  const int instances = for_each_instance(2, {}, [&](Heterogeneous instance, std::uint64_t seed) {
    const Duration end = instance.bubbles.period;
    instance.bubbles = cut_at_ends(instance.bubbles);
    const auto decisions = instance.place(policy_of(seed), {false, 1, true}, sending_of(seed));
    std::optional<KvSending> sending;
    if (instance.served.front().model.decode) sending = sending_of(seed);
    const FilledPlan filled =
        fill_plan(instance.plan, instance.times, end, instance.served, decisions, {.kv = sending});
    const OpResults results = sim::simulate_results(filled.plan);
    for (std::size_t i = 0; i < instance.times.size(); ++i) {
      const OpTime& now = results.times[index(filled.training[i])];
      ASSERT_EQ(now.start, instance.times[i].start)
          << to_text(instance.plan, OpId{static_cast<std::uint32_t>(i)});
      ASSERT_EQ(now.end, instance.times[i].end);
    }
    for (const FilledStage& stage : filled.stages) {
      ASSERT_EQ(results.times[index(stage.first)].start, stage.placed.start);
      ASSERT_EQ(results.times[index(stage.op)].end, stage.placed.end());
    }
    stages += filled.stages.size();
  });
  EXPECT_GT(instances, 250);
  EXPECT_GT(stages, 1'000U);
}

// Whole prompts; what they send does not count here, and memory does.
TEST(RandomPlacements, AreTheEarliestThatAQuadraticOracleFinds) {
  std::size_t placed = 0, waited = 0, refused = 0;
  for_each_instance(
      1, {.sends_keys = false, .chunks = false}, [&](const Heterogeneous& instance, std::uint64_t) {
        testing::QuadraticOracle oracle{instance};
        for (const Decision& decision : instance.place(PlacementPolicy::earliest, {})) {
          const auto [pipeline, start] = oracle.place(instance.requests[to_size(decision.request)]);
          SCOPED_TRACE(::testing::Message() << "request " << decision.request);
          ASSERT_EQ(decision.refused.has_value(), pipeline < 0)
              << (decision.refused ? to_string(*decision.refused) : "placed");
          refused += decision.refused ? 1 : 0;
          if (decision.refused) continue;
          ASSERT_EQ(decision.start, start);
          ASSERT_EQ(decision.pipeline, pipeline);
          ++placed;
          waited += decision.waited_for_memory ? 1 : 0;
        }
      });
  EXPECT_GT(placed, 3'000U);
  EXPECT_GT(waited, 300U);
  EXPECT_GT(refused, 300U);
}

/// As numbers: an answer's fields, those of passes, too.
std::vector<std::int64_t> words_of(const std::vector<Decision>& decisions) {
  std::vector<std::int64_t> words;
  for (const Decision& each : decisions) {
    for (const std::int64_t word :
         {each.request, each.arrival.count(), each.tokens, static_cast<std::int64_t>(each.model),
          each.refused ? static_cast<std::int64_t>(*each.refused) : -1, std::int64_t{each.pipeline},
          each.start.count(), each.end.count(), each.compute.count(), each.kv.count(),
          each.first_token.count(), each.lacks.count(), std::int64_t{each.datacenter},
          std::int64_t{each.decode_rank}})
      words.push_back(word);
    for (const PlacedPass& pass : each.passes)
      for (const std::int64_t word : {pass.start.count(), pass.time.count(), pass.tokens})
        words.push_back(word);
  }
  return words;
}

TEST(RandomPlacements, AreTheSameTwiceAndBesideOtherThreads) {
  for_each_instance(1, {}, [&](const Heterogeneous& instance, std::uint64_t seed) {
    const auto place = [&] {
      return words_of(instance.place(policy_of(seed), {}, sending_of(seed)));
    };
    const auto first = place();
    ASSERT_FALSE(first.empty());
    std::vector<std::vector<std::int64_t>> others(3);
    std::vector<std::thread> threads;
    for (auto& other : others) threads.emplace_back([&] { other = place(); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& other : others) ASSERT_EQ(other, first);
  });
}

/// Which prompts some pipeline's bubbles hold, with nothing placed in them.
std::vector<bool> held(const Heterogeneous& instance, const std::vector<Served>& served) {
  std::vector<bool> all;
  Controller controller{instance.bubbles, served, PlacementPolicy::earliest};
  for (const Request& request : instance.requests)
    all.push_back(controller.predict(request).refused != RefusalReason::too_long);
  return all;
}

TEST(RandomPlacements, HaveBoundsThatNeverRiseWithTheGuard) {
  int fell = 0;
  for_each_instance(
      1, {.limits_memory = false}, [&](const Heterogeneous& instance, std::uint64_t seed) {
        const auto waiting = seed % 2 == 0 ? std::optional<std::int64_t>{6} : std::nullopt;
        if (seed > 8) return;
        std::optional<UtilisationBounds> wider;
        std::vector<bool> fitted;
        for (const Duration more : {0ns, 200ns, 1'000ns, 5'000ns, 20'000ns}) {
          std::vector<Served> served = instance.served;
          for (Served& each : served) each.model.guard += more;
          // One that is refused keeps no shorter ones waiting: the mix's bound may rise then.
          auto fit = held(instance, served);
          const bool is_same = std::exchange(fitted, fit) == fit;
          const UtilisationBounds bounds =
              utilisation_bounds(instance.bubbles, served, instance.requests, waiting, 4);
          if (wider) {
            EXPECT_LE(bounds.bubbles, wider->bubbles + 1e-12) << more.count();
            EXPECT_LE(bounds.whole_prompts.value_or(0), wider->whole_prompts.value_or(1) + 1e-12);
            EXPECT_LE(bounds.flow.value_or(0), wider->flow.value_or(1) + 1e-12);
            if (is_same || !waiting) {
              EXPECT_LE(bounds.mix.value_or(0), wider->mix.value_or(1) + 1e-12);
              EXPECT_LE(bounds.upper(), wider->upper() + 1e-12) << more.count();
            }
            if (bounds.upper() < wider->upper() - 1e-12) ++fell;
          }
          wider = bounds;
        }
      });
  EXPECT_GT(fell, 100);
}

}  // namespace
}  // namespace longhaul::prefill
