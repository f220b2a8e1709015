"""What the profile `kubernetes` asks of `kubectl`, as a server with one kind of object would do it: what is
stored is in the file that KUBE_OBJECTS names."""

import json
import os
import sys
import uuid

PATH = os.environ["KUBE_OBJECTS"]


def load():
    try:
        with open(PATH, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def store(objects):
    with open(PATH + ".new", "w", encoding="utf-8") as file:
        json.dump(objects, file)
    os.replace(PATH + ".new", PATH)


def fail(why):
    sys.exit(f"Error from server: {why}")


def merge(old, new):
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(old.get(key), value)
    return merged


def put(objects, name, wanted, old=None):
    filled = (old or {}).get("metadata", {})
    metadata = dict(wanted.get("metadata", {}))
    metadata["uid"] = filled.get("uid") or str(uuid.uuid4())
    metadata["creationTimestamp"] = filled.get("creationTimestamp") or str(uuid.uuid4())
    metadata["resourceVersion"] = str(int(filled.get("resourceVersion", "0")) + 1)
    objects[name] = {**wanted, "metadata": metadata, "status": {"observed": str(uuid.uuid4())}}
    store(objects)


def main(verb, *words):
    flags = [word for word in words if word.startswith("-")]
    objects = load()
    if verb in ("create", "replace", "apply"):
        wanted = json.load(sys.stdin)
        name = f"{wanted['kind'].lower()}/{wanted['metadata']['name']}"
        old = objects.get(name)
        if verb == "create" and old:
            fail("it exists already")
        if verb == "replace" and not old:
            fail("it is not found")
        put(objects, name, merge(old, wanted) if verb == "apply" and old else wanted, old)
        return
    name = next(word for word in words if "/" in word and not word.startswith(("-", "{")))
    old = objects.get(name)
    if not old:
        if "--ignore-not-found" in flags:
            return
        fail("it is not found")
    if verb == "get":
        print(json.dumps(old) if "json" in words else name)
    elif verb == "delete":
        del objects[name]
        store(objects)
    elif verb == "patch":
        put(objects, name, merge(old, json.loads(words[-1])), old)


main(*sys.argv[1:])
