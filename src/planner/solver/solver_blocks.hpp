#pragma once

#include <map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "schedule/schedule.hpp"

namespace longhaul {

/// The blocks of the solver's model under their numbers: F, R where the chunk is recomputed, D, W.
class ModelBlocks {
public:
  /// `layout` must outlive this; its rows do not count.
  explicit ModelBlocks(const Schedule& layout) : layout_{layout} {}

  void add(const Block& block);
  [[nodiscard]] const Schedule& layout() const { return layout_; }
  /// By number.
  [[nodiscard]] const std::vector<Block>& all() const { return blocks_; }
  /// -1 where it is not in the model.
  [[nodiscard]] int index_of(const Block& block) const;

  /// The block that takes the output of a block, and whether a message carries it there.
  struct Taker {
    int block = -1;
    bool remote = false;
  };
  [[nodiscard]] Taker taker(const Block& block) const;

private:
  [[nodiscard]] int taker_of_gradient(int chunk, int microbatch) const;

  const Schedule& layout_;
  std::vector<Block> blocks_;
  std::map<Block, int> index_of_;
};

/// Pairs of blocks of one device: the second starts when the first has ended.
[[nodiscard]] nlohmann::json dependencies_of(const ModelBlocks& blocks);

}  // namespace longhaul
