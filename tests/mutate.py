"""mutate.py - small changes to C sources, each of which a test should notice.

sites(path, text) gives every Mutant of a file. Works on tokens, as clang-format
lays them out here: an operator with space on both sides is binary. Comments,
literals, preprocessor lines, the arguments of assertions and array bounds in
declarations stay as they are. What does not compile or changes nothing is for
the caller to find out.

One place in the text gives at most one mutant of each operator:
  relation  < <=  > >=  == !=      logic     && ||
  sum       + -  += -=             product   * /  % *
  bits      << >>  & |             constant  one more, one less; true false
  negation  ! dropped              statement assignment or call dropped
  result    return of the opposite, or of one more
  order     two arguments of a call swapped
  extreme   min max  smaller larger  least most, as parts of called names
"""
import collections
import hashlib
import re

# id: of the file's name, the line's text and the change, not of the line's
# number: what is added above a line or moved to another folder changes none.
Mutant = collections.namedtuple("Mutant", "id path line operator start end new")
Token = collections.namedtuple("Token", "kind text start end")

LEXER = re.compile(r"""
    (?P<space>\s+)
  | (?P<skip>/\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<literal>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)
""", re.X | re.S | re.M)

BINARY = {
    "relation": {"<": "<=", "<=": "<", ">": ">=", ">=": ">",
                 "==": "!=", "!=": "=="},
    "logic": {"&&": "||", "||": "&&"},
    "sum": {"+": "-", "-": "+", "+=": "-=", "-=": "+="},
    "product": {"*": "/", "/": "*", "%": "*"},
    "bits": {"<<": ">>", ">>": "<<", "&": "|", "|": "&"},
}
OPPOSITE = {"min": "max", "smaller": "larger", "least": "most"}
OPPOSITE.update({b: a for a, b in OPPOSITE.items()})
ASSERTIONS = ("assert", "static_assert", "_Static_assert")
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "else", "do",
            "case", "default", "break", "continue", "goto", "_Alignof"}
NUMBERS = re.compile(r"(?:static )?(?:inline )?(?:u?int\d*(?:_t)?|unsigned|"
                     r"size_t|double|float)$")
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, set(")]}")


def tokens_of(text):
    return [Token(m.lastgroup, m.group(), m.start(), m.end())
            for m in LEXER.finditer(text)
            if m.lastgroup not in ("space", "skip")]


def partners(tokens):
    """Of each bracket, the index of the one that it belongs to."""
    stack, pair = [], {}
    for i, token in enumerate(tokens):
        if token.text in OPEN:
            stack.append(i)
        elif token.text in CLOSE and stack:
            pair[i] = stack.pop()
            pair[pair[i]] = i
    return pair


class File:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.tokens = tokens_of(text)
        self.pair = partners(self.tokens)
        self.functions = self.bodies()
        self.inside = {i: name for first, (name, end) in self.functions.items()
                       for i in range(first, end + 1)}
        self.asserted = self.assertions()

    def bodies(self):
        """Of each bracket that opens a function, the index of the function's
        name and of the bracket that closes it."""
        found, i = {}, 0
        while i < len(self.tokens):
            if self.tokens[i].text == "{":
                end = self.pair.get(i, i)
                if i and self.tokens[i - 1].text == ")":
                    found[i] = self.pair[i - 1] - 1, end
                i = end
            i += 1
        return found

    def assertions(self):
        found = set()
        for i, token in enumerate(self.tokens[:-1]):
            if token.text in ASSERTIONS and self.tokens[i + 1].text == "(":
                found.update(range(i, self.pair[i + 1] + 2))
        return found

    def spaced(self, token):
        return self.text[token.start - 1].isspace() and \
            self.text[token.end].isspace()

    def returned_type(self, name):
        """What the function whose name is token `name` returns, as written."""
        first = name
        while first and self.tokens[first - 1].text not in ("}", ";") and \
                self.tokens[first - 1].kind in ("name", "sign"):
            first -= 1
        end = self.tokens[name].start
        line = self.text.rfind("\n", 0, end) + 1
        return self.text[max(self.tokens[first].start, line):end].strip()

    def end_of_statement(self, i):
        """Index of the semicolon that ends what begins with token i."""
        while i < len(self.tokens) and self.tokens[i].text not in (";", "{",
                                                                   "}"):
            i = self.pair[i] + 1 if self.tokens[i].text in "([" else i + 1
        return i if i < len(self.tokens) and self.tokens[i].text == ";" \
            else None

    def changes(self):
        """(operator, start, end, new text) of all mutants."""
        for i in range(1, len(self.tokens) - 1):
            if i not in self.inside or i in self.asserted:
                continue
            for make in (self.binary, self.constant, self.negation,
                         self.statement, self.result, self.order,
                         self.extreme):
                yield from make(i, self.tokens[i])

    def binary(self, _, token):
        if token.kind != "sign" or not self.spaced(token):
            return
        for operator, table in BINARY.items():
            if token.text in table:
                yield operator, token.start, token.end, table[token.text]

    def is_bound(self, i):
        """Whether a number is all of a bound in a declaration."""
        t = self.tokens
        return t[i - 1].text == "[" and t[i + 1].text == "]" and \
            i >= 3 and t[i - 2].kind == "name" and \
            (t[i - 3].kind == "name" and t[i - 3].text not in KEYWORDS or
             t[i - 3].text == "*" and not self.spaced(t[i - 3]))

    def constant(self, i, token):
        flip = {"true": "false", "false": "true"}
        if token.text in flip:
            yield "constant", token.start, token.end, flip[token.text]
        number = re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)([uUlL]*)", token.text)
        if not number or self.is_bound(i):
            return
        value = int(number.group(1), 0)
        less = value > 0 and digest(self.path, str(token.start))[0] in "01234567"
        value += -1 if less else 1
        yield "constant", token.start, token.end, f"{value}{number.group(2)}"

    def negation(self, _, token):
        if token.text == "!":
            yield "negation", token.start, token.end, ""

    def starts_statement(self, i):
        before, token = self.tokens[i - 1], self.tokens[i]
        if before.text == ")":
            head = self.tokens[self.pair[i - 1] - 1].text
            starts = head in ("if", "for", "while", "switch")
        else:
            starts = before.text in (";", "{", "}", "else") or \
                before.text == ":" and (self.tokens[i - 2].text == "default" or
                                        self.tokens[i - 3].text == "case")
        return starts and (token.text == "*" or token.kind == "name" and
                           token.text not in KEYWORDS) and not self.in_head(i)

    def in_head(self, i):
        """Whether token i lies in round brackets: the head of a loop."""
        k = i - 1
        while k > 0 and self.tokens[k].text not in "{};(":
            k = self.pair[k] - 1 if self.tokens[k].text in CLOSE else k - 1
        while k > 0 and self.tokens[k].text == ";":
            k -= 1
            while k > 0 and self.tokens[k].text not in "{};(":
                k = self.pair[k] - 1 if self.tokens[k].text in CLOSE else k - 1
        return self.tokens[k].text == "("

    def statement(self, i, token):
        if not self.starts_statement(i):
            return
        after = self.tokens[i + 1]
        declares = token.kind == "name" and (
            after.kind == "name" or
            after.text == "*" and not self.text[after.end].isspace())
        end = self.end_of_statement(i)
        if declares or end is None or after.text == ":":
            return
        last = self.tokens[end]
        lines = self.text.count("\n", token.start, last.end)
        yield "statement", token.start, last.end, "{" + "\n" * lines + "}"

    def result(self, i, token):
        if token.text != "return" or self.tokens[i + 1].text == ";":
            return
        end = self.end_of_statement(i)
        if end is None:
            return
        kind = self.returned_type(self.inside[i])
        start, stop = self.tokens[i + 1].start, self.tokens[end].start
        value = self.text[start:stop]
        if kind in ("bool", "static bool", "static inline bool"):
            yield "result", start, stop, f"!({value})"
        elif NUMBERS.match(kind):
            yield "result", start, stop, f"({value}) + 1"

    def arguments(self, i):
        """(start, end) of each argument of the call whose bracket is i."""
        parts, first, k = [], i + 1, i + 1
        while k <= self.pair[i]:
            if self.tokens[k].text == "," or k == self.pair[i]:
                if k > first:
                    parts.append((self.tokens[first].start,
                                  self.tokens[k - 1].end))
                first = k + 1
            k = self.pair[k] + 1 if self.tokens[k].text in OPEN else k + 1
        return parts

    def order(self, i, token):
        if token.kind != "name" or token.text in KEYWORDS or \
                self.tokens[i + 1].text != "(":
            return
        parts = self.arguments(i + 1)
        for (a, a_end), (b, b_end) in zip(parts, parts[1:]):
            first, second = self.text[a:a_end], self.text[b:b_end]
            alike = (first[0] in "&\"") == (second[0] in "&\"")
            if first != second and alike and not second.endswith("_t"):
                between = self.text[a_end:b]
                yield "order", a, b_end, second + between + first

    def extreme(self, i, token):
        if token.kind != "name" or self.tokens[i + 1].text != "(":
            return
        parts = re.split(r"(_|\d+)", token.text)
        swapped = "".join(OPPOSITE.get(part, part) for part in parts)
        if swapped != token.text and re.search(rf"\b{swapped}\b", self.text):
            yield "extreme", token.start, token.end, swapped


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def apply(text, mutant):
    return text[:mutant.start] + mutant.new + text[mutant.end:]


# What a source with its mutants begins with. -2: say which functions are run.
SWITCH = """\
extern char *mutant_getenv(const char *) __asm__("getenv");
extern int mutant_atoi(const char *) __asm__("atoi");
extern int mutant_open(const char *, int, ...) __asm__("open");
extern int mutant_dprintf(int, const char *, ...) __asm__("dprintf");
extern int mutant_close(int) __asm__("close");
__attribute__((weak)) int mutant_chosen = -1;
__attribute__((weak, constructor)) void mutant_read(void) {
    const char *text = mutant_getenv("AMPHORA_MUTANT");
    mutant_chosen = text ? mutant_atoi(text) : -1;
}
__attribute__((weak)) void mutant_reached(int number) {
    int file = mutant_open(mutant_getenv("AMPHORA_REACHED"), 02001);
    mutant_dprintf(file, "%d\\n", number);
    mutant_close(file);
}
"""


def with_all(path, text, mutants, number):
    """A source in which each function has its mutants before its body; the
    one of `number` (by id) that AMPHORA_MUTANT names is run instead."""
    file, parts, at = File(path, text), [SWITCH, f'#line 1 "{path}"\n'], 0
    for i, (name, end) in sorted(file.functions.items()):
        first, last = file.tokens[i].end, file.tokens[end].start
        own = [m for m in mutants if first <= m.start < last]
        if not own:
            continue
        ends = "return;" if file.returned_type(name).endswith("void") else ""
        parts += [text[at:first], " static char mutant_seen;"
                  " if (mutant_chosen == -2 && !mutant_seen) {"
                  " mutant_seen = 1;"]
        parts += [f" mutant_reached({number[m.id]});"
                  for m in own] + [" }"]
        for m in own:
            body = text[first:m.start] + m.new + text[m.end:last]
            parts.append(f" if (mutant_chosen == {number[m.id]}) "
                         f"{{{body}\n{ends}}}\n")
        at = first
    return "".join(parts) + text[at:]


def change_of(text, mutant):
    """The lines that a mutant touches, as they are and as it makes them."""
    first = text.rfind("\n", 0, mutant.start) + 1
    last = text.find("\n", mutant.end)
    old = text[first:last]
    new = text[first:mutant.start] + mutant.new + text[mutant.end:last]
    return " ".join(old.split()), " ".join(new.split())


def sites(path, text):
    """Every mutant of a file, in the order of its text."""
    found, seen = [], collections.Counter()
    name = path.rsplit("/", 1)[-1]
    for operator, start, end, new in File(path, text).changes():
        mutant = Mutant("", path, text.count("\n", 0, start) + 1, operator,
                        start, end, new)
        old, changed = change_of(text, mutant)
        seen[old, changed] += 1
        found.append(mutant._replace(id=digest(
            name, operator, old, changed, str(seen[old, changed]))[:16]))
    return found
