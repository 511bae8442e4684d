#include "scenario/reader/load.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/index.hpp"
#include "base/text_file.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/files/link_trace.hpp"
#include "scenario/reader/costs_file.hpp"
#include "scenario/reader/network_file.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/reader/stored_text.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/search_section.hpp"
#include "scenario/training/read_train.hpp"

namespace longhaul::scenario {
namespace {

std::string read_name(const ConfigNode& root, const std::string& source) {
  const auto section = section_of(root, "scenario", {"name"});
  const auto field = section ? section->find("name") : std::nullopt;
  if (!field) return std::filesystem::path{source}.stem().string();
  const std::string name = read_text(*field);
  if (name.empty() || name != shown(name))
    fail_at(field->node->place,
            "scenario.name = \"{}\" is no name (it stands in tables: 1 to 60 "
            "characters in one line). Choose another.",
            shown(name));
  return name;
}

/// Appends what the stream has, in pieces, until the text is as long as `size`.
void read_up_to(std::size_t size, std::istream& stream, std::string& text) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (text.size() < size && stream) {
    const std::size_t before = text.size();
    text.resize(std::min(size, before + kPiece));
    stream.read(text.data() + before, static_cast<std::streamsize>(text.size() - before));
    text.resize(before + to_size(stream.gcount()));
  }
}

/// At most one byte more than is accepted, whatever the file is.
std::string read_file(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    fail("{}: this is a directory (a scenario is a TOML file). Name the file.", file.string());
  refuse_named_pipe(file);
  std::ifstream stream{file, std::ios::binary};
  if (!stream)
    fail("{}: the file cannot be read ({}). Check its name and permissions.", file.string(),
         std::generic_category().message(errno));
  std::string text;
  read_up_to(kLargestText + 1, stream, text);
  // A text that holds files, out of a record.
  if (text.size() > kLargestText && holds_files(text))
    read_up_to(kLargestText + kLargestTraces + 1, stream, text);
  return text;
}

/// A text as it is read: files that it holds or names included, overrides written in.
struct ScenarioTree {
  ConfigNode root;
  std::optional<CostsFile> costs;
  std::optional<NetworkFile> network;
};

ScenarioTree tree_of(std::string_view toml, const std::string& source,
                     std::span<const std::string> overrides) {
  std::string plain{toml};
  const EmbeddedFiles held = take_held_files(plain, source);
  ScenarioTree tree{parse_toml(plain, std::make_shared<const std::string>(source)), {}, {}};
  add_held_files(tree.root, held);
  tree.costs = CostsFile::include(tree.root, overrides);
  tree.network = NetworkFile::include(tree.root, overrides);
  for (const std::string& option : overrides) apply_override(tree.root, option);
  return tree;
}

}  // namespace

ConfigNode scenario_tree(std::string_view toml, const std::string& source,
                         std::span<const std::string> overrides) {
  return tree_of(toml, source, overrides).root;
}

Scenario parse_scenario(std::string_view toml, const std::string& source,
                        std::span<const std::string> overrides, Placing placing) {
  const ScenarioTree tree = tree_of(toml, source, overrides);
  const ConfigNode& root = tree.root;
  const Section known{
      root, "", {"scenario", "model",    "costs",   "parallel", "memory",  "datacenter",
                 "wan",      "link",     "node",    "network",  "overlap", "replica",
                 "service",  "operator", "prefill", "run",      "traces",  "profiles",
                 "levels",   "regions",  "train",   "search"}};
  Scenario scenario;
  scenario.name = read_name(root, source);
  scenario.text = without_stored_options(toml);
  const auto model = read_model(root);
  scenario.parallel = read_parallel(root, model);
  const int stages = scenario.parallel.stages;
  if (model) scenario.model = model->model;
  read_placement(root, placing, scenario);
  scenario.text += read_train(root, scenario);
  read_services(root, scenario);
  if (model) scenario.layers = read_layers(root, *model, scenario);
  if (tree.costs) {
    tree.costs->require_fit(model, scenario);
    scenario.text += tree.costs->held_text();
  }
  const LoadedOperators operators = read_operators(root, model, scenario);
  scenario.operators = operators.operators;
  scenario.text += operators.held_text;
  LoadedCosts costs = read_costs(root, model, scenario, operators.optimizer);
  scenario.costs = std::move(costs.costs);
  read_replicas(root, scenario);
  scenario.memory = read_memory(root, stages, costs.activation_known);
  read_network(root, scenario, costs.message_known);
  if (tree.network) {
    tree.network->require_fit(scenario);
    scenario.text += tree.network->held_text();
  }
  resize_activations(root, scenario);
  scenario.overlap = read_overlap(root);
  scenario.pieces = read_overlap_pieces(root);
  scenario.text += read_prefill(root, scenario);
  scenario.run = read_run(root, stages);
  (void)read_search(root);
  check_scenario(root, scenario, costs.weights_known);
  check_batches(root, scenario, placing == Placing::optional);
  store_overrides(scenario.text, overrides);
  return scenario;
}

Scenario load_scenario(const std::filesystem::path& file, std::span<const std::string> overrides,
                       Placing placing) {
  return parse_scenario(read_file(file), file.string(), overrides, placing);
}

}  // namespace longhaul::scenario
