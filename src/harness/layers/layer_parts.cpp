#include "harness/layers/layer_parts.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.hpp"
#include "nn/layers/chunk.hpp"
#include "nn/timed_tensor_ops.hpp"

namespace longhaul::harness {
namespace {

constexpr int kMicrobatches = 3;  // inputs that change, of a block after the other

/// Inputs and gradients of the microbatches of a round, made anew by copying.
struct Supply {
  Supply(nn::TensorOps& on, nn::DeviceMemory& from, const nn::ModelShape& shape)
      : math{on}, memory{from}, count{shape.boundary()} {
    for (MicrobatchId microbatch{}; microbatch < kMicrobatches; ++microbatch) {
      kept.push_back(from.take(count, "a benchmark's inputs"));
      on.fill_random(static_cast<std::uint64_t>(100 + microbatch), 1, kept.back().view());
    }
  }
  [[nodiscard]] std::vector<nn::Buffer> buffers() const {
    std::vector<nn::Buffer> made;
    for (const nn::Buffer& one : kept) {
      made.push_back(memory.take(count, "a benchmark's inputs"));
      math.copy(one.view(), made.back().view());
    }
    return made;
  }
  nn::TensorOps& math;
  nn::DeviceMemory& memory;
  std::size_t count;
  std::vector<nn::Buffer> kept{};
};

void expect_numbers(nn::TensorOps& math, nn::ArrayView view, const char* what) {
  std::vector<float> numbers(view.count);
  math.copy_out(view, numbers);
  double length = 0;
  for (const float number : numbers)
    length += static_cast<double>(number) * static_cast<double>(number);
  if (!std::isfinite(length) || length == 0)
    throw Error{fmt::format("{} of a layer are zero or no numbers (the device computes wrongly). "
                            "Run the tests.",
                            what),
                ExitCode::answer_is_no};
}

class Rounds {
public:
  Rounds(nn::TensorOps& math, nn::DeviceMemory& memory, const nn::ModelShape& shape,
         nn::Recompute recompute)
      : math_{math},
        chunk_{math, memory, shape, {1, 1}, recompute, 7},
        supply_{math, memory, shape} {}

  [[nodiscard]] double forward() {
    inputs_ = supply_.buffers();
    outputs_.clear();
    return each(
        [&](MicrobatchId m) { outputs_.push_back(chunk_.forward(m, {}, take(inputs_, m))); });
  }
  /// Forgets what forward() kept, as prefill does.
  void drop() {
    for (MicrobatchId microbatch{}; microbatch < kMicrobatches; ++microbatch)
      chunk_.drop(microbatch);
  }
  [[nodiscard]] double recompute() {
    return each([&](MicrobatchId m) { chunk_.recompute(m, {}); });
  }
  [[nodiscard]] double input_gradient() {
    inputs_ = supply_.buffers();
    outputs_.clear();
    return each([&](MicrobatchId m) {
      outputs_.push_back(chunk_.backward_input(m, {}, take(inputs_, m)));
    });
  }
  [[nodiscard]] double weight_gradient() {
    return each([&](MicrobatchId m) { chunk_.backward_weight(m, {}); });
  }
  [[nodiscard]] double backward() {
    inputs_ = supply_.buffers();
    outputs_.clear();
    return each(
        [&](MicrobatchId m) { outputs_.push_back(chunk_.backward(m, {}, take(inputs_, m))); });
  }
  void expect_results(const char* what) {
    for (const nn::Buffer& output : outputs_) expect_numbers(math_, output.view(), what);
  }
  void expect_weight_gradients() {
    for (const nn::Parameter& parameter : chunk_.parameters())
      expect_numbers(math_, parameter.gradient, "gradients of weights");
  }

private:
  static nn::Buffer take(std::vector<nn::Buffer>& buffers, MicrobatchId microbatch) {
    return std::move(buffers[index(microbatch)]);
  }
  [[nodiscard]] double each(const std::function<void(MicrobatchId)>& block) {
    const double seconds = time_once(math_, [&] {
      for (MicrobatchId microbatch{}; microbatch < kMicrobatches; ++microbatch) block(microbatch);
    });
    return seconds / kMicrobatches;
  }

  nn::TensorOps& math_;
  nn::Chunk chunk_;
  Supply supply_;
  std::vector<nn::Buffer> inputs_, outputs_;
};

}  // namespace

double time_once(nn::TensorOps& math, const std::function<void()>& work) {
  math.finish();
  const auto begin = std::chrono::steady_clock::now();
  work();
  math.finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<double> time_calls(nn::TensorOps& math, const TimingOptions& options,
                               const std::function<void(int)>& call) {
  int number = 0;
  const auto batch = [&](int calls) {
    return time_once(math, [&] {
      for (int i = 0; i < calls; ++i) call(number++);
    });
  };
  constexpr int kWarmUp = 3;
  constexpr double kMostCalls = 10'000;
  batch(kWarmUp);
  const double one = std::max(batch(kWarmUp) / kWarmUp, 1e-7);
  const auto calls =
      static_cast<int>(std::clamp(std::ceil(options.batch_seconds / one), 1.0, kMostCalls));
  std::vector<double> seconds;
  for (int sample = 0; sample < options.samples; ++sample) seconds.push_back(batch(calls) / calls);
  return seconds;
}

LayerFlops::LayerFlops(const nn::ModelShape& shape) {
  const double hidden = shape.hidden, tokens = static_cast<double>(shape.tokens());
  const double heads = static_cast<double>(shape.head_size()) * (shape.heads + 2 * shape.kv_heads);
  weights = 2 * tokens * hidden * (heads + hidden + 3.0 * shape.intermediate);
  attention = 2 * tokens * shape.sequence * hidden;
  down = 2 * tokens * hidden * shape.intermediate;
}

void check_flops(nn::TensorOps& math, const nn::ModelShape& shape) {
  nn::TimedTensorOps counting{math};
  nn::DeviceMemory memory{counting, 0};
  nn::Chunk chunk{counting, memory, shape, {1, 1}, nn::Recompute::off, 7};
  const Supply supply{counting, memory, shape};
  const LayerFlops flops{shape};
  const auto expect = [&](const char* block, double expected) {
    double counted = 0;
    for (const nn::TensorOpsCall& call : counting.take()) counted += call.flops;
    if (std::abs(counted - expected) > 1e-9 * expected)
      throw Error{fmt::format("{} of a layer takes {:.6g} FLOPs, and {:.6g} were counted (the "
                              "layer's calls have changed). Correct LayerFlops.",
                              block, counted, expected),
                  ExitCode::answer_is_no};
  };
  std::vector<nn::Buffer> inputs = supply.buffers(), gradients = supply.buffers();
  static_cast<void>(counting.take());
  const nn::Buffer output = chunk.forward(MicrobatchId{}, {}, std::move(inputs.front()));
  expect("F", flops.weights + flops.attention);
  const nn::Buffer gradient =
      chunk.backward_input(MicrobatchId{}, {}, std::move(gradients.front()));
  expect("D", flops.weights + 2 * flops.attention);
  chunk.backward_weight(MicrobatchId{}, {});
  expect("W", flops.weights);
  nn::Chunk again{counting, memory, shape, {1, 1}, nn::Recompute::on, 7};
  inputs = supply.buffers();
  const nn::Buffer last = again.forward(MicrobatchId{}, {}, std::move(inputs.front()));
  static_cast<void>(counting.take());
  again.recompute(MicrobatchId{}, {});
  expect("R", flops.weights + flops.attention - flops.down);
}

LayerPart time_forward(nn::TensorOps& math, nn::DeviceMemory& memory, const nn::ModelShape& shape,
                       int samples) {
  const LayerFlops flops{shape};
  LayerPart f{"block", "F", flops.weights + flops.attention, 0, {}};
  Rounds rounds{math, memory, shape, nn::Recompute::off};
  constexpr int kWarmUp = 2;
  for (int round = 0; round < samples + kWarmUp; ++round) {
    const double seconds = rounds.forward();
    if (round == 0) rounds.expect_results("outputs");
    if (round >= kWarmUp) f.seconds.push_back(seconds);
    rounds.drop();
  }
  return f;
}

std::vector<LayerPart> time_blocks(nn::TensorOps& math, nn::DeviceMemory& memory,
                                   const nn::ModelShape& shape, int samples) {
  const LayerFlops flops{shape};
  LayerPart f{"block", "F", flops.weights + flops.attention, 0, {}};
  LayerPart d{"block", "D", flops.weights + 2 * flops.attention, 0, {}};
  LayerPart w{"block", "W", flops.weights, 0, {}};
  LayerPart b{"block", "B", d.flops + w.flops, 0, {}};
  LayerPart r{"block", "R", f.flops - flops.down, 0, {}};
  constexpr int kWarmUp = 2;
  const auto keep = [](LayerPart& part, int round, double seconds) {
    if (round >= kWarmUp) part.seconds.push_back(seconds);
  };
  {
    Rounds rounds{math, memory, shape, nn::Recompute::off};
    for (int round = 0; round < samples + kWarmUp; ++round) {
      keep(f, round, rounds.forward());
      if (round == 0) rounds.expect_results("outputs");
      keep(d, round, rounds.input_gradient());
      if (round == 0) rounds.expect_results("gradients");
      keep(w, round, rounds.weight_gradient());
      static_cast<void>(rounds.forward());
      keep(b, round, rounds.backward());
    }
    rounds.expect_weight_gradients();
  }
  Rounds rounds{math, memory, shape, nn::Recompute::on};
  for (int round = 0; round < samples + kWarmUp; ++round) {
    static_cast<void>(rounds.forward());
    keep(r, round, rounds.recompute());
    static_cast<void>(rounds.backward());
  }
  return {f, d, w, b, r};
}

std::vector<std::vector<double>> time_forward_beside(nn::TensorOps& math, nn::DeviceMemory& memory,
                                                     const nn::ModelShape& shape,
                                                     const TimingOptions& options,
                                                     const std::vector<Beside>& beside) {
  Rounds rounds{math, memory, shape, nn::Recompute::off};
  const auto forward = [&] {
    const double seconds = rounds.forward();
    rounds.drop();
    return seconds;
  };
  static_cast<void>(forward());  // algorithms are chosen
  rounds.expect_results("outputs");
  constexpr double kMostRounds = 1000;
  const double round = kMicrobatches * forward();
  const auto count =
      static_cast<int>(std::clamp(std::ceil(options.batch_seconds / round), 1.0, kMostRounds));
  std::vector<std::vector<double>> seconds(beside.size());
  for (int sample = 0; sample < options.samples; ++sample)
    for (std::size_t which = 0; which < beside.size(); ++which)
      beside[which]([&] {
        double sum = 0;
        for (int i = 0; i < count; ++i) sum += forward();
        seconds[which].push_back(sum / count);
      });
  return seconds;
}

}  // namespace longhaul::harness
