"""Reads a function's signature: a JSON Schema of its arguments and result, and how JSON becomes its arguments.

Used by `_skillz_worker`: once when a tool is registered (schemas), once when a worker starts (conversion).
"""

import collections.abc
import dataclasses
import enum
import inspect
import re
import sys
import types
import typing

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_WHOLE = ("args", "arguments", "params", "parameters", "input", "inputs", "payload", "data")




def _text_type(kind):
    """The format and the conversion of a type that JSON writes as text; None for others. Types of modules that were
    never imported cannot be meant, so that nothing is imported here."""
    name = getattr(kind, "__name__", "")
    if getattr(sys.modules.get("datetime"), name, None) is kind and name in ("datetime", "date", "time"):
        form = "date-time" if name == "datetime" else name
        return form, lambda text: kind.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    if getattr(sys.modules.get("uuid"), "UUID", None) is kind:
        return "uuid", kind
    if getattr(sys.modules.get("pathlib"), name, None) is kind and name.endswith("Path"):
        return None, kind
    return None


def _is_decimal(kind):
    return getattr(sys.modules.get("decimal"), "Decimal", None) is kind


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
    """A hint without `Annotated`, `Required`, `NotRequired`, `ReadOnly`, `Final`, and the description in `Annotated`."""
    description = None
    while True:
        if hasattr(hint, "__metadata__"):
            for extra in hint.__metadata__:
                text = extra if isinstance(extra, str) else getattr(extra, "description", None) or getattr(extra, "documentation", None)
                if isinstance(text, str) and description is None:
                    description = text
            hint = hint.__origin__
            continue
        origin = typing.get_origin(hint)
        name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
        if name in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar"):
            hint = typing.get_args(hint)[0]
            continue
        if hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
            continue
        if type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
            continue
        return hint, description


def is_typed_dict(hint):
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def is_dataclass(hint):
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_model(hint):
    """A class of pydantic, or one that looks like it."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


class Schemas:
    """Makes schemas of hints; classes that hold themselves become `$defs`."""

    def __init__(self):
        self.definitions = {}
        self._open = {}

    def of(self, hint):
        hint, description = unwrap(hint)
        schema = self._of(hint)
        if description is not None:
            schema["description"] = description
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
        if is_model(base):
            return self._model(base)
        if is_typed_dict(base) or is_dataclass(base):
            return self._object(base)
        if issubclass(base, enum.Enum):
            return _enumeration([member.value for member in base])
        return self._container(base, parameters)

    def _container(self, base, parameters):
        for kind, name in _SIMPLE.items():
            if base is kind:
                return {"type": name}
        if _is_decimal(base):
            return {"type": ["number", "string"]}
        text = _text_type(base)
        if text is not None:
            return {"type": "string", "format": text[0]} if text[0] else {"type": "string"}
        if base in (bytes, bytearray):
            return {"type": "string", "contentEncoding": "base64"}
        if issubclass(base, tuple):
            return self._tuple(base, parameters)
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

    def _tuple(self, base, parameters):
        if hasattr(base, "_fields") and not parameters:
            hints = hints_of(base)
            items = [self.of(hints.get(name, typing.Any)) for name in base._fields]
        elif not parameters:
            return {"type": "array", "items": {}}
        elif len(parameters) == 2 and parameters[1] is Ellipsis:
            return {"type": "array", "items": self.of(parameters[0])}
        else:
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
        if len(rest) == 1 and len(rest) < len(schemas):
            only = dict(rest[0])
            if "enum" in only:
                return _enumeration(only["enum"] + [None])
            if isinstance(only.get("type"), str):
                only["type"] = [only["type"], "null"]
                return only
        return {"anyOf": schemas}

    def _model(self, base):
        schema = base.model_json_schema(ref_template="#/$defs/{model}")
        self.definitions.update(schema.pop("$defs", {}))
        return schema

    def _object(self, base):
        name = base.__name__
        if base in self._open:
            self._open[base] = True
            return {"$ref": "#/$defs/" + name}
        self._open[base] = False
        described = parameter_descriptions(base.__doc__ or "", list(getattr(base, "__annotations__", {})))
        hints = hints_of(base)
        properties, required = {}, []
        if is_typed_dict(base):
            for key, hint in hints.items():
                properties[key] = self.of(hint)
            required = [key for key in hints if key in getattr(base, "__required_keys__", hints)]
        else:
            for field in dataclasses.fields(base):
                if not field.init:
                    continue
                schema = self.of(hints.get(field.name, typing.Any))
                if field.default is not dataclasses.MISSING:
                    _add_default(schema, field.default)
                elif field.default_factory is dataclasses.MISSING:
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


def _enumeration(values):
    values = [value.value if isinstance(value, enum.Enum) else value for value in values]
    names = []
    for value in values:
        name = _SIMPLE.get(type(value))
        if name is None:
            return {}
        if name not in names:
            names.append(name)
    return {"type": names[0] if len(names) == 1 else names, "enum": values}


def _add_default(schema, default):
    if isinstance(default, enum.Enum):
        default = default.value
    # That `None` is the default is said by its being allowed and not required.
    if default is not None and _is_json(default) and "$ref" not in schema:
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
    properties, required, closed = {}, [], True
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            closed = False
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        hint = hints.get(name, inspect.Parameter.empty)
        if hint is inspect.Parameter.empty and parameter.default not in (inspect.Parameter.empty, None):
            hint = type(parameter.default)
        elif hint is not inspect.Parameter.empty and parameter.default is None:
            # `text: str = None` is meant as optional, and called so.
            hint = typing.Optional[hint]
        schema = schemas.of(hint)
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        else:
            _add_default(schema, parameter.default)
        if name in described:
            schema.setdefault("description", described[name])
        properties[name] = schema
    result = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    if closed:
        result["additionalProperties"] = False
    if schemas.definitions:
        result["$defs"] = schemas.definitions
    return result


def output_schema(function):
    """The schema of a function's result, where its type is a TypedDict, a dataclass or a model."""
    hint, _ = unwrap(hints_of(function).get("return"))
    if not (is_typed_dict(hint) or is_dataclass(hint) or is_model(hint)):
        return None
    schemas = Schemas()
    schema = schemas.of(hint)
    if is_dataclass(hint) and "properties" in schema:
        # A result always holds every field.
        schema["required"] = list(schema["properties"])
    if "$ref" in schema:
        schema = dict(schemas.definitions[hint.__name__])
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
        required = []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append((name, parameter.default))
            if parameter.default is parameter.empty:
                required.append(name)
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
        raise BadArgument("%s: %s" % (path, error)) from None


def converter(hint):
    """A function that makes a value of a hint's type of JSON; None where JSON's own types do."""
    return _converter(hint, {})


def _converter(hint, known):
    hint, _ = unwrap(hint)
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return _union_converter(parameters, known)
    base = origin or hint
    if not isinstance(base, type):
        return None
    if is_model(base):
        return base.model_validate
    if is_typed_dict(base) or is_dataclass(base):
        return _object_converter(base, known)
    if issubclass(base, enum.Enum):
        return lambda value: value if isinstance(value, base) else base(value)
    if _is_decimal(base):
        return lambda value: base(str(value))
    text = _text_type(base)
    if text is not None:
        return text[1]
    if base in (bytes, bytearray):
        import base64

        return lambda value: base(base64.b64decode(value, validate=True))
    if issubclass(base, collections.abc.Mapping) and len(parameters) == 2:
        inner = _converter(parameters[1], known)
        return inner and (lambda value: {key: _converted(inner, item, "/" + key) for key, item in value.items()})
    if issubclass(base, tuple) and not hasattr(base, "_fields"):
        if len(parameters) == 2 and parameters[1] is Ellipsis:
            inner = _converter(parameters[0], known)
            return lambda value: tuple(_items(inner, value))
        inner = [_converter(parameter, known) for parameter in parameters if parameter != ()]
        return lambda value: tuple(each(item) if each else item for each, item in zip(inner, value)) if inner else tuple(value)
    if issubclass(base, tuple):
        return lambda value: base(*value)
    if issubclass(base, (set, frozenset)):
        inner = _converter(parameters[0], known) if parameters else None
        return lambda value: base(_items(inner, value))
    if parameters and issubclass(base, collections.abc.Iterable):
        inner = _converter(parameters[0], known)
        return inner and (lambda value: _items(inner, value))
    return None


def _items(inner, value):
    if inner is None:
        return value
    return [_converted(inner, item, "/%d" % index) for index, item in enumerate(value)]


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
                problems.append(str(error))
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
    as_dataclass = is_dataclass(base)
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
