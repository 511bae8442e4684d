// Joins network namespaces through TUN devices: latency, rates, bounded queues and loss without the
// kernel's netem. Runs until it is told to end; then says what it carried.
#include <csignal>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "base/unit_text.hpp"
#include "wan_emulator/forwarder.hpp"
#include "wan_emulator/program.hpp"
#include "wan_emulator/system_call.hpp"

namespace longhaul::wan_emulator {
namespace {

struct Options {
  std::vector<std::string> sites, pairs;
  std::string latency = "10ms", rate, node_rate, queue = "16MiB";
  double loss = 0;
  std::uint64_t seed = 1;
  int mtu = 1500;
  bool self_test = false;
};

Bandwidth rate_of(const std::string& text) {
  return text.empty() ? Bandwidth::unlimited() : parse_bandwidth(text);
}

int site_number(const std::string& name, const std::vector<std::string>& sites) {
  const auto at = std::find(sites.begin(), sites.end(), name);
  if (at == sites.end()) fail("no site {} among those of --site. Name two of them.", name);
  return static_cast<int>(at - sites.begin());
}

/// "A,B,latency=40ms,rate=1Gbps,loss=0.01"; what it leaves out is as for all.
WanSettings::Pair pair_of(const std::string& text, const WanSettings& settings,
                          const std::vector<std::string>& sites) {
  std::vector<std::string> words;
  std::istringstream in{text};
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  if (words.size() < 3) fail("--pair {} says too little. Write --pair A,B,latency=40ms.", text);
  WanSettings::Pair pair{site_number(words[0], sites), site_number(words[1], sites), settings.all};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = words[i].substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    if (key == "latency") {
      pair.path.latency = parse_duration(value);
    } else if (key == "rate") {
      pair.path.rate = parse_bandwidth(value);
    } else if (key == "loss") {
      const std::optional<double> loss = read_double(value);
      if (!loss) fail("loss {} is not a number. Write loss=0.01.", value);
      pair.path.loss = *loss;
    } else {
      fail("--pair knows latency, rate and loss, not {}. Write --pair A,B,latency=40ms.", key);
    }
  }
  return pair;
}

ForwarderSettings settings_of(const Options& options) {
  ForwarderSettings settings;
  settings.mtu = options.mtu;
  WanSettings& wan = settings.wan;
  wan.sites = static_cast<int>(options.sites.size());
  wan.all = {parse_duration(options.latency), rate_of(options.rate), options.loss};
  wan.node = rate_of(options.node_rate);
  wan.queue = parse_bytes(options.queue);
  wan.seed = options.seed;
  for (const std::string& pair : options.pairs)
    wan.pairs.push_back(pair_of(pair, wan, options.sites));
  return settings;
}

nlohmann::ordered_json record_of(const ForwarderReport& report,
                                 const std::vector<std::string>& sites) {
  nlohmann::ordered_json record;
  for (std::size_t from = 0; from < sites.size(); ++from)
    for (std::size_t to = 0; to < sites.size(); ++to) {
      const PathCounters& path = report.paths[from * sites.size() + to];
      if (from == to) continue;
      record["paths"].push_back({{"from", sites[from]},
                                 {"to", sites[to]},
                                 {"packets", path.packets},
                                 {"bytes", path.bytes},
                                 {"delivered", path.delivered},
                                 {"lost", path.lost},
                                 {"dropped", path.dropped}});
    }
  record["lateness_ns"] = {{"median", report.lateness.quantile(0.5).count()},
                           {"p99", report.lateness.quantile(0.99).count()},
                           {"max", report.lateness.longest.count()}};
  record["foreign"] = report.foreign;
  record["refused"] = report.refused;
  record["busy_ns"] = report.busy.count();
  return record;
}

int forward(const Options& options) {
  if (options.sites.size() < 2) fail("fewer than two sites. Give --site A --site B.");
  if (options.sites.size() > 200) fail("more than 200 sites (one address each). Give fewer.");
  const ForwarderSettings settings = settings_of(options);
  std::vector<NetworkNamespace> sites;
  for (const std::string& name : options.sites) sites.push_back(NetworkNamespace::named(name));

  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  check_call(-::pthread_sigmask(SIG_BLOCK, &ends, nullptr), "blocking signals");
  const Forwarder forwarder{sites, settings};
  fmt::print("ready\n");
  std::fflush(stdout);
  const timespec look{1, 0};
  while (::sigtimedwait(&ends, nullptr, &look) < 0)
    if (const std::string problem = forwarder.problem(); !problem.empty())
      throw Error{problem, ExitCode::run_failed};
  fmt::print("{}\n", record_of(forwarder.report(), options.sites).dump(2));
  return 0;
}

int main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{
      "Joins network namespaces by an emulated WAN, one TUN device (wan0) in each, site k at\n"
      "10.83.0.(k + 1). Prints 'ready', ends at SIGINT or SIGTERM, then prints counters (JSON).\n"
      "Exit codes: 0, 2 bad input, 3 failed, 77 not possible here (needs root and /dev/net/tun)."};
  arguments.option("--site", options.sites, "network namespace; give each in turn");
  arguments.option("--latency", options.latency, "one way, of every pair").shows_default();
  arguments.option("--rate", options.rate, "of every pair and direction (default: unlimited)");
  arguments.option("--node-rate", options.node_rate,
                   "what a site sends, and what it receives (default: unlimited)");
  arguments.option("--pair", options.pairs,
                   "A,B,latency=40ms,rate=1Gbps,loss=0.01: other than all");
  arguments.option("--queue", options.queue, "bytes that wait at a rate; the rest is dropped")
      .shows_default();
  arguments.option("--loss", options.loss, "probability of a packet to be lost").within(0.0, 1.0);
  arguments.option("--seed", options.seed, "of losses").shows_default();
  arguments.option("--mtu", options.mtu, "of the devices").shows_default().within(576, 65'000);
  arguments.flag("--self-test", options.self_test, "print what this machine can carry, and end");
  if (const auto code = parse_arguments(arguments, argc, argv)) return *code;
  if (!options.self_test) (void)settings_of(options);
  if (const auto code = skipped("wan_tun")) return *code;
  if (!options.self_test) return forward(options);
  fmt::print("ceiling: {}\n", measure_ceiling(options.mtu).text());
  return 0;
}

}  // namespace
}  // namespace longhaul::wan_emulator

int main(int argc, char** argv) {
  return longhaul::run_program([&] { return longhaul::wan_emulator::main_of(argc, argv); });
}
