#include "harness/session/send_choice.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "harness/ranks/main.hpp"
#include "harness/session/pipeline_input.hpp"

namespace longhaul::harness {
namespace {

using engine::SendCaps;
using engine::SentSize;
using engine::SentSizes;

constexpr Bytes kLargestMessage{1 << 30};
/// Filling and comparing a vector takes a nanosecond a byte and member, between iterations.
constexpr Bytes kLargestVector{256 << 20};
/// Where links are emulated, of all collectives of a rank together: they are made and compared
/// between iterations.
constexpr Bytes kVectorsOfARank{64 << 20};
constexpr Bytes kEverything{std::numeric_limits<std::int64_t>::max()};

SentSizes sizes_of(const std::vector<const Plan*>& plans, const SendCaps& caps) {
  SentSizes all;
  for (const Plan* plan : plans) {
    const SentSizes sizes = engine::sent_sizes(*plan, caps);
    all.messages |= sizes.messages;
    all.collectives |= sizes.collectives;
  }
  return all;
}

Bytes need_of(const std::vector<const Plan*>& plans, const SendCaps& caps) {
  Bytes most;
  for (const Plan* plan : plans)
    for (std::size_t rank = 0; rank < plan->ranks.size(); ++rank)
      most = std::max(most,
                      engine::payload_memory(*plan, Rank{static_cast<std::int32_t>(rank)}, caps));
  return most;
}

/// What a rank keeps of a collective's vector at most, so that those of an iteration with many of
/// them take no more memory and time than a few.
Bytes vector_beside_others(const std::vector<const Plan*>& plans) {
  std::int64_t most = 1;
  for (const Plan* plan : plans) {
    std::vector<std::int64_t> of_rank(plan->ranks.size());
    for (const SteppedCollective& each : plan->stepped)
      for (const Rank member : each.collective.members)
        most = std::max(most, ++of_rank[index(member)]);
  }
  return std::min(SendCaps{}.vector, std::max(Bytes{1}, kVectorsOfARank / most));
}

std::string memory_text(Bytes need, Bytes room) {
  return fmt::format("take {} of memory on a rank, and half of the host's is {} for each",
                     to_text(need), to_text(room));
}

/// All of every message, up to the limits.
SendCaps whole(const std::vector<const Plan*>& plans) {
  const SentSizes nominal = sizes_of(plans, {kEverything, kEverything});
  const Bytes largest = std::max(nominal.messages.nominal, nominal.collectives.nominal);
  return {std::clamp(largest, SendCaps{}.message, kLargestMessage), kLargestVector};
}

SendChoice whole_as_far_as_possible(const std::vector<const Plan*>& plans, Bytes room) {
  SendCaps caps = whole(plans);
  const Bytes need = need_of(plans, caps);
  while (need_of(plans, caps) > room && caps.message > SendCaps{}.message)
    caps = {std::max(caps.message / 2, SendCaps{}.message),
            std::max(caps.vector / 2, SendCaps{}.message)};
  SendChoice choice{caps, sizes_of(plans, caps), {}};
  if (need > room) {
    choice.why = fmt::format("whole messages {}", memory_text(need, room));
  } else if (!choice.sizes.messages.is_whole() || !choice.sizes.collectives.is_whole()) {
    choice.why =
        fmt::format("no message of more than {} and no collective's vector of more than {} is sent",
                    to_text(kLargestMessage), to_text(kLargestVector));
  }
  return choice;
}

/// Of this host, for each of its ranks.
Bytes room_of(const engine::Ranks& ranks) {
  const std::int64_t memory = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return Bytes{memory} / 2 / ranks.host_ranks().local_ranks();
}

std::string text_of(const SentSize& size) {
  return size.is_whole() ? fmt::format("{} sent whole", to_text(size.nominal))
                         : fmt::format("sent {} of {}", to_text(size.sent), to_text(size.nominal));
}

nlohmann::ordered_json json_of(const SentSize& size) {
  return {{"sent_bytes", size.sent.count()}, {"nominal_bytes", size.nominal.count()}};
}

}  // namespace

SendChoice choose_caps(const std::vector<const Plan*>& plans, const std::optional<Bytes>& asked,
                       engine::Emulation emulation, Bytes room) {
  const bool emulates = emulation == engine::Emulation::on;
  if (!asked && !emulates) return whole_as_far_as_possible(plans, room);
  const SendCaps caps{asked.value_or(SendCaps{}.message),
                      emulates ? vector_beside_others(plans) : kLargestVector};
  const Bytes need = asked ? need_of(plans, caps) : Bytes{};
  if (need > room)
    fail("--payload {}: messages {}. Give less.", to_text(*asked), memory_text(need, room));
  return {caps, sizes_of(plans, caps), {}};
}

SendChoice choose_caps(const engine::Ranks& ranks, const PipelineInput& input,
                       const PipelineSettings& settings) {
  std::vector<const Plan*> plans;
  for (const PlannedSchedule& planned : input.schedules) plans.push_back(&planned.plan);
  if (settings.compute.real) return {{}, sizes_of(plans, {kEverything, kEverything}), {}};
  if (settings.compute.device == DeviceKind::cuda) {
    const SendCaps caps{settings.payload.value_or(SendCaps{}.message), SendCaps{}.vector};
    SendChoice choice{caps, sizes_of(plans, {caps.message, kEverything}), {}};
    if (!settings.payload)
      choice.why = "payloads in a GPU's memory are capped unless --payload says more";
    return choice;
  }
  const Bytes room{ranks.world().minimum(room_of(ranks).count())};
  SendChoice choice;
  collectively(
      [&] { choice = choose_caps(plans, settings.payload, settings.engine.emulation, room); });
  return choice;
}

std::string sent_text(const SentSizes& sizes) {
  std::string text;
  if (sizes.messages.nominal > Bytes{}) text = text_of(sizes.messages);
  if (sizes.collectives.nominal > Bytes{})
    text += fmt::format("{}collectives: {}", text.empty() ? "" : "; ", text_of(sizes.collectives));
  return text.empty() ? "no messages" : text;
}

nlohmann::ordered_json sent_json(const SendChoice& choice) {
  const SentSizes& sizes = choice.sizes;
  nlohmann::ordered_json json;
  json["text"] = sent_text(sizes);
  json["messages"] = json_of(sizes.messages);
  json["collectives"] = json_of(sizes.collectives);
  json["whole"] = sizes.messages.is_whole() && sizes.collectives.is_whole();
  json["why"] =
      choice.why.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(choice.why);
  return json;
}

}  // namespace longhaul::harness
