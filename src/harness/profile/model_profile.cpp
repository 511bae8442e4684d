#include "harness/profile/model_profile.hpp"

#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "harness/profile/stage_probe.hpp"
#include "harness/ranks/gather_texts.hpp"
#include "nn/layers/weights.hpp"
#include "nn/memory.hpp"
#include "report/record.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

constexpr int kWarmUpRounds = 2;

/// Numbers that are equal for devices with the same chunks.
using BlockNumbers = std::vector<std::vector<int>>;  // embeddings, layers, heads of each chunk
BlockNumbers census_of(const std::vector<nn::LayerRange>& chunks, const nn::ModelShape& shape) {
  BlockNumbers census;
  for (const nn::LayerRange& chunk : chunks) {
    const int embeddings = chunk.first == 0 ? 1 : 0;
    const int heads = chunk.first + chunk.count == shape.layers ? 1 : 0;
    census.push_back({embeddings, chunk.count - embeddings - heads, heads});
  }
  return census;
}

Json to_json(const DeviceProfile& profile, std::size_t at) {
  const BlockSamples& samples = profile.samples;
  const StageMemory& memory = profile.memory;
  return {{"at", at},
          {"F", samples.forward},
          {"B", samples.backward},
          {"D", samples.dgrad},
          {"W", samples.wgrad},
          {"R", samples.recompute},
          {"loss", profile.loss},
          {"memory",
           {memory.weights.count(), memory.resident.count(), memory.activation.count(),
            memory.kept_for_wgrad.count(), memory.kept_recomputed.count(), memory.peak.count(),
            memory.left_over.count()}}};
}

void append(std::vector<double>& to, const Json& values) {
  for (const Json& value : values) to.push_back(value.get<double>());
}

/// Adds what one rank measured.
void merge(std::vector<DeviceProfile>& kinds, const Json& part) {
  DeviceProfile& kind = kinds[part["at"].get<std::size_t>()];
  append(kind.samples.forward, part["F"]);
  append(kind.samples.backward, part["B"]);
  append(kind.samples.dgrad, part["D"]);
  append(kind.samples.wgrad, part["W"]);
  append(kind.samples.recompute, part["R"]);
  kind.loss = part["loss"].get<float>();
  const auto bytes = [&](std::size_t i) { return Bytes{part["memory"][i].get<std::int64_t>()}; };
  kind.memory = {bytes(0), bytes(1), bytes(2), bytes(3), bytes(4), bytes(5), bytes(6)};
}

/// Samples of which the stopping rule speaks: a round, its B aside.
std::vector<double> rounds_of(const BlockSamples& samples) {
  std::vector<double> sums = samples.forward;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += samples.dgrad[i] + samples.wgrad[i];
  return sums;
}

/// The parts of a profile: turns over kinds of devices and over parts of the model, messages,
/// operators.
class ProfileParts {
public:
  ProfileParts(const ProfileOptions& options, const ModelProfile& profile, int ranks)
      : options_{options},
        ranks_{ranks},
        total_{turns(profile.devices.size()) + turns(profile.parts.size()) +
               (options.tasks ? 3 : 2)} {}
  void tell(const std::string& now) const {
    if (options_.progress) options_.progress(done_, total_, now);
  }
  void next() { ++done_; }
  [[nodiscard]] const ProfileOptions& options() const { return options_; }

private:
  [[nodiscard]] int turns(std::size_t kinds) const {
    return (static_cast<int>(kinds) + ranks_ - 1) / ranks_;
  }
  const ProfileOptions& options_;
  int ranks_, total_, done_ = 0;
};

/// This rank's part of a turn: all ranks do as many rounds, begun together.
void measure(engine::Ranks& ranks, nn::TensorOps& math, const nn::ModelShape& shape,
             const ProfileParts& parts, DeviceProfile& mine) {
  const StoppingRule& rule = parts.options().rule;
  int rounds = 0;
  for (const nn::Recompute recompute : {nn::Recompute::off, nn::Recompute::on}) {
    StageProbe probe{math, shape, mine.chunks, recompute};
    BlockSamples ignored;
    for (int i = 0; i < kWarmUpRounds; ++i) probe.round(ignored);
    probe.weigh(mine.memory);
    if (recompute == nn::Recompute::off) {
      do {
        parts.tell(fmt::format("{}, round {}", mine.name, rounds));
        ranks.world().barrier();
        probe.round(mine.samples);
        ++rounds;
      } while (goes_on(rule, rounds, rounds_of(mine.samples), ranks.world()));
      mine.loss = probe.loss();
    } else {
      for (int i = 0; i < rounds; ++i) {
        parts.tell(fmt::format("{} with recomputation, round {} of {}", mine.name, i, rounds));
        ranks.world().barrier();
        probe.round(mine.samples);
      }
    }
  }
}

/// Turn by turn, until every kind has been measured by some rank.
void measure_all(engine::Ranks& ranks, nn::TensorOps& math, const nn::ModelShape& shape,
                 ProfileParts& parts, std::vector<DeviceProfile>& kinds) {
  const auto count = static_cast<std::size_t>(ranks.count());
  for (std::size_t first = 0; first < kinds.size(); first += count) {
    const std::size_t at = (first + index(ranks.self())) % kinds.size();
    DeviceProfile mine{kinds[at].name, kinds[at].chunks, kinds[at].devices};
    measure(ranks, math, shape, parts, mine);
    for (const std::string& text : gather_texts(ranks.world(), to_json(mine, at).dump()))
      merge(kinds, Json::parse(text));
    parts.next();
  }
}

constexpr int kTag = 0;
constexpr int kWarmUpMessages = 3;

class PingPong {
public:
  PingPong(engine::Ranks& ranks, Rank partner, Duration patience)
      : ranks_{ranks}, partner_{partner}, patience_{patience} {}

  void send(nn::ArrayView what) {
    const comm::RequestId request =
        ranks_.transport().send_payload(partner_, kTag, {what.data, what.bytes()}, {LaneId{0}});
    ranks_.transport().ring_doorbell(partner_);
    wait(request);
  }
  void receive(nn::ArrayView room) {
    wait(
        ranks_.transport().receive_payload(partner_, kTag, {room.data, room.bytes()}, {LaneId{1}}));
  }

private:
  void wait(comm::RequestId request) {
    const TimePoint until = now() + patience_;
    while (std::ranges::find(done_, request, &comm::Completion::request) == done_.end()) {
      ranks_.transport().advance(done_);
      if (now() > until)
        throw Error{fmt::format("rank {} waited {} for a message of rank {} (it may have ended). "
                                "Give more time with --deadline.",
                                index(ranks_.self()), to_text(patience_), index(partner_)),
                    ExitCode::run_failed};
      std::this_thread::yield();
    }
    done_.clear();
  }

  engine::Ranks& ranks_;
  Rank partner_;
  Duration patience_;
  std::vector<comm::Completion> done_;
};

std::vector<double> copy_times(nn::TensorOps& math, nn::ArrayView from, nn::ArrayView to,
                               int samples) {
  std::vector<double> times;
  for (int i = 0; i < kWarmUpMessages + samples; ++i)
    times.push_back(timed(math, [&] { math.copy(from, to); }));
  times.erase(times.begin(), times.begin() + kWarmUpMessages);
  return times;
}

/// Collective: times of one message of `count` numbers, one way, in ns: half of there and back
/// between ranks 0 and 1 while ranks 2 and 3, 4 and 5, ... do the same; on one rank, a copy within
/// the device. Rank 0 gets them. Throws Error where a message does not come within `patience`.
std::vector<double> message_times(engine::Ranks& ranks, nn::TensorOps& math, std::size_t count,
                                  int samples, Duration patience) {
  nn::DeviceMemory memory{math, 0};
  const nn::Buffer mine = memory.take(count, "bench_profile: message");
  const nn::Buffer theirs = memory.take(count, "bench_profile: message of another rank");
  math.fill_random(1, 1, mine.view());
  math.finish();
  const auto self = static_cast<int>(index(ranks.self()));
  const int partner = self ^ 1;
  ranks.world().barrier();
  if (ranks.count() == 1) return copy_times(math, mine.view(), theirs.view(), samples);
  std::vector<double> times;
  if (partner < ranks.count()) {
    PingPong with{ranks, Rank{partner}, patience};
    for (int i = 0; i < kWarmUpMessages + samples; ++i) {
      const double both = timed(math, [&] {
        if (self < partner) with.send(mine.view());
        with.receive(theirs.view());
        if (self > partner) with.send(mine.view());
      });
      if (i >= kWarmUpMessages) times.push_back(both / 2);
    }
  }
  ranks.world().barrier();
  return ranks.is_first() ? times : std::vector<double>{};
}

}  // namespace

const DeviceProfile& ModelProfile::of_device(DeviceId device) const {
  return *std::ranges::find_if(devices, [&](const DeviceProfile& profile) {
    return std::ranges::find(profile.devices, device) != profile.devices.end();
  });
}

std::vector<DeviceProfile> profiled_devices(const Schedule& schedule, const Scenario& scenario) {
  const nn::ModelShape shape = training::model_shape(scenario);
  const std::vector<nn::LayerRange> stages = training::layers_of_stages(schedule, scenario);
  std::vector<DeviceProfile> kinds;
  for (const DeviceId device : schedule.device_ids()) {
    std::vector<nn::LayerRange> chunks;
    for (const ChunkId chunk : chunks_on(schedule, device))
      chunks.push_back(stages[static_cast<std::size_t>(schedule.stage_of(chunk))]);
    for (const nn::LayerRange& chunk : chunks) nn::check_layers(shape, chunk);
    const BlockNumbers census = census_of(chunks, shape);
    const auto same_kind = std::ranges::find_if(
        kinds, [&](const DeviceProfile& kind) { return census_of(kind.chunks, shape) == census; });
    if (same_kind != kinds.end())
      same_kind->devices.push_back(device);
    else
      kinds.push_back({"", chunks, {device}});
  }
  for (DeviceProfile& kind : kinds)
    kind.name = fmt::format("stage{} {}", kind.devices.size() == 1 ? "" : "s",
                            report::ranges_text(numbers(kind.devices)));
  return kinds;
}

ModelProfile profile_model(engine::Ranks& ranks, nn::TensorOps& math, const Scenario& scenario,
                           const Schedule& schedule, const ProfileOptions& options) {
  ModelProfile profile;
  profile.shape = training::model_shape(scenario);
  profile.type = math.working_type();
  profile.devices = profiled_devices(schedule, scenario);
  for (const ModelPart& part : parts_of(profile.shape))
    profile.parts.push_back({part.name, {part.layers}, {}});
  ProfileParts parts{options, profile, ranks.count()};
  measure_all(ranks, math, profile.shape, parts, profile.devices);
  measure_all(ranks, math, profile.shape, parts, profile.parts);
  parts.tell("messages");
  profile.message =
      message_times(ranks, math, profile.shape.boundary(), options.rule.least, options.patience);
  ranks.world().barrier();
  parts.next();
  parts.tell("operators");
  profile.operators = operator_times(math, profile.shape, options.rule.least);
  ranks.world().barrier();
  if (options.tasks) {
    parts.next();
    parts.tell("tasks");
    TaskProfile tasks = trace_tasks(math, profile.shape, options.rule.least, options.trace);
    if (options.trace != nullptr) profile.tasks = std::move(tasks);
    ranks.world().barrier();
  }
  return profile;
}

}  // namespace longhaul::harness
