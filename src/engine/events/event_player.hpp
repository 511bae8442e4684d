#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/engine_state.hpp"
#include "engine/events/event_facts.hpp"
#include "engine/events/event_message.hpp"
#include "engine/events/hold_table.hpp"
#include "engine/events/live_ops.hpp"
#include "engine/events/op_board.hpp"
#include "engine/events/stream_control.hpp"
#include "engine/plan_player.hpp"
#include "plan/asked_deadlines.hpp"
#include "plan/asked_sources.hpp"
#include "plan/stream_values.hpp"

namespace longhaul::engine {

/// Plays a rank's part of a plan with extras (plan/extras/), or of a stream: what EventDriver
/// (sim/events/) does for all ranks in virtual time, each rank does here for its own ops, from what
/// it sees and what others tell it. Ranks share tables of what they hold (HoldTable), tell each
/// other of ops (OpBoard), and say of each message whether it runs (EventHeader, ReadyWord).
///
/// What is decided at the end of an instant (sources, places in order of readiness, choices,
/// versions) is decided one by one for all ranks under a virtual clock; by the host's clock each
/// rank decides when it has nothing else to do.
class EventPlayer final : public PlanPlayer {
public:
  /// Collective over the ranks. All outlive this.
  EventPlayer(EngineState& state, Device& device);

  void prepare(const plan::Stream& stream, int first, const PlayedWeather& weather, Sink sink,
               StreamControl* control) override;
  void begin(TimePoint at) override;
  [[nodiscard]] bool done() const override;
  void finish() override;
  bool step(TimePoint at) override;
  bool decide(TimePoint at) override;
  bool rest(TimePoint at) override;
  [[nodiscard]] bool took(const comm::Completion& completion, TimePoint at) override;
  [[nodiscard]] TimePoint next_timer() const override {
    return timers_.empty() ? kNever : timers_.top().due;
  }
  void publish_wait() override;
  [[nodiscard]] std::size_t most_live_iterations() const override { return live_.most_live(); }

  [[nodiscard]] std::optional<Request> first_request() override;
  void decide_first() override;

private:
  using Way = EventFacts::Way;
  using Access = EventFacts::Access;
  using Stage = OpInstance::Stage;
  using Sources = plan::AskedSources<OpInstance*>;

  struct LaneState {
    LaneId id{};
    Way way = Way::in_turn;
    Serve serve = Serve::order;
    std::uint32_t next = 0, count = 0;  ///< places in the lane
    int iteration = -1;
    bool busy = false;  ///< what it alone holds is held
    bool has_mandatory = false;
    TimePoint last_start{}, free{};
    OpId last = kNone<OpId>;
    OpInstance* awaited = nullptr;  ///< of a pool: the op that the rest of the lane waits for
    std::uint32_t open_mandatory = 0, open_all = 0;
    std::vector<OpInstance*> waiting;  ///< not in turn: admitted, not served
  };
  struct Timer {
    enum class Kind : std::uint8_t { wake, begin, hold_over, arrival, give_up };
    TimePoint due{};
    Kind kind = Kind::wake;
    OpId op{};
    int iteration = 0;
    bool operator>(const Timer& other) const { return due > other.due; }
  };
  struct Timers : std::priority_queue<Timer, std::vector<Timer>, std::greater<>> {
    /// Wakes no one for the begin of `op` any more.
    void drop_begin(const OpInstance& op) {
      std::erase_if(c, [&](const Timer& timer) {
        return timer.kind == Timer::Kind::begin && timer.op == op.op &&
               timer.iteration == op.iteration;
      });
      std::make_heap(c.begin(), c.end(), comp);
    }
  };
  enum class Role : std::uint8_t {
    header_out,
    payload_out,
    word_out,
    header_in,
    payload_in,
    word_in
  };
  struct Expectation {
    Role role{};
    EventMessage* message = nullptr;
  };
  /// What was decided for an op; not heeded yet.
  struct Decided {
    OpInstance* op = nullptr;
    TimePoint start{};
    bool misses = false;
  };

  // event_player.cpp: the loop and the lanes
  bool take_timers(TimePoint at);
  bool finish_blocks(TimePoint at);
  bool heed_decisions(TimePoint at);
  bool advance_lanes(TimePoint at);
  bool advance_in_turn(LaneState& lane, TimePoint at);
  bool admit_pool(LaneState& lane, TimePoint at);
  bool bring_waiting(LaneState& lane, TimePoint at);
  bool begin_iteration(LaneState& lane);
  void hand_over();
  [[nodiscard]] PlayedOps played(const std::vector<OpInstance>& ops) const;

  // event_player_places.cpp: what ends earlier or later than planned
  [[nodiscard]] bool keeps_places(const OpInstance& op) const;
  void note_place(OpInstance& op, TimePoint from, Duration takes, const Cause& cause);
  void move_places_up(const OpInstance& op, TimePoint due, TimePoint at);
  [[nodiscard]] bool leave_late(const OpInstance& op, TimePoint due, TimePoint at);
  void abandon(OpInstance& op, TimePoint at);
  void find_lone_sets();

  // event_player_ops.cpp: an op from admission to its end
  void admit(OpInstance& op, TimePoint at);
  bool bring(OpInstance& op, TimePoint at);
  bool post(OpInstance& op, TimePoint at);
  bool ask(OpInstance& op, TimePoint at);
  void start(OpInstance& op, TimePoint start, TimePoint at);
  [[nodiscard]] bool must_wait(const OpInstance& op) const;
  void begin_op(OpInstance& op, TimePoint at);
  void end(OpInstance& op, TimePoint due, TimePoint at);
  void skip(OpInstance& op, Outcome outcome, TimePoint at);
  void tell_skipped(OpInstance& op, TimePoint at);
  void leave(OpInstance& op);
  void expect_give_up(const OpInstance& op, TimePoint at);
  void give_up(OpInstance& op, TimePoint at);
  [[nodiscard]] bool misses_deadline(OpInstance& op, TimePoint start, TimePoint at);
  [[nodiscard]] Duration duration_of(OpId op, int iteration) const;
  [[nodiscard]] Duration hold_time(OpId send, int iteration, TimePoint begin) const;
  [[nodiscard]] Duration hold_time(OpId send, int iteration, TimePoint begin, Duration calm) const;
  [[nodiscard]] Duration latency(OpId recv, int iteration, TimePoint end) const;

  // event_player_messages.cpp
  void open_message(OpInstance& op);
  [[nodiscard]] bool counts_word(const Op& own) const;
  [[nodiscard]] bool waits_for_word() const;
  void tell_receiver(OpInstance& op, Duration starts_in, bool skipped);
  void tell_sender(OpInstance& op, bool skipped, TimePoint at);
  void send_payload(OpInstance& op, bool strikes, TimePoint at);
  [[nodiscard]] Payload payload_of(const OpInstance& op);
  void pass_on(OpInstance& op, Payloads::Verdict verdict);
  void header_came(EventMessage& message, TimePoint at);
  void payload_came(EventMessage& message, std::size_t size, TimePoint at);
  void word_came(EventMessage& message, TimePoint at);
  void end_send_if_over(OpInstance& op, TimePoint due, TimePoint at);
  void close(OpInstance& op);
  void expect(comm::RequestId request, Role role, EventMessage& message);

  // event_player_choice.cpp: what is decided at the end of an instant
  [[nodiscard]] ChoiceKey key_of(const OpInstance& op) const;
  [[nodiscard]] OpInstance* first_to_serve() const;
  [[nodiscard]] OpInstance* first_to_choose() const;
  [[nodiscard]] Sources::Entry* first_due_source();
  void serve(OpInstance& op, TimePoint at);
  void choose(OpInstance& op, TimePoint at);
  bool choose_here(TimePoint at);
  [[nodiscard]] TimePoint settled(const OpInstance& op, TimePoint freed) const;
  void tell_wants();
  void let_go(OpInstance& op, TimePoint due);
  void forget_asked(OpInstance& op);
  [[nodiscard]] HoldTable& table_of(OpId op) {
    return shared_set_[index(plan_.op(op).resources)] ? *shared_ : *own_;
  }
  [[nodiscard]] const HoldTable& table_of(OpId op) const {
    return shared_set_[index(plan_.op(op).resources)] ? *shared_ : *own_;
  }

  // event_player_news.cpp: what ranks tell each other; versions, sources
  void find_listeners();
  void publish(OpNews::Kind kind, OpId op, int iteration, TimePoint at);
  void send_news(Rank to, const OpNews& news);
  void tell(std::span<const Rank> ranks, const OpNews& news);
  void tell_who_heeds(std::span<const Rank> told, const OpNews& news);
  void receive_news(Rank from);
  bool hear(TimePoint at);
  void heed(const OpNews& news, TimePoint at, bool same_clock);
  void note_end(OpId op, int iteration, TimePoint at, const plan::DrawnWords& words);
  [[nodiscard]] const plan::Draw* draw_of(OpId op) const;
  [[nodiscard]] bool is_quiet();
  bool end_waiting_sources(TimePoint at);
  void begin_windows(int iteration, TimePoint at);
  void meet_versions();
  bool ask_source(Sources::Entry& entry, TimePoint at);
  void end_source_iteration(Sources::Entry& entry, TimePoint at);
  void draw(Sources::Entry& entry, const plan::Draw& draw, TimePoint at);

  void make_tables();
  void find_shared_sets(std::vector<bool>& shared);
  void set_timer(TimePoint due, Timer::Kind kind, const OpInstance& op) {
    timers_.push({due, kind, op.op, op.iteration});
  }
  [[nodiscard]] LaneState& lane_of(OpId op) { return lanes_[place_[index(plan_.op(op).lane)]]; }
  void note(OpId op, comm::OpEvent event) const;

  EngineState& state_;
  const Plan& plan_;
  Device& device_;
  EventFacts facts_;
  LiveOps live_;
  plan::Stream stream_;
  plan::StreamValues values_;            ///< by iteration
  std::optional<ControlWords> control_;  ///< where the stream has one
  int first_iteration_ = 0;
  PlayedWeather weather_;
  Sink sink_;
  TimePoint began_{};
  std::vector<LaneState> lanes_;
  std::vector<std::uint32_t> place_;  ///< by lane of the plan: into lanes_
  bool moves_ = false;                ///< something may go on: lanes are to be looked at
  Timers timers_;
  struct RunningBlock {
    OpInstance* op = nullptr;
    TimePoint due{};
    TimePoint
        planned_end{};  ///< of its place: begun when what it holds was free, as long as planned
  };
  std::vector<RunningBlock> running_;  ///< on the device
  /// A block that has a place on its device and has not begun.
  struct Place {
    OpInstance* op = nullptr;
    TimePoint from{};  ///< at the earliest, whatever its lane and the device say
    Duration takes{};
    Cause cause;  ///< of that
  };
  std::vector<Place> places_;   ///< in the order in which they were given
  std::vector<bool> lone_set_;  ///< by resource set: no other set has some of it
  struct SendUnderWay {
    OpInstance* op = nullptr;
    TimePoint planned_end{};  ///< of its hold, had it begun when what it holds was free
  };
  std::vector<SendUnderWay> sending_;   ///< of what several lanes hold
  std::vector<OpInstance*> held_back_;  ///< should run, when what is before them is over

  EventMessages messages_;
  std::unordered_map<comm::RequestId, Expectation> expected_;

  std::vector<bool> shared_set_;            ///< by resource set: do several ranks hold some of it?
  std::vector<std::vector<Rank>> sharers_;  ///< by resource: other ranks that hold it
  std::vector<std::byte> own_memory_;
  std::optional<HoldTable> own_;
  std::unique_ptr<comm::SharedMemory> shared_memory_;
  std::optional<HoldTable> shared_;
  std::vector<OpInstance*> asked_;  ///< that have arrived
  std::vector<Decided> decided_;
  bool meets_ = false;              ///< versions may be noted now
  Sources::Entry* asks_ = nullptr;  ///< the source to ask now
  std::vector<OpInstance*> unmet_;  ///< that have started and note their version

  OpBoard board_;
  Sources sources_;
  plan::AskedDeadlines deadlines_;
  std::unordered_map<OpId, std::vector<Rank>> listeners_;  ///< of this rank's ops: other ranks
  std::vector<Rank> told_of_begins_;                       ///< other ranks with windows
  std::vector<Rank> distant_;  ///< ranks of other hosts that this one tells something
  struct RemoteEnd {
    bool skipped = false;
    TimePoint at{};
  };
  [[nodiscard]] const RemoteEnd* remote_end(OpId op, int iteration) const;
  struct NewsFrom {
    Rank rank{};
    OpNews news;
    bool over = false;
  };
  std::vector<std::unique_ptr<NewsFrom>> distant_news_;  ///< from ranks of other hosts
  std::unordered_map<comm::RequestId, NewsFrom*> expected_news_;
  std::unordered_map<comm::RequestId, std::unique_ptr<OpNews>> news_out_;
  std::vector<OpNews> heard_;
  bool said_over_ = false;
  bool has_sources_ = false;  ///< of any rank
  std::uint64_t activity_ = 0, told_activity_ = 0;
  int in_progress_ = 0;  ///< ops that are served and have not ended
  std::map<int, std::unordered_map<OpId, RemoteEnd>> remote_;  ///< ops of other ranks, by iteration
  std::map<int, TimePoint> begun_;                             ///< iterations, for windows
  std::unordered_map<OpId, std::vector<int>> ended_;  ///< of watched ops: iterations, ascending
};

}  // namespace longhaul::engine
