#include "on_host/block.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/fiber.hpp"
#include "kernels/signals.hpp"

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim, gridDim;

namespace longhaul::on_host {
namespace {

constexpr unsigned kLanes = 32;

enum class Order { alternate, ascending, descending };

Order stated_order() {
  const char* const text = std::getenv("LONGHAUL_ON_HOST_THREADS");
  if (text == nullptr) return Order::alternate;
  if (std::string_view{text} == "ascending") return Order::ascending;
  return std::string_view{text} == "descending" ? Order::descending : Order::alternate;
}

bool begin_descending() {
  static const Order order = stated_order();
  static std::atomic<unsigned> launches{0};
  return order == Order::descending || (order == Order::alternate && launches++ % 2 == 1);
}

/// A fiber and the thread of the block that it plays.
struct Player {
  Player(Context& home, std::function<void()> body) : fiber{home, std::move(body)} {}
  Fiber fiber;
  unsigned thread = 0;
  bool waited = false;  ///< for the kernel before
};

/// Lanes of a warp that bring values to each other. Two sets of values: who is late still reads
/// the one when others fill the next.
struct Warp {
  std::array<std::array<std::uint64_t, kLanes>, 2> values{};
  unsigned parity = 0, arrived = 0, mask = 0;
  std::source_location where;
  std::vector<Player*> waiting;
};

/// Runs kernels on one thread of the host.
class Runner {
public:
  Outcome run(const Grid& grid, const std::function<void()>& kernel);
  void note_wait() {
    waited_ += player_->waited ? 0 : 1;
    player_->waited = true;
  }
  void barrier(std::source_location where);
  const std::uint64_t* exchange(unsigned mask, std::uint64_t value, std::source_location where);
  [[noreturn]] void give_up(Outcome why);
  [[nodiscard]] std::byte* dynamic_shared() { return shared_.data(); }
  [[nodiscard]] bool running() const { return player_ != nullptr; }

private:
  void run_block();
  void play();  ///< the body of a fiber: one thread of the block after the other
  bool take_thread();
  void resume(Player& player);
  void wait();
  void show(unsigned thread) const;
  void say_divergent(const char* what, std::source_location here, std::source_location there);
  void say_stuck();
  void say_unprepared();
  [[nodiscard]] unsigned lanes_of(unsigned warp) const;

  Context home_;
  std::vector<std::unique_ptr<Player>> players_;
  std::vector<Player*> idle_, ready_, at_barrier_;
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_;
  const std::function<void()>* kernel_ = nullptr;
  Player* player_ = nullptr;
  std::source_location barrier_place_;
  unsigned total_ = 0, begun_ = 0, ended_ = 0;
  unsigned waited_ = 0;  ///< threads of a block that have called note_wait
  bool descending_ = false;
  Outcome outcome_ = Outcome::fine;
};

Outcome Runner::run(const Grid& grid, const std::function<void()>& kernel) {
  catch_illegal_addresses();
  kernel_ = &kernel;
  blockDim = grid.threads;
  gridDim = grid.blocks;
  total_ = grid.threads.x * grid.threads.y * grid.threads.z;
  descending_ = begin_descending();
  outcome_ = Outcome::fine;
  for (unsigned z = 0; z < grid.blocks.z; ++z)
    for (unsigned y = 0; y < grid.blocks.y; ++y)
      for (unsigned x = 0; x < grid.blocks.x && outcome_ == Outcome::fine; ++x) {
        blockIdx = {descending_ ? grid.blocks.x - 1 - x : x, y, z};
        shared_.assign(grid.shared_bytes, std::byte{0xff});  // NaN
        run_block();
        if (grid.prepared && waited_ < total_ && outcome_ == Outcome::fine) say_unprepared();
      }
  kernel_ = nullptr;
  return outcome_;
}

void Runner::run_block() {
  begun_ = ended_ = waited_ = 0;
  ready_.clear();
  at_barrier_.clear();
  warps_.assign((total_ + kLanes - 1) / kLanes, Warp{});
  while (ended_ < total_ && outcome_ == Outcome::fine) {
    if (!ready_.empty()) {
      Player* const next = ready_.back();
      ready_.pop_back();
      resume(*next);
    } else if (begun_ < total_) {
      if (idle_.empty()) {
        players_.push_back(std::make_unique<Player>(home_, [this] { play(); }));
        idle_.push_back(players_.back().get());
      }
      Player* const next = idle_.back();
      idle_.pop_back();
      resume(*next);
    } else {
      say_stuck();
    }
  }
  if (outcome_ == Outcome::fine) return;
  players_.clear();  // they are suspended in the middle of the kernel
  idle_.clear();
}

void Runner::resume(Player& player) {
  player_ = &player;
  show(player.thread);
  switch_context(home_, player.fiber);
  player_ = nullptr;
}

void Runner::play() {
  for (;;) {
    while (take_thread()) {
      (*kernel_)();
      ++ended_;
    }
    idle_.push_back(player_);
    wait();
  }
}

bool Runner::take_thread() {
  if (begun_ == total_) return false;
  player_->thread = descending_ ? total_ - 1 - begun_ : begun_;
  player_->waited = false;
  ++begun_;
  show(player_->thread);
  return true;
}

void Runner::show(unsigned thread) const {
  threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y,
               thread / (blockDim.x * blockDim.y)};
}

void Runner::wait() { switch_context(player_->fiber, home_); }

void Runner::barrier(std::source_location where) {
  if (at_barrier_.empty())
    barrier_place_ = where;
  else if (barrier_place_.line() != where.line())
    say_divergent("__syncthreads", where, barrier_place_);
  if (at_barrier_.size() + 1 == total_) {
    ready_.insert(ready_.end(), at_barrier_.begin(), at_barrier_.end());
    at_barrier_.clear();
    return;
  }
  at_barrier_.push_back(player_);
  wait();
}

unsigned Runner::lanes_of(unsigned warp) const {
  const unsigned lanes = std::min(kLanes, total_ - warp * kLanes);
  return lanes == kLanes ? ~0U : (1U << lanes) - 1;
}

const std::uint64_t* Runner::exchange(unsigned mask, std::uint64_t value,
                                      std::source_location where) {
  const unsigned lane = player_->thread % kLanes;
  Warp& warp = warps_[player_->thread / kLanes];
  if (warp.arrived == 0) {
    warp.mask = mask;
    warp.where = where;
  } else if (warp.mask != mask || warp.where.line() != where.line()) {
    say_divergent("an exchange of a warp", where, warp.where);
  }
  if ((mask >> lane & 1U) == 0) say_divergent("an exchange whose mask leaves it out", where, where);
  auto& values = warp.values[warp.parity];
  values[lane] = value;
  warp.arrived |= 1U << lane;
  if (warp.arrived == (mask & lanes_of(player_->thread / kLanes))) {
    ready_.insert(ready_.end(), warp.waiting.begin(), warp.waiting.end());
    warp.waiting.clear();
    warp.arrived = 0;
    warp.parity ^= 1U;
  } else {
    warp.waiting.push_back(player_);
    wait();
  }
  return values.data();
}

void Runner::give_up(Outcome why) {
  if (why == Outcome::illegal_address || why == Outcome::trapped)
    std::fprintf(stderr, "cuda_on_host: thread %u of block (%u, %u, %u) %s\n", player_->thread,
                 blockIdx.x, blockIdx.y, blockIdx.z,
                 why == Outcome::trapped
                     ? "trapped (__trap, or an address that is no multiple of 16)"
                     : "used memory that is not its device's");
  outcome_ = why;
  wait();
  std::abort();  // not reached
}

void Runner::say_divergent(const char* what, std::source_location here,
                           std::source_location there) {
  std::fprintf(stderr,
               "cuda_on_host: divergent: thread %u of block (%u, %u, %u) comes to %s at %s:%u, "
               "others wait at %s:%u\n",
               player_->thread, blockIdx.x, blockIdx.y, blockIdx.z, what, here.file_name(),
               here.line(), there.file_name(), there.line());
  give_up(Outcome::divergent);
}

void Runner::say_stuck() {
  std::fprintf(stderr, "cuda_on_host: divergent: block (%u, %u, %u): of %u threads %u have ended",
               blockIdx.x, blockIdx.y, blockIdx.z, total_, ended_);
  if (!at_barrier_.empty())
    std::fprintf(stderr, ", %zu wait for all at __syncthreads at %s:%u", at_barrier_.size(),
                 barrier_place_.file_name(), barrier_place_.line());
  for (const Warp& warp : warps_)
    if (!warp.waiting.empty())
      std::fprintf(stderr, ", %zu wait for lanes %08x of their warp at %s:%u", warp.waiting.size(),
                   warp.mask & ~warp.arrived, warp.where.file_name(), warp.where.line());
  std::fputc('\n', stderr);
  outcome_ = Outcome::divergent;
}

void Runner::say_unprepared() {
  std::fprintf(stderr,
               "cuda_on_host: divergent: block (%u, %u, %u) of a prepared kernel: %u of %u threads "
               "do not wait for the kernel before\n",
               blockIdx.x, blockIdx.y, blockIdx.z, total_ - waited_, total_);
  outcome_ = Outcome::divergent;
}

Runner& runner() {
  static thread_local Runner mine;
  return mine;
}

}  // namespace

Outcome run_blocks(const Grid& grid, const std::function<void()>& kernel) {
  return runner().run(grid, kernel);
}

void note_wait() { runner().note_wait(); }

void barrier(std::source_location where) { runner().barrier(where); }

const std::uint64_t* exchange(unsigned mask, std::uint64_t value, std::source_location where) {
  return runner().exchange(mask, value, where);
}

void trap() { runner().give_up(Outcome::trapped); }

void illegal_address() { runner().give_up(Outcome::illegal_address); }

std::byte* dynamic_shared() { return runner().dynamic_shared(); }

bool in_kernel() { return runner().running(); }

}  // namespace longhaul::on_host
