#include "chunk_suite.hpp"

#include "base/random.hpp"

namespace longhaul::nn {

ModelShape tiny_model(int layers) {
  return {.batch = 2,
          .sequence = 5,
          .hidden = 16,
          .intermediate = 14,
          .heads = 4,
          .kv_heads = 2,
          .vocabulary = 13,
          .layers = layers,
          .rotary_theta = 100};
}

void ChunkSuite::SetUp() {
  if (GetParam().why_not) {
    const std::string why = GetParam().why_not();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  math_ = GetParam().make();
  memory_ = std::make_unique<DeviceMemory>(*math_, 0);
}

std::unique_ptr<Chunk> ChunkSuite::chunk(const ModelShape& shape, LayerRange layers,
                                         Recompute recompute, std::uint64_t seed) {
  return std::make_unique<Chunk>(math(), memory(), shape, layers, recompute, seed);
}

std::unique_ptr<Chunk> ChunkSuite::whole(const ModelShape& shape, Recompute recompute) {
  return chunk(shape, {0, shape.layers}, recompute);
}

void ChunkSuite::spread_weights(Chunk& chunk) {
  for (const Parameter& parameter : chunk.parameters()) {
    Random random{derived_seed(11, std::hash<std::string>{}(parameter.name))};
    const bool norm = parameter.name.ends_with("norm");
    std::vector<float> numbers(parameter.count);
    for (float& number : numbers) {
      number = static_cast<float>((norm ? 1 : 0) + random.uniform() - 0.5);
    }
    math().copy_in(numbers, parameter.master);
    math().copy(parameter.master, parameter.weights);
  }
}

naive::Weights ChunkSuite::weights(const Chunk& chunk) {
  naive::Weights found;
  for (const Parameter& parameter : chunk.parameters()) {
    found[parameter.name] = read(parameter.weights);
  }
  return found;
}

std::map<std::string, naive::Numbers> ChunkSuite::gradients(const Chunk& chunk) {
  std::map<std::string, naive::Numbers> found;
  for (const Parameter& parameter : chunk.parameters()) {
    found[parameter.name] = read(parameter.gradient);
  }
  return found;
}

Buffer ChunkSuite::random(std::size_t count, std::uint64_t seed) {
  Buffer made = memory().take(count, "random numbers");
  math().fill_random(seed, 1, made.view());
  return made;
}

naive::Numbers ChunkSuite::read(ArrayView view) {
  std::vector<float> numbers(view.count);
  math().copy_out(view, numbers);
  return {numbers.begin(), numbers.end()};
}

Pipeline ChunkSuite::pipeline(const ModelShape& shape, const std::vector<int>& cuts, int parts,
                              Recompute recompute) {
  std::vector<std::unique_ptr<Chunk>> chunks;
  int first = 0;
  for (const int count : cuts) {
    chunks.push_back(chunk(shape, {first, count}, recompute));
    spread_weights(*chunks.back());
    chunks.back()->set_loss_scale(0.125F);
    first += count;
  }
  return {std::move(chunks), parts, recompute};
}

Outcome ChunkSuite::outcome(const Pipeline& pipeline) {
  Outcome found;
  for (const auto& chunk : pipeline.chunks()) {
    found.loss += chunk->loss();
    for (const auto& [name, numbers] : gradients(*chunk)) found.gradients[name] = numbers;
    EXPECT_EQ(chunk->in_flight(), 0);
  }
  return found;
}

Outcome ChunkSuite::run(const ModelShape& shape, const std::vector<int>& cuts, int parts,
                        Recompute recompute, BackwardRun how) {
  Pipeline made = pipeline(shape, cuts, parts, recompute);
  const std::size_t before = memory().held();
  for (int microbatch = 0; microbatch < 3; ++microbatch) {
    made.forward(microbatch, tokens(shape, microbatch), targets(shape, microbatch));
    made.backward(microbatch, how);
    if (how == BackwardRun::apart) made.backward_weights(microbatch);
  }
  EXPECT_EQ(memory().held(), before) << "everything is given back";
  return outcome(made);
}

naive::Tokens ChunkSuite::tokens(const ModelShape& shape, int microbatch) {
  Random random{derived_seed(1, static_cast<std::uint64_t>(microbatch))};
  naive::Tokens made(shape.tokens());
  for (auto& token : made) {
    token = static_cast<std::int32_t>(random.between(0, shape.vocabulary - 1));
  }
  return made;
}

naive::Tokens ChunkSuite::targets(const ModelShape& shape, int microbatch) {
  naive::Tokens made = tokens(shape, microbatch + 1000);
  made.back() = -1;
  return made;
}

}  // namespace longhaul::nn
