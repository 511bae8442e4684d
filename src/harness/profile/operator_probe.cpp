#include "harness/profile/operator_probe.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "harness/profile/stage_probe.hpp"

namespace longhaul::harness {
namespace {

constexpr nn::BlockPart kWholeOperator{};
constexpr int kWarmUpOperators = 1;
constexpr float kLearningRate = 1e-6F;  // weights stay what they are, nearly

/// Collects calls by what they are.
class Operators {
public:
  void add(const std::string& part, const std::string& block, std::vector<nn::TensorOpsCall> calls,
           bool first) {
    for (nn::TensorOpsCall& call : calls) {
      OperatorTimes& times = find(part, block, call);
      if (first) ++times.calls;
      times.samples.push_back(static_cast<double>(call.time.count()));
      if (call.range != 0) times.ranges.push_back(call.range);
    }
  }
  [[nodiscard]] std::vector<OperatorTimes> take() { return std::move(all_); }

private:
  OperatorTimes& find(const std::string& part, const std::string& block, nn::TensorOpsCall& call) {
    const auto same = [&](const OperatorTimes& known) {
      return known.part == part && known.block == block && known.call.operation == call.operation &&
             known.call.shape == call.shape && known.call.type == call.type;
    };
    const auto at = std::ranges::find_if(all_, same);
    if (at != all_.end()) return *at;
    all_.push_back({part, block, call, 0, {}});
    return all_.back();
  }
  std::vector<OperatorTimes> all_;
};

/// One layer of its own, every call of which is timed.
class LayerProbe {
public:
  LayerProbe(nn::TensorOps& math, const nn::ModelShape& shape, const ModelPart& part,
             nn::Recompute recompute, cuda::TaskTrace* trace)
      : math_{math, trace},
        memory_{math_, 0},
        shape_{shape},
        tokens_{synthetic_tokens(shape.tokens(), shape.vocabulary)},
        input_{memory_.take(shape.boundary(), "bench_profile: input")},
        gradient_{memory_.take(shape.boundary(), "bench_profile: gradient")},
        chunk_{math_, memory_, shape, part.layers, recompute, 1},
        name_{part.name} {
    math_.fill_random(1, 1, input_.view());
    math_.fill_random(2, 1 / static_cast<float>(shape.tokens()), gradient_.view());
    chunk_.set_loss_scale(1 / static_cast<float>(shape.tokens()));
  }

  /// F, D, W, or, with recomputation, R.
  void round(Operators& operators, nn::Recompute recompute, int number) {
    begin();
    nn::Buffer input = chunk_.holds_embedding() ? nn::Buffer{} : copy_of(input_);
    keep([&] { (void)chunk_.forward(MicrobatchId{}, kWholeOperator, std::move(input)); }, "F",
         recompute == nn::Recompute::off, operators, number);
    if (recompute == nn::Recompute::on)
      keep([&] { chunk_.recompute(MicrobatchId{}, kWholeOperator); }, "R", true, operators, number);
    nn::Buffer gradient = chunk_.holds_head() ? nn::Buffer{} : copy_of(gradient_);
    const bool whole = recompute == nn::Recompute::off;
    keep([&] { (void)chunk_.backward_input(MicrobatchId{}, kWholeOperator, std::move(gradient)); },
         "D", whole, operators, number);
    keep([&] { chunk_.backward_weight(MicrobatchId{}, kWholeOperator); }, "W", whole, operators,
         number);
  }

  void update(Operators& operators, int number) {
    const std::size_t count = chunk_.all_masters().count;
    const nn::Buffer mean = memory_.take(count, NumberType::f32, "bench_profile: mean");
    const nn::Buffer square = memory_.take(count, NumberType::f32, "bench_profile: square");
    math_.zero(mean.view());
    math_.zero(square.view());
    (void)math_.take();
    keep(
        [&] {
          math_.sgd(kLearningRate, chunk_.all_gradients(), chunk_.all_masters(),
                    chunk_.all_weights());
          math_.adamw({.learning_rate = kLearningRate}, chunk_.all_gradients(), mean.view(),
                      square.view(), chunk_.all_masters(), chunk_.all_weights());
        },
        "update", true, operators, number);
  }

private:
  void begin() {
    chunk_.begin_iteration();
    if (chunk_.holds_embedding()) chunk_.set_tokens(MicrobatchId{}, tokens_);
    if (chunk_.holds_head()) chunk_.set_targets(MicrobatchId{}, tokens_);
  }

  nn::Buffer copy_of(const nn::Buffer& from) {
    nn::Buffer copy = memory_.take(shape_.boundary(), "bench_profile: what passes");
    math_.copy(from.view(), copy.view());
    return copy;
  }

  /// Rounds below 0 warm up.
  template <typename Work>
  void keep(Work work, const char* block, bool wanted, Operators& operators, int number) {
    (void)math_.take();
    work();
    auto calls = math_.take();
    if (wanted && number >= 0) operators.add(name_, block, std::move(calls), number == 0);
  }

  nn::TimedTensorOps math_;
  nn::DeviceMemory memory_;
  nn::ModelShape shape_;
  std::vector<std::int32_t> tokens_;
  nn::Buffer input_, gradient_;
  nn::Chunk chunk_;
  std::string name_;
};

template <typename Value>
double sum_of(const std::vector<OperatorTimes>& operators, const std::string& part,
              const std::string& block, Value value) {
  double sum = 0;
  for (const OperatorTimes& one : operators)
    if (one.part == part && one.block == block) sum += one.calls * value(one);
  return sum;
}

}  // namespace

std::vector<ModelPart> parts_of(const nn::ModelShape& shape) {
  std::vector<ModelPart> parts{{"embedding", {0, 1}, 1}};
  if (shape.layers > 2) parts.push_back({"layer", {1, 1}, shape.layers - 2});
  parts.push_back({"head", {shape.layers - 1, 1}, 1});
  return parts;
}

std::vector<OperatorTimes> operator_times(nn::TensorOps& math, const nn::ModelShape& shape,
                                          int samples, cuda::TaskTrace* trace) {
  Operators operators;
  for (const ModelPart& part : parts_of(shape)) {
    for (const nn::Recompute recompute : {nn::Recompute::off, nn::Recompute::on}) {
      LayerProbe probe{math, shape, part, recompute, trace};
      for (int i = -kWarmUpOperators; i < samples; ++i) probe.round(operators, recompute, i);
      if (recompute == nn::Recompute::on) continue;
      for (int i = -kWarmUpOperators; i < samples; ++i) probe.update(operators, i);
    }
  }
  return operators.take();
}

OperatorTimes smallest_operator(nn::TensorOps& math, int samples, cuda::TaskTrace* trace) {
  nn::TimedTensorOps timed{math, trace};
  nn::DeviceMemory memory{timed, 0};
  const nn::Buffer number = memory.take(1, "bench_profile: one number");
  timed.zero(number.view());
  Operators operators;
  for (int i = -kWarmUpOperators; i < samples; ++i) {
    (void)timed.take();
    timed.add(number.view(), number.view(), number.view());
    if (i >= 0) operators.add("none", "none", timed.take(), i == 0);
  }
  return operators.take().front();
}

std::string operators_csv(const std::vector<OperatorTimes>& operators) {
  std::string text =
      "part,block,operator,shape,type,calls,n,median_ns,low_ns,high_ns,min_ns,flops,bytes\n";
  for (const OperatorTimes& one : operators) {
    const SampleSummary summary = summarize(one.samples);
    const auto& interval = summary.median_interval;
    const auto end = [&](double Interval::*which) {
      return interval ? fmt::format("{:.0f}", *interval.*which) : std::string{};
    };
    text +=
        fmt::format("{},{},{},{},{},{},{},{:.0f},{},{},{:.0f},{:.0f},{:.0f}\n", one.part, one.block,
                    one.call.operation, one.call.shape, longhaul::to_string(one.call.type),
                    one.calls, summary.n, summary.median, end(&Interval::low), end(&Interval::high),
                    summary.min, one.call.flops, one.call.bytes);
  }
  return text;
}

double block_time(const std::vector<OperatorTimes>& operators, const std::string& part,
                  const std::string& block) {
  return sum_of(operators, part, block,
                [](const OperatorTimes& one) { return summarize(one.samples).median; });
}

double block_flops(const std::vector<OperatorTimes>& operators, const std::string& part,
                   const std::string& block) {
  return sum_of(operators, part, block, [](const OperatorTimes& one) { return one.call.flops; });
}

}  // namespace longhaul::harness
