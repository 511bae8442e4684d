#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "scenario/files/embedded_files.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {
namespace {

constexpr MeasuredKind kProfileKind{"prefill.profile", "profiles", "costs",
                                    "the profile of prefill times", "a table of tokens,time_ns"};
constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kLongestPrefill = 1'000'000'000'000'000;  // ns: 11 days
constexpr std::int64_t kMostStages = 4096;

struct ServedDimension {
  const char* key;
  int ServedDimensions::*member;
  int high;
};
constexpr ServedDimension kServedDimensions[] = {
    {"layers", &ServedDimensions::layers, 10'000},
    {"hidden", &ServedDimensions::hidden, 1 << 18},
    {"intermediate", &ServedDimensions::intermediate, 1 << 20},
    {"heads", &ServedDimensions::heads, 1 << 12},
    {"kv_heads", &ServedDimensions::kv_heads, 1 << 12},
    {"head_size", &ServedDimensions::head_size, 1 << 12},
    {"vocabulary", &ServedDimensions::vocabulary, 1 << 24},
};

/// prefill.model as a table: dimensions as in [model]; kv_heads as heads and head_size as hidden /
/// heads where they are left out.
ServedDimensions read_served_dimensions(const Field& field) {
  std::vector<std::string> keys;
  for (const ServedDimension& each : kServedDimensions) keys.emplace_back(each.key);
  const Section section{*field.node, field.path, keys};
  ServedDimensions dimensions;
  for (const ServedDimension& each : kServedDimensions)
    if (const auto value = section.find(each.key))
      dimensions.*each.member = static_cast<int>(read_integer(*value, 1, each.high));
  for (const char* key : {"layers", "hidden", "intermediate", "heads", "vocabulary"})
    (void)section.require(key, "a served model without a preset needs its dimensions");
  if (dimensions.kv_heads == 0) dimensions.kv_heads = dimensions.heads;
  if (dimensions.head_size == 0) {
    if (dimensions.hidden % dimensions.heads != 0)
      fail_at(field.node->place,
              "{}.head_size is missing ({} does not divide hidden = {}). Give it.", field.path,
              dimensions.heads, dimensions.hidden);
    dimensions.head_size = dimensions.hidden / dimensions.heads;
  }
  return dimensions;
}

std::optional<ServedDimensions> read_served_model(const Section& section) {
  const auto field = section.find("model");
  if (!field) return std::nullopt;
  if (field->node->kind == ConfigNode::Kind::table) return read_served_dimensions(*field);
  std::vector<std::string> names;
  for (const ServedPreset& preset : served_presets()) names.push_back(preset.name);
  return served_presets()[read_choice(*field, names)].dimensions;
}

std::int64_t profile_number(const CsvLine& line, std::size_t word, const char* name,
                            std::int64_t most) {
  const std::string_view text = line.words[word];
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < 1 || value > most)
    line.refuse("{} \"{}\" is no whole number from 1 to {}. Give one.", name, shown(text), most);
  return value;
}

/// Without the blank that sets each line of a text in that a scenario holds.
std::string without_margin(std::string_view csv) {
  std::string text;
  for (std::size_t i = 0; i < csv.size(); ++i)
    if (csv[i] != ' ' || (i > 0 && csv[i - 1] != '\n')) text += csv[i];
  return text;
}

std::vector<PrefillPoint> read_profile(std::string_view csv, const std::string& source) {
  std::vector<PrefillPoint> points;
  bool named = false;
  each_csv_line(csv, source, [&](const CsvLine& line) {
    if (!named) {
      if (line.words != std::vector<std::string_view>{"tokens", "time_ns"})
        line.refuse("the first line is not \"tokens,time_ns\" (it names the columns). Add it.");
      named = true;
      return;
    }
    if (line.words.size() != 2)
      line.refuse("{} values (a line has tokens and time_ns). Give both.", line.words.size());
    const PrefillPoint point{profile_number(line, 0, "tokens", kMostTokens),
                             Duration{profile_number(line, 1, "time_ns", kLongestPrefill)}};
    if (!points.empty() && point.tokens <= points.back().tokens)
      line.refuse("{} tokens after {} (tokens ascend). Sort the lines.", point.tokens,
                  points.back().tokens);
    points.push_back(point);
  });
  if (points.empty())
    fail("{}: it has no times (a line \"tokens,time_ns\", then one for each size). Add them.",
         source);
  return points;
}

/// Refuses a degree whose share of the weights is too large; it names the smallest that fits.
void require_share_fits(const Section& section, const ServedModel& served) {
  const auto field = section.find("memory");
  if (!field) return;
  const Bytes memory = read_bytes(*field);
  if (!served.dimensions)
    fail_at(field->node->place,
            "prefill.memory needs prefill.model (weights follow from its dimensions). Add it.");
  const std::int64_t weights = served.dimensions->weights().count();
  const auto share = [&](std::int64_t stages) { return (weights + stages - 1) / stages; };
  if (share(served.stages) <= memory.count()) return;
  if (memory.count() == 0 || share(kMostStages) > memory.count())
    fail_at(field->node->place,
            "prefill.memory = {} bytes holds no share of the {} bytes of weights (in {} stages "
            "either). Give more.",
            memory.count(), weights, kMostStages);
  fail_at(field->node->place,
          "prefill.memory = {} bytes is less than the {} bytes of weights of a stage "
          "(prefill.stages = {}). Use {} stages or more.",
          memory.count(), share(served.stages), served.stages,
          (weights + memory.count() - 1) / memory.count());
}

void read_served_time(const ConfigNode& root, const Section& section, ServedModel& served,
                      std::string& held_text) {
  const auto profile = section.find("profile");
  const auto rate = section.find("achieved_flops");
  if (const auto field = section.find("floor")) {
    if (profile)
      fail_at(field->node->place,
              "prefill.floor and prefill.profile are both given (a profile is constant below its "
              "first size). Keep one.");
    served.floor = read_duration(*field);
  }
  if (profile) {
    if (rate)
      fail_at(rate->node->place,
              "prefill.achieved_flops and prefill.profile are both given (each says how long a "
              "prefill takes). Keep one.");
    const MeasuredText text = read_measured(root, *profile, kProfileKind);
    served.profile = read_profile(without_margin(text.text), text.name);
    if (held_text.find(text.held) == std::string::npos) held_text += text.held;
    return;
  }
  served.achieved_flops =
      read_flops(section.require("achieved_flops", "without a profile FLOPs say how long"));
  (void)section.require("model", "without a profile its dimensions say how many FLOPs");
}

/// prefill.decode: the link to the decode ranks, and what these hold.
DecodeLink read_decode(const Field& field) {
  if (field.node->kind != ConfigNode::Kind::table)
    fail_at(
        field.node->place,
        "prefill.decode is no table. Write decode = {{rate = \"100Gbps\"}}, and a [[service]] of "
        "role \"decode\" for each datacenter that serves.");
  const Section section{
      *field.node, field.path, {"rate", "latency", "slice", "slots", "first_token"}};
  DecodeLink decode;
  decode.rate =
      read_bandwidth(section.require("rate", "keys and values go over the datacenter's network"));
  if (const auto value = section.find("latency")) decode.latency = read_duration(*value);
  if (const auto value = section.find("slice")) decode.slice = read_bytes(*value);
  if (decode.slice < Bytes{1})
    fail_at(field.node->place, "prefill.decode.slice = 0 sends nothing. Give 1 byte or more.");
  if (const auto value = section.find("slots"))
    decode.slots = static_cast<int>(read_integer(*value, 1, 1'000'000));
  if (const auto value = section.find("first_token")) decode.first_token = read_duration(*value);
  return decode;
}

/// How prompts share passes, how far times spread, and where keys and values go.
void read_served_passes(const Section& section, ServedModel& served) {
  if (const auto field = section.find("chunk")) served.chunk = read_integer(*field, 1, kMostTokens);
  if (const auto field = section.find("batch"))
    served.batch = static_cast<int>(read_integer(*field, 1, 4096));
  if (const auto field = section.find("noise")) served.noise = read_number(*field, 0, 1);
  if (const auto field = section.find("attention_flops"))
    served.attention_flops = read_flops(*field);
  if (const auto field = section.find("prefix_cache")) {
    served.prefix_cache = read_bytes(*field);
    if (!served.dimensions)
      fail_at(field->node->place,
              "prefill.prefix_cache needs prefill.model (the size of a block follows from its "
              "dimensions). Add it, or leave prefix_cache out.");
  }
  if (const auto field = section.find("decode")) {
    served.decode = read_decode(*field);
    if (!served.dimensions)
      fail_at(field->node->place,
              "prefill.decode needs prefill.model (keys and values follow from its dimensions). "
              "Add it, or leave decode out.");
  }
}

/// Pipelines whose stages' bubbles follow each other as the stages of such a prompt do.
void read_skewed_for(const Section& section, ServedModel& served) {
  const auto field = section.find("skewed_for");
  if (!field) return;
  served.skewed_for = read_integer(*field, 1, kMostTokens);
  if (served.stages == 1)
    fail_at(field->node->place,
            "prefill.skewed_for has no effect with prefill.stages = 1 (a stage follows none). "
            "Leave it out.");
  if (!served.time(served.skewed_for))
    fail_at(field->node->place,
            "prefill.skewed_for = {} is more than the profile's last size, {}. Use {} or less.",
            served.skewed_for, served.profile.back().tokens, served.profile.back().tokens);
}

ServedModel read_served(const ConfigNode& root, const ConfigNode& table, std::string& held_text) {
  const Section section{table,
                        "prefill",
                        {"name", "model", "stages", "profile", "achieved_flops", "floor", "hop",
                         "guard", "memory", "slo_ttft", "chunk", "batch", "skewed_for", "noise",
                         "attention_flops", "prefix_cache", "decode"}};
  ServedModel served;
  served.dimensions = read_served_model(section);
  if (const auto field = section.find("model");
      field && field->node->kind != ConfigNode::Kind::table)
    served.name = read_text(*field);
  if (const auto field = section.find("name")) {
    served.name = read_text(*field);
    if (served.name.empty() || served.name != shown(served.name))
      fail_at(field->node->place,
              "prefill.name = \"{}\" is no name (1 to 60 characters in one line). Choose another.",
              shown(served.name));
  }
  if (served.name.empty()) served.name = "prefill";
  if (const auto field = section.find("stages"))
    served.stages = static_cast<int>(read_integer(*field, 1, kMostStages));
  if (served.dimensions && served.stages > served.dimensions->layers)
    fail_at(section.find("stages")->node->place,
            "prefill.stages = {} is more than the {} layers of {}. Use {} or less.", served.stages,
            served.dimensions->layers, served.name, served.dimensions->layers);
  read_served_time(root, section, served, held_text);
  if (const auto field = section.find("hop")) served.hop = read_duration(*field);
  if (const auto field = section.find("guard")) served.guard = read_duration(*field);
  if (const auto field = section.find("slo_ttft")) served.slo_ttft = read_duration(*field);
  if (const auto field = section.find("memory")) served.memory = read_bytes(*field);
  read_served_passes(section, served);
  read_skewed_for(section, served);
  require_share_fits(section, served);
  return served;
}

}  // namespace

std::string read_prefill(const ConfigNode& root, Scenario& scenario) {
  const ConfigNode* const given = root.find("prefill");
  if (given == nullptr) return {};
  std::string held_text;
  if (given->kind != ConfigNode::Kind::list) {
    if (given->kind != ConfigNode::Kind::table)
      fail_at(given->place, "prefill = {} is no table. Write [prefill].", to_text(*given));
    scenario.served.push_back(read_served(root, *given, held_text));
    return held_text;
  }
  std::set<std::string> names;
  for (const ConfigNode* const table : tables_of(root, "prefill")) {
    scenario.served.push_back(read_served(root, *table, held_text));
    if (!names.insert(scenario.served.back().name).second)
      fail_at(table->place, "there are two [[prefill]] \"{}\" (requests name them). Give names.",
              scenario.served.back().name);
  }
  return held_text;
}

}  // namespace longhaul::scenario
