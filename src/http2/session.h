// Session: an Http2Session (RFC 9113), without I/O. Frames except DATA are written when they are
// submitted, so that they leave in that order; their effects are reported when they leave
// (report_sent()).
//
// session_receive.cc has the input, session.cc the output.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/array.h"
#include "http/codec/http2_session.h"
#include "http2/flow_window.h"
#include "http2/frame.h"
#include "http2/frame_writer.h"
#include "http2/gather.h"
#include "http2/hpack_decoder.h"
#include "http2/send_order.h"
#include "http2/stream_table.h"
#include "spate/http/http2.h"

namespace spate::http {

class Session final : public Http2Session {
 public:
  enum class Side : bool { server, client };

  Session(Http2Events& events, Side side, const Http2Options& options)
      : events_(events), side_(side), options_(options) {}

  // Queues the preface. False when memory runs out.
  bool open(std::size_t max_head);

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

 private:
  enum class Reading : std::uint8_t { preface, head, prelude, payload, body, padding, nothing };

  // The header section being received.
  struct Section {
    std::int32_t id = 0;  // 0: none.
    SectionKind kind = SectionKind::request;
    bool is_last = false;
    bool is_ignored = false;  // It is decoded only for the table.
    int continuations = 0;
  };
  // A priority that arrived before its stream.
  struct EarlyPriority {
    std::int32_t id = 0;
    Http2Priority priority{};
  };

  // ---- receiving; these return false to end the input

  // Makes one step; false also if more input is needed.
  bool step(std::string_view& input);
  bool take_preface(std::string_view& input);
  bool check_head();
  bool begin_frame(std::string_view prelude);
  bool end_frame(std::string_view payload);
  bool stop();

  bool begin_headers(std::string_view prelude);
  bool begin_stream(bool depends_on_itself);
  bool begin_response();
  bool begin_more(StreamState& stream, SectionKind kind);
  bool ignore_section();
  bool take_block(std::string_view fragment);
  bool take_fields(std::string_view& block);
  bool take_field(StreamState& stream, const HpackField& field);
  bool end_section();
  bool report_section(StreamState& stream);

  bool begin_data(std::string_view prelude);
  bool take_body(std::string_view& input);
  bool take_chunk(StreamState& stream, std::string_view chunk);
  bool take_padding(std::string_view& input);
  void count_received(std::size_t size);
  void count_in_connection(std::size_t size);
  bool end_data();

  bool check_control(std::int32_t stream_wanted, std::uint32_t size_wanted);
  bool begin_control();
  bool take_rst_stream(std::string_view payload);
  bool take_settings(std::string_view payload);
  Http2Code apply(Setting setting, std::uint32_t value);
  Http2Code set_first_window(std::uint32_t value);
  bool take_ping(std::string_view payload);
  bool take_goaway(std::string_view payload);
  bool take_window_update(std::string_view payload);
  void widen(StreamState& stream, std::int32_t increment);
  bool take_priority_update(std::string_view payload);
  Http2Priority take_early_priority(std::int32_t id);

  bool is_server() const { return side_ == Side::server; }
  bool is_idle(std::int32_t id) const;
  bool count(Http2Frame kind) { return events_.on_frame(kind); }
  // Ends the connection with an error. Always false.
  bool fail(Http2Code code);

  // ---- streams

  void reset_stream(StreamState& stream, Http2Code code);
  void reset_unknown(std::int32_t id, Http2Code code);
  void close(StreamState& stream, Http2Code code);
  void close_if_over(StreamState& stream);
  void end_remote(StreamState& stream);
  void uncount(StreamState& stream);
  void announce_window(StreamState& stream);
  void end_local(StreamState& stream);
  void begin_body(StreamState& stream, Http2End end);
  void add_report(StreamState& stream);
  void report_sent();
  void report_sent(StreamState& stream);
  bool has_reports() const {
    return !reporting_.empty() || unreported_streams_ > 0 || unreported_goaways_ > 0;
  }

  // ---- sending

  void send_bodies();
  bool send_piece(StreamState& stream);
  bool send_data(StreamState& stream, const Http2Piece& piece);
  StreamState* find_writable(std::int32_t id);

  Http2Events& events_;
  const Side side_;
  const Http2Options options_;

  // Receiving.
  Reading reading_ = Reading::preface;
  bool is_section_open_ = false;
  bool is_stopped_ = false;    // The owner wants no more input, or it is not HTTP/2.
  bool has_data_ = false;      // The DATA frame being received is not empty.
  bool is_ignored_ = false;    // It is not reported.
  std::uint32_t left_ = 0;     // Bytes of the payload that have not been read,
  std::uint32_t padding_ = 0;  // and at its end, of the padding.
  FrameHead frame_;
  Section section_;
  Gather gather_;
  Array<char> block_;  // A part of a field, between two fragments of a section.
  HpackDecoder decoder_;
  FlowWindow received_;
  // The window of each stream; a change takes effect when the peer acknowledges it.
  std::int32_t first_received_window_ = kFirstWindow;
  bool is_acknowledged_ = false;  // Our settings.
  bool has_settings_ = false;     // From the peer.
  std::array<EarlyPriority, 8> early_{};
  std::uint8_t next_early_ = 0;

  // Streams.
  StreamTable streams_;
  std::int32_t last_peer_ = 0;      // The newest stream of the peer,
  std::int32_t last_accepted_ = 0;  // that was accepted,
  std::int32_t last_dropped_ = 0;   // that we refused or reset: its frames may be on their way.
  std::int32_t next_own_ = 1;       // Clients.
  std::uint32_t active_ = 0;        // Clients: streams that the server counts.
  bool is_announced_ = false;       // The end, by a GOAWAY.
  bool is_refusing_ = false;        // GOAWAY was sent,
  bool is_refused_ = false;         // or received.
  std::int32_t goaway_last_ = INT32_MAX;  // From the peer.

  // Sending.
  FrameWriter writer_;
  SendOrder order_;
  std::int64_t window_ = kFirstWindow;  // The connection's.
  std::int32_t first_window_ = kFirstWindow;
  std::uint32_t peer_max_streams_ = 100;  // Until its settings arrive.
  std::uint32_t peer_tunnels_ = 0;
  std::uint32_t peer_priorities_ = UINT32_MAX;  // NO_RFC7540_PRIORITIES; UINT32_MAX: not given.
  ReportingStreams reporting_;
  std::uint32_t unreported_streams_ = 0;  // Violations on streams that have no state.
  std::uint32_t unreported_goaways_ = 0;
  bool is_broken_ = false;
};

}  // namespace spate::http
