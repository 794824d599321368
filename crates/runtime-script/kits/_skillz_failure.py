"""Words exceptions: the tool's own frames, those of libraries folded, and what to do where that is known."""

import os

MOST_FRAMES = 8
MOST_CAUSES = 3
_KIT = (os.path.dirname(os.path.abspath(__file__)), os.path.join("python", "skillz.py"), os.path.join("python", "_skillz_values.py"))


def describe(error, entry):
    """An exception as message, kind, traceback and hint."""
    import traceback

    message = exception_line(error)
    parts, seen, current, told = [], set(), error, None
    while current is not None and id(current) not in seen and len(seen) <= MOST_CAUSES:
        seen.add(id(current))
        frames = _frames(traceback.extract_tb(current.__traceback__), entry)
        parts += [told] if told else ["Traceback (most recent call last):"] if frames else []
        parts += frames
        for inner in getattr(current, "exceptions", ())[:5]:
            parts.append("  holds " + exception_line(inner))
        cause = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        told = cause and "%s %s" % ("Caused by" if current.__cause__ else "While handling", exception_line(cause))
        current = cause
    described = {"message": message, "kind": type(error).__name__, "traceback": "\n".join(parts)}
    hint = _hint(error)
    if hint is not None:
        described["hint"] = hint
    return described


def exception_line(error):
    import traceback

    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    if isinstance(error, SyntaxError) and "\n" in text:
        # Its place stands before it, with the line.
        place, _, line = text.rpartition("\n")
        text = "%s\n  %s" % (line, place.replace(os.path.dirname(error.filename or "") + os.sep, "", 1))
    return text if len(text) <= 1500 else text[:1000] + " ... " + text[-400:]


def _frames(stack, entry):
    """The tool's own frames as text, with a line for what lies between them."""
    import traceback

    own, lines, folded, shown = os.path.dirname(entry) + os.sep, [], [], 0

    def fold():
        if folded:
            names = list(dict.fromkeys(folded))
            lines.append("  (%d frame%s of %s)" % (len(folded), "s" * (len(folded) > 1), ", ".join(names[:4])))
            folded.clear()

    for frame in stack:
        if frame.filename.startswith(own):
            if shown:
                fold()
            folded.clear()  # What called the tool is of no interest.
            shown += 1
            frame = traceback.FrameSummary(frame.filename[len(own):], frame.lineno, frame.name, line=frame.line)
            lines.append("".join(traceback.format_list([frame])).rstrip())
        elif not (frame.filename.startswith(_KIT[0] + os.sep) or frame.filename.endswith(_KIT[1:]) or frame.filename.startswith("<frozen importlib")):
            folded.append(_library(frame.filename))
    fold()
    if len(lines) > MOST_FRAMES:
        # Recursion, as a rule: both ends tell what the middle repeats.
        lines[3:-4] = ["  (%d more lines)" % (len(lines) - 7)]
    return lines


def _library(path):
    """`pandas` for `.../site-packages/pandas/core/frame.py`, `json` for `/usr/lib/python3.11/json/decoder.py`."""
    parts = path.replace("\\", "/").split("/")
    for index in range(len(parts) - 2, -1, -1):
        if parts[index] in ("site-packages", "dist-packages") or parts[index].startswith("python3"):
            return parts[index + 1].partition(".")[0]
    return parts[-1]


def _hint(error):
    if isinstance(error, ModuleNotFoundError):
        return "Name the package in `dependencies`, as pip knows it"
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if isinstance(error, KeyError) and last is not None and last.tb_frame.f_globals.get("__name__") == "os":
        return "It has only the environment variables that it asks for. Register it again with `permissions: {\"env\": [\"%s\"]}`" % error.args[0]
    if isinstance(error, ConnectionRefusedError):
        return "Nothing listens there that it can reach; without `permissions: {\"network\": true}` it has a loopback of its own"
    path = getattr(error, "filename", None)
    if isinstance(error, (FileNotFoundError, PermissionError)) or getattr(error, "errno", None) == 30:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return None
        return _hint_for_path(path, getattr(error, "errno", None) != 2)
    return None


def _hint_for_path(path, is_writing):
    if not os.path.isabs(path):
        return None if is_writing else ("A relative path is looked for in the call's own working folder, which starts empty. The user's project lies "
                                        "below `skillz.context.roots[0]`, with a permission such as `permissions: {\"fs\": [{\"path\": \"$ROOT\"}]}`")
    mode = ', "mode": "rw"' if is_writing else ""
    return "It sees the folders that it asks for, and no others. Register it again with `permissions: {\"fs\": [{\"path\": \"%s\"%s}]}`" % (os.path.dirname(path) or "/", mode)
