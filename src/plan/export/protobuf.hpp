#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longhaul::plan {

/// Builds one message in protobuf's wire format, field by field: a varint or a length-delimited
/// value after a key of field number and wire type.
class ProtobufMessage {
public:
  /// A field of type uint32, uint64, int32, int64 (not negative), bool or an enum.
  ProtobufMessage& number(int field, std::uint64_t value) {
    append_varint(key(field, kVarint));
    append_varint(value);
    return *this;
  }
  /// A field of type string or bytes.
  ProtobufMessage& text(int field, std::string_view value) {
    append_varint(key(field, kLengthDelimited));
    append_varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(int field, const ProtobufMessage& value) {
    return text(field, value.bytes_);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  /// With its length in front, as messages follow one another in a file.
  [[nodiscard]] std::string delimited() const {
    ProtobufMessage framed;
    framed.append_varint(bytes_.size());
    return framed.bytes_ + bytes_;
  }

private:
  static constexpr std::uint64_t kVarint = 0;
  static constexpr std::uint64_t kLengthDelimited = 2;
  static std::uint64_t key(int field, std::uint64_t wire_type) {
    return static_cast<std::uint64_t>(field) << 3U | wire_type;
  }
  /// Seven bits a byte, the lowest first; the top bit says that more follow.
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace longhaul::plan
