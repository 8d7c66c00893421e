//! The shell as clients use it: one line in; output, errors and status out.

use super::*;
use crate::config::SimConfig;
use std::time::Duration;

fn phone() -> Arc<Phone> {
    Arc::new(Phone::new(SimConfig { dump_time: Duration::from_millis(1), ..SimConfig::default() }))
}

async fn run_on(phone: &Arc<Phone>, line: &str, tty: bool) -> (String, String, i32) {
    let (to, mut from) = mpsc::unbounded_channel();
    let (status, _) = Shell::new(phone.clone(), tty).run(line, &to).await;
    drop(to);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(one) = from.recv().await {
        match one {
            Output::Out(bytes) => out.extend(bytes),
            Output::Err(bytes) => err.extend(bytes),
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned(), status)
}

#[tokio::test]
async fn lines_do_what_a_shell_does() {
    let rows: &[(&str, &str, &str, i32)] = &[
        ("echo hi", "hi\n", "", 0),
        ("echo 'a  b' \"c $USER\" d\\ e", "a  b c shell d e\n", "", 0),
        ("echo '中文'; echo two", "中文\ntwo\n", "", 0),
        ("true && echo yes || echo no", "yes\n", "", 0),
        ("false && echo yes || echo no", "no\n", "", 0),
        ("false; echo $?", "1\n", "", 0),
        ("exit 7", "", "", 7),
        ("echo a; exit 3; echo b", "a\n", "", 3),
        ("echo oops >&2", "", "oops\n", 0),
        ("echo gone > /dev/null", "", "", 0),
        ("cat /no/such 2>/dev/null", "", "", 1),
        ("cat /no/such 2>&1", "cat: /no/such: No such file or directory\n", "", 1),
        (
            "f=/sdcard/x; echo one > $f; echo two >> $f; cat $f; rm -f $f; cat $f",
            "one\ntwo\n",
            "cat: /sdcard/x: No such file or directory\n",
            1,
        ),
        ("printf 'a\\nb\\nc\\n' | grep b", "b\n", "", 0),
        ("printf 'a\\nb\\nc\\n' | head -n 2 | wc -l", "2\n", "", 0),
        ("echo a | grep z", "", "", 1),
        ("x=$(echo in); echo \"<$x>\"", "<in>\n", "", 0),
        ("(x=1; exit 4); echo \"$? $x\"", "4 \n", "", 0),
        ("{ echo a; echo b; } | wc -l", "2\n", "", 0),
        ("! true", "", "", 1),
        ("sh -c 'echo inner; exit 5'", "inner\n", "", 5),
        ("nosuchthing", "", "/system/bin/sh: nosuchthing: inaccessible or not found\n", 127),
        ("echo 'open", "", "/system/bin/sh: no closing quote\n", 1),
        ("echo a && ", "", "/system/bin/sh: unexpected end of file\n", 1),
        ("screencap '-p' /sdcard/s.png && ls /sdcard/s.png", "/sdcard/s.png\n", "", 0),
        ("wm size", "Physical size: 1080x2400\n", "", 0),
        ("settings put global x 2; settings get global x", "2\n", "", 0),
        ("settings get global none", "null\n", "", 0),
        ("getprop ro.serialno", "CMSIM0001\n", "", 0),
        ("pm path com.none", "", "", 1),
        ("echo $$ | grep -q 9", "", "", 0),
        ("echo x > /system/y", "", "/system/bin/sh: can't open /system/y: Permission denied\n", 1),
    ];
    let phone = phone();
    for (line, out, err, status) in rows {
        let got = run_on(&phone, line, false).await;
        assert_eq!(got, ((*out).to_owned(), (*err).to_owned(), *status), "`{line}` must behave as in a shell");
    }
}

#[tokio::test]
async fn the_dump_line_of_the_client_gives_xml_only_on_stdout() {
    let phone = phone();
    for flag in ["", "--compressed "] {
        let line = format!("f=/data/local/tmp/u_$$.xml; uiautomator dump {flag}$f >&2; cat $f; r=$?; rm -f $f; exit $r");
        let (out, err, status) = run_on(&phone, &line, false).await;
        assert!(out.starts_with("<?xml version='1.0'") && out.ends_with("</hierarchy>"), "stdout is the document alone");
        assert!(err.starts_with("UI hierchary dumped to: /data/local/tmp/u_"), "the status line went to stderr: {err}");
        assert_eq!(status, 0, "the status is that of cat");
        assert!(phone.list("/data/local/tmp").is_empty(), "the file is gone");
    }
}

#[tokio::test]
async fn dev_tty_opens_only_where_there_is_a_terminal() {
    let phone = phone();
    let (with, ..) = run_on(&phone, "uiautomator dump /dev/tty", true).await;
    assert!(with.contains("</hierarchy>UI hierchary dumped to: /dev/tty"), "a terminal carries tree and status line");
    let (without, ..) = run_on(&phone, "uiautomator dump /dev/tty", false).await;
    assert_eq!(without, "UI hierchary dumped to: /dev/tty\n", "without one only the status line comes, as on a phone");
}

#[tokio::test]
async fn dump_faults_look_like_the_real_failures() {
    use crate::faults::Fault;
    let line = "f=/data/local/tmp/f.xml; uiautomator dump $f >&2; cat $f; r=$?; rm -f $f; exit $r";
    let missing = "cat: /data/local/tmp/f.xml: No such file or directory\n";
    let phone = phone();
    phone.set_fault(Fault::NullRoot { times: 1 });
    let (out, err, status) = run_on(&phone, line, false).await;
    assert_eq!((out.as_str(), status), ("", 1), "a null root writes no file");
    assert_eq!(err, format!("ERROR: null root node returned by UiTestAutomationBridge.\n{missing}"), "and says so");
    let (out, ..) = run_on(&phone, line, false).await;
    assert!(out.ends_with("</hierarchy>"), "it wore off");

    phone.set_fault(Fault::DumpExit137 { times: 1 });
    assert_eq!(run_on(&phone, "uiautomator dump /sdcard/a.xml", false).await, (String::new(), String::new(), 137), "killed silently");
    phone.set_fault(Fault::TruncatedXml { times: 1 });
    let (out, _, status) = run_on(&phone, line, false).await;
    assert!(!out.ends_with("</hierarchy>") && !out.is_empty() && status == 0, "the file ends in the middle, status 0");
    phone.set_fault(Fault::NeverIdle);
    let (_, err, _) = run_on(&phone, line, false).await;
    assert!(err.starts_with("ERROR: could not get idle state."), "never idle says so: {err}");
    phone.clear_faults();

    phone.set_fault(Fault::StaleFile);
    phone.launch(crate::model::PDD);
    let (out, ..) = run_on(&phone, line, false).await;
    assert!(out.contains("com.android.launcher3"), "the tree is the one from before the app opened");
}

#[tokio::test]
async fn one_dump_at_a_time_and_pkill_ends_a_hung_one() {
    use crate::faults::Fault;
    let phone = phone();
    phone.set_fault(Fault::HangDump);
    let own = phone.clone();
    let hung = tokio::spawn(async move { run_on(&own, "uiautomator dump /sdcard/h.xml", false).await });
    tokio::time::timeout(Duration::from_secs(5), async {
        while phone.begin_dump() != crate::phone::DumpPlan::Taken {
            phone.abandon_dump();
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the hung dump takes the connection");
    let (_, err, status) = run_on(&phone, "uiautomator dump /sdcard/b.xml", false).await;
    assert!(err.contains("already registered!") && status == 1, "a second client is refused: {err}");
    let (.., killed) = run_on(&phone, "pkill -f com.android.commands.uiautomator", false).await;
    assert_eq!(killed, 0, "pkill found it");
    let (.., status) = hung.await.expect("joined");
    assert_eq!(status, 137, "the hung dump died");
}

#[tokio::test]
async fn links_open_and_a_missing_app_says_so() {
    let phone = phone();
    let link = "am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/goods.html?goods_id=618203947511' -p com.xunmeng.pinduoduo";
    let (out, err, status) = run_on(&phone, link, false).await;
    assert!(out.starts_with("Starting: Intent {") && err.is_empty() && status == 0, "it starts: {out}{err}");
    let (top, ..) = run_on(&phone, "dumpsys activity top", false).await;
    assert!(top.contains("goods_id=618203947511"), "the page says which goods it shows");
    let (focus, ..) = run_on(&phone, "dumpsys window | grep mCurrentFocus", false).await;
    assert!(focus.contains("u0 com.xunmeng.pinduoduo/com.xunmeng.pinduoduo.activity.NewPageActivity}"), "focus: {focus}");

    let bare = Arc::new(Phone::new(SimConfig { pdd_installed: false, ..SimConfig::default() }));
    let (_, err, status) = run_on(&bare, link, false).await;
    assert!(err.starts_with("Error: Activity not started, unable to resolve Intent") && status == 1, "got {err}");
    let (.., status) = run_on(&bare, "pm path com.xunmeng.pinduoduo", false).await;
    assert_eq!(status, 1, "and the package has no path");
}
