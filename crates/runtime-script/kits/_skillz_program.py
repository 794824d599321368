"""Programs of `execute_code`: what they find, how they run, and when a call of a tool is awaited.

A program is the module `__main__` of a process of its own. Nothing in it is rewritten but its last expression, whose
value is the result, and `return` at top level.
"""

import ast
import asyncio
import atexit
import builtins
import collections.abc
import concurrent.futures
import linecache
import os
import sys
import threading
import traceback
import types

# What programs import most; loaded ahead, so that none of them pays for it.
import collections, csv, dataclasses, datetime, decimal, functools, io, itertools, json, logging, math, pathlib, random, re, statistics, string, subprocess
import tempfile, textwrap, time, typing, urllib.parse

import _skillz_failure as failures
import skillz

FILE = os.path.join(os.getcwd(), "code.py")
RESULT = "_skillz_result"
ASYNC = 0x80 | 0x100 | 0x200  # Coroutines, generators used as such, and async generators (`inspect.CO_*`).
# Frames that do not decide: their code runs on behalf of the frame around it.
TRANSPARENT = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
KIT = (__file__, skillz.__file__)

ToolError = skillz.SkillzError
ToolError.__name__ = ToolError.__qualname__ = "ToolError"
ToolError.__module__ = "builtins"


def is_awaited(frame):
    """Whether the nearest calling frame is that of a coroutine: then a tool's call gives something to await."""
    while frame is not None:
        code = frame.f_code
        if code.co_name not in TRANSPARENT and code.co_filename not in KIT:
            return bool(code.co_flags & ASYNC)
        frame = frame.f_back
    return False


class Answer(collections.abc.Coroutine):
    """A call of a tool that is under way, as a coroutine object. All it can do is be awaited."""

    under_way = set()

    def __init__(self, name, arguments):
        self.__name__ = self.__qualname__ = name
        self._done, self._coroutine = concurrent.futures.Future(), None
        self._done.set_running_or_notify_cancel()
        self._channel = skillz._connected()
        Answer.under_way.add(self._done)
        self._done.add_done_callback(Answer.under_way.discard)
        self._identity = self._channel.start("tools/call", {"name": name, "arguments": arguments}, self._done.set_result)
        self._channel.pump()

    def wait(self):
        return self._done.result().value()["output"]

    async def _awaited(self):
        try:
            await asyncio.wrap_future(self._done)
        except asyncio.CancelledError:
            Answer.under_way.discard(self._done)
            self._channel.notify("notifications/cancelled", {"requestId": self._identity})
            raise
        return self.wait()

    def __await__(self):
        return self._awaited().__await__()

    def send(self, value):
        self._coroutine = self._coroutine or self._awaited()
        return self._coroutine.send(value)

    def throw(self, *error):
        self._coroutine = self._coroutine or self._awaited()
        return self._coroutine.throw(*error)

    def close(self):
        if self._coroutine is not None:
            self._coroutine.close()

    # For `inspect.iscoroutine` and the like.
    __class__ = property(lambda self: types.CoroutineType)

    def __repr__(self):
        return "<a call of `%s` that was not awaited: write `await`>" % self.__name__

    def __getattr__(self, name):
        if name.startswith(("cr_", "__", "_asyncio")):
            raise AttributeError(name)
        raise AttributeError(_unawaited(self, "has no attribute `%s`" % name))

    def __eq__(self, other):
        return self is other or _refuse(self)

    __hash__ = object.__hash__


def _unawaited(answer, what="is not its result"):
    return "The call of `%s` in an `async def`, or beside an `await` at top level, %s: write `await` in front of it" % (answer.__name__, what)


Answer._why_no_json = _unawaited


def _refuse(answer, *_):
    raise TypeError(_unawaited(answer))


for _name in ("str format bool int float complex index bytes len iter getitem setitem delitem contains reversed lt le gt ge ne call enter exit "
              "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand or ror neg pos abs round iadd").split():
    setattr(Answer, "__%s__" % _name, _refuse)


def call_tool(name, arguments, frame):
    if is_awaited(frame):
        return Answer(name, arguments)
    return skillz._connected().ask("tools/call", {"name": name, "arguments": arguments})["output"]


def call(*positional, **named):
    """Calls the tool of that name."""
    if not positional or len(positional) > 2 or not isinstance(positional[0], str):
        raise TypeError('call() takes a tool\'s name and its arguments: call("name", {"argument": 1})')
    given = positional[1] if len(positional) == 2 else None
    if given is not None and not isinstance(given, dict):
        raise TypeError('call() takes the arguments of `%s` as a dictionary: call("%s", {"argument": 1})' % (positional[0], positional[0]))
    return call_tool(positional[0], {**(given or {}), **named}, sys._getframe(1))


skillz.call = call


def tool(identifier, name, parameters):
    def function(*positional, **named):
        if len(positional) > len(parameters):
            known = ", ".join(parameters) or "none"
            raise TypeError("`%s` takes its arguments by name (%s), and got %d without one" % (name, known, len(positional)))
        for parameter, value in zip(parameters, positional):
            if parameter in named:
                raise TypeError("`%s` got the argument `%s` twice" % (name, parameter))
            named[parameter] = value
        return call_tool(name, named, sys._getframe(1))

    function.__name__ = function.__qualname__ = identifier
    return function


def finished(value):
    """A value that is no awaitable, as a future that holds it."""
    if isinstance(value, collections.abc.Awaitable) or asyncio.isfuture(value):
        return value
    future = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


async def through(coroutine):
    """What a task comes to, where its coroutine returns a call that it did not await."""
    value = await coroutine
    while type(value) is Answer:
        value = await value
    return value


def adapt_asyncio():
    """`gather`, `wait` and `as_completed` take values, which helpers that wait for their tools give; tasks go on with calls."""
    loop, gather, wait, as_completed = asyncio.BaseEventLoop, asyncio.gather, asyncio.wait, asyncio.as_completed
    create_task = loop.create_task

    def create_adapted_task(self, coroutine, **options):
        if type(coroutine) is not Answer and asyncio.iscoroutine(coroutine):
            outer = through(coroutine)
            outer.__name__, outer.__qualname__ = getattr(coroutine, "__name__", "task"), getattr(coroutine, "__qualname__", "task")
            coroutine = outer
        return create_task(self, coroutine, **options)

    @functools.wraps(gather)
    def adapted_gather(*items, **options):
        return gather(*map(finished, items), **options)

    @functools.wraps(wait)
    async def adapted_wait(items, **options):
        items = [asyncio.ensure_future(item) if type(item) is Answer else finished(item) for item in items]
        return await wait(items, **options)

    @functools.wraps(as_completed)
    def adapted_as_completed(items, **options):
        return as_completed([finished(item) for item in items], **options)

    loop.create_task = create_adapted_task
    for name, function in (("gather", adapted_gather), ("wait", adapted_wait), ("as_completed", adapted_as_completed)):
        setattr(asyncio, name, function)
        setattr(asyncio.tasks, name, function)


class Unfit(Exception):
    """The program does not compile."""


def compile_module(tree):
    return compile(tree, FILE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def compile_program(source):
    """A program whose last expression, or `return` in its place, is kept under `RESULT`."""
    tree = ast.parse(source, FILE)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, (ast.Expr, ast.Return)):
        value = last.value or ast.copy_location(ast.Constant(None), last)
        tree.body[-1] = ast.copy_location(ast.Assign([ast.copy_location(ast.Name(RESULT, ast.Store()), last)], value), last)
    return compile_with_returns(source) if any(map(returns, tree.body)) else compile_module(tree)


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)


def returns(node):
    return isinstance(node, ast.Return) or (not isinstance(node, SCOPES) and any(map(returns, ast.iter_child_nodes(node))))


class _AtTop(ast.NodeTransformer):
    """Changes the statements of a module alone."""

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef


class WithoutReturns(_AtTop):
    def visit_Return(self, node):
        return ast.copy_location(ast.Pass(), node)


class WithoutAnnotations(_AtTop):
    """Annotated variables cannot be declared `global`."""

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return node
        return ast.copy_location(ast.Assign([node.target], node.value) if node.value else ast.Pass(), node)


def compile_with_returns(source):
    """A module that returns in its midst, as a function whose variables are the module's."""
    is_async = compile_module(WithoutReturns().visit(ast.parse(source, FILE))).co_flags & ASYNC
    tree = WithoutAnnotations().visit(ast.parse(source, FILE))
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    body = [node for node in tree.body if node not in future]
    if isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    function = ast.parse("async def f(): pass" if is_async else "def f(): pass").body[0]
    function.name = "<module>"

    def code_of(body):
        function.body = body
        module = ast.fix_missing_locations(ast.Module(future + [function], []))
        return next(part for part in compile_module(module).co_consts if isinstance(part, types.CodeType))

    local = code_of(body)
    names = sorted({*local.co_varnames, *local.co_cellvars})
    return code_of([ast.Global(names)] + body) if names else local


async def to_the_end(coroutine, names):
    """The program's own coroutine, and then the calls that it did not await."""
    value = await coroutine
    while Answer.under_way:
        await asyncio.wait([asyncio.wrap_future(done) for done in list(Answer.under_way)])
    return names.pop(RESULT, value)


def run(source, tools):
    """Runs a program as `__main__`; gives what it comes to."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names = vars(module)
    names.update(__file__=FILE, __builtins__=builtins, ToolError=ToolError, call=call, skillz=skillz)
    for identifier, given in tools.items():
        if not hasattr(builtins, identifier):
            names.setdefault(identifier, tool(identifier, *given))
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    try:
        code = compile_program(source)
    except (SyntaxError, ValueError) as error:
        raise Unfit(error) from None
    value = None
    try:
        is_function = code.co_flags & 0x2  # `inspect.CO_NEWLOCALS`
        value = types.FunctionType(code, names)() if is_function else eval(code, names)
        if code.co_flags & ASYNC:
            value = asyncio.run(to_the_end(value, names))
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    value = names.pop(RESULT, value)
    if type(value) is Answer:
        value = value.wait()
    # As at the end of any program: its threads end, and what was registered for the end is done.
    threading._shutdown()
    concurrent.futures.wait(list(Answer.under_way))
    atexit._run_exitfuncs()
    return value


def warm_up():
    """Touches what a program touches, so that a fork has its own copies of those pages before its turn."""
    names = {}
    exec(compile_program("a = [str(1)]\n[len(b) for b in a]"), names)
    answer = b'{"jsonrpc":"2.0","id":"%d-1","result":{"output":{"a":[1]}}}\n' % os.getpid()
    skillz._attach(skillz._Channel(lambda: answer, lambda line: None), {})
    types.ModuleType("__main__").__dict__.update(tool=tool("a", "a", ["b"]))
    tool("a", "a", ["b"])(b=1)
    skillz._attach(None, None)
    concurrent.futures.wait([])
    logging.shutdown([])


def describe(error):
    """A failure as it is sent: the exception with its line, and the frames of the program."""
    if isinstance(error, Unfit):
        fault = error.args[0]
        line = getattr(fault, "lineno", None)
        text = "does not compile: %s: %s" % (type(fault).__name__, getattr(fault, "msg", None) or fault)
        place = "  line %s\n    %s" % (line, (fault.text or "").strip()) if line and getattr(fault, "text", None) else ""
        return {"message": "%s (line %d)" % (text, line) if line else text, "kind": "SyntaxError", "traceback": place}
    told = failures.describe(error, FILE)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    if lines:
        first, newline, rest = told["message"].partition("\n")
        told["message"] = "%s (line %d)%s%s" % (first, lines[-1], newline, rest)
    if "hint" in told:
        told["hint"] = told["hint"].replace("Register it again", "Run it again")
    return told
