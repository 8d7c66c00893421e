//! Every sentence that tells a person what went wrong and what to do next, in both languages, in one table.
//!
//! The window and the console both read from here; a test holds the table complete. Detail (an error chain) is for support.

use std::fmt;

use cmautobuy_protocol::error::chain;
use cmautobuy_store::StoreError;
use cmautobuy_sync::ApiError;
use serde::{Deserialize, Serialize};
use specta::Type;

/// What went wrong, in one language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct Sentence {
    pub cause: String,
    pub next_step: String,
}

/// A cause and a next step, in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub code: String,
    pub zh: Sentence,
    pub en: Sentence,
    /// The technical chain, untranslated; never holds a secret.
    pub detail: String,
}

macro_rules! problems {
    ($($variant:ident $code:literal { zh: $zc:literal => $zn:literal, en: $ec:literal => $en:literal })+) => {
        /// The kinds of problem a person can meet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($variant,)+ }

        impl Kind {
            pub const ALL: &[Kind] = &[$(Kind::$variant,)+];

            pub const fn code(self) -> &'static str { match self { $(Self::$variant => $code,)+ } }

            /// The kind whose code is `code`, for errors that crossed the database as text.
            pub fn from_code(code: &str) -> Option<Self> { match code { $($code => Some(Self::$variant),)+ _ => None } }

            const fn texts(self) -> [&'static str; 4] { match self { $(Self::$variant => [$zc, $zn, $ec, $en],)+ } }
        }
    };
}

problems! {
    ServerUnreachable "SERVER_UNREACHABLE" {
        zh: "连不上服务器。" => "请确认服务器已启动、地址正确、网络通畅。程序会自动重试，已完成的结果都保存在本机，不会丢。",
        en: "The server cannot be reached." => "Check that it is running, that the address is right and that the network works. The program keeps trying; finished results are kept here."
    }
    LoginRefused "LOGIN_REFUSED" {
        zh: "用户名或密码不对。" => "请重新输入；忘记密码请联系管理员重设。",
        en: "User name or password is wrong." => "Type them again, or ask an administrator to reset the password."
    }
    DeviceNotAuthorized "DEVICE_NOT_AUTHORIZED" {
        zh: "这台设备还没有授权给该用户。" => "请把本机设备编号发给管理员，授权后再登录。",
        en: "This device is not authorised for this user." => "Give this device's id to an administrator, then log in again."
    }
    LoginNeeded "UNAUTHENTICATED" {
        zh: "登录已失效。" => "请重新登录；未发送的结果会在登录后继续发送。",
        en: "The login is no longer valid." => "Log in again; waiting results are sent after that."
    }
    RateLimited "RATE_LIMITED" {
        zh: "登录尝试太频繁。" => "请等一分钟再试。",
        en: "Too many login attempts." => "Wait a minute, then try again."
    }
    OtherServer "OTHER_SERVER" {
        zh: "这个数据文件夹属于另一台服务器。" => "请换回原来的服务器地址，或为新服务器使用一个新的数据文件夹。",
        en: "This data folder belongs to another server." => "Use the address it was bound to, or a new data folder for the new server."
    }
    DeviceInUse "DEVICE_IN_USE" {
        zh: "这台设备或这部手机正被另一个程序使用。" => "请关闭另一处正在运行的程序，两分钟后会自动恢复。",
        en: "This device or phone is in use by another running copy." => "Close the other copy; it recovers by itself within two minutes."
    }
    DeviceBusy "DEVICE_BUSY" {
        zh: "服务器上这台设备还有未结束的任务。" => "请在任务列表中先处理完它，或请管理员关闭该任务。",
        en: "The server still holds this device to an unfinished task." => "Finish it in the task list, or ask an administrator to close it."
    }
    DeviceNotReady "DEVICE_NOT_READY" {
        zh: "手机还没准备好，暂不领取任务。" => "请检查手机已连接、已解锁、已安装拼多多。",
        en: "The phone is not ready, so no task is claimed." => "Check that it is connected, unlocked and has Pinduoduo installed."
    }
    PhoneGone "DEVICE_GONE" {
        zh: "手机断开了。" => "请检查数据线或无线连接，并确认已打开 USB 调试；重新连上后点“开始”继续。",
        en: "The phone is gone." => "Check the cable or the wireless link and USB debugging, then start again once it is back."
    }
    AdbUnreachable "ADB_UNREACHABLE" {
        zh: "连不上手机的调试端口。" => "请确认手机地址和端口正确、手机在同一网络，并已打开 USB 调试或无线调试。",
        en: "The phone's debugging port cannot be reached." => "Check its address and port, that it is on the same network and that USB or wireless debugging is on."
    }
    AdbMissing "ADB_MISSING" {
        zh: "找不到 adb 程序。" => "请在设置里填写 adb 的位置，或改用无线方式直接填手机地址（例如 192.168.0.20:5555），那样不需要 adb。",
        en: "No adb program was found." => "Name one in the settings, or reach the phone by its address (such as 192.168.0.20:5555), which needs no adb."
    }
    AdbFailed "ADB_FAILED" {
        zh: "adb 程序运行出错。" => "请看详情里 adb 自己的说明；常见原因是杀毒软件拦截或文件不全，放行或重新安装后再试。",
        en: "The adb program failed." => "Read its own words in the detail; a virus scanner or a missing file is the usual reason. Allow or reinstall it, then try again."
    }
    AdbPortHeld "ADB_PORT_HELD" {
        zh: "adb 要用的端口被另一个程序占着。" => "请关闭详情里写的那个程序（手机助手、模拟器等），或改用别的端口。",
        en: "Another program holds the port adb needs." => "Close the program named in the detail (a phone assistant or emulator), or choose another port."
    }
    AdbServerDown "ADB_SERVER_DOWN" {
        zh: "adb 服务没有在运行。" => "程序会自己启动它；如果一直不行，请运行“体检”并按提示处理。",
        en: "The adb server is not running." => "The program starts its own by itself; if that does not help, run the doctor and follow it."
    }
    AdbVersionClash "ADB_VERSION_CLASH" {
        zh: "这台电脑上有两个版本不同的 adb，会互相关闭对方。" => "请把手机地址改成 adb:序列号，使用程序自带的 adb；或关闭详情里的程序。",
        en: "Two adb programs of different versions on this computer end each other." => "Set the phone's address to adb:SERIAL to use our own adb, or close the program named in the detail."
    }
    AdbOtherServer "ADB_OTHER_SERVER" {
        zh: "另一个程序也在运行 adb，可能抢走数据线上的手机。" => "如果手机时断时续，请关闭详情里写的程序。",
        en: "Another program runs an adb too and may take phones on a cable." => "If the phone comes and goes, close the program named in the detail."
    }
    AdbTooOld "ADB_TOO_OLD" {
        zh: "这个 adb 太旧，不支持配对码和自动发现。" => "请换用 31 以上版本的 adb，或用数据线连接。",
        en: "This adb is too old to pair by code or to discover phones." => "Use adb 31 or newer, or a cable."
    }
    PairingRefused "PAIRING_REFUSED" {
        zh: "手机没有接受配对码。" => "请在手机“无线调试 → 使用配对码配对设备”里看新的地址和六位数字，窗口开着的时候再输入一次。",
        en: "The phone did not accept the pairing code." => "On the phone open Wireless debugging, Pair device with pairing code, and type the address and six digits while that window is open."
    }
    PhoneHeld "PHONE_HELD" {
        zh: "手机连在另一个程序的 adb 上。" => "请关闭详情里写的程序，再拔插一次数据线。",
        en: "The phone is held by another program's adb." => "Close the program named in the detail, then unplug the cable and plug it in again."
    }
    PhoneNotFound "PHONE_NOT_FOUND" {
        zh: "没有找到这部手机。" => "请换一根能传数据的线或换一个接口，在手机上选“传输文件”，并确认已打开 USB 调试。",
        en: "This phone was not found." => "Use a cable that carries data or another socket, choose file transfer on the phone and check that USB debugging is on."
    }
    PhoneOffline "PHONE_OFFLINE" {
        zh: "手机连着，但没有响应（offline）。" => "程序会自动重连；不行的话请拔插数据线，或把 USB 调试关掉再打开。",
        en: "The phone is connected but offline." => "It is reconnected by itself; if not, unplug and plug it in, or turn USB debugging off and on."
    }
    UsbNoPermissions "USB_NO_PERMISSIONS" {
        zh: "系统不允许当前用户访问这部手机。" => "请安装 Android 的 udev 规则（例如 android-sdk-platform-tools-common）后重新插线。",
        en: "This user may not use the phone on the cable." => "Install Android's udev rules (for example android-sdk-platform-tools-common), then plug it in again."
    }
    PhoneWrongMode "PHONE_WRONG_MODE" {
        zh: "手机不在正常系统里（恢复模式或刷机模式）。" => "请重启手机，进入正常桌面后再试。",
        en: "The phone is in recovery or the bootloader." => "Restart it into the normal system, then try again."
    }
    PhoneTwoRoads "PHONE_TWO_ROADS" {
        zh: "同一部手机有两条连接（数据线和无线）。" => "无需处理，程序按一部手机对待并优先用数据线。",
        en: "One phone is connected in two ways." => "Nothing to do; it counts as one phone and the cable is preferred."
    }
    ScreenOff "SCREEN_OFF" {
        zh: "手机屏幕是黑的。" => "运行任务前会自动点亮；建议在开发者选项里打开“保持唤醒状态”。",
        en: "The phone's screen is off." => "It is woken before a run; turning on \"Stay awake\" in the developer options is advised."
    }
    ScreenLocked "SCREEN_LOCKED" {
        zh: "手机锁屏了。" => "请解锁手机；专用手机建议取消锁屏密码。",
        en: "The phone is locked." => "Unlock it; a phone used only for this is best without a lock."
    }
    PddDisabled "PDD_DISABLED" {
        zh: "手机上的拼多多被停用了。" => "请在手机“设置 → 应用管理 → 拼多多”里点“启用”。",
        en: "Pinduoduo is switched off on the phone." => "Open Settings, Apps, Pinduoduo on the phone and press Enable."
    }
    PddOld "PDD_OLD" {
        zh: "手机上的拼多多版本太旧，页面可能认不出。" => "请更新拼多多后再运行任务。",
        en: "The Pinduoduo on the phone is old and its pages may not be recognised." => "Update it before running tasks."
    }
    PhoneStorageLow "PHONE_STORAGE_LOW" {
        zh: "手机存储空间快满了。" => "请清理手机，至少留出 500 MB。",
        en: "The phone's storage is almost full." => "Free at least 500 MB on it."
    }
    AnimationsOn "ANIMATIONS_ON" {
        zh: "手机开着系统动画，读屏会变慢。" => "可以在“体检”里一键关闭（能恢复），或在开发者选项里把三个动画缩放设为“关闭”。",
        en: "The phone's animations are on, which slows reading its screen." => "Let the doctor turn them off (it can be undone), or set the three animation scales to off in the developer options."
    }
    PhoneClockOff "PHONE_CLOCK_OFF" {
        zh: "手机时间不准。" => "请在手机“日期和时间”里打开“自动确定时间”。",
        en: "The phone's clock is wrong." => "Turn on automatic date and time on the phone."
    }
    PhoneUnauthorized "UNAUTHORIZED" {
        zh: "手机没有允许这台电脑调试。" => "请解锁手机，在“允许 USB 调试吗”窗口中勾选“始终允许”并点“允许”；没有弹窗就在开发者选项里点“撤销 USB 调试授权”，再拔插一次。",
        en: "The phone has not allowed this computer to debug it." => "Unlock the phone, tick \"Always allow\" in the debugging question and press Allow; without a question, revoke USB debugging authorisations in the developer options and plug it in again."
    }
    PddMissing "PDD_MISSING" {
        zh: "手机上没有安装拼多多。" => "请在手机上安装拼多多并登录，然后重试。",
        en: "Pinduoduo is not installed on the phone." => "Install it on the phone, log in, then try again."
    }
    DumpUnreadable "DUMP_FAILED" {
        zh: "读不到手机屏幕的内容。" => "请确认手机已解锁、停在正常页面，且没有别的自动化程序占用；然后重试。",
        en: "The phone's screen could not be read." => "Check that it is unlocked, on a normal page and not used by another automation program; then try again."
    }
    NeverIdle "NEVER_IDLE" {
        zh: "手机屏幕一直在变化，读不到内容。" => "请在开发者选项里把三个动画缩放设为“关闭”，关掉悬浮视频，然后重试。",
        en: "The phone's screen never rests, so it could not be read." => "Set the three animation scales to off in the developer options, close floating videos, then try again."
    }
    InputRefused "INPUT_REFUSED" {
        zh: "手机拒绝了点击。" => "请在开发者选项里打开“USB 调试（安全设置）”并重启手机。",
        en: "The phone refused the tap." => "Turn on \"USB debugging (Security settings)\" in the developer options and restart the phone."
    }
    PhoneTimeout "TIMEOUT" {
        zh: "手机在规定时间内没有反应。" => "请看一眼手机是否卡住或弹出了窗口，然后重试。",
        en: "The phone did not answer in time." => "Look whether it hangs or shows a popup, then try again."
    }
    GuardRefused "GUARD_REFUSED" {
        zh: "安全检查拦下了一次点击。" => "没有点任何东西。请打开任务详情查看截图，由人决定怎么处理。",
        en: "The safety guard stopped a tap." => "Nothing was tapped. Look at the screenshots in the task and decide by hand."
    }
    LoginWall "LOGIN_WALL" {
        zh: "拼多多要求登录。" => "请在手机上登录拼多多，再重新采集该任务。",
        en: "Pinduoduo asks for a login." => "Log in on the phone, then collect the task again."
    }
    RiskWall "RISK_WALL" {
        zh: "拼多多弹出了安全验证。" => "请在手机上由本人完成验证，再重新采集该任务；程序不会尝试绕过。",
        en: "Pinduoduo shows a security check." => "A person must complete it on the phone, then collect the task again; the program never tries to pass it."
    }
    GoodsSoldOut "GOODS_SOLD_OUT" {
        zh: "商品已售罄。" => "任务已按失败上报；换一个商品链接再下任务。",
        en: "The goods are sold out." => "The task was reported as failed; make a new one with another link."
    }
    GoodsRemoved "GOODS_REMOVED" {
        zh: "商品不存在或已下架。" => "任务已按失败上报；请核对商品链接。",
        en: "The goods do not exist or were removed." => "The task was reported as failed; check the goods link."
    }
    WrongGoods "WRONG_GOODS" {
        zh: "手机打开的不是任务里的商品。" => "请看任务截图，确认商品链接，再重新采集。",
        en: "The phone opened other goods than the task names." => "Look at the screenshots, check the link, then collect again."
    }
    UnknownScreen "UNKNOWN_SCREEN" {
        zh: "手机上出现了不认识的页面。" => "请看任务截图，在手机上关掉该页面后重新采集；把诊断文件发给支持人员。",
        en: "The phone shows a page the program does not know." => "Look at the screenshots, close the page on the phone and collect again; send the files to support."
    }
    NetworkPage "NETWORK_PAGE" {
        zh: "拼多多提示网络繁忙或加载失败。" => "请检查手机网络，稍后点“开始”重试。",
        en: "Pinduoduo says the network is busy or loading failed." => "Check the phone's network, then start again later."
    }
    SheetUnreadable "SHEET_UNREADABLE" {
        zh: "规格面板读不完整。" => "请看任务截图，确认页面正常后重新采集。",
        en: "The options sheet could not be read whole." => "Look at the screenshots and collect again when the page is normal."
    }
    NoSkuEntry "NO_SKU_ENTRY" {
        zh: "商品页上找不到规格入口。" => "请看任务截图；程序不会点购买按钮，请人工处理。",
        en: "The goods page has no way into its options." => "Look at the screenshots; the program never presses a buy button, so a person must decide."
    }
    BadTaskData "BAD_TASK_DATA" {
        zh: "任务数据有错（商品链接、数量或类型）。" => "任务已按失败上报；请管理员改正后重新下任务。",
        en: "The task's data is wrong (goods link, quantity or type)." => "It was reported as failed; an administrator must make a correct one."
    }
    LeaseLost "LEASE_LOST" {
        zh: "与服务器失去联系太久，已停止操作手机。" => "手机停在原处。网络恢复后点“开始”继续。",
        en: "Contact with the server was lost for too long, so the phone was left alone." => "It stays where it is. Start again once the network is back."
    }
    ServerCallRefused "SERVER_REFUSED" {
        zh: "服务器拒绝了这一步。" => "请打开任务详情查看原因；需要时请管理员处理。",
        en: "The server refused this step." => "Open the task to see why; ask an administrator if needed."
    }
    ResultRefused "RESULT_REFUSED" {
        zh: "服务器拒绝了结果。" => "结果仍保存在本机；请把发件箱里的原因发给管理员。",
        en: "The server refused the result." => "It is kept here; send the reason in the outbox to an administrator."
    }
    RetriesExhausted "RETRIES_EXHAUSTED" {
        zh: "多次重试都没有成功。" => "请打开任务详情查看最后一次的原因，处理后重新采集。",
        en: "Several retries did not help." => "Open the task to see the last reason, fix it and collect again."
    }
    ProgramDied "PROGRAM_DIED" {
        zh: "上次运行中程序意外退出。" => "没有丢数据。点“开始”会先重做这个任务。",
        en: "The program ended unexpectedly during this run." => "Nothing was lost. Start again and this task is redone first."
    }
    StoppedBeforeStart "OPERATOR_STOPPED" {
        zh: "操作员在开始前停止了任务。" => "需要时可以重新采集。",
        en: "The operator stopped the task before it began." => "Collect it again if needed."
    }
    SecretsLost "SECRETS_LOST" {
        zh: "这台电脑没有凭据库，上次会话的密钥已丢失，任务无法继续。" => "任务已结束上报；请安装系统凭据库，避免再次发生。",
        en: "This computer has no credential store and the last session's key is gone, so the task cannot go on." => "It was ended and reported; install a credential store so that it does not happen again."
    }
    Stopped "OPERATOR_STOP" {
        zh: "操作员停止了任务。" => "需要时可以重新采集。",
        en: "The operator stopped the task." => "Collect it again if needed."
    }
    CancelledByServer "CANCEL_REQUESTED" {
        zh: "管理员取消了任务。" => "无需处理。",
        en: "An administrator cancelled the task." => "Nothing to do."
    }
    FolderUnwritable "FOLDER_UNWRITABLE" {
        zh: "数据文件夹不能写入。" => "请把程序放到可写的位置（例如 D:\\CMAutoBuy，不要放在 Program Files），或检查磁盘空间和权限。",
        en: "The data folder cannot be written." => "Put the program in a writable place (not Program Files), or check disk space and permissions."
    }
    SecondInstance "SECOND_INSTANCE" {
        zh: "这个数据文件夹已被另一个正在运行的程序使用。" => "请切换到已打开的窗口，或先关闭它。",
        en: "Another running program uses this data folder." => "Switch to its window, or close it first."
    }
    DatabaseNewer "DATABASE_NEWER" {
        zh: "数据库由更新版本的程序写成。" => "请更新程序；不要删除数据文件夹。",
        en: "The database was written by a newer version." => "Update the program; do not delete the data folder."
    }
    DatabaseBroken "DATABASE_BROKEN" {
        zh: "数据库读写出错。" => "请不要删除任何文件，把数据文件夹打包发给支持人员。",
        en: "The database cannot be read or written." => "Do not delete anything; send the data folder to support."
    }
    KeyMissing "KEY_MISSING" {
        zh: "找不到这个数据文件夹的密钥。" => "它可能是从别的电脑拷来的；请在原来的电脑上使用，或换一个新的数据文件夹。",
        en: "The key of this data folder is missing." => "It may have been copied from another computer; use it there, or take a new data folder here."
    }
    SettingInvalid "SETTING_INVALID" {
        zh: "设置的值不对。" => "请按提示的范围改正。",
        en: "A setting has a wrong value." => "Correct it to the range shown."
    }
    NotFound "NOT_FOUND" {
        zh: "找不到这一项。" => "请刷新列表。",
        en: "There is no such item." => "Refresh the list."
    }
    AccessibilityTaken "ACCESSIBILITY_TAKEN" {
        zh: "手机的无障碍接口被另一个自动化程序占用。" => "请在手机上关闭那个程序，然后重试。",
        en: "Another automation program holds the phone's accessibility connection." => "Close that program on the phone, then try again."
    }
    BadScreen "BAD_SCREEN" {
        zh: "手机停在不能操作的页面。" => "请看一眼手机，关掉遮挡的窗口，需要登录就登录，然后重试。",
        en: "The phone is on a page that cannot be worked on." => "Look at the phone, close what covers the page, log in if asked, then try again."
    }
    BadAnswer "BAD_ANSWER" {
        zh: "手机返回了无法识别的内容。" => "请把诊断文件发给支持人员。",
        en: "The phone answered in a way the program does not know." => "Send the files of this task to support."
    }
    PhoneCancelled "CANCELLED" {
        zh: "操作已取消。" => "无需处理。",
        en: "The action was cancelled." => "Nothing to do."
    }
    PageUnreadable "PAGE_UNREADABLE" {
        zh: "商品页没有加载完整。" => "请在手机上打开该商品看是否正常显示，再点“开始”重试。",
        en: "The goods page did not load whole." => "Open the goods on the phone, see whether the page is complete, then start again."
    }
    SheetUnsteady "SHEET_UNSTEADY" {
        zh: "规格面板一直在变化。" => "点“开始”重试；反复出现请看任务截图。",
        en: "The options sheet kept changing." => "Start again; if it returns, look at the screenshots."
    }
    SheetLost "SHEET_LOST" {
        zh: "规格面板中途关闭了。" => "点“开始”重试；采集时请不要操作手机。",
        en: "The options sheet closed on the way." => "Start again, and leave the phone alone while it works."
    }
    StepTimeout "STEP_TIMEOUT" {
        zh: "这一步花的时间太长。" => "请确认手机已解锁、有网络，再点“开始”重试。",
        en: "A step took too long." => "Check that the phone is unlocked and online, then start again."
    }
    DataInvalid "DATA_INVALID" {
        zh: "读到的数据自相矛盾，没有上报。" => "请把商品链接和任务文件发给支持人员。",
        en: "What was read contradicts itself and was not sent." => "Send the goods link and the task's files to support."
    }
    PurchaseUnsupported "PURCHASE_UNSUPPORTED" {
        zh: "这个版本只做采集，不做采购。" => "请由人在手机上处理该采购任务。",
        en: "This version collects only and does not buy." => "A person must handle this purchase on the phone."
    }
    ClaimLost "CLAIM_LOST" {
        zh: "这个任务已不归本机。" => "无需处理，服务器会重新分配。",
        en: "This task is no longer this device's." => "Nothing to do; the server hands it out again."
    }
    TaskCanceled "TASK_CANCELED" {
        zh: "任务已在服务器上取消。" => "无需处理。",
        en: "The task was cancelled on the server." => "Nothing to do."
    }
    ServerState "ILLEGAL_STATE" {
        zh: "服务器上的任务状态已改变。" => "请刷新列表；需要时请管理员处理。",
        en: "The task's state on the server has changed." => "Refresh the list; ask an administrator if needed."
    }
    Internal "INTERNAL" {
        zh: "程序内部出错。" => "没有丢数据。请重试；再次出现请把日志发给支持人员。",
        en: "Something inside the program failed." => "Nothing was lost. Try again; if it returns, send the log to support."
    }
}

impl Kind {
    /// The problem with its technical detail.
    pub fn with(self, detail: impl fmt::Display) -> Problem {
        let [zh_cause, zh_next, en_cause, en_next] = self.texts();
        let sentence = |cause: &str, next: &str| Sentence { cause: cause.to_owned(), next_step: next.to_owned() };
        Problem {
            code: self.code().to_owned(),
            zh: sentence(zh_cause, zh_next),
            en: sentence(en_cause, en_next),
            detail: detail.to_string(),
        }
    }
}

impl Problem {
    /// For a code read back from the database; an unknown one keeps its code and message as detail.
    pub fn from_code(code: &str, message: &str) -> Self {
        match Kind::from_code(code) {
            Some(kind) => kind.with(message),
            None => Kind::Internal.with(format!("{code}: {message}")),
        }
    }
}

/// English, one line: for logs and `main`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.code, self.en.cause, self.en.next_step)?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::NewerDatabase { .. } => Kind::DatabaseNewer,
            StoreError::Unwritable { .. } => Kind::FolderUnwritable,
            StoreError::NoSuch { .. } => Kind::NotFound,
            _ => Kind::DatabaseBroken,
        };
        kind.with(chain(&error))
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        let kind = match &error {
            ApiError::NoAnswer(_) | ApiError::Unreadable { .. } => Kind::ServerUnreachable,
            ApiError::NotLoggedIn => Kind::LoginNeeded,
            ApiError::Refused { detail, .. } => Kind::from_code(detail.code.as_str()).unwrap_or(Kind::ServerCallRefused),
            ApiError::Encode(_) => Kind::Internal,
        };
        kind.with(chain(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_problem_says_cause_and_next_step_in_both_languages() {
        let mut codes = HashSet::new();
        for kind in Kind::ALL {
            let problem = kind.with("detail");
            assert!(codes.insert(kind.code()), "{kind:?}: a code names one problem");
            assert_eq!(Kind::from_code(kind.code()), Some(*kind), "{kind:?}: the code must lead back to the same sentences");
            for text in [&problem.zh.cause, &problem.zh.next_step] {
                assert!(
                    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)) && text.ends_with('。'),
                    "{kind:?}: `{text}` must be a Chinese sentence"
                );
            }
            for text in [&problem.en.cause, &problem.en.next_step] {
                assert!(text.is_ascii() && text.ends_with('.'), "{kind:?}: `{text}` must be an English sentence");
            }
        }
    }

    #[test]
    fn unknown_codes_are_kept_not_swallowed() {
        assert!(
            Problem::from_code("NEW_CODE", "what happened").detail.contains("NEW_CODE"),
            "support must still see a code this version does not know"
        );
    }
}
