//! Files somebody could upload: lists of tasks and pictures, bombs among them.

use std::io::{Cursor, Write};

use cmautobuy_protocol::ErrorCode;
use image::{DynamicImage, ImageFormat};
use rust_xlsxwriter::Workbook;

use super::{NO_SUCH, Row, Scene, dump, malformed, row};
use crate::world::World;

pub(super) fn rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{IllegalState, NotFound, TooLarge};
    let import = "POST /api/v1/admin/tasks/import";
    let put = format!("PUT /api/v1/admin/tasks/{}/reference-image", scene.task);
    let picture = |call: &str, task: &str| format!("{call} /api/v1/admin/tasks/{task}/reference-image");
    let held = scene.claim.task.to_string();
    let small = encoded(64, 64, ImageFormat::Jpeg);
    let list = b"goods_url\n1\n".to_vec();
    let rows = vec![
        malformed("a list of nothing", import, ""),
        malformed("a list of zeros", import, vec![0; 100]),
        malformed("a list without goods", import, "title\nx\n"),
        malformed("a list of a header only", import, "goods_url\n"),
        malformed("a list with a column twice", import, "goods_url,goods_url\n1,2\n"),
        malformed("a list of 5,001 rows", import, format!("goods_url\n{}", "1\n".repeat(5_001))),
        malformed("a picture for a list", import, encoded(4, 4, ImageFormat::Png)),
        malformed("half a workbook", import, b"PK\x03\x04 and no more".to_vec()),
        malformed("a zip bomb", import, zip_bomb()),
        row("a list of 9 MiB", import, vec![b'a'; 9 << 20], 413, TooLarge),
        malformed("a dry run that may be", format!("{import}?dry_run=maybe"), list.clone()),
        malformed("a misspelt dry run", format!("{import}?dryrun=true"), list.clone()),
        malformed("a list under a key with a space", import, list).with("idempotency-key", "a b"),
        malformed("a picture of nothing", &put, ""),
        malformed("a picture of words", &put, "hello"),
        malformed("a PNG for a JPEG", &put, encoded(4, 4, ImageFormat::Png)),
        malformed("half a JPEG", &put, small[..small.len() / 3].to_vec()),
        malformed("an image bomb of 4 thousand million pixels", &put, resized(&small, [0xff, 0xff, 0xff, 0xff])),
        malformed("an image bomb of 81 million pixels", &put, resized(&small, [0x23, 0x28, 0x23, 0x28])),
        malformed("a picture of no pixels", &put, resized(&small, [0, 0, 0, 0])),
        row("a picture of 6 MiB", &put, [small.clone(), vec![0; 6 << 20]].concat(), 413, TooLarge),
        row("a picture for a task in hand", picture("PUT", &held), small.clone(), 409, IllegalState),
        row("a picture taken from a task in hand", picture("DELETE", &held), "", 409, IllegalState),
        row("a picture for no task", picture("PUT", NO_SUCH), small.clone(), 404, NotFound),
        row("a picture nobody put", picture("GET", &held), "", 404, NotFound),
        row("a picture that is not there to be removed", picture("DELETE", NO_SUCH), "", 404, NotFound),
    ];
    let mut rows: Vec<_> = rows.into_iter().map(|row| row.by(&scene.admin)).collect();
    rows.push(row("a picture put by a buyer", &put, small, 403, ErrorCode::Forbidden).by(&scene.ann.access));
    rows
}

fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::new_rgb8(width, height).write_to(&mut bytes, format).expect("a picture");
    bytes.into_inner()
}

/// A JPEG whose header claims another size than its pixels have.
fn resized(jpeg: &[u8], size: [u8; 4]) -> Vec<u8> {
    let mut bomb = jpeg.to_vec();
    let frame = bomb.windows(2).position(|mark| mark == [0xff, 0xc0]).expect("a frame header");
    bomb[frame + 5..frame + 9].copy_from_slice(&size);
    bomb
}

fn zip_bomb() -> Vec<u8> {
    let mut bomb = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let packed = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    bomb.start_file("xl/worksheets/sheet1.xml", packed).expect("a part");
    let zeros = vec![0_u8; 1 << 20];
    for _ in 0..70 {
        bomb.write_all(&zeros).expect("a megabyte");
    }
    bomb.finish().expect("a zip").into_inner()
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % most
    }

    /// The bytes with a few of them changed to some below `most`, and now and then cut short.
    fn damaged(&mut self, bytes: &[u8], most: usize) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            bytes[at] = u8::try_from(self.below(most)).expect("a byte");
        }
        if self.below(4) == 0 {
            bytes.truncate(self.below(bytes.len()) + 1);
        }
        bytes
    }
}

#[test]
fn a_damaged_file_is_refused_or_read_but_never_a_failure_of_the_server() {
    let world = World::new();
    let task = world.task();
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (line, text) in (0..).zip(["goods_url", "1", "2"]) {
        sheet.write_string(line, 0, text).expect("a cell");
    }
    let book = book.save_to_buffer().expect("a workbook");
    let list = "\u{feff}goods_url,title,quantity\r\n1,\"a \"\"cup\"\"\",\r\n2,b,3\r\n".as_bytes().to_vec();
    let picture = encoded(24, 24, ImageFormat::Jpeg);
    let admin = world.server.admin();
    let before = dump(&world);
    let mut dice = Dice(20_260_302);
    let (mut refused, mut taken) = (0, 0);
    for n in 0..300 {
        for (kind, file, most) in [("workbook", &book, 256), ("list", &list, 128), ("list of any bytes", &list, 256)] {
            match admin.import_tasks(&dice.damaged(file, most), true, None) {
                Ok(_) => taken += 1,
                Err(error) => {
                    let refusal = error.refusal();
                    assert!(
                        refusal.is_some_and(|r| r.code == ErrorCode::Malformed),
                        "{kind} {n}: a damaged file is its sender's fault: {error:?}"
                    );
                    refused += 1;
                }
            }
        }
    }
    assert!(before == dump(&world), "a dry run keeps nothing, whatever it read");
    assert!(
        refused > 50 && taken > 50,
        "both ends must be met ({refused} refused, {taken} read), or the damage was too small or too great"
    );
    for n in 0..300 {
        if let Err(error) = admin.put_reference_image(task, &dice.damaged(&picture, 256)) {
            assert!(error.refusal().is_some_and(|r| r.code == ErrorCode::Malformed), "picture {n}: {error:?}");
        }
    }
}
