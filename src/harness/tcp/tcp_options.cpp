#include <sstream>

#include "base/program/command_words.hpp"
#include "base/unit_text.hpp"
#include "harness/tcp/tcp_run.hpp"

namespace longhaul::harness {
namespace {

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in{list};
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  if (words.empty()) fail("an empty list was given. Write 10ms,40ms or 1,fit.");
  return words;
}

int connections_of(const std::string& word) {
  if (word == "fit") return 0;
  const std::optional<int> count = read_int(word);
  if (!count || *count < 1 || *count > 1000)
    fail("--connections {} is neither a number up to 1000 nor fit. Write 1,4,fit.", word);
  return *count;
}

double scale_of(const std::string& text) {
  if (text == "auto") return 0;
  const std::optional<double> scale = read_double(text);
  if (!scale || !(*scale > 0) || *scale > 100)
    fail("--scale {} is neither a number above 0 nor auto. Write --scale 0.2.", text);
  return *scale;
}

Duration positive(const char* name, const std::string& text) {
  const Duration time = value_of(name, [&] { return parse_duration(text); });
  if (time <= Duration::zero()) fail("{} {} is not positive. Give 2s.", name, text);
  return time;
}

}  // namespace

void declare(Arguments& arguments, TcpOptions& options) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    return arguments.option(name, value, what).shows_default();
  };
  add("--latency", options.latencies, "one way, a comma list");
  add("--connections", options.connections,
      "at once, a comma list; fit: as many as their windows need for the cap");
  add("--cap", options.cap, "what a node sends at most, whatever its connections");
  add("--window", options.window,
      "bytes on their way of one connection at most (the receiver's window); 0B: as the kernel "
      "tunes itself");
  add("--scale", options.scale,
      "factor of --cap and --window; auto: 1, or 0.2 where the forwarder cannot carry that");
  add("--congestion-control", options.congestion_control, "cubic, bbr, ... as the kernel has");
  add("--send-buffer", options.send_buffer,
      "SO_SNDBUF; 0B: twice the window, or as the kernel tunes itself where it has none");
  add("--receive-buffer", options.receive_buffer, "SO_RCVBUF, likewise");
  add("--warmup", options.warmup, "slow start, not counted");
  add("--measured", options.measured, "time of one repetition");
  add("--repetitions", options.repetitions, "of each point; the median counts").within(1, 1000);
  add("--queue", options.queue, "bytes that wait for the node's rate; the rest is dropped");
  add("--loss", options.loss, "probability of a packet to be lost").within(0.0, 1.0);
  add("--seed", options.seed, "of losses");
  add("--mtu", options.mtu, "of the devices").within(576, 65'000);
  add_shared_options(arguments, options,
                     {{Shared::out, "directory for record.json and tcp.csv"},
                      {Shared::json},
                      {Shared::check, "tiny: the shape alone, as the exit code"}});
}

TcpSettings settings_of(const TcpOptions& options) {
  TcpSettings settings;
  for (const std::string& word : words_of(options.latencies))
    settings.latencies.push_back(positive("--latency", word));
  for (const std::string& word : words_of(options.connections))
    settings.connections.push_back(connections_of(word));
  settings.cap = value_of("--cap", [&] { return parse_bandwidth(options.cap); });
  settings.window = value_of("--window", [&] { return parse_bytes(options.window); });
  settings.scale = scale_of(options.scale);
  settings.repetitions = options.repetitions;
  settings.flows.congestion_control = options.congestion_control;
  settings.flows.send_buffer =
      value_of("--send-buffer", [&] { return parse_bytes(options.send_buffer); });
  settings.flows.receive_buffer =
      value_of("--receive-buffer", [&] { return parse_bytes(options.receive_buffer); });
  settings.flows.warmup = positive("--warmup", options.warmup);
  settings.flows.measured = positive("--measured", options.measured);
  settings.forwarder.mtu = options.mtu;
  settings.forwarder.wan.queue = value_of("--queue", [&] { return parse_bytes(options.queue); });
  settings.forwarder.wan.all.loss = options.loss;
  settings.forwarder.wan.seed = options.seed;
  for (const int connections : settings.connections)
    if (connections == 0 && settings.window == Bytes{0})
      fail(
          "--connections fit needs a window (else one connection may fill the cap). Give "
          "--window.");
  return settings;
}

}  // namespace longhaul::harness
