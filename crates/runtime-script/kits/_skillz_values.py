"""Turns Python values into JSON, by one rule for function scripts and for programs of `execute_code`.

Nothing is imported here but what an interpreter has loaded anyway: a value of a library's class can only be there
where that library was imported, so that its classes are found in `sys.modules`.
"""

import binascii
import json
import sys

DEEPEST = 128
_SCALARS = frozenset((str, int, float, bool, type(None)))
_MOST_NOTES = 5


class NoJson(Exception):
    """A value cannot be written as JSON; the text says which and where."""


def to_json(value, place="result"):
    """The value as JSON text, and where in it there were numbers that JSON does not have."""
    notes = []
    converted = _Conversion(notes).value(value, place, 0)
    try:
        text = _write(converted)
    except ValueError:
        # Some number is none of JSON's, or has too many digits: now each is looked at.
        text = _write(_Conversion(notes, looks_at_numbers=True).value(converted, place, 0))
    if notes[_MOST_NOTES:]:
        notes[_MOST_NOTES:] = ["and %d more" % (len(notes) - _MOST_NOTES)]
    try:
        text.encode()
    except UnicodeEncodeError:
        # Lone surrogates, such as `os.listdir` gives for names that are not UTF-8.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text, "%s became null: JSON has no NaN and no infinity" % ", ".join(notes) if notes else None


def _write(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _is(value, module, *kinds):
    """Whether a value is of one of a module's classes."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return False
    return isinstance(value, tuple(kind for kind in (getattr(loaded, name, None) for name in kinds) if isinstance(kind, type)))


class _Conversion:
    def __init__(self, notes, looks_at_numbers=False):
        self._notes = notes
        self._looks_at_numbers = looks_at_numbers

    def value(self, value, place, depth):
        kind = type(value)
        if kind in _SCALARS:
            return self._number(value, place) if self._looks_at_numbers else value
        if depth >= DEEPEST:
            raise NoJson("%s is nested more than %d deep, or holds itself" % (_short(place), DEEPEST))
        if kind is list or kind is tuple:
            return self._list(value, place, depth)
        if kind is dict:
            return self._object(value.items(), place, depth)
        try:
            return self._other(value, place, depth)
        except (NoJson, MemoryError):
            raise
        except Exception as error:
            raise NoJson("%s, a `%s`, could not be turned into JSON: %s: %s" % (_short(place), kind.__name__, type(error).__name__, error)) from None

    def _number(self, value, place):
        if type(value) is float and value - value != 0:
            self._notes.append(_short(place))
            return None
        if type(value) is int and value.bit_length() > 14280 and abs(value) >= 10**4300:
            raise NoJson("%s is a whole number of more than 4300 digits; return it as text" % _short(place))
        return value

    def _list(self, items, place, depth):
        if not self._looks_at_numbers and type(items) in (list, tuple) and _SCALARS.issuperset(map(type, items)):
            return items
        return [self.value(item, "%s[%d]" % (place, index), depth + 1) for index, item in enumerate(items)]

    def _object(self, pairs, place, depth):
        made = {}
        for key, item in pairs:
            name = key if type(key) is str else self._key(key, place)
            if name in made:
                raise NoJson("%s has two entries that are both `%s` as text" % (_short(place), name))
            made[name] = item if type(item) in _SCALARS and not self._looks_at_numbers else self.value(item, "%s[%s]" % (place, _quoted(name)), depth + 1)
        return made

    def _key(self, key, place):
        """A text is the key, anything else its JSON."""
        where = "a key of %s" % _short(place)
        converted = _Conversion([], looks_at_numbers=True).value(key, where, 0)
        return converted if isinstance(converted, str) else _write(converted)

    def _fields(self, value, names, place, depth):
        fields = ((name, getattr(value, name)) for name in names if hasattr(value, name))
        return {name: self.value(field, "%s.%s" % (place, name), depth + 1) for name, field in fields}

    def _other(self, value, place, depth):
        kind = type(value)
        if isinstance(value, type) or _is(value, "types", "FunctionType", "BuiltinFunctionType", "MethodType", "ModuleType"):
            raise _no_rule(value, place)
        if _is(value, "enum", "Enum"):
            return self.value(value.value, place, depth + 1)
        for simple in (str, int, float):
            if isinstance(value, simple):
                return self.value(simple(value), place, depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return binascii.b2a_base64(bytes(value), newline=False).decode()
        if kind.__module__.partition(".")[0] in ("numpy", "pandas"):
            return self._of_tables(value, place, depth)
        text = _text_of(value)
        if text is not None:
            return text
        if _is(value, "datetime", "timedelta"):
            return _seconds(value.total_seconds())
        if hasattr(kind, "model_dump"):
            return self.value(value.model_dump(by_alias=True), place, depth)
        if hasattr(kind, "__dataclass_fields__"):
            return self._fields(value, [field.name for field in sys.modules["dataclasses"].fields(value)], place, depth)
        if hasattr(kind, "__attrs_attrs__"):
            return self._fields(value, [attribute.name for attribute in kind.__attrs_attrs__], place, depth)
        if _is(value, "types", "SimpleNamespace") or _is(value, "argparse", "Namespace"):
            return self._fields(value, list(vars(value)), place, depth)
        if isinstance(value, tuple):
            names = getattr(kind, "_fields", None) or (hasattr(kind, "n_sequence_fields") and getattr(kind, "__match_args__", None))
            return self._fields(value, names, place, depth) if names else self._list(value, place, depth)
        if _is(value, "matplotlib.axes", "Axes"):
            return _image(value.figure)  # What `DataFrame.plot` gives.
        if _is(value, "PIL.Image", "Image") or _is(value, "matplotlib.figure", "Figure"):
            return _image(value)
        return self._collection(value, place, depth)

    def _collection(self, value, place, depth):
        if isinstance(value, dict) or _is(value, "_collections_abc", "Mapping"):
            return self._object(value.items(), place, depth)
        if _is(value, "sqlite3", "Row"):
            return self._object(zip(value.keys(), tuple(value)), place, depth)
        if isinstance(value, (set, frozenset)):
            return self._set(value, place, depth)
        if _is(value, "_collections_abc", "Sequence", "MappingView", "Set") or _is(value, "collections", "deque") or _is(value, "array", "array"):
            return self._list(value, place, depth)
        if hasattr(type(value), "__next__") and not _is(value, "_io", "_IOBase"):
            return self._list(value, place, depth)
        # Tables and arrays of other libraries.
        for method in ("to_dicts", "to_pylist", "tolist"):
            convert = getattr(value, method, None)
            if callable(convert):
                return self.value(convert(), place, depth + 1)
        raise _no_rule(value, place)

    def _set(self, value, place, depth):
        try:
            # Sets among themselves are ordered by what they hold, which is no order to sort by.
            items = None if any(isinstance(item, (set, frozenset)) for item in value) else sorted(value)
        except TypeError:
            items = None
        if items is not None:
            return self._list(items, place, depth)
        return sorted(self._list(value, place, depth), key=lambda item: json.dumps(item, sort_keys=True))

    def _of_tables(self, value, place, depth):
        """What numpy and pandas have: scalars, arrays, series, frames, indexes."""
        name = type(value).__name__
        if name in ("NAType", "NaTType"):
            return None
        if _is(value, "pandas", "DataFrame"):
            return self._frame(value, place, depth)
        if _is(value, "pandas", "Series"):
            return self._object(zip(value.index.tolist(), value.tolist()), place, depth)
        if _is(value, "datetime", "datetime"):
            return value.isoformat()
        if _is(value, "datetime", "timedelta"):
            return _seconds(value.total_seconds())
        if _is(value, "pandas", "Period", "Interval"):
            return str(value)
        dtype = getattr(value, "dtype", None)
        if _is(value, "numpy", "ndarray") and value.ndim:
            if dtype.kind in "mMgGV":
                return self._list(list(value), place, depth)
            return self.value(value.tolist(), place, depth)
        if _is(value, "numpy", "generic", "ndarray"):
            return self._scalar(value[()], dtype, place, depth)
        if callable(getattr(value, "tolist", None)):
            return self.value(value.tolist(), place, depth)
        raise _no_rule(value, place)

    def _scalar(self, value, dtype, place, depth):
        if dtype.kind == "M":
            return None if str(value) == "NaT" else str(value)
        if dtype.kind == "m":
            # Months and years have no length in seconds.
            is_plain = sys.modules["numpy"].datetime_data(dtype)[0] not in ("M", "Y", "generic")
            seconds = value / sys.modules["numpy"].timedelta64(1, "s") if is_plain else None
            return None if str(value) == "NaT" else str(value) if seconds is None else _seconds(float(seconds))
        if dtype.names:
            return self._object(zip(dtype.names, value.item()), place, depth)
        item = value.item() if hasattr(value, "item") else value
        if dtype.kind in "gf":
            item = float(item)
        return str(item) if dtype.kind in "cG" else self.value(item, place, depth + 1)

    def _frame(self, frame, place, depth):
        """Rows as objects; an index that is not the default one is a column, or several."""
        index = frame.index
        is_default = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
        columns = []
        if not is_default:
            names = [given if given is not None else "index" if index.nlevels == 1 else "level_%d" % level for level, given in enumerate(index.names)]
            columns += [(given, index.get_level_values(level).tolist()) for level, given in enumerate(names)]
        columns += [(label, frame.iloc[:, number].tolist()) for number, label in enumerate(frame.columns.tolist())]
        labels = list(self._object(((label, None) for label, _ in columns), "the columns of " + _short(place), depth))
        rows = zip(*(values for _, values in columns)) if columns else ()
        return [self._object(zip(labels, row), "%s[%d]" % (place, number), depth + 1) for number, row in enumerate(rows)]


def _seconds(seconds):
    return int(seconds) if seconds.is_integer() else seconds


def _text_of(value):
    """What has one usual form as text."""
    if _is(value, "datetime", "datetime", "date", "time"):
        return value.isoformat()
    if (_is(value, "decimal", "Decimal") or _is(value, "uuid", "UUID") or _is(value, "pathlib", "PurePath") or _is(value, "fractions", "Fraction")
            or isinstance(value, complex) or _is(value, "collections", "UserString") or _is(value, "datetime", "tzinfo")
            or type(value).__module__.partition(".")[0] in ("ipaddress", "pydantic_core") or type(value).__module__ in ("pydantic.networks", "pydantic.types")):
        return str(value)
    if _is(value, "re", "Pattern") and isinstance(value.pattern, str):
        return value.pattern
    if isinstance(value, BaseException):
        return "%s: %s" % (type(value).__name__, value)
    return None


def _image(value):
    """An MCP image block."""
    import io  # Loaded by the interpreter itself.

    file = io.BytesIO()
    if hasattr(value, "savefig"):
        value.savefig(file, format="png")
    else:
        image = value if value.mode in ("1", "L", "LA", "P", "I", "I;16", "RGB", "RGBA") else value.convert("RGB")
        image.save(file, format="PNG")
    return {"type": "image", "data": binascii.b2a_base64(file.getvalue(), newline=False).decode(), "mimeType": "image/png"}


def _no_rule(value, place):
    why = getattr(type(value), "_why_no_json", None)
    if why is not None:
        return NoJson("%s: %s" % (_short(place), why(value)))
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    kind = "the class `%s` itself" % name if isinstance(value, type) else "a `%s`" % name
    return NoJson("%s is %s, which has no form as JSON; return texts, numbers, lists or dictionaries of what matters in it" % (_short(place), kind))


def _quoted(name):
    return json.dumps(name[:40], ensure_ascii=False)


def _short(place):
    return place if len(place) <= 200 else place[:100] + " ... " + place[-60:]
