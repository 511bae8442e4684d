// Gradients of real layers, summed by collectives that are messages on real ranks: two runs agree
// in every bit of loss and sum, in whatever order messages come.
#include <chrono>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>

#include "base/random.hpp"
#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "support/collectives.hpp"
#include "support/ranks/ranks_fixture.hpp"
#include "training/layer_work.hpp"
#include "training/model_layout.hpp"
#include "training/step_tensors.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using Algorithm = plan::CollectiveAlgorithm;

constexpr int kReplicas = 4;
constexpr const char* kFourReplicas = R"(
[scenario]
name = "four-replicas"
[model]
name = "tiny"
layers = 3
hidden = 16
intermediate = 24
heads = 2
vocabulary = 16
sequence_length = 8
achieved_flops = 1e10
[parallel]
stages = 1
microbatches = 2
replicas = 4
gradient_sync = "all-reduce"
[[datacenter]]
name = "local"
[[node]]
datacenter = "local"
gpus = 4
device = "10GB/s"
)";

/// The messages of one collective, whose payloads leave late by a time that is drawn: so they come
/// in another order for another seed.
class LateSteps final : public engine::DataPlane {
public:
  LateSteps(const Plan& plan, Rank self, nn::TensorOps& math, nn::DeviceMemory& memory,
            nn::ArrayView numbers, std::uint64_t seed)
      : steps_{plan, self, math, memory},
        late_{derived_seed(seed, static_cast<std::uint64_t>(self), 0)} {
    steps_.set_numbers(0, numbers);
  }
  void begin_iteration(std::uint32_t, int) override { steps_.begin_iteration(); }
  std::vector<engine::LateVerdict> end_iteration() override {
    steps_.finish();
    return {};
  }
  engine::Payload make(OpId send) override {
    std::this_thread::sleep_for(std::chrono::microseconds{late_.between(0, 400)});
    return steps_.make(send);
  }
  engine::Payload room(OpId recv) override { return steps_.room(recv); }
  engine::Payloads::Verdict check(OpId, std::span<const std::byte>, engine::PayloadId&) override {
    return engine::Payloads::Verdict::right;
  }
  void deliver(OpId recv, engine::Payload payload) override {
    steps_.deliver(recv, std::move(payload));
  }
  void corrupt(OpId, engine::FaultKind, engine::Payload&) override {}
  comm::Exchange exchange(OpId) override { return {}; }
  bool exchanged(OpId) override { return true; }

private:
  training::StepTensors steps_;
  Random late_;
};

class RealSums : public OnRanks {
protected:
  /// Of each iteration.
  struct Numbers {
    std::vector<double> losses;  ///< of this replica
    std::vector<float> sums;     ///< of gradients over replicas
  };
  /// Two iterations of a replica on each rank, the second with the weights that the first left.
  Numbers train(const plan::Collective& shape, std::uint64_t seed) {
    const Scenario scenario = scenario::parse_scenario(kFourReplicas, "four-replicas.toml", {});
    const Schedule schedule = schedule::generate("gpipe", scenario);
    const Plan blocks = plan::lower(schedule, scenario, Arrangement::decoupled);
    training::TrainingModel model;
    model.shape = training::model_shape(scenario);
    model.seed = 7;
    model.text = nn::SyntheticText{model.shape, 3};
    const auto math = nn::make_cpu_math();
    nn::DeviceMemory memory{*math, 0};
    training::LayerWork work{blocks, schedule, scenario, ranks().self(), *math, memory, model};
    training::StageShard& stage = work.stages().front();
    plan::Collective collective = shape;
    collective.size = Bytes{static_cast<std::int64_t>(stage.gradients_in_steps().bytes())};
    const Plan plan = plan::lower_collective(collective, scenario).or_throw();
    LateSteps steps{plan, ranks().self(), *math, memory, stage.gradients_in_steps(), seed};
    device::TimedDevice device;
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, steps, {}};
    Numbers numbers;
    for (int iteration = 0; iteration < 2; ++iteration) {
      compute(work, blocks, iteration);
      EXPECT_EQ(engine.run(iteration).checks.wrong(), 0);
      work.end_iteration();
      numbers.losses.push_back(work.loss());
      std::vector<float> sums(stage.gradient().count);
      math->copy_out(stage.gradient(), sums);
      numbers.sums.insert(numbers.sums.end(), sums.begin(), sums.end());
      stage.step(iteration + 1);
    }
    ranks().watchdog().watch(nullptr, {});
    return numbers;
  }

  template <typename Number>
  static bool same_bits(const std::vector<Number>& a, const std::vector<Number>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  }
  /// Have all ranks those of rank 0?
  static bool same_everywhere(const std::vector<float>& mine) {
    const auto bytes = std::as_bytes(std::span{mine});
    const std::string first =
        ranks().world().broadcast({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return std::memcmp(first.data(), bytes.data(), bytes.size()) == 0;
  }

private:
  static void compute(training::LayerWork& work, const Plan& blocks, int iteration) {
    work.begin_iteration(iteration);
    const OpRange mine = work.ops();
    for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
      if (blocks.ops[i].kind != OpKind::compute) continue;
      work.run(OpId{i});
      work.ended(OpId{i});
    }
  }
};

RANKS_TEST(RealSums, TwoRunsAgreeInEveryBit) {
  NEEDS_RANKS(kReplicas);
  std::vector<Numbers> of_algorithm;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving, Algorithm::exchange,
                                    Algorithm::direct, Algorithm::tree, Algorithm::double_tree}) {
    const plan::Collective shape = flat(CollectiveKind::all_reduce, kReplicas, Bytes{1}, algorithm);
    const Numbers once = train(shape, 1);
    const Numbers again = train(shape, 2);
    EXPECT_TRUE(same_bits(once.losses, again.losses)) << plan::to_string(algorithm);
    EXPECT_TRUE(same_bits(once.sums, again.sums)) << plan::to_string(algorithm);
    EXPECT_TRUE(same_everywhere(once.sums)) << plan::to_string(algorithm);
    of_algorithm.push_back(once);
  }
  // So these sums are not the same in any order.
  EXPECT_FALSE(same_bits(of_algorithm.front().sums, of_algorithm.back().sums));
}

}  // namespace
}  // namespace longhaul::testing
