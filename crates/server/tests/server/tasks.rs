//! Lists with filters, and reference images (T-205 §13).

use axum::body::Body;
use axum::http::{Method, Request};
use cmautobuy_protocol::admin::{ReferenceImage, TaskPage};
use cmautobuy_protocol::auth::Session;
use cmautobuy_protocol::lifecycle::ClaimAnswer;
use cmautobuy_protocol::{AccessToken, ErrorCode, RemoteTaskId, TaskType};
use image::{DynamicImage, ImageFormat};

use crate::world::{Answer, World, collect, exchange, key_at, token};

async fn titles(world: &World, admin: &Session, query: &str) -> Vec<String> {
    let page: TaskPage = world.get(&format!("/admin/tasks{query}"), &admin.access_token).await.ok();
    assert!(page.next.is_none(), "{query}: one page is enough here");
    page.tasks.into_iter().map(|task| task.title.unwrap_or_default()).collect()
}

#[tokio::test]
async fn lists_take_any_filters_together() {
    let world = World::new();
    let admin = world.admin().await;
    let ann = world.buyer("ann").await;
    let make = |title: &str, goods: u64, external_ref: Option<&str>, kind: TaskType| {
        world.advance_s(1);
        let mut asked = collect(goods);
        asked.title = Some(title.to_owned());
        asked.external_ref = external_ref.map(str::to_owned);
        asked.task_type = kind;
        asked.quantity = (kind == TaskType::Purchase).then_some(1);
        world.server.admin().create_task(&asked, None).expect("a task").task_id
    };
    make("Red Towel", 1, None, TaskType::Collect);
    let held = ann.running().await;
    make("blue towel", 1, Some("r 2"), TaskType::Collect);
    let noon = world.now();
    make("mug", 2, Some("r 3"), TaskType::Purchase);
    let gone = make("gone", 3, None, TaskType::Collect);
    world.server.admin().cancel(gone).expect("a cancel");
    world.server.admin().cancel(held.task).expect("a request");
    let rows: [(&str, String, &[&str]); 15] = [
        ("all, newest first", String::new(), &["gone", "mug", "blue towel", "Red Towel"]),
        ("status", "?status=PENDING".to_owned(), &["mug", "blue towel"]),
        ("type", "?task_type=purchase".to_owned(), &["mug"]),
        ("mode", "?execution_mode=live".to_owned(), &[]),
        ("device", format!("?device_id={}", ann.device), &["Red Towel"]),
        ("user", format!("?user_id={}", ann.user), &["Red Towel"]),
        ("external_ref", "?external_ref=r+3".to_owned(), &["mug"]),
        ("half an external_ref is none", "?external_ref=r".to_owned(), &[]),
        ("goods", "?goods_id=1".to_owned(), &["blue towel", "Red Towel"]),
        ("title, any case", "?title=TOWEL".to_owned(), &["blue towel", "Red Towel"]),
        ("title is no pattern", "?title=%25".to_owned(), &[]),
        ("from", format!("?created_from={noon}"), &["gone", "mug", "blue towel"]),
        ("before", format!("?created_before={noon}"), &["Red Towel"]),
        ("asked to stop", "?cancel_requested=true&status=RUNNING".to_owned(), &["Red Towel"]),
        ("two at once", "?goods_id=1&status=PENDING".to_owned(), &["blue towel"]),
    ];
    for (name, query, expected) in rows {
        assert_eq!(titles(&world, &admin, &query).await, expected, "{name}");
    }
    let refused = [
        "?status=pending",
        "?goods_id=abc",
        "?created_from=yesterday",
        "?limit=0",
        "?limit=201",
        "?cursor=x",
        "?stauts=PENDING",
        "?device_id=7",
    ];
    for query in refused {
        let answer = world.get(&format!("/admin/tasks{query}"), &admin.access_token).await;
        answer.is(422, ErrorCode::Malformed, &format!("{query}: a filter that is not understood must not be a wider list"));
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page: TaskPage = world.get(&format!("/admin/tasks?goods_id=1&limit=1{cursor}"), &admin.access_token).await.ok();
        seen.extend(page.tasks.into_iter().filter_map(|task| task.title));
        let Some(next) = page.next else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, ["blue towel", "Red Towel"], "pages of a filtered list follow each other and end");
}

fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = DynamicImage::new_rgb8(width, height);
    picture.write_to(&mut bytes, ImageFormat::Jpeg).expect("a JPEG");
    bytes.into_inner()
}

async fn image_call(world: &World, method: Method, task: RemoteTaskId, access: &AccessToken, bytes: Vec<u8>) -> Answer {
    let request = Request::builder().method(method).uri(format!("/api/v1/admin/tasks/{task}/reference-image"));
    let request = request.header("authorization", format!("Bearer {}", access.reveal()));
    raw(world, request.body(Body::from(bytes)).expect("a request")).await
}

/// A picture is no text: its length stands for it.
async fn raw(world: &World, request: Request<Body>) -> Answer {
    let (parts, bytes) = exchange(&world.router, request).await;
    let text = String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| format!("{} bytes", bytes.len()));
    Answer { status: parts.status, headers: parts.headers, text }
}

#[tokio::test]
async fn t205_13_the_picture_is_shown_only_to_the_living_claim() {
    let world = World::new();
    let admin = world.admin().await;
    let (ann, bob) = (world.buyer("ann").await, world.buyer("bob").await);
    let task = world.task();
    let picture = jpeg(64, 48);
    let put: ReferenceImage = image_call(&world, Method::PUT, task, &admin.access_token, picture.clone()).await.ok();
    assert_eq!((put.width, put.height, put.bytes), (64, 48, picture.len() as u64), "what was kept");
    assert_eq!(world.detail(task).reference_image, Some(put), "and the detail tells of it");
    let whole = format!("{} bytes", picture.len());
    assert_eq!(image_call(&world, Method::GET, task, &admin.access_token, Vec::new()).await.text, whole, "an administrator sees it");

    let (token_a, key) = (token(), key_at(world.now()));
    let answer: ClaimAnswer = ann.claim_with(&token_a, &key).await.ok();
    let path = answer.task["reference_image"].as_str().expect("the claim's answer says where").to_owned();
    let get = |path: String, access: &AccessToken, token: Option<&str>| {
        let mut request = Request::get(path).header("authorization", format!("Bearer {}", access.reveal()));
        if let Some(token) = token {
            request = request.header("x-claim-token", token);
        }
        raw(&world, request.body(Body::empty()).expect("a request"))
    };
    let seen = get(path.clone(), &ann.access, Some(token_a.reveal())).await;
    assert_eq!((seen.status.as_u16(), seen.text.as_str()), (200, whole.as_str()), "the device that holds the claim sees it");
    let header = |name: &str| seen.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    assert_eq!(header("cache-control"), "private, no-store", "nobody on the way may keep it");
    assert_eq!((header("content-type"), header("x-content-type-options")), ("image/jpeg".to_owned(), "nosniff".to_owned()), "JPEG only");

    let stranger = token();
    let next = path.replace("claim_generation=1", "claim_generation=2");
    let no_generation = path.split_once('?').expect("a query").0.to_owned();
    let rows = [
        ("another device", get(path.clone(), &bob.access, Some(token_a.reveal())).await, 404, ErrorCode::NotFound),
        ("another token", get(path.clone(), &ann.access, Some(stranger.reveal())).await, 409, ErrorCode::ClaimLost),
        ("no token", get(path.clone(), &ann.access, None).await, 422, ErrorCode::Malformed),
        ("another generation", get(next, &ann.access, Some(token_a.reveal())).await, 409, ErrorCode::ExecutionMismatch),
        ("no generation", get(no_generation, &ann.access, Some(token_a.reveal())).await, 422, ErrorCode::Malformed),
        ("an administrator's login", get(path.clone(), &admin.access_token, Some(token_a.reveal())).await, 403, ErrorCode::Forbidden),
    ];
    for (name, answer, status, code) in rows {
        answer.is(status, code, name);
    }
    image_call(&world, Method::PUT, task, &admin.access_token, jpeg(8, 8)).await.is(
        409,
        ErrorCode::IllegalState,
        "a claimed task's picture stays",
    );
    image_call(&world, Method::DELETE, task, &admin.access_token, Vec::new()).await.is(
        409,
        ErrorCode::IllegalState,
        "and is not taken away",
    );
    world.advance_s(601);
    get(path.clone(), &ann.access, Some(token_a.reveal())).await.is(409, ErrorCode::LeaseExpired, "authorised anew on every read");
    bob.beat().await.ok::<serde_json::Value>();
    let taken: ClaimAnswer = bob.claim_with(&token(), &key_at(world.now())).await.ok();
    assert_eq!(taken.standing.task_id, task, "bob gets the task that ran out");
    get(path, &ann.access, Some(token_a.reveal())).await.is(409, ErrorCode::ClaimLost, "and ann's claim shows nothing any more");
}

#[tokio::test]
async fn only_a_whole_jpeg_of_bounded_size_is_kept() {
    let world = World::new();
    let admin = world.admin().await;
    let task = world.task();
    let mut png = std::io::Cursor::new(Vec::new());
    DynamicImage::new_rgb8(4, 4).write_to(&mut png, ImageFormat::Png).expect("a PNG");
    let small = jpeg(64, 64);
    // A header may claim any size; the pixels behind it are never decoded.
    let mut bomb = small.clone();
    let frame = bomb.windows(2).position(|mark| mark == [0xff, 0xc0]).expect("a frame header");
    bomb[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let mut large = bomb.clone();
    large[frame + 5..frame + 9].copy_from_slice(&[0x23, 0x28, 0x23, 0x28]);
    let rows: [(&str, Vec<u8>, u16, &str); 7] = [
        ("nothing", Vec::new(), 422, "no JPEG"),
        ("text", b"hello".to_vec(), 422, "no JPEG"),
        ("a PNG", png.into_inner(), 422, "no JPEG"),
        ("half a JPEG", small[..small.len() / 3].to_vec(), 422, "cannot be decoded"),
        ("65535 pixels a side", bomb, 422, ""),
        ("81 million pixels", large, 422, "pixels"),
        ("6 MiB", [small.clone(), vec![0; 6 << 20]].concat(), 413, "larger"),
    ];
    for (name, bytes, status, word) in rows {
        let refused = image_call(&world, Method::PUT, task, &admin.access_token, bytes).await.refused(status);
        assert!(refused.error.message.contains(word), "{name}: `{}` must say `{word}`", refused.error.message);
        assert_eq!(world.detail(task).reference_image, None, "{name}: nothing was kept");
    }
    image_call(&world, Method::GET, task, &admin.access_token, Vec::new()).await.is(404, ErrorCode::NotFound, "there is none");
    image_call(&world, Method::DELETE, task, &admin.access_token, Vec::new()).await.is(404, ErrorCode::NotFound, "nothing to remove");
    image_call(&world, Method::PUT, task, &admin.access_token, small).await.ok::<ReferenceImage>();
    image_call(&world, Method::PUT, task, &admin.access_token, jpeg(32, 16)).await.ok::<ReferenceImage>();
    assert_eq!(world.detail(task).reference_image.map(|about| about.width), Some(32), "a second one replaces the first");
    assert_eq!(image_call(&world, Method::DELETE, task, &admin.access_token, Vec::new()).await.status.as_u16(), 204, "removed");
    let trail = world.server.admin().audit(Some(&format!("task:{task}")), None, None).expect("the trail");
    let actions: Vec<_> = trail.entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["REFERENCE_IMAGE_REMOVED", "REFERENCE_IMAGE_SET", "REFERENCE_IMAGE_SET"], "and each change is on record");
    let answer: ClaimAnswer = {
        let ann = world.buyer("ann").await;
        ann.claim_with(&token(), &key_at(world.now())).await.ok()
    };
    assert!(answer.task["reference_image"].is_null(), "a task without a picture says so");
}
