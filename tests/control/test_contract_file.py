"""Contract files: TOML and JSON alike, refused in words, and completed without other changes."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from thermite.control.contract_file import encoded, read_contract_file, save_ids
from thermite.errors import ContractError, NotFoundError, UsageError
from thermite.schema.contract import Project, RepoAt

DONE = Project(repo="matmul", commit="a" * 40, kit=RepoAt(repo="tiny", commit="b" * 40))


def file_of(tmp_path: Path, text: str | bytes, name: str = "contract.toml") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_toml_and_json_hold_the_same_document(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"name": "x", "budget": {"attempts": 3, "usd": 0.5}, "cells": ["a"]}
    by_json = read_contract_file(file_of(tmp_path, json.dumps(fields), "a.json"))
    toml = 'name = "x"\r\ncells = ["a"]\r\n[budget]\r\nattempts = 3\r\nusd = 0.5\r\n'
    by_toml = read_contract_file(file_of(tmp_path, toml, "a.TOML"))
    assert by_json.fields == by_toml.fields == fields


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("name = ", "not valid TOML", id="broken"),
        pytest.param("a = 1\na = 2\n", "not valid TOML", id="twice"),
        pytest.param(b"\xef\xbb\xbfa = 1", "byte-order mark", id="byte-order mark"),
        pytest.param("a = 1".encode("utf-16"), "byte-order mark", id="UTF-16"),
        pytest.param(b"a = '\xff'", "not valid TOML", id="not UTF-8"),
        pytest.param("[budget]\nusd = inf", "budget.usd is inf", id="infinity"),
        pytest.param("[[goals]]\nid = nan", "goals[0].id is nan", id="not a number"),
        pytest.param("name = 2026-01-01", "name is a date", id="a date"),
        pytest.param("a = " + "[" * 40 + "]" * 40, "nested more than", id="deep"),
        pytest.param("a = " + "[" * 60_000, "TOML|nested", id="depth bomb"),
        pytest.param("#" * (128 * 1024 + 1), "more than 131072 bytes", id="huge"),
        pytest.param("a = " + "1" * 5000, "not valid TOML", id="digits"),
    ],
)
def test_toml_that_no_contract_can_hold_is_refused_in_words(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    with pytest.raises(ContractError) as caught:
        read_contract_file(file_of(tmp_path, text))
    assert any(word in str(caught.value) for word in said.split("|"))


@pytest.mark.parametrize("text", [b"", b"[]", b'{"a":1,"a":2}', b"\xef\xbb\xbf{}", b"[" * 100_000])
def test_json_that_no_contract_can_hold_is_refused_in_words(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(ContractError, match=r"contract\.json"):
        read_contract_file(file_of(tmp_path, text, "contract.json"))


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_contract_file(tmp_path / "none.toml")
    tmp_path.joinpath("d.toml").mkdir()
    with pytest.raises(NotFoundError):
        read_contract_file(tmp_path / "d.toml")
    with pytest.raises(UsageError, match=r"neither \.toml nor \.json"):
        read_contract_file(file_of(tmp_path, "", "contract.yaml"))


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_plain_file_is_no_contract_and_is_not_waited_for(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "contract.json"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(NotFoundError, match="there is no contract file"):
        read_contract_file(path)


def test_what_is_signed_is_compact_and_keeps_every_character() -> None:
    assert encoded({"task": "schneller, größer\n", "x": 1.0}) == (
        '{"task":"schneller, größer\\n","x":1.0}'.encode()
    )
    with pytest.raises(ContractError, match="at most 131072"):
        encoded({"task": "x" * (128 * 1024)})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            '# mine\nname = "x"\n[project] # here\nrepo = "matmul"\ncommit = "HEAD" # start\n'
            "[budget]\nattempts = 3\n",
            '# mine\nname = "x"\n[project] # here\n'
            f'kit = {{ repo = "tiny", commit = "{"b" * 40}" }}\nrepo = "matmul"\n'
            f'commit = "{"a" * 40}" # start\n[budget]\nattempts = 3\n',
            id="no kit yet",
        ),
        pytest.param(
            '[project]\nrepo = "matmul"\ncommit = "v1"\nkit = { repo = "old" , commit = "x" }\n',
            f'[project]\nrepo = "matmul"\ncommit = "{"a" * 40}"\n'
            f'kit = {{ repo = "tiny", commit = "{"b" * 40}" }}\n',
            id="kit inline",
        ),
        pytest.param(
            '[project]\nrepo = "matmul"\ncommit = "v1"\n[project.kit]\ncommit = "x"\nrepo = "y"\n',
            f'[project]\nrepo = "matmul"\ncommit = "{"a" * 40}"\n[project.kit]\n'
            f'commit = "{"b" * 40}"\nrepo = "tiny"\n',
            id="kit as a table",
        ),
    ],
)
def test_saving_changes_the_ids_and_nothing_else(tmp_path: Path, before: str, after: str) -> None:
    path = file_of(tmp_path, before)
    path.chmod(0o640)
    save_ids(read_contract_file(path), DONE)
    assert path.read_text(encoding="utf-8") == after
    assert path.stat().st_mode & 0o777 == 0o640
    assert tomllib.loads(after)["project"]["kit"] == {"repo": "tiny", "commit": "b" * 40}


@pytest.mark.parametrize(
    "text",
    [
        'project = { repo = "matmul", commit = "HEAD" }\n',
        'project.repo = "matmul"\nproject.commit = "HEAD"\n',
        '[project]\nrepo = "matmul"\ncommit = "v1"\nkit.repo = "tiny"\nkit.commit = "v2"\n',
        '[project]\nrepo = "matmul"\ncommit = """\nv1"""\n',
    ],
)
def test_toml_that_can_not_be_completed_by_itself_says_what_to_write(
    tmp_path: Path, text: str
) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(ContractError, match=f'commit = "{"a" * 40}"'):
        save_ids(read_contract_file(path), DONE)
    assert path.read_text(encoding="utf-8") == text


def test_saving_what_is_complete_leaves_the_file_alone(tmp_path: Path) -> None:
    path = file_of(tmp_path, '[project]\nrepo = "matmul"\ncommit = "v1"\n')
    save_ids(read_contract_file(path), DONE)
    at = path.stat().st_mtime_ns
    save_ids(read_contract_file(path), DONE)
    assert path.stat().st_mtime_ns == at
