#include "prefill/lowering/expected_deadlines.hpp"

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "prefill/play/expected_training.hpp"

namespace longhaul::prefill {
namespace {

class ExpectedDeadlines final : public plan::DeadlineSource {
public:
  explicit ExpectedDeadlines(std::shared_ptr<const Closings> closings)
      : closings_{std::move(closings)}, expected_{*closings_->graph} {}

  [[nodiscard]] Duration deadline(OpId op, Duration planned,
                                  const plan::PastEvents& past) override {
    for (const plan::OpEnd& end : past.ended())
      if (end.iteration == 0) expected_.heed(closings_->training_of[index(end.op)], end.end);
    const auto found = closings_->of_stage.find(op);
    if (found == closings_->of_stage.end() || past.iteration() != 0) return planned;
    const Closings::Closing& closing = found->second;
    const Duration closes = expected_.closes(closing.rank, closing.block, past.now());
    return planned + std::max(Duration{}, closes - closing.planned);
  }

private:
  std::shared_ptr<const Closings> closings_;
  ExpectedTraining expected_;
};

}  // namespace

plan::MovingDeadlines expected_deadlines(Closings closings) {
  plan::MovingDeadlines moving;
  for (std::size_t i = 0; i < closings.training_of.size(); ++i)
    if (closings.training_of[i] != kNone<OpId>)
      moving.heeds.push_back(OpId{static_cast<std::uint32_t>(i)});
  moving.make = [shared = std::make_shared<const Closings>(std::move(closings))] {
    return std::make_unique<ExpectedDeadlines>(shared);
  };
  return moving;
}

}  // namespace longhaul::prefill
