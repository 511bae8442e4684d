// What ReplicaWork keeps between iterations, for checkpoints and for those who judge.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "training/parts/replica_work.hpp"

namespace longhaul::training {

void InTurn::run(int turn, const std::function<void()>& work) {
  {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return next_ == turn; });
  }
  const auto pass_on = [this] {
    const std::lock_guard lock{mutex_};
    ++next_;
    changed_.notify_all();
  };
  try {
    work();
  } catch (...) {
    pass_on();
    throw;
  }
  pass_on();
}

/// The run goes on with the weights as they are; take_kept() makes of these those of dense steps,
/// off the clock.
void ReplicaWork::keep(std::size_t number, int iteration) {
  if (settings_.keep_every == 0) return;
  if ((iteration + 1) % settings_.keep_every != 0 && iteration != settings_.last) return;
  CatchUp catch_up = parts_[number]->method->catch_up();
  const std::lock_guard lock{mutex_};
  std::vector<float>& all = kept_[iteration];
  all.resize(ranges_.back().first + ranges_.back().count);
  std::ranges::copy(parts_[number]->weights,
                    all.begin() + static_cast<std::ptrdiff_t>(ranges_[number].first));
  if (catch_up) to_catch_up_[iteration].emplace_back(ranges_[number], std::move(catch_up));
}

std::map<int, std::vector<float>> ReplicaWork::take_kept() {
  for (auto& [iteration, parts] : to_catch_up_)
    for (auto& [range, catch_up] : parts)
      catch_up(std::span{kept_.at(iteration)}.subspan(range.first, range.count));
  to_catch_up_.clear();
  return std::exchange(kept_, {});
}

void ReplicaWork::save(StateWriter& to) const {
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part* const part = parts_[p].get();
    LONGHAUL_ASSERT(part->flights.empty(), "{} iterations are under way", part->flights.size());
    to.put_all<float>(part->weights);
    to.put(static_cast<std::uint64_t>(part->versions.size()));
    for (const Version& version : part->versions) {
      to.put(version.iteration);
      to.put_all<float>(*version.weights);
    }
    to.put(static_cast<std::uint64_t>(part->made.size()));
    for (const auto& [iteration, weights] : part->made) {
      to.put(iteration);
      to.put_all<float>(*weights);
    }
    if (ops_.parts()[p].is_gathered()) to.put_all<double>(part->seen);
    if (part->method) part->method->save(to);
    if (part->local) part->local->save(to);
  }
}

void ReplicaWork::load(StateReader& from, int iterations) {
  const auto take_weights = [&] {
    return std::make_shared<const std::vector<float>>(from.take_all<float>());
  };
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    Part* const part = parts_[p].get();
    from.take_same(part->weights);
    part->versions.clear();
    for (auto count = from.take<std::uint64_t>(); count > 0; --count) {
      const int iteration = from.take<int>();
      part->versions.push_back({iteration, take_weights()});
    }
    for (auto count = from.take<std::uint64_t>(); count > 0; --count) {
      const int iteration = from.take<int>();
      part->made[iteration] = take_weights();
    }
    if (ops_.parts()[p].is_gathered()) part->seen = from.take_all<double>();
    if (part->method) part->method->load(from);
    if (part->local) {
      part->local->load(from);
      put_weights(*part, part->local->weights());
    }
    const auto rounds = static_cast<int>(ops_.parts()[p].rounds.size());
    part->sets.set_next(iterations);
    part->choices.set_next(rounds * iterations);
    part->answers.set_next((rounds - 1) * iterations);
    part->updates.set_next(2 * iterations);
  }
}

void ReplicaWork::finish() {
  for (const auto& part : parts_)
    if (part->method) part->method->finish();
}

std::vector<float> ReplicaWork::weights() const {
  std::vector<float> all;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    all.resize(std::max(all.size(), ranges_[p].first + ranges_[p].count));
    std::ranges::copy(parts_[p]->weights,
                      all.begin() + static_cast<std::ptrdiff_t>(ranges_[p].first));
  }
  return all;
}

}  // namespace longhaul::training
