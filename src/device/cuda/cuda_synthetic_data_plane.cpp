#include "device/cuda/cuda_synthetic_data_plane.hpp"

#include <algorithm>
#include <atomic>

#include "engine/payloads/relay_buffers.hpp"

namespace longhaul::device {
namespace {

/// Payloads that are made before the iteration; larger ones when they are sent, which then waits
/// for that.
constexpr std::size_t kMostPrepared = std::size_t{1} << 30U;
/// Receives that the engine posts early, and a few that are not passed on yet.
constexpr std::size_t kRoomsOfLane = 20;

std::vector<OpId> receives_of(const Plan& plan, Rank self) {
  std::vector<OpId> receives;
  for (const Lane& lane : plan.lanes)
    for (std::uint32_t i = 0; i < lane.count; ++i)
      if (lane.kind == OpKind::recv && lane.rank == self)
        receives.push_back(OpId{static_cast<std::uint32_t>(longhaul::index(lane.first)) + i});
  return receives;
}

/// Sends whose payload this rank makes itself.
std::vector<OpId> sends_of(const Plan& plan, Rank self) {
  const engine::RelayTable forwards{plan, self};
  std::vector<OpId> sends;
  for (const Lane& lane : plan.lanes) {
    if (lane.kind != OpKind::send || lane.rank != self) continue;
    for (std::uint32_t i = 0; i < lane.count; ++i) {
      const OpId send{static_cast<std::uint32_t>(longhaul::index(lane.first)) + i};
      if (forwards.recv_before(send) == kNone<OpId>) sends.push_back(send);
    }
  }
  return sends;
}

bool is_done(const CheckedPayload& result) {
  auto& done = const_cast<std::uint64_t&>(result.done);  // NOLINT: written by the device
  return std::atomic_ref{done}.load(std::memory_order_acquire) != 0;
}

}  // namespace

CudaSyntheticDataPlane::CudaSyntheticDataPlane(int index, const Plan& plan, Rank self,
                                               std::uint64_t seed, Bytes largest)
    : plan_{plan},
      self_{self},
      host_{plan, self, seed, largest},
      payloads_{seed, largest},
      stream_{(cuda::use_device(index), cuda::Urgency::normal)},
      pattern_{payloads_.pattern().size()},
      made_here_{sends_of(plan, self)},
      receives_{receives_of(plan, self)},
      checked_{std::max<std::size_t>(1, receives_.size())},
      was_checked_(receives_.size()),
      free_{std::make_shared<Rooms>()} {
  for (std::size_t i = 0; i < receives_.size(); ++i) place_[receives_[i]] = i;
  cuda::check(cudaMemcpyAsync(pattern_.data(), payloads_.pattern().data(), pattern_.bytes(),
                              cudaMemcpyHostToDevice, stream_.get()));
  load_pattern_kernels();
  make_rooms();
  stream_.wait_on_host();
}

CudaSyntheticDataPlane::~CudaSyntheticDataPlane() {
  cuda::report(cudaStreamSynchronize(stream_.get()), "ending checks");
}

/// Memory of the device is not to be had while an iteration runs: that would wait for all streams.
void CudaSyntheticDataPlane::make_rooms() {
  for (const Lane& lane : plan_.lanes) {
    if (lane.kind != OpKind::recv || lane.rank != self_) continue;
    std::unordered_map<std::size_t, std::size_t> wanted;
    for (std::uint32_t i = 0; i < lane.count; ++i) {
      const std::size_t size =
          size_of(OpId{static_cast<std::uint32_t>(longhaul::index(lane.first)) + i});
      if (++wanted[size] > kRoomsOfLane) continue;
      (*free_)[size].push_back(std::make_unique<Room>(size));
    }
  }
  for (auto& [size, rooms] : *free_)
    for (auto& room : rooms) room_at_[room->memory.data()] = room.get();
}

std::unique_ptr<CudaSyntheticDataPlane::Room> CudaSyntheticDataPlane::take_room(std::size_t size) {
  auto& rooms = (*free_)[size];
  const auto idle = std::ranges::find_if(
      rooms, [](const auto& room) { return room->check == nullptr || is_done(*room->check); });
  if (idle == rooms.end()) {
    auto room = std::make_unique<Room>(size);
    room_at_[room->memory.data()] = room.get();
    return room;
  }
  std::unique_ptr<Room> room = std::move(*idle);
  rooms.erase(idle);
  room->check = nullptr;
  return room;
}

engine::Payload CudaSyntheticDataPlane::in(std::unique_ptr<Room> room) {
  const std::span<std::byte> bytes{room->memory.data(), room->memory.bytes()};
  const auto give_back = [free = free_](Room* used) {
    (*free)[used->memory.bytes()].push_back(std::unique_ptr<Room>{used});
  };
  return {bytes, std::shared_ptr<Room>{room.release(), give_back}};
}

void CudaSyntheticDataPlane::fill(const engine::PayloadId& id,
                                  const engine::Payload& payload) const {
  fill_payload(id, window_of(id), payload.bytes.data(), payload.bytes.size(), stream_.get());
}

void CudaSyntheticDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
  host_.begin_iteration(run, iteration);
  prepared_.clear();
  std::size_t bytes = 0;
  for (const OpId send : made_here_) {
    bytes += size_of(send);
    if (bytes > kMostPrepared) break;
    engine::Payload payload = in(take_room(size_of(send)));
    fill(id_of(send), payload);
    prepared_.emplace(send, std::move(payload));
  }
  std::ranges::fill(checked_.span(), CheckedPayload{});
  was_checked_.assign(receives_.size(), false);
  stream_.wait_on_host();
}

engine::Payload CudaSyntheticDataPlane::make(OpId send) {
  if (const auto made = prepared_.find(send); made != prepared_.end()) {
    engine::Payload payload = std::move(made->second);
    prepared_.erase(made);
    return payload;
  }
  engine::Payload payload = in(take_room(size_of(send)));
  fill(id_of(send), payload);
  stream_.wait_on_host();
  return payload;
}

engine::Payload CudaSyntheticDataPlane::room(OpId recv) { return in(take_room(size_of(recv))); }

engine::Payloads::Verdict CudaSyntheticDataPlane::check(OpId recv,
                                                        std::span<const std::byte> payload,
                                                        engine::PayloadId& found) {
  found = id_of(OpId{plan_.op(recv).match});
  if (payload.size() < sizeof found) return engine::Payloads::Verdict::corrupted;
  const std::size_t place = place_.at(recv);
  was_checked_[place] = true;
  room_at_.at(payload.data())->check = &checked_[place];
  check_payload(payload.data(), payload.size(), window_of(found), &checked_[place], stream_.get());
  return engine::Payloads::Verdict::right;
}

std::vector<engine::LateVerdict> CudaSyntheticDataPlane::end_iteration() {
  stream_.wait_on_host();
  for (const auto& [address, room] : room_at_) room->check = nullptr;
  std::vector<engine::LateVerdict> wrong;
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    if (!was_checked_[i]) continue;
    const CheckedPayload& result = checked_[i];
    if (result.found != id_of(OpId{plan_.op(receives_[i]).match}))
      wrong.push_back({receives_[i], engine::Payloads::Verdict::wrong_message, result.found});
    else if (result.wrong != 0)
      wrong.push_back({receives_[i], engine::Payloads::Verdict::corrupted, result.found});
  }
  return wrong;
}

void CudaSyntheticDataPlane::corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) {
  if (how == engine::FaultKind::corrupt)
    corrupt_payload(payload.bytes.data(), payload.bytes.size(), stream_.get());
  if (how == engine::FaultKind::mislabel) {
    engine::PayloadId other = id_of(send);
    ++other.microbatch;
    fill(other, payload);
  }
  stream_.wait_on_host();
}

}  // namespace longhaul::device
