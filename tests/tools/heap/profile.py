"""What is in a dump, as other programs read it: pprof's protobuf, and the texts of jeprof and google-pprof."""

import gzip
import subprocess

VARINT, BYTES = 0, 2


def fields(message):
    """Number and value of each field of a message of protobuf: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            number |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return number

    while at < len(message):
        key = varint()
        if key & 7 == VARINT:
            yield key >> 3, varint()
        elif key & 7 == BYTES:
            length = varint()
            at += length
            yield key >> 3, message[at - length:at]
        else:
            raise ValueError(f"kind {key & 7} of a field")


def numbers(packed):
    """The numbers of a packed field."""
    found, shift = [0], 0
    for byte in packed:
        found[-1] |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found, shift = found + [0], 0
    return found[:-1]


class Profile:
    """A profile of pprof: its samples are names of functions, the innermost first, values by kind, and labels."""

    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            top = list(fields(file.read()))
        of = {number: [value for key, value in top if key == number] for number in range(1, 15)}
        self.texts = [text.decode() for text in of[6]]
        functions = {dict(fields(function))[1]: self.texts[dict(fields(function))[2]] for function in of[5]}
        lines = {}
        for location in of[4]:
            parts = list(fields(location))
            lines[dict(parts)[1]] = [functions[dict(fields(value))[1]] for key, value in parts if key == 4]
        self.kinds = [self.texts[dict(fields(kind))[1]] for kind in of[1]]
        self.period = of[12][0]
        self.mappings = [self.texts[dict(fields(mapping))[5]] for mapping in of[3]]
        self.samples = []
        for sample in of[2]:
            parts = list(fields(sample))
            stack = [name for location in numbers(dict(parts)[1]) for name in lines[location]]
            labels = {}
            for key, value in parts:
                if key == 3:
                    label = dict(fields(value))
                    labels[self.texts[label[1]]] = self.texts[label[2]] if 2 in label else label[3]
            self.samples.append((stack, dict(zip(self.kinds, numbers(dict(parts)[2]))), labels))

    def bytes_by_innermost(self):
        """Bytes in use by the innermost function."""
        found = {}
        for stack, values, _ in self.samples:
            found[stack[0]] = found.get(stack[0], 0) + values["inuse_space"]
        return found


def read_by(program, server, path):
    """What `jeprof` or `google-pprof` says of a dump: megabytes by function, the most first."""
    said = subprocess.run([program, "--text", server, path], check=True, capture_output=True, text=True, timeout=120).stdout
    lines = [line.split(None, 5) for line in said.splitlines() if "%" in line]
    return [(line[5], float(line[0])) for line in lines]
