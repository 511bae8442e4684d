#include "nn/timed_math.hpp"

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"

namespace longhaul {
namespace {

double traffic(std::initializer_list<View> operands) {
  double bytes = 0;
  for (const View& operand : operands) bytes += static_cast<double>(operand.bytes());
  return bytes;
}

MathCall elementwise(const char* operation, View what, double bytes) {
  return {operation, fmt::format("count={}", what.count), what.type, 0, bytes, {}};
}

/// Works on rows of `width` numbers of `rows`.
MathCall by_rows(const char* operation, View rows, int width, double bytes) {
  return {operation,
          fmt::format("rows={} width={}", rows.count / static_cast<std::size_t>(width), width),
          rows.type,
          0,
          bytes,
          {}};
}

MathCall by_heads(const char* operation, const AttentionShape& shape, View qkv, double flops,
                  double bytes) {
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

const char* name_of(NumberType type) {
  switch (type) {
    case NumberType::f32: return "f32";
    case NumberType::bf16: return "bf16";
    case NumberType::i32: return "i32";
  }
  return "?";
}

template <typename Work>
void TimedMath::timed(MathCall call, Work work) {
  math_.finish();
  const TimePoint begin = now();
  work();
  math_.finish();
  call.time = now() - begin;
  calls_.push_back(std::move(call));
}

std::vector<MathCall> TimedMath::take() { return std::exchange(calls_, {}); }

void TimedMath::copy(View from, View to) {
  timed(elementwise("copy", from, traffic({from, to})), [&] { math_.copy(from, to); });
}

void TimedMath::zero(View what) {
  timed(elementwise("zero", what, traffic({what})), [&] { math_.zero(what); });
}

void TimedMath::gemm(const Gemm& shape, View a, View b, View c) {
  const std::string text =
      fmt::format("m={} n={} k={} {}{}{}", shape.m, shape.n, shape.k, shape.transpose_a ? 't' : 'n',
                  shape.transpose_b ? 't' : 'n', shape.accumulate ? " add" : "");
  const double bytes = traffic({a, b, c}) + (shape.accumulate ? traffic({c}) : 0);
  timed({"gemm", text, a.type, 2.0 * shape.m * shape.n * shape.k, bytes, {}},
        [&] { math_.gemm(shape, a, b, c); });
}

void TimedMath::add(View a, View b, View sum) {
  timed(elementwise("add", sum, traffic({a, b, sum})), [&] { math_.add(a, b, sum); });
}

void TimedMath::rms_norm(View x, View weight, int width, View y, View inverse_rms) {
  timed(by_rows("rms_norm", x, width, traffic({x, weight, y, inverse_rms})),
        [&] { math_.rms_norm(x, weight, width, y, inverse_rms); });
}

void TimedMath::rms_norm_input_gradient(View x, View weight, View inverse_rms, View dy, int width,
                                        bool accumulate, View dx) {
  const double bytes = traffic({x, weight, inverse_rms, dy, dx}) + (accumulate ? traffic({dx}) : 0);
  timed(by_rows("rms_norm_input_gradient", x, width, bytes),
        [&] { math_.rms_norm_input_gradient(x, weight, inverse_rms, dy, width, accumulate, dx); });
}

void TimedMath::rms_norm_weight_gradient(View x, View inverse_rms, View dy, int width,
                                         View dweight) {
  timed(by_rows("rms_norm_weight_gradient", x, width,
                traffic({x, inverse_rms, dy, dweight, dweight})),
        [&] { math_.rms_norm_weight_gradient(x, inverse_rms, dy, width, dweight); });
}

void TimedMath::rotary(const AttentionShape& shape, float theta, Direction direction, View qkv) {
  timed(by_heads("rotary", shape, qkv, 0, traffic({qkv, qkv})),
        [&] { math_.rotary(shape, theta, direction, qkv); });
}

void TimedMath::attention(const AttentionShape& shape, View qkv, View out, View log_sums) {
  timed(by_heads("attention", shape, qkv, forward_flops(shape), traffic({qkv, out, log_sums})),
        [&] { math_.attention(shape, qkv, out, log_sums); });
}

void TimedMath::attention_gradient(const AttentionShape& shape, View qkv, View out, View log_sums,
                                   View dout, View dqkv) {
  timed(by_heads("attention_gradient", shape, qkv, 2 * forward_flops(shape),
                 traffic({qkv, out, log_sums, dout, dqkv})),
        [&] { math_.attention_gradient(shape, qkv, out, log_sums, dout, dqkv); });
}

void TimedMath::swiglu(View gate_up, int width, View y) {
  timed(by_rows("swiglu", y, width, traffic({gate_up, y})),
        [&] { math_.swiglu(gate_up, width, y); });
}

void TimedMath::swiglu_gradient(View gate_up, View dy, int width, View dgate_up) {
  timed(by_rows("swiglu_gradient", dy, width, traffic({gate_up, dy, dgate_up})),
        [&] { math_.swiglu_gradient(gate_up, dy, width, dgate_up); });
}

void TimedMath::embed(View tokens, View table, int width, View y) {
  timed(by_rows("embed", y, width, traffic({tokens, y, y})),
        [&] { math_.embed(tokens, table, width, y); });
}

void TimedMath::embed_gradient(View tokens, View dy, int width, View dtable) {
  timed(by_rows("embed_gradient", dy, width, traffic({tokens, dy, dy, dy})),
        [&] { math_.embed_gradient(tokens, dy, width, dtable); });
}

void TimedMath::cross_entropy(View targets, int vocabulary, float scale, View logits, View loss) {
  timed(by_rows("cross_entropy", logits, vocabulary, traffic({targets, logits, logits})),
        [&] { math_.cross_entropy(targets, vocabulary, scale, logits, loss); });
}

void TimedMath::sgd(float learning_rate, View gradient, View master, View weights) {
  timed(elementwise("sgd", master, traffic({gradient, master, master, weights})),
        [&] { math_.sgd(learning_rate, gradient, master, weights); });
}

void TimedMath::adamw(const AdamW& options, View gradient, View mean, View square, View master,
                      View weights) {
  timed(elementwise("adamw", master,
                    traffic({gradient, mean, mean, square, square, master, master, weights})),
        [&] { math_.adamw(options, gradient, mean, square, master, weights); });
}

}  // namespace longhaul
