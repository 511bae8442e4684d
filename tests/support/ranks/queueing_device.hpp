#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "engine/device.hpp"

namespace longhaul::testing {

/// As a stream of a GPU, without one: blocks in order, stamped, each as soon as it can; the host
/// hears of an end only `lag` later.
class QueueingDevice final : public engine::Device {
public:
  struct Played {
    OpId op{};
    TimePoint given{}, not_before{}, start{}, end{};
  };
  QueueingDevice(int depth, Duration lag) : depth_{depth}, lag_{lag} {}

  void begin_iteration(int /*iteration*/) override { played.clear(); }
  [[nodiscard]] int depth() const override { return depth_; }
  void start(OpId op, TimePoint begin, Duration duration) override {
    const TimePoint given = now();
    const TimePoint start = std::max({begin, given, free_});
    free_ = start + duration;
    played.push_back({op, given, begin, start, free_});
    open_.push_back(played.back());
  }
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override {
    if (open_.empty() || at < open_.front().end + lag_) return std::nullopt;
    const Played block = open_.front();
    open_.pop_front();
    return engine::FinishedBlock{block.op, block.end, block.start};
  }
  [[nodiscard]] TimePoint next_event() const override {
    return open_.empty() ? kNever : open_.front().end + lag_;
  }

  std::vector<Played> played;

private:
  int depth_;
  Duration lag_;
  TimePoint free_{};
  std::deque<Played> open_;
};

}  // namespace longhaul::testing
