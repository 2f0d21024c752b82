// Forms: reading and writing of application/x-www-form-urlencoded and multipart/form-data (RFC
// 7578) bodies. No I/O: the decoder takes bytes as they arrive, and returns events. One thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/buffer.h"
#include "spate/net/bytes.h"

namespace spate::http {

// Appends a pair to a query or a body of application/x-www-form-urlencoded. To read them, use
// Query, in url.h.
SPATE_EXPORT void append_pair(std::string& form, std::string_view name, std::string_view value);

struct MultipartLimits {
  std::size_t parts = 1000;
  std::size_t part_head = 8 * 1024;  // Bytes; also the limit of the preamble.
};

// Parses a body of multipart/form-data in pieces of any size. It keeps no more in memory than the
// header section of one part:
//
//   auto decoder = MultipartDecoder::make(content_type);
//   ...
//   void on_body(Bytes bytes) override {
//     for (;;) {
//       switch (decoder->next(bytes)) {
//         case MultipartDecoder::Event::part: begin(decoder->name(), decoder->filename()); break;
//         case MultipartDecoder::Event::data: store(decoder->data()); break;
//         ...
//         case MultipartDecoder::Event::unfinished: return;
//
// The sequence is: part, data (any number), part_end; again; end. The decoder does not limit the
// size of the data or of a part.
class SPATE_EXPORT MultipartDecoder {
 public:
  enum class Event : std::uint8_t {
    unfinished,  // All input is used; more is needed, unless is_done().
    part,        // A part begins: name(), filename(), content_type().
    data,        // Bytes of the part: data().
    part_end,
    end,     // The last part ended. The rest is discarded.
    broken,  // Invalid: see error(). Stays so.
  };

  // Makes a decoder from the value of Content-Type. Errors: EINVAL if it is not
  // multipart/form-data, or has no boundary of RFC 2046: 1 to 70 characters.
  static Result<MultipartDecoder> make(std::string_view content_type,
                                       const MultipartLimits& limits = {});

  // Returns the next event, and removes the bytes it used from the front of `bytes`. Call it until
  // it returns unfinished or broken.
  Event next(Bytes& bytes);

  // Describe the last part; valid until the next one begins or the decoder is moved. The name and
  // the file name are sent by the client, by a browser in UTF-8. A file name may be empty, or have
  // slashes and dots: never use it as a path. Browsers write quotes, CR and LF as %22, %0D and %0A,
  // which are decoded.
  std::string_view name() const { return name_; }
  // Returns nullopt if the part is not a file.
  std::optional<std::string_view> filename() const {
    return has_filename_ ? std::optional<std::string_view>(filename_) : std::nullopt;
  }
  // Returns "text/plain" if the part has no type.
  std::string_view content_type() const { return content_type_; }
  // Returns the bytes of a `data` event. Valid until next() is called, the decoder is moved, or its
  // input is freed.
  Bytes data() const { return data_; }

  // True if the last part ended. A body that ends before is truncated.
  bool is_done() const { return state_ == State::epilogue; }
  // Returns the error after `broken`: EBADMSG, or EMSGSIZE above a limit.
  std::error_code error() const { return error_; }

 private:
  enum class State : std::uint8_t { preamble, body, delimiter, head, epilogue, broken };
  enum class Tail : std::uint8_t { start, padding, dash, carriage_return };

  MultipartDecoder(std::string_view boundary, const MultipartLimits& limits);
  Event fail(std::errc error);
  Event skip_preamble(Bytes& bytes);
  std::size_t size_of_beginning(std::string_view text) const;
  Event scan(Bytes& bytes);
  Event go_on_matching(Bytes& bytes);
  Event meet_delimiter();
  Event read_tail(Bytes& bytes);
  Event take_tail_byte(char c);
  Event read_head(Bytes& bytes);
  Event begin_part();
  bool parse_head(std::string_view head);
  bool parse_line(std::string_view line);
  bool parse_disposition(std::string_view value);

  MultipartLimits limits_;
  State state_ = State::preamble;
  Tail tail_ = Tail::start;
  bool in_part_ = false;
  bool has_disposition_ = false;
  bool has_filename_ = false;
  std::size_t matched_ = 2;   // Bytes of the delimiter that matched: initially as after CRLF.
  std::size_t borrowed_ = 2;  // Bytes among them that do not belong to any data.
  std::size_t preamble_ = 0;
  std::size_t padding_ = 0;
  std::size_t parts_ = 0;
  std::string delimiter_;  // CR LF - - boundary
  std::string head_;
  std::string name_;
  std::string filename_;
  std::string content_type_;
  Bytes data_;
  std::error_code error_;
};

// Formats a body of multipart/form-data into a Buffer, which must outlive it:
//
//   MultipartBuilder form(body, boundary);
//   form.add("user", "ada");
//   form.begin_file("picture", "a.png", "image/png");
//   body.append(picture);
//   form.end();
//
// Its functions return false when memory runs out, or if the text cannot be sent: a name with
// controls other than CR and LF, an invalid type, a value that contains the boundary. The body is
// then useless.
class SPATE_EXPORT MultipartBuilder {
 public:
  // `boundary` has 1 to 70 letters, digits and '()+_,-./:=? and must not occur in any file. Use 16
  // or more random characters.
  MultipartBuilder(Buffer& target, std::string_view boundary);

  // Adds a value that is not a file.
  bool add(std::string_view name, std::string_view value);
  // Begins a file. Its content is the bytes appended to the Buffer until the next call.
  bool begin_file(std::string_view name, std::string_view filename, std::string_view type);
  bool end();
  // Returns the value of Content-Type.
  std::string content_type() const;

 private:
  bool begin_part(std::string_view name, std::string_view rest);

  Buffer& target_;
  std::string boundary_;
  bool has_parts_ = false;
};

}  // namespace spate::http
