// The resolver's treatment of replies: records that it uses or ignores, times to live, messages
// that are truncated, too long, unrelated, or malformed.
//
// Left out are replies that the drop-in rejects and the original accepts: those to a query of
// another type or class; failures without their question, except those of a server that cannot read
// it; dots and zeros within labels; names of more than 253 bytes; pointers forward. Left out, too,
// are replies that only the drop-in accepts: reverse lookups that find names of 64 bytes or more,
// and replies that repeat the question in another case than the program's.
//
// differential in weather:
#include "libevent_dns.h"

static const unsigned char ipv4[] = {192, 0, 2, 1};
static const char ipv6[] = "0123456789abcdef";

static Packet reply_with(const Query* query, unsigned flags, int questions, int answers,
                         int authorities, int additional) {
  Packet packet = {.size = 0};
  put_header(&packet, query->id, kQr | kRd | flags, questions, answers, authorities, additional);
  return packet;
}

static void put_full_record(Packet* packet, const char* name, int type, int dns_class, uint32_t ttl,
                            const void* data, size_t size) {
  put_name(packet, name);
  put16(packet, (unsigned)type);
  put16(packet, (unsigned)dns_class);
  put32(packet, ttl);
  put16(packet, (unsigned)size);
  put(packet, data, size);
}

// A response with the question and one record.
static Packet reply_record(const Query* query, unsigned flags, int type, uint32_t ttl,
                           const void* data, size_t size) {
  Packet packet = reply_to(query, flags, 1);
  put_record(&packet, type, ttl, data, size);
  return packet;
}

static Packet one_address(const Query* query, unsigned flags) {
  return reply_record(query, flags, 1, 300, ipv4, 4);
}

static void put_alias(Packet* packet, uint32_t ttl) {
  Packet name = {.size = 0};
  put_name(&name, "alias.example");
  put_record(packet, 5, ttl, name.bytes, name.size);
}

static void put_authority(Packet* packet, uint32_t ttl, uint32_t minimum) {
  Packet data = {.size = 0};
  put_name(&data, "ns.example");
  put_name(&data, "m.example");
  for (uint32_t i = 1; i < 5; i++) put32(&data, i);
  put32(&data, minimum);
  put_full_record(packet, "example", 6, 1, ttl, data.bytes, data.size);
}

// A response with the question, and an authority record for each pair of times, up to 0.
static Packet reply_authorities(const Query* query, unsigned flags, const uint32_t (*times)[2]) {
  int count = 0;
  while (times[count][0] != 0) count++;
  Packet packet = reply_with(query, flags, 1, 0, count, 0);
  put_question(&packet, query);
  for (int i = 0; i < count; i++) put_authority(&packet, times[i][0], times[i][1]);
  return packet;
}

static Packet without_end(Packet packet, size_t size) {
  packet.size -= size;
  return packet;
}

// ---- each makes an answer

static Packet two_addresses(const Query* query) {
  Packet packet = reply_to(query, 0, 2);
  put_record(&packet, 1, 300, ipv4, 4);
  put_record(&packet, 1, 100, "\1\2\3\4", 4);
  return packet;
}

static Packet two_in_one_record(const Query* query) {
  return reply_record(query, 0, 1, 300, "12345678", 8);
}

static Packet a_part_of_an_address(const Query* query) {
  return reply_record(query, 0, 1, 300, "12345", 5);
}

static Packet no_bytes(const Query* query) { return reply_record(query, 0, 1, 300, "", 0); }

static Packet of_another_name(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  put_full_record(&packet, "other.name", 1, 1, 55, ipv4, 4);
  return packet;
}

static Packet alias_and_address(const Query* query) {
  Packet packet = reply_to(query, 0, 2);
  put_alias(&packet, 3);
  put_full_record(&packet, "alias.example", 1, 1, 55, ipv4, 4);
  return packet;
}

static Packet alias_alone(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  put_alias(&packet, 3);
  return packet;
}

static Packet of_another_class(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  put_full_record(&packet, "a.example", 1, 3, 55, ipv4, 4);
  return packet;
}

static Packet both_families(const Query* query) {
  Packet packet = reply_to(query, 0, 2);
  put_record(&packet, 28, 9, ipv6, 16);
  put_record(&packet, 1, 300, ipv4, 4);
  return packet;
}

static Packet no_question(const Query* query) {
  Packet packet = reply_with(query, 0, 0, 1, 0, 0);
  put_full_record(&packet, "a.example", 1, 1, 55, ipv4, 4);
  return packet;
}

static Packet question_twice(const Query* query) {
  Packet packet = reply_with(query, 0, 2, 1, 0, 0);
  put_question(&packet, query);
  put_question(&packet, query);
  put_record(&packet, 1, 300, ipv4, 4);
  return packet;
}

static Packet another_question(const Query* query) {
  Packet packet = reply_with(query, 0, 1, 1, 0, 0);
  put_name(&packet, "b.example");
  put16(&packet, 1);
  put16(&packet, 1);
  put_record(&packet, 1, 300, ipv4, 4);
  return packet;
}

static Packet no_answer(const Query* query) {
  Packet packet = one_address(query, 0);
  packet.bytes[2] &= 0x7f;
  return packet;
}

static Packet another_number(const Query* query) {
  Packet packet = one_address(query, 0);
  packet.bytes[0] ^= 1;
  return packet;
}

static Packet one_byte_less(const Query* query) { return without_end(one_address(query, 0), 1); }

static Packet more_bytes(const Query* query) {
  Packet packet = one_address(query, 0);
  put(&packet, "xyz", 3);
  return packet;
}

static Packet fewer_records(const Query* query) {
  Packet packet = reply_to(query, 0, 2);
  put_record(&packet, 1, 300, ipv4, 4);
  return packet;
}

static Packet half_a_header(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  packet.size = 5;
  return packet;
}

static Packet nothing(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  packet.size = 0;
  return packet;
}

static Packet header_alone(const Query* query) { return reply_with(query, 0, 1, 0, 0, 0); }

static Packet longest_ttl(const Query* query) {
  return reply_record(query, 0, 1, 0xffffffff, ipv4, 4);
}

static Packet negative_ttl(const Query* query) {
  return reply_record(query, 0, 1, 0x80000000, ipv4, 4);
}

static Packet no_ttl(const Query* query) { return reply_record(query, 0, 1, 0, ipv4, 4); }

static Packet points_to(const Query* query, unsigned where) {
  Packet packet = reply_to(query, 0, 1);
  put16(&packet, where);
  put16(&packet, 1);
  put16(&packet, 1);
  put32(&packet, 5);
  put16(&packet, 4);
  put(&packet, ipv4, 4);
  return packet;
}

static Packet points_to_itself(const Query* query) {
  return points_to(query, 0xc000 | (unsigned)reply_to(query, 0, 1).size);
}

static Packet points_beyond(const Query* query) { return points_to(query, 0xffff); }

static Packet sixty_addresses(const Query* query) {
  Packet packet = reply_to(query, 0, 60);
  for (int i = 0; i < 60; i++) {
    const unsigned char address[4] = {192, 0, 2, (unsigned char)i};
    put_record(&packet, 1, 100 - (uint32_t)i, address, 4);
  }
  return packet;
}

static Packet answer_and_authority(const Query* query) {
  Packet packet = reply_with(query, 0, 1, 1, 1, 0);
  put_question(&packet, query);
  put_record(&packet, 1, 300, ipv4, 4);
  put_authority(&packet, 20, 20);
  return packet;
}

static Packet answer_and_half_an_authority(const Query* query) {
  return without_end(answer_and_authority(query), 3);
}

static Packet authority_alone(const Query* query) {
  static const uint32_t times[][2] = {{500, 77}, {0, 0}};
  return reply_authorities(query, 0, times);
}

static Packet half_an_authority(const Query* query) {
  return without_end(authority_alone(query), 4);
}

static Packet not_there_with_authority(const Query* query) {
  static const uint32_t times[][2] = {{500, 777}, {600, 600}, {0, 0}};
  return reply_authorities(query, 3, times);
}

static Packet not_there_with_half_an_authority(const Query* query) {
  return without_end(not_there_with_authority(query), 4);
}

static Packet not_there_with_odd_authority(const Query* query) {
  Packet packet = reply_with(query, 3, 1, 0, 1, 0);
  put_question(&packet, query);
  put_record(&packet, 6, 40, "abcd", 4);
  return packet;
}

static Packet not_there_with_answer(const Query* query) { return one_address(query, 3); }

static Packet refused_with_answer(const Query* query) { return one_address(query, 5); }

static Packet truncated_with_answer(const Query* query) { return one_address(query, kTc); }

static Packet failed_without_question(const Query* query) {
  return reply_with(query, 2, 0, 0, 0, 0);
}

static Packet truncated_without_question(const Query* query) {
  return reply_with(query, kTc, 0, 0, 0, 0);
}

// ---- and all of them

typedef struct Kind {
  const char* name;
  Packet (*make)(const Query* query);
} Kind;

static const Kind* kind;
static void answer_kind(const Query* query) {
  const Packet packet = kind->make(query);
  send_packet(query, &packet);
}

#define KIND(name) {#name, name}

static const Kind kinds[] = {
    KIND(two_addresses),
    KIND(two_in_one_record),
    KIND(a_part_of_an_address),
    KIND(no_bytes),
    KIND(of_another_name),
    KIND(alias_and_address),
    KIND(alias_alone),
    KIND(of_another_class),
    KIND(both_families),
    KIND(no_question),
    KIND(question_twice),
    KIND(another_question),
    KIND(no_answer),
    KIND(another_number),
    KIND(one_byte_less),
    KIND(more_bytes),
    KIND(fewer_records),
    KIND(half_a_header),
    KIND(nothing),
    KIND(header_alone),
    KIND(longest_ttl),
    KIND(negative_ttl),
    KIND(no_ttl),
    KIND(points_to_itself),
    KIND(points_beyond),
    KIND(sixty_addresses),
    KIND(answer_and_authority),
    KIND(answer_and_half_an_authority),
    KIND(authority_alone),
    KIND(half_an_authority),
    KIND(not_there_with_authority),
    KIND(not_there_with_half_an_authority),
    KIND(not_there_with_odd_authority),
    KIND(not_there_with_answer),
    KIND(refused_with_answer),
    KIND(truncated_with_answer),
    KIND(failed_without_question),
    KIND(truncated_without_question),
};

static void all_kinds(void) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    kind = &kinds[i];
    printf("%s\n", kind->name);
    begin(1);
    answer = answer_kind;
    evdns_base_set_option(dns, "attempts", "1");
    evdns_base_resolve_ipv4(dns, "a.example", 0, on_result, "IPv4");
    run_for(8000);
    evdns_base_clear_nameservers_and_suspend(dns);
    add_server(0);
    if (kind->make != one_byte_less) {  // The original ignores this in a record it skips.
      evdns_base_resolve_ipv6(dns, "a.example", 0, on_result, "IPv6");
      run_for(8000);
    }
    end();
    close(server_fds[0]);
  }
}

// A name server that repeats each question in upper case.
static void answer_in_capitals(const Query* query) {
  Packet packet = one_address(query, 0);
  for (size_t i = 13; packet.bytes[i]; i++) {
    if (packet.bytes[i] >= 'a' && packet.bytes[i] <= 'z') packet.bytes[i] -= 32;
  }
  send_packet(query, &packet);
}

static void other_letters(void) {
  begin(1);
  answer = answer_in_capitals;
  evdns_base_set_option(dns, "randomize-case", "1");
  for (int i = 0; i < 4; i++) {
    evdns_base_resolve_ipv4(dns, "name.of.many.letters.example", 0, on_result, "capitals");
    run_for(1000);
  }
  end();
}

// ---- names as answers

static int which;

static void answer_name(const Query* query) {
  static const struct {
    const char* bytes;
    size_t size;
  } odd[] = {{"\xc0\x0c", 2}, {"\0", 1}, {"\3ab", 3}, {"\4host\0junk", 10}};
  Packet packet = reply_to(query, 0, which == 0 ? 2 : 1);
  Packet name = {.size = 0};
  put_name(&name, "Host.example");
  if (which < 2) {
    put_record(&packet, 12, 44, name.bytes, name.size);
    put_record(&packet, 12, 33, "\1b\0", 3);
  } else {
    put_record(&packet, 12, 44, odd[which - 2].bytes, odd[which - 2].size);
  }
  send_packet(query, &packet);
}

static void names(void) {
  const struct in_addr address = {htonl(0x01020304)};
  begin(1);
  answer = answer_name;
  for (which = 0; which < 6; which++) {
    printf("%d\n", which);
    evdns_base_resolve_reverse(dns, &address, 0, on_result, "reverse");
    run_for(1000);
  }
  end();
}

// ---- late and repeated responses

static void answer_twice_the_second(const Query* query) {
  if (query->nth == 0) return;
  reply_address(query, 1, 6);
  reply_address(query, 2, 6);
}

static void answered_twice(void) {
  begin(1);
  answer = answer_twice_the_second;
  evdns_base_resolve_ipv4(dns, "a.example", 0, on_result, "a");
  run_for(40000);
  end();
}

static Query first_query;
static void answer_the_first_late(const Query* query) {
  if (query->server == 0) first_query = *query;
  if (query->server == 1) reply_address(&first_query, 1, 6);
}

static void answered_by_the_server_before(void) {
  begin(2);
  answer = answer_the_first_late;
  evdns_base_resolve_ipv4(dns, "a.example", 0, on_result, "a");
  run_for(40000);
  end();
}

static int third_code;
static int question_count;
static void answer_the_third(const Query* query) {
  if (++question_count != 3) return;
  if (third_code > 0) {
    reply_code(query, (unsigned)third_code);
  } else {
    const Packet packet = {.bytes = "abc", .size = 3};
    send_packet(query, &packet);
  }
}

// Any reply of a server resets its count of timeouts.
static void answered_between_timeouts(void) {
  for (third_code = 0; third_code <= 5; third_code++) {
    printf("code %d\n", third_code);
    begin(1);
    evdns_base_set_option(dns, "attempts", "9");
    evdns_base_set_option(dns, "max-timeouts", "2");
    answer = answer_the_third;
    question_count = 0;
    for (int i = 0; i < 2; i++) {
      evdns_base_resolve_ipv4(dns, i == 0 ? "a.example" : "b.example", 0, on_result, "it");
      run_for(25000);
    }
    end();
  }
}

static void answer_instead_of_the_first(const Query* query) {
  if (query->server == 1) {
    reply_address(query, 1, 6);
  } else if (query->nth == 0) {
    reply_code(query, 5);
  }
}

// A lookup that waits while a server is probed goes to one that was up before.
static void probe_answered_by_another_server(void) {
  begin(2);
  evdns_base_set_option(dns, "max-inflight", "1");
  answer = answer_instead_of_the_first;
  evdns_base_resolve_ipv4(dns, "a.example", 0, on_result, "a");
  run_for(12000);
  for (int i = 0; i < 3; i++) evdns_base_resolve_ipv4(dns, "b.example", 0, on_result, "b");
  run_for(40000);
  end();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"all kinds", all_kinds},
      {"other letters", other_letters},
      {"names", names},
      {"answered twice", answered_twice},
      {"answered by the server before", answered_by_the_server_before},
      {"answered between timeouts", answered_between_timeouts},
      {"probe answered by another server", probe_answered_by_another_server},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
