"""The extension tls of ASGI: the versions and certificates of a connection."""

import base64
import functools

from ._native import subject_of

VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}
# The suites that the server accepts by default, with their numbers at IANA.
SUITES = {
    "TLS_AES_128_GCM_SHA256": 0x1301, "TLS_AES_256_GCM_SHA384": 0x1302,
    "TLS_CHACHA20_POLY1305_SHA256": 0x1303,
    "ECDHE-ECDSA-AES128-GCM-SHA256": 0xC02B, "ECDHE-ECDSA-AES256-GCM-SHA384": 0xC02C,
    "ECDHE-RSA-AES128-GCM-SHA256": 0xC02F, "ECDHE-RSA-AES256-GCM-SHA384": 0xC030,
    "ECDHE-RSA-CHACHA20-POLY1305": 0xCCA8, "ECDHE-ECDSA-CHACHA20-POLY1305": 0xCCA9,
}
END = "-----END CERTIFICATE-----"


def first_certificate(file):
    """Returns the first certificate of a PEM file, as text."""
    with open(file, encoding="latin1") as chain:
        text = chain.read()
    begin = text.find("-----BEGIN CERTIFICATE-----")
    return text[begin:text.find(END, begin) + len(END)] + "\n"


def pem_of(certificate):
    """Returns the text of a certificate that is given as DER."""
    text = base64.b64encode(certificate).decode()
    lines = [text[at:at + 64] for at in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, END, ""])


def extension_of(certfile):
    """Returns the function that makes the extension. It keeps recent ones."""
    server_cert = first_certificate(certfile)

    @functools.lru_cache(maxsize=256)
    def extension(version, cipher, certificate):
        return {"server_cert": server_cert, "tls_version": VERSIONS.get(version),
                "cipher_suite": SUITES.get(cipher),
                "client_cert_chain": (pem_of(certificate),) if certificate else (),
                "client_cert_name": subject_of(certificate) if certificate else None,
                "client_cert_error": None}

    return extension
