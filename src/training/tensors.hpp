#pragma once

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "nn/memory.hpp"
#include "plan/plan.hpp"

namespace longhaul::training {

/// A tensor that a block hands on: an activation (F) or the gradient of one (D, B), named for the
/// block.
struct TensorKey {
  bool gradient = false;
  ChunkId chunk{};
  MicrobatchId microbatch{};
  friend auto operator<=>(const TensorKey&, const TensorKey&) = default;
};
[[nodiscard]] TensorKey tensor_key(const Op& op);

/// The tensors of a rank that are between two blocks: made here and not yet taken or sent, come
/// from elsewhere and not yet taken. A message in pieces is cut into equal stretches of its tensor.
/// Blocks call it on a device's thread, the data plane on the engine's.
class Tensors {
public:
  /// Tensors of `count` numbers, of the math's working type. Both outlive this, and this outlives
  /// every payload.
  Tensors(nn::TensorOps& math, nn::DeviceMemory& memory, std::size_t count);

  /// For blocks: hands on what one made, and takes what another did. One that came from elsewhere
  /// is copied, since its room belongs to a transport; the room is kept until settle(). `what`
  /// names the copy where memory runs out.
  void put(const TensorKey& key, nn::Buffer tensor);
  [[nodiscard]] nn::Buffer take(const TensorKey& key, OpId by, const std::string& what);
  /// Frees the tensor that `by` took.
  void settle(OpId by);

  /// For the data plane: piece `piece` of `pieces` of what is to be sent; of the last one asked for
  /// the tensor goes with it.
  [[nodiscard]] engine::Payload piece_of(const TensorKey& key, int piece, int pieces);
  /// Room in the tensor itself for a piece that is to come.
  [[nodiscard]] engine::Payload room_in(const TensorKey& key, int piece, int pieces,
                                        const std::string& what);
  /// Room for a piece that goes on to another rank.
  [[nodiscard]] engine::Payload room_apart(int piece, int pieces, const std::string& what);
  void arrived(const TensorKey& key);

  /// Bytes held of the rank's memory, those of tensors between blocks left out.
  [[nodiscard]] std::int64_t bytes_elsewhere() const;
  [[nodiscard]] NumberType type() const { return type_; }
  /// Nothing may be left over from the iteration before.
  [[nodiscard]] std::size_t open() const;

private:
  struct Shared;  // what payloads refer to, too
  struct Leaving {
    std::shared_ptr<nn::Buffer> tensor;
    int pieces_asked = 0;
  };
  struct Coming {
    std::shared_ptr<nn::Buffer> room;
    int pieces_left = 0;
  };
  [[nodiscard]] engine::Payload cut(const std::shared_ptr<nn::Buffer>& whole, int piece,
                                    int pieces) const;
  [[nodiscard]] std::shared_ptr<nn::Buffer> take_room(std::size_t count, const std::string& what);

  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  std::size_t count_;
  NumberType type_;
  std::shared_ptr<Shared> shared_;
  mutable std::mutex mutex_;  ///< of the tables
  std::map<TensorKey, Leaving> leaving_;
  std::map<TensorKey, Coming> coming_;
  std::vector<std::pair<OpId, std::shared_ptr<nn::Buffer>>> taken_;
};

}  // namespace longhaul::training
