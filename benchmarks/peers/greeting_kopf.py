"""Keeps a ConfigMap with a text for each Greeting, on kopf: the example of docs/comparison.md."""

import kopf
from kubernetes.client import ApiException, CoreV1Api

LABELS = {"app": "greeting"}


def keep(greeting: kopf.Body) -> str:
    spec, meta = greeting["spec"], greeting["metadata"]
    text = f"{spec['salutation']}, {spec['name']}!"
    body = {"metadata": {"name": meta["name"], "labels": LABELS}, "data": {"text": text}}
    kopf.adopt(body, owner=greeting)
    api = CoreV1Api()
    try:
        api.create_namespaced_config_map(meta["namespace"], body)
    except ApiException as error:
        if error.status != 409:
            raise
        api.patch_namespaced_config_map(meta["name"], meta["namespace"], body)
    return text


@kopf.on.resume("greetings.example.com")
@kopf.on.create("greetings.example.com")
@kopf.on.update("greetings.example.com", field="spec")
def greet(body: kopf.Body, patch: kopf.Patch, **_: object) -> None:
    patch.status["text"] = keep(body)


@kopf.index("greetings.example.com")
def greetings(body: kopf.Body, namespace: str, name: str, **_: object) -> dict[tuple[str, str], kopf.Body]:
    return {(namespace, name): body}


@kopf.on.event("configmaps", labels=LABELS)
def config_map_changed(namespace: str, name: str, greetings: kopf.Index, **_: object) -> None:
    for greeting in greetings.get((namespace, name), ()):
        keep(greeting)
