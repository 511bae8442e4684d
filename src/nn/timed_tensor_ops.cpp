#include "nn/timed_tensor_ops.hpp"

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/index.hpp"

namespace longhaul::nn {
namespace {

double traffic(std::initializer_list<ArrayView> operands) {
  double bytes = 0;
  for (const ArrayView& operand : operands) bytes += static_cast<double>(operand.bytes());
  return bytes;
}

TensorOpsCall elementwise(const char* operation, ArrayView what, double bytes) {
  return {operation, fmt::format("count={}", what.count), what.type, 0, bytes, {}};
}

/// Works on rows of `width` numbers of `rows`.
TensorOpsCall by_rows(const char* operation, ArrayView rows, int width, double bytes) {
  return {operation, fmt::format("rows={} width={}", rows.count / to_size(width), width),
          rows.type, 0,
          bytes,     {}};
}

TensorOpsCall by_heads(const char* operation, const AttentionShape& shape, ArrayView qkv,
                       double flops, double bytes) {
  return {operation,
          fmt::format("batch={} sequence={} heads={} kv_heads={} head_size={}", shape.batch,
                      shape.sequence, shape.heads, shape.kv_heads, shape.head_size),
          qkv.type,
          flops,
          bytes,
          {}};
}

/// Two products of 2 b s^2 d each, of which a causal mask leaves half.
double forward_flops(const AttentionShape& shape) {
  return 2.0 * static_cast<double>(shape.tokens()) * shape.sequence * shape.heads * shape.head_size;
}

}  // namespace

template <typename Work>
void TimedTensorOps::timed(TensorOpsCall call, Work work) {
  math_.finish();
  const TimePoint begin = now();
  if (trace_ != nullptr) call.range = trace_->begin_range();
  work();
  if (trace_ != nullptr) trace_->end_range();
  math_.finish();
  call.time = now() - begin;
  calls_.push_back(std::move(call));
}

std::vector<TensorOpsCall> TimedTensorOps::take() { return std::exchange(calls_, {}); }

void TimedTensorOps::copy(ArrayView from, ArrayView to) {
  timed(elementwise("copy", from, traffic({from, to})), [&] { math_.copy(from, to); });
}

void TimedTensorOps::zero(ArrayView what) {
  timed(elementwise("zero", what, traffic({what})), [&] { math_.zero(what); });
}

void TimedTensorOps::gemm(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c) {
  const std::string text =
      fmt::format("m={} n={} k={} {}{}{}", shape.m, shape.n, shape.k, shape.transpose_a ? 't' : 'n',
                  shape.transpose_b ? 't' : 'n', shape.accumulate ? " add" : "");
  const double bytes = traffic({a, b, c}) + (shape.accumulate ? traffic({c}) : 0);
  timed({"gemm", text, a.type, 2.0 * shape.m * shape.n * shape.k, bytes, {}},
        [&] { math_.gemm(shape, a, b, c); });
}

void TimedTensorOps::add(ArrayView a, ArrayView b, ArrayView sum) {
  timed(elementwise("add", sum, traffic({a, b, sum})), [&] { math_.add(a, b, sum); });
}

void TimedTensorOps::rms_norm(ArrayView x, ArrayView weight, int width, ArrayView y,
                              ArrayView inverse_rms) {
  timed(by_rows("rms_norm", x, width, traffic({x, weight, y, inverse_rms})),
        [&] { math_.rms_norm(x, weight, width, y, inverse_rms); });
}

void TimedTensorOps::rms_norm_input_gradient(ArrayView x, ArrayView weight, ArrayView inverse_rms,
                                             ArrayView dy, int width, bool accumulate,
                                             ArrayView dx) {
  const double bytes = traffic({x, weight, inverse_rms, dy, dx}) + (accumulate ? traffic({dx}) : 0);
  timed(by_rows("rms_norm_input_gradient", x, width, bytes),
        [&] { math_.rms_norm_input_gradient(x, weight, inverse_rms, dy, width, accumulate, dx); });
}

void TimedTensorOps::rms_norm_weight_gradient(ArrayView x, ArrayView inverse_rms, ArrayView dy,
                                              int width, ArrayView dweight) {
  timed(by_rows("rms_norm_weight_gradient", x, width,
                traffic({x, inverse_rms, dy, dweight, dweight})),
        [&] { math_.rms_norm_weight_gradient(x, inverse_rms, dy, width, dweight); });
}

void TimedTensorOps::rotary(const AttentionShape& shape, float theta, Direction direction,
                            ArrayView qkv) {
  timed(by_heads("rotary", shape, qkv, 0, traffic({qkv, qkv})),
        [&] { math_.rotary(shape, theta, direction, qkv); });
}

void TimedTensorOps::attention(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                               ArrayView log_sums) {
  timed(by_heads("attention", shape, qkv, forward_flops(shape), traffic({qkv, out, log_sums})),
        [&] { math_.attention(shape, qkv, out, log_sums); });
}

void TimedTensorOps::attention_gradient(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                                        ArrayView log_sums, ArrayView dout, ArrayView dqkv) {
  timed(by_heads("attention_gradient", shape, qkv, 2 * forward_flops(shape),
                 traffic({qkv, out, log_sums, dout, dqkv})),
        [&] { math_.attention_gradient(shape, qkv, out, log_sums, dout, dqkv); });
}

void TimedTensorOps::swiglu(ArrayView gate_up, int width, ArrayView y) {
  timed(by_rows("swiglu", y, width, traffic({gate_up, y})),
        [&] { math_.swiglu(gate_up, width, y); });
}

void TimedTensorOps::swiglu_gradient(ArrayView gate_up, ArrayView dy, int width,
                                     ArrayView dgate_up) {
  timed(by_rows("swiglu_gradient", dy, width, traffic({gate_up, dy, dgate_up})),
        [&] { math_.swiglu_gradient(gate_up, dy, width, dgate_up); });
}

void TimedTensorOps::embed(ArrayView tokens, ArrayView table, int width, ArrayView y) {
  timed(by_rows("embed", y, width, traffic({tokens, y, y})),
        [&] { math_.embed(tokens, table, width, y); });
}

void TimedTensorOps::embed_gradient(ArrayView tokens, ArrayView dy, int width, ArrayView dtable) {
  timed(by_rows("embed_gradient", dy, width, traffic({tokens, dy, dy, dy})),
        [&] { math_.embed_gradient(tokens, dy, width, dtable); });
}

void TimedTensorOps::cross_entropy(ArrayView targets, int vocabulary, float scale, ArrayView logits,
                                   ArrayView loss) {
  timed(by_rows("cross_entropy", logits, vocabulary, traffic({targets, logits, logits})),
        [&] { math_.cross_entropy(targets, vocabulary, scale, logits, loss); });
}

void TimedTensorOps::sgd(float learning_rate, ArrayView gradient, ArrayView master,
                         ArrayView weights) {
  timed(elementwise("sgd", master, traffic({gradient, master, master, weights})),
        [&] { math_.sgd(learning_rate, gradient, master, weights); });
}

void TimedTensorOps::adamw(const AdamW& options, ArrayView gradient, ArrayView mean,
                           ArrayView square, ArrayView master, ArrayView weights) {
  timed(elementwise("adamw", master,
                    traffic({gradient, mean, mean, square, square, master, master, weights})),
        [&] { math_.adamw(options, gradient, mean, square, master, weights); });
}

}  // namespace longhaul::nn
