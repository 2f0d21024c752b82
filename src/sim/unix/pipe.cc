#include "sim/unix/pipe.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

namespace spate::sim {

std::pair<std::shared_ptr<PipeReader>, std::shared_ptr<PipeWriter>> make_pipe(SocketMemory& memory,
                                                                              int host) {
  const auto pipe = std::make_shared<Pipe>(memory, host);
  return {std::make_shared<PipeReader>(pipe), std::make_shared<PipeWriter>(pipe)};
}

// ---- reading

PipeReader::~PipeReader() {
  pipe_->reader = nullptr;
  if (pipe_->writer != nullptr) pipe_->writer->changed();
}

int PipeReader::access() const { return O_RDONLY; }

std::uint32_t PipeReader::ready() const {
  return (pipe_->bytes.size() != 0 ? EPOLLIN : 0u) | (pipe_->writer == nullptr ? EPOLLHUP : 0u);
}

long PipeReader::read(std::span<std::byte> room) {
  if (room.empty()) return 0;
  if (pipe_->bytes.size() == 0) return pipe_->writer == nullptr ? 0 : -EAGAIN;
  Passed none;
  const std::string bytes = pipe_->bytes.take(room.size(), none);
  std::memcpy(room.data(), bytes.data(), bytes.size());
  if (pipe_->writer != nullptr) pipe_->writer->changed();
  return static_cast<long>(bytes.size());
}

// ---- writing

PipeWriter::~PipeWriter() {
  pipe_->writer = nullptr;
  if (pipe_->reader != nullptr) pipe_->reader->changed();
}

int PipeWriter::access() const { return O_WRONLY; }

std::uint32_t PipeWriter::ready() const {
  return (room() >= Pipe::kAtomic ? EPOLLOUT : 0u) | (pipe_->reader == nullptr ? EPOLLERR : 0u);
}

std::size_t PipeWriter::room() const {
  return std::min(Pipe::kRoom - pipe_->bytes.size(), pipe_->bytes.memory());
}

long PipeWriter::write(std::span<const std::byte> bytes) {
  if (pipe_->reader == nullptr) return -EPIPE;
  if (room() < std::min(bytes.size(), Pipe::kAtomic)) return -EAGAIN;
  const std::size_t size = std::min(room(), bytes.size());
  pipe_->bytes.append({reinterpret_cast<const char*>(bytes.data()), size});
  pipe_->reader->changed();
  return static_cast<long>(size);
}

}  // namespace spate::sim
