"""tlsfuzzer's conversations with an HTTPS server of this library, compared with OpenSSL's s_server.

Both have the same certificate, ciphers and protocol. Scripts about client certificates find servers
that request one. SPATE_TLSFUZZER_SOURCES is as for tlsfuzzer.py.
"""

import re

import scripts
import suite
import tlsfuzzer

NAME = "tlsfuzzer_server"
TITLE = "tlsfuzzer's conversations in TLS 1.2 and 1.3, with an HTTPS server"
SOURCES = []
PIP = tlsfuzzer.PIP
PROGRAMS = ["openssl", "python3"]
# They measure time, or need other keys.
LEFT_OUT = re.compile("minerva|marvin|lucky13|bleichenbacher|brainpool|dsa-in-certificate")
WITH_CERTIFICATE = re.compile("certificate-(request|verify|malformed)|client-cert")
S_SERVER = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-alpn", "http/1.1",
            "-cipher", "ECDHE+AESGCM:ECDHE+CHACHA20:@SECLEVEL=2", "-serverpref",
            "-prioritize_chacha", "-no_renegotiation", "-no_cache", "-min_protocol", "TLSv1.2"]

VERIFY = ["-verify", "8", "-verify_return_error", "-CAfile"]


def run(world):
    suite.need(*PROGRAMS)
    chain, key = tlsfuzzer.identity(world)
    ours = scripts.built(world, "tls_server")

    def serve(script, is_ours):
        command = [ours, chain, key] if is_ours else [*S_SERVER, "-cert", chain, "-key", key]
        if not WITH_CERTIFICATE.search(script):
            return command, world.environment()
        command += [chain] if is_ours else [*VERIFY, chain]
        return command, world.environment(), f"-c{chain}", f"-k{key}"

    return tlsfuzzer.compare(world, tlsfuzzer.scripts_like("test-*.py", LEFT_OUT), serve,
                             sides=("server of OpenSSL", "server of this library"))
