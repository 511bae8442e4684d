#include "compress/rivals/momentum_correction.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"

namespace longhaul::compress {

Dgc::Dgc(const Settings& settings, std::int64_t count)
    : settings_{settings},
      state_{0, std::vector<float>(static_cast<std::size_t>(count)),
             std::vector<float>(static_cast<std::size_t>(count))} {
  check(compress::Settings{.method = Method::topk, .keep = settings.keep, .block = 1});
  if (!(settings.momentum >= 0 && settings.momentum <= 1))
    fail("dgc: momentum is {}. Give one from 0 to 1.", settings.momentum);
}

double Dgc::keep() const {
  constexpr std::array kStages{0.25, 0.0625, 0.015625, 0.004, 0.001};
  if (settings_.ramp_steps <= 0) return settings_.keep;
  const auto stage = static_cast<std::size_t>(state_.steps / settings_.ramp_steps);
  return stage < kStages.size() ? std::max(kStages[stage], settings_.keep) : settings_.keep;
}

SparseSet Dgc::take(std::span<const float> gradient) {
  auto& [steps, momenta, waiting] = state_;
  LONGHAUL_ASSERT(gradient.size() == momenta.size(), "{} numbers", gradient.size());
  for (std::size_t i = 0; i < momenta.size(); ++i) {
    momenta[i] = settings_.momentum * momenta[i] + gradient[i];
    waiting[i] += momenta[i];
  }
  const double share = keep();
  ++steps;
  Sparsifier sparsifier{{.method = Method::topk, .keep = share, .block = 1},
                        static_cast<std::int64_t>(waiting.size())};
  SparseSet sent = sparsifier.take(waiting);
  if (share < 1)
    for (const std::uint32_t place : sent.blocks) momenta[place] = 0;
  return sent;
}

void Dgc::restore(State state) {
  const std::size_t count = state_.momenta.size();
  if (state.momenta.size() != count || state.waiting.size() != count || state.steps < 0)
    fail("dgc: what is kept has {} and {} numbers, after {} steps, instead of {}. Begin anew.",
         state.momenta.size(), state.waiting.size(), state.steps, count);
  state_ = std::move(state);
}

}  // namespace longhaul::compress
