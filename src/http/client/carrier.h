// Carrier: an HTTP/1 connection, or an HTTP/2 stream, that carries a call.
#pragma once

#include <cstddef>

namespace spate::http {

class Carrier {
 public:
  // Called when the request's body may have more bytes to send.
  virtual void send_body() = 0;
  // Returns whether enough bytes are queued.
  virtual bool is_full() const = 0;
  // Returns how many bytes wait in the connection to be sent.
  virtual std::size_t queued() const = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  // True if a part of the response was kept because the call was paused.
  virtual bool has_kept() const = 0;
  // Passes kept bytes on, and further output of used ones. Called by the loop. The call may be over
  // afterwards.
  virtual void show_more() = 0;
  // Called when the call is about to end at its deadline; abandon() follows.
  virtual void note_late() = 0;
  // Ends the call without calling its handler.
  virtual void abandon() = 0;

 protected:
  ~Carrier() = default;
};

}  // namespace spate::http
