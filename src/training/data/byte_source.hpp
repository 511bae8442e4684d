#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace longhaul::training {

/// Bytes that are read at any place, by several threads at once.
class ByteSource {
public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Puts bytes [begin, begin + into.size()) into `into`; all of them are there. Throws Error where
  /// they can no longer be read.
  virtual void read(std::int64_t begin, std::string& into) const = 0;
};

/// Of a file, which stays open and on disk. Throws Error where it is missing, unreadable or none
/// that can be read again and again (a directory, a pipe, a device).
[[nodiscard]] std::unique_ptr<ByteSource> bytes_of_file(const std::string& path);
/// Of a text in memory.
[[nodiscard]] std::unique_ptr<ByteSource> bytes_of_text(std::string text);

/// The SHA-256 of bytes that come piece by piece (FIPS 180-4), by OpenSSL's libcrypto. Move-only.
class Sha256 {
public:
  Sha256();

  void add(std::string_view bytes);
  /// Of all that was added: 64 small hexadecimal digits. Once, and nothing can be added afterwards.
  [[nodiscard]] std::string hexadecimal();

private:
  /// OpenSSL's state, whose header stays in the source.
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

/// Of bytes that are all there.
[[nodiscard]] std::string sha256(std::string_view bytes);

/// SHA-256 of bytes [begin, end), read 4 MiB at a time.
[[nodiscard]] std::string sha256_of(const ByteSource& bytes, std::int64_t begin, std::int64_t end);

}  // namespace longhaul::training
