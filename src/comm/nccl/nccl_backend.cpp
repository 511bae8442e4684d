#include "comm/nccl/nccl_backend.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/ranges.h>

#include "comm/blocking_call.hpp"
#include "comm/cuda/device_backends.hpp"
#include "comm/transport.hpp"
#include "cuda/check.hpp"
#include "cuda/handles.hpp"

namespace longhaul::comm::nccl {
namespace {

ncclDataType_t type_of(NumberType type) {
  switch (type) {
    case NumberType::i64: return ncclInt64;
    case NumberType::f32: return ncclFloat32;
    case NumberType::bf16: return ncclBfloat16;
    case NumberType::i32: return ncclInt32;
  }
  return ncclUint8;
}

/// Collectives that NCCL has no call for, as messages at once. The parts of `mine` (one for each
/// member, or all for the first) go to the members, and theirs come into the parts of `result`.
ncclResult_t exchange_parts(const std::byte* mine, std::byte* result, const Exchange& exchange,
                            const CollectiveFacts& facts, ncclComm_t comm, cudaStream_t stream) {
  int members = 0;
  int self = 0;
  ncclResult_t state = ncclCommCount(comm, &members);
  if (state == ncclSuccess) state = ncclCommUserRank(comm, &self);
  if (state != ncclSuccess) return state;
  const bool to_first = facts.gets == Portion::whole_of_first;
  const bool from_first = facts.brings == Portion::whole_of_first;
  const std::size_t out = to_first ? exchange.mine.size() : exchange.mine.size() / to_size(members);
  const std::size_t in =
      from_first ? exchange.result.size() : exchange.result.size() / to_size(members);
  state = ncclGroupStart();
  for (int peer = 0; peer < members && state == ncclSuccess; ++peer) {
    const bool sends = out > 0 && (!to_first || peer == 0);
    const bool receives = in > 0 && (!from_first || peer == 0);
    const std::byte* const from = mine + (to_first ? 0 : at(peer) * out);
    std::byte* const to = result + (from_first ? 0 : at(peer) * in);
    if (peer == self && sends && receives) {
      if (cudaMemcpyAsync(to, from, in, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
        state = ncclUnhandledCudaError;
      continue;
    }
    if (sends) state = ncclSend(from, out, ncclUint8, peer, comm, stream);
    if (receives && state == ncclSuccess) state = ncclRecv(to, in, ncclUint8, peer, comm, stream);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return state == ncclSuccess ? ended : state;
}

ncclResult_t begin(CollectiveKind kind, const std::byte* mine, std::byte* result,
                   const Exchange& exchange, ncclComm_t comm, cudaStream_t stream) {
  const ncclDataType_t type = type_of(exchange.type);
  const std::size_t width = bytes_of(exchange.type);
  const std::size_t count = exchange.mine.size() / width;
  switch (kind) {
    case CollectiveKind::all_gather: return ncclAllGather(mine, result, count, type, comm, stream);
    case CollectiveKind::reduce_scatter:
      return ncclReduceScatter(mine, result, exchange.result.size() / width, type, ncclSum, comm,
                               stream);
    case CollectiveKind::all_reduce:
      return ncclAllReduce(mine, result, count, type, ncclSum, comm, stream);
    case CollectiveKind::broadcast:
      return ncclBroadcast(mine, result, exchange.result.size() / width, type, 0, comm, stream);
    case CollectiveKind::reduce:
      return ncclReduce(mine, result, count, type, ncclSum, 0, comm, stream);
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::all_to_all:
      return exchange_parts(mine, result, exchange, facts_of(kind), comm, stream);
  }
  return ncclInvalidArgument;
}

}  // namespace

/// A payload on one side, or a collective.
struct NcclBackend::Transfer {
  RequestId request{};
  cuda::LanePace pace;
  std::span<const std::byte> out;  ///< what leaves; empty: nothing
  std::span<std::byte> in;         ///< what comes
  cudaStream_t stream = nullptr;
  /// NCCL's exchange, between device memory.
  std::function<ncclResult_t(const std::byte* from, std::byte* to, ncclComm_t comm)> call;
  Lanes::MarkHandle mark{};
  std::shared_ptr<std::byte> pinned_out{}, device_out{}, pinned_in{}, device_in{};
};

NcclBackend::NcclBackend(const Communicator& world, int index)
    : world_{world.duplicate()}, self_{world_.rank()}, lanes_{index} {}

/// Ends of communicators are agreed on: all at once, or ranks would wait for each other.
NcclBackend::~NcclBackend() {
  using namespace std::chrono_literals;
  const BlockingCall guard{"NCCL to end its communicators", 20s};
  visit([](Channel& channel) { channel.finish(); });
  bool finished = false;
  for (const TimePoint give_up = now() + 3s; !finished && now() < give_up;) {
    finished = true;
    visit([&](Channel& channel) { finished = channel.is_finished() && finished; });
    if (!finished) std::this_thread::sleep_for(1ms);
  }
  if (!finished) abort_all();
}

template <typename Visit>
void NcclBackend::visit(const Visit& each) const {
  for (const auto& [key, pair] : pairs_)
    if (pair.channel) each(*pair.channel);  // none: NCCL refused to make it
  for (const auto& [members, channel] : groups_) each(*channel);
}

void NcclBackend::abort_all() {
  visit([](Channel& channel) { channel.abort(); });
}

bool NcclBackend::send(const PayloadSend& payload, PayloadDetails& details) {
  Pair& pair = pairs_[{Side::send, payload.pace.lane, payload.to}];
  if (!pair.channel) {
    pair.id = new_unique_id();
    pair.channel = std::make_unique<Channel>(
        pair.id, 2, 0, fmt::format("payloads from rank {} to rank {}", self_, index(payload.to)));
  }
  static_assert(sizeof pair.id <= sizeof details);
  std::memcpy(details.data(), &pair.id, sizeof pair.id);
  const cudaStream_t stream = lanes_.stream(Side::send, payload.pace.lane, payload.to);
  const std::size_t size = payload.data.size();
  add(*pair.channel, std::make_shared<Transfer>(Transfer{
                         payload.request,
                         payload.pace,
                         payload.data,
                         {},
                         stream,
                         [size, stream](const std::byte* from, std::byte*, ncclComm_t comm) {
                           return size == 0 ? ncclSuccess
                                            : ncclSend(from, size, ncclUint8, 1, comm, stream);
                         }}));
  return true;
}

void NcclBackend::receive(const PayloadReceive& payload, std::size_t announced,
                          const PayloadDetails& details) {
  Pair& pair = pairs_[{Side::receive, payload.lane_of_sender, payload.from}];
  if (!pair.channel) {
    std::memcpy(&pair.id, details.data(), sizeof pair.id);
    pair.channel = std::make_unique<Channel>(
        pair.id, 2, 1, fmt::format("payloads from rank {} to rank {}", index(payload.from), self_));
  }
  const cudaStream_t stream = lanes_.stream(Side::receive, payload.lane_of_sender, payload.from);
  add(*pair.channel, std::make_shared<Transfer>(Transfer{
                         payload.request,
                         payload.pace,
                         {},
                         payload.buffer.first(announced),
                         stream,
                         [announced, stream](const std::byte*, std::byte* to, ncclComm_t comm) {
                           return announced == 0
                                      ? ncclSuccess
                                      : ncclRecv(to, announced, ncclUint8, 0, comm, stream);
                         }}));
}

void NcclBackend::collective(RequestId request, CollectiveKind kind, std::span<const Rank> members,
                             const Exchange& exchange) {
  const cudaStream_t stream = lanes_.stream(Side::send, kNone<LaneId>, members.front());
  add(group(members),
      std::make_shared<Transfer>(
          Transfer{request,
                   {},
                   exchange.mine,
                   exchange.result,
                   stream,
                   [kind, exchange, stream](const std::byte* from, std::byte* to, ncclComm_t comm) {
                     return begin(kind, from, to, exchange, comm, stream);
                   }}));
}

/// Host memory goes through the device, too.
void NcclBackend::bring_to_device(Transfer& transfer) {
  if (!transfer.out.empty() && !is_on_device(transfer.out.data())) {
    transfer.pinned_out = pinned_.take(transfer.out.size());
    transfer.device_out = device_.take(transfer.out.size());
    std::memcpy(transfer.pinned_out.get(), transfer.out.data(), transfer.out.size());
    cuda::check(cudaMemcpyAsync(transfer.device_out.get(), transfer.pinned_out.get(),
                                transfer.out.size(), cudaMemcpyHostToDevice, transfer.stream));
  }
  if (!transfer.in.empty() && !is_on_device(transfer.in.data())) {
    transfer.pinned_in = pinned_.take(transfer.in.size());
    transfer.device_in = device_.take(transfer.in.size());
  }
}

void NcclBackend::add(Channel& channel, const TransferHandle& transfer) {
  bring_to_device(*transfer);
  channel.add({[this, transfer](ncclComm_t comm) {
                 Transfer& t = *transfer;
                 t.mark = lanes_.begin(t.stream);
                 return t.call(t.device_out ? t.device_out.get() : t.out.data(),
                               t.device_in ? t.device_in.get() : t.in.data(), comm);
               },
               [this, transfer] { begin_end(transfer); }});
  open_.emplace(transfer->request, &channel);
  advance(channel);
}

/// NCCL tells of an error by the communicator: the operation is the first that has not completed.
/// The communicators end after the report of it, not here: their abort is an error to the peers,
/// who would report that one before.
void NcclBackend::advance(Channel& channel) {
  try {
    channel.advance();
  } catch (const Error& error) {
    const auto first =
        std::ranges::find(open_, &channel, [](const auto& one) { return one.second; });
    throw TransportError{first == open_.end() ? std::nullopt : std::optional{first->first},
                         error.what()};
  }
}

/// The stream has all of it: adds what follows NCCL's kernel.
void NcclBackend::begin_end(const TransferHandle& transfer) {
  Transfer& t = *transfer;
  if (t.device_in)
    cuda::check(cudaMemcpyAsync(t.pinned_in.get(), t.device_in.get(), t.in.size(),
                                cudaMemcpyDeviceToHost, t.stream));
  const auto take_in = [transfer] {
    if (transfer->pinned_in)
      std::memcpy(transfer->in.data(), transfer->pinned_in.get(), transfer->in.size());
  };
  const std::size_t size = t.in.empty() ? t.out.size() : t.in.size();
  lanes_.end({t.request, size, t.pace, std::move(t.mark), take_in}, t.stream);
}

Channel& NcclBackend::group(std::span<const Rank> members) {
  std::vector<int> key;
  for (const Rank member : members) key.push_back(static_cast<int>(member));
  if (const auto found = groups_.find(key); found != groups_.end()) return *found->second;
  const Communicator met = world_.subgroup(key, key.front());
  const ncclUniqueId mine = met.rank() == 0 ? new_unique_id() : ncclUniqueId{};
  const std::string text =
      met.broadcast(std::string{reinterpret_cast<const char*>(&mine), sizeof mine});
  ncclUniqueId id;
  std::memcpy(&id, text.data(), sizeof id);
  auto channel = std::make_unique<Channel>(
      id, met.size(), met.rank(),
      fmt::format("collectives of ranks {} (this is {})", fmt::join(key, ", "), self_));
  return *groups_.emplace(std::move(key), std::move(channel)).first->second;
}

void NcclBackend::prepare_group(std::span<const Rank> members) { group(members); }

void NcclBackend::advance(std::vector<Completion>& done) {
  visit([this](Channel& channel) { advance(channel); });
  const std::size_t before = done.size();
  lanes_.advance(done);
  for (std::size_t i = before; i < done.size(); ++i) open_.erase(done[i].request);
}

bool NcclBackend::busy() const {
  bool any = lanes_.busy();
  visit([&](const Channel& channel) { any = any || channel.busy(); });
  return any;
}

}  // namespace longhaul::comm::nccl

namespace longhaul::comm {

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

std::unique_ptr<PayloadBackend> make_nccl_backend(const BackendPlace& place) {
  cuda::use_device(place.index);
  return std::make_unique<nccl::NcclBackend>(place.world, place.index);
}

}  // namespace longhaul::comm
