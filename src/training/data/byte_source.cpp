#include "training/data/byte_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

constexpr std::int64_t kStretch = 4 << 20;

class FileBytes final : public ByteSource {
public:
  explicit FileBytes(const std::string& path) : path_{path} {
    // A pipe without a writer would wait for one.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail("{}: cannot be read ({}). Check the path.", path, std::strerror(errno));
    struct stat status {};
    const bool known = fstat(fd_, &status) == 0;
    if (known && S_ISREG(status.st_mode)) {
      size_ = status.st_size;
      return;
    }
    close(fd_);
    fail("{}: cannot be trained on (it is no regular file, and is read many times). Name a file.",
         path);
  }
  ~FileBytes() override { close(fd_); }

  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t begin, std::string& into) const override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = pread(fd_, into.data() + done, into.size() - done,
                                static_cast<off_t>(begin) + static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        throw Error{fmt::format("{}: cannot be read any more ({}). Leave the file as it is while "
                                "a run lasts, and run it again.",
                                path_, got < 0 ? std::strerror(errno) : "it became shorter"),
                    ExitCode::run_failed};
      done += static_cast<std::size_t>(got);
    }
  }

private:
  std::string path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

class TextBytes final : public ByteSource {
public:
  explicit TextBytes(std::string text) : text_{std::move(text)} {}
  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(text_.size());
  }
  void read(std::int64_t begin, std::string& into) const override {
    text_.copy(into.data(), into.size(), to_size(begin));
  }

private:
  std::string text_;
};

EVP_MD_CTX* digest_of(void* state) { return static_cast<EVP_MD_CTX*>(state); }

/// OpenSSL's functions answer 1 where all is well; a build for certified ciphers may refuse.
void require_digest(int answer) {
  if (answer != 1)
    fail("cannot compute a SHA-256 (OpenSSL's libcrypto refuses to). Check its configuration.");
}

}  // namespace

std::unique_ptr<ByteSource> bytes_of_file(const std::string& path) {
  return std::make_unique<FileBytes>(path);
}

std::unique_ptr<ByteSource> bytes_of_text(std::string text) {
  return std::make_unique<TextBytes>(std::move(text));
}

void Sha256::Free::operator()(void* state) const { EVP_MD_CTX_free(digest_of(state)); }

Sha256::Sha256() : state_{EVP_MD_CTX_new()} {
  require_digest(state_ ? EVP_DigestInit_ex(digest_of(state_.get()), EVP_sha256(), nullptr) : 0);
}

void Sha256::add(std::string_view bytes) {
  require_digest(EVP_DigestUpdate(digest_of(state_.get()), bytes.data(), bytes.size()));
}

std::string Sha256::hexadecimal() {
  std::array<unsigned char, 32> digest{};
  require_digest(EVP_DigestFinal_ex(digest_of(state_.get()), digest.data(), nullptr));
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hexadecimal();
}

std::string sha256_of(const ByteSource& bytes, std::int64_t begin, std::int64_t end) {
  Sha256 digest;
  std::string stretch;
  for (std::int64_t at = begin; at < end; at += kStretch) {
    stretch.resize(to_size(std::min(kStretch, end - at)));
    bytes.read(at, stretch);
    digest.add(stretch);
  }
  return digest.hexadecimal();
}

}  // namespace longhaul::training
