#pragma once

#include <array>
#include <span>
#include <vector>

#include "collective/iteration/lower_iteration.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::collective {

/// From the begin of a transfer to the last arrival or departure.
struct Span {
  Duration start{}, end{};
};
/// A rank's part of a communication, from its first message to its last.
struct CommunicationSpan {
  CommunicationRef of;
  Span span;
};

/// By Traffic.
using TimeByTraffic = std::array<Duration, kCountOf<Traffic>>;
/// How long a rank communicates, and how much of it while its device computes nothing. Of one kind,
/// what overlaps counts once; of two kinds at the same time, once for each.
struct Exposure {
  TimeByTraffic communication{}, exposed{};
  [[nodiscard]] Duration total() const;          ///< of all kinds
  [[nodiscard]] Duration total_exposed() const;  ///< likewise
};

/// The times of a simulated iteration, by rank: of one that others stand for, theirs.
class IterationTimes {
public:
  /// Both outlive it.
  IterationTimes(const LoweredIteration& lowered, const OpTimes& times);
  [[nodiscard]] Duration makespan() const { return makespan_; }
  /// Those with operations and times of their own, ascending.
  [[nodiscard]] std::vector<Rank> ranks() const;
  [[nodiscard]] const std::vector<CommunicationSpan>& communications(Rank rank) const {
    return spans_[index(lowered_.standing_for(rank))];
  }
  /// Of the operation at that place in the stage's order.
  [[nodiscard]] Span operation(Rank rank, std::uint32_t place) const;
  [[nodiscard]] Duration computation(Rank rank) const;
  [[nodiscard]] Exposure exposure(Rank rank) const;

private:
  void take_rank(std::span<const Lane> lanes, std::vector<std::size_t>& part);
  [[nodiscard]] std::vector<Span> operations(Rank rank) const;

  const LoweredIteration& lowered_;
  const OpTimes& times_;
  std::vector<std::vector<CommunicationSpan>> spans_;  ///< by rank
  std::vector<std::vector<Span>> between_stages_;      ///< by rank: messages of the pipeline
  Duration makespan_{};
};

}  // namespace longhaul::collective
