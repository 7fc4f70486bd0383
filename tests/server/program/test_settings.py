"""Settings: flags, environment, a TOML file; one name for each, one order."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import fields
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lance_server.config.build import default_node_id, server_config
from lance_server.config.file import SettingsFile
from lance_server.config.settings import ServerConfig
from lance_server.errors import ConfigError
from lance_server.server_command import command
from lance_server.testing import RawClient, ServerProcess, eventually
from lance_server.testing.process import COMMAND
from lance_spec.enums import Command


def check(
    tmp_path: Path, toml: str = "", *options: str, env: Mapping[str, str] | None = None
) -> Result:
    """Run ``lance-server --check-config`` with a file."""
    path = tmp_path / "lance.toml"
    path.write_text(toml)
    arguments = ["--config", str(path), "--check-config", "--data-dir", str(tmp_path), *options]
    return CliRunner().invoke(command, arguments, env=dict(env or {}))


def setting(result: Result, name: str) -> str:
    """Return what a setting is, and where it is from."""
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if line.startswith(f"{name} = ")]
    assert len(lines) == 1, result.output
    return lines[0].partition(" = ")[2]


# One order --------------------------------------------------------------------------------------


def test_the_command_line_comes_before_the_environment_and_the_file(tmp_path: Path) -> None:
    """And each of them before the default."""
    file, env, flag = "max_topics = 1", {"LANCE_MAX_TOPICS": "2"}, ["--max-topics", "3"]
    assert setting(check(tmp_path), "max_topics") == "10000  # default"
    assert setting(check(tmp_path, file), "max_topics") == "1  # file"
    assert setting(check(tmp_path, file, env=env), "max_topics") == "2  # environment"
    assert setting(check(tmp_path, file, *flag, env=env), "max_topics") == "3  # command line"


def test_tables_of_the_file_are_prefixes_elsewhere(tmp_path: Path) -> None:
    """``[auth] write_only`` is ``--auth-write-only``."""
    (tmp_path / "tokens").write_text("a-secret-token\n")
    toml = f'[auth]\ntoken_file = "{tmp_path}/tokens"\nwrite_only = true'
    assert setting(check(tmp_path, toml), "auth.write_only") == "True  # file"
    env = {"LANCE_AUTH_WRITE_ONLY": "false"}
    assert setting(check(tmp_path, toml, env=env), "auth.write_only") == "False  # environment"


def test_every_setting_can_stand_in_a_file(tmp_path: Path) -> None:
    """Sizes with units, addresses, numbers, words."""
    toml = 'max_memory = "1GiB"\nlisten = "[::1]:5"\nidle_timeout = 2.5\ndialect = "deployed"'
    result = check(tmp_path, toml)
    assert setting(result, "max_memory") == f"{1 << 30}  # file"
    assert setting(result, "listen") == "[::1]:5  # file"
    assert setting(result, "idle_timeout") == "2.5  # file"
    assert setting(result, "dialect") == "deployed  # file"


def test_the_data_directory_can_stand_in_the_file(tmp_path: Path) -> None:
    """Then one option is enough."""
    path = tmp_path / "lance.toml"
    path.write_text(f'data_dir = "{tmp_path}"')
    result = CliRunner().invoke(command, ["--config", str(path), "--check-config"])
    assert "the configuration is valid" in result.output


def test_the_file_can_be_named_in_the_environment(tmp_path: Path) -> None:
    """As any other option."""
    path = tmp_path / "lance.toml"
    path.write_text(f'data_dir = "{tmp_path}"\nmax_topics = 7')
    result = CliRunner().invoke(command, ["--check-config"], env={"LANCE_CONFIG": str(path)})
    assert setting(result, "max_topics") == "7  # file"


# What is wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("max_topic = 5", "there is no setting 'max_topic'; did you mean 'max_topics'?"),
        ("[tls]\ncert = 'x'", "there is no setting 'tls.cert'; did you mean 'tls.cert_path'?"),
        ("[limits]\nmax_topics = 5", "'limits.max_topics'; did you mean 'max_topics'?"),
        ("max_topics = 'many'", "max_topics: 'many' is not a valid integer range"),
        ("max_topics = 0", "max_topics: 0 is not in the range x>=1"),
        ("max_memory = 'lots'", "max_memory: 'lots' is not a size"),
        ("listen = 'here'", "listen: 'here' is not an address"),
        ("dialect = 'klingon'", "dialect: 'klingon' is not one of"),
        ("max_topics = ", "is not TOML: Invalid value (at end of document)"),
        ("max_memory = '1MiB'", "max_memory must be at least 3 times the largest payload"),
        ("[tls]\nenabled = true", "TLS needs a certificate: set tls.cert_path and tls.key_path"),
        ("[tls]\ncert_path = 'x'", "tls.key_path is missing"),
        ("[tls]\ncert_path = 'x'\nkey_path = 'y'", "cannot use tls.cert_path 'x'"),
        ("[auth]\nenabled = true", "there is no token: set auth.tokens or auth.token_file"),
        ("[auth]\nwrite_only = true", "there is no token"),
        ("[auth]\ntokens = 'one'", "auth.tokens must be a list of strings"),
        ("auth = 5", "there is no setting 'auth'"),
        ("[access.topic.orders]", "[access] has no setting 'topic'; did you mean 'topics'?"),
        ("[access.topics]\norders = 5", "[access.topics.orders] must be a table, not 5"),
        (
            "[access.topics.orders]\nallowed_cn = ['x']",
            "[access.topics.orders] has no setting 'allowed_cn'; did you mean 'allowed_cns'?",
        ),
        (
            "[access.clients.shop]\nallowed_topics = [true]",
            "allowed_topics must be a list of strings or numbers, not [True]",
        ),
        ("[access.clients.shop]\nadmin = 1", "admin must be true or false, not 1"),
        ("[access.topics.orders]", "access rules need TLS"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(tmp_path: Path, toml: str, words: str) -> None:
    """One line: the key, what was found, what would be right; exit code 2."""
    result = check(tmp_path, toml)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    """Missing, a folder, or no text."""
    for name in ("missing.toml", "."):
        result = CliRunner().invoke(command, ["--config", str(tmp_path / name)])
        assert (result.exit_code, str(tmp_path) in result.output) == (2, True)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        SettingsFile.read(tmp_path / "binary.toml")
    (tmp_path / "huge.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(ConfigError, match="name a configuration file"):
        SettingsFile.read(tmp_path / "huge.toml")


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    """Neither when the configuration is valid nor when it is not."""
    valid = check(tmp_path, "[auth]\ntokens = ['a-secret-token']")
    wrong = check(tmp_path, "[auth]\ntokens = ['a-secret-token', 5]")
    assert (valid.exit_code, wrong.exit_code) == (0, 2)
    assert "a-secret-token" not in valid.output + wrong.output


# The parts --------------------------------------------------------------------------------------


def configured(tmp_path: Path, toml: str) -> ServerConfig:
    """Return what a file alone stands for."""
    path = tmp_path / "lance.toml"
    path.write_text(f'data_dir = "{tmp_path}"\n{toml}')
    with command.make_context("lance-server", ["--config", str(path)]) as context:
        return server_config(context.params, SettingsFile.read(path))


def test_rules_are_read_as_they_stand(tmp_path: Path) -> None:
    """In the words of LWP section 7.2."""
    config = configured(
        tmp_path,
        """
        [access.topics.orders]
        mtls_enabled = true
        client_ca_path = "/etc/lance/topic-ca.crt"
        allowed_cns = ["shop.example.com"]
        [access.clients."office.example.com"]
        allowed_topics = ["*", 3]
        admin = true
        """,
    )
    assert config.access is not None
    orders, office = config.access.topics["orders"], config.access.clients["office.example.com"]
    assert orders.client_ca_path == Path("/etc/lance/topic-ca.crt")
    assert orders.allowed_cns == {"shop.example.com"}
    assert (office.allowed_topics, office.admin, office.write) == ({"*", 3}, True, True)


def test_a_table_can_be_switched_off(tmp_path: Path) -> None:
    """``enabled = false`` keeps what it says for later."""
    config = configured(
        tmp_path,
        "[tls]\nenabled = false\ncert_path = 'x'\n[auth]\nenabled = false\ntokens = ['a-secret']",
    )
    assert (config.tls, config.auth) == (None, None)


@pytest.mark.parametrize(
    ("host", "node_id"),
    [("lance-2", 2), ("lance-0", 0), ("a-b-17", 17), ("lance", 0), ("7", 0), ("lance-70000", 0)],
)
def test_the_node_is_numbered_by_its_host_name(host: str, node_id: int) -> None:
    """As the pods of a StatefulSet are (design section 10.7)."""
    assert default_node_id({"HOSTNAME": host}) == node_id


def test_a_number_in_the_environment_comes_first(tmp_path: Path) -> None:
    """``LANCE_NODE_ID``, and it is told in the status."""
    env = {"LANCE_NODE_ID": "9", "HOSTNAME": "lance-2"}
    assert setting(check(tmp_path, env=env), "node_id") == "9  # environment"
    options = ["--node-id", "9"]
    with (
        ServerProcess.running(tmp_path / "data", *options) as server,
        RawClient(server.address) as client,
    ):
        assert client.ask_json(Command.GET_CLUSTER_STATUS)["node_id"] == 9


# Signals ----------------------------------------------------------------------------------------


def test_sighup_loads_tokens_again(tmp_path: Path) -> None:
    """What is wrong with the new ones changes nothing and is logged."""
    tokens = tmp_path / "tokens"
    tokens.write_text("the-first-token\n")

    def is_valid(token: bytes) -> bool:
        with RawClient(server.address) as client:
            return client.authenticate(token)[0]

    with ServerProcess.running(tmp_path / "data", "--auth-token-file", str(tokens)) as server:
        assert is_valid(b"the-first-token")
        tokens.write_text("short\n")
        server.process.send_signal(signal.SIGHUP)
        assert server.process.stderr is not None
        refused = "nothing was reloaded: token 1 is shorter"
        assert any(refused in line for line in server.process.stderr)
        assert is_valid(b"the-first-token")
        tokens.write_text("the-second-token\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: is_valid(b"the-second-token"))
        assert not is_valid(b"the-first-token")
        code, _, log = server.end(signal.SIGTERM)
    assert code == 0
    assert "were loaded again" in log
    assert "the-second-token" not in log


def test_sigquit_writes_down_what_the_server_does(tmp_path: Path) -> None:
    """Figures, connections and stacks; and it goes on."""
    with ServerProcess.running(tmp_path) as server:
        with RawClient(server.address) as client:
            client.store([b"one"], batch_id=1)
            server.process.send_signal(signal.SIGQUIT)
            assert server.process.stderr is not None
            lines = iter(server.process.stderr.readline, "")
            log = "".join(takewhile(lambda line: "most recent call first" not in line, lines))
            client.store([b"two"], batch_id=2)
        code, _, _ = server.end(signal.SIGTERM)
    assert code == 0
    assert '"batches_acked": ' in log
    assert "<Connection 127.0.0.1:" in log


def test_a_variable_that_means_nothing_is_logged_with_a_suggestion(tmp_path: Path) -> None:
    """Misspelt ones are not taken silently; those that Kubernetes makes are one line."""
    environment = {
        **os.environ,
        "LANCE_MAX_MEMROY": "1GiB",
        "LANCE_PORT": "tcp://10.96.0.7:1992",
        "LANCE_SERVICE_HOST": "10.96.0.7",
    }
    done = subprocess.run(
        [*COMMAND, "--check-config", "--data-dir", str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "WARNING" in done.stderr
    assert "LANCE_MAX_MEMROY is not read by anything; did you mean LANCE_MAX_MEMORY?" in done.stderr
    assert "2 environment variables such as LANCE_PORT=tcp://10.96.0.7:1992" in done.stderr


def test_a_server_inside_a_program_has_the_defaults_of_the_command(tmp_path: Path) -> None:
    """But for the port, the trial of the disk, and the number that the host's name ends in."""
    options = command.make_context("lance-server", ["--data-dir", str(tmp_path)]).params
    started = server_config(options, SettingsFile())
    inside = ServerConfig(data_dir=tmp_path, node_id=started.node_id)
    differ = [
        each.name
        for each in fields(ServerConfig)
        if getattr(started, each.name) != getattr(inside, each.name)
    ]
    assert differ == ["listen", "storage"]
