"""Contexts of TLS with a new certificate, which the program openssl makes."""

import ssl
import subprocess
import tempfile


def make_contexts():
    """Returns the contexts of a server and of a client that trusts it."""
    with tempfile.TemporaryDirectory() as directory:
        chain, key = directory + "/chain", directory + "/key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", chain,
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server.load_cert_chain(chain, key)
        client = ssl.create_default_context(cafile=chain)
    return server, client
