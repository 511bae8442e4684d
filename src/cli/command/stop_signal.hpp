#pragma once

namespace longhaul::cli {

/// Is the search told to stop (SIGINT)? While one of these lives; more than one at a time may not.
class StopSignal {
public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  [[nodiscard]] static bool came();

private:
  void (*before_)(int);
};

}  // namespace longhaul::cli
