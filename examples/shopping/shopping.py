#!/usr/bin/env python3
"""Merges a shopping list: who adds an item wins over who removes it at the same time."""
import json, re, sys

question = json.load(sys.stdin)
operations = question["operations"]
on_list = set(question["state"].splitlines())

def item(operation):
    return re.match(r"item='?([^';]+)", operation["does"]["command"]).group(1)

def added_meanwhile(removal):
    return any(it["type"] == "add" and item(it) == item(removal)
               and it["id"] not in removal["after"] and removal["id"] not in it["after"]
               for it in operations)

run = []
# What knew of another comes after it; the others by their ids.
for it in sorted(operations, key=lambda it: (len(it["after"]), it["id"])):
    adds, there = it["type"] == "add", item(it) in on_list
    if adds == there or not adds and added_meanwhile(it):
        continue
    run.append(it["id"])
    (on_list.add if adds else on_list.discard)(item(it))
print(json.dumps(run))
