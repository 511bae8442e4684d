#include "harness/layers/prefill_times.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/program/option_values.hpp"
#include "base/statistics/sample.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "harness/layers/layer_options.hpp"
#include "harness/layers/layer_parts.hpp"
#include "nn/layers/chunk.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

constexpr int kLongestPrompt = 1 << 20;

/// A model's decoder layers, and a prompt's input.
class PrefillPass {
public:
  PrefillPass(nn::TensorOps& math, nn::DeviceMemory& memory, const ServedDimensions& model,
              int tokens)
      : math_{math},
        memory_{memory},
        shape_{1,           tokens,         model.hidden,     model.intermediate,
               model.heads, model.kv_heads, model.vocabulary, model.layers + 2},
        chunk_{math, memory, shape_, {1, model.layers}, nn::Recompute::forward_only, 7},
        kept_{memory.take(shape_.boundary(), "a prompt")} {
    math.fill_random(19, 1, kept_.view());
  }

  [[nodiscard]] double seconds() {
    nn::Buffer input = memory_.take(shape_.boundary(), "a prompt");
    math_.copy(kept_.view(), input.view());
    const double time =
        time_once(math_, [&] { output_ = chunk_.forward(MicrobatchId{0}, {}, std::move(input)); });
    return time;
  }
  void expect_output() {
    std::vector<float> numbers(output_.view().count);
    math_.copy_out(output_.view(), numbers);
    double square = 0;
    for (const float number : numbers) square += static_cast<double>(number) * number;
    if (!std::isfinite(square) || square == 0)
      throw Error{
          "a prefill's output is zero or no numbers (the device computes wrongly). Run the "
          "tests.",
          ExitCode::answer_is_no};
  }

private:
  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  nn::ModelShape shape_;
  nn::Chunk chunk_;
  nn::Buffer kept_, output_;
};

/// Attention of one layer over so many tokens of one prompt.
class AttentionPass {
public:
  AttentionPass(nn::TensorOps& math, nn::DeviceMemory& memory, const ServedDimensions& model,
                int tokens)
      : math_{math},
        shape_{1, tokens, model.heads, model.kv_heads, model.head_size},
        qkv_{memory.take(shape_.tokens() * shape_.width(), "queries, keys and values")},
        out_{memory.take(shape_.tokens() * to_size(model.hidden), "attention's output")},
        sums_{memory.take(shape_.tokens() * to_size(model.heads), NumberType::f32, "sums")} {
    math.fill_random(23, 1, qkv_.view());
    static_cast<void>(seconds());
  }
  [[nodiscard]] double seconds() {
    return time_once(math_,
                     [&] { math_.attention(shape_, qkv_.view(), out_.view(), sums_.view()); });
  }

private:
  nn::TensorOps& math_;
  nn::AttentionShape shape_;
  nn::Buffer qkv_, out_, sums_;
};

std::vector<double> seconds_after(nn::TensorOps& math, nn::DeviceMemory& memory,
                                  const ServedDimensions& model, int tokens, int context,
                                  int samples) {
  PrefillPass pass{math, memory, model, tokens};
  AttentionPass both{math, memory, model, context + tokens}, before{math, memory, model, context},
      own{math, memory, model, tokens};
  static_cast<void>(pass.seconds());
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) {
    const double more = both.seconds() - before.seconds() - own.seconds();
    seconds.push_back(pass.seconds() + model.layers * std::max(0.0, more));
  }
  return seconds;
}

std::vector<int> ascending_lengths(const char* option, const std::string& text) {
  std::vector<int> lengths;
  for (const std::string& word : words_of(text, ',')) {
    const int length = whole_number(option, word, 1, kLongestPrompt);
    if (!lengths.empty() && length <= lengths.back())
      fail("{}: {} does not exceed {} before it. Give lengths in ascending order.", option, length,
           lengths.back());
    lengths.push_back(length);
  }
  return lengths;
}

Duration prefill_duration(double seconds) { return Duration{std::llround(seconds * 1e9)}; }

}  // namespace

double PrefillTimes::quantile(double share) const {
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  return longhaul::quantile(sorted, share);
}

PrefillLengths prefill_lengths(const std::string& tokens, const std::string& contexts) {
  PrefillLengths lengths{ascending_lengths("--prefill", tokens), {}};
  if (!contexts.empty()) lengths.contexts = ascending_lengths("--contexts", contexts);
  return lengths;
}

std::vector<PrefillTimes> time_prefills(nn::TensorOps& math, nn::DeviceMemory& memory,
                                        const ServedDimensions& model,
                                        const PrefillLengths& lengths, int samples) {
  if (model.heads * model.head_size != model.hidden)
    fail(
        "prefill.model: {} heads of {} are not the hidden size {}, which layers here need. Name "
        "another model.",
        model.heads, model.head_size, model.hidden);
  std::vector<PrefillTimes> times;
  for (const int tokens : lengths.tokens) {
    PrefillPass pass{math, memory, model, tokens};
    static_cast<void>(pass.seconds());
    pass.expect_output();
    PrefillTimes& own = times.emplace_back();
    own.tokens = tokens;
    for (int i = 0; i < samples; ++i) own.seconds.push_back(pass.seconds());
  }
  for (const int context : lengths.contexts)
    for (const int tokens : lengths.tokens)
      times.push_back(
          {tokens, context, seconds_after(math, memory, model, tokens, context, samples)});
  return times;
}

std::string prefill_csv(const std::vector<PrefillTimes>& times, const std::string& about) {
  std::string csv = fmt::format("# {}\ntokens,time_ns\n", about);
  for (const PrefillTimes& each : times)
    if (each.context == 0)
      csv += fmt::format("{},{}\n", each.tokens, prefill_duration(each.quantile(0.5)).count());
  return csv;
}

nlohmann::ordered_json prefill_times_json(const std::vector<PrefillTimes>& times) {
  auto json = nlohmann::ordered_json::array();
  for (const PrefillTimes& each : times)
    json.push_back({{"tokens", each.tokens},
                    {"context", each.context},
                    {"samples", each.seconds.size()},
                    {"p50_ns", prefill_duration(each.quantile(0.5)).count()},
                    {"p99_ns", prefill_duration(each.quantile(0.99)).count()},
                    {"p99_over_p50", each.quantile(0.99) / each.quantile(0.5)}});
  return json;
}

std::string prefill_times_table(const std::vector<PrefillTimes>& times) {
  Table table{{{"tokens"}, {"after"}, {"samples"}, {"p50"}, {"p99"}, {"p99 / p50"}}};
  for (const PrefillTimes& each : times)
    table.add_row({std::to_string(each.tokens), std::to_string(each.context),
                   std::to_string(each.seconds.size()),
                   to_text(prefill_duration(each.quantile(0.5))),
                   to_text(prefill_duration(each.quantile(0.99))),
                   fmt::format("{:.3f}", each.quantile(0.99) / each.quantile(0.5))});
  return table.text();
}

void profile_prefills(nn::TensorOps& math, const SharedOptions& options,
                      const std::string& scenario, const PrefillLengths& lengths, int samples) {
  const Scenario of = scenario::load_scenario(scenario, options.overrides);
  if (of.served.empty() || !of.served.front().dimensions)
    fail("{}: there is no [prefill] with a model. Add one.", scenario);
  if (!options.out.empty()) {
    std::filesystem::create_directories(options.out);
    report::require_new_file(options.out / "prefill.csv");
    report::require_new_file(options.out / "record.json");
  }
  nn::DeviceMemory memory{math, 0};
  const auto times = time_prefills(math, memory, *of.served.front().dimensions, lengths, samples);
  auto record = report::record_header(
      {.benchmark = "bench_profile", .numbers = "measured", .command_line = options.command_line});
  record["scenario_text"] = of.text;
  const std::string device = options.device == "cuda" ? gpu_name(0) : options.device;
  record["device"] = device;
  record["prefill"] = prefill_times_json(times);
  fmt::print("{}", options.json ? record.dump(2) + "\n" : prefill_times_table(times));
  if (options.out.empty()) return;
  const std::string about = fmt::format("measured at {}: {} ({}; decoder layers alone)",
                                        git_commit(), options.command_line, device);
  report::write_new_file(options.out / "prefill.csv",
                         [&](std::ostream& out) { out << prefill_csv(times, about); });
  report::write_new_file(options.out / "record.json",
                         [&](std::ostream& out) { out << record.dump(2) << "\n"; });
}

}  // namespace longhaul::harness
