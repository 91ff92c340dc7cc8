"""`databuild doctor`: what it finds, what is broken, and that it never hangs."""

import socket
import sys
import time
import tomllib
from pathlib import Path

import pytest
from streams import tokenizer

from databuild import doctor
from databuild.errors import IntegrityError, SourceError


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The shared tokenizer, and no hub."""
    monkeypatch.setattr("databuild.tokenizer.load_tokenizer", tokenizer)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def checks(tmp_path, **more):
    return {check.name: check for check in doctor.examine(tmp_path, **more)}


def test_a_machine_that_can_build(cli, tmp_path):
    ran = cli("doctor", "--out", tmp_path / "not" / "yet")
    assert ran.code == 0 and ran.err == "" and ran.out.rstrip().endswith("ready to build")
    found = cli("doctor", "--out", tmp_path, "--json").json
    assert found["ok"] and found["tokenizer_sha256"] in str(found["checks"])
    assert [check["name"] for check in found["checks"]][:5] == [
        "databuild", "packages", "permutation", "tokenizer", "engine",
    ]  # fmt: skip
    assert {check["status"] for check in found["checks"]} <= {"ok", "note"}


@pytest.mark.parametrize("error", [
    IntegrityError("tokenizer.json is not the pinned one", next_step="install it"), SourceError("not found"),
    OSError("disk"),
], ids=lambda e: type(e).__name__)  # fmt: skip
def test_a_tokenizer_that_is_not_there_is_broken(cli, tmp_path, monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr("databuild.tokenizer.load_tokenizer", fail)
    ran = cli("doctor", "--out", tmp_path)
    assert ran.code == 6 and "BROKEN  tokenizer" in ran.out and "not ready to build" in ran.out
    assert "Traceback" not in ran.out + ran.err
    assert not cli("doctor", "--json").json["ok"]


def test_engines_that_differ_and_another_order_are_broken(tmp_path, monkeypatch):
    def differ(*_, **__):
        raise IntegrityError("they give different tokens")

    monkeypatch.setattr("databuild.gate.gated_engine", differ)
    monkeypatch.setattr("databuild.order.check_permutation", differ)
    found = checks(tmp_path)
    assert found["engine"].status == found["permutation"].status == "broken"


def test_a_missing_package_is_broken_a_missing_extra_is_not(tmp_path, monkeypatch):
    version = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in ("xxhash", "torch") else version(name))
    found = checks(tmp_path)
    assert found["packages"].status == "broken" and found["packages"].next_step == "pip install xxhash"
    assert found["extra train"].status == "note" and "torch" in found["extra train"].next_step


def test_the_reference_alone_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABUILD_ENGINE", "reference")
    assert checks(tmp_path)["engine"].status == "note"
    monkeypatch.setenv("DATABUILD_ENGINE", "quick")
    assert checks(tmp_path)["engine"].status == "broken"


def test_offline_asks_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_ask", lambda *_: pytest.fail("it asked"))
    hub = checks(tmp_path)["hub"]
    assert hub.status == "note" and "HF_HUB_OFFLINE" in hub.found


@pytest.mark.parametrize("status", [200, 404, 503])
def test_the_answer_of_a_hub(tmp_path, monkeypatch, status):
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        hub = checks(tmp_path)["hub"]
    finally:
        server.shutdown()
        server.server_close()
    assert hub.status == ("ok" if status == 200 else "note")
    assert "answers" in hub.found and (status == 200 or str(status) in hub.found)


def test_a_hub_that_keeps_silent_does_not_hold_it_up(tmp_path, monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr(
            "huggingface_hub.constants.ENDPOINT", f"http://name:secret@127.0.0.1:{silent.getsockname()[1]}?token=secret"
        )
        began = time.monotonic()
        hub = checks(tmp_path, hub_seconds=0.2)["hub"]
        assert time.monotonic() - began < 10
    assert hub.status == "note" and "does not answer" in hub.found and "secret" not in str(hub)


def test_the_extras_are_those_of_the_package():
    extras = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    known = {name: set(packages) for name, (packages, _) in doctor.EXTRAS.items()}
    for name, wanted in extras["optional-dependencies"].items():
        packages = {item.split("=")[0].split(">")[0] for item in wanted} - {"matplotlib"}
        assert known[name] - {"matplotlib"} == packages


def test_a_place_without_space_and_a_broken_look(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**9})())
    assert checks(tmp_path)["disk"].status == "note"
    monkeypatch.setattr(doctor, "_free_memory", lambda: 1 << 20)
    assert checks(tmp_path)["machine"].status == "note"
    assert sys.platform != "linux" or doctor._free_memory() != 0
