//! `dumpsys` sections clients read: focus, activities, the goods page's props, power, package.

use crate::model::{LAUNCHER, PDD};
use crate::phone::{Phone, Screen};
use crate::shell::Io;
use crate::shell::android::PDD_VERSION;

pub(super) fn run(phone: &Phone, rest: &[String], io: &Io) -> i32 {
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let says = match rest.as_slice() {
        ["window", ..] => window(phone),
        ["activity", "top", ..] => top(phone),
        ["activity", ..] => activities(phone),
        ["power", ..] => power(phone),
        ["package", name] => package(phone, name),
        ["battery", ..] => {
            "Current Battery Service state:\n  AC powered: false\n  USB powered: true\n  level: 86\n  scale: 100\n  temperature: 291\n"
                .into()
        }
        ["display", ..] => {
            let Screen { width, height, density } = phone.screen();
            format!("  mCurrentDisplayRect=Rect(0, 0 - {width}, {height})\n  density={density}\n")
        }
        [] | ["-l"] => "Currently running services:\n  activity\n  battery\n  package\n  power\n  window\n".into(),
        [other, ..] => {
            io.complain(phone, format!("Can't find service: {other}\n"));
            return 0;
        }
    };
    io.say(phone, says);
    0
}

fn window(phone: &Phone) -> String {
    let focus = phone.focus();
    let (locked, awake) = phone.with_model(|model| (model.walls.locked, model.awake));
    let Screen { width, height, density } = phone.screen();
    let rotated = phone.with_model(|model| model.walls.rotated);
    let (wide, tall) = if rotated { (height, width) } else { (width, height) };
    let app = match phone.front() {
        Some((package, activity)) => format!("ActivityRecord{{8a1be22 u0 {package}/{activity} t118}}"),
        None => "null".into(),
    };
    format!(
        "WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)\n  Display: mDisplayId=0\n    init={width}x{height} {density}dpi cur={wide}x{tall} app={wide}x{}\n  mCurrentFocus={focus}\n  mFocusedApp={app}\n  mInputMethodTarget=null\n    mRotation=ROTATION_{}\nWINDOW MANAGER POLICY STATE (dumpsys window policy)\n    mDreamingLockscreen={locked}\n    isKeyguardShowing={locked}\n    screenState={}\n",
        tall - 46,
        if rotated { 90 } else { 0 },
        if awake { "SCREEN_STATE_ON" } else { "SCREEN_STATE_OFF" }
    )
}

fn activities(phone: &Phone) -> String {
    let record = match phone.front() {
        Some((package, activity)) => format!("ActivityRecord{{8a1be22 u0 {} t118}}", short(&package, &activity)),
        None => format!("ActivityRecord{{17c00d5 u0 {LAUNCHER}/.Launcher t4}}"),
    };
    format!(
        "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\nDisplay #0 (activities from top to bottom):\n  * Task{{2b41d0c #118 type=standard}}\n    topResumedActivity={record}\n  ResumedActivity: {record}\n  mLastFocusedRootTask=Task{{2b41d0c #118}}\n"
    )
}

/// What the goods page leaks about itself: the only passive way to know which goods is open.
fn top(phone: &Phone) -> String {
    let mut out = String::from("TASK 118: id=118 userId=0\n");
    let Some((package, activity)) = phone.front() else {
        return out;
    };
    out.push_str(&format!(
        "  ACTIVITY {} 8a1be22 pid=8123\n    Local Activity 6c02f1e State:\n      mResumed=true mStopped=false mFinished=false\n",
        short(&package, &activity)
    ));
    if package == PDD {
        let goods = phone.goods_on_top().map(|id| {
            format!(
                "      props={{\"type\":\"pdd_goods_detail\",\"url\":\"goods.html?source_app=com.android.shell&goods_id={id}&pr_force_native=1\",\"props\":\"{{\\\"goods_id\\\":\\\"{id}\\\",\\\"page_from\\\":\\\"23\\\"}}\"}}\n"
            )
        });
        out.push_str(&goods.unwrap_or_else(|| "      props={\"type\":\"pdd_page\"}\n".into()));
    }
    out.push_str("    View Hierarchy:\n      DecorView@9ad12c3[NewPageActivity]\n");
    out
}

fn short(package: &str, activity: &str) -> String {
    let class = activity.strip_prefix(package).unwrap_or(activity);
    format!("{package}/{class}")
}

fn power(phone: &Phone) -> String {
    let awake = phone.with_model(|model| model.awake);
    let (state, display) = if awake { ("Awake", "ON") } else { ("Asleep", "OFF") };
    format!(
        "POWER MANAGER (dumpsys power)\n\nPower Manager State:\n  mWakefulness={state}\n  mWakefulnessChanging=false\n  mIsPowered=true\n  Display Power: state={display}\n"
    )
}

fn package(phone: &Phone, name: &str) -> String {
    if name == PDD && phone.with_model(|model| model.installed) {
        return format!(
            "Packages:\n  Package [{PDD}] (51d0e3a):\n    userId=10187\n    pkg=Package{{2ffa01b {PDD}}}\n    codePath=/data/app/~~c2lt==/{PDD}-c2lt==\n    versionCode=75800 minSdk=21 targetSdk=33\n    versionName={PDD_VERSION}\n    firstInstallTime=2026-01-01 00:00:00\n"
        );
    }
    format!("Unable to find package: {name}\n")
}
