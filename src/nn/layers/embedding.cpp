#include <unordered_map>

#include "base/index.hpp"
#include "nn/layers/layer.hpp"

namespace longhaul::nn {

namespace {

/// Layer 0: each token's row of a table. Its D has nothing to do; W adds up rows.
class Embedding final : public Layer {
public:
  explicit Embedding(const ModelShape& shape) : shape_{shape} {}

  [[nodiscard]] std::vector<ParameterNeed> needs() const override {
    const auto rows = to_size(shape_.vocabulary);
    return {{"embedding.table", rows * to_size(shape_.hidden), kWeightBound, rows}};
  }
  void bind(std::span<const Parameter> parameters) override { table_ = parameters[0]; }
  void set_batch(int sequences) override { shape_.batch = sequences; }

  [[nodiscard]] Buffer forward(const BlockContext& work, Buffer /*input*/, Output output) override {
    if (output == Output::leave) return {};
    Buffer out = work.take(shape_.boundary(), 0, "output");
    work.math.embed(work.tokens, table_.weights, shape_.hidden, out.view());
    return out;
  }
  [[nodiscard]] Buffer forget(MicrobatchId /*microbatch*/) override { return {}; }
  [[nodiscard]] Buffer input_gradient(const BlockContext& work, Buffer gradient) override {
    doutput_[work.microbatch] = std::move(gradient);
    return {};
  }
  void weight_gradient(const BlockContext& work) override {
    const auto found = doutput_.find(work.microbatch);
    work.math.embed_gradient(work.tokens, found->second.view(), shape_.hidden, table_.gradient);
    doutput_.erase(found);
  }

private:
  ModelShape shape_;
  Parameter table_;
  std::unordered_map<int, Buffer> doutput_;
};

}  // namespace

std::unique_ptr<Layer> make_embedding(const ModelShape& shape) {
  return std::make_unique<Embedding>(shape);
}

}  // namespace longhaul::nn
