//! The bytes of a list of tasks as lines of cells. CSV in the encodings spreadsheets save it in, or XLSX; told apart by what the bytes are, not
//! by a name. Every limit is checked before memory is spent on what lies behind it.

use std::borrow::Cow;
use std::io::{self, Cursor, Read};

use calamine::{DataRef, Reader, Xlsx};
use encoding_rs::{Encoding, GB18030, UTF_8, UTF_16BE, UTF_16LE};
use zip::ZipArchive;

use crate::refusal::Refusal;

/// Most lines with something in them below the header.
pub(super) const MAX_ROWS: usize = 5_000;
/// Columns behind this one are passed over.
const MAX_COLUMNS: u32 = 64;
/// All parts of an XLSX file unpacked, in bytes.
const MAX_UNPACKED: u64 = 64 * 1024 * 1024;
/// A spreadsheet keeps 15 digits of a number; what is larger was rounded by it already.
const MAX_EXACT: f64 = 1e15;

/// One line that is not empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// As the sheet counts, from 1.
    pub(super) number: u32,
    pub(super) cells: Vec<Cell>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Cell {
    #[default]
    Empty,
    /// Never blank, no space at either end.
    Text(String),
    /// Nothing a task can be made of: what it is and what to do.
    Unusable(&'static str),
}

impl Cell {
    fn text(text: &str) -> Self {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if text.is_empty() { Self::Empty } else { Self::Text(text.to_owned()) }
    }

    fn number(number: f64) -> Self {
        if !number.is_finite() || number.abs() >= MAX_EXACT {
            return Self::Unusable(
                "this number has more than 15 digits, so the spreadsheet has rounded it; format the column as text and enter it again",
            );
        }
        // 15 digits, as the spreadsheet shows it: a formula's 21.890000000000004 is 21.89 to whoever wrote it.
        let shown: f64 = format!("{number:.14e}").parse().unwrap_or(number);
        Self::Text(shown.to_string())
    }
}

/// Header line first. At most [`MAX_ROWS`] lines follow.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Line>, Refusal> {
    let lines = if bytes.starts_with(b"PK\x03\x04") { from_xlsx(bytes)? } else { from_csv(bytes)? };
    if lines.len() > MAX_ROWS + 1 {
        return Err(Refusal::malformed(format!("the list has more than {MAX_ROWS} rows; send it in parts")));
    }
    if lines.len() < 2 {
        return Err(Refusal::malformed("the list is empty: it needs one line of column names and at least one line below it"));
    }
    Ok(lines)
}

fn from_csv(bytes: &[u8]) -> Result<Vec<Line>, Refusal> {
    if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
        return Err(Refusal::malformed(
            "this is an .xls file of an old spreadsheet or one with a password; save it as .xlsx without a password",
        ));
    }
    let text = decoded(bytes)?.replace("\r\n", "\n");
    let header = text.lines().next().unwrap_or_default();
    let count = |mark: u8| header.bytes().filter(|byte| *byte == mark).count();
    // Spreadsheets write what their country uses; the header tells which.
    let delimiter = [b',', b'\t', b';'].into_iter().rev().max_by_key(|mark| count(*mark)).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text.as_bytes());
    let mut lines = Vec::new();
    let mut record = csv::StringRecord::new();
    let mut number = 0_u32;
    let blame = |error: csv::Error| Refusal::malformed(format!("the list cannot be read as CSV: {error}"));
    while lines.len() <= MAX_ROWS + 1 && reader.read_record(&mut record).map_err(blame)? {
        // The reader passes over empty lines; a person's sheet counts them.
        let began = record.position().map_or(0, |at| usize::try_from(at.byte()).unwrap_or(usize::MAX));
        let empty = text.as_bytes().get(began..).unwrap_or_default().iter().take_while(|byte| **byte == b'\n').count();
        number = number.saturating_add(1).saturating_add(u32::try_from(empty).unwrap_or(u32::MAX));
        push(&mut lines, number, record.iter().take(MAX_COLUMNS as usize).map(Cell::text).collect());
    }
    Ok(lines)
}

/// UTF-8, UTF-16 with its mark, else GB18030, which spreadsheets in China save CSV in.
fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, Refusal> {
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None if std::str::from_utf8(bytes).is_ok() => UTF_8,
        None => GB18030,
    };
    let (text, had_errors) = encoding.decode_with_bom_removal(bytes);
    let is_text = !had_errors && !text.contains('\0') && [UTF_8, UTF_16LE, UTF_16BE, GB18030].contains(&encoding);
    is_text.then_some(text).ok_or_else(|| Refusal::malformed("the list is neither XLSX nor text; save it as .xlsx or as CSV in UTF-8"))
}

fn from_xlsx(bytes: &[u8]) -> Result<Vec<Line>, Refusal> {
    must_unpack_small(bytes)?;
    let blame = |error: calamine::XlsxError| Refusal::malformed(format!("the list cannot be read as XLSX: {error}"));
    let mut book = Xlsx::new(Cursor::new(bytes)).map_err(blame)?;
    let name = book.sheet_names().first().cloned().ok_or_else(|| Refusal::malformed("the XLSX file has no sheet"))?;
    // Cell by cell: a sheet whose last cell is far away must not become a table of empty ones.
    let mut reader = book.worksheet_cells_reader(&name).map_err(blame)?;
    let mut lines = Vec::new();
    let mut open: Option<(u32, Vec<Cell>)> = None;
    while let Some(cell) = reader.next_cell().map_err(blame)? {
        let (row, column) = cell.get_position();
        if column >= MAX_COLUMNS {
            continue;
        }
        if open.as_ref().is_some_and(|(at, _)| *at != row) {
            let (at, cells) = open.take().unwrap_or_default();
            push(&mut lines, at.saturating_add(1), cells);
            if lines.len() > MAX_ROWS + 1 {
                return Ok(lines);
            }
        }
        let (_, cells) = open.get_or_insert_with(|| (row, Vec::new()));
        let column = column as usize;
        if cells.len() <= column {
            cells.resize(column + 1, Cell::Empty);
        }
        cells[column] = from_xlsx_cell(cell.get_value());
    }
    if let Some((at, cells)) = open {
        push(&mut lines, at.saturating_add(1), cells);
    }
    Ok(lines)
}

fn from_xlsx_cell(value: &DataRef<'_>) -> Cell {
    match value {
        DataRef::Empty => Cell::Empty,
        DataRef::String(text) => Cell::text(text),
        DataRef::SharedString(text) => Cell::text(text),
        DataRef::Int(number) => Cell::Text(number.to_string()),
        DataRef::Float(number) => Cell::number(*number),
        DataRef::Error(_) => Cell::Unusable("the spreadsheet shows an error here; mend the formula or enter the value"),
        DataRef::Bool(_) => Cell::Unusable("this is TRUE or FALSE; enter a text or a number"),
        DataRef::DateTime(_) | DataRef::DateTimeIso(_) | DataRef::DurationIso(_) => {
            Cell::Unusable("this is a date; format the column as text and enter it again")
        }
    }
}

/// Unpacks every part into nothing, so that a file that unpacks to gigabytes is refused before it does so in memory.
fn must_unpack_small(bytes: &[u8]) -> Result<(), Refusal> {
    let broken = |error: &dyn std::fmt::Display| Refusal::malformed(format!("the XLSX file is damaged: {error}; save it anew"));
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let mut left = MAX_UNPACKED;
    for part in 0..archive.len() {
        let part = archive.by_index(part).map_err(|error| broken(&error))?;
        let unpacked = io::copy(&mut part.take(left + 1), &mut io::sink()).map_err(|error| broken(&error))?;
        left = left.checked_sub(unpacked).ok_or_else(|| {
            Refusal::malformed(format!("the XLSX file unpacks to more than {} MiB; remove pictures and other sheets", MAX_UNPACKED >> 20))
        })?;
    }
    Ok(())
}

fn push(lines: &mut Vec<Line>, number: u32, cells: Vec<Cell>) {
    if cells.iter().any(|cell| *cell != Cell::Empty) {
        lines.push(Line { number, cells });
    }
}
