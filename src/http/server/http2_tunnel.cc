#include "http/server/http2_tunnel.h"

#include <utility>

#include "http/server/http2_wire.h"

namespace spate::http {

Http2Tunnel::Http2Tunnel(Http2Wire& wire, Stream end) : wire_(wire), end_(std::move(end)) {
  end_.set_half_open(true);
  end_.start(*this);
}

Http2Tunnel::~Http2Tunnel() { wire_.is_complete() ? end_.close() : end_.abort(); }

bool Http2Tunnel::take(Bytes bytes) {
  const std::size_t size = bytes.size();
  return end_.write(bytes) && took(size);
}

bool Http2Tunnel::take(Buffer&& bytes) {
  const std::size_t size = bytes.size();
  return size == 0 || (end_.write(std::move(bytes)) && took(size));
}

bool Http2Tunnel::took(std::size_t size) {
  owed_ += size;
  if (!end_.is_full()) wire_.credit(std::exchange(owed_, 0));
  return true;
}

void Http2Tunnel::on_drained() { wire_.credit(std::exchange(owed_, 0)); }

std::size_t Http2Tunnel::on_data(Bytes bytes) {
  if (wire_.is_full()) {
    end_.pause();
    return 0;
  }
  wire_.pass_on(bytes);
  return bytes.size();
}

void Http2Tunnel::on_end() { wire_.pass_end(); }

void Http2Tunnel::on_closed(std::error_code error) {
  if (error) wire_.cut_tunnel();
}

}  // namespace spate::http
