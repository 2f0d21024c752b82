#!/usr/bin/env python3
"""Marks the comments of a public header as documentation, for Doxygen.   doxygen_filter.py FILE

Headers have plain `//` comments. A comment above a declaration becomes `///`, and one after it, on
its line, becomes `///<`. The first comment is that of the file.
"""
import pathlib
import re
import sys

OWN_LINE = re.compile(r"(\s*)//(?!/)(.*)")
BEHIND = re.compile(r"(.*?\S)(\s+)// (.*)")
BODY = re.compile(r"(?!\s*(?:class|struct|enum|union|namespace|extern)\b).*\)[^;]*\{")
SEPARATOR = re.compile(r"(?<=\d)'(?=\d)")  # In 10'000, which Sphinx cannot read.
DESIGNATED = re.compile(r"(\s*\w+ \w+)(\{\..*\});")  # An initializer that it cannot read either.
SPECIFIER = re.compile(r"\blocal (?==)")  # "local " is a specifier of IDL, which Doxygen drops.
LABEL = re.compile(r"// ([A-Z][\w ]{2,24}:)(?: |$)")  # "// Threads: the loop's thread only."
LIST = re.compile(r" [-*] ")
END = re.compile(r"[;{}]$|^\s*(?:public|private|protected):$|^[^({]*,$")  # A declaration ends so.
TITLE = re.compile(r"\s*-{2,} ")  # "// ---- called by the server"


def escaped(text):
    """Returns the text without commands and HTML; code that is indented stays as it is."""
    return text if text.startswith("     ") else re.sub(r"([\\@<>]|#(?!46;))", r"\\\1", text)


class Paragraph:
    """The lines since an empty one: their first comment belongs to each of their declarations."""

    def __init__(self):
        self.comment, self.indent, self.is_complete = [], "", True
        self.statement_indent, self.open_parentheses = "", 0

    def own_line(self, indent, text):
        if not self.is_complete or not self.comment or self.comment[-1] is None:
            self.comment, self.indent = [], indent
        self.comment.append(text)

    def code(self, line):
        """Returns the comment once more, if an uncommented declaration begins with the line."""
        indent = line[:len(line) - len(line.lstrip())]
        if self.is_complete:
            self.statement_indent = indent
        begins = self.is_complete and indent == self.indent and not line.lstrip().startswith("}")
        again = begins and self.comment and self.comment[-1] is None
        self.open_parentheses += line.count("(") - line.count(")")
        self.is_complete = self.open_parentheses == 0 and END.search(line) is not None
        if begins and self.comment and self.comment[-1] is not None:
            self.comment.append(None)
        return self.comment[:-1] if again else []


def without_titles(lines):
    """Turns a title that has sentences into a comment of the next declaration."""
    title = []
    for line in lines:
        own = OWN_LINE.fullmatch(line)
        if own and (title or TITLE.match(own[2])):
            title.append(TITLE.sub(" ", own[2]))
            continue
        if title and line.strip():
            if len(title) > 1:
                indent = line[:len(line) - len(line.lstrip())]
                subject, _, text = title[0].partition(". " if ". " in title[0] else ": ")
                title[0] = f" {text[:1].upper()}{text[1:]}" if text else subject
                yield from (f"{indent}//{text}" for text in title)
            title = []
        yield line


def marked(lines):
    behind_at = None  # The column of a comment behind code that may continue on the next line.
    paragraph, end_of_body = Paragraph(), None
    for line in lines:
        if end_of_body is not None:
            end_of_body = None if line.startswith(end_of_body) else end_of_body
            yield line
            continue
        own, behind = OWN_LINE.fullmatch(line), BEHIND.fullmatch(line)
        if own and behind_at == len(own[1]):
            yield f"{own[1]}///<{escaped(own[2])}"
            continue
        behind_at = None
        if not line.strip():
            paragraph = Paragraph()
            yield line
        elif own:
            paragraph.own_line(own[1], own[2])
            yield f"{own[1]}///{escaped(own[2])}"
        elif behind and '"' not in behind[3]:
            paragraph.code(behind[1])
            behind_at = len(behind[1] + behind[2])
            yield f"{behind[1]}{behind[2]}///< {escaped(behind[3])}"
        else:
            for text in paragraph.code(line):
                yield f"{paragraph.indent}///{escaped(text)}"
            yield line
        if not own and BODY.fullmatch(line):
            end_of_body = paragraph.statement_indent + "}"


def with_code(lines):
    """Indents the examples in comments as Markdown wants it, and keeps numbers from being lists."""
    previous = ""
    for line in lines:
        own = OWN_LINE.fullmatch(line)
        if not own:
            previous = ""
            yield line
            continue
        text, is_code = own[2], re.match(r" {3,}\S", own[2]) and not LIST.match(previous)
        if is_code:
            if previous.strip() and not previous.startswith("    "):
                yield f"{own[1]}//"
            text = "  " + text
        elif not LIST.match(text):
            text = re.sub(r"^( *\d+)\.", r"\1&#46;", text)
        previous = previous if re.match(" {3,}", text) and LIST.match(previous) else text
        yield f"{own[1]}//{text}"


def of_the_file(lines):
    """Yields the file's comment, with a paragraph for each of its labels, then the rest."""
    for number, line in enumerate(lines):
        if not line.startswith("//"):
            yield from lines[number:]
            return
        label = LABEL.match(line)
        if label and number > 0:
            yield from ("//", f"// **{label[1]}**{line[label.end(1):]}")
        else:
            yield line


def simplified(line):
    """Returns the line without what Sphinx cannot read."""
    line = SPECIFIER.sub("local", SEPARATOR.sub("", line))
    return DESIGNATED.sub(r"\1;  // Default: \2.", line)


def main():
    lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
    lines = [line if OWN_LINE.fullmatch(line) else simplified(line) for line in lines]
    print("/// @file")
    print("\n".join(marked(with_code(without_titles(of_the_file(lines))))))


if __name__ == "__main__":
    main()
