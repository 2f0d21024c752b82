// How connections end.
#include <string>

#include "sim/parity/stage.h"

namespace spate::parity {

namespace {

constexpr Scenario kEndings[] = {
    {"TheClientEnds",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.write("hello");
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"TheServerEnds",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.write("hello");
       two.server.stream.end();
       stage.until_over(two);
     }},
    {"BothEndAtOnce",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.end();
       two.server.stream.end();
       stage.until_over(two);
     }},
    {"AHalfOpenServerGoesOn",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_half_open(true);
       two.server.does_at_end = [&two] {
         two.server.stream.write("still here");
         two.server.stream.end();
       };
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"AHalfOpenClientGoesOnLater",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.set_half_open(true);
       two.server.stream.end();
       stage.pass(20ms);
       two.client.stream.write("late");
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"WhatIsWrittenBehindTheEndIsRefused",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.end();
       stage.note("taken", two.client.stream.write("late") ? 1u : 0u);
       stage.note("writable", two.client.stream.is_writable() ? 1u : 0u);
       stage.until_over(two);
     }},
    {"CloseSendsWhatIsQueued",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.write(std::string(1'000'000, 'x'));
       two.client.stream.close();
       stage.note("taken", two.client.stream.write("late") ? 1u : 0u);
       stage.until_over(two);
     },
     Weight::heavy},
    {"CloseWithoutLingerIsAnEnd",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.write("bye");
       two.client.stream.close(Linger::no);
       stage.until_over(two);
     }},
    {"TheDestructorSendsWhatIsQueued",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.write(std::string(1'000'000, 'x'));
       two.client.stream = Stream();
       stage.until([&] { return two.server.is_over; });
     },
     Weight::heavy},
    {"EndAndThenClose",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.end();
       two.client.stream.close();
       stage.until_over(two);
     }},
    {"CloseAndThenEnd",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.close();
       two.client.stream.end();
       stage.until_over(two);
     }},
    {"AnAbortIsAReset",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.abort();
       stage.until([&] { return two.server.is_over; });
       stage.note("open", two.client.stream.is_open() ? 1u : 0u);
     }},
    {"AnAbortOfTheServersIsAReset",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.abort();
       stage.until([&] { return two.client.is_over; });
     }},
    {"AnAbortInsideOnData",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.does_with_data = [&two](Bytes) { two.server.stream.abort(); };
       two.client.stream.write("hello");
       stage.until([&] { return two.client.is_over; });
     }},
    {"WhatWasWrittenBeforeAnAbortIsRead",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.write("last words");
       two.client.stream.abort();
       stage.pass(2ms);
       two.server.stream.resume();
       stage.until([&] { return two.server.is_over; });
     }},
    {"AnAbortBehindItsEnd",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_half_open(true);
       bool has_ended = false;
       two.server.does_at_end = [&] { has_ended = true; };
       two.client.stream.end();
       stage.until([&] { return has_ended; });
       two.client.stream.abort();
       stage.pass(2ms);
       two.server.stream.write("too late");
       stage.until([&] { return two.server.is_over; });
     }},
    {"AnAbortBehindThePeersEnd",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_half_open(true);
       two.server.does_at_end = [&two] { two.server.stream.abort(); };
       two.client.stream.end();
       stage.until([&] { return two.client.is_over; });
     }},
    {"AnAbortWhereBothHaveEnded",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_half_open(true);
       two.client.stream.set_half_open(true);
       two.server.does_at_end = [&two] {
         two.server.stream.end();
         two.server.stream.abort();
       };
       two.client.stream.end();
       stage.until([&] { return two.client.is_over; });
     }},
    {"AWriteToWhoHasGoneIsAnError",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.set_half_open(true);
       bool has_ended = false;
       two.client.does_at_end = [&] { has_ended = true; };
       two.server.stream.close(Linger::no);
       stage.until([&] { return has_ended; });
       two.client.stream.write("late");
       stage.pass(2ms);
       two.client.stream.write("too late");
       stage.until_over(two);
     }},
    {"WhatWasNotReadDoesNotResetThePeer",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.write("unread");
       stage.pass(2ms);
       two.server.stream.close(Linger::no);
       stage.until_over(two);
     }},
    {"CloseInsideOnData",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.does_with_data = [&two](Bytes) { two.server.stream.close(); };
       two.client.stream.write("hello");
       stage.until_over(two);
     }},
    {"TheDestructorInsideOnEnd",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.does_at_end = [&two] { two.server.stream = Stream(); };
       two.client.stream.write("hello");
       two.client.stream.end();
       stage.until([&] { return two.client.is_over; });
     }},
    {"EndInsideOnConnected",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       Actor& server = stage.actor("server");
       client.does_when_connected = [&client] { client.stream.end(); };
       stage.connect(client, stage.listen({&server}));
       stage.until_over({client, server});
     }},
    {"EndWhileConnecting",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       Actor& server = stage.actor("server");
       stage.connect(client, stage.listen({&server}));
       client.stream.write("early");
       client.stream.end();
       stage.until_over({client, server});
     }},
    {"TheDestructorWhileConnectingSaysNothing",
     [](Stage& stage) {
       Actor& client = stage.actor("client");
       stage.connect(client, stage.listen({}));
       client.stream = Stream();
       stage.pass(20ms);
     }},
    {"APeerThatEndsWhilePausedIsSeenAfterwards",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.write("hello");
       two.client.stream.end();
       stage.pass(20ms);
       two.server.note("resumes");
       two.server.stream.resume();
       stage.until_over(two);
     }},
    {"APeerThatAbortsWhilePausedIsSeenAfterwards",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.abort();
       stage.pass(20ms);
       two.server.note("resumes");
       two.server.stream.resume();
       stage.until([&] { return two.server.is_over; });
     }},
    {"AWriteAfterAResetIsAnError",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.pause();
       two.client.stream.abort();
       stage.pass(20ms);
       two.server.stream.write("too late");
       stage.until([&] { return two.server.is_over; });
     }},
    {"StopAndStartGoOn",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.stop();
       two.client.stream.write("kept");
       two.client.stream.end();
       stage.pass(20ms);
       if (!two.server.stream.is_open()) return;
       two.server.note("starts");
       two.server.stream.start(two.server);
       stage.until_over(two);
     }},
    {"AnIdleTimeout",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_idle_timeout(20ms);
       stage.until_over(two);
     }},
    {"AReadTimeout",
     [](Stage& stage) {
       auto two = stage.connected();
       stage.note("set", two.server.stream.set_read_timeout(20ms) ? 1u : 0u);
       two.server.stream.write("I wait");
       stage.until_over(two);
     }},
    {"ADeadline",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_deadline(20ms);
       two.client.stream.write("hello");
       stage.until_over(two);
     }},
    {"ADeadlineThatIsOver",
     [](Stage& stage) {
       auto two = stage.connected();
       two.server.stream.set_deadline(-1s);
       stage.until_over(two);
     }},
    {"AWriteTimeoutWhereNobodyReads",
     [](Stage& stage) {
       auto two = stage.connected();
       two.client.stream.pause();
       two.server.stream.set_write_timeout(50ms);
       two.server.stream.write(std::string(8'000'000, 'x'));
       stage.until([&] { return two.server.is_over; });
     },
     Weight::heavy},
};

}  // namespace

std::span<const Scenario> endings() { return kEndings; }

}  // namespace spate::parity
