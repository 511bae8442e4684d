#include "training/replay/replay_exchange.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

constexpr std::uint64_t kSeedOfReplicas = 1, kSeedOfSites = 2;

/// Of the numbers of a part, kept by each of `sets` that make up what is kept together.
double share_of_each(KeptShare share, double keep, std::size_t sets) {
  return share == KeptShare::split ? keep / static_cast<double>(sets) : keep;
}

}  // namespace

ReplayExchange::ReplayExchange(const GradientCompression& compress,
                               std::span<const int> site_of_replica, int part, std::size_t count,
                               int staleness)
    : feeds_back_{compress.feedback && is_sparse(compress.method)},
      share_{compress.share},
      staleness_{to_size(staleness)} {
  const std::size_t replicas = site_of_replica.size();
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    choosers_.emplace_back(compress, count, share_of_each(share_, compress.keep, replicas),
                           kSeedOfReplicas);
    residuals_.emplace_back(count);
  }
  if (compress.exchange != SetExchange::sites || replicas < 2) return;
  std::map<int, std::vector<std::size_t>> members;
  for (std::size_t replica = 0; replica < replicas; ++replica)
    members[site_of_replica[replica]].push_back(replica);
  for (const auto& [site, replicas_there] : members)
    sites_.emplace(site, Site{replicas_there,
                              replicas_there[to_size(part) % replicas_there.size()],
                              ReplayChooser{compress, count,
                                            share_of_each(share_, compress.keep, members.size()),
                                            kSeedOfSites},
                              {}});
}

void ReplayExchange::set_keep(double keep) {
  for (ReplayChooser& chooser : choosers_)
    chooser.set_share(share_of_each(share_, keep, choosers_.size()));
  for (auto& [number, site] : sites_)
    site.chooser.set_share(share_of_each(share_, keep, sites_.size()));
}

ReplaySet ReplayExchange::run(std::span<const std::span<const float>> gradients,
                              const SentSet& sent) {
  LONGHAUL_ASSERT(gradients.size() == choosers_.size(), "gradients of {} replicas, not {}",
                  gradients.size(), choosers_.size());
  for (auto& [number, site] : sites_)
    if (site.left.size() > staleness_) feed_back(site);
  std::vector<ReplaySet> sets;
  for (const ReplicaId replica : ids<ReplicaId>(static_cast<int>(gradients.size()))) {
    sets.push_back(own_set(index(replica), gradients[index(replica)]));
    if (sent) sent(replica, sets.back());
  }
  if (sites_.empty()) return sum_of_sets(sets);
  std::vector<ReplaySet> of_sites;
  for (auto& [number, site] : sites_) of_sites.push_back(set_of_site(site, sets));
  return sum_of_sets(of_sites);
}

std::span<const float> ReplayExchange::residual(ReplicaId replica) const {
  return residuals_[index(replica)];
}

ReplaySet ReplayExchange::own_set(std::size_t replica, std::span<const float> gradient) {
  if (!feeds_back_) {
    std::vector<float> sum(gradient.begin(), gradient.end());
    return choosers_[replica].take(sum);
  }
  std::vector<float>& residual = residuals_[replica];
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = residual[i] + gradient[i];
  return choosers_[replica].take(residual);
}

/// The leader chooses anew of the sum of its site, in which numbers that no set has are 0. What it
/// does not send it keeps for its own next gradient.
ReplaySet ReplayExchange::set_of_site(Site& site, std::span<const ReplaySet> sets) {
  std::vector<ReplaySet> of_members;
  for (const std::size_t member : site.members) of_members.push_back(sets[member]);
  ReplaySet sum = sum_of_sets(of_members);
  ReplaySet chosen = site.chooser.take(sum.numbers);
  if (feeds_back_) site.left.push_back(std::move(sum.numbers));
  return chosen;
}

void ReplayExchange::feed_back(Site& site) {
  std::vector<float>& residual = residuals_[site.leader];
  for (std::size_t i = 0; i < residual.size(); ++i)
    residual[i] = residual[i] + site.left.front()[i];
  site.left.pop_front();
}

void ReplayExchange::finish() {
  for (auto& [number, site] : sites_)
    while (!site.left.empty()) feed_back(site);
}

}  // namespace longhaul::training
