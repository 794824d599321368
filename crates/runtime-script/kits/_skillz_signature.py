"""Reads a function's signature: a JSON Schema of its arguments and result, and how JSON becomes its arguments.

Used by `_skillz_worker`: once when a tool is registered (schemas), once when a worker starts (conversion).
"""

import collections.abc
import dataclasses
import enum
import inspect
import json
import re
import sys
import types
import typing

from _skillz_values import NoJson, to_json

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_WHOLE = ("args", "arguments", "params", "parameters", "input", "inputs", "payload", "data")



def _loaded(module, name):
    """A class of a module; None where the module was never imported, so that it cannot be meant."""
    return getattr(sys.modules.get(module), name, None)


def _text_type(kind):
    """The schema and the conversion of a type that JSON writes as text; None for others."""
    name = getattr(kind, "__name__", "")
    if name in ("datetime", "date", "time") and _loaded("datetime", name) is kind:
        form = "date-time" if name == "datetime" else name
        return {"type": "string", "format": form}, lambda text: kind.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)
    if name == "timedelta" and _loaded("datetime", name) is kind:
        return {"type": ["number", "string"], "format": "duration"}, lambda value: _duration(kind, value)
    if name == "UUID" and _loaded("uuid", name) is kind:
        return {"type": "string", "format": "uuid"}, kind
    if name == "Decimal" and _loaded("decimal", name) is kind:
        return {"type": ["number", "string"]}, lambda value: _decimal(kind, value)
    if name.endswith("Path") and _loaded("pathlib", name) is kind:
        return {"type": "string"}, kind
    if kind in (bytes, bytearray):
        return {"type": "string", "contentEncoding": "base64"}, lambda text: kind(_base64(text))
    if getattr(kind, "__module__", "") == "ipaddress" and isinstance(kind, type):
        return {"type": "string"}, kind
    return None


_DURATION = re.compile(r"([+-]?)P(?:(\d+)W)?(?:(\d+(?:[.,]\d+)?)D)?(?:T(?:(\d+(?:[.,]\d+)?)H)?(?:(\d+(?:[.,]\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?")


def _duration(kind, value):
    """Seconds, or ISO 8601's form without years and months, which have no fixed length."""
    if not isinstance(value, str):
        return kind(seconds=value)
    match = _DURATION.fullmatch(value.strip().upper())
    if match is None or value.strip()[-1:] in "PpTt":
        raise ValueError("`%s` is no duration; give seconds, or a form such as `P1DT2H30M`" % value)
    sign, *parts = match.groups()
    weeks, days, hours, minutes, seconds = (float(part.replace(",", ".")) if part else 0 for part in parts)
    whole = kind(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -whole if sign == "-" else whole


def _decimal(kind, value):
    try:
        return kind(str(value))
    except ArithmeticError:
        raise ValueError("`%s` is no decimal number" % value) from None


def _base64(text):
    import binascii

    try:
        if not re.fullmatch(r"[A-Za-z0-9+/\s]*={0,2}\s*", text):
            raise ValueError
        return binascii.a2b_base64(text)
    except ValueError:
        raise ValueError("it is not base64, in which bytes are given") from None


is_coroutine = inspect.iscoroutinefunction


class BadArgument(Exception):
    """An argument does not fit its type."""


def hints_of(thing, include_extras=True):
    """Type hints as types; those that cannot be resolved are left out."""
    try:
        return _type_hints(thing, include_extras)
    except Exception:
        hints = {}
        namespace = vars(sys.modules.get(getattr(thing, "__module__", ""), types)) if not hasattr(thing, "__globals__") else thing.__globals__
        for name, hint in getattr(thing, "__annotations__", {}).items():
            try:
                hints[name] = eval(hint, dict(namespace)) if isinstance(hint, str) else hint
            except Exception:
                continue
        return hints


def _type_hints(thing, include_extras):
    if sys.version_info >= (3, 9):
        return typing.get_type_hints(thing, include_extras=include_extras)
    return typing.get_type_hints(thing)


def unwrap(hint):
    """A hint without `Annotated`, `Required`, `NotRequired`, `ReadOnly`, `Final`, and what those say about it: a part of
    a schema."""
    said = {}
    while True:
        if hasattr(hint, "__metadata__"):
            for extra in hint.__metadata__:
                _add_said(said, extra)
            hint = hint.__origin__
            continue
        origin = typing.get_origin(hint)
        name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
        if name in ("NotRequired", "Required"):
            said.setdefault("required", name == "Required")
        if name in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar"):
            hint = typing.get_args(hint)[0]
            continue
        if hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
            continue
        if type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
            continue
        return hint, said


_BOUNDS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
    "min_length": "minLength", "max_length": "maxLength", "pattern": "pattern",
}


def _add_said(said, extra):
    """What `Annotated` says: a text, or an object with attributes as `annotated_types` and pydantic name them."""
    text = extra if isinstance(extra, str) else getattr(extra, "description", None) or getattr(extra, "documentation", None)
    if isinstance(text, str):
        said.setdefault("description", text)
    if isinstance(extra, str):
        return
    for name, keyword in _BOUNDS.items():
        bound = getattr(extra, name, None)
        bound = getattr(bound, "pattern", bound)
        if bound is not None and not callable(bound) and _is_json(bound):
            said.setdefault(keyword, bound)
    for inner in getattr(extra, "metadata", None) or () if is_field(extra) else ():
        _add_said(said, inner)


def is_field(thing):
    """Whether this is pydantic's `Field(...)`."""
    kind = _loaded("pydantic.fields", "FieldInfo")
    return kind is not None and isinstance(thing, kind)


def default_of(parameter):
    """A parameter's default, also one inside `Field`; `Parameter.empty` where there is none."""
    default = parameter.default
    if not is_field(default):
        return default
    return parameter.empty if default.is_required() else default.get_default(call_default_factory=True)


def is_typed_dict(hint):
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def is_dataclass(hint):
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_model(hint):
    """A class of pydantic, or one that looks like it."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


class Schemas:
    """Makes schemas of hints; classes that hold themselves become `$defs`."""

    def __init__(self, is_output=False):
        self.definitions = {}
        self._open = {}
        self._is_output = is_output

    def of(self, hint, field=None):
        hint, said = unwrap(hint)
        if field is not None:
            _add_said(said, field)
        said.pop("required", None)
        schema = self._of(hint)
        # Lengths are those of texts, lists or objects.
        kinds = schema.get("type", [])
        unit = "Items" if "array" in kinds else "Properties" if "object" in kinds else "Length"
        for keyword, value in said.items():
            schema[keyword.replace("Length", unit)] = value
        return schema

    def _of(self, hint):
        if hint in (inspect.Parameter.empty, typing.Any, object):
            return {}
        if hint is None:
            return {"type": "null"}
        origin, parameters = typing.get_origin(hint), typing.get_args(hint)
        if origin in _UNIONS:
            return self._union(parameters)
        if getattr(origin, "_name", None) == "Literal" or origin is getattr(typing, "Literal", None):
            return _enumeration(list(parameters))
        if isinstance(hint, typing.TypeVar):
            return self.of(hint.__bound__) if hint.__bound__ else {}
        base = origin or hint
        if not isinstance(base, type):
            return {}
        if is_model(base) or (is_of_pydantic(base) and not is_dataclass(base)):
            return self._model(hint)
        if is_typed_dict(base) or is_dataclass(base) or is_named_tuple(base):
            return self._object(base)
        if issubclass(base, enum.Enum):
            return {"type": "integer"} if issubclass(base, enum.Flag) else _enumeration(list(base))
        return self._container(base, parameters)

    def _container(self, base, parameters):
        for kind, name in _SIMPLE.items():
            if base is kind:
                return {"type": name}
        text = _text_type(base)
        if text is not None:
            schema = dict(text[0])
            if self._is_output and isinstance(schema["type"], list):
                return {"type": "number" if "format" in schema else "string"}
            return schema
        if issubclass(base, tuple):
            return self._tuple(parameters)
        if issubclass(base, (set, frozenset, collections.abc.Set)):
            return {"type": "array", "items": self.of(parameters[0]) if parameters else {}, "uniqueItems": True}
        if issubclass(base, collections.abc.Mapping):
            schema = {"type": "object"}
            if len(parameters) == 2:
                values = self.of(parameters[1])
                if values:
                    schema["additionalProperties"] = values
            return schema
        if issubclass(base, (collections.abc.Sequence, collections.abc.Iterable)) and not issubclass(base, str):
            return {"type": "array", "items": self.of(parameters[0]) if parameters else {}}
        for kind, name in _SIMPLE.items():
            if issubclass(base, kind):
                return {"type": name}
        return {}

    def _tuple(self, parameters):
        if not parameters:
            return {"type": "array", "items": {}}
        if len(parameters) == 2 and parameters[1] is Ellipsis:
            return {"type": "array", "items": self.of(parameters[0])}
        items = [self.of(parameter) for parameter in parameters if parameter != ()]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}

    def _union(self, members):
        schemas = []
        for member in members:
            schema = self.of(member)
            if schema not in schemas:
                schemas.append(schema)
        if {} in schemas:
            return {}
        if all(set(schema) == {"type"} and isinstance(schema["type"], str) for schema in schemas):
            names = [schema["type"] for schema in schemas]
            return {"type": names if len(names) > 1 else names[0]}
        rest = [schema for schema in schemas if schema != {"type": "null"}]
        nulls = [None] if len(rest) < len(schemas) else []
        if rest and all("enum" in schema for schema in rest):
            said = rest[0] if len(rest) == 1 else {}
            choices = [choice for schema in rest for choice in schema["enum"]]
            return {**said, **_choices(choices + [null for null in nulls if null not in choices])}
        if len(rest) == 1 and nulls and "type" in rest[0] and "$ref" not in rest[0]:
            kinds = rest[0]["type"]
            return {**rest[0], "type": (kinds if isinstance(kinds, list) else [kinds]) + ["null"]}
        return {"anyOf": schemas}

    def _model(self, base):
        made = {"ref_template": "#/$defs/{model}", "mode": "serialization" if self._is_output else "validation"}
        schema = base.model_json_schema(**made) if hasattr(base, "model_json_schema") else adapter(base).json_schema(**made)
        self.definitions.update(schema.pop("$defs", {}))
        return schema

    def _object(self, base):
        name = base.__name__
        if base in self._open:
            self._open[base] = True
            return {"$ref": "#/$defs/" + name}
        self._open[base] = False
        hints = hints_of(base)
        described = parameter_descriptions(base.__doc__ or "", list(hints))
        properties, required = {}, []
        if is_typed_dict(base):
            for key, hint in hints.items():
                properties[key] = self.of(hint)
                # Python itself does not see `NotRequired` in a postponed annotation.
                if unwrap(hint)[1].get("required", key in getattr(base, "__required_keys__", hints)):
                    required.append(key)
        elif is_named_tuple(base):
            for key in base._fields:
                properties[key] = self.of(hints.get(key, typing.Any))
                if self._is_output or key not in base._field_defaults:
                    required.append(key)
                else:
                    _add_default(properties[key], base._field_defaults[key])
        else:
            for field in dataclasses.fields(base):
                if not field.init and not self._is_output:
                    continue
                schema = self.of(hints.get(field.name, typing.Any))
                if field.default is not dataclasses.MISSING:
                    _add_default(schema, field.default)
                if self._is_output or (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING):
                    required.append(field.name)
                if isinstance(field.metadata.get("description"), str):
                    schema["description"] = field.metadata["description"]
                properties[field.name] = schema
        for key, text in described.items():
            if key in properties:
                properties[key].setdefault("description", text)
        schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if not is_typed_dict(base):
            schema["additionalProperties"] = False
        if self._open.pop(base):
            self.definitions[name] = schema
            return {"$ref": "#/$defs/" + name}
        return schema


def is_named_tuple(hint):
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def is_of_pydantic(hint):
    """A class that pydantic knows how to check, such as `HttpUrl`."""
    return hasattr(hint, "__get_pydantic_core_schema__") and "pydantic" in sys.modules


def adapter(hint):
    return sys.modules["pydantic"].TypeAdapter(hint)


def _form(value):
    """A value as JSON text, whose members are told apart by it; the name of an Enum's member whose value has no such form."""
    try:
        return to_json(value)[0]
    except NoJson:
        if not isinstance(value, enum.Enum):
            raise
        return json.dumps(value.name)


def _enumeration(values):
    return _choices([json.loads(_form(value)) for value in values])


def _choices(values):
    names = []
    for value in values:
        name = _SIMPLE.get(type(value), "array" if isinstance(value, list) else "object")
        if name not in names:
            names.append(name)
    return {"type": names[0] if len(names) == 1 else names, "enum": values}


def _add_default(schema, default):
    if not _is_json(default):
        try:
            default = json.loads(to_json(default)[0])
        except NoJson:
            return
    # That `None` is the default is said by its being allowed and not required.
    if default is not None and "$ref" not in schema:
        schema["default"] = default


def _is_json(value):
    if value is None or isinstance(value, (str, bool, int)):
        return True
    if isinstance(value, float):
        return value == value and value not in (float("inf"), float("-inf"))
    if isinstance(value, (list, tuple)):
        return all(_is_json(item) for item in value)
    return isinstance(value, dict) and all(isinstance(key, str) and _is_json(item) for key, item in value.items())


def input_schema(function):
    """The schema of a function's arguments."""
    schemas = Schemas()
    hints = hints_of(function)
    parameters = inspect.signature(function).parameters
    described = parameter_descriptions(inspect.getdoc(function) or "", list(parameters))
    properties, required, closed = {}, [], False
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            closed = schemas.of(hints.get(name, inspect.Parameter.empty)) or None
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        hint, default = hints.get(name, inspect.Parameter.empty), default_of(parameter)
        if hint is inspect.Parameter.empty and default is not inspect.Parameter.empty and default is not None:
            hint = type(default)
        elif hint is not inspect.Parameter.empty and default is None:
            # `text: str = None` is meant as optional, and called so.
            hint = typing.Optional[hint]
        schema = schemas.of(hint, parameter.default if is_field(parameter.default) else None)
        if default is inspect.Parameter.empty:
            required.append(name)
        else:
            _add_default(schema, default)
        if name in described:
            schema.setdefault("description", described[name])
        properties[name] = schema
    result = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    if closed is not None:
        result["additionalProperties"] = closed
    if schemas.definitions:
        result["$defs"] = schemas.definitions
    return result


def output_schema(function):
    """The schema of a function's result, where its type is a TypedDict, a dataclass or a model."""
    hint, _ = unwrap(hints_of(function).get("return"))
    base = typing.get_origin(hint) or hint
    if not (is_typed_dict(base) or is_dataclass(base) or is_model(base)):
        return None
    # A result always holds every field.
    schemas = Schemas(is_output=True)
    schema = schemas.of(hint)
    if "$ref" in schema:
        schema = dict(schemas.definitions[schema["$ref"].rpartition("/")[2]])
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return schema


_SECTION = re.compile(r"^(args|arguments|parameters|params|attributes|fields|returns?|raises|yields|examples?|notes?)\s*:?\s*$", re.IGNORECASE)
_REST = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*?\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_NAMED = re.compile(r"^\*{0,2}`{0,2}(\w+)`{0,2}\s*(?:\([^)]*\))?\s*(?::|--?|\u2013|\u2014)\s+(.*)$")
_NUMPY = re.compile(r"^(\w+)(?:\s*,\s*\w+)*\s*(?::\s*\S.*)?$")


def parameter_descriptions(text, names):
    """What a docstring says about each parameter, in the styles of Google, numpy, reST, or plain `name: text` lines."""
    found, current, indent = {}, None, 0
    lines = inspect.cleandoc(text).splitlines()
    for index, line in enumerate(lines):
        stripped, depth = line.strip(), len(line) - len(line.lstrip())
        if not stripped or _SECTION.match(stripped) or set(stripped) <= {"-"}:
            current = None
            continue
        match = _REST.match(stripped) or _NAMED.match(stripped.lstrip("-* "))
        if match and match.group(1) in names:
            if _is_numpy_header(lines, index, depth):
                current, indent = match.group(1), depth
                found.setdefault(current, [])
            else:
                current, indent = match.group(1), depth
                found[current] = [match.group(2).strip()]
            continue
        match = _NUMPY.match(stripped)
        if match and match.group(1) in names and _is_numpy_header(lines, index, depth):
            current, indent = match.group(1), depth
            found.setdefault(current, [])
            continue
        if stripped.startswith(":"):
            current = None
        elif current is not None and depth > indent:
            found[current].append(stripped)
        else:
            current = None
    return {name: " ".join(part for part in parts if part) for name, parts in found.items() if any(parts)}


def _is_numpy_header(lines, index, depth):
    """Whether this line stands in a numpy section: its description is indented below it, its title underlined above."""
    for before in range(index - 1, 0, -1):
        line = lines[before].strip()
        if line and set(line) <= {"-"} and _SECTION.match(lines[before - 1].strip()):
            return len(lines[before]) - len(lines[before].lstrip()) == depth
    return False


class Binder:
    """Turns a JSON object into the arguments of one function."""

    def __init__(self, function):
        self._function = function
        hints = hints_of(function)
        self._convert, self._positional, self._whole = {}, [], None
        self._names, self._fields, self._rest = set(), {}, None
        required = []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._rest = converter(hints.get(name))
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            self._names.add(name)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append((name, default_of(parameter)))
            if default_of(parameter) is parameter.empty:
                required.append(name)
            elif is_field(parameter.default):
                self._fields[name] = parameter
            convert = converter(hints.get(name))
            if convert is not None:
                self._convert[name] = convert
        if len(required) == 1 and required[0] in _WHOLE:
            self._whole = required[0]

    def call(self, arguments):
        if self._whole is not None and self._whole not in arguments:
            # `def run(args)` beside a schema of its own: the whole object is meant.
            arguments = {self._whole: arguments}
        for name, convert in self._convert.items():
            if name in arguments:
                arguments[name] = _converted(convert, arguments[name], name)
        for name in arguments if self._rest else ():
            if name not in self._names:
                arguments[name] = _converted(self._rest, arguments[name], name)
        for name, parameter in self._fields.items():
            if name not in arguments:
                arguments[name] = default_of(parameter)
        positional = []
        for name, default in self._positional:
            if name in arguments:
                positional.append(arguments.pop(name))
            elif default is not inspect.Parameter.empty:
                positional.append(default)
        return self._function(*positional, **arguments)


def _converted(convert, value, path):
    try:
        return convert(value)
    except BadArgument as error:
        raise BadArgument("%s%s" % (path, error)) from None
    except Exception as error:
        raise BadArgument("%s: %s" % (path, _reason(error))) from None


def _reason(error):
    """pydantic's faults by place, without its links."""
    faults = error.errors() if type(error).__name__ == "ValidationError" and callable(getattr(error, "errors", None)) else None
    if not faults:
        return error
    return "; ".join(": ".join(filter(None, ["/".join(map(str, fault.get("loc", ()))), fault.get("msg")])) for fault in faults)


def converter(hint):
    """A function that makes a value of a hint's type of JSON; None where JSON's own types do."""
    return _converter(hint, {})


def _converter(hint, known):
    hint, _ = unwrap(hint)
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return _union_converter(parameters, known)
    if getattr(origin, "_name", None) == "Literal" or origin is getattr(typing, "Literal", None):
        return _choice_converter(parameters) if any(isinstance(choice, enum.Enum) for choice in parameters) else None
    base = origin or hint
    if not isinstance(base, type):
        return None
    if is_model(base):
        return hint.model_validate
    if is_typed_dict(base) or is_dataclass(base) or is_named_tuple(base):
        return _object_converter(base, known)
    if is_of_pydantic(base):
        return adapter(hint).validate_python
    if issubclass(base, enum.Enum):
        return base if issubclass(base, enum.Flag) else _choice_converter(list(base))
    text = _text_type(base)
    if text is not None:
        return text[1]
    if issubclass(base, collections.abc.Mapping):
        return _mapping_converter(base, parameters, known)
    if issubclass(base, tuple):
        if len(parameters) == 2 and parameters[1] is Ellipsis:
            inner = _converter(parameters[0], known)
            return lambda value: tuple(_items(inner, value))
        inner = [_converter(parameter, known) for parameter in parameters if parameter != ()]
        return lambda value: tuple(each(item) if each else item for each, item in zip(inner, value)) if inner else tuple(value)
    if issubclass(base, (set, frozenset, collections.abc.Set)) or (_loaded("collections", "deque") or dict) is base:
        inner = _converter(parameters[0], known) if parameters else None
        kind = set if inspect.isabstract(base) else base
        return lambda value: kind(_items(inner, value))
    if parameters and issubclass(base, collections.abc.Iterable):
        inner = _converter(parameters[0], known)
        return inner and (lambda value: _items(inner, value))
    return None


def _items(inner, value):
    if inner is None:
        return value
    return [_converted(inner, item, "/%d" % index) for index, item in enumerate(value)]


def _choice_converter(choices):
    members = {_form(choice): choice for choice in choices}

    def convert(value):
        form = _form(value)
        if form not in members:
            raise ValueError("`%s` is none of %s" % (form, ", ".join(members)))
        return members[form]

    return convert


def _mapping_converter(base, parameters, known):
    """Keys are texts in JSON, whatever they are in Python."""
    kind = base if base is not dict and not inspect.isabstract(base) and not hasattr(base, "default_factory") else None
    of_key, of_value = (_converter(parameter, known) for parameter in parameters) if len(parameters) == 2 else (None, None)
    if len(parameters) == 2 and parameters[0] in (int, float):
        of_key = parameters[0]
    if not (kind or of_key or of_value):
        return None

    def convert(value):
        made = {_converted(of_key, key, "/" + key) if of_key else key: _converted(of_value, item, "/" + key) if of_value else item
                for key, item in value.items()}
        return kind(made) if kind else made

    return convert


def _union_converter(members, known):
    converters = [(member, _converter(member, known)) for member in members]
    if not any(convert for _, convert in converters):
        return None

    def convert(value):
        problems = []
        for member, each in converters:
            if each is None:
                if _fits(value, member):
                    return value
                continue
            try:
                return each(value)
            except Exception as error:
                problems.append(str(_reason(error)))
        if value is None or not problems:
            return value
        raise BadArgument(": " + "; ".join(problems))

    return convert


def _fits(value, member):
    member, _ = unwrap(member)
    base = typing.get_origin(member) or member
    if base is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(base, type) and isinstance(value, base)


def _object_converter(base, known):
    if base in known:
        return lambda value: known[base](value)
    known[base] = lambda value: value
    hints = hints_of(base)
    inner = {name: convert for name, convert in ((name, _converter(hint, known)) for name, hint in hints.items()) if convert}
    as_dataclass = not is_typed_dict(base)
    if not as_dataclass and not inner:
        return None

    def convert(value):
        if not isinstance(value, dict):
            if as_dataclass and isinstance(value, base):
                return value
            raise BadArgument(": `%s` is made of an object" % base.__name__)
        value = {key: _converted(inner[key], item, "/" + key) if key in inner else item for key, item in value.items()}
        return base(**value) if as_dataclass else value

    known[base] = convert
    return convert
