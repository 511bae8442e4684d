#include "compress/rivals/momentum_correction.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace longhaul::compress {

Dgc::Dgc(const Settings& settings, std::int64_t count)
    : settings_{settings},
      momenta_(static_cast<std::size_t>(count)),
      waiting_(static_cast<std::size_t>(count)) {
  check(compress::Settings{.method = Method::topk, .keep = settings.keep, .block = 1});
  if (!(settings.momentum >= 0 && settings.momentum <= 1))
    fail("dgc: momentum is {}. Give one from 0 to 1.", settings.momentum);
}

double Dgc::keep() const {
  constexpr std::array kStages{0.25, 0.0625, 0.015625, 0.004, 0.001};
  if (settings_.ramp_steps <= 0) return settings_.keep;
  const auto stage = static_cast<std::size_t>(steps_ / settings_.ramp_steps);
  return stage < kStages.size() ? std::max(kStages[stage], settings_.keep) : settings_.keep;
}

SparseSet Dgc::take(std::span<const float> gradient) {
  LONGHAUL_ASSERT(gradient.size() == momenta_.size(), "{} numbers", gradient.size());
  for (std::size_t i = 0; i < momenta_.size(); ++i) {
    momenta_[i] = settings_.momentum * momenta_[i] + gradient[i];
    waiting_[i] += momenta_[i];
  }
  const double share = keep();
  ++steps_;
  Sparsifier sparsifier{{.method = Method::topk, .keep = share, .block = 1},
                        static_cast<std::int64_t>(waiting_.size())};
  SparseSet sent = sparsifier.take(waiting_);
  if (share < 1)
    for (const std::uint32_t place : sent.blocks) momenta_[place] = 0;
  return sent;
}

}  // namespace longhaul::compress
