"""Makes a history that shows a difference smaller: first by steps, then by the elements of lists within statements (rows of VALUES, columns and keys of CREATE
TABLE, changes of ALTER TABLE)."""

import time


def shrunk(steps, play, difference, seconds):
    """The smallest history found within `seconds` for which `play` still gives a difference of the same kind, and that difference."""
    end = time.monotonic() + seconds
    best = [list(steps), difference]

    def smaller(tried):
        if time.monotonic() > end:
            return False
        found = play(tried)
        if found is None or found.kind != difference.kind:
            return False
        best[0], best[1] = tried, found
        return True

    by_steps(best, smaller, end)
    by_elements(best, smaller, end)
    by_steps(best, smaller, end)
    return best[0], best[1]


def by_steps(best, smaller, end):
    """Leaves out runs of steps, shorter and shorter ones, from the end on. The last step is what shows the difference."""
    length = max(len(best[0]) // 2, 1)
    while length and time.monotonic() < end:
        at = len(best[0]) - 1 - length
        found = False
        while at > -length and time.monotonic() < end:
            begin = max(at, 0)
            tried = best[0][:begin] + best[0][at + length:]
            if len(tried) < len(best[0]) and smaller(tried):
                found = True
            at -= length
        if not found or length > 1:
            length = length // 2 if length > 1 else 0


def by_elements(best, smaller, end):
    """Leaves out elements of lists, one at a time."""
    for number in range(len(best[0]) - 1, -1, -1):
        again = True
        while again and time.monotonic() < end:
            again = False
            session, statement = best[0][number]
            for shorter in without_one(statement):
                if smaller(best[0][:number] + [(session, shorter)] + best[0][number + 1:]):
                    again = True
                    break


def without_one(statement):
    """The statement without one element of each list of more than one, in turn."""
    for begin, end in lists(statement):
        parts = divided(statement[begin:end])
        if len(parts) > 1:
            for left in range(len(parts)):
                yield statement[:begin] + ",".join(parts[:left] + parts[left + 1:]) + statement[end:]


def lists(statement):
    """Where lists are: the parenthesis of CREATE TABLE, what follows VALUES, what follows ALTER TABLE's name, SET, or SELECT."""
    lower = statement.lower()
    if lower.startswith("create table") and "(" in statement:
        yield statement.index("(") + 1, closing(statement, statement.index("("))
    elif lower.startswith("alter table"):
        yield len(" ".join(statement.split(" ")[:3])) + 1, len(statement)
    elif " values (" in lower:
        begin = lower.index(" values (") + 8
        ends = [lower.find(word, begin) for word in (" on duplicate", " returning")]
        yield begin, min([end for end in ends if end > 0] or [len(statement)])
    elif lower.startswith("update") and " set " in lower and " where " in lower:
        yield lower.index(" set ") + 5, lower.index(" where ")
    elif lower.startswith("select") and " from " in lower:
        yield 7, lower.index(" from ")


def closing(text, begin):
    """Where the parenthesis at `begin` ends."""
    depth, quoted = 0, False
    for at in range(begin, len(text)):
        if text[at] == "'":
            quoted = not quoted
        elif not quoted:
            depth += (text[at] == "(") - (text[at] == ")")
            if depth == 0:
                return at
    return len(text)


def divided(text):
    """The elements of a list, at its commas outside of parentheses and strings."""
    parts, depth, quoted, begin = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                parts.append(text[begin:at])
                begin = at + 1
    return parts + [text[begin:]]
