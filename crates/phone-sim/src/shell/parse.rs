//! A small POSIX shell grammar: words with quotes and variables, `;` `&&` `||` `|`, redirections,
//! groups. Enough for what ADB clients send. It runs nothing.

use thiserror::Error;

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum SyntaxError {
    #[error("no closing quote")]
    Quote,
    #[error("syntax error: unexpected '{0}'")]
    Unexpected(String),
    #[error("unexpected end of file")]
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal {
        text: String,
        quoted: bool,
    },
    Variable {
        name: String,
        quoted: bool,
    },
    /// `$(...)`, run in place.
    Output {
        list: List,
        quoted: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word(pub(crate) Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    File(Word),
    Append(Word),
    Input(Word),
    /// `2>&1`
    Copy(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) fd: u8,
    pub(crate) target: Target,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Simple {
        assignments: Vec<(String, Word)>,
        words: Vec<Word>,
        redirects: Vec<Redirect>,
    },
    /// `( )` has its own variables, `{ }` has not.
    Group {
        list: List,
        redirects: Vec<Redirect>,
        own: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joint {
    Then,
    And,
    Or,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) negated: bool,
    /// Followed by `&`: nobody waits for it.
    pub(crate) background: bool,
    pub(crate) commands: Vec<Command>,
}

/// Pipelines with what joins each to the one before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct List(pub(crate) Vec<(Joint, Pipeline)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(Word),
    Op(&'static str),
    Redirect { fd: Option<u8>, op: &'static str },
}

/// Parses a whole command line.
pub(crate) fn parse(source: &str) -> Result<List, SyntaxError> {
    let tokens = Lexer { rest: source.chars().collect(), at: 0 }.tokens()?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let list = parser.list(&[])?;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(SyntaxError::Unexpected(name(token))),
    }
}

fn name(token: &Token) -> String {
    match token {
        Token::Word(_) => "word".to_owned(),
        Token::Op(op) | Token::Redirect { op, .. } => (*op).to_owned(),
    }
}

struct Lexer {
    rest: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn tokens(&mut self) -> Result<Vec<Token>, SyntaxError> {
        let mut out = Vec::new();
        while let Some(one) = self.peek(0) {
            let two = self.peek(1);
            let op = match (one, two) {
                (' ' | '\t' | '\r', _) => {
                    self.at += 1;
                    continue;
                }
                ('#', _) => {
                    while self.peek(0).is_some_and(|one| one != '\n') {
                        self.at += 1;
                    }
                    continue;
                }
                ('&', Some('&')) => "&&",
                ('|', Some('|')) => "||",
                (';', _) => ";",
                ('\n', _) => "\n",
                ('&', _) => "&",
                ('|', _) => "|",
                ('(', _) => "(",
                (')', _) => ")",
                ('>' | '<', _) => {
                    out.push(self.redirect(None));
                    continue;
                }
                ('0'..='9', Some('>' | '<')) => {
                    self.at += 1;
                    out.push(self.redirect(one.to_digit(10).map(|digit| digit as u8)));
                    continue;
                }
                _ => {
                    out.push(Token::Word(self.word()?));
                    continue;
                }
            };
            self.at += op.len();
            out.push(Token::Op(op));
        }
        Ok(out)
    }

    fn redirect(&mut self, fd: Option<u8>) -> Token {
        let op = match (self.peek(0), self.peek(1)) {
            (Some('>'), Some('>')) => ">>",
            (Some('>'), Some('&')) => ">&",
            (Some('<'), _) => "<",
            _ => ">",
        };
        self.at += op.len();
        Token::Redirect { fd, op }
    }

    fn word(&mut self) -> Result<Word, SyntaxError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let flush = |plain: &mut String, pieces: &mut Vec<Piece>, quoted: bool| {
            if quoted || !plain.is_empty() {
                pieces.push(Piece::Literal { text: std::mem::take(plain), quoted });
            }
        };
        while let Some(one) = self.peek(0) {
            match one {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    flush(&mut plain, &mut pieces, false);
                    self.at += 1;
                    loop {
                        match self.peek(0) {
                            None => return Err(SyntaxError::Quote),
                            Some('\'') => break,
                            Some(other) => plain.push(other),
                        }
                        self.at += 1;
                    }
                    self.at += 1;
                    flush(&mut plain, &mut pieces, true);
                }
                '"' => {
                    flush(&mut plain, &mut pieces, false);
                    self.at += 1;
                    loop {
                        match self.peek(0) {
                            None => return Err(SyntaxError::Quote),
                            Some('"') => break,
                            Some('\\') => {
                                match self.peek(1) {
                                    Some(kept @ ('"' | '\\' | '$' | '`')) => plain.push(kept),
                                    Some('\n') => {}
                                    Some(other) => plain.extend(['\\', other]),
                                    None => return Err(SyntaxError::Quote),
                                }
                                self.at += 2;
                            }
                            Some('$') => {
                                flush(&mut plain, &mut pieces, true);
                                self.dollar(&mut pieces, &mut plain, true)?;
                            }
                            Some(other) => {
                                plain.push(other);
                                self.at += 1;
                            }
                        }
                    }
                    self.at += 1;
                    flush(&mut plain, &mut pieces, true);
                }
                '\\' => {
                    if let Some(next) = self.peek(1) {
                        flush(&mut plain, &mut pieces, false);
                        if next != '\n' {
                            pieces.push(Piece::Literal { text: next.to_string(), quoted: true });
                        }
                    }
                    self.at += 2;
                }
                '$' => {
                    flush(&mut plain, &mut pieces, false);
                    self.dollar(&mut pieces, &mut plain, false)?;
                }
                other => {
                    plain.push(other);
                    self.at += 1;
                }
            }
        }
        flush(&mut plain, &mut pieces, false);
        Ok(Word(pieces))
    }

    fn dollar(&mut self, pieces: &mut Vec<Piece>, plain: &mut String, quoted: bool) -> Result<(), SyntaxError> {
        self.at += 1;
        match self.peek(0) {
            Some(special @ ('?' | '$' | '#' | '@' | '*' | '0'..='9')) => {
                self.at += 1;
                pieces.push(Piece::Variable { name: special.to_string(), quoted });
            }
            Some('{') => {
                self.at += 1;
                let mut name = String::new();
                loop {
                    match self.peek(0) {
                        None => return Err(SyntaxError::End),
                        Some('}') => break,
                        Some(other) => name.push(other),
                    }
                    self.at += 1;
                }
                self.at += 1;
                pieces.push(Piece::Variable { name, quoted });
            }
            Some('(') => {
                self.at += 1;
                let start = self.at;
                let mut depth = 1;
                while depth > 0 {
                    match self.peek(0) {
                        None => return Err(SyntaxError::End),
                        Some('(') => depth += 1,
                        Some(')') => depth -= 1,
                        Some(_) => {}
                    }
                    self.at += 1;
                }
                let inside: String = self.rest[start..self.at - 1].iter().collect();
                pieces.push(Piece::Output { list: parse(&inside)?, quoted });
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                let mut name = String::new();
                while let Some(one) = self.peek(0).filter(|one| one.is_ascii_alphanumeric() || *one == '_') {
                    name.push(one);
                    self.at += 1;
                }
                pieces.push(Piece::Variable { name, quoted });
            }
            _ => plain.push('$'),
        }
        Ok(())
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn op(&mut self, wanted: &[&str]) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Op(op)) if wanted.contains(op) => {
                let op = *op;
                self.at += 1;
                Some(op)
            }
            _ => None,
        }
    }

    /// Is the next token the bare word `text`?
    fn bare(&self, text: &str) -> bool {
        match self.peek() {
            Some(Token::Word(Word(pieces))) => {
                matches!(pieces.as_slice(), [Piece::Literal { text: own, quoted: false }] if own == text)
            }
            _ => false,
        }
    }

    fn list(&mut self, ends: &[&str]) -> Result<List, SyntaxError> {
        let mut out = Vec::new();
        let mut joint = Joint::Then;
        loop {
            while joint == Joint::Then && self.op(&["\n", ";"]).is_some() {}
            let ended = match self.peek() {
                None => true,
                Some(Token::Op(op)) => ends.contains(op),
                Some(_) => ends.contains(&"}") && self.bare("}"),
            };
            if ended {
                return if joint == Joint::Then { Ok(List(out)) } else { Err(SyntaxError::End) };
            }
            let mut pipeline = self.pipeline()?;
            pipeline.background = matches!(self.peek(), Some(Token::Op("&")));
            out.push((joint, pipeline));
            joint = match self.op(&[";", "\n", "&", "&&", "||"]) {
                Some("&&") => Joint::And,
                Some("||") => Joint::Or,
                Some(_) => Joint::Then,
                None => return Ok(List(out)),
            };
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, SyntaxError> {
        let negated = self.bare("!");
        if negated {
            self.at += 1;
        }
        let mut commands = vec![self.command()?];
        while self.op(&["|"]).is_some() {
            while self.op(&["\n"]).is_some() {}
            commands.push(self.command()?);
        }
        Ok(Pipeline { negated, background: false, commands })
    }

    fn command(&mut self) -> Result<Command, SyntaxError> {
        let round = self.op(&["("]).is_some();
        if round || self.bare("{") {
            if !round {
                self.at += 1;
            }
            self.depth += 1;
            if self.depth > 40 {
                return Err(SyntaxError::Unexpected("(".into()));
            }
            let list = self.list(if round { &[")"] } else { &["}"] })?;
            self.depth -= 1;
            if round && self.op(&[")"]).is_none() || !round && !self.bare("}") {
                return Err(SyntaxError::End);
            }
            if !round {
                self.at += 1;
            }
            let mut redirects = Vec::new();
            while let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
            }
            return Ok(Command::Group { list, redirects, own: round });
        }
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let Some(Token::Word(word)) = self.peek().cloned() else {
                break;
            };
            self.at += 1;
            match assignment(&word) {
                Some(pair) if words.is_empty() => assignments.push(pair),
                _ => words.push(word),
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(self.peek().map_or(SyntaxError::End, |token| SyntaxError::Unexpected(name(token))));
        }
        Ok(Command::Simple { assignments, words, redirects })
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let Some(Token::Redirect { fd, op }) = self.peek().cloned() else {
            return Ok(None);
        };
        self.at += 1;
        let Some(Token::Word(word)) = self.peek().cloned() else {
            return Err(SyntaxError::Unexpected(op.into()));
        };
        self.at += 1;
        let target = match op {
            ">>" => Target::Append(word),
            "<" => Target::Input(word),
            ">&" => match word.0.as_slice() {
                [Piece::Literal { text, .. }] => Target::Copy(text.parse().map_err(|_| SyntaxError::Unexpected(text.clone()))?),
                _ => return Err(SyntaxError::Unexpected(op.into())),
            },
            _ => Target::File(word),
        };
        let fd = fd.unwrap_or(u8::from(op != "<"));
        Ok(Some(Redirect { fd, target }))
    }
}

fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Piece::Literal { text, quoted: false }) = word.0.first() else {
        return None;
    };
    let (name, rest) = text.split_once('=')?;
    let valid = name.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_')
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    if !valid {
        return None;
    }
    let mut value = vec![Piece::Literal { text: rest.to_owned(), quoted: true }];
    value.extend(word.0[1..].iter().cloned());
    Some((name.to_owned(), Word(value)))
}
