#!/usr/bin/env python3
"""The tests of check_sim_calls.py."""

import unittest

import check_sim_calls


class Escaping(unittest.TestCase):
    def test_what_nobody_knows_escapes(self):
        members = [({"_ZN5spate4LoopE"}, {"read", "memcpy", "fork"})]
        self.assertEqual(check_sim_calls.escaping(members, ["memcpy"], {"read"}), ["fork"])

    def test_what_another_member_defines_does_not(self):
        members = [({"a"}, {"b"}), ({"b"}, {"a"})]
        self.assertEqual(check_sim_calls.escaping(members, [], set()), [])

    def test_the_simulation_itself_may_call_the_system(self):
        members = [({"_ZN5spate3sim6KernelE"}, {"fork"})]
        self.assertEqual(check_sim_calls.escaping(members, [], set()), [])

    def test_names_may_be_given_by_their_beginning(self):
        members = [({"a"}, {"SSL_new", "SSH_new"})]
        self.assertEqual(check_sim_calls.escaping(members, ["SSL_*"], set()), ["SSH_new"])

    def test_no_name_is_both_redirected_and_harmless(self):
        self.assertEqual(check_sim_calls.redirected() & set(check_sim_calls.harmless()), set())

    def test_a_library_proper_has_no_trace_of_it(self):
        self.assertEqual(check_sim_calls.traces_in(b"\0_ZN5spate4LoopE\0SPATE_BACKEND"), [])
        self.assertEqual(check_sim_calls.traces_in(b"_ZN5spate3sim5WorldE getenv SPATE_SEED"),
                         ["5spate3sim", "SPATE_SEED"])


if __name__ == "__main__":
    unittest.main()
