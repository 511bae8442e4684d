#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "scenario/served_model.hpp"

namespace longhaul::prefill {

/// What training leaves free on one GPU from a time of the iteration on, until the next step.
struct FreeMemoryStep {
  Duration at{};
  Bytes bytes;
};

/// A time in which a GPU has too little.
struct MemoryShortage {
  Bytes lacks;       ///< at most
  Duration until{};  ///< from then on it has enough; max(): it never has
};

/// The memory of each GPU over many iterations: what training leaves free, which repeats with the
/// period, less what prompts hold.
class MemoryOverTime {
public:
  /// Steps by GPU, ascending from 0 on; none of a GPU whose capacity is not known: all fits there.
  MemoryOverTime(Duration period, std::vector<std::vector<FreeMemoryStep>> steps);

  /// Where less than `need` is free at some time of [from, until): the last such time. nullopt: all
  /// fits.
  [[nodiscard]] std::optional<MemoryShortage> last_shortage(std::int32_t rank, Duration from,
                                                            Duration until, Bytes need) const;
  /// The most that is ever free, where nothing is held.
  [[nodiscard]] std::optional<Bytes> most_free(std::int32_t rank) const;
  /// The least.
  [[nodiscard]] std::optional<Bytes> least_free(std::int32_t rank) const;
  void hold(std::int32_t rank, Duration from, Duration until, Bytes bytes);
  /// No call asks before this time any more.
  void forget(std::int32_t rank, Duration before);
  /// The end of all that is held on any GPU.
  [[nodiscard]] Duration last_release() const { return last_release_; }

private:
  struct Hold {
    Duration from{}, until{};
    Bytes bytes;
  };
  [[nodiscard]] Bytes left_by_training(std::int32_t rank, Duration time) const;
  /// When that changes next.
  [[nodiscard]] Duration next_step(std::int32_t rank, Duration after) const;
  [[nodiscard]] Bytes free_at(std::int32_t rank, Duration time) const;
  /// When that may change next.
  [[nodiscard]] Duration next_change(std::int32_t rank, Duration after) const;

  Duration period_, last_release_{};
  std::vector<std::vector<FreeMemoryStep>> steps_;
  std::vector<std::vector<Hold>> holds_;
};

/// Bytes that a prompt holds on the GPU of a stage: keys and values of the stage's layers, and what
/// a pass of `in_pass` tokens needs while it runs. None without dimensions.
[[nodiscard]] Bytes prompt_memory(const ServedModel& model, std::int64_t tokens,
                                  std::int64_t in_pass, int stage);
/// The same of a prompt all in all: its widest pass is of `chunk` tokens at most.
[[nodiscard]] Bytes held_memory(const ServedModel& model, std::int64_t tokens, int stage);
/// Layers of a stage: equal shares, the remainder on the first.
[[nodiscard]] int layers_of_stage(const ServedModel& model, int stage);

}  // namespace longhaul::prefill
