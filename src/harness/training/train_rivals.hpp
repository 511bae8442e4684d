#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/training/train_method.hpp"

namespace longhaul::harness {

/// Makes of `method` a rival as its authors define it: optimizer inside, factors, and dense sets in
/// the plan, which TrainMethod::bits_of_part() resizes.
void make_rival_method(TrainMethod& method, training::Rival rival);

/// The keys of its bare numbers, as in "diloco:20" and "streaming-diloco:20,4,2"; empty where it
/// takes none.
[[nodiscard]] std::vector<std::string> number_keys(const TrainMethod& method);

/// Sets a key that only rivals have; false where it is none of them: warmup, ramp, steps, outer,
/// momentum, decay, inner, rank, fragments, overlap, mixing, bits; feedback of 4 bits. Throws Error
/// where the rival does not have the key, whatever key it is.
[[nodiscard]] bool set_rival_key(TrainMethod& method, const std::string& key,
                                 const std::string& value);

/// After the last key: takes over what [train.compress] has of it. Throws Error where settings
/// contradict each other.
void finish_rival(TrainMethod& method);

/// In a run of so many iterations: of 1-bit Adam without a typed warm-up, a fifth of its steps.
[[nodiscard]] std::optional<training::RivalSettings> with_warm_up(
    std::optional<training::RivalSettings> rival, int iterations);

}  // namespace longhaul::harness
