#include "schedule/csv/csv_header.hpp"

#include <fmt/format.h>

#include "base/suggest.hpp"

namespace longhaul::schedule::csv {
namespace {

class HeaderReader {
public:
  explicit HeaderReader(Header& header) : header_{header} {}

  void read(Line& line) {
    line.skip_blanks();
    if (line.take("longhaul schedule ")) return read_version(line);
    if (!header_.present) return;  // a comment of another program's file
    const std::size_t key_begin = line.position();
    const std::string_view key = line.take_word();
    line.skip_blanks();
    if (key == "link_order" && line.peek() == '"') return read_link_order(line);
    if (key.empty() || !line.take('=')) return;  // a comment in words
    line.skip_blanks();
    read_value(line, key, key_begin);
    expect_end(line);
  }

private:
  void read_version(Line& line) {
    const std::size_t begin = line.position();
    const int version = line.take_number(1'000'000, "The format's version");
    if (version != 1) {
      line.fail_at(begin,
                   fmt::format("The file has format version {} (this program reads 1).", version));
    }
    expect_end(line);
    header_.present = true;
  }

  void read_value(Line& line, std::string_view key, std::size_t key_begin) {
    if (key == "name") return set(header_.name, line.take_quoted(), line, key_begin);
    if (key == "device_of_chunk") {
      return set(header_.device_of_chunk, take_devices(line), line, key_begin);
    }
    if (key == "replica_microbatches")
      return set(header_.replica_microbatches, take_counts(line), line, key_begin);
    if (key == "recompute") return set(header_.recompute, take_timing(line), line, key_begin);
    const auto count = [&](std::optional<int>& value, std::int64_t most) {
      set(value, line.take_number(most, "The count"), line, key_begin);
    };
    if (key == "devices") return count(header_.devices, kMostRows);
    if (key == "chunks") return count(header_.chunks, kMostChunks);
    if (key == "microbatches") return count(header_.microbatches, kMostMicrobatches);
    if (key == "replicas") return count(header_.replicas, kMostRows);
    if (key == "copies") return count(header_.copies, kMostChunks);
    if (key == "cell") return count(header_.cell, kMostRows);
    static const std::vector<std::string> kKeys{"name",
                                                "devices",
                                                "chunks",
                                                "microbatches",
                                                "replicas",
                                                "copies",
                                                "device_of_chunk",
                                                "recompute",
                                                "link_order",
                                                "cell",
                                                "replica_microbatches"};
    line.fail_at(key_begin,
                 fmt::format("Unknown key \"{}\". {}", key.substr(0, 32), suggestion(key, kKeys)));
  }

  template <typename Value>
  void set(std::optional<Value>& slot, Value value, const Line& line, std::size_t key_begin) {
    if (slot) line.fail_at(key_begin, "The key is there twice. Leave one out.");
    slot = std::move(value);
  }

  static RecomputeTiming take_timing(Line& line) {
    const std::size_t begin = line.position();
    const std::string_view word = line.take_word();
    if (word == "ahead") return RecomputeTiming::ahead;
    if (word != "on_arrival") line.fail_at(begin, "Known: on_arrival, ahead.");
    return RecomputeTiming::on_arrival;
  }

  static std::vector<int> take_counts(Line& line) {
    std::vector<int> counts;
    do {
      line.skip_blanks();
      counts.push_back(line.take_number(kMostMicrobatches, "The count"));
      line.skip_blanks();
    } while (line.take(','));
    return counts;
  }

  static IndexedVector<ChunkId, DeviceId> take_devices(Line& line) {
    IndexedVector<ChunkId, DeviceId> devices;
    do {
      line.skip_blanks();
      devices.push_back(DeviceId{line.take_number(kMostRows - 1, "The device")});
      line.skip_blanks();
    } while (line.take(','));
    return devices;
  }

  void read_link_order(Line& line) {
    const std::size_t begin = line.position();
    LinkOrder order = order_named(line.take_quoted());
    if (!header_.ordered.insert(order.resource).second)
      line.fail_at(begin, "The messages of this resource are ordered twice. Leave one line out.");
    line.skip_blanks();
    if (!line.take('=')) line.fail_at(line.position(), "\"=\" and the messages are expected.");
    for (line.skip_blanks(); !line.at_end(); line.skip_blanks()) {
      OrderedMessage message;
      message.replica = ReplicaId{line.take_number(kMostRows - 1, "The replica")};
      if (!line.take(':')) {
        line.fail_at(line.position(), "A message is written replica:cell, as in 0:2F5.");
      }
      message.producer = line.take_cell();
      order.messages.push_back(message);
      if (!line.take(',')) break;
    }
    header_.link_orders.push_back(std::move(order));
  }

  static void expect_end(Line& line) {
    line.skip_blanks();
    if (!line.at_end()) line.fail_at(line.position(), "Nothing more is expected on this line.");
  }

  Header& header_;
};

}  // namespace

void Header::read(Line& line) { HeaderReader{*this}.read(line); }

}  // namespace longhaul::schedule::csv
