#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"

namespace longhaul {

/// What jitter makes of one message: factors on its latency and its transfer time.
struct JitterFactors {
  double latency = 1;
  double transfer = 1;
};

/// The jitter of one link. A factor is exp(sigma z) over its mean, with z close to standard normal
/// (Random::normal) and sigma^2 = log(1 + spread^2), as for a log-normal variable of that spread;
/// z = sqrt(c) x (draw of the iteration and link) + sqrt(1 - c) x (draw of the message), with c the
/// correlation. All follow from the arguments alone, by operations that give equal bits everywhere:
/// simulator, ranks and schedules meet the same iteration.
class LinkJitter {
public:
  LinkJitter(const Link& link, std::uint64_t seed);

  /// Of the message that `producer` on rank `from` sends to rank `to` in this iteration.
  [[nodiscard]] JitterFactors of(std::uint64_t iteration, Rank from, Rank to,
                                 const Block& producer) const;

private:
  /// One of the two quantities.
  struct Spread {
    double shared = 0;  ///< sigma of the draw that all messages of an iteration share
    double own = 0;
    double mean = 1;  ///< of the exponential
  };
  [[nodiscard]] static Spread spread_of(double spread, double correlation);

  std::uint64_t seed_;  ///< of the link
  Spread latency_, transfer_;
};

/// A plan whose messages vary as `[[link]] jitter` says; collectives do not.
class JitteredPlan {
public:
  JitteredPlan(Plan plan, const Scenario& scenario);
  /// The plan as one iteration finds it; valid until the next call.
  [[nodiscard]] const Plan& in(std::uint64_t iteration);

private:
  /// A message over a link with jitter, with the times that the plan gave it.
  struct Message {
    OpId send, recv;
    std::size_t link;
    Duration transfer, latency;
  };
  Plan plan_;
  std::vector<LinkJitter> links_;
  std::vector<Message> messages_;
};

}  // namespace longhaul
