#include "sim/unix/channel.h"

#include <algorithm>
#include <utility>

namespace spate::sim {

void Channel::append(std::string_view bytes, Passed passed) {
  size_ += bytes.size();
  memory_.take(host_, bytes.size());
  if (passed.empty() && !pieces_.empty() && pieces_.back().passed.empty()) {
    pieces_.back().bytes.append(bytes);
  } else {
    pieces_.push_back({std::string(bytes), std::move(passed)});
  }
}

std::string Channel::take(std::size_t most, Passed& passed) {
  std::string taken;
  while (!pieces_.empty() && taken.size() < most) {
    Piece& first = pieces_.front();
    const std::size_t count = std::min(most - taken.size(), first.bytes.size() - first.begin);
    taken.append(first.bytes, first.begin, count);
    first.begin += count;
    passed = std::exchange(first.passed, {});
    if (first.begin == first.bytes.size()) pieces_.pop_front();
    if (!passed.empty()) break;
  }
  size_ -= taken.size();
  memory_.give(host_, taken.size());
  return taken;
}

void Channel::clear() {
  pieces_.clear();
  memory_.give(host_, std::exchange(size_, 0));
}

void Channel::give_up(Passed& dropped) {
  for (Piece& piece : pieces_) {
    dropped.insert(dropped.end(), piece.passed.begin(), piece.passed.end());
    piece.passed.clear();
  }
}

std::string Channel::peek(std::size_t most) const {
  std::string seen;
  for (const Piece& piece : pieces_) {
    seen.append(piece.bytes, piece.begin, most - seen.size());
    if (seen.size() == most || !piece.passed.empty()) break;
  }
  return seen;
}

}  // namespace spate::sim
