#include "planner/hierarchy/replica_program.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/messages.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::planner {
namespace {

constexpr ReplicaId kOnly{0};

}  // namespace

ReplicaProgram::ReplicaProgram(const Schedule& schedule, const Scenario& alone)
    : devices_{schedule.devices} {
  find_ends(schedule);
  const schedule::BlockCosts costs{schedule, alone};
  const schedule::NetworkRoutes routes{alone};
  const plan::Messages messages = plan::find_messages(schedule, kOnly);
  std::vector<std::vector<std::int32_t>> output_of;
  for (const auto& row : messages.input_of) output_of.emplace_back(row.size(), -1);
  for (const plan::Messages::Channel& channel : messages.channels) {
    const schedule::NetworkRoute route =
        routes.between(alone.rank(kOnly, channel.from), alone.rank(kOnly, channel.to));
    for (std::uint32_t i = channel.first; i < channel.first + channel.count; ++i) {
      const plan::Message& message = messages.all[i];
      output_of[index(channel.from)][at(message.sent_after)] = static_cast<std::int32_t>(i);
      ways_.push_back({costs.message(message.producer) / route.rate, route.latency, channels_,
                       number(channel.from), number(channel.to)});
    }
    ++channels_;
  }
  std::vector<bool> sent(ways_.size());
  std::vector<std::size_t> next(at(devices_));
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const DeviceId device : schedule.device_ids()) {
      const auto row = schedule.row(kOnly, device);
      for (std::size_t& i = next[index(device)]; i < row.size(); ++i) {
        const std::int32_t input = messages.input_of[index(device)][i];
        if (input >= 0 && !sent[at(input)]) break;
        const std::int32_t output = output_of[index(device)][i];
        if (output >= 0) sent[at(output)] = true;
        const ChunkId chunk = row[i].chunk;
        const auto place = static_cast<std::int32_t>(i);
        Step step{costs.duration(row[i]), number(device), input, output};
        if (first_forward_[at(chunk)] == place) step.gate = number(chunk);
        if (last_gradient_[at(chunk)] == place) step.gradient = number(chunk);
        work_ += step.duration;
        steps_.push_back(step);
        goes_on = true;
      }
    }
  }
  for (const DeviceId device : schedule.device_ids())
    LONGHAUL_ASSERT(next[index(device)] == schedule.row(kOnly, device).size(),
                    "device {} of {} waits for ever", number(device), schedule.name);
}

void ReplicaProgram::find_ends(const Schedule& schedule) {
  first_forward_.assign(at(schedule.chunks), -1);
  last_gradient_.assign(at(schedule.chunks), -1);
  for (const DeviceId device : schedule.device_ids()) {
    const auto row = schedule.row(kOnly, device);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto place = static_cast<std::int32_t>(i);
      std::int32_t& first = first_forward_[at(row[i].chunk)];
      if (row[i].kind == BlockKind::F && first < 0) first = place;
      if (row[i].kind == BlockKind::W || row[i].kind == BlockKind::B)
        last_gradient_[at(row[i].chunk)] = place;
    }
  }
}

void ReplicaProgram::play(std::span<const Duration> gates, ReplicaTimes& times) const {
  times.gradients.assign(first_forward_.size(), Duration{});
  times.blocks.assign(at(devices_), Duration{});
  times.all.assign(at(devices_), Duration{});
  std::vector<Duration> arrival(ways_.size());
  std::vector<Duration> free(at(channels_));  // of the way of each ordered pair of devices
  for (const Step& step : steps_) {
    Duration& device = times.blocks[at(step.device)];
    Duration begin = device;
    if (step.input >= 0) begin = std::max(begin, arrival[at(step.input)]);
    if (step.gate >= 0) begin = std::max(begin, gates[at(step.gate)]);
    device = begin + step.duration;
    if (step.gradient >= 0) times.gradients[at(step.gradient)] = device;
    if (step.output < 0) continue;
    const Way& way = ways_[at(step.output)];
    Duration& left = free[at(way.channel)];
    left = std::max(left, device) + way.transfer;
    arrival[at(step.output)] = left + way.latency;
    times.all[at(way.from)] = std::max(times.all[at(way.from)], left);
    times.all[at(way.to)] = std::max(times.all[at(way.to)], left + way.latency);
  }
  for (std::size_t d = 0; d < times.all.size(); ++d)
    times.all[d] = std::max(times.all[d], times.blocks[d]);
}

}  // namespace longhaul::planner
