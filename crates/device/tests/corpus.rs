//! Real dumps, when the machine has them: every one parses or fails with a typed error.

use std::path::{Path, PathBuf};

use cmautobuy_device::fake::FakePage;
use cmautobuy_device::{Action, CaptureWant, ExtraPatterns, FakePhone, Phone, Point, RefusedReason, Screen, ScreenSize, UiTree, check};

fn shared(sub: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CMAUTOBUY_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let dir = root.join(sub);
    dir.is_dir().then_some(dir)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "xml" || ext == "uix" || ext == "txt") && path.is_file())
        .collect();
    found.sort();
    found
}

#[test]
fn the_corpus_parses_or_fails_with_a_type() {
    let Some(dir) = shared("dumps") else { return };
    let mut table = Vec::new();
    let (mut good, mut bad) = (0, 0);
    for path in files(&dir).into_iter().chain(files(&dir.join("pdd"))) {
        let raw = std::fs::read(&path).expect("a listed file can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match UiTree::parse(&raw) {
            Ok(tree) => {
                good += 1;
                let depth = tree.nodes().map(|n| n.ancestors().count()).max().unwrap_or(0);
                let labelled = tree.nodes().filter(|n| !n.label().is_empty()).count();
                let holes = tree.nodes().filter(|n| n.label().contains('\u{FFFD}')).count();
                table.push(format!("{name:42} ok   nodes {:4} depth {depth:2} labels {labelled:3} holes {holes}", tree.len()));
                assert!(tree.nodes().any(|n| !n.bounds().is_empty()), "{name}: a parsed dump has places");
            }
            Err(error) => {
                bad += 1;
                table.push(format!("{name:42} fail {error}"));
            }
        }
    }
    let table = table.join("\n");
    if let Some(out) = std::env::var_os("CMAUTOBUY_TABLES") {
        std::fs::write(PathBuf::from(out).join("corpus.txt"), &table).expect("the table can be written");
    }
    assert!(bad <= 1 && good >= 40, "at most the truncated dump may fail:\n{table}");
}

/// What is at the point, x, y, and what the guard says.
type Rows<'a> = &'a [(&'a str, i32, i32, &'a str)];

/// On real Pinduoduo pages: what may be touched and what may not, with the reason.
#[test]
fn real_pages_are_guarded() {
    let Some(dir) = shared("dumps/pdd") else { return };
    let sku = [
        ("close", 1015, 278, "ok"),
        ("stepper plus", 600, 800, "ok"),
        ("payment row", 520, 2165, "payment"),
        ("add", 160, 2280, "checkout"),
        ("submit text", 700, 2280, "submit"),
        ("submit button edge", 1000, 2345, "submit"),
        ("beside the row", 20, 2150, "payment"),
    ];
    let image_chips = [
        ("gap between chips: the sheet itself is clickable and holds the submit button", 366, 1200, "submit"),
        ("chip name", 190, 1340, "ok"),
        ("second row", 500, 1780, "ok"),
    ];
    let text_chip = [("chip", 300, 1150, "ok")];
    let popup = [
        ("browse first", 540, 1510, "ok"),
        ("close", 957, 765, "ok"),
        ("pay on", 480, 1370, "payment"),
        ("pay on, price", 650, 1370, "payment"),
        ("pay on, edge", 180, 1310, "payment"),
    ];
    let goods = [("favourite", 145, 1535, "ok"), ("reviews", 300, 940, "ok"), ("buy alone", 450, 1530, "buy"), ("buy", 700, 1530, "buy")];
    let sheet = ScreenSize { width: 1080, height: 2400, density_dpi: 440 };
    let small = ScreenSize { width: 900, height: 1600, density_dpi: 320 };
    let tables: [(&str, Screen, ScreenSize, Rows<'_>); 7] = [
        ("sku_panel_image_chips_cart1.xml", Screen::SkuSheet, sheet, &image_chips),
        ("sku_panel_text_chip_cart.xml", Screen::SkuSheet, sheet, &text_chip),
        ("sku_panel_image_chips_cart1.xml", Screen::SkuSheet, sheet, &sku),
        ("sku_panel_text_chip_cart.xml", Screen::SkuSheet, sheet, &sku),
        ("sku_panel_soldout_chips_cart3.xml", Screen::SkuSheet, sheet, &sku),
        ("popup_abandon_payment.xml", Screen::AbandonPopup, sheet, &popup),
        ("goods_detail_RECONSTRUCTED.xml", Screen::Goods, small, &goods),
    ];
    for (file, screen, size, rows) in tables {
        let raw = std::fs::read(dir.join(file)).expect("a listed file can be read");
        for (name, x, y, want) in rows {
            let result = tap(&raw, screen, Point { x: *x, y: *y }, size);
            let got = match &result {
                Ok(()) => "ok",
                Err(RefusedReason::PaymentNode { .. }) => "payment",
                Err(RefusedReason::SubmitNode { .. }) => "submit",
                Err(RefusedReason::BuyButton { .. }) => "buy",
                Err(RefusedReason::CheckoutZone { .. }) => "checkout",
                Err(_) => "another reason",
            };
            assert_eq!(got, *want, "{file}: {name} at ({x},{y}): {result:?}");
        }
    }
}

/// On every Pinduoduo page there is: no point of a grid on a paying or ordering control may be touched, whatever the page is taken for.
#[test]
fn no_grid_point_of_a_real_page_reaches_money() {
    let Some(dir) = shared("dumps/pdd") else { return };
    let size = ScreenSize { width: 1080, height: 2400, density_dpi: 440 };
    let words = ["提交订单", "更换支付方式", "继续支付", "立即支付", "去支付"];
    let (mut asked, mut on_money) = (0, 0);
    for path in files(&dir) {
        let raw = std::fs::read(&path).expect("a listed file can be read");
        let Ok(tree) = UiTree::parse(&raw) else { continue };
        let money: Vec<_> = tree
            .nodes()
            .filter(|node| words.iter().any(|word| node.label().contains(word)))
            .flat_map(|node| [Some(node), node.pressed()])
            .flatten()
            .map(|node| node.bounds())
            .collect();
        for at in (10..2400).step_by(95).flat_map(|y| (10..1080).step_by(95).map(move |x| Point { x, y })) {
            if tree.deepest_at(at).is_none() {
                continue;
            }
            for screen in [Screen::SkuSheet, Screen::OrderList] {
                asked += 1;
                let forbidden = money.iter().any(|bounds| bounds.contains(at));
                on_money += u32::from(forbidden);
                let allowed = tap(&raw, screen, at, size).is_ok();
                assert!(!(forbidden && allowed), "{}: {at} taken for {screen} reaches money", path.display());
            }
        }
    }
    assert!(asked > 1_000 && on_money > 20, "the grid must meet money to prove anything: {on_money} of {asked}");
}

fn tap(raw: &[u8], screen: Screen, at: Point, size: ScreenSize) -> Result<(), RefusedReason> {
    let phone = FakePhone::new("fake", FakePage::pdd(raw));
    let capture = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(phone.capture(&CaptureWant::anything()))
        .expect("the fake can be looked at");
    let node = capture.tree.nodes().filter(|n| n.bounds().contains(at)).last().expect("a node at the point").id();
    let now = capture.dump_ended;
    check(capture, screen, Action::Tap { node, at }, size, &ExtraPatterns::none(), now).map(|_| ()).map_err(|refused| refused.reason)
}
