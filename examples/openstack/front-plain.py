#!/usr/bin/env python3
"""Stands in front of services where Cheops would: forwards bytes and changes nothing.

    front-plain.py LISTEN-ADDRESS UPSTREAM-ADDRESS LOG PORT...

Writes the head of each request it sees into LOG, one JSON object per line.
"""

import asyncio
import json
import re
import sys
import time

HEAD = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n(.*?)\r\n\r\n", re.DOTALL)


def note(log, port, chunk):
    """For people to read, not a parser: sees a head that arrives whole at the start of a chunk."""
    head = HEAD.match(chunk)
    if head is None:
        return
    method, path, lines = (part.decode("latin-1") for part in head.groups())
    headers = dict(line.split(": ", 1) for line in lines.split("\r\n") if ": " in line)
    seen = {"time": time.time(), "port": port, "method": method, "path": path, "headers": headers}
    print(json.dumps(seen), file=log, flush=True)


async def pump(reader, writer, see):
    try:
        while chunk := await reader.read(65536):
            see(chunk)
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()


async def forward(reader, writer, upstream, port, log):
    try:
        up_reader, up_writer = await asyncio.open_connection(upstream, port)
    except OSError:
        writer.close()  # nobody listens there
        return
    await asyncio.gather(
        pump(reader, up_writer, lambda chunk: note(log, port, chunk)),
        pump(up_reader, writer, lambda chunk: None),
    )
    up_writer.close()
    writer.close()


async def main(listen, upstream, log, ports):
    def server(port):
        return asyncio.start_server(
            lambda reader, writer: forward(reader, writer, upstream, port, log), listen, port
        )

    servers = [await server(port) for port in ports]
    await asyncio.gather(*(each.serve_forever() for each in servers))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    with open(sys.argv[3], "a", encoding="utf-8") as log_of_heads:
        asyncio.run(main(sys.argv[1], sys.argv[2], log_of_heads, [int(p) for p in sys.argv[4:]]))
