"""Runs the problems of HumanEval through `execute_code`, by each runtime that is named, and tells which do not pass."""

import gzip
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from piped import Piped  # noqa: E402

PROBLEMS = 164
# A problem takes milliseconds; this is for a busy machine.
TIMEOUT_SECONDS = 60
# What everybody relies on. `embedded` alone may refuse a program.
MUST_PASS = {"auto", "process"}


def program(problem):
    """The problem's solution, its test, and a call of the test."""
    check = f"check({problem['entry_point']})\n'passed'"
    return f"{problem['prompt']}{problem['canonical_solution']}\n{problem['test']}\n{check}"


def failure(message):
    """Nothing if the program passed, else the first line of what went wrong."""
    if "error" in message:
        return message["error"]["message"].splitlines()[0]
    result = message["result"]
    if (result.get("structuredContent") or {}).get("result") == "passed":
        return None
    text = "\n".join(part.get("text", "") for part in result.get("content", []))
    return (text.strip() or "no text").splitlines()[0]


def main():
    binary, path, *runtimes = sys.argv[1:]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        problems = [json.loads(line) for line in file]
    broken = []
    with tempfile.TemporaryDirectory(prefix="skillz-human-eval-") as home:
        server = Piped([binary], {"SKILLZ_HOME": home})
        for runtime in runtimes:
            failed = []
            for problem in problems:
                arguments = {"code": program(problem), "language": "python", "runtime": runtime, "timeout": TIMEOUT_SECONDS}
                answer = server.request("tools/call", {"name": "execute_code", "arguments": arguments})
                if (reason := failure(answer)) is not None:
                    failed.append(f"  {problem['task_id']} {problem['entry_point']}: {reason}")
            passed = len(problems) - len(failed)
            print("\n".join([f"{runtime}: {passed} of {PROBLEMS}", *failed]), flush=True)
            if runtime in MUST_PASS and passed != PROBLEMS:
                broken.append(runtime)
        server.close()
    if broken:
        sys.exit(f"not all passed: {', '.join(broken)}")


if __name__ == "__main__":
    main()
