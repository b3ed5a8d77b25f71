#!/usr/bin/env python3
"""Counts in a text: JSON on standard input, JSON on standard output, the exit code says whether it worked."""

import collections
import json
import sys


def main() -> int:
    arguments = json.load(sys.stdin)
    text = arguments["text"]
    words = text.lower().split()
    frequent = collections.Counter(words).most_common(arguments.get("top", 3))
    if not words:
        print("the text has no words", file=sys.stderr)
        return 1
    result = {"lines": len(text.splitlines()), "words": len(words), "characters": len(text), "frequent": dict(frequent)}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
