#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "harness/profile/link_profile.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

constexpr std::array kKindNames{"F", "B", "D", "W", "R"};

std::string to_string(const LinkEstimate& link, const Scenario& scenario) {
  return fmt::format("{}>{}", scenario.datacenters[index(link.from)].name,
                     scenario.datacenters[index(link.to)].name);
}

double error_percent(Duration measured, Duration played) {
  if (played == Duration::zero()) return 0;
  return 100.0 * (static_cast<double>(measured.count()) / static_cast<double>(played.count()) - 1);
}

/// "76.2 ms (+0.2%)", or without the error where the truth is not known.
std::string beside(Duration measured, std::optional<Duration> played) {
  const std::string text = to_text(measured);
  if (!played) return text;
  return fmt::format("{} (played {}, {:+.2f}%)", text, to_text(*played),
                     error_percent(measured, *played));
}

ordered_json pair_json(const char* name, Duration measured, std::optional<Duration> played) {
  ordered_json json = {{fmt::format("{}_ns", name), measured.count()}};
  if (!played) return json;
  json[fmt::format("played_{}_ns", name)] = played->count();
  json[fmt::format("{}_error_percent", name)] = error_percent(measured, *played);
  return json;
}

/// The kind of block whose time is furthest from what was played, of all devices.
struct BlockError {
  std::string block;
  double percent = 0;
};
BlockError largest_block_error(const Profile& profile, const Profile& truth) {
  BlockError largest;
  for (std::size_t kind = 0; kind < profile.blocks.size(); ++kind) {
    for (std::size_t device = 0; device < profile.blocks[kind].size(); ++device) {
      if (!profile.blocks[kind][device]) continue;
      const double percent =
          error_percent(*profile.blocks[kind][device], *truth.blocks[kind][device]);
      if (std::abs(percent) <= std::abs(largest.percent)) continue;
      largest = {fmt::format("{} on device {}", kKindNames[kind], device), percent};
    }
  }
  return largest;
}

}  // namespace

ordered_json profile_json(const Profile& profile, const std::optional<Profile>& truth,
                          const Scenario& scenario) {
  ordered_json json = {{"links", ordered_json::array()}, {"blocks_ns", ordered_json::object()}};
  for (std::size_t i = 0; i < profile.links.size(); ++i) {
    const LinkEstimate& link = profile.links[i];
    const LinkEstimate* played = truth ? &truth->links[i] : nullptr;
    ordered_json entry = {{"link", to_string(link, scenario)}, {"messages", link.messages}};
    entry.update(
        pair_json("latency", link.latency, played ? std::optional{played->latency} : std::nullopt));
    entry.update(pair_json("transfer", link.transfer,
                           played ? std::optional{played->transfer} : std::nullopt));
    if (!link.rate.is_unlimited()) entry["bits_per_second"] = link.rate.bits_per_second();
    json["links"].push_back(std::move(entry));
  }
  for (std::size_t kind = 0; kind < profile.blocks.size(); ++kind) {
    ordered_json devices = ordered_json::array();
    bool any = false;
    for (const auto& time : profile.blocks[kind]) {
      any = any || time.has_value();
      devices.push_back(time ? ordered_json(time->count()) : ordered_json(nullptr));
    }
    if (any) json["blocks_ns"][kKindNames[kind]] = std::move(devices);
  }
  if (truth) json["largest_block_error_percent"] = largest_block_error(profile, *truth).percent;
  return json;
}

std::string profile_text(const Profile& profile, const std::optional<Profile>& truth,
                         const Scenario& scenario) {
  std::string text;
  for (std::size_t i = 0; i < profile.links.size(); ++i) {
    const LinkEstimate& link = profile.links[i];
    const LinkEstimate* played = truth ? &truth->links[i] : nullptr;
    text += fmt::format(
        "    link {}: latency {}, transfer {}, {} messages\n", to_string(link, scenario),
        beside(link.latency, played ? std::optional{played->latency} : std::nullopt),
        beside(link.transfer, played ? std::optional{played->transfer} : std::nullopt),
        link.messages);
  }
  if (!truth) return text;
  const BlockError error = largest_block_error(profile, *truth);
  return text + fmt::format("    blocks: {} furthest from what is played, {:+.2f}%\n",
                            error.block.empty() ? "none" : error.block, error.percent);
}

}  // namespace longhaul::harness
