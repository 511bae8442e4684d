#include "training/operators/operator_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace longhaul::training {

OperatorCheck::OperatorCheck(std::unique_ptr<WholeModel> reference,
                             std::vector<ParameterExtent> tensors)
    : reference_{std::move(reference)},
      tensors_{std::move(tensors)},
      tolerance_{tolerance_of(reference_->type())},
      began_with_{reference_->masters()} {
  std::ranges::sort(tensors_, {}, &ParameterExtent::first);
  const auto again = std::ranges::unique(tensors_, {}, &ParameterExtent::first);
  tensors_.erase(again.begin(), again.end());
}

/// Of several holders the first.
std::vector<float> OperatorCheck::whole(std::span<const RankNumbers> ranks, Numbers which) const {
  std::vector<float> all(began_with_.size());
  for (std::size_t rank = ranks.size(); rank-- > 0;) {
    auto from = (ranks[rank].*which).begin();
    for (const ShardRange& held : ranks[rank].held) {
      const auto end = from + static_cast<std::ptrdiff_t>(held.count);
      std::copy(from, end, all.begin() + static_cast<std::ptrdiff_t>(held.first));
      from = end;
    }
  }
  return all;
}

void OperatorCheck::find_missing(std::span<const RankNumbers> ranks,
                                 std::vector<WrongTensor>& wrong) const {
  std::vector<bool> is_held(began_with_.size());
  for (const RankNumbers& rank : ranks)
    for (const ShardRange& held : rank.held)
      std::fill_n(is_held.begin() + static_cast<std::ptrdiff_t>(held.first), held.count, true);
  for (const ParameterExtent& tensor : tensors_) {
    const auto first = is_held.begin() + static_cast<std::ptrdiff_t>(tensor.first);
    if (std::find(first, first + static_cast<std::ptrdiff_t>(tensor.count), false) !=
        first + static_cast<std::ptrdiff_t>(tensor.count))
      wrong.push_back({std::nullopt, tensor.name, "holder of a part",
                       std::numeric_limits<double>::quiet_NaN(), 0});
  }
}

void OperatorCheck::compare(std::span<const RankNumbers> ranks, Numbers which,
                            std::span<const float> expected, std::vector<WrongTensor>& wrong) {
  struct Sums {
    double difference = 0, norm = 0;
  };
  const bool is_gradient = which == &RankNumbers::gradients;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::map<std::size_t, Sums> sums;  // by tensor
    std::span<const float> mine{ranks[rank].*which};
    for (const ShardRange& held : ranks[rank].held) {
      const auto tensor =
          std::ranges::upper_bound(tensors_, held.first, {}, &ParameterExtent::first) - 1;
      Sums& own = sums[static_cast<std::size_t>(tensor - tensors_.begin())];
      for (std::size_t i = 0; i < held.count; ++i) {
        const double wanted = expected[held.first + i];
        own.difference += (mine[i] - wanted) * (mine[i] - wanted);
        own.norm += wanted * wanted;
      }
      mine = mine.subspan(held.count);
    }
    for (const auto& [tensor, own] : sums) {
      const double by = own.difference == 0 ? 0 : std::sqrt(own.difference / own.norm);
      if (is_gradient && !(by <= largest_)) largest_ = by;
      if (!(by <= tolerance_.same_type))
        wrong.push_back({rank, tensors_[tensor].name, is_gradient ? "gradient" : "weight", by,
                         tolerance_.same_type});
    }
  }
}

std::vector<WrongTensor> OperatorCheck::check(int iteration, double loss,
                                              std::span<const RankNumbers> ranks, int step) {
  std::vector<WrongTensor> wrong;
  find_missing(ranks, wrong);
  const WholeModel::Result expected = reference_->compute(iteration, began_with_);
  const double by =
      loss == expected.loss ? 0 : std::abs(loss - expected.loss) / std::abs(expected.loss);
  if (!(by <= tolerance_.same_type))
    wrong.push_back({std::nullopt, "loss", "it", by, tolerance_.same_type});
  compare(ranks, &RankNumbers::gradients, expected.gradients, wrong);
  const std::vector<float> stepped =
      reference_->step(began_with_, whole(ranks, &RankNumbers::gradients), step);
  compare(ranks, &RankNumbers::masters, stepped, wrong);
  began_with_ = whole(ranks, &RankNumbers::masters);
  ++checked_;
  return wrong;
}

}  // namespace longhaul::training
