#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::test {

/// The values of a schedule in published tables.
struct Evaluation {
  Duration makespan{};
  Duration device_span{};  ///< largest over devices, first F to last block
};

/// Earliest-start evaluation with latencies and no transfer times, written apart from the
/// simulator so that neither can cover for the other: every block starts at the end of the block
/// before it or at the arrival of its input. For schedules whose blocks are whole. nullopt where
/// the schedule deadlocks.
class Evaluator {
public:
  Evaluator(const Schedule& schedule, const Scenario& scenario)
      : schedule_{schedule}, scenario_{scenario}, devices_(schedule.rows.size()) {}

  [[nodiscard]] std::optional<Evaluation> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (const DeviceId device : schedule_.device_ids()) progress |= advance(device);
    }
    Evaluation result;
    for (const DeviceId device : schedule_.device_ids()) {
      const Device& state = devices_[index(device)];
      if (state.next != schedule_.row(ReplicaId{0}, device).size()) return std::nullopt;
      result.makespan = std::max(result.makespan, state.free_at);
      result.device_span = std::max(result.device_span, state.free_at - state.first_start);
    }
    return result;
  }

private:
  struct Device {
    std::size_t next = 0;
    Duration free_at{};
    Duration first_start{};
  };
  using Key = std::tuple<bool, int, int>;  ///< backward?, chunk, microbatch

  [[nodiscard]] DeviceId device_of(int chunk) const {
    return schedule_.device_of_chunk[ChunkId{chunk}];
  }

  [[nodiscard]] int of_copy() const { return schedule_.chunks / schedule_.copies; }

  /// The block whose output `block` waits for, if any.
  [[nodiscard]] std::optional<Key> input_of(const Block& block) const {
    if (block.kind == BlockKind::F) {
      if (block.chunk % of_copy() == 0) return std::nullopt;
      return Key{false, block.chunk - 1, block.microbatch};
    }
    const bool waits_for_gradient =
        block.kind == BlockKind::R && schedule_.recompute_timing == RecomputeTiming::on_arrival;
    if (!is_backward(block.kind) && !waits_for_gradient) return std::nullopt;
    if ((block.chunk + 1) % of_copy() == 0) return Key{false, block.chunk, block.microbatch};
    return Key{true, block.chunk + 1, block.microbatch};
  }

  [[nodiscard]] Duration latency(DeviceId from, DeviceId to) const {
    const Link* link =
        scenario_.link(scenario_.placement[index(from)], scenario_.placement[index(to)]);
    return link == nullptr ? Duration::zero() : link->latency;
  }

  [[nodiscard]] Duration length(const Block& block, DeviceId device) const {
    const auto of = [&](const std::vector<Duration>& costs) {
      const int share = of_copy() / schedule_.devices;
      return costs[index(device)] / share;
    };
    switch (block.kind) {
      case BlockKind::F: return of(scenario_.costs.forward);
      case BlockKind::B: return of(scenario_.costs.backward);
      case BlockKind::D: return of(scenario_.costs.dgrad);
      case BlockKind::W: return of(scenario_.costs.wgrad);
      case BlockKind::R: return of(scenario_.costs.recompute);
    }
    return {};
  }

  bool advance(DeviceId device) {
    Device& state = devices_[index(device)];
    const auto row = schedule_.row(ReplicaId{0}, device);
    const std::size_t before = state.next;
    for (; state.next < row.size(); ++state.next) {
      const Block& block = row[state.next];
      Duration start = state.free_at;
      if (const auto input = input_of(block)) {
        const auto done = end_.find(*input);
        if (done == end_.end()) break;
        const DeviceId from = device_of(std::get<1>(*input));
        start = std::max(start, done->second + latency(from, device));
      }
      if (state.next == 0) state.first_start = start;
      state.free_at = start + length(block, device);
      if (block.kind == BlockKind::F || is_backward(block.kind)) {
        end_[{block.kind != BlockKind::F, block.chunk, block.microbatch}] = state.free_at;
      }
    }
    return state.next != before;
  }

  const Schedule& schedule_;
  const Scenario& scenario_;
  std::vector<Device> devices_;
  std::map<Key, Duration> end_;
};

[[nodiscard]] inline std::optional<Evaluation> evaluate(const Schedule& schedule,
                                                        const Scenario& scenario) {
  return Evaluator{schedule, scenario}.run();
}

}  // namespace longhaul::test
