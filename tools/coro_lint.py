#!/usr/bin/env python3
"""Finds coroutine code that g++ 12 miscompiles.   tools/coro_lint.py FILE|DIRECTORY...

Reads C++ (.h, .cc, .cpp, .hpp, .cxx) and the C++ in Markdown (.md); prints FILE:LINE: RULE: the
replacement. docs/guide/coroutine-compilers.md gives the reasons. It does not know types, and so
reports some correct code: `// coro-lint: ok` at the end of a line suppresses the report. Exits with
1 if anything was found.
"""

import argparse
import os
import re
import sys

RULES = {
    "header": "co_await in the header of if, while, for, do or switch: name its result first",
    "conditional": "co_await beside ?:, whose objects are destroyed twice: write an if",
    "braces": "co_await between braces, whose objects are destroyed twice: give its result a name "
              "first",
    "capture": "co_await in a capture list, destroyed twice: give its result a name first",
    "alone": "co_await inside a larger expression: let it stand alone, behind = or return, or in "
             "T name(co_await ...)",
    "aggregate": "an object made with braces inside what is awaited, destroyed twice if it has a "
                 "destructor: give it a name first, and move it",
    "closure": "a lambda that captures by value inside what is awaited, destroyed twice: give it a "
               "name first, and move it",
    "binding": "a structured binding of what was awaited: later versions of g++ forget to destroy "
               "it; take it as one object",
    "aligned": "a local of a coroutine that is aligned to more than 16 bytes: no compiler does it; "
               "let it live elsewhere",
    "coroutine": "a lambda that is a coroutine and captures: the captures are in the closure, and "
                 "may be gone when it resumes; take parameters",
}
WAITS = {"co_await", "co_yield", "co_return"}
HEADERS = {"if", "while", "for", "switch"}
# Types with a trivial destructor: the options of these functions, and these types; the tests assert
# it.
PLAIN_OPTIONS = {"connect"}
PLAIN_TYPES = {"Address", "Bytes", "ConnectOptions", "Delimiter", "FixedSize", "LengthField",
               "Nanos"}
STARTS = {";", "{", "}", "else", "do", ":", None}
SOURCES = (".h", ".hh", ".hpp", ".cc", ".cpp", ".cxx")

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#(?:\\\n|[^\n])*)
      | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
                |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[\w.]|'\w|[eEpP][+-])*)
      | (?P<sign>::|->|\[\[|\]\]|&&|\|\||[-+*/%&|^=!<>]=|.)""", re.S | re.X)
PAIRS = {")": "(", "]": "[", "}": "{", "]]": "[["}


class Token:
    def __init__(self, kind, text, line):
        self.kind = kind
        self.text = text
        self.line = line
        self.mate = None   # The position of a bracket's counterpart.
        self.within = None  # The innermost bracket that is open here.


def tokens_of(source):
    tokens, open_brackets, line = [], [], 1
    for match in TOKEN.finditer(source):
        text = match.group()
        if match.lastgroup != "skip" and not match.group("skip"):
            token = Token(match.lastgroup if match.lastgroup != "mark" else "text", text, line)
            token.within = open_brackets[-1] if open_brackets else None
            place = len(tokens)
            if token.kind == "sign" and text in PAIRS.values():
                open_brackets.append(place)
            elif token.kind == "sign" and text in PAIRS and token.within is not None:
                token.mate = open_brackets.pop()
                token.within = tokens[token.mate].within
                tokens[token.mate].mate = place
            tokens.append(token)
        line += text.count("\n")
    return tokens


class Source:
    def __init__(self, text):
        self.tokens = tokens_of(text)
        self.lambdas = {}  # Where its captures begin: (where its body begins, the captures).
        self.bodies = set()
        for place, token in enumerate(self.tokens):
            if token.text == "[" and self.begins_lambda(place):
                self.note_lambda(place)

    def text(self, place):
        return self.tokens[place].text if 0 <= place < len(self.tokens) else None

    def begins_lambda(self, place):
        before = self.tokens[place - 1] if place > 0 else None
        if before is None or self.tokens[place].mate is None:
            return False
        if before.kind == "word":
            return before.text in WAITS | {"return", "else", "do", "case"}
        return before.kind == "sign" and before.text not in (")", "]", "}", "auto", "&")

    def note_lambda(self, place):
        end = self.tokens[place].mate
        at = end + 1
        while self.text(at) is not None and self.text(at) not in ("{", ";", ")", ",", "}"):
            has_end = self.text(at) == "(" and self.tokens[at].mate is not None
            at = self.tokens[at].mate + 1 if has_end else at + 1
        if self.text(at) == "{" and self.tokens[at].mate is not None:
            self.lambdas[place] = (at, self.captures(place + 1, end))
            self.bodies.add(at)

    def captures(self, begin, end):
        """The captures, one text each."""
        parts, depth = [[]], 0
        for token in self.tokens[begin:end]:
            depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
            if token.text == "," and depth == 0:
                parts.append([])
            else:
                parts[-1].append(token.text)
        return [part for part in parts if part]

    def is_block(self, place):
        """Whether a brace begins statements, or declarations; else it makes an object."""
        if place in self.bodies:
            return True
        before = self.text(place - 1)
        if before in STARTS | {")", "try", "const", "noexcept", "override", "final", "mutable"}:
            return True
        at = place - 1
        while at >= 0 and self.text(at) not in (";", "{", "}"):
            if self.text(at) == ")" and self.tokens[at].mate is not None:
                if self.text(at + 1) == "->":
                    return True
                at = self.tokens[at].mate
            elif self.text(at) in ("(", ",", "=", "return") and self.tokens[at].mate is None:
                return False
            elif self.text(at) in ("struct", "class", "union", "enum", "namespace", "extern"):
                return True
            elif self.text(at) == "(":
                return False
            at -= 1
        return False

    def statement(self, place):
        """Where its statement begins, and the brackets in between, innermost first."""
        around = []
        at = self.tokens[place].within
        while at is not None and not (self.text(at) == "{" and self.is_block(at)):
            around.append(at)
            at = self.tokens[at].within
        block = -1 if at is None else at
        begin = around[-1] if around else place
        while begin - 1 > block and self.text(begin - 1) not in (";", "}", "{"):
            begin -= 1
            if self.text(begin) in (")", "]") and self.tokens[begin].mate is not None:
                begin = self.tokens[begin].mate
        return begin, around

    def rest(self, place, within):
        """Returns the end of the rest of the expression: the end of the statement, or of its
        bracket."""
        at = place
        while self.text(at) not in (";", None):
            token = self.tokens[at]
            if token.text in PAIRS and token.within == within:
                break
            at = token.mate + 1 if token.text in PAIRS.values() and token.mate else at + 1
        return at

    def operand(self, place):
        """Returns the end of the awaited expression: names, calls, members."""
        at = place + 1
        while self.text(at) is not None:
            token = self.tokens[at]
            if token.kind == "sign" and token.text in ("(", "[", "{") and token.mate is not None:
                at = token.mate + 1
            elif token.text == "<" and self.template_end(at):
                at = self.template_end(at)
            elif token.kind != "sign" or token.text in ("::", ".", "->", "*", "&"):
                at += 1
            else:
                break
        return at

    def template_end(self, place):
        depth, at = 0, place
        while self.text(at) not in (";", "{", "}", "(", ")", None):
            depth += (self.text(at) == "<") - (self.text(at) == ">")
            at += 1
            if depth == 0:
                return at
        return None

    # ---- the rules

    def problems(self):
        for place, token in enumerate(self.tokens):
            if token.text == "co_await" and self.text(place - 1) != "operator":
                yield from ((token.line, rule) for rule in self.around_await(place))
                yield from self.inside_operand(place)
            elif token.text == "co_yield":
                if self.has_conditional(place):
                    yield token.line, "conditional"
                yield from self.inside_operand(place)
            elif token.text == "alignas" and self.aligns_too_much(place):
                yield token.line, "aligned"
        for place, (body, captures) in self.lambdas.items():
            if captures and self.waits(body):
                yield self.tokens[place].line, "coroutine"

    def around_await(self, place):
        begin, around = self.statement(place)
        for bracket in around:
            before = self.text(bracket - 1)
            if self.text(bracket) == "(" and (before in HEADERS or
                                              before == "constexpr" and
                                              self.text(bracket - 2) == "if"):
                return ["header"]
            if bracket in self.lambdas:
                return ["capture"]
            if self.text(bracket) == "{":
                return ["braces"]
        if self.has_conditional(begin):
            return ["conditional"]
        behind = self.text(self.operand(place))
        if not self.is_alone(place, begin) or behind not in (";", ")", None):
            return ["alone"]
        return ["binding"] if self.is_binding(begin) else []

    def has_conditional(self, place):
        within = self.tokens[place].within
        end = self.rest(place, within)
        at = place
        while at < end:
            if self.text(at) == "?":
                return True
            at = self.lambdas[at][0] if at in self.lambdas else at
            at = self.tokens[at].mate if at in self.bodies else at
            at += 1
        return False

    def is_alone(self, place, begin):
        before = self.tokens[place - 1] if place > 0 else None
        if before is None or place == begin:
            return True
        if before.text in ("return", "co_return", "else", "do") or before.text in STARTS:
            return True
        if before.text == "=" or re.fullmatch(r"[-+*/%&|^]=", before.text):
            return before.within == self.tokens[begin].within
        if before.text == ")":  # For if (...) co_await ...
            return self.text(before.mate - 1) in HEADERS if before.mate else False
        return before.text == "(" and self.is_declaration(begin, place - 1)

    def is_declaration(self, begin, bracket):
        """T name(...), as a statement."""
        name = self.tokens[bracket - 1]
        kind = self.tokens[bracket - 2] if bracket - 2 >= begin else None
        if name.kind != "word" or kind is None or self.tokens[bracket].within != name.within:
            return False
        is_type = kind.kind == "word" and kind.text not in WAITS | {"return", "new", "throw"}
        return (is_type or kind.text in (">", "*", "&")) and "=" not in (
            self.text(at) for at in range(begin, bracket))

    def is_binding(self, begin):
        words = [self.text(begin + i) for i in range(5)]
        while words and words[0] in ("const", "static", "constexpr"):
            words.pop(0)
        if not words or words[0] != "auto":
            return False
        words.pop(0)
        if words and words[0] in ("&", "&&"):
            words.pop(0)
        return bool(words) and words[0] == "["

    def inside_operand(self, place):
        at, end = place + 1, self.operand(place)
        while at < end:
            token = self.tokens[at]
            if at in self.lambdas:
                body, captures = self.lambdas[at]
                if any(self.is_copy(capture) for capture in captures):
                    yield token.line, "closure"
                at = self.tokens[body].mate
            elif token.text == "{" and token.mate is not None and not self.is_plain(at):
                yield token.line, "aggregate"
                at = token.mate
            at += 1

    @staticmethod
    def is_copy(capture):
        return capture[0] != "&" and capture != ["this"]

    def is_plain(self, brace):
        """Returns true if the brace initialises a type that is known to be plain, or the plain
        options of a function."""
        if self.text(brace - 1) in PLAIN_TYPES:
            return True
        call = self.tokens[brace].within
        return (self.text(brace - 1) in ("(", ",") and call is not None and
                self.text(call - 1) in PLAIN_OPTIONS)

    def aligns_too_much(self, place):
        """A local of a coroutine, to a number that is too large."""
        number = self.text(place + 2) or ""
        if not number.isdigit() or int(number) <= 16:
            return False
        at = self.tokens[place].within
        while at is not None:
            if self.text(at) == "{" and self.tokens[at].mate is not None and self.waits(at):
                return True
            at = None if at in self.bodies else self.tokens[at].within
        return False

    def waits(self, body):
        at, end = body + 1, self.tokens[body].mate
        while at < end:
            if at in self.lambdas:
                at = self.tokens[self.lambdas[at][0]].mate
            elif self.text(at) in WAITS:
                return True
            at += 1
        return False


def code_of(path, text):
    """The C++ of a file, at its lines."""
    if not path.endswith(".md"):
        return text
    lines, is_code = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code and line.lstrip().startswith("```cpp")
            line = ""
        lines.append(line if is_code else "")
    return "\n".join(lines)


def check(path, text):
    """[(line, rule)]"""
    lines = text.split("\n")
    found = sorted(set(Source(code_of(path, text)).problems()))
    return [(line, rule) for line, rule in found if "// coro-lint: ok" not in lines[line - 1]]


def files_of(paths):
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for directory, names, files in os.walk(path):
            names[:] = sorted(name for name in names if not name.startswith((".", "build")))
            yield from (os.path.join(directory, name) for name in sorted(files)
                        if name.endswith((*SOURCES, ".md")))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="FILE|DIRECTORY")
    paths = list(files_of(parser.parse_args(arguments).paths))
    problems = 0
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line, rule in check(path, file.read()):
                print(f"{path}:{line}: {rule}: {RULES[rule]}")
                problems += 1
    print(f"coro_lint: {len(paths)} files, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
