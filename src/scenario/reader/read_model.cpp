#include <algorithm>

#include "scenario/presets.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

/// A whole number of the model and the range that it must lie in.
struct Dimension {
  const char* key;
  int Model::*member;
  int high;
  int low = 1;
};

constexpr Dimension kDimensions[] = {
    {"layers", &Model::layers, 10'000},
    {"hidden", &Model::hidden, 1 << 18},
    {"intermediate", &Model::intermediate, 1 << 20},
    {"heads", &Model::heads, 1 << 12},
    {"kv_heads", &Model::kv_heads, 1 << 12},
    {"vocabulary", &Model::vocabulary, 1 << 24, 0},
    {"sequence_length", &Model::sequence_length, 1 << 24},
    {"microbatch_size", &Model::microbatch_size, 1 << 12},
    {"tensor_parallel", &Model::tensor_parallel, 1 << 10},
};

std::vector<std::string> known_keys() {
  std::vector<std::string> keys{
      "preset", "name",      "achieved_flops", "peak_flops", "memory_bandwidth", "layers_per_stage",
      "mlp",    "positions", "attention",      "biases",     "precision"};
  for (const Dimension& dimension : kDimensions) keys.emplace_back(dimension.key);
  return keys;
}

const ModelPreset* read_preset(const Section& section) {
  const auto field = section.find("preset");
  if (!field) return nullptr;
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) names.push_back(preset.model.name);
  return &model_presets()[read_choice(*field, names)];
}

/// Measured times hold for the shape that was measured; layers may be any number of the same.
void refuse_change_of_measured(const Section& section, const std::string& preset) {
  for (const std::string& key : known_keys()) {
    if (key == "preset" || key == "name" || key == "peak_flops" || key == "memory_bandwidth" ||
        key.starts_with("layers"))
      continue;
    if (const auto field = section.find(key))
      fail_at(field->node->place,
              "{} cannot be set (the times of {} were measured at its own dimensions). Remove it, "
              "or use a preset without measured times.",
              field->path, preset);
  }
}

void require_dimensions(const Section& section) {
  constexpr std::string_view kWhy = "a model without a preset needs its dimensions";
  for (const char* key : {"layers", "hidden", "intermediate", "heads", "sequence_length"})
    (void)section.require(key, kWhy);
}

void read_dimensions(const Section& section, Model& model) {
  for (const Dimension& dimension : kDimensions) {
    if (const auto field = section.find(dimension.key))
      model.*dimension.member =
          static_cast<int>(read_integer(*field, dimension.low, dimension.high));
  }
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.kv_heads > model.heads)
    fail_at(section.place(),
            "the model has {} kv_heads and {} heads (groups share a kv_head). Use "
            "at most as many kv_heads as heads.",
            model.kv_heads, model.heads);
}

/// Of which operators a layer is.
void read_kinds(const Section& section, Model& model) {
  if (const auto field = section.find("mlp")) model.mlp = read_choice<MlpKind>(*field);
  if (const auto field = section.find("positions"))
    model.positions = read_choice<PositionKind>(*field);
  if (const auto field = section.find("attention"))
    model.attention = read_choice<AttentionKind>(*field);
  if (const auto field = section.find("biases")) model.biases = read_boolean(*field);
  if (const auto field = section.find("precision"))
    model.precision = read_choice<Precision>(*field);
}

}  // namespace

std::optional<LoadedModel> read_model(const ConfigNode& root) {
  const auto section = section_of(root, "model", known_keys());
  if (!section) return std::nullopt;
  LoadedModel loaded{{}, {}, section->place()};
  if (const ModelPreset* preset = read_preset(*section)) {
    loaded.model = preset->model;
    loaded.measured = preset->measured;
    if (preset->measured) refuse_change_of_measured(*section, preset->model.name);
  } else {
    require_dimensions(*section);
    loaded.model.name = "custom";
  }
  read_dimensions(*section, loaded.model);
  read_kinds(*section, loaded.model);
  loaded.model.selective_recompute = read_recompute(root) == RecomputeKind::selective;
  if (const auto field = section->find("name")) loaded.model.name = read_text(*field);
  if (const auto field = section->find("achieved_flops"))
    loaded.model.achieved_flops = read_flops(*field);
  if (const auto field = section->find("peak_flops")) loaded.model.peak_flops = read_flops(*field);
  if (const auto field = section->find("memory_bandwidth"))
    loaded.model.memory_bandwidth = read_bandwidth(*field);
  return loaded;
}

}  // namespace longhaul::scenario
