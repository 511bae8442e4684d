#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::plan {

/// The effect of jitter on one message: factors on its latency and its transfer time.
struct JitterFactors {
  double latency = 1;
  double transfer = 1;
};

/// The jitter of one link. A log-normal factor is exp(sigma z) over its mean, with z close to
/// standard normal (Random::normal) and sigma^2 = log(1 + spread^2), as for a log-normal variable
/// of that spread; z = sqrt(c) x (draw of the iteration and link) + sqrt(1 - c) x (draw of the
/// message), with c the correlation. One of another kind is 1 + spread x, with x drawn for the
/// message, or with probability sqrt(c) the iteration's and link's, so that two messages have
/// correlation c. All follow from the arguments alone, by operations that give equal bits
/// everywhere: simulator, ranks and schedules meet the same iteration.
class LinkJitter {
public:
  /// `seed` where the link has none of its own.
  LinkJitter(const Link& link, std::uint64_t seed);

  /// Factors of the message that `producer` on rank `from` sends to rank `to` in this iteration.
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

  /// A distribution other than log-normal.
  [[nodiscard]] double factor(double spread, Random& all, Random& one) const;

  std::uint64_t seed_;  ///< of the link
  Jitter jitter_;
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

}  // namespace longhaul::plan
