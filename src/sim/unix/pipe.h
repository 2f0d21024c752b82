// pipe(2): its two ends, which are separate files.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <utility>

#include "sim/kernel/file.h"
#include "sim/unix/channel.h"

namespace spate::sim {

class PipeReader;
class PipeWriter;

struct Pipe {
  Pipe(SocketMemory& memory, int host) : bytes(memory, host) {}

  static constexpr std::size_t kRoom = 64 * 1024;
  // PIPE_BUF: written completely, or not at all.
  static constexpr std::size_t kAtomic = SocketMemory::kPage;

  Channel bytes;
  PipeReader* reader = nullptr;
  PipeWriter* writer = nullptr;
};

class PipeReader final : public File {
 public:
  explicit PipeReader(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) { pipe_->reader = this; }
  ~PipeReader() override;
  mode_t file_type() const override { return S_IFIFO; }
  std::uint32_t ready() const override;
  int access() const override;
  long read(std::span<std::byte> room) override;
  long write(std::span<const std::byte>) override { return -EBADF; }

 private:
  const std::shared_ptr<Pipe> pipe_;
};

class PipeWriter final : public File {
 public:
  explicit PipeWriter(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) { pipe_->writer = this; }
  ~PipeWriter() override;
  mode_t file_type() const override { return S_IFIFO; }
  std::uint32_t ready() const override;
  int access() const override;
  void on_memory() override { changed(); }
  long read(std::span<std::byte>) override { return -EBADF; }
  long write(std::span<const std::byte> bytes) override;

 private:
  std::size_t room() const;

  const std::shared_ptr<Pipe> pipe_;
};

std::pair<std::shared_ptr<PipeReader>, std::shared_ptr<PipeWriter>> make_pipe(SocketMemory& memory,
                                                                              int host);

}  // namespace spate::sim
