"""Rows in a terminal or a pipe: colours where there are some, marks where there are none."""

from __future__ import annotations

import sys
from itertools import groupby

from rich.console import Console
from rich.text import Text

from databuild.inspect import Document, Look, View
from databuild.inspect.find import Match
from databuild.inspect.text import TokenText, printable, runs, spelled


class Terminal(Console):
    """A console that ends quietly when its reader has what it wanted (`| head`)."""

    def on_broken_pipe(self) -> None:
        """Let the command line decide."""
        raise


def new_console() -> Terminal:
    """The console of stdout; in a pipe lines stay whole."""
    return Terminal(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_look(answer: Look) -> None:
    """Print what was found, then its rows: a rule before each conversation, trained text green and underlined."""
    console = new_console()
    printer = _Printer(console, answer.text)
    if answer.to_list:
        _print_matches(console, answer.matches)
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="yellow"))
    for view in answer.views:
        size, targets = len(view.ids), int(view.mask.sum())
        console.print(
            Text(
                f"{answer.manifest.name}, row {view.row} of {answer.manifest.rows.rows:,}: {size:,} tokens, "
                f"{targets:,} trained ({targets / size:.1%}), {view.num_documents:,} "
                f"conversation{'s' * (view.num_documents != 1)}"
            )
        )
        for place, document in enumerate(view.documents):
            console.print(Text(heading(document), style="bold"))
            if view.reasons is not None:
                printer.reasons(view, place)
            elif not answer.show_ids:
                printer.text(view, document)
            if answer.show_ids:
                printer.ids(view, document)
    if printer.saw_spelled:
        console.print(Text(f"{_SPELLED[0]} {_SPELLED[1]} text that only spells a special token; it is ordinary text"))


def heading(document: Document) -> str:
    """The line before a conversation."""
    trained = sum(s.stop - s.start for s in document.spans if s.trained)
    return (
        f"── source row {document.source_row}{', continued' if document.continues else ''}, tokens {document.start} to "
        f"{document.stop - 1}, {trained:,} trained ──"
    )


def _print_matches(console: Terminal, matches: list[Match]) -> None:
    console.print(Text(f"{len(matches)} places, the first is shown (--row shows another):"))
    for match in matches:
        console.print(Text(f"  row {match.row}, tokens {match.start} to {match.stop - 1}: {one_line(match.why)}"))


def one_line(text: str) -> str:
    """Text on one line, its line ends as escapes."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


_SPELLED = ("⟪", "⟫")


class _Printer:
    """Writes runs of tokens. Where there is no colour the marks say what is trained."""

    def __init__(self, console: Terminal, text: TokenText) -> None:
        self._console = console
        self._text = text
        self._colours = console.is_terminal and console.color_system is not None and not console.no_color
        self.saw_spelled = False

    def text(self, view: View, document: Document) -> None:
        line = Text()
        for span in document.spans:
            self._append(line, view, span.start, span.stop)
        self._console.print(line)

    def reasons(self, view: View, place: int) -> None:
        assert view.reasons is not None
        for reason in view.reasons[place]:
            line = Text("+ " if reason.trained else "  ")
            self._append(line, view, reason.start, reason.stop, bold=True)
            where = "" if reason.message is None else f"message {reason.message}, "
            stop = "" if reason.stop == reason.start + 1 else f" to {reason.stop - 1}"
            line.append(f"   [{reason.start}{stop}] {where}{reason.why}", style="dim")
            self._console.print(line)

    def ids(self, view: View, document: Document) -> None:
        """One line for each token: place, id, + if trained, text."""
        lines = Text()
        for place in range(document.start, document.stop):
            token, trained = int(view.ids[place]), bool(view.mask[place])
            special = bool(self._text.is_special[token])
            shown = printable(self._text.token(token))
            lines.append(f"{place:>7} {token:>7} {'+' if trained else ' '} ")
            lines.append(shown if special else repr(shown)[1:-1], style=_style(trained, special))
            lines.append("\n")
        self._console.print(lines, end="")

    def _append(self, line: Text, view: View, start: int, stop: int, *, bold: bool = False) -> None:
        """Add tokens that are all trained or none; bold: special tokens stand out."""
        trained = bool(view.mask[start])
        parts: list[tuple[str, str]] = []
        for run in runs(view.ids, view.mask, start, stop, self._text):
            if run.special:
                parts.append((printable(run.text), _style(trained, bold)))
                continue
            for part, spells in spelled(self._text, run.text):
                shown = printable(part)
                if spells:
                    self.saw_spelled = True
                    shown = f"{_SPELLED[0]}{shown}{_SPELLED[1]}"
                parts.append((shown, "bold red" if spells else _style(trained, False)))
        marks = trained and not self._colours
        line.append("⟦" if marks else "")
        for style, same in groupby(parts, key=lambda part: part[1]):
            line.append("".join(shown for shown, _ in same), style=style)
        line.append("⟧" if marks else "")


def _style(trained: bool, bold: bool) -> str:
    # Bold is no colour, so a terminal without colours shows it too.
    return " ".join(filter(None, ("green underline" if trained else "", "bold" if bold else ""))) or "none"
