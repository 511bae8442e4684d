#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/index.hpp"

namespace longhaul::testing {

/// Operators of two ranks that hold the weights together, of one microbatch: what each takes, and
/// how long its weights are on their way.
struct ToyOperator {
  std::int64_t forward, dgrad, wgrad, gather;  ///< ns
};

/// The shortest iteration of all that cut each collective, with its first user or the last that
/// makes it, into one of `pieces`, order each operator's dgrad and wgrad either way, and gather one
/// unit ahead or all from the start. One computation and one collective run at a time; of these
/// what waits for an operation goes ahead of a gather that is issued with the next one. Kept apart
/// from plans and simulator on purpose.
class ToyOracle {
public:
  ToyOracle(std::vector<ToyOperator> operators, std::vector<int> pieces, std::int64_t overhead)
      : operators_{std::move(operators)}, pieces_{std::move(pieces)}, overhead_{overhead} {}

  [[nodiscard]] std::int64_t shortest() {
    const std::size_t count = operators_.size();
    for (std::size_t first = 0; first < std::size_t{1} << count; ++first)
      for (const std::size_t ahead : {std::size_t{1}, 3 * count}) {
        lay_out(first, ahead);
        choose(0);
      }
    return shortest_;
  }

private:
  struct Step {
    std::int64_t duration = 0;
    int gathered = -1, scattered = -1;  ///< collective that it waits for, that it makes
    int cut = 1;
  };
  struct Piece {
    std::int64_t start = -1, end = -1;
  };
  struct Transfer {
    std::int64_t duration = 0;
    std::size_t step = 0;  ///< its user, or what makes it
    bool is_gather = false;
    std::size_t issued = 0;  ///< of a gather: with the start of that step; 0: from the start
    int cut = 1;
  };

  /// Bit i of `first`: W of operator i ahead of its D. The last operator's weights are kept.
  void lay_out(std::size_t first, std::size_t ahead) {
    steps_.clear();
    transfers_.clear();
    std::vector<std::size_t> uses;  // steps that need a unit anew, or again
    const auto add = [&](std::int64_t duration) {
      steps_.push_back({duration});
      return steps_.size() - 1;
    };
    const auto gather = [&](std::size_t of, std::size_t step) {
      const std::size_t use = uses.size();
      uses.push_back(step);
      const std::size_t issued = use > ahead ? uses[use - ahead] : 0;
      steps_[step].gathered = static_cast<int>(transfers_.size());
      transfers_.push_back({operators_[of].gather, step, true, issued});
    };
    const std::size_t count = operators_.size();
    for (std::size_t i = 0; i < count; ++i) gather(i, add(operators_[i].forward));
    for (std::size_t i = count; i-- > 0;) {
      const bool wgrad_first = (first >> i & 1) != 0;
      std::size_t wgrad = wgrad_first ? add(operators_[i].wgrad) : 0;
      const std::size_t dgrad = add(operators_[i].dgrad);
      if (!wgrad_first) wgrad = add(operators_[i].wgrad);
      if (i + 1 < count)
        gather(i, dgrad);
      else
        uses.push_back(dgrad);
      steps_[wgrad].scattered = static_cast<int>(transfers_.size());
      transfers_.push_back({operators_[i].gather, wgrad, false, wgrad + 1});
    }
    std::ranges::stable_sort(order_of_transfers(), [&](int a, int b) {
      const auto key = [&](int t) {
        return std::pair{transfers_[to_size(t)].issued, transfers_[to_size(t)].is_gather};
      };
      return key(a) < key(b);
    });
  }

  std::vector<int>& order_of_transfers() {
    order_.clear();
    for (std::size_t t = 0; t < transfers_.size(); ++t) order_.push_back(static_cast<int>(t));
    return order_;
  }

  void choose(std::size_t transfer) {
    if (transfer == transfers_.size()) {
      shortest_ = std::min(shortest_, makespan());
      return;
    }
    for (const int pieces : pieces_) {
      transfers_[transfer].cut = pieces;
      // An operation that is cut already is not cut again.
      int& of_step = steps_[transfers_[transfer].step].cut;
      if (pieces > 1 && of_step > 1) continue;
      const int before = of_step;
      of_step = std::max(of_step, pieces);
      choose(transfer + 1);
      of_step = before;
    }
    transfers_[transfer].cut = 1;
  }

  /// Steps and transfers in turn, each as soon as what it needs is known.
  [[nodiscard]] std::int64_t makespan() const {
    std::vector<std::vector<Piece>> steps(steps_.size()), transfers(transfers_.size());
    for (std::size_t s = 0; s < steps.size(); ++s) steps[s].resize(to_size(steps_[s].cut));
    for (std::size_t t = 0; t < transfers.size(); ++t)
      transfers[t].resize(to_size(transfers_[t].cut));
    std::size_t step = 0, step_piece = 0, next = 0, next_piece = 0;
    std::int64_t computed = 0, sent = 0;
    for (bool moved = true; moved;) {
      moved = false;
      if (step < steps.size()) {
        std::int64_t ready = computed;
        bool known = true;
        if (const int t = steps_[step].gathered; t >= 0) {
          const auto& parts = transfers[to_size(t)];
          const bool own = parts.size() == steps[step].size();
          const Piece& wanted = own ? parts[step_piece] : parts.back();
          known = wanted.end >= 0;
          ready = std::max(ready, wanted.end);
        }
        if (known) {
          const std::int64_t whole = steps_[step].duration;
          const auto cut = static_cast<std::int64_t>(steps[step].size());
          const auto piece = static_cast<std::int64_t>(step_piece);
          computed =
              ready + whole / cut + (piece < whole % cut ? 1 : 0) + (piece > 0 ? overhead_ : 0);
          steps[step][step_piece] = {ready, computed};
          if (++step_piece == steps[step].size()) ++step, step_piece = 0;
          moved = true;
        }
      }
      if (next < order_.size()) {
        const Transfer& own = transfers_[to_size(order_[next])];
        auto& parts = transfers[to_size(order_[next])];
        std::int64_t ready = sent;
        bool known = true;
        if (own.is_gather) {
          if (own.issued > 0) {
            known = steps[own.issued].front().start >= 0;
            ready = std::max(ready, steps[own.issued].front().start);
          }
        } else {
          const auto& makers = steps[own.step];
          const Piece& maker = makers.size() == parts.size() ? makers[next_piece] : makers.back();
          known = maker.end >= 0;
          ready = std::max(ready, maker.end);
        }
        if (known) {
          sent = ready + own.duration / static_cast<std::int64_t>(parts.size());
          parts[next_piece] = {ready, sent};
          if (++next_piece == parts.size()) ++next, next_piece = 0;
          moved = true;
        }
      }
    }
    // Each waits for the other: no iteration.
    if (step < steps.size() || next < order_.size()) return shortest_;
    return std::max(computed, sent);
  }

  std::vector<ToyOperator> operators_;
  std::vector<int> pieces_;
  std::int64_t overhead_;
  std::vector<Step> steps_;
  std::vector<Transfer> transfers_;
  std::vector<int> order_;
  std::int64_t shortest_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace longhaul::testing
