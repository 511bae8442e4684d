#include "scenario/reader/costs_file.hpp"

#include "base/index.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {
namespace {

const std::vector<std::string> kCosts{"forward",   "backward",   "dgrad",   "wgrad",
                                      "recompute", "activation", "message", "weights"};

struct CostsDimension {
  const char* key;
  int Model::*member;
};
constexpr CostsDimension kCostsDimensions[] = {
    {"layers", &Model::layers},
    {"hidden", &Model::hidden},
    {"intermediate", &Model::intermediate},
    {"heads", &Model::heads},
    {"kv_heads", &Model::kv_heads},
    {"vocabulary", &Model::vocabulary},
    {"sequence_length", &Model::sequence_length},
    {"microbatch_size", &Model::microbatch_size},
};

std::vector<std::string> model_keys() {
  std::vector<std::string> keys{"layers_of_stages"};
  for (const CostsDimension& dimension : kCostsDimensions) keys.emplace_back(dimension.key);
  return keys;
}

constexpr MeasuredKind kCostsKind{"costs.file", "profiles", "costs", "the file of measured costs",
                                  "what bench_profile wrote"};

/// The origin of the measurement: shown to people, checked for its types alone.
void check_measured(const ConfigNode& tree) {
  const auto section =
      section_of(tree, "measured",
                 {"device", "number_type", "schedule", "chunks", "ranks", "samples",
                  "widest_interval", "message_time", "when", "command", "commit"});
  if (!section) return;
  for (const char* key : {"device", "number_type", "schedule", "when", "command", "commit"})
    if (const auto field = section->find(key)) (void)read_text(*field);
  for (const char* key : {"chunks", "ranks", "samples"})
    if (const auto field = section->find(key)) (void)read_integer(*field, 1, 1 << 30);
  if (const auto field = section->find("widest_interval")) (void)read_number(*field, 0, 1e9);
  if (const auto field = section->find("message_time")) (void)read_duration(*field);
}

void check_keys(const ConfigNode& tree) {
  std::vector<std::string> known{kCosts};
  for (const char* key : {"stages", "model", "measured"}) known.emplace_back(key);
  const Section top{tree, "", known};
  constexpr std::string_view kWhy = "this is no file of measured costs without it";
  (void)top.require("stages", kWhy);
  (void)top.require("forward", kWhy);
  (void)top.require("model", "it says what was measured");
  const auto model = section_of(tree, "model", model_keys());
  for (const std::string& key : model_keys()) (void)model->require(key, kWhy);
  check_measured(tree);
}

}  // namespace

CostsFile::CostsFile(ConfigNode tree, std::string held_text)
    : tree_{std::move(tree)}, held_text_{std::move(held_text)} {}

std::optional<CostsFile> CostsFile::include(ConfigNode& root,
                                            std::span<const std::string> overrides) {
  for (const std::string& option : overrides) {
    std::string path = option.substr(0, option.find('='));
    std::erase(path, ' ');
    if (path == "costs.file") apply_override(root, option);
  }
  ConfigNode* const costs = root.find("costs");
  if (costs == nullptr || costs->kind != ConfigNode::Kind::table) return std::nullopt;
  const ConfigNode* const named = costs->find("file");
  if (named == nullptr) return std::nullopt;
  if (named->kind == ConfigNode::Kind::text && named->text.empty()) return std::nullopt;
  MeasuredText source = read_measured(root, {named, kCostsKind.key}, kCostsKind);
  CostsFile file{parse_toml(source.text, std::make_shared<const std::string>(source.name)),
                 std::move(source.held)};
  check_keys(file.tree_);
  for (const std::string& key : kCosts) {
    const ConfigNode* const value = file.tree_.find(key);
    if (value != nullptr && costs->find(key) == nullptr) assign(*costs, key, *value);
  }
  return file;
}

bool CostsFile::is_included(std::string_view toml, std::span<const std::string> overrides) {
  std::string plain{toml};
  const EmbeddedFiles held = take_held_files(plain, "");
  ConfigNode root = parse_toml(plain, std::make_shared<const std::string>());
  add_held_files(root, held);
  return include(root, overrides).has_value();
}

void CostsFile::require_same(const char* key, int scenario) const {
  const Field field{tree_.find("model")->find(key), fmt::format("model.{}", key)};
  const std::int64_t measured = read_integer(field, 0, 1 << 30);
  if (measured != scenario)
    fail_at(field.node->place,
            "the costs are of a model with {} = {}, the scenario's has {} (times and sizes hold "
            "for one model). Measure it with bench_profile, or name another costs.file.",
            key, measured, scenario);
}

void CostsFile::require_fit(const std::optional<LoadedModel>& model,
                            const Scenario& scenario) const {
  const int stages = scenario.parallel.stages;
  const Field field{tree_.find("stages"), "stages"};
  const std::int64_t measured = read_integer(field, 1, 1 << 20);
  if (measured != stages)
    fail_at(field.node->place,
            "the costs are of {} stages, the scenario has {} (parallel.stages). Measure it with "
            "bench_profile, or name another costs.file.",
            measured, stages);
  if (!model) return;
  for (const CostsDimension& dimension : kCostsDimensions)
    require_same(dimension.key, model->model.*dimension.member);
  const Field list{tree_.find("model")->find("layers_of_stages"), "model.layers_of_stages"};
  const auto layers =
      read_per_stage(list, stages, [](const Field& one) { return read_integer(one, 0, 1 << 20); });
  for (int stage = 0; stage < stages; ++stage) {
    const auto s = at(stage);
    if (layers[s] != scenario.layers[s])
      fail_at(list.node->place,
              "the costs are of {} layers on stage {}, the scenario puts {} there "
              "(model.layers_per_stage). Measure it with bench_profile, or name another "
              "costs.file.",
              layers[s], stage, scenario.layers[s]);
  }
}

}  // namespace longhaul::scenario
