import configparser
from pathlib import Path

from lab.image.pip_settings import effective, secrets


def _conf(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_mirror_is_lent_as_a_file_that_no_one_else_reads(tmp_path: Path) -> None:
    conf = "[global]\nindex-url = https://user:secret@mirror.example.com/simple\ncache-dir = /home/me\n"
    lent = secrets(tmp_path, {}, [_conf(tmp_path / "mine.conf", conf)])
    assert list(lent) == ["pip-conf"]
    assert lent["pip-conf"].stat().st_mode & 0o777 == 0o600
    parser = configparser.RawConfigParser()
    parser.read(lent["pip-conf"])
    assert parser.items("global")[:1] == [("index-url", "https://user:secret@mirror.example.com/simple")]
    assert "cache-dir" not in parser["global"]


def test_a_certificate_is_lent_itself_and_found_where_it_is_mounted(tmp_path: Path) -> None:
    certificate = _conf(tmp_path / "ca.crt", "-----BEGIN CERTIFICATE-----\n")
    lent = secrets(tmp_path, {"PIP_CERT": str(certificate)}, [])
    assert lent["pip-cert"] == certificate
    assert "cert = /run/secrets/pip-cert\n" in lent["pip-conf"].read_text()


def test_what_is_a_path_here_and_nothing_there_is_not_lent() -> None:
    assert effective([], {"PIP_FIND_LINKS": "/wheels", "PIP_CLIENT_CERT": "/me.pem"}) == {}
