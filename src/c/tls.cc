// Handshakes of a spate_stream.
#include "c/tls.h"

#include <cerrno>

#include "c/stream.h"
#include "spate_net.h"

using namespace spate;

namespace {

// Called by the loop. The stream exists, since destroying it would have cancelled the handshake.
OnSecured tell(spate_stream* stream, spate_secured_fn* callback) {
  return [stream, callback](TlsResult<Stream> result) {
    if (!result)
      return callback(stream, c::to_code(result.error().code), result.error().text.c_str());
    stream->stream = std::move(*result);
    stream->is_empty = false;
    callback(stream, 0, "");
  };
}

int begin(spate_stream* stream, Connecting securing) {
  stream->is_empty = true;
  if (!securing.is_pending()) return -ENOMEM;
  stream->securing = std::move(securing);
  return 0;
}

}  // namespace

int spate_stream_accept_tls(spate_stream* stream, const spate_tls_context* context,
                            spate_secured_fn* callback) {
  if (!stream->stream.is_open()) return -EBADF;
  if (context == nullptr || callback == nullptr) return -EINVAL;
  return begin(stream,
               accept_tls(std::move(stream->stream), context->context, tell(stream, callback)));
}

int spate_stream_start_tls(spate_stream* stream, const spate_tls_context* context, const char* host,
                           spate_secured_fn* callback) {
  if (!stream->stream.is_open()) return -EBADF;
  if (context == nullptr || host == nullptr || callback == nullptr) return -EINVAL;
  return begin(
      stream, start_tls(std::move(stream->stream), context->context, host, tell(stream, callback)));
}
