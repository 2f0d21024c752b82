#include "http/server/outgoing_response.h"

namespace spate::http {

// The rest is set by frame().
void OutgoingResponse::clear() {
  left_ = sent_ = 0;
  status_ = {};
  stage_ = Stage::none;
  is_sized_ = false;
}

void OutgoingResponse::begin(Status status, std::optional<std::uint64_t> size) {
  status_ = status;
  stage_ = Stage::begun;
  expect(size);
}

void OutgoingResponse::expect(std::optional<std::uint64_t> size) {
  is_sized_ = size.has_value();
  left_ = size.value_or(0);
}

void OutgoingResponse::note_upgrade(Status status) {
  status_ = status;
  stage_ = Stage::ended;
}

}  // namespace spate::http
