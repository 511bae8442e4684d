#include "cli/command/stop_signal.hpp"

#include <csignal>

namespace longhaul::cli {
namespace {

volatile std::sig_atomic_t stop_signal_came = 0;

void note_stop(int) { stop_signal_came = 1; }

}  // namespace

StopSignal::StopSignal() : before_{std::signal(SIGINT, note_stop)} { stop_signal_came = 0; }
StopSignal::~StopSignal() { std::signal(SIGINT, before_); }
bool StopSignal::came() { return stop_signal_came != 0; }

}  // namespace longhaul::cli
