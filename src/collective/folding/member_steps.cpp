#include "collective/folding/member_steps.hpp"

#include <algorithm>
#include <optional>

#include "base/index.hpp"

namespace longhaul::collective {
namespace {

using plan::CollectiveSteps;
using plan::StepMessage;
using Ref = MemberSteps::Ref;

class MemberView {
public:
  MemberView(const CollectiveSteps& steps, int member)
      : steps_{steps}, member_{member}, ref_(steps.messages.size()) {}

  MemberSteps run() {
    find_lines();
    std::vector<std::uint8_t> waited_for(steps_.messages.size(), 0);
    const auto wait = [&](std::uint32_t before) {
      waited_for[before] = 1;
      made_.waits.push_back(ref_[before]);
    };
    for (std::size_t m = 0; m < steps_.messages.size(); ++m) {
      const StepMessage& message = steps_.messages[m];
      if (message.from != member_) continue;
      MemberSteps::Send send;
      send.line = ref_out_[m].line;
      send.position = ref_out_[m].position;
      send.step = message.step;
      send.is_first = message.left_before < 0;
      send.size = message.size;
      send.first_wait = static_cast<std::uint32_t>(made_.waits.size());
      for (const std::uint32_t before : steps_.after_of(message)) wait(before);
      for (const std::int32_t left : {message.left_before, message.left_of_piece}) {
        if (left < 0) continue;
        followed_[at(left)] = 1;
        made_.waits.push_back(ref_out_[at(left)]);
      }
      send.wait_count = static_cast<std::uint32_t>(made_.waits.size()) - send.first_wait;
      made_.sends.push_back(send);
    }
    for (std::size_t m = 0; m < steps_.messages.size(); ++m)
      if (steps_.messages[m].to == member_ && waited_for[m] == 0) made_.last.push_back(ref_[m]);
    for (std::size_t m = 0; m < steps_.messages.size(); ++m)
      if (steps_.messages[m].from == member_ && followed_[m] == 0)
        made_.last.push_back(ref_out_[m]);
    return std::move(made_);
  }

private:
  void find_lines() {
    ref_out_.resize(steps_.messages.size());
    followed_.assign(steps_.messages.size(), 0);
    for (std::size_t m = 0; m < steps_.messages.size(); ++m) {
      const StepMessage& message = steps_.messages[m];
      if (message.from == member_) ref_out_[m] = next(made_.out, message.to, message.stream, false);
      if (message.to == member_) ref_[m] = next(made_.in, message.from, message.stream, true);
    }
  }

  static Ref next(std::vector<MemberSteps::Line>& lines, int other, int stream, bool in) {
    auto line = std::ranges::find_if(lines, [&](const MemberSteps::Line& each) {
      return each.other == other && each.stream == stream;
    });
    if (line == lines.end()) line = lines.insert(line, {other, stream, 0});
    return {static_cast<std::uint32_t>(line - lines.begin()), line->count++, in};
  }

  const CollectiveSteps& steps_;
  int member_;
  MemberSteps made_;
  std::vector<Ref> ref_, ref_out_;  ///< by message: as it comes in, as it goes out
  std::vector<std::uint8_t> followed_;
};

}  // namespace

MemberSteps steps_of_member(const CollectiveSteps& steps, int member) {
  return MemberView{steps, member}.run();
}

MemberSteps steps_in_ring(CollectiveKind kind, int members, int member, Bytes size) {
  const int phases = kind == CollectiveKind::all_reduce ? 2 : 1;
  const auto count = static_cast<std::uint32_t>(phases * (members - 1));
  MemberSteps made;
  if (count == 0) return made;
  made.out.push_back({(member + 1) % members, 0, count});
  made.in.push_back({(member + members - 1) % members, 0, count});
  made.sends.reserve(count);
  made.waits.reserve(2 * count);
  for (std::uint32_t k = 0; k < count; ++k) {
    MemberSteps::Send send;
    send.position = k;
    send.step = static_cast<int>(k);
    send.is_first = k == 0;
    send.size = size;
    send.first_wait = static_cast<std::uint32_t>(made.waits.size());
    send.wait_count = k == 0 ? 0 : 2;
    if (k > 0) made.waits.insert(made.waits.end(), {Ref{0, k - 1, true}, Ref{0, k - 1, false}});
    made.sends.push_back(send);
  }
  made.last = {Ref{0, count - 1, true}, Ref{0, count - 1, false}};
  return made;
}

bool same_when_turned(const CollectiveSteps& steps, int shift) {
  const auto turned = [&](int member) { return (member + shift) % steps.members; };
  std::map<std::tuple<int, int, int, int>, std::uint32_t> known;
  for (std::uint32_t m = 0; m < steps.messages.size(); ++m) {
    const StepMessage& each = steps.messages[m];
    if (!known.try_emplace({each.from, each.to, each.stream, each.step}, m).second) return false;
  }
  std::vector<std::uint32_t> image;
  for (const StepMessage& each : steps.messages) {
    const auto found = known.find({turned(each.from), turned(each.to), each.stream, each.step});
    if (found == known.end()) return false;
    image.push_back(found->second);
  }
  const auto same = [&](std::int32_t own, std::int32_t other) {
    return own < 0 ? other < 0 : other == static_cast<std::int32_t>(image[at(own)]);
  };
  for (std::uint32_t m = 0; m < steps.messages.size(); ++m) {
    const StepMessage& own = steps.messages[m];
    const StepMessage& other = steps.messages[image[m]];
    if (own.size != other.size || own.piece != other.piece ||
        !same(own.left_before, other.left_before) || !same(own.left_of_piece, other.left_of_piece))
      return false;
    std::vector<std::uint32_t> mine;
    for (const std::uint32_t before : steps.after_of(own)) mine.push_back(image[before]);
    std::vector<std::uint32_t> others{steps.after_of(other).begin(), steps.after_of(other).end()};
    std::ranges::sort(mine);
    std::ranges::sort(others);
    if (mine != others) return false;
  }
  return true;
}

const KnownSteps::OfCollective& KnownSteps::of(const plan::Collective& collective, bool in_ring,
                                               std::span<const int> places, int turn) {
  const std::size_t members = collective.members.size();
  const Key key{collective.kind,       members,
                collective.algorithm,  collective.mesh.sizes,
                collective.mesh.order, collective.mesh.algorithms,
                collective.pieces,     in_ring ? 0 : collective.size.count(),
                in_ring ? 0 : turn};
  const auto [known, is_new] = known_.try_emplace(key);
  OfCollective& made = known->second;
  std::optional<plan::CollectiveSteps> steps;  // made where something is missing
  if (is_new && !in_ring) {
    steps = plan::steps_of(collective);
    made.turns = turn == 0 || same_when_turned(*steps, turn);
  }
  for (const int place : places) {
    if (made.by_place.contains(place)) continue;
    if (!in_ring && !steps) steps = plan::steps_of(collective);
    made.by_place.emplace(
        place, in_ring ? steps_in_ring(collective.kind, static_cast<int>(members), place, {})
                       : steps_of_member(*steps, place));
  }
  return made;
}

}  // namespace longhaul::collective
