"""Turns what a function returned into JSON."""

import json
import sys


class NoJson(Exception):
    """A value cannot be written as JSON; the text says which and what to do."""


def encode(value):
    """A value as JSON text in UTF-8."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        try:
            text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except RecursionError:
            raise NoJson("the value is nested too deeply, or holds itself") from None
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Lone surrogates, such as `os.listdir` gives for names that are not UTF-8.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def plain(value, path="", inside=()):
    """A value of JSON's own types that says the same."""
    if value is None or value is True or value is False or type(value) in (str, int):
        return value
    if type(value) is float:
        # JSON has neither NaN nor infinity; `null` is what JavaScript makes of them too.
        return value if value - value == 0 else None
    if id(value) in inside:
        raise NoJson("the value at `%s` holds itself" % (path or "/"))
    inside = inside + (id(value),)
    if isinstance(value, dict):
        return {_key(key, path): plain(item, "%s/%s" % (path, key), inside) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [plain(item, "%s/%d" % (path, index), inside) for index, item in enumerate(value)]
    return plain(_other(value, path), path, inside)


def _key(key, path):
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    converted = _other(key, path)
    if isinstance(converted, (str, int, float, bool)):
        return str(converted)
    raise NoJson("the key %r at `%s` is no text; use `str(key)`" % (key, path or "/"))


def _is(value, module, *kinds):
    """Whether a value is of a class of a module. A module that was never imported has no values, so that nothing
    need be imported here, during a call."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, kind) for kind in kinds))


def _other(value, path):
    if _is(value, "enum", "Enum"):
        return value.value
    for kind in (bool, str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: getattr(value, name) for name in value.__dataclass_fields__ if hasattr(value, name)}
    if isinstance(value, tuple):
        return dict(zip(value._fields, value))
    if _is(value, "datetime", "datetime", "date", "time"):
        text = value.isoformat()
        return None if text == "NaT" else text
    if _is(value, "datetime", "timedelta"):
        return value.total_seconds()
    if _is(value, "decimal", "Decimal"):
        if not value.is_finite():
            return None
        number = int(value) if value == value.to_integral_value() else float(value)
        return number if repr(number) == str(value.normalize()) or number == value else str(value)
    if _is(value, "fractions", "Fraction"):
        return float(value)
    if _is(value, "uuid", "UUID") or _is(value, "pathlib", "PurePath"):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise NoJson(
                "the bytes at `%s` are not text; return `base64.b64encode(value).decode()`, or an image as "
                '{"content": [{"type": "image", "data": <base64>, "mimeType": "image/png"}]}' % (path or "/")
            ) from None
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    return _of_library(value, path)


def _of_library(value, path):
    """Tables, arrays and scalars of numpy and pandas, models of pydantic, and whatever behaves like them."""
    kind = type(value).__name__
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if kind == "DataFrame" and hasattr(value, "to_dict"):
        return value.to_dict(orient="records")
    if kind == "NAType":
        return None
    if hasattr(value, "tolist") and callable(value.tolist):
        return value.tolist()
    if hasattr(value, "item") and callable(value.item):
        return value.item()
    if hasattr(value, "to_dict") and callable(value.to_dict):
        return value.to_dict()
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return dict(value)
    if hasattr(value, "__next__") or (hasattr(value, "__len__") and hasattr(value, "__iter__")):
        return list(value)
    raise NoJson(
        "the value at `%s` is a `%s`, which is no JSON; return text, numbers, lists or dictionaries" % (path or "/", kind)
    )
