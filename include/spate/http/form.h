// Forms: bodies of application/x-www-form-urlencoded and multipart/form-data (RFC 7578), read and
// written. No I/O: bytes go in, as they come, and events come out. One thread at a time.
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

// Appends a pair to a query or a body of application/x-www-form-urlencoded. To read them: Query, in
// url.h.
SPATE_EXPORT void append_pair(std::string& form, std::string_view name, std::string_view value);

struct MultipartLimits {
  std::size_t parts = 1000;
  std::size_t part_head = 8 * 1024;  // Bytes; also of what precedes the first part.
};

// Reads a body of multipart/form-data in pieces of any size, and keeps no more of it than the head
// of one part:
//
//   auto decoder = MultipartDecoder::make(content_type);
//   ...
//   std::size_t on_body(Bytes bytes) {
//     const std::size_t size = bytes.size();
//     for (;;) {
//       switch (decoder->next(bytes)) {
//         case MultipartDecoder::Event::part:       begin(decoder->name(), decoder->filename());
//         ...
//         case MultipartDecoder::Event::unfinished: return size;
//
// The sequence is: part, data (any number), part_end; again; end. The sum of data, and of a part,
// has no limit here.
class SPATE_EXPORT MultipartDecoder {
 public:
  enum class Event : std::uint8_t {
    unfinished,  // All bytes are used; more are needed, unless is_done().
    part,        // A part begins: name(), filename(), content_type().
    data,        // Some bytes of it: data().
    part_end,
    end,     // The last part has ended. What follows is thrown away.
    broken,  // And remains so: error().
  };

  // From the value of Content-Type. Errors: EINVAL if it is not multipart/form-data, or has no
  // boundary of RFC 2046: 1 to 70 characters.
  static Result<MultipartDecoder> make(std::string_view content_type,
                                       const MultipartLimits& limits = {});

  // The next event; removes the bytes that it took from the front of `bytes`. Call it until it
  // returns unfinished or broken.
  Event next(Bytes& bytes);

  // Of the last part; valid until the next one begins. The name and the file's name are what the
  // client says, in UTF-8 if it is a browser: a file's name may be empty, have slashes and dots,
  // and is not to be used as a path. Their %22, %0D and %0A, as browsers write quotes, CR and LF,
  // are these.
  std::string_view name() const { return name_; }
  // None: it is no file.
  std::optional<std::string_view> filename() const {
    return has_filename_ ? std::optional<std::string_view>(filename_) : std::nullopt;
  }
  // "text/plain" if the part says nothing.
  std::string_view content_type() const { return content_type_; }
  // Valid until next() is called, or the bytes that were given to it are no longer.
  Bytes data() const { return data_; }

  // The last part has ended. A body that ends before was cut off.
  bool is_done() const { return state_ == State::epilogue; }
  // After `broken`: EBADMSG, or EMSGSIZE above a limit.
  std::error_code error() const { return error_; }

 private:
  enum class State : std::uint8_t { preamble, body, delimiter, head, epilogue, broken };
  enum class Tail : std::uint8_t { start, padding, dash, carriage_return };

  MultipartDecoder(std::string_view boundary, const MultipartLimits& limits);
  Event fail(std::errc error);
  Event skip_preamble(Bytes& bytes);
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
  std::size_t matched_ = 2;   // Bytes of the delimiter that were seen: at first as if after CRLF.
  std::size_t borrowed_ = 2;  // Of these, those that are of no data.
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

// Writes a body of multipart/form-data to a Buffer, which must outlive it:
//
//   MultipartBuilder form(body, boundary);
//   form.add("user", "ada");
//   form.begin_file("picture", "a.png", "image/png");
//   body.append(picture);
//   form.end();
//
// False: out of memory, or the text cannot be sent: a name with controls other than CR and LF, a
// type that is none, a value that contains the boundary. The body is then of no use.
class SPATE_EXPORT MultipartBuilder {
 public:
  // The boundary: 1 to 70 letters, digits and '()+_,-./:=? that occur in no file. Take 16 or more
  // at random.
  MultipartBuilder(Buffer& target, std::string_view boundary);

  bool add(std::string_view name, std::string_view value);
  // What is then appended to the Buffer is the file's content, up to the next call.
  bool begin_file(std::string_view name, std::string_view filename, std::string_view type);
  bool end();
  // The value of Content-Type.
  std::string content_type() const;

 private:
  bool begin_part(std::string_view name, std::string_view rest);

  Buffer& target_;
  std::string boundary_;
  bool has_parts_ = false;
};

}  // namespace spate::http
