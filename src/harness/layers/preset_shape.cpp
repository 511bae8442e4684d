#include "base/error.hpp"
#include "harness/layers/layer_parts.hpp"
#include "scenario/presets.hpp"

namespace longhaul::harness {

nn::ModelShape preset_shape(const std::string& model, int tokens, int vocabulary) {
  if (model == "tiny") return {1, tokens, 64, 176, 4, 2, 200, 3};
  for (const scenario::ModelPreset& preset : scenario::model_presets()) {
    const Model& of = preset.model;
    if (of.name != model) continue;
    const int tokens_known = of.vocabulary > 0 ? of.vocabulary : vocabulary;
    return {1, tokens, of.hidden, of.intermediate, of.heads, of.kv_heads, tokens_known, 3};
  }
  fail("--model {} is no model. Name tiny, m8, m70, or another of docs/scenario.md.", model);
}

}  // namespace longhaul::harness
