#include "training/operators/operator_chunk.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace longhaul::training {
namespace {

/// Where the part of a layer begins that an operator ends: its normalization.
constexpr int kPartLength = 3;

bool ends_part(std::string_view name) { return name == "output" || name == "down"; }
bool is_normalization(std::string_view name) { return name.ends_with("norm"); }

}  // namespace

OperatorChunk::OperatorChunk(nn::TensorOps& math, nn::DeviceMemory& memory,
                             const nn::ModelShape& shape, std::span<const Operator> operators,
                             const TensorPlace& place, int microbatches)
    : math_{math},
      memory_{memory},
      shape_{shape},
      place_{place},
      attention_{shape.batch, shape.sequence, place.part_of(shape.heads),
                 place.part_of(shape.kv_heads), shape.head_size()},
      all_rows_{static_cast<int>(shape.tokens())},
      rows_{place.sequence ? place.part_of(all_rows_) : all_rows_},
      operators_(operators.begin(), operators.end()),
      tensors_(to_size(microbatches)),
      incoming_(to_size(microbatches)),
      tokens_(to_size(microbatches)),
      targets_(to_size(microbatches)),
      losses_{memory.take(2, NumberType::f32, "loss")} {
  for (const Operator& each : operators_) {
    parameters_.push_back(parameter_of(each, shape, place));
    const std::size_t count = parameters_.back().count();
    weights_.push_back(count > 0 ? memory.take(count, each.name) : nn::Buffer{});
  }
}

nn::Buffer OperatorChunk::take(std::size_t numbers, const char* what) const {
  return memory_.take(numbers, what);
}

void OperatorChunk::begin_iteration(float loss_scale) {
  loss_scale_ = loss_scale;
  math_.zero(losses_.view());
  for (auto& of_microbatch : tensors_) {
    of_microbatch.clear();
    of_microbatch.resize(operators_.size());
  }
  for (auto* buffers : {&incoming_, &tokens_, &targets_})
    for (nn::Buffer& each : *buffers) each = {};
}

/// The rank's own, with sequence parallelism.
void OperatorChunk::set_tokens(MicrobatchId microbatch, std::span<const std::int32_t> tokens) {
  nn::Buffer& own = tokens_[index_of(microbatch)];
  own = memory_.take(to_size(rows_), NumberType::i32, "tokens");
  const std::size_t first = place_.sequence ? to_size(place_.place * rows_) : 0;
  math_.copy_in(tokens.subspan(first, to_size(rows_)), own.view());
}

void OperatorChunk::set_targets(MicrobatchId microbatch, std::span<const std::int32_t> targets) {
  nn::Buffer& own = targets_[index_of(microbatch)];
  own = memory_.take(to_size(rows_), NumberType::i32, "targets");
  const std::size_t first = place_.sequence ? to_size(place_.place * rows_) : 0;
  math_.copy_in(targets.subspan(first, to_size(rows_)), own.view());
}

nn::Linear OperatorChunk::linear_of(int place) const {
  const std::string_view own = name(place);
  const int mlp = place_.part_of(shape_.intermediate);
  if (own == "qkv") return linear(place, shape_.hidden, static_cast<int>(attention_.width()));
  if (own == "output") return linear(place, place_.part_of(shape_.hidden), shape_.hidden);
  if (own == "gate_up") return linear(place, shape_.hidden, 2 * mlp);
  if (own == "down") return linear(place, mlp, shape_.hidden);
  return linear(place, shape_.hidden, shape_.vocabulary);
}

/// The residual stream after a part of a layer, or after the embedding.
nn::Buffer OperatorChunk::passed_on(int end, MicrobatchId microbatch) {
  nn::Buffer out = take(rows_, shape_.hidden, "output");
  OperatorTensors& last = tensors(end, microbatch);
  if (!ends_part(name(end))) {
    math_.copy(last.output.view(), out.view());
    return out;
  }
  const nn::Buffer& added = place_.ranks > 1 ? last.summed : last.output;
  math_.add(tensors(end - kPartLength, microbatch).input.view(), added.view(), out.view());
  return out;
}

void OperatorChunk::normalize(int place, MicrobatchId microbatch) {
  OperatorTensors& own = tensors(place, microbatch);
  if (place > 0) own.input = passed_on(place - 1, microbatch);
  LONGHAUL_ASSERT(own.input, "{} of microbatch {} has no input", name(place), number(microbatch));
  own.inverse = memory_.take(to_size(rows_), NumberType::f32, "inverse root mean squares");
  own.output = take(rows_, shape_.hidden, "normed");
  math_.rms_norm(own.input.view(), weights(place), shape_.hidden, own.output.view(),
                 own.inverse.view());
}

/// What a product takes that begins a part of a layer: all tokens.
nn::ArrayView OperatorChunk::input_of_all(int place, MicrobatchId microbatch) {
  if (place_.sequence) return tensors(place, microbatch).gathered.view();
  return tensors(place - 1, microbatch).output.view();
}

void OperatorChunk::attend(int place, MicrobatchId microbatch) {
  OperatorTensors& own = tensors(place, microbatch);
  const nn::ArrayView qkv = tensors(place - 1, microbatch).output.view();
  math_.rotary(attention_, shape_.rotary_theta, nn::Direction::forward, qkv);
  own.output = take(all_rows_, place_.part_of(shape_.hidden), "attention");
  own.sums = memory_.take(to_size(all_rows_ * attention_.heads), NumberType::f32, "attention");
  math_.attention(attention_, qkv, own.output.view(), own.sums.view());
}

void OperatorChunk::forward(int place, MicrobatchId microbatch, Pass pass) {
  OperatorTensors& own = tensors(place, microbatch);
  const std::string_view kind = name(place);
  if (is_normalization(kind)) return normalize(place, microbatch);
  if (kind == "attention") return attend(place, microbatch);
  if (kind == "embedding") {
    own.output = take(rows_, shape_.hidden, "embedding");
    return math_.embed(tokens_[index_of(microbatch)].view(), weights(place), shape_.hidden,
                       own.output.view());
  }
  if (kind == "loss") {
    const nn::ArrayView logits = tensors(place - 1, microbatch).output.view();
    return math_.cross_entropy(targets_[index_of(microbatch)].view(), shape_.vocabulary,
                               loss_scale_, logits,
                               losses_.view().part(pass == Pass::again ? 1 : 0, 1));
  }
  if (kind == "swiglu") {
    const int width = place_.part_of(shape_.intermediate);
    own.output = take(all_rows_, width, "gated");
    return math_.swiglu(tensors(place - 1, microbatch).output.view(), width, own.output.view());
  }
  const nn::Linear product = linear_of(place);
  const bool begins = kind == "qkv" || kind == "gate_up";
  const int rows = kind == "head" ? rows_ : all_rows_;
  const nn::ArrayView input =
      begins ? input_of_all(place, microbatch) : tensors(place - 1, microbatch).output.view();
  own.output = take(rows, product.out, "product");
  product.forward(math_, rows, input, own.output.view());
  own.gathered = {};  // it is gathered again for the wgrad
}

nn::ArrayView OperatorChunk::gradient_after(int place, MicrobatchId microbatch) {
  const nn::Buffer& found = place + 1 < operators() ? tensors(place + 1, microbatch).gradient
                                                    : incoming_[index_of(microbatch)];
  LONGHAUL_ASSERT(found, "{} of microbatch {} has no gradient", name(place), number(microbatch));
  return found.view();
}

nn::ArrayView OperatorChunk::gradient_of_all(int place, MicrobatchId microbatch) {
  if (place_.sequence) return tensors(place, microbatch).gathered_gradient.view();
  return gradient_after(place, microbatch);
}

/// Adds to what passes the part by.
void OperatorChunk::normalization_gradient(int place, MicrobatchId microbatch,
                                           nn::ArrayView weights_gradient) {
  OperatorTensors& own = tensors(place, microbatch);
  OperatorTensors& after = tensors(place + 1, microbatch);
  const bool of_head = name(place) == "head_norm";
  const nn::ArrayView normed =
      (place_.ranks > 1 && !of_head ? after.summed_gradient : after.gradient).view();
  own.gradient = take(rows_, shape_.hidden, "gradient of what passes");
  if (!of_head) math_.copy(gradient_after(place + kPartLength, microbatch), own.gradient.view());
  math_.rms_norm_input_gradient(own.input.view(), weights(place), own.inverse.view(), normed,
                                shape_.hidden, !of_head, own.gradient.view());
  math_.rms_norm_weight_gradient(own.input.view(), own.inverse.view(), normed, shape_.hidden,
                                 weights_gradient);
}

void OperatorChunk::attend_gradient(int place, MicrobatchId microbatch) {
  OperatorTensors& own = tensors(place, microbatch);
  own.gradient = take(all_rows_, static_cast<int>(attention_.width()), "gradient of attention");
  math_.attention_gradient(attention_, tensors(place - 1, microbatch).output.view(),
                           own.output.view(), own.sums.view(),
                           tensors(place + 1, microbatch).gradient.view(), own.gradient.view());
  math_.rotary(attention_, shape_.rotary_theta, nn::Direction::inverse, own.gradient.view());
}

void OperatorChunk::input_gradient(int place, MicrobatchId microbatch,
                                   nn::ArrayView weights_gradient) {
  OperatorTensors& own = tensors(place, microbatch);
  const std::string_view kind = name(place);
  if (is_normalization(kind)) return normalization_gradient(place, microbatch, weights_gradient);
  if (kind == "attention") return attend_gradient(place, microbatch);
  if (kind == "swiglu") {
    const int width = place_.part_of(shape_.intermediate);
    own.gradient = take(all_rows_, 2 * width, "gradient of gate and up");
    return math_.swiglu_gradient(tensors(place - 1, microbatch).output.view(),
                                 tensors(place + 1, microbatch).gradient.view(), width,
                                 own.gradient.view());
  }
  const nn::Linear product = linear_of(place);
  const int rows = kind == "head" ? rows_ : all_rows_;
  const nn::ArrayView of_output = kind == "head" ? own.output.view()
                                  : ends_part(kind)
                                      ? gradient_of_all(place, microbatch)
                                      : tensors(place + 1, microbatch).gradient.view();
  own.gradient = take(rows, product.in, "gradient of a product");
  product.input_gradient(math_, rows, of_output, own.gradient.view());
}

void OperatorChunk::weight_gradient(int place, MicrobatchId microbatch,
                                    nn::ArrayView weights_gradient) {
  OperatorTensors& own = tensors(place, microbatch);
  const std::string_view kind = name(place);
  if (kind == "embedding")
    return math_.embed_gradient(tokens_[index_of(microbatch)].view(),
                                gradient_after(place, microbatch), shape_.hidden, weights_gradient);
  nn::Linear product = linear_of(place);
  product.gradient = weights_gradient;
  const nn::ArrayView before = tensors(place - 1, microbatch).output.view();
  if (kind == "head") return product.weight_gradient(math_, rows_, own.output.view(), before);
  if (ends_part(kind))
    return product.weight_gradient(math_, all_rows_, gradient_of_all(place, microbatch), before);
  product.weight_gradient(math_, all_rows_, tensors(place + 1, microbatch).gradient.view(),
                          input_of_all(place, microbatch));
}

nn::Buffer OperatorChunk::output(MicrobatchId microbatch) {
  return passed_on(operators() - 1, microbatch);
}

nn::Buffer OperatorChunk::gradient(MicrobatchId microbatch) {
  nn::Buffer copy = take(rows_, shape_.hidden, "gradient of the input");
  math_.copy(tensors(0, microbatch).gradient.view(), copy.view());
  return copy;
}

double OperatorChunk::loss() {
  float sum = 0;
  math_.copy_out(losses_.view().part(0, 1), {&sum, 1});
  return static_cast<double>(sum);
}

}  // namespace longhaul::training
