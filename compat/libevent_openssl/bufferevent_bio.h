// A BIO that reads from the input of a bufferevent and writes to its output.
#pragma once

#include <openssl/bio.h>

#include "compat/libevent/bufferevent_api.h"

namespace spate::libevent {

// Returns null when memory runs out. The bufferevent must outlive the BIO.
BIO* make_bufferevent_bio(bufferevent* bev);

}  // namespace spate::libevent
