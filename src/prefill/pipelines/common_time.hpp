#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "prefill/bubbles/bubbles.hpp"
#include "scenario/served_model.hpp"

namespace longhaul::prefill {

/// What a pipeline's bubbles hold in an iteration: more prompts first, then more time.
struct SkewWorth {
  std::int64_t prompts = 0;  ///< of one length, back to back
  Duration time{};           ///< in which every stage may compute its part
  friend auto operator<=>(const SkewWorth&, const SkewWorth&) = default;
  SkewWorth& operator+=(const SkewWorth& other) {
    prompts += other.prompts;
    time += other.time;
    return *this;
  }
  friend SkewWorth operator+(SkewWorth a, const SkewWorth& b) { return a += b; }
};

/// How many prompts of one length the bubbles of GPUs hold together, stage i's computed by the i-th
/// of them: so long after the first's as earlier stages and hops take. GPUs of equal bubbles are of
/// one class, and so are answers.
class CommonTime {
public:
  /// `whole`: of the prompt, all stages.
  CommonTime(const IterationBubbles& iteration, const ServedModel& model, Duration whole);

  [[nodiscard]] int class_of(std::int32_t rank) const {
    return classes_[static_cast<std::size_t>(rank)];
  }
  /// Of the first stages of a pipeline, by class; of all k it is the pipeline's worth. Nothing of
  /// none.
  [[nodiscard]] const SkewWorth& of(std::span<const int> classes);
  /// How often it was worked out.
  [[nodiscard]] std::int64_t looks() const { return looks_; }

private:
  struct TimeRange {
    Duration start{}, end{};
  };
  [[nodiscard]] SkewWorth work_out(std::span<const int> classes) const;
  [[nodiscard]] std::vector<TimeRange> shifted(int gpu_class, Duration by) const;

  const ServedModel& model_;
  Duration whole_, period_;
  std::vector<int> classes_;                   ///< by rank
  std::vector<std::vector<TimeRange>> times_;  ///< by class: bubbles less the guard
  std::map<std::vector<int>, SkewWorth> known_;
  std::int64_t looks_ = 0;
};

}  // namespace longhaul::prefill
