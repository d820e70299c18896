"""The Helm chart: Helm renders it, Kubernetes' own schemas accept the result, and it agrees with the service."""

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from manul.cli.serve import serve
from manul.service.http.route_table import OPERATIONS
from tests.markdown import ROOT

pytestmark = pytest.mark.whole
CHART = ROOT / "deploy/helm"
LINE = f"sha256:{hashlib.sha256(b'token').hexdigest()} admin"
WRITTEN = {"store": {"url": "postgresql://manul:secret@db/manul"}, "tokens": {"lines": [LINE, LINE]}}
OWN = {"store": {"existingSecret": "my-store"}, "tokens": {"existingSecret": "my-tokens"}}
EVERYTHING = {
    **OWN,
    "imagePullSecrets": [{"name": "registry"}],
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "certificate", "annotations": {"a": "b"}},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "token": {"existingSecret": "reporting"}},
    "settings": {"LOG_LEVEL": "warning", "RATE": 100},
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
SETTINGS = {f"MANUL_{option.name.upper()}" for option in serve.params}
# What the pods get from Kubernetes' releases of several years.
VERSIONS = ["1.27.0", "1.31.0"]


def helm(*arguments):
    program = Path(sys.executable).with_name("helm")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)


def rendered(folder, values, release="shop"):
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    said = helm("template", release, CHART, "--namespace", "web", "--values", folder / "values.yaml")
    assert said.returncode == 0, said.stderr
    return [each for each in yaml.safe_load_all(said.stdout) if each is not None]


def one(objects, kind):
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def pod(found):
    spec = found["spec"]["template"]["spec"]
    return spec, spec["containers"][0]


@pytest.mark.parametrize("values", [WRITTEN, OWN, EVERYTHING], ids=["written", "own", "everything"])
def test_helm_finds_no_fault_and_kubernetes_knows_every_field(tmp_path, values):
    objects = rendered(tmp_path, values)
    assert helm("lint", "--strict", CHART, "--values", tmp_path / "values.yaml").returncode == 0
    for each in objects:
        if each["apiVersion"].startswith("monitoring."):
            continue  # not a type of Kubernetes itself
        for version in VERSIONS:
            kubernetes_validate.validate(each, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_found(tmp_path):
    deployment = one(rendered(tmp_path, OWN), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"store": {"existingSecret": ""}}, "store"),
        ({"store": {"url": "decisions.db"}}, "url"),
        ({"tokens": {"existingSecret": ""}}, "tokens"),
        ({"tokens": {"lines": ["a token itself"]}}, "lines"),
        ({"resources": {"limits": {"memory": None}}}, "limits"),
        ({"serviceMonitor": {"enabled": True}}, "existingSecret"),
        ({"replica": 3}, "replica"),
    ],
)
def test_values_that_would_not_work_are_refused(tmp_path, changes, field):
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({**OWN, **changes}))
    said = helm("template", "shop", CHART, "--values", tmp_path / "values.yaml")
    assert said.returncode != 0
    assert field in said.stderr


def test_pods_are_probed_limited_and_need_no_rights(tmp_path):
    objects = rendered(tmp_path, EVERYTHING, release="manul")
    open_paths = {each.path for each in OPERATIONS if each.right is None}
    for found in (one(objects, "Deployment"), one(objects, "Job")):
        spec, container = pod(found)
        assert spec["enableServiceLinks"] is spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert "memory" in container["resources"]["limits"]
    _, container = pod(one(objects, "Deployment"))
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {each["path"] for each in probes.values()} <= open_paths
    assert probes["livenessProbe"]["path"] == "/healthz"
    assert {each["port"] for each in probes.values()} == {port["name"] for port in container["ports"]}
    user = re.search(r"--uid (\d+)", (ROOT / "Dockerfile").read_text())[1]
    assert spec["securityContext"]["runAsUser"] == int(user)


def test_every_variable_is_a_setting_of_serve(tmp_path):
    _, container = pod(one(rendered(tmp_path, EVERYTHING), "Deployment"))
    names = [each["name"] for each in container["env"]]
    assert len(set(names)) == len(names)
    assert set(names) <= SETTINGS
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["MANUL_PORT"] == str(container["ports"][0]["containerPort"])
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert str(Path(variables["MANUL_TOKEN_FILE"]).parent) in mounted


def test_the_job_runs_a_command_that_exists_before_an_upgrade_only(tmp_path):
    job = one(rendered(tmp_path, OWN), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    _, container = pod(job)
    assert container["args"] == ["migrate"]
    assert [each["name"] for each in container["env"]] == ["MANUL_STORE"]
    said = subprocess.run(
        [sys.executable, "-m", "manul", "migrate", "--help"], capture_output=True, text=True, check=True
    )
    assert "MANUL_STORE by default" in " ".join(said.stdout.split())


def test_what_selects_the_pods_selects_those_of_the_service_alone(tmp_path):
    objects = rendered(tmp_path, EVERYTHING)
    labels = {kind: one(objects, kind)["spec"]["template"]["metadata"]["labels"] for kind in ("Deployment", "Job")}
    selectors = [
        one(objects, "Service")["spec"]["selector"],
        one(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels["Deployment"].items()
        assert not selector.items() <= labels["Job"].items()
    monitor, service = one(objects, "ServiceMonitor")["spec"], one(objects, "Service")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["path"] in {each.path for each in OPERATIONS if each.right == "report"}
    assert endpoint["authorization"]["credentials"]["name"] == "reporting"


def test_secrets_have_what_was_written_and_a_change_replaces_the_pods(tmp_path):
    objects = rendered(tmp_path, WRITTEN)
    secrets = {each["metadata"]["name"]: each["stringData"] for each in objects if each["kind"] == "Secret"}
    assert secrets == {
        "shop-manul-store": {"url": WRITTEN["store"]["url"]},
        "shop-manul-tokens": {"tokens": f"{LINE}\n{LINE}\n"},
    }
    before = one(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    changed = rendered(tmp_path, {**WRITTEN, "tokens": {"lines": [LINE]}})
    assert one(changed, "Deployment")["spec"]["template"]["metadata"]["annotations"] != before
    assert not [each for each in rendered(tmp_path, OWN) if each["kind"] == "Secret"]


def test_the_chart_has_the_version_of_the_package_and_the_memory_of_the_alert():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart["version"] == chart["appVersion"] == version
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["resources"]["limits"]["memory"] == "5Gi"  # as in test_deployment
