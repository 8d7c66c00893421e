//! Lists of tasks as CSV and XLSX (D19): all or nothing, twice makes nothing.

use axum::body::Body;
use axum::http::Request;
use cmautobuy_protocol::admin::{ImportReport, RowOutcome, TaskPage};
use cmautobuy_protocol::auth::Session;
use cmautobuy_protocol::{ErrorCode, ExecutionMode, TaskType};
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook};

use crate::world::{Answer, World, call};

fn upload(admin: &Session, query: &str, key: Option<&str>, list: impl Into<Vec<u8>>) -> Request<Body> {
    let mut request = Request::post(format!("/api/v1/admin/tasks/import{query}"))
        .header("authorization", format!("Bearer {}", admin.access_token.reveal()))
        .header("content-type", "application/octet-stream");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Body::from(list.into())).expect("a request")
}

async fn send(world: &World, admin: &Session, query: &str, key: Option<&str>, list: impl Into<Vec<u8>>) -> Answer {
    call(&world.router, upload(admin, query, key, list)).await
}

async fn count(world: &World, admin: &Session) -> usize {
    world.get("/admin/tasks?limit=200", &admin.access_token).await.ok::<TaskPage>().tasks.len()
}

const GOOD: &str = "goods_url,task_type,quantity,max_price,external_ref\n\
    https://mobile.yangkeduo.com/goods.html?goods_id=11,purchase,2,12.90,order 1\n\
    22,,,,order 2\n\
    \n\
    33,collect,,,\n";

#[tokio::test]
async fn a_list_makes_its_tasks_once() {
    let world = World::new();
    let admin = world.admin().await;
    let dry: ImportReport = send(&world, &admin, "?dry_run=true", None, GOOD).await.ok();
    assert_eq!((dry.dry_run, dry.created, dry.refused), (true, 3, 0), "a dry run says what would be made");
    assert_eq!(count(&world, &admin).await, 0, "and makes nothing");

    let first: ImportReport = send(&world, &admin, "", None, GOOD).await.ok();
    assert_eq!((first.created, first.exists, first.refused, first.repeated), (3, 0, 0, false), "every row is a task");
    assert_eq!(first.rows.iter().map(|row| row.row).collect::<Vec<_>>(), [2, 3, 5], "rows are counted as the sheet counts them");
    let bought = world.detail(first.rows[0].task_id.expect("a new task"));
    let asked = bought.asked.expect("what was asked");
    assert_eq!((asked.task_type, asked.execution_mode), (TaskType::Purchase, ExecutionMode::DryRun), "live must be asked for");
    assert_eq!((asked.quantity, asked.max_price_cent), (Some(2), Some(1290)), "yuan became cents");
    assert_eq!(bought.task.external_ref.as_deref(), Some("order 1"), "its reference");
    let bare = world.detail(first.rows[1].task_id.expect("a new task")).task;
    assert_eq!(bare.goods_id, "22", "a bare goods number is a link");

    let again: ImportReport = send(&world, &admin, "", None, GOOD).await.ok();
    assert!(again.repeated, "the same bytes without a key are the same list");
    assert_eq!(again.rows, first.rows, "and get the same answer");
    let keyed: ImportReport = send(&world, &admin, "", Some("another-key"), GOOD).await.ok();
    let outcomes: Vec<_> = keyed.rows.iter().map(|row| row.outcome).collect();
    let expected = [RowOutcome::Exists, RowOutcome::Exists, RowOutcome::Created];
    assert_eq!(outcomes, expected, "under another key what has a reference is still there; what has none is asked for anew");
    assert_eq!(keyed.rows[0].task_id, first.rows[0].task_id, "and the report names the task that is there");
    assert_eq!(count(&world, &admin).await, 4, "three and one");
    let other = send(&world, &admin, "", Some("another-key"), GOOD.replace("22", "23")).await;
    other.is(409, ErrorCode::IdempotencyConflict, "one key is one list");
    assert_eq!(count(&world, &admin).await, 4, "a refused list makes nothing");
}

#[tokio::test]
async fn one_bad_row_keeps_the_whole_list_back_and_every_bad_row_is_named() {
    let world = World::new();
    let admin = world.admin().await;
    let taken = format!("{GOOD}44,collect,,,order 9\n");
    send(&world, &admin, "", None, taken).await.ok::<ImportReport>();
    let before = count(&world, &admin).await;
    let rows = [
        ("55,collect,,,fine", None, ""),
        (",collect,,,x1", Some("goods_url"), "link"),
        ("https://mobile.yangkeduo.com/goods.html,collect,,,x2", None, "goods_url"),
        ("56,gather,,,x3", Some("task_type"), "collect"),
        ("57,purchase,0,,x4", None, "quantity"),
        ("58,purchase,two,,x5", Some("quantity"), "whole number"),
        ("59,purchase,1,,", None, "external_ref"),
        ("60,collect,,1.234,x6", Some("max_price"), "yuan"),
        ("61,,3,,x7", None, "task type"),
        ("62,collect,,,fine", Some("external_ref"), "row 2"),
        ("63,collect,,,order 9", Some("external_ref"), "something else"),
        ("64,purchase,-1,,x8", Some("quantity"), "whole number"),
        ("65,collect,,-1,x9", Some("max_price"), "yuan"),
    ];
    let list = format!("goods_url,task_type,quantity,max_price,external_ref\n{}\n", rows.map(|(row, _, _)| row).join("\n"));
    for query in ["?dry_run=true", ""] {
        let report: ImportReport = send(&world, &admin, query, Some("bad-rows"), list.clone()).await.ok();
        assert_eq!(report.refused as usize, rows.len() - 1, "all but the first are bad");
        for (got, (row, column, word)) in report.rows.iter().zip(rows).skip(1) {
            assert_eq!(got.outcome, RowOutcome::Refused, "row `{row}`");
            assert_eq!(got.column.as_deref(), column, "row `{row}`: the column at fault, when it is one ({:?})", got.message);
            assert!(got.message.as_deref().is_some_and(|text| text.contains(word)), "row `{row}`: {:?} must say `{word}`", got.message);
        }
        assert_eq!(count(&world, &admin).await, before, "nothing is made while a row is bad");
    }
    let mended: ImportReport = send(&world, &admin, "", Some("bad-rows"), "goods_url\n77\n").await.ok();
    assert_eq!(mended.created, 1, "a list that made nothing does not use its key up");
}

#[tokio::test]
async fn lists_are_read_as_spreadsheets_save_them() {
    let world = World::new();
    let admin = world.admin().await;
    let chinese = "\u{5546}\u{54c1}\u{94fe}\u{63a5},\u{4efb}\u{52a1}\u{7c7b}\u{578b},\u{989c}\u{8272},\u{5907}\u{6ce8}\n101,\u{91c7}\u{96c6},\u{7c73}\u{767d}\u{8272},x\n";
    let gbk = encoding_rs::GB18030.encode(chinese).0.into_owned();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(chinese.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let rows: [(&str, Vec<u8>); 6] = [
        ("UTF-8", chinese.as_bytes().to_vec()),
        ("UTF-8 with its mark", format!("\u{feff}{chinese}").into_bytes()),
        ("GBK", gbk),
        ("UTF-16", utf16),
        ("tabs and CRLF", chinese.replace(',', "\t").replace('\n', "\r\n").into_bytes()),
        ("semicolons", chinese.replace(',', ";").into_bytes()),
    ];
    for (name, list) in rows {
        let report: ImportReport = send(&world, &admin, "", None, list).await.ok();
        assert_eq!(report.created, 1, "{name}: {:?}", report.rows);
        assert_eq!(report.unknown_columns.len(), 1, "{name}: a column nobody knows is named, not silently dropped");
        let asked = world.detail(report.rows[0].task_id.expect("a task")).asked.expect("what was asked");
        assert_eq!(asked.target_color.as_deref(), Some("\u{7c73}\u{767d}\u{8272}"), "{name}: the text must come through unharmed");
    }
}

#[tokio::test]
async fn an_xlsx_sheet_is_read_cell_by_cell() {
    let world = World::new();
    let admin = world.admin().await;
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    let header = ["goods_url", "task_type", "quantity", "max_price", "external_ref", "title"];
    for (column, name) in (0..).zip(header) {
        sheet.write_string(2, column, name).expect("a cell");
    }
    // Two empty lines above, numbers as numbers, one line empty, one cell far away.
    sheet.write_number(3, 0, 123_456_789_012.0).expect("a cell");
    sheet.write_string(3, 1, "purchase").expect("a cell");
    sheet.write_number(3, 2, 3.0).expect("a cell");
    sheet.write_number(3, 3, 21.890_000_000_000_004).expect("a cell");
    sheet.write_string(3, 4, "00123").expect("a cell");
    sheet.write_string(5, 0, "https://mobile.yangkeduo.com/goods.html?goods_id=7").expect("a cell");
    sheet.write_string(1_048_575, 16_383, "far away").expect("a cell");
    let report: ImportReport = send(&world, &admin, "", None, book.save_to_buffer().expect("a workbook")).await.ok();
    assert_eq!(
        report.rows.iter().map(|row| (row.row, row.outcome)).collect::<Vec<_>>(),
        [(4, RowOutcome::Created), (6, RowOutcome::Created)]
    );
    let asked = world.detail(report.rows[0].task_id.expect("a task")).asked.expect("what was asked");
    assert!(asked.goods_url.ends_with("goods_id=123456789012"), "a number is its digits, not 1.23e11: {}", asked.goods_url);
    assert_eq!((asked.quantity, asked.max_price_cent), (Some(3), Some(2189)), "what the sheet shows is what counts");
    assert_eq!(asked.external_ref.as_deref(), Some("00123"), "a text keeps its zeros");

    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (column, name) in (0..).zip(header) {
        sheet.write_string(0, column, name).expect("a cell");
    }
    sheet.write_number(1, 0, 260_302_123_456_789_012.0).expect("a cell");
    sheet.write_string(2, 0, "8").expect("a cell");
    sheet.write_boolean(2, 5, true).expect("a cell");
    sheet.write_string(3, 0, "9").expect("a cell");
    let date = ExcelDateTime::from_ymd(2026, 3, 2).expect("a date");
    sheet.write_datetime_with_format(3, 5, &date, &Format::new().set_num_format("yyyy-mm-dd")).expect("a cell");
    let report: ImportReport = send(&world, &admin, "", None, book.save_to_buffer().expect("a workbook")).await.ok();
    let words: Vec<_> = report.rows.iter().map(|row| row.message.clone().unwrap_or_default()).collect();
    assert!(words[0].contains("15 digits"), "a rounded goods number must not become another goods: {words:?}");
    assert!(words[1].contains("TRUE") && words[2].contains("date"), "what is no text is refused by name: {words:?}");
}

#[tokio::test]
async fn what_is_no_list_is_refused_whole() {
    let world = World::new();
    let admin = world.admin().await;
    let mut bomb = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let packed = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    bomb.start_file("xl/worksheets/sheet1.xml", packed).expect("a part");
    let zeros = vec![0_u8; 1 << 20];
    for _ in 0..70 {
        std::io::Write::write_all(&mut bomb, &zeros).expect("a megabyte");
    }
    let bomb = bomb.finish().expect("a zip").into_inner();
    assert!(bomb.len() < 200_000, "the bomb is small as long as it is packed");
    let many = format!("goods_url\n{}", "1\n".repeat(5_001));
    let rows: [(&str, Vec<u8>, u16, &str); 12] = [
        ("nothing", Vec::new(), 422, "empty"),
        ("a header only", b"goods_url,title\n".to_vec(), 422, "empty"),
        ("no goods column", b"title\nx\n".to_vec(), 422, "goods_url"),
        ("a column twice", b"goods_url,goods_id\n1,2\n".to_vec(), 422, "twice"),
        ("too many rows", many.into_bytes(), 422, "5000"),
        ("bytes", vec![0, 159, 146, 150, 0, 1, 2], 422, "neither"),
        ("bad UTF-8 and bad GBK", b"goods_url\n\xff\xff\xff\n".to_vec(), 422, "neither"),
        ("half a zip", b"PK\x03\x04 and no more".to_vec(), 422, "damaged"),
        ("a zip bomb", bomb, 422, "unpacks"),
        ("an old xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), 422, ".xlsx"),
        ("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(), 422, "neither"),
        ("9 MiB", vec![b'a'; 9 << 20], 413, "larger"),
    ];
    for (name, list, status, word) in rows {
        let answer = send(&world, &admin, "", None, list).await;
        let body = answer.refused(status);
        assert!(body.error.message.contains(word), "{name}: `{}` must say `{word}`", body.error.message);
    }
    let zipped = {
        let mut book = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        book.start_file("word/document.xml", packed).expect("a part");
        book.finish().expect("a zip").into_inner()
    };
    send(&world, &admin, "", None, zipped).await.is(422, ErrorCode::Malformed, "another kind of office file");
    send(&world, &admin, "?dry_run=perhaps", None, GOOD).await.is(422, ErrorCode::Malformed, "a misspelt dry run must not be a real one");
    send(&world, &admin, "?dryrun=true", None, GOOD).await.is(422, ErrorCode::Malformed, "nor a misspelt name of it");
    send(&world, &admin, "", Some(""), GOOD).await.is(422, ErrorCode::Malformed, "an empty key is no key");
    assert_eq!(count(&world, &admin).await, 0, "and nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_uploads_of_one_list_at_the_same_time_make_its_tasks_once() {
    let world = World::new();
    let admin = world.admin().await;
    let calls = (0..8).map(|_| {
        let (router, request) = (world.router.clone(), upload(&admin, "", None, GOOD));
        tokio::spawn(async move { call(&router, request).await })
    });
    let mut reports = Vec::new();
    for sent in calls.collect::<Vec<_>>() {
        reports.push(sent.await.expect("a call must not panic").ok::<ImportReport>());
    }
    assert_eq!(reports.iter().filter(|report| !report.repeated).count(), 1, "one upload makes them, the others hear of it");
    assert_eq!(count(&world, &admin).await, 3, "three rows, three tasks");
}
