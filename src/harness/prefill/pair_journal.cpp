#include "harness/prefill/pair_journal.hpp"

#include <chrono>
#include <map>

#include <fmt/chrono.h>

#include "base/version.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

struct RequestTime {
  const char* name;
  Duration PlayedRequest::*member;
};
constexpr RequestTime kRequestTimes[] = {{"ttft", &PlayedRequest::ttft},
                                         {"decision", &PlayedRequest::decision},
                                         {"wait", &PlayedRequest::wait},
                                         {"compute", &PlayedRequest::compute},
                                         {"hop", &PlayedRequest::hop},
                                         {"kv", &PlayedRequest::kv},
                                         {"first_token", &PlayedRequest::first_token},
                                         {"predicted_ttft", &PlayedRequest::predicted_ttft}};

struct StretchTime {
  const char* name;
  Duration StretchOutcome::*member;
};
constexpr StretchTime kStretchTimes[] = {{"wall", &StretchOutcome::wall},
                                         {"training", &StretchOutcome::training},
                                         {"prefill", &StretchOutcome::prefill},
                                         {"delay", &StretchOutcome::delay}};

Json json_of(const PlayedRequest& request) {
  Json json = {{"request", request.request},
               {"tokens", request.tokens},
               {"model", request.model},
               {"is_done", request.is_done},
               {"came_wrong", request.came_wrong}};
  for (const RequestTime& each : kRequestTimes) json[each.name] = (request.*each.member).count();
  return json;
}

PlayedRequest request_of(const Json& json) {
  PlayedRequest request;
  request.request = json.at("request");
  request.tokens = json.at("tokens");
  request.model = json.at("model");
  request.is_done = json.at("is_done");
  request.came_wrong = json.at("came_wrong");
  for (const RequestTime& each : kRequestTimes)
    request.*each.member = Duration{json.at(each.name).get<std::int64_t>()};
  return request;
}

Json json_of(const StretchOutcome& stretch) {
  Json json = {{"late", stretch.late},
               {"blocks_bound", stretch.blocks_bound_by_prefill},
               {"kv_slices", stretch.kv.slices},
               {"kv_bytes", stretch.kv.bytes.count()},
               {"kv_messages_bound", stretch.kv.messages_bound},
               {"kv_delay", stretch.kv.delay.count()},
               {"idle", Json::object()},
               {"memory", Json::array()},
               {"requests", Json::array()}};
  for (const prefill::IdleCause cause : every<prefill::IdleCause>())
    json["idle"][to_string(cause)] = stretch.idle[static_cast<std::size_t>(cause)].count();
  for (const prefill::GpuMemory& each : stretch.memory)
    json["memory"].push_back({each.rank, each.capacity.count(), each.peak.count()});
  for (const StretchTime& each : kStretchTimes) json[each.name] = (stretch.*each.member).count();
  for (const PlayedRequest& each : stretch.requests) json["requests"].push_back(json_of(each));
  return json;
}

StretchOutcome stretch_of(const Json& json) {
  StretchOutcome stretch;
  for (const StretchTime& each : kStretchTimes)
    stretch.*each.member = Duration{json.at(each.name).get<std::int64_t>()};
  stretch.late = json.at("late");
  stretch.blocks_bound_by_prefill = json.at("blocks_bound");
  stretch.kv = {json.at("kv_slices"), Bytes{json.at("kv_bytes").get<std::int64_t>()},
                json.at("kv_messages_bound"), Duration{json.at("kv_delay").get<std::int64_t>()}};
  for (const prefill::IdleCause cause : every<prefill::IdleCause>())
    stretch.idle[static_cast<std::size_t>(cause)] =
        Duration{json.at("idle").at(to_string(cause)).get<std::int64_t>()};
  for (const Json& each : json.at("memory"))
    stretch.memory.push_back(
        {each.at(0), Bytes{each.at(1).get<std::int64_t>()}, Bytes{each.at(2).get<std::int64_t>()}});
  for (const Json& each : json.at("requests")) stretch.requests.push_back(request_of(each));
  return stretch;
}

}  // namespace

Json entry_of_pair(int pair, const StretchPair& played) {
  return {{"pair", pair},
          {"prefill_first", played.prefill_first},
          {"wrong", played.checks.wrong},
          {"messages", played.checks.messages},
          {"blocks", played.checks.blocks},
          {"with", json_of(played.with)},
          {"without", json_of(played.without)}};
}

std::vector<StretchPair> pairs_of(const std::vector<Json>& journal) {
  std::map<int, StretchPair> found;
  for (const Json& entry : journal) {
    if (entry.contains("part"))  // it plays anew what had no rows then
      std::erase_if(found, [&](const auto& each) {
        return each.first >= entry["part"].value("finished_before", 0);
      });
    if (!entry.contains("pair")) continue;
    try {
      found[entry.at("pair")] = {
          .prefill_first = entry.at("prefill_first"),
          .with = stretch_of(entry.at("with")),
          .without = stretch_of(entry.at("without")),
          .checks = {entry.at("wrong"), entry.at("messages"), entry.at("blocks")}};
    } catch (const Json::exception&) {  // damaged, or of another version: it is played again
    }
  }
  std::vector<StretchPair> pairs;
  for (auto& [pair, played] : found) {
    if (std::cmp_not_equal(pair, pairs.size())) break;
    pairs.push_back(std::move(played));
  }
  return pairs;
}

Json part_entry(const std::string& command_line, int finished_before) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return {{"part",
           {{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds))},
            {"git_commit", git_commit()},
            {"command_line", command_line},
            {"finished_before", finished_before}}}};
}

Json parts_of(const std::vector<Json>& journal) {
  Json parts = Json::array();
  for (const Json& entry : journal)
    if (entry.contains("part")) parts.push_back(entry["part"]);
  return parts.size() > 1 ? parts : Json();
}

}  // namespace longhaul::harness
