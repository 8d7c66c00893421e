//! The small values every message is made of: ids, keys, tokens, times, goods links, secrets.

mod samples;

use cmautobuy_protocol::account::UserKind;
use cmautobuy_protocol::admin::CreateUser;
use cmautobuy_protocol::auth::{LoginRequest, RefreshRequest, Session};
use cmautobuy_protocol::goods::{BadGoods, GoodsId};
use cmautobuy_protocol::result::{EventType, result_key};
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{
    AccessToken, AttemptId, ClaimToken, ErrorCode, ExecutionId, IdempotencyKey, Password, RefreshToken, RemoteTaskId, ServerStatus,
    WireTime,
};
use proptest::prelude::*;
use samples::{at, collected, p, towel};

/// 32 zero bytes and 32 0xff bytes in unpadded base64url: the ends of the range.
const ZEROS: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const ONES: &str = "__________________________________________8";

#[test]
fn claim_tokens() {
    let long = format!("{ZEROS}A");
    let rows: [(&str, &str, bool); 12] = [
        ("all zero bits", ZEROS, true),
        ("all one bits", ONES, true),
        ("mixed with - and _", "q-_9f86d081884c7d659a2feaa0c55ad015a3bf4f1w", true),
        ("empty", "", false),
        ("42 characters", &ZEROS[1..], false),
        ("44 characters", &long, false),
        ("padding", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", false),
        ("plus of the other alphabet", "+AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false),
        ("slash of the other alphabet", "/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false),
        ("two spare bits set: another spelling of the same bytes", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB", false),
        ("newline", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", false),
        ("43 bytes that are not ASCII", "éAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false),
    ];
    for (why, text, good) in rows {
        let read = text.parse::<ClaimToken>();
        assert_eq!(read.is_ok(), good, "{why}");
        if let Ok(token) = read {
            assert_eq!(token.reveal(), text, "{why}: a token is its own text");
            assert_eq!(token.sha256_hex(), sha256_hex(text.as_bytes()), "{why}: both ends hash the 43 characters (T-205 §2)");
        }
    }
    let fault = "a secret of the wrong length".parse::<ClaimToken>().expect_err("wrong length");
    assert!(!fault.to_string().contains("secret"), "a refused token may still be a secret and must not be repeated");
}

#[test]
fn sha256_is_lowercase_hex() {
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256_hex(b"abc"), known, "the published test vector for abc");
}

#[test]
fn secrets_do_not_show_in_debug() {
    let secret = "s3cr3t-value";
    let token: ClaimToken = p(ONES);
    let login = LoginRequest { user_name: "u".to_owned(), password: Password::new(secret), device_id: None };
    let session = Session {
        access_token: AccessToken::new(secret),
        access_expires_at: at("09:00:00.000"),
        refresh_token: RefreshToken::new(secret),
        user_id: p("018f3c2a-0000-7000-8000-00000000b001"),
        user_name: "u".to_owned(),
        roles: vec![],
        kind: UserKind::Platform,
        permissions: vec![],
        server_id: p("018f3c2a-0000-7000-8000-00000000c001"),
        server_time: at("08:00:00.000"),
    };
    let rows = [
        ("login", format!("{login:?} {login:#?}")),
        ("session", format!("{session:?} {session:#?}")),
        ("refresh", format!("{:?}", RefreshRequest { refresh_token: RefreshToken::new(secret) })),
        ("create user", format!("{:?}", CreateUser::new("u", Password::new(secret), vec![]))),
        ("claim token", format!("{token:?} {token:#?}")),
    ];
    for (name, shown) in rows {
        assert!(!shown.contains(secret) && !shown.contains(ONES), "{name}: a secret reached Debug, and from there a log (D6)");
        assert!(shown.contains("(..)"), "{name}: Debug still says that there is a secret");
    }
}

#[test]
fn ids_are_uuid_text_and_shorten_to_eight_digits() {
    let text = "018f3c2a-1b2c-7d3e-8f40-5a6b7c8d9e0f";
    let id: RemoteTaskId = p(text);
    assert_eq!(id.to_string(), text, "an id is written as it was read");
    assert_eq!(serde_json::to_string(&id).expect("an id serialises"), format!("\"{text}\""), "on the wire an id is a plain string");
    assert_eq!(id.short(), "7c8d9e0f", "people read out the end: the beginning of a UUIDv7 is the time and all alike");
    assert_eq!(RemoteTaskId::from_uuid(id.uuid()), id, "wrapping and unwrapping changes nothing");
    assert!("task-1".parse::<ExecutionId>().is_err(), "an id that is no UUID is refused");
    assert!(format!("{id:?}").starts_with("RemoteTaskId("), "Debug says which kind of id it is");
}

#[test]
fn idempotency_keys() {
    let longest = "k".repeat(IdempotencyKey::MAX_LEN);
    let too_long = "k".repeat(IdempotencyKey::MAX_LEN + 1);
    let rows: [(&str, &str, bool); 7] = [
        ("a UUID", "018f3c2a-1b2c-7d3e-8f40-5a6b7c8d9e0f", true),
        ("the longest", &longest, true),
        ("one too long", &too_long, false),
        ("empty", "", false),
        ("a space", "a b", false),
        ("a line break would split a header", "a\r\nb", false),
        ("not ASCII", "键", false),
    ];
    for (why, text, good) in rows {
        assert_eq!(text.parse::<IdempotencyKey>().is_ok(), good, "{why}");
    }
}

#[test]
fn a_uuidv7_key_knows_its_time() {
    let key: IdempotencyKey = p("018f3c2a-1b2c-7d3e-8f40-5a6b7c8d9e0f");
    assert_eq!(key.unix_ms(), Some(0x018f_3c2a_1b2c), "the first 48 bits of a UUIDv7 are Unix milliseconds (D5: keys older than 30 days)");
    let rows = [
        ("a UUIDv4 has no time", "9f86d081-884c-4d65-9a2f-eaa0c55ad015"),
        ("a result key is no UUID", "018f3c2a-1b2c-7d3e-8f40-5a6b7c8d9e0f:x:result-v1"),
    ];
    for (why, text) in rows {
        assert_eq!(p::<IdempotencyKey>(text).unix_ms(), None, "{why}");
    }
}

#[test]
fn result_keys_are_made_of_task_attempt_and_kind() {
    let task: RemoteTaskId = p("018f3c2a-0000-7000-8000-0000000000a1");
    let attempt: AttemptId = p("018f3c2a-0000-7000-8000-0000000000f1");
    let rows = [(EventType::CollectResult, "result-v1"), (EventType::PurchaseResult, "result-v1"), (EventType::TaskFailure, "failure-v1")];
    for (event, suffix) in rows {
        let key = result_key(task, attempt, event);
        assert_eq!(key.as_str(), format!("{task}:{attempt}:{suffix}"), "{event}: the key of 03 §5.2");
        assert_eq!(key.as_str().parse::<IdempotencyKey>(), Ok(key), "{event}: the key passes its own rule");
    }
}

#[test]
fn goods_links() {
    let id = |text: &str| Ok(p::<GoodsId>(text));
    let rows: [(&str, &str, Result<GoodsId, BadGoods>); 17] = [
        ("the usual link", "https://mobile.yangkeduo.com/goods.html?goods_id=600000000001", id("600000000001")),
        ("among other parameters", "https://mobile.yangkeduo.com/goods.html?a=1&goods_id=7&b=2", id("7")),
        ("second host and page name", "https://mobile.pinduoduo.com/goods1.html?ps=x&goods_id=7", id("7")),
        ("app scheme", "pinduoduo://com.xunmeng.pinduoduo/goods.html?goods_id=7", id("7")),
        ("the same id twice is one id", "https://x/goods.html?goods_id=7&goods_id=7", id("7")),
        ("behind a fragment", "https://x/goods.html?a=1#goods_id=7", id("7")),
        ("spaces around the digits", "https://x/goods.html?goods_id= 7 ", id("7")),
        ("twenty digits", "https://x/g?goods_id=12345678901234567890", id("12345678901234567890")),
        ("no query", "https://x/goods.html", Err(BadGoods::NoId)),
        ("empty text", "", Err(BadGoods::NoId)),
        ("a parameter that only ends like it", "https://x/g?cat_goods_id=7", Err(BadGoods::NoId)),
        ("the id in the path only", "https://x/goods_id=7", Err(BadGoods::NoId)),
        ("two different ids", "https://x/g?goods_id=7&goods_id=8", Err(BadGoods::ManyIds(2))),
        ("an id and a blank one", "https://x/g?goods_id=7&goods_id=", Err(BadGoods::ManyIds(2))),
        ("no digits", "https://x/g?goods_id=", Err(BadGoods::Id)),
        ("letters: nothing may be smuggled into a shell command", "https://x/g?goods_id=7;reboot", Err(BadGoods::Id)),
        ("digits of another script", "https://x/g?goods_id=７", Err(BadGoods::Id)),
    ];
    for (why, url, expected) in rows {
        assert_eq!(GoodsId::from_url(url), expected, "{why}: {url}");
    }
    let goods: GoodsId = p("600000000001");
    assert_eq!(GoodsId::from_url(&goods.url()), Ok(goods), "the canonical link names its own id");
    assert_eq!("123456789012345678901".parse::<GoodsId>(), Err(BadGoods::Id), "21 digits are no goods id");
}

#[test]
fn wire_times() {
    let rows: [(&str, &str, Option<&str>); 8] = [
        ("as written", "2026-12-01T08:00:00.123Z", Some("2026-12-01T08:00:00.123Z")),
        ("whole seconds gain three digits", "2026-12-01T08:00:00Z", Some("2026-12-01T08:00:00.000Z")),
        ("microseconds are cut", "2026-12-01T08:00:00.123999Z", Some("2026-12-01T08:00:00.123Z")),
        ("before 1970 cuts downwards too", "1969-12-31T23:59:59.9995Z", Some("1969-12-31T23:59:59.999Z")),
        ("an offset becomes UTC", "2026-12-01T16:00:00.000+08:00", Some("2026-12-01T08:00:00.000Z")),
        ("no offset is no moment", "2026-12-01T08:00:00", None),
        ("a date is no moment", "2026-12-01", None),
        ("a number of seconds is no time text", "1796112000", None),
    ];
    for (why, text, expected) in rows {
        let read = text.parse::<WireTime>().ok().map(|time| time.to_string());
        assert_eq!(read.as_deref(), expected, "{why}: {text}");
    }
    assert!(serde_json::from_str::<WireTime>("1796112000000").is_err(), "times on the wire are text (D1)");
}

#[test]
fn times_stay_in_range() {
    let now = at("08:00:00.000");
    assert_eq!(now.plus_ms(90_000).ms_since(now), 90_000, "plus and since are each other's reverse");
    assert_eq!(now.ms_since(now.plus_ms(5)), -5, "an earlier moment is a negative difference");
    assert!(now.plus_ms(i64::MAX) > now, "far future is held at the end of the range, not wrapped");
    assert!(now.plus_ms(i64::MIN) < now, "far past is held at the beginning of the range, not wrapped");
}

proptest! {
    #[test]
    fn a_wire_time_survives_text_and_json(ms in -62_135_596_800_000_i64..253_402_207_200_000) {
        let time = WireTime::from_unix_ms(ms).expect("years 1 to 9999 are in range");
        let text = time.to_string();
        prop_assert_eq!(text.len(), 24, "always three digits and Z, so that text order is time order");
        prop_assert_eq!(text.parse::<WireTime>().ok(), Some(time), "text keeps the millisecond");
        let json = serde_json::to_string(&time).expect("a time serialises");
        prop_assert_eq!(serde_json::from_str::<WireTime>(&json).ok(), Some(time), "JSON keeps the millisecond");
    }

    #[test]
    fn text_order_is_time_order(a in 0_i64..253_402_207_200_000, b in 0_i64..253_402_207_200_000) {
        let (x, y) = (WireTime::from_unix_ms(a).expect("in range"), WireTime::from_unix_ms(b).expect("in range"));
        prop_assert_eq!(x.to_string().cmp(&y.to_string()), a.cmp(&b), "SQLite sorts the text");
    }

    #[test]
    fn a_time_with_nanoseconds_is_cut_down(ns in 0_i128..4_000_000_000_000_000_000) {
        let exact = jiff::Timestamp::from_nanosecond(ns).expect("in range");
        let kept = WireTime::new(exact);
        prop_assert_eq!(i128::from(kept.unix_ms()), ns.div_euclid(1_000_000), "never rounded up: a lease must not grow");
    }

    #[test]
    fn any_text_is_refused_or_kept_whole(text in ".{0,60}") {
        if let Ok(token) = text.parse::<ClaimToken>() { prop_assert_eq!(token.reveal(), text.as_str(), "a token is kept as it is"); }
        if let Ok(key) = text.parse::<IdempotencyKey>() { prop_assert_eq!(key.as_str(), text.as_str(), "a key is kept as it is"); }
        if let Ok(goods) = GoodsId::from_url(&text) {
            prop_assert!(goods.as_str().bytes().all(|b| b.is_ascii_digit()), "whatever the link, a goods id is digits");
        }
    }

    #[test]
    fn a_key_made_from_a_uuidv7_gives_back_its_milliseconds(ms in 0_u64..(1 << 48), rest: [u8; 10]) {
        let uuid = uuid::Builder::from_unix_timestamp_millis(ms, &rest).into_uuid();
        prop_assert_eq!(IdempotencyKey::from_uuid(uuid).unix_ms(), Some(ms), "the age check reads the time the caller put in");
    }
}

#[test]
fn error_codes_survive_and_are_distinct() {
    let mut texts: Vec<&str> = ErrorCode::ALL.iter().map(ErrorCode::as_str).collect();
    for code in ErrorCode::ALL {
        assert_eq!(&ErrorCode::from(code.as_str()), code, "{code}: a code is read back as itself");
    }
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), ErrorCode::ALL.len(), "two codes with one text could not be told apart");
}

#[test]
fn server_states_end_where_t205_says() {
    for status in ServerStatus::ALL {
        assert_eq!(ServerStatus::parse(status.as_str()), Some(*status), "{status}: the codec reads what it writes");
        let ended = ["SUCCEEDED", "FAILED", "CANCELED"].contains(&status.as_str());
        assert_eq!(status.is_terminal(), ended, "{status}: terminal by T-205 §11");
    }
    assert_eq!(ServerStatus::parse("succeeded"), None, "the server's words are upper case; another case is another vocabulary (D2)");
}

/// The shared samples are themselves legal, so that a refusal in another test is about what that test changed.
#[test]
fn samples_are_legal() {
    assert_eq!(towel().validate(), Ok(()), "the sample document obeys 03 §8");
    assert_eq!(collected().validate(), Ok(()), "the sample result obeys D8");
}
