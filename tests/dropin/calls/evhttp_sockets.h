// Shared by the tests of evhttp: sockets on loopback, and a reply.
#pragma once

#include <event2/buffer.h>
#include <event2/http.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

inline std::uint16_t port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

inline int connect_to(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

inline int listen_anywhere() {
  const sockaddr_in address = loopback(0);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::listen(fd, 16);
  return fd;
}

inline void send_text(int fd, std::string_view text) {
  EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

inline void receive(int fd, std::string& text) {
  char bytes[4096];
  for (;;) {
    const ssize_t size = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size <= 0) return;
    text.append(bytes, static_cast<std::size_t>(size));
  }
}

inline void reply_with_text(evhttp_request* request) {
  evbuffer* body = evbuffer_new();
  evbuffer_add(body, "text", 4);
  evhttp_send_reply(request, HTTP_OK, "OK", body);
  evbuffer_free(body);
}
