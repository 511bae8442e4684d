#include "harness/prefill/served_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::harness {
namespace {

/// Lines about wrong prompts that are kept: more say nothing more.
constexpr std::size_t kNamed = 4;

/// Of the prompt's first tokens, as the decode rank has them.
constexpr std::int64_t received_id(std::int64_t request) { return -1 - request; }

/// The largest; infinite where there are not as many, or some is no number.
double difference(std::span<const float> found, std::span<const float> expected) {
  if (found.size() != expected.size()) return HUGE_VAL;
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double by = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    if (!std::isfinite(by)) return HUGE_VAL;
    most = std::max(most, by);
  }
  return most;
}

std::span<const float> numbers_at(const std::map<std::size_t, std::vector<float>>& of_stages,
                                  std::size_t stage) {
  const auto found = of_stages.find(stage);
  return found == of_stages.end() ? std::span<const float>{} : std::span{found->second};
}

nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json{};
}

}  // namespace

nlohmann::ordered_json served_json(const ServedReport& report) {
  nlohmann::ordered_json json{
      {"prompts", report.prompts},
      {"tokens", report.tokens},
      {"allowed_difference", ServedReport::kAllowed},
      {"logits_largest_difference", finite_or_null(report.logits_difference)}};
  const bool sends = report.kv_bytes > 0 || !report.kv_equal;
  json["kv_bytes"] = report.kv_bytes;
  json["kv_bytes_equal"] = sends ? nlohmann::ordered_json(report.kv_equal) : nullptr;
  json["kv_largest_difference"] = sends ? finite_or_null(report.kv_difference) : nullptr;
  json["decoded_tokens"] = report.decoded;
  json["decoded_equal"] = sends ? nlohmann::ordered_json(report.decoded_equal) : nullptr;
  json["wrong_prompts"] = report.wrong_prompts;
  return json;
}

ServedCheck::ServedCheck(const PlannedStretches& planned)
    : planned_{planned},
      math_{nn::make_cpu_math()},
      memory_{std::make_unique<nn::DeviceMemory>(*math_, 0)} {
  for (std::size_t i = 0; i < planned.served.size(); ++i) {
    const nn::ModelShape shape = served_shape(planned.served[i].model);
    models_.push_back({std::make_unique<nn::ServedLayers>(*math_, *memory_, shape,
                                                          nn::LayerRange{0, shape.layers},
                                                          served_seed(planned.scenario, i)),
                       shape.layers - 2});
  }
}

void ServedCheck::check(const FilledStretch& stretch, const StretchOutcome& outcome,
                        const ServedNumbers& numbers) {
  const auto& stages = stretch.filled.stages;
  std::size_t first = 0;
  for (const PlayedRequest& each : outcome.requests) {
    const std::size_t decision = stages[first].placed.decision;
    std::size_t past = first;
    while (past < stages.size() && stages[past].placed.decision == decision) ++past;
    const Prompt prompt{stretch, stretch.decisions[decision], std::exchange(first, past), past};
    if (!each.is_done) continue;
    ++report_.prompts;
    report_.tokens += each.tokens;
    const std::string why = why_wrong(prompt, numbers);
    model_of(prompt).layers->forget(each.request);
    model_of(prompt).layers->forget(received_id(each.request));
    if (why.empty()) continue;
    ++report_.wrong_prompts;
    if (report_.wrong.size() < kNamed)
      report_.wrong.push_back(fmt::format("prompt {}: {}", each.request, why));
  }
}

std::string ServedCheck::why_wrong(const Prompt& prompt, const ServedNumbers& numbers) {
  const std::vector<float> expected = prefill(prompt);
  const double by = difference(numbers_at(numbers.logits, prompt.past - 1), expected);
  report_.logits_difference = std::max(report_.logits_difference, by);
  std::string why;
  if (!(by <= ServedReport::kAllowed))
    why = fmt::format("the logits of its last token differ by {:g} from one rank's", by);
  if (!planned_.served[prompt.decision.model].model.decode) return why;
  for (const std::string& more :
       {compare_keys(prompt, numbers), compare_tokens(prompt, numbers, expected)})
    if (!more.empty()) why += (why.empty() ? "" : ", ") + more;
  return why;
}

std::vector<float> ServedCheck::pass(Model& model, std::int64_t prompt,
                                     std::span<const std::int32_t> tokens) const {
  nn::ServedPass pass = model.layers->read({{prompt, tokens.size()}}, tokens);
  for (int layer = 1; layer <= model.decoders; ++layer) model.layers->compute(pass, layer);
  return model.layers->logits(pass, 0);
}

std::vector<float> ServedCheck::prefill(const Prompt& prompt) {
  Model& model = model_of(prompt);
  const prefill::Decision& own = prompt.decision;
  model.layers->begin(own.request, to_size(own.tokens) + ServedReport::kDecoded);
  return pass(model, own.request,
              prompt_tokens(planned_.scenario.run.seed, own.request, own.tokens,
                            model.layers->shape().vocabulary));
}

std::string ServedCheck::compare_keys(const Prompt& prompt, const ServedNumbers& numbers) {
  Model& model = model_of(prompt);
  const ServedModel& served = planned_.served[prompt.decision.model].model;
  bool equal = true;
  double most = 0;
  for (std::size_t i = prompt.first; i < prompt.past; ++i) {
    const prefill::PlacedStage& stage = prompt.stretch.filled.stages[i].placed;
    const nn::LayerRange range = served_range(served, stage.stage);
    std::vector<float> expected;
    for (int layer = std::max(1, range.first);
         layer < range.first + range.count && layer <= model.decoders; ++layer) {
      const auto own = model.layers->keys_and_values(prompt.decision.request, layer,
                                                     to_size(stage.context), to_size(stage.tokens));
      expected.insert(expected.end(), own.begin(), own.end());
    }
    const auto sent = numbers_at(numbers.sent, i), received = numbers_at(numbers.received, i);
    most = std::max(most, difference(sent, expected));
    report_.kv_bytes += static_cast<std::int64_t>(received.size_bytes());
    equal = equal && !sent.empty() && sent.size() == received.size() &&
            std::memcmp(sent.data(), received.data(), sent.size_bytes()) == 0;
  }
  report_.kv_difference = std::max(report_.kv_difference, most);
  report_.kv_equal = report_.kv_equal && equal;
  if (!equal) return "keys and values are not those that were sent";
  if (!(most <= ServedReport::kAllowed))
    return fmt::format("keys and values differ by {:g} from one rank's", most);
  return {};
}

std::vector<std::int32_t> ServedCheck::decode(Model& model, std::int64_t prompt,
                                              std::vector<float> logits) const {
  std::vector<std::int32_t> tokens{nn::largest_of(logits)};
  for (int i = 0; i < ServedReport::kDecoded; ++i)
    tokens.push_back(nn::largest_of(pass(model, prompt, std::span{tokens}.last(1))));
  return tokens;
}

/// The first token follows from the last stage's logits, the others from keys and values.
std::string ServedCheck::compare_tokens(const Prompt& prompt, const ServedNumbers& numbers,
                                        std::vector<float> expected) {
  Model& model = model_of(prompt);
  const ServedModel& served = planned_.served[prompt.decision.model].model;
  const auto logits = numbers_at(numbers.logits, prompt.past - 1);
  const std::int64_t id = received_id(prompt.decision.request);
  model.layers->begin(id, to_size(prompt.decision.tokens) + ServedReport::kDecoded);
  bool complete = !logits.empty();
  std::map<int, std::vector<float>> of_layers;
  for (std::size_t i = prompt.first; i < prompt.past; ++i) {
    const prefill::PlacedStage& stage = prompt.stretch.filled.stages[i].placed;
    const auto received = numbers_at(numbers.received, i);
    const int layers = prefill::layers_of_stage(served, stage.stage);
    const std::size_t of_layer = to_size(stage.tokens) * model.layers->kept_width();
    complete = complete && received.size() == of_layer * to_size(layers);
    if (!complete) break;
    const int first = std::max(1, served_range(served, stage.stage).first);
    for (int layer = 0; layer < layers; ++layer) {
      const auto part = received.subspan(to_size(layer) * of_layer, of_layer);
      auto& all = of_layers[first + layer];
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  report_.decoded += ServedReport::kDecoded;
  bool equal = complete && std::ssize(of_layers) == model.decoders;
  if (equal) {
    for (const auto& [layer, kept] : of_layers) model.layers->put_keys_and_values(id, layer, kept);
    equal = decode(model, id, {logits.begin(), logits.end()}) ==
            decode(model, prompt.decision.request, std::move(expected));
  }
  report_.decoded_equal = report_.decoded_equal && equal;
  return equal ? std::string{} : "the tokens decoded from them are not one rank's";
}

}  // namespace longhaul::harness
