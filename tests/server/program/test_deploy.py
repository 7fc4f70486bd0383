"""What is under ``deploy/``: does it say what is true of the server?"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from lance_server import running
from lance_server.cluster.kafka_log.settings import KafkaAddress
from lance_server.cluster.log_address import parse_address
from lance_server.config.build import server_config
from lance_server.config.file import SettingsFile
from lance_server.config.settings import Address, ServerConfig
from lance_server.server_command import command
from lance_server.testing import RawClient, ServerProcess, ask_http
from lance_server.testing.process import COMMAND, DEADLINE

DEPLOY = Path(__file__).parents[3] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
CLUSTER = DEPLOY / "kubernetes-cluster"


def settings(path: Path) -> ServerConfig:
    """Return what the server would be told by a file."""
    with command.make_context("lance-server", ["--config", str(path)]) as context:
        return server_config(context.params, SettingsFile.read(path))


def manifests() -> dict[str, Any]:
    """Return all Kubernetes objects, by kind."""
    paths = [path for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml"]
    return {each["kind"]: each for path in paths for each in yaml.safe_load_all(path.read_text())}


def pod() -> dict[str, Any]:
    """Return the pod of the StatefulSet."""
    spec: dict[str, Any] = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def unit() -> dict[str, list[str]]:
    """Return the settings of the systemd unit."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "lance-server.service").read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


# Settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [DEPLOY / "lance.toml", KUBERNETES / "lance.toml"], ids=str)
def test_settings_files_are_valid(path: Path) -> None:
    """Every key is known, and its value allowed."""
    config = settings(path)
    assert config.http is not None


def test_what_is_commented_out_is_valid_too() -> None:
    """Whoever removes the signs gets what the words promise."""
    text = (DEPLOY / "lance.toml").read_text()
    lines = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)
    file = SettingsFile(DEPLOY / "lance.toml", tomllib.loads(lines))
    with command.make_context("lance-server", ["--data-dir", "/data"]) as context:
        values = file.defaults(command, context)
    assert values["tls_require_client_cert"] is True
    assert values["auth_token_file"] == Path("/etc/lance/tokens")
    assert set(file.table("access")) == {"topics", "clients"}


def test_containers_use_settings_that_exist() -> None:
    """``LANCE_…`` in Dockerfile and compose file are options of the command."""
    known = {f"LANCE_{each.name.upper()}" for each in command.params if each.name}
    used = set(re.findall(r"LANCE_[A-Z_]+", (DEPLOY / "Dockerfile").read_text()))
    for name in ("compose.yaml", "compose.cluster.yaml"):
        compose = yaml.safe_load((DEPLOY / name).read_text())
        for service in compose["services"].values():
            words = set(service.get("environment", ()))
            used |= {word for word in words if word.startswith("LANCE_")}
    overlay = "".join(path.read_text() for path in CLUSTER.glob("*.yaml"))
    used |= set(re.findall(r"LANCE_[A-Z_]+", overlay))
    assert {"LANCE_NODE_ID", "LANCE_CLUSTER", "LANCE_ADVERTISE"} <= used
    assert used <= known


# A cluster ----------------------------------------------------------------------------------------


def test_the_nodes_of_the_compose_file_differ_in_number_address_and_volume() -> None:
    """Each is a node of its own, of one cluster, which is created first."""
    services = yaml.safe_load((DEPLOY / "compose.cluster.yaml").read_text())["services"]
    nodes = [each for name, each in services.items() if name.startswith("lance-")]
    assert len(nodes) == 3
    for one in ("LANCE_NODE_ID", "LANCE_ADVERTISE"):
        assert len({node["environment"][one] for node in nodes}) == 3
    assert len({node["volumes"][0] for node in nodes}) == 3
    (log,) = {node["environment"]["LANCE_CLUSTER"] for node in nodes}
    assert services["begin"]["command"][-1] == log
    brokers = {f"{name}:9092" for name in services if name.startswith("kafka-")}
    address = parse_address(log)
    assert isinstance(address, KafkaAddress)
    assert set(address.brokers.split(",")) == brokers


def test_the_patches_of_the_cluster_are_of_what_is_there() -> None:
    """Kinds and names are those of the single server, and the container is the same one."""
    listed = yaml.safe_load((CLUSTER / "kustomization.yaml").read_text())
    assert listed["resources"] == ["../kubernetes"]
    for each in listed["patches"]:
        patch = yaml.safe_load((CLUSTER / each["path"]).read_text())
        assert manifests()[patch["kind"]]["metadata"]["name"] == patch["metadata"]["name"]
    nodes = yaml.safe_load((CLUSTER / "nodes.yaml").read_text())["spec"]
    assert nodes["replicas"] == 3
    names = [each["name"] for each in nodes["template"]["spec"]["containers"]]
    assert names == [each["name"] for each in pod()["containers"]]


# Stopping ---------------------------------------------------------------------------------------


def test_nobody_kills_the_server_before_its_drain_ends() -> None:
    """systemd, Docker and Kubernetes wait longer than the drain may take."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["lance"]
    drain = settings(KUBERNETES / "lance.toml").drain_timeout
    assert pod()["terminationGracePeriodSeconds"] >= drain + 5
    assert int(compose["stop_grace_period"].removesuffix("s")) >= drain + 5
    assert int(unit()["TimeoutStopSec"][0]) >= settings(DEPLOY / "lance.toml").drain_timeout + 5


def test_memory_limits_leave_room_beside_the_budget() -> None:
    """The budget is what clients may take; the process needs more."""
    units = {"Mi": 1 << 20, "Gi": 1 << 30}
    limit = pod()["containers"][0]["resources"]["limits"]["memory"]
    budget = settings(KUBERNETES / "lance.toml").max_memory
    assert int(limit[:-2]) * units[limit[-2:]] >= 3 * budget


# systemd ----------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit() -> None:
    """``systemd-analyze verify`` has nothing to say."""
    outcome = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(DEPLOY / "lance-server.service")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in outcome.stderr.splitlines() if "lance-server.service" in line]
    assert complaints == []


def test_errors_that_do_not_heal_are_not_retried() -> None:
    """The exit codes of settings, data directory and address."""
    assert set(unit()["RestartPreventExitStatus"][0].split()) == {"2", "3", "4"}


def test_the_service_manager_is_told_when_the_server_is_ready(tmp_path: Path) -> None:
    """And when it begins to stop, over the socket it names."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE)
        arguments = ["--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert manager.recv(100) == b"READY=1"
            process.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
        finally:
            assert process.wait(DEADLINE) == 0


# The container ----------------------------------------------------------------------------------


def test_the_image_does_not_run_as_root() -> None:
    """Nor does any way to start it give it more."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER 1000:1000"]
    assert pod()["securityContext"]["runAsUser"] == 1000
    container = pod()["containers"][0]["securityContext"]
    assert container["readOnlyRootFilesystem"]
    assert not container["allowPrivilegeEscalation"]


def test_the_image_ends_with_the_command() -> None:
    """Stages, instructions and ports are those that are meant."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    words = [line.split()[0] for line in text.splitlines() if line and line[0] not in "# "]
    assert words.count("FROM") == 2
    assert set(words) <= {
        *("FROM", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL"),
        *("ARG", "HEALTHCHECK", "ENTRYPOINT"),
    }
    assert 'ENTRYPOINT ["lance-server"]' in text
    assert "EXPOSE 1992 9090" in text
    assert "STOPSIGNAL SIGTERM" in text


# Kubernetes -------------------------------------------------------------------------------------


def test_manifests_have_what_every_object_has() -> None:
    """Version, kind and name; and the list of resources is complete."""
    for kind, manifest in manifests().items():
        assert manifest["apiVersion"], kind
        assert manifest["metadata"]["name"], kind
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    there = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) == there


def test_selectors_find_the_pod() -> None:
    """Service, StatefulSet, disruption budget and network policy mean the same one."""
    all_of_them = manifests()
    labels = all_of_them["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        all_of_them["Service"]["spec"]["selector"],
        all_of_them["StatefulSet"]["spec"]["selector"]["matchLabels"],
        all_of_them["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        all_of_them["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)
    assert all_of_them["StatefulSet"]["spec"]["serviceName"] == "lance"


def test_volumes_and_ports_have_two_ends() -> None:
    """What is mounted exists, and what is named is open."""
    spec, container = manifests()["StatefulSet"]["spec"], pod()["containers"][0]
    names = {each["name"] for each in pod()["volumes"]}
    names |= {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == names
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    config = settings(KUBERNETES / "lance.toml")
    assert config.http is not None
    assert ports == {"lwp": config.listen.port, "http": config.http.port}


def test_probes_ask_for_what_is_there(tmp_path: Path) -> None:
    """A server that is well answers each path with 200."""
    container = pod()["containers"][0]
    paths = [
        container[f"{kind}Probe"]["httpGet"]["path"]
        for kind in ("startup", "liveness", "readiness")
    ]
    with running(tmp_path, http=Address("127.0.0.1", 0)) as server:
        answers = {path: ask_http(server, path).status for path in paths}
    assert set(answers.values()) == {200}


# seccomp ----------------------------------------------------------------------------------------


def allowed() -> set[str]:
    """Return the system calls of the profile."""
    profile = json.loads((DEPLOY / "seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW"}
    return {name for rule in profile["syscalls"] for name in rule["names"]}


def test_the_profile_allows_io_uring_and_little_else() -> None:
    """No modules, no mounts, no tracing of others (design section 10.5)."""
    assert {"io_uring_setup", "io_uring_enter", "io_uring_register"} <= allowed()
    assert not allowed() & {"mount", "ptrace", "bpf", "init_module", "keyctl", "reboot", "setns"}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_profile_allows_what_the_server_does(tmp_path: Path) -> None:
    """From start to stop, with a batch stored and read."""
    seen, port = tmp_path / "calls", tmp_path / "port"
    arguments = ["--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [
            "strace",
            "-f",
            "-qq",
            "-o",
            str(seen),
            sys.executable,
            "-m",
            "lance_server",
            *arguments,
            "--http",
            "127.0.0.1:0",
            "--port-file",
            str(port),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        if not ready:
            pytest.skip("strace may not trace here")
        with RawClient(("127.0.0.1", int(port.read_text()))) as client:
            client.store([b"one"], batch_id=1)
            client.read_all()
        server = int(re.search(r"pid (\d+)", ready)[1])  # type: ignore[index]
        os.kill(server, signal.SIGTERM)
        process.stdout.read()
    finally:
        process.wait(DEADLINE)
        process.stdout.close()
    calls = set(re.findall(r"^\d+ +(\w+)\(", seen.read_text(), re.MULTILINE))
    assert "fdatasync" in calls or "io_uring_enter" in calls
    assert calls <= allowed()


def test_the_exit_codes_are_documented() -> None:
    """The unit and the help speak of the same."""
    with click.Context(command) as context:
        text = re.sub(r"\s+", " ", command.get_help(context))
    for code in ("0 stopped cleanly", "1 stopped, but", "2 wrong options", "3 the data", "4 the"):
        assert code in text


def test_a_server_started_as_the_manifests_say_serves(tmp_path: Path) -> None:
    """With the settings of Kubernetes, paths and addresses aside."""
    toml = (KUBERNETES / "lance.toml").read_text()
    path = tmp_path / "lance.toml"
    path.write_text(toml)
    options = ["--config", str(path), "--http", "127.0.0.1:0"]
    with ServerProcess.running(tmp_path / "data", *options) as server:
        with RawClient(server.address) as client:
            client.store([b"one"], batch_id=1)
        assert server.end(signal.SIGTERM)[0] == 0
