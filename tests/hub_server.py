"""A hub on 127.0.0.1: as much of the Hugging Face hub's HTTP interface as huggingface_hub uses for datasets.

    with HubServer() as hub:
        commit = hub.commit("org/name", {"data/train-00000-of-00001.parquet": b"..."})
        hub.fail("cdn", cut_after=1000)
        ...  # HF_ENDPOINT=hub.url
        assert hub.count("cdn", "GET") == 2

Big files (LFS) answer with a redirect to a second port, as the real one sends readers to its CDN; the others are
served in place. Every request is kept in `hub.requests`.

It can be written to with `hub.token`: make a repository or a branch, ask how to upload (large files go to the second
port, as to the real one's storage), commit. Its large file storage is the older one (LFS), not Xet.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

Json = Any
LFS_SUFFIXES = (".parquet", ".gz", ".zst", ".jsonl")


@dataclass
class Fault:
    """Something that goes wrong. where: a name of _ROUTES. times: how often, None for always.

    status (with headers) answers in place of the file; cut_after closes the connection after so many bytes of the body;
    lie flips a byte of the body, also of one that is stored; short serves fewer bytes, and says so; after does what was
    asked before it answers with status.
    """

    where: str
    match: str = ""
    method: str | None = None
    times: int | None = 1
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    lie: bool = False
    short: int | None = None
    after: bool = False


@dataclass(frozen=True)
class Seen:
    """One request: which part of the interface it went to, and what was answered (0: the connection was cut)."""

    where: str
    method: str
    path: str
    status: int
    range: str | None
    authorized: bool


@dataclass(frozen=True)
class Stored:
    """A file of a commit, with the digests that the hub states."""

    data: bytes
    lfs: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def oid(self) -> str:
        body = (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:" + self.sha256.encode() if self.lfs else self.data
        )
        return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class HubServer:
    """The server, its repositories, its faults, and the requests it saw."""

    def __init__(self) -> None:
        self.commits: dict[tuple[str, str], dict[str, Stored]] = {}
        self.refs: dict[tuple[str, str], str] = {}
        self.faults: list[Fault] = []
        self.requests: list[Seen] = []
        self.token = "hf_writer"  # what may write
        self.private: set[str] = set()
        self.stored: dict[str, bytes] = {}  # uploaded large files by the digest that was named for them
        self.answer_commit: str | None = None  # the info call names this commit, whatever was asked
        self.lock = threading.Lock()
        self._hub = _Server(self, cdn=False)
        self._cdn = _Server(self, cdn=True)
        self.url = f"http://127.0.0.1:{self._hub.server_port}"
        self.cdn_url = f"http://127.0.0.1:{self._cdn.server_port}"

    def __enter__(self) -> HubServer:
        for server in (self._hub, self._cdn):
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()

    def commit(self, name: str, files: Mapping[str, bytes], *, branch: str = "main") -> str:
        """Add a commit that holds exactly these files, move the branch to it, and return its id."""
        return self.move(
            name, branch, {path: Stored(data, path.endswith(LFS_SUFFIXES)) for path, data in files.items()}
        )

    def move(self, name: str, branch: str, stored: dict[str, Stored]) -> str:
        """Commit these files to a branch."""
        text = json.dumps([name, {path: file.oid for path, file in stored.items()}], sort_keys=True)
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.commits[name, commit] = stored
        self.refs[name, branch] = commit
        return commit

    def fail(self, where: str, **fields: Any) -> Fault:
        """Switch a fault on."""
        fault = Fault(where, **fields)
        self.faults.append(fault)
        return fault

    def count(self, where: str | None = None, method: str | None = None, match: str = "") -> int:
        """How many requests were seen, without the library's own look-ups that are not about a dataset (`other`)."""
        return sum(
            (seen.where == where if where else seen.where != "other")
            and (method is None or seen.method == method)
            and match in seen.path
            for seen in self.requests
        )

    def take_fault(self, where: str, method: str, path: str) -> Fault | None:
        """Return the fault that this request meets, and use it up."""
        with self.lock:
            for fault in self.faults:
                fits = fault.where == where and fault.match in path and fault.method in (None, method)
                if fits and fault.times != 0:
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None

    def find(self, name: str, revision: str) -> str | None:
        """Return the commit of a branch or commit id."""
        return revision if (name, revision) in self.commits else self.refs.get((name, revision))

    def has(self, name: str) -> bool:
        """Whether there is such a dataset."""
        return any(known == name for known, _ in self.commits)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: HubServer, *, cdn: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub
        self.cdn = cdn

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is none of our business."""


_NAME = r"(?P<name>[^/]+/[^/]+|[^/]+)"
_ROUTES = [
    ("tree", "GET", re.compile(rf"/api/datasets/{_NAME}/tree/(?P<rev>[^/]+)(?:/(?P<path>.*))?")),
    ("paths", "POST", re.compile(rf"/api/datasets/{_NAME}/paths-info/(?P<rev>[^/]+)")),
    ("info", "GET", re.compile(rf"/api/datasets/{_NAME}/revision/(?P<rev>[^/]+)")),
    ("info", "GET", re.compile(rf"/api/datasets/{_NAME}")),
    ("resolve", "GET", re.compile(rf"/datasets/{_NAME}/resolve/(?P<rev>[^/]+)/(?P<path>.+)")),
    ("cdn", "GET", re.compile(r"/cdn/(?P<sha256>[0-9a-f]{64})")),
    ("create", "POST", re.compile(r"/api/repos/create")),
    ("yaml", "POST", re.compile(r"/api/validate-yaml")),
    ("branch", "POST", re.compile(rf"/api/datasets/{_NAME}/branch/(?P<branch>[^/]+)")),
    ("preupload", "POST", re.compile(rf"/api/datasets/{_NAME}/preupload/(?P<rev>[^/]+)")),
    ("lfs", "POST", re.compile(rf"/datasets/{_NAME}\.git/info/lfs/objects/batch")),
    ("store", "PUT", re.compile(r"/store/(?P<sha256>[0-9a-f]{64})")),
    ("commit", "POST", re.compile(rf"/api/datasets/{_NAME}/commit/(?P<rev>[^/]+)")),
]
_CDN = ("cdn", "store")
_WRITES = ("create", "yaml", "branch", "preupload", "lfs", "commit")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go in two writes; the second would wait 40 ms for the first
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        hub = self.server.hub
        raw, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        self.where, self.shown = "other", unquote(raw)
        body = self._body()
        for where, method, route in _ROUTES:
            match = route.fullmatch(raw)
            if match and (self.command == method or (self.command == "HEAD" and method == "GET")):
                if (where in _CDN) != self.server.cdn:
                    continue
                self.where = where
                fault = hub.take_fault(where, self.command, self.shown)
                if fault is not None and fault.status is not None and not fault.after:
                    return self._answer(fault.status, b"no", dict(fault.headers))
                if where in _WRITES and self.headers.get("authorization") != f"Bearer {hub.token}":
                    return self._answer(401, b"{}", {"X-Error-Message": "Invalid credentials in Authorization header"})
                given = {key: unquote(value or "") for key, value in match.groupdict().items()}
                return getattr(self, f"_{where}")(given, query, body, fault)
        self._answer(404, b"no such page")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _commit_of(self, given: dict[str, str]) -> str | None:
        hub, name = self.server.hub, given["name"]
        if not hub.has(name):
            self._answer(404, b"", {"X-Error-Code": "RepoNotFound"})
            return None
        commit = hub.find(name, given.get("rev") or "main")
        if commit is None:
            self._answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        return commit

    def _info(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        commit = self._commit_of(given)
        if commit is None:
            return
        blobs = query.get("blobs", [""])[0].lower() in ("true", "1")
        siblings: list[Json] = []
        for path, file in self.server.hub.commits[given["name"], commit].items():
            entry: Json = {"rfilename": path}
            if blobs:
                entry |= {"size": len(file.data), "blobId": file.oid}
                if file.lfs:
                    entry["lfs"] = {"sha256": file.sha256, "size": len(file.data), "pointerSize": 134}
            siblings.append(entry)
        commit = self.server.hub.answer_commit or commit
        self._json(
            {
                "id": given["name"],
                "sha": commit,
                "private": given["name"] in self.server.hub.private,
                "gated": False,
                "siblings": siblings,
            }
        )

    def _entries(self, given: dict[str, str], commit: str) -> list[Json]:
        entries: list[Json] = []
        for path, file in self.server.hub.commits[given["name"], commit].items():
            entry: Json = {"type": "file", "path": path, "size": len(file.data), "oid": file.oid}
            if file.lfs:
                entry["lfs"] = {"oid": file.sha256, "size": len(file.data), "pointerSize": 134}
            entries.append(entry)
        return entries

    def _tree(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        commit = self._commit_of(given)
        if commit is not None:
            below = f"{given['path']}/" if given["path"] else ""
            self._json([entry for entry in self._entries(given, commit) if entry["path"].startswith(below)])

    def _paths(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        commit = self._commit_of(given)
        if commit is not None:
            wanted = parse_qs(body.decode()).get("paths", [])
            self._json([entry for entry in self._entries(given, commit) if entry["path"] in wanted])

    def _resolve(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        commit = self._commit_of(given)
        if commit is None:
            return
        file = self.server.hub.commits[given["name"], commit].get(given["path"])
        if file is None:
            return self._answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        headers = {"X-Repo-Commit": commit}
        if not file.lfs:
            return self._file(file.data, file.oid, fault, headers)
        headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(len(file.data)), "ETag": '"pointer"'}
        place = f"{self.server.hub.cdn_url}/cdn/{file.sha256}?signature=secret&name={quote(given['path'])}"
        self._answer(302, b"", headers | {"Location": place})

    def _cdn(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        for files in self.server.hub.commits.values():
            for file in files.values():
                if file.sha256 == given["sha256"]:
                    return self._file(file.data, file.sha256, fault, {})
        self._answer(404, b"")

    def _create(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        hub, asked = self.server.hub, json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        if hub.has(name):
            return self._answer(409, b"{}", {"X-Error-Message": "You already created this dataset repo"})
        if asked.get("visibility") == "private" or asked.get("private"):
            hub.private.add(name)
        hub.commit(name, {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"})
        self._json({"url": f"{hub.url}/datasets/{name}", "name": name})

    def _yaml(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        self._json({"errors": [], "warnings": []})

    def _branch(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        hub, name, branch = self.server.hub, given["name"], given["branch"]
        commit = self._commit_of({"name": name})
        if commit is None:
            return
        if (name, branch) in hub.refs:
            return self._answer(409, b"{}")
        hub.refs[name, branch] = commit
        self._json({})

    def _preupload(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        commit = self._commit_of(given)
        if commit is None:
            return
        there = self.server.hub.commits[given["name"], commit]
        files = [
            {
                "path": file["path"], "uploadMode": "lfs" if file["path"].endswith(LFS_SUFFIXES) else "regular",
                "shouldIgnore": False, "oid": there[file["path"]].oid if file["path"] in there else None,
            }
            for file in json.loads(body)["files"]
        ]  # fmt: skip
        self._json({"files": files})

    def _lfs(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        hub, objects = self.server.hub, []
        for entry in json.loads(body)["objects"]:
            answer: Json = {"oid": entry["oid"], "size": entry["size"]}
            if entry["oid"] not in hub.stored:
                answer["actions"] = {"upload": {"href": f"{hub.cdn_url}/store/{entry['oid']}?signature=secret"}}
            objects.append(answer)
        self._json({"transfer": "basic", "objects": objects})

    def _store(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        if fault is not None and fault.lie:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.server.hub.stored[given["sha256"]] = body
        self._answer(200, b"")

    def _commit(self, given: dict[str, str], query: dict[str, list[str]], body: bytes, fault: Fault | None) -> None:
        hub, name, parent = self.server.hub, given["name"], self._commit_of(given)
        if parent is None:
            return
        files = dict(hub.commits[name, parent])
        for line in body.splitlines():
            item = json.loads(line)
            key, value = item["key"], item["value"]
            if key == "header" and value.get("parentCommit", parent) != parent:
                return self._answer(412, b"{}", {"X-Error-Message": "A commit has happened since"})
            if key == "file":
                files[value["path"]] = Stored(base64.b64decode(value["content"]), lfs=False)
            elif key == "lfsFile":
                files[value["path"]] = Stored(hub.stored[value["oid"]], lfs=True)
            elif key == "deletedFile":
                del files[value["path"]]
        commit = hub.move(name, given["rev"], files)
        if fault is not None and fault.status is not None:
            return self._answer(fault.status, b"no", dict(fault.headers))
        self._json({"commitUrl": f"{hub.url}/datasets/{name}/commit/{commit}", "commitOid": commit})

    def _file(self, data: bytes, etag: str, fault: Fault | None, headers: dict[str, str]) -> None:
        fault = fault or Fault("none")
        if fault.lie:
            middle = len(data) // 2
            data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        if fault.short is not None:
            data = data[: fault.short]
        headers = headers | {"ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        status, whole = 200, len(data)
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if asked:
            start = int(asked[1])
            if start >= whole:
                return self._answer(416, b"", {"Content-Range": f"bytes */{whole}"})
            status, data = 206, data[start:]
            headers |= {"Content-Range": f"bytes {start}-{whole - 1}/{whole}"}
        self._answer(status, data, headers, cut_after=fault.cut_after)

    def _json(self, value: Json) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, cut_after: int | None = None
    ) -> None:
        hub = self.server.hub
        cut = cut_after is not None and self.command != "HEAD"
        with hub.lock:
            authorized = "authorization" in self.headers
            seen = Seen(
                self.where, self.command, self.shown, 0 if cut else status, self.headers.get("Range"), authorized
            )
            hub.requests.append(seen)
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[:cut_after] if cut else body)
        if cut:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
