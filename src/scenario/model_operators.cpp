#include "scenario/model_operators.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::scenario {
namespace {

constexpr double kNumberBytes = 2;  // bf16

/// What an operator does in one block: FLOPs, and numbers that pass through memory.
struct Work {
  double flops = 0;
  double numbers = 0;
};

/// Writes the operators of one layer after the other.
class OperatorWriter {
public:
  explicit OperatorWriter(const Model& model)
      : hidden_{static_cast<double>(model.hidden)},
        qkv_{static_cast<double>(layer_widths(model).qkv)},
        intermediate_{static_cast<double>(model.intermediate)},
        vocabulary_{static_cast<double>(model.vocabulary)},
        sequence_{static_cast<double>(model.sequence_length)},
        tokens_{static_cast<double>(layer_widths(model).tokens)},
        flops_{model.achieved_flops * model.tensor_parallel},
        gated_{model.mlp == MlpKind::swiglu},
        scores_again_{model.computes_scores_again()},
        bytes_{model.memory_bandwidth.bits_per_second() / 8 * model.tensor_parallel} {}

  void decoder(int layer) {
    layer_ = layer;
    norm("attention_norm");
    matmul("qkv", hidden_, qkv_);
    attention();
    matmul("output", hidden_, hidden_);
    norm("feedforward_norm");
    if (gated_) {
      matmul("gate_up", hidden_, 2 * intermediate_);
      swiglu();
    } else {
      matmul("up", hidden_, intermediate_);
      gelu();
    }
    matmul("down", intermediate_, hidden_);
  }

  void embedding(int layer) {
    layer_ = layer;
    if (vocabulary_ == 0) return whole_layer("embedding");
    // Rows of the table are read and written; their gradients are added to those of the table.
    add("embedding", OperatorKind::elementwise, vocabulary_ * hidden_, {0, 2 * tokens_ * hidden_},
        {}, {0, 3 * tokens_ * hidden_});
  }

  void head(int layer) {
    layer_ = layer;
    if (vocabulary_ == 0) return whole_layer("head");
    norm("head_norm");
    matmul("head", hidden_, vocabulary_);
    add("loss", OperatorKind::elementwise, 0, {0, 2 * tokens_ * vocabulary_}, {}, {});
  }

  [[nodiscard]] std::vector<Operator> take() { return std::move(all_); }

private:
  [[nodiscard]] Duration time(const Work& work) const {
    constexpr double kLongest = 0x1p44;  // so that sums stay in 64 bits
    const double seconds = std::max(work.flops / flops_, work.numbers * kNumberBytes / bytes_);
    return Duration{std::llround(std::min(seconds * 1e9, kLongest))};
  }

  void add(const char* name, OperatorKind kind, double weights, Work forward, Work dgrad,
           Work wgrad) {
    all_.push_back({name, kind, layer_, Bytes{std::llround(kNumberBytes * weights)}, time(forward),
                    time(dgrad), time(wgrad), time(forward)});
  }

  /// y[tokens, out] = x[tokens, in] w[in, out]: two products of the same size in the backward.
  void matmul(const char* name, double in, double out) {
    const Work product{2 * tokens_ * in * out, tokens_ * (in + out) + in * out};
    add(name, OperatorKind::matmul, in * out, product, product, product);
  }

  void norm(const char* name) {
    const double row = tokens_ * hidden_;
    add(name, OperatorKind::normalization, hidden_, {0, 2 * row}, {0, 3 * row}, {});
  }

  /// Two products of 2 s^2 d each, half of it masked; both inputs of both need a gradient.
  void attention() {
    const double flops = 2 * tokens_ * sequence_ * hidden_;
    add("attention", OperatorKind::attention, 0, {flops, tokens_ * (qkv_ + hidden_)},
        {2 * flops, tokens_ * 2 * (qkv_ + hidden_)}, {});
    if (scores_again_) all_.back().dgrad += all_.back().forward;
  }

  void swiglu() {
    const double numbers = tokens_ * intermediate_;
    add("swiglu", OperatorKind::elementwise, 0, {0, 3 * numbers}, {0, 5 * numbers}, {});
  }

  void gelu() {
    const double numbers = tokens_ * intermediate_;
    add("gelu", OperatorKind::elementwise, 0, {0, 2 * numbers}, {0, 3 * numbers}, {});
  }

  void whole_layer(const char* name) {
    const std::size_t before = all_.size();
    decoder(layer_);
    Operator sum{name, OperatorKind::matmul, layer_, {}, {}, {}, {}, {}};
    for (std::size_t i = before; i < all_.size(); ++i) {
      sum.weights += all_[i].weights;
      for (auto part : {&Operator::forward, &Operator::dgrad, &Operator::wgrad})
        sum.*part += all_[i].*part;
    }
    sum.recompute = sum.forward;
    all_.resize(before);
    all_.push_back(std::move(sum));
  }

  double hidden_, qkv_, intermediate_, vocabulary_, sequence_, tokens_;
  double flops_;  ///< of the device, a second
  bool gated_, scores_again_;
  double bytes_;  ///< likewise
  int layer_ = 0;
  std::vector<Operator> all_;
};

}  // namespace

LayerWidths layer_widths(const Model& model) {
  const auto keys = static_cast<std::int64_t>(model.hidden) * model.kv_heads / model.heads;
  return {model.hidden, static_cast<int>(model.hidden + 2 * keys), model.intermediate,
          model.vocabulary,
          static_cast<std::int64_t>(model.microbatch_size) * model.sequence_length};
}

std::vector<Operator> model_operators(const Model& model) {
  OperatorWriter writer{model};
  for (int layer = 0; layer < model.layers; ++layer) {
    if (model.decoders_alone && model.vocabulary == 0)
      writer.decoder(layer);
    else if (layer == 0 && model.layers > 1)
      writer.embedding(layer);
    else if (layer + 1 == model.layers && model.layers > 1)
      writer.head(layer);
    else
      writer.decoder(layer);
  }
  return writer.take();
}

Costs operator_costs(const std::vector<Operator>& operators, const std::vector<int>& count) {
  LONGHAUL_ASSERT(std::cmp_equal(std::accumulate(count.begin(), count.end(), std::int64_t{0}),
                                 operators.size()),
                  "{} operators on {} stages", operators.size(), count.size());
  Costs costs;
  auto next = operators.begin();
  for (const int of_stage : count) {
    Operator sum;
    for (const auto end = next + of_stage; next != end; ++next) {
      sum.weights += next->weights;
      for (auto part :
           {&Operator::forward, &Operator::dgrad, &Operator::wgrad, &Operator::recompute})
        sum.*part += (*next).*part;
    }
    costs.forward.push_back(sum.forward);
    costs.dgrad.push_back(sum.dgrad);
    costs.wgrad.push_back(sum.wgrad);
    costs.backward.push_back(sum.dgrad + sum.wgrad);
    costs.recompute.push_back(sum.recompute);
    costs.weights.push_back(sum.weights);
  }
  return costs;
}

std::vector<int> evenly(int count, int parts) {
  std::vector<int> result(to_size(parts), count / parts);
  for (int i = 0; i < count % parts; ++i) ++result[at(i)];
  return result;
}

std::vector<int> operators_of_layers(const std::vector<Operator>& operators,
                                     const std::vector<int>& layers_of_stages) {
  std::vector<int> counts;
  auto next = operators.begin();
  int end = 0;
  for (const int layers : layers_of_stages) {
    end += layers;
    const auto last = std::find_if(next, operators.end(),
                                   [&](const Operator& each) { return each.layer >= end; });
    counts.push_back(static_cast<int>(last - next));
    next = last;
  }
  return counts;
}

std::vector<int> operators_of_stages(const Scenario& scenario) {
  const std::vector<Operator>& all = *scenario.operators.all;
  if (all.front().layer >= 0) return operators_of_layers(all, scenario.layers);
  return evenly(static_cast<int>(all.size()), scenario.parallel.stages);
}

Scenario without_collectives(const Scenario& scenario) {
  Scenario result = scenario;
  if (!scenario.operators.known()) return result;
  auto kept = std::make_shared<std::vector<Operator>>(*scenario.operators.all);
  const auto removed = std::erase_if(
      *kept, [](const Operator& each) { return each.kind == OperatorKind::collective; });
  if (removed == 0) return result;
  result.operators.all = kept;
  if (!scenario.operators.are_costs) return result;
  const Costs before = operator_costs(*scenario.operators.all, operators_of_stages(scenario));
  const Costs after = operator_costs(*kept, operators_of_stages(result));
  for (auto times :
       {&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad, &Costs::recompute})
    for (std::size_t stage = 0; stage < (result.costs.*times).size(); ++stage)
      (result.costs.*times)[stage] =
          portion((scenario.costs.*times)[stage], (after.*times)[stage], (before.*times)[stage]);
  return result;
}

}  // namespace longhaul::scenario
