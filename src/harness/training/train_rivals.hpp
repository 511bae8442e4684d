#pragma once

#include <string>

#include "harness/training/train_method.hpp"

namespace longhaul::harness {

/// Makes of `method` a rival as its authors define it: optimizer inside, factors, and dense sets in
/// the plan, which TrainMethod::bits_of_part() resizes.
void make_rival_method(TrainMethod& method, training::Rival rival);

/// The key of its bare number, as in "diloco:20"; nullptr where it takes none.
[[nodiscard]] const char* number_key(const TrainMethod& method);

/// Sets a key that only rivals have; false where it is none of them: warmup, ramp, steps, outer,
/// momentum, decay, inner. Throws Error where the rival does not have the key, whatever key it is.
[[nodiscard]] bool set_rival_key(TrainMethod& method, const std::string& key,
                                 const std::string& value);

/// After the last key: takes over what [train.compress] has of it. Throws Error where settings
/// contradict each other.
void finish_rival(TrainMethod& method);

}  // namespace longhaul::harness
