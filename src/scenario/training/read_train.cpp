#include "scenario/training/read_train.hpp"

#include <cmath>
#include <filesystem>

#include "base/index.hpp"
#include "base/kept_share.hpp"
#include "base/suggest.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/training/activation_sizes.hpp"
#include "scenario/training/training_presets.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kMostTrainParts = 255;  // Block::parts
constexpr std::int64_t kMostStaleness = 16;
constexpr std::int64_t kMostSteps = 1 << 20;
constexpr MeasuredKind kPartCostsKind{"train.costs.file", "profiles", "costs",
                                      "the file of measured costs of parts",
                                      "what bench_compress --costs wrote"};

int read_int(const Field& field, std::int64_t low, std::int64_t high) {
  return static_cast<int>(read_integer(field, low, high));
}

/// A share of the numbers, as 0.01 or "1%".
double read_kept_share(const Field& field) {
  double share = 0;
  if (field.node->kind == ConfigNode::Kind::text) {
    const std::optional<double> read = kept_share_in(field.node->text);
    if (!read)
      fail_at(field.node->place, "{} = \"{}\" is no share. Write \"1%\", or 0.01.", field.path,
              shown(field.node->text));
    share = *read;
  } else {
    share = read_number(field, -1e300, 1e300);
  }
  if (!is_kept_share(share))
    fail_at(field.node->place,
            "{} = {} is out of range (more than none of the numbers are kept, at most all). Write "
            "\"1%\", say.",
            field.path, to_text(*field.node));
  return share;
}

std::string read_preset_name(const Field& field) {
  const std::string name = model_name(read_text(field));
  if (find_training_preset(name) != nullptr) return name;
  std::vector<std::string> known;
  for (const TrainingPreset& each : training_presets()) known.push_back(each.name);
  fail_at(field.node->place, "{} = \"{}\" is unknown (no model of that name has a preset). {}",
          field.path, shown(read_text(field)), suggestion(name, known));
}

/// "loss=2.3" or "error=5%".
TrainingTarget read_target(const Field& field) {
  const std::string text = read_text(field);
  const std::size_t equals = text.find('=');
  const auto kind = from_string<TargetKind>(text.substr(0, equals));
  std::size_t end = 0;
  TrainingTarget target;
  if (kind && equals != std::string::npos) {
    target.kind = *kind;
    try {
      target.value = std::stod(text.substr(equals + 1), &end);
    } catch (const std::exception&) {
      end = 0;
    }
    const std::string rest = text.substr(equals + 1).substr(end);
    if (end > 0 && rest == "%") target.value /= 100;
    if (rest != "" && rest != "%") end = 0;
  }
  if (end == 0 || !std::isfinite(target.value) || target.value <= 0)
    fail_at(field.node->place,
            "{} = \"{}\" is no target (a validation loss or error above zero is one). Write "
            "\"loss=2.3\" or \"error=0.1\".",
            field.path, shown(text));
  return target;
}

GradientCompression read_compress(const ConfigNode& table) {
  const Section section{
      table,
      "train.compress",
      {"method", "keep", "block", "feedback", "values", "index", "exchange", "share"}};
  GradientCompression compress;
  if (const auto field = section.find("method"))
    compress.method = read_choice<CompressMethod>(*field);
  if (const auto field = section.find("keep")) compress.keep = read_kept_share(*field);
  if (const auto field = section.find("feedback")) compress.feedback = read_boolean(*field);
  if (const auto field = section.find("values")) compress.values = read_choice<SetValues>(*field);
  if (const auto field = section.find("index")) compress.index = read_choice<SetIndex>(*field);
  if (const auto field = section.find("exchange"))
    compress.exchange = read_choice<SetExchange>(*field);
  if (const auto field = section.find("share")) compress.share = read_choice<KeptShare>(*field);
  if (const auto field = section.find("block")) {
    compress.block = read_int(*field, 1, 16);
    if (!is_kept_block(compress.block))
      fail_at(field->node->place, "{} = {} is no size of a block. Use 1, 2, 4, 8 or 16.",
              field->path, compress.block);
  }
  return compress;
}

/// `activations` and what there is to say of it.
std::optional<ActivationCompression> read_activations(const Section& section) {
  std::optional<ActivationCompression> activations;
  if (const auto field = section.find("activations"))
    activations = {.format = read_choice<ActivationFormat>(*field)};
  for (const char* const key : {"activations_keep", "activations_feedback"}) {
    const auto field = section.find(key);
    if (!field) continue;
    if (!activations || activations->format != ActivationFormat::topk)
      fail_at(field->node->place,
              "{} changes nothing without train.activations = \"topk\". Leave it out.",
              field->path);
    if (key == std::string_view{"activations_keep"})
      activations->keep = read_kept_share(*field);
    else
      activations->feedback = read_choice<ActivationFeedback>(*field);
  }
  return activations;
}

/// One time for all parts, or one for each.
std::vector<Duration> read_part_times(const Field& field, int parts) {
  if (field.node->kind != ConfigNode::Kind::list) return {read_duration(field)};
  const auto values = elements(field);
  if (std::ssize(values) != parts)
    fail_at(field.node->place,
            "{} has {} values (train.parts = {}). Give one value for each part, or one for all.",
            field.path, values.size(), parts);
  std::vector<Duration> times;
  for (const Field& value : values) times.push_back(read_duration(value));
  return times;
}

void read_part_costs(const Section& section, int parts, PartCosts& costs) {
  for (std::size_t i = 0; i < std::size(kPartCosts); ++i)
    if (const auto field = section.find(kPartCostNames[i]))
      costs.*kPartCosts[i] = read_part_times(*field, parts);
}

/// Of [train.costs]: its own keys replace those of its file.
std::string read_train_costs(const ConfigNode& root, const ConfigNode& table, Training& train) {
  std::vector<std::string> keys(std::begin(kPartCostNames), std::end(kPartCostNames));
  std::vector<std::string> known = keys;
  known.emplace_back("file");
  const Section section{table, "train.costs", known};
  std::string held;
  if (const auto file = section.find("file"); file && file->node->text != "") {
    const MeasuredText source = read_measured(root, *file, kPartCostsKind);
    const ConfigNode tree =
        parse_toml(source.text, std::make_shared<const std::string>(source.name));
    keys.emplace_back("measured");  // where it was measured: for people
    read_part_costs(Section{tree, "", keys}, train.parts, train.costs);
    held = source.held;
  }
  read_part_costs(section, train.parts, train.costs);
  return held;
}

TrainingAdaptation read_adapt(const ConfigNode& root, const ConfigNode& table) {
  const Section section{
      table,
      "train.adapt",
      {"every", "estimate", "changes", "lambda", "scale", "probes", "most_batch"}};
  TrainingAdaptation adapt;
  if (const auto field = section.find("every")) adapt.every = read_int(*field, 0, kMostSteps);
  if (const auto field = section.find("estimate"))
    adapt.estimate = read_choice<BandwidthEstimate>(*field);
  if (const auto field = section.find("changes"))
    adapt.changes = read_choice<AdaptedSettings>(*field);
  if (const auto field = section.find("lambda")) adapt.lambda = read_number(*field, 0, 1e9);
  if (const auto field = section.find("scale")) adapt.scale = read_number(*field, 0, 1e9);
  if (const auto field = section.find("most_batch"))
    adapt.most_batch = read_int(*field, 1, kMostSteps);
  if (const auto field = section.find("probes")) {
    const std::string name =
        read_file_name(*field, "a table with model, version, batch, compression_rate and g");
    adapt.probes = (std::filesystem::path{*root.place.origin}.parent_path() / name).string();
  }
  return adapt;
}

/// One for all replicas, or one for each.
std::vector<int> read_batch(const Field& field, int replicas) {
  const auto count = [](const Field& item) { return read_int(item, 1, kMostSteps); };
  if (field.node->kind != ConfigNode::Kind::list)
    return std::vector<int>(to_size(replicas), count(field));
  std::vector<int> batch;
  for (const Field& item : elements(field)) batch.push_back(count(item));
  if (std::ssize(batch) != replicas)
    fail_at(field.node->place,
            "{} has {} counts (parallel.replicas = {}). Give one for each replica, or one for all.",
            field.path, batch.size(), replicas);
  return batch;
}

void read_counts(const Section& section, Training& train) {
  const auto read = [&](const char* key, int& value, std::int64_t low, std::int64_t high) {
    if (const auto field = section.find(key)) value = read_int(*field, low, high);
  };
  read("parts", train.parts, 1, kMostTrainParts);
  read("staleness", train.staleness, 0, kMostStaleness);
  read("host_threads", train.host_threads, 1, 1 << 10);
  read("buffers", train.buffers, 1, 2);
  read("local_steps", train.local_steps, 1, kMostSteps);
}

/// What sums of nodes are not made for.
void refuse_gather(const Section& section, const Training& train) {
  if (train.gather == GradientGather::none) return;
  const auto refuse = [&](const char* key, const std::string& value, const char* why) {
    fail_at(section.find("gather")->node->place,
            "train.gather = \"{}\" beside {} = {} ({}). Leave one of both out.",
            to_string(train.gather), key, value, why);
  };
  if (train.local_steps > 1)
    refuse("train.local_steps", fmt::format("{}", train.local_steps),
           "replicas of a node have one sum and one step of it");
  if (train.adapt.every > 0)
    refuse("train.adapt.every", fmt::format("{}", train.adapt.every),
           "the controller reckons with a set of each replica");
}

}  // namespace

std::string read_train(const ConfigNode& root, Scenario& scenario) {
  const ConfigNode* const table = root.find("train");
  if (table == nullptr) return "";
  const Section section{
      *table, "train", {"parts",  "batch",        "hetero",           "staleness",
                        "serve",  "host_threads", "buffers",          "local_steps",
                        "gather", "message",      "preset",           "stands_for",
                        "target", "lambda",       "compress",         "costs",
                        "adapt",  "activations",  "activations_keep", "activations_feedback"}};
  Training& train = scenario.train;
  read_counts(section, train);
  // A local step is one microbatch of the whole model, and an iteration ends with the exchange.
  if (train.local_steps > 1 && scenario.parallel.stages == 1 && scenario.parallel.microbatches == 1)
    scenario.parallel.microbatches = train.local_steps;
  if (const auto field = section.find("batch"))
    train.batch = read_batch(*field, scenario.parallel.replicas);
  if (const auto field = section.find("serve"))
    train.serve =
        read_choice(*field, {"deadline", "arrival"}) == 0 ? Serve::deadline : Serve::arrival;
  if (const auto field = section.find("gather")) train.gather = read_choice<GradientGather>(*field);
  if (const auto field = section.find("message")) {
    train.message = read_bytes(*field);
    if (*train.message < 1_B)
      fail_at(field->node->place, "{} holds nothing. Give what a part sends.", field->path);
  }
  if (const auto field = section.find("preset")) train.preset = read_preset_name(*field);
  if (const auto field = section.find("stands_for")) train.stands_for = read_preset_name(*field);
  if (const auto field = section.find("target")) train.target = read_target(*field);
  if (const auto field = section.find("lambda")) train.lambda = read_number(*field, 0, 1e9);
  if (const auto field = section.find("compress")) train.compress = read_compress(*field->node);
  if (const auto field = section.find("adapt")) train.adapt = read_adapt(root, *field->node);
  refuse_gather(section, train);
  train.activations = read_activations(section);
  divide_batches_of_gpus(root, scenario);
  const auto costs = section.find("costs");
  return costs ? read_train_costs(root, *costs->node, train) : "";
}

void resize_activations(const ConfigNode& root, Scenario& scenario) {
  if (!scenario.train.activations) return;
  const ConfigNode& node = *root.find("train")->find("activations");
  if (const std::string_view why = why_no_activations(scenario); !why.empty())
    fail_at(node.place, "train.activations = {} ({}). Leave it out.", to_text(node), why);
  std::vector<const ConfigNode*> tables = tables_of(root, "replica");
  if (const ConfigNode* const costs = root.find("costs")) tables.push_back(costs);
  for (const ConfigNode* const table : tables)
    if (const ConfigNode* const message = table->find("message"))
      fail_at(message->place,
              "message = {} beside train.activations = {} (both say how long messages between "
              "stages are). Leave one out.",
              to_text(*message), to_text(node));
  send_activations_as(scenario, *scenario.train.activations);
}

std::vector<std::string> read_gpu_names(const Field& field) {
  const auto read = [](const Field& item) {
    const std::string name = gpu_name(read_text(item));
    const std::vector<std::string> known = training_gpus();
    if (std::ranges::find(known, name) == known.end())
      fail_at(item.node->place, "{} = \"{}\" is unknown (its throughput is not known). {}",
              item.path, shown(read_text(item)), suggestion(name, known));
    return name;
  };
  if (field.node->kind != ConfigNode::Kind::list) return {read(field)};
  std::vector<std::string> names;
  for (const Field& item : elements(field)) names.push_back(read(item));
  if (names.empty()) fail_at(field.node->place, "{} = [] names no GPU. Name one.", field.path);
  return names;
}

}  // namespace longhaul::scenario
