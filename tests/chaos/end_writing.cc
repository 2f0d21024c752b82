// The writing operations on an End, and their effects on the model.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "chaos/end.h"
#include "chaos/verdict.h"
#include "chaos/world.h"

namespace spate::chaos {

namespace {

constexpr std::size_t kMaxOfAChannel = 700'000;
constexpr std::size_t kFileSize = 300'000;
constexpr unsigned kFilePattern = 999;

// Mostly few.
std::size_t size_of(std::uint32_t a) {
  static constexpr std::size_t kMax[16] = {16,  16,   16,   16,   16,    300,   300,   300,
                                           300, 6000, 6000, 6000, 30000, 30000, 80000, 250000};
  return 1 + (a >> 4) % kMax[a & 15];
}

// A file with its own pattern, shared by all Ends.
int shared_file() {
  static const int file = [] {
    const int made = ::memfd_create("chaos", MFD_CLOEXEC);
    const Bytes bytes = pattern(kFilePattern, 0, kFileSize);
    return ::write(made, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? made
                                                                                           : -1;
  }();
  return file;
}

std::uint64_t inode_of(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

void prepare_files() { static_cast<void>(shared_file()); }

std::size_t End::room() const {
  return out == nullptr || out->accepted() >= kMaxOfAChannel ? 0 : kMaxOfAChannel;
}

// If a file is too short, the queue contains bytes that were never accepted.
std::size_t End::sent() const {
  const std::size_t waiting = stream_->queued();
  return out == nullptr || out->accepted() < waiting ? 0 : out->accepted() - waiting;
}

void End::act_on_writing(const Step& step, const Visit& visit) {
  switch (step.op) {
    case Op::write:
      return write(size_of(step.a));
    case Op::write_buffer:
      return write_buffer(step);
    case Op::write_pieces:
      for (std::uint32_t i = 0; i < 2 + step.b % 8 && has_handle(); ++i)
        write(1 + (step.a >> i) % (i % 3 == 2 ? 6000 : 100));
      return;
    case Op::write_span:
      return write_span(step);
    case Op::echo:
      return echo(step, visit);
    case Op::send_file:
      return send_file(step);
    default:
      return send_descriptors(step);
  }
}

bool End::may_write() const {
  const bool may = stream_->is_writable();
  check(!may || !(is_ending_ || is_closing_ || is_over()), "over_is_not_writable",
        "end %u: writable after its end", number);
  return may;
}

void End::write(std::size_t size) {
  const bool might = may_write();
  const std::size_t waiting = stream_->queued();
  const bool done = stream_->write(out->next(size));
  note_write(done, might, waiting, out->next(size));
  if (done) out->accept_own(size);
}

void End::publish(Bytes bytes, unsigned pattern, std::size_t offset) {
  if (!has_handle() || room() == 0) return;
  idle_.latest = world.now();
  const bool might = may_write();
  const std::size_t waiting = stream_->queued();
  const bool done = stream_->write(bytes);
  note_write(done, might, waiting, bytes);
  if (done) out->accept(pattern, offset, bytes.size());
  look();
}

// Many pieces, some of them empty, in one write.
void End::write_span(const Step& step) {
  static constexpr std::size_t kMax[4] = {3, 40, 500, 5000};
  std::vector<Bytes> pieces(step.b % 5 == 0 ? step.b % 80 : step.b % 8);
  std::size_t size = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    size += i % 5 == 3 ? 0 : 1 + (step.a >> (i % 8)) % kMax[step.a % 4];
  const Bytes bytes = out->next(size);
  std::size_t at = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t part = i % 5 == 3 ? 0 : 1 + (step.a >> (i % 8)) % kMax[step.a % 4];
    pieces[i] = bytes.subspan(at, part);
    at += part;
  }
  const bool might = may_write();
  const std::size_t waiting = stream_->queued();
  const bool done = stream_->write(pieces);
  note_write(done, might, waiting, bytes);
  if (done) out->accept_own(size);
}

namespace {

struct Borrowed {
  World* world;
  std::vector<std::byte> bytes;
  bool is_sent = false;  // The Stream owns the pieces: the loop releases them.
  bool in_write = false;
};

void give_back(void* context) {
  std::unique_ptr<Borrowed> borrowed(static_cast<Borrowed*>(context));
  std::fill(borrowed->bytes.begin(), borrowed->bytes.end(), std::byte{0xDD});
  check(!borrowed->in_write, "release_not_from_inside", "a release function inside write()");
  World& world = *borrowed->world;
  if (!borrowed->is_sent || !world.has_loop()) return;
  check(world.loop().depth() > 0, "release_by_the_loop", "a release function outside of run()");
  world.visit({.where = Where::released});
}

}  // namespace

// Copied, by reference, or of both kinds; moved or shared.
void End::write_buffer(const Step& step) {
  const std::size_t size = size_of(step.a);
  const Bytes bytes = out->next(size);
  Buffer buffer;
  const std::size_t head = step.b % 3 == 0 ? size : step.b % 3 == 1 ? 0 : size / 2;
  if (!buffer.append(bytes.first(head))) return;
  Borrowed* lent = nullptr;
  if (head < size) {
    const Bytes rest = bytes.subspan(head);
    auto borrowed =
        std::make_unique<Borrowed>(&world, std::vector<std::byte>(rest.begin(), rest.end()));
    const Bytes shown(borrowed->bytes);
    if (!buffer.append_reference(shown, give_back, borrowed.get())) return;
    lent = borrowed.release();
  }
  const bool might = may_write();
  const std::size_t waiting = stream_->queued();
  // It may be sent and released at once, and its release function may do anything.
  const Channel before = *out;
  out->accept_own(size);
  if (lent != nullptr) lent->in_write = true;
  const bool done = stream_->write(std::move(buffer));
  if (lent != nullptr) {
    lent->in_write = false;
    lent->is_sent = done;
  }
  if (!done) *out = before;
  check(done || buffer.size() == size, "refused_is_left", "end %u: refused, and %zu of %zu left",
        number, buffer.size(), size);
  if (has_handle()) note_write(done, might, waiting, bytes);
}

void End::echo(const Step& step, const Visit& visit) {
  if (visit.end == nullptr || visit.arrived.empty()) return;
  const std::size_t size = visit.arrived.size();
  const std::size_t skip = step.b % 4 == 0 ? step.a % size : 0;
  const std::size_t max = size - skip;
  const std::size_t count = step.b % 3 == 0 ? 1 + step.a % max : max;
  if (visit.arrived_at + size > visit.end->in->accepted()) return;  // The write was refused.
  const bool might = may_write();
  const std::size_t waiting = stream_->queued();
  const bool done = stream_->write(visit.arrived.subspan(skip, count));
  note_write(done, might, waiting, visit.arrived.subspan(skip, count));
  if (done) out->accept_from(*visit.end->in, visit.arrived_at + skip, count);
}

void End::note_write(bool done, bool might, std::size_t waiting, Bytes bytes) {
  const std::size_t size = bytes.size();
  world.tell("  end %u writes %zu: %s, %zu queued", number, size, done ? "taken" : "refused",
             has_handle() ? stream_->queued() : 0);
  peer->catch_up();
  check(might || !done, "over_takes_nothing", "end %u: write() to what is not writable", number);
  if (done && peer->may_show_error) in_is_at_risk("written to a peer that is gone");
  if (done && in_callback_ && limits_.when_full == WhenFull::close)
    may_overflow_ = may_overflow_ || waiting + size > limits_.max;
  if (done || !might) return;
  out->refuse(bytes, world.is_stormy());
  const bool is_full = waiting + size > limits_.max;
  check(is_full || peer->may_show_error || world.is_stormy(), "write_is_taken",
        "end %u: %zu bytes refused with %zu of %zu queued", number, size, waiting, limits_.max);
  if (is_full) note_full();
}

// The peer answers with a reset, which may discard the bytes that it sent before.
void End::in_is_at_risk(const char* why) {
  if (in != nullptr) in->lose(why);
}

// In stormy weather, the write may have been refused for another reason.
void End::note_full() {
  if (limits_.when_full != WhenFull::close) return;
  if (world.is_stormy()) {
    may_overflow_ = true;
    return;
  }
  overflowed_ = true;
  mark_dead("queue_full");
}

void End::send_file(const Step& step) {
  const std::size_t offset = step.a % kFileSize;
  const std::size_t there = kFileSize - offset;
  const bool is_short = step.b % 16 == 0;
  const std::size_t size = is_short ? there + 10 : std::min(size_of(step.a >> 3), there);
  const bool might = may_write();
  const int file = ::fcntl(shared_file(), F_DUPFD_CLOEXEC, 0);
  const std::error_code error = stream_->send_file(file, offset, size);
  world.tell("  end %u sends %zu bytes of a file: %s", number, size, error.message().c_str());
  if (error) ::close(file);
  peer->catch_up();
  check(might || error, "over_takes_nothing", "end %u: send_file() to what is not writable",
        number);
  check(!might || !error || world.is_stormy() || (is_system(error, EPIPE) && peer->may_show_error),
        "write_is_taken", "end %u: send_file(): %s", number, error.message().c_str());
  if (error) return;
  if (peer->may_show_error) in_is_at_risk("sent to a peer that is gone");
  has_file_ = true;
  out->accept(kFilePattern, offset, std::min(size, there));
  if (!is_short) return;
  is_file_short_ = true;
  mark_dead("a file that is too short");
}

void End::send_descriptors(const Step& step) {
  const std::size_t size = size_of(step.a % 12 + (step.a & ~15u));
  const std::vector<int> fds(1 + step.b % 3, shared_file());
  const bool might = may_write();
  const std::size_t waiting = stream_->queued();
  const std::error_code error = stream_->send_descriptors(out->next(size), fds);
  world.tell("  end %u sends %zu descriptors with %zu bytes: %s", number, fds.size(), size,
             error.message().c_str());
  peer->catch_up();
  if (kind != Kind::local || is_secure) {
    check(static_cast<bool>(error), "descriptors_need_unix", "end %u: taken", number);
    return;
  }
  check(might || error, "over_takes_nothing", "end %u: send_descriptors() to what is not writable",
        number);
  if (!error) {
    if (peer->may_show_error) in_is_at_risk("sent to a peer that is gone");
    const unsigned taker = peer->is_raw ? 0 : static_cast<End*>(peer)->takes_descriptors_;
    out->descriptors.push_back(
        {out->accepted(), std::vector<std::uint64_t>(fds.size(), inode_of(fds[0])), taker});
    out->accept_own(size);
    return;
  }
  if (!might || (is_system(error, EPIPE) && peer->may_show_error)) return;
  const bool is_full = error == Error::queue_full && waiting + size > limits_.max;
  check(is_full || world.is_stormy(), "write_is_taken", "end %u: send_descriptors(): %s", number,
        error.message().c_str());
  if (is_full) note_full();
}

}  // namespace spate::chaos
