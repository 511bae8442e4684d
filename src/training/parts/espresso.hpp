#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/training.hpp"
#include "training/parts/part_method.hpp"

namespace longhaul::training {

/// What the cost model takes for true: a network of 25 Gbps, and devices whose passes over a part
/// take a start and a rate. Assumed, in the place of what Espresso (Wang et al., EuroSys 2023)
/// measures on its GPUs; no link of the scenario is looked at.
struct EspressoCosts {
  double bytes_per_second = 25e9 / 8;
  double start_seconds = 30e-6;      ///< of a pass
  double halves_per_second = 100e9;  ///< bytes that a pass to halves reads in a second
  double choices_per_second = 20e9;  ///< bytes that a pass of a choice reads
  int passes_of_choice = 3;          ///< choose, gather, and sum what came
};

/// A part of so many numbers that costs least: dense, as halves, or by `sparse` as `sets` replicas
/// send it. Of equal ones the first.
[[nodiscard]] CompressMethod espresso_choice(const GradientCompression& sparse,
                                             std::int64_t numbers, int sets,
                                             const EspressoCosts& costs = {});

/// Of each part of a plan of dense f32 sets (CompressMethod::none), whose sets become as long as
/// its choice makes them.
[[nodiscard]] std::vector<CompressMethod> choose_for_parts(Plan& plan,
                                                           const GradientCompression& sparse,
                                                           int sets);

/// Of part PartPlace::number the method that was chosen for it.
[[nodiscard]] std::unique_ptr<PartMethod> make_espresso(const std::vector<CompressMethod>& chosen,
                                                        GradientCompression sparse,
                                                        const PartPlace& place,
                                                        const StepSettings& step);

}  // namespace longhaul::training
