#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "prefill/backlog_queue.hpp"

namespace longhaul::prefill {

/// Fills bubbles from a backlog with passes of ServedModel::chunk tokens and up to
/// ServedModel::batch prompts: the oldest that waits first, no one is passed over. A prompt that a
/// pass leaves unfinished goes on in the next one of its GPU. The last pass of a bubble takes as
/// many tokens as there is room for, where that is worth it (is_worth()). Models of one stage.
/// With BacklogOptions::apart no prompt goes on in the next iteration: it begins there anew.
class PassFiller {
public:
  PassFiller(const IterationBubbles& iteration, const Served& served,
             const std::vector<Request>& file, const BacklogOptions& options);
  [[nodiscard]] std::vector<Decision> fill();

private:
  /// A prompt that waits or of which some tokens are computed.
  struct Prompt {
    Request request;
    std::int64_t computed = 0;
    Duration compute{};
    std::vector<PlacedPass> passes{};
  };
  /// Of the prompts before a pass: how many tokens of each, by GPU's own first, then the queue's.
  struct Pass {
    std::vector<std::int64_t> tokens;
    Duration time{};
  };

  void refill(Duration now);
  void fill_bubble(const Bubble& bubble, Duration begin, std::int32_t pipeline);
  [[nodiscard]] const Prompt& candidate(const std::optional<Prompt>& own, std::size_t i) const;
  [[nodiscard]] std::optional<Pass> pass_of(const std::optional<Prompt>& own,
                                            std::int64_t tokens) const;
  [[nodiscard]] std::optional<Pass> fullest_pass(const std::optional<Prompt>& own,
                                                 Duration room) const;
  [[nodiscard]] bool is_worth_it(const std::optional<Prompt>& own, const Pass& pass) const;
  void run(const Pass& pass, Duration start, std::int32_t pipeline, std::optional<Prompt>& own);
  void finish(const Prompt& prompt, std::int32_t pipeline, bool is_done);
  void begin_anew();

  const IterationBubbles& iteration_;
  const Served& served_;
  EndlessFile requests_;
  BacklogOptions options_;
  std::int64_t most_refused_;
  Duration longest_{};  ///< bubble, less the guard
  std::deque<Prompt> queue_;
  std::vector<std::optional<Prompt>> own_;  ///< by GPU: the prompt that it has begun
  std::vector<Decision> decisions_;
};

}  // namespace longhaul::prefill
