#!/usr/bin/env python3
"""Prints a random sample of comments and error messages for a reader to judge.

    python3 tests/style/sample.py SEED [COMMENTS [MESSAGES]]

Draws 60 comment blocks and 30 error messages from src and core/src. The same seed and the same tree
give the same sample. Each comment comes with its place, the item around it, and the code below it: a
signature to its end, or up to six lines. A message that the error type makes of several arguments is
shown whole. A reader who did not write them marks what was not understood at first reading.
"""

import random
import re
import sys
from pathlib import Path

ROOTS = ["src", "core/src"]
# A message is a string literal inside one of these calls.
ERRORS = re.compile(
    r"(?:Error::\w+|\bFailure::\w+|[\w.]*refuse\w*|\w+_err!?|(?<!Ok\()[Ee]rr(?!\(\w+\)\s*=>)"
    r"|DataFusionError::\w+)\s*[!(]"
)
# Calls that make a sentence of their arguments, as core/src/error.rs or the called function declares it.
SENTENCES = {
    "Error::type_of": "{}: expected {}, found {}",
    "Error::Overflow": "{}: the result does not fit a 64-bit integer; cast the values to float64 first",
    ".make_type_error": "{{file}}: column {}: expected {}, found {}",
    ".make_value_error": "{{file}}: column {}, row {}: {}",
    ".make_element_error": "{{path}}: expected {}, found {}",
    ".make_error_here": "line {{line}}, column {{column}}: {}",
    ".describe_unexpected": "line {{line}}, column {{column}}: {}, found {{character:?}}",
    ".make_node_error": "{{file}}: line {{line}}: {1}: {2}, found {{value}}",
    ".make_fault": "{{file}}: line {{line}}: {1}: {2}",
    ".make_varying_depth_error": "the nesting depth varies at {{path}}: expected {}, found {}; nest all values of a "
    "column in the same number of lists",
}


def tokens(text):
    """Yields (kind, start, end) of the line comments and plain string literals of Rust source."""
    character = re.compile(r"'(\\u\{[0-9a-fA-F]+\}|\\x..|\\.|[^\\'])'")
    raw = re.compile(r'b?r(#*)"')
    i = 0
    while i < len(text):
        here = text[i]
        if text.startswith("//", i):
            end = text.find("\n", i)
            end = len(text) if end < 0 else end
            yield "comment", i, end
            i = end
        elif text.startswith("/*", i):
            i = text.index("*/", i) + 2
        elif here == '"':
            end = i + 1
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            yield "string", i, end + 1
            i = end + 1
        elif here in "rb" and not (i and (text[i - 1].isalnum() or text[i - 1] == "_")):
            start = raw.match(text, i)
            i = text.index('"' + start[1], start.end()) + 1 + len(start[1]) if start else i + 1
        elif here == "'":
            literal = character.match(text, i)
            i = literal.end() if literal else i + 1
        else:
            i += 1


def find_item(lines, number):
    """Returns the first line of the item around a line, or an empty string at the top of a file."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    for line in reversed(lines[:number]):
        own = len(line) - len(line.lstrip())
        if line.strip() and own < indent and not line.lstrip().startswith("//"):
            if re.match(r"\s*(pub(\(.*?\))? |unsafe |async |const )*(fn|impl|struct|enum|trait|mod)\b", line):
                return line.strip()
            indent = own
    return ""


def find_code(lines, number):
    """Returns the code below a comment: a signature to its end, or up to six lines."""
    code = []
    for line in lines[number : number + 6]:
        if code and (not line.strip() or line.lstrip().startswith("//")):
            break
        code.append(line.strip())
        if re.search(r"[{;]$", line) and re.match(r"(pub(\(.*?\))? |unsafe |async |const )*fn\b", code[0]):
            break
    return code


def find_comments(path, text):
    """Returns the comment blocks of a file: place, item around the comment, lines, code below."""
    lines = text.split("\n")
    blocks = []
    number = 0
    while number < len(lines):
        if not lines[number].lstrip().startswith("//"):
            number += 1
            continue
        start = number
        while number < len(lines) and lines[number].lstrip().startswith("//"):
            number += 1
        code = number
        while code < len(lines) and re.fullmatch(r"\s*(#\[.*|[})\];,]*)", lines[code]):
            if lines[code].lstrip().startswith("#["):
                # An attribute may have several lines.
                while not lines[code].endswith("]"):
                    code += 1
            code += 1
        comment = [l.strip() for l in lines[start:number]]
        blocks.append((f"{path}:{start + 1}", find_item(lines, start), comment, find_code(lines, code)))
    return blocks


def find_arguments(text, start, strings):
    """Returns the arguments of the call whose parenthesis opens at `start`, and the end of the call."""
    arguments, depth, at, first = [], 0, start, start + 1
    while True:
        if at in strings:
            at = strings[at]
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0 or (depth == 1 and text[at] == ","):
            arguments.append((first, at))
            first = at + 1
        if depth == 0:
            return arguments, at
        at += 1


def find_sentences(text, strings):
    """Returns the messages of the errors in SENTENCES: start and end of the call, message."""
    found = []
    for call in re.finditer("(?:" + "|".join(map(re.escape, SENTENCES)) + r")(?=\()", text):
        arguments, end = find_arguments(text, call.end(), strings)
        shown = []
        for first, last in arguments:
            literals = [text[s + 1 : e - 1] for s, e in strings.items() if first <= s < last]
            literals = [literal for literal in literals if re.search("[A-Za-z]", literal)]
            code = re.sub(r"\s+", " ", text[first:last].strip())
            shown.append(" [or] ".join(literals) or "{" + code + "}")
        sentence = SENTENCES[call[0]]
        if len(shown) >= sentence.count("{}"):
            found.append((call.start(), end, sentence.format(*shown)))
    return found


def find_messages(path, text):
    """Returns the literals of at least three words in calls that make errors: place, literal.

    A placeholder is no word: "column {name:?}: {e}" only adds a place to the message of another error.
    """
    found = []
    tests = text.find("#[cfg(test)]\nmod ")
    strings = {start: end for kind, start, end in tokens(text) if kind == "string"}
    sentences = find_sentences(text, strings)
    for first, last, sentence in sentences:
        if any(first < start < last for start in strings) and not 0 <= tests < first:
            line = text.count("\n", 0, first) + 1
            found.append((f"{path}:{line}", re.sub(r"\\\n\s*", "", sentence)))
    for start, end in strings.items():
        literal = text[start + 1 : end - 1]
        words = re.findall(r"[A-Za-z]+", re.sub(r"\{[^{}]*\}|\\[nrt]", " ", literal))
        if len(words) < 3 or 0 <= tests < start:
            continue
        if any(first < start < last for first, last, _ in sentences):
            continue
        if text[:start].endswith(("contains(", "join(")):
            continue
        statement = re.split(r"[;{}]\s*\n", text[max(0, start - 400) : start])[-1]
        if ERRORS.search(statement):
            # `refuse` of the arguments of a function begins the message with the name of the function.
            if str(path).startswith("src/functions/") and re.search(r"\brefuse\(", statement):
                literal = "{function}: " + literal
            line = text.count("\n", 0, start) + 1
            found.append((f"{path}:{line}", re.sub(r"\\\n\s*", "", literal)))
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    seed = sys.argv[1]
    wanted = [int(n) for n in sys.argv[2:4]] + [60, 30][len(sys.argv[2:4]) :]
    comments, messages = [], []
    for root in ROOTS:
        for path in sorted(Path(root).rglob("*.rs")):
            text = path.read_text()
            comments += find_comments(path, text)
            messages += find_messages(path, text)
    draw = random.Random(seed)
    sample = draw.sample(comments, min(wanted[0], len(comments)))
    print(f"seed {seed}: {len(sample)} of {len(comments)} comments\n")
    for number, (place, item, lines, code) in enumerate(sample, 1):
        print(f"{number}. {place}" + (f", in `{item}`" if item else ""))
        for line in lines:
            print(f"    {line}")
        for line in code:
            print(f"    > {line}")
        print()
    sample = draw.sample(messages, min(wanted[1], len(messages)))
    print(f"{len(sample)} of {len(messages)} messages\n")
    for number, (place, literal) in enumerate(sample, 1):
        print(f'{number}. {place}\n    "{literal}"\n')


main()
