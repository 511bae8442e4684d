#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "compress/rivals/tensor_chunks.hpp"
#include "compress/settings.hpp"
#include "plan/parts/set_exchange.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "training/parts/part_method.hpp"

namespace longhaul::training {

/// Methods of other authors with a payload, or an optimizer, of their own (docs/training.md, "Other
/// methods"; their arithmetic is in compress/rivals/).
#define LONGHAUL_RIVALS(X)                \
  X(dgc, "dgc")                           \
  X(demo, "demo")                         \
  X(onebit, "onebit")                     \
  X(powersgd, "powersgd")                 \
  X(localsgd, "localsgd")                 \
  X(diloco, "diloco")                     \
  X(streaming_diloco, "streaming-diloco") \
  X(sparseloco, "sparseloco")
LONGHAUL_LISTED_ENUM(Rival, LONGHAUL_RIVALS);

/// Do its replicas step by themselves and exchange how far they came?
[[nodiscard]] constexpr bool steps_locally(Rival rival) { return rival >= Rival::localsgd; }
/// Is what it sends summed as it is, so that sites may sum it on the way?
[[nodiscard]] constexpr bool sends_all(Rival rival) {
  return rival == Rival::localsgd || rival == Rival::diloco || rival == Rival::powersgd;
}
/// Have its messages sizes that do not depend on the numbers, so that a plan has them to the byte?
[[nodiscard]] constexpr bool has_exact_sizes(Rival rival) {
  return rival == Rival::powersgd || rival == Rival::streaming_diloco;
}

inline constexpr int kFourBits = 4, kAllBits = 32;  ///< of RivalSettings::bits

struct RivalSettings {
  Rival rival = Rival::dgc;
  double keep = 0.01;  ///< dgc, sparseloco: of the numbers; demo: of the coefficients
  compress::IndexFormat index = compress::IndexFormat::gaps;  ///< of dgc
  float momentum = 0;                                         ///< of dgc, or of the outer step
  float decay = 1;      ///< of demo's momentum, and of what waits with sparseloco
  int warm_up = 0;      ///< onebit: dense steps before; dgc: steps of each stage of its ramp
  int local_steps = 1;  ///< between two exchanges
  float outer_rate = 1;
  int rank = 0;         ///< of powersgd
  int fragments = 1;    ///< of streaming-diloco: P
  int overlap = 0;      ///< tau: local steps between a fragment's exchange and its update
  float mixing = 0.5F;  ///< where tau is above 0: share of a replica's own weights after an update
  int bits = kAllBits;  ///< of a number of its outer gradients: 32 or 4
  bool feedback = false;  ///< of 4 bits: what rounding leaves joins the next outer gradient
};

/// As the authors define it. Gradients are divided by the tokens of all replicas
/// (docs/training.md), so that sums of sets are the mean of which the authors write; those of
/// steps_locally() are the weights before less those after the local steps, and their mean is taken
/// here. Throws Error where the settings cannot be.
[[nodiscard]] std::unique_ptr<PartMethod> make_rival(const RivalSettings& settings,
                                                     const PartPlace& place,
                                                     const StepSettings& step);

/// The chunks of a part's tensors, as DeMo and SparseLoCo choose in them; of one whose tensors are
/// not known, of one vector.
[[nodiscard]] std::vector<compress::TensorChunk> chunks_of(const PartPlace& place,
                                                           std::size_t across, std::size_t along);

/// Bits on the wire of a number of a part, in the long run. Nominal: places of "gaps" are those of
/// numbers drawn at random. Not of those whose exchanges_of_rival() have sizes.
[[nodiscard]] double bits_per_number(const RivalSettings& settings);

/// How a method's parts are exchanged where that is not once, all at the end, with a size of
/// bits_per_number(): sizes are of whole messages, envelopes and headers too, as they travel, times
/// [train] stands_for. Throws Error where no such exchange can be (check_rank()).
[[nodiscard]] plan::PartExchanges exchanges_of_rival(const RivalSettings& settings,
                                                     const Schedule& schedule,
                                                     const Scenario& scenario);

/// The same in each of the first steps, as long as a warm-up or a ramp lasts.
[[nodiscard]] std::vector<double> early_bits(const RivalSettings& settings);

/// Makes the sets of a plan of dense f32 sets (CompressMethod::none) as long as so many bits for
/// each number of a part, by the part's number in the model: size and time on the links.
void resize_sets(Plan& plan, const std::function<double(int part)>& bits);

}  // namespace longhaul::training
