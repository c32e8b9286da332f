"""Random JSON documents for a MySQL."""

from kit.columns import text_of

TEXTS = ("", "\u00e9\n\"\\\t\u0001\u001f\u007f", "x" * 300, "\u8868" * 70)
NUMBERS = (0, -1, 32767, -32768, 32768, 65536, -65537, 2 ** 31, 2 ** 32 + 5, 2 ** 63 - 1, -2 ** 63, 2 ** 64 - 1, 1.5, -0.0, 1e20, 1e-20, 123456789012345.0, 1e15, 0.1)


def document(source, depth=0):
    """One, as Python has it."""
    kind = source.random()
    if kind < 0.5 or depth > 3:
        return source.choice((None, True, False, *NUMBERS, *TEXTS, source.uniform(-1e3, 1e3), source.random() * 10.0 ** source.randrange(-30, 30)))
    if kind < 0.75:
        return [document(source, depth + 1) for _ in range(source.randrange(12))]
    return {text_of(source, "ab\u00e9\"\n\u8868", 8): document(source, depth + 1) for _ in range(source.randrange(9))}


def foreign(source):
    """A document with values of types that JSON has not."""
    return source.choice((
        f"json_array(cast('{source.randrange(1000, 9999)}-01-02' as date), cast('-{source.randrange(838)}:34:56.789' as time(3)), b'1010', cast(2024 as year))",
        f"json_array(cast('2024-01-02 03:04:05.{source.randrange(10 ** 6):06d}' as datetime(6)), cast(-{source.randrange(10 ** 9)}.50 as decimal(30,9)))",
        f"json_object('k', x'{source.randbytes(source.randrange(200)).hex()}', 'p', st_geomfromtext('point(1 2)'))"))
