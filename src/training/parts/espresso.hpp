#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "training/parts/part_method.hpp"

namespace longhaul::training {

/// What the cost model takes for true: a network of 25 Gbps, and devices whose passes over a tensor
/// take a start and a rate. In the place of what Espresso (Wang et al., EuroSys 2023) measures on
/// its GPUs; no link of the scenario is looked at. The two of a choice are fitted: single numbers
/// of 1, 5 or 10% are worth it for 7 of Swin-B's 329 tensors, as StellaTrain saw it (section 5.1: 7
/// of 330), the seven above 2 million numbers. The other costs are assumed.
struct EspressoCosts {
  double bytes_per_second = 25e9 / 8;
  double start_seconds = 30e-6;         ///< of a pass to halves
  double halves_per_second = 100e9;     ///< bytes that it reads in a second
  double choice_start_seconds = 67e-5;  ///< to choose, gather, and sum what came
  double choices_per_second = 40e9;     ///< bytes of the tensor in a second of all that
};

/// A tensor of so many numbers that costs least, compression and exchange: dense, as halves, or by
/// `sparse` as `sets` replicas send it. Of equal ones the first.
[[nodiscard]] CompressMethod espresso_choice(const GradientCompression& sparse,
                                             std::int64_t numbers, int sets,
                                             const EspressoCosts& costs = {});

/// Numbers of a part that follow each other and are sent in one way.
struct PartPiece {
  std::int64_t first = 0, numbers = 0;  ///< among the part's
  CompressMethod method = CompressMethod::none;
  friend bool operator==(const PartPiece&, const PartPiece&) = default;
};

struct PartChoice {
  std::vector<PartPiece> pieces;  ///< all numbers of the part, in their order
  double bits = 32;               ///< on the wire for a number, nominal
};

/// The choice for each tensor of a part (with the zeros after it), of whose numbers each stands
/// for `scale`. Dense neighbours of one method are one piece; sparse tensors are chosen from apart.
[[nodiscard]] PartChoice choose_for_part(const nn::ParameterPlaces& tensors,
                                         const GradientCompression& sparse, int sets,
                                         double scale = 1, const EspressoCosts& costs = {});

/// Of each part of the model, in its order, by [train.compress] and stands_for.
[[nodiscard]] std::vector<PartChoice> choose_for_parts(const Schedule& schedule,
                                                       const Scenario& scenario);

/// What `sparse` says of a part, piece by piece with the method chosen for it. A payload has for
/// each piece 4 bytes of length and a payload of its own. Throws Error as make_part_method(), and
/// where pieces are not the part's numbers.
[[nodiscard]] std::unique_ptr<PartMethod> make_espresso(const std::vector<PartPiece>& pieces,
                                                        const GradientCompression& sparse,
                                                        const PartPlace& place,
                                                        const StepSettings& step);

}  // namespace longhaul::training
