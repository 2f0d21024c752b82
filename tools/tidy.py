#!/usr/bin/env python3
"""Style as a test.   tools/tidy.py [root of the tree]

Reads every file of the project and prints one line per problem: file:line: message.
"""

import os
import re
import sys

from source_tree import blank, files, finish, is_test, read, root_from

# Exceptions, with their reason. A function: ("src/x/y.cc", "name"); a file: ("src/x/y.cc", None).
# The value is the reason. Keep it empty.
LENGTH_EXCEPTIONS = {}

COLUMNS_MAX = 100
PROSE_COLUMNS_MAX = 120  # In Markdown. Rows of tables cannot be broken.
FUNCTION_LINES_MAX = 50
FILE_LINES_MAX = 600
PUBLIC_HEADER_CODE_LINES_MAX = 300

CODE = (".h", ".cc", ".c", ".py", ".cmake", ".sh")
TEXT = CODE + (".md", ".txt", ".in", ".json", ".yml")
TABBED = ("Makefile", "rules", "APKBUILD")  # make's, and Alpine's style.
NO_SUFFIX = ("Makefile", "LICENSE", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore")

CHECKERS = ("tools/tidy.py", "tools/tidy_test.py")  # They contain the texts that they look for.

SNAKE_CASE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
MACHINE_PATH = re.compile(r"(?<![\w.$})~-])/(?:home|Users|root|mnt|media)/\w")
MACRO_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b(.*)$")
MACROS_ALLOWED = re.compile(
    r"SPATE_\w+|defined|NDEBUG|__cplusplus|__cpp_exceptions|__cpp_rtti|__cpp_lib_\w+|__has_include"
    r"|[0-9]\w*")
PRINTS = re.compile(
    r"\bstd::c(?:out|err|log)\b|(?<![\w.>])(?:std::)?(?:v?f?printf|f?puts|perror|putchar)\s*\(")
ABORTS = re.compile(
    r"\bstd::(?:abort|exit|terminate)\s*\(|(?<![\w>])::(?:abort|exit)\s*\("
    r"|(?:^|[;{})?&|!])\s*(?:abort|exit)\s*\(")
EXCEPTIONS = re.compile(r"\b(?:try\s*\{|catch\s*\(|throw\b)")
TEST_NAME = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)")
PLAIN_TEST_NAME = re.compile(
    r"(?!(?:What|Of|Those|If|While|Where)(?=[A-Z]))"
    r"(?!\w*(?:Who|Whom|Whose|Whoever|Whatever|Nobody|Somebody|Anew)(?:[A-Z]|$))"
    r"(?!\w*(?:The|An|(?<![A-Z])A)(?=[A-Z]))[A-Z][A-Za-z0-9]{,59}")
USER_CODE = "src/core/user_code."  # Ends the program when a callback throws.
TASKS = "include/spate/http/coro_handler.h"  # Catches what leaves a task of a request.
MUST = "src/core/must.cc"  # Prints, and ends the program, on request.
DEAD_CALL = re.compile(r"^(?:[\w:<>*&]+ ){0,2}[\w:.<>*~\[\]-]+\(.*\)(?: \w+)*;$")
DEAD_ASSIGNMENT = re.compile(r"^[\w:<>,.*&\[\]() -]+ [-+*/|&^]?= .*;$")
DEAD_WORD = re.compile(
    r"^(?:return|break|continue|goto|delete|throw|co_return|co_await|using|typedef|\}|\w+)\W*;$"
    r"|^(?:return|delete|throw|co_return|co_await) \S+;$")
ACCESS = ("public", "protected", "private")
CONTROL = re.compile(r"^(?:if|else|for|while|switch|do|catch|return|case|default)\b")


def is_text(name):
    base = os.path.basename(name)
    return name.endswith(TEXT) or base in NO_SUFFIX or "." not in base


def is_library(name):
    return name.startswith(("include/", "src/")) and name.endswith((".h", ".cc"))


def is_public_header(name):
    return name.startswith("include/") and name.endswith(".h")


# --- Rules for one file. Each yields (line, message). ---


def check_text(root, name, lines, text):
    if not text.endswith("\n") and text:
        yield len(lines), "the last line does not end"
    if text.endswith("\n\n"):
        yield len(lines), "empty lines at the end"
    is_code = name.endswith(CODE) or os.path.basename(name) == "CMakeLists.txt"
    for number, line in enumerate(lines, 1):
        if "\t" in line and os.path.basename(name) not in TABBED:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if is_code and len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns, more than {COLUMNS_MAX}"
        if name.endswith(".md") and not line.startswith("|") and len(line) > PROSE_COLUMNS_MAX:
            yield number, f"{len(line)} columns, more than {PROSE_COLUMNS_MAX}"
        if name not in CHECKERS:
            if MACHINE_PATH.search(line) or root + "/" in line:
                yield number, "an absolute path of some machine"
            if "TODO" "(now)" in line:
                yield number, "TODO" "(now): do it"


def check_conflicts(lines):
    """Yields the lines that a merge left. A line of "=" alone also underlines a heading."""
    is_inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith(("<<<<<<< ", "||||||| ", ">>>>>>> ")) or (
                is_inside and line.rstrip() == "======="):
            yield number, "a conflict marker: finish the merge"
        if line.startswith("<<<<<<< "):
            is_inside = True
        elif line.startswith(">>>>>>> "):
            is_inside = False


def check_mode(root, name, lines):
    is_script = bool(lines) and lines[0].startswith("#!") and not name.endswith(".in")
    if is_script and not os.access(os.path.join(root, name), os.X_OK):
        yield 1, "begins with #! and is not executable"


def check_warnings(name, lines):
    """A user's newer compiler may warn: only SPATE_WERROR makes that an error."""
    if not name.endswith((".cmake", "CMakeLists.txt")):
        return
    for number, line in enumerate(lines, 1):
        if "-Werror" in line.replace("$<$<BOOL:${SPATE_WERROR}>:-Werror>", ""):
            yield number, "write $<$<BOOL:${SPATE_WERROR}>:-Werror>"


def check_name(name):
    if not name.endswith((".h", ".cc", ".c", ".py")):
        return
    path, base = os.path.split(name)
    stem = base.split(".")[0]
    if stem not in ("__init__", "__main__") and not SNAKE_CASE.fullmatch(stem):
        yield 1, f"the file's name is not snake_case: {base}"
    for part in path.split("/") + [stem]:
        if part in ("util", "utils", "misc", "helpers", "common"):
            yield 1, f"a file or directory named {part} says nothing about what is in it"


def check_header(name, lines):
    if "#pragma once" not in lines:
        yield 1, "a header without #pragma once"
    if is_public_header(name) and not (lines and lines[0].startswith(("//", "/*"))):
        yield 1, "a public header opens with a comment: what, who owns it, which thread, callbacks"


def check_file_length(name, lines, code_lines):
    if (name, None) in LENGTH_EXCEPTIONS:
        return
    if is_public_header(name):
        count = sum(1 for line in code_lines if line.strip())
        if count > PUBLIC_HEADER_CODE_LINES_MAX:
            yield 1, f"{count} lines of code, more than {PUBLIC_HEADER_CODE_LINES_MAX}"
    elif len(lines) > FILE_LINES_MAX:
        yield 1, f"{len(lines)} lines, more than {FILE_LINES_MAX}"


def check_code(name, code_lines):
    for number, line in enumerate(code_lines, 1):
        condition = MACRO_CONDITION.match(line)
        if condition and not name.startswith(("src/base/", "src/sys/", "src/backend/")):
            for word in re.findall(r"\w+", condition.group(1)):
                if not MACROS_ALLOWED.fullmatch(word):
                    yield number, f"a condition on {word} outside src/base, src/sys and src/backend"
                    break
        if is_test(name):
            continue
        if PRINTS.search(line) and name != MUST:
            yield number, "the library never prints"
        if ABORTS.search(line) and not name.startswith((USER_CODE, MUST)):
            yield number, "the library never ends the program"
        if EXCEPTIONS.search(line) and is_library(name) and not name.startswith((USER_CODE, TASKS)):
            yield number, "the library knows no exceptions, but for src/core/user_code.h"


def check_dead_code(lines):
    for number, line in enumerate(lines, 1):
        comment = re.match(r"\s*//(?P<gap>[ ]*)(?P<words>.*)$", line)
        # Prose follows one blank; an example in prose is indented by three or more.
        if not comment or len(comment.group("gap")) >= 3:
            continue
        words = comment.group("words")
        if words.endswith("{") or (words.endswith(";") and any(
                shape.search(words) for shape in (DEAD_CALL, DEAD_ASSIGNMENT, DEAD_WORD))):
            yield number, "code in a comment: remove it, or indent it by three if it is an example"


def check_test_names(lines):
    """Test names are sentences whose subject is the suite, or their own first word."""
    for number, line in enumerate(lines, 1):
        name = TEST_NAME.match(line)
        if name and not PLAIN_TEST_NAME.fullmatch(name.group(1)):
            yield number, (f"{name.group(1)} is not SubjectVerbCondition: no articles, "
                           "at most 60 letters")


def check_function_length(name, code):
    for first, last, title in functions(code):
        count = last - first + 1
        if count > FUNCTION_LINES_MAX and (name, title) not in LENGTH_EXCEPTIONS:
            yield first, f"{title} has {count} lines, more than {FUNCTION_LINES_MAX}"


# --- Finding functions: counts brackets; the text before one determines its kind. ---


def what_opens(head):
    """Returns the kind of a brace, from the text since the last statement: scope, function,
    initializer."""
    head = re.sub(r"^(?:template\s*<[^{]*?>\s*(?=class|struct|union|concept)|export\s)+", "", head)
    if re.match(r"(?:inline\s+)?namespace\b|extern\b\s*$", head):
        return "scope"
    if re.match(r"(?:typedef\s+|static\s+|constexpr\s+)*(?:class|struct|union|enum)\b(?!.*\)\s*$)",
                head, re.DOTALL):
        return "scope"
    if re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head) and re.search(r"[\w>]$", head):
        return "member"  # A constructor's initialiser: : name_{value}
    if "(" in head and not CONTROL.match(head) and not re.search(r"=\s*(?:\w[\w:<>, ]*)?$", head):
        return "function"
    return "initializer"


def functions(code):
    """(first line, last line, name) of each outermost function body in code without comments."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  code, flags=re.MULTILINE | re.DOTALL)
    stack, start, inside, line, opened = [], 0, None, 1, 1
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            head = code[start:position].strip()
            kind = "inner" if inside is not None else what_opens(head)
            stack.append(kind)
            if kind == "function":
                inside = len(stack)
                opened = line - code[start:position].lstrip().count("\n")
                title = title_of(head)
            if kind in ("scope", "function"):
                start = position + 1
        elif character == "}" and stack:
            kind = stack.pop()
            if inside is not None and len(stack) < inside:
                inside = None
                yield opened, line, title
            if kind in ("scope", "function"):
                start = position + 1
        elif character == ";" and inside is None:
            start = position + 1
        elif character == ":" and code[start:position].strip() in ACCESS:
            start = position + 1


def title_of(head):
    name = re.search(r"(operator\s*\S+|[~\w:]+)\s*\(", head)
    return name.group(1).lstrip(":") if name else "a function"


# --- All files ---


def check_file(root, name):
    text = read(root, name)
    if text is None:
        return
    lines = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
    yield from check_conflicts(lines)
    if not is_text(name):
        return
    yield from check_text(root, name, lines, text)
    yield from check_mode(root, name, lines)
    yield from check_name(name)
    yield from check_warnings(name, lines)
    if name.endswith((".h", ".cc", ".c")):
        yield from check_dead_code(lines)
        yield from check_test_names(lines)
    if name.endswith(".h") and name.startswith(("include/", "src/", "tests/")):
        yield from check_header(name, lines)
    if is_library(name):
        code = blank(text)
        yield from check_file_length(name, lines, code.split("\n"))
        yield from check_code(name, code.split("\n"))
        yield from check_function_length(name, code)


def check_tree(root):
    names = files(root)
    problems = [f"{name}:{line}: {message}" for name in names
                for line, message in check_file(root, name)]
    return problems, len(names)


def main(arguments):
    return finish("tidy", *check_tree(root_from(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
