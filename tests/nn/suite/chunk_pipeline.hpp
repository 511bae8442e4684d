#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "naive.hpp"
#include "nn/layers/chunk.hpp"

namespace longhaul::nn {

/// B, or D and W by themselves.
enum class BackwardRun : std::uint8_t { both, apart };

struct Outcome {
  float loss = 0;
  std::map<std::string, naive::Numbers> gradients;
};

/// Some chunks that hold a model together, in order.
class Pipeline {
public:
  Pipeline(std::vector<std::unique_ptr<Chunk>> chunks, int parts, Recompute recompute)
      : chunks_{std::move(chunks)}, parts_{parts}, recompute_{recompute} {}
  [[nodiscard]] const std::vector<std::unique_ptr<Chunk>>& chunks() const { return chunks_; }

  void forward(int number, const naive::Tokens& tokens, const naive::Tokens& targets) {
    const MicrobatchId microbatch{number};
    chunks_.front()->set_tokens(microbatch, tokens);
    chunks_.back()->set_targets(microbatch, targets);
    Buffer passing;
    for (const auto& chunk : chunks_) {
      for (int part = 0; part < parts_; ++part) {
        passing = chunk->forward(microbatch, {part, parts_}, std::move(passing));
      }
    }
  }
  void backward(int number, BackwardRun how) {
    const MicrobatchId microbatch{number};
    Buffer passing;
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
      recompute(**chunk, microbatch);
      for (int part = 0; part < parts_; ++part) {
        const BlockPart which{part, parts_};
        passing = how == BackwardRun::both
                      ? (*chunk)->backward(microbatch, which, std::move(passing))
                      : (*chunk)->backward_input(microbatch, which, std::move(passing));
      }
    }
    EXPECT_FALSE(passing);
  }
  void backward_weights(int number) {
    const MicrobatchId microbatch{number};
    for (const auto& chunk : chunks_) {
      for (int part = 0; part < parts_; ++part) chunk->backward_weight(microbatch, {part, parts_});
    }
  }

private:
  void recompute(Chunk& chunk, MicrobatchId microbatch) const {
    if (recompute_ == Recompute::off) return;
    for (int part = 0; part < parts_; ++part) chunk.recompute(microbatch, {part, parts_});
  }
  std::vector<std::unique_ptr<Chunk>> chunks_;
  int parts_;
  Recompute recompute_;
};

}  // namespace longhaul::nn
