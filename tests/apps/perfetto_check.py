#!/usr/bin/env python3
"""perfetto_check: a trace file as Perfetto's own schema, and where it is installed its trace_processor, reads it.

    perfetto_check.py FILE [NAME=NUMBER...]    counts that the file must have: step=.., exchange=.., run=.., trip=.., flows=..,
                                               processes=..

The schema is of the Python package perfetto (pip install perfetto); trace_processor is the program TRACE_PROCESSOR, or
trace_processor_shell of PATH. Exit status 77, with the reason, where the package is not installed.
"""
import os
import shutil
import sys
import zlib

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
except ImportError:
    print("skipped: no Python package perfetto here: pip install perfetto")
    sys.exit(77)

NS_MAX = 1 << 63


def fail(text):
    sys.exit(f"perfetto_check: {text}")


def known_only(message):
    """No field that the schema has not: those are dropped when a message is copied field by field."""
    before = message.ByteSize()
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    if copy.ByteSize() != before:
        fail("a field that Perfetto does not know")


def packets_of(data):
    trace = schema.Trace()
    trace.ParseFromString(data)
    known_only(trace)
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from packets_of(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


class Reader:
    """Slices, counters and flows, as a viewer would make them of packets."""

    def __init__(self):
        self.tables = {"event_names": {}, "event_categories": {}, "debug_annotation_names": {}, "debug_annotation_string_values": {}}
        self.tracks, self.open, self.slices, self.flows, self.counts = {}, {}, [], {}, {}
        self.last, self.events = 0, 0

    def intern(self, data):
        for name, table in self.tables.items():
            for entry in getattr(data, name):
                text = entry.str.decode() if name == "debug_annotation_string_values" else entry.name
                if entry.iid == 0 or entry.iid in table:
                    fail(f"{name}: number {entry.iid} twice, or 0")
                table[entry.iid] = text

    def describe(self, track):
        if track.uuid == 0 or track.uuid in self.tracks:
            fail(f"track {track.uuid} twice, or 0")
        self.tracks[track.uuid] = track
        self.open[track.uuid] = []

    def notes(self, event):
        for note in event.debug_annotations:
            name = self.tables["debug_annotation_names"][note.name_iid]
            is_text = note.HasField("string_value_iid")
            yield name, self.tables["debug_annotation_string_values"][note.string_value_iid] if is_text else note.int_value

    def take(self, packet):
        if packet.trusted_packet_sequence_id == 0:
            fail("a packet without a sequence")
        if packet.HasField("interned_data"):
            if packet.sequence_flags != 3:
                fail("texts whose packet does not begin its sequence")
            self.intern(packet.interned_data)
        if packet.HasField("track_descriptor"):
            self.describe(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.event(packet.timestamp, packet.track_event)

    def event(self, at, event):
        if not 0 < at < NS_MAX or at < self.last:
            fail(f"time {at} after {self.last}")
        self.last = at
        self.events += 1
        if event.track_uuid not in self.tracks:
            fail(f"there is no track {event.track_uuid}")
        stack = self.open[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            category = self.tables["event_categories"][event.category_iids[0]]
            made = {"track": event.track_uuid, "name": self.tables["event_names"][event.name_iid], "category": category,
                    "begin": at, "depth": len(stack), "notes": dict(self.notes(event)), "flows": list(event.flow_ids)}
            for flow in event.flow_ids:
                self.flows.setdefault(flow, []).append(made)
            stack.append(made)
            self.slices.append(made)
        elif event.type == event.TYPE_SLICE_END:
            if not stack:
                fail(f"an end without a begin on track {event.track_uuid}")
            stack.pop()["end"] = at
        elif event.type == event.TYPE_COUNTER:
            if not self.tracks[event.track_uuid].HasField("counter") or event.counter_value < 0:
                fail("a count that is none")
            self.counts.setdefault(event.track_uuid, []).append(event.counter_value)
        else:
            fail(f"an event of type {event.type}")

    def process_of(self, track):
        track = self.tracks[track]
        if track.HasField("process"):
            return track.process.pid
        return track.thread.pid if track.HasField("thread") else self.process_of(track.parent_uuid)

    def finish(self):
        for uuid, stack in self.open.items():
            if stack:
                fail(f"{stack[-1]['name']} of track {uuid} has no end")
        for made in self.slices:
            if made["end"] < made["begin"]:
                fail(f"{made['name']} ends before it begins")
        for flow, ends in self.flows.items():
            names = {end["name"] for end in ends}
            if len(ends) != 2 or len(names) != 1 or len({self.process_of(end["track"]) for end in ends}) != 2:
                fail(f"flow {flow} joins {len(ends)} slices, {names}")


def read(path):
    reader = Reader()
    with open(path, "rb") as file:
        for packet in packets_of(file.read()):
            reader.take(packet)
    reader.finish()
    return reader


def counted(reader):
    found = {"flows": len(reader.flows), "processes": sum(t.HasField("process") for t in reader.tracks.values())}
    for made in reader.slices:
        found[made["category"]] = found.get(made["category"], 0) + 1
    return found


def check(found, wanted, who):
    for word in wanted:
        name, number = word.split("=")
        if found.get(name, 0) != int(number):
            fail(f"{who}: {found.get(name, 0)} of {name}, and there have to be {number}")


# ---- trace_processor, where it is -------------------------------------------------------------------------


def by_processor(path, program):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=program)) as processor:
        def one(text):
            return next(iter(processor.query(text))).n

        errors = one("select ifnull(sum(value), 0) as n from stats where severity = 'error'")
        negative = one("select count(*) as n from slice where dur < 0")
        if errors or negative:
            fail(f"trace_processor: {errors} import errors, {negative} slices without an end")
        found = {"flows": one("select count(*) as n from flow"),
                 "processes": one("select count(distinct upid) as n from process where upid in (select upid from thread join thread_track using (utid))")}
        for row in processor.query("select category as c, count(*) as n from slice group by category"):
            found[row.c] = row.n
        return found


def main(path, *wanted):
    reader = read(path)
    found = counted(reader)
    check(found, wanted, "the schema")
    print(f"{os.path.getsize(path)} bytes, {os.path.getsize(path) / reader.events:.1f} an event; {found}")
    program = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if not program:
        print("trace_processor is not installed: its SQL was not asked")
        return
    check(by_processor(path, program), [f"{name}={n}" for name, n in found.items()], "trace_processor")


if __name__ == "__main__":
    main(*sys.argv[1:])
