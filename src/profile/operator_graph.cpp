#include "profile/operator_graph.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"

namespace longhaul::profile {
namespace {

constexpr double kHalf = 2;  ///< bytes of a value at half precision

/// Makes the operators of one row: sizes of a tensor rank's share.
class GraphBuilder {
public:
  GraphBuilder(const TrainingRow& row, const Machine& machine) : row_{row}, machine_{machine} {}

  PartGraph layer() {
    PartGraph part;
    add_attention_half(part);
    add_feedforward_half(part);
    if (row_.tensor > 1) part.all_reduces_forward = part.all_reduces_backward = 2;
    if (row_.recompute == RecomputeKind::full) {
      part.recompute = part.forward;
      part.all_reduces_recompute = part.all_reduces_forward;
    }
    return part;
  }

  PartGraph embedding() {
    PartGraph part;
    part.forward = {moved("embedding", 6 * values())};
    part.backward = {moved("embedding", 10 * values())};
    add_end_sum(part.all_reduces_forward, part.all_reduces_backward);
    return part;
  }

  PartGraph head() {
    PartGraph part;
    const double own = double(row_.vocabulary) / row_.tensor;
    part.forward = {moved("head_norm", 4 * values() / norm_share()),
                    product("head", tokens(), own, row_.hidden),
                    moved("loss", 12 * tokens() * own)};
    part.backward = {moved("loss", 12 * tokens() * own),
                     product("head", tokens(), row_.hidden, own),
                     product("head_weights", own, row_.hidden, tokens()),
                     moved("head_norm", 8 * values() / norm_share())};
    add_end_sum(part.all_reduces_backward, part.all_reduces_forward);
    // Maxima, sums of exponentials and targets' logits, over the ranks that divide the vocabulary.
    if (row_.tensor > 1) part.loss_reduces = 3;
    return part;
  }

private:
  /// What the ranks that divide the vocabulary sum in one pass of an end; with sequence parallelism
  /// it is scattered there and gathered in the other.
  void add_end_sum(double& own, double& other) const {
    if (row_.tensor == 1) return;
    own = row_.sequence_parallel ? 0.5 : 1;
    other = 1 - own;
  }
  [[nodiscard]] double tokens() const { return row_.tokens(); }
  [[nodiscard]] double values() const { return tokens() * row_.hidden; }
  [[nodiscard]] double norm_share() const { return row_.sequence_parallel ? row_.tensor : 1; }
  [[nodiscard]] bool has_biases() const { return row_.positions == PositionKind::learned; }

  [[nodiscard]] GraphOperator product(const char* name, double m, double n, double k) const {
    const MatmulTime time = machine_.gpu.matmul.time({m, n, k});
    return {name,
            OperatorLimit::matmul,
            {m, n, k},
            1,
            kHalf * (m * n + m * k + n * k),
            time.ns,
            time.basis,
            time.beyond};
  }
  /// Products of each head: short in one side, so bound by memory as often as not.
  [[nodiscard]] GraphOperator batched(const char* name, double batch, double m, double n,
                                      double k) const {
    return {name,
            OperatorLimit::batched_matmul,
            {m, n, k},
            batch,
            kHalf * batch * (m * n + m * k + n * k),
            batch * machine_.gpu.matmul.law_ns({m, n, k})};
  }
  [[nodiscard]] static GraphOperator moved(const char* name, double bytes) {
    return {name, OperatorLimit::memory, {bytes / kHalf, 1, 1}, 1, bytes, 0};
  }
  [[nodiscard]] GraphOperator flash(const char* name, OperatorLimit limit, double factor) const {
    const double width = double(row_.hidden) / row_.tensor;
    const double flops = factor * 2 * tokens() * row_.sequence * width;  // causal: half of 4 T s h
    // A program that loops over keys starts and ends once a block of queries.
    constexpr double kPad = 150;
    return {name,
            limit,
            {tokens(), width, double(row_.sequence)},
            1,
            8 * tokens() * width,
            flops / machine_.gpu.flops_per_ns * (1 + kPad / row_.sequence)};
  }

  void add_attention_half(PartGraph& part) const;
  [[nodiscard]] std::vector<GraphOperator> scores_forward() const;
  [[nodiscard]] std::vector<GraphOperator> scores_backward() const;
  void add_feedforward_half(PartGraph& part) const;

  const TrainingRow& row_;
  const Machine& machine_;
};

void append(std::vector<GraphOperator>& to, std::vector<GraphOperator> more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<GraphOperator> GraphBuilder::scores_forward() const {
  if (row_.attention == AttentionKind::flash)
    return {flash("attention", OperatorLimit::flash_forward, 1)};
  const double heads = double(row_.micro_batch) * row_.heads / row_.tensor;
  const double s = row_.sequence, d = double(row_.hidden) / row_.heads;
  const double scores = heads * s * s;
  return {batched("scores", heads, s, s, d), moved("softmax", 4 * scores),
          moved("attention_dropout", 5 * scores), batched("context", heads, s, d, s)};
}

std::vector<GraphOperator> GraphBuilder::scores_backward() const {
  if (row_.attention == AttentionKind::flash)
    return {flash("attention", OperatorLimit::flash_backward, 2.5)};
  const double heads = double(row_.micro_batch) * row_.heads / row_.tensor;
  const double s = row_.sequence, d = double(row_.hidden) / row_.heads;
  const double scores = heads * s * s;
  return {batched("context", heads, s, s, d),     batched("context_values", heads, s, d, s),
          moved("attention_dropout", 5 * scores), moved("softmax", 6 * scores),
          batched("scores", heads, s, d, s),      batched("scores_keys", heads, s, d, s)};
}

void GraphBuilder::add_attention_half(PartGraph& part) const {
  const double t = row_.tensor, h = row_.hidden;
  const double qkv = (h + 2 * h / row_.heads * row_.kv_heads) / t;
  const double own = h / t;
  const double residual = has_biases() ? 7 : 6;  // dropout's mask
  append(part.forward, {moved("attention_norm", 4 * values() / norm_share()),
                        product("qkv", tokens(), qkv, h), moved("heads", 12 * values() / t)});
  append(part.forward, scores_forward());
  if (row_.recompute == RecomputeKind::selective && row_.attention == AttentionKind::plain)
    part.recompute = scores_forward();
  append(part.forward, {product("output", tokens(), h, own),
                        moved("attention_residual", residual * values() / norm_share())});
  append(part.backward,
         {moved("attention_residual", 6 * values() / norm_share()),
          product("output", tokens(), own, h), product("output_weights", own, h, tokens())});
  append(part.backward, scores_backward());
  append(part.backward, {moved("heads", 12 * values() / t), product("qkv", tokens(), h, qkv),
                         product("qkv_weights", qkv, h, tokens()),
                         moved("attention_norm", 8 * values() / norm_share())});
}

void GraphBuilder::add_feedforward_half(PartGraph& part) const {
  const double h = row_.hidden, own = double(row_.intermediate) / row_.tensor;
  const double maps = row_.mlp == MlpKind::swiglu ? 2 : 1;
  const double residual = has_biases() ? 7 : 6;
  append(part.forward,
         {moved("feedforward_norm", 4 * values() / norm_share()),
          product("up", tokens(), maps * own, h),
          moved("activation", (2 + 2 * maps) * tokens() * own), product("down", tokens(), h, own),
          moved("feedforward_residual", residual * values() / norm_share())});
  append(part.backward,
         {moved("feedforward_residual", 6 * values() / norm_share()),
          product("down", tokens(), own, h), product("down_weights", own, h, tokens()),
          moved("activation", (2 + 4 * maps + (has_biases() ? 2 : 0)) * tokens() * own),
          product("up", tokens(), h, maps * own), product("up_weights", maps * own, h, tokens()),
          moved("feedforward_norm", 8 * values() / norm_share())});
}

void note(RowGraph& graph, const std::vector<GraphOperator>& operators) {
  for (const GraphOperator& each : operators) {
    if (each.limit != OperatorLimit::matmul) continue;
    graph.beyond = std::max(graph.beyond, each.beyond);
    graph.basis = std::max(graph.basis, each.basis);
  }
}

}  // namespace

std::string shape_text(const GraphOperator& of) {
  const auto& [m, n, k] = of.shape;
  if (of.limit == OperatorLimit::memory) return fmt::format("{:.0f} values", m);
  const std::string one = fmt::format("{:.0f}x{:.0f}x{:.0f}", m, n, k);
  return of.batch > 1 ? fmt::format("{:.0f}x({})", of.batch, one) : one;
}

RankGroup tensor_group(const TrainingRow& row, const Machine& machine) {
  const bool inside = row.tensor <= machine.gpus_per_node;
  return {row.tensor, inside, 1};
}

RankGroup data_group(const TrainingRow& row, const Machine& machine) {
  const bool inside = row.tensor * row.data <= machine.gpus_per_node;
  return {row.data, inside, std::min(row.tensor, machine.gpus_per_node)};
}

bool border_leaves_node(const TrainingRow& row, const Machine& machine, int stage) {
  const int of_stage = row.tensor * row.data;
  if (stage + 1 == row.pipeline) {  // the ends share a node where no border between leaves one
    for (int border = 0; border < stage; ++border)
      if (border_leaves_node(row, machine, border)) return true;
    return false;
  }
  return of_stage >= machine.gpus_per_node || (stage + 1) * of_stage % machine.gpus_per_node == 0;
}

RowGraph row_graph(const TrainingRow& row, const Machine& machine, Extrapolation extrapolation) {
  RowGraph graph;
  graph.row = row;
  graph.machine = &machine;
  GraphBuilder builder{row, machine};
  graph.embedding = builder.embedding();
  graph.layer = builder.layer();
  graph.head = builder.head();
  graph.tensor_bytes = kHalf * row.tokens() * row.hidden;
  graph.loss_bytes = 4 * row.tokens();
  graph.message_bytes = graph.tensor_bytes / row.tensor;
  graph.basis = TimeBasis::measured;
  for (const PartGraph* part : {&graph.embedding, &graph.layer, &graph.head}) {
    note(graph, part->forward);
    note(graph, part->backward);
  }
  if (graph.beyond > kFarthest && extrapolation == Extrapolation::refused)
    fail(
        "row {}: a product lies {:.1f} times beyond the sides that were measured on {} (beyond {} "
        "times a law is a guess). Give --extrapolate to take it all the same.",
        row.row, graph.beyond, machine.gpu.name, kFarthest);
  return graph;
}

}  // namespace longhaul::profile
