#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/result.hpp"
#include "planner/tune/family.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// What a method of training together changes in the result: nothing; gradients are of older
/// weights; gradients, or when they are exchanged, are others.
#define LONGHAUL_TRAINING_CHANGES(X) X(exact, "exact") X(stale, "stale") X(lossy, "lossy")
LONGHAUL_LISTED_ENUM(TrainingChange, LONGHAUL_TRAINING_CHANGES);
[[nodiscard]] TrainingChange change_of(const FamilyMember& member);

/// Why no plan trains by a member; nothing: plans can.
[[nodiscard]] std::optional<std::string> why_not_played(const FamilyMember& member);

/// Methods that plans may train by beside sums of gradients in each iteration.
struct TrainingMethods {
  double loss = 0;  ///< until which all train
  /// How exact sums learn, and how they may be exchanged too: as the first of `others`.
  FamilyMember dense;
  std::vector<FamilyMember> others;
  struct LeftOut {
    std::string method, reason;
  };
  std::vector<LeftOut> left_out{};  ///< allowed, but why_not_played()
  int bytes_of_weight = 4;          ///< of a number of a scenario's weights where it has no [model]

  /// Updates until the loss, in the median of runs, of `others`; without an index, of `dense`.
  [[nodiscard]] std::optional<double> updates(std::optional<std::size_t> other = {}) const;
};

/// The members that change no more than `most` and can be played, and those between two of them; of
/// exact ones that which takes the fewest updates. Throws Error where none is `none`, exact, and
/// reaches the loss after its first update (there is nothing to hold others against), and for a
/// staleness or bytes beyond what scenarios may have.
[[nodiscard]] TrainingMethods allowed_methods(const std::vector<FamilyMember>& members,
                                              TrainingChange most, double loss);

/// The scenario without sums of gradients.
[[nodiscard]] Scenario without_sums(Scenario scenario);

/// What any method finds on a schedule: bytes of blocks' messages between datacenters, those of all
/// gradients by the curve of exact sums, and an iteration without gradients.
struct BesideMethods {
  double block_bytes = 0, dense_bytes = 0;
  Duration alone{};
};
/// Refused where no gradients travel between datacenters, or parts of them cannot.
[[nodiscard]] Result<BesideMethods> beside_methods(const Schedule& schedule,
                                                   const Scenario& scenario,
                                                   const TrainingMethods& methods);

/// How a schedule trains by a method.
struct MethodPlay {
  /// Parts of gradients beside blocks, as f32 and as many times less over the WAN as on the curves,
  /// once the first exchanges are over; exact sums as wide as weights, as otherwise. Local steps
  /// are not in it.
  Scenario scenario;
  /// From an exchange to the next one, with all local steps between them.
  FamilyForecast forecast;
  Duration update{};  ///< in the mean of those until the loss
};
/// What follows an exchange: the next iteration at a barrier, or each block as its part is there.
enum class Played : std::uint8_t { to_a_barrier, streamed };
/// The schedule `stella` of the scenario, for Played::streamed. Refused where replicas have stages
/// or several microbatches, or it is not defined.
[[nodiscard]] Result<Schedule> stream_of_parts(const Scenario& scenario,
                                               const TrainingMethods& methods);
/// Time of an update: of an iteration from a barrier to the next one, the last update and the
/// longest optimizer's step in it. Staleness hides an exchange under later iterations at best,
/// never blocks under blocks of the next. With local steps the mean of one iteration with an
/// exchange and the others without; where the first exchanges send more, of these and the others.
/// Streamed: as `tune` plays a member, all local steps as one iteration of stream_of_parts(), and
/// the optimizer's steps. Refused where the method does not reach the loss, or its parts cannot be
/// exchanged.
[[nodiscard]] Result<MethodPlay> play_method(const Schedule& schedule, const Scenario& scenario,
                                             const TrainingMethods& methods, std::size_t method,
                                             const BesideMethods& beside,
                                             Played how = Played::to_a_barrier);

}  // namespace longhaul::planner
