// What ranks tell each other of ops; versions and sources, which follow from it.
#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/index.hpp"
#include "engine/events/event_player.hpp"

namespace longhaul::engine {

/// Who hears of which op: those whose ops depend on it, and all ranks with a source. (Ranks whose
/// deadlines move have windows.)
void EventPlayer::find_listeners() {
  const comm::HostRanks& host_ranks = state_.host_ranks;
  const Rank self = host_ranks.self();
  std::map<std::pair<Rank, Rank>, bool> pairs;  // tells, hears
  const auto add = [&](OpId op, Rank to) {
    const Rank from = plan_.rank_of(op);
    if (from == to) return;
    pairs[{from, to}] = true;
    if (from != self) return;
    auto& ranks = listeners_[op];
    if (std::ranges::find(ranks, to) == ranks.end()) ranks.push_back(to);
  };
  for (const plan::FarDependency& far : plan_.extras.far) add(far.before, plan_.rank_of(far.op));
  has_sources_ = !plan_.extras.sources.empty();
  std::set<Rank> with_windows;
  for (const plan::OpWindow& window : plan_.extras.windows)
    with_windows.insert(plan_.rank_of(window.op));
  for (std::int32_t r = 0; r < std::ssize(plan_.ranks); ++r) {
    if (facts_.listeners[to_size(r)] != 0)
      for (std::uint32_t id = 0; id < plan_.ops.size(); ++id) add(OpId{id}, Rank{r});
    if (!with_windows.contains(Rank{r})) continue;
    for (std::int32_t from = 0; from < std::ssize(plan_.ranks); ++from)
      if (from != r) pairs[{Rank{from}, Rank{r}}] = true;
    if (Rank{r} != self) told_of_begins_.push_back(Rank{r});
  }
  for (const auto& [pair, tells] : pairs) {
    if (pair.first == self && !host_ranks.is_local(pair.second)) distant_.push_back(pair.second);
    if (pair.second != self || host_ranks.is_local(pair.first)) continue;
    distant_news_.push_back(std::make_unique<NewsFrom>());
    distant_news_.back()->rank = pair.first;
  }
}

void EventPlayer::publish(OpNews::Kind kind, OpId op, int iteration, TimePoint at) {
  std::span<const Rank> ranks{told_of_begins_};
  if (kind != OpNews::Kind::begun) {
    const auto found = listeners_.find(op);
    ranks = found == listeners_.end() ? std::span<const Rank>{} : std::span{found->second};
  }
  const bool is_heeded = kind == OpNews::Kind::ended && deadlines_.heeds(op);
  if (ranks.empty() && !is_heeded) return;
  const plan::Draw* const drawn = kind == OpNews::Kind::ended ? draw_of(op) : nullptr;
  const OpNews news{.at_ns = at.count(),
                    .op = static_cast<std::uint32_t>(op),
                    .iteration = iteration,
                    .kind = kind,
                    .words = drawn == nullptr ? plan::DrawnWords{} : drawn->words};
  tell(ranks, news);
  if (is_heeded) tell_who_heeds(ranks, news);
}

/// Through the board to ranks of this host, to others by a message each.
void EventPlayer::tell(std::span<const Rank> ranks, const OpNews& news) {
  bool on_board = false;
  for (const Rank rank : ranks) {
    if (!state_.host_ranks.is_local(rank)) {
      send_news(rank, news);
      continue;
    }
    if (!std::exchange(on_board, true)) board_.publish(news);
    state_.host_ranks.ring_doorbell(rank);
  }
}

/// Ranks whose deadlines move: all that has windows may have such. They read the board before they
/// decide, so that by the host's clock no one wakes them, but where the board is full.
void EventPlayer::tell_who_heeds(std::span<const Rank> told, const OpNews& news) {
  const auto is_told = [&](Rank rank) { return std::ranges::find(told, rank) != told.end(); };
  bool on_board =
      std::ranges::any_of(told, [&](Rank rank) { return state_.host_ranks.is_local(rank); });
  for (const Rank rank : told_of_begins_) {
    if (is_told(rank)) continue;
    if (!state_.host_ranks.is_local(rank)) {
      send_news(rank, news);
      continue;
    }
    if (!std::exchange(on_board, true)) board_.publish(news);
    if (virtual_clock() != nullptr || board_.has_backlog()) state_.host_ranks.ring_doorbell(rank);
  }
}

void EventPlayer::send_news(Rank to, const OpNews& news) {
  auto kept = std::make_unique<OpNews>(news);
  const auto bytes = std::as_bytes(std::span{kept.get(), 1});
  news_out_[state_.transport.send(to, state_.tags.leases().to_home, bytes)] = std::move(kept);
  state_.transport.ring_doorbell(to);
}

void EventPlayer::receive_news(Rank from) {
  const auto other =
      std::ranges::find(distant_news_, from, [](const auto& each) { return each->rank; });
  expected_news_[state_.transport.receive(from, state_.tags.leases().to_home,
                                          std::as_writable_bytes(std::span{&(*other)->news, 1}))] =
      other->get();
}

bool EventPlayer::hear(TimePoint at) {
  board_.read(heard_);
  if (heard_.empty()) return false;
  for (const OpNews& news : heard_) heed(news, at, true);
  heard_.clear();
  return true;
}

/// Stamps of another host's clock say nothing here: it counts from when it is seen.
void EventPlayer::heed(const OpNews& news, TimePoint at, bool same_clock) {
  const TimePoint when = same_clock ? TimePoint{news.at_ns} : at;
  moves_ = true;
  if (news.kind == OpNews::Kind::begun) return begin_windows(news.iteration, when);
  if (news.kind == OpNews::Kind::quiet) return (void)end_waiting_sources(at);
  const bool skipped = news.kind == OpNews::Kind::skipped;
  if (facts_.waits_for_ranks && news.iteration >= live_.oldest())
    remote_[news.iteration][OpId{news.op}] = {skipped, when};
  if (!skipped) note_end(OpId{news.op}, news.iteration, when, news.words);
}

/// An op of any rank has ended: for sources, deadlines and versions.
void EventPlayer::note_end(OpId op, int iteration, TimePoint at, const plan::DrawnWords& words) {
  sources_.add({op, iteration, at - began_, words});
  deadlines_.add({op, iteration, at - began_});
  if (facts_.watched.empty() || facts_.watched[index(op)] == 0) return;
  std::vector<int>& ended = ended_[op];
  ended.insert(std::ranges::upper_bound(ended, iteration), iteration);
  // A version is of the iteration itself or of the latest one: older ones are not asked for.
  const auto old = std::ranges::lower_bound(ended, live_.oldest() - facts_.reach_of_versions);
  if (old - ended.begin() > 1) ended.erase(ended.begin(), old - 1);
}

/// Windows of an iteration count from now on.
void EventPlayer::begin_windows(int iteration, TimePoint at) {
  if (iteration < live_.oldest() || !begun_.emplace(iteration, at).second) return;
  moves_ = true;
  for (LaneState& lane : lanes_)
    for (const OpInstance* const op : lane.waiting)
      if (op->iteration == iteration && op->stage == Stage::admitted) expect_give_up(*op, at);
}

/// All that ends in this instant has ended.
void EventPlayer::meet_versions() {
  for (OpInstance* const op : unmet_) {
    for (const plan::FarDependency& far : facts_.far_of(op->op)) {
      if (far.strength == plan::Strength::strong) continue;
      const std::vector<int>& ended = ended_[far.before];
      const auto next = std::ranges::upper_bound(ended, op->iteration - far.iterations_back);
      op->version = next == ended.begin()
                        ? stream_.version_before(op->iteration, far.iterations_back)
                        : *std::prev(next);
      live_.settle(*op);
    }
  }
  unmet_.clear();
}

/// Of a send that a source has drawn: it may be on its way, uncounted (counts_word()).
bool EventPlayer::waits_for_word() const {
  return std::ranges::any_of(lanes_, [&](const LaneState& lane) {
    return lane.way == Way::sourced && plan_.lanes[index(lane.id)].kind == OpKind::send &&
           !lane.waiting.empty();
  });
}

/// Can nothing move here unless another rank says something?
bool EventPlayer::is_quiet() {
  return timers_.empty() && in_progress_ == 0 && !waits_for_word() && !first_request() &&
         decided_.empty() && !moves_;
}

/// Nothing happens any more on any rank of this host: sources that wait for an end have drawn their
/// last. The first rank to see it tells the others that have sources.
bool EventPlayer::rest(TimePoint at) {
  if (!has_sources_ || !is_quiet()) return false;
  board_.set_quiet(true);
  if (std::exchange(told_activity_, activity_) != activity_) {
    for (const Rank rank : state_.host_ranks.local())
      if (facts_.listeners[index(rank)] != 0 && rank != state_.host_ranks.self())
        state_.host_ranks.ring_doorbell(rank);
  }
  const auto waits = [](const Sources::Entry& entry) {
    return entry.state == Sources::State::for_end;
  };
  if (std::ranges::none_of(sources_.entries(), waits) || !board_.all_quiet()) return false;
  board_.set_quiet(false);
  board_.publish({at.count(), 0, 0, OpNews::Kind::quiet, 0});
  for (const Rank rank : state_.host_ranks.local())
    if (facts_.listeners[index(rank)] != 0) state_.host_ranks.ring_doorbell(rank);
  return end_waiting_sources(at);
}

bool EventPlayer::end_waiting_sources(TimePoint at) {
  bool ended = false;
  for (Sources::Entry& entry : sources_.entries()) {
    if (entry.state != Sources::State::for_end) continue;
    end_source_iteration(entry, at);
    ended = true;
  }
  if (ended) ++activity_;
  return ended;
}

bool EventPlayer::ask_source(Sources::Entry& entry, TimePoint at) {
  LaneState& lane = lanes_[place_[index(entry.lane)]];
  if (lane.iteration < stream_.first) begin_iteration(lane);
  const plan::Decision decision = sources_.ask(entry, at - began_, lane.iteration);
  moves_ = true;
  if (const auto* drawn = std::get_if<plan::Draw>(&decision)) {
    draw(entry, *drawn, at);
  } else if (const auto* wait = std::get_if<plan::WaitUntil>(&decision)) {
    if (began_ + wait->time <= at && virtual_clock() != nullptr)
      fail(
          "the source of lane \"{}\" waits until {} ns at {} ns (that is over). Let it wait for a "
          "later time, or for an end.",
          plan_.lanes[index(entry.lane)].name, wait->time.count(), (at - began_).count());
    entry.state = Sources::State::until;
    entry.until = began_ + wait->time;
    timers_.push({entry.until, Timer::Kind::wake, kNone<OpId>, -1});
  } else if (const auto* for_end = std::get_if<plan::WaitForEnd>(&decision)) {
    entry.state = Sources::State::for_end;
    entry.until = Duration::max();
    if (for_end->until < Duration::max()) {
      entry.until = std::max(began_ + for_end->until, at + Duration{1});
      timers_.push({entry.until, Timer::Kind::wake, kNone<OpId>, -1});
    }
  } else {
    end_source_iteration(entry, at);
  }
  return true;
}

/// What a source of this rank said of its op; nullptr: nothing, or the op is on no such lane.
const plan::Draw* EventPlayer::draw_of(OpId op) const {
  if (sources_.none() || !live_.is_mine(op)) return nullptr;
  return sources_.draw_of(plan_.op(op).lane, op);
}

void EventPlayer::draw(Sources::Entry& entry, const plan::Draw& draw, TimePoint at) {
  LaneState& lane = lanes_[place_[index(entry.lane)]];
  Sources::take(entry, plan_.lanes[index(entry.lane)], draw);
  OpInstance& drawn = live_.at(draw.op, lane.iteration);
  if (drawn.stage == Stage::skipped) {  // it depends on one that does not run
    entry.state = Sources::State::due;
    return;
  }
  entry.state = Sources::State::busy;
  entry.drawn = &drawn;
  lane.waiting.push_back(&drawn);
  admit(drawn, at);
}

/// What was not drawn will not run; the lane's next iteration begins.
void EventPlayer::end_source_iteration(Sources::Entry& entry, TimePoint at) {
  LaneState& lane = lanes_[place_[index(entry.lane)]];
  const auto first = static_cast<std::uint32_t>(index(plan_.lanes[index(entry.lane)].first));
  for (std::uint32_t k = 0; k < lane.count; ++k)
    if (!entry.taken[k]) skip(live_.at(OpId{first + k}, lane.iteration), Outcome::undrawn, at);
  entry.taken.assign(lane.count, false);
  entry.state = begin_iteration(lane) ? Sources::State::due : Sources::State::over;
  moves_ = true;
}

}  // namespace longhaul::engine
