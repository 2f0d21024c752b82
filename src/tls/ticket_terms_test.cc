#include "tls/ticket_terms.h"

#include <gtest/gtest.h>

namespace spate {
namespace {

TEST(TicketTermsTest, RefusesResumptionAfterLifetimeOfFullHandshake) {
  const TicketTerms terms = {.begun = 100, .valid_until = INT64_MAX};
  EXPECT_TRUE(terms.allow(100, Nanos{10}));
  EXPECT_TRUE(terms.allow(109, Nanos{10}));
  EXPECT_FALSE(terms.allow(110, Nanos{10}));
}

TEST(TicketTermsTest, RefusesResumptionAfterCertificateExpires) {
  const TicketTerms terms = {.begun = 100, .valid_until = 105};
  EXPECT_TRUE(terms.allow(104, Nanos{10}));
  EXPECT_FALSE(terms.allow(105, Nanos{10}));
}

TEST(TicketTermsTest, RefusesResumptionBeforeFullHandshake) {
  const TicketTerms terms = {.begun = 100, .valid_until = INT64_MAX};
  EXPECT_FALSE(terms.allow(99, Nanos{10}));
}

}  // namespace
}  // namespace spate
