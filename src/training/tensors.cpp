#include "training/tensors.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

std::size_t cut_at(std::size_t count, int piece, int pieces) {
  return count * to_size(piece) / to_size(pieces);
}

}  // namespace

/// Rooms to use again. Memory of a room never goes back to the device while the run goes on: what
/// was given back may still be written by calls that have not taken effect.
struct Tensors::Shared {
  std::mutex mutex;
  std::int64_t bytes = 0;  ///< of all rooms and tensors between blocks
  std::unordered_map<std::size_t, std::vector<nn::Buffer>> rooms;  ///< free ones, by numbers

  static std::int64_t size_of(const nn::Buffer& buffer) {
    return static_cast<std::int64_t>(buffer.view().bytes());
  }
};

TensorKey tensor_key(const Op& op) { return {is_backward(op.block_kind), op.chunk, op.microbatch}; }

Tensors::Tensors(nn::TensorOps& math, nn::DeviceMemory& memory, std::size_t count)
    : math_{math},
      memory_{memory},
      count_{count},
      type_{math.working_type()},
      shared_{std::make_shared<Shared>()} {}

void Tensors::put(const TensorKey& key, nn::Buffer tensor) {
  const std::lock_guard lock{mutex_};
  std::shared_ptr<nn::Buffer> owned;
  {
    const std::lock_guard counted{shared_->mutex};
    shared_->bytes += Shared::size_of(tensor);
    const auto drop = [shared = shared_](nn::Buffer* buffer) {
      const std::lock_guard both{shared->mutex};
      shared->bytes -= Shared::size_of(*buffer);
      delete buffer;
    };
    owned = {new nn::Buffer{std::move(tensor)}, drop};
  }
  const bool is_new = leaving_.emplace(key, Leaving{std::move(owned), 0}).second;
  LONGHAUL_ASSERT(is_new, "chunk {} microbatch {} is there twice", key.chunk, key.microbatch);
}

nn::Buffer Tensors::take(const TensorKey& key, OpId by, const std::string& what) {
  const std::lock_guard lock{mutex_};
  if (const auto here = leaving_.find(key); here != leaving_.end()) {
    nn::Buffer tensor;
    {
      const std::lock_guard counted{shared_->mutex};
      tensor = std::move(*here->second.tensor);
      shared_->bytes -= Shared::size_of(tensor);
    }
    leaving_.erase(here);
    return tensor;
  }
  const auto there = coming_.find(key);
  LONGHAUL_ASSERT(there != coming_.end() && there->second.pieces_left == 0,
                  "{}: chunk {} made nothing of microbatch {}", what, key.chunk, key.microbatch);
  nn::Buffer tensor = memory_.take(count_, what);
  math_.copy(there->second.room->view(), tensor.view());
  taken_.emplace_back(by, std::move(there->second.room));
  coming_.erase(there);
  return tensor;
}

void Tensors::settle(OpId by) {
  const std::lock_guard lock{mutex_};
  std::erase_if(taken_, [&](const auto& entry) { return entry.first == by; });
}

engine::Payload Tensors::cut(const std::shared_ptr<nn::Buffer>& whole, int piece,
                             int pieces) const {
  const nn::ArrayView view = whole->view();
  const std::size_t first = cut_at(view.count, piece, pieces);
  const nn::ArrayView part = view.part(first, cut_at(view.count, piece + 1, pieces) - first);
  return {{part.data, part.bytes()}, whole};
}

engine::Payload Tensors::piece_of(const TensorKey& key, int piece, int pieces) {
  const std::lock_guard lock{mutex_};
  const auto found = leaving_.find(key);
  LONGHAUL_ASSERT(found != leaving_.end(), "chunk {} made nothing of microbatch {}", key.chunk,
                  key.microbatch);
  engine::Payload payload = cut(found->second.tensor, piece, pieces);
  if (++found->second.pieces_asked == pieces) leaving_.erase(found);
  return payload;
}

std::shared_ptr<nn::Buffer> Tensors::take_room(std::size_t count, const std::string& what) {
  const std::lock_guard lock{shared_->mutex};
  std::vector<nn::Buffer>& free = shared_->rooms[count];
  nn::Buffer room;
  if (free.empty()) {
    room = memory_.take(count, type_, what);
    math_.finish();  // after the calls of its last owner, also those made meanwhile
    shared_->bytes += Shared::size_of(room);
  } else {
    room = std::move(free.back());
    free.pop_back();
  }
  const auto give_back = [shared = shared_](nn::Buffer* used) {
    const std::lock_guard both{shared->mutex};
    shared->rooms[used->view().count].push_back(std::move(*used));
    delete used;
  };
  return {new nn::Buffer{std::move(room)}, give_back};
}

engine::Payload Tensors::room_in(const TensorKey& key, int piece, int pieces,
                                 const std::string& what) {
  const std::lock_guard lock{mutex_};
  const auto [entry, is_new] = coming_.try_emplace(key);
  if (is_new) entry->second = {take_room(count_, what), pieces};
  return cut(entry->second.room, piece, pieces);
}

engine::Payload Tensors::room_apart(int piece, int pieces, const std::string& what) {
  const std::shared_ptr<nn::Buffer> room =
      take_room(cut_at(count_, piece + 1, pieces) - cut_at(count_, piece, pieces), what);
  return cut(room, 0, 1);
}

void Tensors::arrived(const TensorKey& key) {
  const std::lock_guard lock{mutex_};
  --coming_.at(key).pieces_left;
}

std::int64_t Tensors::bytes_elsewhere() const {
  const std::lock_guard lock{shared_->mutex};
  return static_cast<std::int64_t>(memory_.held()) - shared_->bytes;
}

std::size_t Tensors::open() const {
  const std::lock_guard lock{mutex_};
  return leaving_.size() + coming_.size() + taken_.size();
}

}  // namespace longhaul::training
