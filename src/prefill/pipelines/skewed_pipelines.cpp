#include "prefill/pipelines/skewed_pipelines.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "prefill/pipelines/common_time.hpp"

namespace longhaul::prefill {
namespace {

/// Pipelines whose worth is worked out, and exchanges that are tried: a search that takes longer
/// ends with what it has.
constexpr std::int64_t kMostLooks = 400'000;
constexpr std::int64_t kMostExchanges = 20'000'000;

/// Searches of a datacenter: from the pipelines of equal places, the others from drawn ones.
constexpr int kStarts = 8;
constexpr std::uint64_t kSeed = 19;

using Ranks = std::vector<std::int32_t>;

/// Of the same worth: pipelines whose stages are of the same classes.
using Kind = std::vector<int>;

/// The GPUs of one datacenter as pipelines of k, the last one of fewer and of no worth where k do
/// not divide them. Pipelines of one kind are exchanged together.
class SkewSearch {
public:
  SkewSearch(CommonTime& common, std::vector<Ranks> start, int stages)
      : common_{&common}, stages_{to_size(stages)} {
    for (Ranks& ranks : start) add(std::move(ranks));
  }

  void exchange_while_it_gains() {
    while (common_->looks() < kMostLooks && exchanges_ < kMostExchanges && exchange_once()) {
    }
  }

  [[nodiscard]] SkewWorth worth() {
    SkewWorth sum;
    for (const auto& [kind, members] : members_)
      for (std::size_t i = 0; i < members.size(); ++i) sum += worth_of(kind);
    return sum;
  }
  [[nodiscard]] std::vector<Ranks> pipelines() const {
    std::vector<Ranks> all;
    for (const auto& [kind, members] : members_)
      if (kind.size() == stages_) all.insert(all.end(), members.begin(), members.end());
    return all;
  }

private:
  [[nodiscard]] Kind kind_of(const Ranks& ranks) const {
    Kind kind;
    for (const std::int32_t rank : ranks) kind.push_back(common_->class_of(rank));
    return kind;
  }
  [[nodiscard]] SkewWorth worth_of(const Kind& kind) {
    return kind.size() == stages_ ? common_->of(kind) : SkewWorth{};
  }
  void add(Ranks ranks) {
    Kind kind = kind_of(ranks);
    members_[std::move(kind)].push_back(std::move(ranks));
  }
  [[nodiscard]] Ranks take(const Kind& kind) {
    const auto own = members_.find(kind);
    Ranks ranks = std::move(own->second.back());
    own->second.pop_back();
    if (own->second.empty()) members_.erase(own);
    return ranks;
  }

  /// Stages i and j of one kind change places.
  [[nodiscard]] bool reorder(const Kind& kind) {
    for (std::size_t i = 0; i < kind.size(); ++i)
      for (std::size_t j = i + 1; j < kind.size(); ++j) {
        if (kind[i] == kind[j]) continue;
        Kind other = kind;
        std::swap(other[i], other[j]);
        ++exchanges_;
        if (worth_of(other) <= worth_of(kind)) continue;
        for (std::size_t all = members_.at(kind).size(); all > 0; --all) {
          Ranks ranks = take(kind);
          std::swap(ranks[i], ranks[j]);
          add(std::move(ranks));
        }
        return true;
      }
    return false;
  }

  /// Stage i of one kind and stage j of another, or of another pipeline of the same kind.
  [[nodiscard]] bool exchange(const Kind& a, const Kind& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < b.size(); ++j) {
        if (a[i] == b[j]) continue;
        Kind new_a = a, new_b = b;
        std::swap(new_a[i], new_b[j]);
        ++exchanges_;
        if (worth_of(new_a) + worth_of(new_b) <= worth_of(a) + worth_of(b)) continue;
        Ranks of_a = take(a), of_b = take(b);
        std::swap(of_a[i], of_b[j]);
        add(std::move(of_a));
        add(std::move(of_b));
        return true;
      }
    return false;
  }

  [[nodiscard]] bool exchange_once() {
    std::vector<Kind> kinds;
    for (const auto& [kind, members] : members_) kinds.push_back(kind);
    bool has_gained = false;
    const auto has = [&](const Kind& kind) { return members_.contains(kind); };
    for (std::size_t a = 0; a < kinds.size(); ++a) {
      if (has(kinds[a]) && reorder(kinds[a])) has_gained = true;
      for (std::size_t b = a; b < kinds.size(); ++b) {
        if (common_->looks() >= kMostLooks || exchanges_ >= kMostExchanges) return false;
        while (has(kinds[a]) && has(kinds[b]) && (a != b || members_.at(kinds[a]).size() > 1) &&
               exchange(kinds[a], kinds[b]))
          has_gained = true;
      }
    }
    return has_gained;
  }

  CommonTime* common_;  ///< never nullptr
  std::size_t stages_;
  std::map<Kind, std::vector<Ranks>> members_;
  std::int64_t exchanges_ = 0;
};

/// Of each datacenter its GPUs, ranks ascend.
std::vector<Ranks> gpus_by_datacenter(const Scenario& scenario) {
  std::map<DatacenterId, Ranks> ranks;
  for (std::int32_t rank = 0; rank < scenario.training_ranks(); ++rank)
    ranks[scenario.is_placed() ? scenario.datacenter_of(Rank{rank}) : DatacenterId{0}].push_back(
        rank);
  std::vector<Ranks> all;
  for (auto& [datacenter, own] : ranks) all.push_back(std::move(own));
  return all;
}

/// Those pipelines that lie in the datacenter, then the GPUs of none in order, k at a time.
std::vector<Ranks> first_pipelines(const Ranks& gpus, const std::vector<Pipeline>& equal,
                                   int stages) {
  std::vector<Ranks> all;
  Ranks rest = gpus;
  for (const Pipeline& pipeline : equal) {
    if (!std::ranges::binary_search(gpus, pipeline.ranks.front())) continue;
    all.push_back(pipeline.ranks);
    std::erase_if(rest, [&](std::int32_t rank) { return std::ranges::count(all.back(), rank); });
  }
  for (std::size_t i = 0; i < rest.size(); i += to_size(stages))
    all.emplace_back(
        rest.begin() + static_cast<std::ptrdiff_t>(i),
        rest.begin() + std::min(std::ssize(rest), static_cast<std::ptrdiff_t>(i) + stages));
  return all;
}

/// The GPUs of all of them in a drawn order, k at a time.
std::vector<Ranks> drawn_pipelines(Ranks gpus, int stages, Random& random) {
  for (std::size_t i = gpus.size(); i > 1; --i)
    std::swap(gpus[i - 1], gpus[to_size(random.between(0, static_cast<std::int64_t>(i) - 1))]);
  return first_pipelines(gpus, {}, stages);
}

/// The pipelines of the best search, of equal ones the first.
std::vector<Ranks> best_pipelines(CommonTime& common, const Ranks& gpus,
                                  const std::vector<Pipeline>& equal, int stages,
                                  SkewWorth& worth) {
  Random random{derived_seed(kSeed, static_cast<std::uint64_t>(gpus.front()), 0)};
  SkewSearch best{common, first_pipelines(gpus, equal, stages), stages};
  best.exchange_while_it_gains();
  worth = best.worth();
  for (int start = 1; start < kStarts; ++start) {
    SkewSearch search{common, drawn_pipelines(gpus, stages, random), stages};
    search.exchange_while_it_gains();
    const SkewWorth found = search.worth();
    if (found <= worth) continue;
    worth = found;
    best = std::move(search);
  }
  return best.pipelines();
}

/// Pipelines by what their worst GPU holds alone: of the best k GPUs one holds at most what the
/// k-th of them holds, and so on.
std::int64_t most_prompts(CommonTime& common, const Ranks& gpus, int stages) {
  std::vector<std::int64_t> alone;
  for (const std::int32_t rank : gpus) {
    const int own = common.class_of(rank);
    alone.push_back(common.of({&own, 1}).prompts);
  }
  std::ranges::sort(alone, std::greater{});
  std::int64_t most = 0;
  for (std::size_t i = to_size(stages); i <= alone.size(); i += to_size(stages))
    most += alone[i - 1];
  return most;
}

}  // namespace

ServingPipelines skewed_pipelines(const Scenario& scenario, const ServedModel& model, int cell,
                                  const IterationBubbles& iteration) {
  require_no_tensor_parallelism(scenario.parallel);
  const std::vector<Ranks> datacenters = gpus_by_datacenter(scenario);
  const std::size_t most = std::ranges::max(datacenters, {}, &Ranks::size).size();
  if (most < to_size(model.stages))
    fail(
        "prefill.stages = {} is more than the {} GPUs of the largest datacenter (skewed pipelines "
        "hold one stage on each). Use {} or less.",
        model.stages, most, most);
  std::vector<Pipeline> equal;
  if (model.stages <= scenario.parallel.replicas / cell)
    equal = serving_pipelines(scenario, model.stages, cell).pipelines;
  CommonTime common{iteration, model, *model.time(model.skewed_for)};
  const auto worth_of = [&](const Ranks& ranks) {
    std::vector<int> kind;
    for (const std::int32_t rank : ranks) kind.push_back(common.class_of(rank));
    return common.of(kind);
  };
  ServingPipelines serving;
  SkewGain gain;
  for (const Pipeline& pipeline : equal) gain.of_equal += worth_of(pipeline.ranks).prompts;
  for (const Ranks& gpus : datacenters) {
    SkewWorth worth;
    for (Ranks& ranks : best_pipelines(common, gpus, equal, model.stages, worth))
      serving.pipelines.push_back({0, std::move(ranks)});
    gain.prompts += worth.prompts;
    gain.upper_bound += most_prompts(common, gpus, model.stages);
    serving.left_over += static_cast<int>(gpus.size() % to_size(model.stages));
  }
  std::ranges::sort(serving.pipelines, {}, &Pipeline::ranks);
  for (std::size_t i = 0; i < serving.pipelines.size(); ++i)
    serving.pipelines[i].number = static_cast<std::int32_t>(i);
  serving.skew = gain;
  return serving;
}

}  // namespace longhaul::prefill
