#include "base/index.hpp"
#include "planner/predict/row_draft.hpp"

namespace longhaul::planner {
namespace {

using profile::ShardingKind;
using profile::TrainingRow;
using Handle = RowDraft::Handle;

/// Units that are gathered ahead of the one that computes.
constexpr int kAhead = 1;

/// A layer is a unit; the embedding, which the head shares, is the root's, gathered for a whole
/// microbatch.
class ShardedDraft {
public:
  explicit ShardedDraft(const TrainingRow& row) : row_{row} {
    const Rank rank = made_.draft.add_rank("machine");
    compute_ = made_.draft.add_lane(rank, "compute", OpKind::compute,
                                    {made_.draft.add_resource("device 0", ResourceKind::device)});
    collective_ = made_.draft.add_lane(rank, "collective", OpKind::collective);
    add_slots();
  }

  RowDraft make() {
    for (int m = 0; m < row_.microbatches(); ++m) {
      microbatch_ = m;
      forward();
      backward();
    }
    const Handle step = made_.add_block(compute_, step_, {.kind = BlockKind::W});
    made_.draft.after(step, last_scatter_);
    return std::move(made_);
  }

private:
  void add_slots() {
    const double layer = layer_weights_of_gpu(row_, 1);
    const double root = embedding_weights_of_gpu(row_);
    const bool gathers = row_.sharding == ShardingKind::zero3;
    layer_forward_ = made_.add_slot({.layers = 1});
    gathering_forward_ = made_.add_slot({.layers = 1, .gathered = layer});
    layer_backward_ = made_.add_slot({.kind = SlotKind::backward,
                                      .layers = 1,
                                      .gathered = gathers ? layer : 0,
                                      .scattered = layer});
    ends_forward_ = made_.add_slot({.embedding = true, .overheads = 0.5});
    head_forward_ = made_.add_slot({.head = true});
    head_backward_ = made_.add_slot({.kind = SlotKind::backward, .head = true});
    ends_backward_ =
        made_.add_slot({.kind = SlotKind::backward, .embedding = true, .overheads = 0.5});
    gather_ = made_.add_slot({.kind = SlotKind::gather, .weights = layer});
    scatter_ = made_.add_slot({.kind = SlotKind::scatter, .weights = layer});
    gather_root_ = made_.add_slot({.kind = SlotKind::gather, .weights = root});
    scatter_root_ = made_.add_slot({.kind = SlotKind::scatter, .weights = root});
    step_ = made_.add_slot({.kind = SlotKind::step, .weights = layer * row_.layers + root});
  }

  Handle block(std::uint32_t slot, BlockKind kind) {
    last_ =
        made_.add_block(compute_, slot, {.kind = kind, .microbatch = MicrobatchId{microbatch_}});
    done_.push_back(last_);
    return last_;
  }
  /// `back`: it may begin when all computation but the last `back` blocks is done.
  Handle gather(std::uint32_t slot, int back) {
    const Handle made = made_.add_collective(collective_, slot, CollectiveKind::all_gather);
    const auto blocks = static_cast<int>(done_.size());
    if (blocks > back) made_.draft.after(made, done_[at(blocks - 1 - back)]);
    return made;
  }
  void scatter(std::uint32_t slot, Handle after) {
    last_scatter_ = made_.add_collective(collective_, slot, CollectiveKind::reduce_scatter);
    made_.draft.after(last_scatter_, after);
  }
  [[nodiscard]] bool gathers_forward() const {
    return row_.sharding == ShardingKind::zero3 || microbatch_ == 0;
  }

  void forward() {
    const Handle root = gather(gather_root_, 0);
    made_.draft.after(block(ends_forward_, BlockKind::F), root);
    for (int layer = 0; layer < row_.layers; ++layer) {
      if (!gathers_forward()) {
        block(layer_forward_, BlockKind::F);
        continue;
      }
      const Handle weights = gather(gather_, kAhead);
      made_.draft.after(block(gathering_forward_, BlockKind::F), weights);
    }
    block(head_forward_, BlockKind::F);
  }

  /// The next unit's weights are gathered before the gradients of the one before are scattered.
  void backward() {
    block(head_backward_, BlockKind::B);
    const bool gathers = row_.sharding == ShardingKind::zero3;
    std::optional<Handle> unscattered;
    for (int layer = 0; layer < row_.layers; ++layer) {
      std::optional<Handle> weights;
      if (gathers) weights = gather(gather_, kAhead);
      if (unscattered) scatter(scatter_, *unscattered);
      const Handle done = block(layer_backward_, BlockKind::B);
      if (weights) made_.draft.after(done, *weights);
      unscattered = done;
    }
    scatter(scatter_, *unscattered);
    scatter(scatter_root_, block(ends_backward_, BlockKind::B));
  }

  const TrainingRow& row_;
  RowDraft made_;
  LaneId compute_{}, collective_{};
  std::uint32_t layer_forward_ = 0, gathering_forward_ = 0, layer_backward_ = 0, ends_forward_ = 0,
                head_forward_ = 0;
  std::uint32_t head_backward_ = 0, ends_backward_ = 0, gather_ = 0, scatter_ = 0;
  std::uint32_t gather_root_ = 0, scatter_root_ = 0, step_ = 0;
  int microbatch_ = 0;
  std::vector<Handle> done_;
  Handle last_{}, last_scatter_{};
};

}  // namespace

RowDraft draft_sharded(const TrainingRow& row) { return ShardedDraft{row}.make(); }

}  // namespace longhaul::planner
