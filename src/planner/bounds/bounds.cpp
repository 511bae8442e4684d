#include "planner/bounds/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "planner/bounds/one_machine.hpp"
#include "planner/bounds/relaxation.hpp"
#include "planner/bounds/split_tail.hpp"
#include "planner/bounds/stage_times.hpp"

// Every part of the bound relaxes the problem of relaxation.hpp, and the largest is taken:
//  - a device, a link, an interface, a rank's collective lane as one machine that may interrupt its
//    jobs (one_machine.hpp), with heads and tails of every job from stage_times.hpp;
//  - the memory limit, which delays heads (memory_turn.hpp) and bounds the mean number of
//    activations in flight (memory_time).

namespace longhaul::planner {
namespace {

struct Part {
  Duration bound{};
  std::string reason;
  void raise(Duration to, const std::function<std::string()>& why) {
    if (to <= bound) return;
    bound = to;
    reason = why();
  }
};

/// The jobs of the replicas as one machine sees them.
class Machines {
public:
  Machines(const Relaxation& relaxation, MemoryLimit memory) : relaxation_{relaxation} {
    for (const RelaxedReplica& replica : relaxation.replicas)
      times_.push_back(stage_times(relaxation, replica, memory));
  }

  void raise(Part& part) const {
    for (std::size_t replica = 0; replica < times_.size(); ++replica) {
      for (const DeviceId device : relaxation_.device_ids()) {
        part.raise(one_machine_bound(device_jobs(replica, device)),
                   [&] { return fmt::format("work of device {} between head and tail", device); });
        part.raise(
            split_tail_bound(relaxation_, relaxation_.replicas[replica], times_[replica], device),
            [&] { return fmt::format("work of device {}, split where Ws fill its tail", device); });
        part.raise(collectives(replica, device),
                   [&] { return fmt::format("data-parallel communication of device {}", device); });
      }
    }
    for (const auto& [resource, jobs] : messages()) {
      part.raise(one_machine_bound(jobs), [&] {
        return fmt::format("{}: its messages between head and tail",
                           relaxation_.resource_names[resource]);
      });
    }
  }

private:
  template <typename Visit>
  void for_chunks_on(std::size_t replica, DeviceId device, Visit visit) const {
    const std::vector<RelaxedChunk>& chunks = relaxation_.replicas[replica].chunks;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (chunks[c].device == device && chunks[c].count > 0) visit(chunks[c], times_[replica][c]);
    }
  }

  [[nodiscard]] std::vector<JobStream> device_jobs(std::size_t replica, DeviceId device) const {
    std::vector<JobStream> jobs;
    for_chunks_on(replica, device, [&](const RelaxedChunk& c, const StageTimes& times) {
      const Duration none{};
      jobs.push_back({times.forward_head, none, times.forward_tail, -c.forward, c.forward});
      jobs.push_back({times.gradient_head, none, times.gradient_tail, -c.gradient, c.gradient});
      jobs.push_back({times.gradient_head, c.gradient, {}, c.reduction, c.weight});
      if (c.recompute > none)
        jobs.push_back({times.forward_head, c.forward, times.gradient_tail, none, c.recompute});
    });
    return jobs;
  }

  /// Gathers from the start on, each ahead of the Fs of its chunk; reductions after the weights.
  [[nodiscard]] Duration collectives(std::size_t replica, DeviceId device) const {
    std::map<StageId, std::pair<Duration, Duration>> gathers, reductions;
    Duration alone{};  // a chain through one collective
    const std::vector<RelaxedChunk>& chunks = relaxation_.replicas[replica].chunks;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const RelaxedChunk& chunk = chunks[c];
      if (chunk.device != device || chunk.count == 0) continue;
      const StageTimes& times = times_[replica][c];
      const StageId stage{static_cast<int>(c) % relaxation_.chunks_of_copy};
      const Duration cell = chunk.forward + chunk.recompute + chunk.gradient + chunk.weight;
      const Duration done = std::max(times.gradient_head.back() + chunk.gradient + chunk.weight,
                                     times.forward_head.front() + chunk.count * cell);
      auto& gather = gathers[stage];
      gather = {chunk.gathering, std::max(gather.second, times.forward_tail.front())};
      auto& reduction = reductions[stage];
      reduction = {chunk.reducing, std::max(reduction.second, done)};
      alone = std::max({alone, chunk.gather + times.forward_tail.front(), done + chunk.reduction});
    }
    return std::max({alone, sequence_bound(gathers), sequence_bound(reductions)});
  }

  /// Jobs (length, head or tail) on one machine: only heads, or only tails, by symmetry.
  [[nodiscard]] static Duration sequence_bound(
      const std::map<StageId, std::pair<Duration, Duration>>& jobs) {
    std::vector<std::pair<Duration, Duration>> by_side;
    for (const auto& [stage, job] : jobs) by_side.emplace_back(job.second, job.first);
    std::ranges::sort(by_side);
    Duration end{};
    for (const auto& [side, length] : by_side) {
      if (length > Duration::zero()) end = std::max(end, side) + length;
    }
    return end;
  }

  /// Jobs of messages by the resource that takes time.
  [[nodiscard]] std::map<ResourceId, std::vector<JobStream>> messages() const {
    std::map<ResourceId, std::vector<JobStream>> jobs;
    for (std::size_t replica = 0; replica < times_.size(); ++replica) {
      const std::vector<RelaxedChunk>& chunks = relaxation_.replicas[replica].chunks;
      const auto add = [&](const RelaxedHop& hop, const JobStream& stream) {
        if (stream.heads.empty() || hop.transfer == Duration::zero()) return;
        for (const ResourceId resource : hop.resources) jobs[resource].push_back(stream);
      };
      for (std::size_t c = 0; c + 1 < chunks.size(); ++c) {
        const StageTimes& here = times_[replica][c];
        const StageTimes& there = times_[replica][c + 1];
        const RelaxedHop& down = chunks[c].next;
        const RelaxedHop& up = chunks[c + 1].previous;
        add(down, {here.forward_head, chunks[c].forward, there.forward_tail, down.latency,
                   down.transfer});
        add(up, {there.gradient_head, chunks[c + 1].gradient, here.gradient_tail, up.latency,
                 up.transfer});
      }
    }
    return jobs;
  }

  const Relaxation& relaxation_;
  std::vector<std::vector<StageTimes>> times_;
};

long double product(Duration time, Bytes bytes) {
  return static_cast<long double>(time.count()) * static_cast<long double>(bytes.count());
}

/// The time that a device's activations take, in memory times time, over the memory that there is:
/// no shorter can be the time from its first F to its last weight. An activation is held from the
/// start of F to the end of its gradient, a round trip later at the earliest, and what is left of
/// it for the time of its weight at least. Without the weights, the time to the last gradient of a
/// first chunk, after which the gradient goes on to other devices.
void raise_memory_time(const Relaxation& relaxation, Part& part) {
  if (relaxation.limit <= Bytes{}) return;
  for (const RelaxedReplica& replica : relaxation.replicas) {
    const std::vector<Duration> trips = round_trips(relaxation, replica);
    const std::vector<StageTimes> times = stage_times(relaxation, replica, MemoryLimit::ignored);
    for (const DeviceId device : relaxation.device_ids()) {
      long double to_gradient = 0;  // products of bytes and nanoseconds exceed 64 bits
      long double of_weights = 0;
      Duration head = Duration::max();
      Duration reduction = Duration::max();
      Duration tail = Duration::max();
      for (std::size_t c = 0; c < trips.size(); ++c) {
        const RelaxedChunk& chunk = replica.chunks[c];
        if (chunk.device != device || chunk.count == 0) continue;
        const Duration whole = chunk.forward + trips[c] + chunk.gradient;
        to_gradient += chunk.count * product(whole, chunk.taken);
        of_weights += chunk.count * product(chunk.weight, chunk.rest);
        head = std::min(head, times[c].forward_head.front());
        reduction = std::min(reduction, chunk.reduction);
        tail = std::min(tail, times[c].gradient_tail.back() - chunk.gradient);
      }
      if (head == Duration::max()) continue;
      const auto span = [&](long double held) {
        const long double least = held / static_cast<long double>(relaxation.limit.count());
        constexpr long double kRounding = 1e-3;  // of the sum, and more
        return Duration{static_cast<std::int64_t>(std::ceil(least - kRounding))};
      };
      const auto why = [&] {
        return fmt::format("memory of device {}: activations of all round trips", device);
      };
      part.raise(head + span(to_gradient + of_weights) + reduction, why);
      part.raise(head + span(to_gradient) + tail, why);
    }
  }
}

Part largest_part(const Relaxation& relaxation) {
  Part part;
  Machines{relaxation, MemoryLimit::ignored}.raise(part);
  Part limited = part;
  Machines{relaxation, MemoryLimit::kept}.raise(limited);
  if (limited.bound > part.bound)
    part = {limited.bound, "round trips under the memory limit; " + limited.reason};
  raise_memory_time(relaxation, part);
  return part;
}

/// The largest of the replicas' own, each alone: what they share only makes them slower.
Bound bound_of_replicas(const Schedule& like, const Scenario& scenario) {
  Bound largest;
  for (const ReplicaId replica : scenario.replica_ids()) {
    Bound own = lower_bound(like.of_replica(replica), scenario.of_replica(replica));
    if (replica > ReplicaId{0} && own.lower_bound <= largest.lower_bound) continue;
    largest = std::move(own);
    largest.reason = fmt::format("replica {}: {}", replica, largest.reason);
  }
  return largest;
}

}  // namespace

Bound lower_bound(const Schedule& like, const Scenario& scenario) {
  if (scenario.has_uneven_replicas()) return bound_of_replicas(like, scenario);
  return lower_bound_of_any({&like, 1}, scenario);
}

Bound lower_bound_of_any(std::span<const Schedule> layouts, const Scenario& scenario) {
  Bound smallest;
  ClassOfBound holds_for;
  for (const Schedule& layout : layouts) {
    const Relaxation relaxation = relax(layout, scenario);
    holds_for.add(layout, relaxation);
    const Part part = largest_part(relaxation);
    if (&layout == &layouts.front() || part.bound < smallest.lower_bound)
      smallest = {part.bound, {}, part.reason};
  }
  smallest.holds_for = holds_for.text(scenario.memory.budget);
  return smallest;
}

double gap(Duration makespan, const Bound& bound) {
  if (bound.lower_bound <= Duration::zero()) return 0;
  return static_cast<double>(makespan.count()) / static_cast<double>(bound.lower_bound.count()) - 1;
}

}  // namespace longhaul::planner
