#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "comm/transport.hpp"
#include "cuda/device_clock.hpp"
#include "cuda/handles.hpp"
#include "cuda/spin.hpp"

namespace longhaul::comm {

enum class Side : bool { send, receive };

/// The streams on which payloads go, and what is under way on them. One for each lane, side, and
/// peer: what waits for a peer never blocks the work of another one. A lane's transfer is stamped
/// where it begins and where its bytes are there, and then keeps the stream until its hold is over
/// (CrossPipe appendix F.1).
class Lanes {
public:
  /// Streams of device `index`, which must be this thread's.
  explicit Lanes(int index);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  [[nodiscard]] cudaStream_t stream(Side side, LaneId lane, Rank peer);

  struct Mark {
    cuda::Event event;
    cuda::PinnedMemory<cuda::Stamps> stamps{1};
    cuda::PinnedMemory<std::uint64_t> transferred{1};
  };
  using MarkHandle = std::unique_ptr<Mark>;
  /// Stamps the begin of a transfer into `stream`.
  [[nodiscard]] MarkHandle begin(cudaStream_t stream);

  struct Work {
    RequestId request{};
    std::size_t size_bytes = 0;
    cuda::LanePace pace;
    MarkHandle mark;
    std::function<void()> then{};  ///< before it is told
  };
  /// `stream` has been given the whole transfer: holds it, and completes the work after that.
  void end(Work work, cudaStream_t stream);

  /// When `stream` has come this far, `what` is called by advance().
  void after(cudaStream_t stream, std::function<void()> what);

  void advance(std::vector<Completion>& done);
  [[nodiscard]] bool busy() const { return !under_way_.empty() || !waiting_.empty(); }
  [[nodiscard]] TimePoint next_event() const;
  /// Until all streams are idle. Ends the process where that takes more than some seconds: a peer
  /// is gone, and CUDA would wait for it wherever something is freed.
  void wait() const;

private:
  struct Waiting {
    cuda::Event event;
    std::function<void()> what;
  };
  [[nodiscard]] Completion completion_of(const Work& work) const;

  cuda::DeviceClock& clock_;
  std::map<std::tuple<Side, LaneId, Rank>, cuda::Stream> streams_;
  std::vector<Work> under_way_;
  std::vector<Waiting> waiting_;
  std::vector<MarkHandle> free_marks_;
  std::vector<cuda::Event> free_events_;
};

}  // namespace longhaul::comm
