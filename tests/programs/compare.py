"""Runs programs through `execute_code` and by hand, and compares results, output and exceptions.

    compare.py PATH_OF_SKILLZ [SEED:COUNT]

The programs are those of python.txt and javascript.txt, and COUNT programs of generated expressions (60 by default). Only
the wording of what is around an exception may differ.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from piped import Piped  # noqa: E402

HERE = Path(__file__).resolve().parent


def text(value, is_javascript):
    """A value as JSON, to be compared. To JavaScript all numbers are doubles, however their digits are written."""
    exact = json.dumps(value, sort_keys=True)
    return json.dumps(json.loads(exact, parse_int=float), sort_keys=True) if is_javascript else exact


def difference(expected, answer, is_javascript):
    """What differs, in words; None where nothing does."""
    if "error" in expected:
        ours = answer["content"][0]["text"]
        wanted = expected["error"].splitlines()[0]
        return None if answer.get("isError") and wanted in ours else f"by hand: {wanted}\nhere:    {ours}"
    if answer.get("isError"):
        return f"by hand: {json.dumps(expected['result'])}\nhere:    {answer['content'][0]['text']}"
    ours = answer["structuredContent"]
    if "runtime" in ours:
        return "it ran embedded: the interpreter or the sandbox is missing"
    for key in ("result", "stdout"):
        if text(ours[key], is_javascript) != text(expected[key], is_javascript):
            return f"{key} by hand: {expected[key]!r}\n{key} here:    {ours[key]!r}"
    return None


def main():
    generated = sys.argv[2] if len(sys.argv) > 2 else "1:60"
    count = failed = 0
    with tempfile.TemporaryDirectory() as home:
        server = Piped([sys.argv[1]], {"SKILLZ_HOME": home})
        for language, chosen in (("python", []), ("python", [generated]), ("javascript", [])):
            reference = [sys.executable, HERE / "reference.py", HERE / f"{language}.txt", *chosen]
            by_hand = subprocess.Popen(reference, stdout=subprocess.PIPE)
            for line in by_hand.stdout:
                expected = json.loads(line)
                count += 1
                arguments = {"language": language, "code": expected["code"], "timeout": 60}
                answer = server.request("tools/call", {"name": "execute_code", "arguments": arguments})["result"]
                found = difference(expected, answer, language == "javascript")
                if found is not None:
                    failed += 1
                    print(f"{language} program {expected['name']}:\n{found}\n", flush=True)
            if by_hand.wait() != 0:
                sys.exit("The programs could not be run by hand")
        server.close()
    print(f"{count - failed} passed, {failed} failed")
    sys.exit(1 if failed or count < 300 else 0)


main()
