#!/usr/bin/env python3
"""Writes the border of ha_teak.so as a C++ header, out of what it is in Rust.

Called by scripts/shim.mk. It reads the modules that DIRECTORY/mod.rs names and takes, with their comments,

    pub const TEAK_NAME: u32 = 1;                     a number or bit flag
    #[repr(u32)] pub enum Status                      an enumeration: teak_status, TEAK_NOT_FOUND
    #[repr(C)] pub struct RawBytes                    a structure: teak_bytes
    pub struct TableHandle                            what C++ has only pointers to: teak_table
    pub type WatchFunction = Option<extern "C" fn>    a pointer to a function: teak_watch_function
    #[no_mangle] pub extern "C" fn teak_...           a function

and nothing else. What it does not understand ends it: nothing is left out. The shapes of border.rs become

    Option<&RawOptions>, Option<&mut CursorHandle>    const teak_options *, teak_cursor *
    Option<Box<CursorHandle>>, Out<'_, u64>           teak_cursor *, uint64_t *
    Array<'_, RawEntry<'_>>, Room<'_, u64>            teak_array<teak_entry>, teak_room<uint64_t>
    Bytes<'_>, Context, OwnThread                     teak_bytes, void *, teak_thread *

usage: scripts/border.py DIRECTORY > teak_ffi.h
"""
import re
import sys
import textwrap
from pathlib import Path

PRIMITIVES = {
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "usize": "size_t", "i64": "int64_t", "isize": "ptrdiff_t",
    "c_int": "int", "c_char": "char", "c_void": "void",
}
DOC = r"(?P<doc>(?:^[ ]*///[^\n]*\n)*)"
ATTRIBUTES = r"(?P<attributes>(?:^[ ]*\#\[[^\n]*\n)*)"
ITEM = re.compile(DOC + ATTRIBUTES + r"""(?:
    ^pub\ const\ (?P<const>TEAK_\w+):\ (?P<const_type>\w+)\ =\ (?P<value>[\w:]+);
  | ^pub\ enum\ (?P<enum>\w+)\ \{(?P<variants>[^}]*)^\}
  | ^pub\ struct\ (?P<struct>\w+)(?P<generics><[^>]*>)?\ \{(?P<fields>[^}]*)^\}
  | ^pub\ type\ (?P<function_type>\w+Function)\ =\s*(?P<signature>[^;]*);
  | ^pub\ (?:unsafe\ )?extern\ "C"\ fn\ (?P<function>\w+)\((?P<arguments>[^{]*?),?\s*\)(?:\ ->\ (?P<result>[^{,\n]*?))?\ \{
)""", re.MULTILINE | re.VERBOSE)
FIELD = re.compile(DOC + r"^    (?:pub )?(?P<name>\w+): (?P<type>[^\n]*),$", re.MULTILINE)
# Of a type in Rust, what C++ does not say, or says with a pointer.
SHAPES = [
    (re.compile(r"<'\w+>|(?<=<)'\w+, |(?<=&)'\w+ "), ""),
    (re.compile(r"\bArc<(\w+)>"), r"\1"),
    (re.compile(r"\bContext\b"), "*mut c_void"),
    (re.compile(r"^OwnThread$"), "*mut RawThread"),
    (re.compile(r"^Option<&mut (.*)>$|^Option<Box<(.*)>>$|^Box<(.*)>$|^Out<(.*)>$"), r"*mut \1\2\3\4"),
    (re.compile(r"^Option<&(.*)>$"), r"*const \1"),
]
VARIANT = re.compile(DOC + r"^    (?P<name>\w+) = (?P<value>\d+),$", re.MULTILINE)
FUNCTION_TYPE = re.compile(r'(?:Option<)?(?:unsafe )?extern "C" fn\((?P<arguments>.*)\)(?: -> (?P<result>[^>]*))?>?$')


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def type_name(rust):
    """RawBytes, TableHandle: teak_bytes, teak_table"""
    return "teak_" + snake(re.sub(r"^Raw|Handle$", "", rust))


def arguments_of(text):
    """Splits at the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "(<[") - (letter in ")]" or (letter == ">" and text[place - 1] != "-"))
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def declaration(rust, name="", constant=False):
    """How C declares `name` with a type of Rust."""
    rust = " ".join(rust.split())
    for pattern, pointer in SHAPES:
        rust = pattern.sub(pointer, rust)
    if function := FUNCTION_TYPE.match(rust):
        return prototype(f"(*{name})", function["arguments"], function["result"])
    if array := re.match(r"\[(\w+); (\w+)\]$", rust):
        return declaration(array[1], f"{name}[{array[2]}]")
    qualifier = "const " * constant
    if pointer := re.match(r"\*(const|mut) (.*)$", rust):
        return declaration(pointer[2], f"*{qualifier}{name}", pointer[1] == "const")
    if many := re.match(r"(Array|Room)<(.*)>$", rust):
        return f"{type_name(many[1])}<{declaration(many[2])}> {name}".rstrip()
    if not re.match(r"\w+$", rust):
        sys.exit(f"border.py: no type for C: {rust}")
    known = "T" if rust == "T" else PRIMITIVES.get(rust) or type_name(rust)
    text = f"{qualifier}{known} {name}".rstrip()
    return re.sub(r" (\*+)(\w|$)", r"\1 \2", text).rstrip()


def prototype(name, arguments, result):
    parts = []
    for argument in arguments_of(arguments):
        named = re.match(r"(\w+): (.*)$", argument, re.DOTALL)
        parts.append(declaration(named[2], named[1]) if named else declaration(argument))
    returned = declaration(result, name) if result else f"void {name}"
    return f"{returned}({', '.join(parts) or 'void'})"


def comment(doc, indent=""):
    """Rust's doc comment as one of C, without the brackets of links."""
    text = "\n".join(re.sub(r"^\s*//[/!] ?", "", line) for line in doc.splitlines())
    text = re.sub(r"\[(`[^`\]]*`)\](\([^)]*\))?", r"\1", text).strip()
    paragraphs = []
    for paragraph in re.split(r"\n\n+|\n(?=- )", text):
        if paragraph.startswith("```"):
            paragraph = re.sub(r"^```.*\n?", "", paragraph, flags=re.MULTILINE)
        else:
            paragraph = textwrap.fill(" ".join(paragraph.split()), 114 - len(indent))
        paragraphs.append(textwrap.indent(paragraph, indent + "   "))
    return indent + "/*" + "\n\n".join(paragraphs).strip("\n")[len(indent) + 2:] + " */\n" if text else ""


def wrapped(text):
    return textwrap.fill(text, 120, subsequent_indent=" " * 8, break_long_words=False) + "\n"


class Item:
    """One thing of the border: its text, and what it must come behind. All structures are declared before: a pointer to
    one needs nothing else."""

    def __init__(self, text, name=None, needs=()):
        self.text, self.name, self.needs = text, name, needs


def constant(found):
    kind = PRIMITIVES[found["const_type"]]
    value = found["value"].replace("u32::MAX", "UINT32_MAX")
    return Item(comment(found["doc"]) + f"constexpr {kind} {found['const']} = {value};\n")


def enumeration(found):
    lines = [f"enum {type_name(found['enum'])} : uint32_t {{\n"]
    for variant in VARIANT.finditer(found["variants"]):
        lines.append(comment(variant["doc"], "    "))
        lines.append(f"    TEAK_{snake(variant['name']).upper()} = {variant['value']},\n")
    return Item(comment(found["doc"]) + "".join(lines) + "};\n", type_name(found["enum"]))


def function_type(found):
    name = type_name(found["function_type"])
    return Item(comment(found["doc"]) + wrapped(f"typedef {declaration(found['signature'], name)};"), name)


def function(found):
    text = prototype(found["function"], found["arguments"], found["result"])
    needs = re.findall(r"\bteak_(?:status|\w+_function)\b", text)
    return Item(comment(found["doc"]) + wrapped(text + ";"), needs=needs)


def structure(found):
    name, lines, needs = type_name(found["struct"]), [], []
    fields = list(FIELD.finditer(found["fields"]))
    if len(fields) != len(re.findall(r"^    \w[^\n]*: ", found["fields"], re.MULTILINE)):
        sys.exit(f"border.py: fields of {found['struct']} that are not understood")
    for field in fields:
        if field["type"].startswith("PhantomData<"):
            continue
        lines.append(comment(field["doc"], "    "))
        lines.append(f"    {declaration(field['type'], field['name'])};\n")
        by_value = re.match(r"(\w+)(?:<'\w+>)?$", field["type"])
        if by_value and by_value[1] not in PRIMITIVES:
            needs.append(type_name(by_value[1]))
    if is_template(found):
        return Item(f"extern \"C++\" {{\n{comment(found['doc'])}template <typename T> struct {name} "
                    f"{{\n{''.join(lines)}}};\n}}\n", name, needs)
    return Item(comment(found["doc"]) + f"struct {name} {{\n{''.join(lines)}}};\n", name, needs)


def is_structure(found):
    return found["struct"] and "#[repr(C)]" in found["attributes"]


def is_template(found):
    return is_structure(found) and "T" in (found["generics"] or "")


def module(source, path):
    """The items of a module, in their order."""
    items, exported = [], 0
    for found in ITEM.finditer(source):
        if found["const"]:
            items.append(constant(found))
        elif found["enum"] and "#[repr(u32)]" in found["attributes"]:
            items.append(enumeration(found))
        elif is_structure(found):
            exported += 1
            if not is_template(found):
                items.append(structure(found))
        elif found["function_type"]:
            items.append(function_type(found))
        elif found["function"]:
            exported += 1
            items.append(function(found))
    if exported != len(re.findall(r"^#\[(?:no_mangle|repr\(C\))\]", source, re.MULTILINE)):
        sys.exit(f"border.py: {path} has functions or structures that are not understood")
    return items


def declarations(sources):
    """What C++ has only pointers to, with its comment, and the names of all structures."""
    structures = {found["struct"]: found for source in sources for found in ITEM.finditer(source) if found["struct"]}
    handles = {name for source in sources for name in re.findall(r"\b[A-Z]\w*Handle\b", source)}
    docs = {name: structures[name]["doc"] if name in structures else "" for name in sorted(handles)}
    docs |= {name: "" for name, found in structures.items() if is_structure(found) and not is_template(found)}
    templates = [structure(found).text for found in structures.values() if is_template(found)]
    return "".join([comment(doc) + f"struct {type_name(name)};\n" for name, doc in docs.items()] + templates)


def about(source):
    """The comment on top of a module."""
    return re.match(r"(?://![^\n]*\n)*", source)[0]


def in_order(sections):
    """Each behind those that have the structures it holds as members."""
    made_by = {item.name: at for at, (_, items) in enumerate(sections) for item in items if item.name}
    order = []

    def place(at, above=()):
        if at in above:
            sys.exit("border.py: two modules hold each other's structures")
        if at not in order:
            for maker in {made_by[need] for item in sections[at][1] for need in item.needs if need in made_by} - {at}:
                place(maker, (*above, at))
            order.append(at)

    for at in range(len(sections)):
        place(at)
    return [sections[at] for at in order]


def main():
    directory = Path(sys.argv[1])
    top = (directory / "mod.rs").read_text()
    names = [name for name in re.findall(r"^(?:pub )?mod (\w+);", top, re.MULTILINE) if name != "tests"]
    sources = {name: (directory / f"{name}.rs").read_text() for name in names}
    sections = []
    for name, source in sources.items():
        if items := module(source, f"{name}.rs"):
            title = comment(about(source).split("//!\n")[0])
            sections.append((f"/* {'-' * 114} */\n{title}", items))
    print(comment(about(top)))
    print("#ifndef TEAK_FFI_H\n#define TEAK_FFI_H\n\n#include <stddef.h>\n#include <stdint.h>\n\nextern \"C\" {\n")
    print(declarations(sources.values()))
    for title, items in in_order(sections):
        print(title)
        print("\n".join(item.text for item in items))
    print("}\n#endif")


if __name__ == "__main__":
    main()
