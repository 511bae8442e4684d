#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Reads Chakra execution traces from the wire format, by the field numbers of et_def.proto.
namespace longhaul::testing {

/// One field of a message: `number` of wire type 0, `text` of wire type 2.
struct ProtobufField {
  int field = 0;
  bool is_text = false;
  std::uint64_t number = 0;
  std::string text;
};

class ProtobufReader {
public:
  explicit ProtobufReader(std::string_view bytes) : bytes_{bytes} {}

  [[nodiscard]] bool at_end() const { return bytes_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) throw std::runtime_error("the message is cut off");
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("a varint of more than 64 bits");
  }
  std::string text() {
    const std::uint64_t size = varint();
    if (size > bytes_.size()) throw std::runtime_error("a text beyond the end");
    std::string value{bytes_.substr(0, size)};
    bytes_.remove_prefix(size);
    return value;
  }
  ProtobufField field() {
    const std::uint64_t key = varint();
    ProtobufField read{static_cast<int>(key >> 3U), (key & 7U) == 2, 0, {}};
    if (read.is_text) {
      read.text = text();
    } else if ((key & 7U) == 0) {
      read.number = varint();
    } else {
      throw std::runtime_error("wire type " + std::to_string(key & 7U));
    }
    return read;
  }

private:
  std::string_view bytes_;
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;
  std::vector<std::uint64_t> control, data;
  std::uint64_t duration_micros = 0;
  std::map<std::string, std::uint64_t> number;  ///< attributes, by name
  std::map<std::string, std::string> text;
  std::map<std::string, int> value_field;  ///< which member of the attribute's oneof
};

struct ChakraTrace {
  std::string version;
  std::vector<ChakraNode> nodes;
};

inline void read_attribute(ChakraNode& node, const std::string& bytes) {
  std::string name;
  for (ProtobufReader reader{bytes}; !reader.at_end();) {
    const ProtobufField read = reader.field();
    if (read.field == 1) {
      name = read.text;
      continue;
    }
    node.value_field[name] = read.field;
    if (read.is_text) {
      node.text[name] = read.text;
    } else {
      node.number[name] = read.number;
    }
  }
}

inline ChakraNode read_node(const std::string& bytes) {
  ChakraNode node;
  for (ProtobufReader reader{bytes}; !reader.at_end();) {
    const ProtobufField read = reader.field();
    switch (read.field) {
      case 1: node.id = read.number; break;
      case 2: node.name = read.text; break;
      case 3: node.type = read.number; break;
      case 4: node.control.push_back(read.number); break;
      case 5: node.data.push_back(read.number); break;
      case 7: node.duration_micros = read.number; break;
      case 10: read_attribute(node, read.text); break;
      default: throw std::runtime_error("field " + std::to_string(read.field));
    }
  }
  return node;
}

inline ChakraTrace read_chakra(std::string_view bytes) {
  ChakraTrace trace;
  ProtobufReader file{bytes};
  const std::string metadata = file.text();
  trace.version = ProtobufReader{metadata}.field().text;
  while (!file.at_end()) trace.nodes.push_back(read_node(file.text()));
  return trace;
}

}  // namespace longhaul::testing
