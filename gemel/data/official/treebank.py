"""Words as the Penn Treebank splits them, which is how SentEval prepares MR, CR, SUBJ and MPQA."""

from __future__ import annotations

import re

# Opening quotes, what stands alone, then closing quotes and the parts of contractions; the order matters.
_BEFORE = [
    (re.compile(r'^"'), "`` "),
    (re.compile(r'([ (\[{<])"'), r"\1 `` "),
    (re.compile(r"\.\.\."), " ... "),
    (re.compile(r"([,;:@#$%&])"), r" \1 "),
    (re.compile(r"([^.])(\.)([\])}>\"']*)\s*$"), r"\1 \2\3 "),
    (re.compile(r"([?!])"), r" \1 "),
    (re.compile(r"([\]\[(){}<>])"), r" \1 "),
    (re.compile(r"--"), " -- "),
]
_AFTER = [
    (re.compile(r'"'), " '' "),
    (re.compile(r"([^'])' "), r"\1 ' "),
    (re.compile(r"'([sSmMdD]) "), r" '\1 "),
    (re.compile(r"('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "), r" \1 "),
    (re.compile(r" ([Cc])annot "), r" \1an not "),
    (re.compile(r" ([Dd])'ye "), r" \1' ye "),
    (re.compile(r" ([Gg])(im|on|ot)(me|na|ta) "), r" \1\2 \3 "),
    (re.compile(r" ([Ll])emme "), r" \1em me "),
    (re.compile(r" ([Mm])ore'n "), r" \1ore 'n "),
    (re.compile(r" '([Tt])(is|was) "), r" '\1 \2 "),
    (re.compile(r" ([Ww])anna "), r" \1an na "),
]


def escaped(line: str) -> str:
    """The latin-1 line as `cat -v` shows it, which SentEval's script does first: an é becomes `M-i`."""
    return "".join(char if " " <= char <= "~" or char == "\t" else _escape(ord(char)) for char in line)


def _escape(code: int) -> str:
    meta, code = ("M-", code - 128) if code >= 128 else ("", code)
    if code == 127:
        return f"{meta}^?"
    return f"{meta}^{chr(code + 64)}" if code < 32 else f"{meta}{chr(code)}"


def treebank_words(line: str) -> str:
    """The line with a blank between any two words and signs."""
    for pattern, replacement in _BEFORE:
        line = pattern.sub(replacement, line)
    line = f" {line} "
    for pattern, replacement in _AFTER:
        line = pattern.sub(replacement, line)
    return re.sub(" +", " ", line).strip(" ")
