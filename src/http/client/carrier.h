// Carrier: what carries a call: a connection of HTTP/1, or a stream of one of HTTP/2.
#pragma once

namespace spate::http {

class Carrier {
 public:
  // There may be more of the request's body to send.
  virtual void send_body() = 0;
  // What was written waits here, and is enough.
  virtual bool is_full() const = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  // Something of the answer was kept for a call that had paused.
  virtual bool has_kept() const = 0;
  // Shows that, and more of what was used already; by the loop. The call may be over afterwards.
  virtual void show_more() = 0;
  // The call ends at its deadline; abandon() follows.
  virtual void note_late() = 0;
  // The call goes; nobody is told.
  virtual void abandon() = 0;

 protected:
  ~Carrier() = default;
};

}  // namespace spate::http
