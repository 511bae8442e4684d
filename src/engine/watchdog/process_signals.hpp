#pragma once

#include <atomic>
#include <cstdint>

namespace longhaul::engine {

/// SIGTERM, SIGINT and SIGHUP (unless it is ignored) of this process, and SIGUSR1 where it drains:
/// taken over while one of these lives.
///
/// Some orders to end may be ones to drain: mpirun ends its ranks by SIGTERM, and kills them
/// soon after, so that only a process without a launcher can take that for one; scripts/mpi passes
/// on its first SIGTERM as SIGUSR1, which mpirun and srun hand to every rank.
class ProcessSignals {
public:
  /// `doorbell` of a rank of this process is rung by them: a sleeper wakes.
  ProcessSignals(std::atomic<std::uint32_t>& doorbell, bool drains);
  ~ProcessSignals();
  ProcessSignals(const ProcessSignals&) = delete;
  ProcessSignals& operator=(const ProcessSignals&) = delete;

  /// The signal that tells this process to end; 0: none. SIGUSR1 counts as the SIGTERM it stands
  /// for.
  [[nodiscard]] int told_to_end() const;
  /// From now on the first order that may be one to drain is.
  void take_first_as_drain() const;
  [[nodiscard]] bool told_to_drain() const;

private:
  std::atomic<std::uint32_t>& doorbell_;
};

[[nodiscard]] const char* name_of_signal(int signal);

}  // namespace longhaul::engine
