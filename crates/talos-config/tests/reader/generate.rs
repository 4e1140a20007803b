//! Documents from a seed: grammatical ones in odd notations, soups of fragments, and damaged ones.

/// A small generator of numbers (splitmix64): the same seed gives the same documents everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.number() % n.max(1) as u64) as usize
    }

    /// One time in `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }
}

const WORDS: &[&str] = &[
    "a",
    "b",
    "key",
    "1",
    "0x1f",
    "~",
    "null",
    "true",
    "é",
    "x y",
    "a#b",
    "a:b",
    "-1",
    "10.0.0.1/8",
    "?x",
    "-x",
    ":x",
    "a'b",
    "a\"b",
    "ключ",
    "\u{1F600}",
    "<<",
    "=",
    "a,b",
    "a]",
    "1:30",
    "a?b",
    "x: ",
    "\\",
    "%a",
    "a\u{a0}b",
];

const BREAKS: &[&str] =
    &["\n", "\n", "\n", "\n", "\n", "\r\n", "\r", "\n\n", "\u{85}", "\u{2028}", "\u{2029}", "\n \n"];

const FRAGMENTS: &[&str] = &[
    "a",
    "b",
    "c",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\n",
    "\n",
    "\n ",
    "\n  ",
    "\n\t",
    ":",
    ": ",
    ":\n",
    "- ",
    "-",
    "-\n",
    "? ",
    "?",
    "[",
    "]",
    "{",
    "}",
    ",",
    ", ",
    "&a ",
    "&a",
    "*a",
    "*a ",
    "*b",
    "!",
    "! ",
    "!t ",
    "!!str ",
    "!<x> ",
    "!e!t ",
    "|",
    "|\n",
    ">\n",
    "|-\n",
    "|+\n",
    "|2\n",
    ">1\n",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "\\n",
    "\\\n",
    "#",
    " #",
    "# c\n",
    "---",
    "---\n",
    "\n---\n",
    "\n--- ",
    "...",
    "\n...\n",
    "%YAML 1.1\n",
    "%TAG !e! x\n",
    "%",
    "@",
    "`",
    "\r\n",
    "\r",
    "\u{85}",
    "\u{2028}",
    "\u{a0}",
    "é",
    "\u{7f}",
    "\u{80}",
    "\u{feff}",
    "a: b",
    "a: b\n",
    "- a\n",
    "'a'",
    "\"a\"",
    "[a]",
    "{a: b}",
    "[:",
    ":]",
    "::",
    "<<",
    "\\x41",
    "\\u",
    "~",
    "\u{1F600}",
];

/// A few documents to damage.
pub const SAMPLES: &[&str] = &[
    "machine:\n  type: worker # x\n  certSANs:\n  - 10.0.0.1\n  - 'it''s'\n  nodeLabels: {a: b, \"c/d\": 'e', f: , g: h i}\n",
    "a: &x [1, two, {three: 3}, [4]]\nb: *x\nc: !!str 5\n? d\n: e\n",
    "f: >-\n  some\n  text\n\n  more\n   indented\ng: |+\n  line\n    two\n\n  # no comment\nh: end\n",
    "%YAML 1.1\n%TAG !e! tag:e,2000:\n---\n!e!a b\n...\n# c\n---\n- - x\n  - y\n- a: 1\n  b: 2\n-\n  c: ~\n",
    "\"a\\x41\\\n  b\": 'c\n\n  d'\ne: \"\\u00e9\\t\"\n",
    "# head\n\t# tab\na:\n  # in\n  - b # right\n  # foot\n\n# tail\n",
    "[a, [b, c]: d, {e: f, g}, ? h : i, \"j\":k, *l, &m n]\n",
    "--- |\n a\n--- >2\n   b\n--- 'c'\n--- \"d\"\n...\n",
];

/// A document of any kind. `corpus` holds further texts to damage.
pub fn document(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    match random.below(10) {
        0..=2 => stream(random).into_bytes(),
        3 | 4 => {
            let count = 1 + random.below(14);
            (0..count).map(|_| random.pick(FRAGMENTS)).collect::<String>().into_bytes()
        }
        5 | 6 => {
            let text = stream(random).into_bytes();
            damaged(random, text)
        }
        7 if !corpus.is_empty() => {
            let text = &corpus[random.below(corpus.len())];
            let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
            let from = random.below(lines.len());
            let to = (from + 1 + random.below(12)).min(lines.len());
            damaged(random, lines[from..to].concat())
        }
        8 => utf16(random),
        _ => {
            let text = random.pick(SAMPLES).as_bytes().to_vec();
            damaged(random, text)
        }
    }
}

fn utf16(random: &mut Random) -> Vec<u8> {
    let text = stream(random);
    if !random.once_in(4) {
        return text.into_bytes();
    }
    let little = random.once_in(2);
    let mut out = if little { vec![0xff, 0xfe] } else { vec![0xfe, 0xff] };
    for unit in text.encode_utf16() {
        out.extend(if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
    }
    if random.once_in(5) {
        out.truncate(out.len() - 1);
    }
    out
}

/// A text with one to four changes.
pub fn damaged(random: &mut Random, mut text: Vec<u8>) -> Vec<u8> {
    for _ in 0..1 + random.below(4) {
        let at = random.below(text.len() + 1);
        let to = (at + 1 + random.below(4)).min(text.len());
        match random.below(7) {
            0 => drop(text.drain(at..to)),
            1 => {
                let copy = text[at..to].to_vec();
                let place = random.below(text.len() + 1);
                text.splice(place..place, copy);
            }
            2 if to > at + 1 => text.swap(at, to - 1),
            3 if at < text.len() => {
                const SIGNS: &[u8] = b" \t\n\r:-?[]{},&*!|>'\"#%@\\ab1\xc2\x85\xe2\x7f\x00";
                text[at] = SIGNS[random.below(SIGNS.len())];
            }
            4 => text.truncate(if random.once_in(8) { at } else { text.len() }),
            _ => {
                let fragment = random.pick(FRAGMENTS).bytes();
                text.splice(at..at, fragment);
            }
        }
    }
    text
}

struct Writer<'r> {
    random: &'r mut Random,
    out: String,
    anchors: usize,
    odd: bool,
}

/// A stream by the grammar, in odd notations, seldom wrong.
pub fn stream(random: &mut Random) -> String {
    let odd = random.once_in(2);
    let mut writer = Writer { random, out: String::new(), anchors: 0, odd };
    if writer.random.once_in(30) {
        writer.out.push('\u{feff}');
    }
    let documents = if writer.random.once_in(3) { 1 + writer.random.below(3) } else { 1 };
    for i in 0..documents {
        if writer.random.once_in(12) {
            if i > 0 {
                writer.out.push_str("...\n");
            }
            writer.directives();
            writer.out.push_str("---");
            writer.gap();
        } else if i > 0 || writer.random.once_in(6) {
            writer.out.push_str("---");
            writer.gap();
        }
        writer.block(0, 0);
        writer.line_end();
        if writer.random.once_in(12) {
            writer.out.push_str("...");
            writer.line_end();
        }
    }
    writer.out
}

impl Writer<'_> {
    fn directives(&mut self) {
        for _ in 0..1 + self.random.below(2) {
            let line = self.random.pick(&[
                "%YAML 1.1",
                "%YAML 1.2",
                "%TAG !e! tag:e,2000:",
                "%TAG ! tag:x:",
                "%TAG !! !y",
                "%YAML 1.1 # c",
                "%FOO a",
                "%TAG\t!e!\t!z",
                "%TAG !e! a{b",
                "%TAG !e! a%41",
            ]);
            self.out.push_str(line);
            self.line_end();
        }
    }

    fn line_end(&mut self) {
        if self.random.once_in(8) {
            self.blank();
            let comment = self.random.pick(&["# c", "#", "#c: d", "# é\u{85}", "# - x"]);
            self.out.push_str(comment);
        }
        let text = if self.odd { self.random.pick(BREAKS) } else { "\n" };
        self.out.push_str(text);
        if self.random.once_in(10) {
            let line = self.random.pick(&[
                "\n",
                "# c\n",
                "  # c\n",
                "\t# c\n",
                " \n",
                "\t\n",
                "   \n",
                "# c\n\t# d\n",
            ]);
            self.out.push_str(line);
        }
    }

    fn blank(&mut self) {
        let text = if self.odd { self.random.pick(&[" ", " ", "  ", "\t", " \t", ""]) } else { " " };
        self.out.push_str(text);
    }

    /// After `---`.
    fn gap(&mut self) {
        if self.random.once_in(3) { self.blank() } else { self.line_end() }
    }

    fn indent(&mut self, indent: usize) {
        let slip = if self.odd && self.random.once_in(25) { 1 } else { 0 };
        let width = if self.random.once_in(2) { indent + slip } else { indent.saturating_sub(slip) };
        self.out.extend(std::iter::repeat_n(' ', width));
        if self.odd && self.random.once_in(60) {
            self.out.push('\t');
        }
    }

    fn properties(&mut self) {
        if self.random.once_in(8) {
            let tag = self.random.pick(&[
                "!t", "!!str", "!!int", "!", "!<x>", "!<!>", "!e!a", "!a%41", "!a,b", "![x", "!<a{b>", "!!",
                "!t%C3%A9",
            ]);
            self.out.push_str(tag);
            self.blank();
        }
        if self.random.once_in(10) {
            self.anchors += 1;
            let name = self.random.pick(&["a", "b", "x1", "a-b", "é", "a.b", "a:b", "a\"b"]);
            self.out.push('&');
            self.out.push_str(name);
            self.blank();
            if self.random.once_in(6) {
                self.line_end();
                self.indent(2);
            }
        }
    }

    fn block(&mut self, indent: usize, depth: usize) {
        self.properties();
        match self.random.below(if depth > 3 { 5 } else { 9 }) {
            0 => self.block_text(indent),
            1..=4 => self.inline(indent, depth),
            5 | 6 => self.sequence(indent, depth),
            _ => self.mapping(indent, depth),
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) {
        if !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
            self.line_end();
        }
        for i in 0..1 + self.random.below(3) {
            if i > 0 || self.out.ends_with('\n') {
                self.indent(indent);
            }
            self.out.push('-');
            self.blank();
            if self.random.once_in(8) {
                self.line_end();
                self.indent(indent + 2);
            }
            if !self.random.once_in(8) {
                self.block(indent + 2, depth + 1);
            }
            if !self.out.ends_with('\n') {
                self.line_end();
            }
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) {
        for i in 0..1 + self.random.below(3) {
            if i > 0 || self.out.ends_with('\n') {
                self.indent(indent);
            }
            if self.random.once_in(10) {
                self.out.push('?');
                self.blank();
                self.block(indent + 2, depth + 1);
                if !self.out.ends_with('\n') {
                    self.line_end();
                }
                if self.random.once_in(4) {
                    continue;
                }
                self.indent(indent);
            } else {
                self.properties();
                if self.random.once_in(12) {
                    self.flow(depth + 2)
                } else {
                    self.scalar(indent)
                }
                if self.odd && self.random.once_in(6) {
                    self.blank();
                }
            }
            self.out.push(':');
            self.value(indent, depth);
            if !self.out.ends_with('\n') {
                self.line_end();
            }
        }
    }

    fn value(&mut self, indent: usize, depth: usize) {
        match self.random.below(5) {
            0 if depth < 4 => {
                self.line_end();
                self.indent(indent + 2);
                self.block(indent + 2, depth + 1);
            }
            1 if depth < 4 => {
                self.out.push('\n');
                let column = indent + 2 * self.random.below(2);
                self.sequence(column, depth + 1);
            }
            2 if self.random.once_in(2) => {
                self.blank();
                self.properties();
            }
            3 if self.random.once_in(2) => {
                self.blank();
                self.block_text(indent);
            }
            _ => {
                self.blank();
                self.properties();
                self.inline(indent, depth);
            }
        }
    }

    fn inline(&mut self, indent: usize, depth: usize) {
        if self.random.once_in(4) { self.flow(depth) } else { self.scalar(indent) }
    }

    fn block_text(&mut self, indent: usize) {
        let header = self.random.pick(&[
            "|", "|", ">", ">", "|-", ">-", "|+", ">+", "|2", ">1", "|+1", "|1-", "|0", "|9", "| # c",
            ">\t#c", "|#c", "| x",
        ]);
        self.out.push_str(header);
        let text = if self.odd { self.random.pick(BREAKS) } else { "\n" };
        self.out.push_str(text);
        let column = (indent + 3).saturating_sub(self.random.below(4));
        for _ in 0..self.random.below(5) {
            if self.random.once_in(5) {
                let line = self.random.pick(&["\n", " \n", "    \n", "\t\n", "      \n", "\r\n", "\u{85}"]);
                self.out.push_str(line);
                continue;
            }
            self.indent(column);
            let text = self
                .random
                .pick(&["text", " more", "# x", "\ttab", "a: b", "- x", "---", "...", "é", "x  ", "'q"]);
            self.out.push_str(text);
            let text = if self.odd { self.random.pick(BREAKS) } else { "\n" };
            self.out.push_str(text);
        }
        if self.random.once_in(10) {
            let end = self.out.trim_end().len();
            self.out.truncate(end);
        }
    }

    fn continuation(&mut self, indent: usize) {
        let text = self.random.pick(BREAKS);
        self.out.push_str(text);
        self.indent(indent + 1);
    }

    fn scalar(&mut self, indent: usize) {
        if self.random.once_in(12) {
            let alias = self.random.pick(&["*a", "*b", "*x1", "*a ", "*zz", "*a-b "]);
            self.out.push_str(alias);
            return;
        }
        let quote = self.random.pick(&["", "", "", "'", "\""]);
        self.out.push_str(quote);
        let most = if self.random.once_in(3) { 3 } else { 1 };
        for i in 0..1 + self.random.below(most) {
            if i > 0 && self.random.once_in(2) {
                self.continuation(indent);
            } else if i > 0 {
                self.out.push(' ');
            }
            let word = self.random.pick(WORDS);
            let plain = self.odd || word.bytes().all(|b| b.is_ascii_alphanumeric()) || word == "x y";
            self.out.push_str(if plain { word } else { "w" });
            if quote == "\"" && self.random.once_in(3) {
                let escape = self.random.pick(&[
                    "\\n",
                    "\\x41",
                    "\\u00e9",
                    "\\\n  ",
                    "\\\\",
                    "\\\"",
                    "\\/",
                    "\\'",
                    "\\U0001F600",
                    "\\ud83d",
                    "\\ ",
                    "\\\r\n",
                    "\\q",
                    "\\\u{85} ",
                    "\\_",
                    "\\L",
                    "\\\n\n ",
                ]);
                self.out.push_str(escape);
            }
            if quote == "'" && self.random.once_in(4) {
                self.out.push_str("''");
            }
        }
        self.out.push_str(quote);
    }

    fn flow_gap(&mut self) {
        match self.random.below(if self.odd { 8 } else { 3 }) {
            0 => self.out.push(' '),
            3 => self.continuation(1),
            4 => self.out.push_str(" # c\n "),
            5 => self.out.push('\t'),
            6 => self.line_end(),
            _ => {}
        }
    }

    fn flow(&mut self, depth: usize) {
        let list = self.random.once_in(2);
        self.out.push(if list { '[' } else { '{' });
        let count = self.random.below(4);
        for i in 0..count {
            self.flow_gap();
            if self.random.once_in(10) {
                self.out.push_str("? ");
            }
            self.properties();
            if depth < 4 && self.random.once_in(5) {
                self.flow(depth + 1)
            } else if !self.random.once_in(12) {
                self.scalar(1)
            }
            if !list || self.random.once_in(5) {
                let colon =
                    if self.odd { self.random.pick(&[":", ": ", ": ", " : ", ":\n ", ""]) } else { ": " };
                self.out.push_str(colon);
                self.properties();
                if depth < 4 && self.random.once_in(6) {
                    self.flow(depth + 1)
                } else if !self.random.once_in(6) {
                    self.scalar(1)
                }
            }
            self.flow_gap();
            if i + 1 < count || self.random.once_in(6) {
                let comma = if self.random.once_in(3) { "," } else { ", " };
                self.out.push_str(comma);
            }
        }
        if !self.random.once_in(25) {
            self.out.push(if list != self.random.once_in(50) { ']' } else { '}' });
        }
    }
}
