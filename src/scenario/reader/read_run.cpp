#include <limits>

#include "base/index.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

constexpr double kMostStraggling = 1000;

std::vector<double> read_stragglers(const Field& field, int stages) {
  const auto factor = [](const Field& item) {
    return read_number(item, 1 / kMostStraggling, kMostStraggling);
  };
  if (field.node->kind != ConfigNode::Kind::table) {
    (void)elements(field);  // a single factor for all is noise of the costs, not a straggler
    return read_per_stage(field, stages, factor);
  }
  std::vector<double> factors(to_size(stages), 1.0);
  for (const ConfigEntry& entry : field.node->entries) {
    ConfigNode ranges;  // the key is an index or a range, as in datacenter.stages
    ranges.kind = ConfigNode::Kind::text;
    ranges.place = entry.place;
    ranges.text = entry.key;
    const std::string path = field.path + "." + shown(entry.key);
    for (const auto& [stage, _] : read_indices({&ranges, path}, stages))
      factors[at(stage)] = factor({&entry.value, path});
  }
  return factors;
}

std::optional<Section> memory_section(const ConfigNode& root) {
  return section_of(root, "memory", {"budget", "capacity", "static", "recompute"});
}

}  // namespace

std::optional<Section> section_of(const ConfigNode& root, const std::string& name,
                                  std::vector<std::string> known) {
  const ConfigNode* table = root.find(name);
  if (table == nullptr) return std::nullopt;
  return Section{*table, name, std::move(known)};
}

RecomputeKind read_recompute(const ConfigNode& root) {
  const auto section = memory_section(root);
  const auto field = section ? section->find("recompute") : std::nullopt;
  if (!field) return RecomputeKind::none;
  if (field->node->kind != ConfigNode::Kind::text)
    return read_boolean(*field) ? RecomputeKind::full : RecomputeKind::none;
  if (field->node->text == to_string(RecomputeKind::selective)) return RecomputeKind::selective;
  fail_at(field->node->place,
          "memory.recompute = \"{}\" is none of true, false and \"selective\" (all of a forward, "
          "nothing, or attention's scores are computed again). Write one of them.",
          shown(field->node->text));
}

Memory read_memory(const ConfigNode& root, int stages, bool activation_known) {
  const auto section = memory_section(root);
  Memory memory;
  memory.capacity.resize(to_size(stages));
  memory.fixed.resize(to_size(stages));
  if (!section) return memory;
  const auto read = [](const Field& field) { return std::optional{read_bytes(field)}; };
  if (const auto field = section->find("budget")) memory.budget = read_number(*field, 1e-6, 1e6);
  memory.recompute = read_recompute(root) == RecomputeKind::full;
  if (const auto field = section->find("static"))
    memory.fixed = read_per_stage(*field, stages, read);
  if (const auto field = section->find("capacity")) {
    memory.capacity = read_per_stage(*field, stages, read);
    if (!activation_known)
      fail_at(field->node->place,
              "memory.capacity needs costs.activation (without a model nothing "
              "tells what a microbatch keeps). Add costs.activation.");
  }
  return memory;
}

Run read_run(const ConfigNode& root, int stages) {
  const auto section = section_of(
      root, "run", {"iterations", "warmup", "seed", "time_scale", "noise", "stragglers"});
  Run run;
  if (!section) return run;
  constexpr int kMostIterations = 1'000'000;
  if (const auto field = section->find("iterations"))
    run.iterations = static_cast<int>(read_integer(*field, 1, kMostIterations));
  if (const auto field = section->find("warmup"))
    run.warmup = static_cast<int>(read_integer(*field, 0, kMostIterations));
  if (const auto field = section->find("seed"))
    run.seed = static_cast<std::uint64_t>(
        read_integer(*field, 0, std::numeric_limits<std::int64_t>::max()));
  if (const auto field = section->find("time_scale"))
    run.time_scale = read_number(*field, 1e-6, 1e6);
  if (const auto field = section->find("noise")) run.noise = read_number(*field, 0, 1);
  if (const auto field = section->find("stragglers"))
    run.stragglers = read_stragglers(*field, stages);
  return run;
}

}  // namespace longhaul::scenario
