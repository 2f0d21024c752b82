// Implements Http2Session with nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "http/codec/http2_session.h"
#include "spate/http/http2.h"

namespace spate::http {

class Nghttp2Session final : public Http2Session {
 public:
  // `max_streams` is our own limit, for clients.
  Nghttp2Session(Http2Events& events, std::uint32_t max_streams)
      : events_(events), max_streams_(max_streams) {}
  ~Nghttp2Session() override { nghttp2_session_del(session_); }

  // False when memory runs out.
  bool open_server(const nghttp2_session_callbacks& callbacks, const nghttp2_option& option,
                   std::span<const nghttp2_settings_entry> settings);
  bool open_client(const nghttp2_session_callbacks& callbacks, const nghttp2_option& option,
                   std::span<const nghttp2_settings_entry> settings);

  bool receive(Bytes bytes) override;
  Bytes next_frame() override;
  bool is_over() const override;
  bool inform(std::int32_t id, std::span<const Http2Field> head) override;
  std::int32_t request(Http2Stream& stream, std::span<const Http2Field> head,
                       Http2End end) override;
  bool respond(std::int32_t id, std::span<const Http2Field> head, Http2End end) override;
  void wake(std::int32_t id) override;
  bool reset(std::int32_t id, Http2Code code) override;
  void credit(std::int32_t id, std::size_t size) override;
  bool ping() override;
  std::uint32_t max_streams() const override;
  Http2Tunnels tunnels() const override;
  void announce_end() override;
  void refuse_streams(Http2Code code) override;

  static void set_callbacks(nghttp2_session_callbacks* callbacks);

 private:
  struct Calls;  // The callbacks for nghttp2.

  // Events of one stream usually come in a row, so the last lookup is cached.
  Http2Stream* stream_of(std::int32_t id) {
    if (id != last_id_) {
      last_id_ = id;
      last_ = static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session_, id));
    }
    return last_;
  }
  int set_stream(std::int32_t id, Http2Stream* stream) {
    last_id_ = 0;
    return nghttp2_session_set_stream_user_data(session_, id, stream);
  }

  bool introduce(std::span<const nghttp2_settings_entry> settings);
  // Reports the contents of a frame. False: no more input is wanted.
  void take_settings();
  bool take_headers(const nghttp2_frame& frame);
  bool take_end(const nghttp2_frame& frame);
  bool count(Http2Frame kind) { return events_.on_frame(kind); }
  // Returns the error of a client's frame that nghttp2 ignores, because it keeps no closed streams
  // here and no priorities; NGHTTP2_NO_ERROR if there is no error.
  nghttp2_error_code fault_of(const nghttp2_frame_hd& head);
  bool is_of_closed_stream(std::int32_t id);

  Http2Events& events_;
  const std::uint32_t max_streams_;
  nghttp2_session* session_ = nullptr;
  Http2Stream* last_ = nullptr;  // The result of the last lookup,
  std::int32_t last_id_ = 0;     // and its id; 0: no lookup yet.
  std::int32_t seen_ = 0;        // The newest stream that had a header section,
  std::int32_t opened_ = 0;      // that was accepted,
  std::int32_t dropped_ = 0;     // that was refused or reset: its frames may still be in flight.
  bool has_settings_ = false;    // From the peer.
  bool has_data_ = false;        // The DATA frame being received is not empty.
  bool is_broken_ = false;       // Nothing can be sent any more.
};

// The settings, and objects shared by all sessions. Immutable after prepare().
class Nghttp2Engine final : public Http2Engine {
 public:
  explicit Nghttp2Engine(const Http2Options& options) : options_(options) {}
  Nghttp2Engine(const Nghttp2Engine&) = delete;
  Nghttp2Engine& operator=(const Nghttp2Engine&) = delete;
  ~Nghttp2Engine() override;

  // False when memory runs out.
  bool prepare();
  std::unique_ptr<Http2Session> make_server(Http2Events& events,
                                            std::size_t max_head) const override;
  std::unique_ptr<Http2Session> make_client(Http2Events& events,
                                            std::size_t max_head) const override;
  std::uint32_t max_streams() const override { return options_.max_streams; }

 private:
  Http2Options options_;
  nghttp2_session_callbacks* callbacks_ = nullptr;
  nghttp2_option* option_ = nullptr;
};

}  // namespace spate::http
