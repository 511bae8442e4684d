#include "wan_emulator/wan_model.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::wan_emulator {

Serializer::Passage Serializer::pass(Passage at, Bytes size) {
  const Duration first = std::max(at.first, free_);
  free_ = std::max(at.last, first + size / rate_);
  return {first, free_};
}

Bytes Serializer::backlog(Duration now) const {
  if (rate_.is_unlimited() || free_ <= now) return {};
  const double seconds = std::chrono::duration<double>(free_ - now).count();
  return Bytes{static_cast<std::int64_t>(seconds * rate_.bits_per_second() / 8)};
}

WanModel::WanModel(const WanSettings& settings) : settings_{settings} {
  LONGHAUL_ASSERT(settings.sites >= 2, "{} sites", settings.sites);
  for (int from = 0; from < settings.sites; ++from) {
    sites_.push_back({Serializer{settings.node}, Serializer{settings.node}, {}});
    for (int to = 0; to < settings.sites; ++to) {
      PathSettings path = settings.all;
      for (const WanSettings::Pair& pair : settings.pairs)
        if ((pair.a == from && pair.b == to) || (pair.a == to && pair.b == from)) path = pair.path;
      const auto key = static_cast<std::uint64_t>(from * settings.sites + to);
      paths_.push_back(
          {path, Serializer{path.rate}, Random{derived_seed(settings.seed, key)}, {}, {}});
    }
  }
}

std::size_t WanModel::index(int from, int to) const {
  return static_cast<std::size_t>(from * settings_.sites + to);
}

bool WanModel::offer(Duration now, int from, int to, Bytes size, Frame frame) {
  Path& path = this->path(from, to);
  Site& site = sites_[static_cast<std::size_t>(from)];
  ++path.counters.packets;
  path.counters.bytes += size.count();
  if (path.settings.loss > 0 && path.loss.uniform() < path.settings.loss) {
    ++path.counters.lost;
    return false;
  }
  const auto full = [&](const Serializer& at) {
    const Bytes waiting = at.backlog(now);
    return waiting > Bytes{0} && waiting + size > settings_.queue;
  };
  if (full(site.egress) || full(path.rate) || held_ + size > settings_.memory) {
    ++path.counters.dropped;
    return false;
  }
  held_ += size;
  auto passage = path.rate.pass(site.egress.pass({now, now}, size), size);
  passage.first += path.settings.latency;
  passage.last += path.settings.latency;
  path.on_the_way.push_back({from, passage, size, std::move(frame)});
  return true;
}

std::optional<Duration> WanModel::next_event() const {
  std::optional<Duration> next;
  const auto consider = [&](const std::deque<Packet>& queue) {
    if (!queue.empty()) next = std::min(next.value_or(Duration::max()), queue.front().passage.last);
  };
  for (const Path& path : paths_) consider(path.on_the_way);
  for (const Site& site : sites_) consider(site.arriving);
  return next;
}

void WanModel::arrive(Duration now) {
  for (int to = 0; to < settings_.sites; ++to) {
    for (;;) {  // the earliest of all that come here goes first through the interface
      Path* earliest = nullptr;
      for (int from = 0; from < settings_.sites; ++from) {
        Path& candidate = path(from, to);
        if (candidate.on_the_way.empty() || candidate.on_the_way.front().passage.last > now)
          continue;
        if (earliest == nullptr ||
            candidate.on_the_way.front().passage.last < earliest->on_the_way.front().passage.last)
          earliest = &candidate;
      }
      if (earliest == nullptr) break;
      enter(to, *earliest);
    }
  }
}

void WanModel::enter(int site, Path& from) {
  Site& here = sites_[static_cast<std::size_t>(site)];
  Packet packet = std::move(from.on_the_way.front());
  from.on_the_way.pop_front();
  const Bytes waiting = here.ingress.backlog(packet.passage.last);
  if (waiting > Bytes{0} && waiting + packet.size > settings_.queue) {
    held_ -= packet.size;
    ++from.counters.dropped;
    return;
  }
  packet.passage = here.ingress.pass(packet.passage, packet.size);
  here.arriving.push_back(std::move(packet));
}

std::optional<WanModel::Delivery> WanModel::take_due(Duration now) {
  arrive(now);
  int first = -1;
  Duration due = Duration::max();
  for (int site = 0; site < settings_.sites; ++site) {
    const auto& queue = sites_[static_cast<std::size_t>(site)].arriving;
    if (queue.empty() || queue.front().passage.last > now || queue.front().passage.last >= due)
      continue;
    first = site;
    due = queue.front().passage.last;
  }
  if (first < 0) return std::nullopt;
  auto& queue = sites_[static_cast<std::size_t>(first)].arriving;
  Packet packet = std::move(queue.front());
  queue.pop_front();
  held_ -= packet.size;
  ++path(packet.from, first).counters.delivered;
  return Delivery{first, due, std::move(packet.frame)};
}

}  // namespace longhaul::wan_emulator
