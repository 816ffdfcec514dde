#!/usr/bin/env python3
"""rooms.py NM ROOMS: no room needs what is above it, by the symbols of their libraries.

An include can be forgotten and a declaration repeated; what the linker has to find cannot be hidden. ROOMS has a line for each
room: its name, its library, and the rooms that it may use. A symbol that a room leaves undefined may be defined in that room, in
a room that it may use, or in one that those may use. Inside a room no file needs one that needs it, but for the circles below.
"""
import collections
import subprocess
import sys

# Files that need each other, and why they stay so.
CIRCLES = {
    "mesh": "a device makes streams and streams take memory of a device; a mesh reads its text by its own axes",
    "layout": "a window is made of boxes, and a box that is read through one is made of it",
    "graph": "building an op, printing it and reading its attributes are each made of the others",
    "op": "the gradient of an op is made of other ops",
    "kernel": "a loop and what it is made of are one machine in several files",
    "collectives": "an exchange is started, brought on and ended from either side",
    "plan": "memory is laid out by trials, and a trial asks memory for its buffers",
    "compile": "a scan's body is placed as the graph around it is",
    "autodiff": "the walk back goes into scans and recomputed parts, and these walk back",
}


def symbols(nm, library):
    """{file: (defined, undefined)}"""
    files = collections.defaultdict(lambda: (set(), set()))
    lines = subprocess.run([nm, "-A", "-P", library], check=True, capture_output=True, text=True).stdout
    for line in lines.splitlines():
        where, _, rest = line.partition("]: ")
        name, kind = rest.split()[:2]
        file = where.rsplit("[", 1)[1].split(".")[0]
        if kind == "U":
            files[file][1].add(name)
        elif kind in "TDBRVWCi":
            files[file][0].add(name)
    return files


def reachable(start, uses):
    seen, todo = set(), [start]
    while todo:
        for other in uses.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def circles(needs):
    """Files that reach each other, as sets."""
    reach = {file: reachable(file, needs) for file in needs}
    return {frozenset(g for g in needs if g == f or (g in reach[f] and f in reach[g])) for f in needs if f in reach[f]}


def main():
    nm, list_of_rooms = sys.argv[1:3]
    rooms, uses = {}, {}
    with open(list_of_rooms, encoding="utf-8") as lines:
        for line in lines:
            name, library, *used = line.split()
            rooms[name], uses[name] = symbols(nm, library), used
    home = {}
    for room, files in rooms.items():
        for file, (defined, _) in files.items():
            for name in defined:
                home.setdefault(name, (room, file))
    wrong, arrows = [], 0
    for room, files in rooms.items():
        allowed = reachable(room, uses) | {room}
        needs = {file: set() for file in files}
        for file, (_, undefined) in files.items():
            for name in sorted(undefined & home.keys()):
                other, there = home[name]
                arrows += 1
                if other not in allowed:
                    wrong.append(f"{room}/{file}.c uses {name} of {other}/{there}.c, but {room} may not use {other}")
                elif other == room and there != file:
                    needs[file].add(there)
        found = circles(needs)
        if found and room not in CIRCLES:
            for circle in found:
                wrong.append(f"{room}: these files need each other: {', '.join(sorted(circle))}")
        if not found and room in CIRCLES:
            wrong.append(f"{room}: its files need each other no more; take it out of CIRCLES")
    if len(rooms) < 15 or arrows < 1000:
        wrong.append(f"only {len(rooms)} rooms and {arrows} uses of symbols were seen")
    for line in wrong:
        print(line)
    if not wrong:
        print(f"{len(rooms)} rooms, {arrows} uses of symbols between their files: none goes up")
    return 1 if wrong else 0


sys.exit(main())
