#include "http/codec/outgoing.h"

#include <gtest/gtest.h>

namespace spate::http {
namespace {

constexpr RequestSummary kGet;
constexpr RequestSummary kOldGet = {.version = Version::http_1_0};

void expect(const Outgoing& outgoing, BodyKind body, Announced announced, ConnectionOption option) {
  EXPECT_EQ(outgoing.body, body);
  EXPECT_EQ(outgoing.announced, announced);
  EXPECT_EQ(outgoing.connection, option);
  EXPECT_EQ(outgoing.keeps_alive, option != ConnectionOption::close);
}

TEST(OutgoingResponse, IsSizedOrChunked) {
  expect(frame_outgoing(kGet, Status::ok, 5), BodyKind::sized, Announced::length,
         ConnectionOption::none);
  EXPECT_EQ(frame_outgoing(kGet, Status::ok, 5).length, 5u);
  expect(frame_outgoing(kGet, Status::ok, 0), BodyKind::none, Announced::length,
         ConnectionOption::none);
  expect(frame_outgoing(kGet, Status::ok, {}), BodyKind::chunked, Announced::chunked,
         ConnectionOption::none);
  expect(frame_outgoing({.keeps_alive = false}, Status::ok, {}), BodyKind::chunked,
         Announced::chunked, ConnectionOption::close);
}

TEST(OutgoingResponse, IsNeverChunkedInHttp10) {
  expect(frame_outgoing(kOldGet, Status::ok, 5), BodyKind::sized, Announced::length,
         ConnectionOption::keep_alive);
  expect(frame_outgoing(kOldGet, Status::ok, {}), BodyKind::until_end, Announced::nothing,
         ConnectionOption::close);
  expect(frame_outgoing({Method::head, Version::http_1_0}, Status::ok, {}), BodyKind::none,
         Announced::nothing, ConnectionOption::close);
  expect(frame_outgoing(kOldGet, Status::not_modified, {}), BodyKind::none, Announced::nothing,
         ConnectionOption::keep_alive);
}

TEST(OutgoingResponse, HasNoContentWhereNoneIsAllowed) {
  const RequestSummary head = {Method::head};
  expect(frame_outgoing(head, Status::ok, 5), BodyKind::none, Announced::length,
         ConnectionOption::none);
  EXPECT_EQ(frame_outgoing(head, Status::ok, 5).length, 5u);
  expect(frame_outgoing(head, Status::ok, {}), BodyKind::none, Announced::chunked,
         ConnectionOption::none);
  for (const Status status : {Status::continue_, Status::early_hints, Status::no_content,
                              Status::not_modified, static_cast<Status>(199)}) {
    expect(frame_outgoing(kGet, status, 5), BodyKind::none, Announced::nothing,
           ConnectionOption::none);
    expect(frame_outgoing(kGet, status, {}), BodyKind::none, Announced::nothing,
           ConnectionOption::none);
    EXPECT_FALSE(may_have_content(Method::get, status));
  }
  expect(frame_outgoing(kGet, Status::reset_content, 5), BodyKind::none, Announced::length,
         ConnectionOption::none);
  EXPECT_EQ(frame_outgoing(kGet, Status::reset_content, {}).length, 0u);
  EXPECT_FALSE(may_have_content(Method::head, Status::ok));
  EXPECT_FALSE(may_have_content(Method::get, Status::reset_content));
  EXPECT_TRUE(may_have_content(Method::get, Status::not_found));
}

TEST(OutgoingResponse, LeavesTunnelsUnframed) {
  expect(frame_outgoing({Method::connect}, Status::ok, 5), BodyKind::none, Announced::nothing,
         ConnectionOption::none);
  expect(frame_outgoing({Method::connect}, Status::forbidden, 5), BodyKind::sized,
         Announced::length, ConnectionOption::none);
  expect(frame_outgoing({.keeps_alive = false}, Status::switching_protocols, {}), BodyKind::none,
         Announced::nothing, ConnectionOption::upgrade);
}

TEST(OutgoingResponse, DoesNotCloseAfterInformationalResponse) {
  expect(frame_outgoing({.keeps_alive = false}, Status::continue_, {}), BodyKind::none,
         Announced::nothing, ConnectionOption::none);
}

TEST(OutgoingRequest, AnnouncesItsContentLength) {
  const auto frame = [](Method method, Content content, std::uint64_t size) {
    return frame_sent_request(method, content, size, ConnectionOption::none);
  };
  EXPECT_EQ(frame(Method::get, Content::none, 7).announced, Announced::nothing);
  for (const Method method : {Method::post, Method::put, Method::patch}) {
    EXPECT_EQ(frame(method, Content::none, 7).announced, Announced::length);
    EXPECT_EQ(frame(method, Content::none, 7).length, 0u);
    EXPECT_EQ(frame(method, Content::none, 7).body, BodyKind::none);
  }
  EXPECT_EQ(frame(Method::get, Content::sized, 7).length, 7u);
  EXPECT_EQ(frame(Method::get, Content::sized, 7).body, BodyKind::sized);
  EXPECT_EQ(frame(Method::post, Content::unsized, 7).body, BodyKind::chunked);
  EXPECT_EQ(frame(Method::post, Content::unsized, 7).announced, Announced::chunked);
  EXPECT_TRUE(frame(Method::get, Content::none, 0).keeps_alive);
  EXPECT_FALSE(
      frame_sent_request(Method::get, Content::none, 0, ConnectionOption::close).keeps_alive);
}

}  // namespace
}  // namespace spate::http
