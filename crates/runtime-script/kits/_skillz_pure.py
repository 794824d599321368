"""Tells of a module whether a call can leave anything behind in it, so that calls may share a process.

A call of any other module runs in a fork of its own, which costs a millisecond or two and needs no knowledge of the
module. Here everything that is not known to be harmless counts as harmful: the source is searched for whatever could
change what outlives a call, and then every value that the module holds is looked at. Lists, dictionaries and sets of
plain data at top level are allowed, since they are made anew before each call.
"""

import ast
import copy
import re
import types

# Modules without state of their own. What is used of them is looked at, too: see `_is_harmless`.
MODULES = {"base64", "binascii", "datetime", "difflib", "hashlib", "html", "itertools", "json", "math", "re", "statistics", "string",
           "textwrap", "typing", "unicodedata"}
# Parts of modules that have state elsewhere.
PARTS = {
    "__future__": {"annotations"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "dataclasses": {"asdict", "astuple", "dataclass", "replace"},
    "decimal": {"Decimal", "ROUND_DOWN", "ROUND_HALF_EVEN", "ROUND_HALF_UP", "ROUND_UP"},
    # Flags keep every combination that was ever made.
    "enum": {"Enum", "IntEnum", "StrEnum", "auto", "unique"},
    "fractions": {"Fraction"},
    "functools": {"partial", "reduce"},
    "operator": {"add", "itemgetter", "mul"},
    "urllib.parse": {"parse_qs", "parse_qsl", "quote", "quote_plus", "unquote", "unquote_plus", "urlencode", "urljoin", "urlparse",
                     "urlsplit", "urlunparse", "urlunsplit"},
}
# Built-in functions that reach what outlives a call.
FORBIDDEN = {"breakpoint", "compile", "delattr", "eval", "exec", "exit", "getattr", "globals", "help", "input", "locals", "open",
             "quit", "setattr", "super", "type", "vars"}
# Attributes that lead from an object to what outlives a call, or that change it.
FORBIDDEN_ATTRIBUTES = {"Formatter", "RegexFlag", "Scanner", "TextWrapper", "format_map", "get_field", "register", "vformat"}
FORBIDDEN_PREFIXES = ("_", "ag_", "co_", "cr_", "f_", "func_", "gi_", "tb_")
# Classes whose methods see nothing but their object when they use names with one `_`.
PLAIN_BASES = {"Exception", "ValueError", "object"}
METHOD_DECORATORS = {"classmethod", "dataclass", "property", "staticmethod"}
PLAIN = (type(None), bool, int, float, complex, str, bytes, range, re.Pattern)
# Where classes come from whose values cannot be changed.
FROZEN = ("datetime", "decimal", "fractions", "typing")
# Copying more than this before each call would cost more than a fork.
MOST_VALUES = 1000


class Harmful(Exception):
    """Something that may outlive a call."""


class Module:
    """A module that calls may share, and what has to be made anew between them."""

    def __init__(self, values, originals):
        self._values = values
        self._originals = originals

    def make_anew(self):
        """Puts the module's lists, dictionaries and sets back to what they were after the import."""
        if self._originals:
            self._values.update(copy.deepcopy(self._originals))


def examine(path, module):
    """Gives a `Module` if calls of it may share a process, else `None`."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
        search = _Search(tree)
        originals = {}
        for name, value in vars(module).items():
            if name.startswith("__") and name.endswith("__"):
                continue
            budget = [MOST_VALUES]
            if _needs_copy(value, search, module, budget):
                originals[name] = value
        return Module(vars(module), copy.deepcopy(originals))
    except (Harmful, SyntaxError, ValueError, OSError, RecursionError):
        return None


def _needs_copy(value, search, module, budget):
    """Whether a value at top level can be changed and must be made anew; raises where that is not possible."""
    budget[0] -= 1
    if budget[0] < 0:
        raise Harmful("too many values")
    kind = type(value)
    if kind in (list, set):
        for part in value:
            _needs_copy(part, search, module, budget)
        return True
    if kind is dict:
        for key, part in value.items():
            _needs_copy(key, search, module, budget)
            _needs_copy(part, search, module, budget)
        return True
    if kind in (tuple, frozenset):
        # All parts, without the shortcut of `any`.
        return any([_needs_copy(part, search, module, budget) for part in value])
    if kind in PLAIN or kind.__module__ in FROZEN:
        return False
    if isinstance(value, type):
        # A class that was made by a call may hold anything.
        if value.__module__ == module.__name__ and search.classes.get(value.__name__) != value.__qualname__:
            raise Harmful(value.__name__)
        return False
    if kind is types.BuiltinFunctionType:
        # A method keeps its object, which is not made anew.
        if not isinstance(value.__self__, types.ModuleType):
            raise Harmful(value.__name__)
        return False
    if kind is types.ModuleType and search.imports(value.__name__):
        for attribute in search.attributes_of(value, module):
            _is_harmless(getattr(value, attribute, None))
        return False
    if kind is types.FunctionType and (value.__module__ in PARTS or value.__module__ in MODULES):
        return False
    if kind is types.FunctionType and value.__globals__ is vars(module) and not vars(value) and not value.__closure__:
        return False
    if kind.__name__ in ("GenericAlias", "UnionType", "_Feature"):
        return False
    raise Harmful(kind.__name__)


def _is_harmless(value):
    """What a module's attribute may be: a function, a class, or a value that cannot be changed."""
    callables = (types.FunctionType, types.BuiltinFunctionType, type)
    if isinstance(value, callables) or type(value) in PLAIN or type(value).__module__ in FROZEN + ("re", "enum"):
        return
    raise Harmful(repr(type(value)))


class _Search(ast.NodeVisitor):
    """Goes through a module's source and raises at whatever may change what outlives a call."""

    def __init__(self, tree):
        self._imported = {}
        self._attributes = {}
        self._functions = []
        self._in_class = False
        self._in_plain_class = False
        self.classes = {node.name: node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for statement in tree.body:
            allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Expr)
            if not isinstance(statement, allowed) or isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant):
                raise Harmful(statement)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._note_imports(node)
        self.visit(tree)

    def imports(self, name):
        return name in self._imported.values()

    def attributes_of(self, imported, module):
        names = [name for name, value in vars(module).items() if value is imported]
        return set().union(*(self._attributes.get(name, ()) for name in names))

    def _note_imports(self, node):
        """Names that stand for modules: they may only be used with an attribute behind them."""
        for alias in node.names:
            if alias.name not in MODULES:
                raise Harmful(alias.name)
            self._imported[alias.asname or alias.name] = alias.name

    def visit_Import(self, node):
        if self._functions:
            raise Harmful("an import within a function")

    def visit_ImportFrom(self, node):
        names = {alias.name for alias in node.names}
        parts = PARTS.get(node.module, ())
        for name in names:
            _check_typing(node.module, name)
            if name.startswith("_") or name in FORBIDDEN_ATTRIBUTES:
                raise Harmful(name)
        if node.level or self._functions or "*" in names or not (node.module in MODULES or names <= set(parts)):
            raise Harmful(node.module)

    def visit_Name(self, node):
        if node.id in FORBIDDEN or node.id in self._imported or node.id.startswith("__"):
            raise Harmful(node.id)
        if node.id == "self" and not isinstance(node.ctx, ast.Load):
            raise Harmful("another `self`")

    def generic_visit(self, node):
        # Handlers and patterns bind names without a node for it.
        if getattr(node, "name", None) == "self":
            raise Harmful("another `self`")
        super().generic_visit(node)

    def visit_Attribute(self, node):
        base = node.value
        is_own = (isinstance(base, ast.Name) and base.id == "self" and self._in_plain_class
                  and node.attr.startswith("_") and not node.attr.startswith("__"))
        if node.attr in FORBIDDEN_ATTRIBUTES or node.attr.startswith(FORBIDDEN_PREFIXES) and not is_own:
            raise Harmful(node.attr)
        if node.attr == "format" and not (isinstance(base, ast.Constant) and "." not in str(base.value) and "[" not in str(base.value)):
            raise Harmful("a format that may look into objects")
        if not isinstance(node.ctx, ast.Load):
            if not (isinstance(base, ast.Name) and base.id == "self" and self._is_constructor()):
                raise Harmful(node.attr)
        elif isinstance(base, ast.Name) and base.id in self._imported:
            _check_typing(self._imported[base.id], node.attr)
            self._attributes.setdefault(base.id, set()).add(node.attr)
            return
        self.visit(base)

    def _is_constructor(self):
        """Whether `self` is an object that was made a moment ago: only `__init__` cannot be called with another one."""
        if len(self._functions) != 1 or not self._functions[0][1]:
            return False
        function = self._functions[0][0]
        first = (function.args.posonlyargs + function.args.args)[:1]
        return function.name == "__init__" and not function.decorator_list and bool(first) and first[0].arg == "self"

    def visit_FunctionDef(self, node):
        outermost = not self._functions
        for decorator in node.decorator_list:
            if not (self._in_class and outermost and isinstance(decorator, ast.Name) and decorator.id in METHOD_DECORATORS):
                raise Harmful("a decorator")
        if outermost:
            self._check_defaults(node.args)
        self._functions.append((node, self._in_class))
        self.generic_visit(node)
        self._functions.pop()

    def visit_Lambda(self, node):
        if not self._functions:
            self._check_defaults(node.args)
        self.generic_visit(node)

    @staticmethod
    def _check_defaults(arguments):
        for default in arguments.defaults + [default for default in arguments.kw_defaults if default is not None]:
            _check_constant(default)

    def visit_ClassDef(self, node):
        bases = all(isinstance(base, (ast.Name, ast.Attribute)) for base in node.bases)
        if self._functions or self._in_class or node.keywords or not bases:
            raise Harmful("a class of a special kind")
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not (isinstance(name, ast.Name) and name.id == "dataclass"):
                raise Harmful("a decorator")
        for statement in node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                if statement.value is not None:
                    _check_constant(statement.value)
            elif not isinstance(statement, (ast.FunctionDef, ast.Pass)) and not (
                    isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                raise Harmful("a statement in a class")
        self._in_class = True
        self._in_plain_class = all(isinstance(base, ast.Name) and base.id in PLAIN_BASES for base in node.bases)
        self.generic_visit(node)
        self._in_class = self._in_plain_class = False

    def _refuse(self, node):
        raise Harmful(type(node).__name__)

    # A class pattern reads attributes by names that are no attributes of the source.
    visit_MatchClass = visit_Global = visit_AsyncFunctionDef = visit_Await = visit_AsyncFor = visit_AsyncWith = _refuse


def _check_typing(module, name):
    """Functions of `typing` give annotations away, which may be anything, or keep registers."""
    if module == "typing" and name != "cast" and not name[:1].isupper():
        raise Harmful(name)


def _check_constant(node):
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if not all(isinstance(part, ast.Constant) for part in parts):
        raise Harmful("a default that may change")
