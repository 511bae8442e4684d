#include "prefill/lowering/expected_deadlines.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "prefill/lowering/held_memory.hpp"
#include "prefill/play/expected_training.hpp"

namespace longhaul::prefill {
namespace {

class ExpectedDeadlines final : public plan::DeadlineSource {
public:
  explicit ExpectedDeadlines(std::shared_ptr<const Closings> closings)
      : closings_{std::move(closings)}, expected_{*closings_->graph} {
    if (closings_->memory) held_.emplace(*closings_);
  }

  [[nodiscard]] Duration deadline(OpId op, Duration planned, Duration start,
                                  const plan::PastEvents& past) override {
    for (const plan::OpEnd& end : past.ended())
      if (end.iteration == 0) heed(end);
    const auto found = closings_->of_stage.find(op);
    if (found == closings_->of_stage.end() || past.iteration() != 0) return planned;
    const Duration now = past.now();
    const Duration moved = planned + lateness(found->second, expected_, now);
    if (held_ && !held_->fits(op, expected_, start, now, moved))
      return std::min(start, now) - Duration{1};
    return moved;
  }

private:
  void heed(const plan::OpEnd& end) {
    if (held_) held_->heed(end.op);
    if (const OpId training = closings_->training_of[index(end.op)]; training != kNone<OpId>)
      expected_.heed(training, end.end);
  }

  std::shared_ptr<const Closings> closings_;
  ExpectedTraining expected_;
  std::optional<HeldMemory> held_;
};

}  // namespace

Duration lateness(const Closings::Closing& closing, ExpectedTraining& expected, Duration now) {
  return std::max(Duration{}, expected.closes(closing.rank, closing.block, now) - closing.planned);
}

plan::MovingDeadlines expected_deadlines(Closings closings) {
  plan::MovingDeadlines moving;
  std::vector<bool> heeded(closings.training_of.size(), false);
  for (std::size_t i = 0; i < heeded.size(); ++i)
    heeded[i] = closings.training_of[i] != kNone<OpId>;
  for (const Closings::Holding& holding : closings.holdings)
    for (const Closings::Pass& pass : holding.passes)
      for (const OpId op : {pass.last, pass.slice})
        if (op != kNone<OpId>) heeded[index(op)] = true;
  for (std::size_t i = 0; i < heeded.size(); ++i)
    if (heeded[i]) moving.heeds.push_back(OpId{static_cast<std::uint32_t>(i)});
  moving.make = [shared = std::make_shared<const Closings>(std::move(closings))] {
    return std::make_unique<ExpectedDeadlines>(shared);
  };
  return moving;
}

}  // namespace longhaul::prefill
