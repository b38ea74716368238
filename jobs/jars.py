"""Delta's two jars in Spark's own folder, fetched once.

Enters: the folder of Spark's jars, a Java, and the machine's ways to the outside: proxies, certificates, mirrors.
Leaves: the jars beside Spark's own, where spark-submit, executors and sessions all find them.
Always holds: a jar is checked against its hash and renamed into place, so a broken download or a kill never leaves half
a jar; what is there is not fetched again, so later starts need no network.

The client is Ivy, with which Spark itself resolves packages; it is one of Spark's jars, and it knows Maven Central. A
mirror is named as for Spark: by an Ivy settings file (setting `ivy_settings`), or by DEFAULT_ARTIFACT_REPOSITORY.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import subprocess
import tempfile
import urllib.request
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from cep_core.errors import HindsightError


class RuntimeMissing(HindsightError):
    """Java or a jar that cannot be had."""


@dataclass(frozen=True)
class Jar:
    """A jar by its Maven coordinates, with the hash that it must have."""

    organisation: str
    module: str
    revision: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.module}-{self.revision}.jar"


# delta-spark's other dependencies are all in Spark already; these two suffice.
DELTA_JARS = (
    Jar(
        *("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
        sha256="27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        *("io.delta", "delta-storage", "4.4.0"),
        sha256="c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)
_SECONDS = 300  # for one jar of 10 MB


def jars_folder() -> Path:
    """The folder from which Spark takes its jars."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeMissing("pyspark is not installed in this environment; run ./hindsight setup")
    return Path(spec.origin).parent / "jars"


def missing_jars() -> list[Jar]:
    folder = jars_folder()
    return [jar for jar in DELTA_JARS if not (folder / jar.name).is_file()]


def fetch_jars(java: Path, ivy_settings: str = "", say: Callable[[str], None] = lambda _: None) -> None:
    """Fetches those of Delta's jars that Spark's folder lacks."""
    folder = jars_folder()
    for jar in missing_jars():
        say(f"fetching {jar.name}")
        try:
            # Beside its place, so that the rename at the end stays on one disk.
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
                _fetch(jar, java, ivy_settings, Path(scratch))
                (Path(scratch) / jar.name).replace(folder / jar.name)
        except (OSError, subprocess.SubprocessError) as error:
            raise RuntimeMissing(f"cannot fetch {jar.name} into {folder}: {error}") from error


def _fetch(jar: Jar, java: Path, ivy_settings: str, scratch: Path) -> None:
    """The jar in `scratch`, checked. Where Java does not trust the server, once more with what Python trusts: on a
    machine with certificates of its own, the packaged Java knows nothing of them. Any other failure may pass, so it
    is tried once more too."""
    failed = _ivy(jar, [str(java), *_proxies()], ivy_settings, scratch)
    if failed:
        trusts = "certificate" in failed.lower()
        failed = _ivy(jar, [str(java), *_proxies(), *(_trusted_by_python(scratch) if trusts else ())],
                      ivy_settings, scratch)  # fmt: skip
    fetched = scratch / jar.name
    if failed or not fetched.is_file():
        raise RuntimeMissing(f"cannot fetch {jar.name}: {failed or 'Ivy brought no such file'}. {_advice(jar)}")
    if hashlib.sha256(fetched.read_bytes()).hexdigest() != jar.sha256:
        raise RuntimeMissing(f"{jar.name} is not the file that it should be (its SHA-256 differs). {_advice(jar)}")


def _ivy(jar: Jar, java: list[str], ivy_settings: str, scratch: Path) -> str:
    """Runs Ivy for one jar; returns why it failed, empty where it did not. Only the jar itself, not what it names."""
    clients = [*jars_folder().glob("ivy-*.jar"), *_packaged_jars("ivy-*.jar")]
    if not clients:
        return "Spark's own jars lack Ivy, its client for packages"
    command = [*java, "-jar", str(clients[0]), "-cache", "cache", "-notransitive", "-types", "jar", "-confs", "default"]
    command += ["-dependency", jar.organisation, jar.module, jar.revision, "-retrieve", "[artifact]-[revision].[ext]"]
    if settings := _settings_file(ivy_settings, scratch):
        command += ["-settings", settings]
    ran = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=_SECONDS)
    shown = f"{ran.stdout}\n{ran.stderr}"
    return _reason(shown) if ran.returncode or "UNRESOLVED DEPENDENCIES" in shown else ""


def _packaged_jars(pattern: str) -> list[Path]:
    """Jars of the installed pyspark, where SPARK_HOME is another Spark."""
    spec = find_spec("pyspark")
    return list((Path(spec.origin).parent / "jars").glob(pattern)) if spec is not None and spec.origin else []


def _settings_file(ivy_settings: str, scratch: Path) -> str:
    """The Ivy settings to use: those that were given, or the mirror that Spark would take; empty: Ivy's own."""
    if ivy_settings:
        return ivy_settings
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    if not mirror:
        return ""
    resolver = f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(mirror)}/>'
    file = scratch / "ivysettings.xml"
    file.write_text(
        f'<ivysettings><settings defaultResolver="mirror"/><resolvers>{resolver}</resolvers></ivysettings>',
        encoding="utf-8",
    )
    return str(file)


def _proxies() -> list[str]:
    """The proxies of the environment (HTTPS_PROXY and its like), which Java does not read by itself."""
    found = urllib.request.getproxies()
    options = []
    for scheme in ("http", "https"):
        proxy = urlsplit(found.get(scheme, ""))
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    if options and (direct := found.get("no")):
        hosts = [host.strip() for host in direct.split(",") if host.strip()]
        options.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{h}" if h.startswith(".") else h for h in hosts))
    return options


def _trusted_by_python(scratch: Path) -> list[str]:
    """Java's options for a store of the certificates that Python, and so pip, trusts; none where there are none."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    entries = []
    for number, held in enumerate(ssl.create_default_context().get_ca_certs(binary_form=True)):
        with warnings.catch_warnings(), suppress(ValueError):  # old certificates break rules that are newer than they
            warnings.simplefilter("ignore")
            certificate = x509.load_der_x509_certificate(held)
            entries.append(pkcs12.PKCS12Certificate(certificate, str(number).encode()))
    if not entries:
        return []
    store, password = scratch / "trusted.p12", "trusted"
    store.write_bytes(pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(password.encode())))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={password}",
    ]


def _reason(shown: str) -> str:
    """The line of Ivy's report that says most."""
    access, raised, absent = r"Server access error at url (.+)", r"Exception[^:\n]*: (.+)", r"::\s+(\S+: not found)"
    for pattern in (access, raised, absent):
        if found := re.search(pattern, shown):
            return found[1].strip()
    return "Ivy, Spark's client for packages, ended without saying why"


def _advice(jar: Jar) -> str:
    return (
        "It is needed once, from Maven Central or a mirror of it (setting `ivy_settings`, or "
        f"DEFAULT_ARTIFACT_REPOSITORY in the environment); or put the file into {jars_folder()} yourself"
    )
