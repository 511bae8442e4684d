#include "host/rank_accelerator.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm/group/thread_group.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::host {
namespace {

/// Listens as a control daemon does; its name stays when it is gone.
class Daemon {
public:
  Daemon(const std::filesystem::path& directory, int type) : socket_{socket(AF_UNIX, type, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory / "control").c_str());
    listens_ = bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
               listen(socket_, 4) == 0;
  }
  ~Daemon() { close(socket_); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  [[nodiscard]] bool listens() const { return listens_; }

private:
  int socket_;
  bool listens_ = false;
};

/// CUDA_MPS_PIPE_DIRECTORY, for as long as this lives.
class PipeDirectory {
public:
  explicit PipeDirectory(const std::filesystem::path& directory) {
    setenv(kName, directory.c_str(), 1);
  }
  ~PipeDirectory() { unsetenv(kName); }

private:
  static constexpr const char* kName = "CUDA_MPS_PIPE_DIRECTORY";
};

TEST(Mps, ListensWhereItsDaemonDoes) {
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
    const testing::ScratchDirectory scratch;
    EXPECT_FALSE(mps_listens(scratch.path())) << "nothing is there";
    {
      const Daemon daemon{scratch.path(), type};
      ASSERT_TRUE(daemon.listens());
      EXPECT_TRUE(mps_listens(scratch.path()));
      EXPECT_TRUE(mps_listens(scratch.path())) << "asking does not end it";
    }
    ASSERT_TRUE(std::filesystem::exists(scratch.path() / "control"));
    EXPECT_FALSE(mps_listens(scratch.path())) << "it is gone, its name is left";
  }
}

TEST(Mps, IsNoFileOrDirectoryOfThatName) {
  const testing::ScratchDirectory scratch;
  std::ofstream{scratch.path() / "control"} << "no socket";
  EXPECT_FALSE(mps_listens(scratch.path()));
  EXPECT_FALSE(mps_listens(scratch.path() / "missing"));
  EXPECT_FALSE(mps_listens(scratch.path() / std::string(200, 'x')));
}

TEST(Mps, TellsHowRanksShareAGpu) {
  const testing::ScratchDirectory scratch;
  const PipeDirectory here{scratch.path()};
  EXPECT_EQ(mps_directory(), scratch.path());
  EXPECT_STREQ(to_string(gpu_sharing()), "processes");
  const Daemon daemon{scratch.path(), SOCK_STREAM};
  EXPECT_STREQ(to_string(gpu_sharing()), "processes with MPS");
  comm::run_thread_ranks(2,
                         [] { EXPECT_STREQ(to_string(gpu_sharing()), "threads of one process"); });
}

TEST(Mps, HasADirectoryOfItsOwn) {
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  EXPECT_EQ(mps_directory(), "/tmp/nvidia-mps");
}

}  // namespace
}  // namespace longhaul::host
