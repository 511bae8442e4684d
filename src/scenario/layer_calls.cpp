#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/needed_operators.hpp"

namespace longhaul::scenario {
namespace {

/// Numbers of one parameter; all lie side by side, each from a multiple of 64 on.
std::int64_t aligned(std::int64_t count) { return (count + 63) / 64 * 64; }

std::int64_t divided(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

/// Widths of a layer on one of its tensor ranks.
class RankShapes {
public:
  RankShapes(const Model& model, const LayerLayout& layout)
      : model_{model},
        layout_{layout},
        tokens{std::int64_t{model.microbatch_size} * model.sequence_length},
        hidden{model.hidden},
        head_size{model.hidden / model.heads},
        heads{model.heads / layout.tensor},
        kv_heads{std::max(1, model.kv_heads / layout.tensor)},
        qkv{(heads + 2 * std::int64_t{kv_heads}) * head_size},
        own{std::int64_t{heads} * head_size},
        intermediate{model.intermediate / layout.tensor},
        up{intermediate * (model.mlp == MlpKind::swiglu ? 2 : 1)},
        vocabulary{divided(model.vocabulary, layout.tensor)},
        normed_rows{layout.sequence_parallel ? divided(tokens, layout.tensor) : tokens} {}

  [[nodiscard]] std::string by_heads() const {
    return fmt::format("batch={} sequence={} heads={} kv_heads={} head_size={}",
                       model_.microbatch_size, model_.sequence_length, heads, kv_heads, head_size);
  }
  [[nodiscard]] static std::string rows(std::int64_t count, std::int64_t width) {
    return fmt::format("rows={} width={}", count, width);
  }
  [[nodiscard]] static std::string gemm(std::int64_t m, std::int64_t n, std::int64_t k,
                                        const char* operands) {
    return fmt::format("m={} n={} k={} {}", m, n, k, operands);
  }
  /// Products of each head: [s, n] = [s, k] [k, n], or what their operands say.
  [[nodiscard]] std::string of_heads(std::int64_t n, std::int64_t k, const char* operands) const {
    return fmt::format("batch={} {}", std::int64_t{model_.microbatch_size} * heads,
                       gemm(model_.sequence_length, n, k, operands));
  }
  [[nodiscard]] std::string collective(std::int64_t bytes_of_number) const {
    return fmt::format("bytes={} ranks={} nodes={}", tokens * hidden * bytes_of_number,
                       layout_.tensor, layout_.nodes);
  }
  [[nodiscard]] std::int64_t scores() const {
    return std::int64_t{model_.microbatch_size} * heads * model_.sequence_length;
  }

private:
  const Model& model_;
  const LayerLayout& layout_;

public:
  std::int64_t tokens, hidden;
  int head_size, heads, kv_heads;
  std::int64_t qkv, own, intermediate, up, vocabulary, normed_rows;
};

class CallWriter {
public:
  CallWriter(const Model& model, const LayerLayout& layout, std::string part)
      : model_{model}, layout_{layout}, shapes_{model, layout}, part_{std::move(part)} {}

  [[nodiscard]] std::vector<OperatorCall> run() {
    if (part_ == "layer")
      layer();
    else if (part_ == "embedding")
      embedding();
    else
      head();
    return std::move(calls_);
  }

private:
  void add(const char* below, const char* operation, std::string shape) {
    calls_.push_back({part_, block_, below, operation, std::move(shape),
                      block_ == std::string{"update"} ? "f32" : type_name(model_)});
  }
  [[nodiscard]] bool split() const { return layout_.tensor > 1; }
  [[nodiscard]] const char* norm(const char* rms, const char* layer) const {
    return model_.mlp == MlpKind::gelu ? layer : rms;
  }

  /// y = x W^T, with its bias where maps have one.
  void map(const char* below, std::int64_t in, std::int64_t out) {
    add(below, "gemm", RankShapes::gemm(shapes_.tokens, out, in, "nt"));
    if (model_.biases) add(below, "bias", RankShapes::rows(shapes_.tokens, out));
  }
  /// The map that joins the residual: onto a copy of it, or, where ranks hold parts of the sum,
  /// added when these are one.
  void map_onto(const char* below, const char* collective, const char* residual, std::int64_t in) {
    const std::int64_t out = shapes_.hidden;
    if (!split()) add(residual, "copy", fmt::format("count={}", shapes_.tokens * out));
    add(below, "gemm", RankShapes::gemm(shapes_.tokens, out, in, split() ? "nt" : "nt add"));
    if (!split() && model_.biases) add(below, "bias", RankShapes::rows(shapes_.tokens, out));
    if (!split()) return;
    sum(collective);
    if (model_.biases) add(below, "bias", RankShapes::rows(shapes_.normed_rows, out));
    add(residual, "add", fmt::format("count={}", shapes_.normed_rows * out));
  }
  void map_dgrad(const char* below, std::int64_t in, std::int64_t out) {
    add(below, "gemm", RankShapes::gemm(shapes_.tokens, in, out, "nn"));
  }
  void map_wgrad(const char* below, std::int64_t in, std::int64_t out) {
    add(below, "gemm", RankShapes::gemm(out, in, shapes_.tokens, "tn add"));
    if (model_.biases) add(below, "bias_gradient", RankShapes::rows(shapes_.tokens, out));
  }
  void normalize(const char* below) {
    add(below, norm("rms_norm", "layer_norm"),
        RankShapes::rows(shapes_.normed_rows, shapes_.hidden));
  }
  void normalize_gradient(const char* below) {
    const std::string shape = RankShapes::rows(shapes_.normed_rows, shapes_.hidden);
    add(below, norm("rms_norm_input_gradient", "layer_norm_input_gradient"), shape);
    add(below, norm("rms_norm_weight_gradient", "layer_norm_weight_gradient"), shape);
  }
  [[nodiscard]] std::string collective_shape() const {
    return shapes_.collective(model_.precision == Precision::fp32 ? 4 : 2);
  }
  void sum(const char* below) {
    if (split())
      add(below, layout_.sequence_parallel ? "reduce_scatter" : "all_reduce", collective_shape());
  }
  void gather(const char* below) {
    if (layout_.sequence_parallel) add(below, "all_gather", collective_shape());
  }

  void scores() {
    if (model_.positions == PositionKind::rotary) add("attention", "rotary", shapes_.by_heads());
    if (model_.attention == AttentionKind::flash)
      return add("attention", "attention", shapes_.by_heads());
    plain_scores();
  }
  /// What selective recomputation does again: scores, their softmax, and its product with V.
  void plain_scores() {
    const std::int64_t s = model_.sequence_length, d = shapes_.head_size;
    add("attention", "batched_gemm", shapes_.of_heads(s, d, "nt"));
    add("attention", "softmax", RankShapes::rows(shapes_.scores(), s));
    add("attention", "batched_gemm", shapes_.of_heads(d, s, "nn"));
  }
  void scores_gradient() {
    if (model_.attention == AttentionKind::flash) {
      add("attention", "attention_gradient", shapes_.by_heads());
    } else {
      if (model_.computes_scores_again()) plain_scores();
      const std::int64_t s = model_.sequence_length, d = shapes_.head_size;
      add("attention", "batched_gemm", shapes_.of_heads(s, d, "nt"));
      add("attention", "batched_gemm", shapes_.of_heads(d, s, "tn"));
      add("attention", "softmax_gradient", RankShapes::rows(shapes_.scores(), s));
      add("attention", "batched_gemm", shapes_.of_heads(d, s, "nn"));
      add("attention", "batched_gemm", shapes_.of_heads(d, s, "tn"));
    }
    if (model_.positions == PositionKind::rotary) add("attention", "rotary", shapes_.by_heads());
  }
  [[nodiscard]] bool gated() const { return model_.mlp == MlpKind::swiglu; }
  [[nodiscard]] const char* up() const { return gated() ? "gate_up" : "up"; }
  [[nodiscard]] const char* activation() const { return gated() ? "swiglu" : "gelu"; }

  /// F; R leaves the last product out, which nothing needs.
  void layer_forward(const char* block) {
    block_ = block;
    normalize("attention_norm");
    gather("attention_input");
    map("qkv", shapes_.hidden, shapes_.qkv);
    scores();
    map_onto("output", "attention_sum", "attention_residual", shapes_.own);
    normalize("feedforward_norm");
    gather("feedforward_input");
    map(up(), shapes_.hidden, shapes_.up);
    add(activation(), activation(), RankShapes::rows(shapes_.tokens, shapes_.intermediate));
    if (block == std::string{"F"})
      map_onto("down", "feedforward_sum", "feedforward_residual", shapes_.intermediate);
  }
  void layer_dgrad() {
    block_ = "D";
    gather("feedforward_sum");
    map_dgrad("down", shapes_.intermediate, shapes_.hidden);
    add(activation(), gated() ? "swiglu_gradient" : "gelu_gradient",
        RankShapes::rows(shapes_.tokens, shapes_.intermediate));
    map_dgrad(up(), shapes_.hidden, shapes_.up);
    sum("feedforward_input");
    add("feedforward_residual", "copy", fmt::format("count={}", kept()));
    normalize_gradient("feedforward_norm");
    gather("attention_sum");
    map_dgrad("output", shapes_.own, shapes_.hidden);
    scores_gradient();
    map_dgrad("qkv", shapes_.hidden, shapes_.qkv);
    sum("attention_input");
    add("attention_residual", "copy", fmt::format("count={}", kept()));
    normalize_gradient("attention_norm");
  }
  [[nodiscard]] std::int64_t kept() const { return shapes_.normed_rows * shapes_.hidden; }
  void layer_wgrad() {
    block_ = "W";
    map_wgrad("down", shapes_.intermediate, shapes_.hidden);
    gather("feedforward_input");
    map_wgrad(up(), shapes_.hidden, shapes_.up);
    map_wgrad("output", shapes_.own, shapes_.hidden);
    gather("attention_input");
    map_wgrad("qkv", shapes_.hidden, shapes_.qkv);
  }
  void update(std::initializer_list<std::int64_t> parameters) {
    block_ = "update";
    std::int64_t count = 0;
    for (const std::int64_t each : parameters) count += each > 0 ? aligned(each) : 0;
    add("optimizer", "adamw", fmt::format("count={}", divided(count, layout_.optimizer_ranks)));
  }
  [[nodiscard]] std::int64_t bias(std::int64_t width) const { return model_.biases ? width : 0; }

  void layer() {
    const std::int64_t h = shapes_.hidden;
    layer_forward("F");
    if (layout_.recompute) layer_forward("R");
    layer_dgrad();
    layer_wgrad();
    update({h, shapes_.qkv * h, shapes_.own * h, h, shapes_.up * h, shapes_.intermediate * h,
            bias(h), bias(shapes_.qkv), bias(h), bias(h), bias(shapes_.up), bias(h)});
  }
  void embedding() {
    const bool learned = model_.positions == PositionKind::learned;
    const std::string shape = RankShapes::rows(shapes_.tokens, shapes_.hidden);
    block_ = "F";
    add("embedding", "embed", shape);
    if (learned) add("embedding", "positions", shape);
    block_ = "W";
    add("embedding", "embed_gradient", shape);
    if (learned) add("embedding", "positions_gradient", shape);
    update({shapes_.vocabulary * shapes_.hidden,
            learned ? std::int64_t{model_.sequence_length} * shapes_.hidden : 0});
  }
  void head() {
    for (const char* block : {"F", "R"}) {
      if (block == std::string{"R"} && !layout_.recompute) continue;
      block_ = block;
      normalize("head_norm");
      add("head", "gemm",
          RankShapes::gemm(shapes_.tokens, shapes_.vocabulary, shapes_.hidden, "nt"));
      add("loss", "cross_entropy", RankShapes::rows(shapes_.tokens, shapes_.vocabulary));
    }
    block_ = "D";
    map_dgrad("head", shapes_.hidden, shapes_.vocabulary);
    normalize_gradient("head_norm");
    block_ = "W";
    add("head", "gemm",
        RankShapes::gemm(shapes_.vocabulary, shapes_.hidden, shapes_.tokens, "tn add"));
    update({shapes_.hidden, shapes_.vocabulary * shapes_.hidden, bias(shapes_.hidden)});
  }

  const Model& model_;
  const LayerLayout& layout_;
  RankShapes shapes_;
  std::string part_;
  const char* block_ = "F";
  std::vector<OperatorCall> calls_;
};

}  // namespace

std::vector<OperatorCall> calls_of_part(const Model& model, const LayerLayout& layout,
                                        const std::string& part) {
  return CallWriter{model, layout, part}.run();
}

std::vector<PartOperator> operators_of_part(const Model& model, const LayerLayout& layout,
                                            const std::string& part) {
  using enum OperatorKind;
  const LayerWidths widths = layer_widths(model);
  const double h = widths.hidden, m = widths.intermediate, v = widths.vocabulary;
  if (part == "embedding") return {{"embedding", elementwise, v * h}};
  if (part == "head")
    return {{"head_norm", normalization, h}, {"head", matmul, h * v}, {"loss", elementwise}};
  const bool gated = model.mlp == MlpKind::swiglu;
  std::vector<PartOperator> all{{"attention_norm", normalization, h},
                                {"attention_input", collective},
                                {"qkv", matmul, h * widths.qkv},
                                {"attention", attention},
                                {"output", matmul, h * h},
                                {"attention_sum", collective},
                                {"attention_residual", elementwise},
                                {"feedforward_norm", normalization, h},
                                {"feedforward_input", collective},
                                {gated ? "gate_up" : "up", matmul, (gated ? 2 : 1) * h * m},
                                {gated ? "swiglu" : "gelu", elementwise},
                                {"down", matmul, m * h},
                                {"feedforward_sum", collective},
                                {"feedforward_residual", elementwise}};
  if (layout.tensor == 1)
    std::erase_if(all, [](const PartOperator& each) { return each.kind == collective; });
  return all;
}

}  // namespace longhaul::scenario
