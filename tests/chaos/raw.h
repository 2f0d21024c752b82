// Raw: an adversary at the other end, with a bare non-blocking descriptor: a byte at a time,
// stalls, resets, floods, ends in the middle.
#pragma once

#include "chaos/party.h"
#include "chaos/program.h"

namespace spate::chaos {

class Raw final : public Party {
 public:
  Raw(World& its_world, unsigned its_number, Kind its_kind, int fd)
      : Party(its_world, its_number, its_kind, true), fd_(fd) {}
  ~Raw() override;

  void act(const Step& step);
  // Acts by itself after each turn. Returns true if a byte moved.
  bool go_on();
  bool read_all();
  void make_friendly() { mode_ = Mode::reads; }
  void end();
  void close();
  // Nothing moves any more: every byte sent to it and not lost must be here.
  void check_settled();
  void check_told();
  bool is_open() const { return fd_ >= 0; }
  bool has_met() const;
  bool awaits_end() const { return fd_ >= 0 && in != nullptr && !is_over_; }

 private:
  enum class Mode : std::uint8_t { silent, reads, reads_little, echoes, floods };

  bool read(std::size_t max);
  bool send(std::size_t size);
  void on_error(int error);
  void reset();
  void gone();
  bool has_unread() const;

  int fd_;
  Mode mode_ = Mode::reads;
  bool is_over_ = false;  // It has read EOF, or an error.
  bool saw_end_ = false;
  bool has_ended_ = false;
};

}  // namespace spate::chaos
